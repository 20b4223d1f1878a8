//! Names of files that came from elsewhere, as every system takes them.

use std::fmt::Write;

use crate::is_unseen;

/// A name that every system takes for one name: what is unseen, no UTF-8, or a backslash, is written by number. Two names
/// that differ stay different.
pub fn portable_name(name: &[u8]) -> String {
    let mut out = String::with_capacity(name.len());
    for piece in name.utf8_chunks() {
        let mut rest = piece.valid().chars();
        while let Some(letter) = rest.next() {
            let looks_escaped = letter == '%' && begins_with_digits(rest.as_str());
            if is_unseen(letter) || letter == '\\' || looks_escaped {
                let mut bytes = [0; 4];
                letter.encode_utf8(&mut bytes).bytes().for_each(|byte| push_number(&mut out, byte));
            } else {
                out.push(letter);
            }
        }
        piece.invalid().iter().for_each(|byte| push_number(&mut out, *byte));
    }
    out
}

fn push_number(out: &mut String, byte: u8) {
    // Writing to a string does not fail.
    let _ = write!(out, "%{byte:02X}");
}

fn begins_with_digits(text: &str) -> bool {
    let mut digits = text.chars().take(2);
    digits.by_ref().filter(char::is_ascii_hexdigit).count() == 2
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_harmless_and_stay_different() {
        let names: [&[u8]; 12] = [
            b"plain.txt",
            b"<script>alert(1)</script>",
            b"a\nb\r\nSet-Cookie: x",
            "gpj.\u{202e}a".as_bytes(),
            b"\xff\xfe",
            b"..\\..\\evil",
            b"100%41",
            b"100%",
            b"100A",
            b"%FF",
            b"\xff",
            "\u{e9}\u{1f600}\"'".as_bytes(),
        ];
        let all: BTreeSet<_> = names.iter().map(|name| portable_name(name)).collect();
        assert_eq!(all.len(), names.len(), "{all:?}");
        for name in &all {
            assert!(!name.chars().any(|one| is_unseen(one) || one == '\\'), "{name}");
        }
        assert_eq!(portable_name(b"100%"), "100%");
    }
}
