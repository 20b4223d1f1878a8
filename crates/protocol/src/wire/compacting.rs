//! Compacting: which blocks are mostly dead, and which give way to later copies.

use bytes::Bytes;
use holdall_format::wire::Reader;
use holdall_format::{FormatError, ObjectId};
use zeroize::Zeroizing;

use super::deletion::{decode_deletion, encode_deletions};
use crate::{AdminToken, MAX_IDS, SparseBlock, Superseding};

/// Most bytes of the body that has blocks give way.
pub const MAX_SUPERSEDE_BODY_BYTES: usize = AdminToken::LEN + 8 * MAX_IDS;
/// Most bytes of the answer that lists sparse blocks.
pub const MAX_SPARSE_ANSWER_BYTES: usize = (SPARSE_HEAD_BYTES + ObjectId::LEN) * MAX_IDS;
/// What stands before a sparse block's objects.
const SPARSE_HEAD_BYTES: usize = 8 + 8 + 4;

/// The body that has blocks give way: the token, then their arrival positions (u64 each).
///
/// Secret: has the token.
pub fn encode_supersede(token: &AdminToken, blocks: &[u64]) -> Bytes {
    let mut out = token.as_bytes().to_vec();
    blocks.iter().for_each(|arrival| out.extend_from_slice(&arrival.to_le_bytes()));
    out.into()
}

/// Reads the body that has blocks give way, or, without any, that asks which are sparse.
///
/// Untrusted: at most [`MAX_IDS`] blocks.
///
/// # Errors
/// [`FormatError`] for more, or another length.
pub fn decode_supersede(body: &[u8]) -> Result<(AdminToken, Vec<u64>), FormatError> {
    let mut reader = Reader::new("compaction request", body);
    let token = AdminToken::new(Zeroizing::new(reader.array("token")?));
    let (blocks, rest) = reader.remaining().as_chunks::<8>();
    if !rest.is_empty() || blocks.len() > MAX_IDS {
        return Err(reader.invalid("blocks", "cut short, or more than their limit"));
    }
    Ok((token, blocks.iter().map(|arrival| u64::from_le_bytes(*arrival)).collect()))
}

/// The answer that lists sparse blocks: of each its arrival position and how many objects it holds (u64
/// each), the count of those that are needed (u32), and these, 32 bytes each. What is over
/// [`MAX_IDS`] is left out, from the end.
pub fn encode_sparse(blocks: &[SparseBlock]) -> Bytes {
    let (mut out, mut left) = (Vec::new(), MAX_IDS);
    for SparseBlock { arrival, objects, living } in blocks {
        let Some(rest) = left.checked_sub(living.len().max(1)) else { break };
        left = rest;
        out.extend_from_slice(&arrival.to_le_bytes());
        out.extend_from_slice(&objects.to_le_bytes());
        out.extend_from_slice(&(living.len() as u32).to_le_bytes());
        living.iter().for_each(|id| out.extend_from_slice(id.as_bytes()));
    }
    out.into()
}

/// Reads sparse blocks.
///
/// Untrusted: ascending arrival positions; at most [`MAX_IDS`] objects in all, at least one a block.
///
/// # Errors
/// [`FormatError`] for anything else, or what is cut short.
pub fn decode_sparse(body: &[u8]) -> Result<Vec<SparseBlock>, FormatError> {
    let mut reader = Reader::new("sparse blocks", body);
    let (mut blocks, mut left): (Vec<SparseBlock>, _) = (Vec::new(), MAX_IDS);
    while !reader.remaining().is_empty() {
        let arrival = reader.u64("arrival")?;
        if blocks.last().is_some_and(|last| last.arrival >= arrival) {
            return Err(reader.invalid("arrival", "not behind the one before"));
        }
        let objects = reader.u64("objects")?;
        let count = reader.length("living", left)?;
        if count == 0 {
            return Err(reader.invalid("living", "none"));
        }
        left -= count;
        let id = |_| reader.array("object").map(ObjectId::from_bytes);
        let living = (0..count).map(id).collect::<Result<_, _>>()?;
        blocks.push(SparseBlock { arrival, objects, living });
    }
    Ok(blocks)
}

/// The answer to having blocks give way: how many do (u64), and the deletion that waits, if any.
pub fn encode_superseding(superseding: &Superseding) -> Bytes {
    let mut out = superseding.blocks.to_le_bytes().to_vec();
    out.extend_from_slice(&encode_deletions(superseding.waiting.as_slice()));
    out.into()
}

/// Reads the answer to having blocks give way.
///
/// # Errors
/// As for [`decode_deletions`](super::decode_deletions), and for several.
pub fn decode_superseding(body: &[u8]) -> Result<Superseding, FormatError> {
    let mut reader = Reader::new("compaction", body);
    let blocks = reader.u64("blocks")?;
    let rest = reader.remaining();
    let waiting = if rest.is_empty() { None } else { Some(decode_deletion(rest)?) };
    Ok(Superseding { blocks, waiting })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WaitingDeletion;
    use proptest::prelude::*;

    fn sparse(arrival: u64, count: usize) -> SparseBlock {
        let living = vec![ObjectId::from_bytes([arrival as u8; 32]); count];
        SparseBlock { arrival, objects: 2 * count as u64, living }
    }

    fn superseding() -> Superseding {
        let waiting = WaitingDeletion {
            number: 3,
            snapshots: vec![],
            blocks: 7,
            whole: false,
            asked_ns: 1,
            due_ns: 2,
        };
        Superseding { blocks: 7, waiting: Some(waiting) }
    }

    #[test]
    fn what_is_asked_and_answered_reads_back() {
        let token = AdminToken::new(Zeroizing::new([9; 32]));
        for blocks in [vec![], vec![5, u64::MAX]] {
            let (read, named) = decode_supersede(&encode_supersede(&token, &blocks)).unwrap();
            assert_eq!((read.as_bytes(), named), (&[9; 32], blocks));
        }
        let blocks = [sparse(1, 3), sparse(u64::MAX, 1)];
        assert_eq!(decode_sparse(&encode_sparse(&blocks)).unwrap(), blocks);
        assert_eq!(decode_sparse(b""), Ok(Vec::new()));
        for one in [superseding(), Superseding { blocks: 0, waiting: None }] {
            assert_eq!(decode_superseding(&encode_superseding(&one)), Ok(one));
        }
    }

    #[test]
    fn more_than_the_limit_is_left_out_and_refused() {
        let read = decode_sparse(&encode_sparse(&[sparse(1, MAX_IDS - 1), sparse(2, 2)])).unwrap();
        assert_eq!(read.len(), 1);
        let many: Vec<SparseBlock> = (0..MAX_IDS as u64).map(|number| sparse(number, 1)).collect();
        let body = encode_sparse(&many);
        assert!(body.len() <= MAX_SPARSE_ANSWER_BYTES);
        assert_eq!(decode_sparse(&body).unwrap().len(), MAX_IDS);
        decode_sparse(&encode_sparse(&[sparse(2, 1), sparse(1, 1)])).unwrap_err();
        decode_sparse(&encode_sparse(&[sparse(2, 0)])).unwrap_err();
        let token = AdminToken::new(Zeroizing::new([9; 32]));
        let body = encode_supersede(&token, &vec![1; MAX_IDS + 1]);
        assert!(decode_supersede(&body).is_err() && body.len() > MAX_SUPERSEDE_BODY_BYTES);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_body_or_an_error(bytes: Vec<u8>, at: usize, with: u8) {
            let mutate = |mut body: Vec<u8>| {
                let at = at % body.len();
                body[at] = with;
                body
            };
            let sparse = mutate(encode_sparse(&[sparse(1, 3), sparse(2, 2)]).to_vec());
            let superseding = mutate(encode_superseding(&superseding()).to_vec());
            for body in [bytes, sparse, superseding] {
                let _ = decode_sparse(&body);
                let _ = decode_superseding(&body);
                let _ = decode_supersede(&body).map(|(_, blocks)| blocks.len());
            }
        }
    }
}
