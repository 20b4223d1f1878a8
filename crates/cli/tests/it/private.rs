//! What is this user's alone stays so: in memory that is dumped, and in folders.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::house::{Machine, Outcome, small_tree, text};

#[test]
fn no_process_leaves_its_memory_in_a_core_dump() {
    let machine = Machine::new();
    let repo = machine.path("repo");
    machine.init(&["-r", text(&repo)]);
    // Whatever limit it is started with, as far as the system allows.
    let by = ["sh", "-c", "ulimit -c \"$(ulimit -H -c)\"; exec \"$0\" \"$@\""];
    let mut command = machine.command_by(&by, ["snapshots", "-r", text(&repo)]);
    command.env_remove("HOLDALL_PASSWORD");
    let tell = "grep 'core file' /proc/$PPID/limits >&2; echo correct horse";
    let told = Outcome::of(command.env("HOLDALL_PASSWORD_COMMAND", tell)).expect(0).stderr;
    let limit = told.lines().find(|line| line.contains("core file")).unwrap_or_default();
    let words: Vec<_> = limit.split_whitespace().collect();
    assert_eq!(words, ["Max", "core", "file", "size", "0", "0", "bytes"]);
}

fn mode(folder: &Path) -> u32 {
    fs::metadata(folder).unwrap().permissions().mode() & 0o7777
}

#[test]
fn what_is_cached_is_for_its_owner_alone_also_where_it_was_not() {
    let machine = Machine::new();
    let (repo, source) = (machine.path("repo"), machine.path("source"));
    machine.init(&["-r", text(&repo)]);
    small_tree(&source);
    let cache = machine.path("xdg/holdall");
    let back_up = || {
        let mut command = machine.command(["backup", text(&source), "-r", text(&repo)]);
        command.env_remove("HOLDALL_CACHE_DIR").env("XDG_CACHE_HOME", machine.path("xdg"));
        Outcome::of(&mut command).expect(0);
        let below = fs::read_dir(&cache).unwrap().map(|entry| entry.unwrap().path());
        let folders: Vec<_> = below.filter(|path| path.is_dir()).collect();
        assert!(folders.len() >= 2, "{folders:?}");
        let all = folders.into_iter().chain([cache.clone()]);
        all.map(|folder| (mode(&folder), folder)).collect::<Vec<_>>()
    };
    let made = back_up();
    assert!(made.iter().all(|(mode, _)| *mode == 0o700), "{made:?}");
    for (_, folder) in made {
        fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
    }
    let repaired = back_up();
    assert!(repaired.iter().all(|(mode, _)| *mode == 0o700), "{repaired:?}");
    // A folder that somebody named may be for others, too.
    let named = machine.path("named");
    fs::create_dir(&named).unwrap();
    fs::set_permissions(&named, Permissions::from_mode(0o755)).unwrap();
    let mut command = machine.command(["backup", text(&source), "-r", text(&repo)]);
    Outcome::of(command.env("HOLDALL_CACHE_DIR", &named)).expect(0);
    assert_eq!(mode(&named), 0o755);
    assert_eq!(mode(&named.join("embedded")), 0o700);
}
