//! Loop devices that tests use as disks.

use std::io::{BufRead, BufReader};
use std::ops::Deref;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use holdall_testkit::{LoopDisk, is_there};
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

/// A loop device of so high a number that nothing takes it by itself while it shows nothing.
pub(crate) struct Reader {
    number: u32,
}

impl Reader {
    /// `None` for who may not make any.
    pub(crate) fn new(number: u32) -> Option<Self> {
        let is_root = holdall_sys::users::effective_uid() == 0;
        is_there("root, as who alone makes loop devices", is_root).then_some(Self { number })
    }

    pub(crate) fn device(&self) -> PathBuf {
        PathBuf::from(format!("/dev/loop{}", self.number))
    }

    /// Puts an image in, as a card into a reader.
    pub(crate) fn put_in(&self, image: &Path) {
        succeed(&["losetup", "-P", text(&self.device()), text(image)]);
    }

    pub(crate) fn take_out(&self) {
        succeed(&["losetup", "-d", text(&self.device())]);
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("-d").arg(self.device()).output();
        // LOOP_CTL_REMOVE, for which losetup has no word yet.
        let remove = "import fcntl,os,sys; fcntl.ioctl(os.open('/dev/loop-control', os.O_RDWR), 0x4c81, int(sys.argv[1]))";
        let number = self.number.to_string();
        let _ = Command::new("python3").args(["-c", remove, &number]).output();
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
