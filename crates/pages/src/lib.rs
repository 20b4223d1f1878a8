//! What every page has: its frame, the one style sheet, charts, and how names of others are shown.
//!
//! One look for all that holdall shows in a browser. A page is HTML without a script, and without a style of its own, so
//! that a policy can forbid both: the style sheet is a file ([`STYLE`]). Everything works at a width of 360 pixels,
//! light and dark, on paper, and without colours.
//!
//! This crate is pure: no input or output, no clock, no keys. It does not know what a page tells.
//!
//! ```
//! use holdall_pages::Page;
//! use maud::html;
//!
//! let content = html! { p { "All " (holdall_pages::name("<b>attic")) " is well." } };
//! let page = Page { title: "Overview", server: "nas", account: None, content }.html();
//! assert!(page.contains("<bdi>&lt;b&gt;attic</bdi>"));
//! ```

mod chart;
mod form;
mod frame;
mod light;
mod qr;

pub use chart::{Chart, Line, Moment, Point, TwoLines, columns, shares, sparkline, two_lines};
pub use form::{field, form, number, password};
pub use frame::{Account, Page};
use holdall_format::Shown;
pub use light::Light;
use maud::{Markup, html};
pub use qr::qr_code;

/// The style sheet of every page, to be served at [`STYLE_PATH`].
pub const STYLE: &str = include_str!("style.css");
/// Where pages look for it.
pub const STYLE_PATH: &str = "/style.css";
/// The picture in a browser's tab, an SVG, to be served at [`ICON_PATH`].
pub const ICON: &str = include_str!("icon.svg");
/// Where pages look for it.
pub const ICON_PATH: &str = "/icon.svg";

/// What every answer to a browser says, names in lower case, beside its policy and what it tells of where a link comes
/// from: it is of the type that it says, nobody keeps it, and it shares nothing with pages of other sites.
pub const HEADERS: [(&str, &str); 4] = [
    ("x-content-type-options", "nosniff"),
    ("cache-control", "no-store"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
];

/// A name that somebody else chose: escaped, with what is unseen made visible, and apart from the direction in which the
/// text around it is written.
///
/// Untrusted: `name` may be anything.
pub fn name(name: &str) -> Markup {
    html! { bdi { (Shown(name.as_bytes()).to_string()) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_can_neither_be_markup_nor_turn_the_text_around() {
        for (hostile, shown) in [
            ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
            ("\"><img src=x onerror=alert(1)>", "&lt;img src=x onerror=alert(1)&gt;"),
            ("a&amp;b", "a&amp;amp;b"),
        ] {
            let markup = name(hostile).into_string();
            assert!(markup.contains(shown), "{markup}");
            let inner = markup.trim_start_matches("<bdi>").trim_end_matches("</bdi>");
            assert!(!inner.contains(['<', '>', '"']), "{markup}");
        }
        let turned = name("a\u{202e}b\nc\0").into_string();
        assert!(!turned.contains(['\u{202e}', '\n', '\0']), "{turned}");
    }

    #[test]
    fn the_style_sheet_fetches_nothing_and_has_both_colours_and_paper() {
        for missing in ["url(", "@import", "expression", "javascript:"] {
            assert!(!STYLE.contains(missing), "{missing}");
        }
        for part in ["prefers-color-scheme: dark", "@media print", "prefers-reduced-motion"] {
            assert!(STYLE.contains(part), "{part}");
        }
        assert!(!ICON.contains("style") && !ICON.contains("script"));
    }
}
