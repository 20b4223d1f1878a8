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
    /// All that are at most so much older than the newest of their series (such as 14d, 2w, 6m, 1y5m7d; m is
    /// months)
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    keep_within: Option<Duration>,
}

impl KeepRules {
    /// Whether rules are named that keep nothing at all, such as `--keep-daily 0`.
    pub(crate) fn keep_nothing(&self) -> bool {
        let counts = [
            self.keep_last,
            self.keep_hourly,
            self.keep_daily,
            self.keep_weekly,
            self.keep_monthly,
            self.keep_yearly,
        ];
        counts.iter().any(Option::is_some) && self.policy().is_empty()
    }

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

/// Reads how long something is kept, locked or delayed; months and years are those that lie behind. `m`
/// is months, as in other programs that keep backups.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let now = jiff::Zoned::now();
    let span: Span = in_months(text).parse().map_err(|_| {
        "it is a duration such as 36h, 14d, 2w, 6m or 1y5m7d, where m is months and min minutes"
    })?;
    let before = now.checked_sub(span.abs()).map_err(|_| "too long")?;
    let length: SignedDuration = before.duration_until(&now);
    length.try_into().map_err(|_| "too long".to_owned())
}

/// The same text with `mo` for each `m`, which jiff would read as minutes.
fn in_months(text: &str) -> String {
    let mut said = String::with_capacity(text.len() + 1);
    let mut before = None;
    let mut rest = text.chars().peekable();
    while let Some(letter) = rest.next() {
        let is_word = |other: Option<char>| other.is_some_and(char::is_alphabetic);
        said.push(letter);
        if letter == 'm' && !is_word(before) && !is_word(rest.peek().copied()) {
            said.push('o');
        }
        before = Some(letter);
    }
    said
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

    #[test]
    fn m_is_months_and_min_is_minutes() {
        let days = |text| parse_duration(text).unwrap().as_secs_f64() / 86_400.0;
        for months in ["6m", "6 m", "6mo", "6months", "P6M"] {
            assert!((180.0..185.0).contains(&days(months)), "{months}");
        }
        assert!((364.0 + 150.0..366.0 + 161.0).contains(&days("1y5m7d")));
        assert_eq!(parse_duration("90min"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse_duration("1h 30min"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse_duration("0d"), Ok(Duration::ZERO));
        for minutes in ["6min", "360s", "PT6M"] {
            assert_eq!(parse_duration(minutes), Ok(Duration::from_secs(360)), "{minutes}");
        }
        assert!(parse_duration("2h30m").unwrap_err().contains("m is months"));
    }
}
