//! What keeps text text, whatever it is put into.

use holdall_format::OneLine;

/// Text for HTML, between tags and inside quoted attributes, as one line in which everything is seen.
pub(super) fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in line(text).chars() {
        match letter {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
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

/// One line of plain text, in which nothing moves the cursor and everything is seen.
pub(super) fn line(text: &str) -> String {
    OneLine(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_that_a_browser_or_spreadsheet_would_run() {
        assert_eq!(
            html("<a href=\"x\" on='y'>&\u{7}"),
            "&lt;a href=&quot;x&quot; on=&#39;y&#39;&gt;&amp;\\u{7}"
        );
        assert_eq!(csv("=1+1"), "'=1+1");
        assert_eq!(csv("a,\"b\"\nc"), "\"a,\"\"b\"\"\\nc\"");
        assert_eq!(line("a\x1b[31m\r\nb"), "a\\u{1b}[31m\\r\\nb");
        let turned = "gpj.\u{202e}a\u{2028}";
        for shown in [html(turned), csv(turned), line(turned)] {
            assert_eq!(shown, "gpj.\\u{202e}a\\u{2028}");
        }
    }
}
