//! Dumping: what is at one path of a snapshot as a stream of bytes: a file as it is, a directory as a
//! tar archive.
//!
//! As in a restore, the tree is walked in its own order and content is fetched in whole blocks, ahead
//! of what is written; only that everything is written in that order, by one thread.
//!
//! ```text
//! planner ── windows, in order ─────────────────────> writer: parts one after the other
//!    └────── orders ──> fetchers (fetch, open, check) ──┘ chunks of each window
//! ```
//!
//! Invariants: memory is bounded by a few windows, whatever the size of files; what was damaged is
//! never written: the stream ends before it, and an archive then lacks its end.

mod acl;
mod archive;
mod part;
mod plan;
mod tar;

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crossbeam_channel::{bounded, unbounded};
use holdall_format::SessionId;
use holdall_meter::{Layer, StageMeter};
use holdall_tree::{Entry, EntryKind, PathKey, lookup};

use crate::blocks::Nodes;
use crate::pipeline::stage;
use crate::records::snapshot_path::{key_of, no_path};
use crate::restore::{
    ChunkSource, FETCHERS, Groups, Links, Outlets, Output, Reader, WINDOWS_AHEAD,
};
use crate::{EngineError, Run, Snapshot, UnlockedRepository};
use part::{Failure, write_out};
use plan::{Parts, Planner};

/// Something in a snapshot that can be dumped.
pub struct Dump<'a> {
    access: &'a UnlockedRepository,
    snapshot: &'a Snapshot,
    top: PathKey,
    /// The file; nothing for a directory.
    file: Option<Entry>,
}

/// What a dump did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DumpSummary {
    /// Entries that were written.
    pub items: u64,
    /// Bytes of content that were written, without holes in an archive.
    pub bytes: u64,
    /// Sockets that were left out: an archive has no place for them.
    pub sockets: u64,
}

impl<'a> Dump<'a> {
    /// Finds what is at an absolute path.
    ///
    /// # Errors
    /// [`EngineError::NoPath`] if nothing is there; [`EngineError::Path`] if it is neither a file nor
    /// a directory.
    pub fn find(
        access: &'a UnlockedRepository,
        snapshot: &'a Snapshot,
        path: &[u8],
    ) -> Result<Self, EngineError> {
        let none = || no_path(snapshot, path);
        let top = key_of(path).ok_or_else(none)?;
        let found = access
            .reading(|session| Ok(lookup(Nodes::open(access, session), snapshot.root, &top)?))?;
        let file = match found {
            None if top.is_root() => None,
            None => return Err(none()),
            Some(entry) => match entry.kind {
                EntryKind::Directory => None,
                EntryKind::File => Some(entry),
                _ => {
                    let path = String::from_utf8_lossy(path).into_owned();
                    let reason = "it is neither a file nor a directory; dump the directory that it \
                                  is in";
                    return Err(EngineError::Path { path, reason: reason.to_owned() });
                }
            },
        };
        Ok(Self { access, snapshot, top, file })
    }

    /// Whether it is a directory, which becomes an archive.
    pub fn is_archive(&self) -> bool {
        self.file.is_none()
    }

    /// Writes it.
    ///
    /// # Errors
    /// [`EngineError::Io`] if `out` takes no more; [`EngineError::Damaged`] for what cannot be
    /// read; [`EngineError::Interrupted`]; [`EngineError::Repository`]. What was written until then
    /// is not whole.
    pub fn write(&self, out: &mut dyn Write, run: &Run) -> Result<DumpSummary, EngineError> {
        self.access.reading(|session| self.write_in(session, out, run))
    }

    fn write_in(
        &self,
        session: SessionId,
        out: &mut dyn Write,
        run: &Run,
    ) -> Result<DumpSummary, EngineError> {
        let links = Links::new(&self.access.cache, &session.to_string())
            .map_err(|error| EngineError::io("making a file in the cache folder", error))?;
        let chunks = &ChunkSource::new(self.access, session);
        let meter = Arc::new(StageMeter::new("plan", Layer::ClientCpu, 1));
        let (plan, of_chunks) = (Arc::clone(&meter), Arc::clone(&chunks.meters));
        run.watch_stages(move || [vec![plan.snapshot()], of_chunks.snapshot()].concat());
        let (orders, orders_out) = unbounded();
        let (windows, windows_out) = bounded(WINDOWS_AHEAD);
        // First, for one at a time has the node cache, and it is the tree that needs it.
        let nodes = Nodes::open(self.access, session);
        let reader = Reader::new(self.access, session, chunks)?;
        let parts = Parts(Output::new(Outlets { orders, windows }, &meter));
        let (links, groups, sockets) = (&links, Groups::default(), &AtomicU64::new(0));
        let planner = Planner { reader, parts, links, groups, sockets, run };
        // Of the fetchers alone: where there is none, orders are dropped, and nothing waits for them.
        let (failure, orders_out) = (&Failure::default(), Arc::new(Mutex::new(orders_out)));
        // What cannot be planned lies behind everything that was: it is told last.
        let unplanned = &Failure::default();
        std::thread::scope(|scope| {
            let fail = |error| failure.note(error);
            stage::start(scope, 0, Some(planner), fail, |planner| {
                let planned = planner.take().map(|planner| self.plan(planner, nodes));
                if let Some(Err(error)) = planned {
                    unplanned.note(error);
                }
            });
            (0..FETCHERS).for_each(|number| {
                let unwanted = || failure.happened() || run.stopping();
                stage::start(scope, number, Arc::clone(&orders_out), fail, move |orders| {
                    chunks.fill(self.access, orders, unwanted, fail);
                });
            });
            drop(orders_out);
            if let Err(error) = write_out(windows_out, out, run) {
                failure.note(error);
            }
        });
        failure.outcome()?;
        unplanned.outcome()?;
        run.check()?;
        let items = run.items.load(Ordering::Relaxed);
        let bytes = run.bytes.load(Ordering::Relaxed);
        Ok(DumpSummary { items, bytes, sockets: sockets.load(Ordering::Relaxed) })
    }

    fn plan(&self, planner: Planner<'_>, nodes: Nodes) -> Result<(), EngineError> {
        match &self.file {
            Some(entry) => planner.file(&self.top, entry.clone()),
            None => planner.archive(nodes, self.snapshot.root, &self.top),
        }
    }
}

#[cfg(test)]
mod tests;
