//! Writers: make entries at the target.
//!
//! For a small file that is: create, write, owner, time; mode and closing come later ([`settle`](super::settle)).
//! An owner that would not change is left out.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};
use holdall_format::SessionId;
use holdall_meter::StageMeter;
use holdall_sys::{DeviceNumber, FileKind, Name, Stat};
use holdall_tree::{Content, EntryKind};

use super::attributes::{Finish, Last, Subject};
use super::below::{self, LastBelow};
use super::chunks::Chunks;
use super::content::Filling;
use super::context::{Context, add};
use super::directory::OpenDirectory;
use super::links::{GroupPlace, Membership};
use super::notes::Note;
use super::order::Chunk;
use super::place::{self, Made, Place};
use super::reader::Reader;
use super::settle::Whole;
use super::unfinished;
use super::window::{Batch, Item, Work};
use crate::error::is_damaged;
use crate::pipeline::concurrency::Member;
use crate::{EngineError, UnlockedRepository};

/// Makes what batches say. Each thread has its own.
pub(super) struct Writer<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) access: &'a UnlockedRepository,
    pub(super) session: SessionId,
    pub(super) chunks: &'a Chunks,
    /// Opened when a content is needed that no window brought.
    pub(super) reader: Option<Reader<'a>>,
    /// The directory that was last linked from.
    pub(super) linked_from: LastBelow,
    /// Where files go that are whole.
    pub(super) settle: Sender<Whole<'a>>,
}

/// An entry that was made.
enum Done<'a> {
    /// Wholly.
    Finished,
    /// It is settled later.
    Whole(Whole<'a>),
}

/// A name of a file that has others.
enum Joined<'a> {
    /// It is linked to one of them.
    Linked(Done<'a>),
    /// It has to be made on its own, as this member of its group.
    Apart(Membership),
}

/// Why an entry was not made.
enum Failure {
    /// There is something that is kept, or its directory could not be made.
    Skipped,
    /// There is something that is kept, and others of its group may be linked to it.
    AlreadyThere,
    /// It cannot be made or written.
    Write(&'static str, io::Error),
    /// What is stored of it is damaged.
    Stored(String),
    /// The restore cannot go on.
    Engine(EngineError),
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        if is_damaged(&error) { Self::Stored(error.to_string()) } else { Self::Engine(error) }
    }
}

fn cannot_make(error: io::Error) -> Failure {
    Failure::Write("it cannot be made", error)
}

fn cannot_write(error: io::Error) -> Failure {
    Failure::Write("it cannot be written", error)
}

impl<'a> Writer<'a> {
    /// Takes batches until there are no more. Also when the restore ends early, everything handed
    /// out is done: a later member of a hard-link group may wait for an earlier one.
    pub(super) fn run(
        &mut self,
        batches: &Receiver<Batch<'a>>,
        member: &Member<'_>,
        meter: &StageMeter,
    ) {
        loop {
            member.take_part();
            let Ok(batch) = meter.waiting_in(|| batches.recv()) else { return };
            for work in batch.work {
                let (items, bytes) = meter.working(|| self.work(work, &batch.chunks));
                member.did(items, bytes);
            }
        }
    }

    /// Makes one piece of the work; returns the items that were made, or else the bytes of a large one.
    fn work(&mut self, work: Work<'a>, chunks: &[Chunk]) -> (u64, u64) {
        match work {
            Work::Directory(directory) => {
                if directory.open().is_none() {
                    add(&self.context.tally.skipped, 1);
                }
                self.context.run.advance(1, 0);
                (1, 0)
            }
            Work::Item(mut item) => {
                let (start, end) = (item.chunks.0 as usize, item.chunks.1 as usize);
                self.item(&mut item, chunks.get(start..end).unwrap_or_default());
                (1, 0)
            }
            Work::Piece { file, position, chunk } => {
                let Some(chunk) = chunks.get(chunk as usize) else { return (0, 0) };
                file.write(position, chunk);
                let bytes = chunk.as_ref().map_or(0, |bytes| bytes.len() as u64);
                self.context.run.advance(0, bytes);
                (0, bytes)
            }
        }
    }

    fn item(&mut self, item: &mut Item<'a>, chunks: &[Chunk]) {
        let since = self.context.failed_syncs();
        let made = self.make(item, chunks, since);
        let context = self.context;
        let is_there = matches!(made, Ok(_) | Err(Failure::AlreadyThere));
        let (membership, path) = (item.membership, || item.directory.path(&item.name));
        match made {
            Ok(Done::Finished) => add(&context.tally.files, 1),
            Ok(Done::Whole(whole)) => whole.wait_in(&self.settle, context),
            Err(Failure::Skipped | Failure::AlreadyThere) => add(&context.tally.skipped, 1),
            Err(Failure::Write(what, error)) => context.write_failed(path(), what, &error),
            Err(Failure::Stored(reason)) => context.run.damage(&path(), reason),
            Err(Failure::Engine(error)) => context.fail(error),
        }
        context.links.first_is_done(membership, is_there);
        context.run.advance(1, item.entry.counted_bytes());
    }

    fn make(
        &mut self,
        item: &mut Item<'a>,
        chunks: &[Chunk],
        since: u64,
    ) -> Result<Done<'a>, Failure> {
        let Membership::Later(first) = item.membership else {
            return self.make_one(item, chunks, since);
        };
        item.membership = match self.join(item, first, since)? {
            Joined::Linked(linked) => return Ok(linked),
            Joined::Apart(membership) => membership,
        };
        let made = self.make_one(item, chunks, since)?;
        self.context.note_copy(&|| item.directory.path(&item.name));
        Ok(made)
    }

    /// Links an entry to the first of its group, or to who stands in for it.
    fn join(
        &mut self,
        item: &Item<'a>,
        mut first: GroupPlace,
        since: u64,
    ) -> Result<Joined<'a>, Failure> {
        let (open, name) = open_at(item)?;
        let path = || item.directory.path_below_target(&item.name);
        loop {
            if let Some(place) = self.link(item, &open, name, first)? {
                let whole = Self::whole(item, Membership::Later(first), place, None, since);
                return Ok(Joined::Linked(Done::Whole(whole)));
            }
            match self.context.links.succeed(first, path).map_err(cannot_make)? {
                Some(Membership::Later(other)) => first = other,
                other => return Ok(Joined::Apart(other.unwrap_or(Membership::Later(first)))),
            }
        }
    }

    fn make_one(
        &mut self,
        item: &Item<'a>,
        chunks: &[Chunk],
        since: u64,
    ) -> Result<Done<'a>, Failure> {
        let (open, name) = open_at(item)?;
        let special = |kind, major, minor| {
            self.special(item, &open, name, kind, DeviceNumber { major, minor })
                .map(|()| Done::Finished)
        };
        match item.entry.kind {
            EntryKind::File => self.file(item, &open, name, chunks, since).map(Done::Whole),
            EntryKind::Symlink => self.symlink(item, &open, name).map(|()| Done::Finished),
            EntryKind::Fifo => special(FileKind::Fifo, 0, 0),
            EntryKind::Socket => special(FileKind::Socket, 0, 0),
            EntryKind::CharDevice { major, minor } => special(FileKind::CharDevice, major, minor),
            EntryKind::BlockDevice { major, minor } => special(FileKind::BlockDevice, major, minor),
            EntryKind::Directory => Ok(Done::Finished),
        }
    }

    fn file(
        &mut self,
        item: &Item<'a>,
        open: &OpenDirectory<'_>,
        name: Name<'_>,
        chunks: &[Chunk],
        since: u64,
    ) -> Result<Whole<'a>, Failure> {
        // All of it must be there before anything makes room for it.
        if let Some(Err(reason)) = chunks.iter().find(|chunk| chunk.is_err()) {
            return Err(Failure::Stored(reason.clone()));
        }
        let create = |name: Name<'_>| open.dir.create_file(name, unfinished::MODE);
        let made = place::make(self.context, open, name, &item.entry, create);
        let (file, place) = made.map_err(cannot_make)?.new_one()?;
        let file = Arc::new(file);
        if let Err(failure) = self.fill(item, &file, chunks) {
            place.discard(self.context, &file, open.dir, name);
            return Err(failure);
        }
        let last = self.finish_but_last(item, open, &file);
        Ok(Self::whole(item, item.membership, place, Some((file, last)), since))
    }

    fn whole(
        item: &Item<'a>,
        membership: Membership,
        place: Place,
        file: Option<(Arc<File>, Last)>,
        since: u64,
    ) -> Whole<'a> {
        let bytes = file.as_ref().map_or(0, |_| item.entry.counted_bytes());
        let (directory, name) = (item.directory.clone(), item.name.clone());
        Whole { directory, name, place, file, bytes, membership, since }
    }

    fn fill(&mut self, item: &Item<'_>, file: &Arc<File>, chunks: &[Chunk]) -> Result<(), Failure> {
        let path = || item.directory.path(&item.name);
        let filling = Filling { context: self.context, file, layout: &item.layout, path: &path };
        let write = |position, bytes: &[u8]| filling.write(position, bytes).map_err(cannot_write);
        match &item.entry.content {
            Content::Inline(bytes) if bytes.is_empty() => {}
            Content::Inline(bytes) => {
                write(0, bytes)?;
            }
            // It was to be a link.
            content if chunks.is_empty() => {
                self.reader()?.each(content, |position, bytes| write(position, bytes).map(drop))?;
            }
            _ => {
                let mut position = 0;
                for bytes in chunks.iter().flatten() {
                    position += write(position, bytes)?;
                }
            }
        }
        filling.set_size(item.entry.size).map_err(cannot_write)
    }

    fn reader(&mut self) -> Result<&mut Reader<'a>, EngineError> {
        match &mut self.reader {
            Some(reader) => Ok(reader),
            none => Ok(none.insert(Reader::new(self.access, self.session, self.chunks)?)),
        }
    }

    fn symlink(
        &self,
        item: &Item<'_>,
        open: &OpenDirectory<'_>,
        name: Name<'_>,
    ) -> Result<(), Failure> {
        let Content::Inline(target) = &item.entry.content else {
            return Err(Failure::Stored("the link's target is not in its entry".to_owned()));
        };
        let create = |name: Name<'_>| open.dir.create_symlink(target, name);
        let made = place::make(self.context, open, name, &item.entry, create);
        let ((), place) = made.map_err(cannot_make)?.new_one()?;
        self.finish(item, open, name, &place)
    }

    fn special(
        &self,
        item: &Item<'_>,
        open: &OpenDirectory<'_>,
        name: Name<'_>,
        kind: FileKind,
        number: DeviceNumber,
    ) -> Result<(), Failure> {
        let create = |name: Name<'_>| open.dir.create_special(name, kind, number, unfinished::MODE);
        let place = match place::make(self.context, open, name, &item.entry, create) {
            Ok(made) => made.new_one()?.1,
            Err(error)
                if kind.is_device()
                    && self.context.ordinary()
                    && error.kind() == io::ErrorKind::PermissionDenied =>
            {
                self.context.note(Note::Device, &|| item.directory.path(&item.name));
                return Err(Failure::Skipped);
            }
            Err(error) => return Err(cannot_make(error)),
        };
        self.finish(item, open, name, &place)
    }

    /// Sets all metadata of a file but the last.
    fn finish_but_last(&self, item: &Item<'_>, open: &OpenDirectory<'_>, file: &File) -> Last {
        let path = || item.directory.path(&item.name);
        self.finishing(item, open, Subject::Open(file.as_fd()), &path).apply_but_last()
    }

    /// Finishes what has no content to lose. It gets the last of its metadata at its own name: what is beside
    /// another never looks finished.
    fn finish(
        &self,
        item: &Item<'_>,
        open: &OpenDirectory<'_>,
        name: Name<'_>,
        place: &Place,
    ) -> Result<(), Failure> {
        let path = || item.directory.path(&item.name);
        let subject = |name| Subject::Named(open.dir, name);
        let last = self.finishing(item, open, subject(place.name(name)), &path).apply_but_last();
        place.keep(open.dir, name).map_err(cannot_make)?;
        last.apply(self.context, subject(name), &path);
        Ok(())
    }

    fn finishing<'f>(
        &self,
        item: &'f Item<'_>,
        open: &OpenDirectory<'_>,
        subject: Subject<'f>,
        path: &'f dyn Fn() -> Vec<u8>,
    ) -> Finish<'f>
    where
        'a: 'f,
    {
        Finish {
            context: self.context,
            subject,
            entry: &item.entry,
            pristine: open.pristine,
            device: open.device,
            path,
        }
    }

    /// Links an entry to the first of its group; `None` if it must be made on its own.
    fn link(
        &mut self,
        item: &Item<'a>,
        open: &OpenDirectory<'_>,
        name: Name<'_>,
        place: GroupPlace,
    ) -> Result<Option<Place>, Failure> {
        let mut tried = None;
        // One that replaces something is moved when it is on the disk, perhaps just now.
        while let Some(first) = self.context.links.wait(place)
            && tried.as_ref() != Some(&first)
        {
            match self.link_to(&first, item, open, name) {
                Ok(Some(Made::New((), place))) => return Ok(Some(place)),
                Ok(Some(Made::Kept { .. })) => return Err(Failure::Skipped),
                Ok(None) => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::NotFound => tried = Some(first),
                Err(error) if may_be_copied(&error) => return Ok(None),
                Err(error) => return Err(cannot_make(error)),
            }
        }
        Ok(None)
    }

    /// Links an entry to what is at that path below the target; `None` if it cannot be reached.
    fn link_to(
        &mut self,
        first: &[u8],
        item: &Item<'_>,
        open: &OpenDirectory<'_>,
        name: Name<'_>,
    ) -> io::Result<Option<Made<()>>> {
        let (directory, first) = below::split(first);
        let Ok(first) = Name::new(first) else { return Ok(None) };
        // Its directory may be closed to an ordinary user already.
        let Ok(from) = self.linked_from.open(&self.context.root, directory) else {
            return Ok(None);
        };
        let create = |name: Name<'_>| open.dir.link_from(from, first, name);
        let made = place::make(self.context, open, name, &item.entry, create)?;
        if matches!(made, Made::Kept { .. }) {
            let is_one = |a: Stat, b: Stat| (a.device, a.inode) == (b.device, b.inode);
            if !is_one(from.as_dir().stat(first)?, open.dir.as_dir().stat(name)?) {
                self.context.note_apart(&|| item.directory.path(&item.name));
            }
        }
        Ok(Some(made))
    }
}

/// Where an entry is to be made.
fn open_at<'i>(item: &'i Item<'_>) -> Result<(OpenDirectory<'i>, Name<'i>), Failure> {
    let open = item.directory.open().ok_or(Failure::Skipped)?;
    let name = Name::new(&item.name).map_err(|error| cannot_make(error.into()))?;
    Ok((open, name))
}

impl<T> Made<T> {
    /// What was made, and where.
    fn new_one(self) -> Result<(T, Place), Failure> {
        match self {
            Self::New(made, place) => Ok((made, place)),
            Self::Kept { is_stored: true } => Err(Failure::AlreadyThere),
            Self::Kept { is_stored: false } => Err(Failure::Skipped),
        }
    }
}

/// Whether a link failed for a reason for which a copy does not.
fn may_be_copied(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::CrossesDevices
            | io::ErrorKind::TooManyLinks
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::Unsupported
    )
}
