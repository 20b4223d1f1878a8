//! Reading: contents come from the other repository, are cut and hashed, each job by one of a few threads.

use std::io::{self, Read};

use crossbeam_channel::{Receiver, Sender};
use holdall_crypto::RepositoryKeys;
use holdall_tree::{ATTRIBUTES_INLINE_MAX_BYTES, Attributes, Chunker, Content, Entry, PathKey};

use super::entries::{Item, Job};
use super::foreign::Found;
use crate::EngineError;
use crate::backup::content::{Bytestream, Cutter};
use crate::backup::meters::Meters;
use crate::pipeline::concurrency::{Concurrency, Member};
use crate::restore::SIDE_CONTENT_MAX_BYTES;
use crate::storing::{Change, Piece, Shared};

/// So much is asked for at once of content that is longer than was expected.
const UNEXPECTED_BYTES: u64 = 64 << 10;

/// What all reading threads share.
pub(super) struct Reading<'a> {
    pub(super) shared: &'a Shared<'a>,
    pub(super) meters: &'a Meters,
    pub(super) readers: &'a Concurrency<'a>,
    pub(super) keys: &'a RepositoryKeys,
    pub(super) chunker: Chunker,
    pub(super) inline_limit_bytes: usize,
}

/// A reading thread.
pub(super) struct Reader<'a> {
    reading: &'a Reading<'a>,
    member: Member<'a>,
    jobs: Receiver<Job>,
    /// Where the results of the job at hand go. That this ends says that the job is done, so that it stays here when reading
    /// fails.
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
        Self { reading, cutter, results: job.results.clone(), pieces: Vec::new() }
    }

    fn read(mut self, items: Vec<Item>) -> Result<(), EngineError> {
        for item in items {
            self.reading.shared.check()?;
            match item {
                Item::Keep { path, entry } => {
                    let change = Change::Unmodified;
                    self.pieces.push(Piece::Entry { path, entry, change });
                }
                Item::Read { path, found, change } => {
                    if let Some(entry) = self.entry(&path, *found)? {
                        self.pieces.push(Piece::Entry { path, entry: Box::new(entry), change });
                    }
                }
            }
        }
        send(&self.results, self.pieces)
    }

    /// Reads what belongs to an entry; nothing for what cannot be read.
    fn entry(&mut self, path: &PathKey, found: Found) -> Result<Option<Entry>, EngineError> {
        let Found { mut entry, attributes, linked, content } = found;
        entry.hardlink = linked
            .map(|(device, inode)| self.reading.keys.hardlink_group(&device.to_le_bytes(), inode));
        if let Err(error) = self.attributes(&mut entry, attributes)? {
            self.reading.shared.left_out(path, "its attributes were not imported", &error)?;
        }
        let said_bytes = entry.size;
        if let Some(content) = content {
            if let Err(error) = self.content(&mut entry, content.bytes)? {
                self.reading.shared.left_out(path, "not imported", &error)?;
                return Ok(None);
            }
            if entry.size != said_bytes {
                let what = format!(
                    "imported with other content than it had: there are {} bytes of {said_bytes}",
                    entry.size
                );
                self.reading.shared.run.problem(&path.to_absolute(), what);
            }
        }
        self.reading.readers.did(1, 0);
        Ok(Some(entry))
    }

    fn attributes(
        &mut self,
        entry: &mut Entry,
        attributes: Vec<(Vec<u8>, Vec<u8>)>,
    ) -> Result<io::Result<()>, EngineError> {
        let encoded = match Attributes::new(attributes) {
            Ok(attributes) => attributes.encode(),
            Err(error) => return Ok(Err(io::Error::other(error))),
        };
        if encoded.len() as u64 > SIDE_CONTENT_MAX_BYTES {
            let reason = "they are larger than what a restore takes";
            return Ok(Err(io::Error::other(reason)));
        }
        if encoded.len() <= ATTRIBUTES_INLINE_MAX_BYTES {
            entry.attributes = Content::Inline(encoded);
            return Ok(Ok(()));
        }
        Ok(self.cut(&mut &encoded[..])?.map(|content| entry.attributes = content))
    }

    /// Reads the content of a file. The entry says what was read, whatever was expected.
    fn content(
        &mut self,
        entry: &mut Entry,
        mut bytes: Box<dyn Read + Send>,
    ) -> Result<io::Result<()>, EngineError> {
        let (mut head, inline_limit) = (Vec::new(), self.reading.inline_limit_bytes);
        let begin = (&mut bytes).take(inline_limit as u64 + 1);
        let read = self.reading.meters.read.working(|| { begin }.read_to_end(&mut head));
        if let Err(error) = read {
            return Ok(Err(error));
        }
        if head.len() <= inline_limit {
            entry.size = head.len() as u64;
            entry.content = Content::Inline(head);
            return Ok(Ok(()));
        }
        let from = io::Cursor::new(head).chain(bytes);
        let mut stream = Expected { from, left_bytes: entry.size, read_bytes: 0 };
        let cut = self.cut(&mut stream)?;
        entry.size = stream.read_bytes;
        Ok(cut.map(|content| entry.content = content))
    }

    fn cut(&mut self, stream: &mut dyn Bytestream) -> Result<io::Result<Content>, EngineError> {
        // What was read before goes first, so that entries stay behind what they refer to.
        send(&self.results, std::mem::take(&mut self.pieces))?;
        let results = &self.results;
        self.cutter.cut(stream, &mut |pieces| send(results, pieces))
    }
}

/// Content of which most likely so many bytes are left.
struct Expected<R> {
    from: R,
    left_bytes: u64,
    read_bytes: u64,
}

impl<R: Read> Bytestream for Expected<R> {
    fn expected_bytes(&self) -> u64 {
        if self.left_bytes == 0 { UNEXPECTED_BYTES } else { self.left_bytes }
    }

    fn append(&mut self, segment: &mut Vec<u8>, wanted: usize) -> io::Result<bool> {
        let read = (&mut self.from).take(wanted as u64).read_to_end(segment)?;
        self.read_bytes += read as u64;
        self.left_bytes = self.left_bytes.saturating_sub(read as u64);
        Ok(read < wanted)
    }
}

fn send(results: &Sender<Vec<Piece>>, pieces: Vec<Piece>) -> Result<(), EngineError> {
    if pieces.is_empty() {
        return Ok(());
    }
    // Nobody takes the results any more when the run has failed elsewhere.
    results.send(pieces).map_err(|_| EngineError::Interrupted)
}
