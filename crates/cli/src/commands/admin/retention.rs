//! `holdall admin retention`.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use holdall_format::TagToken;
use holdall_repository::retention::{ALL, Policy};
use holdall_server::admin::{Keeping, KeepingEntry, ListKeeping, SetKeeping, WantedKeeping};
use serde::Serialize;

use super::ask;
use crate::app::App;
use crate::arguments::keep_rules::{KeepRules, nanoseconds, parse_duration};
use crate::exit::{Exit, Refusal};
use crate::terminal::output::{local_time, rfc3339};

/// Shows or sets which snapshots repositories keep
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall admin retention              (of all repositories)
         holdall admin retention --default --keep-daily 14 --keep-monthly all
         holdall admin retention laptop --keep-daily 14 --keep-monthly all
         holdall admin retention laptop --lock 90d --delay 30d
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
    let entry = match args.wanted(last) {
        Some(wanted) => keeping(Some(wanted))?,
        None => before,
    };
    show(app, &entry)?;
    Ok(Exit::Done)
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
    let now = words(&entry.now);
    let Some((then, from_ns)) = &entry.then else {
        return Ok(app.output.result(format_args!("{who} keeps {now}{whose}"))?);
    };
    let until = local_time(*from_ns);
    app.output.result(format_args!("{who} keeps, until {until}: {now}{whose}"))?;
    Ok(app.output.result(format_args!("{who} keeps from then on: {}", words(then)))?)
}

fn words(keeping: &Keeping) -> String {
    let policy = &keeping.policy;
    let counted = [
        (policy.last, "last"),
        (policy.hourly, "hourly"),
        (policy.daily, "daily"),
        (policy.weekly, "weekly"),
        (policy.monthly, "monthly"),
        (policy.yearly, "yearly"),
    ];
    let word = |(count, name): (u32, &str)| match count {
        ALL => format!("all {name}"),
        count => format!("{count} {name}"),
    };
    let mut said: Vec<String> =
        counted.into_iter().filter(|(count, _)| *count > 0).map(word).collect();
    said.extend(policy.within_ns.map(|within_ns| format!("all within {}", span(within_ns))));
    if said.is_empty() {
        said.push("the newest".to_owned());
    }
    said.extend(keeping.tags.iter().map(|token| format!("all with the tag {token}")));
    let (lock, delay) = (span(policy.lock_ns), span(keeping.delay_ns));
    format!("{}; nothing goes before {lock}; a deletion waits for {delay}", said.join(", "))
}

/// A span in words, of which nothing is left out; hours alone up to two days.
fn span(ns: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    let mut left = ns / 1_000_000_000;
    let units = [(DAY, "day"), (HOUR, "hour"), (MINUTE, "minute"), (1, "second")];
    let mut said = Vec::new();
    for (unit, name) in units.into_iter().skip(usize::from(left < 2 * DAY)) {
        match left / unit {
            0 => {}
            1 => said.push(format!("1 {name}")),
            count => said.push(format!("{count} {name}s")),
        }
        left %= unit;
    }
    if said.is_empty() { "0 hours".to_owned() } else { said.join(" ") }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_span_is_left_out() {
        let said = |seconds: i64| span(seconds * 1_000_000_000);
        assert_eq!(said(0), "0 hours");
        assert_eq!(said(360), "6 minutes");
        assert_eq!(said(3600), "1 hour");
        assert_eq!(said(47 * 3600), "47 hours");
        assert_eq!(said(30 * 86_400), "30 days");
        assert_eq!(said(184 * 86_400 + 3600 + 61), "184 days 1 hour 1 minute 1 second");
    }
}
