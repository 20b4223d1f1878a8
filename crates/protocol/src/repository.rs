//! What may be asked of a repository: of every one, of one that the asking machine owns, and of one on a server.

use bytes::Bytes;
use holdall_format::{ObjectId, RecordHash, SessionId};

use crate::wire::RunReport;
use crate::{
    AdminToken, Announced, AskedPrune, BlockPage, BlockProbe, Buried, CommitAnswer, Description,
    Fetched, ListedRecord, NewRepository, PruneReport, RecordQuery, RepairReport, RepositoryError,
    RequestTimes, ScrubProgress, ScrubReport, SessionGrant, SessionPurpose, SparseBlock,
    Superseding, Traffic, Usage, WaitingDeletion,
};

/// Everything that one machine may ask of one repository, wherever it is. No verb overwrites, and none deletes.
///
/// Every method may be called from many threads at once. A method that failed with
/// [`RepositoryError::Unreachable`] may be called again with the same arguments: all are idempotent.
pub trait Repository: Send + Sync {
    /// Makes the repository.
    ///
    /// # Errors
    /// [`RepositoryError::AlreadyExists`]; [`RepositoryError::Refused`] if the parts do not fit
    /// each other.
    fn create(&self, new: &NewRepository) -> Result<(), RepositoryError>;

    /// Gives the repository back what it says of itself in clear, if no copy of that is sound there any more:
    /// its configuration, and a set of wrappings of at least the newest generation that it knows of. Where it has
    /// the same, nothing is changed.
    ///
    /// # Errors
    /// [`RepositoryError::Refused`] if the parts do not fit each other or what is there, or the set is older;
    /// [`RepositoryError::NoRepository`]; [`RepositoryError::InUse`] while another process writes to a directory.
    fn put_back(&self, known: &NewRepository) -> Result<(), RepositoryError>;

    /// Stores a record and its receipt again under its log position, if what lies there is damaged or gone, and no
    /// tombstone is in its place. Where it is sound, nothing is changed. A tombstone likewise, if a record follows the
    /// one that was forgotten.
    ///
    /// # Errors
    /// [`RepositoryError::Refused`] if it is not of this repository, its receipt is not one that this keeper would take,
    /// or another record has its position; [`RepositoryError::InUse`] while another process writes to a directory.
    fn put_back_record(&self, stored: &Bytes) -> Result<(), RepositoryError>;

    /// Says what the repository is.
    ///
    /// # Errors
    /// [`RepositoryError::NoRepository`].
    fn describe(&self) -> Result<Description, RepositoryError>;

    /// Replaces the set of wrappings: what may open the repository, and which recovery kits may sign
    /// in to read it. The set is signed by the key of the newest of its key epochs, has those of the current
    /// set and perhaps more, and its generation is the current one's and 1. The current set again
    /// changes nothing.
    ///
    /// # Errors
    /// [`RepositoryError::Refused`] for a set that breaks the format, has no wrapping, is of another
    /// repository or owner, lacks an epoch, or is of another generation: then the keys were changed
    /// meanwhile;
    /// [`RepositoryError::InUse`] while another process writes to a directory.
    fn put_wrappings(&self, wrappings: &Bytes) -> Result<(), RepositoryError>;

    /// Opens a session.
    ///
    /// # Errors
    /// [`RepositoryError::InUse`] while another machine or process writes.
    fn open_session(&self, purpose: &SessionPurpose) -> Result<SessionGrant, RepositoryError>;

    /// Whether this process reads the repository's disk itself, so that no request goes over a network.
    fn is_here(&self) -> bool {
        false
    }

    /// Whether a server was asked something that it has not answered yet.
    fn is_asking(&self) -> bool {
        false
    }

    /// Gives back what keeps others from writing, where no session is open: the next question takes it again. For who
    /// stays for long and asks seldom.
    fn rest(&self) {}

    /// Tells for each id, in order, whether it must be put: `true` for missing. An id is there only
    /// if it is closed or this machine put it in a session that has not lapsed.
    ///
    /// # Errors
    /// [`RepositoryError::NoSession`]; [`RepositoryError::Refused`] over [`crate::MAX_IDS`] ids.
    fn missing(&self, session: &SessionId, ids: &[ObjectId]) -> Result<Vec<bool>, RepositoryError>;

    /// Stores whole blocks. When it returns they are durable.
    ///
    /// # Errors
    /// [`RepositoryError::NoSession`]; [`RepositoryError::Refused`] for a block that breaks the
    /// format, is of another repository, or gives a closed node other references, and over
    /// [`crate::MAX_PUT_BYTES`]; [`RepositoryError::NotAllowed`] where they would pass the quota,
    /// and none is stored then; [`RepositoryError::NoRoom`]. After any other error none, some or all
    /// are stored; putting them again is safe.
    fn put_blocks(
        &self,
        session: &SessionId,
        blocks: &[Bytes],
    ) -> Result<RequestTimes, RepositoryError>;

    /// Publishes a record (snapshot or checkpoint) if everything that its root reaches is durable
    /// and the machine's head is the record's `previous`. The same record again gets the same
    /// receipt. A snapshot ends the session. An amendment is published if the snapshot that it
    /// amends is there and has its root; a session that reads is enough for it.
    ///
    /// # Errors
    /// [`RepositoryError::HeadMoved`], [`RepositoryError::NoSession`],
    /// [`RepositoryError::Refused`].
    fn commit(&self, session: &SessionId, record: &Bytes) -> Result<CommitAnswer, RepositoryError>;

    /// Ends a session without a commit. What was put stays live for 7 days.
    ///
    /// # Errors
    /// [`RepositoryError::Unreachable`]; an unknown session is no error.
    fn close_session(&self, session: &SessionId) -> Result<(), RepositoryError>;

    /// Lists stored records, whole or damaged, in order of log position. There may be fewer than were
    /// asked for, since answers are bounded in bytes too; only an empty answer is the end.
    ///
    /// # Errors
    /// [`RepositoryError::NoRepository`]; [`RepositoryError::OtherRecords`] if those up to the
    /// position are not the known ones; [`RepositoryError::Io`] if it cannot be seen which there
    /// are.
    fn records(&self, query: &RecordQuery) -> Result<Vec<ListedRecord>, RepositoryError>;

    /// Fetches whole blocks that together hold a prefix of `ids`, each block once, in order of
    /// first use. Stops after [`crate::FETCH_TARGET_BYTES`]: the caller looks which ids it has and
    /// asks again. `copy` 0 is the authoritative copy of each; a reader whose copy opens to a wrong
    /// id asks for 1, and so on.
    ///
    /// Untrusted: blocks come as the disk gave them, for the reader opens them. Of a single id the block is
    /// looked at first, and the next copy taken where one is damaged: a reader asks so for what did not open.
    ///
    /// # Errors
    /// [`RepositoryError::MissingObjects`] if the first id has no such copy;
    /// [`RepositoryError::Damaged`] if its block cannot be read, or, of a single id, is damaged.
    fn fetch_objects(
        &self,
        session: &SessionId,
        ids: &[ObjectId],
        copy: u32,
    ) -> Result<Fetched, RepositoryError>;

    /// Reads all blocks, a page at a time: nodes and chunks, every copy, from `cursor` (0 to begin
    /// with) until [`crate::FETCH_TARGET_BYTES`].
    ///
    /// # Errors
    /// Only what keeps the page from being read at all; a block that cannot be read is in
    /// [`BlockPage::damaged`].
    fn read_blocks(&self, session: &SessionId, cursor: u64) -> Result<BlockPage, RepositoryError>;

    /// Proves for each probe, in order, that its block is there, as
    /// [`holdall_format::proves_slice`] checks; `None` where it is not, is damaged, or has no such
    /// slice.
    ///
    /// # Errors
    /// [`RepositoryError::NoSession`]; [`RepositoryError::Refused`] over [`crate::MAX_PROBES`].
    fn prove_blocks(
        &self,
        session: &SessionId,
        probes: &[BlockProbe],
    ) -> Result<Vec<Option<Bytes>>, RepositoryError>;

    /// Reads everything again and checks hashes and closure, without keys.
    ///
    /// # Errors
    /// Only what keeps it from running at all; damage is in the report.
    fn scrub(
        &self,
        progress: &mut dyn FnMut(ScrubProgress),
    ) -> Result<ScrubReport, RepositoryError>;

    /// Tells how much is stored, without reading it.
    ///
    /// # Errors
    /// [`RepositoryError::NoRepository`]; [`RepositoryError::InUse`] while another process writes.
    fn usage(&self) -> Result<Usage, RepositoryError>;

    /// Bytes on the wire so far.
    fn traffic(&self) -> Traffic;
}

/// What whoever owns a repository's directory may do there.
pub trait OwnedRepository: Repository + Compacting {
    /// Forgets snapshots: their records leave tombstones, and what only they reached may be pruned.
    ///
    /// # Errors
    /// [`RepositoryError::Refused`] for what is no snapshot of this repository, and nothing is forgotten then.
    fn forget(&self, snapshots: &[RecordHash]) -> Result<(), RepositoryError>;

    /// Deletes what nothing needs; with `dry_run`, says only what that is.
    ///
    /// # Errors
    /// [`RepositoryError::Damaged`] if something is missing or cannot be read, and nothing is deleted then.
    fn prune(&self, dry_run: bool) -> Result<PruneReport, RepositoryError>;

    /// Stores a record again as [`Repository::put_back_record`] does, where nothing in the repository shows that it was
    /// there: the owner says so. The root of its tree has to be stored.
    ///
    /// # Errors
    /// As there.
    fn vouch_for_record(&self, stored: &Bytes) -> Result<(), RepositoryError>;

    /// Gives up a record that is gone, of which somebody has the bytes: by a tombstone in its place, so that nobody waits
    /// for it any more and its machine's chain stays whole; where another record has that place, by a note.
    ///
    /// # Errors
    /// [`RepositoryError::Refused`] if it is there, or what is in its place cannot be read, or it is another
    /// repository's; [`RepositoryError::InUse`].
    fn bury_lost(&self, stored: &Bytes) -> Result<Buried, RepositoryError>;

    /// Scrubs, and repairs what can be repaired: packs from their parity, and what is sound of others.
    /// Nothing is made worse: damaged files are kept. With `dry_run`, says only what can be done.
    ///
    /// # Errors
    /// As [`Repository::scrub`]. What was repaired until then is repaired.
    fn repair(
        &self,
        dry_run: bool,
        progress: &mut dyn FnMut(ScrubProgress),
    ) -> Result<RepairReport, RepositoryError>;

    /// Keeps so many per cent of each pack as parity from now on, 0 for none, and makes what is
    /// missing; says of how many packs.
    ///
    /// # Errors
    /// [`RepositoryError::Refused`] over 100.
    fn keep_parity(&self, percent: u8) -> Result<u64, RepositoryError>;
}

/// What a machine may ask a server for, beside what it may ask of every repository. Nothing is deleted at once.
pub trait ServedRepository: Repository {
    /// Asks for snapshots to be forgotten, with an administrator's token for this repository. They
    /// are there until the deletion is due, and it can be cancelled. Asking for the same again is no
    /// other deletion.
    ///
    /// # Errors
    /// [`RepositoryError::NotAllowed`] for a token that is not for this repository or has lapsed;
    /// [`RepositoryError::Refused`] for what is no snapshot of this repository, and over
    /// [`crate::MAX_IDS`] snapshots: then nothing is asked for.
    fn ask_forget(
        &self,
        token: &AdminToken,
        snapshots: &[RecordHash],
    ) -> Result<WaitingDeletion, RepositoryError>;

    /// Has the server apply its rules and deletions that are due, and prune, with such a token; with
    /// `dry_run`, says only what that would delete.
    ///
    /// # Errors
    /// [`RepositoryError::NotAllowed`] as for [`ServedRepository::ask_forget`], and while the server lets
    /// nothing go; else as [`OwnedRepository::prune`].
    fn ask_prune(&self, token: &AdminToken, dry_run: bool) -> Result<AskedPrune, RepositoryError>;

    /// What is announced of this repository: deletions that wait, and rules that keep less.
    ///
    /// # Errors
    /// [`RepositoryError::Unreachable`].
    fn announced(&self) -> Result<Announced, RepositoryError>;

    /// Tells how a run of this machine went, for the server's pages. The same run again takes the place of what was told
    /// of it before. A server that is older than this keeps nothing of it, and that is no error.
    ///
    /// # Errors
    /// [`RepositoryError::NotAllowed`] for whoever may not back up; [`RepositoryError::Refused`] for numbers over their
    /// limits; [`RepositoryError::Unreachable`].
    fn report_run(&self, report: &RunReport) -> Result<(), RepositoryError>;

    /// Compacts with such a token. The server keeps the blocks for as long as a deletion waits, and lets that be
    /// cancelled.
    fn compacting<'a>(&'a self, token: &'a AdminToken) -> Box<dyn Compacting + 'a>;
}

/// Having blocks that are mostly dead give way to others, for whoever may delete.
pub trait Compacting {
    /// Tells which blocks, from the arrival position `from` on, are mostly dead: of which at most half of
    /// the objects are needed; and these. There may be more behind the last one; only an empty answer
    /// is the end.
    ///
    /// # Errors
    /// As for [`OwnedRepository::prune`] or [`ServedRepository::ask_prune`].
    fn sparse_blocks(&self, from: u64) -> Result<Vec<SparseBlock>, RepositoryError>;

    /// Has these blocks, by arrival position, give way to later copies of what is needed of them, which
    /// somebody put before: those count first then, and a prune takes the blocks. A block of
    /// which something needed is nowhere else stays as it is. The session in which it was put ends.
    /// Asking for the same again changes nothing.
    ///
    /// # Errors
    /// The same; [`RepositoryError::Refused`] over [`crate::MAX_IDS`] blocks.
    fn supersede(
        &self,
        session: &SessionId,
        blocks: &[u64],
    ) -> Result<Superseding, RepositoryError>;
}
