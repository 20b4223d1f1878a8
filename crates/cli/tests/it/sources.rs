//! Sources on several file systems, on a disk that is not mounted or is taken away, and deeper than
//! files may be open.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use holdall_testkit::{Process, Random, has_strace};
use rustix::fs::{XattrFlags, lsetxattr};
use rustix::process::Signal;

use crate::house::{Machine, Outcome, Server, is_root, send_signal, text, wait_for_progress};
use crate::mounts::{Share, namespace};
use crate::repair::grow_old;

/// Runs it to its end.
fn in_namespace(machine: &Machine, script: &str, args: &[&str]) -> Outcome {
    Outcome::of(&mut namespace(machine, script, args))
}

/// The paths of the newest snapshot below `source`, without its own.
fn names(machine: &Machine, repo: &str, source: &str) -> Vec<String> {
    let listed = machine.ok(["ls", "-r", repo, "latest", source, "--recursive"]).stdout;
    listed.lines().map(|path| path[source.len() + 1..].to_owned()).collect()
}

#[test]
fn what_attributes_can_not_be_read_of_is_stored_without_them_and_read_again() {
    if !has_strace() {
        return;
    }
    let machine = Machine::new();
    let (repo, source) = (machine.path("repo"), machine.path("source"));
    fs::create_dir_all(source.join("folder")).unwrap();
    let file = source.join("folder/file");
    fs::write(&file, "content").unwrap();
    symlink("folder/file", source.join("link")).unwrap();
    let has_attributes = lsetxattr(&file, "user.note", b"kept", XattrFlags::empty()).is_ok();
    grow_old(&source);
    let [repo, source] = [&repo, &source].map(|path| path.to_str().unwrap());
    machine.init(&["-r", repo]);
    let fails = "inject=flistxattr,llistxattr:error=EIO";
    let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", fails];
    let told = machine.run_by(&strace, ["backup", "-r", repo, source]);
    assert_eq!(told.code, Some(3), "{}", told.stderr);
    assert!(told.stderr.contains("attributes were not read"), "{}", told.stderr);
    assert_eq!(names(&machine, repo, source), ["folder", "folder/file", "link"]);

    machine.ok(["backup", "-r", repo, source]);
    let out = machine.path("out");
    let latest = format!("latest:{source}");
    machine.ok(["restore", "-r", repo, &latest, "--target", out.to_str().unwrap()]);
    let mut note = [0; 8];
    let read = rustix::fs::lgetxattr(out.join("folder/file"), "user.note", &mut note);
    assert_eq!(read.is_ok_and(|len| &note[..len] == b"kept"), has_attributes);
}

/// A source within another one is not read twice, and a walk does not come to all of them.
#[test]
fn a_source_that_another_one_leaves_out_is_told() {
    let machine = Machine::new();
    let (repo, source) = (machine.path("repo"), machine.path("source"));
    let elsewhere = machine.path("elsewhere");
    for folder in [source.join("cache/keep"), source.join("plain"), elsewhere.join("photos")] {
        fs::create_dir_all(folder).unwrap();
    }
    fs::write(source.join("cache/keep/file"), "kept").unwrap();
    symlink(&elsewhere, source.join("link")).unwrap();
    let [repo, source] = [&repo, &source].map(|path| path.to_str().unwrap());
    machine.init(&["-r", repo]);
    let below = |name: &str| format!("{source}/{name}");
    let met = machine.run(["backup", "-r", repo, source, &below("plain"), &below("cache/keep")]);
    assert_eq!(met.code, Some(0), "{}", met.stderr);
    // As of a list of everything, to which a rule is applied.
    let [cache, keep] = ["cache", "cache/keep"].map(below);
    machine.ok(["backup", "-r", repo, source, &cache, &keep, "--exclude", "cache"]);
    let excluded = ["backup", "-r", repo, source, &below("cache/keep"), "--exclude", "cache"];
    let behind_link = ["backup", "-r", repo, source, &below("link/photos")];
    for (args, left_out) in [(&excluded[..], "cache/keep"), (&behind_link[..], "link/photos")] {
        let told = machine.run(args);
        assert_eq!(told.code, Some(3), "{}", told.stderr);
        assert!(told.stderr.contains(&below(left_out)), "{}", told.stderr);
    }
    let missing = machine.run(["backup", "-r", repo, source, &below("nope")]).expect(3).stderr;
    assert!(missing.contains("nope: not read: No such file"), "{missing}");
}

/// Where nothing changed, whole leaves of the tree before are taken over.
#[test]
fn what_did_not_change_has_the_names_that_its_owners_have_now() {
    if !is_root("mounts") {
        return;
    }
    let machine = Machine::new();
    let [repo, source, passwd] = ["repo", "source", "passwd"].map(|name| machine.path(name));
    fs::create_dir(&source).unwrap();
    (0..2000).for_each(|number| fs::write(source.join(number.to_string()), "").unwrap());
    grow_old(&source);
    let [repo, source] = [&repo, &source].map(|path| path.to_str().unwrap());
    machine.init(&["-r", repo]);
    let script = format!("mount --bind {} /etc/passwd", passwd.display());
    for name in ["ann", "anna"] {
        fs::write(&passwd, format!("{name}:x:0:0::/:/bin/sh\n")).unwrap();
        in_namespace(&machine, &script, &["backup", "-r", repo, source]).expect(0);
        let list = ["ls", "-r", repo, "latest", source, "--recursive", "--json"];
        let listed = machine.ok(list).of_type("entry");
        let is_of_another = |entry: &&serde_json::Value| entry["user"] != name;
        assert_eq!(listed.iter().filter(is_of_another).collect::<Vec<_>>(), [""; 0], "{name}");
        assert!(listed.len() >= 2000, "{}", listed.len());
    }
}

#[test]
fn one_file_system_is_that_of_each_source_and_no_other() {
    if !is_root("mounts") {
        return;
    }
    let machine = Machine::new();
    let (repo, source) = (machine.path("repo"), machine.path("source"));
    let [repo, source] = [&repo, &source].map(|path| path.to_str().unwrap());
    machine.init(&["-r", repo]);
    for dir in ["disk", "plain/named", "other"] {
        fs::create_dir_all(format!("{source}/{dir}")).unwrap();
    }
    fs::write(format!("{source}/file"), "file").unwrap();
    let script = format!(
        "cd {source}; mount -t tmpfs none disk; mkdir -p disk/deep/wanted/inner disk/deep/not; \
         mount -t tmpfs none disk/deep/wanted/inner; mount -t tmpfs none plain/named; \
         mount -t tmpfs none other; touch disk/not disk/deep/not/file disk/deep/wanted/file \
         disk/deep/wanted/inner/not plain/named/file other/not"
    );
    let (wanted, named) = (format!("{source}/disk/deep/wanted"), format!("{source}/plain/named"));
    in_namespace(&machine, &script, &["backup", "-r", repo, "-x", source, &wanted, &named])
        .expect(0);
    assert_eq!(
        names(&machine, repo, source),
        [
            "disk",
            "disk/deep",
            "disk/deep/wanted",
            "disk/deep/wanted/file",
            "disk/deep/wanted/inner",
            "file",
            "other",
            "plain",
            "plain/named",
            "plain/named/file",
        ]
    );
    in_namespace(&machine, &script, &["backup", "-r", repo, source]).expect(0);
    assert_eq!(names(&machine, repo, source).len(), 15);
}

#[test]
fn a_disk_that_is_not_mounted_is_told_and_the_snapshot_before_keeps_what_was_on_it() {
    if !is_root("mounts") {
        return;
    }
    let machine = Machine::new();
    let (repo, disk) = (machine.path("repo"), machine.path("disk"));
    let [repo, disk] = [&repo, &disk].map(|path| path.to_str().unwrap());
    machine.init(&["-r", repo]);
    fs::create_dir(disk).unwrap();
    let script = format!("mount -t tmpfs none {disk}; mkdir {disk}/a; echo a > {disk}/a/file");
    let args = ["backup", "-r", repo, disk, "--json"];
    let mounted = in_namespace(&machine, &script, &args).expect(0).summary();
    let bare = machine.run(args).expect(3);
    let told = bare.of_type("error");
    assert_eq!((told.len(), told[0]["path"].as_str()), (1, Some(disk)));
    assert!(told[0]["message"].as_str().unwrap().contains("has 2 items in it"), "{}", told[0]);
    assert!(bare.summary()["snapshot_id"].is_string());
    let before = mounted["snapshot_id"].as_str().unwrap();
    let listed = machine.ok(["ls", "-r", repo, before, disk, "--recursive"]).stdout;
    assert!(listed.contains("/a/file"), "{listed}");
}

#[test]
fn a_disk_below_a_source_that_is_not_mounted_is_told_and_a_folder_that_was_emptied_is_not() {
    if !is_root("mounts") {
        return;
    }
    let machine = Machine::new();
    let (repo, source) = (machine.path("repo"), machine.path("source"));
    for folder in ["disk", "emptied", "empty"] {
        fs::create_dir_all(source.join(folder)).unwrap();
    }
    fs::write(source.join("emptied/file"), "x").unwrap();
    let [repo, source] = [&repo, &source].map(|path| path.to_str().unwrap());
    machine.init(&["-r", repo]);
    let disk = format!("{source}/disk");
    let script = format!("mount -t tmpfs none {disk}; mkdir {disk}/a; echo a > {disk}/a/file");
    let args = ["backup", "-r", repo, source, "--json"];
    in_namespace(&machine, &script, &args).expect(0);
    in_namespace(&machine, &script, &args).expect(0);
    fs::remove_file(format!("{source}/emptied/file")).unwrap();
    let bare = machine.run(args).expect(3);
    let told = bare.of_type("error");
    assert_eq!((told.len(), told[0]["path"].as_str()), (1, Some(&*disk)));
    assert!(told[0]["message"].as_str().unwrap().contains("has 2 items in it"), "{}", told[0]);
    // Nothing was there in the snapshot before.
    machine.run(args).expect(0);
}

/// sshfs gives a file's modification time as its change time, as the disks of cameras do.
#[test]
fn files_that_changed_places_where_there_are_no_change_times_are_read() {
    let Some(share) = Share::new() else { return };
    let machine = Machine::new();
    let (repo, served) = (machine.path("repo"), share.served());
    for (name, content) in [("one", "first"), ("two", "other")] {
        fs::write(served.join(name), content).unwrap();
        let file = fs::File::open(served.join(name)).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(1_000_000_000)).unwrap();
    }
    machine.init(&["-r", text(&repo)]);
    let back_up = |name: &str| {
        let mount = share.mount(name, &[]);
        let from = text(mount.point()).to_owned();
        machine.summary(["backup", "-r", text(&repo), &from, "--as", &format!("{from}=/disk")])
    };
    back_up("before");
    let moved = |from: &str, to: &str| fs::rename(served.join(from), served.join(to)).unwrap();
    moved("one", "three");
    moved("two", "one");
    moved("three", "two");
    let summary = back_up("after");
    assert_eq!(summary["files_changed"], 2);
    assert_eq!(back_up("again")["files_unmodified"], 2);
    let target = machine.path("target");
    machine.ok(["restore", "-r", text(&repo), "latest:/disk", "--target", text(&target)]);
    let read = |name: &str| fs::read_to_string(target.join(name)).unwrap();
    assert_eq!((read("one"), read("two")), ("other".to_owned(), "first".to_owned()));
}

/// Writes a large file that comes first, and, behind it, more folders and files than the plan and the
/// walkers get ahead of what is sent.
fn much_before_the_disk(source: &str) {
    for number in 0..40 {
        let dir = format!("{source}/{number:02}");
        fs::create_dir_all(&dir).unwrap();
        for file in 0..100 {
            fs::write(format!("{dir}/{file}"), "small").unwrap();
        }
    }
    fs::write(format!("{source}/00/-large"), Random::new(3).bytes(64 << 20)).unwrap();
}

#[test]
fn a_disk_that_is_taken_away_during_a_backup_is_told_and_the_rest_is_complete() {
    if !is_root("mounts") {
        return;
    }
    let machine = Machine::new().with_password(None);
    let server = Server::start(&machine.path("data"));
    machine.pair_with(&server);
    let (source, named) = (machine.path("source"), machine.path("stick"));
    let [source, named] = [&source, &named].map(|path| path.to_str().unwrap());
    much_before_the_disk(source);
    let (disk, below) = (format!("{source}/disk"), format!("{named}/photos"));
    fs::create_dir(&disk).unwrap();
    fs::create_dir(named).unwrap();
    fs::write(format!("{source}/last"), "last").unwrap();
    let script = format!(
        "mount -t tmpfs none {disk}; touch {disk}/file; mount -t tmpfs none {named}; mkdir {below}"
    );
    let args = ["backup", source, &below, "--json", "--limit-upload", "8M"];
    let mut backup = Process::spawn(&mut namespace(&machine, &script, &args)).unwrap();
    wait_for_progress(&mut backup, 1);
    send_signal(&backup, Signal::STOP);
    let mut unmount = Command::new("nsenter");
    // With its root, too, which need not be that of its namespace.
    unmount.args(["-m", "-r", "-t", &backup.id().to_string(), "umount", "-l", &disk, named]);
    assert!(unmount.status().unwrap().success());
    send_signal(&backup, Signal::CONT);

    let done = Outcome::of_process(backup).expect(3);
    let told: Vec<_> = done.of_type("error").iter().map(|one| one["path"].clone()).collect();
    assert_eq!(told, [disk.as_str(), below.as_str()]);
    let listed = machine.ok(["ls", "latest", source, "--recursive"]).stdout;
    assert_eq!(listed.lines().count(), 40 * 101 + 3);
    assert!(
        listed.ends_with(&format!("{disk}\n{source}/last\n")),
        "{}",
        &listed[listed.len() - 400..]
    );
}

#[test]
fn the_limit_of_open_files_is_raised_for_deep_trees() {
    let machine = Machine::new();
    let (repo, source) = (machine.path("repo"), machine.path("source"));
    let deep = source.join("d/".repeat(200));
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("file"), "deep").unwrap();
    let [repo, source] = [&repo, &source].map(|path| path.to_str().unwrap());
    machine.init(&["-r", repo]);
    let limited = ["sh", "-c", "ulimit -S -n 64; exec \"$@\"", "sh"];
    let done = machine.run_by(&limited, ["backup", "-r", repo, source, "--json"]).expect(0);
    assert_eq!(done.summary()["files_new"], 1);
    assert_eq!(names(&machine, repo, source).len(), 201);
}

#[test]
fn a_source_that_is_a_link_to_a_folder_is_followed_or_refused() {
    let machine = Machine::new();
    let [repo, home, disk, target] =
        ["repo", "home", "disk/ada", "target"].map(|name| machine.path(name));
    fs::create_dir_all(&disk).unwrap();
    fs::write(disk.join("letter"), "Dear reader").unwrap();
    std::os::unix::fs::symlink(&disk, &home).unwrap();
    let [repo, home, target] = [&repo, &home, &target].map(|path| path.to_str().unwrap());
    machine.init(&["-r", repo]);
    let refused = machine.run(["backup", "-r", repo, home]).expect(2);
    assert!(refused.stderr.contains("end the path with a slash"), "{}", refused.stderr);
    assert_eq!(machine.ok(["snapshots", "-r", repo, "--json"]).of_type("snapshot"), [""; 0]);

    machine.ok(["backup", "-r", repo, &format!("{home}/")]);
    assert_eq!(names(&machine, repo, home), ["letter"]);
    // What is above the link is there, and not what is above where it leads to.
    let above = machine.ok(["ls", "-r", repo, "latest", "/", "--recursive"]).stdout;
    assert!(above.contains(home) && !above.contains("disk"), "{above}");
    machine.ok(["restore", "-r", repo, &format!("latest:{home}"), "--target", target]);
    assert_eq!(fs::read_to_string(format!("{target}/letter")).unwrap(), "Dear reader");
}
