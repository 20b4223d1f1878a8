//! `backup --use-fs-snapshot` on a real btrfs: all files of one moment, nothing that is nested or mounted left out, and no
//! snapshot left behind.

mod edges;
mod kept;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use holdall_testkit::Process;
use rustix::process::Signal;

use crate::house::{Machine, is_root, send_signal, text};
use crate::mounts::Mount;

const DISK_BYTES: u64 = 400 << 20;
/// Far more than a snapshot takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// A machine with a repository, and a btrfs.
struct Disk {
    machine: Machine,
    mount: Mount,
    repo: PathBuf,
}

impl Disk {
    fn new() -> Option<Self> {
        let machine = Machine::new();
        let mount = Mount::btrfs(&machine.path("disk"), DISK_BYTES)?;
        let repo = machine.path("repo");
        machine.init(&["-r", text(&repo)]);
        Some(Self { machine, mount, repo })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.mount.point().join(name)
    }

    fn args<'a>(&'a self, args: &[&'a str]) -> Vec<&'a str> {
        [&[args[0], "-r", text(&self.repo)], &args[1..]].concat()
    }

    /// Makes a subvolume with a file in it, which has the subvolume's name in it.
    fn subvolume(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        btrfs(&["-q", "subvolume", "create", text(&path)]);
        fs::write(path.join("file"), name).unwrap();
        path
    }

    /// What is left of snapshots.
    fn left(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.path(".holdall-snapshots")) else { return Vec::new() };
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    /// A run into a repository of its own, which stops once it has a snapshot with that number.
    fn stopped(&self, repo: &str, source: &Path, number: &str) -> Process {
        let (before, repo) = (self.left(), self.machine.path(repo));
        self.machine.init(&["-r", text(&repo)]);
        let args = ["backup", "-r", text(&repo), text(source), "--use-fs-snapshot"];
        let slow = Process::spawn(&mut self.machine.command(args)).unwrap();
        let begun = Instant::now();
        let is_it = |own: &PathBuf| !before.contains(own) && own.join(number).exists();
        while !self.left().iter().any(is_it) {
            assert!(begun.elapsed() < PATIENCE, "no snapshot is taken");
            thread::sleep(Duration::from_millis(2));
        }
        send_signal(&slow, Signal::STOP);
        slow
    }
}

/// Takes long to read.
fn large(path: &Path) {
    fs::write(path, holdall_testkit::Random::new(7).bytes(100 << 20)).unwrap();
}

fn btrfs(args: &[&str]) {
    let done = Command::new("btrfs").args(args).output().expect("btrfs-progs are installed");
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// A subvolume with others in it, a snapshot that somebody else took, and other file systems.
fn nested(disk: &Disk) -> (PathBuf, Mount) {
    let home = disk.path("home");
    for path in ["home", "home/a", "home/a/within", "home/beside"] {
        btrfs(&["-q", "subvolume", "create", text(&disk.path(path))]);
        fs::create_dir(disk.path(path).join("folder")).unwrap();
        fs::write(disk.path(path).join("folder/file"), path).unwrap();
    }
    btrfs(&["-q", "subvolume", "snapshot", "-r", text(&home.join("a")), text(&home.join("old"))]);
    let memory = Mount::in_memory(&home.join("folder/memory"), 1 << 20).expect("root may mount");
    fs::write(memory.point().join("file"), "in memory").unwrap();
    fs::hard_link(home.join("folder/file"), home.join("folder/other-name")).unwrap();
    (home, memory)
}

#[test]
fn a_snapshot_is_read_with_all_that_is_nested_and_mounted_in_it_and_then_removed() {
    let Some(disk) = Disk::new() else { return };
    let (home, _memory) = nested(&disk);
    let mounted = || {
        let all = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let here = text(&disk.machine.path("")).to_owned();
        all.lines().filter(|line| line.contains(&here)).map(str::to_owned).collect::<Vec<_>>()
    };
    let before = mounted();
    let source = text(&home);
    disk.machine.ok(disk.args(&["backup", source]));
    let made = disk.machine.summary(disk.args(&["backup", source, "--use-fs-snapshot"]));
    let counted = ["files_new", "dirs_new", "files_changed", "errors"].map(|key| &made[key]);
    // The two names of one file are known by where it is mounted, too.
    assert_eq!(counted, [0, 0, 2, 0], "{made}");

    let to = disk.machine.path("to");
    disk.machine.ok(disk.args(&["restore", "latest", "--target", text(&to)]));
    let read = |path: &str| fs::read_to_string(to.join(&source[1..]).join(path)).unwrap();
    assert_eq!(read("a/within/folder/file"), "home/a/within");
    assert_eq!(read("beside/folder/file"), "home/beside");
    assert_eq!(read("old/folder/file"), "home/a");
    assert_eq!(read("folder/memory/file"), "in memory");
    assert!(!disk.path(".holdall-snapshots").exists());
    assert_eq!(mounted(), before);
}

#[test]
fn one_file_is_read_from_a_snapshot_and_its_folder_is_recorded_as_it_is() {
    let Some(disk) = Disk::new() else { return };
    let (home, _memory) = nested(&disk);
    let (file, link) = (home.join("folder/file"), disk.machine.path("link"));
    std::os::unix::fs::symlink(&home, &link).unwrap();
    let through_link = link.join("a/folder/file");
    disk.machine.ok(disk.args(&["backup", text(&file), text(&through_link), "--use-fs-snapshot"]));
    let dump = |path: &Path| {
        let name = format!("latest:{}", text(path));
        disk.machine.ok(disk.args(&["dump", &name])).stdout
    };
    assert_eq!((&dump(&file)[..], &dump(&through_link)[..]), ("home", "home/a"));
    let listed = disk.machine.ok(disk.args(&["ls", "latest", "--json", text(&home)]));
    assert!(listed.of_type("entry").iter().all(|entry| entry["mode"] != 0), "{}", listed.stdout);
}

#[test]
fn files_that_are_written_one_after_the_other_are_of_one_moment() {
    let Some(disk) = Disk::new() else { return };
    let home = disk.path("home");
    btrfs(&["-q", "subvolume", "create", text(&home)]);
    // What lies between the two takes long enough to read for them to differ without a snapshot.
    large(&home.join("middle"));
    let (first, last) = (home.join("a"), home.join("z"));
    let ended = AtomicBool::new(false);
    let begun = Barrier::new(2);
    let (a, z) = thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0_u64.. {
                for path in [&first, &last] {
                    let new = path.with_extension("new");
                    fs::write(&new, number.to_string()).unwrap();
                    fs::rename(new, path).unwrap();
                }
                if number == 0 {
                    begun.wait();
                }
                if ended.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        begun.wait();
        let args = ["backup", text(&home), "--use-fs-snapshot", "--exclude", "*.new"];
        let done = disk.machine.run(disk.args(&args));
        ended.store(true, Ordering::Relaxed);
        done.expect(0);
        let number = |path: &Path| {
            let name = format!("latest:{}", text(path));
            disk.machine.ok(disk.args(&["dump", &name])).stdout.parse::<u64>().unwrap()
        };
        (number(&first), number(&last))
    });
    assert!(a == z || a == z + 1, "{a} and {z}");
}

#[test]
fn what_a_killed_run_left_is_removed_by_the_next_and_not_while_it_runs() {
    let Some(disk) = Disk::new() else { return };
    let (home, _memory) = nested(&disk);
    large(&home.join("large"));
    let mut slow = disk.stopped("other", &home, "3");
    let has_all = || disk.left().iter().any(|own| own.join("3").exists());
    let within = home.join("a");
    let beside = disk.args(&["backup", text(&within), "--use-fs-snapshot"]);
    disk.machine.ok(&beside);
    assert!(has_all(), "another run takes them for its own");
    slow.kill().unwrap();
    assert!(has_all(), "a killed program removes nothing");
    disk.machine.ok(&beside);
    assert!(!disk.path(".holdall-snapshots").exists());
}

#[test]
fn what_cannot_be_had_is_refused_and_other_file_systems_are_named() {
    if !is_root("mount a file system") {
        return;
    }
    let Some(disk) = Disk::new() else { return };
    let (home, _memory) = nested(&disk);
    let plain = disk.machine.path("plain");
    fs::create_dir(&plain).unwrap();
    fs::write(plain.join("file"), "plain").unwrap();
    let refused =
        disk.machine.run(disk.args(&["backup", text(&plain), "--use-fs-snapshot"])).expect(1);
    assert!(
        refused.stderr.contains("none of what is to be backed up lies on btrfs"),
        "{refused:?}"
    );
    let args = disk.args(&["backup", text(&plain), text(&home), "--use-fs-snapshot"]);
    let mixed = disk.machine.run(args).expect(0);
    assert!(mixed.stderr.contains(&format!("{} does not lie on btrfs", text(&plain))), "{mixed:?}");
    let name = format!("latest:{}/file", text(&plain));
    assert_eq!(disk.machine.ok(disk.args(&["dump", &name])).stdout, "plain");

    let squatter = disk.path(".holdall-snapshots");
    fs::create_dir(&squatter).unwrap();
    let args = disk.args(&["backup", text(&home), "--use-fs-snapshot"]);
    let refused = || {
        let refused = disk.machine.run(&args).expect(1);
        assert!(refused.stderr.contains(".holdall-snapshots at its top"), "{refused:?}");
    };
    refused();
    fs::remove_dir(&squatter).unwrap();
    std::os::unix::fs::symlink(&home, &squatter).unwrap();
    refused();
}
