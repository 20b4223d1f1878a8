//! How two texts differ in what is not visible: ends of lines, blanks, and characters without a shape.

use holdall_format::is_unseen;
use maud::{Markup, html};

const BYTE_ORDER_MARK: char = '\u{feff}';

/// What is not seen of a text, and how often it is there.
fn counts(text: &str) -> [(&'static str, usize); 6] {
    let crlf = text.matches("\r\n").count();
    let ends_in_blank = |line: &&str| line.trim_end_matches('\r').ends_with([' ', '\t']);
    let is_other =
        |one: &char| is_unseen(*one) && !matches!(*one, '\n' | '\t' | '\r' | BYTE_ORDER_MARK);
    [
        ("lines that end as on Windows (CRLF)", crlf),
        ("carriage returns within lines", text.matches('\r').count() - crlf),
        ("lines with blanks at their end", text.split('\n').filter(ends_in_blank).count()),
        ("byte order marks", text.matches(BYTE_ORDER_MARK).count()),
        ("newlines at the end", usize::from(text.ends_with('\n'))),
        ("other characters that are not seen", text.chars().filter(is_other).count()),
    ]
}

/// What of it differs between two texts; nothing if all of it is the same.
pub(super) fn page(old: &str, new: &str) -> Markup {
    let kinds = counts(old).into_iter().zip(counts(new));
    let changed = kinds.filter(|((_, before), (_, now))| before != now);
    let said: Vec<_> = changed
        .map(|((what, before), (_, now))| format!("{what}: {before} before, {now} now"))
        .collect();
    html! {
        @if !said.is_empty() { p class="notice look" { "What is not seen differs: " (said.join("; ")) "." } }
    }
}

/// A changed line on which blanks at its end, tabs, other blanks than a space, and marks on letters are seen.
pub(super) fn shown(line: &str) -> String {
    let seen = line.trim_end_matches(' ');
    let mut out = String::with_capacity(line.len());
    for letter in seen.chars() {
        match letter {
            '\t' => out.push_str("\u{2192}\t"),
            ' ' => out.push(' '),
            '\u{300}'..='\u{36f}' => out.extend(letter.escape_unicode()),
            _ if letter.is_whitespace() => out.extend(letter.escape_unicode()),
            _ => out.push(letter),
        }
    }
    out.extend(std::iter::repeat_n('\u{b7}', line.len() - seen.len()));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_of_a_changed_line_are_seen() {
        assert_eq!(shown("a  "), "a\u{b7}\u{b7}");
        assert_eq!(shown("a\tb"), "a\u{2192}\tb");
        assert_eq!(shown("a\u{a0}e\u{301}"), "a\\u{a0}e\\u{301}");
    }
}
