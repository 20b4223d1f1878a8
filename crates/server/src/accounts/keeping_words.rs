//! Rules in words.

use std::fmt;

use holdall_meter::counted;
use holdall_repository::retention::ALL;

use super::entries::Keeping;

impl fmt::Display for Keeping {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&words(self))
    }
}

fn words(keeping: &Keeping) -> String {
    let policy = &keeping.policy;
    let rules = [
        (policy.last, "last"),
        (policy.hourly, "hourly"),
        (policy.daily, "daily"),
        (policy.weekly, "weekly"),
        (policy.monthly, "monthly"),
        (policy.yearly, "yearly"),
    ];
    let word = |(count, name): (u32, &str)| match count {
        ALL => format!("all {name}"),
        count => format!("{count} {name}"),
    };
    let mut said: Vec<String> =
        rules.into_iter().filter(|(count, _)| *count > 0).map(word).collect();
    said.extend(policy.within_ns.map(|within_ns| format!("all within {}", span(within_ns))));
    if said.is_empty() {
        said.push("the newest".to_owned());
    }
    said.extend(keeping.tags.iter().map(|token| format!("all with the tag {token}")));
    let (lock, delay) = (span(policy.lock_ns), span(keeping.delay_ns));
    format!("{}; nothing goes before {lock}; a deletion waits for {delay}", said.join(", "))
}

/// A span in words, of which nothing is left out; hours alone up to two days.
fn span(ns: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    let mut left = ns / 1_000_000_000;
    let units = [(DAY, "day"), (HOUR, "hour"), (MINUTE, "minute"), (1, "second")];
    let mut said = Vec::new();
    for (unit, name) in units.into_iter().skip(usize::from(left < 2 * DAY)) {
        let whole = u64::try_from(left / unit).unwrap_or(0);
        said.extend((whole > 0).then(|| counted(whole, name)));
        left %= unit;
    }
    if said.is_empty() { "0 hours".to_owned() } else { said.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_span_is_left_out() {
        let said = |seconds: i64| span(seconds * 1_000_000_000);
        assert_eq!(said(0), "0 hours");
        assert_eq!(said(360), "6 minutes");
        assert_eq!(said(3600), "1 hour");
        assert_eq!(said(47 * 3600), "47 hours");
        assert_eq!(said(30 * 86_400), "30 days");
        assert_eq!(said(184 * 86_400 + 3600 + 61), "184 days 1 hour 1 minute 1 second");
    }
}
