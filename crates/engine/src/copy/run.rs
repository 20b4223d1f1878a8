//! One copy: sets the stages up, joins them by queues, and tears them down.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread;

use crossbeam_channel::bounded;
use holdall_crypto::RecordSecret;
use holdall_format::RecordHash;
use holdall_meter::StageMeter;
use holdall_protocol::{SessionGrant, SessionPurpose};

use super::fetch::Fetching;
use super::meters::Meters;
use super::plan::{Before, Plan, Reading};
use super::rebuild::Rebuild;
use super::window::{Output, Window};
use super::{Copier, CopySummary};
use crate::backup::series_of;
use crate::pipeline::budget::Budget;
use crate::records::record::PROGRAM;
use crate::restore::{ChunkSource, FETCHERS};
use crate::storing::{self, Assembled, NewSnapshot, Results, Shared, Storing, StoringMeters};
use crate::{EngineError, Run, Snapshot};

/// Plain bytes in flight between fetching and sealing.
const BUDGET_BYTES: usize = 16 << 20;
/// The share kept for the window whose turn it is: the largest, and what waits to be asked for of those before.
const RESERVE_BYTES: usize = 24 << 20;
/// Windows that are rebuilt and not assembled.
const WINDOWS_REBUILT: usize = 4;

impl Copier<'_> {
    /// Copies a snapshot in a session of its own. What it measured as a whole is not filled in.
    pub(super) fn attempt(
        &self,
        snapshot: &Snapshot,
        before: Before,
        parents: Vec<RecordHash>,
        run: &Arc<Run>,
    ) -> Result<CopySummary, EngineError> {
        let new = self.new_snapshot(snapshot)?;
        run.items_expected.store(snapshot.secret.items, Ordering::Relaxed);
        run.bytes_expected.store(snapshot.secret.bytes, Ordering::Relaxed);
        let repository = &self.destination.repository;
        let grant = repository.open_session(&SessionPurpose::Backup { parents })?;
        let copied = self.in_session(&grant, snapshot, before, new, run);
        if copied.is_err() {
            // What is on its way may not arrive.
            self.known.clear();
            // What was put stays for the next run; a session that cannot be closed lapses.
            let _ = repository.close_session(&grant.session);
        }
        copied
    }

    fn in_session(
        &self,
        grant: &SessionGrant,
        snapshot: &Snapshot,
        before: Before,
        new: NewSnapshot,
        run: &Arc<Run>,
    ) -> Result<CopySummary, EngineError> {
        let source = ChunkSource::new(self.source, self.source_session);
        let sealers = self.options.cores.clamp(1, 16);
        let repository = &*self.destination.repository;
        let storing = StoringMeters::of(repository, sealers, self.options.streams);
        let meters = Arc::new(Meters::new(&source, storing));
        let watched = Arc::clone(&meters);
        run.watch_stages(move || watched.snapshot());
        let shared = Shared::new(run, Budget::new(BUDGET_BYTES, RESERVE_BYTES));
        let storing = self.storing(grant, &shared, &meters);
        let fetching = Fetching {
            source: &source,
            ids: self.destination.keys.ids(),
            known: &self.known,
            shared: &shared,
            meters: &meters,
        };
        let (out, orders, windows) = Output::new(&meters.plan);
        // Of the fetchers alone: where there is none, orders are dropped, and nothing waits for them.
        let orders = Arc::new(Mutex::new(orders));
        let plan = self.plan(grant, &shared, &meters.plan, out);
        let (to_assembler, results) = bounded(WINDOWS_REBUILT);
        let rebuild = self.rebuild(&shared, &meters, windows, to_assembler);
        let assembled = thread::scope(|scope| {
            let fetch = |number| {
                let (fetching, opener) = (&fetching, ChunkSource::opener(self.source));
                let stage = (opener, Arc::clone(&orders));
                shared.spawn_nth(scope, number, stage, |(opener, orders)| {
                    fetching.run(opener, orders)
                });
            };
            shared.spawn(scope, plan, move |plan| plan.run(snapshot, before));
            shared.spawn(scope, rebuild, Rebuild::run);
            fetch(0);
            let gather = storing.start(scope, || (1..FETCHERS).for_each(fetch));
            drop(orders);
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

    /// What the copy says of itself: all that the source says, and where that is.
    fn new_snapshot(&self, snapshot: &Snapshot) -> Result<NewSnapshot, EngineError> {
        let of = &snapshot.secret;
        let series = series_of(self.destination, &of.host, &of.paths)?;
        let copied_from = Some(Self::copied_from(snapshot));
        let secret = RecordSecret { program: PROGRAM.to_owned(), copied_from, ..of.clone() };
        let (pinned, dry_run) = (snapshot.pinned, false);
        Ok(NewSnapshot { series, secret, pinned, dry_run, keeps_leaves: None })
    }

    fn storing<'s>(
        &'s self,
        grant: &'s SessionGrant,
        shared: &'s Shared<'s>,
        meters: &'s Meters,
    ) -> Storing<'s> {
        let stages = storing::Stages {
            sealers: self.options.cores.clamp(1, 16),
            streams: self.options.streams,
            self_check: self.options.self_check,
            checkpoint_every: self.options.checkpoint_every,
        };
        Storing::new(self.destination, grant, shared, &meters.storing, &self.cache, stages)
    }

    fn plan<'s>(
        &'s self,
        grant: &SessionGrant,
        shared: &'s Shared<'s>,
        meter: &'s StageMeter,
        out: Output<'s>,
    ) -> Plan<'s> {
        let reading = |access, session, cache| Reading { access, session, cache, shared, meter };
        let source = reading(self.source, self.source_session, &self.source_cache);
        let destination = reading(self.destination, grant.session, &self.cache);
        Plan::new(source, destination, shared, &self.known, out)
    }

    fn rebuild<'s>(
        &'s self,
        shared: &'s Shared<'s>,
        meters: &'s Meters,
        windows: crossbeam_channel::Receiver<Window>,
        to_assembler: crossbeam_channel::Sender<Results>,
    ) -> Rebuild<'s> {
        Rebuild {
            destination: self.destination,
            shared,
            meters,
            windows,
            to_assembler,
            content: None,
            contents: Vec::new(),
            damage: None,
        }
    }
}
