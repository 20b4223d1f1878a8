//! Making and publishing records.

use bytes::Bytes;
use holdall_crypto::{Opener, RecordSecret, Sealer};
use holdall_format::{
    ObjectId, Record, RecordHash, RecordHead, RecordKind, SeriesId, SessionId, SignedContext,
    StoredRecord,
};
use holdall_protocol::{CommitAnswer, ListedRecord, RepositoryError, SessionPurpose};

use crate::cache::record_cache::RecordCache;
use crate::{EngineError, UnlockedRepository};

/// What makes records, as they say themselves.
pub(crate) const PROGRAM: &str = concat!("holdall ", env!("CARGO_PKG_VERSION"));

/// How often a record is put behind one that came in between, before giving up.
const HEAD_MOVES_MAX: usize = 8;

/// The end of a machine's chain of records, moved on with every record that is published.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChainEnd {
    pub(crate) head: Option<RecordHash>,
    pub(crate) sequence: u64,
}

/// What a record is to say.
pub(crate) struct NewRecord<'a> {
    pub(crate) kind: RecordKind,
    pub(crate) series: SeriesId,
    pub(crate) root: ObjectId,
    pub(crate) secret: &'a RecordSecret,
    pub(crate) pinned: bool,
    /// The snapshot that an amendment is of.
    pub(crate) amends: Option<RecordHash>,
}

impl ChainEnd {
    /// Where the chain ends now.
    fn ask(access: &UnlockedRepository) -> Result<Self, EngineError> {
        let grant = access.repository.open_session(&SessionPurpose::Read)?;
        access.repository.close_session(&grant.session)?;
        Ok(Self { head: grant.head, sequence: grant.sequence })
    }
}

/// Signs and publishes a record behind `chain`, and checks the receipt. If the machine published
/// another record meanwhile, such as tags while a backup runs, it goes behind that one.
///
/// # Errors
/// [`EngineError::Damaged`] if the repository says that objects are missing which it acknowledged,
/// or answers with a receipt that is not for this record or not its own.
pub(crate) fn publish(
    access: &UnlockedRepository,
    sealer: &mut Sealer,
    session: &SessionId,
    chain: &mut ChainEnd,
    new: &NewRecord<'_>,
) -> Result<Bytes, EngineError> {
    for _ in 0..HEAD_MOVES_MAX {
        match publish_behind(access, sealer, session, chain, new) {
            Err(EngineError::Repository(RepositoryError::HeadMoved { .. })) => {
                *chain = ChainEnd::ask(access)?;
            }
            published => return published,
        }
    }
    publish_behind(access, sealer, session, chain, new)
}

fn publish_behind(
    access: &UnlockedRepository,
    sealer: &mut Sealer,
    session: &SessionId,
    chain: &mut ChainEnd,
    new: &NewRecord<'_>,
) -> Result<Bytes, EngineError> {
    let sequence = chain.sequence.checked_add(1).ok_or_else(|| {
        EngineError::damaged("the repository", "it names a last sequence number that has no next")
    })?;
    let mut head = RecordHead {
        kind: new.kind,
        pinned: new.pinned,
        repository: access.config.repository,
        machine: access.machine,
        key: access.signing.public(),
        series: new.series,
        sequence,
        root: new.root,
        previous: chain.head.unwrap_or(RecordHash::from_bytes([0; 32])),
        sealed_hash: [0; 32],
        tags: new.secret.tags.iter().map(|tag| access.keys.tag_token(tag)).collect(),
        amends: new.amends,
        taken_ns: new.secret.copied_from.map(|from| from.received_ns),
    };
    let sealed = sealed_half(access, sealer, &head, new.secret)?;
    head.sealed_hash = *blake3::hash(&sealed).as_bytes();
    let signature = access.signing.sign(SignedContext::Record, &head.signed_bytes());
    let record = Record::new(head, &signature, sealed);
    let stored = match access.repository.commit(session, &Bytes::from(record.encode()))? {
        CommitAnswer::Committed(stored) => stored,
        CommitAnswer::Missing(ids) => return Err(EngineError::Lost { ids }),
    };
    let answer = StoredRecord::decode(&stored)?;
    if answer.record != record || answer.receipt.signer != access.receipts_from {
        return Err(EngineError::damaged(
            "the receipt",
            "it is for another record or not signed by the repository",
        ));
    }
    let listed = ListedRecord { position: answer.receipt.log_position, stored: stored.clone() };
    RecordCache::within(&access.cache).add(&listed);
    *chain = ChainEnd { head: Some(record.hash()), sequence };
    Ok(stored)
}

/// The sealed half of the record of that head, which was opened again before anything leaves.
fn sealed_half(
    access: &UnlockedRepository,
    sealer: &mut Sealer,
    head: &RecordHead,
    secret: &RecordSecret,
) -> Result<Vec<u8>, EngineError> {
    let sealed = secret.seal(head, sealer).map_err(EngineError::Record)?;
    let mut opener = Opener::new(access.keys.sealing(), access.config.repository);
    let opened = RecordSecret::open(&sealed, head, &mut opener).map_err(EngineError::self_check)?;
    if opened != *secret {
        return Err(EngineError::self_check("the sealed record differs from the record given"));
    }
    Ok(sealed)
}
