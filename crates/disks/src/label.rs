//! The file systems that a disk gets, and the label that names it: in the partition table, in the file system, and at the
//! place where it is mounted.

use std::fmt::{self, Display};

use crate::error::DiskError;
use crate::program::{MKFS_BTRFS, MKFS_EXT4, MKFS_XFS, Program};

/// A file system that a disk may get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSystem {
    /// The usual one.
    Ext4,
    /// With checksums of its own.
    Btrfs,
    /// For very large disks.
    Xfs,
}

impl FileSystem {
    /// What the kernel calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Btrfs => "btrfs",
            Self::Xfs => "xfs",
        }
    }

    /// How many characters its label may have; a partition's name has 36.
    fn label_chars(self) -> usize {
        match self {
            Self::Ext4 => 16,
            Self::Btrfs => 36,
            Self::Xfs => 12,
        }
    }

    /// What makes one.
    pub(crate) fn program(self) -> Program {
        match self {
            Self::Ext4 => MKFS_EXT4,
            Self::Btrfs => MKFS_BTRFS,
            Self::Xfs => MKFS_XFS,
        }
    }

    /// How it is made on a device. None of them is told to write over anything.
    pub(crate) fn args<'a>(self, label: &'a Label, device: &'a str) -> Vec<&'a str> {
        match self {
            // Room that only root may use serves nobody there.
            Self::Ext4 => vec!["-q", "-m", "0", "-L", &label.0, device],
            Self::Btrfs | Self::Xfs => vec!["-q", "-L", &label.0, device],
        }
    }
}

/// A label that any of its places takes, without a character that would have to be quoted in one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label(String);

impl Label {
    /// One for a disk with that file system: letters of English, digits, `-`, `_` and `.`, and a letter or digit first.
    ///
    /// # Errors
    /// [`DiskError::Label`].
    pub fn new(text: &str, file_system: FileSystem) -> Result<Self, DiskError> {
        let refused = |cause: String| DiskError::Label { label: text.to_owned(), cause };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let most = file_system.label_chars();
        if !text.starts_with(|c: char| c.is_ascii_alphanumeric()) || !text.chars().all(is_plain) {
            let cause = "it may have the letters A to Z and a to z, digits, and behind the first of these `-`, `_` and `.`";
            return Err(refused(cause.to_owned()));
        }
        if text.len() > most {
            let name = file_system.name();
            return Err(refused(format!("a label of {name} has at most {most} characters")));
        }
        Ok(Self(text.to_owned()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Display for Label {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_has_what_every_place_takes_and_no_more() {
        let takes = |text: &str, file_system| Label::new(text, file_system).is_ok();
        for good in ["b", "backup", "2026-disk_1.a", "exactly-16-chars"] {
            assert!(takes(good, FileSystem::Ext4), "{good}");
        }
        for bad in [
            "",
            " ",
            "a b",
            "-a",
            ".a",
            "..",
            "../etc",
            "a/b",
            "a\"b",
            "a\nb",
            "ä",
            "a%b",
            "a\\b",
            "a$b",
            "seventeen-letters",
        ] {
            assert!(!takes(bad, FileSystem::Ext4), "{bad}");
        }
        assert!(!takes("thirteen-char", FileSystem::Xfs) && takes("twelve-chars", FileSystem::Xfs));
        assert!(takes(&"a".repeat(36), FileSystem::Btrfs));
        assert!(!takes(&"a".repeat(37), FileSystem::Btrfs));
    }
}
