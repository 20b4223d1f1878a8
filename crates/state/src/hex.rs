//! Keys in text files: 32 bytes as 64 hexadecimal digits.

use zeroize::Zeroizing;

/// The digits of a key.
pub(crate) fn encode(key: &[u8; 32]) -> Zeroizing<String> {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or('0');
    // Never grows, so no copy stays behind in memory that was given back.
    let mut out = Zeroizing::new(String::with_capacity(64));
    for byte in key {
        out.push(digit(byte >> 4));
        out.push(digit(byte & 15));
    }
    out
}

/// Reads exactly 64 digits.
pub(crate) fn decode(text: &str) -> Option<Zeroizing<[u8; 32]>> {
    if text.len() != 64 {
        return None;
    }
    let mut key = Zeroizing::new([0; 32]);
    for (byte, pair) in key.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let digit = |at: usize| char::from(pair[at]).to_digit(16);
        *byte = u8::try_from(digit(0)? << 4 | digit(1)?).ok()?;
    }
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
    }
}
