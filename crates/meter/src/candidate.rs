//! Candidates: each stage, and the processor as a whole, as the possible limit of a run.

use crate::run_figures::share_of;
use crate::{Layer, RunFigures, StageCounters};

/// One possible limit, with the evidence for it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Candidate {
    /// The stage's name, or `processor`.
    pub(crate) name: String,
    /// The layer that has the largest part of the stage's working time.
    pub(crate) layer: Layer,
    /// Share of the run in which the stage worked, from 0 to 1, over all of its layers.
    pub(crate) utilisation: f64,
    /// Share of the run in which `layer` worked: the same, unless the stage leans on several.
    pub(crate) layer_utilisation: f64,
    /// How long a request was at `layer`, in words.
    pub(crate) for_a_request: Option<String>,
    /// The largest share of the run that an earlier stage waited for room.
    pub(crate) before_waits: Option<f64>,
    /// The largest share of the run that a later stage waited for input.
    pub(crate) after_waits: Option<f64>,
}

impl Candidate {
    /// How well the queues agree, from 0 to 1: full before a limit, empty after it.
    pub(crate) fn backing(&self) -> f64 {
        match (self.before_waits, self.after_waits) {
            (Some(before), Some(after)) => f64::midpoint(before, after),
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => 0.5,
        }
    }
}

/// Every stage of the run as a candidate, in pipeline order; parts with one name are one stage.
pub(crate) fn of_stages(run: &RunFigures) -> Vec<Candidate> {
    let stages = gather(run.stages.iter().filter(|stage| stage.threads > 0));
    let waits = |parts: &[&StageCounters], of: fn(&StageCounters) -> f64| -> f64 {
        let share: f64 = parts.iter().map(|part| part.share(of(part), run.wall_seconds)).sum();
        share.min(1.0)
    };
    let worst = |range: &[Vec<&StageCounters>], of: fn(&StageCounters) -> f64| {
        range.iter().map(|parts| waits(parts, of)).reduce(f64::max)
    };
    let candidate = |(at, parts): (usize, &Vec<&StageCounters>)| {
        let working = |part: &&StageCounters| part.share(part.working_seconds, run.wall_seconds);
        let main = parts.iter().max_by(|a, b| working(a).total_cmp(&working(b)))?;
        Some(Candidate {
            name: main.name.clone(),
            layer: main.layer,
            utilisation: parts.iter().map(working).sum::<f64>().min(1.0),
            layer_utilisation: working(main),
            for_a_request: main.for_a_request(),
            before_waits: worst(stages.get(..at)?, |part| part.waiting_out_seconds),
            after_waits: worst(stages.get(at + 1..)?, |part| part.waiting_in_seconds),
        })
    };
    stages.iter().enumerate().filter_map(candidate).collect()
}

/// What was under way for the largest share of the run, and for which: a time that is no stage's, or a stage of
/// which at least one thread worked. A large file is read by one thread, however many there are.
pub(crate) fn under_way(run: &RunFigures) -> Option<(&StageCounters, f64)> {
    let share = |stage: &StageCounters| {
        let seconds =
            if stage.threads == 0 { Some(stage.working_seconds) } else { stage.busy_seconds };
        seconds.map_or(0.0, |seconds| share_of(seconds, run.wall_seconds))
    };
    let shares = run.stages.iter().map(|stage| (stage, share(stage)));
    shares.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// The stage whose requests were on the network for longest together, and for which share of the run, if each of
/// them was for at least so many seconds by the mean.
pub(crate) fn long_requests(run: &RunFigures, seconds: f64) -> Option<(&StageCounters, f64)> {
    let is_long = |stage: &&StageCounters| {
        let requests = stage.requests.filter(|requests| *requests > 0);
        stage.layer == Layer::Network
            && requests.is_some_and(|requests| stage.working_seconds >= seconds * requests as f64)
    };
    let slowest = run.stages.iter().filter(is_long);
    let slowest = slowest.max_by(|a, b| a.working_seconds.total_cmp(&b.working_seconds))?;
    Some((slowest, share_of(slowest.working_seconds, run.wall_seconds)))
}

/// The processor as a whole: how much of the cores the process used, or was denied.
pub(crate) fn of_processor(run: &RunFigures) -> Candidate {
    let utilisation = run.used_share().max(run.throttled_share());
    Candidate {
        name: "processor".to_owned(),
        layer: Layer::ClientCpu,
        utilisation,
        layer_utilisation: utilisation,
        for_a_request: None,
        before_waits: None,
        after_waits: None,
    }
}

/// The stages in order of first appearance, each with its parts.
fn gather<'a>(counters: impl Iterator<Item = &'a StageCounters>) -> Vec<Vec<&'a StageCounters>> {
    let mut stages: Vec<Vec<&StageCounters>> = Vec::new();
    for part in counters {
        let same = |parts: &&mut Vec<&StageCounters>| {
            parts.first().is_some_and(|first| first.name == part.name)
        };
        match stages.iter_mut().find(same) {
            Some(parts) => parts.push(part),
            None => stages.push(vec![part]),
        }
    }
    stages
}
