//! Ordinary users: what they may not read or restore is told, and everything else is done.
//!
//! Only root can make what an ordinary user may not touch, and give its rights up. What an ordinary
//! user may not do at all is in the table of mistakes.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::house::{
    Machine, Outcome, files_below, folder, is_root, open_at_once, small_tree, text,
};

const NOBODY: u32 = 65534;
const AS_NOBODY: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

/// A machine whose folders belong to an ordinary user; nothing if it cannot be made.
fn ordinary_machine() -> Option<Machine> {
    if !is_root("what an ordinary user may read and restore") {
        return None;
    }
    let machine = Machine::new();
    give_away(&machine.path(""));
    Some(machine)
}

/// Gives a path and all below it to the ordinary user.
fn give_away(path: &Path) {
    let owner = format!("{NOBODY}:{NOBODY}");
    let done = Command::new("chown").args(["-R", "-h", &owner]).arg(path).status().unwrap();
    assert!(done.success());
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Runs a program that must succeed.
fn tool(program: &str, args: &[&str]) {
    let done = Command::new(program).args(args).output().expect("it is installed");
    assert!(done.status.success(), "{program}: {}", String::from_utf8_lossy(&done.stderr));
}

/// The paths that a command told of, below `top`.
fn told(said: &Outcome, top: &str) -> Vec<String> {
    let told = said.of_type("error").into_iter();
    let below = |path: &str| path.strip_prefix(top).unwrap_or(path).to_owned();
    told.map(|error| below(error["path"].as_str().unwrap_or_default())).collect()
}

#[test]
fn what_an_ordinary_user_may_not_read_is_told_and_the_rest_is_in_the_snapshot() {
    let Some(machine) = ordinary_machine() else { return };
    let (repo, source) = (machine.path("repo"), machine.path("source"));
    for dir in ["mine", "locked", "no-entry"] {
        fs::create_dir_all(source.join(dir)).unwrap();
        fs::write(source.join(dir).join("file"), dir).unwrap();
    }
    fs::write(source.join("mine/secret"), "secret").unwrap();
    fs::write(source.join("public"), "of root, for all").unwrap();
    give_away(&source);
    for (path, mode) in [("mine/secret", 0o600), ("locked", 0o700), ("no-entry", 0o744)] {
        chown(source.join(path), Some(0), Some(0)).unwrap();
        set_mode(&source.join(path), mode);
    }
    chown(source.join("public"), Some(0), Some(0)).unwrap();
    let [repo, source] = [&repo, &source].map(|path| path.to_str().unwrap());
    machine.run_by(&AS_NOBODY, ["init", "-r", repo]).expect(0);
    open_at_once(repo.as_ref(), "correct horse");
    let done = machine.run_by(&AS_NOBODY, ["backup", "-r", repo, source, "--json"]).expect(3);
    assert_eq!(
        told(&done, source),
        ["/locked", "/no-entry/file", "/mine/secret"].map(str::to_owned)
    );
    assert_eq!(done.summary()["errors"], 3);
    let listed = ["ls", "-r", repo, "latest", source, "--recursive"];
    let listed = machine.run_by(&AS_NOBODY, listed).expect(0).stdout;
    let names: Vec<_> = listed.lines().map(|path| &path[source.len()..]).collect();
    assert_eq!(names, ["/locked", "/mine", "/mine/file", "/no-entry", "/public"]);
}

#[test]
fn what_lies_behind_a_link_or_a_directory_that_may_only_be_passed_is_backed_up_as_a_whole() {
    let Some(machine) = ordinary_machine() else { return };
    let (repo, passed, link) = (machine.path("repo"), machine.path("passed"), machine.path("link"));
    let mine = passed.join("mine");
    fs::create_dir_all(&mine).unwrap();
    fs::write(mine.join("file"), "mine").unwrap();
    give_away(&mine);
    set_mode(&passed, 0o711);
    std::os::unix::fs::symlink(&passed, &link).unwrap();
    let repo = repo.to_str().unwrap();
    machine.run_by(&AS_NOBODY, ["init", "-r", repo]).expect(0);
    open_at_once(repo.as_ref(), "correct horse");
    for source in [mine.clone(), link.join("mine")] {
        let source = source.to_str().unwrap();
        let done = machine.run_by(&AS_NOBODY, ["backup", "-r", repo, source, "--json"]).expect(0);
        assert_eq!(done.summary()["errors"], 0);
        let target = machine.path("target");
        let args = ["restore", "-r", repo, "latest", "--target", target.to_str().unwrap()];
        machine.run_by(&AS_NOBODY, args).expect(0);
        let restored = target.join(&source[1..]);
        assert_eq!(fs::read(restored.join("file")).unwrap(), b"mine");
        let above = fs::symlink_metadata(restored.parent().unwrap()).unwrap();
        assert_eq!((above.is_dir(), above.mode() & 0o7777), (true, 0o711), "{source}");
        fs::remove_dir_all(&target).unwrap();
    }
}

/// A tree of root's with everything that an ordinary user cannot restore as it was.
fn tree_of_root(dir: &Path) {
    fs::create_dir_all(dir.join("read-only/below")).unwrap();
    for (name, mode) in [("of-root", 0o640), ("set-user-id", 0o4755), ("own-set-user-id", 0o4755)] {
        fs::write(dir.join(name), name).unwrap();
        set_mode(&dir.join(name), mode);
    }
    fs::write(dir.join("read-only/below/own"), "own").unwrap();
    give_away(&dir.join("read-only"));
    give_away(&dir.join("own-set-user-id"));
    set_mode(&dir.join("own-set-user-id"), 0o4755);
    set_mode(&dir.join("read-only/below"), 0o500);
    set_mode(&dir.join("read-only"), 0o555);
    let at = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    tool("mknod", &[&at("device"), "c", "1", "3"]);
    tool("setfattr", &["-n", "user.colour", "-v", "red", &at("of-root")]);
    tool("setcap", &["cap_net_raw+ep", &at("of-root")]);
}

#[test]
fn an_ordinary_user_restores_what_it_may_and_gets_a_note_of_the_rest() {
    let Some(machine) = ordinary_machine() else { return };
    let (repo, source, to) = (machine.path("repo"), machine.path("source"), machine.path("to"));
    tree_of_root(&source);
    let [repo, source, to] = [&repo, &source, &to].map(|path| path.to_str().unwrap());
    machine.init(&["-r", repo]);
    machine.ok(["backup", "-r", repo, source]);
    // A copy that the user got hold of.
    give_away(repo.as_ref());
    give_away(&machine.path("config"));
    give_away(&machine.path("cache"));
    let from = format!("latest:{source}");
    let restored = machine
        .run_by(&AS_NOBODY, ["restore", "-r", repo, &from, "--target", to, "--json"])
        .expect(0)
        .summary();
    assert_eq!((&restored["errors"], &restored["skipped"]), (&0.into(), &1.into()), "{restored}");
    let note = "not restored, for only root may: 3 owners, 3 groups, \
                1 set-user-id or set-group-id bit, 1 privileged attribute, 1 device";
    assert_eq!(restored["notes"], serde_json::json!([note]));
    let mode_of = |name: &str| {
        let found = fs::symlink_metadata(format!("{to}/{name}")).unwrap();
        assert_eq!((found.uid(), found.gid()), (NOBODY, NOBODY), "{name}");
        found.mode() & 0o7777
    };
    let modes = ["of-root", "set-user-id", "own-set-user-id", "read-only", "read-only/below"];
    assert_eq!(modes.map(mode_of), [0o640, 0o755, 0o4755, 0o555, 0o500]);
    assert!(!fs::exists(format!("{to}/device")).unwrap());
    assert_eq!(fs::read(format!("{to}/read-only/below/own")).unwrap(), b"own");
    let own = |top: &str| {
        let found = fs::metadata(format!("{top}/read-only/below/own")).unwrap();
        (found.mode(), found.mtime(), found.mtime_nsec(), found.uid())
    };
    assert_eq!(own(to), own(source));
    tool("getfattr", &["-n", "user.colour", &format!("{to}/of-root")]);
}

#[test]
fn strict_tells_of_each_that_an_ordinary_user_may_not_restore() {
    let Some(machine) = ordinary_machine() else { return };
    let (repo, source, to) = (machine.path("repo"), machine.path("source"), machine.path("to"));
    tree_of_root(&source);
    let [repo, source, to] = [&repo, &source, &to].map(|path| path.to_str().unwrap());
    machine.init(&["-r", repo]);
    machine.ok(["backup", "-r", repo, source]);
    for path in ["repo", "config", "cache"] {
        give_away(&machine.path(path));
    }
    let from = format!("latest:{source}");
    let args = ["restore", "-r", repo, &from, "--target", to, "--strict", "--json"];
    let done = machine.run_by(&AS_NOBODY, args).expect(3);
    let mut told = told(&done, to);
    told.sort();
    told.dedup();
    assert_eq!(told, ["", "/device", "/of-root", "/set-user-id"]);
    assert_eq!(done.summary()["notes"], serde_json::json!([]));
}

/// Room for what is read is kept by the sizes of files; what cannot be opened must not keep it.
#[test]
fn many_files_that_may_not_be_read_do_not_hold_a_backup_up() {
    let Some(machine) = ordinary_machine() else { return };
    let (repo, source) = (machine.path("repo"), machine.path("source"));
    fs::create_dir(&source).unwrap();
    for group in 0..60 {
        for number in 0..31 {
            let file = fs::File::create(source.join(format!("{group:02}-{number:02}"))).unwrap();
            file.set_len(32 << 10).unwrap();
            file.set_permissions(Permissions::from_mode(0o600)).unwrap();
        }
        let readable = holdall_testkit::Random::new(group).bytes(1 << 10);
        fs::write(source.join(format!("{group:02}-readable")), readable).unwrap();
    }
    let [repo, source] = [&repo, &source].map(|path| path.to_str().unwrap());
    machine.run_by(&AS_NOBODY, ["init", "-r", repo]).expect(0);
    open_at_once(repo.as_ref(), "correct horse");
    let in_time = [&["timeout", "100"], &AS_NOBODY[..]].concat();
    let done = machine.run_by(&in_time, ["backup", "-r", repo, source, "--json"]).expect(3);
    assert_eq!(done.summary()["errors"], 60 * 31);
    assert_eq!(done.summary()["files_new"], 60);
}

#[test]
fn a_repository_and_what_is_taken_out_of_it_are_not_for_every_user_to_read() {
    let Some(machine) = ordinary_machine() else { return };
    let [repo, source, file] = ["repo", "source", "file"].map(|name| machine.path(name));
    fs::create_dir(&source).unwrap();
    fs::write(source.join("secret"), "secret").unwrap();
    set_mode(&source.join("secret"), 0o600);
    let [repo, source] = [&repo, &source].map(|path| path.to_str().unwrap());
    machine.init(&["-r", repo]);
    machine.ok(["backup", "-r", repo, source]);
    let secret = format!("{source}/secret");
    let of_snapshot = format!("latest:{secret}");
    machine.ok(["dump", "-r", repo, &of_snapshot, "--target", file.to_str().unwrap()]);
    let [_, as_nobody @ ..] = AS_NOBODY;
    let looks = Command::new(AS_NOBODY[0]).args(as_nobody).args(["ls", repo]).output().unwrap();
    assert!(!looks.status.success(), "{}", String::from_utf8_lossy(&looks.stdout));
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
}

/// Where a machine's repository is to be, and a small tree of the ordinary user's.
fn repo_and_tree(machine: &Machine) -> (PathBuf, PathBuf) {
    let source = machine.path("source");
    small_tree(&source);
    give_away(&source);
    (machine.path("repo"), source)
}

/// The paths below a folder, itself too, that are not the ordinary user's.
fn of_others(folder: &Path) -> Vec<PathBuf> {
    let is_another_s = |path: &&PathBuf| fs::symlink_metadata(path).unwrap().uid() != NOBODY;
    let folders = files_below(folder).into_iter().flat_map(|file| {
        let above = file.ancestors().take_while(|above| above.starts_with(folder));
        above.map(Path::to_owned).collect::<Vec<_>>()
    });
    folders.collect::<BTreeSet<_>>().iter().filter(is_another_s).cloned().collect()
}

#[test]
fn what_root_makes_in_a_user_s_folders_belongs_to_that_user() {
    let Some(machine) = ordinary_machine() else { return };
    let (repo, source) = repo_and_tree(&machine);
    let [repo, source] = [&repo, &source].map(|path| text(path));
    let kit = machine.path("kit");
    machine.run_by(&AS_NOBODY, ["init", "-r", repo, "--recovery-kit", text(&kit)]).expect(0);
    // The first run as root makes the cache.
    let backup = ["backup", "-r", repo, source];
    machine.ok(backup);
    for _ in 0..2 {
        assert_eq!(of_others(&machine.path("")), Vec::<PathBuf>::new());
        machine.run_by(&AS_NOBODY, backup).expect(0);
        machine.run_by(&AS_NOBODY, ["check", "-r", repo]).expect(0);
        fs::write(Path::new(source).join("new"), "new").unwrap();
        give_away(Path::new(source));
        machine.ok(backup);
        let out = machine.path("out");
        machine.ok(["restore", "-r", repo, "latest", "--dry-run", "--target", text(&out)]);
        machine.ok(["forget", "-r", repo, "--keep-last", "1", "--prune"]);
    }
}

#[test]
fn root_follows_no_link_of_a_user_in_what_is_kept() {
    let Some(machine) = ordinary_machine() else { return };
    let ((repo, source), of_root) = (repo_and_tree(&machine), folder());
    let [repo, source] = [&repo, &source].map(|path| text(path));
    machine.run_by(&AS_NOBODY, ["init", "-r", repo]).expect(0);
    let backup = ["backup", "-r", repo, source];
    machine.run_by(&AS_NOBODY, backup).expect(0);
    let elsewhere = of_root.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    set_mode(&elsewhere, 0o755);
    let caches = fs::read_dir(machine.path("cache")).unwrap();
    let caches = caches.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let state = ["config/state/receipts", "config/state"].map(|name| machine.path(name));
    for link in caches.chain(state).chain([machine.path("cache")]) {
        let aside = of_root.path().join("aside");
        fs::rename(&link, &aside).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &link).unwrap();
        std::os::unix::fs::lchown(&link, Some(NOBODY), Some(NOBODY)).unwrap();
        let refused = machine.run(backup).expect(1).stderr;
        assert!(refused.contains(text(&link)), "{refused}");
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0, "{}", link.display());
        assert_eq!(fs::metadata(&elsewhere).unwrap().mode() & 0o777, 0o755);
        fs::remove_file(&link).unwrap();
        fs::rename(&aside, &link).unwrap();
    }
    machine.ok(backup);
}

/// A user's link that takes a folder's place while root works: once the start is over, the password is asked for.
#[test]
fn root_is_led_by_no_link_that_a_user_puts_there_while_it_works() {
    let Some(machine) = ordinary_machine() else { return };
    let ((repo, source), of_root) = (repo_and_tree(&machine), folder());
    let [repo, source] = [&repo, &source].map(|path| text(path));
    machine.run_by(&AS_NOBODY, ["init", "-r", repo]).expect(0);
    open_at_once(repo.as_ref(), "correct horse");
    let backup = ["backup", "-r", repo, source];
    machine.run_by(&AS_NOBODY, backup).expect(0);
    let [elsewhere, aside] = ["elsewhere", "aside"].map(|name| of_root.path().join(name));
    fs::create_dir(&elsewhere).unwrap();
    set_mode(&elsewhere, 0o755);
    let untouched = || {
        let found = fs::metadata(&elsewhere).unwrap();
        (found.mode(), found.uid(), found.mtime(), found.mtime_nsec())
    };
    let before = untouched();
    let (target, kept) = (machine.path("target"), folders_in(&machine.path("cache")));
    let restore =
        ["restore", "-r", repo, "latest", "--overwrite", "always", "--target", text(&target)];
    let state = ["config", "config/state", "config/state/receipts"].map(|name| machine.path(name));
    for place in kept.into_iter().chain(state) {
        let (place_text, aside_text) = (text(&place), text(&aside));
        let swap = format!(
            "mv '{place_text}' '{aside_text}' && ln -s '{}' '{place_text}' && \
             chown -h {NOBODY}:{NOBODY} '{place_text}' && echo correct horse",
            elsewhere.display()
        );
        let swapping = format!("HOLDALL_PASSWORD_COMMAND={swap}");
        for command in [&backup[..], &restore] {
            fs::write(Path::new(source).join("new"), place_text).unwrap();
            let ended = machine.run_by(&["env", &swapping], command);
            assert_eq!(untouched(), before, "{place_text} {command:?}: {ended:?}");
            fs::remove_file(&place).unwrap();
            fs::rename(&aside, &place).unwrap();
        }
    }
    machine.ok(backup);
}

/// A folder, and those in it down to the third level.
fn folders_in(top: &Path) -> Vec<PathBuf> {
    let mut found = vec![top.to_owned()];
    for _ in 0..2 {
        let below = found.iter().flat_map(|folder| fs::read_dir(folder).unwrap());
        let below = below.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
        found.extend(below.collect::<Vec<_>>());
        found.sort();
        found.dedup();
    }
    found
}

#[test]
fn a_pipe_in_the_place_of_what_is_kept_hangs_no_command() {
    let machine = Machine::new();
    let (repo, source) = (machine.path("repo"), machine.path("source"));
    small_tree(&source);
    let [repo, source] = [&repo, &source].map(|path| text(path));
    machine.init(&["-r", repo]);
    let backup = ["backup", "-r", repo, source];
    machine.ok(backup);
    let kept = ["cache", "config/state"].map(|name| files_below(&machine.path(name)));
    for file in kept.concat() {
        let aside = machine.path("aside");
        fs::rename(&file, &aside).unwrap();
        tool("mkfifo", &[text(&file)]);
        let ended = machine.run_by(&["timeout", "60"], backup);
        assert_ne!(ended.code, Some(124), "{}", file.display());
        let _ = fs::remove_file(&file);
        fs::rename(&aside, &file).unwrap();
    }
    machine.ok(backup);
}

#[test]
fn a_recovery_kit_stays_with_who_asked_for_it() {
    let Some(machine) = ordinary_machine() else { return };
    let (of_root, kit) = (folder(), machine.path("kit"));
    let repo = of_root.path().join("repo");
    machine.ok(["init", "-r", text(&repo), "--recovery-kit", text(&kit)]);
    let kit = fs::metadata(kit).unwrap();
    assert_eq!((kit.uid(), kit.mode() & 0o777), (0, 0o600));
}

#[test]
fn a_receipt_that_may_not_be_read_is_no_damage() {
    let Some(machine) = ordinary_machine() else { return };
    let (repo, source) = repo_and_tree(&machine);
    let [repo, source] = [&repo, &source].map(|path| text(path));
    machine.run_by(&AS_NOBODY, ["init", "-r", repo]).expect(0);
    let backup = ["backup", "-r", repo, source];
    machine.run_by(&AS_NOBODY, backup).expect(0);
    let receipts = files_below(&machine.path("config/state/receipts"));
    chown(&receipts[0], Some(0), Some(0)).unwrap();
    let told = machine.run_by(&AS_NOBODY, backup).expect(3).stderr;
    assert!(told.contains("receipts"), "{told}");
    machine.run_by(&AS_NOBODY, backup).expect(0);
}
