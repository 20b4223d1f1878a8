//! Where the backups lie: the disk, how full it is, and what each repository takes of it.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use holdall_meter::size;
use holdall_pages::name;
use maud::{Markup, html};

use super::problem::Problem;
use super::shared::Shared;
use super::visitor::{From, SignedIn};
use super::words::{full_in, time};
use crate::admin::{ListPlaces, PlaceEntry, RepositoryEntry, ShowStorage, Storage};

pub(super) async fn show(
    State(shared): State<Arc<Shared>>,
    From(source): From,
    who: SignedIn,
) -> Result<Response, Problem> {
    let storage = shared.ask(who.actor(source), ShowStorage {}).await?;
    let places = shared.ask(who.actor(source), ListPlaces {}).await?.places;
    let content = html! {
        (room(&storage, shared.now_ns()))
        h2 { "What it lies on" }
        dl class="facts" {
            div { dt { "folder" } dd { (name(&storage.folder)) } }
            @for fact in &storage.facts { div { dt { (fact.name) } dd { (name(&fact.value)) } } }
        }
        @for note in &storage.notes { p class="notice look" { (name(note)) } }
        @if !places.is_empty() {
            h2 { "Storage places" }
            (table_of(&places))
        }
        h2 { "Repositories" }
        (repositories(&storage.repositories))
        p class="faint" {
            "Quotas together: " (size(storage.quota_bytes)) ". "
            code { "holdall admin quota" } " changes them. How fast the disk is, the " a href="/lab" { "lab" } " measures."
        }
    };
    Ok(who.page(&shared, "Storage", content))
}

fn room(storage: &Storage, now_ns: i64) -> Markup {
    let told = |bytes: Option<u64>| bytes.map_or_else(|| "unknown".to_owned(), size);
    let used = storage.total_bytes.zip(storage.free_bytes);
    let used = used.map(|(total, free)| total.saturating_sub(free));
    let grows = match storage.bytes_per_day {
        None => "unknown yet: it takes some days".to_owned(),
        Some(more) if more >= 0.0 => format!("{} a day more", size(more as u64)),
        Some(less) => format!("{} a day less", size(-less as u64)),
    };
    let full = match (storage.bytes_per_day, storage.full_ns) {
        (None, _) => "unknown".to_owned(),
        (_, None) => "not within ten years".to_owned(),
        (_, Some(ns)) => full_in(ns, now_ns),
    };
    html! {
        dl class="facts" {
            div { dt { "Room" } dd { (told(storage.total_bytes)) } }
            div { dt { "Used, by others too" } dd { (told(used)) } }
            div { dt { "Left" } dd { (told(storage.free_bytes)) } }
            div { dt { "Backups" } dd { (size(storage.stored_bytes)) } }
            div { dt { "Grows by" } dd { (grows) } }
            div { dt { "Full" } dd { (full) } }
        }
    }
}

fn table_of(places: &[PlaceEntry]) -> Markup {
    html! {
        div class="wide" role="region" aria-label="Storage places" tabindex="0" {
            table {
                thead { tr { th { "Place" } th { "Folder" } th class="n" { "Packs" } th class="n" { "Left" } th { "State" } } }
                tbody {
                    @for place in places {
                        tr {
                            td { (name(&place.name)) }
                            td { (name(&place.folder)) }
                            td class="n" { (place.packs) }
                            td class="n" { @if let Some(bytes) = place.free_bytes { (size(bytes)) } @else { "unknown" } }
                            td { (state(place)) }
                        }
                    }
                }
            }
        }
    }
}

/// How a place is, in words.
fn state(place: &PlaceEntry) -> &'static str {
    match (place.is_there, place.is_draining) {
        (false, _) => "its disk is not there",
        (true, true) => "being emptied",
        (true, false) => "in use",
    }
}

fn repositories(all: &[RepositoryEntry]) -> Markup {
    if all.is_empty() {
        return html! { p { "None." } };
    }
    html! {
        // Who has no mouse moves it by its arrows.
        div class="wide" role="region" aria-label="Repositories" tabindex="0" {
            table {
                thead { tr { th { "Repository" } th class="n" { "Stored" } th class="n" { "Quota" } th { "Read again since" } } }
                tbody {
                    @for one in all {
                        tr {
                            td { (name(&one.name)) }
                            td class="n" { (size(one.stored_bytes)) }
                            td class="n" { @if let Some(bytes) = one.quota_bytes { (size(bytes)) } @else { "none" } }
                            td { @if let Some(ns) = one.read_since_ns { (time(ns)) } @else { "not yet" } }
                        }
                    }
                }
            }
        }
    }
}
