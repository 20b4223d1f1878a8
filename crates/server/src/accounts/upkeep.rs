//! When the server keeps house: the hours in which it applies rules, prunes and scrubs, and how often it reads all again.

use std::fmt;

use holdall_meter::counted;
use serde::{Deserialize, Serialize};

use super::{Accounts, Hours, local};
use crate::ServerError;

const SETTING: &str = "upkeep";
/// Shorter hours might pass between two of the server's looks, which are an hour apart.
const LEAST_MINUTES: u16 = 120;
const MOST_SCRUB_DAYS: u32 = 366;
const DAY_NS: i64 = 24 * 3600 * 1_000_000_000;

/// What an administrator said of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct Upkeep {
    /// When it begins. What has begun goes on until it is done.
    #[serde(flatten)]
    pub hours: Hours,
    /// Within so many days everything is read again.
    pub scrub_days: u32,
}

/// At any hour, and everything within a month.
impl Default for Upkeep {
    fn default() -> Self {
        Self { hours: Hours::all(), scrub_days: 30 }
    }
}

impl Upkeep {
    /// Whether it is the time for it.
    pub(crate) fn is_due(&self, now_ns: i64) -> bool {
        let (day, minute) = local(now_ns);
        self.hours.count(day, minute)
    }

    /// Nanoseconds in which everything is read again.
    pub(crate) fn scrub_round_ns(&self) -> i64 {
        i64::from(self.scrub_days) * DAY_NS
    }

    fn check(&self) -> Result<(), ServerError> {
        self.hours.check()?;
        let lasts = self.hours.lasts_minutes();
        if lasts < LEAST_MINUTES {
            return Err(ServerError::refused(format!(
                "the hours are at least {LEAST_MINUTES} minutes long, since the server looks once an hour; these are {lasts}"
            )));
        }
        match (1..=MOST_SCRUB_DAYS).contains(&self.scrub_days) {
            true => Ok(()),
            false => Err(ServerError::refused(format!(
                "everything is read again within 1 to {MOST_SCRUB_DAYS} days"
            ))),
        }
    }
}

impl fmt::Display for Upkeep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hours = self.hours.to_string();
        let when = if hours.is_empty() { "at any hour" } else { &hours };
        let days = counted(self.scrub_days.into(), "day");
        write!(f, "{when}; everything is read again within {days}")
    }
}

impl Accounts {
    pub(crate) fn upkeep(&self) -> Result<Upkeep, ServerError> {
        self.read_json(SETTING)
    }

    /// Changes it; it counts from the next look on.
    pub(crate) fn set_upkeep(&self, upkeep: &Upkeep) -> Result<(), ServerError> {
        upkeep.check()?;
        let _state = self.state();
        self.put_json(SETTING, upkeep)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::Day;

    fn upkeep(from: &str, to: &str, scrub_days: u32) -> Upkeep {
        let hours = Hours { from: from.into(), to: to.into(), days: vec![Day::Sun] };
        Upkeep { hours, scrub_days }
    }

    #[test]
    fn hours_that_a_look_might_miss_and_rounds_without_an_end_are_refused() {
        for (upkeep, why) in [
            (upkeep("01:00", "02:59", 30), "these are 119"),
            (upkeep("23:30", "01:00", 30), "these are 90"),
            (upkeep("01:00", "25:00", 30), "no time of day"),
            (upkeep("01:00", "06:00", 0), "1 to 366"),
            (upkeep("01:00", "06:00", 367), "1 to 366"),
        ] {
            let error = upkeep.check().unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        upkeep("23:00", "01:00", 1).check().unwrap();
        Upkeep::default().check().unwrap();
    }

    #[test]
    fn it_is_told_in_words() {
        let said = Upkeep::default().to_string();
        assert_eq!(said, "at any hour; everything is read again within 30 days");
        let said = upkeep("01:00", "06:00", 1).to_string();
        assert_eq!(said, "from 01:00 to 06:00 on sun; everything is read again within 1 day");
    }
}
