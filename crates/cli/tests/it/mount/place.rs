//! A repository, and where its snapshots are mounted.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use holdall_testkit::{Process, is_there};

use crate::house::{Machine, Outcome, is_root, text};

/// Whether file systems can be mounted here.
pub(super) fn can_mount() -> bool {
    let device = Path::new("/dev/fuse").exists();
    is_root("mount without fusermount3") && is_there("/dev/fuse", device)
}

/// A repository in a directory, and the folder that is backed up.
pub(super) struct Place {
    pub(super) machine: Machine,
}

impl Place {
    /// An empty repository; `None` where nothing can be mounted.
    pub(super) fn new() -> Option<Self> {
        if !can_mount() {
            return None;
        }
        let machine = Machine::new();
        machine.init(&["-r", text(&machine.path("repo"))]);
        let place = Self { machine };
        fs::create_dir(place.source()).expect("a folder");
        Some(place)
    }

    pub(super) fn source(&self) -> PathBuf {
        self.machine.path("source")
    }

    /// Runs a command on the repository.
    pub(super) fn run(&self, args: &[&str]) -> Outcome {
        self.machine.run([args, &["-r", text(&self.machine.path("repo"))]].concat())
    }

    /// Backs the folder up; gives the snapshot's id.
    pub(super) fn back_up(&self, more: &[&str]) -> String {
        let source = self.source();
        let args = [&["backup", "--json", text(&source)], more].concat();
        let summary = self.run(&args).expect(0).summary();
        summary["snapshot_id"].as_str().expect("an id").to_owned()
    }

    /// The same once nobody has read for a moment.
    pub(super) fn back_up_beside(&self) -> String {
        let source = self.source();
        let backup = self.run_beside(&["backup", "--json", text(&source)]).summary();
        backup["snapshot_id"].as_str().expect("an id").to_owned()
    }

    /// Runs a command that writes, once nobody has read for a moment.
    pub(super) fn run_beside(&self, args: &[&str]) -> Outcome {
        const IN_USE: i32 = 11;
        loop {
            let outcome = self.run(args);
            if outcome.code != Some(IN_USE) {
                return outcome.expect(0);
            }
        }
    }

    /// Mounts the repository.
    pub(super) fn mount(&self) -> Mounted {
        let repo = self.machine.path("repo");
        Mounted::start(&self.machine, &["-r", text(&repo)])
    }
}

/// A file system that is mounted until this is dropped.
pub(super) struct Mounted {
    process: Process,
    point: PathBuf,
    told: PathBuf,
}

impl Mounted {
    /// Mounts the snapshots that a machine sees.
    pub(super) fn start(machine: &Machine, more: &[&str]) -> Self {
        Self::start_by(machine, &mut machine.command(["mount"]), more)
    }

    /// Mounts by a command that lacks the folder and `more`.
    pub(super) fn start_by(machine: &Machine, command: &mut Command, more: &[&str]) -> Self {
        let (point, told) = (machine.path("mounted"), machine.path("told"));
        fs::create_dir_all(&point).expect("a folder");
        let stderr = fs::File::create(&told).expect("a file");
        let command = command.arg(&point).args(more).stderr(Stdio::from(stderr));
        let mut process = Process::spawn(command).expect("it starts");
        let said = process.wait_for_line("mounted at ");
        let said = said.unwrap_or_else(|error| panic!("{error}: {}", read(&told)));
        assert_eq!(said, format!("mounted at {}", text(&point)));
        Self { process, point, told }
    }

    /// Something below the folder that is mounted.
    pub(super) fn path(&self, below: &str) -> PathBuf {
        self.point.join(below.trim_start_matches('/'))
    }

    /// What a path is in the newest snapshot.
    pub(super) fn latest(&self, path: &Path) -> PathBuf {
        self.path(&format!("latest/{}", text(path)))
    }

    pub(super) fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// What it said on standard error so far.
    pub(super) fn told(&self) -> String {
        read(&self.told)
    }

    /// Whether it is mounted.
    pub(super) fn is_mounted(&self) -> bool {
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("mounts");
        mounts.lines().any(|line| line.split(' ').nth(4) == Some(text(&self.point)))
    }

    /// Asks it to end, and waits; gives how it ended, and what it said on standard error.
    pub(super) fn end(mut self) -> (Option<i32>, String) {
        self.process.terminate().expect("it lives");
        self.wait()
    }

    /// Waits until it ends.
    pub(super) fn wait(&mut self) -> (Option<i32>, String) {
        let (status, _) = self.process.wait().expect("it ends");
        assert!(!self.is_mounted(), "it is mounted still");
        (status.code(), self.told())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // A test that failed leaves nothing mounted.
        if self.is_mounted() {
            let _ = self.process.kill();
            let _ = Command::new("umount").arg("-l").arg(&self.point).output();
        }
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// What a folder holds, sorted.
pub(super) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let name = |entry: fs::DirEntry| entry.file_name().into_string().expect("UTF-8");
    let mut names: Vec<_> = entries.map(|entry| name(entry.expect("an entry"))).collect();
    names.sort();
    names
}
