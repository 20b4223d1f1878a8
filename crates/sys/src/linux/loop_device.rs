//! Where the image behind a loop device lies, which has no path that everybody sees.

#![allow(unsafe_code, reason = "the kernel is handed an address")]

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::io::Errno;
use rustix::ioctl::{self, Getter, Opcode};

use super::stat;
use crate::DeviceNumber;

/// `LOOP_GET_STATUS64`, and the size of its `struct loop_info64`.
const STATUS: Opcode = 0x4c05;
const STATUS_BYTES: usize = 232;

/// What a loop device shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopImage {
    /// The device of the file system that the image lies on, in the form of [`Stat::device`](crate::Stat::device), and the
    /// image's inode there.
    pub file: (u64, u64),
    /// If the image is a block device, that one.
    pub block_device: Option<DeviceNumber>,
}

/// Reads what a loop device shows; `None` of one that has no image.
///
/// # Errors
/// What the system says, also where there is no such device.
pub fn image_of(loop_device: &Path) -> io::Result<Option<LoopImage>> {
    let device = match File::open(loop_device) {
        // It is being taken away.
        Err(error) if is_no_device(&error) => return Ok(None),
        opened => opened?,
    };
    // SAFETY: the kernel writes a structure of that size, which `Getter` has place for.
    let status = unsafe { ioctl::ioctl(&device, Getter::<STATUS, [u8; STATUS_BYTES]>::new()) };
    match status {
        Ok(status) => {
            let (numbers, _) = status.as_chunks::<8>();
            let number = |at: usize| numbers.get(at).map(|number| u64::from_ne_bytes(*number));
            let image = || {
                let block_device = number(2).filter(|device| *device != 0).map(decoded);
                Some(LoopImage { file: (combined(decoded(number(0)?)), number(1)?), block_device })
            };
            Ok(image())
        }
        Err(Errno::NXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn is_no_device(error: &io::Error) -> bool {
    let none = [Errno::NXIO, Errno::NODEV];
    none.iter().any(|none| error.raw_os_error() == Some(none.raw_os_error()))
}

/// As `huge_encode_dev` of the kernel wrote it.
fn decoded(device: u64) -> DeviceNumber {
    let major = (device & 0xf_ff00) >> 8;
    let minor = (device & 0xff) | ((device >> 12) & 0xf_ff00);
    DeviceNumber { major: major as u32, minor: minor as u32 }
}

fn combined(device: DeviceNumber) -> u64 {
    stat::combine(device.major, device.minor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_more_than_a_byte_are_read() {
        let encoded =
            |major: u64, minor: u64| (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12);
        for (major, minor) in [(8, 1), (259, 3), (7, 300), (0xfff, 0xf_ffff)] {
            let number = DeviceNumber { major: major as u32, minor: minor as u32 };
            assert_eq!(decoded(encoded(major, minor)), number);
        }
    }
}
