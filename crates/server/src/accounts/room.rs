//! How full the disk was: noted now and then, so that it can be said when it will be full.

use serde::{Deserialize, Serialize};

use super::Accounts;
use crate::ServerError;

const SETTING: &str = "room.noted";
const HOUR_NS: i64 = 3600 * 1_000_000_000;
const DAY_NS: i64 = 24 * HOUR_NS;
/// Noted at most so often, and so many of them are kept: the last 200 days.
const EVERY_NS: i64 = 12 * HOUR_NS;
const MOST: usize = 400;
/// A trend is of the last months: who added a machine wants to know what happens since.
const TREND_NS: i64 = 60 * DAY_NS;
/// The least that a trend is made of: so many, over so long.
const LEAST: usize = 6;
const LEAST_NS: i64 = 5 * DAY_NS;
/// A disk whose size differs by more than this share is another one.
const SAME_DISK: f64 = 0.01;

/// How full the disk was at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Room {
    pub(crate) time_ns: i64,
    pub(crate) used_bytes: u64,
    pub(crate) total_bytes: u64,
}

impl Room {
    fn is_of_same_disk(&self, other: &Self) -> bool {
        let [one, other] = [self.total_bytes, other.total_bytes].map(|bytes| bytes as f64);
        (one - other).abs() <= other * SAME_DISK
    }
}

/// By how many bytes a day the disk fills, by least squares over what was noted and what is now; negative where it
/// empties, `None` where too little is known.
pub(crate) fn bytes_per_day(noted: &[Room], now: Room) -> Option<f64> {
    let is_recent = |room: &&Room| {
        let age_ns = now.time_ns.saturating_sub(room.time_ns);
        (0..=TREND_NS).contains(&age_ns) && room.is_of_same_disk(&now)
    };
    let all: Vec<_> = noted.iter().filter(is_recent).chain([&now]).collect();
    let first = all.iter().map(|room| room.time_ns).min()?;
    if all.len() < LEAST || now.time_ns.saturating_sub(first) < LEAST_NS {
        return None;
    }
    let days = |room: &Room| room.time_ns.saturating_sub(first) as f64 / DAY_NS as f64;
    let points: Vec<_> = all.iter().map(|room| (days(room), room.used_bytes as f64)).collect();
    let count = points.len() as f64;
    let [day, bytes] = [|point: &(f64, f64)| point.0, |point: &(f64, f64)| point.1]
        .map(|of| points.iter().map(of).sum::<f64>() / count);
    let spread: f64 = points.iter().map(|point| (point.0 - day).powi(2)).sum();
    let both: f64 = points.iter().map(|point| (point.0 - day) * (point.1 - bytes)).sum();
    (spread > 0.0).then(|| both / spread)
}

impl Accounts {
    /// Notes how full the disk is, unless that was noted lately.
    pub(crate) fn note_room(&self, now: Room) -> Result<(), ServerError> {
        let mut noted = self.noted_room()?;
        // A clock that was set back begins anew.
        noted.retain(|room| room.time_ns <= now.time_ns);
        let is_due = |last: &Room| now.time_ns.saturating_sub(last.time_ns) >= EVERY_NS;
        if !noted.last().is_none_or(is_due) {
            return Ok(());
        }
        noted.push(now);
        let surplus = noted.len().saturating_sub(MOST);
        noted.drain(..surplus);
        self.put_json(SETTING, &noted)
    }

    /// What was noted, the oldest first.
    pub(crate) fn noted_room(&self) -> Result<Vec<Room>, ServerError> {
        self.read_json(SETTING)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use holdall_sys::Root;
    use holdall_testkit::FakeClock;

    use super::*;

    const TOTAL: u64 = 4_000_000_000_000;

    fn room(day: i64, used_bytes: u64) -> Room {
        Room { time_ns: day * DAY_NS, used_bytes, total_bytes: TOTAL }
    }

    #[test]
    fn a_trend_is_the_line_through_what_is_known_and_none_of_too_little() {
        let growing: Vec<_> = (0..10).map(|day| room(day, 1000 + 50 * day as u64)).collect();
        let trend = bytes_per_day(&growing[..9], growing[9]).unwrap();
        assert!((trend - 50.0).abs() < 1e-6, "{trend}");
        let shrinking: Vec<_> = (0..10).map(|day| room(day, 1000 - 50 * day as u64)).collect();
        assert!((bytes_per_day(&shrinking, room(9, 550)).unwrap() + 50.0).abs() < 1e-6);
        // One full day more or less does not turn it around.
        let jumping: Vec<_> = (0..20).map(|day| room(day, 1000 * (day as u64 / 5))).collect();
        let trend = bytes_per_day(&jumping, room(20, 4000)).unwrap();
        assert!((180.0..230.0).contains(&trend), "{trend}");

        assert_eq!(bytes_per_day(&growing[..4], growing[4]), None, "too few");
        let close: Vec<_> =
            (0..10).map(|hour| Room { time_ns: hour * HOUR_NS, ..room(0, 5) }).collect();
        assert_eq!(bytes_per_day(&close, room(1, 9)), None, "within a day");
        let others = growing.iter().map(|one| Room { total_bytes: TOTAL / 2, ..*one });
        assert_eq!(bytes_per_day(&others.collect::<Vec<_>>(), growing[9]), None, "another disk");
        assert_eq!(bytes_per_day(&growing, room(100, 9)), None, "all of it is old");
        assert_eq!(bytes_per_day(&growing, room(-1, 9)), None, "the clock was set back");
    }

    #[test]
    fn it_is_noted_twice_a_day_and_the_last_ones_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(FakeClock::default());
        let accounts = Accounts::open(&Root::at(folder.path()).join("db"), clock).unwrap();
        for hour in 0..MOST as i64 * 12 + 60 {
            accounts.note_room(Room { time_ns: hour * HOUR_NS, ..room(0, 1) }).unwrap();
        }
        let noted = accounts.noted_room().unwrap();
        assert_eq!((noted.len(), noted[0].time_ns), (MOST, 60 * HOUR_NS));
        accounts.note_room(room(1, 7)).unwrap();
        assert_eq!(accounts.noted_room().unwrap(), [room(1, 7)], "a clock that was set back");
    }
}
