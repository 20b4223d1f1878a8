//! Judging: from the counters of a run to the layer that limited it.
//!
//! The limit of a pipeline is the stage that is always at work, while the queue before it is full
//! and the queue after it is empty. Utilisation finds it; the neighbours' waiting says how sure
//! that is. The processor comes first: where it is used up, every other stage looks busy too,
//! because its threads wait for a core in the middle of whatever they do.

use crate::candidate::{self, Candidate};
use crate::help::{HELP_BESIDE_OTHERS, HELP_FAR_AWAY, HELP_QUOTA};
use crate::{Layer, RunFigures, StageCounters, Unit, Verdict};

/// A run shorter than this is start-up, whatever its counters say.
const TOO_SHORT_SECONDS: f64 = 0.3;
/// No start-up takes longer than this.
const START_UP_SECONDS: f64 = 5.0;
/// Below this utilisation no stage did anything worth naming.
const IDLE: f64 = 0.1;
/// Below this utilisation no stage is called the limit.
const BUSY_ENOUGH: f64 = 0.4;
/// From this share of its cores on, a process is out of processor.
const CORES_USED_UP: f64 = 0.9;
/// A process that was denied the processor for this share of the run is out of it too.
const MOSTLY_THROTTLED: f64 = 0.5;
/// A process that used at least this share of cores that all were busy is short of them, whoever has the
/// rest: with less it may only have run beside somebody else's work.
const PART_OF_THE_CROWD: f64 = 0.25;
/// With less than this share of the cores, a process beside others that keep all of them busy hardly wanted one.
const WANTED_CORES: f64 = 0.05;
/// A stage that was at work for this share of a run limits it even if others keep all cores busy: one that only
/// waits for a core in the middle of its work does less.
const AT_WORK_ALL_THE_TIME: f64 = 0.9;
/// The same of what a server tells by its own clock, which no program here makes longer.
const SERVER_AT_WORK: f64 = 0.7;
/// How much less sure a verdict is beside other programs on all cores.
const BESIDE_OTHERS: f64 = 0.75;
/// Connections that carried bytes for this share of a run are full, however short of cores it was: who has no
/// processor to fill them leaves them empty now and then.
const PATH_FULL: f64 = 0.7;
/// What was under way for this share of a run in which no stage was busy limited it.
const MOSTLY: f64 = 0.5;
/// A request that takes so long by the mean is slow for what it carries, however far the other end is.
const LONG_REQUEST_SECONDS: f64 = 3.0;
/// Memory that was waited for so long limited the run, whatever the stages were at when it was: they look
/// busy meanwhile, and with enough memory none of that time is lost.
const MEMORY_SHORT: f64 = 0.3;
/// Candidates whose utilisation differs by less than this share are close.
const CLOSE: f64 = 0.15;
/// Close candidates whose queues differ by less than this cannot be told apart.
const SAME_BACKING: f64 = 0.1;

/// Names the layer that limited `run`.
pub fn judge(run: &RunFigures) -> Verdict {
    if run.wall_seconds < TOO_SHORT_SECONDS {
        let why =
            format!("The run took {:.2} s, too short to say what limits it.", run.wall_seconds);
        return verdict(run, Layer::Nothing, 0.5, 1.0, why);
    }
    let processor = candidate::of_processor(run);
    if used_up(run) {
        return out_of_processor(run, &processor);
    }
    let stalled = run.stalled_share().max(run.reading_back_share());
    if stalled >= MEMORY_SHORT {
        return out_of_memory(run, stalled);
    }
    if is_crowded(run) {
        // It is the path that limits, as the kernel saw it, which needs no core to see it.
        let is_path_full = run.carrying_share() >= PATH_FULL;
        return if is_path_full { full_path(run) } else { crowded_out(run, &processor) };
    }
    let crowded = run.busy_share() >= CORES_USED_UP;
    let by_stages = judge_stages(run, processor.clone());
    if crowded { beside_others(run, by_stages, &processor) } else { by_stages }
}

/// Names the busiest stage's layer, of a run that had cores to spare.
fn judge_stages(run: &RunFigures, processor: Candidate) -> Verdict {
    let mut candidates = candidate::of_stages(run);
    candidates.push(processor);
    candidates.sort_by(|a, b| b.utilisation.total_cmp(&a.utilisation));
    let busiest = candidates.first().map_or(0.0, |top| top.utilisation);
    let under_way = candidate::under_way(run).filter(|(_, share)| *share >= MOSTLY);
    let long = candidate::long_requests(run, LONG_REQUEST_SECONDS);
    let long = long.filter(|(_, share)| *share >= MOSTLY);
    match (candidates.first(), long.or(under_way)) {
        (Some(top), _) if busiest >= BUSY_ENOUGH => weigh(run, &candidates, top),
        (_, Some((stage, share))) if long.is_some() => slow_path(run, stage, share),
        (_, Some((stage, share))) if stage.threads > 0 => one_at_a_time(run, stage, share),
        _ if busiest < IDLE && run.wall_seconds < START_UP_SECONDS => {
            let why = format!("Start-up took most of the {:.1} s.", run.wall_seconds);
            verdict(run, Layer::Nothing, 0.7, 1.0, why)
        }
        (_, Some((talk, share))) => one_after_another(run, talk.layer, share),
        _ => waited(run, busiest),
    }
}

/// The verdict on a run in which no stage was busy, and nothing that was under way is known.
fn waited(run: &RunFigures, busiest: f64) -> Verdict {
    let why = format!(
        "No stage worked for more than {} of the {:.1} s; most of it was waiting that no stage counted.",
        percent(busiest),
        run.wall_seconds
    );
    verdict(run, Layer::Unsure, 0.3, busiest, why)
}

/// The verdict on a run in which no stage was busy with all of its threads, and one always had some at work.
fn one_at_a_time(run: &RunFigures, stage: &StageCounters, share: f64) -> Verdict {
    let why = format!(
        "{} limited the run: {} worked for {} of the {:.1} s with {:.1} of its {} threads on average, as if one \
         file were most of the data.",
        stage.layer.subject(),
        stage.name,
        percent(share),
        run.wall_seconds,
        stage.working_seconds / (share * run.wall_seconds),
        stage.threads
    );
    verdict(run, stage.layer, 0.8 * share, share, why)
}

/// The verdict on a run in which few requests were under way, each for long.
fn slow_path(run: &RunFigures, stage: &StageCounters, share: f64) -> Verdict {
    let requests = stage.requests.unwrap_or(1).max(1);
    let why = format!(
        "{} limited the run: {requests} requests ({}) took {:.1} s each on average, with their waiting for \
         each other, and together {} of the {:.1} s.",
        stage.layer.subject(),
        stage.name,
        stage.working_seconds / requests as f64,
        percent(share),
        run.wall_seconds
    );
    verdict(run, stage.layer, 0.8 * share, share, why)
}

/// The verdict on a run in which no stage was busy, because requests waited for each other.
fn one_after_another(run: &RunFigures, layer: Layer, share: f64) -> Verdict {
    let why = format!(
        "{} limited the run: for {} of the {:.1} s requests were on their way, one after another, and \
         no stage had more to do meanwhile; it is its distance, not its speed.",
        layer.subject(),
        percent(share),
        run.wall_seconds
    );
    let mut verdict = verdict(run, layer, 0.8 * share, share, why);
    verdict.by_distance = layer == Layer::Network;
    if verdict.by_distance {
        verdict.help = Some(HELP_FAR_AWAY.to_owned());
    }
    verdict
}

fn used_up(run: &RunFigures) -> bool {
    run.used_share() >= CORES_USED_UP || run.throttled_share() >= MOSTLY_THROTTLED
}

/// Whether all cores were at work, a good part of them on this run, so that its other stages look busy
/// while they wait for a core: a server on the same computer looks like a slow network.
fn is_crowded(run: &RunFigures) -> bool {
    run.busy_share() >= CORES_USED_UP && run.used_share() >= PART_OF_THE_CROWD
}

/// The verdict on a run whose connections were full though all cores were at work.
fn full_path(run: &RunFigures) -> Verdict {
    let carrying = run.carrying_share();
    let why = format!(
        "{} limited the run: for {} of the {:.1} s bytes were on their way that the other end had room \
         for, though this computer's cores were at work for {}, {} of that for this program.",
        Layer::Network.subject(),
        percent(carrying),
        run.wall_seconds,
        percent(run.busy_share()),
        percent(run.used_share() / run.busy_share())
    );
    verdict(run, Layer::Network, 0.8 * carrying, carrying, why)
}

/// The verdict on a run that shared cores which were all at work.
fn crowded_out(run: &RunFigures, processor: &Candidate) -> Verdict {
    let busy = run.busy_share();
    let own = processor.utilisation / busy;
    let (at_work, own_part) = (percent(busy), percent(own));
    if own >= MOSTLY {
        let why = format!(
            "This computer's processor limited the run: its cores were at work for {at_work} of the {:.1} s, \
             {own_part} of that for this program, and the rest for others, such as a server that runs here.",
            run.wall_seconds
        );
        return verdict(run, Layer::ClientCpu, 0.8 * busy, busy, why);
    }
    let why = format!(
        "Other programs kept this computer's cores busy: they were at work for {at_work} of the {:.1} s, and only \
         {own_part} of that was for this program.",
        run.wall_seconds
    );
    Verdict {
        help: Some(HELP_BESIDE_OTHERS.to_owned()),
        ..verdict(run, Layer::ClientCpu, 0.8 * busy, busy, why)
    }
}

/// The verdict on a run that had little of cores which were all at work: its stages look busy while they wait for
/// one. So only one that worked all the time is named, with less confidence.
fn beside_others(run: &RunFigures, by_stages: Verdict, processor: &Candidate) -> Verdict {
    if run.carrying_share() >= PATH_FULL {
        return full_path(run);
    }
    let at_work = match by_stages.limited_by {
        Layer::ClientCpu | Layer::Unsure | Layer::Nothing => f64::INFINITY,
        Layer::ServerCpu | Layer::ServerDisk | Layer::ServerBusy => SERVER_AT_WORK,
        _ => AT_WORK_ALL_THE_TIME,
    };
    let is_clear = by_stages.ratio >= at_work;
    if !is_clear && run.used_share() >= WANTED_CORES {
        return crowded_out(run, processor);
    }
    let explanation = format!(
        "{} Other programs kept this computer's cores busy for {} of that time.",
        by_stages.explanation,
        percent(run.busy_share())
    );
    Verdict { explanation, confidence: by_stages.confidence * BESIDE_OTHERS, ..by_stages }
}

/// The verdict on a run whose process had no processor left.
fn out_of_processor(run: &RunFigures, processor: &Candidate) -> Verdict {
    let throttled = run.throttled_share();
    let confidence = processor.utilisation.max(0.9);
    let limited = |why| verdict(run, Layer::ClientCpu, confidence, processor.utilisation, why);
    if throttled >= MOSTLY_THROTTLED {
        let why = format!(
            "This computer's processor limited the run: a quota kept the process off it for {} of \
             the {:.1} s.",
            percent(throttled),
            run.wall_seconds
        );
        return Verdict { help: Some(HELP_QUOTA.to_owned()), ..limited(why) };
    }
    limited(format!(
        "This computer's processor limited the run: it used {:.1} s of the {:.1} s that its cores ({:.3}) had \
         to give.",
        run.process_cpu_seconds,
        run.wall_seconds * run.cores_available,
        run.cores_available
    ))
}

/// The verdict on a run that waited for memory for this share of its time.
fn out_of_memory(run: &RunFigures, stalled: f64) -> Verdict {
    let why = format!(
        "{} limited the run: for {} of the {:.1} s programs waited for memory that was in use \
         elsewhere, or for what had to be read back into it ({} pages of this program's own).",
        Layer::ClientMemory.subject(),
        percent(stalled),
        run.wall_seconds,
        run.pages_read_back
    );
    verdict(run, Layer::ClientMemory, stalled, stalled, why)
}

/// The verdict among candidates that are busy enough, sorted by utilisation; `top` is the first.
fn weigh(run: &RunFigures, candidates: &[Candidate], top: &Candidate) -> Verdict {
    let rival = candidates.iter().find(|other| other.layer != top.layer);
    let Some(rival) = rival.filter(|rival| is_close(top, rival)) else {
        let distance = rival.map_or(1.0, |rival| 1.0 - rival.utilisation / top.utilisation);
        return limited(run, top, None, confidence(top, distance));
    };
    let difference = top.backing() - rival.backing();
    if difference.abs() < SAME_BACKING {
        let why = format!(
            "{} ({} of the time) and {} ({}) are too close to tell which limited the run.",
            top.name,
            percent(top.utilisation),
            rival.name,
            percent(rival.utilisation)
        );
        return verdict(run, Layer::Unsure, 0.3, top.layer_utilisation, why);
    }
    let (winner, loser) = if difference > 0.0 { (top, rival) } else { (rival, top) };
    limited(run, winner, Some(loser), confidence(winner, 0.0) * 0.8)
}

fn is_close(top: &Candidate, rival: &Candidate) -> bool {
    rival.utilisation >= top.utilisation * (1.0 - CLOSE)
}

/// How sure: busy all the time, agreed with by its neighbours, far ahead of the next layer.
fn confidence(candidate: &Candidate, distance: f64) -> f64 {
    let ahead = (distance / 0.5).min(1.0);
    0.5 * candidate.utilisation + 0.3 * candidate.backing() + 0.2 * ahead
}

/// The verdict that names `candidate`, with the sentence that says why.
fn limited(
    run: &RunFigures,
    candidate: &Candidate,
    close: Option<&Candidate>,
    confidence: f64,
) -> Verdict {
    let mut why = format!(
        "{} limited the run: {} worked for {} of the {:.1} s",
        candidate.layer.subject(),
        candidate.name,
        percent(candidate.utilisation),
        run.wall_seconds
    );
    if candidate.utilisation - candidate.layer_utilisation > 0.01 {
        why += &format!(", {} of it on this", percent(candidate.layer_utilisation));
    }
    if let Some(took) = &candidate.for_a_request {
        why += &format!(" ({took})");
    }
    if let Some(before) = candidate.before_waits {
        why += &format!(", a stage before it waited up to {} for room", percent(before));
    }
    if let Some(after) = candidate.after_waits {
        why += &format!(", a stage after it up to {} for input", percent(after));
    }
    if let Some(close) = close {
        why += &format!("; {} ({}) is close", close.name, percent(close.utilisation));
    }
    why.push('.');
    verdict(run, candidate.layer, confidence, candidate.layer_utilisation, why)
}

/// Puts a verdict together; `utilisation` is the limiting layer's, in `(0, 1]`.
fn verdict(
    run: &RunFigures,
    limited_by: Layer,
    confidence: f64,
    utilisation: f64,
    explanation: String,
) -> Verdict {
    let amount = match run.unit {
        Unit::ItemsPerSecond => run.items,
        Unit::BytesPerSecond => run.bytes,
    };
    let achieved = if run.wall_seconds > 0.0 { amount as f64 / run.wall_seconds } else { 0.0 };
    let ratio = utilisation.clamp(0.01, 1.0);
    Verdict {
        limited_by,
        confidence: confidence.clamp(0.0, 1.0),
        achieved,
        ceiling: achieved / ratio,
        unit: run.unit,
        ratio,
        explanation,
        help: limited_by.help(None),
        by_distance: false,
        stages: run.stages.clone(),
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Latency;

    const WALL: f64 = 10.0;

    /// A stage of one thread: shares of the run working, waiting for input, waiting for output.
    fn stage(name: &str, layer: Layer, working: f64, input: f64, output: f64) -> StageCounters {
        StageCounters {
            working_seconds: working * WALL,
            waiting_in_seconds: input * WALL,
            waiting_out_seconds: output * WALL,
            ..StageCounters::new(name, layer, 1)
        }
    }

    fn run(stages: Vec<StageCounters>) -> RunFigures {
        RunFigures {
            wall_seconds: WALL,
            items: 100_000,
            bytes: 1_000_000_000,
            unit: Unit::ItemsPerSecond,
            stages,
            process_cpu_seconds: 0.3 * WALL,
            cores_available: 2.0,
            cpu_throttled_seconds: None,
            computer_busy_share: None,
            memory_stalled_seconds: None,
            pages_read_back: 0,
            carrying_seconds: 0.0,
        }
    }

    /// A pipeline in which the stage at `busy` is at work and the others wait for it.
    fn pipeline(busy: usize) -> Vec<StageCounters> {
        let layers = [
            ("walk", Layer::SourceMetadata),
            ("read", Layer::SourceRead),
            ("seal", Layer::ClientCpu),
            ("budget", Layer::ClientMemory),
            ("send", Layer::Network),
            ("write", Layer::TargetWrite),
        ];
        let counters = |(at, (name, layer)): (usize, (&str, Layer))| match at.cmp(&busy) {
            std::cmp::Ordering::Less => stage(name, layer, 0.2, 0.0, 0.8),
            std::cmp::Ordering::Equal => stage(name, layer, 0.95, 0.03, 0.02),
            std::cmp::Ordering::Greater => stage(name, layer, 0.2, 0.8, 0.0),
        };
        layers.into_iter().enumerate().map(counters).collect()
    }

    #[test]
    fn the_stage_that_never_waits_names_its_layer() {
        for (at, counters) in pipeline(0).into_iter().enumerate() {
            let verdict = judge(&run(pipeline(at)));
            assert_eq!(verdict.limited_by, counters.layer, "{}", verdict.explanation);
            assert!(verdict.confidence > 0.85, "{}: {}", counters.name, verdict.confidence);
            assert!(verdict.explanation.contains("95 % of the 10.0 s"), "{}", verdict.explanation);
        }
    }

    #[test]
    fn a_sender_split_by_layer_names_the_layer_that_it_waited_for() {
        for layer in [Layer::Network, Layer::ServerCpu, Layer::ServerDisk, Layer::ServerBusy] {
            let mut stages = vec![stage("seal", Layer::ClientCpu, 0.55, 0.0, 0.45)];
            for part in [Layer::Network, Layer::ServerCpu, Layer::ServerDisk, Layer::ServerBusy] {
                let working = if part == layer { 0.5 } else { 0.14 };
                stages.push(stage("send", part, working, 0.02, 0.0));
            }
            let verdict = judge(&run(stages));
            assert_eq!(verdict.limited_by, layer, "{}", verdict.explanation);
            assert_eq!(verdict.ratio, 0.5);
            assert_eq!(verdict.stages.len(), 5);
        }
    }

    #[test]
    fn of_a_layer_that_requests_were_at_it_is_told_how_long_one_was() {
        let of_disk = Latency { p50: 1, p90: 1, p99: 240_000_000, p99_9: 240_000_000 };
        let counted = |p99, part: StageCounters| StageCounters {
            requests: Some(500),
            latency_ns: Some(Latency { p99, ..of_disk }),
            ..part
        };
        let mut stages = vec![
            stage("seal", Layer::ClientCpu, 0.2, 0.0, 0.75),
            counted(1, stage("send", Layer::Network, 0.3, 0.02, 0.0)),
            counted(of_disk.p99, stage("send", Layer::ServerDisk, 0.6, 0.0, 0.0)),
        ];
        let why = judge(&run(stages.clone())).explanation;
        let told =
            "60 % of it on this (12.0 ms for a request on average, 240.0 ms at p99), a stage";
        assert!(why.contains(told), "{why}");
        stages.iter_mut().for_each(|stage| stage.latency_ns = None);
        let why = judge(&run(stages)).explanation;
        assert!(why.contains("60 % of it on this, a stage"), "{why}");
    }

    #[test]
    fn a_process_that_uses_all_its_cores_is_limited_by_them_even_if_the_sender_looks_busy() {
        let mut figures = run(pipeline(4));
        figures.process_cpu_seconds = 0.95 * 2.0 * WALL;
        assert_eq!(judge(&figures).limited_by, Layer::ClientCpu);
    }

    #[test]
    fn a_fifth_of_a_core_used_up_is_the_processor() {
        let mut figures = run(pipeline(1));
        figures.process_cpu_seconds = 0.2 * WALL;
        figures.cores_available = 0.2;
        assert_eq!(judge(&figures).limited_by, Layer::ClientCpu);
    }

    #[test]
    fn a_throttled_process_is_limited_by_the_processor() {
        let mut figures = run(pipeline(1));
        figures.cpu_throttled_seconds = Some(0.8 * WALL);
        let verdict = judge(&figures);
        assert_eq!(verdict.limited_by, Layer::ClientCpu);
        assert!(verdict.explanation.contains("80 %"), "{}", verdict.explanation);
    }

    #[test]
    fn cores_that_others_keep_busy_too_are_the_limit_where_this_run_has_a_good_part_of_them() {
        let mut figures = run(pipeline(4));
        figures.process_cpu_seconds = 0.6 * 2.0 * WALL;
        figures.computer_busy_share = Some(0.96);
        let verdict = judge(&figures);
        assert_eq!(verdict.limited_by, Layer::ClientCpu);
        let why = &verdict.explanation;
        assert!(why.contains("96 % of the 10.0 s, 62 % of that for this program"), "{why}");
        // Somebody else's work beside a run that waits for the network.
        figures.process_cpu_seconds = 0.2 * 2.0 * WALL;
        assert_eq!(judge(&figures).limited_by, Layer::Network);
        // Cores that are free now and then.
        figures.process_cpu_seconds = 0.6 * 2.0 * WALL;
        figures.computer_busy_share = Some(0.8);
        assert_eq!(judge(&figures).limited_by, Layer::Network);
    }

    #[test]
    fn where_others_have_nearly_all_of_the_cores_stages_that_wait_for_one_are_not_blamed() {
        let beside_others = |stages| RunFigures {
            process_cpu_seconds: 0.2 * 2.0 * WALL,
            computer_busy_share: Some(0.98),
            ..run(stages)
        };
        // Three busy loops beside a backup on two cores: readers and sealers wait for a core.
        let waiting = vec![
            stage("read", Layer::SourceRead, 0.65, 0.1, 0.25),
            stage("seal", Layer::ClientCpu, 0.58, 0.3, 0.0),
        ];
        for stages in [waiting, vec![stage("read", Layer::SourceRead, 0.2, 0.1, 0.0)]] {
            let verdict = judge(&beside_others(stages));
            assert_eq!(verdict.limited_by, Layer::ClientCpu, "{}", verdict.explanation);
            let why = &verdict.explanation;
            assert!(why.contains("Other programs kept this computer's cores busy"), "{why}");
            assert!(why.contains("20 % of that was for this program"), "{why}");
            assert!(verdict.help.unwrap().contains("fewer programs beside it"));
        }
        // What is at work nearly all the time limits whoever has the cores; but it is less sure.
        let clear = judge(&beside_others(pipeline(4)));
        assert_eq!(clear.limited_by, Layer::Network);
        assert!(clear.explanation.contains("Other programs kept"), "{}", clear.explanation);
        assert!(clear.confidence < judge(&run(pipeline(4))).confidence);
        // A server tells by its own clock how long its disk took, which no program here makes longer.
        let of_server = |layer| {
            let stages = vec![
                stage("seal", Layer::ClientCpu, 0.5, 0.0, 0.5),
                stage("send", layer, 0.8, 0.02, 0.0),
            ];
            judge(&beside_others(stages)).limited_by
        };
        assert_eq!(of_server(Layer::ServerDisk), Layer::ServerDisk);
        assert_eq!(of_server(Layer::Network), Layer::ClientCpu);
        // Nor does the kernel need a core to see that connections are full.
        let mut full = beside_others(vec![stage("send", Layer::Network, 0.8, 0.02, 0.0)]);
        full.carrying_seconds = 0.8 * WALL;
        assert_eq!(judge(&full).limited_by, Layer::Network);
    }

    #[test]
    fn against_a_quota_a_higher_quota_would_help() {
        let mut figures = run(pipeline(1));
        figures.cpu_throttled_seconds = Some(0.8 * WALL);
        let help = judge(&figures).help.unwrap();
        assert!(help.contains("a higher quota"), "{help}");
    }

    #[test]
    fn connections_that_are_full_all_the_same_are_the_limit_where_others_keep_cores_busy() {
        let mut figures = run(pipeline(4));
        figures.stages[4].threads = 4;
        figures.stages[4].working_seconds *= 4.0;
        figures.process_cpu_seconds = 0.6 * 2.0 * WALL;
        figures.computer_busy_share = Some(0.96);
        let carried =
            |share: f64| RunFigures { carrying_seconds: share * 4.0 * WALL, ..figures.clone() };
        let verdict = judge(&carried(0.92));
        assert_eq!(verdict.limited_by, Layer::Network);
        let why = &verdict.explanation;
        assert!(why.contains("for 92 % of the 10.0 s bytes were on their way"), "{why}");
        assert!(why.contains("at work for 96 %, 62 % of that for this program"), "{why}");
        assert!((verdict.ratio - 0.92).abs() < 1e-9);
        // Whatever else asks beside it, with fewer threads.
        let mut asking = carried(0.5);
        asking
            .stages
            .push(StageCounters { threads: 2, ..stage("ask", Layer::Network, 1.96, 0.0, 0.0) });
        assert_eq!(judge(&asking).limited_by, Layer::ClientCpu);
        // A server beside it that is as short of cores takes what comes when it can.
        assert_eq!(judge(&carried(0.5)).limited_by, Layer::ClientCpu);
        // Its own work leaves no core.
        let own = RunFigures { process_cpu_seconds: 1.9 * WALL, ..carried(0.92) };
        assert_eq!(judge(&own).limited_by, Layer::ClientCpu);
    }

    #[test]
    fn a_little_throttling_does_not_hide_a_slow_disk() {
        let mut figures = run(vec![
            stage("seal", Layer::ClientCpu, 0.1, 0.0, 0.9),
            stage("send", Layer::ServerDisk, 0.97, 0.01, 0.0),
        ]);
        figures.cpu_throttled_seconds = Some(0.05 * WALL);
        assert_eq!(judge(&figures).limited_by, Layer::ServerDisk);
    }

    #[test]
    fn memory_that_is_waited_for_most_of_the_time_is_the_limit_unless_the_processor_is() {
        let mut figures = run(pipeline(1));
        figures.memory_stalled_seconds = Some(0.2 * WALL);
        assert_eq!(judge(&figures).limited_by, Layer::SourceRead);
        figures.memory_stalled_seconds = Some(0.7 * WALL);
        let verdict = judge(&figures);
        assert_eq!(verdict.limited_by, Layer::ClientMemory);
        assert!(verdict.explanation.contains("70 %"), "{}", verdict.explanation);
        // What was waited for may have been before a run that is short.
        let short = RunFigures { wall_seconds: 1.0, ..figures.clone() };
        assert_ne!(judge(&short).limited_by, Layer::ClientMemory);
        figures.process_cpu_seconds = 1.9 * WALL;
        assert_eq!(judge(&figures).limited_by, Layer::ClientCpu);
    }

    #[test]
    fn a_run_of_a_moment_is_limited_by_nothing() {
        let mut figures = run(pipeline(4));
        figures.wall_seconds = 0.29;
        let verdict = judge(&figures);
        assert_eq!(verdict.limited_by, Layer::Nothing);
        assert_eq!(verdict.ceiling, verdict.achieved);
    }

    #[test]
    fn a_run_in_which_nobody_works_is_only_start_up() {
        let mut figures = run(vec![stage("walk", Layer::SourceMetadata, 0.002, 0.0, 0.0)]);
        figures.process_cpu_seconds = 0.05;
        // So long a start-up is none, and nobody knows what it was.
        assert_eq!(judge(&figures).limited_by, Layer::Unsure);
        figures.wall_seconds = 2.0;
        assert_eq!(judge(&figures).limited_by, Layer::Nothing);
        figures.stages.clear();
        assert_eq!(judge(&figures).limited_by, Layer::Nothing);
    }

    #[test]
    fn requests_that_wait_for_each_other_are_the_network_unless_a_stage_is_busy() {
        let talk = |share: f64| StageCounters {
            threads: 0,
            ..stage("talk", Layer::Network, share, 0.0, 0.0)
        };
        let quiet = || vec![stage("read", Layer::SourceRead, 0.2, 0.1, 0.1)];
        let verdict = judge(&run([quiet(), vec![talk(0.9)]].concat()));
        assert_eq!(verdict.limited_by, Layer::Network, "{}", verdict.explanation);
        assert!(verdict.explanation.contains("90 %") && verdict.explanation.contains("distance"));
        let help = verdict.help.as_deref().unwrap_or_default();
        assert!(verdict.by_distance && help.contains("nearer"), "{help}");
        assert!(help.contains("a faster wire would change little"), "{help}");
        let verdict = judge(&run([quiet(), vec![talk(0.4)]].concat()));
        assert_eq!(verdict.limited_by, Layer::Unsure, "{}", verdict.explanation);
        let busy = stage("read", Layer::SourceRead, 0.95, 0.0, 0.0);
        let verdict = judge(&run(vec![busy, talk(1.0)]));
        assert_eq!(verdict.limited_by, Layer::SourceRead, "{}", verdict.explanation);
    }

    #[test]
    fn a_single_request_that_takes_all_the_time_is_the_speed_of_the_network() {
        let fetch = StageCounters {
            threads: 4,
            requests: Some(1),
            ..stage("fetch", Layer::Network, 0.95, 0.0, 0.0)
        };
        let talk = StageCounters { threads: 0, ..stage("talk", Layer::Network, 0.95, 0.0, 0.0) };
        let verdict = judge(&run(vec![fetch.clone(), talk.clone()]));
        assert_eq!(verdict.limited_by, Layer::Network, "{}", verdict.explanation);
        assert!(!verdict.by_distance, "{}", verdict.explanation);
        assert!(verdict.explanation.contains("9.5 s each"), "{}", verdict.explanation);
        let many = StageCounters { requests: Some(100), ..fetch };
        assert!(judge(&run(vec![many, talk])).by_distance);
    }

    #[test]
    fn a_source_with_one_large_file_is_named_however_many_threads_could_read() {
        let read = StageCounters {
            threads: 8,
            busy_seconds: Some(0.97 * WALL),
            ..stage("read", Layer::SourceRead, 0.97, 6.9, 0.0)
        };
        let talk = StageCounters { threads: 0, ..stage("talk", Layer::Network, 0.6, 0.0, 0.0) };
        let sealed = StageCounters {
            threads: 8,
            busy_seconds: Some(0.1 * WALL),
            ..stage("seal", Layer::ClientCpu, 0.2, 7.0, 0.0)
        };
        let verdict = judge(&run(vec![read.clone(), sealed.clone(), talk.clone()]));
        assert_eq!(verdict.limited_by, Layer::SourceRead, "{}", verdict.explanation);
        let why = &verdict.explanation;
        assert!(why.contains("97 % of the 10.0 s with 1.0 of its 8 threads"), "{why}");
        assert!((verdict.ratio - 0.97).abs() < 1e-9 && !verdict.by_distance);
        // Requests one after another, and a source that is read meanwhile.
        let talking = StageCounters { working_seconds: 0.98 * WALL, ..talk };
        let seldom = StageCounters { busy_seconds: Some(0.6 * WALL), ..read.clone() };
        let verdict = judge(&run(vec![seldom, sealed, talking]));
        assert_eq!(verdict.limited_by, Layer::Network, "{}", verdict.explanation);
        // Many threads that are at work now and then, before one that always is.
        let often = StageCounters { threads: 16, working_seconds: 3.0 * WALL, ..read };
        let send = stage("send", Layer::Network, 0.9, 0.0, 0.0);
        assert_eq!(judge(&run(vec![often, send])).limited_by, Layer::Network);
    }

    #[test]
    fn a_run_in_which_nobody_works_much_is_unsure() {
        let figures = run(vec![stage("read", Layer::SourceRead, 0.3, 0.0, 0.1)]);
        assert_eq!(judge(&figures).limited_by, Layer::Unsure);
    }

    #[test]
    fn two_layers_that_the_queues_cannot_tell_apart_are_unsure() {
        let verdict = judge(&run(vec![
            stage("read", Layer::SourceRead, 0.8, 0.0, 0.1),
            stage("send", Layer::Network, 0.82, 0.1, 0.0),
        ]));
        assert_eq!(verdict.limited_by, Layer::Unsure);
        assert!(verdict.confidence < 0.5);
    }

    #[test]
    fn between_close_layers_the_full_queue_decides_and_confidence_is_lower() {
        let clear = judge(&run(pipeline(4)));
        let verdict = judge(&run(vec![
            stage("read", Layer::SourceRead, 0.6, 0.0, 0.4),
            stage("seal", Layer::ClientCpu, 0.3, 0.0, 0.7),
            stage("send", Layer::Network, 0.58, 0.02, 0.0),
        ]));
        assert_eq!(verdict.limited_by, Layer::Network, "{}", verdict.explanation);
        assert!(verdict.confidence < clear.confidence);
    }

    #[test]
    fn many_threads_share_one_utilisation() {
        let mut read = stage("read", Layer::SourceRead, 2.0, 0.0, 2.0);
        read.threads = 4;
        let send = stage("send", Layer::Network, 0.9, 0.1, 0.0);
        assert_eq!(judge(&run(vec![read, send])).limited_by, Layer::Network);
    }

    #[test]
    fn the_ceiling_is_what_the_limiting_layer_alone_could_do() {
        let mut figures = run(vec![stage("read", Layer::SourceRead, 0.8, 0.0, 0.0)]);
        let verdict = judge(&figures);
        assert_eq!((verdict.achieved, verdict.ceiling, verdict.ratio), (1e4, 1.25e4, 0.8));
        figures.unit = Unit::BytesPerSecond;
        assert_eq!(judge(&figures).achieved, 1e8);
    }

    #[test]
    fn many_pages_that_are_read_back_are_the_memory_and_few_are_not() {
        let mut figures = run(pipeline(2));
        // A program that starts is read from the disk, too.
        figures.pages_read_back = 2000;
        assert_eq!(judge(&figures).limited_by, Layer::ClientCpu);
        figures.pages_read_back = 400_000;
        let verdict = judge(&figures);
        assert_eq!(verdict.limited_by, Layer::ClientMemory);
        assert!(verdict.explanation.contains("400000 pages"), "{}", verdict.explanation);
    }

    #[test]
    fn nonsense_figures_give_finite_verdicts() {
        let mut figures = run(vec![stage("read", Layer::SourceRead, -3.0, 9e9, -1.0)]);
        figures.cores_available = 0.0;
        figures.cpu_throttled_seconds = Some(-5.0);
        figures.memory_stalled_seconds = Some(-5.0);
        figures.computer_busy_share = Some(f64::NAN);
        figures.pages_read_back = u64::MAX;
        for wall in [0.0, -1.0, 1e-9, 1e9] {
            figures.wall_seconds = wall;
            let verdict = judge(&figures);
            assert!(verdict.ceiling.is_finite() && verdict.confidence.is_finite());
        }
    }

    #[test]
    fn the_verdict_serialises_with_the_words_of_the_command_line() {
        let value = serde_json::to_value(judge(&run(pipeline(4)))).unwrap();
        assert_eq!(value["limited_by"], "network");
        assert_eq!(value["unit"], "items/s");
        assert_eq!(value["stages"][0]["name"], "walk");
        for field in ["working", "waiting_in", "waiting_out"] {
            assert!(value["stages"][0][field].is_f64(), "{field}");
        }
    }

    #[test]
    fn the_word_of_a_layer_is_its_serialised_name() {
        for layer in [
            Layer::SourceMetadata,
            Layer::SourceRead,
            Layer::ClientCpu,
            Layer::ClientMemory,
            Layer::Network,
            Layer::ServerCpu,
            Layer::ServerDisk,
            Layer::ServerBusy,
            Layer::TargetWrite,
            Layer::Nothing,
            Layer::Unsure,
        ] {
            assert_eq!(serde_json::to_value(layer).unwrap(), layer.word());
        }
    }
}
