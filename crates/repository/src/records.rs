//! Stored records: one file each, named by its log position.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use holdall_format::{MachineId, ObjectId, RecordHash, RecordKind, StoredRecord};
use holdall_protocol::wire::MAX_STORED_RECORD_BYTES;
use holdall_protocol::{
    FETCH_TARGET_BYTES, ListedRecord, MAX_RECORDS, RecordQuery, RecordsDigesting, RepositoryError,
};

use crate::layout::{Layout, number_of};
use crate::pack_file::unreadable;
use crate::publish::{Published, names_in, publish, read_limited, remove, sync_parent};

/// A record and its receipt are never longer.
const STORED_MAX_BYTES: u64 = MAX_STORED_RECORD_BYTES as u64;

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
    /// The root of its tree.
    pub(crate) root: ObjectId,
    /// Snapshot, checkpoint or amendment.
    pub(crate) kind: RecordKind,
    /// When it came, in nanoseconds since 1970 UTC.
    pub(crate) received_ns: i64,
    /// Length of its file.
    pub(crate) stored_bytes: u64,
}

impl RecordEntry {
    fn of(stored: &StoredRecord, bytes: &[u8]) -> Self {
        let head = &stored.record.head;
        Self {
            position: stored.receipt.log_position,
            hash: stored.receipt.record,
            machine: head.machine,
            sequence: head.sequence,
            root: head.root,
            kind: head.kind,
            received_ns: stored.receipt.received_ns,
            stored_bytes: bytes.len() as u64,
        }
    }
}

/// All records of a repository, in order of position.
#[derive(Debug)]
pub(crate) struct Records {
    layout: Layout,
    entries: Mutex<Vec<RecordEntry>>,
    /// Set when it is not known whether a record was published.
    in_doubt: AtomicBool,
    /// Has the next publication fail after the file has its name.
    #[cfg(test)]
    fails: AtomicBool,
}

/// What was found in the folder of records.
pub(crate) struct Loaded {
    pub(crate) records: Records,
    /// Files that are no record that can be read, with the reason.
    pub(crate) damaged: Vec<(PathBuf, String)>,
    /// More than any position that was given to a record.
    pub(crate) next_position: u64,
}

impl Records {
    /// Reads all records.
    pub(crate) fn load(layout: &Layout) -> Result<Loaded, RepositoryError> {
        let mut entries = Vec::new();
        let mut damaged = Vec::new();
        let mut next_position = 1;
        for name in names_in(&layout.records())? {
            let path = layout.records().join(&name);
            let Some(position) = name.to_str().and_then(number_of) else {
                damaged.push((path, "not the name of a record".to_owned()));
                continue;
            };
            next_position = next_position.max(position.saturating_add(1));
            match read(layout, position) {
                Ok((bytes, stored)) => entries.push(RecordEntry::of(&stored, &bytes)),
                Err(
                    RepositoryError::Damaged { reason, .. }
                    | RepositoryError::OtherFormat { reason, .. },
                ) => damaged.push((path, reason)),
                Err(error) => return Err(error),
            }
        }
        let records = Self {
            layout: layout.clone(),
            entries: Mutex::new(entries),
            in_doubt: AtomicBool::new(false),
            #[cfg(test)]
            fails: AtomicBool::new(false),
        };
        Ok(Loaded { records, damaged, next_position })
    }

    /// The newest record of a machine.
    pub(crate) fn head(&self, machine: &MachineId) -> Option<RecordEntry> {
        self.lock().iter().rev().find(|entry| entry.machine == *machine).cloned()
    }

    /// The stored bytes of a record, if it was published.
    pub(crate) fn find(&self, hash: &RecordHash) -> Result<Option<Bytes>, RepositoryError> {
        self.entry(hash)
            .map(|entry| read(&self.layout, entry.position).map(|(bytes, _)| bytes))
            .transpose()
    }

    /// What is known of a record, if it was published.
    pub(crate) fn entry(&self, hash: &RecordHash) -> Option<RecordEntry> {
        self.lock().iter().rev().find(|entry| entry.hash == *hash).cloned()
    }

    /// The records behind a position.
    pub(crate) fn after(&self, position: u64) -> Vec<RecordEntry> {
        let entries = self.lock();
        entries.iter().filter(|entry| entry.position > position).cloned().collect()
    }

    /// How many there are, and how many bytes they take.
    pub(crate) fn size(&self) -> (u64, u64) {
        let entries = self.lock();
        (entries.len() as u64, entries.iter().map(|entry| entry.stored_bytes).sum())
    }

    /// Publishes a record; it is durable when this returns. After an error it is not there, or
    /// nothing is published any more until the repository is opened anew.
    pub(crate) fn publish(&self, stored: &StoredRecord) -> Result<Bytes, RepositoryError> {
        if self.in_doubt.load(Ordering::Acquire) {
            let reason =
                "whether an earlier record is stored is not known since its directory could \
                          not be written; open the repository again"
                    .to_owned();
            return Err(RepositoryError::Refused { reason });
        }
        let bytes = Bytes::from(stored.encode());
        let entry = RecordEntry::of(stored, &bytes);
        let path = self.layout.record(entry.position);
        match self.publish_at(&path, &bytes) {
            Ok(Published::New) => {
                self.lock().push(entry);
                Ok(bytes)
            }
            Err(error) => {
                if self.withdraw(&path, &bytes).is_err() {
                    self.in_doubt.store(true, Ordering::Release);
                }
                Err(error)
            }
            Ok(Published::Existed) => {
                let reason = "its log position was given out twice".into();
                Err(RepositoryError::Damaged { what: path.display().to_string(), reason })
            }
        }
    }

    fn publish_at(&self, path: &Path, bytes: &[u8]) -> Result<Published, RepositoryError> {
        let published = publish(&self.layout.tmp(), path, bytes);
        #[cfg(test)]
        if self.fails.swap(false, Ordering::AcqRel) {
            return Err(RepositoryError::io("syncing", std::io::Error::other("the disk failed")));
        }
        published
    }

    /// Takes back a record whose name may not be durable, so that its machine's chain does not
    /// fork when it comes again.
    fn withdraw(&self, path: &Path, bytes: &[u8]) -> Result<(), RepositoryError> {
        match read_limited(path, STORED_MAX_BYTES)? {
            None => Ok(()),
            Some(there) if there == bytes => {
                remove(path)?;
                sync_parent(path)
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

/// Reads a stored record and checks it and its position.
pub(crate) fn read(
    layout: &Layout,
    position: u64,
) -> Result<(Bytes, StoredRecord), RepositoryError> {
    let path = layout.record(position);
    let damaged =
        |reason: String| RepositoryError::Damaged { what: path.display().to_string(), reason };
    let bytes =
        read_limited(&path, STORED_MAX_BYTES)?.ok_or_else(|| damaged("it is not there".into()))?;
    let stored = StoredRecord::decode(&bytes).map_err(|error| unreadable(&path, &error))?;
    if stored.receipt.log_position != position {
        return Err(damaged(format!("it is the record {}", stored.receipt.log_position)));
    }
    Ok((bytes.into(), stored))
}

/// The log positions of all records, ascending, straight from the directory.
pub(crate) fn positions(layout: &Layout) -> Result<Vec<u64>, RepositoryError> {
    let names = names_in(&layout.records())?;
    Ok(names.iter().filter_map(|name| name.to_str().and_then(number_of)).collect())
}

/// Lists records in order of position, straight from the directory and as they lie there.
pub(crate) fn list(
    layout: &Layout,
    query: &RecordQuery,
) -> Result<Vec<ListedRecord>, RepositoryError> {
    let positions = positions(layout)?;
    let split = positions.partition_point(|position| *position <= query.after_position);
    let (before, behind) = positions.split_at(split);
    if let Some(known) = query.known {
        let mut digesting = RecordsDigesting::new();
        let listed = before.iter().filter_map(|position| listed(layout, *position));
        listed.for_each(|record| digesting.add(&record));
        if digesting.finish() != known {
            return Err(RepositoryError::OtherRecords);
        }
    }
    let mut records = Vec::new();
    let mut bytes = 0;
    for position in behind {
        if records.len() >= query.limit.min(MAX_RECORDS) || bytes >= FETCH_TARGET_BYTES {
            break;
        }
        let Some(record) = listed(layout, *position) else { continue };
        bytes += record.stored.len();
        records.push(record);
    }
    Ok(records)
}

/// A record as it lies there: with nothing in it if it can not be read. One that just went is none.
fn listed(layout: &Layout, position: u64) -> Option<ListedRecord> {
    let stored = read_limited(&layout.record(position), STORED_MAX_BYTES)
        .unwrap_or_else(|_| Some(Vec::new()))?;
    Some(ListedRecord { position, stored: stored.into() })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::publish::make_dir;
    use holdall_format::{Receipt, Record, SignedContext};
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

    #[test]
    fn a_record_whose_name_may_not_be_durable_is_taken_back() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        layout.folders().iter().for_each(|folder| make_dir(folder).unwrap());
        let forge = Forge::new(1, MachineId::from_bytes([1; 16]), &[1; 32]);
        let records = Records::load(&layout).unwrap().records;
        records.fails.store(true, Ordering::Release);
        assert!(records.publish(&stored(&forge, 7)).is_err());
        assert!(!layout.record(7).exists());
        records.publish(&stored(&forge, 8)).unwrap();
        assert_eq!(Records::load(&layout).unwrap().records.after(0).len(), 1);
    }

    #[test]
    fn nothing_is_published_while_it_is_not_known_what_is() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        layout.folders().iter().for_each(|folder| make_dir(folder).unwrap());
        let forge = Forge::new(1, MachineId::from_bytes([1; 16]), &[1; 32]);
        let records = Records::load(&layout).unwrap().records;
        // What has the name can not be read, so it can not be taken back.
        std::fs::create_dir(layout.record(7)).unwrap();
        records.fails.store(true, Ordering::Release);
        assert!(records.publish(&stored(&forge, 7)).is_err());
        let refused = records.publish(&stored(&forge, 8));
        assert!(matches!(refused, Err(RepositoryError::Refused { .. })), "{refused:?}");
        assert!(!layout.record(8).exists());
    }
}
