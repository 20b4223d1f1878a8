//! Questions about many ids: the ids one after another, and one bit for each in the answer.

use bytes::Bytes;
use holdall_format::wire::Reader;
use holdall_format::{FormatError, ObjectId};

use crate::MAX_IDS;

/// Ids one after another.
pub fn encode_ids(ids: &[ObjectId]) -> Bytes {
    let mut out = Vec::with_capacity(ids.len().saturating_mul(ObjectId::LEN));
    ids.iter().for_each(|id| out.extend_from_slice(id.as_bytes()));
    out.into()
}

/// Reads ids.
///
/// Untrusted: at most [`MAX_IDS`].
///
/// # Errors
/// [`FormatError`] for more, or a length that is no multiple of an id's.
pub fn decode_ids(body: &[u8]) -> Result<Vec<ObjectId>, FormatError> {
    let reader = Reader::new("list of ids", body);
    let (ids, rest) = body.as_chunks::<{ ObjectId::LEN }>();
    if !rest.is_empty() {
        return Err(reader.invalid("length", "not a multiple of 32"));
    }
    if ids.len() > MAX_IDS {
        return Err(reader.invalid("length", "more ids than their limit"));
    }
    Ok(ids.iter().map(|id| ObjectId::from_bytes(*id)).collect())
}

/// One bit for each answer, the first in the lowest bit of the first byte; unused bits are zero.
pub fn encode_bitmap(answers: &[bool]) -> Bytes {
    let byte = |eight: &[bool]| {
        let bits = eight.iter().enumerate();
        bits.fold(0u8, |byte, (place, answer)| byte | (u8::from(*answer) << place))
    };
    answers.chunks(8).map(byte).collect::<Vec<_>>().into()
}

/// Reads the answers to `count` questions.
///
/// # Errors
/// [`FormatError`] if there are more or fewer, or an unused bit is set.
pub fn decode_bitmap(body: &[u8], count: usize) -> Result<Vec<bool>, FormatError> {
    let reader = Reader::new("bitmap", body);
    let bits = || body.iter().flat_map(|byte| (0..8).map(move |place| byte & (1 << place) != 0));
    if body.len() != count.div_ceil(8) || bits().skip(count).any(|bit| bit) {
        return Err(reader.invalid("length", "not that of the question"));
    }
    Ok(bits().take(count).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn too_many_ids_are_refused() {
        assert!(decode_ids(&vec![0; 32 * MAX_IDS]).is_ok());
        assert!(decode_ids(&vec![0; 32 * (MAX_IDS + 1)]).is_err());
    }

    proptest! {
        #[test]
        fn ids_read_back(ids: Vec<[u8; 32]>) {
            let ids: Vec<_> = ids.into_iter().map(ObjectId::from_bytes).collect();
            prop_assert_eq!(decode_ids(&encode_ids(&ids)), Ok(ids));
        }

        #[test]
        fn a_bitmap_reads_back(answers: Vec<bool>) {
            prop_assert_eq!(decode_bitmap(&encode_bitmap(&answers), answers.len()), Ok(answers));
        }

        #[test]
        fn any_bytes_are_ids_and_a_bitmap_or_an_error(bytes: Vec<u8>, count in 0usize..1000) {
            let _ = decode_ids(&bytes);
            if let Ok(answers) = decode_bitmap(&bytes, count) {
                prop_assert_eq!(&encode_bitmap(&answers)[..], &bytes[..]);
            }
        }
    }
}
