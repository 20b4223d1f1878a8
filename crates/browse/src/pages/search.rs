//! Looking for names in all snapshots at once: each path that is found, with the newest snapshot that has it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use holdall_engine::{EngineError, Entry, EntryKind, FoundEntry, Patterns, Run, Snapshot, Time};
use holdall_format::Shown;
use holdall_meter::size;
use holdall_pages::name;
use maud::{Markup, html};

use super::{On, address, shown, word};
use crate::problem::Problem;
use crate::shared::Shared;
use crate::{names, times};

/// Paths on the page; more are not looked for.
const FOUND_MAX: usize = 500;
/// How long it is looked.
const PATIENCE: Duration = Duration::from_secs(60);

/// A path that was found, in the newest snapshot that has it.
struct Found {
    snapshot: usize,
    kind: EntryKind,
    size: u64,
    mtime: Time,
    snapshots: u64,
}

/// What was found, and whether that is all.
struct Answer {
    /// What could not be read, the first of it, and how much more.
    unread: Option<String>,
    found: BTreeMap<Vec<u8>, Found>,
    is_all: bool,
}

/// The field to search by.
pub(crate) fn form(text: &str) -> Markup {
    html! {
        form method="get" action="/search" {
            label for="q" { "A name, or a part of one, in all snapshots" }
            input id="q" name="q" type="search" value=(text) autocomplete="off" spellcheck="false" maxlength="1000" required;
            p class="faint" {
                code { "*" } " stands for anything, " code { "?" } " for one character, " code { "[ab]" } " for one of these."
            }
            button class="quiet" { "Search" }
        }
    }
}

pub(crate) async fn show(State(shared): On, uri: Uri) -> Result<Response, Problem> {
    let fields = names::fields(uri.query().unwrap_or_default());
    let wanted = names::field(&fields, "q").unwrap_or_default().to_vec();
    let text = String::from_utf8_lossy(&wanted).into_owned();
    if wanted.is_empty() {
        return Ok(shared.page("Search", &form("")));
    }
    let is_literal = names::field(&fields, "as") == Some(b"text");
    let (pattern, meant) = meant_by(&wanted, is_literal)?;
    let results =
        Arc::clone(&shared).ask(move |shared, run| results(shared, &pattern, run)).await?;
    let as_text = format!("/search?q={}&as=text", names::encode(&wanted));
    let content = html! {
        (form(&text))
        @match meant {
            Meant::Part => {}
            Meant::Pattern => {
                p class="faint" { "That is taken for a pattern. " a href=(as_text) { "Look for it as it is written" } }
            }
            Meant::NoPattern => { p class="faint" { "That is no pattern: it is looked for as it is written." } }
        }
        (results)
    };
    Ok(shared.page("Search", &content))
}

/// How a text was understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meant {
    /// As a part of a name.
    Part,
    Pattern,
    /// As a part of a name, though it has a `*`, `?` or `[`.
    NoPattern,
}

/// What a text looks for. With a `*`, `?` or `[` it is a pattern, unless it is none or shall be none; with a slash, a path.
fn meant_by(text: &[u8], is_literal: bool) -> Result<(Patterns, Meant), Problem> {
    let is_pattern = !is_literal && text.iter().any(|byte| b"*?[".contains(byte));
    let pattern = is_pattern.then(|| pattern_of(text)).flatten();
    if let Some(pattern) = pattern {
        return Ok((pattern, Meant::Pattern));
    }
    let literal = text.iter().flat_map(|byte| match byte {
        b'*' | b'?' | b'[' | b']' | b'\\' | b'!' | b'#' | b' ' => vec![b'\\', *byte],
        _ => vec![*byte],
    });
    let literal: Vec<u8> = literal.collect();
    let part = match text.contains(&b'/') {
        true => literal,
        false => [b"*", &literal[..], b"*"].concat(),
    };
    let meant = if is_pattern { Meant::NoPattern } else { Meant::Part };
    let pattern = pattern_of(&part).ok_or_else(|| Problem::wrong("There is no name in it."))?;
    Ok((pattern, meant))
}

fn pattern_of(text: &[u8]) -> Option<Patterns> {
    let mut patterns = Patterns::below(b"/");
    patterns.add(text, true).ok()?;
    (!patterns.is_empty()).then_some(patterns)
}

fn results(shared: &Shared, pattern: &Patterns, run: &Run) -> Result<Markup, Problem> {
    let listing = shared.listing()?;
    let newest_first: Vec<&Snapshot> = listing.snapshots().iter().rev().collect();
    let Answer { found, is_all, unread } = look(shared, &newest_first, pattern, run)?;
    Ok(html! {
        @if found.is_empty() { p { "Nothing has such a name." } }
        @if let Some(unread) = unread { p class="notice bad" { "Not all could be read: " (name(&unread)) ". `holdall check` says more." } }
        @if !is_all { p class="notice look" { "There may be more: search for a longer name." } }
        div class="wide" {
            table {
                thead { tr { th { "Path" } th { "" } th class="n" { "Size" } th { "Modified" } th class="n" { "Snapshots" } } }
                tbody {
                    @for (path, one) in &found {
                        @if let Some(snapshot) = newest_first.get(one.snapshot) {
                            tr {
                                td { a href=(address("at", snapshot, path)) { (shown(path)) } }
                                td { (word(one.kind)) }
                                td class="n" { @if one.kind != EntryKind::Directory { (size(one.size)) } }
                                td { (times::modified(one.mtime)) }
                                td class="n" { (one.snapshots) }
                            }
                        }
                    }
                }
            }
        }
    })
}

fn look(
    shared: &Shared,
    newest_first: &[&Snapshot],
    pattern: &Patterns,
    run: &Run,
) -> Result<Answer, EngineError> {
    let (started, mut found, mut is_all) = (Instant::now(), BTreeMap::new(), true);
    let is_late = || started.elapsed() > PATIENCE;
    let wanted = |path: &[u8], entry: &Entry| {
        if is_late() {
            // Ends the walk at the next entry.
            run.stop();
        }
        pattern.says(path, entry.kind == EntryKind::Directory) == Some(true)
    };
    let number_of = |snapshot: &Snapshot| newest_first.iter().position(|one| one.id == snapshot.id);
    let mut add = |snapshot: &Snapshot, one: FoundEntry<'_>| {
        if let Some(known) = found.get_mut(one.path) {
            let known: &mut Found = known;
            known.snapshots += 1;
        } else if found.len() < FOUND_MAX {
            let FoundEntry { kind, size, mtime, .. } = one;
            let snapshot = number_of(snapshot).unwrap_or_default();
            found.insert(one.path.to_vec(), Found { snapshot, kind, size, mtime, snapshots: 1 });
        } else {
            is_all = false;
        }
        Ok(())
    };
    match shared.viewer()?.find(newest_first, &wanted, run, &mut add) {
        Err(EngineError::Interrupted) if is_late() => is_all = false,
        looked => looked?,
    }
    let problems = run.take_problems();
    let more = problems.len().saturating_sub(1);
    let unread = problems.first().map(|first| {
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        format!("{}: {}{more}", Shown(&first.path), first.reason)
    });
    Ok(Answer { found, is_all, unread })
}
