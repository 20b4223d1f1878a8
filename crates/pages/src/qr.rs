//! A text as a picture that a telephone reads.

use std::fmt::Write;

use maud::{Markup, html};
use qrcodegen::{QrCode, QrCodeEcc};

/// Light squares around the code, which its readers need.
const BORDER: i32 = 4;

/// Draws a text as a QR code with `words` for those who do not see it; nothing for one that is too long.
pub fn qr_code(text: &str, words: &str) -> Option<Markup> {
    let code = QrCode::encode_text(text, QrCodeEcc::Medium).ok()?;
    let side = code.size() + 2 * BORDER;
    let mut path = String::new();
    for y in 0..code.size() {
        for x in (0..code.size()).filter(|x| code.get_module(*x, y)) {
            let _ = write!(path, "M{} {}h1v1h-1z", x + BORDER, y + BORDER);
        }
    }
    Some(html! {
        svg class="qr" role="img" aria-label=(words) viewBox=(format!("0 0 {side} {side}")) {
            rect class="paper" width=(side) height=(side) {}
            path class="ink" d=(path) {}
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_has_its_words_and_a_dark_square_for_each_module() {
        let code = qr_code("holdall1-abc", "an <invite>").unwrap().into_string();
        assert!(code.contains("aria-label=\"an &lt;invite&gt;\""), "{code}");
        assert!(code.contains("viewBox=\"0 0 29 29\"") && code.contains("M4 4h1v1h-1z"), "{code}");
        assert!(qr_code(&"x".repeat(5000), "").is_none());
    }
}
