//! Stored records: one file each, named by its log position.
//!
//! A record that was forgotten leaves a tombstone under the same name in a folder of its own, and is
//! listed as that: its machine's chain goes on from it, and whoever knew the record sees that it was
//! let go and not lost. The tombstone is published before the record's file goes, so where both are
//! there, the record is forgotten.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use holdall_format::{RecordHash, RecordHead, StoredRecord, Tombstone, record_file};
use holdall_protocol::wire::MAX_STORED_RECORD_BYTES;
use holdall_protocol::{
    FETCH_TARGET_BYTES, ListedRecord, MAX_RECORDS, RecordQuery, RecordsDigest, RecordsDigesting,
    RepositoryError,
};

use crate::pack_file::unreadable;
use crate::records::entry::RecordEntry;
use crate::records::parallel::in_parallel;
use crate::storage::Stored;
use crate::storage::layout::{Layout, number_of};
use crate::storage::retry::split_process_errors;
/// A record and its receipt are never longer.
pub(super) const STORED_MAX_BYTES: u64 = MAX_STORED_RECORD_BYTES as u64;

/// So many short ones are in memory while all are gone through, and a long one.
const RECORDS_AT_ONCE: usize = 256;

/// A short one is no longer: few have more than 5 kB.
pub(super) const SHORT_BYTES: u64 = 64 << 10;

/// The lost records that were given up. Only a regular file says so.
pub(super) fn given_up(layout: &Layout) -> Result<BTreeSet<RecordHash>, RepositoryError> {
    let folder = layout.all_given_up();
    if folder.names()?.is_empty() {
        return Ok(BTreeSet::new());
    }
    let files =
        folder.list()?.into_iter().filter(|(_, stat)| matches!(stat, Ok(stat) if stat.is_file));
    Ok(files.filter_map(|(name, _)| name.to_str()?.parse().ok()).collect())
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
pub(super) fn file_of(layout: &Layout, position: u64, is_tombstone: bool) -> Stored {
    if is_tombstone { layout.tombstone(position) } else { layout.record(position) }
}

/// Files among records and tombstones that are neither, with the reason.
pub(super) fn foreign_names(layout: &Layout) -> Result<Vec<(PathBuf, String)>, RepositoryError> {
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
pub(super) fn places(layout: &Layout) -> Result<BTreeMap<u64, bool>, RepositoryError> {
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
