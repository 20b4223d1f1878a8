//! Entries: what is known of a path beside a file's content, and everything that is no file.

use std::io;
use std::sync::Arc;

use holdall_sys::xattr::{self, Xattr};
use holdall_sys::{Dir, FileKind, Name, Stat, Timestamp, host};
use holdall_tree::{ATTRIBUTES_INLINE_MAX_BYTES, Attributes, Content, Entry, PathKey};

use super::{JobReader, send};
use crate::EngineError;
use crate::backup::content::Bytestream;
use crate::backup::describe::{kind_of, time};
use crate::pipeline::budget::Grant;
use crate::restore::SIDE_CONTENT_MAX_BYTES;

impl JobReader<'_> {
    /// Puts what was read of a path's attributes into its entry. Where they are not to be had, that is
    /// told; the rest is stored, and read again next time.
    pub(super) fn attributes_or_problem(
        &mut self,
        path: &PathKey,
        entry: &mut Entry,
        read: io::Result<Vec<Xattr>>,
        grant: &Arc<Grant>,
    ) -> Result<(), EngineError> {
        let kept = match read {
            Ok(attributes) => self.attributes(entry, attributes, grant)?,
            Err(error) => Err(error),
        };
        if let Err(error) = kept {
            entry.unsettled = true;
            self.reading.shared.left_out(path, "its attributes were not read", &error)?;
        }
        Ok(())
    }

    pub(super) fn attributes(
        &mut self,
        entry: &mut Entry,
        attributes: Vec<Xattr>,
        grant: &Arc<Grant>,
    ) -> Result<io::Result<()>, EngineError> {
        if attributes.is_empty() {
            return Ok(Ok(()));
        }
        let pairs = attributes.into_iter().map(|xattr| (xattr.name, xattr.value)).collect();
        let encoded = match Attributes::new(pairs) {
            Ok(attributes) => attributes.encode(),
            Err(error) => return Ok(Err(io::Error::other(error))),
        };
        if encoded.len() as u64 > SIDE_CONTENT_MAX_BYTES {
            let (has, most) = (encoded.len() >> 20, SIDE_CONTENT_MAX_BYTES >> 20);
            let reason = format!("they take {has} MiB, and a restore takes {most} at most");
            return Ok(Err(io::Error::other(reason)));
        }
        Ok(self
            .inline_or_cut(encoded, ATTRIBUTES_INLINE_MAX_BYTES, grant)?
            .map(|content| entry.attributes = content))
    }

    pub(super) fn inline_or_cut(
        &mut self,
        bytes: Vec<u8>,
        inline_max_bytes: usize,
        grant: &Arc<Grant>,
    ) -> Result<io::Result<Content>, EngineError> {
        if bytes.len() <= inline_max_bytes {
            return Ok(Ok(Content::Inline(bytes)));
        }
        self.cut(&mut &bytes[..], grant)
    }

    pub(super) fn cut(
        &mut self,
        stream: &mut dyn Bytestream,
        grant: &Arc<Grant>,
    ) -> Result<io::Result<Content>, EngineError> {
        // What was read before goes first, so that entries stay behind what they refer to.
        self.flush(grant)?;
        let results = &self.results;
        self.cutter.cut(stream, &mut |pieces| send(results, pieces))
    }

    pub(super) fn directory(
        &mut self,
        path: &PathKey,
        dir: &Dir,
        stat: &Stat,
        grant: &Arc<Grant>,
    ) -> Result<io::Result<Entry>, EngineError> {
        let mut entry = self.describe(stat);
        entry.unsettled = self.unsettled(stat.ctime, host::now());
        let attributes = self.reading.meters.read.working(|| xattr::read_fd(dir));
        self.attributes_or_problem(path, &mut entry, attributes, grant)?;
        Ok(Ok(entry))
    }

    /// An entry that lacks what could not be read, so that it is read again next time.
    pub(super) fn described_only(&self, stat: &Stat) -> Entry {
        let mut entry = self.describe(stat);
        entry.unsettled = true;
        entry
    }

    /// A symbolic link, fifo, socket or device, or a directory that is not entered.
    pub(super) fn other(
        &mut self,
        path: &PathKey,
        dir: &Dir,
        name: Name<'_>,
        stat: &Stat,
        grant: &Arc<Grant>,
    ) -> Result<io::Result<Entry>, EngineError> {
        let mut entry = self.describe(stat);
        entry.unsettled = self.unsettled(stat.ctime, host::now());
        let read = self.reading.meters.read.working(|| {
            if stat.kind == FileKind::Symlink {
                entry.content = Content::Inline(dir.read_link(name)?);
            }
            let attributes = xattr::read_at(dir, name);
            // Nothing of what is gone by now is stored.
            if attributes.is_err() {
                dir.stat(name)?;
            }
            Ok(attributes)
        });
        match read {
            Ok(attributes) => {
                self.attributes_or_problem(path, &mut entry, attributes, grant)?;
                Ok(Ok(entry))
            }
            Err(error) => Ok(Err(error)),
        }
    }

    pub(super) fn unsettled(&self, ctime: Timestamp, now: Timestamp) -> bool {
        ctime.secs >= now.secs.saturating_sub(self.reading.settling_seconds)
    }

    pub(super) fn describe(&self, stat: &Stat) -> Entry {
        let owners = &self.reading.owners;
        let mut entry = Entry::empty(kind_of(stat));
        entry.mode = stat.mode;
        entry.uid = stat.uid;
        entry.gid = stat.gid;
        (entry.user, entry.group) = owners.names(stat);
        entry.mtime = time(stat.mtime);
        entry.ctime = time(stat.ctime);
        entry.size = if stat.kind == FileKind::File { stat.size } else { 0 };
        entry.inode = stat.inode;
        entry.hardlink = self.reading.mounts.hardlink_group(self.reading.keys, stat);
        entry
    }
}
