//! Taking things away: a file, or a piece of it, and a folder as an archive.

use std::ops::Range;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{
    ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, ETAG, HeaderMap, IF_RANGE, RANGE,
};
use axum::http::{HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use holdall_engine::{Dump, EntryKind, FileView, Run, Viewer};

use super::{On, Place, entry_at};
use crate::guard::SANDBOX;
use crate::problem::Problem;
use crate::shared::Shared;
use crate::{names, stream};

/// Bytes that are read at once of a file that is sent.
const PIECE_BYTES: u64 = 1 << 20;

/// A file, to be kept under its name.
pub(crate) async fn file(state: On, uri: Uri, headers: HeaderMap) -> Result<Response, Problem> {
    let State(shared) = &state;
    let place = Place::of(&uri)?;
    let name = header(&names::disposition(names::last(&place.path)));
    let tag = header(&format!("\"{}\"", place.id));
    let (viewer, file) = opened(shared, place).await?;
    let size = file.len_bytes();
    let is_same = headers.get(IF_RANGE).is_none_or(|known| *known == tag);
    let asked = headers.get(RANGE).filter(|_| is_same).and_then(|range| range.to_str().ok());
    let fixed = [
        (CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        (CONTENT_DISPOSITION, name),
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static(SANDBOX)),
        (ACCEPT_RANGES, HeaderValue::from_static("bytes")),
        (ETAG, tag),
    ];
    let (status, range) = match asked.map_or(Asked::Whole, |range| asked_of(range, size)) {
        Asked::Whole => (StatusCode::OK, 0..size),
        Asked::Piece(range) => (StatusCode::PARTIAL_CONTENT, range),
        Asked::Nothing => {
            let of = [(CONTENT_RANGE, format!("bytes */{size}"))];
            return Ok((StatusCode::RANGE_NOT_SATISFIABLE, of, fixed).into_response());
        }
    };
    let mut response = (status, fixed).into_response();
    let length = header(&(range.end - range.start).to_string());
    response.headers_mut().insert(CONTENT_LENGTH, length);
    if status == StatusCode::PARTIAL_CONTENT {
        let of = format!("bytes {}-{}/{size}", range.start, range.end - 1);
        response.headers_mut().insert(CONTENT_RANGE, header(&of));
    }
    *response.body_mut() = sent(shared, viewer, file, range).await?;
    Ok(response)
}

/// The bytes of a file, and nothing that says what they are.
pub(crate) async fn plain(State(shared): On, uri: &Uri) -> Result<Response, Problem> {
    let (viewer, file) = opened(&shared, Place::of(uri)?).await?;
    let size = file.len_bytes();
    let mut response = Response::new(sent(&shared, viewer, file, 0..size).await?);
    response.headers_mut().insert(CONTENT_LENGTH, header(&size.to_string()));
    Ok(response)
}

/// A folder as a tar archive.
pub(crate) async fn tar(State(shared): On, uri: Uri) -> Result<Response, Problem> {
    let place = Place::of(&uri)?;
    let name = archive_name(&place, ".tar");
    let asked = place.path.clone();
    let snapshot = shared
        .ask(move |shared, _| {
            let snapshot = shared.listing()?.snapshot(&place.id)?.clone();
            match entry_at(shared, &snapshot, &place.path)?.kind {
                EntryKind::Directory => Ok(snapshot),
                _ => Err(Problem::wrong("That is no folder.")),
            }
        })
        .await?;
    let (permit, access) = (shared.stream().await?, Arc::clone(&shared.access));
    let body = stream::body(permit, move |sink| {
        let dump = Dump::find(&access, &snapshot, &asked).map_err(|error| error.to_string())?;
        let written = dump.write(&mut stream::gathered(sink), &Run::new());
        written.map(drop).map_err(|error| error.to_string())
    })?;
    Ok(([(CONTENT_TYPE, header("application/x-tar")), (CONTENT_DISPOSITION, name)], body)
        .into_response())
}

/// The header by which an archive of a folder is kept.
pub(crate) fn archive_name(place: &Place, ending: &str) -> HeaderValue {
    let last = match names::last(&place.path) {
        b"" => b"snapshot",
        last => last,
    };
    header(&names::disposition(&[last, ending.as_bytes()].concat()))
}

/// Our own headers are of ASCII that can be seen.
pub(crate) fn header(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""))
}

/// Makes a file ready to be sent.
async fn opened(shared: &Arc<Shared>, place: Place) -> Result<(Arc<Viewer>, FileView), Problem> {
    shared
        .ask(move |shared, _| {
            let listing = shared.listing()?;
            let entry = entry_at(shared, listing.snapshot(&place.id)?, &place.path)?;
            if entry.kind != EntryKind::File {
                return Err(Problem::wrong("That is no file."));
            }
            let viewer = shared.viewer()?;
            let file = viewer.file(&place.path, entry)?;
            Ok((viewer, file))
        })
        .await
}

/// A range of a file on its way.
async fn sent(
    shared: &Arc<Shared>,
    viewer: Arc<Viewer>,
    file: FileView,
    range: Range<u64>,
) -> Result<Body, Problem> {
    if range.is_empty() {
        return Ok(Body::empty());
    }
    stream::body(shared.stream().await?, move |sink| {
        let mut at = range.start;
        while at < range.end {
            let piece = viewer.read(&file, at, PIECE_BYTES.min(range.end - at));
            let piece = piece.map_err(|error| error.to_string())?;
            if piece.is_empty() {
                return Err("the file ended early".to_owned());
            }
            at += piece.len() as u64;
            sink.send(piece).map_err(|error| error.to_string())?;
        }
        Ok(())
    })
}

/// What of a file is asked for.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Whole,
    Piece(Range<u64>),
    Nothing,
}

/// Reads a range; several, and what is none, are answered with the whole, as the standard allows.
fn asked_of(range: &str, size: u64) -> Asked {
    let Some((from, to)) = range.strip_prefix("bytes=").and_then(|one| one.split_once('-')) else {
        return Asked::Whole;
    };
    let piece = match (from.parse::<u64>(), to.parse::<u64>()) {
        (Ok(from), Ok(to)) if from <= to => from..to.saturating_add(1).min(size),
        (Ok(from), Err(_)) if to.is_empty() => from..size,
        (Err(_), Ok(last)) if from.is_empty() => size.saturating_sub(last)..size,
        _ => return Asked::Whole,
    };
    if piece.is_empty() { Asked::Nothing } else { Asked::Piece(piece) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_within_the_file_or_none() {
        for (range, expected) in [
            ("bytes=0-0", Asked::Piece(0..1)),
            ("bytes=2-5", Asked::Piece(2..6)),
            ("bytes=5-", Asked::Piece(5..10)),
            ("bytes=-3", Asked::Piece(7..10)),
            ("bytes=-30", Asked::Piece(0..10)),
            ("bytes=8-18446744073709551615", Asked::Piece(8..10)),
            ("bytes=10-", Asked::Nothing),
            ("bytes=-0", Asked::Nothing),
            ("bytes=5-2", Asked::Whole),
            ("bytes=0-1,4-5", Asked::Whole),
            ("lines=1-2", Asked::Whole),
            ("bytes=a-b", Asked::Whole),
        ] {
            assert_eq!(asked_of(range, 10), expected, "{range}");
        }
        assert_eq!(asked_of("bytes=0-", 0), Asked::Nothing);
    }
}
