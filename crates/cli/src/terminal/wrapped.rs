//! Sentences on a terminal: broken between words, where the terminal would break them within one.

use std::io::IsTerminal;
use std::os::fd::AsFd;

/// The columns of a terminal; `None` if it is none, or does not tell.
pub(crate) fn columns_of(stream: impl IsTerminal + AsFd) -> Option<usize> {
    let size =
        stream.is_terminal().then(|| rustix::termios::tcgetwinsize(stream).ok()).flatten()?;
    (size.ws_col > 0).then(|| usize::from(size.ws_col).max(20))
}

/// A line narrower than this is hard to read: below a wider first column, lines begin at the left.
const LEAST_COLUMNS: usize = 20;

/// A line in lines of at most so many columns, broken at single spaces, the later ones set in. A longer word is left to the
/// terminal, and so are columns of a table, which more spaces keep apart.
pub(crate) fn wrapped(line: &str, columns: usize, set_in: usize) -> String {
    let set_in = if set_in + LEAST_COLUMNS > columns { 0 } else { set_in };
    let letters = |text: &str| text.chars().count();
    if letters(line) <= columns {
        return line.to_owned();
    }
    let mut out = String::with_capacity(line.len() + 8);
    let mut used = 0;
    let mut gap = "";
    for word in line.split(' ') {
        let is_apart = word.is_empty() || gap.len() != 1 || out.ends_with(' ');
        if !is_apart && used + 1 + letters(word) > columns {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', set_in));
            used = set_in;
        } else {
            out.push_str(gap);
            used += gap.len();
        }
        out.push_str(word);
        used += letters(word);
        gap = " ";
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_broken_between_words_and_nowhere_else() {
        let line = "error: the quick brown fox jumps over the lazy dog";
        for columns in 8..60 {
            let broken = wrapped(line, columns, 0);
            assert_eq!(broken.replace('\n', " "), line, "{columns}");
            assert!(
                broken.lines().all(|line| line.chars().count() <= columns),
                "{columns}: {broken}"
            );
        }
        assert_eq!(wrapped("short", 5, 0), "short");
        assert_eq!(wrapped("a averyverylongword b", 8, 0), "a\naveryverylongword\nb");
        assert_eq!(wrapped("wide   columns   of a table", 12, 0), "wide   columns   of\na table");
        assert_eq!(wrapped("  ä ö ü", 5, 0), "  ä ö\nü");
        let set_in = |columns| wrapped("what   one two three four five six", columns, 7);
        assert_eq!(set_in(27), "what   one two three four\n       five six");
        assert_eq!(set_in(26), "what   one two three four\nfive six", "no room to set it in");
    }
}
