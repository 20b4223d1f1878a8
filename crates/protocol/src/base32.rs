//! Base32 of RFC 4648 in lower case without padding: survives being read aloud and pasted anywhere. What is
//! written so are secrets, and leaves memory when dropped.

use zeroize::Zeroizing;

const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

pub(crate) fn encode(bytes: &[u8]) -> Zeroizing<String> {
    encode_behind("", bytes)
}

/// The same with a prefix.
pub(crate) fn encode_behind(prefix: &str, bytes: &[u8]) -> Zeroizing<String> {
    let letters = prefix.len() + bytes.len().div_ceil(5) * 8;
    // It never grows, which would leave a copy behind.
    let mut out = Zeroizing::new(String::with_capacity(letters));
    out.push_str(prefix);
    for group in bytes.chunks(5) {
        let mut padded = [0; 8];
        padded.iter_mut().skip(3).zip(group).for_each(|(to, from)| *to = *from);
        let bits = u64::from_be_bytes(padded);
        for place in 0..(group.len() * 8).div_ceil(5) {
            let digit = (bits >> (35 - 5 * place)) & 31;
            out.push(char::from(ALPHABET[digit as usize]));
        }
    }
    out
}

/// Reads what [`encode`] wrote, and nothing else: every byte string has one text.
pub(crate) fn decode(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    let mut out = Zeroizing::new(Vec::with_capacity(text.len() * 5 / 8));
    for group in text.as_bytes().chunks(8) {
        let mut bits = 0u64;
        for place in 0..8 {
            let digit = match group.get(place) {
                Some(letter) => ALPHABET.iter().position(|known| known == letter)?,
                None => 0,
            };
            bits = (bits << 5) | digit as u64;
        }
        let whole = group.len() * 5 / 8;
        let [_, _, _, bytes @ ..] = bits.to_be_bytes();
        let (kept, rest) = bytes.split_at_checked(whole)?;
        if rest.iter().any(|byte| *byte != 0) || matches!(group.len(), 1 | 3 | 6) {
            return None;
        }
        out.extend_from_slice(kept);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_vectors_of_the_rfc_hold() {
        for (bytes, text) in [("", ""), ("f", "my"), ("fo", "mzxq"), ("fooba", "mzxw6ytb")] {
            assert_eq!(*encode(bytes.as_bytes()), text);
            assert_eq!(*decode(text).unwrap(), bytes.as_bytes());
        }
    }

    proptest! {
        #[test]
        fn bytes_read_back(bytes: Vec<u8>) {
            prop_assert_eq!(&*decode(&encode(&bytes)).unwrap(), &bytes);
        }

        #[test]
        fn any_text_is_refused_or_is_the_text_of_its_bytes(text in "[a-z2-7]{0,40}") {
            if let Some(bytes) = decode(&text) {
                prop_assert_eq!(&*encode(&bytes), &text);
            }
        }
    }
}
