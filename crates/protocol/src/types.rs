//! What goes in and comes out of a repository, as plain data.

use std::collections::BTreeMap;

use bytes::Bytes;
use holdall_format::{BlockName, MachineId, ObjectId, PackName, PublicKey, RecordHash, SessionId};

use serde::{Deserialize, Serialize};

/// What is needed to make a repository. The keeper stores it and understands the configuration's
/// clear part only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRepository {
    /// A signed [`holdall_format::RepositoryConfig`].
    pub config: Bytes,
    /// A signed [`holdall_format::WrappingSet`]; its recovery kits may sign in to read.
    pub wrappings: Bytes,
}

/// What a repository says of itself to whoever may read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// A signed [`holdall_format::RepositoryConfig`].
    pub config: Bytes,
    /// A signed [`holdall_format::WrappingSet`].
    pub wrappings: Bytes,
    /// The machine that asks.
    pub machine: MachineId,
    /// Whose signature its receipts carry.
    pub signer: PublicKey,
}

/// What a session is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionPurpose {
    /// Puts towards a commit; the parents stay live until the session ends.
    Backup {
        /// Records that the run builds on.
        parents: Vec<RecordHash>,
    },
    /// Reads; what is read stays live until the session ends.
    Read,
}

/// A question whether a block is still there, and which part of it is to be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockProbe {
    /// An object in the block, by which it is found.
    pub object: ObjectId,
    /// The block's name.
    pub block: BlockName,
    /// The slice of [`holdall_format::SLICE_BYTES`], counted from 0.
    pub slice: u32,
}

/// An open session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionGrant {
    /// Its id.
    pub session: SessionId,
    /// The machine's newest record, if there is one.
    pub head: Option<RecordHash>,
    /// That record's sequence number, or 0.
    pub sequence: u64,
}

/// Where the keeper's time went for one request that carries blocks, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RequestTimes {
    /// Waiting for the bytes to arrive.
    pub receive_seconds: f64,
    /// Waiting for other requests, or for processor or disk that work had on which no request waits.
    pub queue_seconds: f64,
    /// Checking, looking up and indexing.
    pub cpu_seconds: f64,
    /// Reading, or writing and making durable.
    pub disk_seconds: f64,
}

/// The answer to a fetch.
#[derive(Debug, Clone, PartialEq)]
pub struct Fetched {
    /// Whole blocks, in order of first use.
    pub blocks: Vec<Bytes>,
    /// Where the keeper's time went until they were at hand.
    pub times: RequestTimes,
}

/// The answer to a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommitAnswer {
    /// Closed, durable and published: the stored record with its receipt.
    Committed(Bytes),
    /// Not closed: these objects are missing (the list may be cut). Nothing was published.
    Missing(Vec<ObjectId>),
}

/// What a machine had on a server that may have lost its accounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormerAccount {
    /// Its id there.
    pub machine: MachineId,
    /// Its repository's name there.
    pub repository: String,
}

/// Bytes that crossed the wire since the repository was opened; zero for an embedded one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Sent, with everything around it.
    pub sent_bytes: u64,
    /// Received.
    pub received_bytes: u64,
}

/// How far a scrub is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScrubProgress {
    /// Bytes read so far.
    pub bytes_done: u64,
    /// Bytes to read in all.
    pub bytes_total: u64,
}

/// Something that a scrub found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScrubDamage {
    /// A pack that cannot be read at all.
    Pack {
        /// Its name, or its file's where that is all there is.
        pack: String,
        /// What is wrong.
        reason: String,
    },
    /// A block whose bytes are not those of its name.
    Block {
        /// The block.
        block: BlockName,
        /// Where it lies.
        pack: Option<PackName>,
        /// What is wrong.
        reason: String,
    },
    /// A record that cannot be read.
    Record {
        /// Its file.
        record: String,
        /// What is wrong.
        reason: String,
    },
    /// An object that a record needs and nothing holds.
    Missing {
        /// The object.
        object: ObjectId,
        /// A record that needs it.
        record: RecordHash,
    },
}

/// What a scrub read and found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScrubReport {
    /// Packs read, tails counted as one each.
    pub packs: u64,
    /// Blocks read.
    pub blocks: u64,
    /// Objects in them.
    pub objects: u64,
    /// Snapshots whose closure was walked.
    pub snapshots: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Everything that is wrong.
    pub damaged: Vec<ScrubDamage>,
}

/// What was repaired, or can be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repair {
    /// A pack that is as it was again, thanks to its parity.
    Restored {
        /// The pack.
        pack: PackName,
        /// Pieces of it, of 64 KiB, that were computed anew.
        pieces: u64,
    },
    /// A pack of which what is sound was stored again elsewhere. What is lost counts as missing, so
    /// that the next backup sends it.
    Salvaged {
        /// The pack.
        pack: PackName,
        /// Blocks stored again.
        kept_blocks: u64,
        /// Blocks that are lost.
        lost_blocks: u64,
    },
    /// Blocks that are in no pack yet, of which those that are sound were stored again; 0 and 0 where nobody can
    /// tell how many there were.
    Tail {
        /// Blocks stored again.
        kept_blocks: u64,
        /// Blocks that are lost.
        lost_blocks: u64,
    },
    /// Parity that was damaged or missing, and was made anew.
    Parity {
        /// Of that pack.
        pack: PackName,
    },
    /// A small file that was damaged or missing, and was written again from its other copy.
    Copy {
        /// The file.
        file: String,
    },
}

impl Repair {
    /// What was done, in a sentence, or would be done.
    pub fn sentence(&self, dry_run: bool) -> String {
        let would = if dry_run { "would be " } else { "" };
        match self {
            Self::Restored { pack, pieces } => {
                format!("pack {pack} {would}restored from its parity: {pieces} pieces were damaged")
            }
            Self::Salvaged { pack, kept_blocks: 0, lost_blocks: 0 } => {
                format!("pack {pack} {would}put aside: nothing of it can be read")
            }
            Self::Salvaged { pack, kept_blocks, lost_blocks } => format!(
                "pack {pack} {would}put aside: {kept_blocks} sound blocks of it {would}stored \
                 again, {lost_blocks} are lost"
            ),
            Self::Tail { kept_blocks: 0, lost_blocks: 0 } => {
                format!("blocks that are in no pack yet {would}put aside: they cannot be read")
            }
            Self::Tail { kept_blocks, lost_blocks } => format!(
                "of blocks that are in no pack yet, {kept_blocks} {would}stored again, \
                 {lost_blocks} are lost"
            ),
            Self::Parity { pack } => format!("the parity of pack {pack} {would}made anew"),
            Self::Copy { file } => format!("{file} {would}written again from its other copy"),
        }
    }
}

/// What a repair did, or would do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RepairReport {
    /// What was repaired, or can be.
    pub repairs: Vec<Repair>,
    /// Where damaged files were put instead of being deleted.
    pub quarantined: Vec<String>,
    /// What a scrub found: afterwards, or, where nothing was to be changed, before.
    pub scrub: ScrubReport,
}

/// How a lost record was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Buried {
    /// By a tombstone, which everybody sees who lists records.
    ByTombstone,
    /// By a note that the repository alone reads: another record has its place. Who saw the lost one waits for it still.
    Noted,
}

/// How much a repository holds, as its keeper counts it without reading it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Bytes of packs, tails and records.
    pub stored_bytes: u64,
    /// Packs, tails counted as one each.
    pub packs: u64,
    /// Blocks in them.
    pub blocks: u64,
    /// Objects in those, every copy.
    pub objects: u64,
    /// Records of every kind.
    pub records: u64,
    /// Most bytes that may be stored; `None` for as many as there is room for.
    pub quota_bytes: Option<u64>,
    /// How many more bytes there is room for, by the quota and on the disk; `None` where the disk does not tell.
    pub free_bytes: Option<u64>,
}

impl Usage {
    /// The same without the room that there is, which changes with whatever else lies on the disk.
    #[must_use]
    pub fn without_room(self) -> Self {
        Self { free_bytes: None, ..self }
    }
}

/// Snapshots or blocks that are to be deleted, and are there until then. Times are in nanoseconds since 1970
/// UTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingDeletion {
    /// What it is called on its server.
    pub number: u64,
    /// The snapshots.
    pub snapshots: Vec<RecordHash>,
    /// How many blocks gave way to later copies of what is needed of them.
    pub blocks: u64,
    /// Whether the repository goes as a whole, with all that is stored until then.
    pub whole: bool,
    /// When it was asked for.
    pub asked_ns: i64,
    /// When it is carried out, if nobody cancels it.
    pub due_ns: i64,
}

/// What a server announces to whoever would lose by it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Announced {
    /// The deletions that wait, in the order in which they were asked for.
    pub deletions: Vec<WaitingDeletion>,
    /// When rules come into force that keep less than those before, in nanoseconds since 1970 UTC; `None` if
    /// none wait.
    pub fewer_kept_from_ns: Option<i64>,
}

impl Announced {
    /// When each snapshot is deleted that is to be, in nanoseconds since 1970 UTC: by the first deletion that has it.
    pub fn due_by_snapshot(&self) -> BTreeMap<RecordHash, i64> {
        let mut due = BTreeMap::new();
        for deletion in &self.deletions {
            for snapshot in &deletion.snapshots {
                let first = due.entry(*snapshot).or_insert(deletion.due_ns);
                *first = deletion.due_ns.min(*first);
            }
        }
        due
    }
}

/// A block of which at most half of the objects are needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SparseBlock {
    /// Its arrival position, which names it.
    pub arrival: u64,
    /// How many objects it holds.
    pub objects: u64,
    /// Those that are needed, in ascending order, and at least one.
    pub living: Vec<ObjectId>,
}

/// What gave way to later copies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Superseding {
    /// How many blocks; the others that were named stay as they are.
    pub blocks: u64,
    /// The deletion that waits, on a server.
    pub waiting: Option<WaitingDeletion>,
}

/// What a prune did, or would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PruneReport {
    /// Bytes of packs, tails and records before.
    pub stored_before_bytes: u64,
    /// The same afterwards. Packs that wait to be deleted are still counted.
    pub stored_after_bytes: u64,
    /// Packs deleted.
    pub deleted_packs: u64,
    /// Length of their files.
    pub deleted_bytes: u64,
    /// Packs condemned: they are deleted once their grace is over.
    pub condemned_packs: u64,
    /// Length of their files.
    pub condemned_bytes: u64,
    /// Bytes of blocks in those that are needed, and were copied to other packs first.
    pub moved_bytes: u64,
    /// Packs that are condemned and not deleted yet.
    pub waiting_packs: u64,
    /// Length of their files.
    pub waiting_bytes: u64,
    /// When the first of those may be deleted, in nanoseconds since 1970 UTC.
    pub next_due_ns: Option<i64>,
    /// Checkpoints that were no longer needed.
    pub checkpoints_forgotten: u64,
}

/// What a server did, or would do, that was asked to prune.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AskedPrune {
    /// What went with it, or would.
    pub report: PruneReport,
    /// The snapshots that rules let go, or whose deletion was due, and when each was received, in nanoseconds
    /// since 1970 UTC.
    pub forgotten: Vec<(RecordHash, i64)>,
    /// Why rules let nothing go, until the server's administrator says that it is all right.
    pub alarm: Option<String>,
}

/// Some of a repository's blocks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BlockPage {
    /// Whole blocks.
    pub blocks: Vec<Bytes>,
    /// Blocks of this page that cannot be read.
    pub damaged: Vec<ScrubDamage>,
    /// Where the next page starts; `None` at the end.
    pub next: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_deletion_of_a_snapshot_counts() {
        let hash = |byte| RecordHash::from_bytes([byte; 32]);
        let deletion = |number, snapshots, due_ns| WaitingDeletion {
            number,
            snapshots,
            blocks: 0,
            whole: false,
            asked_ns: 0,
            due_ns,
        };
        let deletions = vec![deletion(1, vec![hash(1), hash(2)], 9), deletion(2, vec![hash(1)], 5)];
        let due = Announced { deletions, ..Announced::default() }.due_by_snapshot();
        assert_eq!((due[&hash(1)], due[&hash(2)], due.len()), (5, 9, 2));
    }
}
