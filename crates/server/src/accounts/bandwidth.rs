//! How much the server may take and give by hours of the week: the rules, and which of them counts when.

use std::collections::BTreeMap;
use std::fmt;

use holdall_meter::size;
use serde::{Deserialize, Serialize};

use super::{Accounts, Day, Hours};
use crate::ServerError;

const SETTING: &str = "bandwidth.rules";
/// Most rules.
const MOST: usize = 20;
/// Slower than this, connections of several machines would be taken for ones that do not move.
const LEAST_BYTES_PER_SECOND: u64 = 100_000;

/// A limit for some hours of some days.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct BandwidthRule {
    /// Bytes that all machines together may send in a second, and as many that they may be sent.
    pub bytes_per_second: u64,
    /// When it counts.
    #[serde(flatten)]
    pub hours: Hours,
}

impl BandwidthRule {
    fn check(&self) -> Result<(), ServerError> {
        if self.bytes_per_second < LEAST_BYTES_PER_SECOND {
            let least = size(LEAST_BYTES_PER_SECOND);
            return Err(ServerError::refused(format!(
                "a limit is at least {least}/s: below that, backups break off"
            )));
        }
        self.hours.check()
    }
}

impl fmt::Display for BandwidthRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.hours.to_string();
        let between = if words.is_empty() { "" } else { " " };
        write!(f, "{}/s{between}{words}", size(self.bytes_per_second))
    }
}

/// The lowest limit of those that count then.
pub(crate) fn in_force(
    rules: &BTreeMap<u64, BandwidthRule>,
    day: Day,
    minute: u16,
) -> Option<&BandwidthRule> {
    let counting = rules.values().filter(|rule| rule.hours.count(day, minute));
    counting.min_by_key(|rule| rule.bytes_per_second)
}

impl Accounts {
    /// All rules, by number.
    pub(crate) fn bandwidth_rules(&self) -> Result<BTreeMap<u64, BandwidthRule>, ServerError> {
        self.read_json(SETTING)
    }

    /// Adds one, and gives its number.
    pub(crate) fn add_bandwidth_rule(&self, rule: BandwidthRule) -> Result<u64, ServerError> {
        rule.check()?;
        let _state = self.state();
        let mut rules = self.bandwidth_rules()?;
        if rules.len() >= MOST {
            return Err(ServerError::refused(format!("there are {MOST} limits; remove one")));
        }
        let number = rules.last_key_value().map_or(1, |(last, _)| last + 1);
        rules.insert(number, rule);
        self.put_json(SETTING, &rules)?;
        Ok(number)
    }

    /// Takes one away, and gives it.
    pub(crate) fn remove_bandwidth_rule(&self, number: u64) -> Result<BandwidthRule, ServerError> {
        let _state = self.state();
        let mut rules = self.bandwidth_rules()?;
        let removed = rules.remove(&number).ok_or_else(|| {
            ServerError::refused(format!(
                "there is no limit {number}; `holdall admin bandwidth` lists them"
            ))
        })?;
        self.put_json(SETTING, &rules)?;
        Ok(removed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(bytes_per_second: u64, from: &str, to: &str, days: &[Day]) -> BandwidthRule {
        let hours = Hours { from: from.into(), to: to.into(), days: days.to_vec() };
        BandwidthRule { bytes_per_second, hours }
    }

    #[test]
    fn the_lowest_limit_of_the_hour_counts_and_one_may_reach_into_the_next_day() {
        let rules = BTreeMap::from([
            (1, rule(20_000_000, "08:00", "18:00", &Day::ALL[..5])),
            (2, rule(5_000_000, "12:00", "13:30", &[Day::Tue])),
            (3, rule(1_000_000, "22:00", "06:00", &[Day::Sat])),
            (4, rule(2_000_000, "00:00", "00:00", &[Day::Sun])),
        ]);
        let at = |day, hour: u16, minute: u16| {
            in_force(&rules, day, hour * 60 + minute).map(|rule| rule.bytes_per_second / 1_000_000)
        };
        for (day, hour, minute, limit) in [
            (Day::Mon, 7, 59, None),
            (Day::Mon, 8, 0, Some(20)),
            (Day::Mon, 17, 59, Some(20)),
            (Day::Mon, 18, 0, None),
            (Day::Tue, 12, 0, Some(5)),
            (Day::Tue, 13, 30, Some(20)),
            (Day::Sat, 12, 0, None),
            (Day::Sat, 22, 0, Some(1)),
            (Day::Sun, 5, 59, Some(1)),
            (Day::Sun, 6, 0, Some(2)),
            (Day::Sun, 23, 59, Some(2)),
        ] {
            assert_eq!(at(day, hour, minute), limit, "{day:?} {hour}:{minute:02}");
        }
    }

    #[test]
    fn what_is_no_limit_is_refused_with_the_reason() {
        for (rule, why) in [
            (rule(99_999, "08:00", "18:00", &Day::ALL), "at least"),
            (rule(1_000_000, "8", "18:00", &Day::ALL), "no time of day"),
            (rule(1_000_000, "08:00", "24:01", &Day::ALL), "no time of day"),
            (rule(1_000_000, "08:60", "18:00", &Day::ALL), "no time of day"),
            (rule(1_000_000, "08:00", "18:00", &[]), "without a day"),
        ] {
            let error = rule.check().unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        let good = rule(1_000_000, "00:00", "24:00", &Day::ALL);
        good.check().unwrap();
        assert_eq!(good.to_string(), "1.0 MB/s");
        let some = rule(1_000_000, "08:00", "18:00", &[Day::Mon, Day::Tue]);
        assert_eq!(some.to_string(), "1.0 MB/s from 08:00 to 18:00 on mon, tue");
    }
}
