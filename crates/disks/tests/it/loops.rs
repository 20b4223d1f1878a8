//! Loop devices that tests use as disks.

use std::io::{BufRead, BufReader};
use std::ops::Deref;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use holdall_testkit::LoopDisk;
use tempfile::TempDir;

/// What old content of a disk is made of.
pub(crate) const OLD: &[u8; 16] = b"what was before.";

/// A loop device on an image in a folder of its own, for as long as this lives.
pub(crate) struct Loop {
    disk: LoopDisk,
    folder: TempDir,
}

impl Loop {
    /// One of zeros; `None` for who may not make any.
    pub(crate) fn new(bytes: u64) -> Option<Self> {
        Self::with_options(bytes, &[])
    }

    /// The same with more options of `losetup`.
    pub(crate) fn with_options(bytes: u64, options: &[&str]) -> Option<Self> {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let disk = LoopDisk::new(&folder.path().join("image"), bytes, options).unwrap()?;
        Some(Self { disk, folder })
    }

    /// One that is full of what was before.
    pub(crate) fn full(bytes: u64) -> Option<Self> {
        let made = Self::new(bytes)?;
        let image = made.image().unwrap();
        let old = OLD.repeat(1 << 16);
        for at in (0..bytes).step_by(old.len()) {
            let length = old.len().min((bytes - at) as usize);
            image.write_all_at(&old[..length], at).unwrap();
        }
        image.sync_all().unwrap();
        Some(made)
    }

    /// A place beside the image.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Puts another image into its place, as one who changes disks does.
    pub(crate) fn swap_for(&self, image: &Path) {
        succeed(&["losetup", "-d", text(self.device())]);
        succeed(&["losetup", "-P", text(self.device()), text(image)]);
    }

    /// Whether what was before can be found anywhere.
    pub(crate) fn has_old(&self) -> bool {
        let image = self.image().unwrap();
        let length = image.metadata().unwrap().len();
        let mut piece = vec![0; 1 << 20];
        (0..length).step_by(piece.len()).any(|at| {
            let end = piece.len().min((length - at) as usize);
            image.read_exact_at(&mut piece[..end], at).unwrap();
            piece[..end].windows(OLD.len()).any(|window| window == OLD)
        })
    }
}

impl Deref for Loop {
    type Target = LoopDisk;

    fn deref(&self) -> &LoopDisk {
        &self.disk
    }
}

/// A mount that lasts as long as this.
pub(crate) struct Mounted {
    point: PathBuf,
}

impl Mounted {
    pub(crate) fn new(device: &Path, point: &Path) -> Self {
        std::fs::create_dir_all(point).unwrap();
        succeed(&["mount", text(device), text(point)]);
        Self { point: point.to_owned() }
    }

    pub(crate) fn point(&self) -> &Path {
        &self.point
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.point).output();
    }
}

/// Something that goes on in a shell with mounts of its own until this is dropped.
pub(crate) struct Elsewhere {
    shell: Child,
}

impl Elsewhere {
    pub(crate) fn new(script: &str) -> Self {
        let script = format!("set -e; {script}; echo ready; exec cat");
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = command.spawn().unwrap();
        let mut line = String::new();
        let read = BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line);
        let _ = read.unwrap();
        assert_eq!(line, "ready\n");
        Self { shell }
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

pub(crate) fn succeed(words: &[&str]) {
    let output = Command::new(words[0]).args(&words[1..]).output().unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
