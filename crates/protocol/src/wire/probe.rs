//! Questions whether blocks are still there, and the proofs that they are.

use bytes::Bytes;
use holdall_format::wire::Reader;
use holdall_format::{BlockName, FormatError, ObjectId, SLICE_PROOF_MAX_BYTES};

use crate::{BlockProbe, MAX_PROBES};

const PROBE_BYTES: usize = ObjectId::LEN + BlockName::LEN + 4;
/// Most bytes of a body of probes.
pub const MAX_PROBES_BODY_BYTES: usize = MAX_PROBES * PROBE_BYTES;
/// Most bytes of the proofs for them.
pub const MAX_PROOFS_ANSWER_BYTES: usize = MAX_PROBES * (2 + SLICE_PROOF_MAX_BYTES);

/// Probes one after another: an object's id, the block's name, the slice's number (u32).
pub fn encode_probes(probes: &[BlockProbe]) -> Bytes {
    let mut out = Vec::with_capacity(probes.len().saturating_mul(PROBE_BYTES));
    for BlockProbe { object, block, slice } in probes {
        out.extend_from_slice(object.as_bytes());
        out.extend_from_slice(block.as_bytes());
        out.extend_from_slice(&slice.to_le_bytes());
    }
    out.into()
}

/// Reads probes.
///
/// Untrusted: at most [`MAX_PROBES`].
///
/// # Errors
/// [`FormatError`] for more, or for one that is cut short.
pub fn decode_probes(body: &[u8]) -> Result<Vec<BlockProbe>, FormatError> {
    let mut reader = Reader::new("list of probes", body);
    if body.len() > MAX_PROBES_BODY_BYTES {
        return Err(reader.invalid("length", "more probes than their limit"));
    }
    let mut probes = Vec::with_capacity(body.len() / PROBE_BYTES);
    while !reader.remaining().is_empty() {
        probes.push(BlockProbe {
            object: ObjectId::from_bytes(reader.array("object")?),
            block: BlockName::from_bytes(reader.array("block")?),
            slice: reader.u32("slice")?,
        });
    }
    Ok(probes)
}

/// For each probe the length of its proof (u16), 0 for none, and the proof.
pub fn encode_proofs(proofs: &[Option<Bytes>]) -> Bytes {
    let mut out = Vec::new();
    for proof in proofs {
        let proof = proof.as_deref().unwrap_or_default();
        // What is longer than any proof is none.
        let length = u16::try_from(proof.len()).unwrap_or(0);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(proof.get(..usize::from(length)).unwrap_or_default());
    }
    out.into()
}

/// Reads the proofs for `count` probes.
///
/// # Errors
/// [`FormatError`] if there are more or fewer, or one is longer than a proof can be.
pub fn decode_proofs(body: &Bytes, count: usize) -> Result<Vec<Option<Bytes>>, FormatError> {
    let mut reader = Reader::new("list of proofs", body);
    let mut proofs = Vec::with_capacity(count.min(MAX_PROBES));
    for _ in 0..count {
        let length = usize::from(reader.u16("length")?);
        if length > SLICE_PROOF_MAX_BYTES {
            return Err(reader.invalid("length", "longer than a proof can be"));
        }
        let proof = reader.bytes("proof", length)?;
        proofs.push((length > 0).then(|| body.slice_ref(proof)));
    }
    match reader.remaining() {
        [] => Ok(proofs),
        _ => Err(reader.invalid("end", "more proofs than probes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn probe(seed: u8) -> BlockProbe {
        let (object, block) =
            (ObjectId::from_bytes([seed; 32]), BlockName::from_bytes([!seed; 32]));
        BlockProbe { object, block, slice: u32::from(seed) * 0x0101_0101 }
    }

    #[test]
    fn probes_read_back_and_too_many_or_half_of_one_are_refused() {
        let probes: Vec<_> = (0..).map(probe).take(MAX_PROBES).collect();
        let body = encode_probes(&probes);
        assert_eq!(decode_probes(&body), Ok(probes));
        assert!(decode_probes(&[&body[..], &encode_probes(&[probe(1)])].concat()).is_err());
        assert!(decode_probes(&body[..body.len() - 1]).is_err());
    }

    proptest! {
        #[test]
        fn proofs_read_back_for_as_many_probes_only(
            proofs in proptest::collection::vec(proptest::option::of("[a-z]{1,40}"), 0..9),
        ) {
            let proofs: Vec<_> = proofs.into_iter().map(|proof| proof.map(Bytes::from)).collect();
            let (body, count) = (encode_proofs(&proofs), proofs.len());
            prop_assert!(decode_proofs(&body, count + 1).is_err());
            prop_assert!(count == 0 || decode_proofs(&body, count - 1).is_err());
            prop_assert_eq!(decode_proofs(&body, count), Ok(proofs));
        }

        #[test]
        fn any_bytes_are_probes_and_proofs_or_an_error(bytes: Vec<u8>, count in 0usize..40) {
            if let Ok(probes) = decode_probes(&bytes) {
                prop_assert_eq!(&encode_probes(&probes)[..], &bytes[..]);
            }
            let body = Bytes::from(bytes);
            if let Ok(proofs) = decode_proofs(&body, count) {
                prop_assert_eq!(encode_proofs(&proofs), body);
            }
        }
    }
}
