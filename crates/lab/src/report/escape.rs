//! What keeps text text, whatever it is put into.

/// Text for HTML, between tags and inside quoted attributes. Control characters, which have no
/// business there, become blanks.
pub(super) fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            letter if letter.is_control() => out.push(' '),
            letter => out.push(letter),
        }
    }
    out
}

/// A field of CSV: in quotes where it must be, and no formula where a spreadsheet would see one.
pub(super) fn csv(text: &str) -> String {
    let text = line(text);
    let formula = text.starts_with(['=', '+', '-', '@']);
    let text = if formula { format!("'{text}") } else { text };
    if text.contains([',', '"', ';']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

/// One line of plain text, in which nothing moves the cursor.
pub(super) fn line(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_that_a_browser_or_spreadsheet_would_run() {
        assert_eq!(
            html("<a href=\"x\" on='y'>&\u{7}"),
            "&lt;a href=&quot;x&quot; on=&#39;y&#39;&gt;&amp; "
        );
        assert_eq!(csv("=1+1"), "'=1+1");
        assert_eq!(csv("a,\"b\"\nc"), "\"a,\"\"b\"\" c\"");
        assert_eq!(line("a\x1b[31m\r\nb"), "a [31m  b");
    }
}
