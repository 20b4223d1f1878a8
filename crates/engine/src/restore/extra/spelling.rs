//! Names that a file system may take for one: in other letters of the same word, or an accent written in another way.

use unicode_normalization::UnicodeNormalization;

/// What all of these have in common: one text for every spelling.
pub(super) fn folded(name: &[u8]) -> Vec<u8> {
    let Ok(name) = std::str::from_utf8(name) else { return name.to_ascii_lowercase() };
    let same_case = name.nfd().flat_map(char::to_uppercase).flat_map(char::to_lowercase);
    same_case.nfd().collect::<String>().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::folded;

    #[test]
    fn spellings_of_one_name_are_one_and_other_names_are_not() {
        for (one, other) in [
            ("Readme", "README"),
            ("caf\u{e9}", "CAFE\u{301}"),
            ("stra\u{df}e", "STRASSE"),
            ("\u{3c3}\u{3c2}", "\u{3a3}\u{3a3}"),
            ("\u{212a}", "k"),
        ] {
            assert_eq!(folded(one.as_bytes()), folded(other.as_bytes()), "{one} {other}");
        }
        for (one, other) in [("cafe", "caf\u{e9}"), ("a", "b"), ("\u{4e00}", "\u{4e8c}")] {
            assert_ne!(folded(one.as_bytes()), folded(other.as_bytes()), "{one} {other}");
        }
        assert_eq!(folded(b"A\xff"), folded(b"a\xff"));
        assert_ne!(folded(b"a\xff"), folded(b"a\xfe"));
    }
}
