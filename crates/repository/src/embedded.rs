//! A repository in a directory, used in-process by one machine.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use holdall_format::{
    MachineId, ObjectId, PublicKey, ReceiptSigner, RecordHash, SessionId, TombstoneReason,
    WrappingSet,
};
use holdall_protocol::{
    BlockPage, BlockProbe, Buried, CommitAnswer, Compacting, Denial, Description, Fetched,
    ListedRecord, NewRepository, OwnedRepository, PruneReport, ReadSessions, RecordQuery,
    RepairReport, Repository, RepositoryError, RequestTimes, ScrubProgress, ScrubReport,
    SessionGrant, SessionPurpose, SparseBlock, Superseding, Traffic, Usage,
};
use holdall_sys::Clock;

use crate::opening::clear_parts::{self, ClearParts};
use crate::opening::lease::Access;
use crate::prune::PruneOptions;
use crate::records::files;
use crate::repair::put_back;
use crate::storage::layout::Layout;
use crate::store::Store;

/// How long condemned packs stay where others may write whom no lock keeps out.
const SHARE_GRACE: Duration = Duration::from_secs(24 * 3600);

/// Who prunes by hand wants back nearly all that is not needed.
const SPARSE_PART: u64 = 20;

/// What is needed to open a directory when it is first used.
struct Place {
    dir: PathBuf,
    cache_dir: PathBuf,
    signer: Arc<dyn ReceiptSigner>,
    clock: Arc<dyn Clock>,
    open: Mutex<Option<Arc<Store>>>,
}

enum Source {
    /// A store that somebody else opened and shares.
    Shared(Arc<Store>),
    /// A place that is opened here.
    Place(Place),
}

/// [`Repository`] on a directory, for one machine.
///
/// Describing and listing records need no lease. A read session takes the lease together with other
/// readers, everything that writes takes it alone; it is given back when this is dropped, and what only reads
/// gives it back when it rests.
pub struct EmbeddedRepository {
    layout: Layout,
    source: Source,
    machine: MachineId,
    key: PublicKey,
    should_stop: Arc<AtomicBool>,
    reading: ReadSessions,
}

impl EmbeddedRepository {
    /// The repository at `dir`, which need not be made yet and is opened when it is first used.
    /// What is derived is kept in `cache_dir`, which is this repository's own.
    pub fn at(
        dir: &Path,
        cache_dir: &Path,
        machine: MachineId,
        key: PublicKey,
        signer: Arc<dyn ReceiptSigner>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let open = Mutex::new(None);
        let (layout, dir) = (Layout::new(dir), dir.to_owned());
        let place = Place { dir, cache_dir: cache_dir.to_owned(), signer, clock, open };
        let (should_stop, reading) = (Arc::default(), ReadSessions::default());
        Self { layout, source: Source::Place(place), machine, key, should_stop, reading }
    }

    /// The same, which ends a scrub with [`RepositoryError::Interrupted`] once the flag is set.
    #[must_use]
    pub fn stopped_by(self, should_stop: Arc<AtomicBool>) -> Self {
        Self { should_stop, ..self }
    }

    fn store(&self, access: Access) -> Result<Arc<Store>, RepositoryError> {
        match &self.source {
            Source::Shared(store) => Ok(store.clone()),
            Source::Place(place) => place.store(access),
        }
    }

    /// The store of a directory that this process alone writes to: whoever owns it may delete.
    fn owned(&self) -> Result<Arc<Store>, RepositoryError> {
        match &self.source {
            Source::Shared(_) => {
                let reason = "whoever keeps the repository for others deletes";
                Err(RepositoryError::denied(Denial::Other, reason))
            }
            Source::Place(place) => place.store(Access::Write),
        }
    }

    fn signer(&self) -> PublicKey {
        match &self.source {
            Source::Shared(store) => store.signer().public(),
            Source::Place(place) => place.signer.public(),
        }
    }
}

impl Place {
    /// The open store; opened now if it is not, or not for writing though that is wanted.
    fn store(&self, access: Access) -> Result<Arc<Store>, RepositoryError> {
        let mut open = self.lock();
        let fits = |store: &&Arc<Store>| access == Access::Read || store.can_write();
        if let Some(store) = open.as_ref().filter(fits) {
            return Ok(store.clone());
        }
        // A shared lease is given back first, else this process would be in its own way.
        let earlier = open.take();
        let sessions = earlier.as_ref().map(|store| store.shared_sessions());
        drop(earlier);
        let (signer, clock) = (self.signer.clone(), self.clock.clone());
        let store = match access {
            Access::Write => Store::open(&self.dir, &self.cache_dir, signer, clock)?,
            Access::Read => Store::open_to_read(&self.dir, &self.cache_dir, signer, clock)?,
        };
        if let Some(sessions) = sessions {
            store.adopt_sessions(&sessions);
        }
        *open = Some(store.clone());
        Ok(store)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Store>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store {
    /// The repository as one machine may use it, whose records are signed by that key.
    pub fn for_machine(self: &Arc<Self>, machine: MachineId, key: PublicKey) -> EmbeddedRepository {
        let (layout, source) = (self.layout().clone(), Source::Shared(self.clone()));
        let (should_stop, reading) = (Arc::default(), ReadSessions::default());
        EmbeddedRepository { layout, source, machine, key, should_stop, reading }
    }
}

impl Repository for EmbeddedRepository {
    fn create(&self, new: &NewRepository) -> Result<(), RepositoryError> {
        crate::opening::create::create(&self.layout, new)
    }

    fn put_back(&self, known: &NewRepository) -> Result<(), RepositoryError> {
        match &self.source {
            // What is open is sound.
            Source::Shared(_) => Ok(()),
            Source::Place(_) => {
                // Nobody signs in to a directory: its kits are taken as they are.
                let kits = WrappingSet::decode_signed(&known.wrappings)?.recovery_identities();
                put_back::put_back(&self.layout, known, &kits).map(drop)
            }
        }
    }

    fn put_back_record(&self, stored: &Bytes) -> Result<(), RepositoryError> {
        let store = self.store(Access::Write)?;
        // A directory has the receipts of all who wrote to it.
        let signer = match &self.source {
            Source::Shared(_) => Some(self.signer()),
            Source::Place(_) => None,
        };
        store.put_back_record(stored, signer, false)
    }

    fn describe(&self) -> Result<Description, RepositoryError> {
        let (config, wrappings) = match &self.source {
            Source::Shared(store) => (store.config_bytes(), store.wrappings().bytes()),
            Source::Place(_) => {
                let parts = ClearParts::read(&self.layout)?;
                (parts.config_bytes, parts.wrappings.bytes)
            }
        };
        let (machine, signer) = (self.machine, self.signer());
        Ok(Description { config, wrappings, machine, signer })
    }

    fn put_wrappings(&self, wrappings: &Bytes) -> Result<(), RepositoryError> {
        let store = self.store(Access::Write)?;
        store.put_wrappings(wrappings)?;
        match &self.source {
            Source::Shared(_) => Ok(()),
            Source::Place(_) => store.remove_older_wrappings(),
        }
    }

    fn open_session(&self, purpose: &SessionPurpose) -> Result<SessionGrant, RepositoryError> {
        let access = match purpose {
            SessionPurpose::Backup { .. } => Access::Write,
            SessionPurpose::Read => Access::Read,
        };
        let store = self.store(access)?;
        let grant = store.open_session(&self.machine, purpose)?;
        self.reading.opened(purpose, &grant);
        Ok(grant)
    }

    fn is_here(&self) -> bool {
        true
    }

    fn rest(&self) {
        if let Source::Place(place) = &self.source {
            let mut open = place.lock();
            // Who opens a session holds the store while it is noted.
            let is_idle = |store: &mut Arc<Store>| {
                !store.can_write() && Arc::strong_count(store) == 1 && self.reading.is_empty()
            };
            drop(open.take_if(is_idle));
        }
    }

    fn missing(&self, session: &SessionId, ids: &[ObjectId]) -> Result<Vec<bool>, RepositoryError> {
        self.store(Access::Read)?.missing(&self.machine, session, ids)
    }

    fn put_blocks(
        &self,
        session: &SessionId,
        blocks: &[Bytes],
    ) -> Result<RequestTimes, RepositoryError> {
        self.store(Access::Write)?.put_blocks(&self.machine, session, blocks)
    }

    fn commit(&self, session: &SessionId, record: &Bytes) -> Result<CommitAnswer, RepositoryError> {
        self.store(Access::Write)?.commit(&self.machine, &self.key, session, record)
    }

    fn close_session(&self, session: &SessionId) -> Result<(), RepositoryError> {
        let session = self.reading.closed(session);
        self.store(Access::Read)?.sessions().close(&session, &self.machine)
    }

    fn records(&self, query: &RecordQuery) -> Result<Vec<ListedRecord>, RepositoryError> {
        clear_parts::check_marker(&self.layout)?;
        files::list(&self.layout, query)
    }

    fn fetch_objects(
        &self,
        session: &SessionId,
        ids: &[ObjectId],
        copy: u32,
    ) -> Result<Fetched, RepositoryError> {
        let store = self.store(Access::Read)?;
        let open = || self.open_session(&SessionPurpose::Read);
        let fetch = |session: &_| store.fetch_objects(&self.machine, session, ids, copy);
        self.reading.ask(session, open, fetch)
    }

    fn read_blocks(&self, session: &SessionId, cursor: u64) -> Result<BlockPage, RepositoryError> {
        let store = self.store(Access::Read)?;
        let open = || self.open_session(&SessionPurpose::Read);
        self.reading.ask(session, open, |session| store.read_blocks(&self.machine, session, cursor))
    }

    fn prove_blocks(
        &self,
        session: &SessionId,
        probes: &[BlockProbe],
    ) -> Result<Vec<Option<Bytes>>, RepositoryError> {
        self.store(Access::Read)?.prove_blocks(&self.machine, session, probes)
    }

    fn scrub(
        &self,
        progress: &mut dyn FnMut(ScrubProgress),
    ) -> Result<ScrubReport, RepositoryError> {
        self.store(Access::Read)?.scrub(&self.should_stop, progress)
    }

    fn usage(&self) -> Result<Usage, RepositoryError> {
        Ok(self.store(Access::Read)?.usage())
    }

    fn traffic(&self) -> Traffic {
        Traffic::default()
    }
}

impl OwnedRepository for EmbeddedRepository {
    fn vouch_for_record(&self, stored: &Bytes) -> Result<(), RepositoryError> {
        self.owned()?.put_back_record(stored, None, true)
    }

    fn bury_lost(&self, stored: &Bytes) -> Result<Buried, RepositoryError> {
        self.owned()?.bury_lost(stored)
    }

    fn forget(&self, snapshots: &[RecordHash]) -> Result<(), RepositoryError> {
        self.owned()?.forget(snapshots, TombstoneReason::Request)
    }

    fn prune(&self, dry_run: bool) -> Result<PruneReport, RepositoryError> {
        let store = self.owned()?;
        // Under a lock that all who write respect, nobody relies on what is condemned.
        let grace = if store.lease().is_local() { Duration::ZERO } else { SHARE_GRACE };
        let options = PruneOptions { grace, sparse_part: SPARSE_PART };
        match dry_run {
            true => store.foresee_prune(&options, &[]),
            false => store.prune(&options, &self.should_stop),
        }
    }

    fn repair(
        &self,
        dry_run: bool,
        progress: &mut dyn FnMut(ScrubProgress),
    ) -> Result<RepairReport, RepositoryError> {
        self.owned()?.repair(dry_run, &self.should_stop, progress)
    }

    fn keep_parity(&self, percent: u8) -> Result<u64, RepositoryError> {
        self.owned()?.keep_parity(percent, &self.should_stop)
    }
}

impl Compacting for EmbeddedRepository {
    fn sparse_blocks(&self, from: u64) -> Result<Vec<SparseBlock>, RepositoryError> {
        self.owned()?.sparse_blocks(from)
    }

    fn supersede(
        &self,
        session: &SessionId,
        blocks: &[u64],
    ) -> Result<Superseding, RepositoryError> {
        let store = self.owned()?;
        let superseded = store.supersede(blocks, false)?;
        store.end_session(&self.machine, session)?;
        let blocks = superseded.map_or(0, |superseded| superseded.blocks);
        Ok(Superseding { blocks, waiting: None })
    }
}

impl Store {
    fn open_session(
        &self,
        machine: &MachineId,
        purpose: &SessionPurpose,
    ) -> Result<SessionGrant, RepositoryError> {
        if matches!(purpose, SessionPurpose::Backup { .. }) {
            self.appender()?;
        }
        let start = self.log().next();
        let session = self.sessions().start(*machine, purpose, start, self.clock())?;
        let head = self.records().head(machine);
        let sequence = head.as_ref().map_or(0, |head| head.sequence);
        Ok(SessionGrant { session, head: head.map(|head| head.hash), sequence })
    }
}
