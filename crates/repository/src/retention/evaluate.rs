//! Retention: which snapshots rules keep, as a plan that is plain data.
//!
//! Rules count what there is: "7 daily" keeps the newest snapshot of each of the 7 newest days that
//! have one. So a clock that jumps, or a computer that was off for a year, lets nothing go by itself.
//! A flood of snapshots displaces, once no lock holds them, others of the same hour, which may have been
//! the last of their day and week before; only "the 7 last" counts snapshots, and has all others go. So
//! a server applies no rules after a flood until somebody has looked. The times are those of receipts,
//! never the client's. Of each series the newest snapshot stays whatever the rules say, and so does
//! what is pinned.
//!
//! What measures goes by the time that has certainly passed since: what a clock was set ahead by makes
//! nothing older. And "all within" measures from the newest snapshot whose time can be gone by: one that
//! came while the clock was ahead makes no other look old. One that came when the clock was not set stays, and
//! no rule counts it: the year of its receipt is none that it came in.
//!
//! A copy of a snapshot of another repository has an age: when that one received the original, as the machine
//! says that copied it. Copies are counted apart from what was backed up here, so that none displaces any of
//! that, and each stays that the rules keep by its age or by its receipt. Ages may be invented, so those of one
//! day of receipt are compared with each other alone. What came on later days counts by its receipt:
//!
//! ```text
//! received     day 1: a b c    day 2: d    day 3: e f
//! judged       e f     by their ages, as if nothing else were there
//!              d       by its age, behind day 3
//!              a b c   by their ages, behind days 3 and 2
//! ```
//!
//! So a copy that comes tomorrow, whatever age it has, takes no more from those of today than a backup would.
//!
//! ```
//! use holdall_repository::retention::{Aged, Policy, keep};
//! use jiff::tz::TimeZone;
//!
//! let hour = |number: i64| Aged {
//!     series: 0,
//!     received_ns: number * 3_600_000_000_000,
//!     passed_ns: (9 - number) * 3_600_000_000_000,
//!     taken_ns: None,
//!     clock_sure: true,
//!     is_sure: true,
//!     pinned: false,
//!     tagged: false,
//! };
//! let policy = Policy { hourly: 2, ..Policy::default() };
//! let kept = keep(&policy, &[hour(1), hour(2), hour(9)], &TimeZone::UTC);
//! assert_eq!(kept.iter().map(|reasons| reasons.len()).collect::<Vec<_>>(), [0, 1, 2]);
//! ```

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use serde::{Deserialize, Serialize};

/// As many as there are.
pub const ALL: u32 = u32::MAX;

/// What is kept of each series: so many of the newest, and of the newest that are the last of their
/// hour, day and so on. What no rule keeps is let go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Policy {
    /// So many of all.
    pub last: u32,
    /// So many hours.
    pub hourly: u32,
    /// So many days.
    pub daily: u32,
    /// So many weeks, which begin on Mondays.
    pub weekly: u32,
    /// So many months.
    pub monthly: u32,
    /// So many years.
    pub yearly: u32,
    /// All that came at most so many nanoseconds before the series' newest whose time is sure.
    pub within_ns: Option<i64>,
    /// All that came within so many nanoseconds before now, whatever else is said.
    pub lock_ns: i64,
}

const DAY_NS: i64 = 24 * 3600 * 1_000_000_000;

impl Policy {
    /// As Time Machine: hourly for a day, daily for a month, weekly for ever; and nothing goes that
    /// is younger than 30 days.
    pub const USUAL: Self = Self {
        last: 0,
        hourly: 24,
        daily: 30,
        weekly: ALL,
        monthly: 0,
        yearly: 0,
        within_ns: None,
        lock_ns: 30 * DAY_NS,
    };

    /// What keeps all that either of both keeps.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            last: self.last.max(other.last),
            hourly: self.hourly.max(other.hourly),
            daily: self.daily.max(other.daily),
            weekly: self.weekly.max(other.weekly),
            monthly: self.monthly.max(other.monthly),
            yearly: self.yearly.max(other.yearly),
            within_ns: self.within_ns.max(other.within_ns),
            lock_ns: self.lock_ns.max(other.lock_ns),
        }
    }

    /// Whether it says anything.
    pub fn is_empty(&self) -> bool {
        let counts = [self.last, self.hourly, self.daily, self.weekly, self.monthly, self.yearly];
        counts.iter().all(|count| *count == 0) && self.within_ns.is_none()
    }
}

/// A snapshot as retention sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Aged<K> {
    /// What it belongs to: rules count within that.
    pub series: K,
    /// When it was received, in nanoseconds since 1970 UTC.
    pub received_ns: i64,
    /// How many nanoseconds have certainly passed since; negative if it came when the clock was ahead of what
    /// it shows now.
    pub passed_ns: i64,
    /// Of a copy: when the original was received, in nanoseconds since 1970 UTC, as the machine says that copied
    /// it. No age is believed from before 1970, or of what was received here earlier than that.
    pub taken_ns: Option<i64>,
    /// Whether the clock that said so had been set. One of which it had not is kept whatever the rules say.
    pub clock_sure: bool,
    /// Whether it came when that says: not before the clock was set, nor while it was ahead, as far as anybody
    /// can tell.
    pub is_sure: bool,
    /// Whether it is to be kept whatever the rules say.
    pub pinned: bool,
    /// Whether it has a tag that is to be kept.
    pub tagged: bool,
}

impl<K: Copy> Aged<K> {
    /// A copy as if it had been received when its original was.
    fn by_age(&self) -> Option<Self> {
        let received_ns = self.taken_ns?.max(0).min(self.received_ns);
        let older_ns = self.received_ns.saturating_sub(received_ns);
        Some(Self { received_ns, passed_ns: self.passed_ns.saturating_add(older_ns), ..*self })
    }
}

/// Why a snapshot is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// It is pinned.
    Pinned,
    /// It has a tag that is kept.
    Tag,
    /// It is the newest of its series.
    Newest,
    /// It is younger than anything may be that goes.
    Locked,
    /// It is among the newest.
    Last,
    /// It is the last of its hour.
    Hourly,
    /// It is the last of its day.
    Daily,
    /// It is the last of its week.
    Weekly,
    /// It is the last of its month.
    Monthly,
    /// It is the last of its year.
    Yearly,
    /// It came shortly before the newest.
    Within,
    /// It came when the clock was not set: how old it is nobody knows.
    Unsure,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pinned => "pinned",
            Self::Tag => "tag",
            Self::Newest => "newest",
            Self::Locked => "locked",
            Self::Last => "last",
            Self::Hourly => "hourly",
            Self::Daily => "daily",
            Self::Weekly => "weekly",
            Self::Monthly => "monthly",
            Self::Yearly => "yearly",
            Self::Within => "within",
            Self::Unsure => "unsure",
        })
    }
}

/// Goes through a log from its newest record back, and tells what each receipt's time is worth: nothing came
/// later than what came behind it, or than now.
#[derive(Debug)]
pub struct Backwards {
    latest_ns: i64,
}

/// When a record came, in nanoseconds since 1970 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Came {
    /// Not later than this.
    pub latest_ns: i64,
    /// Whether that is what the receipt says, by a clock that had been set.
    pub is_sure: bool,
}

impl Backwards {
    /// Begins behind the newest record.
    pub fn from_now(now_ns: i64) -> Self {
        Self { latest_ns: now_ns }
    }

    /// Takes the record before the last one that was given.
    pub fn came(&mut self, received_ns: i64, clock_sure: bool) -> Came {
        let is_sure = clock_sure && received_ns <= self.latest_ns;
        if is_sure {
            self.latest_ns = received_ns;
        }
        Came { latest_ns: self.latest_ns, is_sure }
    }
}

/// Says for each snapshot why it is kept: nothing for those that the rules let go. `snapshots` are in
/// the order of the log; hours and days are those of `zone`.
pub fn keep<K: Ord + Copy>(
    policy: &Policy,
    snapshots: &[Aged<K>],
    zone: &TimeZone,
) -> Vec<Vec<Reason>> {
    let mut counted_together: BTreeMap<(K, bool), Vec<usize>> = BTreeMap::new();
    for (at, snapshot) in snapshots.iter().enumerate().rev() {
        let key = (snapshot.series, snapshot.taken_ns.is_some());
        counted_together.entry(key).or_default().push(at);
    }
    let mut kept: Vec<Vec<Reason>> =
        snapshots.iter().map(|snapshot| whatever_rules_say(policy, snapshot)).collect();
    for ((_, are_copies), newest_first) in counted_together {
        let by_rules = Counting { policy, snapshots, zone };
        let counted = match are_copies {
            true => by_rules.copies(&newest_first),
            false => by_rules.in_order(&mut Series::new(policy), &newest_first),
        };
        counted.into_iter().for_each(|(at, reasons)| kept[at].extend(reasons));
    }
    for reasons in &mut kept {
        reasons.sort_unstable();
        reasons.dedup();
    }
    kept
}

/// Why a snapshot is kept besides what rules count.
fn whatever_rules_say<K>(policy: &Policy, snapshot: &Aged<K>) -> Vec<Reason> {
    let is_locked = policy.lock_ns > 0 && snapshot.passed_ns < policy.lock_ns;
    let reasons = [
        (snapshot.pinned, Reason::Pinned),
        (snapshot.tagged, Reason::Tag),
        (is_locked, Reason::Locked),
        (!snapshot.clock_sure, Reason::Unsure),
    ];
    reasons.into_iter().filter(|(holds, _)| *holds).map(|(_, why)| why).collect()
}

/// Snapshots by their place among all, and why rules keep each.
type Counted = Vec<(usize, Vec<Reason>)>;

/// What goes through the snapshots of a series.
struct Counting<'a, K> {
    policy: &'a Policy,
    snapshots: &'a [Aged<K>],
    zone: &'a TimeZone,
}

impl<K: Copy> Counting<'_, K> {
    /// Counts by receipt, behind what `series` counted.
    fn in_order(&self, series: &mut Series, newest_first: &[usize]) -> Counted {
        let each = newest_first.iter().map(|at| (*at, self.snapshots[*at]));
        each.map(|(at, one)| (at, series.reasons(self.policy, &one, self.zone))).collect()
    }

    /// Counts copies by receipt, and those of each day by their ages too.
    fn copies(&self, newest_first: &[usize]) -> Counted {
        let mut later = Series::new(self.policy);
        let mut counted = Vec::new();
        for day in newest_first.chunk_by(|one, other| self.day(*one) == self.day(*other)) {
            counted.extend(self.by_age(later.clone(), day));
            counted.extend(self.in_order(&mut later, day));
        }
        counted
    }

    fn by_age(&self, mut later: Series, day: &[usize]) -> Counted {
        let aged = day.iter().filter_map(|at| Some((*at, self.snapshots[*at].by_age()?)));
        let mut aged: Vec<_> = aged.collect();
        aged.sort_by_key(|(at, copy)| Reverse((copy.received_ns, *at)));
        let each = aged.into_iter();
        each.map(|(at, copy)| (at, later.reasons(self.policy, &copy, self.zone))).collect()
    }

    /// The day on which one was received.
    fn day(&self, at: usize) -> Moment {
        day_of(&zoned(self.snapshots[at].received_ns, self.zone))
    }
}

fn zoned(ns: i64, zone: &TimeZone) -> Zoned {
    Timestamp::from_nanosecond(ns.into()).unwrap_or_default().to_zoned(zone.clone())
}

/// A moment on the calendar.
type Moment = (i16, i64);
/// Which hour, day and so on a moment is in.
type Bucket = fn(&Zoned) -> Moment;

/// A rule of the calendar, and how much of it is used up.
#[derive(Clone)]
struct Rule {
    reason: Reason,
    left: u32,
    bucket: Bucket,
    last: Option<Moment>,
}

/// One series, from its newest snapshot backwards.
#[derive(Clone)]
struct Series {
    /// How much has passed since the newest whose time is sure, once it was met.
    newest_passed_ns: Option<i64>,
    is_newest: bool,
    left: u32,
    rules: [Rule; 5],
}

impl Series {
    fn new(policy: &Policy) -> Self {
        let rule = |reason, left, bucket| Rule { reason, left, bucket, last: None };
        let rules = [
            rule(Reason::Hourly, policy.hourly, hour_of),
            rule(Reason::Daily, policy.daily, day_of),
            rule(Reason::Weekly, policy.weekly, week_of),
            rule(Reason::Monthly, policy.monthly, month_of),
            rule(Reason::Yearly, policy.yearly, |at| (at.year(), 0)),
        ];
        Self { newest_passed_ns: None, is_newest: true, left: policy.last, rules }
    }

    fn reasons<K>(&mut self, policy: &Policy, snapshot: &Aged<K>, zone: &TimeZone) -> Vec<Reason> {
        let mut reasons = Vec::new();
        if std::mem::take(&mut self.is_newest) {
            reasons.push(Reason::Newest);
        }
        if snapshot.clock_sure {
            self.count(snapshot.received_ns, zone, &mut reasons);
        }
        if snapshot.is_sure {
            self.newest_passed_ns.get_or_insert(snapshot.passed_ns);
        }
        if policy.within_ns.is_some_and(|within_ns| self.is_within(within_ns, snapshot.passed_ns)) {
            reasons.push(Reason::Within);
        }
        reasons
    }

    /// Uses up what is left of the rules that count, as far as they keep one that came then.
    fn count(&mut self, received_ns: i64, zone: &TimeZone, reasons: &mut Vec<Reason>) {
        if self.left > 0 {
            self.left -= 1;
            reasons.push(Reason::Last);
        }
        let at = zoned(received_ns, zone);
        for rule in self.rules.iter_mut().filter(|rule| rule.left > 0) {
            let bucket = Some((rule.bucket)(&at));
            if rule.last != bucket {
                rule.last = bucket;
                rule.left -= u32::from(rule.left != ALL);
                reasons.push(rule.reason);
            }
        }
    }

    /// Whether one came at most so long before the newest. Of those behind that one nobody knows when they
    /// came, but that it was later.
    fn is_within(&self, within_ns: i64, passed_ns: i64) -> bool {
        let before_ns = |newest_ns| passed_ns.saturating_sub(newest_ns);
        self.newest_passed_ns.is_none_or(|newest_ns| before_ns(newest_ns) <= within_ns)
    }
}

fn hour_of(at: &Zoned) -> Moment {
    // By the hour that passed, so that the one that a change of clocks repeats counts twice.
    (0, at.timestamp().as_second().div_euclid(3600))
}

fn day_of(at: &Zoned) -> Moment {
    (at.year(), at.day_of_year().into())
}

fn week_of(at: &Zoned) -> Moment {
    let week = at.date().iso_week_date();
    (week.year(), week.week().into())
}

fn month_of(at: &Zoned) -> Moment {
    (at.year(), at.month().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_NS: i64 = 3600 * 1_000_000_000;

    fn at(text: &str) -> i64 {
        i64::try_from(text.parse::<Timestamp>().unwrap().as_nanosecond()).unwrap()
    }

    fn aged(received_ns: i64) -> Aged<u8> {
        let passed_ns = received_ns.saturating_neg();
        let (clock_sure, is_sure) = (true, true);
        let (pinned, tagged) = (false, false);
        let taken_ns = None;
        Aged { series: 0, received_ns, passed_ns, taken_ns, clock_sure, is_sure, pinned, tagged }
    }

    /// At a time at which the clock has gone evenly.
    fn kept(policy: &Policy, snapshots: &[Aged<u8>], now_ns: i64) -> Vec<usize> {
        let passed_ns = |one: &Aged<u8>| now_ns.saturating_sub(one.received_ns);
        let snapshots: Vec<_> =
            snapshots.iter().map(|one| Aged { passed_ns: passed_ns(one), ..*one }).collect();
        let kept = keep(policy, &snapshots, &TimeZone::UTC);
        (0..kept.len()).filter(|number| !kept[*number].is_empty()).collect()
    }

    #[test]
    fn each_rule_keeps_the_last_of_the_newest_so_many_that_have_one() {
        let times = [
            "2024-12-30T10:00:00Z", // a Monday, of the first week of 2025
            "2025-01-05T10:00:00Z", // the Sunday of that week
            "2025-01-06T10:00:00Z",
            "2025-03-01T09:10:00Z",
            "2025-03-01T09:50:00Z",
            "2025-03-01T11:00:00Z",
        ];
        let snapshots: Vec<_> = times.iter().map(|time| aged(at(time))).collect();
        let none = Policy::default();
        for (policy, expected) in [
            (none, vec![5]),
            (Policy { last: 2, ..none }, vec![4, 5]),
            (Policy { hourly: 2, ..none }, vec![4, 5]),
            (Policy { hourly: 3, ..none }, vec![2, 4, 5]),
            (Policy { daily: 2, ..none }, vec![2, 5]),
            (Policy { weekly: 3, ..none }, vec![1, 2, 5]),
            (Policy { weekly: ALL, ..none }, vec![1, 2, 5]),
            (Policy { monthly: ALL, ..none }, vec![0, 2, 5]),
            (Policy { yearly: 2, ..none }, vec![0, 5]),
            (Policy { within_ns: Some(2 * HOUR_NS), ..none }, vec![3, 4, 5]),
        ] {
            assert_eq!(kept(&policy, &snapshots, 0), expected, "{policy:?}");
        }
    }

    #[test]
    fn series_are_counted_apart_and_pins_and_tags_hold() {
        let policy = Policy { last: 1, ..Policy::default() };
        let mut snapshots: Vec<_> = (0..6).map(|number| aged(number * HOUR_NS)).collect();
        snapshots[1].series = 1;
        snapshots[2].pinned = true;
        snapshots[3].tagged = true;
        assert_eq!(kept(&policy, &snapshots, 0), [1, 2, 3, 5]);
        let reasons = keep(&policy, &snapshots, &TimeZone::UTC);
        assert_eq!(reasons[2], [Reason::Pinned]);
        assert_eq!(reasons[3], [Reason::Tag]);
        assert_eq!(reasons[5], [Reason::Newest, Reason::Last]);
    }

    #[test]
    fn what_is_locked_stays_and_a_clock_that_goes_back_locks_all() {
        let policy = Policy { lock_ns: 10 * HOUR_NS, ..Policy::default() };
        let snapshots: Vec<_> = (0..20).map(|number| aged(number * HOUR_NS)).collect();
        assert_eq!(kept(&policy, &snapshots, 20 * HOUR_NS), (11..20).collect::<Vec<_>>());
        assert_eq!(kept(&policy, &snapshots, -HOUR_NS).len(), 20);
        // A clock that jumps ahead unlocks, and rules that count go on keeping what they kept.
        let daily = Policy { daily: ALL, ..policy };
        assert_eq!(kept(&daily, &snapshots, i64::MAX), [19]);
    }

    #[test]
    fn all_within_is_measured_from_the_newest_whose_time_is_sure() {
        let policy = Policy { within_ns: Some(3 * HOUR_NS), ..Policy::default() };
        let mut snapshots: Vec<_> = (0..10).map(|number| aged(number * HOUR_NS)).collect();
        // The last two came while the clock was years ahead.
        for (ahead, number) in snapshots[8..].iter_mut().zip(0..) {
            *ahead = Aged { is_sure: false, ..aged((90_000 + number) * HOUR_NS) };
        }
        assert_eq!(kept(&policy, &snapshots, 9 * HOUR_NS), (4..10).collect::<Vec<_>>());
        // And so one that came later.
        snapshots.push(aged(10 * HOUR_NS));
        assert_eq!(kept(&policy, &snapshots, 10 * HOUR_NS), (7..11).collect::<Vec<_>>());
        snapshots.iter_mut().for_each(|one| one.is_sure = false);
        assert_eq!(kept(&policy, &snapshots, 10 * HOUR_NS).len(), 11, "nobody knows how old");
    }

    #[test]
    fn what_came_before_the_clock_was_set_stays_and_uses_up_no_rule() {
        let none = Policy::default();
        let unsure = |number| Aged { clock_sure: false, is_sure: false, ..aged(number) };
        let days = (0..6).map(|day| aged(at("2025-03-03T10:00:00Z") + day * 24 * HOUR_NS));
        // Before each of them another one, as of a computer whose clock is set late.
        let all: Vec<_> = days.zip(0..).flat_map(|(day, number)| [unsure(number), day]).collect();
        for policy in [Policy { daily: 3, ..none }, Policy { last: 3, ..none }] {
            assert_eq!(kept(&policy, &all, 0), [0, 2, 4, 6, 7, 8, 9, 10, 11], "{policy:?}");
            let reasons = keep(&policy, &all, &TimeZone::UTC);
            assert_eq!(reasons[8], [Reason::Unsure], "{policy:?}");
        }
    }

    #[test]
    fn nothing_came_later_than_what_came_behind_it_or_than_now() {
        let mut log = Backwards::from_now(100);
        let sure = |latest_ns| Came { latest_ns, is_sure: true };
        let unsure = |latest_ns| Came { latest_ns, is_sure: false };
        assert_eq!(log.came(200, true), unsure(100), "ahead of now");
        assert_eq!(log.came(90, true), sure(90));
        assert_eq!(log.came(95, true), unsure(90), "ahead of what came behind it");
        assert_eq!(log.came(3, false), unsure(90), "by a clock that was not set");
        assert_eq!(log.came(90, true), sure(90));
    }

    #[test]
    fn what_a_clock_was_set_ahead_by_makes_nothing_older() {
        let policy = Policy { within_ns: Some(3 * HOUR_NS), ..Policy::default() };
        let mut snapshots: Vec<_> = (0..10).map(|number| aged(number * HOUR_NS)).collect();
        // Before the last three the clock was set years ahead, which is no time that has passed.
        for ahead in &mut snapshots[7..] {
            ahead.received_ns += 90_000 * HOUR_NS;
        }
        let kept = keep(&policy, &snapshots, &TimeZone::UTC);
        assert_eq!(kept.iter().position(|reasons| !reasons.is_empty()), Some(6));
    }

    /// A copy that came then of what was received at `taken_ns`.
    fn copy(received_ns: i64, taken_ns: i64) -> Aged<u8> {
        Aged { taken_ns: Some(taken_ns), ..aged(received_ns) }
    }

    const DAY: i64 = 24 * HOUR_NS;

    #[test]
    fn copies_that_came_at_once_are_thinned_by_their_ages() {
        let now_ns = at("2026-03-02T10:00:00Z");
        let policy = Policy { lock_ns: 0, ..Policy::USUAL };
        let months = (0..12).map(|month| (11 - month) * 30 * DAY);
        let all: Vec<_> = months.zip(0..).map(|(age, n)| copy(now_ns + n, now_ns - age)).collect();
        assert_eq!(kept(&policy, &all, now_ns), (0..12).collect::<Vec<_>>());
        let without_ages: Vec<_> = all.iter().map(|one| aged(one.received_ns)).collect();
        assert_eq!(kept(&policy, &without_ages, now_ns), [11]);
        // Two a day for 60 days.
        let halves = (0..120).map(|half| (119 - half) * 12 * HOUR_NS);
        let all: Vec<_> = halves.map(|age| copy(now_ns, now_ns - age)).collect();
        let backups: Vec<_> = all.iter().map(|one| aged(one.taken_ns.unwrap())).collect();
        assert_eq!(kept(&policy, &all, now_ns), kept(&policy, &backups, now_ns));
    }

    #[test]
    fn no_copy_changes_what_is_kept_of_what_was_received_here() {
        let days: Vec<_> =
            (0..40).map(|day| aged(at("2026-01-01T10:00:00Z") + day * DAY)).collect();
        let mut mixed = Vec::new();
        for (real, number) in days.iter().zip(0..) {
            let later_ns = real.received_ns + HOUR_NS;
            mixed.extend([*real, copy(later_ns, later_ns), copy(later_ns, number * 9 * DAY)]);
        }
        for policy in [
            Policy { last: 3, ..Policy::default() },
            Policy { lock_ns: 0, ..Policy::USUAL },
            Policy { within_ns: Some(5 * DAY), ..Policy::default() },
        ] {
            let alone = keep(&policy, &days, &TimeZone::UTC);
            let among = keep(&policy, &mixed, &TimeZone::UTC);
            assert_eq!(among.into_iter().step_by(3).collect::<Vec<_>>(), alone, "{policy:?}");
        }
    }

    #[test]
    fn copies_with_invented_ages_displace_no_more_of_earlier_ones_than_one_backup_a_day() {
        let first_ns = at("2026-03-02T10:00:00Z");
        let real = (0..12).map(|year| copy(first_ns, first_ns - (12 - year) * 365 * DAY));
        let real: Vec<_> = real.collect();
        let invented = (0..500).map(|n| copy(first_ns + DAY, first_ns - n * 9 * DAY));
        let all: Vec<_> = real.iter().copied().chain(invented).collect();
        for policy in [
            Policy { lock_ns: 0, ..Policy::USUAL },
            Policy { daily: 13, ..Policy::default() },
            Policy { monthly: 13, ..Policy::default() },
            Policy { yearly: 13, ..Policy::default() },
        ] {
            let kept = kept(&policy, &all, first_ns + DAY);
            assert_eq!(kept[..12], (0..12).collect::<Vec<_>>(), "{policy:?}");
        }
        // What comes later thins them, as backups would.
        let weekly = (1..60).map(|week| copy(first_ns + week * 7 * DAY, first_ns + week * 7 * DAY));
        let all: Vec<_> = real.iter().copied().chain(weekly).collect();
        let kept = kept(&Policy { monthly: 12, ..Policy::default() }, &all, first_ns + 420 * DAY);
        assert_eq!((kept.len(), kept.iter().filter(|at| **at < 12).count()), (12, 0));
    }

    #[test]
    fn an_age_that_can_not_be_true_is_none() {
        let now_ns = at("2026-03-02T10:00:00Z");
        let policy = Policy { yearly: ALL, ..Policy::default() };
        let all = [i64::MIN, -1, i64::MAX].map(|taken_ns| copy(now_ns, taken_ns));
        // Those from before 1970 are of 1970, the other came when it was received.
        assert_eq!(kept(&policy, &all, now_ns), [1, 2]);
        let unsure = Aged { clock_sure: false, ..copy(5, now_ns) };
        assert_eq!(kept(&policy, &[unsure, copy(now_ns, 9 * DAY)], now_ns), [0, 1]);
    }

    #[test]
    fn all_copies_within_are_those_by_their_ages_and_those_that_came_together() {
        let now_ns = at("2026-03-02T10:00:00Z");
        let policy = Policy { within_ns: Some(10 * DAY), ..Policy::default() };
        let mut all: Vec<_> = [90, 8, 2].map(|day| copy(now_ns, now_ns - day * DAY)).to_vec();
        assert_eq!(kept(&policy, &all, now_ns), [0, 1, 2]);
        all.push(copy(now_ns + 5 * DAY, now_ns));
        assert_eq!(kept(&policy, &all, now_ns + 5 * DAY), [0, 1, 2, 3], "by their receipts");
        all.push(copy(now_ns + 12 * DAY, now_ns + 12 * DAY));
        assert_eq!(kept(&policy, &all, now_ns + 12 * DAY), [3, 4]);
    }

    #[test]
    fn a_flood_displaces_only_what_came_in_its_hour() {
        let policy = Policy { lock_ns: 0, ..Policy::USUAL };
        let before: Vec<_> = (0..24).map(|number| aged(number * HOUR_NS)).collect();
        let flood = (0..1000).map(|number| aged(23 * HOUR_NS + number + 1));
        let all: Vec<_> = before.iter().copied().chain(flood).collect();
        let kept = kept(&policy, &all, 0);
        assert_eq!(kept[..23], (0..23).collect::<Vec<_>>());
        assert_eq!(kept[23..], [1023]);
    }

    #[test]
    fn a_flood_displaces_what_is_kept_as_the_last_few_only_once_no_lock_holds_it() {
        let before: Vec<_> = (0..3).map(|number| aged(number * HOUR_NS)).collect();
        let flood = (0..5).map(|number| aged(40 * 24 * HOUR_NS + number));
        let all: Vec<_> = before.iter().copied().chain(flood).collect();
        let policy = Policy { last: 5, lock_ns: Policy::USUAL.lock_ns, ..Policy::default() };
        assert_eq!(kept(&policy, &all, 20 * 24 * HOUR_NS), (0..8).collect::<Vec<_>>());
        assert_eq!(kept(&policy, &all, 41 * 24 * HOUR_NS), (3..8).collect::<Vec<_>>());
        let policy = Policy { hourly: 5, ..policy };
        assert_eq!(kept(&policy, &all, 41 * 24 * HOUR_NS), (0..8).collect::<Vec<_>>());
    }
}
