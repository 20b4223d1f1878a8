//! A file first: what it is here, and every version of it that a snapshot has.

use holdall_engine::{ChangeKind, Content, Entry, EntryKind, Run, Snapshot, Version};
use holdall_format::OneLine;
use holdall_meter::size;
use holdall_pages::name;
use maud::{Markup, html};

use super::{above, address, preview, restoring, shown, word};
use crate::problem::Problem;
use crate::shared::{Listing, Shared};
use crate::{names, times};

pub(crate) fn page(
    shared: &Shared,
    listing: &Listing,
    snapshot: &Snapshot,
    path: &[u8],
    entry: &Entry,
    run: &Run,
) -> Result<Markup, Problem> {
    let all: Vec<_> = listing.snapshots().iter().filter(|one| one.holds(path)).collect();
    let versions = shared.viewer()?.history(&all, path, run)?;
    let unread = run.take_problems();
    let is_file = entry.kind == EntryKind::File;
    Ok(html! {
        (above(snapshot, path))
        (shared.wrong.of(&address("at", snapshot, path)))
        (facts(snapshot, entry))
        @if is_file {
            p { a href=(address("get", snapshot, path)) { "Download" } }
            (preview::of(shared, snapshot, path, entry)?)
        }
        h2 { "Versions" }
        @for problem in &unread {
            p class="notice bad" { (OneLine(&problem.reason).to_string()) ". `holdall check` says more." }
        }
        (list(snapshot, path, &versions))
        form method="post" action="/restore" {
            input type="hidden" name="token" value=(shared.door.form());
            input type="hidden" name="snapshot" value=(snapshot.id);
            input type="hidden" name="item" value=(names::encode(path));
            (restoring())
        }
    })
}

fn facts(snapshot: &Snapshot, entry: &Entry) -> Markup {
    let target = match (&entry.kind, &entry.content) {
        (EntryKind::Symlink, Content::Inline(target)) => Some(target),
        _ => None,
    };
    html! {
        dl class="facts" {
            @if entry.kind == EntryKind::File { div { dt { "Size" } dd { (size(entry.size)) } } }
            @else { div { dt { "Kind" } dd { (word(entry.kind)) } } }
            @if let Some(target) = target { div { dt { "Leads to" } dd { (shown(target)) } } }
            div { dt { "Modified" } dd { (times::modified(entry.mtime)) } }
            div { dt { "Snapshot" } dd { (times::local(snapshot.taken_ns())) } }
            div { dt { "Host" } dd { (name(&snapshot.secret.host)) } }
        }
    }
}

/// Every version with its size and date; two of them can be compared.
fn list(snapshot: &Snapshot, path: &[u8], versions: &[Version<'_>]) -> Markup {
    // Which version this snapshot has: the newest that is not younger.
    let is_here = |one: &Version<'_>| {
        one.snapshot.machine == snapshot.machine && one.snapshot.taken_ns() <= snapshot.taken_ns()
    };
    let here = versions.iter().position(is_here);
    html! {
        form class="wide" method="get" action=(address("diff", snapshot, path)) {
            table {
                thead { tr { th { "Since" } th { "Host" } th class="n" { "Size" } th { "Modified" } th { "" } th { "Compare" } } }
                tbody {
                    @for (number, version) in versions.iter().enumerate() {
                        (row(path, version, number, here == Some(number)))
                    }
                }
            }
            @if versions.iter().filter(|one| is_text_like(one)).count() > 1 { button class="quiet" { "Compare" } }
        }
    }
}

fn is_text_like(version: &Version<'_>) -> bool {
    version.entry.as_ref().is_some_and(|entry| entry.kind == EntryKind::File)
}

fn row(path: &[u8], version: &Version<'_>, number: usize, is_here: bool) -> Markup {
    let one = version.snapshot;
    let id = one.id.to_string();
    let taken = times::local(one.taken_ns());
    html! {
        tr {
            td {
                @if version.entry.is_some() { a href=(address("at", one, path)) { (taken) } } @else { (taken) }
                @if is_here { " (shown)" }
            }
            td { (name(&one.secret.host)) }
            @match &version.entry {
                Some(entry) => {
                    td class="n" { @if entry.kind == EntryKind::File { (size(entry.size)) } @else { (word(entry.kind)) } }
                    td { (times::modified(entry.mtime)) }
                }
                None => { td { } td { } }
            }
            td { (change(version.change.kind)) }
            td {
                @if is_text_like(version) {
                    input type="radio" name="old" value=(id) checked[number == 1] aria-label=(format!("Compare from {taken}"));
                    input type="radio" name="new" value=(id) checked[number == 0] aria-label=(format!("Compare to {taken}"));
                }
            }
        }
    }
}

fn change(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Added => "created",
        ChangeKind::Removed => "removed",
        ChangeKind::Type => "of another kind",
        ChangeKind::Content => "changed",
        ChangeKind::Metadata => "times or rights changed",
    }
}
