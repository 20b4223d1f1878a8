//! Fifos, sockets and devices.

use std::io;

use holdall_sys::{DeviceNumber, FileKind, Name, metadata, users};

use super::LeftOut;
use super::place::Place;

/// Devices by number; nothing opens them.
const DEVICES: [(&[u8], FileKind, DeviceNumber); 4] = [
    (b"null", FileKind::CharDevice, DeviceNumber { major: 1, minor: 3 }),
    (b"large-numbers", FileKind::CharDevice, DeviceNumber { major: 4_095, minor: 1_048_575 }),
    (b"loop", FileKind::BlockDevice, DeviceNumber { major: 7, minor: 0 }),
    (b"minor-over-a-byte", FileKind::BlockDevice, DeviceNumber { major: 259, minor: 300 }),
];

pub(super) fn make(place: &mut Place) -> io::Result<Vec<LeftOut>> {
    for (name, kind) in [(b"fifo".as_slice(), FileKind::Fifo), (b"socket", FileKind::Socket)] {
        place.special(name, kind, DeviceNumber::default())?;
        metadata::set_mode_at(place.dir(), Name::new(name)?, 0o4751)?;
    }
    if users::effective_uid() != 0 {
        place.finish()?;
        return Ok(vec![LeftOut { what: "devices" }]);
    }
    for (name, kind, rdev) in DEVICES {
        place.special(name, kind, rdev)?;
    }
    metadata::set_owner_at(place.dir(), Name::new(b"null")?, Some(12), Some(34))?;
    metadata::set_mode_at(place.dir(), Name::new(b"null")?, 0o666)?;
    place.finish()?;
    Ok(Vec::new())
}
