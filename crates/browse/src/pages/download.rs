//! Taking things away: a file, or a piece of it, and a folder as an archive.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{
    ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, ETAG, HeaderMap, LAST_MODIFIED, RANGE,
};
use axum::http::{HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use holdall_engine::{Dump, EngineError, EntryKind, FileView, Run, Time};

use super::conditions::Validators;
use super::{On, Place, entry_at};
use crate::guard::SANDBOX;
use crate::names::{self, header};
use crate::problem::Problem;
use crate::shared::Shared;
use crate::stream::{self, Sink};

/// What a tar is made of.
const TAR_BLOCK_BYTES: u64 = 512;
/// How often it is looked whether a backup has ended.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Bytes that are read at once of a file that is sent.
const PIECE_BYTES: u64 = 1 << 20;

/// A file, to be kept under its name.
pub(crate) async fn file(
    State(shared): On,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    send(&shared, Place::of(&uri)?, &method, &headers).await
}

/// The same for a place that is known.
pub(crate) async fn send(
    shared: &Arc<Shared>,
    place: Place,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let name = header(&names::disposition(names::last(&place.path)));
    let (mtime, file) = opened(shared, place.clone()).await?;
    let (size, validators) = (file.len_bytes(), Validators::of(&place.id, mtime));
    let fixed = [
        (CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        (CONTENT_DISPOSITION, name),
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static(SANDBOX)),
        (ACCEPT_RANGES, HeaderValue::from_static("bytes")),
        (ETAG, validators.tag.clone()),
    ];
    if let Some(status) = validators.refuse(headers) {
        return Ok((status, fixed).into_response());
    }
    let asked = headers.get(RANGE).filter(|_| validators.allow_range(headers));
    let asked = asked.and_then(|range| range.to_str().ok());
    let (status, range) = match asked.map_or(Asked::Whole, |range| asked_of(range, size)) {
        Asked::Whole => (StatusCode::OK, 0..size),
        Asked::Piece(range) => (StatusCode::PARTIAL_CONTENT, range),
        Asked::Nothing => {
            let of = [(CONTENT_RANGE, format!("bytes */{size}"))];
            return Ok((StatusCode::RANGE_NOT_SATISFIABLE, of, fixed).into_response());
        }
    };
    let mut response = (status, fixed).into_response();
    let mut add = |name, value| drop(response.headers_mut().insert(name, value));
    add(CONTENT_LENGTH, header(&(range.end - range.start).to_string()));
    validators.last_modified().into_iter().for_each(|modified| add(LAST_MODIFIED, modified));
    if status == StatusCode::PARTIAL_CONTENT {
        add(CONTENT_RANGE, header(&format!("bytes {}-{}/{size}", range.start, range.end - 1)));
    }
    if method != Method::HEAD {
        *response.body_mut() = sent(shared, place, file, range).await?;
    }
    Ok(response)
}

/// The bytes of a file, and nothing that says what they are.
pub(crate) async fn plain(State(shared): On, uri: &Uri) -> Result<Response, Problem> {
    let place = Place::of(uri)?;
    let (_, file) = opened(&shared, place.clone()).await?;
    let size = file.len_bytes();
    let mut response = Response::new(sent(&shared, place, file, 0..size).await?);
    response.headers_mut().insert(CONTENT_LENGTH, header(&size.to_string()));
    Ok(response)
}

/// A folder as a tar archive.
pub(crate) async fn tar(State(shared): On, uri: Uri) -> Result<Response, Problem> {
    let place = Place::of(&uri)?;
    let name = archive_name(&place, ".tar");
    let asked = place.clone();
    let snapshot = shared
        .ask(move |shared, _| {
            let snapshot = shared.listing()?.snapshot(&asked.id)?.clone();
            match entry_at(shared, &snapshot, &asked.path)?.kind {
                EntryKind::Directory => Ok(snapshot),
                _ => Err(Problem::wrong("That is no folder.")),
            }
        })
        .await?;
    let (access, path) = (Arc::clone(&shared.access), place.path.clone());
    let body = shared.send_holding(place, move |sink| {
        let dump = Dump::find(&access, &snapshot, &path).map_err(|error| error.to_string())?;
        let mut out = Counted { out: stream::gathered(sink), bytes: 0 };
        let written = dump.write(&mut out, &Run::new());
        written.map(drop).map_err(|error| {
            out.end_as_cut();
            error.to_string()
        })
    });
    let headers = [(CONTENT_TYPE, header("application/x-tar")), (CONTENT_DISPOSITION, name)];
    Ok((headers, body.await?).into_response())
}

/// Counts the bytes of an archive.
struct Counted<W> {
    out: W,
    bytes: u64,
}

impl<W: Write> Counted<W> {
    /// Programs take a tar that ends between two blocks for a whole one, and say so where it ends in one.
    fn end_as_cut(&mut self) {
        if self.bytes.is_multiple_of(TAR_BLOCK_BYTES) {
            // Where it cannot be sent, nothing of what was gathered is either.
            let _ = self.out.write_all(&[0]);
        }
    }
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The header by which an archive of a folder is kept.
pub(crate) fn archive_name(place: &Place, ending: &str) -> HeaderValue {
    let last = match names::last(&place.path) {
        b"" => b"snapshot",
        last => last,
    };
    header(&names::disposition(&[last, ending.as_bytes()].concat()))
}

/// Makes a file ready to be sent.
async fn opened(shared: &Arc<Shared>, place: Place) -> Result<(Time, FileView), Problem> {
    shared
        .ask(move |shared, _| {
            let listing = shared.listing()?;
            let entry = entry_at(shared, listing.snapshot(&place.id)?, &place.path)?;
            if entry.kind != EntryKind::File {
                return Err(Problem::wrong("That is no file."));
            }
            let mtime = entry.mtime;
            Ok((mtime, shared.viewer()?.file(&place.path, entry)?))
        })
        .await
}

/// A range of a file on its way.
async fn sent(
    shared: &Arc<Shared>,
    place: Place,
    file: FileView,
    range: Range<u64>,
) -> Result<Body, Problem> {
    if range.is_empty() {
        return Ok(Body::empty());
    }
    let reading = Arc::clone(shared);
    let send = move |sink: &Sink| {
        let mut at = range.start;
        while at < range.end {
            let piece = piece(&reading, &file, at, PIECE_BYTES.min(range.end - at), sink);
            let piece = piece.map_err(|error| error.to_string())?;
            if piece.is_empty() {
                return Err("the file ended early".to_owned());
            }
            at += piece.len() as u64;
            sink.send(piece).map_err(|error| error.to_string())?;
        }
        Ok(())
    };
    shared.send(place, send).await
}

/// A piece of a file. Between two of them nothing is held, so that a backup can begin while the reader takes nothing;
/// while it runs it is waited for.
fn piece(
    shared: &Shared,
    file: &FileView,
    at: u64,
    most: u64,
    sink: &Sink,
) -> Result<Bytes, EngineError> {
    loop {
        match shared.viewer().and_then(|viewer| viewer.read(file, at, most)) {
            Err(error) if error.is_in_use() && sink.is_wanted() => std::thread::sleep(LOOK_EVERY),
            read => return read,
        }
    }
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
