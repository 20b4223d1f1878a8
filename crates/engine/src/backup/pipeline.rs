//! The whole run: sets the stages up, joins them by queues, and tears them down.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, Scope};
use std::time::Instant;

use crossbeam_channel::bounded;
use holdall_crypto::{RecordSecret, Sealer, SystemEntropy};
use holdall_format::SeriesId;
use holdall_protocol::{SessionGrant, SessionPurpose};
use holdall_tree::{Chunker, TreeBuilder};

use super::assemble::{Assembler, Records};
use super::describe::{Mounts, Owners};
use super::meters::Meters;
use super::options::BackupOptions;
use super::parents::{self, Parents};
use super::plan::{JobSender, Plan};
use super::read::Reading;
use super::scan::{Step, steps};
use super::seal::seal;
use super::send::Senders;
use super::shared::Shared;
use super::store::{OpenBlock, Recent, Store};
use super::summary::BackupSummary;
use super::walk::Walk;
use crate::blocks::{SharedNodeCache, open_node_cache};
use crate::budget::Budget;
use crate::record::ChainEnd;
use crate::snapshots::Snapshot;
use crate::{Access, EngineError, Run};

/// Plain bytes in flight between reading and sealing.
const BUDGET_BYTES: usize = 16 << 20;
/// The share kept for the job whose turn it is: three segments of a large file.
const RESERVE_BYTES: usize = 18 << 20;
/// Jobs being read or waiting to be used.
const JOBS_IN_FLIGHT: usize = 16;
/// Objects between the assembler and the store.
const OBJECTS_QUEUED: usize = 1024;
/// Plain and sealed blocks of about 1 MiB that wait.
const PLAIN_BLOCKS_QUEUED: usize = 2;
const SEALED_BLOCKS_QUEUED: usize = 4;
/// Threads that list directories ahead.
const WALKERS: usize = 2;

/// Backs up the sources of `options` as a new snapshot.
///
/// # Errors
/// [`EngineError`]; then no snapshot was committed. What could not be read is in `run`'s problems
/// and no error.
pub fn backup(
    access: &Access,
    options: &BackupOptions,
    run: &Arc<Run>,
) -> Result<BackupSummary, EngineError> {
    let begun = Instant::now();
    // Directories stay open until what is in them is read. Where the limit can not be raised, what
    // passes it is told.
    let _ = holdall_sys::limits::raise_open_files();
    let steps = steps(&options.sources)?;
    let series = series(access, options, &steps);
    let parents = parents::choose(access, &series)?;
    let purpose = match options.dry_run {
        true => SessionPurpose::Read,
        false => SessionPurpose::Backup { parents: parents::names(&parents) },
    };
    let grant = access.repository.open_session(&purpose)?;
    let traffic_before = access.repository.traffic();
    if let Some(parent) = parents.last() {
        run.items_expected.store(parent.secret.items, Ordering::Relaxed);
        run.bytes_expected.store(parent.secret.bytes, Ordering::Relaxed);
    }
    let stages = Stages::new(access, options, run, grant, series);
    let result = stages.run(steps, &parents);
    if result.is_err() || options.dry_run {
        // What was put stays for the next run; a session that can not be closed lapses.
        let _ = access.repository.close_session(&stages.grant.session);
    }
    let mut summary = result?;
    let traffic = access.repository.traffic();
    summary.bytes_sent = traffic.sent_bytes.saturating_sub(traffic_before.sent_bytes);
    summary.bytes_received = traffic.received_bytes.saturating_sub(traffic_before.received_bytes);
    summary.has_parent = !parents.is_empty();
    summary.problems = run.problem_count();
    summary.stages = stages.meters.snapshot();
    summary.seconds = begun.elapsed().as_secs_f64();
    Ok(summary)
}

/// The series: a keyed hash of host and source paths.
fn series(access: &Access, options: &BackupOptions, steps: &[Step]) -> SeriesId {
    let mut what = options.host.as_bytes().to_vec();
    for step in steps {
        if let Step::Source { path, .. } = step {
            what.push(0);
            what.push(b'/');
            what.extend_from_slice(path.as_bytes());
        }
    }
    access.keys.series(&what)
}

/// Ends the run if the thread that holds it panics.
struct FailOnPanic<'a>(&'a Shared<'a>);

impl Drop for FailOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.fail(EngineError::Interrupted);
        }
    }
}

/// What the stages of a run need.
struct Stages<'a> {
    access: &'a Access,
    options: &'a BackupOptions,
    grant: SessionGrant,
    series: SeriesId,
    shared: Shared<'a>,
    meters: Arc<Meters>,
    walk: Walk,
    cache: SharedNodeCache,
    readers: usize,
}

impl<'a> Stages<'a> {
    fn new(
        access: &'a Access,
        options: &'a BackupOptions,
        run: &'a Arc<Run>,
        grant: SessionGrant,
        series: SeriesId,
    ) -> Self {
        let readers = options.cores.clamp(1, 16);
        let meters = Arc::new(Meters::new(WALKERS, readers, readers, options.streams));
        let watched = Arc::clone(&meters);
        run.watch_stages(move || watched.snapshot());
        Self {
            access,
            options,
            grant,
            series,
            shared: Shared::new(run, Budget::new(BUDGET_BYTES, RESERVE_BYTES)),
            meters,
            walk: Walk::new(),
            cache: open_node_cache(access),
            readers,
        }
    }

    fn run(&self, steps: Vec<Step>, parents: &[Snapshot]) -> Result<BackupSummary, EngineError> {
        let reading = self.reading();
        let senders = self.senders();
        let done = thread::scope(|scope| {
            let (to_senders, sealed) = bounded(SEALED_BLOCKS_QUEUED);
            for _ in 0..self.options.streams.clamp(1, 8) {
                let (senders, sealed) = (&senders, sealed.clone());
                self.spawn(scope, move || senders.run(&sealed));
            }
            drop(sealed);
            let (to_sealers, plain) = bounded(PLAIN_BLOCKS_QUEUED);
            for _ in 0..self.readers {
                let (plain, to_senders) = (plain.clone(), to_senders.clone());
                let sealer = self.sealer();
                self.spawn(scope, move || {
                    seal(sealer, &self.cache, &plain, &to_senders, &self.meters)
                });
            }
            drop((plain, to_senders));
            let (to_store, wanted) = bounded(OBJECTS_QUEUED);
            let store = self.store(to_sealers);
            let storing = scope.spawn(move || self.noted(store.run(&wanted)));
            for _ in 0..WALKERS {
                scope.spawn(|| self.walk.run(&self.meters));
            }
            let (to_readers, jobs) = bounded(JOBS_IN_FLIGHT);
            for _ in 0..self.readers {
                let (reading, jobs) = (&reading, jobs.clone());
                self.spawn(scope, move || reading.run(&jobs));
            }
            drop(jobs);
            let (to_assembler, results) = bounded(JOBS_IN_FLIGHT);
            let plan =
                self.plan(JobSender::new(to_readers, to_assembler), parents, &reading.mounts);
            self.spawn(scope, move || {
                let planned = plan.run(steps);
                self.walk.close();
                planned
            });
            let committed = self.noted(self.assembler(to_store).run(&results));
            drop(results);
            let data_added = storing.join().ok().flatten().unwrap_or(0);
            committed.map(|summary| BackupSummary {
                data_added: summary.data_added + data_added,
                ..summary
            })
        });
        self.shared.result()?;
        let summary = done.ok_or(EngineError::Interrupted)?;
        let data_stored = senders.stored_bytes.load(Ordering::Relaxed);
        Ok(BackupSummary { data_stored, ..summary })
    }

    /// Runs a stage on a thread of its own; its failure ends the run.
    fn spawn<'scope, 'env>(
        &'scope self,
        scope: &'scope Scope<'scope, 'env>,
        stage: impl FnOnce() -> Result<(), EngineError> + Send + 'scope,
    ) {
        scope.spawn(move || {
            // A stage that panicked must not look like one that is done.
            let _guard = FailOnPanic(&self.shared);
            self.noted(stage());
        });
    }

    fn noted<T>(&self, result: Result<T, EngineError>) -> Option<T> {
        result.map_err(|error| self.shared.fail(error)).ok()
    }

    fn reading(&self) -> Reading<'_> {
        let keys = &*self.access.keys;
        Reading {
            shared: &self.shared,
            meters: &self.meters,
            keys,
            chunker: Chunker::new(keys.chunker_key()),
            inline_limit_bytes: usize::from(self.access.config.inline_limit_bytes),
            owners: Owners::load(),
            mounts: Mounts::read(),
        }
    }

    fn senders(&self) -> Senders<'_> {
        Senders {
            repository: &*self.access.repository,
            session: self.grant.session,
            shared: &self.shared,
            meters: &self.meters,
            stored_bytes: AtomicU64::new(0),
        }
    }

    fn sealer(&self) -> Sealer {
        let config = &self.access.config;
        let level = self.options.compression_level;
        let entropy = Box::new(SystemEntropy);
        Sealer::new(self.access.keys.sealing(), config.suite, config.epoch, level, entropy)
    }

    fn store(&self, to_sealers: crossbeam_channel::Sender<super::store::PlainBlock>) -> Store<'_> {
        Store {
            repository: &*self.access.repository,
            session: self.grant.session,
            shared: &self.shared,
            meters: &self.meters,
            to_sealers,
            recent: Recent::default(),
            nodes: OpenBlock::default(),
            chunks: OpenBlock::default(),
            data_added: 0,
        }
    }

    fn plan<'b>(&'b self, out: JobSender, parents: &[Snapshot], mounts: &'b Mounts) -> Plan<'b> {
        let (session, cache) = (self.grant.session, &self.cache);
        Plan {
            options: self.options,
            shared: &self.shared,
            meters: &self.meters,
            walk: &self.walk,
            mounts,
            parents: Parents::open(self.access, session, cache, parents, &self.shared),
            out,
            source_devices: HashSet::new(),
        }
    }

    fn assembler(
        &self,
        to_store: crossbeam_channel::Sender<super::store::Wanted>,
    ) -> Assembler<'_> {
        let (keys, config) = (&self.access.keys, &self.access.config);
        Assembler {
            access: self.access,
            shared: &self.shared,
            meters: &self.meters,
            to_store,
            builder: TreeBuilder::new(keys.ids().clone(), *keys.boundary_key(), config.leaf_bits),
            counts: BackupSummary::default(),
            records: Records {
                session: self.grant.session,
                chain: ChainEnd { head: self.grant.head, sequence: self.grant.sequence },
                series: self.series,
                secret: self.secret(),
                sealer: self.sealer(),
                checkpoint_every: self.options.checkpoint_every,
                last_checkpoint: Instant::now(),
            },
            dry_run: self.options.dry_run,
        }
    }

    fn secret(&self) -> RecordSecret {
        let options = self.options;
        RecordSecret {
            paths: options.sources.iter().map(|source| source.path.clone()).collect(),
            host: options.host.clone(),
            user: options.user.clone(),
            program: concat!("holdall ", env!("CARGO_PKG_VERSION")).to_owned(),
            tags: options.tags.clone(),
            excludes: options.exclude_patterns.clone(),
            client_time_ns: options.client_time_ns,
            ..RecordSecret::default()
        }
    }
}
