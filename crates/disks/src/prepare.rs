//! Makes a disk ready for backups: one partition over all of it, with a file system.
//!
//! Each step writes only after the disk was found to be the one that was shown. Whatever it is interrupted at, what it
//! wrote until then is no disk that could be taken for a finished one, and the same command begins anew.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::claim::{Claim, Shared, computer, number_of};
use crate::content::END_BYTES;
use crate::error::{DiskError, failed};
use crate::label::{FileSystem, Label};
use crate::program::{BLKID, PARTX, SETTLE, SFDISK, UDEVADM, WIPEFS};
use crate::read::short;

/// The type of a partition with a file system of Linux, in a GPT.
const LINUX_DATA: &str = "0FC63DAF-8483-4772-8E79-3D69D8477DE4";

/// What a disk is to get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The name of the partition and of the file system.
    pub label: Label,
    /// The file system.
    pub file_system: FileSystem,
}

/// A disk with a file system that nobody has mounted yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Formatted {
    /// The partition, such as `/dev/sdb1`.
    pub partition: PathBuf,
    /// The file system's own number, by which it is found under whatever name.
    pub uuid: String,
}

impl Plan {
    /// Finds out whether all programs are there that it needs.
    ///
    /// # Errors
    /// [`DiskError::Missing`].
    pub fn check_programs(&self) -> Result<(), DiskError> {
        let programs = [WIPEFS, SFDISK, PARTX, BLKID, self.file_system.program()];
        programs.into_iter().try_for_each(|program| program.find().map(drop))
    }

    /// Writes partition table and file system. Whatever was on the disk is lost. `told` is given each step, in words.
    ///
    /// # Errors
    /// [`DiskError::Changed`] and the like before anything is written; after that [`DiskError::HalfDone`], which says how
    /// the disk is. Calling it again begins anew.
    pub fn format(
        &self,
        claim: Claim,
        interrupt: &AtomicBool,
        told: &dyn Fn(&str),
    ) -> Result<Formatted, DiskError> {
        told("writing the partition table");
        stop_if(interrupt)?;
        claim.check()?;
        let emptied = "What was on the disk is lost, and it has no partition table that is whole: run the same command again";
        self.write_table(&claim).map_err(|error| error.with_state(emptied))?;

        let no_file_system =
            "The disk has a partition table and no file system: run the same command again";
        let made = || {
            stop_if(interrupt)?;
            claim.check()?;
            let partition = show_partition(&claim)?;
            let shared = claim.share()?;
            told(&format!("making the file system {}", self.file_system.name()));
            stop_if(interrupt)?;
            self.make_file_system(&shared, &partition)?;
            let uuid = uuid(&partition)?;
            Ok(Formatted { partition, uuid })
        };
        let formatted = made().map_err(|error: DiskError| error.with_state(no_file_system))?;
        let _ = UDEVADM.run(&["settle", SETTLE], "", None);
        Ok(formatted)
    }

    /// Empties both ends and writes a table with one partition.
    fn write_table(&self, claim: &Claim) -> Result<(), DiskError> {
        let disk = claim.file();
        let size_bytes = claim.identity().size_bytes;
        let end = END_BYTES.min(size_bytes);
        let zeros = vec![0; usize::try_from(end).unwrap_or(0)];
        for at in [0, size_bytes - end] {
            disk.write_all_at(&zeros, at).map_err(failed("emptying the disk's ends"))?;
        }
        disk.sync_all().map_err(failed("emptying the disk's ends"))?;
        forget_partitions(claim)?;
        claim.check()?;
        let path = claim.path().display().to_string();
        let table = format!("label: gpt\nname=\"{}\", type={LINUX_DATA}\n", self.label);
        // The kernel is told afterwards: as long as the disk is held, it reads no table by itself.
        let quiet = ["--quiet", "--no-reread", "--no-tell-kernel"];
        let wipe = ["--wipe", "always", "--wipe-partitions", "always", &path];
        SFDISK.succeed(&[&quiet[..], &wipe].concat(), &table)?;
        disk.sync_all().map_err(failed("writing the partition table"))
    }

    fn make_file_system(&self, shared: &Shared, partition: &Path) -> Result<(), DiskError> {
        let path = partition.display().to_string();
        shared.check()?;
        self.file_system.program().succeed(&self.file_system.args(&self.label, &path), "")?;
        let made = fs::File::open(partition).and_then(|made| made.sync_all());
        made.map_err(failed("writing the file system"))
    }
}

fn stop_if(interrupt: &AtomicBool) -> Result<(), DiskError> {
    match interrupt.load(Ordering::Relaxed) {
        true => Err(DiskError::Interrupted),
        false => Ok(()),
    }
}

/// Has the kernel forget the partitions of the table that was there.
///
/// # Errors
/// Those of running `partx`, and what it says.
pub(crate) fn forget_partitions(claim: &Claim) -> Result<(), DiskError> {
    let has_some = computer()?.partitions(&claim.identity().name).next().is_some();
    if has_some {
        PARTX.succeed(&["--delete", &claim.path().display().to_string()], "")?;
    }
    Ok(())
}

/// Has the kernel show the new partition; gives its place.
fn show_partition(claim: &Claim) -> Result<PathBuf, DiskError> {
    let path = claim.path().display().to_string();
    PARTX.succeed(&["--update", &path], "")?;
    let computer = computer()?;
    let what = || format!("finding the partition of {path}");
    let mut parts = computer.partitions(&claim.identity().name);
    let (Some(part), None) = (parts.next(), parts.next()) else {
        return Err(failed(what())(std::io::ErrorKind::NotFound.into()));
    };
    let place = Path::new("/dev").join(&part.name);
    let found = fs::symlink_metadata(&place).map_err(failed(what()))?;
    match number_of(&found) == Ok(part.number) {
        true => Ok(place),
        false => Err(failed(what())(std::io::ErrorKind::InvalidData.into())),
    }
}

/// The number of the file system on a partition.
fn uuid(partition: &Path) -> Result<String, DiskError> {
    let path = partition.display().to_string();
    let said =
        BLKID.succeed(&["--probe", "--match-tag", "UUID", "--output", "value", &path], "")?;
    let is_plain = |uuid: &String| uuid.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let uuid = short(&said).filter(is_plain);
    uuid.ok_or_else(|| {
        failed(format!("reading the file system on {path}"))(std::io::ErrorKind::InvalidData.into())
    })
}
