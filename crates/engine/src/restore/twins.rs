//! Names that the target's file system takes for one, and the snapshot does not: `Foo` and `foo`, or an accented
//! letter that Unicode writes in two ways.
//!
//! The second of two such names must not take the place of the first. Where names are apart nothing is in a
//! directory that this restore made but what it put there, so only something that is in the way is looked at, and
//! what tells is how the directory itself writes the name. In one that was there before, a look at the name in other
//! letters comes first: a file system that finds nothing there folds nothing.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Mutex, OnceLock};

use holdall_sys::{Dir, Name, Stat};

use crate::run::lock;

/// Names in a directory, each with that of the snapshot that it was taken for.
type Claims = HashMap<Box<[u8]>, Box<[u8]>>;

/// The names of a directory, as far as they had to be looked at.
#[derive(Default)]
pub(super) struct Names {
    folds: OnceLock<bool>,
    /// Those that were there at the first look.
    listed: OnceLock<HashSet<Box<[u8]>>>,
    /// Held by who lists it: a directory that is open is at one place of its listing.
    listing: Mutex<()>,
    /// Names that were there before and that the snapshot has not, each with that of the snapshot that came first and is
    /// one with it here.
    claimed: Mutex<Claims>,
}

impl Names {
    /// The name in `dir` that what is found as `name` has in truth; `None` if it is that, or is not known.
    pub(super) fn other_than(
        &self,
        name: Name<'_>,
        dir: &Dir,
        is_new: bool,
        there: &Stat,
    ) -> io::Result<Option<Box<[u8]>>> {
        if !is_new {
            let may_fold = !name.as_bytes().is_ascii() || self.folds(dir, name);
            if !may_fold || self.listed(dir)?.contains(name.as_bytes()) {
                return Ok(None);
            }
        }
        let names = self.list(dir)?;
        if names.contains(name.as_bytes()) {
            return Ok(None);
        }
        let is_it = |other: &Name<'_>| {
            let found = dir.stat(*other);
            found.is_ok_and(|found| (found.device, found.inode) == (there.device, there.inode))
        };
        let others = || names.iter().filter_map(|other| Name::new(other).ok());
        let is_near = |other: &Name<'_>| other.as_bytes().eq_ignore_ascii_case(name.as_bytes());
        let found = others().filter(is_near).find(is_it).or_else(|| others().find(is_it));
        Ok(found.map(|other| other.as_bytes().into()))
    }

    /// Takes what is called `other` here for what the snapshot calls `name`. Gives what it was taken for before, if that is
    /// another name.
    pub(super) fn claim(&self, other: Box<[u8]>, name: Name<'_>) -> Option<Box<[u8]>> {
        let mut claimed = lock(&self.claimed);
        let first = claimed.entry(other).or_insert_with(|| name.as_bytes().into());
        (**first != *name.as_bytes()).then(|| first.clone())
    }

    /// Whether upper and lower case may be one here; looked at once, with the first name that has letters.
    fn folds(&self, dir: &Dir, name: Name<'_>) -> bool {
        let swapped: Vec<u8> = name.as_bytes().iter().map(swap_case).collect();
        if swapped == name.as_bytes() {
            return false;
        }
        *self.folds.get_or_init(|| Name::new(&swapped).is_ok_and(|other| dir.stat(other).is_ok()))
    }

    fn listed(&self, dir: &Dir) -> io::Result<&HashSet<Box<[u8]>>> {
        if let Some(listed) = self.listed.get() {
            return Ok(listed);
        }
        let listed = self.list(dir)?;
        Ok(self.listed.get_or_init(|| listed))
    }

    fn list(&self, dir: &Dir) -> io::Result<HashSet<Box<[u8]>>> {
        let _turn = lock(&self.listing);
        let names = dir.entries()?;
        Ok(names.iter().map(|entry| entry.name().as_bytes().into()).collect())
    }
}

fn swap_case(byte: &u8) -> u8 {
    if byte.is_ascii_alphabetic() { byte ^ 0x20 } else { *byte }
}

/// That a name cannot be made, for it is another one's on the target.
pub(super) fn taken_for(other: &[u8]) -> io::Error {
    let other = other.escape_ascii();
    let reason = format!(
        "the file system of the target takes it for {other}, which is in the snapshot too: restore it alone, \
         into another folder"
    );
    io::Error::new(io::ErrorKind::AlreadyExists, reason)
}
