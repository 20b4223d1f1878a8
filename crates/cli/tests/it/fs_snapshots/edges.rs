//! What a snapshot cannot be taken of, or only in another way than where it is seen.

use std::process::Command;

use super::*;

#[test]
fn a_file_system_that_is_mounted_read_only_is_refused_and_stays_so() {
    let Some(disk) = Disk::new() else { return };
    let home = disk.subvolume("home");
    remount(disk.mount.point(), "ro");
    let mounted = || {
        let all = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mut lines = all.lines().filter(|line| line.contains(text(disk.mount.point())));
        lines.next().unwrap().to_owned()
    };
    let before = mounted();
    let args = ["backup", text(&home), "--use-fs-snapshot"];
    let refused = disk.machine.run(disk.args(&args)).expect(1);
    let message = format!("{} is mounted read-only", text(disk.mount.point()));
    assert!(refused.stderr.contains(&message), "{refused:?}");
    assert_eq!(mounted(), before);
    remount(disk.mount.point(), "rw");
    assert!(!disk.path(".holdall-snapshots").exists());
}

fn remount(point: &Path, how: &str) {
    let option = format!("remount,{how}");
    let done = Command::new("mount").args(["-o", &option]).arg(point).status().unwrap();
    assert!(done.success());
}

#[test]
fn a_subvolume_that_is_deleted_before_its_snapshot_is_taken_is_passed_over() {
    let Some(disk) = Disk::new() else { return };
    let home = disk.subvolume("home");
    let names: Vec<_> = (0..6).map(|number| home.join(format!("come-and-gone-{number}"))).collect();
    let ended = AtomicBool::new(false);
    let codes = thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                for command in ["create", "delete"] {
                    for name in &names {
                        btrfs(&["-q", "subvolume", command, text(name)]);
                    }
                }
            }
        });
        let args = ["backup", text(&home), "--use-fs-snapshot"];
        let codes: Vec<_> = (0..12).map(|_| disk.machine.run(disk.args(&args))).collect();
        ended.store(true, Ordering::Relaxed);
        codes
    });
    codes.into_iter().for_each(|done| drop(done.expect(0)));
}
