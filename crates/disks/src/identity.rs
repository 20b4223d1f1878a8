//! By what a disk is known: that the disk which is written to is the one that was shown, also where another has taken its
//! name meanwhile.

use std::fmt::{self, Display};
use std::path::Path;

use holdall_lab::storage_stack::Disk;
use holdall_meter::size;
use holdall_sys::DeviceNumber;
use serde::Serialize;

use crate::read::{number, serial, short, udev, value};

/// By what a disk is known. Two are equal only if all of it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Identity {
    /// The kernel's name, such as `sdb`. Another disk may have it next time.
    pub name: String,
    /// The kernel's numbers for it, which another may have next time, too.
    #[serde(skip)]
    pub number: DeviceNumber,
    /// What the maker calls it.
    pub model: Option<String>,
    /// Its serial number; of a disk in an enclosure perhaps the enclosure's.
    pub serial: Option<String>,
    /// Its size.
    pub size_bytes: u64,
    /// The kernel's count of disks and media, which it gives to none twice while it runs (since Linux 5.15).
    #[serde(skip)]
    pub sequence: Option<u64>,
    /// Of a loop device, the file that it shows.
    pub file: Option<String>,
}

impl Identity {
    /// Reads what `/sys` and udev below `root` tell of the disk that the kernel calls `name`; `None` if there is none.
    #[must_use]
    pub fn read(root: &Path, name: &str) -> Option<Self> {
        let folder = root.join("sys/class/block").join(name).canonicalize().ok()?;
        let disk = Disk::named(root, name)?;
        let number = number(&value(&folder.join("dev"))?)?;
        Some(Self {
            name: name.to_owned(),
            number,
            model: disk.model.as_deref().and_then(short).or_else(|| udev(root, number, "ID_MODEL")),
            serial: serial(root, &folder, number),
            size_bytes: disk.size_bytes.unwrap_or(0),
            sequence: value(&folder.join("diskseq")).and_then(|count| count.parse().ok()),
            file: value(&folder.join("loop/backing_file")),
        })
    }
}

impl Display for Identity {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}", self.name)?;
        match (&self.model, &self.file) {
            (Some(model), _) => write!(to, ", {model}")?,
            (None, Some(file)) => write!(to, ", loop device on {file}")?,
            (None, None) => write!(to, ", no model told")?,
        }
        match &self.serial {
            Some(serial) => write!(to, ", serial number {serial}")?,
            None => write!(to, ", no serial number told")?,
        }
        write!(to, ", {} ({} bytes)", size(self.size_bytes), self.size_bytes)
    }
}
