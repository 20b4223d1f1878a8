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

#[test]
fn a_folder_that_is_mounted_elsewhere_is_read_from_a_snapshot_of_its_subvolume() {
    let Some(disk) = Disk::new() else { return };
    let home = disk.subvolume("home");
    large(&home.join("large"));
    let outer = disk.subvolume("outer");
    let folder = outer.join("way/folder");
    fs::create_dir_all(&folder).unwrap();
    let deeper = disk.subvolume("outer/way/folder/deeper");
    let [within, alone] = [home.join("mounted"), disk.machine.path("alone")];
    let _mounts = [&within, &alone].map(|point| {
        fs::create_dir(point).unwrap();
        Mount::bind(&folder, point)
    });
    let write = |text: &str| {
        for path in [&folder, &deeper] {
            fs::write(path.join("moment"), text).unwrap();
        }
    };
    write("old");
    let mut slow = disk.stopped("other", &home, "2");
    write("new");
    send_signal(&slow, Signal::CONT);
    assert!(slow.wait().unwrap().0.success());
    for path in ["moment", "deeper/moment", "deeper/file"] {
        let name = format!("latest:{}/{path}", text(&within));
        let other = disk.machine.path("other");
        let read = disk.machine.ok(["dump", &name, "-r", text(&other)]).stdout;
        let expected = if path.ends_with("file") { "outer/way/folder/deeper" } else { "old" };
        assert_eq!(read, expected, "{path}");
    }
    let done = disk.machine.ok(disk.args(&["backup", text(&alone), "--use-fs-snapshot"]));
    assert!(!done.stderr.contains("read as it is"), "{done:?}");
    for (path, expected) in [("moment", "new"), ("deeper/file", "outer/way/folder/deeper")] {
        let name = format!("latest:{}/{path}", text(&alone));
        assert_eq!(disk.machine.ok(disk.args(&["dump", &name])).stdout, expected);
    }
}

#[test]
fn a_file_that_is_mounted_is_read_as_it_is_and_named_and_what_is_missing_is_called_missing() {
    let Some(disk) = Disk::new() else { return };
    let (home, outer) = (disk.subvolume("home"), disk.subvolume("outer"));
    let (covered, gone) = (home.join("covered"), home.join("gone"));
    fs::write(&covered, "").unwrap();
    let _mount = Mount::bind(&outer.join("file"), &covered);
    let args = disk.args(&["backup", text(&home), text(&gone), "--use-fs-snapshot"]);
    let done = disk.machine.run(args).expect(3);
    let note = format!("{} is a file that is mounted there and is read as it is", text(&covered));
    assert!(done.stderr.contains(&note), "{done:?}");
    assert!(!done.stderr.contains("does not lie on btrfs"), "{done:?}");
    let name = format!("latest:{}", text(&covered));
    assert_eq!(disk.machine.ok(disk.args(&["dump", &name])).stdout, "outer");
}

#[test]
fn what_covers_another_mount_is_read_in_its_place() {
    let Some(disk) = Disk::new() else { return };
    let (home, outer) = (disk.subvolume("home"), disk.subvolume("outer"));
    let (point, cover) = (home.join("way/in"), disk.machine.path("cover"));
    for folder in [&point, &cover.join("in")] {
        fs::create_dir_all(folder).unwrap();
    }
    fs::write(cover.join("in/file"), "cover").unwrap();
    let _covered = Mount::bind(&outer, &point);
    let _cover = Mount::bind(&cover, &home.join("way"));
    disk.machine.ok(disk.args(&["backup", text(&home), "--use-fs-snapshot"]));
    let name = format!("latest:{}", text(&point.join("file")));
    assert_eq!(disk.machine.ok(disk.args(&["dump", &name])).stdout, "cover");
}

/// A swap file that is in use until this is dropped.
struct Swap(PathBuf);

impl Swap {
    fn on(path: PathBuf) -> Self {
        btrfs(&["filesystem", "mkswapfile", "--size", "16m", text(&path)]);
        let done = Command::new("/usr/sbin/swapon").arg(&path).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        Self(path)
    }
}

impl Drop for Swap {
    fn drop(&mut self) {
        let _ = Command::new("/usr/sbin/swapoff").arg(&self.0).status();
    }
}

#[test]
fn a_swap_file_in_use_is_named_and_read_as_it_is_if_its_subvolume_lies_in_that_of_the_source() {
    let Some(disk) = Disk::new() else { return };
    let home = disk.subvolume("home");
    let swap = Swap::on(home.join("a swap"));
    let args = disk.args(&["backup", text(&home), "--use-fs-snapshot"]);
    let refused = disk.machine.run(&args).expect(1);
    let message = format!("the swap file {} is in use", text(&swap.0));
    assert!(refused.stderr.contains(&message), "{refused:?}");
    assert!(refused.stderr.contains("subvolume of its own"), "{refused:?}");
    drop(swap);

    let swaps = disk.subvolume("home/swaps");
    let _swap = Swap::on(swaps.join("swap"));
    let done = disk.machine.run(&args).expect(0);
    let note = format!("the swap file {} is in use", text(&swaps.join("swap")));
    assert!(done.stderr.contains(&note), "{done:?}");
    let name = format!("latest:{}", text(&swaps.join("file")));
    assert_eq!(disk.machine.ok(disk.args(&["dump", &name])).stdout, "home/swaps");
}
