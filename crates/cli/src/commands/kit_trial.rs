//! `holdall key try-kit`: whether a recovery kit still brings everything back; and when that was seen last.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use holdall_diagnosis::runs::{RunEnd, RunKind, ago};
use holdall_state::{KnownRuns, RunGoingOn};
use holdall_sys::{Clock, SystemClock};
use serde::Serialize;

use super::pair::{by_kit, kit_file};
use crate::app::App;
use crate::lab::remembered;
use crate::opening::open::{self, Patience};
use crate::terminal::output::{counted, local_time};

/// A kit is to be tried once in so long.
const TRIED_FOR_S: u64 = 366 * 86_400;
/// How it is tried.
const HOW: &str = "`holdall key try-kit FILE`";

/// Opens the repository with nothing but the kit, and lists its snapshots.
///
/// # Errors
/// What keeps the kit from opening it.
pub(crate) fn try_out(app: &App, file: &Path) -> Result<()> {
    #[derive(Serialize)]
    struct Summary<'a> {
        place: &'a str,
        snapshots: usize,
        newest: Option<String>,
        has_all_keys: bool,
    }
    let kit = kit_file::read(file)?;
    let (place, to, name) = match by_kit::server_of(app, &kit)? {
        Some(address) => {
            let (name, signing) = (address.to_string(), Arc::new(kit.secret.signing_key()));
            let place = open::place_at(app, address, signing, Patience::default());
            let place = place.map_err(|error| open::hint_at_kit(error, false))?;
            (place, Some(kit.repository.to_string()), name)
        }
        None => {
            let opened = by_kit::directory_of(app)?;
            (opened.place, remembered::place(app), opened.name)
        }
    };
    let wrappings = place.wrappings().map_err(|error| open::hint_at_kit(error.into(), false))?;
    let ring = kit.open(&wrappings)?;
    let has_all_keys = kit.has_keys_of(&ring);
    let snapshots = holdall_engine::snapshots(&place.open(&ring)?)?.snapshots;
    let newest = snapshots.iter().map(|snapshot| snapshot.received_ns).max();
    if let Some(to) = to {
        note(app, to, &name);
    }
    let summary = Summary {
        place: &name,
        snapshots: snapshots.len(),
        newest: newest.map(crate::terminal::output::rfc3339),
        has_all_keys,
    };
    app.output.object("summary", &summary)?;
    let newest = newest.map(|at_ns| format!(", the newest of {}", local_time(at_ns)));
    let newest = newest.unwrap_or_default();
    let count = counted(snapshots.len() as u64, "snapshot");
    app.output.say(format_args!("this kit opens {name}: {count}{newest}"))?;
    if !has_all_keys {
        app.output.note(
            "it was made before the keys were rotated, so it opens new snapshots only as long as the repository has its \
             keys: print a new one with `holdall key add --recovery-kit FILE`",
        );
    }
    Ok(())
}

/// Notes that the kit was tried; without that, status knows less.
fn note(app: &App, to: String, name: &str) {
    let going_on =
        RunGoingOn::start(&app.folders.state, RunKind::KitTrial, to, name.to_owned(), &[]);
    if let Some(going_on) = going_on {
        going_on.end(RunEnd::default());
    }
}

/// When the kit of a repository was tried on this computer last, in nanoseconds since 1970 UTC.
pub(crate) fn last_tried_ns(known: &KnownRuns, to: &str) -> Option<i64> {
    known.runs.to(to, RunKind::KitTrial).next().map(|(_, note)| note.started_ns)
}

/// When the kit was tried, and whether that is to be done again.
pub(crate) fn in_words(tried_ns: Option<i64>, now_ns: i64) -> String {
    let Some(tried_ns) = tried_ns else { return format!("never tried on this computer: {HOW}") };
    let seconds = age_s(tried_ns, now_ns);
    let again =
        if seconds > TRIED_FOR_S { format!(": try it again, {HOW}") } else { String::new() };
    format!("tried {}, {}{again}", local_time(tried_ns), ago(seconds))
}

/// Reminds a person at a terminal of a kit that was not tried for long.
pub(crate) fn remind(app: &App) {
    let Some(to) = remembered::place(app).filter(|_| app.output.is_for_a_person()) else { return };
    let (tried_ns, now_ns) =
        (last_tried_ns(&KnownRuns::in_state(&app.folders.state), &to), SystemClock.now_ns());
    if tried_ns.is_none_or(|tried_ns| age_s(tried_ns, now_ns) > TRIED_FOR_S) {
        app.output.note(format_args!("note: the recovery kit: {}", in_words(tried_ns, now_ns)));
    }
}

fn age_s(then_ns: i64, now_ns: i64) -> u64 {
    u64::try_from(now_ns.saturating_sub(then_ns) / 1_000_000_000).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kit_is_to_be_tried_again_after_a_year() {
        let at_ns = |days: i64| days * 86_400_000_000_000;
        assert!(in_words(None, at_ns(1)).contains(HOW));
        assert!(!in_words(Some(at_ns(1)), at_ns(366)).contains(HOW));
        assert!(in_words(Some(at_ns(1)), at_ns(368)).contains(HOW));
        assert!(!in_words(Some(at_ns(2)), at_ns(1)).contains(HOW));
    }
}
