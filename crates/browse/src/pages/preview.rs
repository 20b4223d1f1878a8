//! What a file looks like: the front of a text, or a picture in a frame in which nothing can act.

use axum::extract::State;
use axum::http::Uri;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use holdall_engine::{Entry, Snapshot};
use maud::{Markup, html};

use super::{On, Place, address, entry_at};
use crate::problem::Problem;
use crate::shared::Shared;

/// A picture alone may do nothing. What a browser puts around it has styles of its own.
const PICTURE: &str =
    "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'self'";
/// How much of a text is shown.
const TEXT_BYTES: u64 = 64 << 10;
/// The front of a file that says whether it is a picture.
const FRONT_BYTES: u64 = 16;
/// A larger picture is only for downloading.
const PICTURE_MAX_BYTES: u64 = 64 << 20;

/// The preview of a file, if there is one.
pub(crate) fn of(
    shared: &Shared,
    snapshot: &Snapshot,
    path: &[u8],
    entry: &Entry,
) -> Result<Markup, Problem> {
    let front = front(shared, path, entry, TEXT_BYTES)?;
    if kind_of(&front).is_some() && entry.size <= PICTURE_MAX_BYTES {
        let source = address("view", snapshot, path);
        return Ok(
            html! { iframe class="picture" sandbox="" title="The picture" src=(source) { } },
        );
    }
    let Some(text) = text_of(&front, entry.size) else { return Ok(html! {}) };
    Ok(html! {
        pre class="text" { (shown_text(text)) }
        @if entry.size > TEXT_BYTES { p class="faint" { "That is its beginning." } }
    })
}

/// A picture alone, for its frame.
pub(crate) async fn picture(state: On, uri: Uri) -> Result<Response, Problem> {
    let State(shared) = &state;
    let place = Place::of(&uri)?;
    let kind = shared
        .ask(move |shared, _| {
            let listing = shared.listing()?;
            let entry = entry_at(shared, listing.snapshot(&place.id)?, &place.path)?;
            Ok(kind_of(&front(shared, &place.path, &entry, FRONT_BYTES)?))
        })
        .await?;
    let kind = kind.ok_or_else(|| Problem::not_found("That is no picture."))?;
    let sent = super::download::plain(state, &uri).await?;
    Ok(([(CONTENT_TYPE, kind), (CONTENT_SECURITY_POLICY, PICTURE)], sent).into_response())
}

/// The first bytes of a file.
pub(crate) fn front(
    shared: &Shared,
    path: &[u8],
    entry: &Entry,
    most: u64,
) -> Result<Vec<u8>, Problem> {
    let viewer = shared.viewer()?;
    let file = viewer.file(path, entry.clone())?;
    let mut front = Vec::new();
    while (front.len() as u64) < most {
        let piece = viewer.read(&file, front.len() as u64, most - front.len() as u64)?;
        if piece.is_empty() {
            break;
        }
        front.extend_from_slice(&piece);
    }
    Ok(front)
}

/// The type of a picture, by how it begins: names of files may lie. Those that can hold scripts are none.
fn kind_of(front: &[u8]) -> Option<&'static str> {
    match front {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// The front of a file as text, if it is one; a letter that is cut at its end is left out.
pub(crate) fn text_of(front: &[u8], size: u64) -> Option<&str> {
    let is_cut = (front.len() as u64) < size;
    let text = match std::str::from_utf8(front) {
        Ok(text) => text,
        Err(error) if is_cut && error.error_len().is_none() => {
            std::str::from_utf8(&front[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    (!text.contains('\0') && !text.is_empty()).then_some(text)
}

/// Text with what is unseen made visible, line by line.
pub(crate) fn shown_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' | '\t' => out.push(letter),
            '\r' => {}
            _ if holdall_format::is_unseen(letter) => out.extend(letter.escape_default()),
            _ => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_known_by_their_bytes_and_nothing_with_scripts_is_one() {
        assert_eq!(kind_of(b"\x89PNG\r\n\x1a\nrest"), Some("image/png"));
        assert_eq!(kind_of(b"RIFF1234WEBPVP8"), Some("image/webp"));
        for other in [&b"<svg xmlns=''>"[..], b"<html>", b"%PDF-1.7", b"", b"RIFF1234WAVE"] {
            assert_eq!(kind_of(other), None);
        }
    }

    #[test]
    fn text_is_utf8_without_zeros_and_shows_what_is_unseen() {
        assert_eq!(text_of("a\u{e9}".as_bytes(), 3), Some("a\u{e9}"));
        assert_eq!(text_of(b"a\xc3", 3), Some("a"));
        assert_eq!((text_of(b"a\xc3", 2), text_of(b"a\0", 2), text_of(b"", 0)), (None, None, None));
        assert_eq!(shown_text("a\r\n\tb\u{202e}\x1b"), "a\n\tb\\u{202e}\\u{1b}");
    }
}
