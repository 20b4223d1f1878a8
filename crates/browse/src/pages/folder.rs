//! A folder: what is in it, to be opened, taken away, or ticked and restored.

use holdall_engine::{Entry, ListedEntry, Run, Snapshot};
use holdall_format::Shown;
use holdall_meter::{count, size};
use maud::{Markup, html};

use super::{above, address, restoring, shown, word};
use crate::problem::Problem;
use crate::shared::{Listing, Shared};
use crate::{names, times};

/// Entries on a page.
const LISTED: usize = 1000;
/// Other snapshots that are named.
const OTHERS_NAMED: usize = 50;

/// One line of the list.
struct Line {
    path: Vec<u8>,
    entry: Entry,
}

pub(crate) fn page(
    shared: &Shared,
    listing: &Listing,
    snapshot: &Snapshot,
    path: &[u8],
    query: &str,
    run: &Run,
) -> Result<Markup, Problem> {
    let fields = names::fields(query);
    let skipped = names::field(&fields, "skip").and_then(|text| std::str::from_utf8(text).ok());
    let skipped: usize = skipped.and_then(|text| text.parse().ok()).unwrap_or_default();
    let (mut lines, mut number) = (Vec::new(), 0);
    let mut add = |listed: ListedEntry<'_>| {
        if number >= skipped && lines.len() < LISTED {
            // What is large of an entry is not shown.
            let entry =
                Entry { attributes: Default::default(), extents: None, ..listed.entry.clone() };
            lines.push(Line { path: listed.path.to_vec(), entry });
        }
        number += 1;
        Ok(())
    };
    shared.viewer()?.list(snapshot, path, false, run, &mut add)?;
    let left = number.saturating_sub(skipped.saturating_add(lines.len()));
    let more = format!("{}?skip={}", address("at", snapshot, path), skipped + lines.len());
    Ok(html! {
        (above(snapshot, path))
        (shared.wrong.of(&address("at", snapshot, path)))
        p {
            (times::local(snapshot.taken_ns())) ", " (holdall_pages::name(&snapshot.secret.host)) " \u{b7} "
            a href=(address("tar", snapshot, path)) { "Download as tar" } " \u{b7} "
            a href=(address("zip", snapshot, path)) { "as zip" }
        }
        p class="faint" {
            "A zip has no devices, pipes, sockets, and no links to what is no text; it lists those in NOT-IN-THIS-ZIP.txt."
        }
        (others(listing, snapshot, path))
        form class="wide" method="post" action="/restore" {
            input type="hidden" name="token" value=(shared.door.form());
            input type="hidden" name="snapshot" value=(snapshot.id);
            table {
                thead { tr { th { } th { "Name" } th { "" } th class="n" { "Size" } th { "Modified" } } }
                tbody { @for line in &lines { (row(snapshot, line)) } }
            }
            @if left > 0 { p { a href=(more) { (count(left as u64)) " more" } } }
            @if lines.is_empty() { p { "Nothing is in it." } } @else { (restoring()) }
        }
    })
}

fn row(snapshot: &Snapshot, line: &Line) -> Markup {
    let Line { path, entry } = line;
    let last = names::last(path);
    let label = format!("Tick {}", Shown(last));
    let is_dir = entry.kind == holdall_engine::EntryKind::Directory;
    html! {
        tr {
            td { input type="checkbox" name="item" value=(names::encode(path)) aria-label=(label); }
            td { a href=(address("at", snapshot, path)) { (shown(last)) @if is_dir { "/" } } }
            td { (word(entry.kind)) }
            td class="n" { @if !is_dir { (size(entry.size)) } }
            td { (times::modified(entry.mtime)) }
        }
    }
}

/// The same folder at other times.
fn others(listing: &Listing, snapshot: &Snapshot, path: &[u8]) -> Markup {
    let others = listing.snapshots().iter().rev().filter(|one| one.holds(path));
    html! {
        details {
            summary { "At other times" }
            ul {
                @for one in others.filter(|one| one.id != snapshot.id).take(OTHERS_NAMED) {
                    li {
                        a href=(address("at", one, path)) { (times::local(one.taken_ns())) } ", "
                        (holdall_pages::name(&one.secret.host))
                    }
                }
            }
        }
    }
}
