//! From what a person typed to a disk that nobody else uses for as long as this process works on it.
//!
//! ```text
//! path ──> Candidate ──> Claim ──> prepare, erase
//!          what it is,   opened so that the kernel refuses whatever is mounted, swap, RAID or LVM, also where this process
//!          refused by    does not see it; checked again before each step that writes
//!          what is seen
//! ```
//!
//! A device that is open keeps its name and its numbers: a disk that is pulled out and another that is plugged in cannot
//! change places behind an open file. What can change behind it, such as the medium in a reader, is counted by the kernel
//! ([`Identity::sequence`]).

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use holdall_sys::DeviceNumber;
use holdall_sys::lock::Held;
use holdall_sys::mounts::Mounts;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use crate::computer::Computer;
use crate::content::{Content, is_written, signatures};
use crate::error::{DiskError, failed};
use crate::identity::Identity;
use crate::program::{SETTLE, UDEVADM};
use crate::refusal::{Reason, reasons};

/// Where the kernel's views are.
const ROOT: &str = "/";

/// A disk that nothing seems to use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    identity: Identity,
}

impl Candidate {
    /// The disk that a path stands for; links are followed, as those in `/dev/disk/by-id`.
    ///
    /// # Errors
    /// [`DiskError::NotThere`], [`DiskError::NoDevice`], and [`DiskError::Refused`] with all reasons that are seen.
    pub fn at(path: &Path) -> Result<Self, DiskError> {
        let not_there = |cause| DiskError::NotThere { path: path.to_owned(), cause };
        let number = number_of(&fs::metadata(path).map_err(not_there)?)
            .map_err(|kind| DiskError::NoDevice { path: path.to_owned(), kind })?;
        let folder = format!("{ROOT}sys/dev/block/{}:{}", number.major, number.minor);
        let folder = Path::new(&folder).canonicalize().map_err(not_there)?;
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        refuse_if_in_use(&name)?;
        let identity = Identity::read(Path::new(ROOT), &name)
            .ok_or_else(|| refused(&name, vec![Reason::Unknown]))?;
        Ok(Self { identity })
    }

    /// By what it is known.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Takes it for this process alone, until the claim is dropped.
    ///
    /// # Errors
    /// [`DiskError::Refused`] and [`DiskError::Locked`] if something else has it; [`DiskError::Changed`] if it is another
    /// disk by now; else what the system says.
    pub fn claim(self) -> Result<Claim, DiskError> {
        let Self { identity } = self;
        // Of a disk that was plugged in just now, udev may still look at what is on it.
        let _ = UDEVADM.run(&["settle", SETTLE], "", None);
        let file = open_alone(&identity.name, true).map_err(|error| match is_busy(&error) {
            true => refused(&identity.name, vec![Reason::Kernel]),
            false => failed(format!("opening /dev/{}", identity.name))(error),
        })?;
        // udev leaves a device alone that is locked (systemd.io/BLOCK_DEVICE_LOCKING).
        let locked = Held::exclusive(file).map_err(failed("locking the disk"))?;
        let held = locked.ok_or_else(|| DiskError::Locked { name: identity.name.clone() })?;
        let claim = Claim { held, identity };
        claim.check()?;
        Ok(claim)
    }
}

/// A disk that this process has for itself.
#[derive(Debug)]
pub struct Claim {
    held: Held,
    identity: Identity,
}

impl Claim {
    /// By what it is known.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Its place, such as `/dev/sdb`.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        Path::new("/dev").join(&self.identity.name)
    }

    /// The open disk.
    pub(crate) fn file(&self) -> &File {
        &self.held
    }

    /// Checks once more that it is the disk that was shown, that its name stands for the open file, and that nothing
    /// uses it.
    ///
    /// # Errors
    /// [`DiskError::Changed`], [`DiskError::Refused`]; else what the system says.
    pub fn check(&self) -> Result<(), DiskError> {
        unchanged(&self.identity)?;
        let stands_for = |found: io::Result<fs::Metadata>| {
            let number = found.ok().and_then(|found| number_of(&found).ok());
            number == Some(self.identity.number)
        };
        if !stands_for(self.held.metadata()) || !stands_for(fs::symlink_metadata(self.path())) {
            return Err(DiskError::Changed { was: Box::new(self.identity.clone()), is: None });
        }
        refuse_if_in_use(&self.identity.name)
    }

    /// What is on it.
    ///
    /// # Errors
    /// Those of running `wipefs`; what the system says of the list of devices.
    pub fn content(&self) -> Result<Content, DiskError> {
        let name = &self.identity.name;
        let computer = computer()?;
        let mut found: Vec<_> = signatures(name)?.into_iter().map(|one| (None, one)).collect();
        for part in computer.partitions(name) {
            let on_part = signatures(&part.name)?;
            found.extend(on_part.into_iter().map(|one| (Some(part.name.clone()), one)));
        }
        // What cannot be read is something.
        let is_written = is_written(self.file(), self.identity.size_bytes).unwrap_or(true);
        Ok(Content { found, is_written })
    }

    /// Lets others open its partitions, and keeps it open: its name stays its own.
    ///
    /// It stays locked without a gap. Otherwise udev, which sees that a disk was written to and closed, has the kernel read
    /// the table again, and the partition is gone for a moment while a file system is being made on it.
    ///
    /// # Errors
    /// What the system says; those of [`Claim::check`].
    pub(crate) fn share(self) -> Result<Shared, DiskError> {
        let file = File::open(self.path()).map_err(failed("opening the disk once more"))?;
        let found = file.metadata().map_err(failed("looking at the disk"))?;
        if number_of(&found) != Ok(self.identity.number) {
            return Err(DiskError::Changed { was: Box::new(self.identity.clone()), is: None });
        }
        self.check()?;
        let locking = || failed("locking the disk once more");
        flock(&*self.held, FlockOperation::NonBlockingLockShared)
            .map_err(|error| locking()(error.into()))?;
        let held = Held::shared(file).map_err(locking())?;
        let held = held.ok_or_else(|| DiskError::Locked { name: self.identity.name.clone() })?;
        Ok(Shared { _held: held, identity: self.identity })
    }
}

/// A disk that keeps its name and numbers, as it is open, and that others may open, too.
#[derive(Debug)]
pub(crate) struct Shared {
    _held: Held,
    identity: Identity,
}

impl Shared {
    /// Checks once more that it is the disk that was shown.
    ///
    /// # Errors
    /// [`DiskError::Changed`].
    pub(crate) fn check(&self) -> Result<(), DiskError> {
        unchanged(&self.identity)
    }
}

/// Checks that the disk of that name is the one that was shown.
fn unchanged(identity: &Identity) -> Result<(), DiskError> {
    let is = Identity::read(Path::new(ROOT), &identity.name);
    match is.as_ref() == Some(identity) {
        true => Ok(()),
        false => Err(DiskError::Changed { was: Box::new(identity.clone()), is: is.map(Box::new) }),
    }
}

/// Opens a disk so that the kernel refuses any other who wants it alone, and refuses this where another has it.
fn open_alone(name: &str, to_write: bool) -> io::Result<File> {
    let flags = i32::try_from((OFlags::EXCL | OFlags::NOFOLLOW).bits()).unwrap_or_default();
    let path = Path::new("/dev").join(name);
    OpenOptions::new().read(true).write(to_write).custom_flags(flags).open(path)
}

fn is_busy(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::BUSY.raw_os_error())
}

/// Whether the kernel says that a disk, or a part of it, is in use, also by what this process does not see; never to a
/// user who may not read it.
pub(crate) fn is_in_use(name: &str) -> bool {
    open_alone(name, false).is_err_and(|error| is_busy(&error))
}

/// This computer, as it is now.
///
/// # Errors
/// What the system says.
pub(crate) fn computer() -> Result<Computer, DiskError> {
    let mounts = Mounts::read().map_err(failed("reading what is mounted"))?;
    Computer::read(Path::new(ROOT), &mounts).map_err(failed("reading the list of disks"))
}

fn refuse_if_in_use(name: &str) -> Result<(), DiskError> {
    let computer = computer()?;
    let mut reasons = reasons(&computer, name);
    if reasons.is_empty() {
        reasons.extend(used_elsewhere(&computer, name));
    }
    match reasons.is_empty() {
        true => Ok(()),
        false => Err(refused(name, reasons)),
    }
}

/// Whether the kernel says that another device is in use which leads to the same disk.
pub(crate) fn used_elsewhere(computer: &Computer, name: &str) -> Option<Reason> {
    let mut others = computer.other_paths(computer.device(name)?);
    let other = others.find(|other| is_in_use(&other.name))?;
    Some(Reason::SameDisk { other: other.name.clone() })
}

fn refused(name: &str, reasons: Vec<Reason>) -> DiskError {
    DiskError::Refused { name: name.to_owned(), reasons }
}

/// The numbers of a block device; of something else, what it is.
pub(crate) fn number_of(found: &fs::Metadata) -> Result<DeviceNumber, &'static str> {
    let kind = found.file_type();
    if kind.is_block_device() {
        let (major, minor) = (rustix::fs::major(found.rdev()), rustix::fs::minor(found.rdev()));
        return Ok(DeviceNumber { major, minor });
    }
    Err(match () {
        () if kind.is_dir() => "a folder",
        () if kind.is_file() => "a file",
        () => "something else",
    })
}
