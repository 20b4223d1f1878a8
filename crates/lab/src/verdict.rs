//! Verdicts: which layer limited a run, how sure, and why.

use serde::{Deserialize, Serialize};

use crate::{Layer, StageCounters};

/// What a run's speed is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Entries for each second: for trees of small files.
    #[serde(rename = "items/s")]
    ItemsPerSecond,
    /// Plain bytes for each second: for large files.
    #[serde(rename = "bytes/s")]
    BytesPerSecond,
}

impl Unit {
    /// `value` in this unit, for people: `25,000 items/s`, `310.5 MB/s`.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::ItemsPerSecond => format!("{} items/s", grouped(value)),
            Self::BytesPerSecond if value >= 1e9 => format!("{:.2} GB/s", value / 1e9),
            Self::BytesPerSecond if value >= 1e6 => format!("{:.1} MB/s", value / 1e6),
            Self::BytesPerSecond => format!("{:.1} kB/s", value / 1e3),
        }
    }
}

/// `value` rounded to a whole number, with a comma between groups of three digits.
pub(crate) fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.max(0.0));
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Which layer limited a run, how sure that is, and why.
///
/// Serialised as the `verdict` object of the command line's summaries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The layer that held the run back.
    pub limited_by: Layer,
    /// How sure that is, from 0 to 1.
    pub confidence: f64,
    /// The speed of the run, in `unit`.
    pub achieved: f64,
    /// What the limiting layer alone could have done, in `unit`.
    pub ceiling: f64,
    /// What `achieved` and `ceiling` are counted in.
    pub unit: Unit,
    /// `achieved / ceiling`, from 0 to 1.
    pub ratio: f64,
    /// One sentence with the figures that led here.
    pub explanation: String,
    /// What would help, in a sentence; nothing where nothing is known to limit.
    #[serde(default)]
    pub help: Option<String>,
    /// The counters that the verdict was made from, in pipeline order.
    pub stages: Vec<StageCounters>,
}

impl Verdict {
    /// What limits, how sure that is, why, and what would help.
    pub fn words(&self) -> String {
        let sure = match self.limited_by {
            Layer::Nothing | Layer::Unsure => String::new(),
            _ => format!(" ({:.0} % sure)", self.confidence * 100.0),
        };
        let help = self.help.as_ref().map(|help| format!(" {help}"));
        let help = help.unwrap_or_default();
        format!("limited by {}{sure}: {}{help}", self.limited_by, self.explanation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_says_how_sure_it_is_and_what_would_help() {
        let mut verdict = Verdict {
            limited_by: Layer::ServerBusy,
            confidence: 0.625,
            achieved: 1.0,
            ceiling: 2.0,
            unit: Unit::BytesPerSecond,
            ratio: 0.5,
            explanation: "It is so.".to_owned(),
            help: Some("What would help: peace.".to_owned()),
            stages: Vec::new(),
        };
        let told = "limited by server-busy (62 % sure): It is so. What would help: peace.";
        assert_eq!(verdict.words(), told);
        (verdict.limited_by, verdict.help) = (Layer::Nothing, None);
        assert_eq!(verdict.words(), "limited by nothing: It is so.");
    }

    #[test]
    fn speeds_read_like_a_person_would_write_them() {
        assert_eq!(Unit::ItemsPerSecond.show(999.6), "1,000 items/s");
        assert_eq!(Unit::ItemsPerSecond.show(1_234_567.0), "1,234,567 items/s");
        assert_eq!(Unit::ItemsPerSecond.show(12.0), "12 items/s");
        assert_eq!(Unit::BytesPerSecond.show(310_500_000.0), "310.5 MB/s");
        assert_eq!(Unit::BytesPerSecond.show(1_250_000_000.0), "1.25 GB/s");
        assert_eq!(Unit::BytesPerSecond.show(1_500.0), "1.5 kB/s");
    }
}
