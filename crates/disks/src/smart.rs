//! What a disk says of its own health (SMART), by `smartctl`, where that is installed.

use serde::{Deserialize, Serialize};

use crate::program::{LOOK, SMARTCTL};

/// Attributes of ATA disks that tell of sectors which went bad.
const REALLOCATED: u64 = 5;
const PENDING: u64 = 197;
const UNCORRECTABLE: u64 = 198;

/// What a disk says of its health; what it does not tell is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Health {
    /// Whether it believes that it will last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passed: Option<bool>,
    /// How warm it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature_celsius: Option<i64>,
    /// How long it was switched on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_on_hours: Option<u64>,
    /// Bad sectors in whose place others are used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reallocated_sectors: Option<u64>,
    /// Sectors that it could not read, and waits to be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending_sectors: Option<u64>,
    /// Sectors that it could neither read nor write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uncorrectable_sectors: Option<u64>,
    /// How much of its life the writes took so far, in percent, of NVMe drives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worn_percent: Option<u64>,
    /// What it could not give back, of NVMe drives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_errors: Option<u64>,
}

/// Why a disk's health is not told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Untold {
    /// `smartctl` is not installed.
    NotInstalled,
    /// The disk sleeps, and is not woken up for it.
    Asleep,
    /// The disk, or the bridge before it, does not tell; or this user may not ask.
    Silent,
}

impl Health {
    /// Asks the disk that the kernel calls `name`; one that sleeps goes on sleeping.
    ///
    /// # Errors
    /// [`Untold`].
    pub fn ask(name: &str) -> Result<Self, Untold> {
        if SMARTCTL.find().is_err() {
            return Err(Untold::NotInstalled);
        }
        let what = ["--json", "--health", "--attributes", "--nocheck=standby"];
        let path = format!("/dev/{name}");
        let args = [&what[..], &[&path]].concat();
        let ended = SMARTCTL.run(&args, "", Some(LOOK)).map_err(|_| Untold::Silent)?;
        Self::parsed(&ended.stdout)
    }

    /// Reads what `smartctl --json` prints. Untrusted: a disk gives any numbers.
    fn parsed(json: &str) -> Result<Self, Untold> {
        let told: Told = serde_json::from_str(json).map_err(|_| Untold::Silent)?;
        if told.power_mode.is_some() {
            return Err(Untold::Asleep);
        }
        let row = |id| {
            let row = told.ata_smart_attributes.table.iter().find(|row| row.id == id)?;
            Some(row.raw.value)
        };
        let nvme = told.nvme_smart_health_information_log.unwrap_or_default();
        let health = Self {
            passed: told.smart_status.and_then(|status| status.passed),
            temperature_celsius: told.temperature.and_then(|warm| warm.current),
            power_on_hours: told.power_on_time.and_then(|time| time.hours),
            reallocated_sectors: row(REALLOCATED),
            pending_sectors: row(PENDING),
            uncorrectable_sectors: row(UNCORRECTABLE),
            worn_percent: nvme.percentage_used,
            media_errors: nvme.media_errors,
        };
        if health == Self::default() { Err(Untold::Silent) } else { Ok(health) }
    }

    /// Whether something of it is a reason to replace the disk.
    #[must_use]
    pub fn is_bad(&self) -> bool {
        let counts = [
            self.reallocated_sectors,
            self.pending_sectors,
            self.uncorrectable_sectors,
            self.media_errors,
        ];
        self.passed == Some(false)
            || counts.into_iter().flatten().any(|count| count > 0)
            || self.worn_percent.is_some_and(|worn| worn >= 100)
    }

    /// In words: what is bad first.
    #[must_use]
    pub fn words(&self) -> String {
        let counted = |count: Option<u64>, what: &str| {
            count.filter(|count| *count > 0).map(|count| format!("{count} {what}"))
        };
        let verdict = match self.passed {
            Some(true) => Some("says that it is well".to_owned()),
            Some(false) => Some("SAYS THAT IT FAILS".to_owned()),
            None => None,
        };
        let words = [
            verdict,
            counted(self.reallocated_sectors, "sectors replaced"),
            counted(self.pending_sectors, "sectors unreadable"),
            counted(self.uncorrectable_sectors, "sectors beyond repair"),
            counted(self.media_errors, "errors of its medium"),
            self.worn_percent.map(|worn| format!("{worn} % worn")),
            self.power_on_hours.map(|hours| format!("{hours} hours on")),
            self.temperature_celsius.map(|warm| format!("{warm} °C")),
        ];
        words.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// The fields of `smartctl --json` that are used (its format version 1).
#[derive(Deserialize)]
struct Told {
    smart_status: Option<Status>,
    temperature: Option<Temperature>,
    power_on_time: Option<PowerOn>,
    #[serde(default)]
    ata_smart_attributes: Attributes,
    nvme_smart_health_information_log: Option<Nvme>,
    /// It is there where the disk sleeps.
    power_mode: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Status {
    passed: Option<bool>,
}

#[derive(Deserialize)]
struct Temperature {
    current: Option<i64>,
}

#[derive(Deserialize)]
struct PowerOn {
    hours: Option<u64>,
}

#[derive(Default, Deserialize)]
struct Attributes {
    #[serde(default)]
    table: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    id: u64,
    raw: Raw,
}

#[derive(Deserialize)]
struct Raw {
    value: u64,
}

#[derive(Default, Deserialize)]
struct Nvme {
    percentage_used: Option<u64>,
    media_errors: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_bad_of_a_sata_disk_is_told() {
        let json = r#"{"smart_status": {"passed": true}, "temperature": {"current": 41},
            "power_on_time": {"hours": 30211}, "ata_smart_attributes": {"table": [
            {"id": 5, "name": "Reallocated_Sector_Ct", "raw": {"value": 8, "string": "8"}},
            {"id": 197, "raw": {"value": 0}}]}}"#;
        let health = Health::parsed(json).unwrap();
        assert!(health.is_bad());
        assert_eq!(
            health.words(),
            "says that it is well, 8 sectors replaced, 30211 hours on, 41 °C"
        );
    }

    #[test]
    fn a_drive_of_nvme_tells_how_worn_it_is() {
        let json = r#"{"smart_status": {"passed": true}, "nvme_smart_health_information_log":
            {"percentage_used": 3, "media_errors": 0, "critical_warning": 0}}"#;
        let health = Health::parsed(json).unwrap();
        assert_eq!((health.is_bad(), &*health.words()), (false, "says that it is well, 3 % worn"));
        let failing = Health::parsed(r#"{"smart_status": {"passed": false}}"#).unwrap();
        assert!(failing.is_bad() && failing.words().contains("FAILS"));
    }

    #[test]
    fn a_disk_that_sleeps_or_does_not_tell_is_told_so() {
        let sleeps = r#"{"power_mode": {"ata_value": 0}, "smartctl": {"exit_status": 2}}"#;
        assert_eq!(Health::parsed(sleeps), Err(Untold::Asleep));
        for nothing in ["", "{}", "[]", r#"{"smartctl": {"exit_status": 1}}"#, "no JSON"] {
            assert_eq!(Health::parsed(nothing), Err(Untold::Silent), "{nothing}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_printed_the_reader_takes_it_or_leaves_it(text in ".{0,200}") {
            let _ = Health::parsed(&text);
            let _ = Health::parsed(&format!(r#"{{"temperature": {{"current": {text}}}}}"#));
        }
    }
}
