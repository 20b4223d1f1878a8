//! Giving a repository back the records that are damaged or gone there: from this machine's cache, from what it kept of its
//! newest snapshot, from a second repository that is a copy.
//!
//! A record and its receipt prove themselves by their signatures, and a receipt says at which log position its record
//! lies. They do not prove that it lay there in this repository: a copy may have gone on by itself. So what this machine
//! has seen goes first, and a second repository's record has to be one that this one had.

use std::cmp::Reverse;
use std::collections::HashSet;

use bytes::Bytes;
use holdall_format::{
    RecordHash, RecordHead, RepositoryId, Signatures, StoredRecord, Tombstone, record_file,
};
use holdall_protocol::{ListedRecord, OwnedRepository, Repair, RepositoryError};

use crate::cache::record_cache::RecordCache;
use crate::records::gone::{GoneRecord, gone_among, head_of};
use crate::records::record_list::{file_of, list_records, lost_tombstones, offer_in_turn, put_in};
use crate::records::sound_records::{at, is_sound, sound_in_place_of_damaged};
use crate::{EngineError, UnlockedRepository};

/// What became of records that were damaged or gone.
#[derive(Debug, Default)]
pub struct RecordRepairs {
    /// Which were stored again.
    pub repairs: Vec<Repair>,
    /// Log positions at which the second repository has a record and this one has no sound one, where nothing shows that
    /// it is the right one: of each machine the first.
    pub unproven: Vec<u64>,
}

/// Stores records again that are damaged or gone in the repository, as far as this machine's cache has them, or `known`,
/// or `second`, and says which. With `dry_run` says only which there are; not all of those may be taken.
///
/// # Errors
/// If the records cannot be listed, or one cannot be stored; those before it are.
pub fn put_back_records(
    access: &UnlockedRepository,
    known: Vec<Bytes>,
    second: Option<&UnlockedRepository>,
    dry_run: bool,
) -> Result<RecordRepairs, EngineError> {
    let mut listed = list_records(access.repository.as_ref())?;
    let own = own_records(access, known);
    let buried = buried_among(&own);
    // Not those of a second repository: they would say that something was forgotten here which is only lost.
    let mut offered = lost_tombstones(&own, &listed);
    offered.extend(lacking(access, own, &listed, &buried)?);
    let mut taken = offer(access, offered, dry_run)?;
    let mut unproven = Vec::new();
    if let Some(second) = second {
        taken.iter().for_each(|record| put_in(&mut listed, record));
        let others = list_records(second.repository.as_ref())?;
        let others = lacking(access, others, &listed, &buried)?;
        let (proven, rest) = proven_among(others, &listed);
        taken.extend(offer(access, proven, dry_run)?);
        unproven = first_of_each_machine(rest, &listed);
    }
    let repairs = taken.iter().map(repair_of).collect();
    Ok(RecordRepairs { repairs, unproven })
}

/// Has the repository take those of the records that it takes, and gives them.
fn offer(
    access: &UnlockedRepository,
    offered: Vec<ListedRecord>,
    dry_run: bool,
) -> Result<Vec<ListedRecord>, EngineError> {
    // Two may have had one position, in copies that went on by themselves: the repository takes the right one.
    offer_in_turn(offered, |record| match dry_run {
        true => Ok(true),
        false => match access.repository.put_back_record(&record.stored) {
            // Something else is in its place, such as a folder, or a tombstone that cannot be read, or it was given up:
            // that is told as what it is.
            Err(RepositoryError::Refused { .. } | RepositoryError::Damaged { .. }) => Ok(false),
            put_back => Ok(put_back.map(|()| true)?),
        },
    })
}

/// Those of the `others` that are damaged or gone among those that are `listed`, and were not `buried`.
fn lacking(
    access: &UnlockedRepository,
    others: Vec<ListedRecord>,
    listed: &[ListedRecord],
    buried: &HashSet<RecordHash>,
) -> Result<Vec<ListedRecord>, EngineError> {
    let id = access.config.repository;
    let others = others.into_iter().filter(|other| !is_there(other, listed));
    let mut ours = ours(others.map(|other| other.stored), &id);
    ours.retain(|record| head_of(record).is_some_and(|(id, ..)| !buried.contains(&id)));
    let gone = gone_among(access.repository.as_ref(), id, &ours, listed)?;
    let mut lacking = sound_in_place_of_damaged(&ours, listed);
    lacking.extend(gone.iter().map(GoneRecord::listed));
    Ok(lacking)
}

fn is_there(record: &ListedRecord, listed: &[ListedRecord]) -> bool {
    at(listed, record.position).is_ok_and(|at| listed[at].stored == record.stored)
}

/// The records of which tombstones are among these.
fn buried_among(records: &[ListedRecord]) -> HashSet<RecordHash> {
    let tombstones = records.iter().filter(|record| Tombstone::is_begun_by(&record.stored));
    let sound = tombstones.filter_map(|record| Tombstone::decode_signed(&record.stored).ok());
    sound.map(|(tombstone, _)| tombstone.record).collect()
}

/// Tells records that were in the repository from the rest: another one of it names them, or something is left of their
/// file, which the repository compares. That a record would be the next of its machine's chain says nothing, where the
/// repository that it comes from may have gone on by itself.
fn proven_among(
    mut others: Vec<ListedRecord>,
    listed: &[ListedRecord],
) -> (Vec<ListedRecord>, Vec<ListedRecord>) {
    let heads = listed.iter().filter_map(head_of);
    let mut named: HashSet<_> = heads.flat_map(|(_, head, _)| named_by(&head)).collect();
    others.sort_by_key(|other| Reverse(other.position));
    others.into_iter().partition(|other| {
        let Some((id, head, _)) = head_of(other) else { return false };
        let is_proven = named.contains(&id) || is_something_left(other, listed);
        if is_proven {
            named.extend(named_by(&head));
        }
        is_proven
    })
}

/// The records that one is a sign of: the one before it, and the one that it amends.
fn named_by(head: &RecordHead) -> impl Iterator<Item = RecordHash> + use<> {
    [Some(head.previous), head.amends].into_iter().flatten()
}

/// Whether the file in the record's place has bytes left behind the head, where no two records are alike.
fn is_something_left(record: &ListedRecord, listed: &[ListedRecord]) -> bool {
    let Ok(at) = at(listed, record.position) else { return false };
    StoredRecord::decode_with(&record.stored, Signatures::CheckedBefore).is_ok_and(|stored| {
        let left = listed[at].stored.iter().take(record.stored.len());
        left.skip(stored.record.head_bytes.len()).any(|byte| *byte != 0)
    })
}

/// The first positions of each machine at which no sound record lies.
fn first_of_each_machine(mut records: Vec<ListedRecord>, listed: &[ListedRecord]) -> Vec<u64> {
    records.retain(|record| at(listed, record.position).map_or(true, |at| !is_sound(&listed[at])));
    records.sort_by_key(|record| record.position);
    let mut machines = HashSet::new();
    records
        .retain(|record| head_of(record).is_some_and(|(_, head, _)| machines.insert(head.machine)));
    records.iter().map(|record| record.position).collect()
}

/// Stores the record of that log position again, for which the `owner` vouches: what this machine's cache has of it, or
/// `known`; where there is a `second`, what that has. `None` if it is there.
///
/// # Errors
/// [`EngineError::NoRecord`] if there is none, or several; if the repository refuses it.
pub fn put_back_record_at(
    access: &UnlockedRepository,
    owner: &dyn OwnedRepository,
    position: u64,
    known: Vec<Bytes>,
    second: Option<&UnlockedRepository>,
    dry_run: bool,
) -> Result<Option<Repair>, EngineError> {
    let all = match second {
        Some(second) => list_records(second.repository.as_ref())?,
        None => own_records(access, known),
    };
    let here = all.into_iter().filter(|record| record.position == position);
    let mut found = ours(here.map(|record| record.stored), &access.config.repository);
    found.dedup_by_key(|record| record.stored.clone());
    match &found[..] {
        [one] if is_there(one, &list_records(access.repository.as_ref())?) => Ok(None),
        [one] if dry_run => Ok(Some(repair_of(one))),
        [one] => {
            owner.vouch_for_record(&one.stored)?;
            Ok(Some(repair_of(one)))
        }
        [] => Err(no_record(
            position,
            "this computer does not know it; name a copy of the repository with --from",
        )),
        _ => Err(no_record(
            position,
            "two had this place; name the copy of the repository that has the right one with --from",
        )),
    }
}

fn no_record(position: u64, reason: &'static str) -> EngineError {
    EngineError::NoRecord { file: format!("records/{}", record_file(position)), reason }
}

/// What this machine has seen of the repository's records, and what is `known` besides.
fn own_records(access: &UnlockedRepository, known: Vec<Bytes>) -> Vec<ListedRecord> {
    let mut all = RecordCache::within(&access.cache).load();
    all.extend(ours(known.into_iter(), &access.config.repository));
    all
}

fn repair_of(record: &ListedRecord) -> Repair {
    Repair::Copy { file: file_of(record) }
}

/// The records of a repository among these.
fn ours(all: impl Iterator<Item = Bytes>, repository: &RepositoryId) -> Vec<ListedRecord> {
    let sound = all.filter_map(|bytes| Some((StoredRecord::decode(&bytes).ok()?.receipt, bytes)));
    let ours = sound.filter(|(receipt, _)| receipt.repository == *repository);
    ours.map(|(receipt, stored)| ListedRecord { position: receipt.log_position, stored }).collect()
}
