//! Bodies made of frames: repositories, records, commits and pages of blocks.

use bytes::Bytes;
use holdall_format::limits::BLOCK_MAX_BYTES;
use holdall_format::wire::Reader;
use holdall_format::{FormatError, MachineId, PublicKey, RECEIPT_BYTES, StoredRecord};

use super::scrub::{decode_damage, encode_damage};
use super::{
    Frames, MAX_CONTROL_BYTES, MAX_FRAMES, MAX_LISTED_RECORD_BYTES, MAX_REPOSITORY_BODY_BYTES,
    decode_frames, decode_ids, decode_times, encode_ids, encode_times,
};
use crate::{BlockPage, CommitAnswer, Description, Fetched, ListedRecord, NewRepository};

const COMMITTED: u8 = 0;
const MISSING: u8 = 1;

fn exactly<const N: usize>(
    what: &'static str,
    body: &Bytes,
    max_frame_bytes: usize,
) -> Result<[Bytes; N], FormatError> {
    decode_frames(body, max_frame_bytes)?
        .try_into()
        .map_err(|_| Reader::new(what, body).invalid("frames", "not as many as expected"))
}

fn array<const N: usize>(what: &'static str, frame: &Bytes) -> Result<[u8; N], FormatError> {
    let mut reader = Reader::new(what, frame);
    let array = reader.array("identifier")?;
    reader.finish().map(|()| array)
}

/// The body that makes a repository: frames of configuration and wrappings.
pub fn encode_new_repository(new: &NewRepository) -> Frames {
    Frames::framed(&[new.config.clone(), new.wrappings.clone()])
}

/// Reads the body that makes a repository; what is in its parts is the repository's to check.
///
/// # Errors
/// [`FormatError`] for other frames.
pub fn decode_new_repository(body: &Bytes) -> Result<NewRepository, FormatError> {
    let [config, wrappings] = exactly("new repository", body, MAX_REPOSITORY_BODY_BYTES)?;
    Ok(NewRepository { config, wrappings })
}

/// The answer that describes a repository: frames of configuration, wrappings, machine and signer.
pub fn encode_description(description: &Description) -> Frames {
    Frames::framed(&[
        description.config.clone(),
        description.wrappings.clone(),
        Bytes::copy_from_slice(description.machine.as_bytes()),
        Bytes::copy_from_slice(description.signer.as_bytes()),
    ])
}

/// Reads the answer that describes a repository.
///
/// # Errors
/// [`FormatError`] for other frames.
pub fn decode_description(body: &Bytes) -> Result<Description, FormatError> {
    let what = "description";
    let [config, wrappings, machine, signer] = exactly(what, body, MAX_REPOSITORY_BODY_BYTES)?;
    let machine = MachineId::from_bytes(array(what, &machine)?);
    let signer = PublicKey::from_bytes(array(what, &signer)?);
    Ok(Description { config, wrappings, machine, signer })
}

/// The answer to a commit: 0 and the receipt, or 1 and the missing ids. Whoever committed has the
/// rest of the stored record.
pub fn encode_commit_answer(answer: &CommitAnswer) -> Frames {
    let (code, rest) = match answer {
        CommitAnswer::Committed(stored) => {
            let receipt = StoredRecord::receipt_in(stored).unwrap_or_default();
            (COMMITTED, stored.slice_ref(receipt))
        }
        CommitAnswer::Missing(ids) => {
            (MISSING, encode_ids(ids.get(..crate::MAX_IDS).unwrap_or(ids)))
        }
    };
    let mut body = Frames::plain(Bytes::copy_from_slice(&[code]));
    body.push_plain(rest);
    body
}

/// Reads the answer to the commit of `record`.
///
/// # Errors
/// [`FormatError`] for another first byte, too many ids, or what is not as long as a receipt.
pub fn decode_commit_answer(body: &Bytes, record: &[u8]) -> Result<CommitAnswer, FormatError> {
    let mut reader = Reader::new("commit answer", body);
    match reader.u8("code")? {
        COMMITTED if reader.remaining().len() == RECEIPT_BYTES => {
            let stored = StoredRecord::join(record, reader.remaining());
            Ok(CommitAnswer::Committed(stored.into()))
        }
        MISSING => decode_ids(reader.remaining()).map(CommitAnswer::Missing),
        _ => Err(reader.invalid("code", "unknown, or not followed by a receipt")),
    }
}

/// An answer with records: the position to go on from (u64, 0 at the end) and a frame for each,
/// which is its position (u64) and its bytes.
pub fn encode_records(records: &[ListedRecord], go_on_after: Option<u64>) -> Frames {
    let next = go_on_after.unwrap_or(0).to_le_bytes();
    let mut body = Frames::plain(Bytes::copy_from_slice(&next));
    for record in records {
        body.push_frame([&record.position.to_le_bytes(), &record.stored[..]].concat().into());
    }
    body
}

/// Reads an answer with records: these, and the position to go on from.
///
/// # Errors
/// [`FormatError`] for a cut body, or more or longer records than their limits.
pub fn decode_records(body: &Bytes) -> Result<(Vec<ListedRecord>, Option<u64>), FormatError> {
    let mut reader = Reader::new("records", body);
    let next = reader.u64("position")?;
    let rest = body.slice_ref(reader.remaining());
    let frames = decode_frames(&rest, MAX_LISTED_RECORD_BYTES)?;
    let records = frames.iter().map(listed_record).collect::<Result<_, _>>()?;
    Ok((records, (next != 0).then_some(next)))
}

fn listed_record(frame: &Bytes) -> Result<ListedRecord, FormatError> {
    let mut reader = Reader::new("listed record", frame);
    let position = reader.u64("position")?;
    Ok(ListedRecord { position, stored: frame.slice_ref(reader.remaining()) })
}

/// The answer to a fetch: frames of the times, as JSON, and of each block.
pub fn encode_fetched(fetched: &Fetched) -> Frames {
    let mut body = Frames::framed(&[encode_times(&fetched.times)]);
    fetched.blocks.iter().for_each(|block| body.push_frame(block.clone()));
    body
}

/// Reads the answer to a fetch.
///
/// # Errors
/// [`FormatError`] for a cut body, times that are not this JSON, or more or longer blocks than their
/// limits.
pub fn decode_fetched(body: &Bytes) -> Result<Fetched, FormatError> {
    let mut reader = Reader::new("fetched blocks", body);
    let length = reader.length("times", MAX_CONTROL_BYTES)?;
    let times = decode_times(reader.bytes("times", length)?)?;
    let blocks = decode_frames(&body.slice_ref(reader.remaining()), BLOCK_MAX_BYTES)?;
    Ok(Fetched { blocks, times })
}

/// A page of blocks: whether it goes on (u8) and where (u64), the number of damaged blocks (u32), a
/// frame of JSON for each of these, and a frame for each block.
pub fn encode_block_page(page: &BlockPage) -> Frames {
    let damaged = page.damaged.get(..MAX_FRAMES / 2).unwrap_or(&page.damaged);
    let mut head = vec![u8::from(page.next.is_some())];
    head.extend_from_slice(&page.next.unwrap_or(0).to_le_bytes());
    head.extend_from_slice(&u32::try_from(damaged.len()).unwrap_or(0).to_le_bytes());
    let mut body = Frames::plain(head.into());
    damaged.iter().for_each(|damage| body.push_frame(encode_damage(damage)));
    page.blocks.iter().for_each(|block| body.push_frame(block.clone()));
    body
}

/// Reads a page of blocks.
///
/// # Errors
/// [`FormatError`] for a cut body, or frames over their limits.
pub fn decode_block_page(body: &Bytes) -> Result<BlockPage, FormatError> {
    let mut reader = Reader::new("page of blocks", body);
    let more = match reader.u8("more")? {
        0 => false,
        1 => true,
        _ => return Err(reader.invalid("more", "neither 0 nor 1")),
    };
    let next = reader.u64("cursor")?;
    let damaged_count = reader.length("damaged blocks", MAX_FRAMES)?;
    let rest = body.slice_ref(reader.remaining());
    let mut frames = decode_frames(&rest, BLOCK_MAX_BYTES)?;
    if damaged_count > frames.len() {
        return Err(reader.invalid("damaged blocks", "more than there are frames"));
    }
    let blocks = frames.split_off(damaged_count);
    let damaged = frames.iter().map(|frame| decode_damage(frame)).collect::<Result<_, _>>()?;
    Ok(BlockPage { blocks, damaged, next: more.then_some(next) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RequestTimes, ScrubDamage};
    use holdall_format::{BlockName, ObjectId, PackName};
    use proptest::prelude::*;

    fn page() -> BlockPage {
        let block = BlockName::from_bytes([4; 32]);
        let pack = Some(PackName::from_bytes([5; 32]));
        BlockPage {
            blocks: vec![Bytes::from_static(b"one"), Bytes::from_static(b"two")],
            damaged: vec![ScrubDamage::Block { block, pack, reason: "torn".into() }],
            next: Some(0),
        }
    }

    #[test]
    fn bodies_of_frames_read_back() {
        let config = Bytes::from_static(b"config");
        let wrappings = Bytes::from_static(b"wrappings");
        let new = NewRepository { config: config.clone(), wrappings: wrappings.clone() };
        assert_eq!(decode_new_repository(&encode_new_repository(&new).concat()), Ok(new));
        let machine = MachineId::from_bytes([2; 16]);
        let signer = PublicKey::from_bytes([3; 32]);
        let description = Description { config, wrappings, machine, signer };
        let body = encode_description(&description).concat();
        assert_eq!(decode_description(&body), Ok(description));
        for page in [page(), BlockPage::default()] {
            assert_eq!(decode_block_page(&encode_block_page(&page).concat()), Ok(page));
        }
        for blocks in [page().blocks, Vec::new()] {
            let times = RequestTimes { disk_seconds: 0.25, ..RequestTimes::default() };
            let fetched = Fetched { blocks, times };
            assert_eq!(decode_fetched(&encode_fetched(&fetched).concat()), Ok(fetched));
        }
        for answer in [
            CommitAnswer::Committed(StoredRecord::join(b"record", &[7; RECEIPT_BYTES]).into()),
            CommitAnswer::Missing(vec![ObjectId::from_bytes([6; 32])]),
        ] {
            let body = encode_commit_answer(&answer).concat();
            assert_eq!(decode_commit_answer(&body, b"record"), Ok(answer));
        }
        let records = [(1, &b"a"[..]), (u64::MAX, b"")]
            .map(|(position, stored)| ListedRecord { position, stored: stored.into() })
            .to_vec();
        for next in [None, Some(9)] {
            let body = encode_records(&records, next).concat();
            assert_eq!(decode_records(&body), Ok((records.clone(), next)));
        }
    }

    #[test]
    fn what_was_committed_is_not_sent_back() {
        let stored = StoredRecord::join(&[1; 5000], &[7; RECEIPT_BYTES]).into();
        let body = encode_commit_answer(&CommitAnswer::Committed(stored)).concat();
        assert_eq!(body[1..], [7; RECEIPT_BYTES]);
        assert!(decode_commit_answer(&body.slice(..RECEIPT_BYTES), b"record").is_err());
    }

    #[test]
    fn a_page_can_not_declare_more_damage_than_it_has_frames() {
        let mut body = encode_block_page(&page()).concat().to_vec();
        body[9] = 4;
        assert!(decode_block_page(&body.into()).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_body_or_an_error(bytes: Vec<u8>, at: usize, with: u8) {
            let mut mutated = encode_block_page(&page()).concat().to_vec();
            let at = at % mutated.len();
            mutated[at] = with;
            for body in [Bytes::from(bytes), Bytes::from(mutated)] {
                let _ = decode_new_repository(&body);
                let _ = decode_description(&body);
                let _ = decode_commit_answer(&body, b"record");
                let _ = decode_records(&body);
                let _ = decode_block_page(&body);
                let _ = decode_fetched(&body);
            }
        }
    }
}
