//! Hours of the week, by the clock on the server's wall.

use std::fmt;

use jiff::Timestamp;
use jiff::civil::Weekday;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use crate::ServerError;

const DAY_MINUTES: u16 = 24 * 60;

/// A day of the week.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Day {
    /// Monday.
    Mon,
    /// Tuesday.
    Tue,
    /// Wednesday.
    Wed,
    /// Thursday.
    Thu,
    /// Friday.
    Fri,
    /// Saturday.
    Sat,
    /// Sunday.
    Sun,
}

impl Day {
    /// The week, from Monday on.
    pub const ALL: [Self; 7] =
        [Self::Mon, Self::Tue, Self::Wed, Self::Thu, Self::Fri, Self::Sat, Self::Sun];

    /// As it is written, such as `mon`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Mon => "mon",
            Self::Tue => "tue",
            Self::Wed => "wed",
            Self::Thu => "thu",
            Self::Fri => "fri",
            Self::Sat => "sat",
            Self::Sun => "sun",
        }
    }

    fn of(weekday: Weekday) -> Self {
        // From Monday, which is 0.
        let at = usize::try_from(weekday.to_monday_zero_offset()).unwrap_or(0);
        Self::ALL[at % Self::ALL.len()]
    }

    fn before(self) -> Self {
        let at = Self::ALL.iter().position(|day| *day == self).unwrap_or(0);
        Self::ALL[(at + 6) % 7]
    }
}

/// Some hours of some days.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct Hours {
    /// From then on, as `08:00`.
    pub from: String,
    /// Until then, as `18:00`; where that is not later than `from`, on the next day. `24:00` is the day's end.
    pub to: String,
    /// The days on which they begin.
    pub days: Vec<Day>,
}

impl Hours {
    /// All of the week.
    pub fn all() -> Self {
        Self { from: "00:00".into(), to: "24:00".into(), days: Day::ALL.to_vec() }
    }

    /// Whether that minute of that day is one of them.
    pub(crate) fn count(&self, day: Day, minute: u16) -> bool {
        let Some((from, to)) = self.minutes() else { return false };
        let begins = |day: Day| self.days.contains(&day);
        match from < to {
            true => begins(day) && (from..to).contains(&minute),
            false => begins(day) && minute >= from || begins(day.before()) && minute < to,
        }
    }

    /// How many minutes they last on each of their days.
    pub(crate) fn lasts_minutes(&self) -> u16 {
        let (from, to) = self.minutes().unwrap_or_default();
        if from < to { to - from } else { DAY_MINUTES - from + to }
    }

    fn minutes(&self) -> Option<(u16, u16)> {
        minutes(&self.from).zip(minutes(&self.to))
    }

    /// # Errors
    /// [`ServerError::Refused`] names what is no time of day, or that no day is named.
    pub(crate) fn check(&self) -> Result<(), ServerError> {
        let bad = [&self.from, &self.to].into_iter().find(|time| minutes(time).is_none());
        if let Some(bad) = bad {
            let reason = format!("{bad:?} is no time of day; write it as 08:00");
            return Err(ServerError::refused(reason));
        }
        match self.days.is_empty() {
            true => Err(ServerError::refused("without a day it would never count")),
            false => Ok(()),
        }
    }
}

/// Empty where they are all hours of the week.
impl fmt::Display for Hours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = Vec::new();
        if (&*self.from, &*self.to) != ("00:00", "24:00") {
            words.push(format!("from {} to {}", self.from, self.to));
        }
        let days: Vec<_> = Day::ALL.into_iter().filter(|day| self.days.contains(day)).collect();
        if days.len() < Day::ALL.len() {
            let days: Vec<_> = days.into_iter().map(Day::word).collect();
            words.push(format!("on {}", days.join(", ")));
        }
        f.write_str(&words.join(" "))
    }
}

/// The day and its minute on the server's wall at a moment.
pub(crate) fn local(now_ns: i64) -> (Day, u16) {
    let now = Timestamp::from_nanosecond(now_ns.into()).unwrap_or_default();
    let now = now.to_zoned(TimeZone::system());
    let minute = u16::from(now.hour().unsigned_abs()) * 60 + u16::from(now.minute().unsigned_abs());
    (Day::of(now.weekday()), minute)
}

/// The minute of the day that `08:00` is.
fn minutes(text: &str) -> Option<u16> {
    let (hour, minute) = text.split_once(':')?;
    let is_plain = |part: &str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_plain(hour) || !is_plain(minute) {
        return None;
    }
    let [hour, minute] = [hour, minute].map(|part| part.parse::<u16>().unwrap_or(u16::MAX));
    let all = hour.checked_mul(60)?.checked_add(minute)?;
    (minute < 60 && all <= DAY_MINUTES).then_some(all)
}
