//! One import: sets the stages up, joins them by queues, and tears them down.

use std::sync::Arc;
use std::thread;

use crossbeam_channel::bounded;
use holdall_crypto::RecordSecret;
use holdall_format::{ObjectId, RecordHash};
use holdall_protocol::{SessionGrant, SessionPurpose};
use holdall_tree::{Chunker, Cursor};

use super::Importer;
use super::entries::{Entries, ForeignTree};
use super::foreign::ForeignSnapshot;
use super::read::{Reader, Reading};
use crate::backup::meters::Meters;
use crate::backup::series_of;
use crate::blocks::{Nodes, SharedNodeCache};
use crate::copy::NodesWhileRunning;
use crate::pipeline::budget::Budget;
use crate::pipeline::concurrency::Concurrency;
use crate::records::record::PROGRAM;
use crate::storing::{self, Assembled, NewSnapshot, Shared, Storing, StoringMeters};
use crate::{CopySummary, EngineError, Run};

/// Plain bytes in flight between reading and sealing.
const BUDGET_BYTES: usize = 16 << 20;
/// The share kept for the job whose turn it is, as in a backup.
const RESERVE_BYTES: usize = 24 << 20;
/// Jobs being read or waiting to be used.
const JOBS_IN_FLIGHT: usize = 24;
/// Threads that read at most: each may hold a piece of content beside the budget, as the other repository has it.
const MAX_READERS: usize = 8;

impl Importer<'_> {
    /// Imports a snapshot in a session of its own. What it measured as a whole is not filled in.
    pub(super) fn attempt(
        &self,
        snapshot: &ForeignSnapshot,
        before: Option<ObjectId>,
        parents: Vec<RecordHash>,
        tree: impl ForeignTree,
        run: &Arc<Run>,
    ) -> Result<CopySummary, EngineError> {
        let new = self.new_snapshot(snapshot)?;
        let repository = &self.destination.repository;
        let grant = repository.open_session(&SessionPurpose::Backup { parents })?;
        let imported = self.in_session(&grant, before, new, tree, run);
        if imported.is_err() {
            // What was put stays for the next run; a session that cannot be closed lapses.
            let _ = repository.close_session(&grant.session);
        }
        imported
    }

    fn in_session(
        &self,
        grant: &SessionGrant,
        before: Option<ObjectId>,
        new: NewSnapshot,
        mut tree: impl ForeignTree,
        run: &Arc<Run>,
    ) -> Result<CopySummary, EngineError> {
        let (cores, streams) = (self.options.cores.clamp(1, MAX_READERS), self.options.streams);
        let mut meters = Meters::new(1, cores, cores, streams);
        meters.storing = StoringMeters::of(&*self.destination.repository, cores, streams);
        let meters = Arc::new(meters);
        let watched = Arc::clone(&meters);
        run.watch_stages(move || watched.snapshot());
        let shared = Shared::new(run, Budget::new(BUDGET_BYTES, RESERVE_BYTES));
        let reading_meters = [&meters.read, &meters.hash];
        let readers = Concurrency::new(&reading_meters, cores, MAX_READERS, cores);
        let reading = self.reading(&shared, &meters, &readers);
        let storing = self.storing(grant, &shared, &meters.storing);
        let before = before.map(|root| {
            let nodes = Nodes::with_cache(
                self.destination,
                grant.session,
                SharedNodeCache::clone(&self.cache),
            );
            let nodes = NodesWhileRunning::new(nodes, &shared, &meters.plan);
            Cursor::new(nodes, root).noting_visited()
        });
        let assembled = thread::scope(|scope| {
            let (to_readers, jobs) = bounded(JOBS_IN_FLIGHT);
            let (to_assembler, results) = bounded(JOBS_IN_FLIGHT);
            let read = |number| {
                let reader = Reader::new(&reading, number, jobs.clone());
                shared.spawn_nth(scope, number, reader, Reader::run);
            };
            read(0);
            let entries = Entries::new(&shared, &meters, before, to_readers, to_assembler);
            shared.spawn(scope, entries, move |entries| {
                tree.walk(entries)?;
                entries.end()
            });
            let gather = storing.start(scope, || (1..MAX_READERS).for_each(read));
            drop(jobs);
            storing.run(gather, new, results)
        });
        shared.result()?;
        let Assembled { snapshot_id, stored_record, counts } =
            assembled.ok_or(EngineError::Interrupted)?;
        Ok(CopySummary {
            snapshot_id: snapshot_id.ok_or(EngineError::Interrupted)?,
            stored_record,
            items: counts.items,
            bytes: counts.bytes,
            data_added: storing.added_bytes(),
            data_stored: storing.stored_bytes(),
            bytes_sent: 0,
            bytes_received: 0,
            seconds: 0.0,
            stages: meters.snapshot(),
        })
    }

    /// What the import says of itself: all that the other program says, and where it is from.
    fn new_snapshot(&self, snapshot: &ForeignSnapshot) -> Result<NewSnapshot, EngineError> {
        let series = series_of(self.destination, &snapshot.host, &snapshot.paths)?;
        let secret = RecordSecret {
            paths: snapshot.paths.clone(),
            host: snapshot.host.clone(),
            user: snapshot.user.clone(),
            program: PROGRAM.to_owned(),
            tags: snapshot.tags.clone(),
            client_time_ns: snapshot.taken_ns,
            copied_from: Some(Self::copied_from(snapshot)),
            ..RecordSecret::default()
        };
        Ok(NewSnapshot { series, secret, pinned: false, dry_run: false, keeps_leaves: None })
    }

    fn reading<'r>(
        &'r self,
        shared: &'r Shared<'r>,
        meters: &'r Meters,
        readers: &'r Concurrency<'r>,
    ) -> Reading<'r> {
        let keys = &*self.destination.keys;
        let inline_limit_bytes = usize::from(self.destination.config.inline_limit_bytes);
        let chunker = Chunker::new(keys.chunker_key());
        Reading { shared, meters, readers, keys, chunker, inline_limit_bytes }
    }

    fn storing<'s>(
        &'s self,
        grant: &'s SessionGrant,
        shared: &'s Shared<'s>,
        meters: &'s StoringMeters,
    ) -> Storing<'s> {
        let stages = storing::Stages {
            sealers: self.options.cores.clamp(1, 16),
            streams: self.options.streams,
            self_check: self.options.self_check,
            checkpoint_every: self.options.checkpoint_every,
        };
        Storing::new(self.destination, grant, shared, meters, &self.cache, stages)
    }
}
