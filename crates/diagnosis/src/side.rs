//! Which of the two repositories of a copy held it back.

use holdall_meter::{StageCounters, Verdict};
use serde::Serialize;

/// One of the two repositories of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The one that is copied from.
    From,
    /// The one that is copied to.
    To,
}

impl Side {
    /// Behind the layer, in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::From => ", where it is copied from",
            Self::To => ", where it is copied to",
        }
    }
}

/// At which of the two repositories the limiting layer is; nothing for what is on this computer.
pub fn limited_side(verdict: &Verdict) -> Option<Side> {
    let busy = |stage: &StageCounters| stage.working_seconds / f64::from(stage.threads.max(1));
    let of_layer = verdict.stages.iter().filter(|stage| stage.layer == verdict.limited_by);
    let busiest = of_layer.max_by(|one, other| busy(one).total_cmp(&busy(other)))?;
    match &busiest.name[..] {
        "fetch" => Some(Side::From),
        "ask" | "send" => Some(Side::To),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdall_meter::{Layer, Unit};

    #[test]
    fn the_side_is_that_of_the_busiest_stage_of_the_limiting_layer() {
        let stage = |name: &str, layer, working_seconds, threads| StageCounters {
            working_seconds,
            ..StageCounters::new(name, layer, threads)
        };
        let of = |limited_by| {
            limited_side(&Verdict {
                limited_by,
                confidence: 1.0,
                achieved: 1.0,
                ceiling: 1.0,
                unit: Unit::ItemsPerSecond,
                ratio: 1.0,
                explanation: String::new(),
                help: None,
                by_distance: false,
                stages: vec![
                    stage("fetch", Layer::Network, 8.0, 4),
                    stage("fetch", Layer::ServerDisk, 1.0, 4),
                    stage("seal", Layer::ClientCpu, 9.0, 1),
                    stage("send", Layer::Network, 6.0, 2),
                    stage("send", Layer::ServerDisk, 0.1, 2),
                ],
            })
        };
        assert_eq!(of(Layer::Network), Some(Side::To), "3 s each, and 2 s each");
        assert_eq!(of(Layer::ServerDisk), Some(Side::From));
        assert_eq!(of(Layer::ClientCpu), None);
        assert_eq!(of(Layer::Nothing), None);
    }
}
