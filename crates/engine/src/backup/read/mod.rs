//! Reading: files are opened, read, cut, hashed and described, each job by one of a few threads.

mod entries;
mod files;

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use crossbeam_channel::{Receiver, Sender};
use holdall_crypto::RepositoryKeys;
use holdall_sys::{Dir, FileKind, Name, Stat, Timestamp, host};
use holdall_tree::{Chunker, Content, Entry, PathKey};

use super::content::Cutter;
use super::describe::{Mounts, Owners};
use super::job::{Job, Planned, Work};
use super::meters::Meters;
use super::unread::Unread;
use crate::EngineError;
use crate::backup::job::SMALL_FILE_BYTES;
use crate::pipeline::budget::Grant;
use crate::pipeline::concurrency::{Concurrency, Member};
use crate::storing::{LeftOut, Piece, Shared};

/// The least capacity of a job's buffer.
const BUFFER_MIN_BYTES: usize = 64 << 10;
/// Why a file is not stored that is a directory by now.
const BECAME_DIRECTORY: &str = "it became a directory while the backup ran";

/// What all reading threads share.
pub(super) struct Reading<'a> {
    pub(super) shared: &'a Shared<'a>,
    pub(super) unread: &'a Unread,
    pub(super) meters: &'a Meters,
    /// How many of the reading threads take part.
    pub(super) readers: &'a Concurrency<'a>,
    pub(super) keys: &'a RepositoryKeys,
    pub(super) chunker: Chunker,
    pub(super) inline_limit_bytes: usize,
    pub(super) owners: Owners,
    pub(super) mounts: Mounts,
    pub(super) settling_seconds: i64,
}

/// A reading thread.
pub(super) struct Reader<'a> {
    reading: &'a Reading<'a>,
    member: Member<'a>,
    jobs: Receiver<Job>,
    /// Where the results of the job at hand go. That this ends says that the job is done, so that it
    /// stays here when reading fails.
    results: Option<Sender<Vec<Piece>>>,
}

impl<'a> Reader<'a> {
    /// The reading thread of that number, from 0.
    pub(super) fn new(reading: &'a Reading<'a>, number: usize, jobs: Receiver<Job>) -> Self {
        Self { reading, member: reading.readers.member(number), jobs, results: None }
    }

    /// Reads jobs until there are no more: the body of the thread.
    ///
    /// # Errors
    /// [`EngineError::Interrupted`] if the run ended; what cannot be read is a problem, no error.
    pub(super) fn run(&mut self) -> Result<(), EngineError> {
        loop {
            self.member.take_part();
            let next = self.reading.meters.read.waiting_in(|| self.jobs.recv());
            let Ok(job) = next else { return Ok(()) };
            self.results = Some(job.results.clone());
            JobReader::new(self.reading, &job).read(job.items)?;
            self.results = None;
        }
    }
}

/// Reads one job.
struct JobReader<'a> {
    reading: &'a Reading<'a>,
    cutter: Cutter<'a>,
    results: Sender<Vec<Piece>>,
    pieces: Vec<Piece>,
    /// Small files' bytes since the last flush, before they are named.
    buffer: Vec<u8>,
    small: Vec<SmallFile>,
    /// Bytes of small files that were handed on.
    small_bytes: usize,
    /// When the job was begun: what was changed since is not settled.
    begun: Timestamp,
}

/// A small file whose bytes lie in the buffer.
struct SmallFile {
    at_piece: usize,
    len_bytes: usize,
}

impl<'a> JobReader<'a> {
    fn new(reading: &'a Reading<'a>, job: &Job) -> Self {
        let cutter = Cutter {
            ids: reading.keys.ids(),
            chunker: &reading.chunker,
            boundary_key: *reading.keys.boundary_key(),
            shared: reading.shared,
            meters: reading.meters,
            readers: reading.readers,
            job: job.number,
        };
        Self {
            reading,
            cutter,
            results: job.results.clone(),
            pieces: Vec::with_capacity(job.items.len() * 2),
            buffer: Vec::new(),
            small: Vec::new(),
            small_bytes: 0,
            begun: host::now(),
        }
    }

    fn read(mut self, items: Vec<Planned>) -> Result<(), EngineError> {
        let small_bytes: u64 = items.iter().map(small_file_bytes).sum();
        let grant = self.cutter.grant(usize::try_from(small_bytes).unwrap_or(usize::MAX))?;
        // Few different capacities, so that the allocator can use freed buffers again.
        let capacity = usize::try_from(small_bytes).unwrap_or(0).next_power_of_two();
        self.buffer.reserve(capacity.max(BUFFER_MIN_BYTES));
        for item in items {
            self.reading.shared.check()?;
            self.read_item(item, &grant)?;
        }
        self.flush(&grant)?;
        // What could not be opened, or is shorter now, left less.
        grant.shrink_to(self.small_bytes);
        Ok(())
    }

    fn read_item(&mut self, item: Planned, grant: &Arc<Grant>) -> Result<(), EngineError> {
        let bytes = small_file_bytes(&item);
        let Planned { path, change, work } = item;
        let entry = match work {
            Work::Keep(entry) => {
                self.pieces.push(Piece::Entry { path, entry, change });
                return Ok(());
            }
            Work::Adopt(leaf) => {
                self.pieces.push(Piece::Leaf(leaf));
                return Ok(());
            }
            Work::LeaveOut { rule, too_large_bytes } => {
                self.pieces.push(Piece::LeftOut(LeftOut { path, rule, too_large_bytes }));
                return Ok(());
            }
            Work::StatOnly { stat } => Ok(self.described_only(&stat)),
            Work::Pipe { pipe, stat } => self.pipe(&pipe, &stat, grant)?,
            Work::Produce { producer, stat } => Ok(self.produced(&path, &*producer, &stat, grant)?),
            Work::Directory { dir, stat, .. } => self.directory(&path, &dir, &stat, grant)?,
            Work::Read { dir, name, stat } => {
                match Name::new(name.as_deref().unwrap_or(path.name())) {
                    Ok(name) => match self.named(&path, (&dir, name), &stat, grant)? {
                        Err(error) if self.has_vanished(&path, &dir, &stat, &error) => {
                            self.reading.shared.run.vanished(&path.to_absolute());
                            return Ok(());
                        }
                        read => read,
                    },
                    Err(error) => Err(error.into()),
                }
            }
        };
        self.reading.readers.did(1, bytes);
        match entry {
            Ok(entry) => self.pieces.push(Piece::Entry { path, entry: Box::new(entry), change }),
            Err(error) => {
                not_read(self.reading.shared, &path, &error)?;
                self.reading.unread.note(&path)?;
            }
        }
        Ok(())
    }

    /// Whether something that no one named is gone, and is no folder, which may be one of a disk.
    fn has_vanished(&self, path: &PathKey, dir: &Dir, seen: &Stat, error: &io::Error) -> bool {
        seen.kind != FileKind::Dir
            && !self.reading.unread.is_named(path)
            && has_vanished(dir, path.name(), error)
    }

    /// Reads what has this name; looks again, once, if it is of another kind than `stat` says.
    fn named(
        &mut self,
        path: &PathKey,
        (dir, name): (&Dir, Name<'_>),
        stat: &Stat,
        grant: &Arc<Grant>,
    ) -> Result<io::Result<Entry>, EngineError> {
        if is_small(stat)
            && let Some(entry) = self.small_file_as_seen(dir, name, stat, grant)?
        {
            return Ok(Ok(entry));
        }
        let mut as_kind = |stat: &Stat| match stat.kind {
            FileKind::File => self.file(path, dir, name, grant),
            _ => self.other(path, dir, name, stat, grant),
        };
        let read = as_kind(stat)?;
        if read.is_ok() {
            return Ok(read);
        }
        match dir.stat(name) {
            Ok(now) if now.kind == stat.kind => Ok(read),
            Ok(now) if now.kind == FileKind::Dir => Ok(Err(io::Error::other(BECAME_DIRECTORY))),
            Ok(now) => as_kind(&now),
            Err(error) => Ok(Err(error)),
        }
    }

    /// Names the small files read so far and hands everything on.
    fn flush(&mut self, grant: &Arc<Grant>) -> Result<(), EngineError> {
        let pieces = std::mem::take(&mut self.pieces);
        if self.small.is_empty() {
            self.buffer.clear();
            return send(&self.results, pieces);
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        self.small_bytes += buffer.len();
        if buffer.len() < buffer.capacity() / 4 {
            buffer.shrink_to_fit();
        }
        let mut bytes = Bytes::from(buffer);
        let mut small = std::mem::take(&mut self.small).into_iter().peekable();
        let mut named = Vec::with_capacity(pieces.len() * 2);
        self.reading.meters.hash.working(|| {
            for (at, mut piece) in pieces.into_iter().enumerate() {
                while let Some(file) = small.next_if(|file| file.at_piece == at) {
                    let content = bytes.split_to(file.len_bytes.min(bytes.len()));
                    let chunk = self.cutter.chunk(content, grant, &mut named);
                    if let Piece::Entry { entry, .. } = &mut piece {
                        entry.content = Content::Chunks(vec![chunk]);
                    }
                }
                named.push(piece);
            }
        });
        send(&self.results, named)
    }
}

/// Notes why something that was listed a moment ago is missing.
///
/// # Errors
/// Those of [`Shared::left_out`].
pub(super) fn not_read(
    shared: &Shared<'_>,
    path: &PathKey,
    error: &io::Error,
) -> Result<(), EngineError> {
    if error.kind() == io::ErrorKind::NotFound {
        shared.run.problem(&path.to_absolute(), "not read: it vanished while the backup ran");
        return Ok(());
    }
    shared.left_out(path, "not read", error)
}

/// Whether what could not be read is gone from a folder that is still there itself.
pub(super) fn has_vanished(dir: &Dir, name: &[u8], error: &io::Error) -> bool {
    let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    let is_gone = |name| dir.stat(name).is_err_and(|error| is_missing(&error));
    is_missing(error)
        && Name::new(name).is_ok_and(is_gone)
        && dir.stat_self().is_ok_and(|dir| dir.nlink > 0)
}

fn send(results: &Sender<Vec<Piece>>, pieces: Vec<Piece>) -> Result<(), EngineError> {
    if pieces.is_empty() {
        return Ok(());
    }
    // Nobody takes the results any more when the run has failed elsewhere.
    results.send(pieces).map_err(|_| EngineError::Interrupted)
}

/// Bytes of a job's buffer that an item takes.
fn small_file_bytes(item: &Planned) -> u64 {
    match &item.work {
        Work::Read { stat, .. } if stat.kind == FileKind::File && stat.size <= SMALL_FILE_BYTES => {
            stat.size
        }
        _ => 0,
    }
}

/// Whether a file is read whole.
fn is_small(stat: &Stat) -> bool {
    stat.kind == FileKind::File && stat.size <= SMALL_FILE_BYTES && !stat.may_have_holes()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::Run;
    use crate::pipeline::budget::Budget;
    use crate::storing::Change;
    use crate::test_world::World;

    /// What becomes of a file that is changed between being seen and being read.
    fn read_after(change: impl FnOnce(&Path)) -> Entry {
        let (world, run, folder) = (World::new(), Run::new(), tempfile::tempdir().unwrap());
        let path = folder.path().join("file");
        fs::write(&path, "what was seen").unwrap();
        let dir =
            Arc::new(Dir::open_absolute(folder.path().as_os_str().as_encoded_bytes()).unwrap());
        let stat = dir.stat(Name::new(b"file").unwrap()).unwrap();
        change(&path);
        let shared = Shared::new(&run, Budget::new(1 << 20, 1 << 20));
        let unread = Unread::none_of(&[]);
        let (meters, keys) = (Meters::new(1, 1, 1, 1), &*world.access.keys);
        let stages = [&meters.read];
        let readers = Concurrency::new(&stages, 1, 1, 1);
        let reading = Reading {
            shared: &shared,
            unread: &unread,
            meters: &meters,
            readers: &readers,
            keys,
            chunker: Chunker::new(keys.chunker_key()),
            inline_limit_bytes: 512,
            owners: Owners::load(),
            mounts: Mounts::read(),
            settling_seconds: 2,
        };
        let (results, pieces) = crossbeam_channel::unbounded();
        let item = Planned {
            path: PathKey::from_absolute(b"/file").unwrap(),
            change: Change::New,
            work: Work::Read { dir, name: None, stat },
        };
        let job = Job { number: 0, items: vec![item], results };
        let (to_reader, jobs) = crossbeam_channel::unbounded();
        to_reader.send(job).unwrap();
        drop(to_reader);
        Reader::new(&reading, 0, jobs).run().unwrap();
        let entries = pieces.iter().flatten().filter_map(|piece| match piece {
            Piece::Entry { entry, .. } => Some(*entry),
            _ => None,
        });
        let entries: Vec<Entry> = entries.collect();
        assert_eq!((entries.len(), run.problem_count()), (1, 0));
        entries.into_iter().next().unwrap()
    }

    fn content(entry: &Entry) -> &[u8] {
        let Content::Inline(bytes) = &entry.content else { panic!("not inline") };
        assert_eq!(entry.size, bytes.len() as u64);
        bytes
    }

    #[test]
    fn a_file_is_recorded_as_it_is_when_it_is_read_and_not_as_it_was_seen() {
        assert_eq!(content(&read_after(|_| {})), b"what was seen");
        let longer = read_after(|path| fs::write(path, "what was written since").unwrap());
        assert_eq!(content(&longer), b"what was written since");
        let shorter = read_after(|path| fs::write(path, "short").unwrap());
        assert_eq!(content(&shorter), b"short");
        let mode = |path: &Path| {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(path, fs::Permissions::from_mode(0o640)).unwrap();
        };
        let entry = read_after(mode);
        assert_eq!((entry.mode, content(&entry)), (0o640, &b"what was seen"[..]));
        let replaced = read_after(|path| {
            let other = path.with_extension("other");
            fs::write(&other, "another file!").unwrap();
            fs::rename(&other, path).unwrap();
        });
        assert_eq!(content(&replaced), b"another file!");
    }
}
