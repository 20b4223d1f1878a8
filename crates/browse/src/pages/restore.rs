//! Restoring what was ticked: as `holdall restore` does, one thing after the other, beside the pages.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::StreamExt;
use holdall_engine::{EntryKind, Overwrite};
use holdall_meter::{counted, size};
use holdall_pages::form;
use maud::{Markup, html};

use super::{On, entry_at, shown};
use crate::jobs::{Job, Wish, lock};
use crate::problem::Problem;
use crate::shared::Shared;
use crate::{names, times};

/// Most bytes of what was ticked: a hundred thousand things.
const FORM_MAX_BYTES: usize = 16 << 20;
/// Of a longer one, so much is read before it is refused.
const READ_MAX_BYTES: usize = 256 << 20;
/// How often a page of a restore under way is shown anew.
const REFRESH: (&str, &str) = ("refresh", "2");

/// Begins the restore of what was ticked.
pub(crate) async fn begin(State(shared): On, body: Body) -> Result<Response, Problem> {
    let fields = checked(&shared, &ticked(body).await?)?;
    let number = Arc::clone(&shared)
        .ask(move |asked, _| {
            let wish = wish_of(asked, &fields)?;
            let day = times::day(asked.clock.now_ns());
            asked.jobs.begin(&asked.access, day, wish)
        })
        .await
        .map_err(Problem::of_a_form)?;
    Ok(led_to(number))
}

/// A form with all that was ticked. A browser shows an answer only once it has sent all of its form, so that one that is
/// too long is read to its end.
async fn ticked(body: Body) -> Result<Vec<u8>, Problem> {
    let (mut form, mut body, mut bytes) = (Vec::new(), body.into_data_stream(), 0);
    while let Some(piece) = body.next().await {
        let piece =
            piece.map_err(|_| Problem::wrong("That form did not come whole. Send it again."))?;
        bytes += piece.len();
        if bytes <= FORM_MAX_BYTES {
            form.extend_from_slice(&piece);
        } else if bytes <= READ_MAX_BYTES {
            form = Vec::new();
        } else {
            break;
        }
    }
    match bytes {
        ..=FORM_MAX_BYTES => Ok(form),
        _ => Err(Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "That is more than can be ticked at once. Tick the folder that it is in, or restore it in parts.",
        )),
    }
}

/// The fields of a form of these pages.
fn checked(shared: &Shared, body: &[u8]) -> Result<Vec<(String, Vec<u8>)>, Problem> {
    let fields = names::fields(&String::from_utf8_lossy(body));
    let token = names::field(&fields, "token").unwrap_or_default();
    match shared.door.knows_form(token) {
        true => Ok(fields),
        false => Err(Problem::forbidden("That form is not of these pages. Load the page again.")),
    }
}

fn led_to(number: usize) -> Response {
    let to = HeaderValue::from_str(&format!("/restores/{number}"));
    let to = to.unwrap_or(HeaderValue::from_static("/restores"));
    (StatusCode::SEE_OTHER, [(LOCATION, to)]).into_response()
}

fn wish_of(shared: &Shared, fields: &[(String, Vec<u8>)]) -> Result<Wish, Problem> {
    let field = |name| names::field(fields, name).unwrap_or_default();
    let listing = shared.listing()?;
    let snapshot = listing.snapshot(&String::from_utf8_lossy(field("snapshot")))?;
    let items = fields.iter().filter(|(name, _)| name == "item");
    let paths = items.map(|(_, text)| names::decode(&String::from_utf8_lossy(text)));
    let items = paths.map(|path| {
        let entry = entry_at(shared, snapshot, &path)?;
        Ok((path, entry.kind == EntryKind::Directory))
    });
    let items = items.collect::<Result<Vec<_>, Problem>>()?;
    if items.is_empty() {
        return Err(Problem::wrong("Nothing was ticked."));
    }
    // What ends with a slash is all of a snapshot, or the content of a folder without its name.
    if items.iter().any(|(path, _)| path.ends_with(b"/")) {
        return Err(Problem::wrong("Tick what is in a folder, not all of a snapshot."));
    }
    let typed = field("folder");
    let folder = match field("where") {
        // A folder that was typed counts, whatever else was chosen: what is in place is not touched.
        b"place" if typed.is_empty() => None,
        b"place" | b"folder" => Some(PathBuf::from(OsStr::from_bytes(typed))),
        _ => return Err(Problem::wrong("Where to? Choose one of the two.")),
    };
    if folder.as_ref().is_some_and(|folder| !folder.is_absolute()) {
        return Err(Problem::wrong("Name the folder from / on."));
    }
    let overwrite = (field("replace") == b"yes").then_some(Overwrite::Always);
    Ok(Wish { snapshot: snapshot.clone(), items, folder, overwrite })
}

/// All restores of this run.
pub(crate) async fn list(State(shared): On) -> Response {
    let jobs = shared.jobs.all();
    let content = html! {
        @if jobs.is_empty() { p { "None yet. Tick what you want in a folder." } }
        ul {
            @for job in jobs.iter().rev() {
                li { a href=(format!("/restores/{}", job.number)) { (heading(job)) } }
            }
        }
    };
    shared.page("Restores", &content)
}

fn heading(job: &Job) -> Markup {
    let rest = job.wish.items.len().saturating_sub(1);
    html! {
        @if let Some((first, _)) = job.wish.items.first() { (shown(first)) }
        @if rest > 0 { " and " (rest) " more" }
        ", of " (times::local(job.wish.snapshot.taken_ns()))
    }
}

/// How far a restore is; without a script, the browser looks again by itself.
pub(crate) async fn show(State(shared): On, uri: Uri) -> Result<Response, Problem> {
    let job = shared.jobs.find(names::plain_last(uri.path()))?;
    let has_ended = job.has_ended.load(Ordering::Acquire);
    let page = shared.page("Restore", &progress(&shared, &job, has_ended));
    Ok(if has_ended { page } else { ([REFRESH], page).into_response() })
}

fn progress(shared: &Shared, job: &Job, has_ended: bool) -> Markup {
    let told = lock(&job.told);
    let (items, bytes) =
        (job.run.items.load(Ordering::Relaxed), job.run.bytes.load(Ordering::Relaxed));
    let done: usize = told.iter().map(|one| one.items).sum();
    let left = job.wish.items.len().saturating_sub(done);
    let is_well = left == 0 && told.iter().all(|one| one.is_well);
    let stop = format!("/restores/{}/stop", job.number);
    html! {
        p { (heading(job)) }
        @if !has_ended {
            p class="notice" { "Under way: " (counted(items, "item")) ", " (size(bytes)) "." }
            @if shared.is_silent() {
                p class="notice look" { "The server does not answer. The restore waits for it for up to five minutes." }
            }
            (form(&stop, shared.door.form(), &html! { button class="quiet" { "Stop" } }))
        } @else if is_well { p class="notice" { "Done." } }
        @else if left > 0 { p class="notice look" { "Stopped: " (left) " not restored." } }
        @else { p class="notice bad" { "Not everything could be restored." } }
        ul {
            @for one in told.iter() {
                li {
                    (shown(&one.first)) @if one.items > 1 { " and " (one.items - 1) " more" } ": "
                    (holdall_format::OneLine(&one.words).to_string())
                    @if !one.problems.is_empty() {
                        ul { @for problem in &one.problems { li { (holdall_format::OneLine(problem).to_string()) } } }
                    }
                }
            }
        }
    }
}

/// Stops one. What was restored stays.
pub(crate) async fn stop(State(shared): On, uri: Uri, body: Bytes) -> Result<Response, Problem> {
    checked(&shared, &body)?;
    let path = uri.path().strip_suffix("/stop").unwrap_or_default();
    let job = shared.jobs.find(names::plain_last(path))?;
    job.run.stop();
    Ok(led_to(job.number))
}
