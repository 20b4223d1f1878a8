//! Everything that a file system can hold comes back as it was, through a real server.

use holdall_testkit::{CompareOptions, FidelitySizes, Slice, compare_trees, fidelity_tree};
use rustix::fs::{XattrFlags, setxattr};

use crate::house::{Machine, Server, text};
use crate::mounts::ManyFiles;

/// A change has one in so many of the entries of the huge directory.
const SLICES: u64 = 8;

#[test]
fn everything_a_file_system_can_hold_comes_back_through_a_server() {
    let place = ManyFiles::new();
    let machine = place.machine("machine");
    let server = Server::start(&machine.path("data"));
    machine.pair_with(&server);
    let source = machine.path("source");
    std::fs::create_dir(&source).unwrap();
    let full = FidelitySizes::full();
    let huge = Slice::one_in(SLICES).share(full.huge_dir_entries as u64);
    let sizes = FidelitySizes { huge_dir_entries: huge as usize, ..full };
    let left_out = fidelity_tree(&source, &sizes).expect("the tree can be made");
    let root = holdall_sys::users::effective_uid() == 0;
    assert!(left_out.is_empty() || !root, "{left_out:?}");

    let source_text = source.to_str().unwrap();
    let backup = machine.summary(["backup", source_text]);
    assert_eq!(backup["errors"], 0, "{backup}");
    let target = machine.path("target");
    let from = format!("latest:{source_text}");
    let restored = machine.summary(["restore", &from, "--target", target.to_str().unwrap()]);
    assert_eq!(restored["errors"], 0, "{restored}");
    let options = CompareOptions { owners: root, ..CompareOptions::default() };
    let differences = compare_trees(&source, &target, &options);
    assert!(
        differences.is_empty(),
        "{} differ: {:#?}",
        differences.len(),
        &differences[..differences.len().min(20)]
    );

    let again = machine.summary(["backup", source_text]);
    assert_eq!((&again["files_new"], &again["files_changed"]), (&0.into(), &0.into()), "{again}");
}

#[test]
fn more_attributes_than_a_restore_takes_are_told_and_cost_no_content() {
    // In memory a file may have as many as there are; on most disks only some kilobytes.
    let folder = tempfile::tempdir_in("/dev/shm").expect("a folder");
    let machine = Machine::new();
    let file = folder.path().join("file");
    std::fs::write(&file, "content").unwrap();
    let value = vec![b'v'; 64 << 10];
    let mut names = (0..260).map(|number| format!("user.{number}"));
    if !names.all(|name| setxattr(&file, name, &value, XattrFlags::empty()).is_ok()) {
        return;
    }
    let (repo, target) = (machine.path("repo"), machine.path("target"));
    machine.init(&["-r", text(&repo)]);
    let told = machine.run(["backup", "-r", text(&repo), text(folder.path())]).expect(3);
    assert!(told.stderr.contains("a restore takes 16 at most"), "{}", told.stderr);
    let from = format!("latest:{}", text(folder.path()));
    machine.ok(["restore", "-r", text(&repo), &from, "--target", text(&target)]);
    assert_eq!(std::fs::read(target.join("file")).unwrap(), b"content");
}
