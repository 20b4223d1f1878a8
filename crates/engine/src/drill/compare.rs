//! Comparing what a drill restored with what the snapshot says of it.
//!
//! Content is read back from the disk, not from the memory that a write fills, and each chunk's id is computed anew.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use holdall_crypto::IdKeys;
use holdall_protocol::SessionPurpose;
use holdall_sys::xattr::{self, Xattr};
use holdall_sys::{Dir, FileKind, Name, Stat, TargetDir, page_cache, users};
use holdall_tree::{Attributes, Content, ContentReader, Entry, EntryKind};

use super::sample::{DrillPart, DrillSample};
use crate::blocks::Nodes;
use crate::restore::{Layout, below};
use crate::{DamagedPath, EngineError, Run, Snapshot, UnlockedRepository};

/// What comparing a part of a sample found.
#[derive(Debug, Default)]
pub struct Compared {
    /// Items that are as the snapshot says.
    pub same: u64,
    /// Those that only root could compare, or restore.
    pub unseen: u64,
    /// Those that are not as it says.
    pub different: Vec<DamagedPath>,
}

impl DrillSample {
    /// Compares a part that was restored below `target`, owners by number, with the snapshot. What `is_told` of was
    /// not restored, or not wholly, and is passed over.
    ///
    /// What an ordinary user may not restore is not compared.
    ///
    /// # Errors
    /// [`EngineError::Io`] if the target cannot be opened; [`EngineError::Interrupted`]; what keeps the repository from
    /// being read.
    pub fn compare(
        &self,
        part: DrillPart,
        (access, snapshot): (&UnlockedRepository, &Snapshot),
        target: &Path,
        is_told: impl Fn(&[u8]) -> bool,
        run: &Run,
    ) -> Result<Compared, EngineError> {
        let root = TargetDir::open_root(target);
        let what = || format!("opening {}", target.display());
        let root = root.map_err(|error| EngineError::io(what(), error))?;
        let session = access.repository.open_session(&SessionPurpose::Read)?.session;
        let mut comparison = Comparison {
            ids: access.keys.ids(),
            nodes: Nodes::open(access, session),
            privileged: users::effective_uid() == 0,
            buffer: Vec::new(),
        };
        let mut compared = Compared::default();
        let mut last = below::LastBelow::default();
        let entries = &self.part(part).entries;
        let all =
            entries.iter().filter(|(path, _)| !is_told(path)).try_for_each(|(path, entry)| {
                run.check()?;
                let (dir, name) = below::split(path.strip_prefix(b"/").unwrap_or(path));
                let opened = last.open(&root, dir);
                let found =
                    opened.and_then(|dir| comparison.differences(dir.as_dir(), name, entry));
                let reason = match found {
                    Ok(found) if found.is_empty() => {
                        compared.same += 1;
                        return Ok(());
                    }
                    Ok(found) => found.join("; "),
                    Err(error)
                        if error.kind() == io::ErrorKind::PermissionDenied
                            && !comparison.privileged =>
                    {
                        compared.unseen += 1;
                        return Ok(());
                    }
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        "was not restored".into()
                    }
                    Err(error) => format!("what was restored cannot be read: {error}"),
                };
                let (snapshot, path) = (snapshot.id.to_string(), path.clone());
                compared.different.push(DamagedPath { snapshot, path, reason });
                Ok(())
            });
        // What was read is read: a session that is not closed lapses.
        let _ = access.repository.close_session(&session);
        all.map(|()| compared)
    }
}

struct Comparison<'a> {
    ids: &'a IdKeys,
    nodes: Nodes,
    privileged: bool,
    buffer: Vec<u8>,
}

impl Comparison<'_> {
    /// Everything in which what is called `name` in `dir` differs from its entry.
    fn differences(&mut self, dir: &Dir, name: &[u8], entry: &Entry) -> io::Result<Vec<String>> {
        let is_device =
            matches!(entry.kind, EntryKind::CharDevice { .. } | EntryKind::BlockDevice { .. });
        if is_device && !self.privileged {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let name = Name::new(name)?;
        let stat = dir.stat(name)?;
        if !is_kind(&stat, entry.kind) {
            return Ok(vec![format!("restored as {:?}", stat.kind)]);
        }
        let mut found = self.attributes_of_inode(&stat, entry);
        found.extend(self.lacking(&xattr::read_at(dir, name)?, entry));
        match entry.kind {
            EntryKind::File if stat.size != entry.size => {
                found.push(format!("{} bytes, restored {}", entry.size, stat.size));
            }
            EntryKind::File => found.extend(self.content(&dir.open_file(name)?.0, entry)?),
            EntryKind::Symlink => {
                let is_same =
                    matches!(&entry.content, Content::Inline(to) if *to == dir.read_link(name)?);
                found.extend((!is_same).then(|| "the link's target".to_owned()));
            }
            _ => {}
        }
        Ok(found)
    }

    fn attributes_of_inode(&self, stat: &Stat, entry: &Entry) -> Vec<String> {
        let mut found = Vec::new();
        let is_own = (stat.uid, stat.gid) == (entry.uid, entry.gid);
        if self.privileged && !is_own {
            found.push(format!(
                "owner {}:{}, restored {}:{}",
                entry.uid, entry.gid, stat.uid, stat.gid
            ));
        }
        // Who may not give a file away does not give it the rights of an owner either.
        let bits = if is_own { 0o7777 } else { 0o1777 };
        if entry.kind != EntryKind::Symlink && (stat.mode ^ entry.mode) & bits != 0 {
            found.push(format!("mode {:o}, restored {:o}", entry.mode, stat.mode));
        }
        // A file system that keeps times less exactly has no nanoseconds; the restore notes that.
        let is_coarse = stat.mtime.nanos == 0 && entry.mtime.secs.abs_diff(stat.mtime.secs) < 2;
        if (stat.mtime.secs, stat.mtime.nanos) != (entry.mtime.secs, entry.mtime.nanos)
            && !is_coarse
        {
            let (one, other) = (entry.mtime, stat.mtime);
            found.push(format!(
                "modified {}.{:09}, restored {}.{:09}",
                one.secs, one.nanos, other.secs, other.nanos
            ));
        }
        found
    }

    /// The attributes that it should have and has not; a file system may give others of its own.
    fn lacking(&self, there: &[Xattr], entry: &Entry) -> Vec<String> {
        let Content::Inline(bytes) = &entry.attributes else { return Vec::new() };
        let Ok(attributes) = Attributes::decode(bytes) else { return Vec::new() };
        let for_root =
            |name: &[u8]| name.starts_with(b"security.") || name.starts_with(b"trusted.");
        attributes
            .iter()
            .filter(|(name, _)| self.privileged || !for_root(name))
            .filter(|(name, value)| {
                !there.iter().any(|one| one.name == *name && one.value == *value)
            })
            .map(|(name, _)| format!("attribute {}", name.escape_ascii()))
            .collect()
    }

    /// Reads a file and says if it is not what the ids of its chunks stand for.
    fn content(&mut self, file: &File, entry: &Entry) -> io::Result<Option<String>> {
        page_cache::let_go(file, 0, i64::MAX as u64);
        let Ok(layout) = Layout::of(entry) else { return Ok(Some("its extents".to_owned())) };
        let differs =
            |position: u64| Some(format!("content, at or after byte {position} of its data"));
        if let Content::Inline(bytes) = &entry.content {
            read(file, &layout, 0, bytes.len(), &mut self.buffer)?;
            return Ok(if self.buffer == *bytes { None } else { differs(0) });
        }
        let mut chunks = ContentReader::new(&mut self.nodes, &entry.content);
        let mut position = 0;
        while let Some(chunk) =
            chunks.next().map_err(EngineError::from).map_err(io::Error::other)?
        {
            read(file, &layout, position, chunk.len_bytes as usize, &mut self.buffer)?;
            if self.ids.chunk_id(&self.buffer) != chunk.id {
                return Ok(differs(position));
            }
            position += u64::from(chunk.len_bytes);
        }
        Ok(None)
    }
}

/// Reads so many bytes of a content's data from its file.
fn read(
    file: &File,
    layout: &Layout,
    position: u64,
    len: usize,
    buffer: &mut Vec<u8>,
) -> io::Result<()> {
    buffer.clear();
    buffer.resize(len, 0);
    let mut places = layout.places(position, len).into_iter();
    places.try_for_each(|(range, at)| file.read_exact_at(&mut buffer[range], at))
}

fn is_kind(stat: &Stat, kind: EntryKind) -> bool {
    let is_device = |major, minor| (stat.rdev.major, stat.rdev.minor) == (major, minor);
    match kind {
        EntryKind::File => stat.kind == FileKind::File,
        EntryKind::Directory => stat.kind == FileKind::Dir,
        EntryKind::Symlink => stat.kind == FileKind::Symlink,
        EntryKind::Fifo => stat.kind == FileKind::Fifo,
        EntryKind::Socket => stat.kind == FileKind::Socket,
        EntryKind::CharDevice { major, minor } => {
            stat.kind == FileKind::CharDevice && is_device(major, minor)
        }
        EntryKind::BlockDevice { major, minor } => {
            stat.kind == FileKind::BlockDevice && is_device(major, minor)
        }
    }
}
