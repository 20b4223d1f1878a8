//! The first page: all snapshots, newest first.

use std::sync::Arc;

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use holdall_engine::Snapshot;
use holdall_meter::{count, size};
use holdall_pages::name;
use maud::{Markup, html};

use super::{On, address, search, shown};
use crate::problem::Problem;
use crate::shared::Listing;
use crate::{names, times};

/// Snapshots on a page.
const LISTED: usize = 200;
/// Paths of one snapshot that are named.
const PATHS_NAMED: usize = 8;

pub(crate) async fn show(State(shared): On, uri: Uri) -> Result<Response, Problem> {
    let skipped = number(&uri, "skip");
    let content =
        Arc::clone(&shared).ask(move |shared, _| Ok(page(&*shared.listing()?, skipped))).await?;
    Ok(shared.page("Snapshots", &content))
}

/// A number that an address asks for; 0 if it asks for none.
pub(crate) fn number(uri: &Uri, field: &str) -> usize {
    let fields = names::fields(uri.query().unwrap_or_default());
    let text = names::field(&fields, field).and_then(|text| std::str::from_utf8(text).ok());
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn page(listing: &Listing, skipped: usize) -> Markup {
    let all = listing.snapshots();
    let older = all.len().saturating_sub(skipped.saturating_add(LISTED));
    html! {
        (search::form(""))
        (problems(listing))
        @if all.is_empty() { p { "None yet." } }
        div class="wide" {
            table {
                thead { tr { th { "Taken" } th { "Of" } th { "Host" } th class="n" { "Files" } th class="n" { "Size" } th { "Id" } } }
                tbody { @for one in all.iter().rev().skip(skipped).take(LISTED) { (row(one)) } }
            }
        }
        @if older > 0 {
            p { a href=(format!("/?skip={}", skipped + LISTED)) { (count(older as u64)) " older ones" } }
        }
    }
}

fn row(one: &Snapshot) -> Markup {
    let paths = &one.secret.paths;
    let more = paths.len().saturating_sub(PATHS_NAMED);
    html! {
        tr {
            td { a href=(address("at", one, b"/")) { (times::local(one.taken_ns())) } }
            td {
                @for path in paths.iter().take(PATHS_NAMED) {
                    a href=(address("at", one, path)) { (shown(path)) } br;
                }
                @if more > 0 { "and " (more) " more" }
            }
            td { (name(&one.secret.host)) }
            td class="n" { (count(one.secret.items)) }
            td class="n" { (size(one.secret.bytes)) }
            td { code { (format!("{:.10}", one.id.to_string())) } }
        }
    }
}

/// What of the list is not as it should be.
fn problems(listing: &Listing) -> Markup {
    let (damaged, gone) = (listing.listed.damaged.len(), listing.listed.gone.len());
    html! {
        @if damaged + gone > 0 {
            p class="notice bad" {
                "Not every snapshot can be seen: " (damaged) " damaged, " (gone)
                " gone that this computer knew. `holdall check` says more."
            }
        }
    }
}
