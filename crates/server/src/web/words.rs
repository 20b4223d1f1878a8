//! How a machine is, as a light and a sentence; and times for people.

use axum::http::StatusCode;
use holdall_meter::{count, counted, size};
use holdall_pages::{Chart, Light, Point};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use maud::{Markup, html};

use super::problem::Problem;
use crate::admin::{MachineEntry, RepositoryEntry, SnapshotEntry};

const HOUR_NS: i64 = 3600 * 1_000_000_000;
/// A machine whose last backup is older is looked at.
const LATE_NS: i64 = 48 * HOUR_NS;
/// One whose last backup is older is not well.
const ABSENT_NS: i64 = 7 * 24 * HOUR_NS;
/// A repository that is fuller, in per cent of its quota, is looked at.
const FULL_PERCENT: u64 = 90;

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
        let stored = size(self.stored_bytes());
        let mut worst = self.alerts().into_iter().max_by_key(|(light, _)| *light);
        if let Some((of_alert, alert)) = worst.take_if(|(of_alert, _)| *of_alert > light) {
            return (of_alert, format!("{alert}. {last}, {stored}."));
        }
        (light, format!("{last}, {stored}."))
    }

    fn last(&self, now_ns: i64) -> (Light, String) {
        if self.machine.revoked {
            return (
                Light::Off,
                "Revoked: it makes no new backups, and its old ones are kept".into(),
            );
        }
        let Some(newest_ns) = self.newest_ns() else {
            let is_new = now_ns.saturating_sub(self.machine.created_ns) < LATE_NS;
            return (if is_new { Light::Off } else { Light::Look }, "No backup yet".into());
        };
        let age_ns = now_ns.saturating_sub(newest_ns);
        let light = match age_ns {
            ..LATE_NS => Light::Good,
            LATE_NS..ABSENT_NS => Light::Look,
            _ => Light::Bad,
        };
        (light, format!("Backed up {}", ago(age_ns)))
    }

    /// What somebody should know of its repository.
    pub(super) fn alerts(&self) -> Vec<(Light, String)> {
        let Some(repository) = &self.repository else { return Vec::new() };
        let problem = repository.problem.iter();
        let problem =
            problem.map(|why| (Light::Bad, format!("Its repository cannot be opened: {why}")));
        let damaged = repository.damaged.iter();
        let damaged = damaged.map(|what| (Light::Bad, format!("Damage was found: {what}")));
        let alarm = repository.alarm.iter();
        let alarm = alarm.map(|why| (Light::Look, format!("Automatic deletion is paused: {why}")));
        let quota = repository.quota_bytes.filter(|quota| {
            repository.stored_bytes.saturating_mul(100) >= quota.saturating_mul(FULL_PERCENT)
        });
        let full = quota.map(|quota| {
            let stored = size(repository.stored_bytes);
            (Light::Look, format!("{stored} of its quota of {} are used", size(quota)))
        });
        problem.chain(damaged).chain(alarm).chain(full).collect()
    }

    /// How many snapshots came on each of the last `days` days.
    pub(super) fn by_day(&self, days: i64, now_ns: i64) -> Vec<Point> {
        let Ok(today) = day(now_ns) else { return Vec::new() };
        let dates = self.snapshots.iter().filter_map(|one| day(one.received_ns).ok());
        let dates: Vec<_> = dates.collect();
        let point = |before: i64| {
            let date = today.checked_sub(before.days()).ok()?;
            let count = dates.iter().filter(|other| **other == date).count();
            let shown = counted(count as u64, "snapshot");
            Some(Point { label: date.to_string(), value: count as f64, shown })
        };
        (0..days).rev().filter_map(point).collect()
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

fn day(ns: i64) -> Result<jiff::civil::Date, Problem> {
    let time = Timestamp::from_nanosecond(ns.into());
    let wrong = |_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "The clock shows no date.");
    Ok(time.map_err(wrong)?.to_zoned(zone()).date())
}

/// The zone of this computer; UTC where it has none.
fn zone() -> TimeZone {
    let zone = TimeZone::system();
    if zone.is_unknown() { TimeZone::UTC } else { zone }
}

/// So long ago, in the largest unit that fits.
pub(super) fn ago(age_ns: i64) -> String {
    let minutes = u64::try_from(age_ns / (HOUR_NS / 60)).unwrap_or(0);
    match minutes {
        0..2 => "just now".into(),
        2..120 => format!("{} ago", counted(minutes, "minute")),
        120..2880 => format!("{} ago", counted(minutes / 60, "hour")),
        _ => format!("{} days ago", count(minutes / 1440)),
    }
}

/// A time by the clock on the server's wall, with its zone.
pub(super) fn time(ns: i64) -> Markup {
    let Ok(time) = Timestamp::from_nanosecond(ns.into()) else { return html! { "unknown" } };
    let local = time.to_zoned(zone()).strftime("%Y-%m-%d %H:%M %Z").to_string();
    html! { time datetime=(time.strftime("%Y-%m-%dT%H:%M:%SZ")) { (local) } }
}

#[cfg(test)]
mod tests {
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
    fn the_age_of_the_last_snapshot_makes_the_light() {
        for (ages, light, sentence) in [
            (&[50, 1][..], Light::Good, "Backed up 60 minutes ago, 1.20 GB."),
            (&[49], Light::Look, "Backed up 2 days ago, 1.20 GB."),
            (&[200], Light::Bad, "Backed up 8 days ago, 1.20 GB."),
            (&[], Light::Look, "No backup yet, 1.20 GB."),
        ] {
            assert_eq!(known(ages).sentence(NOW_NS), (light, sentence.to_owned()));
        }
        let mut revoked = known(&[1]);
        revoked.machine.revoked = true;
        assert_eq!(revoked.sentence(NOW_NS).0, Light::Off);
    }

    #[test]
    fn what_is_wrong_with_the_repository_comes_before_a_good_backup() {
        let mut known = known(&[1]);
        let repository = known.repository.as_mut().unwrap();
        repository.quota_bytes = Some(1_300_000_000);
        repository.alarm = Some("half is gone".into());
        let (light, sentence) = known.sentence(NOW_NS);
        assert_eq!(light, Light::Look);
        assert!(sentence.ends_with(". Backed up 60 minutes ago, 1.20 GB."), "{sentence}");
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
