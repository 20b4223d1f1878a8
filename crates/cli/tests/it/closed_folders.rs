//! An ordinary user restores into folders of its own that it closed to itself.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

use crate::house::{Machine, is_root, text};

const NOBODY: u32 = 65534;
const AS_NOBODY: [&str; 5] =
    ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"];

fn give_away(path: &Path) {
    for entry in fs::read_dir(path).expect("a folder") {
        let entry = entry.expect("an entry");
        if entry.file_type().expect("a kind").is_dir() {
            give_away(&entry.path());
        }
        chown(entry.path(), Some(NOBODY), Some(NOBODY)).expect("root");
    }
    chown(path, Some(NOBODY), Some(NOBODY)).expect("root");
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("ours");
}

#[test]
fn what_lies_in_a_closed_folder_of_the_user_is_restored_and_the_folder_is_closed_again() {
    if !is_root("what an ordinary user may restore") {
        return;
    }
    let machine = Machine::new();
    let (repo, source) = (machine.path("repo"), machine.path("source"));
    fs::create_dir_all(source.join("shut/inner/deep")).expect("a folder");
    for name in ["file", "inner/file", "inner/deep/file"] {
        fs::write(source.join("shut").join(name), name).expect("a file");
    }
    machine.init(&["-r", text(&repo)]);
    machine.ok(["backup", "-r", text(&repo), text(&source)]);
    let target = machine.path("target");
    let shut = target.join("shut");
    let from = format!("latest:{}", text(&source));
    let cases = [(0o555, 0o500), (0o444, 0o000), (0o311, 0o555)];
    for (overwrite, modes) in ["never", "if-newer", "always"]
        .into_iter()
        .flat_map(|when| cases.map(|modes| (when, modes)))
    {
        fs::create_dir_all(shut.join("inner")).expect("a folder");
        fs::write(shut.join("file"), "older").expect("a file");
        let file = fs::File::open(shut.join("file")).expect("it is there");
        file.set_modified(std::time::UNIX_EPOCH).expect("ours");
        give_away(&machine.path(""));
        set_mode(&shut.join("inner"), modes.1);
        set_mode(&shut, modes.0);
        set_mode(&target, 0o555);
        let args = ["restore", "-r", text(&repo), &from, "--target", text(&target)];
        let done = machine.run_by(&AS_NOBODY, args.iter().chain(&["--overwrite", overwrite]));
        done.expect(0);
        let what = format!("{overwrite}, {modes:?}");
        let mode = |path: &Path| fs::metadata(path).expect("it is there").mode() & 0o7777;
        // Those that are not the user's to keep are as in the snapshot.
        let expected = |there| if overwrite == "never" { there } else { 0o755 };
        let found = [&target, &shut, &shut.join("inner")].map(|path| mode(path));
        assert_eq!(found, [0o555, modes.0, modes.1].map(expected), "{what}");
        let read = |name: &str| fs::read_to_string(shut.join(name)).expect("it is there");
        let kept = if overwrite == "never" { "older" } else { "file" };
        assert_eq!(
            ["file", "inner/file", "inner/deep/file"].map(read),
            [kept, "inner/file", "inner/deep/file"]
        );
        fs::remove_dir_all(&target).expect("root");
    }
}
