//! What the computer is like at the moment, as far as that matters to backups, and what it keeps from beginning.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::plan::{Manner, Manners, PlannedSet};

/// A battery with less is kept for the user, in percent.
pub const LOW_BATTERY_PERCENT: u8 = 20;

/// What the computer is like. `None` means that the service which knows it does not answer, and never keeps a backup back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Conditions {
    /// Whether it runs on battery, as UPower has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_battery: Option<bool>,
    /// How much the battery holds, 0 to 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub battery_percent: Option<u8>,
    /// Whether data cost money, as NetworkManager knows or guesses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metered: Option<bool>,
    /// NetworkManager's name of the connection to the internet; empty if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection: Option<String>,
}

impl Conditions {
    /// What keeps a set from being backed up now.
    pub(crate) fn hold(&self, manners: &Manners, set: &PlannedSet) -> Option<Hold> {
        self.hold_of_battery(manners.on_battery)
            .or_else(|| self.hold_of_network(manners).filter(|_| set.uses_network))
    }

    /// Whether a set is backed up with little of the line.
    pub(crate) fn is_slow(&self, manners: &Manners, set: &PlannedSet) -> bool {
        let on_battery = self.on_battery == Some(true) && manners.on_battery == Some(Manner::Slow);
        let on_metered = self.metered == Some(true) && manners.on_metered == Manner::Slow;
        set.uses_network && (on_battery || on_metered)
    }

    fn hold_of_battery(&self, manner: Option<Manner>) -> Option<Hold> {
        let low = self.battery_percent.filter(|percent| *percent < LOW_BATTERY_PERCENT);
        match (self.on_battery, manner, low) {
            (Some(true), Some(Manner::Skip), _) => Some(Hold::OnBattery),
            (Some(true), None | Some(Manner::Slow), Some(percent)) => {
                Some(Hold::LowBattery { percent })
            }
            _ => None,
        }
    }

    fn hold_of_network(&self, manners: &Manners) -> Option<Hold> {
        if self.metered == Some(true) && manners.on_metered == Manner::Skip {
            return Some(Hold::Metered);
        }
        let connection = self.connection.as_ref().filter(|_| !manners.networks.is_empty())?;
        let is_other = !manners.networks.contains(connection);
        is_other.then(|| Hold::OtherNetwork { connection: connection.clone() })
    }
}

/// Why a run that is due does not begin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Hold {
    /// The user paused the agent.
    Paused {
        /// Until then; without it, until it is resumed.
        #[serde(skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
    /// `config.toml` cannot be understood, which each backup would read.
    Settings,
    /// The computer runs on battery.
    OnBattery,
    /// The battery has less than [`LOW_BATTERY_PERCENT`].
    LowBattery {
        /// What it has.
        percent: u8,
    },
    /// The connection's data cost money.
    Metered,
    /// The connection is none of those that were chosen.
    OtherNetwork {
        /// Its name; empty if there is no connection.
        connection: String,
    },
    /// The computer or the agent just started, or the computer woke up, and its network may not be there yet.
    Settling,
    /// Another set is being backed up.
    Busy {
        /// Which one.
        set: String,
    },
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Paused { .. } => f.write_str("the agent is paused"),
            Self::Settings => f.write_str("config.toml is wrong"),
            Self::OnBattery => f.write_str("this computer runs on battery"),
            Self::LowBattery { percent } => write!(f, "the battery is low ({percent} %)"),
            Self::Metered => f.write_str("the network connection is metered"),
            Self::OtherNetwork { connection } if connection.is_empty() => {
                f.write_str("none of the chosen networks is connected")
            }
            Self::OtherNetwork { connection } => {
                write!(f, "the network `{connection}` is not among the chosen ones")
            }
            Self::Settling => f.write_str("the computer or the agent just started"),
            Self::Busy { set } => write!(f, "`{set}` is being backed up"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(uses_network: bool) -> PlannedSet {
        PlannedSet { name: "home".to_owned(), schedule: "hourly".parse().unwrap(), uses_network }
    }

    fn on_battery(percent: u8) -> Conditions {
        Conditions {
            on_battery: Some(true),
            battery_percent: Some(percent),
            ..Conditions::default()
        }
    }

    #[test]
    fn what_is_unknown_keeps_no_backup_back() {
        let manners = Manners {
            on_battery: Some(Manner::Skip),
            networks: vec!["Home".to_owned()],
            ..Manners::default()
        };
        let unknown = Conditions::default();
        assert_eq!(unknown.hold(&manners, &set(true)), None);
        assert!(!unknown.is_slow(&manners, &set(true)));
    }

    #[test]
    fn a_low_battery_is_kept_for_the_user_unless_he_says_otherwise() {
        let hold = |manner, percent| {
            let manners = Manners { on_battery: manner, ..Manners::default() };
            on_battery(percent).hold(&manners, &set(true))
        };
        assert_eq!(hold(None, 20), None);
        assert_eq!(hold(None, 19), Some(Hold::LowBattery { percent: 19 }));
        assert_eq!(hold(Some(Manner::Slow), 19), Some(Hold::LowBattery { percent: 19 }));
        assert_eq!(hold(Some(Manner::Run), 1), None);
        assert_eq!(hold(Some(Manner::Skip), 100), Some(Hold::OnBattery));
        let plugged_in = Conditions { on_battery: Some(false), ..on_battery(5) };
        assert_eq!(plugged_in.hold(&Manners::default(), &set(true)), None);
    }

    #[test]
    fn the_network_matters_to_what_uses_it_alone() {
        let metered = Conditions { metered: Some(true), ..Conditions::default() };
        let manners = Manners::default();
        assert_eq!(metered.hold(&manners, &set(true)), Some(Hold::Metered));
        assert_eq!(metered.hold(&manners, &set(false)), None);
        let slow = Manners { on_metered: Manner::Slow, ..Manners::default() };
        assert_eq!(metered.hold(&slow, &set(true)), None);
        assert!(metered.is_slow(&slow, &set(true)) && !metered.is_slow(&slow, &set(false)));
    }

    #[test]
    fn only_chosen_connections_are_used() {
        let manners = Manners { networks: vec!["Home".to_owned()], ..Manners::default() };
        let hold = |connection: &str| {
            let connection = Some(connection.to_owned());
            Conditions { connection, ..Conditions::default() }.hold(&manners, &set(true))
        };
        assert_eq!(hold("Home"), None);
        for other in ["Cafe", ""] {
            assert_eq!(hold(other), Some(Hold::OtherNetwork { connection: other.to_owned() }));
        }
    }
}
