//! `holdall status`: whether there is a good backup, and if not, why.
//!
//! It is for a bad day: it shows what this computer knows by itself, though files are damaged or the server is away, and
//! says what is not known.

pub(super) mod schedule;
mod server;
mod told;

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use holdall_diagnosis::runs::{RunKind, RunNote, is_past};
use holdall_state::{KnownRuns, Receipts, run_goes_on};
use holdall_sys::{Clock, SystemClock};

use super::kit_trial;
use crate::app::App;
use crate::exit::{Exit, Refusal};
use crate::lab::remembered;
use crate::opening::connection::parse_age;
use crate::opening::open::{self, Where};
use crate::terminal::output::local_time;
use schedule::NextRun;
use server::Seen;

/// Tells when the last good backup was, and what failed since
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples: holdall status
          holdall status --fail-if-older 3d     (4 if the last good backup is older, for scripts and monitoring)

A good backup is one that made a snapshot and met no damage; a copy or an import is none. If something could not be read, this says so. A run that \
was killed is shown as one that did not end.

If the repository does not answer within a few seconds, this shows what this computer noted of its own runs. \
`holdall snapshots` lists backups of other computers.

Exit codes: 0 done, whatever there was to tell, 2 wrong usage, or no repository is known, 4 the last good backup is older than \
--fail-if-older allows, or there is none, 130 interrupted")]
pub(crate) struct Args {
    /// Ends with 4 if the last good backup is older than that (such as 36h, 3d)
    #[arg(long, value_name = "AGE", value_parser = parse_age)]
    fail_if_older: Option<Duration>,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    let status = Status::of(app)?;
    let is_too_old = args
        .fail_if_older
        .is_some_and(|most| status.age_seconds().is_none_or(|seconds| seconds > most.as_secs()));
    told::tell(app, &status, args.fail_if_older.map(|_| is_too_old))?;
    Ok(if is_too_old { Exit::BelowRate } else { Exit::Done })
}

/// A run with whether it goes on.
struct Attempt {
    note: RunNote,
    goes_on: bool,
}

impl Attempt {
    fn failed(&self) -> bool {
        !self.goes_on && self.note.is_failure()
    }
}

/// All that there is to tell.
struct Status {
    place: String,
    now_ns: i64,
    last_good: Option<RunNote>,
    /// What was backed up before and fails now: the newest run of those sources, and the newest good one.
    failing: Vec<(RunNote, RunNote)>,
    /// When the last snapshot was received whose receipt is kept; told where no note says more.
    last_receipt_ns: Option<i64>,
    last_attempt: Option<Attempt>,
    last_failure: Option<Attempt>,
    last_check: Option<Attempt>,
    /// When the recovery kit was tried last, in nanoseconds since 1970 UTC.
    kit_tried_ns: Option<i64>,
    next_run: Option<NextRun>,
    seen: Seen,
    /// What of this computer's own notes cannot be read, a sentence each.
    unreadable: Vec<String>,
}

impl Status {
    fn of(app: &App) -> Result<Self> {
        let mut unreadable: Vec<_> =
            app.damaged_settings().map(str::to_owned).into_iter().collect();
        if let Err(error) = app.pairings() {
            unreadable.push(format!("{error:#}"));
        }
        let known = KnownRuns::in_state(&app.folders.state);
        let named = app.named_repository().map(Where::parse).transpose()?;
        let is_known = named.is_none() || remembered::place(app).is_some();
        let is_noted = |to: &str| known.runs.to(to, RunKind::Backup).next().is_some();
        let place = remembered::noted_place(app).filter(|(to, _)| is_known || is_noted(to));
        let Some((to, place)) = place else {
            return Err(unknown_place(app, unreadable).into());
        };
        // Asked while the rest is read.
        let asked = server::ask(app);
        let now_ns = SystemClock.now_ns();
        unreadable.extend(unreadable_notes(app, &known));
        let attempt = |(_, note): (&str, &RunNote)| Attempt {
            note: note.clone(),
            goes_on: run_goes_on(note),
        };
        let newest = |kind| known.runs.to(&to, kind).next().map(attempt);
        let last_failure = known.runs.to(&to, RunKind::Backup).map(attempt).find(Attempt::failed);
        let last_receipt_ns = last_receipt_ns(app, &to, now_ns).unwrap_or_else(|reason| {
            unreadable.push(reason);
            None
        });
        let failing = known.runs.failing(&to, now_ns).into_iter();
        Ok(Self {
            failing: failing.map(|(failed, good)| (failed.clone(), good.clone())).collect(),
            last_good: known.runs.last_good(&to, now_ns).cloned(),
            last_receipt_ns,
            last_attempt: newest(RunKind::Backup),
            last_failure,
            last_check: newest(RunKind::Check),
            kit_tried_ns: kit_trial::last_tried_ns(&known, &to),
            next_run: schedule::next_run(app),
            seen: asked.answer(),
            place,
            now_ns,
            unreadable,
        })
    }

    /// When the last good backup ended.
    fn last_good_ns(&self) -> Option<i64> {
        self.last_good.as_ref().map(RunNote::last_ns).or(self.last_receipt_ns)
    }

    /// How old the last good backup is: of what fails now, if anything does.
    fn age_seconds(&self) -> Option<u64> {
        let failing = self.failing.iter().map(|(_, good)| good.last_ns());
        let oldest_ns = failing.chain(self.last_good_ns()).min();
        oldest_ns.map(|last_ns| self.seconds_since(last_ns))
    }

    fn seconds_since(&self, then_ns: i64) -> u64 {
        u64::try_from(self.now_ns.saturating_sub(then_ns) / 1_000_000_000).unwrap_or(0)
    }
}

/// What of the notes of runs cannot be read, a sentence each.
fn unreadable_notes(app: &App, known: &KnownRuns) -> Vec<String> {
    let folder = app.folders.state.join("runs");
    let damaged = (known.unreadable > 0)
        .then(|| format!("{} notes in {} are damaged", known.unreadable, folder.display()));
    let unlisted = known.unlisted.as_ref();
    let unlisted =
        unlisted.map(|error| format!("{error:#}; move it away, and runs are noted again"));
    damaged.into_iter().chain(unlisted).collect()
}

/// When the last snapshot was received whose receipt is kept, or why that is not known.
fn last_receipt_ns(app: &App, to: &str, now_ns: i64) -> Result<Option<i64>, String> {
    let folder = Path::new(to);
    let repository = match folder.is_absolute() {
        true => open::last_opened(app, folder),
        false => Some(to.to_owned()),
    };
    let Some(repository) = repository else { return Ok(None) };
    let receipts = Receipts::in_state(&app.folders.state);
    let received =
        receipts.newest_received_ns(&repository).map_err(|error| format!("{error:#}"))?;
    match received {
        Some(received_ns) if !is_past(received_ns, now_ns) => Err(format!(
            "the newest receipt is of {}, which is later than now: a clock is or was wrong",
            local_time(received_ns)
        )),
        received => Ok(received),
    }
}

/// Where backups go that name no place.
fn usual_place(app: &App) -> Option<String> {
    Some(remembered::address_of(app.pairings().ok()?.default()?))
}

/// The refusal where it is not known of which repository to tell, with why.
fn unknown_place(app: &App, unreadable: Vec<String>) -> Refusal {
    match (app.named_repository(), unreadable.into_iter().next()) {
        (Some(named), None) => {
            let usual = match usual_place(app) {
                Some(usual) => format!("leave -r out for {usual}, where backups go; "),
                None => String::new(),
            };
            Refusal::new(Exit::Usage, format!("this computer knows no repository at {named}"))
                .hint(format!(
                    "{usual}if a server that it knows has moved there, `holdall snapshots -r {named}` finds it; \
                     `holdall pair` is for a new one"
                ))
        }
        (_, Some(reason)) => Refusal::new(Exit::Usage, reason)
            .hint("put back a copy of it, or name the repository with -r"),
        (None, None) => Refusal::new(
            Exit::Usage,
            "which repository? None was named, and this machine is not paired",
        )
        .hint("name one with -r, or pair this machine with a server: `holdall pair`"),
    }
}
