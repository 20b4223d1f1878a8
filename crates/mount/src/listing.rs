//! What is in a folder, a piece at a time: where a piece ended, the next one begins, whoever asks for it.
//!
//! ```text
//! | cookie | where the listing goes on |
//! | 0, 1   | at `.`, at `..`           |
//! | 2      | at the first entry        |
//! | 3 + n  | above the snapshots: at the n-th entry; in a snapshot: at the entry with the number n |
//! | END    | at the end                |
//! ```

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use fuser::{Errno, FileAttr};

use crate::inode::Inode;
use crate::shared::LISTED_FOR;
use crate::view::{FOR_EVER, View};

const FIRST: u64 = 2;
const NUMBERED: u64 = 3;
/// The largest that programs of 32 bits and all libraries take.
const END: u64 = i64::MAX as u64;

/// One entry.
pub(crate) struct Listed<'a> {
    pub(crate) name: &'a OsStr,
    pub(crate) attributes: FileAttr,
    /// How long that holds.
    pub(crate) ttl: Duration,
    /// Where the listing goes on behind it.
    pub(crate) next: u64,
}

/// Takes an entry; says whether there was no more room for it.
type Take<'t> = &'t mut dyn FnMut(Listed<'_>) -> bool;

/// Gives the entries of a folder from a cookie on, until there is no more room.
///
/// # Errors
/// If there is no such folder, or it cannot be read; at its end if something of it could not be read.
pub(crate) fn each(view: &View, inode: Inode, from: u64, take: Take<'_>) -> Result<(), Errno> {
    if from < FIRST {
        let (attributes, ttl) = view.attributes(inode)?;
        for (cookie, name) in [".", ".."].iter().enumerate().skip(from as usize) {
            let next = cookie as u64 + 1;
            if take(Listed { name: OsStr::new(name), attributes, ttl, next }) {
                return Ok(());
            }
        }
    }
    match inode {
        Inode::Above(folder) => above(view, folder, from, take),
        Inode::In { snapshot, number } => inside(view, (snapshot, number), from, take),
    }
}

/// The entries of a folder above the snapshots.
fn above(view: &View, folder: u64, from: u64, take: Take<'_>) -> Result<(), Errno> {
    let shared = &view.shared;
    // One listing sees one list, as long as it does not take seconds.
    let catalogue = if from == 0 { shared.catalogue() } else { shared.known_catalogue() };
    let children = catalogue.folder(folder).ok_or(Errno::ENOTDIR)?;
    let passed = from.saturating_sub(NUMBERED);
    for (number, (name, child)) in
        (0..).zip(children).skip(usize::try_from(passed).unwrap_or(usize::MAX))
    {
        let (attributes, ttl) = match *child {
            Inode::Above(number) => (View::attributes_above(&catalogue, number)?, LISTED_FOR),
            child @ Inode::In { .. } => view.attributes(child)?,
        };
        let next = NUMBERED + number + 1;
        if take(Listed { name: OsStr::new(name), attributes, ttl, next }) {
            break;
        }
    }
    Ok(())
}

/// The entries of a directory of a snapshot.
fn inside(
    view: &View,
    (snapshot, directory): (usize, u64),
    from: u64,
    take: Take<'_>,
) -> Result<(), Errno> {
    let (mut from, mut is_empty) = (from, true);
    while from != END {
        let number = from.checked_sub(NUMBERED);
        let (page, at) = view.shared.page(snapshot, directory, number)?;
        let entries = &page.children.entries;
        for (at, found) in entries.iter().enumerate().skip(at) {
            let next = entries.get(at + 1).map(|next| next.number).or(page.children.next);
            let next = next.map_or(END, |number| NUMBERED + number);
            let attributes = view.attributes_of(snapshot, found)?;
            let name = OsStr::from_bytes(found.name());
            is_empty = false;
            if take(Listed { name, attributes, ttl: FOR_EVER, next }) {
                return Ok(());
            }
        }
        from = page.children.next.map_or(END, |number| NUMBERED + number);
    }
    // What was given comes first: who asks behind it learns that something is missing.
    match is_empty && view.shared.lacks_entries(snapshot, directory)? {
        true => Err(Errno::EIO),
        false => Ok(()),
    }
}
