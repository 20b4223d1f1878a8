//! System calls that the standard library lacks: directories by descriptor, all of a file's
//! metadata, holes, and what the machine can do; and one loop in the processor's widest instructions.
//!
//! A backup must read names that are not UTF-8, paths longer than the kernel takes at once and
//! times to the nanosecond, and must never follow a link that somebody put in its way. Everything
//! here is safe to call and reports failures as [`std::io::Error`]; which path it was about, the
//! caller adds. What to back up, and in which order, is not known here.
//!
//! Linux lives behind one module; the plain types ([`Stat`], [`Name`], [`Timestamp`]) are for
//! every system.
//!
//! ```
//! use holdall_sys::{Dir, FileKind, Name};
//!
//! let root = Dir::open_absolute(b"/")?;
//! for entry in root.entries()?.iter() {
//!     let stat = root.stat(entry.name())?;
//!     assert!(stat.size < u64::MAX && (entry.kind().is_none() || entry.kind() == Some(stat.kind)));
//! }
//! assert_eq!(root.stat(Name::new(b"proc")?)?.kind, FileKind::Dir);
//! # Ok::<(), std::io::Error>(())
//! ```

mod clock;
mod file;
mod name;
pub mod wide_places;

#[cfg(not(target_os = "linux"))]
compile_error!("holdall runs on Linux so far: a sibling of src/linux is what another system needs");

#[cfg(target_os = "linux")]
mod linux;

pub use clock::{Clock, SystemClock};
pub use file::{DeviceNumber, FileKind, Stat, Timestamp};
#[cfg(target_os = "linux")]
pub use linux::{
    alarm, aligned, btrfs, child, cpu, disk, fanotify, fanotify_events, folder_watch, guarded,
    heap, host, limits, listing, lock, loop_device, memory, metadata, mounts, open_files,
    own_mounts, page_cache, pipe, process, raw_file, reading, removal, ring, sparse, stat,
    supervisor, tcp, thread, users, waiting, xattr,
};
#[cfg(target_os = "linux")]
pub use linux::{
    beneath::{PathBeneath, Root},
    closing::close,
    dir::{Dir, MAX_PATH_BYTES},
    guarded::{make_folder, make_folders},
    listing::{Entry, Listing},
    target::TargetDir,
    unfit::Unfit,
};
pub use name::{BadName, MAX_NAME_BYTES, Name};
