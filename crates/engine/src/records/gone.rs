//! Records that this machine has seen in a repository, and that are not there any more: neither they nor tombstones of
//! them.
//!
//! A record in the middle of its machine's chain is missed by the one that follows it, whoever looks. The newest record
//! of a machine is missed only by those who saw it, so what the record cache has is compared with what is listed.
//!
//! ```text
//! followed     a listed record names it as the one before    told by the chain
//! superseded   its machine went on with another in its place  nothing is lost, unless only it has its tree
//! else         it was the end of its chain                    told here
//! ```
//!
//! A machine whose repository was set back is told so, and goes on with another record in the place of the one that is
//! gone. Then nobody has to be told again, unless the tree of the one that is gone is still stored and no other record
//! has it: then the repository was not set back, but lost a record.

use std::collections::HashSet;
use std::path::Path;

use bytes::Bytes;
use holdall_format::{
    MachineId, ObjectId, RecordHash, RecordHead, RecordKind, RepositoryId, Signatures,
    StoredRecord, Tombstone,
};
use holdall_protocol::{
    Buried, ListedRecord, OwnedRepository, Repository, RepositoryError, SessionPurpose,
};

use crate::EngineError;
use crate::cache::record_cache::RecordCache;
use crate::records::sound_records::{at, is_sound};

/// A record that is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoneRecord {
    /// Its id: of a snapshot, or of an amendment, which holds tags or a pin.
    pub id: RecordHash,
    /// Its log position.
    pub position: u64,
    /// Whose it is.
    pub machine: MachineId,
    /// Snapshot, checkpoint or amendment.
    pub kind: RecordKind,
    /// Whether a record that is listed follows it, at once or behind others that are gone, so that everybody sees that it
    /// is missing.
    pub is_followed: bool,
    /// The record and its receipt.
    pub stored: Bytes,
    /// Why the repository does not take this machine's copy back, if it was asked.
    pub refusal: Option<String>,
}

impl GoneRecord {
    pub(crate) fn listed(&self) -> ListedRecord {
        ListedRecord { position: self.position, stored: self.stored.clone() }
    }
}

/// Gives a record up that is gone, so that nobody waits for it: by a tombstone in its place, or, where another record has
/// that, by a note there and here.
///
/// # Errors
/// If the repository cannot be written, or what is in its place cannot be read.
pub fn give_up(
    cache: &Path,
    owner: &dyn OwnedRepository,
    stored: &Bytes,
) -> Result<Buried, EngineError> {
    let buried = owner.bury_lost(stored)?;
    let cache = RecordCache::within(cache);
    let mut known = cache.load();
    known.retain(|record| record.stored != *stored);
    cache.replace(&known);
    Ok(buried)
}

/// A record that is not where it was: its log position, its bytes, and what they say.
type Absent = (u64, Bytes, StoredRecord);

/// The gone ones among `known`, where the repository of that id has those that are `listed`.
pub(crate) fn gone_among(
    repository: &dyn Repository,
    id: RepositoryId,
    known: &[ListedRecord],
    listed: &[ListedRecord],
) -> Result<Vec<GoneRecord>, EngineError> {
    let mut absent: Vec<_> = known.iter().filter_map(|known| absent(known, listed, id)).collect();
    if absent.is_empty() {
        return Ok(Vec::new());
    }
    // What comes first in a chain says what becomes of those behind it.
    absent.sort_by_key(|(position, _, stored)| (*position, stored.record.hash()));
    absent.dedup_by_key(|(_, _, stored)| stored.record.hash());
    let there = There::of(listed);
    let followed = followed(&there, &absent);
    let (mut gone, mut superseded) = (Vec::new(), HashSet::new());
    for (position, bytes, stored) in absent {
        let (id, head) = (stored.record.hash(), stored.record.head);
        if there.ids.contains(&id) {
            continue;
        }
        let is_followed = followed.contains(&id);
        let is_superseded = !is_followed
            && (there.numbers.contains(&(head.machine, head.sequence))
                || superseded.contains(&head.previous));
        if is_superseded {
            superseded.insert(id);
            if there.roots.contains(&head.root) || !is_tree_stored(repository, &head)? {
                continue;
            }
        }
        let (machine, kind) = (head.machine, head.kind);
        gone.push(GoneRecord {
            id,
            position,
            machine,
            kind,
            is_followed,
            stored: bytes,
            refusal: None,
        });
    }
    Ok(gone)
}

/// Those of the absent records that one of those that are there follows, at once or behind others that are absent.
fn followed(there: &There, absent: &[Absent]) -> HashSet<RecordHash> {
    let mut named = there.previous.clone();
    let mut followed = HashSet::new();
    for (_, _, stored) in absent.iter().rev() {
        let id = stored.record.hash();
        if named.contains(&id) {
            followed.insert(id);
            named.insert(stored.record.head.previous);
        }
    }
    followed
}

/// A known record of that repository, if what lies in its place is sound and something else, or nothing lies there.
fn absent(
    known: &ListedRecord,
    listed: &[ListedRecord],
    repository: RepositoryId,
) -> Option<Absent> {
    if let Ok(at) = at(listed, known.position)
        && (listed[at].stored == known.stored || !is_sound(&listed[at]))
    {
        return None;
    }
    let stored = StoredRecord::decode(&known.stored).ok()?;
    let receipt = &stored.receipt;
    let is_its_own = receipt.log_position == known.position && receipt.repository == repository;
    is_its_own.then(|| (known.position, known.stored.clone(), stored))
}

/// Whether the root of a snapshot's tree is stored.
fn is_tree_stored(repository: &dyn Repository, head: &RecordHead) -> Result<bool, EngineError> {
    if head.kind == RecordKind::Amendment {
        return Ok(false);
    }
    let session = match repository.open_session(&SessionPurpose::Read) {
        // Listing needs no lease, and is not to fail for this. Who deletes meets it, too.
        Err(RepositoryError::InUse { .. }) => return Ok(false),
        opened => opened?.session,
    };
    let fetched = repository.fetch_objects(&session, &[head.root], 0);
    repository.close_session(&session)?;
    match fetched {
        Err(RepositoryError::MissingObjects { .. }) => Ok(false),
        // One that is damaged is there.
        Ok(_) | Err(RepositoryError::Damaged { .. }) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// What is listed, records and tombstones.
#[derive(Default)]
struct There {
    ids: HashSet<RecordHash>,
    previous: HashSet<RecordHash>,
    numbers: HashSet<(MachineId, u64)>,
    /// The roots of those that were not forgotten.
    roots: HashSet<ObjectId>,
}

impl There {
    fn of(listed: &[ListedRecord]) -> Self {
        let mut there = Self::default();
        for (id, head, is_forgotten) in listed.iter().filter_map(head_of) {
            there.ids.insert(id);
            there.previous.insert(head.previous);
            there.numbers.insert((head.machine, head.sequence));
            if !is_forgotten {
                there.roots.insert(head.root);
            }
        }
        there
    }
}

/// The id and the head of a record, and whether only its tombstone is there.
pub(crate) fn head_of(listed: &ListedRecord) -> Option<(RecordHash, RecordHead, bool)> {
    if Tombstone::is_begun_by(&listed.stored) {
        let (tombstone, head) =
            Tombstone::decode_with(&listed.stored, Signatures::CheckedBefore).ok()?;
        return Some((tombstone.record, head, true));
    }
    let stored = StoredRecord::decode_with(&listed.stored, Signatures::CheckedBefore).ok()?;
    Some((stored.record.hash(), stored.record.head, false))
}
