//! Verdicts: which layer limited a run, how sure, and why.

use serde::{Deserialize, Serialize};

use crate::figures::counted;
use crate::help::HELP_BESIDE_OTHERS;
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
            Self::ItemsPerSecond => format!("{}/s", counted(value.max(0.0).round() as u64, "item")),
            Self::BytesPerSecond if value >= 1e9 => format!("{:.2} GB/s", value / 1e9),
            Self::BytesPerSecond if value >= 1e6 => format!("{:.1} MB/s", value / 1e6),
            Self::BytesPerSecond => format!("{:.1} kB/s", value / 1e3),
        }
    }
}

/// A step of which no more was used does not hold a run back by itself.
const HARDLY_USED: f64 = 0.5;

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
    /// Whether the network limited by the time that requests take to and fro, and not by what it carries.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_distance: bool,
    /// The counters that the verdict was made from, in pipeline order.
    pub stages: Vec<StageCounters>,
}

impl Verdict {
    /// Makes the verdict less sure where the step that leans on the layer which limited does much more alone:
    /// the run used only that share of what it can do. Of what is far away, and of a processor that others keep
    /// busy, no run uses much.
    pub fn weigh_against(&mut self, step: &str, used: f64) {
        let is_beside_others = self.help.as_deref() == Some(HELP_BESIDE_OTHERS);
        if !(used > 0.0 && used < HARDLY_USED) || self.by_distance || is_beside_others {
            return;
        }
        self.explanation += &format!(
            " But {step} alone is {:.1} times as fast: the other steps use the same processor or disk.",
            1.0 / used
        );
        self.confidence *= HARDLY_USED + used;
        self.help = Some(
            "What would help is uncertain: measure again when nothing else runs here. If the result is the same: \
             more cores, or separate disks for source and repository."
                .to_owned(),
        );
    }

    /// Puts what the layer that limited does now into what would help, unless that is not about its speed.
    pub fn name_figure(&mut self, figure: &str) {
        if self.help == self.limited_by.help(None) {
            self.help = self.limited_by.help(Some(figure));
        }
    }

    /// What limits, how sure that is, why, and what would help; nothing of a run that was over before anything limited it.
    pub fn words(&self) -> Option<String> {
        let sure = match self.limited_by {
            Layer::Nothing => return None,
            Layer::Unsure => String::new(),
            _ => format!(" ({:.0} % sure)", self.confidence * 100.0),
        };
        let help = self.help.as_ref().map(|help| format!(" {help}"));
        let help = help.unwrap_or_default();
        Some(format!("limited by {}{sure}: {}{help}", self.limited_by, self.explanation))
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
            by_distance: false,
            stages: Vec::new(),
        };
        let told = "limited by server-busy (62 % sure): It is so. What would help: peace.";
        assert_eq!(verdict.words().as_deref(), Some(told));
        (verdict.limited_by, verdict.help) = (Layer::Nothing, None);
        assert_eq!(verdict.words(), None);
    }

    #[test]
    fn a_step_that_does_much_more_alone_makes_a_verdict_less_sure_unless_it_is_far_away() {
        let verdict = |by_distance| Verdict {
            limited_by: Layer::Network,
            confidence: 0.8,
            achieved: 1.0,
            ceiling: 2.0,
            unit: Unit::BytesPerSecond,
            ratio: 0.5,
            explanation: "It is so.".to_owned(),
            help: None,
            by_distance,
            stages: Vec::new(),
        };
        let mut doubted = verdict(false);
        doubted.weigh_against("wire", 0.25);
        assert!((doubted.confidence - 0.6).abs() < 1e-9, "{doubted:?}");
        assert!(doubted.explanation.contains("wire alone is 4.0 times"), "{doubted:?}");
        assert!(doubted.help.as_deref().is_some_and(|help| help.contains("uncertain")));
        let named = |help: &str| {
            let mut verdict = Verdict { help: Some(help.to_owned()), ..verdict(false) };
            verdict.name_figure("11.8 MB/s");
            verdict.help.unwrap()
        };
        let usual = named(&Layer::Network.help(None).unwrap());
        assert!(usual.contains("a faster wire (11.8 MB/s now)"), "{usual}");
        assert_eq!(named(crate::help::HELP_FAR_AWAY), crate::help::HELP_FAR_AWAY);
        let help = Some(HELP_BESIDE_OTHERS.to_owned());
        let others = Verdict { limited_by: Layer::ClientCpu, help, ..verdict(false) };
        let mut same = others.clone();
        same.weigh_against("processor", 0.25);
        assert_eq!(same, others, "the step was measured beside other programs, or is no help here");
        for (by_distance, used) in [(true, 0.25), (false, 0.6), (false, 0.0), (false, f64::NAN)] {
            let mut same = verdict(by_distance);
            same.weigh_against("wire", used);
            assert_eq!(same, verdict(by_distance));
        }
    }

    #[test]
    fn speeds_read_like_a_person_would_write_them() {
        assert_eq!(Unit::ItemsPerSecond.show(999.6), "1,000 items/s");
        assert_eq!(Unit::ItemsPerSecond.show(1_234_567.0), "1,234,567 items/s");
        assert_eq!(Unit::ItemsPerSecond.show(12.0), "12 items/s");
        assert_eq!(Unit::ItemsPerSecond.show(1.2), "1 item/s");
        assert_eq!(Unit::BytesPerSecond.show(310_500_000.0), "310.5 MB/s");
        assert_eq!(Unit::BytesPerSecond.show(1_250_000_000.0), "1.25 GB/s");
        assert_eq!(Unit::BytesPerSecond.show(1_500.0), "1.5 kB/s");
    }
}
