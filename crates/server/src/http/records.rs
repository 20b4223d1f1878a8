//! Listing records without holding more of them than one answer may carry.

use holdall_protocol::wire::{self, Frames, RECORDS_STEP, RECORDS_TARGET_BYTES};
use holdall_protocol::{MAX_RECORDS, RecordQuery, Repository, RepositoryError};

/// Reads records until the query or an answer is full. The answer says where to go on unless the
/// repository has no more.
pub(crate) fn read_records(
    repository: &dyn Repository,
    query: &RecordQuery,
) -> Result<Frames, RepositoryError> {
    let wanted = query.limit.min(MAX_RECORDS);
    let (mut found, mut bytes) = (Vec::new(), 0usize);
    let (mut after_position, mut known) = (query.after_position, query.known);
    while found.len() < wanted && bytes < RECORDS_TARGET_BYTES {
        let limit = RECORDS_STEP.min(wanted - found.len());
        let step = RecordQuery { after_position, limit, known: known.take() };
        let step = repository.records(&step)?;
        let Some(last) = step.last() else {
            return Ok(wire::encode_records(&found, None));
        };
        after_position = last.position;
        bytes += step.iter().map(|record| record.stored.len()).sum::<usize>();
        found.extend(step);
    }
    Ok(wire::encode_records(&found, Some(after_position)))
}
