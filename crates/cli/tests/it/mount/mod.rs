//! `holdall mount`, by real mounts that real programs look at.

mod away;
mod ended;
mod place;
mod seen;
mod users;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use place::{Mounted, Place, names};

use crate::house::{Machine, text};

/// The time in a snapshot's folder.
fn is_time(name: &str) -> bool {
    let digits = name.replace(|letter: char| letter.is_ascii_digit(), "0");
    digits == "0000-00-00T00-00-00Z"
}

#[test]
fn the_folders_are_by_time_machine_tag_and_id_and_show_what_comes_while_they_are_mounted() {
    let Some(place) = Place::new() else { return };
    fs::write(place.source().join("file"), "first").unwrap();
    let first = place.back_up(&["--tag", "weekly", "--tag", "a/b"]);
    let mounted = place.mount();
    assert_eq!(names(&mounted.path("")), ["ids", "latest", "machines", "snapshots", "tags"]);
    let [name] = &names(&mounted.path("snapshots"))[..] else { panic!("one") };
    assert!(is_time(name), "{name}");
    let [host] = &names(&mounted.path("machines"))[..] else { panic!("one") };
    assert_eq!(names(&mounted.path("tags")), ["a%2Fb", "weekly"]);
    let file = text(&place.source().join("file")).to_owned();
    for folder in [
        format!("snapshots/{name}"),
        format!("machines/{host}/{name}"),
        format!("machines/{host}/latest"),
        format!("tags/weekly/{name}"),
        "tags/a%2Fb/latest".to_owned(),
        format!("ids/{:.10}", first),
        "latest".to_owned(),
    ] {
        let path = mounted.path(&format!("{folder}{file}"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "first", "{folder}");
    }
    fs::write(place.source().join("file"), "second").unwrap();
    let second = place.back_up_beside();
    let of_second = mounted.path(&format!("ids/{:.10}", second));
    // What is not there is looked for again, once the list is some seconds old.
    while !of_second.exists() {
        std::thread::yield_now();
    }
    assert_eq!(fs::read_to_string(of_second.join(&file[1..])).unwrap(), "second");
    assert_eq!(fs::read_to_string(mounted.latest(file.as_ref())).unwrap(), "second");
    assert_eq!(names(&mounted.path("snapshots")).len(), 2);
    let weekly = mounted.path(&format!("tags/weekly/latest{file}"));
    assert_eq!(fs::read_to_string(weekly).unwrap(), "first");
    assert_eq!(mounted.end(), (Some(0), String::new()));
}

#[test]
fn a_backup_goes_on_while_nobody_reads() {
    let Some(place) = Place::new() else { return };
    fs::write(place.source().join("file"), "content").unwrap();
    place.back_up(&[]);
    let mounted = place.mount();
    let file = mounted.latest(&place.source().join("file"));
    assert_eq!(fs::read_to_string(&file).unwrap(), "content");
    place.back_up_beside();
    assert_eq!(fs::read_to_string(&file).unwrap(), "content");
}

#[test]
fn nothing_can_be_written() {
    let Some(place) = Place::new() else { return };
    fs::write(place.source().join("file"), "content").unwrap();
    place.back_up(&[]);
    let mounted = place.mount();
    let file = mounted.latest(&place.source().join("file"));
    let new = file.with_file_name("new");
    let readonly = |done: std::io::Result<()>| {
        assert_eq!(done.unwrap_err().raw_os_error(), Some(rustix::io::Errno::ROFS.raw_os_error()));
    };
    readonly(fs::write(&new, "x"));
    readonly(fs::write(&file, "x"));
    readonly(fs::OpenOptions::new().append(true).open(&file).map(drop));
    readonly(fs::remove_file(&file));
    readonly(fs::create_dir(&new));
    readonly(fs::rename(&file, &new));
    readonly(fs::hard_link(&file, &new));
    readonly(std::os::unix::fs::symlink("x", &new));
    readonly(fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o777)));
    readonly(std::os::unix::fs::chown(&file, Some(5), None));
    readonly(fs::remove_dir(mounted.path("snapshots")));
    readonly(fs::write(mounted.path("new"), "x"));
    assert_eq!(fs::read_to_string(&file).unwrap(), "content");
}

#[test]
fn names_of_one_file_have_one_inode_and_say_how_many_they_are() {
    let Some(place) = Place::new() else { return };
    let source = place.source();
    fs::create_dir(source.join("deep")).unwrap();
    fs::write(source.join("a"), "linked").unwrap();
    std::os::unix::fs::symlink("a target", source.join("link")).unwrap();
    for name in ["b", "deep/c", "z"] {
        fs::hard_link(source.join("a"), source.join(name)).unwrap();
    }
    fs::write(source.join("y"), "alone").unwrap();
    place.back_up(&[]);
    let mounted = place.mount();
    let found = |name: &str| fs::metadata(mounted.latest(&source.join(name))).unwrap();
    for name in ["a", "b", "deep/c", "z"] {
        assert_eq!((found(name).ino(), found(name).nlink()), (found("a").ino(), 4), "{name}");
        let content = fs::read_to_string(mounted.latest(&source.join(name)));
        assert_eq!(content.unwrap(), "linked");
    }
    assert_ne!(found("y").ino(), found("a").ino());
    assert_eq!((found("y").nlink(), found("deep").nlink()), (1, 1));
    let link = fs::symlink_metadata(mounted.latest(&source.join("link"))).unwrap();
    assert_eq!(link.len(), 8, "the length of its target");
}

#[test]
fn what_cannot_be_mounted_on_is_refused_before_a_password_is_asked_for() {
    if !place::can_mount() {
        return;
    }
    let machine = Machine::new().with_password(None);
    let refused = |path: &Path, words: &str, hint: &str| {
        let told = machine.run(["mount", "-r", "/nowhere", text(path)]).expect(1);
        assert!(told.stderr.contains(words) && told.stderr.contains(hint), "{}", told.stderr);
    };
    let full = machine.path("full");
    fs::create_dir(&full).unwrap();
    fs::write(full.join("file"), "x").unwrap();
    refused(&full, "this folder is not empty", "mkdir");
    refused(&full.join("file"), "this is no folder", "mkdir");
    refused(&machine.path("missing"), "No such file", "mkdir");
}

#[test]
fn what_was_left_mounted_by_a_process_that_was_killed_is_told_with_a_way_out() {
    let Some(place) = Place::new() else { return };
    place.back_up(&[]);
    let mut mounted = place.mount();
    mounted.process().kill().unwrap();
    let point = mounted.path("");
    let told = place.run(&["mount", text(&point)]).expect(1);
    assert!(told.stderr.contains("has ended"), "{}", told.stderr);
    assert!(told.stderr.contains("fusermount3 -u"), "{}", told.stderr);
}

#[test]
fn programs_are_told_where_it_is_mounted() {
    let Some(place) = Place::new() else { return };
    place.back_up(&[]);
    let (repo, point) = (place.machine.path("repo"), place.machine.path("mounted"));
    fs::create_dir(&point).unwrap();
    let args = ["mount", "--json", "-r", text(&repo), text(&point)];
    let mut process = holdall_testkit::Process::spawn(&mut place.machine.command(args)).unwrap();
    process.wait_for_line("{\"message_type\":\"mounted\"").unwrap();
    process.terminate().unwrap();
    let ended = crate::house::Outcome::of_process(process).expect(0);
    assert_eq!(ended.of_type("mounted")[0]["path"], text(&point));
}

/// The path of a file of the newest snapshot, without what it may be linked by.
fn newest(mounted: &Mounted, file: &Path) -> PathBuf {
    let snapshot = fs::canonicalize(mounted.path("latest")).unwrap();
    snapshot.join(text(file).trim_start_matches('/'))
}
