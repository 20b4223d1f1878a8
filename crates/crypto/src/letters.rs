//! Short texts for people: base 32 without letters that are mistaken for digits.

/// The alphabet of BIP 173: no 1, b, i or o.
const ALPHABET: &[u8; 32] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";
/// Letters between two separators.
pub(crate) const GROUP_LETTERS: usize = 4;

/// The first `5 * groups * 4` bits of `bytes`, most significant first, as groups of four letters.
pub(crate) fn grouped(bytes: &[u8], groups: usize, separator: char) -> String {
    let bit = |at: usize| bytes.get(at / 8).is_some_and(|byte| byte & (0x80 >> (at % 8)) != 0);
    let letter = |at: usize| {
        let value = (0..5).fold(0, |value, offset| value << 1 | usize::from(bit(5 * at + offset)));
        char::from(ALPHABET[value])
    };
    let mut text = String::new();
    for at in 0..groups * GROUP_LETTERS {
        if at > 0 && at % GROUP_LETTERS == 0 {
            text.push(separator);
        }
        text.push(letter(at));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_take_five_bits_each() {
        assert_eq!(grouped(&[0b0000_0000, 0b0100_0111, 0b1111_1111, 0, 0], 2, '-'), "qprl-7qqq");
    }
}
