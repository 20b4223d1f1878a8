//! How names and sentences of others are shown: so that they cannot move a cursor, begin a line, turn letters
//! around, or look like another name.
//!
//! Whatever a person reads on a terminal, in a log or in a report goes through here. JSON does not: there a
//! string is what it is.

use std::fmt::{self, Display, Write};

/// Whether a character has no look of its own, or changes how others look: controls, separators of lines, and
/// what Unicode calls default ignorable (marks of direction, joiners, fillers, variation selectors, tags),
/// with the marks of annotations and the controls that lay out hieroglyphs.
///
/// Source: `Default_Ignorable_Code_Point` in `DerivedCoreProperties.txt`, and the categories Cc, Zl, Zp and
/// those of Cf that are not signs themselves, Unicode 16.
#[must_use]
pub fn is_unseen(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{2800}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{13430}'..='\u{1343f}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// A path or name, with everything escaped that is unseen or no UTF-8, and the backslash: two names that differ
/// are shown differently.
///
/// ```
/// use holdall_format::Shown;
///
/// assert_eq!(Shown(b"a\nb\\\xff").to_string(), r"a\nb\\\xff");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a>(pub &'a [u8]);

impl Display for Shown<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for piece in self.0.utf8_chunks() {
            escaped(piece.valid(), |letter| letter == '\\' || is_unseen(letter), out)?;
            piece.invalid().iter().try_for_each(|byte| write!(out, "\\x{byte:02x}"))?;
        }
        Ok(())
    }
}

/// One line of text in which names may be that nobody escaped: what is unseen is escaped, and nothing else, for
/// names that are [`Shown`] are escaped already.
///
/// ```
/// use holdall_format::OneLine;
///
/// assert_eq!(OneLine("gpj.\u{202e}a\n").to_string(), r"gpj.\u{202e}a\n");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct OneLine<T>(pub T);

impl<T: Display> Display for OneLine<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(out), "{}", self.0)
    }
}

/// Escapes what is written.
struct Escaping<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        escaped(text, is_unseen, self.0)
    }
}

/// Writes text piece by piece, with some letters escaped.
fn escaped(
    mut text: &str,
    is_escaped: impl Fn(char) -> bool + Copy,
    out: &mut impl Write,
) -> fmt::Result {
    while let Some(at) = text.find(is_escaped) {
        let (before, rest) = text.split_at(at);
        let mut letters = rest.chars();
        let letter = letters.next();
        out.write_str(before)?;
        letter.map_or(Ok(()), |letter| write!(out, "{}", letter.escape_default()))?;
        text = letters.as_str();
    }
    out.write_str(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unseen_is_escaped_and_what_is_seen_is_not() {
        let unseen = [
            '\0',
            '\n',
            '\u{1b}',
            '\u{7f}',
            '\u{9b}',
            '\u{ad}',
            '\u{61c}',
            '\u{200b}',
            '\u{200d}',
            '\u{200e}',
            '\u{200f}',
            '\u{2028}',
            '\u{2029}',
            '\u{202a}',
            '\u{202b}',
            '\u{202c}',
            '\u{202d}',
            '\u{202e}',
            '\u{2060}',
            '\u{2066}',
            '\u{2067}',
            '\u{2068}',
            '\u{2069}',
            '\u{206f}',
            '\u{3164}',
            '\u{fe0f}',
            '\u{feff}',
            '\u{fff9}',
            '\u{fffb}',
            '\u{1d173}',
            '\u{e0001}',
            '\u{e0041}',
            '\u{e0100}',
        ];
        for letter in unseen {
            let (name, code) = (format!("a{letter}b"), letter.escape_default());
            assert_eq!(Shown(name.as_bytes()).to_string(), format!("a{code}b"));
            assert_eq!(OneLine(&name).to_string(), format!("a{code}b"));
        }
        let seen = "Anna's Gerät, 写真, עברית, العربية, हिन्दी, \u{1f600}, \u{fffd}, a\u{301}";
        assert_eq!(Shown(seen.as_bytes()).to_string(), seen);
        assert_eq!(OneLine(seen).to_string(), seen);
    }

    #[test]
    fn a_name_can_not_fake_a_line() {
        assert_eq!(
            Shown(b"a\nb\x1b[31m\xff\\n\xc3\xa4").to_string(),
            "a\\nb\\u{1b}[31m\\xff\\\\n\u{e4}"
        );
    }

    #[test]
    fn a_message_can_not_fake_a_line_and_a_name_in_it_is_escaped_once() {
        let damaged = "the content of /a\x1b[2J\nb \u{9b}1m is damaged";
        assert_eq!(
            OneLine(damaged).to_string(),
            "the content of /a\\u{1b}[2J\\nb \\u{9b}1m is damaged"
        );
        let shown = format!("{} is not there", Shown(b"a\nb\\"));
        assert_eq!(OneLine(&shown).to_string(), shown);
    }
}
