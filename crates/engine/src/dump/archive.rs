//! A directory as an archive: each entry below it is a member, in the order of the tree, under its
//! path from there, which starts with `./`.

use std::sync::atomic::Ordering;

use holdall_format::ObjectId;
use holdall_tree::{Attributes, Content, Cursor, Entry, EntryKind, PathKey};

use super::acl;
use super::plan::{Planner, Stop, damaged, layout_of};
use super::tar::{self, Member, Records, Type};
use crate::EngineError;
use crate::blocks::Nodes;
use crate::restore::{ACCESS_LIST, DEFAULT_LIST, Layout, Membership};

impl Planner<'_> {
    /// Plans everything from the directory `top` down.
    ///
    /// # Errors
    /// [`EngineError::Damaged`] and other reasons why the tree cannot be read.
    pub(super) fn archive(
        mut self,
        nodes: Nodes,
        root: ObjectId,
        top: &PathKey,
    ) -> Result<(), EngineError> {
        let planned = self.walk(Cursor::new(nodes, root), top);
        self.parts.ended(planned)
    }

    fn walk(&mut self, mut cursor: Cursor<Nodes>, top: &PathKey) -> Result<(), Stop> {
        cursor.seek(top)?;
        while let Some((path, entry)) = cursor.next()? {
            if path != *top && !top.is_ancestor_of(&path) {
                break;
            }
            self.run.check()?;
            match type_of(entry.kind) {
                Some(kind) => {
                    self.member(top, &path, kind, entry)?;
                    self.run.advance(1, 0);
                }
                None => {
                    self.sockets.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        self.parts.bytes(tar::END.to_vec())?;
        self.parts.finish()
    }

    fn member(
        &mut self,
        top: &PathKey,
        path: &PathKey,
        kind: Type,
        mut entry: Entry,
    ) -> Result<(), Stop> {
        let name = name_below(top, path, kind == Type::Directory);
        if let Some(first) = self.linked_to(&entry, &name)? {
            let link = Member { target: &first, ..member(&name, Type::HardLink, &entry) };
            return self.parts.bytes(tar::header(&link, Records::default()));
        }
        let brought = self.reader.bring_in_attributes(&mut entry);
        let brought = brought.and_then(|()| self.reader.bring_in_extents(&mut entry));
        brought.map_err(|error| in_place(path, error))?;
        let mut records = Records::default();
        add_attributes(path, &entry, &mut records)?;
        let mut member = member(&name, kind, &entry);
        match kind {
            Type::File => return self.file_member(path, &entry, member, records),
            Type::Symlink => member.target = target(path, &entry)?,
            _ => {}
        }
        self.parts.bytes(tar::header(&member, records))
    }

    /// The name of the member that an entry is another name of.
    fn linked_to(&mut self, entry: &Entry, name: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        let joined = self.groups.join(entry, self.links, || name.to_vec());
        let joined =
            joined.map_err(|error| EngineError::io("keeping track of hard links", error))?;
        self.links.first_is_done(joined, true);
        match joined {
            Membership::Later(first) => Ok(self.links.wait(first)),
            _ => Ok(None),
        }
    }

    /// Adds a file: its header, where it is sparse the map of its data, and its data.
    fn file_member(
        &mut self,
        path: &PathKey,
        entry: &Entry,
        member: Member<'_>,
        mut records: Records,
    ) -> Result<(), Stop> {
        let layout = layout_of(path, entry)?;
        let name = member.name;
        let map = layout
            .runs()
            .map(|runs| tar::sparse(name, runs, entry.size, &mut records))
            .unwrap_or_default();
        let stand_in = tar::sparse_name(name);
        let size = entry.content.len_bytes().saturating_add(map.len() as u64);
        let name = if map.is_empty() { name } else { &stand_in };
        let member = Member { name, size, ..member };
        self.parts.bytes(tar::header(&member, records))?;
        if !map.is_empty() {
            self.parts.bytes(map)?;
        }
        // In an archive the data lie close together.
        self.content(path, &entry.content, &Layout::Dense)?;
        self.parts.zeros(tar::padding(size))
    }
}

/// What an entry is in an archive; nothing for a socket, which has no place in it.
fn type_of(kind: EntryKind) -> Option<Type> {
    match kind {
        EntryKind::File => Some(Type::File),
        EntryKind::Directory => Some(Type::Directory),
        EntryKind::Symlink => Some(Type::Symlink),
        EntryKind::Fifo => Some(Type::Fifo),
        EntryKind::CharDevice { .. } => Some(Type::CharDevice),
        EntryKind::BlockDevice { .. } => Some(Type::BlockDevice),
        EntryKind::Socket => None,
    }
}

fn member<'a>(name: &'a [u8], kind: Type, entry: &'a Entry) -> Member<'a> {
    let device = match entry.kind {
        EntryKind::CharDevice { major, minor } | EntryKind::BlockDevice { major, minor } => {
            (major, minor)
        }
        _ => (0, 0),
    };
    let &Entry { mode, uid, gid, mtime, .. } = entry;
    let (user, group) = (&entry.user[..], &entry.group[..]);
    Member { name, kind, mode, uid, gid, user, group, mtime, size: 0, target: b"", device }
}

/// A path as a member's name: from the directory that is dumped, a directory's with a slash.
fn name_below(top: &PathKey, path: &PathKey, is_dir: bool) -> Vec<u8> {
    let mut name = b".".to_vec();
    for component in path.components().skip(top.components().count()) {
        name.push(b'/');
        name.extend_from_slice(component);
    }
    if is_dir {
        name.push(b'/');
    }
    name
}

fn target<'a>(path: &PathKey, entry: &'a Entry) -> Result<&'a [u8], EngineError> {
    match &entry.content {
        Content::Inline(target) => Ok(target),
        Content::Chunks(_) | Content::List { .. } => {
            Err(damaged(path, "a link's target does not lie in its entry"))
        }
    }
}

/// Adds attributes; access control lists as text, which is how tar takes them.
fn add_attributes(path: &PathKey, entry: &Entry, records: &mut Records) -> Result<(), EngineError> {
    let Content::Inline(bytes) = &entry.attributes else { return Ok(()) };
    let attributes = Attributes::decode(bytes).map_err(|error| damaged(path, error))?;
    for (name, value) in attributes.iter() {
        let key: Option<&[u8]> = match name {
            ACCESS_LIST => Some(b"SCHILY.acl.access"),
            DEFAULT_LIST => Some(b"SCHILY.acl.default"),
            _ => None,
        };
        match key.zip(acl::text(value)) {
            Some((key, text)) => records.add(key, text.as_bytes()),
            None => records.add_attribute(name, value),
        }
    }
    Ok(())
}

/// Says where something is damaged.
fn in_place(path: &PathKey, error: EngineError) -> EngineError {
    match error {
        EngineError::Damaged { .. } => damaged(path, error),
        error => error,
    }
}
