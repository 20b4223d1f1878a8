//! Stored records: one file each, named by its log position.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use holdall_format::limits::RECORD_MAX_BYTES;
use holdall_format::{MachineId, ObjectId, RecordHash, RecordKind, StoredRecord};
use holdall_protocol::{FETCH_TARGET_BYTES, MAX_RECORDS, RecordQuery, RepositoryError};

use crate::layout::Layout;
use crate::publish::{Published, names_in, publish, read_limited};

/// A record and its receipt are never longer.
const STORED_MAX_BYTES: u64 = RECORD_MAX_BYTES as u64 + (4 << 10);

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
}

impl RecordEntry {
    fn of(stored: &StoredRecord) -> Self {
        let head = &stored.record.head;
        Self {
            position: stored.receipt.log_position,
            hash: stored.receipt.record,
            machine: head.machine,
            sequence: head.sequence,
            root: head.root,
            kind: head.kind,
        }
    }
}

/// All records of a repository, in order of position.
#[derive(Debug)]
pub(crate) struct Records {
    layout: Layout,
    entries: Mutex<Vec<RecordEntry>>,
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
            let Some(position) = name.to_str().and_then(position_of) else {
                damaged.push((path, "not the name of a record".to_owned()));
                continue;
            };
            next_position = next_position.max(position.saturating_add(1));
            match read(layout, position) {
                Ok((_, stored)) => entries.push(RecordEntry::of(&stored)),
                Err(RepositoryError::Damaged { reason, .. }) => damaged.push((path, reason)),
                Err(error) => return Err(error),
            }
        }
        let records = Self { layout: layout.clone(), entries: Mutex::new(entries) };
        Ok(Loaded { records, damaged, next_position })
    }

    /// The newest record of a machine.
    pub(crate) fn head(&self, machine: &MachineId) -> Option<RecordEntry> {
        self.lock().iter().rev().find(|entry| entry.machine == *machine).cloned()
    }

    /// The stored bytes of a record, if it was published.
    pub(crate) fn find(&self, hash: &RecordHash) -> Result<Option<Bytes>, RepositoryError> {
        let entry = self.lock().iter().rev().find(|entry| entry.hash == *hash).cloned();
        entry.map(|entry| read(&self.layout, entry.position).map(|(bytes, _)| bytes)).transpose()
    }

    /// The records behind a position.
    pub(crate) fn after(&self, position: u64) -> Vec<RecordEntry> {
        let entries = self.lock();
        entries.iter().filter(|entry| entry.position > position).cloned().collect()
    }

    /// Publishes a record; it is durable when this returns.
    pub(crate) fn publish(&self, stored: &StoredRecord) -> Result<Bytes, RepositoryError> {
        let entry = RecordEntry::of(stored);
        let bytes = Bytes::from(stored.encode());
        let path = self.layout.record(entry.position);
        match publish(&self.layout.tmp(), &path, &bytes)? {
            Published::New => {
                self.lock().push(entry);
                Ok(bytes)
            }
            Published::Existed => {
                let reason = "its log position was given out twice".into();
                Err(RepositoryError::Damaged { what: path.display().to_string(), reason })
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<RecordEntry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn position_of(name: &str) -> Option<u64> {
    let is_hexadecimal = name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (name.len() == 16 && is_hexadecimal).then(|| u64::from_str_radix(name, 16).ok()).flatten()
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
    let stored = StoredRecord::decode(&bytes).map_err(|error| damaged(error.to_string()))?;
    if stored.receipt.log_position != position {
        return Err(damaged(format!("it is the record {}", stored.receipt.log_position)));
    }
    Ok((bytes.into(), stored))
}

/// Lists records in order of position, straight from the directory.
pub(crate) fn list(layout: &Layout, query: &RecordQuery) -> Result<Vec<Bytes>, RepositoryError> {
    let names = names_in(&layout.records())?;
    let positions = names.iter().filter_map(|name| name.to_str().and_then(position_of));
    let mut records = Vec::new();
    let mut bytes = 0;
    for position in positions.filter(|position| *position > query.after_position) {
        if records.len() >= query.limit.min(MAX_RECORDS) || bytes >= FETCH_TARGET_BYTES {
            break;
        }
        let (record, _) = read(layout, position)?;
        bytes += record.len();
        records.push(record);
    }
    Ok(records)
}
