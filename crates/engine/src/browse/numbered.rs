//! Entries by their number: their place in the order of the tree, from 1.
//!
//! A number names an entry of a tree for ever and is found again with one node a level, so that who hands numbers out, such
//! as a file system its inodes, keeps no table. The root directory is 0, whether the tree has an entry for it or not.

use std::sync::Arc;

use holdall_format::ObjectId;
use holdall_tree::{Cursor, Entry, EntryKind, PathKey, TreeError};

use super::hard_links::HardLinks;
use super::viewer::Viewer;
use crate::EngineError;
use crate::blocks::Nodes;
use crate::error::is_damaged;
use crate::run::lock;

/// The number of a tree's root directory.
pub const ROOT_NUMBER: u64 = 0;

/// An entry with its number.
#[derive(Debug, Clone)]
pub struct NumberedEntry {
    /// Its place in the order of the tree, from 1; [`ROOT_NUMBER`] for the root directory.
    pub number: u64,
    /// Its absolute path, any bytes.
    pub path: Vec<u8>,
    /// What is known of it.
    pub entry: Entry,
}

impl NumberedEntry {
    /// The last component of its path; empty for the root directory.
    pub fn name(&self) -> &[u8] {
        self.path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
    }
}

/// A part of a directory.
#[derive(Debug)]
pub struct Children {
    /// Its entries, in the order of the tree.
    pub entries: Vec<NumberedEntry>,
    /// What keeps others from being read that belong here.
    pub damage: Option<EngineError>,
    /// Where the next part begins; `None` after the last one.
    pub next: Option<u64>,
}

/// Takes damage for an answer.
fn damage_of(error: TreeError<EngineError>) -> Result<EngineError, EngineError> {
    let error = EngineError::from(error);
    if is_damaged(&error) { Ok(error) } else { Err(error) }
}

impl Viewer {
    /// The entry with that number.
    ///
    /// # Errors
    /// [`EngineError::Damaged`] for a tree that cannot be read there, or has no such number; [`EngineError::Repository`].
    pub fn numbered(&self, root: ObjectId, number: u64) -> Result<NumberedEntry, EngineError> {
        self.with(|hand| {
            let mut cursor = Cursor::new(&mut hand.nodes, root);
            let Some(before) = number.checked_sub(1) else { return Ok(root_of(&mut cursor)?) };
            cursor.skip_items(before)?;
            let missing = || EngineError::damaged("a tree", format!("it has no entry {number}"));
            let (path, entry) = cursor.next()?.ok_or_else(missing)?;
            Ok(NumberedEntry { number, path: path.to_absolute(), entry })
        })
    }

    /// What has that name in the directory with that absolute path; `None` if nothing has.
    ///
    /// # Errors
    /// As for [`Viewer::numbered`].
    pub fn child(
        &self,
        root: ObjectId,
        directory: &[u8],
        name: &[u8],
    ) -> Result<Option<NumberedEntry>, EngineError> {
        let directory = PathKey::from_absolute(directory);
        let Ok(key) = directory.and_then(|directory| directory.child(name)) else {
            return Ok(None);
        };
        self.with(|hand| {
            let mut cursor = Cursor::new(&mut hand.nodes, root);
            cursor.seek(&key)?;
            let Some((path, entry)) = cursor.next()?.filter(|(path, _)| *path == key) else {
                return Ok(None);
            };
            Ok(Some(NumberedEntry { number: cursor.position(), path: path.to_absolute(), entry }))
        })
    }

    /// At most `most` entries of the directory with that absolute path: from its beginning on, or from what
    /// [`Children::next`] said. What is damaged is left out, and said.
    ///
    /// # Errors
    /// [`EngineError::Repository`].
    pub fn children(
        &self,
        root: ObjectId,
        directory: &[u8],
        from: Option<u64>,
        most: usize,
    ) -> Result<Children, EngineError> {
        let key = PathKey::from_absolute(directory)
            .map_err(|error| EngineError::damaged("a path", error))?;
        self.with(|hand| {
            let mut cursor = Cursor::new(&mut hand.nodes, root);
            let mut children = Children { entries: Vec::new(), damage: None, next: None };
            // What cannot be passed is met again by the next step.
            let sought = match from {
                Some(number) => cursor.skip_items(number.saturating_sub(1)),
                None => cursor.seek(&key),
            };
            sought.or_else(|error| damage_of(error).map(|error| children.add_damage(error)))?;
            children.fill(&mut cursor, &key, most)?;
            Ok(children)
        })
    }
}

impl Viewer {
    /// Which entries of a tree are names of one file. Reads all of the tree the first time; what is damaged counts for
    /// nothing.
    ///
    /// # Errors
    /// [`EngineError::Repository`].
    pub fn hard_links(&self, root: ObjectId) -> Result<Arc<HardLinks>, EngineError> {
        // Held meanwhile, so that a tree is not read by several at once.
        let mut known = lock(&self.links);
        self.with(|hand| known.of(&mut hand.nodes, root))
    }
}

fn root_of(cursor: &mut Cursor<&mut Nodes>) -> Result<NumberedEntry, TreeError<EngineError>> {
    let found = cursor.next()?.filter(|(path, _)| path.is_root());
    let entry = found.map_or_else(|| Entry::empty(EntryKind::Directory), |(_, entry)| entry);
    Ok(NumberedEntry { number: ROOT_NUMBER, path: b"/".to_vec(), entry })
}

impl Children {
    fn add_damage(&mut self, error: EngineError) {
        self.damage.get_or_insert(error);
    }

    /// Takes entries of a directory until there are enough.
    fn fill(
        &mut self,
        cursor: &mut Cursor<&mut Nodes>,
        directory: &PathKey,
        most: usize,
    ) -> Result<(), EngineError> {
        loop {
            let (path, entry) = match cursor.next() {
                Ok(Some(found)) => found,
                Ok(None) => return Ok(()),
                Err(error) => {
                    self.add_damage(damage_of(error)?);
                    cursor.skip_unreadable();
                    continue;
                }
            };
            if path <= *directory {
                continue;
            }
            if !directory.is_ancestor_of(&path) {
                return Ok(());
            }
            let number = cursor.position();
            if self.entries.len() == most {
                self.next = Some(number);
                return Ok(());
            }
            let skipped = match entry.kind {
                EntryKind::Directory => cursor.skip_subtree(&path),
                _ => Ok(()),
            };
            // What lies in a directory whose own entry is damaged is not in this one.
            if path.parent().as_ref() == Some(directory) {
                self.entries.push(NumberedEntry { number, path: path.to_absolute(), entry });
            }
            skipped.or_else(|error| damage_of(error).map(|error| self.add_damage(error)))?;
        }
    }
}

#[cfg(test)]
mod tests;
