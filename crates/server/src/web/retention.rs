//! What is kept of a machine's snapshots: the rules in force and to come, what other rules would keep, and a change of them.
//!
//! What would be kept is shown before anything is changed, and changing asks for the password: what is let go is gone.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use holdall_meter::{count, counted};
use holdall_pages::{form, name, number};
use holdall_repository::retention::{ALL, Policy};
use maud::{Markup, html};
use serde::Deserialize;
use zeroize::Zeroizing;

use super::entry;
use super::machine::check_id;
use super::problem::Problem;
use super::shared::Shared;
use super::visitor::{From, Sent, SignedIn};
use super::words::time;
use crate::ServerError;
use crate::admin::{
    Administration, Judge, JudgedEntry, Keeping, KeepingEntry, Pace, Rights, Scope, SetKeeping,
    WantedKeeping,
};

const DAY_NS: i64 = 24 * 3600 * 1_000_000_000;
/// Most snapshots that are listed, and most days of a lock or a delay.
const LISTED: usize = 1000;
const DAYS_MOST: i64 = 36_500;

/// Rules as a form has them: counts, or `all`; days.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Wanted {
    last: String,
    hourly: String,
    daily: String,
    weekly: String,
    monthly: String,
    yearly: String,
    lock: String,
    delay: String,
}

#[derive(Deserialize)]
pub(super) struct Change {
    password: Zeroizing<String>,
    #[serde(flatten)]
    wanted: Wanted,
}

/// What the page is made of.
struct Rules {
    machine: String,
    entry: KeepingEntry,
    /// What is asked for, if something is.
    wanted: Option<Keeping>,
    judged: Vec<JudgedEntry>,
}

pub(super) async fn show(
    State(shared): State<Arc<Shared>>,
    who: SignedIn,
    Path(id): Path<String>,
    wanted: Result<Query<Wanted>, QueryRejection>,
) -> Result<Response, Problem> {
    check_id(&id)?;
    let Query(wanted) = wanted.map_err(|_| wrong("Those are no rules."))?;
    let of = id.clone();
    let rules = shared.read(Pace::Usual, move |on| read(on, &of, &wanted)).await??;
    let content = page(&rules, &id, &who);
    Ok(who.page(&shared, &format!("What is kept of {}", rules.machine), content))
}

fn read(
    on: &Administration<'_>,
    id: &str,
    wanted: &Wanted,
) -> Result<Result<Rules, Problem>, ServerError> {
    let machine = on.carry_out(&Rights { machine: id.to_owned(), right: None })?;
    let repository = machine.repository;
    let entry = on.carry_out(&SetKeeping { repository: Some(repository.clone()), wanted: None })?;
    let wanted = match wanted.rules(&last_said(&entry)) {
        Ok(wanted) => wanted,
        Err(problem) => return Ok(Err(problem)),
    };
    let judged = match on.stores.is_stored(&repository) {
        true => on.carry_out(&Judge { repository, rules: wanted.clone() })?.snapshots,
        false => Vec::new(),
    };
    Ok(Ok(Rules { machine: machine.name, entry, wanted, judged }))
}

/// The rules that were said last, whether or not they are in force yet.
fn last_said(entry: &KeepingEntry) -> Keeping {
    entry.then.as_ref().map_or(&entry.now, |(then, _)| then).clone()
}

fn wrong(words: &str) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, words)
}

impl Wanted {
    /// These rules in a form's words.
    fn of(keeping: &Keeping) -> Self {
        let shown = |count: u32| if count == ALL { "all".to_owned() } else { count.to_string() };
        let Policy { last, hourly, daily, weekly, monthly, yearly, lock_ns, .. } = keeping.policy;
        Self {
            last: shown(last),
            hourly: shown(hourly),
            daily: shown(daily),
            weekly: shown(weekly),
            monthly: shown(monthly),
            yearly: shown(yearly),
            lock: (lock_ns / DAY_NS).to_string(),
            delay: (keeping.delay_ns / DAY_NS).to_string(),
        }
    }

    /// The rules that are meant; nothing if nothing is said. Tags, and what a form cannot say, stay as they were.
    fn rules(&self, before: &Keeping) -> Result<Option<Keeping>, Problem> {
        let said =
            [&self.last, &self.hourly, &self.daily, &self.weekly, &self.monthly, &self.yearly];
        if said.iter().all(|text| text.is_empty()) {
            return Ok(None);
        }
        let [last, hourly, daily, weekly, monthly, yearly] = said.map(|text| counted_as(text));
        let policy = Policy {
            last: last?,
            hourly: hourly?,
            daily: daily?,
            weekly: weekly?,
            monthly: monthly?,
            yearly: yearly?,
            within_ns: before.policy.within_ns,
            lock_ns: days(&self.lock, before.policy.lock_ns)?,
        };
        if policy.is_empty() && before.tags.is_empty() {
            return Err(wrong(
                "Those rules keep nothing. To keep the newest alone, keep 1 of the last.",
            ));
        }
        let delay_ns = days(&self.delay, before.delay_ns)?;
        Ok(Some(Keeping { policy, tags: before.tags.clone(), delay_ns }))
    }
}

fn counted_as(text: &str) -> Result<u32, Problem> {
    match text.trim() {
        "" => Ok(0),
        "all" => Ok(ALL),
        digits => digits.parse().map_err(|_| wrong("A count is a number, or \"all\".")),
    }
}

/// Days as nanoseconds; what is shown as so many days stays as exact as it was.
fn days(text: &str, before_ns: i64) -> Result<i64, Problem> {
    let text = text.trim();
    if text.is_empty() || text == (before_ns / DAY_NS).to_string() {
        return Ok(before_ns);
    }
    let days = text.parse().ok().filter(|days| (0..=DAYS_MOST).contains(days));
    days.map(|days: i64| days * DAY_NS).ok_or_else(|| wrong("Days are a number from 0 to 36,500."))
}

fn page(rules: &Rules, id: &str, who: &SignedIn) -> Markup {
    let Rules { entry, wanted, judged, .. } = rules;
    let shown = Wanted::of(wanted.as_ref().unwrap_or(&last_said(entry)));
    let whose =
        if entry.is_default { " (the rules of all that have none of their own)" } else { "" };
    html! {
        p { "Now: " (name(&entry.now.to_string())) (whose) "." }
        @if let Some((then, from_ns)) = &entry.then {
            p class="notice look" { "From " (time(*from_ns)) " on: " (name(&then.to_string())) ". Until then all stays that either keeps." }
        }
        h2 { "What would other rules keep?" }
        (fields(id, &shown))
        @match wanted {
            Some(wanted) => {
                h2 { "What these rules would keep" }
                p { (name(&wanted.to_string())) "." }
                (list(judged))
                @if who.may(Scope::Administer) { (changing(id, &shown, who)) }
            }
            None => {
                h2 { "What is kept now" }
                (list(judged))
            }
        }
        p { a href=(format!("/machines/{id}")) { "Back to the machine" } }
    }
}

fn fields(id: &str, shown: &Wanted) -> Markup {
    html! {
        form method="get" action=(format!("/machines/{id}/retention")) class="numbers" {
            (number("last", "The last", &shown.last))
            (number("hourly", "Hours", &shown.hourly))
            (number("daily", "Days", &shown.daily))
            (number("weekly", "Weeks", &shown.weekly))
            (number("monthly", "Months", &shown.monthly))
            (number("yearly", "Years", &shown.yearly))
            (number("lock", "Nothing goes before so many days", &shown.lock))
            (number("delay", "A deletion waits for so many days", &shown.delay))
            button class="quiet" { "Show what that would keep" }
        }
        p class="faint" {
            "Of each so many are kept, one of each hour, day, week and so on; \"all\" keeps one of each for ever. The newest "
            "snapshot, and what is pinned, always stays."
        }
    }
}

fn list(judged: &[JudgedEntry]) -> Markup {
    let kept = judged.iter().filter(|one| !one.reasons.is_empty()).count();
    let older = judged.len().saturating_sub(LISTED);
    html! {
        p { (count(kept as u64)) " of " (counted(judged.len() as u64, "snapshot")) "." }
        table {
            thead { tr { th { "Came" } th { "Kept as" } } }
            tbody {
                @for one in judged.iter().rev().take(LISTED) {
                    tr {
                        td { (time(one.snapshot.received_ns)) }
                        td { @if one.reasons.is_empty() { strong { "goes" } } @else { (one.reasons.join(", ")) } }
                    }
                }
            }
        }
        @if older > 0 { p class="faint" { "And " (count(older as u64)) " older ones." } }
    }
}

fn changing(id: &str, shown: &Wanted, who: &SignedIn) -> Markup {
    let hidden = [
        ("last", &shown.last),
        ("hourly", &shown.hourly),
        ("daily", &shown.daily),
        ("weekly", &shown.weekly),
        ("monthly", &shown.monthly),
        ("yearly", &shown.yearly),
        ("lock", &shown.lock),
        ("delay", &shown.delay),
    ];
    let inside = html! {
        @for (field, value) in hidden { input type="hidden" name=(field) value=(value); }
        (entry::once_more("password", who))
        button class="grave" { "Put these rules into force" }
    };
    html! {
        h2 { "Change the rules" }
        p { "What keeps less than now comes into force when the present delay is over, and can be changed back until then." }
        (form(&format!("/machines/{id}/retention"), &who.token, &inside))
    }
}

/// Changes the rules, once the password was given again.
pub(super) async fn change(
    State(shared): State<Arc<Shared>>,
    From(source): From,
    who: SignedIn,
    Path(id): Path<String>,
    Sent(change): Sent<Change>,
) -> Result<Response, Problem> {
    check_id(&id)?;
    entry::check_again(&shared, source, &who, change.password).await?;
    let machine = Rights { machine: id.clone(), right: None };
    let repository = Some(shared.ask(who.actor(source), machine).await?.repository);
    let asked = SetKeeping { repository: repository.clone(), wanted: None };
    let before = last_said(&shared.ask(who.actor(source), asked).await?);
    let Some(rules) = change.wanted.rules(&before)? else {
        return Err(wrong("No rules are named."));
    };
    let asked = SetKeeping { repository, wanted: Some(WantedKeeping::Rules(rules)) };
    shared.carry_out(who.actor(source), asked, &format!("/machines/{id}/retention")).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_go_through_a_form_unchanged_and_what_it_cannot_say_stays() {
        let odd = Keeping { delay_ns: DAY_NS + 5, ..Keeping::USUAL };
        for keeping in [Keeping::USUAL, odd] {
            let again = Wanted::of(&keeping).rules(&keeping).unwrap();
            assert_eq!(again, Some(keeping));
        }
        assert_eq!(Wanted::default().rules(&Keeping::USUAL).unwrap(), None);
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        let usual = Wanted::of(&Keeping::USUAL);
        for (daily, lock) in
            [("x", "1"), ("-1", "1"), ("99999999999", "1"), ("1", "-1"), ("1", "40000")]
        {
            let wanted = Wanted { daily: daily.into(), lock: lock.into(), ..usual.clone() };
            assert!(wanted.rules(&Keeping::USUAL).is_err(), "{daily} {lock}");
        }
        let zero = || "0".to_owned();
        let nothing = Wanted {
            last: zero(),
            hourly: zero(),
            daily: zero(),
            weekly: zero(),
            monthly: zero(),
            yearly: zero(),
            ..usual
        };
        assert!(nothing.rules(&Keeping::USUAL).is_err());
    }
}
