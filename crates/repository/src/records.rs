//! Stored records: one file each, named by its log position.
//!
//! A record that was forgotten leaves a tombstone under the same name in a folder of its own, and is
//! listed as that: its machine's chain goes on from it, and whoever knew the record sees that it was
//! let go and not lost. The tombstone is published before the record's file goes, so where both are
//! there, the record is forgotten.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use holdall_format::{
    MachineId, ObjectId, RecordHash, RecordHead, RecordKind, SeriesId, StoredRecord, TagToken,
    Tombstone, record_file,
};
use holdall_protocol::wire::MAX_STORED_RECORD_BYTES;
use holdall_protocol::{
    FETCH_TARGET_BYTES, ListedRecord, MAX_RECORDS, RecordQuery, RecordsDigest, RecordsDigesting,
    RepositoryError,
};

use crate::layout::{Layout, number_of};
use crate::pack_file::unreadable;
use crate::parallel::in_parallel;
use crate::publish::Published;
use crate::record_claim::{Claim, Left, Place};
use crate::retry::split_process_errors;
use crate::storage::Stored;

/// A record and its receipt are never longer.
const STORED_MAX_BYTES: u64 = MAX_STORED_RECORD_BYTES as u64;

/// So many short ones are in memory while all are gone through, and a long one.
const RECORDS_AT_ONCE: usize = 256;
/// A short one is no longer: few have more than 5 kB.
const SHORT_BYTES: u64 = 64 << 10;

/// What a file says whose name is that of a record that was given up.
const GIVEN_UP: &[u8] = b"holdall given up, version 1\n";

/// What a machine's first record has as its previous one.
pub(crate) const NO_RECORD: RecordHash = RecordHash::from_bytes([0; RecordHash::LEN]);

/// What is kept in memory of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordEntry {
    /// Its log position.
    pub(crate) position: u64,
    /// Its hash.
    pub(crate) hash: RecordHash,
    /// Whose it is.
    pub(crate) machine: MachineId,
    /// Its place in the machine's chain.
    pub(crate) sequence: u64,
    /// The one before it there; zero for the first.
    previous: RecordHash,
    /// What it belongs to in retention.
    pub(crate) series: SeriesId,
    /// The root of its tree.
    pub(crate) root: ObjectId,
    /// Snapshot, checkpoint or amendment.
    pub(crate) kind: RecordKind,
    /// Whether retention must keep it, if nothing amended it.
    pub(crate) pinned: bool,
    /// Tokens of its tags, if nothing amended it.
    pub(crate) tags: Vec<TagToken>,
    /// The record that it amends.
    pub(crate) amends: Option<RecordHash>,
    /// Of a copy: when its machine says that the original was received, in nanoseconds since 1970 UTC.
    pub(crate) taken_ns: Option<i64>,
    /// When it came, in nanoseconds since 1970 UTC; when it was forgotten, for one that was.
    pub(crate) received_ns: i64,
    /// Whether the clock that said so had been set.
    pub(crate) clock_sure: bool,
    /// Length of its file.
    pub(crate) stored_bytes: u64,
    /// Whether only its tombstone is left.
    pub(crate) forgotten: bool,
}

impl RecordEntry {
    fn of(stored: &StoredRecord, bytes: &[u8]) -> Self {
        let receipt = &stored.receipt;
        let place = (receipt.log_position, receipt.record);
        let received = (receipt.received_ns, receipt.clock_sure);
        Self::new(&stored.record.head, place, received, bytes.len())
    }

    fn of_tombstone(tombstone: &Tombstone, head: &RecordHead, bytes: &[u8]) -> Self {
        let place = (tombstone.log_position, tombstone.record);
        let entry = Self::new(head, place, (tombstone.forgotten_ns, false), bytes.len());
        Self { forgotten: true, ..entry }
    }

    fn new(
        head: &RecordHead,
        (position, hash): (u64, RecordHash),
        (received_ns, clock_sure): (i64, bool),
        stored_bytes: usize,
    ) -> Self {
        Self {
            position,
            hash,
            machine: head.machine,
            sequence: head.sequence,
            previous: head.previous,
            series: head.series,
            root: head.root,
            kind: head.kind,
            pinned: head.pinned,
            tags: head.tags.clone(),
            amends: head.amends,
            taken_ns: head.taken_ns,
            received_ns,
            clock_sure,
            stored_bytes: stored_bytes as u64,
            forgotten: false,
        }
    }
}

/// All records of a repository, in order of position.
#[derive(Debug)]
pub(crate) struct Records {
    layout: Layout,
    entries: Mutex<Vec<RecordEntry>>,
    /// Whether all files of records could be read.
    is_whole: AtomicBool,
    /// Those that are lost and that somebody gave up.
    given_up: Mutex<BTreeSet<RecordHash>>,
    /// Set when it is not known whether a record was published.
    in_doubt: AtomicBool,
    /// Has the next publication fail after the file has its name.
    #[cfg(test)]
    pub(crate) fails: AtomicBool,
}

/// What was found in the folder of records.
pub(crate) struct Loaded {
    pub(crate) records: Records,
    /// Files that are no record that can be read, with the reason.
    pub(crate) damaged: Vec<(PathBuf, String)>,
    /// Those of them that could not be read.
    pub(crate) unread: Vec<Stored>,
    /// More than any position that was given to a record.
    pub(crate) next_position: u64,
}

impl Records {
    /// Reads all records.
    pub(crate) fn load(layout: &Layout) -> Result<Loaded, RepositoryError> {
        let mut entries = Vec::new();
        let (mut damaged, mut unread) = (Vec::new(), Vec::new());
        let mut next_position = 1;
        let places: Vec<_> = places(layout)?.into_iter().collect();
        let read = in_parallel(&places, |(at, is_buried)| read_entry(layout, *at, *is_buried));
        for ((position, has_tombstone), read) in places.into_iter().zip(read) {
            next_position = next_position.max(position.saturating_add(1));
            let path = || file_of(layout, position, has_tombstone);
            match split_process_errors(read)? {
                Ok(entry) => entries.push(entry),
                Err(
                    RepositoryError::Damaged { reason, .. }
                    | RepositoryError::OtherFormat { reason, .. },
                ) => damaged.push((path().path().to_owned(), reason)),
                Err(error) => {
                    damaged.push((path().path().to_owned(), error.to_string()));
                    unread.push(path());
                }
            }
        }
        // A name that is no record's hides none.
        let is_whole = damaged.is_empty();
        damaged.append(&mut foreign_names(layout)?);
        let records = Self {
            layout: layout.clone(),
            entries: Mutex::new(entries),
            is_whole: AtomicBool::new(is_whole),
            given_up: Mutex::new(given_up(layout)?),
            in_doubt: AtomicBool::new(false),
            #[cfg(test)]
            fails: AtomicBool::new(false),
        };
        Ok(Loaded { records, damaged, unread, next_position })
    }

    /// Reads all records again, after a file among them was moved away.
    pub(crate) fn load_again(&self) -> Result<(), RepositoryError> {
        let Loaded { records, .. } = Self::load(&self.layout)?;
        *self.lock() = std::mem::take(&mut *records.lock());
        self.is_whole.store(records.is_whole(), Ordering::Release);
        Ok(())
    }

    /// The newest record of a machine, forgotten or not.
    pub(crate) fn head(&self, machine: &MachineId) -> Option<RecordEntry> {
        self.lock().iter().rev().find(|entry| entry.machine == *machine).cloned()
    }

    /// The stored bytes of a record, if it was published and not forgotten.
    pub(crate) fn find(&self, hash: &RecordHash) -> Result<Option<Bytes>, RepositoryError> {
        self.entry(hash)
            .map(|entry| read(&self.layout, entry.position).map(|(bytes, _)| bytes))
            .transpose()
    }

    /// What is known of a record, if it was published and not forgotten.
    pub(crate) fn entry(&self, hash: &RecordHash) -> Option<RecordEntry> {
        self.known(hash).filter(|entry| !entry.forgotten)
    }

    /// What is known of a record, forgotten or not.
    pub(crate) fn known(&self, hash: &RecordHash) -> Option<RecordEntry> {
        self.lock().iter().rev().find(|entry| entry.hash == *hash).cloned()
    }

    /// Those of these that are known, forgotten or not, in the order in which they came.
    pub(crate) fn known_of(&self, hashes: &BTreeSet<RecordHash>) -> Vec<RecordEntry> {
        self.lock().iter().filter(|entry| hashes.contains(&entry.hash)).cloned().collect()
    }

    /// The records behind a position that were not forgotten.
    pub(crate) fn after(&self, position: u64) -> Vec<RecordEntry> {
        let entries = self.lock();
        let behind = entries.iter().filter(|entry| entry.position > position && !entry.forgotten);
        behind.cloned().collect()
    }

    /// Records that others follow in the chains of their machines and that are not there, tombstones neither,
    /// unless they were given up; and the position of the one that follows. That the newest of a machine is lost
    /// know those who saw it. Where a file could not be read, it may be that, and none is lost.
    pub(crate) fn lost(&self) -> BTreeMap<RecordHash, u64> {
        if !self.is_whole() {
            return BTreeMap::new();
        }
        let (entries, given_up) = (self.lock(), self.lock_given_up());
        let there: HashSet<RecordHash> = entries.iter().map(|entry| entry.hash).collect();
        let is_lost = |hash: &RecordHash| {
            *hash != NO_RECORD && !there.contains(hash) && !given_up.contains(hash)
        };
        let followed = entries.iter().map(|entry| (entry.previous, entry.position));
        followed.filter(|(previous, _)| is_lost(previous)).collect()
    }

    /// Whether all files of records could be read.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole.load(Ordering::Acquire)
    }

    /// Whether a lost record was given up.
    pub(crate) fn is_given_up(&self, hash: &RecordHash) -> bool {
        self.lock_given_up().contains(hash)
    }

    /// Notes that a lost record is not waited for, while `renew` says that the lease is held; that is durable when this
    /// returns.
    pub(crate) fn give_up(
        &self,
        hash: &RecordHash,
        renew: impl FnOnce() -> Result<(), RepositoryError>,
    ) -> Result<(), RepositoryError> {
        self.layout.given_up(hash).put_new_while(renew, GIVEN_UP)?;
        self.lock_given_up().insert(*hash);
        Ok(())
    }

    fn lock_given_up(&self) -> MutexGuard<'_, BTreeSet<RecordHash>> {
        self.given_up.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores a record again where its file is damaged or gone and `claim` shows that it was here; it is durable when
    /// this returns. What is sound stays.
    pub(crate) fn put_back(
        &self,
        stored: &StoredRecord,
        bytes: &[u8],
        claim: Claim,
    ) -> Result<(), RepositoryError> {
        let entry = RecordEntry::of(stored, bytes);
        let path = self.layout.record(entry.position);
        let own_from = stored.record.head_bytes.len();
        let mut entries = self.lock();
        let at = match entries.binary_search_by_key(&entry.position, |known| known.position) {
            // The file of one that is known may be damaged since.
            Ok(at) if entries.get(at).is_some_and(|known| *known == entry) => at,
            Ok(_) => {
                let reason = "another record has its place, or it was forgotten".to_owned();
                return Err(RepositoryError::Refused { reason });
            }
            Err(_) if self.layout.tombstone(entry.position).is_there()? => {
                return Err(RepositoryError::Refused { reason: "it was forgotten".to_owned() });
            }
            Err(_) if self.is_given_up(&entry.hash) => {
                return Err(RepositoryError::Refused { reason: "it was given up".to_owned() });
            }
            Err(at) => {
                let left = path.read_limited(STORED_MAX_BYTES).ok().flatten();
                let left = Left::of(&left.unwrap_or_default(), bytes, own_from);
                let place = place_in_chain(&entries, &self.lock_given_up(), &entry);
                if !claim.shows(place, &left) {
                    return Err(RepositoryError::Refused { reason: place.refusal().to_owned() });
                }
                at
            }
        };
        if read(&self.layout, entry.position).is_err() {
            path.replace(bytes)?;
        }
        if entries.get(at).is_none_or(|known| known.position != entry.position) {
            entries.insert(at, entry);
        }
        Ok(())
    }

    /// Puts a tombstone in the place of a record, while `renew` says that the lease is held; it is durable when this
    /// returns.
    pub(crate) fn bury(
        &self,
        tombstone: &[u8],
        renew: impl FnOnce() -> Result<(), RepositoryError>,
    ) -> Result<(), RepositoryError> {
        let (buried, head) = Tombstone::decode_signed(tombstone)?;
        let path = self.layout.tombstone(buried.log_position);
        // One that is there already says the same of the same record.
        path.put_new_while(renew, tombstone)?;
        let entry = RecordEntry::of_tombstone(&buried, &head, tombstone);
        let mut entries = self.lock();
        match entries.binary_search_by_key(&entry.position, |known| known.position) {
            Ok(at) => entries[at] = entry,
            Err(at) => entries.insert(at, entry),
        }
        drop(entries);
        self.layout.record(buried.log_position).remove()
    }

    /// Removes the files of records that have tombstones, which a crash may have left.
    pub(crate) fn remove_buried(&self) -> Result<(), RepositoryError> {
        let entries = self.lock();
        let buried = entries.iter().filter(|entry| entry.forgotten);
        buried.into_iter().try_for_each(|entry| self.layout.record(entry.position).remove())
    }

    /// How many there are that were not forgotten, and how many bytes they and tombstones take.
    pub(crate) fn size(&self) -> (u64, u64) {
        let entries = self.lock();
        let there = entries.iter().filter(|entry| !entry.forgotten).count();
        (there as u64, entries.iter().map(|entry| entry.stored_bytes).sum())
    }

    /// Whether it is not known of a record if it was published: nothing is published any more until the
    /// repository is opened anew, which finds it or does not.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.in_doubt.load(Ordering::Acquire)
    }

    /// Publishes a record while `renew` says that the lease is held; it is durable when this returns. After an
    /// error it is not there, or [`Records::is_in_doubt`].
    pub(crate) fn publish(
        &self,
        stored: &StoredRecord,
        renew: impl Fn() -> Result<(), RepositoryError>,
    ) -> Result<Bytes, RepositoryError> {
        if self.is_in_doubt() {
            let reason =
                "whether an earlier record is stored is not known since its directory could \
                          not be written; open the repository again"
                    .to_owned();
            return Err(RepositoryError::Refused { reason });
        }
        let bytes = Bytes::from(stored.encode());
        let entry = RecordEntry::of(stored, &bytes);
        let path = self.layout.record(entry.position);
        let may_be_named = Cell::new(false);
        let published = self.publish_at(&path, &bytes, || {
            renew()?;
            may_be_named.set(true);
            Ok(())
        });
        match published {
            Ok(Published::New) => {
                self.lock().push(entry);
                Ok(bytes)
            }
            Err(error) if !may_be_named.get() => Err(error),
            Err(error) => {
                // Whoever took over meanwhile counts on the record if it has its name.
                let is_held = renew();
                if is_held.is_err() || self.withdraw(&path, &bytes).is_err() {
                    self.in_doubt.store(true, Ordering::Release);
                }
                is_held.and(Err(error))
            }
            Ok(Published::Existed) => {
                let reason = "its log position was given out twice".into();
                Err(RepositoryError::Damaged { what: path.display().to_string(), reason })
            }
        }
    }

    fn publish_at(
        &self,
        path: &Stored,
        bytes: &[u8],
        renew: impl FnOnce() -> Result<(), RepositoryError>,
    ) -> Result<Published, RepositoryError> {
        let published = path.put_new_while(renew, bytes);
        #[cfg(test)]
        if self.fails.swap(false, Ordering::AcqRel) {
            return Err(RepositoryError::io("syncing", std::io::Error::other("the disk failed")));
        }
        published
    }

    /// Takes back a record whose name may not be durable, so that its machine's chain does not
    /// fork when it comes again.
    fn withdraw(&self, path: &Stored, bytes: &[u8]) -> Result<(), RepositoryError> {
        match path.read_limited(STORED_MAX_BYTES)? {
            None => Ok(()),
            Some(there) if there == bytes => {
                path.remove()?;
                path.sync_parent()
            }
            Some(_) => {
                let reason = "its log position was given out twice".into();
                Err(RepositoryError::Damaged { what: path.display().to_string(), reason })
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<RecordEntry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lost records that were given up.
fn given_up(layout: &Layout) -> Result<BTreeSet<RecordHash>, RepositoryError> {
    let names = layout.all_given_up().names()?;
    Ok(names.iter().filter_map(|name| name.to_str()?.parse().ok()).collect())
}

/// Reads a stored record and checks it and its position.
pub(crate) fn read(
    layout: &Layout,
    position: u64,
) -> Result<(Bytes, StoredRecord), RepositoryError> {
    let path = layout.record(position);
    let damaged =
        |reason: String| RepositoryError::Damaged { what: path.display().to_string(), reason };
    let bytes =
        path.read_limited(STORED_MAX_BYTES)?.ok_or_else(|| damaged("it is not there".into()))?;
    let stored = StoredRecord::decode(&bytes).map_err(|error| unreadable(&path, &error))?;
    if stored.receipt.log_position != position {
        let other = record_file(stored.receipt.log_position);
        return Err(damaged(format!("it is the record {other}")));
    }
    Ok((bytes.into(), stored))
}

/// Where a record that is not among these would come in its machine's chain.
fn place_in_chain(
    entries: &[RecordEntry],
    given_up: &BTreeSet<RecordHash>,
    entry: &RecordEntry,
) -> Place {
    if entries.iter().any(|one| one.previous == entry.hash || one.amends == Some(entry.hash)) {
        return Place::Followed;
    }
    let of_machine = || entries.iter().filter(|other| other.machine == entry.machine);
    let is_there = |hash| entries.iter().any(|other| other.hash == hash);
    let is_lost = |hash| hash != NO_RECORD && !is_there(hash) && !given_up.contains(&hash);
    // What the next number of the chain should name, and what the entry's own.
    let names = [(entry.sequence.saturating_add(1), entry.hash), (entry.sequence, entry.previous)];
    let is_another = |(number, hash): (u64, RecordHash)| {
        let mut next = of_machine().filter(|next| next.sequence == number);
        !is_there(hash) && next.any(|next| next.previous != hash && is_lost(next.previous))
    };
    if names.into_iter().any(is_another) {
        return Place::Contradicted;
    }
    let newest = of_machine().next_back();
    let is_next = newest.map_or(entry.previous == NO_RECORD, |newest| {
        newest.hash == entry.previous && newest.position < entry.position
    });
    if is_next { Place::NextOfChain } else { Place::Neither }
}

/// Reads a tombstone and checks it and its position.
pub(crate) fn read_tombstone(
    layout: &Layout,
    position: u64,
) -> Result<(Vec<u8>, Tombstone, RecordHead), RepositoryError> {
    let path = layout.tombstone(position);
    let damaged =
        |reason: String| RepositoryError::Damaged { what: path.display().to_string(), reason };
    let bytes =
        path.read_limited(STORED_MAX_BYTES)?.ok_or_else(|| damaged("it is not there".into()))?;
    let (tombstone, head) =
        Tombstone::decode_signed(&bytes).map_err(|error| unreadable(&path, &error))?;
    if tombstone.log_position != position {
        return Err(damaged(format!("it is the record {}", record_file(tombstone.log_position))));
    }
    Ok((bytes, tombstone, head))
}

pub(crate) fn read_entry(
    layout: &Layout,
    position: u64,
    is_tombstone: bool,
) -> Result<RecordEntry, RepositoryError> {
    let record = if is_tombstone { None } else { Some(read(layout, position)) };
    match record {
        Some(Ok((bytes, stored))) => Ok(RecordEntry::of(&stored, &bytes)),
        // Who forgets one puts the tombstone there first: it may have been forgotten since it was listed.
        Some(Err(error)) if !is_forgotten(layout, position)? => Err(error),
        _ => {
            let (bytes, tombstone, head) = read_tombstone(layout, position)?;
            Ok(RecordEntry::of_tombstone(&tombstone, &head, &bytes))
        }
    }
}

/// Whether a tombstone is in the place of a record, whoever put it there.
pub(crate) fn is_forgotten(layout: &Layout, position: u64) -> Result<bool, RepositoryError> {
    Ok(layout.tombstone(position).is_there()? && !layout.record(position).is_there()?)
}

/// The head of the record at a position, which may have been forgotten.
pub(crate) fn read_head(layout: &Layout, position: u64) -> Result<RecordHead, RepositoryError> {
    if layout.tombstone(position).is_there()? {
        return Ok(read_tombstone(layout, position)?.2);
    }
    Ok(read(layout, position)?.1.record.head)
}

/// The log positions of all records, ascending, straight from the directory.
pub(crate) fn positions(layout: &Layout) -> Result<Vec<u64>, RepositoryError> {
    Ok(places(layout)?.into_keys().collect())
}

/// Whether the disk gives a file of that path, of a record or a tombstone.
pub(crate) fn is_readable(path: &Stored) -> bool {
    path.read_limited(STORED_MAX_BYTES).is_ok_and(|bytes| bytes.is_some())
}

/// The log position of the record whose file that is, if it is one.
pub(crate) fn position_of(layout: &Layout, path: &Path) -> Option<u64> {
    let number = path.file_name().and_then(|name| name.to_str()).and_then(number_of)?;
    (layout.record(number).path() == path).then_some(number)
}

/// Where a record lies, or its tombstone.
fn file_of(layout: &Layout, position: u64, is_tombstone: bool) -> Stored {
    if is_tombstone { layout.tombstone(position) } else { layout.record(position) }
}

/// Files among records and tombstones that are neither, with the reason.
fn foreign_names(layout: &Layout) -> Result<Vec<(PathBuf, String)>, RepositoryError> {
    let mut foreign = Vec::new();
    for folder in [layout.records(), layout.tombstones()] {
        let names = folder.names()?.into_iter();
        let others = names.filter(|name| name.to_str().and_then(number_of).is_none());
        let reason = || "not the name of a record".to_owned();
        foreign.extend(others.map(|name| (folder.path().join(name), reason())));
    }
    Ok(foreign)
}

/// The log positions of all records, and whether each has a tombstone.
fn places(layout: &Layout) -> Result<BTreeMap<u64, bool>, RepositoryError> {
    let mut places = BTreeMap::new();
    for (folder, is_tombstone) in [(layout.records(), false), (layout.tombstones(), true)] {
        let names = folder.names()?;
        let numbers = names.iter().filter_map(|name| name.to_str().and_then(number_of));
        places.extend(numbers.map(|number| (number, is_tombstone)));
    }
    Ok(places)
}

/// Lists records in order of position, straight from the directory and as they lie there.
pub(crate) fn list(
    layout: &Layout,
    query: &RecordQuery,
) -> Result<Vec<ListedRecord>, RepositoryError> {
    let mut before = places(layout)?;
    let behind = before.split_off(&query.after_position.saturating_add(1));
    if let Some(known) = query.known {
        let before: Vec<_> = before.into_iter().collect();
        if digest(layout, &before)? != known {
            return Err(RepositoryError::OtherRecords);
        }
    }
    let mut records = Vec::new();
    let mut bytes = 0;
    for (position, has_tombstone) in behind {
        if records.len() >= query.limit.min(MAX_RECORDS) || bytes >= FETCH_TARGET_BYTES {
            break;
        }
        let Some(record) = listed(layout, position, has_tombstone)? else { continue };
        bytes += record.stored.len();
        records.push(record);
    }
    Ok(records)
}

/// The digest of the records in those places, as they lie there.
fn digest(layout: &Layout, places: &[(u64, bool)]) -> Result<RecordsDigest, RepositoryError> {
    let mut digesting = RecordsDigesting::new();
    for some in places.chunks(RECORDS_AT_ONCE) {
        let short = in_parallel(some, |(at, is_buried)| listed_short(layout, *at, *is_buried));
        for ((position, is_buried), short) in some.iter().zip(short) {
            let record = match short {
                None => listed(layout, *position, *is_buried)?,
                short => short,
            };
            record.iter().for_each(|record| digesting.add(record));
        }
    }
    Ok(digesting.finish())
}

/// A record, or its tombstone, as it lies there, if it is short and can be read.
fn listed_short(layout: &Layout, position: u64, is_tombstone: bool) -> Option<ListedRecord> {
    let read = file_of(layout, position, is_tombstone).read_limited(SHORT_BYTES);
    let stored = read.ok().flatten()?;
    Some(ListedRecord { position, stored: stored.into() })
}

/// A record, or its tombstone, as it lies there: with nothing in it if it cannot be read. One that
/// just went is none.
fn listed(
    layout: &Layout,
    position: u64,
    has_tombstone: bool,
) -> Result<Option<ListedRecord>, RepositoryError> {
    let read = |path: &Stored| {
        let read = split_process_errors(path.read_limited(STORED_MAX_BYTES))?;
        Ok::<_, RepositoryError>(read.unwrap_or_else(|_| Some(Vec::new())))
    };
    let record = if has_tombstone { None } else { read(&layout.record(position))? };
    let stored = match record {
        // It may have been forgotten just now.
        None => read(&layout.tombstone(position))?,
        there => there,
    };
    Ok(stored.map(|stored| ListedRecord { position, stored: stored.into() }))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::publish::{make_dir, names_in, remove};
    use holdall_format::{Receipt, Record, SignedContext, TombstoneReason};
    use holdall_protocol::contract::Forge;

    pub(crate) fn stored(forge: &Forge, log_position: u64) -> StoredRecord {
        let bytes = forge.record(RecordKind::Snapshot, ObjectId::from_bytes([1; 32]), None);
        let record = Record::decode(&bytes).unwrap();
        let receipt = Receipt {
            clock_sure: true,
            repository: forge.repository,
            record: record.hash(),
            log_position,
            received_ns: 0,
            signer: forge.key.public(),
        };
        let signature = forge.key.sign(SignedContext::Receipt, &receipt.signed_bytes());
        StoredRecord::new(record, receipt, &signature)
    }

    fn tombstone_of(forge: &Forge, stored: &StoredRecord) -> Vec<u8> {
        let tombstone = Tombstone {
            reason: TombstoneReason::Request,
            record: stored.record.hash(),
            log_position: stored.receipt.log_position,
            forgotten_ns: 0,
            signer: forge.key.public(),
            head_bytes: stored.record.head_bytes.clone(),
        };
        let signed = tombstone.signed_bytes();
        tombstone.encode(&forge.key.sign(SignedContext::Tombstone, &signed))
    }

    fn place() -> (tempfile::TempDir, Layout, Forge) {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        layout.folders().iter().for_each(|folder| make_dir(folder).unwrap());
        let forge = Forge::new(1, MachineId::from_bytes([1; 16]), &[1; 32]);
        (dir, layout, forge)
    }

    #[test]
    fn a_record_whose_name_may_not_be_durable_is_taken_back() {
        let (_dir, layout, forge) = place();
        let records = Records::load(&layout).unwrap().records;
        records.fails.store(true, Ordering::Release);
        assert!(records.publish(&stored(&forge, 7), || Ok(())).is_err());
        assert!(!layout.record(7).exists());
        records.publish(&stored(&forge, 8), || Ok(())).unwrap();
        assert_eq!(Records::load(&layout).unwrap().records.after(0).len(), 1);
    }

    #[test]
    fn nothing_is_published_while_it_is_not_known_what_is() {
        let (_dir, layout, forge) = place();
        let records = Records::load(&layout).unwrap().records;
        // What has the name cannot be read, so it cannot be taken back.
        std::fs::create_dir(layout.record(7).path()).unwrap();
        records.fails.store(true, Ordering::Release);
        assert!(records.publish(&stored(&forge, 7), || Ok(())).is_err());
        let refused = records.publish(&stored(&forge, 8), || Ok(()));
        assert!(matches!(refused, Err(RepositoryError::Refused { .. })), "{refused:?}");
        assert!(!layout.record(8).exists());
    }

    #[test]
    fn a_record_that_was_not_about_to_get_its_name_is_in_no_doubt() {
        let (_dir, layout, forge) = place();
        let records = Records::load(&layout).unwrap().records;
        // Neither can anything be written, nor be seen what has the name.
        std::fs::create_dir(layout.record(7).path()).unwrap();
        let aside = layout.root().join("aside");
        std::fs::rename(layout.tmp().path(), aside.path()).unwrap();
        assert!(records.publish(&stored(&forge, 7), || Ok(())).is_err());
        std::fs::rename(aside.path(), layout.tmp().path()).unwrap();
        records.publish(&stored(&forge, 8), || Ok(())).unwrap();
        assert!(layout.record(8).exists());
    }

    /// Whoever took over reads the records that have their names, and counts on them.
    #[test]
    fn a_record_gets_no_name_and_loses_none_without_the_lease() {
        let (_dir, layout, forge) = place();
        let lost = || Err(RepositoryError::in_use(layout.place()));
        let records = Records::load(&layout).unwrap().records;
        let refused = records.publish(&stored(&forge, 7), lost).unwrap_err();
        assert!(matches!(refused, RepositoryError::InUse { .. }), "{refused}");
        assert_eq!(layout.records().names().unwrap(), [""; 0]);
        assert_eq!(names_in(&layout.tmp()).unwrap(), [""; 0]);

        // It was held, and is lost once the record has its name and the disk fails.
        let records = Records::load(&layout).unwrap().records;
        records.fails.store(true, Ordering::Release);
        let asked = std::cell::Cell::new(0);
        let once = || if asked.replace(1) == 0 { Ok(()) } else { lost() };
        let refused = records.publish(&stored(&forge, 8), once).unwrap_err();
        assert!(matches!(refused, RepositoryError::InUse { .. }), "{refused}");
        assert!(layout.record(8).exists());
    }

    /// Whoever took over may have pinned it, or counts on it.
    #[test]
    fn no_record_is_buried_without_the_lease() {
        let (_dir, layout, forge) = place();
        let records = Records::load(&layout).unwrap().records;
        let stored = stored(&forge, 7);
        records.publish(&stored, || Ok(())).unwrap();
        let tombstone = tombstone_of(&forge, &stored);
        // Whoever slept behind its renewal finds the file gone that was to get the name.
        let swept = || {
            let names = names_in(&layout.tmp())?;
            names.iter().try_for_each(|name| remove(&layout.tmp().join(name)))
        };
        assert!(records.bury(&tombstone, swept).is_err());
        let lost = || Err(RepositoryError::in_use(layout.place()));
        assert!(records.bury(&tombstone, lost).is_err());
        assert!(records.give_up(&stored.record.hash(), lost).is_err());
        assert!(layout.record(7).exists() && !layout.tombstone(7).exists());
        assert_eq!(layout.all_given_up().names().unwrap(), [""; 0]);
        records.bury(&tombstone, || Ok(())).unwrap();
        assert!(!layout.record(7).exists() && layout.tombstone(7).exists());
    }

    #[test]
    fn whoever_knows_all_of_many_records_is_believed_and_whoever_knows_others_is_not() {
        let (_dir, layout, _) = place();
        for position in 1..=300u64 {
            let length = if position % 70 == 0 { SHORT_BYTES as usize + 1 } else { 5000 };
            std::fs::write(layout.record(position).path(), vec![position as u8; length]).unwrap();
        }
        // One was forgotten, one cannot be read.
        std::fs::rename(layout.record(100).path(), layout.tombstone(100).path()).unwrap();
        std::fs::remove_file(layout.record(120).path()).unwrap();
        std::fs::create_dir(layout.record(120).path()).unwrap();

        let mut all = Vec::new();
        let query =
            |after_position, known| RecordQuery { after_position, limit: MAX_RECORDS, known };
        loop {
            let after = all.last().map_or(0, |last: &ListedRecord| last.position);
            let page = list(&layout, &query(after, None)).unwrap();
            if page.is_empty() {
                break;
            }
            all.extend(page);
        }
        assert_eq!(all.len(), 300);
        assert!(all[119].stored.is_empty());
        let digest = |records: &[ListedRecord]| Some(RecordsDigest::of(records));
        let behind = list(&layout, &query(299, digest(&all[..299]))).unwrap();
        assert_eq!(behind, all[299..]);
        for other in [&all[..298], &all[1..299]] {
            let refused = list(&layout, &query(299, digest(other)));
            assert!(matches!(refused, Err(RepositoryError::OtherRecords)), "{refused:?}");
        }
        for changed in [1, 70, 100, 299] {
            let mut others = all.clone();
            others[changed - 1].stored = Bytes::from_static(b"another");
            let refused = list(&layout, &query(299, digest(&others[..299])));
            assert!(matches!(refused, Err(RepositoryError::OtherRecords)), "{changed}");
        }
    }
}
