//! Disks for a server's backups: which ones there are, and how one of them is made ready or erased, without ever taking
//! the wrong one.
//!
//! What may be written over is decided in three steps, each of which can only refuse: by a description of the computer
//! ([`Computer`], [`reasons`]), which is pure; by the kernel, when the disk is opened for this process alone ([`Claim`]); and
//! by comparing the disk with the one that was shown ([`Identity`]), once more before each step that writes. Partition
//! tables and file systems are made by the system's own programs.
//!
//! This crate asks nothing at a terminal: that a person meant the disk is for the caller to find out.
//!
//! ```
//! use holdall_disks::{BlockDevice, Computer, DeviceNumber, Mounted, reasons};
//!
//! let number = DeviceNumber { major: 8, minor: 0 };
//! let disk = BlockDevice { name: "sda".into(), number, size_bytes: 1 << 40, ..BlockDevice::default() };
//! let mount = Mounted { number, source: "/dev/sda".into(), point: "/mnt".into() };
//! let computer = Computer { devices: vec![disk], mounts: vec![mount], ..Computer::default() };
//! assert_eq!(reasons(&computer, "sda")[0].to_string(), "sda is mounted at /mnt");
//! ```

mod claim;
mod computer;
mod content;
mod erase;
mod error;
mod identity;
mod label;
pub mod list;
mod place;
mod prepare;
mod program;
mod read;
mod refusal;
mod smart;
mod unit;

pub use claim::{Candidate, Claim};
pub use computer::{BlockDevice, Computer, FileId, Mounted, Pool, UsedFile, is_disk};
pub use content::{Content, Signature};
pub use erase::{Erased, Erasing, Forgotten};
pub use error::DiskError;
pub use holdall_sys::DeviceNumber;
pub use identity::Identity;
pub use label::{FileSystem, Label};
pub use place::{Placed, refuse_taken};
pub use prepare::{Formatted, Plan};
pub use refusal::{Reason, reasons};
pub use smart::{Health, Untold};
pub use unit::Unit;
