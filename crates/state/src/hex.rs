//! Keys as text: two hexadecimal digits for each byte.

use zeroize::Zeroizing;

/// The digits of a key, or of a key ring.
pub(crate) fn encode(bytes: &[u8]) -> Zeroizing<String> {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or('0');
    // Never grows, so no copy stays behind in memory that was given back.
    let mut out = Zeroizing::new(String::with_capacity(2 * bytes.len()));
    for byte in bytes {
        out.push(digit(byte >> 4));
        out.push(digit(byte & 15));
    }
    out
}

/// Reads the digits of any number of bytes.
pub(crate) fn decode_bytes(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    let pairs = text.as_bytes().chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return None;
    }
    let mut bytes = Zeroizing::new(Vec::with_capacity(pairs.len()));
    for pair in pairs {
        let digit = |at: usize| char::from(pair[at]).to_digit(16);
        bytes.push(u8::try_from(digit(0)? << 4 | digit(1)?).ok()?);
    }
    Some(bytes)
}

/// Reads exactly 64 digits.
pub(crate) fn decode(text: &str) -> Option<Zeroizing<[u8; 32]>> {
    let bytes = decode_bytes(text)?;
    let mut key = Zeroizing::new([0; 32]);
    (bytes.len() == key.len()).then(|| key.copy_from_slice(&bytes))?;
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_reads_back_and_nothing_else_is_one() {
        let key: [u8; 32] = std::array::from_fn(|at| at as u8 * 8);
        assert_eq!(*decode(&encode(&key)).unwrap(), key);
        for text in ["", "00", &"g".repeat(64), &"+1".repeat(32), &"0".repeat(65)] {
            assert!(decode(text).is_none(), "{text}");
        }
        assert_eq!(**decode_bytes(&encode(&[1, 0xab])).unwrap(), [1, 0xab]);
        assert!(decode_bytes("012").is_none() && decode_bytes("0x").is_none());
    }
}
