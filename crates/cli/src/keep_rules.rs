//! `--keep-last` to `--keep-within`: what rules keep, alike wherever they are.

use std::time::Duration;

use holdall_repository::retention::{ALL, Policy};
use jiff::{SignedDuration, Span};

/// How many to keep of what.
#[derive(Debug, Clone, clap::Args)]
#[group(id = "keep", multiple = true)]
pub(crate) struct KeepRules {
    /// The newest so many
    #[arg(short = 'l', long, value_name = "N|all", value_parser = parse_count)]
    keep_last: Option<u32>,
    /// The last of each of the newest so many hours that have one
    #[arg(short = 'H', long, value_name = "N|all", value_parser = parse_count)]
    keep_hourly: Option<u32>,
    /// The same for days
    #[arg(short = 'd', long, value_name = "N|all", value_parser = parse_count)]
    keep_daily: Option<u32>,
    /// The same for weeks
    #[arg(short = 'w', long, value_name = "N|all", value_parser = parse_count)]
    keep_weekly: Option<u32>,
    /// The same for months
    #[arg(short = 'm', long, value_name = "N|all", value_parser = parse_count)]
    keep_monthly: Option<u32>,
    /// The same for years
    #[arg(short = 'y', long, value_name = "N|all", value_parser = parse_count)]
    keep_yearly: Option<u32>,
    /// All that are at most so much older than the newest of their series (such as 14d, 2w, 6mo, 1y)
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    keep_within: Option<Duration>,
}

impl KeepRules {
    /// As a policy that locks nothing; what is not named is not kept.
    pub(crate) fn policy(&self) -> Policy {
        Policy {
            last: self.keep_last.unwrap_or_default(),
            hourly: self.keep_hourly.unwrap_or_default(),
            daily: self.keep_daily.unwrap_or_default(),
            weekly: self.keep_weekly.unwrap_or_default(),
            monthly: self.keep_monthly.unwrap_or_default(),
            yearly: self.keep_yearly.unwrap_or_default(),
            within_ns: self.keep_within.map(nanoseconds),
            lock_ns: 0,
        }
    }
}

/// What is too long for the range is at its end.
pub(crate) fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

fn parse_count(text: &str) -> Result<u32, String> {
    if text == "all" {
        return Ok(ALL);
    }
    text.parse().map_err(|_| "it is a number, or `all`".to_owned())
}

/// Reads a span of time; months and years are those that lie behind.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let now = jiff::Zoned::now();
    let span: Span = text.parse().map_err(|_| "it is a duration such as 14d, 2w, 6mo or 1y")?;
    let before = now.checked_sub(span.abs()).map_err(|_| "too long")?;
    let length: SignedDuration = before.duration_until(&now);
    length.try_into().map_err(|_| "too long".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_durations_are_read() {
        assert_eq!(parse_count("7"), Ok(7));
        assert_eq!(parse_count("all"), Ok(ALL));
        assert!(parse_count("-1").is_err() && parse_count("many").is_err());
        let days = |text| parse_duration(text).unwrap().as_secs_f64() / 86_400.0;
        assert!((days("14d") - 14.0).abs() < 0.1);
        assert!((days("2w") - 14.0).abs() < 0.1);
        assert!((360.0..370.0).contains(&days("1y")));
        assert!(parse_duration("soon").is_err());
    }
}
