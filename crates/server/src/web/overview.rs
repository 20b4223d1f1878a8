//! The overview: a light and a sentence for each machine, room, and deletions that wait.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use holdall_meter::{counted, size};
use holdall_pages::{Light, name, sparkline};
use holdall_sys::disk::DiskRoom;
use maud::{Markup, html};

use super::entry;
use super::machine::waiting;
use super::problem::Problem;
use super::shared::Shared;
use super::visitor::{SignedIn, Visitor};
use super::words::{Known, full_in};
use crate::ServerError;
use crate::admin::{
    Administration, Deletion, ListDeletions, ListMachines, ListPlaces, ListRepositories,
    ListSnapshots, Pace, PlaceEntry, Places, ShowCertificate,
};

/// Days of the line beside each machine.
const DAYS: i64 = 14;

/// What the overview is made of.
pub(super) struct Overview {
    pub(super) machines: Vec<Known>,
    /// Repositories of no machine, as of one whose account was lost.
    pub(super) others: Vec<String>,
    pub(super) deletions: Vec<Deletion>,
    pub(super) stored_bytes: u64,
    pub(super) disk: Option<DiskRoom>,
    /// Storage places beside it.
    pub(super) places: Vec<PlaceEntry>,
    /// What keeps packs from being moved there.
    pub(super) waiting: Vec<String>,
    /// When it will be full, if that is known.
    pub(super) full_ns: Option<i64>,
    /// Why the certificate for browsers could not be renewed.
    pub(super) certificate: Option<String>,
    /// What is to be told of a short code that was guessed wrong, and when that was by a clock that only runs.
    pub(super) wrong_code: Option<(i64, String)>,
}

pub(super) async fn show(
    State(shared): State<Arc<Shared>>,
    visitor: Visitor,
) -> Result<Response, Problem> {
    let who = match visitor.signed_in(&shared) {
        Ok(who) => who,
        Err(visitor) if visitor.looks(&shared).await? => return show_to_onlooker(&shared).await,
        Err(visitor) => return Ok(entry::welcome(&shared, &visitor).await),
    };
    let overview = shared.read(Pace::Usual, read).await?;
    let content = page(&overview, Some(&who), shared.now_ns());
    Ok(who.page(&shared, "Overview", content))
}

/// What they see who may only look.
async fn show_to_onlooker(shared: &Arc<Shared>) -> Result<Response, Problem> {
    let overview = shared.read(Pace::Usual, read).await?;
    let content = html! {
        (page(&overview, None, shared.now_ns()))
        p class="faint" { "This browser was let in by a link, to look. " a href="/sign-in" { "Sign in" } " to do more." }
    };
    Ok(shared.open_page("Overview", content))
}

/// Reads it, by the commands of an administrator.
pub(super) fn read(on: &Administration<'_>) -> Result<Overview, ServerError> {
    let mut repositories = on.carry_out(&ListRepositories {})?.repositories;
    let stored_bytes = repositories.iter().map(|one| one.stored_bytes).sum();
    let machines = on.carry_out(&ListMachines {})?.machines.into_iter().map(|machine| {
        let at = repositories.iter().position(|one| one.name == machine.repository);
        let repository = at.map(|at| repositories.swap_remove(at));
        // What keeps them from being listed is in the repository's entry.
        let asked = ListSnapshots { repository: machine.repository.clone() };
        let is_there = repository.as_ref().is_some_and(|one| one.id.is_some());
        let snapshots = is_there.then(|| on.carry_out(&asked).ok()).flatten();
        let snapshots = snapshots.map(|all| all.snapshots).unwrap_or_default();
        Known { machine, repository, snapshots }
    });
    let machines = machines.collect();
    let (trend, Places { places, waiting }) = (on.trend()?, on.carry_out(&ListPlaces {})?);
    Ok(Overview {
        machines,
        others: repositories.into_iter().map(|one| one.name).collect(),
        deletions: on.carry_out(&ListDeletions {})?.deletions,
        stored_bytes,
        disk: trend.map(|trend| trend.disk),
        places,
        waiting,
        full_ns: trend.and_then(|trend| trend.full_ns),
        certificate: on.carry_out(&ShowCertificate {})?.problem,
        wrong_code: on.short_codes.and_then(|codes| codes.wrong(on.accounts.clock().running_ns())),
    })
}

/// The page; of nobody for who may only look.
fn page(overview: &Overview, who: Option<&SignedIn>, now_ns: i64) -> Markup {
    let said: Vec<_> = overview.machines.iter().map(|one| (one, one.sentence(now_ns))).collect();
    let worst = said.iter().map(|(_, (light, _))| *light).max();
    html! {
        p class="notice" { (worst.unwrap_or(Light::Off).markup()) " " (summary(worst)) }
        @if let Some(problem) = &overview.certificate {
            p class="notice look" { "The certificate for browsers could not be renewed: " (name(problem)) }
        }
        @for waits in &overview.waiting {
            p class="notice look" { (name(waits)) }
        }
        @for place in overview.places.iter().filter(|place| !place.is_there) {
            p class="notice bad" { "The disk of the storage place " (name(&place.name)) " is not there: mount it at " (name(&place.folder)) "." }
        }
        @if let (Some((_, wrong)), Some(_)) = (&overview.wrong_code, who) {
            p class="notice look" { "Within the last day, " (name(wrong)) "." }
        }
        (facts(overview, now_ns))
        h2 { "Machines" }
        @if overview.machines.is_empty() {
            @match who {
                Some(_) => (to_begin()),
                None => p { "No machine yet." }
            }
        }
        ul class="lights" {
            @for (at, (known, (light, sentence))) in said.iter().enumerate() {
                li {
                    (light.markup())
                    div {
                        @match who {
                            Some(_) => a href=(format!("/machines/{}", known.machine.id)) { (name(&known.machine.name)) },
                            None => strong { (name(&known.machine.name)) }
                        }
                        p { (name(sentence)) }
                    }
                    @if !known.snapshots.is_empty() {
                        (sparkline(&known.chart(&format!("machine-{at}"), DAYS, now_ns)))
                    }
                }
            }
        }
        @if !overview.others.is_empty() {
            h2 { "Repositories of no machine" }
            ul { @for other in &overview.others { li { (name(other)) } } }
        }
        @if let Some(who) = who {
            h2 { "Deletions that wait" }
            (waiting(&overview.deletions, who))
        }
    }
}

/// What is to be done first, and what to keep safe.
fn to_begin() -> Markup {
    html! {
        p { "No machine yet. To begin:" }
        ol {
            li { "See under " a href="/storage" { "Storage" } " whether the backups are to lie on that disk; otherwise start the server with another " code { "--data" } "." }
            li { "Let a machine in by an invite from the " a href="/settings" { "settings" } ", and back it up." }
            li { "Take the recovery kit that pairing writes out of the house. Without the machine and without the kit nobody opens its backups, this server neither." }
            li { "Keep what " code { "holdall admin backup-identity" } " writes away from here: with it a new server takes the place of this one." }
        }
    }
}

fn summary(worst: Option<Light>) -> &'static str {
    match worst {
        None => "Nothing is backed up here yet.",
        Some(Light::Off) => "No machine is backed up at present.",
        Some(Light::Good) => "All is well.",
        Some(Light::Look) => "Something needs a look.",
        Some(Light::Bad) => "Something is wrong.",
    }
}

fn facts(overview: &Overview, now_ns: i64) -> Markup {
    let left = overview.disk.map_or_else(|| "unknown".to_owned(), |disk| size(disk.free_bytes));
    html! {
        dl class="facts" {
            div { dt { "Stored" } dd { (size(overview.stored_bytes)) } }
            div { dt { "Left on the disk" } dd { (left) } }
            @if let Some(full_ns) = overview.full_ns { div { dt { "Full" } dd { (full_in(full_ns, now_ns)) } } }
            div { dt { "Machines" } dd { (overview.machines.len()) } }
            div { dt { "Waiting" } dd { (counted(overview.deletions.len() as u64, "deletion")) } }
        }
    }
}
