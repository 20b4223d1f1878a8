//! Whether a run was slower than those before it, since when, and in which stage.

use serde::{Deserialize, Serialize};

use super::{CostModel, Work};
use crate::StageCounters;

/// So many earlier runs of the same kind are needed before anything is called usual.
const FEWEST: usize = 5;
/// So many earlier runs are looked at.
const MOST: usize = 40;
/// A run that takes this many times what is usual is slow.
const SLOW: f64 = 2.0;
/// Below this many seconds more, nobody cares.
const WORTH_SECONDS: f64 = 10.0;

/// A run of the past, as far as it matters for the next ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Past {
    /// When, in nanoseconds since 1970 UTC.
    pub at_ns: i64,
    /// What there was to do.
    pub work: Work,
    /// What it took.
    pub seconds: f64,
    /// What its stages counted.
    #[serde(default)]
    pub stages: Vec<StageCounters>,
}

/// A run was slower than those before it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Slowness {
    /// How many times as long as usual it took.
    pub times: f64,
    /// What is usual: the median of how long the earlier runs would have taken for this one's work.
    pub usual_seconds: f64,
    /// How many runs in a row were slow, this one with them.
    pub runs: usize,
    /// When the first of them was, in nanoseconds since 1970 UTC.
    pub since_ns: i64,
    /// When the last one before them was.
    pub usual_until_ns: i64,
    /// The stage that grew most, if one did.
    pub stage: Option<String>,
}

/// Whether `run` was much slower than the median of `earlier` runs of its kind, oldest first.
///
/// Runs differ in what they had to do, so each is measured against what the model of all of them
/// expects, and those shares are compared.
pub fn slower_than_usual(earlier: &[Past], run: &Past) -> Option<Slowness> {
    let earlier = &earlier[earlier.len().saturating_sub(MOST)..];
    if earlier.len() < FEWEST {
        return None;
    }
    let fitted: Vec<_> = earlier.iter().map(|past| (past.work, past.seconds)).collect();
    let model = CostModel::fit(&fitted, &[]);
    let pace = |past: &Past| {
        let expected = model.estimate(&past.work).seconds;
        if expected > 0.0 { past.seconds / expected } else { 1.0 }
    };
    let paces: Vec<_> = earlier.iter().map(pace).collect();
    let usual = median(paces.clone())?;
    let times = pace(run) / usual;
    let usual_seconds = run.seconds / times;
    let is_worth_it = run.seconds - usual_seconds >= WORTH_SECONDS;
    if !(times.is_finite() && times >= SLOW && is_worth_it) {
        return None;
    }
    let slow_before = paces.iter().rev().take_while(|pace| **pace / usual >= SLOW).count();
    let first = earlier.get(earlier.len() - slow_before).map_or(run.at_ns, |past| past.at_ns);
    let normal = &earlier[..earlier.len() - slow_before];
    let stage = grown(normal, run, &model);
    // More than half of all runs are not slow, so that there is one.
    let usual_until_ns = normal.last().map_or(first, |past| past.at_ns);
    let runs = slow_before + 1;
    Some(Slowness { times, usual_seconds, runs, since_ns: first, usual_until_ns, stage })
}

/// The stage whose working time grew most, against what its median part of a run is. A time in which
/// something was under way is no stage, and would hide the one that it was under way for.
fn grown(normal: &[Past], run: &Past, model: &CostModel) -> Option<String> {
    let of = |past: &Past, name: &str| {
        let expected = model.estimate(&past.work).seconds.max(f64::MIN_POSITIVE);
        let stages = past.stages.iter().filter(|stage| stage.name == name);
        let threads = |stage: &StageCounters| f64::from(stage.threads.max(1));
        stages.map(|stage| stage.working_seconds / threads(stage)).sum::<f64>() / expected
    };
    let growth = |stage: &StageCounters| {
        let usual = median(normal.iter().map(|past| of(past, &stage.name)).collect())?;
        Some((of(run, &stage.name) - usual, stage.name.clone()))
    };
    let stages = run.stages.iter().filter(|stage| stage.threads > 0);
    let grown = stages.filter_map(growth).filter(|(by, _)| *by > 0.0);
    grown.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Layer;

    /// The n-th run, with so many seconds in its sender.
    fn past(at: i64, seconds: f64, sending: f64) -> Past {
        let stage = |name: &str, working_seconds| StageCounters {
            working_seconds,
            ..StageCounters::new(name, Layer::Network, 1)
        };
        // While one request is sent, others are under way.
        let talk = StageCounters { threads: 0, ..stage("talk", 1.1 * sending) };
        let stages = vec![stage("read", 3.0), stage("send", sending), talk];
        let work = Work { items: 100, items_unchanged: 0, bytes: 1_000_000_000 };
        Past { at_ns: at, work, seconds, stages }
    }

    fn usual() -> Vec<Past> {
        (0..10).map(|at| past(at, 20.0 + 0.1 * at as f64, 10.0)).collect()
    }

    #[test]
    fn a_run_that_takes_three_times_as_long_is_told_with_its_stage() {
        let slow = slower_than_usual(&usual(), &past(10, 61.5, 51.0)).unwrap();
        assert!((slow.times - 3.0).abs() < 0.05, "{slow:?}");
        assert!((slow.usual_seconds - 20.5).abs() < 0.3, "{slow:?}");
        assert_eq!((slow.runs, slow.since_ns, slow.stage.as_deref()), (1, 10, Some("send")));
    }

    #[test]
    fn since_when_is_the_first_of_the_slow_runs() {
        let mut earlier = usual();
        earlier.extend([past(10, 60.0, 50.0), past(11, 65.0, 55.0)]);
        let slow = slower_than_usual(&earlier, &past(12, 62.0, 52.0)).unwrap();
        assert_eq!((slow.runs, slow.since_ns, slow.usual_until_ns), (3, 10, 9));
        assert_eq!(slow.stage.as_deref(), Some("send"));
    }

    #[test]
    fn a_run_with_more_to_do_is_not_slow_and_nor_is_one_of_a_few_seconds_or_without_a_past() {
        let mut more = past(10, 61.0, 51.0);
        more.work.bytes *= 3;
        assert_eq!(slower_than_usual(&usual(), &more), None);
        assert_eq!(slower_than_usual(&usual()[..4], &past(10, 90.0, 50.0)), None);
        let short: Vec<_> = (0..10).map(|at| past(at, 2.0, 1.0)).collect();
        assert_eq!(slower_than_usual(&short, &past(10, 8.0, 7.0)), None);
        assert_eq!(slower_than_usual(&usual(), &past(10, 25.0, 15.0)), None);
    }
}
