//! Restoring: a snapshot's tree becomes files again.
//!
//! The tree is walked in its own order, which is also the order in which blocks were filled: so
//! content is fetched in whole blocks, each about once, while what was fetched before is written.
//!
//! ```text
//! planner ── windows, in order ──────────────────> dispatcher ── batches ──> writers ── whole files ──> settler
//!    └────── orders ──> fetchers (fetch, open, check) ──┘ chunks of each window
//! ```
//!
//! Invariants: nothing is made outside the target, for every name is a checked single component in a
//! directory that is held open; memory is bounded by a few windows and a small cache, whatever the
//! size of files; entries are handed out in tree order, so whoever waits for an earlier entry waits
//! for something that goes on. What cannot be restored is reported, and not left half-made: who is
//! killed leaves what tells of itself that it is ([`unfinished`]), and what reads back otherwise than it was
//! written stays as the disk gives it.

mod attributes;
pub(crate) mod below;
mod beside;
mod chunk_cache;
mod chunks;
mod content;
mod context;
mod directory;
mod extra;
mod foreseen;
mod immutable;
mod in_place;
mod layout;
mod links;
mod mark;
mod newest_of_series;
mod notes;
mod options;
mod order;
mod place;
mod planner;
mod read_back;
mod reader;
mod settle;
mod split_file;
mod stored;
mod target;
mod times;
mod twins;
mod unfinished;
mod window;
mod write_behind;
mod writer;

use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use holdall_format::SessionId;
use holdall_meter::{Layer, StageMeter};
use holdall_protocol::SessionPurpose;
use holdall_sys::{memory, metadata};

pub use extra::{DeleteIn, Extra, Extras};
pub use in_place::InPlace;
pub use newest_of_series::newest_of_each_series;
pub use options::{Overwrite, RestoreOptions, RestoreSummary, Selected, Selection};

use crate::blocks::Nodes;
use crate::pipeline::concurrency::Concurrency;
use crate::pipeline::stage;
use crate::{EngineError, Run, Snapshot, UnlockedRepository};
use below::LastBelow;
use chunks::Chunks;
use context::Context;
use directory::Directory;
use foreseen::Foreseen;
use mark::Earlier;
use planner::Planner;
use settle::{Settler, Whole};
use stored::Stored;
use target::{Start, Target};
use unfinished::DIRECTORY_MODE;
use window::{Batch, Work, batches};
use writer::Writer;

pub(crate) use attributes::{ACCESS_LIST, DEFAULT_LIST};
pub(crate) use chunks::{Arriving as ChunkArriving, ChunkMeters, Chunks as ChunkSource, FETCHERS};
pub(crate) use layout::Layout;
pub(crate) use links::{Groups, Links, Membership, in_common};
pub(crate) use order::{Chunk, Order};
pub(crate) use reader::{Reader, SIDE_CONTENT_MAX_BYTES};
pub(crate) use window::{ClosedWindow, Ended, Outlets, Output, WINDOW_BYTES};

/// Windows that are planned and not written yet.
pub(crate) const WINDOWS_AHEAD: usize = 6;
/// Where a process may have less memory, a restore takes a quarter of its buffers and threads.
const LITTLE_MEMORY_BYTES: u64 = 160 << 20;
/// Writers at first; creating files on a local disk seldom gains from more.
const WRITERS: usize = 4;
/// Writers at most.
const MAX_WRITERS: usize = 16;

/// Whether a directory is at `path` in a snapshot.
///
/// # Errors
/// [`EngineError::NoPath`] if nothing is there; what keeps it from being looked up.
pub fn is_directory_at(
    access: &UnlockedRepository,
    snapshot: &Snapshot,
    path: &[u8],
) -> Result<bool, EngineError> {
    let session = access.repository.open_session(&SessionPurpose::Read)?.session;
    let found = Start::find(access, session, snapshot, Some(path));
    let _ = access.repository.close_session(&session);
    Ok(found?.only.is_none())
}

/// Restores a snapshot into the directory `target`, which is made if it is missing: the absolute
/// paths below it, or, where `path` is given, what is at that path itself: a directory's content
/// and metadata, or anything else under its name.
///
/// What cannot be restored is noted with [`Run::problem`] and the rest goes on.
///
/// # Errors
/// [`EngineError::Path`] if the target cannot be used or holds something; [`EngineError::NoPath`];
/// [`EngineError::Io`] if it is full; [`EngineError::Interrupted`]; [`EngineError::Repository`] if
/// the repository is lost. What was restored until then stays, without a half-written file.
pub fn restore(
    access: &UnlockedRepository,
    snapshot: &Snapshot,
    path: Option<&[u8]>,
    target: &Path,
    options: &RestoreOptions,
    run: &Run,
) -> Result<RestoreSummary, EngineError> {
    let started = Instant::now();
    let session = access.repository.open_session(&SessionPurpose::Read)?.session;
    let restored = restore_in(access, session, snapshot, path, target, options, run);
    // What was read is read: a session that is not closed lapses.
    let _ = access.repository.close_session(&session);
    let summary = restored?;
    Ok(RestoreSummary { duration_seconds: started.elapsed().as_secs_f64(), ..summary })
}

fn restore_in(
    access: &UnlockedRepository,
    session: SessionId,
    snapshot: &Snapshot,
    path: Option<&[u8]>,
    target: &Path,
    options: &RestoreOptions,
    run: &Run,
) -> Result<RestoreSummary, EngineError> {
    let start = Start::find(access, session, snapshot, path)?;
    let earlier = Earlier::find(target);
    let select = options.select.as_ref();
    let is_on_the_way =
        select.is_some_and(|select| select(&start.top.to_absolute(), true) != Selected::Yes);
    let Target { root, kept, was_empty } = target::open(target, options, is_on_the_way, &earlier)?;
    let is_known = run.items_expected.load(Ordering::Relaxed) > 0;
    if start.top.is_root() && start.only.is_none() && !is_known {
        run.items_expected.store(snapshot.secret.items, Ordering::Relaxed);
        run.bytes_expected.store(snapshot.secret.bytes, Ordering::Relaxed);
    }
    let links = Links::new(&access.cache, &session.to_string())
        .map_err(|error| EngineError::io("making a file in the cache folder", error))?;
    let again = root.as_fd().try_clone_to_owned();
    let again = again.map_err(|error| EngineError::io("opening the target again", error))?;
    let mut context =
        Context::new(options, run, again.into(), target, start.top.to_absolute(), links)?;
    context.earlier = earlier;
    context.stored = Some(Stored { access, session, root: snapshot.root });
    let chunks = Chunks::new(access, session);
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let writers = cores.min(WRITERS);
    let meters = Meters {
        plan: Arc::new(StageMeter::new("plan", Layer::ClientCpu, 1)),
        chunks: Arc::clone(&chunks.meters),
        write: Arc::new(StageMeter::new("write", Layer::TargetWrite, writers as u32)),
        settle: Arc::new(StageMeter::new("settle", Layer::TargetWrite, 1)),
    };
    let watched = meters.clone();
    run.watch_stages(move || watched.snapshot());
    if was_empty && start.top_entry.is_some() {
        // Where that is not allowed, only who resumes this after it was killed finds it otherwise.
        let _ = metadata::set_mode(&root, DIRECTORY_MODE);
    }
    let settler = Settler::new(&context, target, &meters.settle);
    let settler = settler
        .map_err(|error| EngineError::io(format!("looking at {}", target.display()), error))?;
    let top = Directory::target(&context, root, start.top_entry.clone(), kept, was_empty);
    let foreseen = if options.dry_run { Foreseen::at(target) } else { Foreseen::default() };
    let pipeline =
        Pipeline { access, session, context: &context, chunks: &chunks, meters: &meters };
    let last = top.clone();
    let ran = pipeline.run(snapshot, &start, (top, foreseen), settler, (writers, cores));
    context.read_back();
    end(&context, last);
    ran?;
    context.outcome()?;
    Ok(RestoreSummary { stages: meters.snapshot(), ..context.summary() })
}

/// Gives the target its metadata when everything in it is on the disk, and removes the mark of this restore unless
/// something stays unfinished.
fn end(context: &Context<'_>, top: Directory<'_>) {
    if context.options.dry_run {
        return;
    }
    if context.earlier.can_tell()
        && !context.leaves_unfinished()
        && let Some(open) = top.open()
        && let Err(error) = open.allowing(|| mark::remove(open.dir))
        && error.kind() != ErrorKind::NotFound
    {
        context.write_failed(top.path(mark::NAME), "it cannot be removed, remove it", &error);
    }
    drop(top);
    match context.root.sync() {
        // Not every file system does that to a directory.
        Err(error) if error.kind() != ErrorKind::InvalidInput => context.not_synced(error),
        _ => {}
    }
}

/// By what buffers and threads are divided.
pub(crate) fn share_of_memory() -> usize {
    let limit = memory::limit_bytes();
    if limit.is_some_and(|limit| limit < LITTLE_MEMORY_BYTES) { 4 } else { 1 }
}

/// What the stages count.
#[derive(Clone)]
struct Meters {
    plan: Arc<StageMeter>,
    chunks: Arc<ChunkMeters>,
    write: Arc<StageMeter>,
    settle: Arc<StageMeter>,
}

impl Meters {
    fn snapshot(&self) -> Vec<holdall_meter::StageCounters> {
        let mut stages = vec![self.plan.snapshot()];
        stages.extend(self.chunks.snapshot());
        stages.extend([self.write.snapshot(), self.settle.snapshot()]);
        stages
    }
}

/// The threads of a restore.
struct Pipeline<'a> {
    access: &'a UnlockedRepository,
    session: SessionId,
    context: &'a Context<'a>,
    chunks: &'a Chunks,
    meters: &'a Meters,
}

impl<'a> Pipeline<'a> {
    fn run(
        &self,
        snapshot: &Snapshot,
        start: &Start,
        (top, foreseen): (Directory<'a>, Foreseen),
        settler: Settler<'a>,
        (writers, cores): (usize, usize),
    ) -> Result<(), EngineError> {
        let (settle, whole) = bounded(settler.batch_names());
        let (orders, orders_out) = unbounded::<Order>();
        let share = share_of_memory();
        let most_writers = MAX_WRITERS / share;
        let (windows, windows_out) = bounded::<ClosedWindow<Work<'a>>>(WINDOWS_AHEAD / share);
        let (batches, batches_out) = bounded::<Batch<'a>>(most_writers);
        let nodes = Nodes::open(self.access, self.session);
        let reader = Reader::new(self.access, self.session, self.chunks)?;
        let writing = [&*self.meters.write];
        let writers = Concurrency::new(&writing, writers, most_writers, cores);
        let outlets = Outlets { orders, windows };
        let planner = Planner::new(
            self.context,
            reader,
            &start.top,
            (top, foreseen),
            (outlets, settle.clone()),
            &self.meters.plan,
        );
        // Of the fetchers alone: where there is none, orders are dropped, and nothing waits for them.
        let orders_out = Arc::new(Mutex::new(orders_out));
        std::thread::scope(|scope| {
            let fail = |error| self.context.fail(error);
            let fetch = |number| {
                let stopping = || self.context.stopping();
                stage::start(scope, number, Arc::clone(&orders_out), fail, move |orders| {
                    self.chunks.fill(self.access, orders, stopping, fail);
                });
            };
            let write = |number| {
                let (writer, member) = (self.writer(settle.clone()), writers.member(number));
                let stage = (writer, member, batches_out.clone());
                stage::start(scope, number, stage, fail, |(writer, member, batches)| {
                    writer.run(batches, member, &self.meters.write);
                });
            };
            stage::start(scope, 0, planner, fail, |planner| {
                planner.run(nodes, snapshot.root, &start.top, start.only.as_ref());
            });
            stage::start(scope, 0, (settler, whole), fail, |(settler, whole)| settler.run(whole));
            fetch(0);
            write(0);
            (1..FETCHERS / share).for_each(fetch);
            (1..most_writers).for_each(write);
            drop((batches_out, settle, orders_out));
            self.dispatch(windows_out, batches);
        });
        Ok(())
    }

    fn writer(&self, settle: Sender<Whole<'a>>) -> Writer<'a> {
        Writer {
            context: self.context,
            access: self.access,
            session: self.session,
            chunks: self.chunks,
            reader: None,
            linked_from: LastBelow::default(),
            settle,
        }
    }

    /// Hands windows to the writers, in order, as their chunks arrive.
    fn dispatch(&self, windows: Receiver<ClosedWindow<Work<'a>>>, to_writers: Sender<Batch<'a>>) {
        for window in windows {
            let Ok(chunks) = window.chunks.recv() else { return };
            for batch in batches(window.work, chunks) {
                if self.context.stopping() || to_writers.send(batch).is_err() {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod tests;
