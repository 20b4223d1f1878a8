//! Modes, owners and times, of files, directories and links.

use std::io;

use holdall_sys::{Name, Timestamp, metadata, users};

use super::LeftOut;
use super::place::Place;

/// Modes that any file may have, and that its owner can still read.
const MODES: [u32; 14] = [
    0o400, 0o444, 0o600, 0o640, 0o666, 0o700, 0o755, 0o777, 0o1644, 0o2755, 0o4755, 0o6711, 0o7777,
    0o7400,
];

/// Modes that keep all but root from reading.
const CLOSED_MODES: [u32; 4] = [0o000, 0o200, 0o111, 0o7000];

/// Times at the edges: of the epoch, of 32 bits, of what ext4 holds.
const TIMES: [(&str, i64, u32); 10] = [
    ("epoch", 0, 0),
    ("last-nanosecond-of-1969", -1, 999_999_999),
    ("1969", -10_000_000, 1),
    ("1901", -0x8000_0000, 0),
    ("last-of-32-bits", 0x7fff_ffff, 999_999_999),
    ("first-after-32-bits", 0x8000_0000, 0),
    ("2106", 0xffff_ffff, 999_999_999),
    ("2107", 0x1_0000_0000, 1),
    ("2400", 13_569_465_600, 500_000_000),
    ("one-nanosecond", 1_600_000_000, 1),
];

pub(super) fn make(place: &mut Place) -> io::Result<Vec<LeftOut>> {
    make_modes(&mut place.sub(b"modes")?, &MODES)?;
    make_times(&mut place.sub(b"times")?)?;
    if users::effective_uid() != 0 {
        place.finish()?;
        return Ok(vec![LeftOut { what: "other owners" }, LeftOut { what: "unreadable files" }]);
    }
    make_modes(&mut place.sub(b"closed-modes")?, &CLOSED_MODES)?;
    make_owners(&mut place.sub(b"owners")?)?;
    place.finish()?;
    Ok(Vec::new())
}

/// Makes files and directories; the directories have something in them, whatever they allow.
fn make_modes(place: &mut Place, modes: &[u32]) -> io::Result<()> {
    for &mode in modes {
        let file = place.file(format!("file-{mode:04o}").as_bytes(), b"content")?;
        metadata::set_mode(&file, mode)?;
        // Looking into a directory takes its x, which a file's owner can do without.
        let dir_mode = if modes == MODES { mode | 0o100 } else { mode };
        let mut dir = place.sub(format!("dir-{mode:04o}").as_bytes())?;
        dir.file(b"inside", b"content")?;
        dir.finish()?;
        metadata::set_mode(dir.dir(), dir_mode)?;
    }
    place.finish()
}

fn make_times(place: &mut Place) -> io::Result<()> {
    for (label, secs, nanos) in TIMES {
        let time = Timestamp { secs, nanos };
        let file = place.file(format!("file-{label}").as_bytes(), b"content")?;
        metadata::set_mtime(&file, time)?;
        let mut dir = place.sub(format!("dir-{label}").as_bytes())?;
        dir.file(b"inside", b"content")?;
        metadata::set_mtime(dir.dir(), time)?;
        let link = format!("link-{label}");
        place.symlink(link.as_bytes(), b"nowhere")?;
        metadata::set_mtime_at(place.dir(), Name::new(link.as_bytes())?, time)?;
    }
    place.finish()
}

/// Owners by name and without one, the largest ids, and owners beside set-user-id bits, which
/// changing an owner clears.
fn make_owners(place: &mut Place) -> io::Result<()> {
    for (uid, gid) in [(1, 2), (1_000, 1_000), (65_534, 65_534), (u32::MAX - 1, u32::MAX - 1)] {
        let file = place.file(format!("file-{uid}").as_bytes(), b"content")?;
        metadata::set_owner(&file, Some(uid), Some(gid))?;
        metadata::set_mode(&file, 0o6755)?;
        let mut dir = place.sub(format!("dir-{uid}").as_bytes())?;
        dir.file(b"inside", b"content")?;
        dir.finish()?;
        metadata::set_owner(dir.dir(), Some(uid), Some(gid))?;
        metadata::set_mode(dir.dir(), 0o3770)?;
        let link = format!("link-{uid}");
        place.symlink(link.as_bytes(), b"nowhere")?;
        metadata::set_owner_at(place.dir(), Name::new(link.as_bytes())?, Some(uid), Some(gid))?;
    }
    place.finish()
}
