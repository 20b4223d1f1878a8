//! The snapshots as WebDAV, only to be read: what file managers open without an installation.
//!
//! ```text
//! /dav/2026-11-30_00.52.01Z_HOST_1f3a5b7c9d/home/ada/letter.txt
//! ```
//!
//! WebDAV has files and folders; links, devices, pipes and sockets are left out. The password is the token, with any name.
//! Folders are listed by `dav-server`; files are sent as the pages send them, whose ranges and tags are the same.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{
    ALLOW, AUTHORIZATION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, WWW_AUTHENTICATE,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use dav_server::davpath::DavPath;
use dav_server::fs::{
    DavDirEntry, DavFile, DavFileSystem, DavMetaData, FsError, FsFuture, FsResult, FsStream,
    OpenOptions, ReadDirMeta,
};
use dav_server::{DavHandler, DavMethodSet};
use holdall_engine::{Entry, EntryKind, ListedEntry, Snapshot, Time};
use holdall_format::portable_name;
use holdall_pages::Page;
use maud::html;

use crate::guard::SANDBOX;
use crate::names;
use crate::pages::download::send;
use crate::pages::{Place, address};
use crate::problem::Problem;
use crate::shared::{Listing, Shared};
use crate::times;

/// Where it begins.
pub(crate) const FRONT: &str = "/dav";
/// The methods that are answered. All others would write, or lock what nobody writes.
const ALLOWED: HeaderValue = HeaderValue::from_static("OPTIONS, GET, HEAD, PROPFIND");
/// What of the standard is kept: its first class, which has no locks.
const CLASS: (HeaderName, HeaderValue) =
    (HeaderName::from_static("dav"), HeaderValue::from_static("1"));
/// What the standard has for who asks for everything below a folder: a snapshot may have millions of files.
const FINITE_DEPTH: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n\
    <D:error xmlns:D=\"DAV:\"><D:propfind-finite-depth/></D:error>\n";
/// The last second of the year 9999: later times cannot be written.
const LAST_SECOND: i64 = 253_402_300_799;

/// Answers one request, if it has the token.
pub(crate) async fn answer(shared: &Arc<Shared>, request: Request) -> Response {
    if !has_token(shared, request.headers()) {
        let ask = [(WWW_AUTHENTICATE, "Basic realm=\"holdall browse\", charset=\"UTF-8\"")];
        return (StatusCode::UNAUTHORIZED, ask, "The password is the token.\n").into_response();
    }
    match request.method().as_str() {
        "OPTIONS" => ([CLASS, (ALLOW, ALLOWED)], ()).into_response(),
        "GET" | "HEAD" => {
            let (head, _) = request.into_parts();
            got(shared, &head).await.unwrap_or_else(IntoResponse::into_response)
        }
        "PROPFIND" if is_endless(request.headers()) => {
            let kind = [(CONTENT_TYPE, "application/xml; charset=utf-8")];
            (StatusCode::FORBIDDEN, kind, FINITE_DEPTH).into_response()
        }
        "PROPFIND" => listed(shared, request).await,
        _ => {
            let words = "Everything here is only to be read.\n";
            (StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, ALLOWED)], words).into_response()
        }
    }
}

/// Whether all that is below a folder is asked for at once.
fn is_endless(headers: &HeaderMap) -> bool {
    let depth = headers.get("depth");
    depth.is_some_and(|depth| depth.as_bytes().eq_ignore_ascii_case(b"infinity"))
}

/// What folders and files are there.
async fn listed(shared: &Arc<Shared>, request: Request) -> Response {
    let handler = DavHandler::builder()
        .strip_prefix(FRONT)
        .filesystem(Box::new(Files(Arc::clone(shared))))
        .methods(DavMethodSet::WEBDAV_RO)
        .build_handler();
    let mut response = handler.handle(request).await.map(Body::new);
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(SANDBOX));
    response
}

/// A file; for a folder a page that says where people see it.
async fn got(shared: &Arc<Shared>, head: &Parts) -> Result<Response, Problem> {
    let path = names::decode(head.uri.path().strip_prefix(FRONT).unwrap_or_default());
    let found = shared
        .ask(move |shared, _| {
            let at = Files::find(shared, &path)?;
            let about = about_at(shared, &at)?;
            Ok((at, about.is_dir))
        })
        .await?;
    match found {
        (At::In(snapshot, path), false) => {
            let place = Place { id: snapshot.id.to_string(), path };
            send(shared, place, &head.method, &head.headers).await
        }
        (At::In(snapshot, path), true) => Ok(for_people(&address("at", &snapshot, &path))),
        (At::Top(_), _) => Ok(for_people("/")),
    }
}

fn for_people(address: &str) -> Response {
    let content = html! {
        p { "This address is for programs that speak WebDAV, such as a file manager." }
        p { a href=(address) { "See this folder in the browser" } }
    };
    Html(Page { title: "WebDAV", server: "", account: None, content }.html()).into_response()
}

/// Whether the password of a request is the token.
pub(crate) fn has_token(shared: &Shared, headers: &HeaderMap) -> bool {
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
    /// The snapshot's id: what is at an address of it never changes.
    tag: String,
}

/// Something in a folder.
struct Child {
    name: Vec<u8>,
    about: About,
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
    let host = portable_name(one.secret.host.as_bytes()).replace('/', "%2F");
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
fn about(snapshot: &Snapshot, entry: &Entry) -> Option<About> {
    let is_dir = entry.kind == EntryKind::Directory;
    let is_told = is_dir || entry.kind == EntryKind::File;
    let len_bytes = if is_dir { 0 } else { entry.size };
    let tag = snapshot.id.to_string();
    is_told.then_some(About { is_dir, len_bytes, mtime: entry.mtime, tag })
}

fn about_snapshot(one: &Snapshot) -> About {
    let mtime = Time { secs: one.taken_ns().div_euclid(1_000_000_000), nanos: 0 };
    About { is_dir: true, len_bytes: 0, mtime, tag: one.id.to_string() }
}

fn about_at(shared: &Shared, at: &At) -> Result<About, Problem> {
    match at {
        At::Top(_) => {
            let (mtime, tag) = (Time::default(), String::new());
            Ok(About { is_dir: true, len_bytes: 0, mtime, tag })
        }
        At::In(snapshot, path) if path == b"/" => Ok(about_snapshot(snapshot)),
        At::In(snapshot, path) => {
            let entry = shared.viewer()?.entry(snapshot, path)?;
            let about = entry.and_then(|entry| about(snapshot, &entry));
            about.ok_or_else(|| Problem::not_found("Nothing is there."))
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
        let about = about(&snapshot, one.entry);
        children.extend(about.map(|about| Child { name: names::last(one.path).to_vec(), about }));
        Ok(())
    };
    shared.viewer()?.list(&snapshot, &path, false, &holdall_engine::Run::new(), &mut add)?;
    Ok(children)
}

impl DavFileSystem for Files {
    fn open<'a>(&'a self, _: &'a DavPath, _: OpenOptions) -> FsFuture<'a, Box<dyn DavFile>> {
        // Files are sent without it.
        Box::pin(std::future::ready(Err(FsError::Forbidden)))
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

    fn etag(&self) -> Option<String> {
        (!self.tag.is_empty()).then(|| self.tag.clone())
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
