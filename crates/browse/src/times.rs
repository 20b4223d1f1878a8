//! Times for people.

use holdall_engine::Time;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// A time by the clock on the wall: `2026-11-29 02:45`.
pub(crate) fn local(nanoseconds: impl Into<i128>) -> String {
    zoned(nanoseconds.into()).strftime("%Y-%m-%d %H:%M").to_string()
}

/// The day by the clock on the wall.
pub(crate) fn day(nanoseconds: impl Into<i128>) -> String {
    zoned(nanoseconds.into()).strftime("%Y-%m-%d").to_string()
}

/// A time that is the same wherever it is read: `2026-11-29_01.45.07Z`.
pub(crate) fn in_utc(nanoseconds: impl Into<i128>) -> String {
    let time = zoned(nanoseconds.into()).with_time_zone(TimeZone::UTC);
    time.strftime("%Y-%m-%d_%H.%M.%SZ").to_string()
}

/// When something was modified.
pub(crate) fn modified(time: Time) -> String {
    local(i128::from(time.secs) * 1_000_000_000 + i128::from(time.nanos))
}

/// Before the year 1 and after the year 9999 it is the end of what can be written.
fn zoned(nanoseconds: i128) -> jiff::Zoned {
    let end = if nanoseconds < 0 { Timestamp::MIN } else { Timestamp::MAX };
    let zone = TimeZone::system();
    let zone = if zone.is_unknown() { TimeZone::UTC } else { zone };
    Timestamp::from_nanosecond(nanoseconds).unwrap_or(end).to_zoned(zone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_nobody_can_write_are_the_ends() {
        for secs in [i64::MIN, i64::MAX, 0] {
            assert!(!modified(Time { secs, nanos: 0 }).is_empty());
        }
    }
}
