//! Two versions of a file, compared line by line.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use holdall_engine::{EntryKind, Snapshot};
use maud::{Markup, html};
use similar::{ChangeTag, TextDiff};

use super::{On, Place, above, address, entry_at, preview, unseen};
use crate::problem::Problem;
use crate::shared::Shared;
use crate::{names, times};

/// A longer text is not compared.
const TEXT_MAX_BYTES: u64 = 1 << 20;
/// How long the fewest changes are looked for; after it some that are good enough.
const PATIENCE: Duration = Duration::from_secs(2);
/// Equal lines around what changed.
const AROUND: usize = 3;
/// Lines that are shown.
const LINES_MAX: usize = 5000;

/// One of the two, as it is compared.
enum Version {
    Text(String),
    /// Why it cannot be compared by lines.
    Other(&'static str),
}

pub(crate) async fn show(State(shared): On, uri: Uri) -> Result<Response, Problem> {
    let place = Place::of(&uri)?;
    let fields = names::fields(uri.query().unwrap_or_default());
    let id = |name| {
        let id = names::field(&fields, name).ok_or_else(|| Problem::wrong("Choose two versions."));
        id.map(|id| String::from_utf8_lossy(id).into_owned())
    };
    let (old, new) = (id("old")?, id("new")?);
    let content = Arc::clone(&shared)
        .ask(move |shared, _| {
            let listing = shared.listing()?;
            let (old, new) = (listing.snapshot(&old)?, listing.snapshot(&new)?);
            let versions = [version(shared, old, &place.path)?, version(shared, new, &place.path)?];
            Ok(page(old, new, &place.path, &versions))
        })
        .await?;
    Ok(shared.page("What changed", &content))
}

fn version(shared: &Shared, snapshot: &Snapshot, path: &[u8]) -> Result<Version, Problem> {
    let entry = entry_at(shared, snapshot, path)?;
    if entry.kind != EntryKind::File {
        return Ok(Version::Other("One of them is no file."));
    }
    if entry.size > TEXT_MAX_BYTES {
        return Ok(Version::Other("They are too long to be compared here."));
    }
    let bytes = preview::front(shared, path, &entry, TEXT_MAX_BYTES)?;
    if bytes.is_empty() {
        return Ok(Version::Text(String::new()));
    }
    let text = preview::text_of(&bytes, entry.size).map(str::to_owned);
    Ok(text.map_or(Version::Other("They are not both text."), Version::Text))
}

fn page(old: &Snapshot, new: &Snapshot, path: &[u8], versions: &[Version; 2]) -> Markup {
    html! {
        (above(new, path))
        p {
            a href=(address("at", old, path)) { (times::local(old.taken_ns())) } " \u{2192} "
            a href=(address("at", new, path)) { (times::local(new.taken_ns())) }
        }
        @match versions {
            [Version::Other(why), _] | [_, Version::Other(why)] => { p { (why) } }
            [Version::Text(old), Version::Text(new)] if old == new => { p { "The text is the same." } }
            [Version::Text(old), Version::Text(new)] => { (unseen::page(old, new)) (lines(old, new)) }
        }
    }
}

fn lines(old: &str, new: &str) -> Markup {
    let (old, new) = (&*preview::shown_text(old), &*preview::shown_text(new));
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(old, new);
    let groups = diff.grouped_ops(AROUND);
    let mut left = LINES_MAX;
    html! {
        @for group in &groups {
            pre class="text" {
                @for op in group {
                    @for change in diff.iter_changes(op) {
                        @if let Some(less) = left.checked_sub(1) { ({ left = less; line(change.tag(), change.value()) }) }
                    }
                }
            }
        }
        @if left == 0 { p class="faint" { "And more." } }
    }
}

/// A line, with a sign for those who see no colours.
fn line(tag: ChangeTag, text: &str) -> Markup {
    let text = text.trim_end_matches('\n');
    html! {
        @match tag {
            ChangeTag::Equal => { "  " (text) "\n" }
            ChangeTag::Delete => { del { "- " (unseen::shown(text)) } "\n" }
            ChangeTag::Insert => { ins { "+ " (unseen::shown(text)) } "\n" }
        }
    }
}
