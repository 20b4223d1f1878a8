//! How a machine is, as a light and a sentence; and times for people.

use std::collections::BTreeSet;

use axum::http::StatusCode;
use holdall_meter::{Layer, count, counted, size};
use holdall_pages::{Chart, Light, Point};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use maud::{Markup, html};

use super::problem::Problem;
use crate::admin::{MachineEntry, RepositoryEntry, RunEntry, SnapshotEntry};

const HOUR_NS: i64 = 3600 * 1_000_000_000;
/// When a machine is taken to begin its next backup after the last one came, unless it said that it is later.
const USUAL_NS: i64 = 24 * HOUR_NS;
/// One whose backup comes so much later than it was to begin is looked at.
const LATE_NS: i64 = 24 * HOUR_NS;
/// One whose backup comes so much later is not well.
const ABSENT_NS: i64 = 6 * 24 * HOUR_NS;
/// A backup that has not come so long after it was to begin may have been missed.
const OVERDUE_NS: i64 = 2 * HOUR_NS;
/// A machine that says that its next backup is further away than that is not believed.
const FURTHEST_NS: i64 = 35 * 24 * HOUR_NS;
/// A repository that is fuller, in per cent of its quota, is looked at.
const FULL_PERCENT: u64 = 90;

/// Things that are damaged and named in a sentence.
const DAMAGES_SAID: usize = 3;

/// Something that somebody should know.
pub(super) struct Alert {
    pub(super) light: Light,
    /// What kind of thing it is, to tell it from others.
    pub(super) kind: &'static str,
    pub(super) words: String,
}

/// What is known of a machine and of what it stored.
pub(super) struct Known {
    pub(super) machine: MachineEntry,
    pub(super) repository: Option<RepositoryEntry>,
    /// Oldest first.
    pub(super) snapshots: Vec<SnapshotEntry>,
}

impl Known {
    /// When its newest snapshot came.
    pub(super) fn newest_ns(&self) -> Option<i64> {
        self.snapshots.iter().map(|snapshot| snapshot.received_ns).max()
    }

    /// How much it stored.
    pub(super) fn stored_bytes(&self) -> u64 {
        self.repository.as_ref().map_or(0, |repository| repository.stored_bytes)
    }

    /// One sentence about it, and how well it is; the worst that is known comes first.
    pub(super) fn sentence(&self, now_ns: i64) -> (Light, String) {
        let (light, last) = self.last(now_ns);
        let run = self.told_good().map(how_it_went).unwrap_or_default();
        let stored = size(self.stored_bytes());
        let mut sentence = format!("{last}{run}, {stored} stored.");
        sentence += &self.next_ns().map_or_else(String::new, |next_ns| {
            let late_ns = now_ns.saturating_sub(next_ns);
            let what = if late_ns > OVERDUE_NS { "The next one was due" } else { "Next backup" };
            format!(" {what}: {}.", clock(next_ns))
        });
        let mut alerts = self.alerts();
        alerts.sort_by_key(|alert| std::cmp::Reverse(alert.light));
        let worst = alerts.iter().map(|alert| alert.light).max().unwrap_or(Light::Off);
        let said: String = alerts.iter().map(|alert| format!("{}. ", alert.words)).collect();
        (worst.max(light), format!("{said}{sentence}"))
    }

    /// Why its light is what it is: words that stay the same as long as that is so.
    pub(super) fn reasons(&self, now_ns: i64) -> BTreeSet<String> {
        let (light, _) = self.last(now_ns);
        let late = match light {
            Light::Off | Light::Good => None,
            Light::Look => Some("late"),
            Light::Bad => Some("absent"),
        };
        late.into_iter()
            .chain(self.alerts().iter().map(|one| one.kind))
            .map(str::to_owned)
            .collect()
    }

    /// What the machine told of its last run, unless a snapshot came later, as from an older program, or it is locked out.
    fn told(&self) -> Option<&RunEntry> {
        let is_last = |told: &&RunEntry| self.newest_ns() <= Some(told.received_ns);
        self.machine.last_run.as_ref().filter(|_| !self.machine.revoked).filter(is_last)
    }

    /// The same if it committed a snapshot.
    fn told_good(&self) -> Option<&RunEntry> {
        self.told().filter(|told| told.has_committed())
    }

    /// When the machine is to begin its next backup, as far as it told that with its last one.
    ///
    /// Untrusted: one that names a moment far away is late as one that names none.
    fn next_ns(&self) -> Option<i64> {
        believed_next_ns(self.told_good()?)
    }

    fn last(&self, now_ns: i64) -> (Light, String) {
        if self.machine.revoked {
            return (
                Light::Off,
                "Revoked: it makes no new backups, and its old ones are kept".into(),
            );
        }
        let Some(newest_ns) = self.newest_ns() else {
            let age_ns = now_ns.saturating_sub(self.machine.created_ns);
            let is_new = age_ns < USUAL_NS + LATE_NS;
            return (if is_new { Light::Off } else { Light::Look }, "No backup yet".into());
        };
        let usual_ns = newest_ns.saturating_add(USUAL_NS);
        let due_ns = self.next_ns().map_or(usual_ns, |next_ns| next_ns.max(usual_ns));
        let light = match now_ns.saturating_sub(due_ns) {
            ..LATE_NS => Light::Good,
            LATE_NS..ABSENT_NS => Light::Look,
            _ => Light::Bad,
        };
        (light, format!("Backed up {}", ago(now_ns.saturating_sub(newest_ns))))
    }

    /// How the last run failed, if it did.
    fn failure(&self) -> Option<Alert> {
        let told = self.told().filter(|told| !told.is_good())?;
        let (light, kind) = match (told.met_damage(), told.has_committed()) {
            (true, _) => (Light::Bad, "met damage"),
            (false, true) => (Light::Look, "incomplete"),
            (false, false) => (Light::Look, "failed"),
        };
        Some(Alert { light, kind, words: format!("Its last backup {}", told.outcome()) })
    }

    /// What somebody should know of its repository.
    pub(super) fn alerts(&self) -> Vec<Alert> {
        let Some(repository) = &self.repository else { return Vec::new() };
        let alert = |light, kind, words| Alert { light, kind, words };
        let problem = repository.problem.iter();
        let problem = problem.map(|why| {
            alert(Light::Bad, "problem", format!("Its repository cannot be opened: {why}"))
        });
        let more = repository.damaged.len().saturating_sub(DAMAGES_SAID);
        let damaged = repository.damaged.iter().take(DAMAGES_SAID);
        let damaged = damaged.map(|what| format!("Damage was found: {what}"));
        let more =
            (more > 0).then(|| format!("And {} more things are damaged", count(more as u64)));
        let damaged = damaged.chain(more).map(|words| alert(Light::Bad, "damage", words));
        let alarm = repository.alarm.iter();
        let alarm = alarm
            .map(|why| alert(Light::Look, "alarm", format!("Automatic deletion is paused: {why}")));
        let quota = repository.quota_bytes.filter(|quota| {
            repository.stored_bytes.saturating_mul(100) >= quota.saturating_mul(FULL_PERCENT)
        });
        let full = quota.map(|quota| {
            let stored = size(repository.stored_bytes);
            alert(
                Light::Look,
                "quota",
                format!("{stored} of its quota of {} are used", size(quota)),
            )
        });
        problem.chain(damaged).chain(alarm).chain(full).chain(self.failure()).collect()
    }

    /// How many snapshots came on each of the last `days` days.
    pub(super) fn by_day(&self, days: i64, now_ns: i64) -> Vec<Point> {
        let Ok(today) = day(now_ns) else { return Vec::new() };
        let zone = zone();
        let begun = |date: Date| Some((date, begun_ns(date, &zone)?));
        let dates =
            (-days + 1..=1).filter_map(|after| begun(today.checked_add(after.days()).ok()?));
        let dates: Vec<_> = dates.collect();
        let point = |pair: &[(Date, i64)]| {
            let [(date, from_ns), (_, to_ns)] = *pair else { return None };
            let came =
                self.snapshots.iter().filter(|one| (from_ns..to_ns).contains(&one.received_ns));
            let came = came.count();
            let shown = counted(came as u64, "snapshot");
            Some(Point { label: date.to_string(), value: came as f64, shown })
        };
        dates.windows(2).filter_map(point).collect()
    }

    /// The same as a chart called `id`.
    pub(super) fn chart<'a>(&self, id: &'a str, days: i64, now_ns: i64) -> Chart<'a> {
        Chart {
            id,
            title: "Snapshots a day",
            description: "How many snapshots came on each of the last days, today at the right",
            points_are: "Day",
            points: self.by_day(days, now_ns),
        }
    }
}

/// When a machine is to begin its next backup, unless it named a moment that is far away.
pub(super) fn believed_next_ns(told: &RunEntry) -> Option<i64> {
    let ahead = |next_ns: &i64| next_ns.saturating_sub(told.received_ns);
    told.report.next_ns.filter(|next_ns| (1..FURTHEST_NS).contains(&ahead(next_ns)))
}

fn day(ns: i64) -> Result<Date, Problem> {
    let time = Timestamp::from_nanosecond(ns.into());
    let wrong = |_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "The clock shows no date.");
    Ok(time.map_err(wrong)?.to_zoned(zone()).date())
}

/// When a day begins on the clock of that zone.
fn begun_ns(date: Date, zone: &TimeZone) -> Option<i64> {
    let begun = date.to_zoned(zone.clone()).ok()?;
    i64::try_from(begun.timestamp().as_nanosecond()).ok()
}

/// The zone of this computer; UTC where it has none.
fn zone() -> TimeZone {
    let zone = TimeZone::system();
    if zone.is_unknown() { TimeZone::UTC } else { zone }
}

/// How a backup went that committed a snapshot: how much there was, and whether it was slow.
fn how_it_went(told: &RunEntry) -> String {
    let report = &told.report;
    let times = report.usual_milliseconds.filter(|usual| *usual > 0);
    let times = times.map(|usual| report.milliseconds as f64 / usual as f64);
    let slow = times.filter(|times| *times > 1.0).map(|times| {
        let layer = layer_in_words(report.limited_by).map(|layer| format!(": {layer}"));
        format!(", {times:.1} times as slow as usual{}", layer.unwrap_or_default())
    });
    format!(", {}{}", size(report.bytes), slow.unwrap_or_default())
}

/// What a layer of a machine's run is called on a server; nothing where none limits.
pub(super) fn layer_in_words(layer: Layer) -> Option<String> {
    match layer {
        Layer::Nothing | Layer::Unsure => None,
        Layer::ClientCpu => Some("the machine's processor".to_owned()),
        Layer::ClientMemory => Some("the machine's memory".to_owned()),
        layer => Some(layer.named()),
    }
}

/// So long ago, in the largest unit that fits.
pub(super) fn ago(age_ns: i64) -> String {
    let minutes = u64::try_from(age_ns / (HOUR_NS / 60)).unwrap_or(0);
    match minutes {
        0..2 => "just now".into(),
        2..120 => format!("{} ago", counted(minutes, "minute")),
        120..2880 => format!("{} ago", counted(minutes / 60, "hour")),
        _ => format!("{} ago", counted(minutes / 1440, "day")),
    }
}

/// When a disk will be full, as far ahead as that is from now.
pub(super) fn full_in(full_ns: i64, now_ns: i64) -> String {
    let days = u64::try_from(full_ns.saturating_sub(now_ns) / (24 * HOUR_NS)).unwrap_or(0);
    match days {
        0 => "within a day".into(),
        1..14 => format!("in about {}", counted(days, "day")),
        14..120 => format!("in about {}", counted(days / 7, "week")),
        120..730 => format!("in about {}", counted(days / 30, "month")),
        _ => format!("in about {}", counted(days / 365, "year")),
    }
}

/// A time by the clock on the server's wall, with its zone.
pub(super) fn time(ns: i64) -> Markup {
    let Ok(time) = Timestamp::from_nanosecond(ns.into()) else { return html! { "unknown" } };
    html! { time datetime=(time.strftime("%Y-%m-%dT%H:%M:%SZ")) { (clock(ns)) } }
}

/// The same as text.
pub(super) fn clock(ns: i64) -> String {
    Timestamp::from_nanosecond(ns.into()).map_or_else(
        |_| "unknown".to_owned(),
        |time| time.to_zoned(zone()).strftime("%Y-%m-%d %H:%M %Z").to_string(),
    )
}

#[cfg(test)]
mod tests {
    use holdall_protocol::wire::RunReport;

    use super::*;
    use crate::Right;

    const NOW_NS: i64 = 1_900_000_000 * 1_000_000_000;

    fn known(ages_hours: &[i64]) -> Known {
        let machine = MachineEntry {
            id: "ab".into(),
            name: "attic".into(),
            repository: "attic".into(),
            right: Right::Backup,
            created_ns: NOW_NS - 1000 * HOUR_NS,
            keys: 1,
            revoked: false,
            going: None,
            last_seen_ns: None,
            last_run: None,
        };
        let snapshot = |hours: &i64| SnapshotEntry {
            id: "cd".into(),
            received_ns: NOW_NS - hours * HOUR_NS,
            taken_ns: None,
        };
        let repository = RepositoryEntry { stored_bytes: 1_200_000_000, ..Default::default() };
        let snapshots = ages_hours.iter().map(snapshot).collect();
        Known { machine, repository: Some(repository), snapshots }
    }

    #[test]
    fn a_disk_is_full_in_as_rough_a_time_as_is_far_ahead() {
        let told = |days: i64| full_in(NOW_NS + days * 24 * HOUR_NS, NOW_NS);
        let said = [-3, 0, 1, 13, 14, 119, 130, 729, 900].map(told);
        let rough = [
            "within a day",
            "within a day",
            "in about 1 day",
            "in about 13 days",
            "in about 2 weeks",
        ];
        assert_eq!(said[..5], rough);
        assert_eq!(
            said[5..],
            ["in about 17 weeks", "in about 4 months", "in about 24 months", "in about 2 years"]
        );
    }

    #[test]
    fn the_age_of_the_last_snapshot_makes_the_light() {
        for (ages, light, sentence) in [
            (&[50, 1][..], Light::Good, "Backed up 60 minutes ago, 1.20 GB stored."),
            (&[49], Light::Look, "Backed up 2 days ago, 1.20 GB stored."),
            (&[200], Light::Bad, "Backed up 8 days ago, 1.20 GB stored."),
            (&[], Light::Look, "No backup yet, 1.20 GB stored."),
        ] {
            assert_eq!(known(ages).sentence(NOW_NS), (light, sentence.to_owned()));
        }
        let mut revoked = known(&[1]);
        revoked.machine.revoked = true;
        assert_eq!(revoked.sentence(NOW_NS).0, Light::Off);
    }

    /// A machine whose snapshots are so old, and which told of a run when the newest one came.
    fn told(ages_hours: &[i64], report: RunReport) -> Known {
        let mut known = known(ages_hours);
        let received_ns = known.newest_ns().unwrap_or(NOW_NS);
        known.machine.last_run = Some(RunEntry { received_ns, report });
        known
    }

    fn report(exit_code: u8) -> RunReport {
        RunReport {
            kind: holdall_protocol::wire::ReportedKind::Backup,
            started_ns: 1,
            milliseconds: 20_000,
            exit_code,
            items: if matches!(exit_code, 0 | 3 | 20) { 1000 } else { 0 },
            bytes: 3_000_000_000,
            sent_bytes: 5,
            problems: 0,
            limited_by: Layer::ServerDisk,
            usual_milliseconds: None,
            work: vec![],
            points: vec![],
            next_ns: None,
        }
    }

    #[test]
    fn a_run_that_was_told_adds_how_much_it_was_and_whether_it_was_slow_and_of_what() {
        let sentence = |report| told(&[1], report).sentence(NOW_NS);
        let plain = "Backed up 60 minutes ago, 3.00 GB, 1.20 GB stored.";
        assert_eq!(sentence(report(0)), (Light::Good, plain.to_owned()));
        let slow = |limited_by, usual| {
            let usual_milliseconds = Some(usual);
            sentence(RunReport { limited_by, usual_milliseconds, ..report(0) }).1
        };
        let disk = "3.00 GB, 2.0 times as slow as usual: the server's disk, 1.20 GB stored.";
        assert!(slow(Layer::ServerDisk, 10_000).ends_with(disk));
        let unsure = "3.00 GB, 2.0 times as slow as usual, 1.20 GB stored.";
        assert!(slow(Layer::Unsure, 10_000).ends_with(unsure));
        for usual in [0, 20_000, u64::MAX] {
            assert_eq!(slow(Layer::ServerDisk, usual), plain, "{usual}");
        }
    }

    #[test]
    fn a_run_that_failed_is_looked_at_with_its_reason_until_a_snapshot_comes() {
        let unread = RunReport { problems: 3, ..report(3) };
        for (report, light, begins) in [
            (
                report(1),
                Light::Look,
                "Its last backup failed with 1. Backed up 60 minutes ago, 1.20",
            ),
            (report(13), Light::Look, "Its last backup failed with 13 (not allowed). Backed up"),
            (unread, Light::Look, "Its last backup could not read 3 items. Backed up 60 minutes"),
            (report(3), Light::Look, "Its last backup could not read everything. Backed up"),
            (report(20), Light::Bad, "Its last backup met damage. Backed up 60 minutes ago, 3.00"),
            (report(255), Light::Look, "Its last backup failed with 255. Backed up"),
        ] {
            let mut known = told(&[1], report);
            let (told_light, sentence) = known.sentence(NOW_NS);
            assert_eq!(told_light, light, "{sentence}");
            assert!(sentence.starts_with(begins), "{sentence}");
            known.machine.last_run.as_mut().unwrap().received_ns -= 1;
            assert_eq!(known.sentence(NOW_NS).0, Light::Good, "a snapshot came since");
        }
        let late = told(&[60], report(1));
        let (light, sentence) = late.sentence(NOW_NS);
        assert!(
            light == Light::Look && sentence.starts_with("Its last backup failed"),
            "{sentence}"
        );
        assert_eq!(told(&[], report(1)).sentence(NOW_NS).0, Light::Look);
    }

    #[test]
    fn a_new_machine_has_two_days_for_its_first_backup() {
        for (age_hours, light) in [(1, Light::Off), (47, Light::Off), (49, Light::Look)] {
            let mut known = known(&[]);
            known.machine.created_ns = NOW_NS - age_hours * HOUR_NS;
            assert_eq!(known.sentence(NOW_NS).0, light, "{age_hours}");
        }
    }

    #[test]
    fn what_a_revoked_machine_told_and_a_run_that_committed_nothing_add_nothing() {
        let next_ns = Some(NOW_NS + HOUR_NS);
        let mut revoked = told(&[1], RunReport { next_ns, ..report(0) });
        revoked.machine.revoked = true;
        let (_, sentence) = revoked.sentence(NOW_NS);
        assert!(sentence.ends_with("are kept, 1.20 GB stored."), "{sentence}");
        let damaged = RunReport { next_ns, items: 0, bytes: 0, ..report(20) };
        let (light, sentence) = told(&[1], damaged).sentence(NOW_NS);
        let expected = "Its last backup met damage. Backed up 60 minutes ago, 1.20 GB stored.";
        assert_eq!((light, &*sentence), (Light::Bad, expected));
    }

    #[test]
    fn who_said_when_the_next_one_begins_is_late_by_that_within_reason() {
        let next = |age_hours: i64, in_hours: i64, exit_code| {
            let next_ns = Some(NOW_NS - age_hours * HOUR_NS + in_hours * HOUR_NS);
            told(&[age_hours], RunReport { next_ns, ..report(exit_code) }).sentence(NOW_NS)
        };
        let (light, sentence) = next(100, 7 * 24, 0);
        assert!(light == Light::Good && sentence.contains(" Next backup: 20"), "{sentence}");
        assert_eq!(next(190, 7 * 24, 0).0, Light::Good, "a day is allowed");
        let (light, sentence) = next(200, 7 * 24, 0);
        assert!(
            light == Light::Look && sentence.contains(" The next one was due: 20"),
            "{sentence}"
        );
        assert_eq!(next(400, 7 * 24, 0).0, Light::Bad);
        let (light, sentence) = next(40, 1, 0);
        let is_said = sentence.contains("The next one was due: 20");
        assert!(light == Light::Good && is_said, "as a laptop over a day: {sentence}");
        assert!(next(2, 1, 0).1.contains(" Next backup: 20"), "it may be running");
        assert_eq!(next(49, 1, 0).0, Light::Look);
        assert_eq!(next(100, 1000 * 24, 0).0, Light::Look, "nobody waits for years");
        assert_eq!(next(100, -1, 0).0, Light::Look);
        assert_eq!(next(100, 7 * 24, 1).0, Light::Look, "it failed, and is late as ever");
    }

    #[test]
    fn every_reason_is_said_and_none_hides_another() {
        let mut known = known(&[1]);
        let repository = known.repository.as_mut().unwrap();
        repository.quota_bytes = Some(1_300_000_000);
        repository.alarm = Some("half is gone".into());
        let (light, sentence) = known.sentence(NOW_NS);
        assert_eq!(light, Light::Look);
        for part in ["half is gone", "of its quota"] {
            assert!(sentence.contains(part), "{sentence}");
        }
        let reasons: Vec<_> = known.reasons(NOW_NS).into_iter().collect();
        assert_eq!(reasons, ["alarm", "quota"]);
        known.repository.as_mut().unwrap().alarm = None;
        assert_eq!(known.reasons(NOW_NS).len(), 1);
    }

    #[test]
    fn what_is_wrong_with_the_repository_comes_before_a_good_backup() {
        let mut known = known(&[1]);
        let repository = known.repository.as_mut().unwrap();
        repository.quota_bytes = Some(1_300_000_000);
        repository.alarm = Some("half is gone".into());
        let (light, sentence) = known.sentence(NOW_NS);
        assert_eq!(light, Light::Look);
        assert!(sentence.ends_with(". Backed up 60 minutes ago, 1.20 GB stored."), "{sentence}");
        known.repository.as_mut().unwrap().damaged = vec!["packs/a: torn".into()];
        let (light, sentence) = known.sentence(NOW_NS);
        assert_eq!(light, Light::Bad);
        assert!(sentence.starts_with("Damage was found: packs/a: torn. "), "{sentence}");
        assert_eq!(known.alerts().len(), 3);
    }

    #[test]
    fn every_day_has_its_point_today_last() {
        let points = known(&[0, 0, 24, 24 * 40]).by_day(30, NOW_NS);
        let values: Vec<_> = points.iter().map(|point| point.value).collect();
        assert_eq!((values.len(), values[28], values[29]), (30, 1.0, 2.0));
        assert_eq!(values.iter().sum::<f64>(), 3.0);
    }

    #[test]
    fn ages_are_in_the_largest_unit_that_fits() {
        let minute = HOUR_NS / 60;
        let ages = [-5, 0, 2, 119, 120, 2879, 2880].map(|minutes| ago(minutes * minute));
        let expected = [
            "just now",
            "just now",
            "2 minutes ago",
            "119 minutes ago",
            "2 hours ago",
            "47 hours ago",
            "2 days ago",
        ];
        assert_eq!(ages, expected);
    }
}
