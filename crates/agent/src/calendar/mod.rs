//! Calendar expressions of systemd.time(7), such as `hourly`, `Mon..Fri 18:00` or `*-*~1 03:00`, and the moments that they
//! name.
//!
//! They are what people who plan backups on Linux write already. A moment is one of the clock on the wall: in the
//! expression's own time zone if it names one, else in the computer's. As with systemd, one that the wall clock skips
//! (02:30 on the day when summer time begins) does not happen on that day; one that it shows twice happens the first time.
//!
//! ```
//! use holdall_agent::Calendar;
//! use jiff::tz::TimeZone;
//!
//! let weekdays: Calendar = "Mon..Fri 18:00".parse()?;
//! let friday_night = "2026-11-27T20:00:00Z".parse()?;
//! let next = weekdays.next_after(friday_night, &TimeZone::UTC);
//! assert_eq!(next, Some("2026-11-30T18:00:00Z".parse()?));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod field;
mod parse;

use std::str::FromStr;

use field::Field;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp, ToSpan};

/// No expression names a moment after it, as with systemd.
const LAST_YEAR: u16 = 2199;

/// Why a text is no calendar expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{expression}` is no calendar expression: {reason}")]
pub struct CalendarError {
    expression: String,
    reason: &'static str,
}

/// Moments that come again by the calendar.
#[derive(Debug, Clone, PartialEq)]
pub struct Calendar {
    /// From Monday on.
    weekdays: [bool; 7],
    years: Field,
    months: Field,
    days: Field,
    days_from_end: bool,
    hours: Field,
    minutes: Field,
    seconds: Field,
    /// The computer's own without it.
    zone: Option<TimeZone>,
}

impl FromStr for Calendar {
    type Err = CalendarError;

    fn from_str(text: &str) -> Result<Self, CalendarError> {
        parse::parse(text)
    }
}

impl Calendar {
    /// The first moment after that one, where clocks show the time of `local`; `None` if there is none up to the year 2199.
    #[must_use]
    pub fn next_after(&self, after: Timestamp, local: &TimeZone) -> Option<Timestamp> {
        let zone = self.zone.as_ref().unwrap_or(local);
        let mut shown = zone.to_datetime(after);
        loop {
            shown = self.next_shown(shown)?;
            if let Some(at) = first_shown(zone, shown).filter(|at| *at > after) {
                return Some(at);
            }
        }
    }

    /// The first time on the wall after that one.
    fn next_shown(&self, after: DateTime) -> Option<DateTime> {
        let start = after.with().subsec_nanosecond(0).build().ok()?.checked_add(1.second()).ok()?;
        let mut date = start.date();
        loop {
            date = self.next_date(date)?;
            let earliest = if date == start.date() { start.time() } else { Time::midnight() };
            match self.next_time(earliest) {
                Some(time) => return Some(date.to_datetime(time)),
                None => date = date.tomorrow().ok()?,
            }
        }
    }

    /// The first date from that one on.
    fn next_date(&self, from: Date) -> Option<Date> {
        let mut at = from;
        loop {
            let year = number(at.year());
            let next_year = self.years.next(year, LAST_YEAR)?;
            if next_year > year {
                at = first_of(next_year, 1)?;
            }
            let month = number(at.month().into());
            at = match self.months.next(month, 12) {
                None => first_of(next_year + 1, 1)?,
                Some(next) if next > month => first_of(next_year, next)?,
                Some(_) => match self.next_day(at) {
                    Some(found) => return Some(found),
                    None => at.last_of_month().tomorrow().ok()?,
                },
            };
        }
    }

    /// The first date from that one on in its month.
    fn next_day(&self, from: Date) -> Option<Date> {
        let days_in_month = number(from.days_in_month().into());
        let mut day = number(from.day().into());
        loop {
            day = match self.days_from_end {
                true => self.days.next_from_end(day, days_in_month)?,
                false => self.days.next(day, days_in_month)?,
            };
            let found = from.with().day(i8::try_from(day).ok()?).build().ok()?;
            let weekday = usize::try_from(found.weekday().to_monday_zero_offset()).ok()?;
            if self.weekdays.get(weekday) == Some(&true) {
                return Some(found);
            }
            day += 1;
        }
    }

    /// The first time of a day from that one on.
    fn next_time(&self, from: Time) -> Option<Time> {
        let [mut hour, mut minute, mut second] =
            [from.hour(), from.minute(), from.second()].map(|one| number(one.into()));
        loop {
            let next_hour = self.hours.next(hour, 23)?;
            if next_hour > hour {
                (hour, minute, second) = (next_hour, 0, 0);
            }
            let Some(next_minute) = self.minutes.next(minute, 59) else {
                (hour, minute, second) = (hour + 1, 0, 0);
                continue;
            };
            if next_minute > minute {
                (minute, second) = (next_minute, 0);
            }
            match self.seconds.next(second, 59) {
                Some(second) => return time_of(hour, minute, second),
                None => (minute, second) = (minute + 1, 0),
            }
        }
    }
}

/// When clocks first show that; `None` if they skip it.
fn first_shown(zone: &TimeZone, shown: DateTime) -> Option<Timestamp> {
    match zone.to_ambiguous_timestamp(shown).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(shown).ok(),
        AmbiguousOffset::Fold { before, .. } => before.to_timestamp(shown).ok(),
        AmbiguousOffset::Gap { .. } => None,
    }
}

fn first_of(year: u16, month: u16) -> Option<Date> {
    Date::new(i16::try_from(year).ok()?, i8::try_from(month).ok()?, 1).ok()
}

fn time_of(hour: u16, minute: u16, second: u16) -> Option<Time> {
    let [hour, minute, second] = [hour, minute, second].map(|one| i8::try_from(one).ok());
    Time::new(hour?, minute?, second?, 0).ok()
}

/// A part of a date or time; years before our era count as its first.
fn number(value: i16) -> u16 {
    u16::try_from(value).unwrap_or(0)
}
