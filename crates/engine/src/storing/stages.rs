//! The threads from results to the repository.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::Scope;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};
use holdall_crypto::{Overhead, RecordSecret, Sealer, SystemEntropy};
use holdall_format::SeriesId;
use holdall_protocol::SessionGrant;
use holdall_tree::{Fingerprints, TreeBuilder};

use super::ask::{Askers, Gather};
use super::assemble::{Assembled, Assembler, Counts, Records, Results, Uncounted};
use super::level::Level;
use super::meters::StoringMeters;
use super::seal::{Sealing, SelfCheck};
use super::send::Senders;
use super::shared::Shared;
use super::store::{OpenBlocks, PlainBlock, RECENT_IDS, Store};
use super::threads::{ASKERS, senders};
use super::width::Width;
use crate::UnlockedRepository;
use crate::audit::Remembering;
use crate::blocks::SharedNodeCache;
use crate::cache::leaf_cache::NewLeaves;
use crate::cache::recent::Recent;
use crate::records::record::ChainEnd;
use crate::run::lock;

/// Plain and sealed blocks of about 1 MiB that wait.
const PLAIN_BLOCKS_QUEUED: usize = 2;
const SEALED_BLOCKS_QUEUED: usize = 4;
/// How the stages work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stages {
    /// Threads that seal.
    pub(crate) sealers: usize,
    /// Requests with blocks at the same time, from 1 to 8.
    pub(crate) streams: usize,
    /// Whether blocks are opened before they leave.
    pub(crate) self_check: bool,
    /// How often a checkpoint is written.
    pub(crate) checkpoint_every: Duration,
}

/// What a snapshot says of itself beside its tree.
pub(crate) struct NewSnapshot {
    pub(crate) series: SeriesId,
    /// Without what only the tree tells. What could not be read is added to its `unreadable`.
    pub(crate) secret: RecordSecret,
    pub(crate) pinned: bool,
    /// Whether to only count.
    pub(crate) dry_run: bool,
    /// How leaves are known again, if the next snapshot of the series is compared with this one on this
    /// machine.
    pub(crate) keeps_leaves: Option<Fingerprints>,
}

/// The stages of one run that store.
pub(crate) struct Storing<'a> {
    pub(crate) access: &'a UnlockedRepository,
    pub(crate) grant: &'a SessionGrant,
    pub(crate) shared: &'a Shared<'a>,
    pub(crate) meters: &'a StoringMeters,
    pub(crate) cache: &'a SharedNodeCache,
    pub(crate) stages: Stages,
    level: Arc<Level>,
    added_bytes: AtomicU64,
    stored_bytes: AtomicU64,
    overhead: Mutex<Overhead>,
    remembering: Remembering,
    width: Width,
}

impl<'a> Storing<'a> {
    pub(crate) fn new(
        access: &'a UnlockedRepository,
        grant: &'a SessionGrant,
        shared: &'a Shared<'a>,
        meters: &'a StoringMeters,
        cache: &'a SharedNodeCache,
        stages: Stages,
    ) -> Self {
        let (added_bytes, stored_bytes) = Default::default();
        let (level, overhead) = (Level::new(), Mutex::default());
        Self {
            access,
            grant,
            shared,
            meters,
            cache,
            stages,
            level,
            added_bytes,
            stored_bytes,
            overhead,
            remembering: Remembering::within(&access.cache),
            width: Width::new(),
        }
    }

    /// Takes all results in order and commits the snapshot, unless a stage fails: nothing is
    /// committed after the last checkpoint then. The threads that were [started](Self::start) end when the
    /// assembling has.
    pub(crate) fn run<'scope>(
        &'scope self,
        gather: Gather<'scope>,
        new: NewSnapshot,
        results: Receiver<Results>,
    ) -> Option<Assembled> {
        // Before the results are dropped, so that whoever sends them finds the failure.
        let mut guard = self.shared.guard();
        let committed = self.assembler(new, gather).run(&results);
        guard.done();
        self.shared.noted(committed)
    }

    /// Plain bytes of objects that the repository did not have, once all threads have ended.
    pub(crate) fn added_bytes(&self) -> u64 {
        self.added_bytes.load(Ordering::Relaxed)
    }

    /// The same, sealed.
    pub(crate) fn stored_bytes(&self) -> u64 {
        self.stored_bytes.load(Ordering::Relaxed)
    }

    /// What of that is no content.
    pub(crate) fn overhead(&self) -> Overhead {
        *lock(&self.overhead)
    }

    /// Starts everything behind the assembling: a thread for each stage, then what `others` starts, then the
    /// threads that only make a stage faster.
    pub(crate) fn start<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        others: impl FnOnce(),
    ) -> Gather<'scope> {
        let (shared, sealers) = (self.shared, self.stages.sealers);
        let (to_senders, sealed) = bounded(SEALED_BLOCKS_QUEUED);
        let send = |number| {
            let (senders, sealed) = (self.senders(), sealed.clone());
            shared.spawn_nth(scope, number, sealed, move |sealed| senders.run(sealed));
        };
        let (to_sealers, plain) = bounded(PLAIN_BLOCKS_QUEUED);
        let seal = |number| {
            let (sealing, queues) = (self.sealing(), (plain.clone(), to_senders.clone()));
            shared.spawn_nth(scope, number, queues, move |(plain, to_senders)| {
                sealing.run(plain, to_senders)
            });
        };
        let (to_askers, questions) = bounded(1);
        let ask = |number| {
            let (askers, questions) = (self.askers(), questions.clone());
            shared.spawn_nth(scope, number, questions, move |questions| askers.run(questions));
        };
        let (to_store, asked) = bounded(ASKERS);
        let store = self.store(to_sealers);
        shared.spawn(scope, (store, asked), |(store, asked)| store.run(asked));
        send(0);
        seal(0);
        ask(0);
        others();
        (1..senders(self.stages.streams)).for_each(send);
        (1..sealers).for_each(seal);
        (1..ASKERS).for_each(ask);
        Gather::new(self.meters, to_askers, to_store)
    }

    fn askers(&self) -> Askers<'_> {
        let (repository, session) = (&*self.access.repository, self.grant.session);
        Askers { repository, session, meters: self.meters }
    }

    fn senders(&self) -> Senders<'_> {
        Senders {
            repository: &*self.access.repository,
            session: self.grant.session,
            shared: self.shared,
            meters: self.meters,
            stored_bytes: &self.stored_bytes,
            remembering: &self.remembering,
            width: &self.width,
        }
    }

    fn sealing(&self) -> Sealing<'_> {
        Sealing {
            sealer: self.sealer(),
            level: Arc::clone(&self.level),
            overhead: &self.overhead,
            check: self.stages.self_check.then(|| SelfCheck::new(self.access)),
            cache: self.cache,
            meters: self.meters,
        }
    }

    fn sealer(&self) -> Sealer {
        let config = &self.access.config;
        let level = self.level.now();
        let entropy = Box::new(SystemEntropy);
        Sealer::new(self.access.keys.sealing(), config.suite, level, entropy)
    }

    fn store(&self, to_sealers: Sender<PlainBlock>) -> Store<'_> {
        Store {
            shared: self.shared,
            meters: self.meters,
            to_sealers,
            recent: Recent::new(RECENT_IDS),
            open: OpenBlocks::default(),
            added_bytes: &self.added_bytes,
        }
    }

    fn builder(&self, fingerprints: Option<Fingerprints>) -> TreeBuilder {
        let (keys, config) = (&self.access.keys, &self.access.config);
        let builder = TreeBuilder::new(keys.ids().clone(), *keys.boundary_key(), config.leaf_bits);
        match fingerprints {
            Some(fingerprints) => builder.with_fingerprints(fingerprints),
            None => builder,
        }
    }

    fn assembler<'s>(&'s self, new: NewSnapshot, gather: Gather<'s>) -> Assembler<'s> {
        // Whoever holds the node cache has its folder for itself.
        let keeps = !new.dry_run && lock(self.cache).is_some();
        let fingerprints = new.keeps_leaves.filter(|_| keeps);
        let leaves = NewLeaves::begin(&self.access.cache, &new.series, fingerprints.clone());
        Assembler {
            access: self.access,
            shared: self.shared,
            meters: self.meters,
            gather,
            builder: self.builder(fingerprints),
            leaves,
            counts: Counts::default(),
            records: Records {
                session: self.grant.session,
                chain: ChainEnd { head: self.grant.head, sequence: self.grant.sequence },
                series: new.series,
                secret: new.secret,
                pinned: new.pinned,
                sealer: self.sealer(),
                checkpoint_every: self.stages.checkpoint_every,
                last_checkpoint: Instant::now(),
            },
            dry_run: new.dry_run,
            flushes: 0,
            uncounted: Uncounted::default(),
        }
    }
}
