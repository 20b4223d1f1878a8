//! The subvolume that the snapshots are kept in: what others have in it stays, and it is not backed up.

use std::process::Command;

use super::*;

#[test]
fn what_others_have_among_the_snapshots_stays_and_is_named() {
    let Some(disk) = Disk::new() else { return };
    let home = disk.subvolume("home");
    let all = disk.subvolume(".holdall-snapshots");
    // The last one is named as those of runs are, and has in it what no run makes.
    let [_, numbered, alike] = ["mine", "0", "run-0123456789abcdef"]
        .map(|name| disk.subvolume(&format!(".holdall-snapshots/{name}")));
    btrfs(&["-q", "subvolume", "create", text(&all.join("empty"))]);
    fs::create_dir(all.join("keep")).unwrap();
    let snapshot = |more: &[&str], to: PathBuf| {
        btrfs(&[&["-q", "subvolume", "snapshot"], more, &[text(&home), text(&to)]].concat());
    };
    snapshot(&[], all.join("mine/home-yesterday"));
    snapshot(&["-r"], all.join("keep/mon"));
    fs::remove_file(numbered.join("file")).unwrap();
    snapshot(&["-r"], numbered.join("0"));
    fs::remove_file(alike.join("file")).unwrap();
    snapshot(&["-r"], alike.join("0"));
    snapshot(&[], alike.join("1"));
    let listed = || {
        let mut find = Command::new("find");
        let done = find.arg(&all).args(["-printf", "%p %m\n"]).output().unwrap();
        String::from_utf8(done.stdout).unwrap()
    };
    let before = listed();
    let args = ["backup", text(&home), "--use-fs-snapshot"];
    let done = disk.machine.run(disk.args(&args)).expect(0);
    assert_eq!(listed(), before);
    let note = "holds what holdall did not make, which stays as it is and is not backed up: \
                0, empty, file, keep, mine, run-0123456789abcdef";
    assert!(done.stderr.contains(note), "{done:?}");
}

#[test]
fn the_snapshots_themselves_are_not_backed_up_with_the_top_of_their_file_system() {
    let Some(disk) = Disk::new() else { return };
    let home = disk.subvolume("home");
    large(&home.join("large"));
    let mut killed = disk.stopped("killed", &home, "0");
    let mut stopped = disk.stopped("stopped", disk.mount.point(), "1");
    killed.kill().unwrap();
    assert_eq!(disk.left().len(), 2);
    for more in [&["--use-fs-snapshot"][..], &["--use-fs-snapshot", "-x"], &["-x"], &[]] {
        let args = [&["backup", text(disk.mount.point())], more].concat();
        disk.machine.ok(disk.args(&args));
        let listed = disk.machine.ok(disk.args(&["ls", "-R", "latest"])).stdout;
        assert!(listed.contains("home") && !listed.contains(".holdall-snapshots"), "{listed}");
        assert_eq!(disk.left().len(), 1, "the stopped one has its own");
    }
    send_signal(&stopped, Signal::CONT);
    assert!(stopped.wait().unwrap().0.success());
    assert!(!disk.path(".holdall-snapshots").exists());
    let listed = disk.machine.ok(["ls", "-R", "latest", "-r", text(&disk.machine.path("stopped"))]);
    assert!(!listed.stdout.contains(".holdall-snapshots"), "{listed:?}");
}
