//! Asking for the stored records of a repository: all of them, or those that this machine lacks.

use holdall_format::record_file;
use holdall_protocol::{
    ListedRecord, MAX_RECORDS, RecordQuery, RecordsDigest, Repository, RepositoryError,
};

use crate::record_cache::RecordCache;
use crate::record_mend::keep_sound;
use crate::{Access, EngineError};

/// Lists all records, of which those that this machine has seen are not sent again.
///
/// # Errors
/// As for [`each_record_behind`].
pub(crate) fn list_by_cache(access: &Access) -> Result<Vec<ListedRecord>, EngineError> {
    let cache = RecordCache::within(&access.cache);
    let mut records = cache.load();
    if ask_behind(access, &mut records)? {
        cache.replace(&records);
    }
    Ok(records)
}

/// Asks for the records behind those that are known, or for all if the repository has others. Tells
/// whether they are others now than they were.
fn ask_behind(access: &Access, records: &mut Vec<ListedRecord>) -> Result<bool, EngineError> {
    let seen = records.len();
    let last = records.last().map_or(0, |last| last.position);
    let known = (seen > 0).then(|| RecordsDigest::of(records.iter()));
    let mut keep = |listed| {
        records.push(listed);
        Ok(())
    };
    match each_record_behind(access.repository.as_ref(), last, known, &mut keep) {
        Err(EngineError::Repository(RepositoryError::OtherRecords)) => {
            let known = std::mem::replace(records, list_all(access)?);
            for sound in keep_sound(&known, records) {
                // Where it can not be stored now, this machine goes on having it.
                let _ = access.repository.put_back_record(&sound.stored);
            }
            Ok(true)
        }
        // An empty list is kept too: what this machine publishes is added to it.
        asked => asked.map(|()| seen == 0 || records.len() > seen),
    }
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
