//! Loop devices, which tests use as disks.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::needs::is_there;

/// A loop device on an image, until this is dropped. Its partitions are shown, too.
#[derive(Debug)]
pub struct LoopDisk {
    image: PathBuf,
    device: PathBuf,
}

impl LoopDisk {
    /// One on a new image of `bytes` zeros at `image`, made with more options of `losetup`; `None` for who may not make any.
    ///
    /// # Errors
    /// What the system says of the image.
    ///
    /// # Panics
    /// In CI, as [`is_there`].
    pub fn new(image: &Path, bytes: u64, options: &[&str]) -> io::Result<Option<Self>> {
        File::create(image)?.set_len(bytes)?;
        let image = image.canonicalize()?;
        let mut command = Command::new("losetup");
        command.args(["--find", "--show", "--partscan"]).args(options).arg(&image);
        let output = command.output()?;
        if !is_there("loop devices (root, losetup)", output.status.success()) {
            return Ok(None);
        }
        let device = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
        Ok(Some(Self { image, device }))
    }

    /// Whether it shows the image still: once it does not, another may have its place.
    fn shows_image(&self) -> bool {
        let shown = format!("/sys/class/block/{}/loop/backing_file", self.name());
        fs::read_to_string(shown).is_ok_and(|shown| {
            // The folder with the image may have gone before.
            let shown = shown.trim_end();
            Path::new(shown.strip_suffix(" (deleted)").unwrap_or(shown)) == self.image
        })
    }

    /// Its place, such as `/dev/loop3`.
    #[must_use]
    pub fn device(&self) -> &Path {
        &self.device
    }

    /// The kernel's name of it.
    #[must_use]
    pub fn name(&self) -> String {
        self.device.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// What it shows.
    ///
    /// # Errors
    /// What the system says.
    pub fn image(&self) -> io::Result<File> {
        fs::OpenOptions::new().read(true).write(true).open(&self.image)
    }

    /// Where that is.
    #[must_use]
    pub fn image_path(&self) -> &Path {
        &self.image
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        if self.shows_image() {
            let _ = Command::new("losetup").arg("--detach").arg(&self.device).output();
        }
    }
}
