//! What the folders above the snapshots and the snapshots have in common: attributes, names, and where links lead.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::Duration;

use fuser::{Errno, FileAttr};
use holdall_engine::{Attributes, Content, EntryKind, NumberedEntry, ROOT_NUMBER};

use crate::attributes::{of_entry, of_made};
use crate::catalogue::Catalogue;
use crate::inode::Inode;
use crate::shared::{LISTED_FOR, Shared};

/// How long the kernel keeps what never changes.
pub(crate) const FOR_EVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// All that can be looked at.
pub(crate) struct View {
    pub(crate) shared: Arc<Shared>,
}

impl View {
    /// What `stat` shows of an entry, under the inode that all names of its file have.
    pub(crate) fn attributes_of(
        &self,
        snapshot: usize,
        found: &NumberedEntry,
    ) -> Result<FileAttr, Errno> {
        let link = match found.entry.hardlink {
            Some(_) => self.shared.hard_links(snapshot)?.of(&found.entry),
            None => None,
        };
        let number = link.map_or(found.number, |link| link.first);
        Ok(of_entry(Inode::In { snapshot, number }, &found.entry, link))
    }

    /// The same of a folder above the snapshots, or a link in one.
    pub(crate) fn attributes_above(catalogue: &Catalogue, number: u64) -> Result<FileAttr, Errno> {
        let link = catalogue.link(number).map(str::len);
        if link.is_none() && catalogue.folder(number).is_none() {
            return Err(Errno::ENOENT);
        }
        Ok(of_made(Inode::Above(number), link, catalogue.newest_ns))
    }

    /// What `stat` shows, and for how long that holds.
    pub(crate) fn attributes(&self, inode: Inode) -> Result<(FileAttr, Duration), Errno> {
        match inode {
            Inode::Above(number) => {
                let catalogue = self.shared.known_catalogue();
                Ok((Self::attributes_above(&catalogue, number)?, LISTED_FOR))
            }
            // A list of many snapshots must not read something of each.
            Inode::In { snapshot, number: ROOT_NUMBER } => {
                let taken_ns = self.shared.known(snapshot)?.taken_ns;
                Ok((of_made(inode, None, taken_ns), FOR_EVER))
            }
            Inode::In { snapshot, number } => {
                let found = self.shared.entry(snapshot, number)?;
                Ok((self.attributes_of(snapshot, &found)?, FOR_EVER))
            }
        }
    }

    /// What has that name in a folder, and for how long that holds.
    pub(crate) fn found(
        &self,
        parent: Inode,
        name: &OsStr,
    ) -> Result<Option<(FileAttr, Duration)>, Errno> {
        match parent {
            Inode::Above(folder) => {
                let Some(name) = name.to_str() else { return Ok(None) };
                let child = |catalogue: &Catalogue| catalogue.folder(folder)?.get(name).copied();
                let known = child(&self.shared.known_catalogue());
                // What is there goes on to be there; what is not may have come.
                let child = known.or_else(|| child(&self.shared.catalogue()));
                child.map(|child| self.attributes(child)).transpose()
            }
            Inode::In { snapshot, number } => {
                let child = self.shared.child(snapshot, number, name.as_bytes())?;
                let child = child.map(|found| self.attributes_of(snapshot, &found)).transpose()?;
                Ok(child.map(|attributes| (attributes, FOR_EVER)))
            }
        }
    }

    /// Where a link leads.
    pub(crate) fn link_target(&self, inode: Inode) -> Result<Vec<u8>, Errno> {
        match inode {
            Inode::Above(number) => {
                let catalogue = self.shared.catalogue();
                catalogue.link(number).map(|link| link.as_bytes().to_vec()).ok_or(Errno::ENOENT)
            }
            Inode::In { snapshot, number } => {
                let found = self.shared.entry(snapshot, number)?;
                match (found.entry.kind, found.entry.content) {
                    (EntryKind::Symlink, Content::Inline(target)) => Ok(target),
                    _ => Err(Errno::EINVAL),
                }
            }
        }
    }

    /// The extended attributes of what is in a snapshot, as (name, value).
    pub(crate) fn extended(&self, inode: Inode) -> Result<Attributes, Errno> {
        match inode {
            Inode::Above(_) => Ok(Attributes::default()),
            Inode::In { snapshot, number } => {
                self.shared.attributes(snapshot, &self.shared.entry(snapshot, number)?)
            }
        }
    }
}
