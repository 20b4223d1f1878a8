//! One repository directory, open: what all of its machines share.

pub(crate) mod quota_reservations;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use holdall_format::{ObjectId, PublicKey, ReceiptSigner, RepositoryConfig, RepositoryId};
use holdall_protocol::{Denial, Repair, RepositoryError};
use holdall_sys::Clock;

use crate::append::appender::Appender;
use crate::append::background::Background;
use crate::index::{Index, IndexError, Listing, Lookup};
use crate::log::Log;
use crate::opening::clear_parts::{ClearParts, check_marker};
use crate::opening::create;
use crate::opening::lease::{Access, Lease};
use crate::opening::open::{PacksAndTails, go_on, make_ready, next_known};
use crate::opening::recovery::{self, Recovered, recover};
use crate::opening::session::Sessions;
use crate::opening::wrappings::{SignedSet, Wrappings};
use crate::pack_file::{self, OpenPacks};
use crate::reachability::closure::{self, Descend, Tally};
use crate::reachability::read::StoredBlocks;
use crate::records::entries::{Loaded, Records};
use crate::records::files;
use crate::state_files::scrub_round::ScrubRound;
use crate::storage::Stored;
use crate::storage::layout::{Layout, TailName};
use crate::store::quota_reservations::QuotaReservations;
use crate::tails::tail::Tail;

/// Held by whoever may use the marks of the index and publish records.
pub(crate) type CommitGuard<'a> = MutexGuard<'a, ()>;

/// An open repository directory, shared by all machines that use it.
///
/// It holds the repository's lease until it is dropped.
pub struct Store {
    layout: Layout,
    config: RepositoryConfig,
    /// The configuration's bytes as they were signed.
    config_bytes: Bytes,
    wrappings: Wrappings,
    /// `None` for a store that only reads.
    writer: Option<Writer>,
    blocks: StoredBlocks,
    log: Arc<Log>,
    records: Records,
    sessions: Arc<Sessions>,
    room: QuotaReservations,
    signer: Arc<dyn ReceiptSigner>,
    clock: Arc<dyn Clock>,
    commit: Mutex<()>,
    /// Files that could not be read at the start, with the reason.
    unreadable_files: Mutex<Vec<(PathBuf, String)>>,
    /// Tails that the disk did not give at the start.
    unopened: Vec<TailName>,
    /// Packs, and folders of packs, that could not be read when the index was made last.
    left_out: Mutex<Vec<Stored>>,
    /// Records that could not be read when this was opened.
    unread: Vec<Stored>,
    /// What was repaired when this was opened, and was not told yet.
    repaired: Mutex<Vec<Repair>>,
    /// How far a scrub in rounds has come, where that could not be written.
    unwritten_round: Mutex<Option<ScrubRound>>,
    /// A node that somebody gave other references than a commit reached.
    forged: Mutex<Option<ObjectId>>,
    /// Declared last so that it drops last: given back earlier, it would let another process write.
    lease: Arc<Lease>,
}

/// What only a writer has.
struct Writer {
    /// Stopped before the rest goes.
    background: Background,
    appender: Appender,
}

impl Writer {
    /// Starts what works in the background, and goes on appending to the tails that are there.
    fn start(
        layout: &Layout,
        repository: RepositoryId,
        index: &Arc<Index>,
        log: &Arc<Log>,
        lease: &Arc<Lease>,
        tails: Vec<Arc<Tail>>,
    ) -> Self {
        let background = Background::start(index.clone(), layout);
        let (index, log, lease) = (index.clone(), log.clone(), lease.clone());
        let appender = Appender::new(layout, repository, index, log, lease, tails);
        Self { background, appender }
    }
}

impl Store {
    /// Makes a repository in `dir`, which may be missing or empty.
    ///
    /// # Errors
    /// [`RepositoryError::AlreadyExists`]; [`RepositoryError::Refused`] if the parts do not fit
    /// each other or the directory holds something else; after any other error, calling again is
    /// safe.
    pub fn create(
        dir: &Path,
        new: &holdall_protocol::NewRepository,
    ) -> Result<(), RepositoryError> {
        create::create(&Layout::new(dir), new)
    }

    /// Opens the repository in `dir` to read and write. What is derived is kept in `cache_dir`,
    /// which is this repository's own and may be deleted whenever it is not open.
    ///
    /// # Errors
    /// [`RepositoryError::NoRepository`]; [`RepositoryError::InUse`] while somebody else has it
    /// open; [`RepositoryError::Damaged`] if its configuration cannot be read.
    pub fn open(
        dir: &Path,
        cache_dir: &Path,
        signer: Arc<dyn ReceiptSigner>,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Self>, RepositoryError> {
        Self::open_for(Access::Write, dir, cache_dir, signer, clock).map(Arc::new)
    }

    /// As [`Store::open`], but changes nothing in `dir` and lets others read too.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_to_read(
        dir: &Path,
        cache_dir: &Path,
        signer: Arc<dyn ReceiptSigner>,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Self>, RepositoryError> {
        Self::open_for(Access::Read, dir, cache_dir, signer, clock).map(Arc::new)
    }

    fn open_for(
        access: Access,
        dir: &Path,
        cache_dir: &Path,
        signer: Arc<dyn ReceiptSigner>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, RepositoryError> {
        Self::open_at(Layout::new(dir), access, cache_dir, signer, clock)
    }

    /// Opens the repository of that layout.
    pub(crate) fn open_at(
        layout: Layout,
        access: Access,
        cache_dir: &Path,
        signer: Arc<dyn ReceiptSigner>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, RepositoryError> {
        check_marker(&layout)?;
        let lease = Arc::new(Lease::take(&layout, access)?);
        let clear = ClearParts::read(&layout)?;
        let can_write = access == Access::Write;
        let mut repaired = Vec::new();
        if can_write {
            make_ready(&layout, &lease)?;
            repaired = clear.repair(&layout, &lease)?;
        }
        let ClearParts { config, config_bytes, wrappings, .. } = clear;
        let repository = config.repository;
        let mut recovered = recover(&layout, &repository, access, &lease)?;
        let found = PacksAndTails::read(&layout, cache_dir, access, &repository, &mut recovered)?;
        let Loaded { records, damaged, unread, next_position } = Records::load(&layout)?;
        let sessions = Arc::new(Sessions::open(&layout, can_write)?);
        let next = next_known(&found, &recovered, next_position, &sessions);
        let log = Arc::new(go_on(&layout, access, &lease, next, found.is_whole)?);
        let PacksAndTails { index, tails, mut unreadable_files, left_out, .. } = found;
        unreadable_files.extend(damaged);
        let writer =
            can_write.then(|| Writer::start(&layout, repository, &index, &log, &lease, tails));
        let blocks = StoredBlocks::new(&layout, index);
        let store = Self {
            wrappings: Wrappings::open(&layout, config_bytes.clone(), wrappings)?,
            layout,
            config,
            config_bytes,
            writer,
            blocks,
            log,
            records,
            sessions,
            room: QuotaReservations::default(),
            signer,
            clock,
            commit: Mutex::new(()),
            unreadable_files: Mutex::new(unreadable_files),
            unopened: std::mem::take(&mut recovered.unopened),
            left_out: Mutex::new(left_out),
            unread,
            repaired: Mutex::new(repaired),
            unwritten_round: Mutex::new(None),
            forged: Mutex::new(None),
            lease,
        };
        store.finish_opening(&recovered)?;
        Ok(store)
    }

    /// Puts in order what a crash left, and marks what records since the last save reach.
    fn finish_opening(&self, recovered: &Recovered) -> Result<(), RepositoryError> {
        if let Some(writer) = &self.writer {
            for salvaged in &recovered.salvaged {
                writer.appender.append_salvaged(salvaged)?;
            }
            for name in &recovered.lost {
                writer.appender.put_lost_aside(*name)?;
            }
            writer.appender.close_full();
            writer.background.wake();
            self.records.remove_buried()?;
            // What got its name just before a crash, or where the disk failed, is listed from now on.
            self.layout.records().sync()?;
            if self.unopened.is_empty() {
                self.lease.settle()?;
            }
        }
        self.mark_records(&self.lock_commit())
    }

    /// Descends from the records that are not in the closed bits yet.
    pub(crate) fn mark_records(&self, commit: &CommitGuard<'_>) -> Result<(), RepositoryError> {
        self.mark_records_by(|root| self.descend(commit, root, Descend::UnmarkedOnly))
    }

    /// Marks everything that `root` reaches, and says what of it is missing: [`closure::descend`].
    pub(crate) fn descend(
        &self,
        commit: &CommitGuard<'_>,
        root: ObjectId,
        which: Descend,
    ) -> Result<Vec<ObjectId>, RepositoryError> {
        let rebuild = |generation| self.rebuild_index(commit, generation);
        closure::descend(&self.blocks, Some(&rebuild), root, which)
    }

    /// Counts what `root` reaches, and leaves no marks.
    pub(crate) fn tally(
        &self,
        commit: &CommitGuard<'_>,
        root: ObjectId,
        old_before: u64,
    ) -> Result<Tally, RepositoryError> {
        let rebuild = |generation| self.rebuild_index(commit, generation);
        closure::tally(&self.blocks, &rebuild, root, old_before)
    }

    fn mark_records_by(
        &self,
        descend: impl Fn(ObjectId) -> Result<Vec<ObjectId>, RepositoryError>,
    ) -> Result<(), RepositoryError> {
        // An attempt that failed half-way may have left marks.
        self.blocks.index.drop_tentative();
        for record in self.records.after(self.blocks.index.closed_position()) {
            let is_whole = match descend(record.root) {
                Ok(missing) => missing.is_empty(),
                // A tree that was committed in stages may be too broad to be walked at once. It was said
                // to be there, and keeps nobody from opening the repository.
                Err(RepositoryError::Refused { .. }) => false,
                Err(error) => return Err(error),
            };
            if is_whole {
                self.blocks.index.close_tentative(record.position);
            } else {
                // What is damaged is for a scrub to tell. Its chunks that are there need not be
                // sent again; its nodes count as there once a commit reached them again.
                match self.blocks.index.close_tentative_chunks() {
                    // They are sent again then.
                    Err(IndexError::Damaged { .. }) => self.blocks.index.drop_tentative(),
                    closed => closed?,
                }
            }
        }
        Ok(())
    }

    /// The repository's id.
    pub fn repository(&self) -> RepositoryId {
        self.config.repository
    }

    /// The identities that the repository's recovery kits sign in with.
    pub fn recovery_identities(&self) -> Vec<PublicKey> {
        self.wrappings.recovery_identities()
    }

    /// The identities of the recovery kits in a set of wrappings that somebody wants to put.
    ///
    /// # Errors
    /// [`RepositoryError::Refused`] for a set that cannot be this repository's, or names a kit that is neither
    /// proven nor in the current set.
    pub fn recovery_identities_of(
        &self,
        wrappings: &Bytes,
    ) -> Result<Vec<PublicKey>, RepositoryError> {
        Ok(self.check_wrappings(wrappings)?.set.recovery_identities())
    }

    /// Answers [`holdall_protocol::Repository::put_wrappings`]; older sets stay where they are.
    ///
    /// # Errors
    /// As said there.
    pub fn put_wrappings(&self, wrappings: &Bytes) -> Result<(), RepositoryError> {
        let next = self.check_wrappings(wrappings)?;
        self.appender()?;
        let bytes = wrappings.len() as u64;
        let _place = self.room().take_reserved(bytes, || self.quota_used_bytes())?;
        self.wrappings.put(next, || self.lease.renew())
    }

    fn check_wrappings(&self, wrappings: &Bytes) -> Result<SignedSet, RepositoryError> {
        SignedSet::check(wrappings, &self.config, &self.recovery_identities())
    }

    /// Removes all sets of wrappings but the one that counts.
    pub(crate) fn remove_older_wrappings(&self) -> Result<(), RepositoryError> {
        // What somebody put who took over would go as well.
        self.lease.renew()?;
        self.wrappings.remove_older()
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The configuration's bytes as they were signed.
    pub(crate) fn config_bytes(&self) -> Bytes {
        self.config_bytes.clone()
    }

    pub(crate) fn wrappings(&self) -> &Wrappings {
        &self.wrappings
    }

    pub(crate) fn blocks(&self) -> &StoredBlocks {
        &self.blocks
    }

    pub(crate) fn index(&self) -> &Index {
        &self.blocks.index
    }

    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    pub(crate) fn records(&self) -> &Records {
        &self.records
    }

    pub(crate) fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// Its sessions, for the store that is opened in its place.
    pub fn shared_sessions(&self) -> Arc<Sessions> {
        self.sessions.clone()
    }

    /// Takes over the sessions of a store of this directory that was open in this process before, those too
    /// that have no file. The log goes on behind their starts, or what they read would look as if it had come
    /// before them.
    pub fn adopt_sessions(&self, earlier: &Sessions) {
        self.sessions.adopt(earlier);
        self.log.at_least(self.sessions.latest_start());
    }

    pub(crate) fn room(&self) -> &QuotaReservations {
        &self.room
    }

    pub(crate) fn signer(&self) -> &dyn ReceiptSigner {
        &*self.signer
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    pub(crate) fn now_ns(&self) -> i64 {
        self.clock.now_ns()
    }

    /// How many nanoseconds have passed since the clock showed that time.
    pub(crate) fn passed_ns(&self, since_ns: i64) -> i64 {
        self.clock.passed_ns(since_ns)
    }

    pub(crate) fn can_write(&self) -> bool {
        self.writer.is_some()
    }

    /// Files that could not be read at the start, and what was found damaged since.
    pub(crate) fn unreadable_files(&self) -> Vec<(PathBuf, String)> {
        let since = self.writer.as_ref().map(|writer| writer.appender.damaged());
        self.lock_unreadable_files().iter().cloned().chain(since.into_iter().flatten()).collect()
    }

    /// True if a tail, pack or record that was unreadable when this store was opened, or when it rebuilt its index, is
    /// readable now. This reads a tail whole, and of a pack its footer. Also true if the store commits nothing any
    /// more: it does not know whether a record was published, or another process took the lease.
    pub fn reopen_would_recover(&self) -> bool {
        self.records.is_in_doubt()
            || matches!(self.lease.check(), Err(RepositoryError::InUse { .. }))
            || self.unopened.iter().any(|tail| recovery::is_readable(&self.layout, *tail))
            || self
                .lock_left_out()
                .iter()
                .any(|path| pack_file::is_readable(path, &self.repository()))
            || self.unread.iter().any(files::is_readable)
    }

    /// Whether the disk did not give a tail when this store was opened: it may the next time.
    pub(crate) fn is_unopened(&self, tail: TailName) -> bool {
        self.unopened.contains(&tail)
    }

    /// Where a node is noted that was refused for its references.
    pub(crate) fn forged(&self) -> MutexGuard<'_, Option<ObjectId>> {
        self.forged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was repaired when this was opened, unless it was told before.
    pub fn take_repaired(&self) -> Vec<Repair> {
        std::mem::take(&mut *self.repaired.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn unwritten_round(&self) -> MutexGuard<'_, Option<ScrubRound>> {
        self.unwritten_round.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Packs, and folders that may hold some, that could not be read.
    pub(crate) fn left_out(&self) -> Vec<Stored> {
        self.lock_left_out().clone()
    }

    fn lock_left_out(&self) -> MutexGuard<'_, Vec<Stored>> {
        self.left_out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that a file is no longer unreadable_files: it was repaired, or put aside.
    pub(crate) fn forget_unreadable(&self, repaired: &Path) {
        self.lock_unreadable_files().retain(|(path, _)| path != repaired);
    }

    fn lock_unreadable_files(&self) -> MutexGuard<'_, Vec<(PathBuf, String)>> {
        self.unreadable_files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What appends blocks, for as long as the lease is held.
    pub(crate) fn appender(&self) -> Result<&Appender, RepositoryError> {
        self.lease.check()?;
        let writer = self.writer.as_ref().ok_or_else(|| {
            RepositoryError::denied(Denial::Other, "the repository is open for reading only")
        })?;
        Ok(&writer.appender)
    }

    /// The lease, which whoever publishes under a number renews just before.
    pub(crate) fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Has the index merged and saved in the background.
    pub(crate) fn tend_index(&self) {
        if let Some(writer) = &self.writer {
            writer.background.wake();
        }
    }

    pub(crate) fn lock_commit(&self) -> CommitGuard<'_> {
        self.commit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`Store::lookup`], with the copies in condemned packs behind the others: until they are
    /// gone, they can be read.
    pub(crate) fn lookup_stored(&self, ids: Vec<ObjectId>) -> Result<Lookup, RepositoryError> {
        self.look_up(None, ids, Index::lookup_stored)
    }

    /// As [`Store::lookup_stored`], for who holds the commit lock.
    pub(crate) fn lookup_stored_holding(
        &self,
        commit: &CommitGuard<'_>,
        ids: Vec<ObjectId>,
    ) -> Result<Lookup, RepositoryError> {
        self.look_up(Some(commit), ids, Index::lookup_stored)
    }

    /// Finds all copies of `ids`; an index that is damaged is rebuilt. Whoever holds the commit
    /// lock calls [`Store::lookup_holding`].
    pub(crate) fn lookup(&self, ids: Vec<ObjectId>) -> Result<Lookup, RepositoryError> {
        self.look_up(None, ids, Index::lookup)
    }

    /// As [`Store::lookup`], for who holds the commit lock.
    pub(crate) fn lookup_holding(
        &self,
        commit: &CommitGuard<'_>,
        ids: Vec<ObjectId>,
    ) -> Result<Lookup, RepositoryError> {
        self.look_up(Some(commit), ids, Index::lookup)
    }

    fn look_up(
        &self,
        commit: Option<&CommitGuard<'_>>,
        ids: Vec<ObjectId>,
        find: impl Fn(&Index, Vec<ObjectId>) -> Result<Lookup, IndexError>,
    ) -> Result<Lookup, RepositoryError> {
        let generation = self.blocks.index.state().generation;
        match find(&self.blocks.index, ids.clone()) {
            Err(IndexError::Damaged { .. }) => {
                match commit {
                    Some(commit) => self.rebuild_index(commit, generation)?,
                    None => self.rebuild_index(&self.lock_commit(), generation)?,
                }
                Ok(find(&self.blocks.index, ids)?)
            }
            answer => Ok(answer?),
        }
    }

    /// Rebuilds the index and marks from all records, unless that was done since `generation`.
    pub(crate) fn rebuild_index(
        &self,
        _commit: &CommitGuard<'_>,
        generation: u64,
    ) -> Result<(), RepositoryError> {
        if self.blocks.index.state().generation != generation {
            return Ok(());
        }
        let (listing, ended) = self.blocks.index.rebuild(&self.layout)?;
        self.learn_left_out(listing);
        ended?;
        // Were it damaged again, rebuilding it would lead here once more: that is an error.
        let descend = |root| closure::descend(&self.blocks, None, root, Descend::UnmarkedOnly);
        self.mark_records_by(descend)
    }

    /// Of what could not be read before, what can be now is strange no longer.
    fn learn_left_out(&self, Listing { left_out, unreadable_files, .. }: Listing) {
        let before = std::mem::replace(&mut *self.lock_left_out(), left_out.clone());
        let mut known = self.lock_unreadable_files();
        let is_in = |all: &[Stored], path: &Path| all.iter().any(|one| one.path() == path);
        known.retain(|(path, _)| !is_in(&before, path));
        known.extend(unreadable_files.into_iter().filter(|(path, _)| is_in(&left_out, path)));
    }

    /// Rebuilds the index if any of it is damaged: for what goes through all of it, also where no
    /// lookup comes by, and cannot begin anew half-way.
    pub(crate) fn repair_index(&self, commit: &CommitGuard<'_>) -> Result<(), RepositoryError> {
        let generation = self.blocks.index.state().generation;
        match self.blocks.index.check() {
            Err(IndexError::Damaged { .. }) => self.rebuild_index(commit, generation),
            checked => Ok(checked?),
        }
    }

    pub(crate) fn packs(&self) -> &OpenPacks {
        &self.blocks.packs
    }
}
