//! What earlier backups and restores took, in the state folder: for estimates, and to say that one
//! was slower than usual.
//!
//! One JSON object a line, the oldest first, the newest 500 of them; replaced as a whole. A line that
//! can not be read costs itself alone: this is for information, and nothing depends on it.

use std::path::{Path, PathBuf};

use anyhow::Result;
use holdall_meter::cost::{CostModel, Past, Slowness, Work, slower_than_usual};
use holdall_meter::{Layer, Verdict};
use serde::{Deserialize, Serialize};

use crate::output::{duration, local_time};
use crate::private_file;

/// Less than that says little about how well a source compresses.
const ENOUGH_BYTES: u64 = 1_000_000;
/// So many runs are kept.
const MOST_RUNS: usize = 500;
/// More than so many runs with all of their stages have.
const LIMIT_BYTES: u64 = 4 << 20;

/// What kind of run it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// A backup.
    Backup,
    /// A restore.
    Restore,
}

/// A run of the past.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Run {
    /// What kind of run it was.
    pub(crate) kind: Kind,
    /// The repository's id.
    pub(crate) repository: String,
    /// Where that is, as `lab path` keeps it: a directory's path, or the id of a server's; unknown of
    /// what is no backup, and of older lines.
    #[serde(default)]
    pub(crate) place: Option<String>,
    /// What was backed up, or where to it was restored: what is usual for one is not for another.
    #[serde(default)]
    pub(crate) what: String,
    /// Whether it was held back on purpose, and says nothing about what could be.
    #[serde(default)]
    pub(crate) limited: bool,
    /// What held it back.
    pub(crate) limited_by: Layer,
    /// What it sent, in bytes; unknown of what is no backup, and of older lines.
    #[serde(default)]
    pub(crate) sent_bytes: Option<u64>,
    /// What it stored, in bytes; unknown likewise.
    #[serde(default)]
    pub(crate) stored_bytes: Option<u64>,
    /// What it had to do and what it took.
    #[serde(flatten)]
    pub(crate) past: Past,
}

impl Run {
    /// A run that ended now.
    pub(crate) fn new(
        kind: Kind,
        (repository, what): (String, String),
        past: Past,
        verdict: &Verdict,
    ) -> Self {
        Self {
            kind,
            repository,
            place: None,
            what,
            limited: false,
            limited_by: verdict.limited_by,
            sent_bytes: None,
            stored_bytes: None,
            past,
        }
    }

    /// Where it led: of older lines, a server's repository alone is known.
    pub(crate) fn led_to(&self) -> &str {
        self.place.as_deref().unwrap_or(&self.repository)
    }
}

/// What share of the bytes that there were to do `of` tells, such as those sent, from 0.05 to 1, by the
/// median; `None` where no run says.
pub(crate) fn share_of_bytes(runs: &[Run], of: impl Fn(&Run) -> Option<u64>) -> Option<f64> {
    let share = |run: &Run| {
        let bytes = run.past.work.bytes;
        let told = of(run).filter(|&told| told > 0 && bytes >= ENOUGH_BYTES)?;
        Some(told as f64 / bytes as f64)
    };
    let mut shares: Vec<f64> = runs.iter().filter_map(share).collect();
    shares.sort_by(f64::total_cmp);
    shares.get(shares.len() / 2).map(|share| share.clamp(0.05, 1.0))
}

/// The history of runs.
pub(crate) struct SpeedHistory {
    path: PathBuf,
}

impl SpeedHistory {
    /// That of a state folder.
    pub(crate) fn in_state(state: &Path) -> Self {
        Self { path: state.join("speed-history.jsonl") }
    }

    /// All runs that can be read, oldest first; none if the file can not be.
    pub(crate) fn runs(&self) -> Vec<Run> {
        let bytes = private_file::read(&self.path, LIMIT_BYTES).ok().flatten().unwrap_or_default();
        let lines = bytes.split(|&byte| byte == b'\n');
        lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
    }

    /// The runs of one kind in one repository that were not held back on purpose, oldest first.
    pub(crate) fn comparable(&self, kind: Kind, repository: &str) -> Vec<Run> {
        let mut runs = self.runs();
        runs.retain(|run| run.kind == kind && run.repository == repository && !run.limited);
        runs
    }

    /// Adds a run.
    ///
    /// # Errors
    /// If it can not be written; the file stays as it was.
    pub(crate) fn add(&self, run: &Run) -> Result<()> {
        let mut runs = self.runs();
        runs.push(run.clone());
        let first = runs.len().saturating_sub(MOST_RUNS);
        let mut bytes = Vec::new();
        for run in &runs[first..] {
            serde_json::to_writer(&mut bytes, run)?;
            bytes.push(b'\n');
        }
        private_file::replace(&self.path, &bytes)
    }

    /// Adds a run, and says whether it was slower than those before it. That the history can not be
    /// written fails no backup.
    pub(crate) fn remember(&self, run: &Run) -> Option<Slowness> {
        let mut earlier = self.comparable(run.kind, &run.repository);
        earlier.retain(|earlier| earlier.what == run.what);
        let earlier: Vec<_> = earlier.into_iter().map(|run| run.past).collect();
        let slowness = slower_than_usual(&earlier, &run.past).filter(|_| !run.limited);
        let _ = self.add(run);
        slowness
    }
}

/// The model of what such runs take, beside what was `measured`.
pub(crate) fn model(runs: &[Run], measured: &[(Work, f64)]) -> CostModel {
    let fitted: Vec<_> = runs.iter().map(|run| (run.past.work, run.past.seconds)).collect();
    CostModel::fit(&fitted, measured)
}

/// The layer that held most of the last runs back, if one did.
pub(crate) fn usual_limit(runs: &[Run]) -> Option<Layer> {
    let named = |layer: &Layer| !matches!(layer, Layer::Nothing | Layer::Unsure);
    let recent: Vec<_> =
        runs.iter().rev().take(10).map(|run| run.limited_by).filter(named).collect();
    let times = |layer: Layer| recent.iter().filter(|&&other| other == layer).count();
    let most = recent.iter().copied().max_by_key(|&layer| times(layer))?;
    (times(most) * 2 > recent.len()).then_some(most)
}

/// A slow run in words.
pub(crate) fn slowness_in_words(slow: &Slowness) -> String {
    let mut words = format!(
        "slower than usual: {:.1} times the {} that such a run takes by the median",
        slow.times,
        duration(slow.usual_seconds)
    );
    if slow.runs > 1 {
        words += &format!(", for {} runs now, since {}", slow.runs, local_time(slow.since_ns));
    }
    words += &format!("; it was not at {}", local_time(slow.usual_until_ns));
    if let Some(stage) = &slow.stage {
        words += &format!("; it is the stage `{stage}` that takes longer");
    }
    words
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use holdall_meter::StageCounters;

    /// A backup of 1,000 items and 1 GB to the repository `one`, limited by the network.
    pub(crate) fn run(at_ns: i64, seconds: f64) -> Run {
        let work = Work { items: 1000, items_unchanged: 0, bytes: 1_000_000_000 };
        Run {
            kind: Kind::Backup,
            repository: "one".into(),
            place: None,
            what: "/home".into(),
            limited: false,
            limited_by: Layer::Network,
            sent_bytes: None,
            stored_bytes: None,
            past: Past { at_ns, work, seconds, stages: Vec::new() },
        }
    }

    #[test]
    fn what_is_sent_of_a_byte_is_known_from_runs_that_say_so() {
        let share = |sent: &[Option<u64>]| {
            let runs = sent.iter().map(|&sent_bytes| Run { sent_bytes, ..run(1, 20.0) });
            share_of_bytes(&runs.collect::<Vec<_>>(), |run| run.sent_bytes)
        };
        assert_eq!([share(&[]), share(&[None, Some(0)])], [None, None]);
        let sent = [None, Some(480_000_000), Some(500_000_000), Some(900_000_000)];
        assert_eq!(share(&sent), Some(0.5));
        assert_eq!([share(&[Some(2_000_000_000)]), share(&[Some(1)])], [Some(1.0), Some(0.05)]);
    }

    #[test]
    fn a_run_leads_to_the_place_that_is_kept_and_an_older_line_to_its_repository() {
        let folder = tempfile::tempdir().unwrap();
        let history = SpeedHistory::in_state(folder.path());
        let mut older = serde_json::to_value(run(1, 20.0)).unwrap();
        assert!(older.as_object_mut().unwrap().remove("place").is_some());
        std::fs::write(&history.path, older.to_string() + "\n").unwrap();
        history.add(&Run { place: Some("/mnt/usb".into()), ..run(2, 20.0) }).unwrap();
        let runs = history.runs();
        let led_to: Vec<_> = runs.iter().map(Run::led_to).collect();
        assert_eq!(led_to, ["one", "/mnt/usb"]);
    }

    #[test]
    fn the_newest_runs_are_kept_and_a_damaged_line_costs_itself_alone() {
        let folder = tempfile::tempdir().unwrap();
        let history = SpeedHistory::in_state(folder.path());
        assert_eq!(history.runs(), []);
        for at in 0..5 {
            history.add(&run(at, 20.0)).unwrap();
        }
        let text = std::fs::read_to_string(&history.path).unwrap();
        let damaged = text.replacen("\"backup\"", "\"bac\u{0}", 1) + "{\"half";
        std::fs::write(&history.path, damaged).unwrap();
        let times: Vec<_> = history.runs().iter().map(|run| run.past.at_ns).collect();
        assert_eq!(times, [1, 2, 3, 4]);
        let many: Vec<_> = (0..MOST_RUNS as i64 + 7).map(|at| run(at, 20.0)).collect();
        let lines = many.iter().map(|run| serde_json::to_string(run).unwrap() + "\n");
        std::fs::write(&history.path, lines.collect::<String>()).unwrap();
        history.add(&run(9999, 20.0)).unwrap();
        let runs = history.runs();
        assert_eq!(
            (runs.len(), runs[0].past.at_ns, runs[MOST_RUNS - 1].past.at_ns),
            (MOST_RUNS, 8, 9999)
        );
    }

    #[test]
    fn a_slow_run_is_told_and_one_that_was_limited_on_purpose_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let history = SpeedHistory::in_state(folder.path());
        for at in 0..6 {
            assert_eq!(history.remember(&run(at, 20.0)), None);
        }
        let on_purpose = Run { limited: true, ..run(6, 200.0) };
        assert_eq!(history.remember(&on_purpose), None);
        let elsewhere = Run { repository: "two".into(), ..run(6, 200.0) };
        assert_eq!(history.remember(&elsewhere), None);
        let another = Run { what: "/mnt/slow".into(), ..run(6, 200.0) };
        assert_eq!(history.remember(&another), None, "it may always be so slow");
        assert!(history.remember(&run(7, 62.0)).is_some());
        assert_eq!(usual_limit(&history.comparable(Kind::Backup, "one")), Some(Layer::Network));
    }

    /// A run that read for 3 seconds, and sent for the rest.
    fn staged(at_ns: i64, seconds: f64) -> Run {
        let mut run = run(at_ns, seconds);
        let stage = |name: &str, layer, working_seconds| StageCounters {
            working_seconds,
            ..StageCounters::new(name, layer, 1)
        };
        run.past.stages = vec![
            stage("read", Layer::SourceRead, 3.0),
            stage("send", Layer::Network, seconds - 3.0),
        ];
        run
    }

    #[test]
    fn the_words_for_slow_runs_say_how_slow_since_when_and_in_which_stage() {
        let folder = tempfile::tempdir().unwrap();
        let history = SpeedHistory::in_state(folder.path());
        // Noon, each of them a day after the one before.
        let at = |day: i64| (1_700_049_600 + 86_400 * day) * 1_000_000_000;
        for day in 0..6 {
            assert_eq!(history.remember(&staged(at(day), 20.0)), None);
        }
        let first = history.remember(&staged(at(6), 62.0)).unwrap();
        let (usual_until, since) = (local_time(at(5)), local_time(at(6)));
        let stage = "it is the stage `send` that takes longer";
        assert_eq!(
            slowness_in_words(&first),
            format!(
                "slower than usual: 3.1 times the 20.0 s that such a run takes by the median; it was \
                 not at {usual_until}; {stage}"
            )
        );
        let second = history.remember(&staged(at(7), 64.0)).unwrap();
        assert_eq!(
            slowness_in_words(&second),
            format!(
                "slower than usual: 3.2 times the 20.0 s that such a run takes by the median, for 2 \
                 runs now, since {since}; it was not at {usual_until}; {stage}"
            )
        );
    }
}
