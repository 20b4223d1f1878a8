//! Who may look: ordinary users who mount, and others.

use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use super::newest;
use super::place::{Mounted, Place, can_mount};
use crate::house::{Machine, Outcome, text};
use crate::mounts::namespace;

const AS_NOBODY: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

/// A repository of a file that only root may read, and of one that everybody may.
fn two_files() -> Option<Place> {
    let place = Place::new()?;
    for (name, mode) in [("private", 0o600), ("public", 0o644)] {
        let file = place.source().join(name);
        fs::write(&file, name).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
    }
    place.back_up(&[]);
    Some(place)
}

/// What an ordinary user reads of a file; `None` if nothing.
fn read_by_nobody(file: &Path, in_namespace_of: Option<u32>) -> Option<String> {
    let mut words = vec!["nsenter".to_owned()];
    match in_namespace_of {
        Some(process) => words.extend(["-t", &process.to_string(), "-m"].map(str::to_owned)),
        None => words.clear(),
    }
    words.extend(AS_NOBODY.map(str::to_owned));
    words.extend(["cat", text(file)].map(str::to_owned));
    let output = Command::new(&words[0]).args(&words[1..]).output().unwrap();
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
}

/// A command that an ordinary user gives who may use FUSE, and whose `/etc/fuse.conf` is empty.
fn by_nobody(machine: &Machine, args: &[&str]) -> Command {
    let owner =
        Command::new("chown").args(["-R", "-h", "65534:65534"]).arg(machine.path("")).status();
    assert!(owner.unwrap().success());
    let dir = machine.path("dev");
    fs::create_dir_all(&dir).unwrap();
    let script = format!(
        "mount -t tmpfs none {dir}; mknod -m 666 {dir}/fuse c 10 229; mount --bind {dir}/fuse /dev/fuse; \
         touch /etc/fuse.conf; mount --bind /dev/null /etc/fuse.conf; set -- {} \"$@\"",
        AS_NOBODY.join(" "),
        dir = text(&dir),
    );
    namespace(machine, &script, args)
}

#[test]
fn an_ordinary_user_who_mounts_sees_everything_and_nobody_else_anything() {
    let Some(place) = two_files() else { return };
    fs::create_dir(place.machine.path("mounted")).unwrap();
    let repo = place.machine.path("repo");
    let mut command = by_nobody(&place.machine, &["mount"]);
    let mut mounted = Mounted::start_by(&place.machine, &mut command, &["-r", text(&repo)]);
    let process = mounted.process().id();
    for name in ["private", "public"] {
        let file = mounted.latest(&place.source().join(name));
        assert_eq!(
            read_by_nobody(&file, Some(process)).as_deref(),
            Some(name),
            "{}",
            mounted.told()
        );
    }
    // Root sees the namespace of the process through this link, and not what is mounted there.
    let seen = format!("/proc/{process}/root{}", text(&mounted.path("")));
    assert_eq!(fs::read_dir(seen).unwrap_err().kind(), ErrorKind::PermissionDenied);
    assert_eq!(mounted.end(), (Some(0), String::new()));
}

#[test]
fn an_ordinary_user_may_let_others_look_only_where_the_system_says_so() {
    let Some(place) = two_files() else { return };
    let (repo, point) = (place.machine.path("repo"), place.machine.path("mounted"));
    fs::create_dir(&point).unwrap();
    let args = ["mount", "--allow-other", "-r", text(&repo), text(&point)];
    let told = Outcome::of(&mut by_nobody(&place.machine, &args)).expect(1);
    assert!(told.stderr.contains("user_allow_other"), "{}", told.stderr);
}

#[test]
fn others_look_at_what_the_permissions_in_the_snapshot_allow() {
    let Some(place) = two_files() else { return };
    fs::set_permissions(place.machine.path(""), Permissions::from_mode(0o755)).unwrap();
    let repo = place.machine.path("repo");
    let mounted = Mounted::start(&place.machine, &["-r", text(&repo), "--allow-other"]);
    let file = |name: &str| newest(&mounted, &place.source().join(name));
    assert_eq!(read_by_nobody(&file("public"), None).as_deref(), Some("public"));
    assert_eq!(read_by_nobody(&file("private"), None), None);
    assert_eq!(fs::read_to_string(file("private")).unwrap(), "private");
}

#[test]
fn who_may_not_use_fuse_is_told_what_to_install() {
    if !can_mount() {
        return;
    }
    let machine = Machine::new();
    let point = machine.path("mounted");
    fs::create_dir(&point).unwrap();
    // As on a computer without the kernel's part of FUSE, and without its program.
    let without = |script: &str, words: &str| {
        let args = ["mount", "-r", "/nowhere", text(&point)];
        let told = Outcome::of(&mut namespace(&machine, script, &args)).expect(1);
        assert!(told.stderr.contains(words), "{}", told.stderr);
        assert!(told.stderr.contains("apt install fuse3"), "{}", told.stderr);
    };
    without("mount -t tmpfs none /dev", "/dev/fuse: ");
    let nobody = AS_NOBODY.join(" ");
    let script = format!(
        "mount --bind /dev/null /dev/fuse; chown 65534 {}; PATH=/nowhere; set -- /usr/bin/{nobody} \"$@\"",
        text(&point),
    );
    let _ = fs::set_permissions(machine.path(""), Permissions::from_mode(0o755));
    without(&script, "fusermount3");
}
