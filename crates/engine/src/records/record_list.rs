//! Asking for the stored records of a repository: all of them, or those that this machine lacks.

use holdall_format::record_file;
use holdall_protocol::{
    ListedRecord, MAX_RECORDS, RecordQuery, RecordsDigest, Repository, RepositoryError,
};

use crate::cache::record_cache::RecordCache;
use crate::records::sound_records::{at, sound_in_place_of_damaged};
use crate::{Access, EngineError};

/// All records, as this machine knows them.
pub(crate) struct Known {
    /// In the order of the log.
    pub(crate) records: Vec<ListedRecord>,
    /// Log positions of those that were damaged or gone there, and that this machine had and stored again.
    pub(crate) put_back: Vec<u64>,
}

/// Lists all records, of which those that this machine has seen are not sent again.
///
/// # Errors
/// As for [`each_record_behind`].
pub(crate) fn list_by_cache(access: &Access) -> Result<Known, EngineError> {
    let cache = RecordCache::within(&access.cache);
    let mut records = cache.load();
    let seen = records.len();
    match ask_behind(access, &mut records) {
        Err(EngineError::Repository(RepositoryError::OtherRecords)) => {
            return list_anew(access, &cache, &records);
        }
        asked => asked?,
    }
    // An empty list is kept too: what this machine publishes is added to it.
    if seen == 0 || records.len() > seen {
        cache.replace(&records);
    }
    Ok(Known { records, put_back: Vec::new() })
}

/// Lists all records where the repository has others than those that are known. Known ones that are sound where the
/// repository's are damaged or gone stay known, and are stored there again.
fn list_anew(
    access: &Access,
    cache: &RecordCache,
    known: &[ListedRecord],
) -> Result<Known, EngineError> {
    let mut records = list_all(access)?;
    let mut kept = records.clone();
    let mut put_back = Vec::new();
    // What follows a record shows that it was here, and so comes first.
    for record in sound_in_place_of_damaged(known, &records).into_iter().rev() {
        // One that is refused stays known: the reason may pass, and nobody else may have it.
        if access.repository.put_back_record(&record.stored).is_ok() {
            put_back.push(record.position);
            put_in(&mut records, &record);
        }
        put_in(&mut kept, &record);
    }
    cache.replace(&kept);
    Ok(Known { records, put_back })
}

/// Has a record take the place of the one under the same log position.
fn put_in(records: &mut Vec<ListedRecord>, record: &ListedRecord) {
    match at(records, record.position) {
        Ok(at) => records[at] = record.clone(),
        Err(at) => records.insert(at, record.clone()),
    }
}

/// Asks for the records behind those that are known.
///
/// # Errors
/// [`RepositoryError::OtherRecords`] if the repository has others than these.
fn ask_behind(access: &Access, records: &mut Vec<ListedRecord>) -> Result<(), EngineError> {
    let last = records.last().map_or(0, |last| last.position);
    let known = (!records.is_empty()).then(|| RecordsDigest::of(records.iter()));
    each_record_behind(access.repository.as_ref(), last, known, |listed| {
        records.push(listed);
        Ok(())
    })
}

pub(crate) fn list_all(access: &Access) -> Result<Vec<ListedRecord>, EngineError> {
    let mut records = Vec::new();
    each_record_behind(access.repository.as_ref(), 0, None, |listed| {
        records.push(listed);
        Ok(())
    })?;
    Ok(records)
}

/// Asks for the records behind a log position, in order, if those up to there are the known ones.
///
/// # Errors
/// [`EngineError::Damaged`] for a list that is not in the order of the log;
/// [`RepositoryError::OtherRecords`]; if the repository can not be asked; what `take` fails with.
pub fn each_record_behind(
    repository: &dyn Repository,
    mut after_position: u64,
    mut known: Option<RecordsDigest>,
    mut take: impl FnMut(ListedRecord) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    loop {
        let query = RecordQuery { after_position, limit: MAX_RECORDS, known: known.take() };
        let page = repository.records(&query)?;
        if page.is_empty() {
            return Ok(());
        }
        for listed in page {
            if listed.position <= after_position {
                let what = format!("record {}", record_file(listed.position));
                return Err(EngineError::damaged(what, "it is not in the order of the log"));
            }
            after_position = listed.position;
            take(listed)?;
        }
    }
}
