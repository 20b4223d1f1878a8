//! A recovery kit as a page for a browser, which prints it with a QR code.
//!
//! The code holds the lines of the kit from "Version" on, so that a telephone can read what else would be typed. The page
//! loads nothing, so no other computer sees it.

use std::fmt::Write;

use qrcodegen::{QrCode, QrCodeEcc};
use zeroize::Zeroizing;

/// What a page begins with.
const DOCTYPE: &str = "<!DOCTYPE html>";
/// What stands before the text of the kit.
const HEAD: &str = "
<html lang=\"en\">
<meta charset=\"utf-8\">
<title>Holdall recovery kit</title>
<style>
body { margin: 1.5cm; color: #000; background: #fff; font-family: sans-serif }
pre { font-size: 10pt; line-height: 1.25 }
svg { width: 8cm; height: 8cm }
figure { margin: 0; break-inside: avoid }
</style>
<pre>
";
/// Characters that mean something else in a page, and how they are written there.
const ESCAPED: [(&str, &str); 3] = [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")];
/// Light modules around a code.
const QUIET_ZONE: i32 = 4;

/// The text of a kit that was read: what stands in a page as it was before.
pub(super) fn text_in(read: &str) -> Zeroizing<String> {
    let text = || read.strip_prefix(DOCTYPE)?.split_once("<pre>")?.1.split("</pre>").next();
    let Some(text) = text() else { return read.to_owned().into() };
    let unescape = |text: Zeroizing<String>, (plain, escaped): &(&str, &str)| {
        Zeroizing::new(text.replace(escaped, plain))
    };
    ESCAPED.iter().rev().fold(Zeroizing::new(text.to_owned()), unescape)
}

/// The page that shows a kit's text, and has what is `in_code` as a code; `None` if that is too long for one.
pub(super) fn page(text: &str, in_code: &str) -> Option<Zeroizing<String>> {
    let escape = |text: Zeroizing<String>, (plain, escaped): &(&str, &str)| {
        Zeroizing::new(text.replace(plain, escaped))
    };
    let text = ESCAPED.iter().fold(Zeroizing::new(text.to_owned()), escape);
    let code = code(in_code)?;
    let mut page = Zeroizing::new(String::with_capacity(text.len() + code.len() + 1024));
    let caption = "The code holds the lines from Version to Check. If you scan it, save what it says as the file.";
    let figure = ["</pre>\n<figure>\n", &code, "\n<p>", caption, "</p>\n</figure>\n</html>\n"];
    for part in [&[DOCTYPE, HEAD, &text][..], &figure].concat() {
        page.push_str(part);
    }
    Some(page)
}

/// A QR code as a picture.
fn code(text: &str) -> Option<Zeroizing<String>> {
    let code = QrCode::encode_text(text, QrCodeEcc::Medium).ok()?;
    let width = code.size() + 2 * QUIET_ZONE;
    let mut picture = Zeroizing::new(String::with_capacity(64 << 10));
    // Writing to a string does not fail.
    let _ = write!(
        picture,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {width}\" \
         shape-rendering=\"crispEdges\" role=\"img\" aria-label=\"QR code\"><path d=\""
    );
    let modules = (0..code.size()).flat_map(|y| (0..code.size()).map(move |x| (x, y)));
    for (x, y) in modules.filter(|&(x, y)| code.get_module(x, y)) {
        let _ = write!(picture, "M{} {}h1v1h-1z", x + QUIET_ZONE, y + QUIET_ZONE);
    }
    picture.push_str("\"/></svg>");
    Some(picture)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_shows_the_text_as_it_is_and_its_code_is_that_of_the_short_text() {
        let (text, short) = ("Name: a<b>&amp;\nEnd", "Version:2");
        let page = page(text, short).unwrap();
        assert!(page.contains("\n<pre>\nName: a&lt;b&gt;&amp;amp;\nEnd</pre>"), "{}", *page);
        assert_eq!(*text_in(&page), format!("\n{text}"));
        assert_eq!(*text_in("a &lt; b"), "a &lt; b");
        let code = QrCode::encode_text(short, QrCodeEcc::Medium).unwrap();
        let is_dark = |x: i32, y: i32| page.contains(&format!("M{} {}h1v1h-1z", x + 4, y + 4));
        for (x, y) in (0..code.size()).flat_map(|y| (0..code.size()).map(move |x| (x, y))) {
            assert_eq!(is_dark(x, y), code.get_module(x, y), "{x} {y}");
        }
    }
}
