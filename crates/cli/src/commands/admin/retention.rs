//! `holdall admin retention`.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use holdall_format::TagToken;
use holdall_repository::retention::{ALL, Policy};
use holdall_server::admin::{
    Judge, JudgedEntry, Keeping, KeepingEntry, ListKeeping, SetKeeping, WantedKeeping,
};
use serde::Serialize;

use super::{ask, date_of};
use crate::app::App;
use crate::arguments::keep_rules::{KeepRules, nanoseconds, parse_duration};
use crate::exit::{Exit, Refusal};
use crate::terminal::output::{count, counted, local_time, rfc3339};

/// Shows or sets which snapshots repositories keep
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall admin retention              (of all repositories)
         holdall admin retention --default --keep-daily 14 --keep-monthly all
         holdall admin retention laptop --keep-daily 14 --keep-monthly all
         holdall admin retention laptop --lock 90d --delay 30d
         holdall admin retention laptop --keep-daily 7 -n    (what that would keep)
         holdall admin retention laptop --keep-tag 0f1e2d3c4b5a69788796a5b4c3d2e1f0
         holdall admin retention laptop --default     (no rules of its own any more)

Rules count for each machine and series, by the time at which a snapshot came, and copies apart from \
those, by the dates of their originals too; rules that are not named keep nothing. Without any: hourly for a day, daily for a month, weekly for ever. \
A repository without rules of its own has those of --default. Nothing goes \
that is younger than --lock (30 days), that is pinned, has a tag of --keep-tag, or is the newest of \
its series. Want of space \
deletes nothing. What keeps less than now, such as fewer days or a shorter --lock or --delay, comes into \
force when the present --delay is over; until then all stays that either keeps.

Exit codes: 0 done, 1 failed, such as for a repository that is not there, 2 wrong usage")]
pub(crate) struct Args {
    /// The repository's name; without one and without --default, all are shown
    #[arg(value_name = "REPOSITORY")]
    repository: Option<String>,
    /// Without a repository: sets the rules of all that have none of their own. With one: gives it these
    #[arg(long)]
    default: bool,
    #[command(flatten)]
    keep: KeepRules,
    /// Keeps all with the tag of this token, whatever the rules say; several times for several.
    /// `holdall tag --token TAG` tells it; '' for none any more
    #[arg(long, value_name = "TOKEN", value_parser = parse_token)]
    keep_tag: Vec<Wanted>,
    /// Lets nothing go that is younger, whatever the rules say (such as 90d, 6m, 1y; m is months)
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    lock: Option<Duration>,
    /// How long a deletion that was asked for waits (such as 7d, 1m)
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    delay: Option<Duration>,
    /// Says what these rules would keep and let go, and changes nothing
    #[arg(short = 'n', long, requires = "repository")]
    dry_run: bool,
    /// Goes back to what is usual
    #[arg(long, conflicts_with_all = ["keep", "keep_tag", "lock", "delay"])]
    usual: bool,
}

impl Args {
    /// What is wanted instead of what was said `last`; nothing if nothing was named.
    fn wanted(&self, last: Keeping) -> Option<WantedKeeping> {
        if self.usual {
            return Some(WantedKeeping::Rules(Keeping::USUAL));
        }
        if self.default && self.repository.is_some() {
            return Some(WantedKeeping::Default);
        }
        let rules = self.keep.policy();
        if !self.says_rules() {
            return None;
        }
        let wanted = || self.keep_tag.iter().filter_map(|wanted| wanted.0).collect();
        let tags = if self.keep_tag.is_empty() { last.tags } else { wanted() };
        let policy = if rules.is_empty() { last.policy } else { rules };
        let lock_ns = self.lock.map_or(last.policy.lock_ns, nanoseconds);
        let delay_ns = self.delay.map_or(last.delay_ns, nanoseconds);
        let keeping = Keeping { policy: Policy { lock_ns, ..policy }, tags, delay_ns };
        Some(WantedKeeping::Rules(keeping))
    }

    /// Whether any rule is named.
    fn says_rules(&self) -> bool {
        let keeps = !self.keep.policy().is_empty() || !self.keep_tag.is_empty();
        keeps || self.lock.is_some() || self.delay.is_some()
    }

    /// Checks that it is clear what rules are for.
    fn check(&self) -> Result<(), Refusal> {
        let sets = self.says_rules() || self.usual;
        let (message, hint) = match (&self.repository, self.default) {
            (None, false) if sets => (
                "rules of which repository?",
                "name one, or say --default for all that have no rules of their own",
            ),
            (Some(_), true) if sets => (
                "--default gives a repository the rules of all others, so none can be named",
                "leave --default out to give it its own; leave the repository out to change the default",
            ),
            _ if self.keep.keep_nothing() => (
                "the rules that are named keep nothing",
                "to keep the newest snapshot alone, say --keep-last 1",
            ),
            _ => return Ok(()),
        };
        Err(Refusal::new(Exit::Usage, message).hint(hint))
    }
}

/// A token, or nothing for none any more.
#[derive(Debug, Clone, Copy)]
struct Wanted(Option<TagToken>);

fn parse_token(text: &str) -> Result<Wanted, String> {
    if text.is_empty() {
        return Ok(Wanted(None));
    }
    let refused =
        |_| "it is 32 hexadecimal digits, which `holdall tag --token TAG` tells".to_owned();
    text.parse().map(|token| Wanted(Some(token))).map_err(refused)
}

pub(crate) fn run(args: &Args, data: &Path, app: &App) -> Result<Exit> {
    args.check()?;
    if args.repository.is_none() && !args.default {
        let keepings = ask(data, &ListKeeping {})?.keepings;
        keepings.iter().try_for_each(|entry| show(app, entry))?;
        return Ok(Exit::Done);
    }
    let keeping = |wanted| ask(data, &SetKeeping { repository: args.repository.clone(), wanted });
    let before = keeping(None)?;
    // What is not said stays as it was said last, whether or not that is in force yet.
    let last = before.then.as_ref().map_or(&before.now, |(then, _)| then).clone();
    let wanted = args.wanted(last);
    if let (true, Some(repository)) = (args.dry_run, &args.repository) {
        return tell_judged(app, data, repository, wanted);
    }
    let entry = match wanted {
        Some(wanted) => keeping(Some(wanted))?,
        None => before,
    };
    show(app, &entry)?;
    Ok(Exit::Done)
}

/// Tells what rules would keep.
fn tell_judged(
    app: &App,
    data: &Path,
    repository: &str,
    wanted: Option<WantedKeeping>,
) -> Result<Exit> {
    let rules = match wanted {
        None => None,
        Some(WantedKeeping::Rules(rules)) => Some(rules),
        Some(WantedKeeping::Default) => {
            Some(ask(data, &SetKeeping { repository: None, wanted: None })?.now)
        }
    };
    let snapshots = ask(data, &Judge { repository: repository.to_owned(), rules })?.snapshots;
    for JudgedEntry { snapshot, reasons } in &snapshots {
        let object = JsonJudged {
            repository,
            snapshot: &snapshot.id,
            received: rfc3339(snapshot.received_ns),
            reasons,
        };
        app.output.object("judged", &object)?;
        let id = snapshot.id.get(..10).unwrap_or(&snapshot.id);
        let why = if reasons.is_empty() { "goes".to_owned() } else { reasons.join(", ") };
        app.output.result(format_args!("{id}  {}  {why}", date_of(snapshot)))?;
    }
    let kept = snapshots.iter().filter(|one| !one.reasons.is_empty()).count();
    let of = counted(snapshots.len() as u64, "snapshot");
    app.output.say(format_args!("{} of {of} would be kept", count(kept as u64)))?;
    Ok(Exit::Done)
}

#[derive(Serialize)]
struct JsonJudged<'a> {
    repository: &'a str,
    snapshot: &'a str,
    received: String,
    reasons: &'a [String],
}

fn show(app: &App, entry: &KeepingEntry) -> Result<()> {
    #[derive(Serialize)]
    struct JsonRetention<'a> {
        repository: Option<&'a str>,
        default: bool,
        #[serde(flatten)]
        now: JsonKeeping,
        then: Option<JsonKeeping>,
        then_from: Option<String>,
    }
    let object = JsonRetention {
        repository: entry.repository.as_deref(),
        default: entry.is_default,
        now: JsonKeeping::of(&entry.now),
        then: entry.then.as_ref().map(|(then, _)| JsonKeeping::of(then)),
        then_from: entry.then.as_ref().map(|(_, from_ns)| rfc3339(*from_ns)),
    };
    app.output.object("retention", &object)?;
    let who = entry.repository.as_deref().unwrap_or("a repository without its own rules");
    let whose = if entry.repository.is_some() && entry.is_default { " (the default)" } else { "" };
    let now = &entry.now;
    let Some((then, from_ns)) = &entry.then else {
        return Ok(app.output.result(format_args!("{who} keeps {now}{whose}"))?);
    };
    let until = local_time(*from_ns);
    app.output.result(format_args!("{who} keeps, until {until}: {now}{whose}"))?;
    Ok(app.output.result(format_args!("{who} keeps from then on: {then}"))?)
}

/// What is kept, as programs see it: counts, of which -1 is all there are.
#[derive(Debug, Serialize)]
struct JsonKeeping {
    last: i64,
    hourly: i64,
    daily: i64,
    weekly: i64,
    monthly: i64,
    yearly: i64,
    within_seconds: Option<i64>,
    tag_tokens: Vec<String>,
    lock_seconds: i64,
    delay_seconds: i64,
}

impl JsonKeeping {
    fn of(keeping: &Keeping) -> Self {
        const SECOND_NS: i64 = 1_000_000_000;
        let count = |count: u32| if count == ALL { -1 } else { i64::from(count) };
        let policy = &keeping.policy;
        Self {
            last: count(policy.last),
            hourly: count(policy.hourly),
            daily: count(policy.daily),
            weekly: count(policy.weekly),
            monthly: count(policy.monthly),
            yearly: count(policy.yearly),
            within_seconds: policy.within_ns.map(|within_ns| within_ns / SECOND_NS),
            tag_tokens: keeping.tags.iter().map(ToString::to_string).collect(),
            lock_seconds: policy.lock_ns / SECOND_NS,
            delay_seconds: keeping.delay_ns / SECOND_NS,
        }
    }
}
