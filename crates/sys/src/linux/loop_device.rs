//! Where the image behind a loop device lies, which has no path that everybody sees.

#![allow(unsafe_code, reason = "the kernel is handed an address")]

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::ioctl::{self, Getter, Opcode};

use super::stat;

/// `LOOP_GET_STATUS64`, and the size of its `struct loop_info64`.
const STATUS: Opcode = 0x4c05;
const STATUS_BYTES: usize = 232;

/// The device of the file system that the image of a loop device lies on, in the form of
/// [`Stat::device`](crate::Stat::device); `None` of one that has no image.
///
/// # Errors
/// What the system says, also where there is no such device.
pub(crate) fn device_of_image(loop_device: &Path) -> io::Result<Option<u64>> {
    let device = File::open(loop_device)?;
    // SAFETY: the kernel writes a structure of that size, which `Getter` has place for.
    let status = unsafe { ioctl::ioctl(&device, Getter::<STATUS, [u8; STATUS_BYTES]>::new()) };
    match status {
        Ok(status) => Ok(status.first_chunk().map(|first| decoded(u64::from_ne_bytes(*first)))),
        Err(rustix::io::Errno::NXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// As `huge_encode_dev` of the kernel wrote it.
fn decoded(device: u64) -> u64 {
    let major = (device & 0xf_ff00) >> 8;
    let minor = (device & 0xff) | ((device >> 12) & 0xf_ff00);
    stat::combine(major as u32, minor as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_more_than_a_byte_are_read() {
        let encoded =
            |major: u64, minor: u64| (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12);
        for (major, minor) in [(8, 1), (259, 3), (7, 300), (0xfff, 0xf_ffff)] {
            assert_eq!(decoded(encoded(major, minor)), stat::combine(major as u32, minor as u32));
        }
    }
}
