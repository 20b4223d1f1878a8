//! Moments as people type them: a date, a time, or how long ago.

use std::str::FromStr;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Zoned};

/// A point in time, in nanoseconds since 1970 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment(i128);

impl Moment {
    /// Nanoseconds since 1970 UTC.
    pub(crate) fn nanoseconds(self) -> i128 {
        self.0
    }

    /// Reads a moment; days, and times without a zone, are those of the clock on the wall, as is
    /// `now`, from which durations count backwards.
    fn read(text: &str, now: &Zoned) -> Result<Self, String> {
        let ago = |text: &str| now.checked_sub(text.parse::<Span>().ok()?.abs()).ok();
        let at = |text: &str| text.parse::<DateTime>().ok()?.to_zoned(now.time_zone().clone()).ok();
        let moment = text
            .parse::<Timestamp>()
            .ok()
            .or_else(|| at(text).map(|at| at.timestamp()))
            .or_else(|| ago(text).map(|at| at.timestamp()));
        let moment = moment.ok_or(
            "not a moment such as 2026-03-01 or 2026-03-01T08:30:00Z, nor how long ago, such as 14d",
        )?;
        Ok(Self(moment.as_nanosecond()))
    }
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::read(text, &Timestamp::now().to_zoned(TimeZone::system()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<i128, String> {
        let berlin = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let now = "2026-03-29T12:00:00+02:00".parse::<Timestamp>().unwrap().to_zoned(berlin);
        Ok(Moment::read(text, &now)?.nanoseconds() / 1_000_000_000)
    }

    #[test]
    fn a_moment_is_a_date_a_time_or_how_long_ago() {
        let at = |text: &str| i128::from(text.parse::<Timestamp>().unwrap().as_second());
        for (text, expected) in [
            ("2026-03-01T08:30:00Z", "2026-03-01T08:30:00Z"),
            ("2026-03-01T08:30:00+01:00", "2026-03-01T07:30:00Z"),
            ("2026-03-01 08:30", "2026-03-01T07:30:00Z"),
            ("2026-03-01", "2026-02-28T23:00:00Z"),
            ("90m", "2026-03-29T08:30:00Z"),
            ("2h 30m", "2026-03-29T07:30:00Z"),
            // The clock was put forward in between.
            ("1d", "2026-03-28T11:00:00Z"),
            ("1 week", "2026-03-22T11:00:00Z"),
        ] {
            assert_eq!(read(text), Ok(at(expected)), "{text}");
        }
        assert_eq!(read("9999-01-01"), Ok(at("9998-12-31T23:00:00Z")));
        for wrong in ["", "yesterday", "14", "2026-13-01", "99999999 years"] {
            read(wrong).unwrap_err();
        }
    }
}
