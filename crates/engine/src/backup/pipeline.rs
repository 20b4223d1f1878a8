//! The whole run: sets the stages up, joins them by queues, and tears them down.

use std::sync::Arc;
use std::thread;
use std::time::Instant;

use crossbeam_channel::bounded;
use holdall_crypto::RecordSecret;
use holdall_format::SeriesId;
use holdall_protocol::{RepositoryError, SessionGrant, SessionPurpose};
use holdall_tree::{Chunker, Fingerprints};

use super::compare_with_parent::Items;
use super::describe::{Mounts, Owners};
use super::job::JobSender;
use super::meters::Meters;
use super::options::{BackupOptions, Source};
use super::parents::{self, Parents};
use super::places::{self, Places};
use super::plan::Plan;
use super::read::{Reader, Reading};
use super::scan::{Step, inner, named, steps};
use super::summary::BackupSummary;
use super::unread::Unread;
use super::walk::Walk;
use crate::blocks::{SharedNodeCache, open_node_cache};
use crate::filter::exclude::RulesMet;
use crate::item_fate::ItemWatcher;
use crate::pipeline::budget::Budget;
use crate::pipeline::concurrency::Concurrency;
use crate::records::lost::Lost;
use crate::records::record::PROGRAM;
use crate::records::snapshot::Snapshot;
use crate::records::snapshots::{Listed, snapshots_by_cache};
use crate::storing::{self, Assembled, NewSnapshot, Shared, Storing, StoringMeters};
use crate::walked::{FullWalk, Walked};
use crate::{EngineError, Run, UnlockedRepository};

/// Plain bytes in flight between reading and sealing.
pub(super) const BUDGET_BYTES: usize = 16 << 20;
/// The share kept for the job whose turn it is: a segment of a large file, and what waits to be asked for, of
/// the segment before and of the file before that, and small files between.
pub(super) const RESERVE_BYTES: usize = 24 << 20;
/// Jobs being read or waiting to be used.
const JOBS_IN_FLIGHT: usize = 24;
/// Threads that read at most, each a job.
pub const MAX_READERS: usize = JOBS_IN_FLIGHT;
/// So often a backup begins again because its session has lapsed.
const MOST_LAPSES: u32 = 3;
/// So often a backup begins again because the repository has lost something. Once or twice is usual; a
/// list has 10,000 objects at most, so that it is more often where whole packs are lost. A keeper that
/// always names others would have it begin again for ever.
const MOST_LOSSES: u32 = 256;
/// Threads that list directories ahead, at first.
const WALKERS: usize = 2;
/// Threads that list directories ahead at most.
const MAX_WALKERS: usize = 16;

/// Backs up the sources of `options` as a new snapshot.
///
/// # Errors
/// [`EngineError`]; then no snapshot was committed. What could not be read is in `run`'s problems
/// and no error.
pub fn backup(
    access: &UnlockedRepository,
    options: &BackupOptions,
    run: &Arc<Run>,
) -> Result<BackupSummary, EngineError> {
    backup_upon(access, &snapshots_by_cache(access)?, options, run)
}

/// The same where the snapshots were just listed.
///
/// # Errors
/// As for [`backup`].
pub fn backup_upon(
    access: &UnlockedRepository,
    listed: &Listed,
    options: &BackupOptions,
    run: &Arc<Run>,
) -> Result<BackupSummary, EngineError> {
    let begun = Instant::now();
    // Directories stay open until what is in them is read. Where the limit cannot be raised, what
    // passes it is told.
    let _ = holdall_sys::limits::raise_open_files();
    let (mut lost, mut losses, mut lapses) = (Lost::default(), 0, 0);
    let (mut parent_damaged, mut doubt) = (false, None);
    let mut summary = loop {
        match attempt(access, listed, options, run, (&lost, doubt)) {
            // A list of what is missing ends at what nobody can look behind, so there may be several.
            Err(EngineError::Lost { ids }) if losses < MOST_LOSSES && lost.add(&ids) => losses += 1,
            Err(EngineError::Parent(error)) if !lost.parents => {
                lost.parents = true;
                parent_damaged = counts_as_there(&error);
            }
            Err(EngineError::NeedsFullWalk(why)) if doubt.is_none() => doubt = Some(why),
            // A computer may sleep for longer than a session lives. What it put without a checkpoint may
            // be pruned by now, and counts as missing.
            Err(EngineError::Repository(RepositoryError::NoSession { .. }))
                if lapses < MOST_LAPSES =>
            {
                lapses += 1;
            }
            ended => break ended?,
        }
        run.begin_again();
    };
    let traffic = access.take_traffic();
    summary.bytes_sent = traffic.sent_bytes;
    summary.bytes_received = traffic.received_bytes;
    summary.objects_sent_again = lost.count();
    summary.parent_damaged = parent_damaged;
    summary.problems = run.problem_count();
    summary.files_unsettled = run.changed_count();
    summary.files_vanished = run.vanished_count();
    summary.rules_unmatched = run.take_rules_unmet();
    summary.seconds = begun.elapsed().as_secs_f64();
    Ok(summary)
}

/// Whether that is damage to what counts as stored. What is missing is sent again.
fn counts_as_there(error: &EngineError) -> bool {
    let is_damaged = |error: &RepositoryError| matches!(error, RepositoryError::Damaged { .. });
    match error {
        EngineError::Damaged { .. } | EngineError::Crypto(_) => true,
        EngineError::Repository(error) => is_damaged(error),
        _ => false,
    }
}

/// Backs up once, with what the repository is known to have lost until now, and why everything has to be looked at.
fn attempt(
    access: &UnlockedRepository,
    listed: &Listed,
    options: &BackupOptions,
    run: &Arc<Run>,
    (lost, doubt): (&Lost, Option<FullWalk>),
) -> Result<BackupSummary, EngineError> {
    let steps = steps(&options.sources)?;
    let series = series(access, &options.host, &steps);
    let parents = match lost.parents {
        true => Vec::new(),
        false => parents::choose(access, listed, &series, &options.sources),
    };
    let purpose = match options.dry_run {
        true => SessionPurpose::Read,
        false => SessionPurpose::Backup { parents: parents::names(&parents) },
    };
    let asked = Instant::now();
    let grant = access.repository.open_session(&purpose)?;
    let opening = asked.elapsed();
    if let Some(parent) = parents.last() {
        run.expect(parent.secret.items, parent.secret.bytes, false);
    }
    let stages = Stages::new(access, options, run, (grant, series), lost);
    stages.meters.storing.talk.add(opening);
    let result = stages.run(steps, &parents, doubt);
    if result.is_err() || options.dry_run {
        // What was put stays for the next run; a session that cannot be closed lapses.
        let _ = access.repository.close_session(&stages.grant.session);
    }
    let mut summary = result?;
    summary.has_parent = !parents.is_empty();
    summary.stages = stages.meters.snapshot();
    Ok(summary)
}

/// The series that a backup of these absolute paths belongs to.
///
/// # Errors
/// [`EngineError::Path`] for a path that is not absolute or not clean.
pub(crate) fn series_of(
    access: &UnlockedRepository,
    host: &str,
    paths: &[Vec<u8>],
) -> Result<SeriesId, EngineError> {
    let source = |path: &Vec<u8>| Source { path: path.clone(), read_at: path.clone() };
    let sources: Vec<_> = paths.iter().map(source).collect();
    Ok(series(access, host, &steps(&sources)?))
}

/// The series: a keyed hash of host and source paths.
fn series(access: &UnlockedRepository, host: &str, steps: &[Step]) -> SeriesId {
    let mut what = host.as_bytes().to_vec();
    for step in steps {
        if let Step::Source { path, .. } = step {
            what.push(0);
            what.push(b'/');
            what.extend_from_slice(path.as_bytes());
        }
    }
    access.keys.series(&what)
}

/// The snapshots that a run builds on, and how leaves of them are known again.
type Known<'a> = (&'a [Snapshot], Fingerprints);

/// What the stages of a run need.
struct Stages<'a> {
    access: &'a UnlockedRepository,
    options: &'a BackupOptions,
    grant: SessionGrant,
    series: SeriesId,
    shared: Shared<'a>,
    unread: Unread,
    meters: Arc<Meters>,
    walk: Walk,
    cache: SharedNodeCache,
    readers: usize,
}

impl<'a> Stages<'a> {
    fn new(
        access: &'a UnlockedRepository,
        options: &'a BackupOptions,
        run: &'a Arc<Run>,
        (grant, series): (SessionGrant, SeriesId),
        lost: &Lost,
    ) -> Self {
        let readers = options.cores.clamp(1, 16);
        let mut meters = Meters::new(WALKERS, readers, readers, options.streams);
        meters.storing = StoringMeters::of(&*access.repository, readers, options.streams);
        let meters = Arc::new(meters);
        let watched = Arc::clone(&meters);
        run.watch_stages(move || watched.snapshot());
        Self {
            access,
            options,
            grant,
            series,
            shared: Shared::new(run, Budget::new(BUDGET_BYTES, RESERVE_BYTES))
                .without(lost.clone()),
            unread: Unread::none_of(&options.sources),
            meters,
            walk: Walk::new(),
            cache: open_node_cache(access),
            readers,
        }
    }

    fn run(
        &self,
        steps: Vec<Step>,
        parents: &[Snapshot],
        doubt: Option<FullWalk>,
    ) -> Result<BackupSummary, EngineError> {
        let Meters { walk, read, hash, .. } = &*self.meters;
        let (walking, reading) = ([walk], [read, hash]);
        let cores = self.options.cores;
        let walkers = Concurrency::new(&walking, WALKERS, MAX_WALKERS, cores);
        let readers = Concurrency::new(&reading, self.readers, MAX_READERS, cores);
        let reading = self.reading(&readers);
        let storing = self.storing();
        let fingerprints = self.access.fingerprints(&reading.owners.digest());
        let parents = (parents, fingerprints.clone());
        let (places, walked) = self.places(&parents, &reading.mounts, doubt);
        let done = thread::scope(|scope| {
            let (to_readers, jobs) = bounded(JOBS_IN_FLIGHT);
            let walk = |number| {
                self.shared.spawn_nth(scope, number, walkers.member(number), |walker| {
                    self.walk.run(walker, &self.meters, &self.shared);
                    Ok(())
                });
            };
            let read = |number| {
                let reader = Reader::new(&reading, number, jobs.clone());
                self.shared.spawn_nth(scope, number, reader, Reader::run);
            };
            let (to_assembler, results) = bounded(JOBS_IN_FLIGHT);
            let new = self.new_snapshot(fingerprints);
            let out = JobSender::new(to_readers, to_assembler);
            let plan = self.plan(out, (parents, places), &reading);
            // However the plan ends, the walk does too.
            let stage = (plan, self.walk.closing());
            walk(0);
            read(0);
            self.shared.spawn(scope, stage, move |(plan, _)| plan.run(steps));
            let gather = storing.start(scope, || {
                (1..MAX_READERS).for_each(read);
                (1..MAX_WALKERS).for_each(walk);
            });
            drop(jobs);
            storing.run(gather, new, results)
        });
        self.shared.result()?;
        let Assembled { snapshot_id, stored_record, counts } =
            done.ok_or(EngineError::Interrupted)?;
        let (dry_run, overhead) = (self.options.dry_run, storing.overhead());
        Ok(BackupSummary {
            snapshot_id,
            stored_record,
            walked,
            data_added: if dry_run { counts.bytes_not_kept } else { storing.added_bytes() },
            data_stored: storing.stored_bytes(),
            stored_ids: overhead.clear_bytes,
            stored_padding: overhead.padding_bytes,
            stored_nodes: overhead.node_block_bytes,
            ..BackupSummary::from(counts)
        })
    }

    fn reading<'b>(&'b self, readers: &'b Concurrency<'b>) -> Reading<'b> {
        let keys = &*self.access.keys;
        Reading {
            shared: &self.shared,
            unread: &self.unread,
            meters: &self.meters,
            readers,
            keys,
            chunker: Chunker::new(keys.chunker_key()),
            inline_limit_bytes: usize::from(self.access.config.inline_limit_bytes),
            owners: Owners::load(),
            mounts: Mounts::read(),
            settling_seconds: self.options.settling_seconds,
        }
    }

    fn storing(&self) -> Storing<'_> {
        let stages = storing::Stages {
            sealers: self.readers,
            streams: self.options.streams,
            self_check: self.options.self_check,
            checkpoint_every: self.options.checkpoint_every,
        };
        let (shared, meters) = (&self.shared, &self.meters.storing);
        Storing::new(self.access, &self.grant, shared, meters, &self.cache, stages)
    }

    fn parents(&self, (parents, fingerprints): &Known<'_>) -> Parents<'_> {
        let (session, cache) = (self.grant.session, &self.cache);
        let known = (&self.series, fingerprints.clone());
        Parents::open(self.access, session, cache, known, parents, &self.shared)
    }

    fn tells_taken(&self) -> bool {
        self.shared.run.items_watcher().is_some_and(ItemWatcher::wants_taken)
    }

    /// Where the walk looks if that is not everywhere, and what the summary says of it.
    fn places(
        &self,
        known: &Known<'_>,
        mounts: &Mounts,
        doubt: Option<FullWalk>,
    ) -> (Option<Places>, Walked) {
        let Some(changes) = &self.options.changes else { return (None, Walked::Full(None)) };
        let found = match doubt {
            Some(why) => Err(why),
            None => {
                places::check(changes, self.options, known.0, self.tells_taken()).and_then(|()| {
                    Places::of_run(changes, &self.options.sources, &self.parents(known), mounts)
                })
            }
        };
        match found {
            Ok(places) => (Some(places), Walked::Journal),
            Err(why) => (None, Walked::Full(Some(why))),
        }
    }

    fn plan<'b>(
        &'b self,
        out: JobSender,
        (parents, places): (Known<'_>, Option<Places>),
        reading: &'b Reading<'_>,
    ) -> Plan<'b, Items<'b>> {
        let (access, options, meters) = (self.access, self.options, &*self.meters);
        let parents = (self.parents(&parents), parents.1);
        let system = (&reading.mounts, &reading.owners);
        let how = (self.tells_taken(), places.is_some());
        Plan {
            options,
            shared: &self.shared,
            unread: &self.unread,
            meters,
            walk: &self.walk,
            exclude: Arc::new(options.exclude.clone()),
            met: RulesMet::none_of(&options.exclude),
            repository: access.config.clone(),
            items: Items::new(options, &access.keys, system, meters, parents, out, how),
            named: named(&options.sources),
            added: 0,
            unmet: inner(&options.sources),
            places,
        }
    }

    fn new_snapshot(&self, fingerprints: Fingerprints) -> NewSnapshot {
        let options = self.options;
        let secret = RecordSecret {
            paths: options.sources.iter().map(|source| source.path.clone()).collect(),
            host: options.host.clone(),
            user: options.user.clone(),
            program: PROGRAM.to_owned(),
            tags: options.tags.clone(),
            excludes: options.exclude_patterns.clone(),
            client_time_ns: options.client_time_ns,
            ..RecordSecret::default()
        };
        let (series, dry_run) = (self.series, options.dry_run);
        let keeps_leaves = Some(fingerprints);
        NewSnapshot { series, secret, pinned: false, dry_run, keeps_leaves }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_world::World;

    #[test]
    fn a_repository_that_always_lacks_something_else_is_not_tried_for_ever() {
        let (world, folder) = (World::new(), tempfile::tempdir().unwrap());
        let path = folder.path().as_os_str().as_encoded_bytes().to_vec();
        let source = Source { path: path.clone(), read_at: path };
        let options = BackupOptions::new(vec![source], "host".to_owned());
        world.repository.lack_ever_more();
        let ended = backup(&world.access, &options, &Arc::new(Run::new()));
        assert!(matches!(ended, Err(EngineError::Lost { .. })));
        assert_eq!(world.repository.lacks(), Some(u64::from(MOST_LOSSES) + 1));
    }
}
