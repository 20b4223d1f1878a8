//! The snapshots as WebDAV, only to be read: what file managers open without an installation.
//!
//! ```text
//! /dav/2026-11-30_00.52.01Z_HOST_1f3a5b7c9d/home/ada/letter.txt
//! ```
//!
//! WebDAV has files and folders; links, devices, pipes and sockets are left out. The password is the token, with any name.

use std::fmt;
use std::io::SeekFrom;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{
    AUTHORIZATION, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, HeaderValue, WWW_AUTHENTICATE,
};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::{Buf, Bytes};
use dav_server::davpath::DavPath;
use dav_server::fs::{
    DavDirEntry, DavFile, DavFileSystem, DavMetaData, FsError, FsFuture, FsResult, FsStream,
    OpenOptions, ReadDirMeta,
};
use dav_server::{DavHandler, DavMethodSet};
use holdall_engine::{Entry, EntryKind, FileView, ListedEntry, Snapshot, Time, Viewer};

use crate::guard::SANDBOX;
use crate::names;
use crate::problem::Problem;
use crate::shared::{Listing, Shared};
use crate::times;

/// Where it begins.
pub(crate) const FRONT: &str = "/dav";
/// Bytes that are read first of a file: enough for most.
const FIRST_BYTES: u64 = 64 << 10;
/// Bytes that are read at once of one that is read on.
const PIECE_BYTES: u64 = 1 << 20;
/// Bytes that are sent at once.
const SENT_BYTES: usize = 64 << 10;
/// The last second of the year 9999: later times cannot be written.
const LAST_SECOND: i64 = 253_402_300_799;

/// Answers one request, if it has the token.
pub(crate) async fn answer(shared: &Arc<Shared>, request: Request) -> Response {
    if !has_token(shared, request.headers()) {
        let ask = [(WWW_AUTHENTICATE, "Basic realm=\"holdall browse\", charset=\"UTF-8\"")];
        return (StatusCode::UNAUTHORIZED, ask, "The password is the token.\n").into_response();
    }
    let is_get = request.method() == Method::GET;
    let handler = DavHandler::builder()
        .strip_prefix(FRONT)
        .filesystem(Box::new(Files(Arc::clone(shared))))
        .methods(DavMethodSet::WEBDAV_RO)
        .autoindex(false)
        .read_buf_size(SENT_BYTES)
        .build_handler();
    let mut response = handler.handle(request).await.map(Body::new);
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(SANDBOX));
    if is_get {
        headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    }
    response
}

/// Whether the password of a request is the token.
fn has_token(shared: &Shared, headers: &HeaderMap) -> bool {
    let given = headers.get(AUTHORIZATION).and_then(|given| given.to_str().ok());
    let given = given.and_then(|given| given.split_once(' '));
    let given = given.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("basic"));
    let pair = given.and_then(|(_, text)| STANDARD.decode(text.trim()).ok()).unwrap_or_default();
    let at = pair.iter().position(|byte| *byte == b':');
    at.is_some_and(|at| shared.door.knows(&pair[at + 1..]))
}

/// All snapshots as one tree.
#[derive(Clone)]
struct Files(Arc<Shared>);

/// What a path stands for.
enum At {
    /// The folder of all snapshots.
    Top(Arc<Listing>),
    /// A path in a snapshot.
    In(Box<Snapshot>, Vec<u8>),
}

/// What WebDAV says of a file or folder.
#[derive(Debug, Clone)]
struct About {
    is_dir: bool,
    len_bytes: u64,
    mtime: Time,
}

/// Something in a folder.
struct Child {
    name: Vec<u8>,
    about: About,
}

/// A file that is read from a place on.
struct Reading {
    shared: Arc<Shared>,
    open: Arc<(Arc<Viewer>, FileView)>,
    about: About,
    at: u64,
    /// What was read and not given yet; it begins at `at`.
    ahead: Bytes,
    /// How much is read next.
    next_bytes: u64,
}

impl Files {
    /// The snapshot and path that a path of WebDAV stands for.
    fn find(shared: &Shared, path: &[u8]) -> Result<At, Problem> {
        let listing = shared.listing()?;
        let path = path.strip_suffix(b"/").unwrap_or(path);
        let path = path.strip_prefix(b"/").unwrap_or(path);
        if path.is_empty() {
            return Ok(At::Top(listing));
        }
        let end = path.iter().position(|byte| *byte == b'/').unwrap_or(path.len());
        let (name, below) = path.split_at(end);
        let name = std::str::from_utf8(name).ok();
        let found = name.and_then(|name| listing.in_folder(name, folder_of));
        let found = found.ok_or_else(|| Problem::not_found("There is no such snapshot."))?;
        let below = if below.is_empty() { b"/" } else { below };
        Ok(At::In(Box::new(found.clone()), below.to_vec()))
    }

    async fn ask<T: Send + 'static>(
        &self,
        path: &DavPath,
        work: impl FnOnce(&Shared, At) -> Result<T, Problem> + Send + 'static,
    ) -> FsResult<T> {
        let path = path.as_bytes().to_vec();
        let asked = self.0.ask(move |shared, _| work(shared, Self::find(shared, &path)?)).await;
        asked.map_err(|problem| refused(&problem))
    }
}

/// The folder of a snapshot: its time in UTC, which never comes twice, its host and the beginning of its id.
fn folder_of(one: &Snapshot) -> String {
    let host = names::portable(one.secret.host.as_bytes()).replace('/', "%2F");
    format!("{}_{host}_{:.10}", times::in_utc(one.taken_ns()), one.id.to_string())
}

fn refused(problem: &Problem) -> FsError {
    match problem.status {
        StatusCode::NOT_FOUND => FsError::NotFound,
        StatusCode::FORBIDDEN | StatusCode::BAD_REQUEST => FsError::Forbidden,
        _ => FsError::GeneralFailure,
    }
}

/// What WebDAV says of an entry; `None` for a kind that it does not know.
fn about(entry: &Entry) -> Option<About> {
    let is_dir = entry.kind == EntryKind::Directory;
    let is_told = is_dir || entry.kind == EntryKind::File;
    let len_bytes = if is_dir { 0 } else { entry.size };
    is_told.then_some(About { is_dir, len_bytes, mtime: entry.mtime })
}

fn about_snapshot(one: &Snapshot) -> About {
    let mtime = Time { secs: one.taken_ns().div_euclid(1_000_000_000), nanos: 0 };
    About { is_dir: true, len_bytes: 0, mtime }
}

fn about_at(shared: &Shared, at: &At) -> Result<About, Problem> {
    match at {
        At::Top(_) => Ok(About { is_dir: true, len_bytes: 0, mtime: Time::default() }),
        At::In(snapshot, path) if path == b"/" => Ok(about_snapshot(snapshot)),
        At::In(snapshot, path) => {
            let entry = shared.viewer()?.entry(snapshot, path)?;
            entry.as_ref().and_then(about).ok_or_else(|| Problem::not_found("Nothing is there."))
        }
    }
}

fn children(shared: &Shared, at: At) -> Result<Vec<Child>, Problem> {
    let (snapshot, path) = match at {
        At::In(snapshot, path) => (snapshot, path),
        At::Top(listing) => {
            let child =
                |one| Child { name: folder_of(one).into_bytes(), about: about_snapshot(one) };
            return Ok(listing.snapshots().iter().map(child).collect());
        }
    };
    let mut children = Vec::new();
    let mut add = |one: ListedEntry<'_>| {
        let about = about(one.entry);
        children.extend(about.map(|about| Child { name: names::last(one.path).to_vec(), about }));
        Ok(())
    };
    shared.viewer()?.list(&snapshot, &path, false, &holdall_engine::Run::new(), &mut add)?;
    Ok(children)
}

fn open(shared: &Shared, at: At) -> Result<(Arc<Viewer>, FileView, About), Problem> {
    let At::In(snapshot, path) = at else { return Err(Problem::wrong("That is no file.")) };
    let viewer = shared.viewer()?;
    let entry = viewer.entry(&snapshot, &path)?;
    let entry = entry.filter(|entry| entry.kind == EntryKind::File);
    let entry = entry.ok_or_else(|| Problem::not_found("That is no file."))?;
    let about = about(&entry).ok_or_else(|| Problem::not_found("That is no file."))?;
    let file = viewer.file(&path, entry)?;
    Ok((viewer, file, about))
}

impl DavFileSystem for Files {
    fn open<'a>(
        &'a self,
        path: &'a DavPath,
        options: OpenOptions,
    ) -> FsFuture<'a, Box<dyn DavFile>> {
        Box::pin(async move {
            if options.write || options.append || options.create {
                return Err(FsError::Forbidden);
            }
            let (viewer, file, about) = self.ask(path, open).await?;
            Ok(Box::new(Reading {
                shared: Arc::clone(&self.0),
                open: Arc::new((viewer, file)),
                about,
                at: 0,
                ahead: Bytes::new(),
                next_bytes: FIRST_BYTES,
            }) as Box<dyn DavFile>)
        })
    }

    fn read_dir<'a>(
        &'a self,
        path: &'a DavPath,
        _: ReadDirMeta,
    ) -> FsFuture<'a, FsStream<Box<dyn DavDirEntry>>> {
        Box::pin(async move {
            let children = self.ask(path, children).await?.into_iter();
            let children = children.map(|child| Ok(Box::new(child) as Box<dyn DavDirEntry>));
            Ok(Box::pin(futures_util::stream::iter(children)) as FsStream<_>)
        })
    }

    fn metadata<'a>(&'a self, path: &'a DavPath) -> FsFuture<'a, Box<dyn DavMetaData>> {
        Box::pin(async move {
            let about = self.ask(path, |shared, at| about_at(shared, &at)).await?;
            Ok(Box::new(about) as Box<dyn DavMetaData>)
        })
    }
}

impl DavMetaData for About {
    fn len(&self) -> u64 {
        self.len_bytes
    }

    fn modified(&self) -> FsResult<SystemTime> {
        // What a header cannot say is the end of what it can.
        let secs = u64::try_from(self.mtime.secs.clamp(0, LAST_SECOND)).unwrap_or_default();
        Ok(SystemTime::UNIX_EPOCH + Duration::new(secs, self.mtime.nanos))
    }

    fn is_dir(&self) -> bool {
        self.is_dir
    }
}

impl DavDirEntry for Child {
    fn name(&self) -> Vec<u8> {
        self.name.clone()
    }

    fn metadata(&'_ self) -> FsFuture<'_, Box<dyn DavMetaData>> {
        let about = self.about.clone();
        Box::pin(std::future::ready(Ok(Box::new(about) as Box<dyn DavMetaData>)))
    }
}

impl fmt::Debug for Reading {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Reading").field("about", &self.about).field("at", &self.at).finish()
    }
}

impl DavFile for Reading {
    fn metadata(&'_ mut self) -> FsFuture<'_, Box<dyn DavMetaData>> {
        let about = self.about.clone();
        Box::pin(std::future::ready(Ok(Box::new(about) as Box<dyn DavMetaData>)))
    }

    fn write_buf(&'_ mut self, _: Box<dyn Buf + Send>) -> FsFuture<'_, ()> {
        Box::pin(std::future::ready(Err(FsError::Forbidden)))
    }

    fn write_bytes(&'_ mut self, _: Bytes) -> FsFuture<'_, ()> {
        Box::pin(std::future::ready(Err(FsError::Forbidden)))
    }

    fn read_bytes(&'_ mut self, count: usize) -> FsFuture<'_, Bytes> {
        Box::pin(async move {
            if self.ahead.is_empty() {
                let (open, at, most) = (Arc::clone(&self.open), self.at, self.next_bytes);
                let read = move |_: &Shared, _: &holdall_engine::Run| {
                    let (viewer, file) = &*open;
                    Ok(viewer.read(file, at, most)?)
                };
                let read = self.shared.ask(read).await;
                self.ahead = read.map_err(|problem| refused(&problem))?;
                self.next_bytes = PIECE_BYTES;
                if self.ahead.is_empty() {
                    // Less than was told: who sends it would go on with zeros.
                    return Err(FsError::GeneralFailure);
                }
            }
            let piece = self.ahead.split_to(count.min(self.ahead.len()));
            self.at += piece.len() as u64;
            Ok(piece)
        })
    }

    fn seek(&'_ mut self, to: SeekFrom) -> FsFuture<'_, u64> {
        let end = self.about.len_bytes;
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => end.checked_add_signed(by),
        };
        let sought = at.filter(|at| *at <= end).ok_or(FsError::GeneralFailure);
        if let Ok(at) = sought {
            (self.at, self.ahead) = (at, Bytes::new());
        }
        Box::pin(std::future::ready(sought))
    }

    fn flush(&'_ mut self) -> FsFuture<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }
}
