//! Which records there are, and which follows which.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use holdall_format::{MachineId, RecordHash, StoredRecord, Tombstone};
use holdall_protocol::RepositoryError;

use crate::records::claim::{ChainPlace, Claim, Left};
use crate::records::entry::{NO_RECORD, RecordEntry};
use crate::records::files::{
    STORED_MAX_BYTES, file_of, foreign_names, given_up, places, read, read_entry, read_tombstone,
};
use crate::records::parallel::in_parallel;
use crate::storage::Stored;
use crate::storage::layout::Layout;
use crate::storage::publish::Published;
use crate::storage::retry::split_process_errors;
/// What a file says whose name is that of a record that was given up.
const GIVEN_UP: &[u8] = b"holdall given up, version 1\n";

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
        self.read(|entries| entries.filter(|entry| entry.position > position).cloned().collect())
    }

    /// Looks at all that were not forgotten, in the order of their positions. Meanwhile none is added.
    pub(crate) fn read<T>(
        &self,
        of: impl FnOnce(&mut dyn Iterator<Item = &RecordEntry>) -> T,
    ) -> T {
        of(&mut self.lock().iter().filter(|entry| !entry.forgotten))
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
        let note = self.layout.given_up(hash);
        note.put_new_while(renew, GIVEN_UP)?;
        if note.is_folder() {
            let reason = "it is a folder: move that folder away".to_owned();
            return Err(RepositoryError::Damaged { what: note.display().to_string(), reason });
        }
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
                return Err(RepositoryError::Refused { reason: given_up_reason(&entry.hash) });
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

    /// Stores a tombstone again where none that is sound lies, and nothing else; where a record follows the one that was
    /// forgotten, so that nothing is hidden that would be told.
    pub(crate) fn put_tombstone_back(
        &self,
        tombstone: &Tombstone,
        bytes: &[u8],
        renew: impl FnOnce() -> Result<(), RepositoryError>,
    ) -> Result<(), RepositoryError> {
        let position = tombstone.log_position;
        let refused = |reason: &str| RepositoryError::Refused { reason: reason.to_owned() };
        {
            let entries = self.lock();
            let is_taken = entries.binary_search_by_key(&position, |known| known.position).is_ok();
            if is_taken || self.layout.record(position).is_there()? {
                return Err(refused("a record has its place, or it was forgotten"));
            }
            if !entries.iter().any(|known| known.previous == tombstone.record) {
                return Err(refused("no record follows the one that was forgotten"));
            }
        }
        let path = self.layout.tombstone(position);
        if path.is_there()? && read_tombstone(&self.layout, position).is_err() {
            renew()?;
            path.replace(bytes)?;
            return self.bury(bytes, || Ok(()));
        }
        self.bury(bytes, renew)
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

/// Why a record that was given up does not come back.
fn given_up_reason(hash: &RecordHash) -> String {
    format!(
        "it was given up, as the repository's file `given-up/{hash}` says: `holdall forget {hash}` on this computer ends \
         its waiting; to have it back, remove that file"
    )
}

/// Where a record that is not among these would come in its machine's chain.
fn place_in_chain(
    entries: &[RecordEntry],
    given_up: &BTreeSet<RecordHash>,
    entry: &RecordEntry,
) -> ChainPlace {
    if entries.iter().any(|one| one.previous == entry.hash || one.amends == Some(entry.hash)) {
        return ChainPlace::Followed;
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
        return ChainPlace::Contradicted;
    }
    let newest = of_machine().next_back();
    let is_next = newest.map_or(entry.previous == NO_RECORD, |newest| {
        newest.hash == entry.previous && newest.position < entry.position
    });
    if is_next { ChainPlace::NextOfChain } else { ChainPlace::Neither }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::records::files::{SHORT_BYTES, list};
    use crate::storage::publish::{make_dir, names_in, remove};
    use holdall_format::{ObjectId, Receipt, Record, RecordKind, SignedContext, TombstoneReason};
    use holdall_protocol::contract::Forge;
    use holdall_protocol::{ListedRecord, MAX_RECORDS, RecordQuery, RecordsDigest};

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
