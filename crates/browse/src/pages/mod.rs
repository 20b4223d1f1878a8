//! The pages, a file each, and what they have in common.

pub(crate) mod conditions;
pub(crate) mod diff;
pub(crate) mod download;
pub(crate) mod file;
pub(crate) mod folder;
pub(crate) mod preview;
pub(crate) mod restore;
pub(crate) mod search;
pub(crate) mod snapshots;
mod unseen;
pub(crate) mod zip;

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::Uri;
use axum::response::Response;
use axum::routing::{get, post};
use holdall_engine::{Entry, EntryKind, Snapshot};
use maud::{Markup, html};

use crate::names;
pub(crate) use crate::place::{Place, address, shown};
use crate::problem::Problem;
use crate::shared::Shared;

/// Most bytes of a form other than that of what is ticked.
const FORM_MAX_BYTES: usize = 64 << 10;

/// The shared state as pages take it.
pub(crate) type On = State<Arc<Shared>>;

/// The way to each page.
pub(crate) fn router(shared: &Arc<Shared>) -> Router {
    Router::new()
        .route("/", get(snapshots::show))
        .route("/at/{*path}", get(show))
        .route("/get/{*path}", get(download::file))
        .route("/tar/{*path}", get(download::tar))
        .route("/zip/{*path}", get(zip::send))
        .route("/view/{*path}", get(preview::picture))
        .route("/diff/{*path}", get(diff::show))
        .route("/search", get(search::show))
        .route("/restore", post(restore::begin))
        .route("/wrong", get(wrong))
        .route("/restores", get(restore::list))
        .route("/restores/{number}", get(restore::show))
        .route("/restores/{number}/stop", post(restore::stop))
        .fallback(|| async { Problem::not_found("There is no such page.") })
        .layer(DefaultBodyLimit::max(FORM_MAX_BYTES))
        .with_state(Arc::clone(shared))
}

/// All that was cut off.
async fn wrong(State(shared): On) -> Response {
    let all = shared.wrong.all();
    shared.page("What went wrong", &all)
}

/// What is at a place: a folder's page or a file's.
async fn show(State(shared): On, uri: Uri) -> Result<Response, Problem> {
    let (place, query) = (Place::of(&uri)?, uri.query().unwrap_or_default().to_owned());
    let asking = Arc::clone(&shared);
    let (title, content) = asking
        .ask(move |shared, run| {
            let listing = shared.listing()?;
            let snapshot = listing.snapshot(&place.id)?;
            let entry = entry_at(shared, snapshot, &place.path)?;
            let content = match entry.kind {
                EntryKind::Directory => {
                    folder::page(shared, &listing, snapshot, &place.path, &query, run)?
                }
                _ => file::page(shared, &listing, snapshot, &place.path, &entry, run)?,
            };
            let name = match names::last(&place.path) {
                b"" => "/".to_owned(),
                name => holdall_format::Shown(name).to_string(),
            };
            Ok((name, content))
        })
        .await?;
    Ok(shared.page(&title, &content))
}

/// What is at a path.
///
/// # Errors
/// 404 if nothing is; what keeps it from being looked up.
pub(crate) fn entry_at(
    shared: &Shared,
    snapshot: &Snapshot,
    path: &[u8],
) -> Result<Entry, Problem> {
    let found = shared.viewer()?.entry(snapshot, path)?;
    found.ok_or_else(|| Problem::not_found("Nothing is at that path in this snapshot."))
}

/// What an entry is, in a word; nothing for a file.
pub(crate) fn word(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::File => "",
        EntryKind::Directory => "folder",
        EntryKind::Symlink => "link",
        EntryKind::Fifo => "pipe",
        EntryKind::Socket => "socket",
        EntryKind::CharDevice { .. } | EntryKind::BlockDevice { .. } => "device",
    }
}

/// The path of a page as links to what is above it.
pub(crate) fn above(snapshot: &Snapshot, path: &[u8]) -> Markup {
    let ends = path.iter().enumerate().skip(1).filter(|(_, byte)| **byte == b'/');
    let fronts: Vec<&[u8]> = ends.filter_map(|(at, _)| path.get(..at)).collect();
    html! {
        p class="faint" {
            a href=(address("at", snapshot, b"/")) { "/" }
            @for front in fronts {
                a href=(address("at", snapshot, front)) { (shown(names::last(front))) } "/"
            }
            (shown(names::last(path)))
        }
    }
}

/// Where and how what was ticked is restored; the fields of a form.
pub(crate) fn restoring() -> Markup {
    html! {
        fieldset {
            legend { "Restore" }
            label class="choice" {
                input type="radio" name="where" value="place" checked;
                " where it was; beside what is there now, as NAME.restored-DATE"
            }
            label class="choice" {
                input type="radio" name="where" value="folder"; " into this folder of this computer:"
            }
            input type="text" name="folder" placeholder="/home/you/restored" autocomplete="off" spellcheck="false" maxlength="4096";
            label class="choice" {
                input type="checkbox" name="replace" value="yes"; " replace what is there"
            }
            button { "Restore" }
        }
    }
}
