//! Files: each is read in one of three ways, into its entry, whole, or in chunks.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use holdall_sys::reading::append_content;
use holdall_sys::sparse::Extent;
use holdall_sys::{Dir, Name, Stat, host, pipe, xattr};
use holdall_tree::{Content, EXTENTS_INLINE_MAX_BYTES, Entry, Extents, PathKey};

use super::{JobReader, SmallFile};
use crate::EngineError;
use crate::backup::content::FileStream;
use crate::backup::file_data::FileData;
use crate::backup::job::SMALL_FILE_BYTES;
use crate::backup::produced::{self, Produced, Producer};
use crate::backup::to_end::{self, Limited, Pipe, ToEnd};
use crate::pipeline::budget::Grant;

impl JobReader<'_> {
    /// A file, looked at before it is read and behind.
    pub(super) fn file(
        &mut self,
        path: &PathKey,
        dir: &Dir,
        name: Name<'_>,
        grant: &Arc<Grant>,
    ) -> Result<io::Result<Entry>, EngineError> {
        let now = host::now();
        let opened = self.reading.meters.read.working(|| {
            let (file, stat) = dir.open_file(name)?;
            let attributes = xattr::read_fd(&file);
            Ok::<_, io::Error>((file, stat, attributes))
        });
        let (file, stat, attributes) = match opened {
            Ok(opened) => opened,
            Err(error) => return Ok(Err(error)),
        };
        let mut entry = self.describe(&stat);
        self.attributes_or_problem(path, &mut entry, attributes, grant)?;
        let data = match self.reading.meters.read.working(|| FileData::find(&file, &stat)) {
            Ok(data) => data,
            Err(error) => return Ok(Err(error)),
        };
        let read = if stat.size == 0 {
            self.read_to_end_of(Limited::new(&file), &mut entry, grant)?
        } else if stat.size > SMALL_FILE_BYTES || data.has_holes() {
            self.large_file(&file, data, &mut entry, grant)?
        } else {
            self.small_file(&file, &stat, &mut entry)
        };
        if let Err(error) = read {
            return Ok(Err(error));
        }
        let after = holdall_sys::stat::of_fd(&file);
        let changed = after.as_ref().map_or(true, |after| {
            (after.size, after.mtime, after.ctime) != (stat.size, stat.mtime, stat.ctime)
        });
        if changed {
            self.reading.shared.run.changed(&path.to_absolute());
        }
        entry.unsettled |= changed || after.is_ok_and(|after| self.unsettled(after.ctime, now));
        Ok(Ok(entry))
    }

    /// A small file that is, behind reading it, as `seen` says: then what was read is what was seen,
    /// and it was asked for only once what it is. Nothing if it is not, or cannot be read.
    pub(super) fn small_file_as_seen(
        &mut self,
        dir: &Dir,
        name: Name<'_>,
        seen: &Stat,
        grant: &Arc<Grant>,
    ) -> Result<Option<Entry>, EngineError> {
        let read_meter = &self.reading.meters.read;
        let opened = read_meter.working(|| {
            let file = dir.open_unseen(name)?;
            let attributes = xattr::read_fd(&file)?;
            Ok::<_, io::Error>((file, attributes))
        });
        let Ok((file, attributes)) = opened else { return Ok(None) };
        let mut entry = self.describe(seen);
        if self.attributes(&mut entry, attributes, grant)?.is_err() {
            return Ok(None);
        }
        let (start, size) = (self.buffer.len(), usize::try_from(seen.size).unwrap_or(usize::MAX));
        let read = read_meter.working(|| {
            let read = append_content(&file, &mut self.buffer, size)?;
            Ok::<_, io::Error>((read, holdall_sys::stat::of_fd(&file)?))
        });
        match read {
            Ok((read, now)) if read == size && is_as_seen(seen, &now) && !has_more(&file, seen) => {
                self.keep_small(start, &mut entry);
                entry.unsettled = self.unsettled(now.ctime, self.begun);
                Ok(Some(entry))
            }
            _ => {
                self.buffer.truncate(start);
                Ok(None)
            }
        }
    }

    /// Keeps what the buffer has from `start` on as an entry's content.
    fn keep_small(&mut self, start: usize, entry: &mut Entry) {
        let read = self.buffer.len() - start;
        entry.size = read as u64;
        if read <= self.reading.inline_limit_bytes {
            entry.content = Content::Inline(self.buffer.split_off(start));
        } else {
            self.small.push(SmallFile { at_piece: self.pieces.len(), len_bytes: read });
        }
    }

    fn small_file(&mut self, file: &File, stat: &Stat, entry: &mut Entry) -> io::Result<()> {
        let start = self.buffer.len();
        let size = usize::try_from(stat.size).map_err(io::Error::other)?;
        let read_meter = &self.reading.meters.read;
        let read = read_meter.working(|| append_content(file, &mut self.buffer, size));
        // What a file has grown by is not what was looked at; nothing of one that cannot be read stays.
        let kept = read.as_ref().map_or(0, |read| size.min(*read));
        self.buffer.truncate(start + kept);
        read?;
        self.keep_small(start, entry);
        Ok(())
    }

    fn large_file(
        &mut self,
        file: &File,
        mut data: FileData,
        entry: &mut Entry,
        grant: &Arc<Grant>,
    ) -> Result<io::Result<()>, EngineError> {
        let mut stream = FileStream::new(file, &data);
        let cut = self.cut(&mut stream, grant)?;
        if let Some(end) = stream.cut_short_at {
            data.cut_short(end);
        }
        match cut {
            Ok(content) => entry.content = content,
            Err(error) => return Ok(Err(error)),
        }
        // The entry says what was read, not what was there before.
        entry.size = data.size_bytes;
        if data.has_holes() { self.extents(entry, &data.extents, grant) } else { Ok(Ok(())) }
    }

    /// A pipe, as a file with what comes through it. None is stored through which nothing came: who should have
    /// written to it failed, or was read before.
    pub(super) fn pipe(
        &mut self,
        pipe: &File,
        stat: &Stat,
        grant: &Arc<Grant>,
    ) -> Result<io::Result<Entry>, EngineError> {
        let shared = self.reading.shared;
        let stops = || shared.check().is_err();
        let mut entry = self.described_only(stat);
        let read = self.read_to_end_of(Pipe::new(pipe, &stops), &mut entry, grant)?;
        shared.check()?;
        Ok(match read {
            Ok(()) if entry.size == 0 => Err(io::Error::other("nothing came through this pipe")),
            read => read.map(|()| entry),
        })
    }

    /// What a program gives, as a file.
    ///
    /// # Errors
    /// [`EngineError::Path`] if the program does not give all of it: of such a run nothing is committed.
    pub(super) fn produced(
        &mut self,
        path: &PathKey,
        producer: &dyn Producer,
        stat: &Stat,
        grant: &Arc<Grant>,
    ) -> Result<Entry, EngineError> {
        let shared = self.reading.shared;
        let stops = || shared.check().is_err();
        let failed = |error: io::Error| produced::failed(&path.to_absolute(), &error);
        let Produced { pipe, finish } = producer.start().map_err(failed)?;
        pipe::never_block(&pipe).map_err(failed)?;
        let mut entry = self.described_only(stat);
        let read = self.read_to_end_of(Pipe::new(&pipe, &stops), &mut entry, grant)?;
        let ended = read.and_then(|()| finish());
        // Whoever was asked to end did not fail.
        shared.check()?;
        ended.map_err(failed)?;
        Ok(entry)
    }

    /// Reads something to its end of which nobody knows before how long it is.
    pub(super) fn read_to_end_of(
        &mut self,
        from: impl Read,
        entry: &mut Entry,
        grant: &Arc<Grant>,
    ) -> Result<io::Result<()>, EngineError> {
        let mut from = BufReader::with_capacity(to_end::BUFFER_BYTES, from);
        let (mut head, inline_limit) = (Vec::new(), self.reading.inline_limit_bytes);
        let begin = (&mut from).take(inline_limit as u64 + 1);
        let read = self.reading.meters.read.working(|| { begin }.read_to_end(&mut head));
        if let Err(error) = read {
            return Ok(Err(error));
        }
        if head.len() <= inline_limit {
            entry.size = head.len() as u64;
            entry.content = Content::Inline(head);
            return Ok(Ok(()));
        }
        let mut stream = ToEnd::new(io::Cursor::new(head).chain(from));
        let cut = self.cut(&mut stream, grant)?;
        entry.size = stream.read_bytes;
        Ok(cut.map(|content| entry.content = content))
    }

    /// Puts where a sparse file's data lies into its entry, or into chunks if that is much.
    fn extents(
        &mut self,
        entry: &mut Entry,
        extents: &[Extent],
        grant: &Arc<Grant>,
    ) -> Result<io::Result<()>, EngineError> {
        let pairs = extents.iter().map(|extent| (extent.offset, extent.len_bytes)).collect();
        let encoded = match Extents::new(pairs, entry.size) {
            Ok(extents) => extents.encode(),
            Err(error) => return Ok(Err(io::Error::other(error))),
        };
        Ok(self
            .inline_or_cut(encoded, EXTENTS_INLINE_MAX_BYTES, grant)?
            .map(|content| entry.extents = Some(content)))
    }
}

/// Whether a file may have content that was said to be empty. One look costs little beside opening it; some are not
/// read by single bytes.
fn has_more(file: &File, seen: &Stat) -> bool {
    seen.size == 0 && !file.read_at(&mut [0], 0).is_ok_and(|read| read == 0)
}

/// Whether a file is the one that was seen, and nothing of it changed since.
fn is_as_seen(seen: &Stat, now: &Stat) -> bool {
    let state =
        |stat: &Stat| (stat.kind, stat.device, stat.inode, stat.size, stat.mtime, stat.ctime);
    state(seen) == state(now)
}
