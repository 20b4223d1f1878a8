//! What earlier backups and restores took: for estimates, and to say that one was slower than usual.
//!
//! One JSON object a line, the oldest first, the newest 500 of them. A line that cannot be read costs
//! itself alone: this is for information, and nothing depends on it.

use holdall_engine::{BackupSummary, RestoreSummary};
use holdall_meter::cost::{CostModel, Past, Slowness, Work, slower_than_usual};
use holdall_meter::{Layer, Verdict, duration};
use serde::{Deserialize, Serialize};

/// Less than that says little about how well a source compresses.
const ENOUGH_BYTES: u64 = 1_000_000;
/// So many runs are kept.
const MOST_RUNS: usize = 500;
/// More than so many runs with all of their stages have.
pub const LIMIT_BYTES: u64 = 4 << 20;

/// What kind of run it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A backup.
    Backup,
    /// A restore.
    Restore,
}

/// A run of the past.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// What kind of run it was.
    pub kind: Kind,
    /// The repository's id.
    pub repository: String,
    /// Where that is, as `lab path` keeps it: a directory's path, or the id of a server's; unknown of
    /// what is no backup, and of older lines.
    #[serde(default)]
    pub place: Option<String>,
    /// What was backed up, or where to it was restored: what is usual for one is not for another.
    #[serde(default)]
    pub what: String,
    /// Whether it was held back on purpose, and says nothing about what could be.
    #[serde(default)]
    pub limited: bool,
    /// What held it back.
    pub limited_by: Layer,
    /// What it sent, in bytes; unknown of what is no backup, and of older lines.
    #[serde(default)]
    pub sent_bytes: Option<u64>,
    /// What it stored, in bytes; unknown likewise.
    #[serde(default)]
    pub stored_bytes: Option<u64>,
    /// What it had to do and what it took.
    #[serde(flatten)]
    pub past: Past,
}

impl Run {
    fn new(
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

    /// A backup of `what` to a repository, which ended at that time.
    pub fn of_backup(
        to: (String, String),
        at_ns: i64,
        summary: &BackupSummary,
        verdict: &Verdict,
    ) -> Self {
        let (work, stages) = (backup_work(summary), summary.stages.clone());
        let past = Past { at_ns, work, seconds: summary.seconds, stages };
        let (sent_bytes, stored_bytes) = (Some(summary.bytes_sent), Some(summary.data_stored));
        Self { sent_bytes, stored_bytes, ..Self::new(Kind::Backup, to, past, verdict) }
    }

    /// A restore from a repository to `what`, which ended at that time.
    pub fn of_restore(
        to: (String, String),
        at_ns: i64,
        summary: &RestoreSummary,
        verdict: &Verdict,
    ) -> Self {
        let items = summary.files + summary.dirs;
        let work = Work { items, items_unchanged: 0, bytes: summary.bytes };
        let stages = summary.stages.clone();
        let past = Past { at_ns, work, seconds: summary.duration_seconds, stages };
        Self::new(Kind::Restore, to, past, verdict)
    }

    /// Where it led: of older lines, a server's repository alone is known.
    pub fn led_to(&self) -> &str {
        self.place.as_deref().unwrap_or(&self.repository)
    }
}

/// What a backup had to do.
pub fn backup_work(summary: &BackupSummary) -> Work {
    Work {
        items: summary.files_new + summary.files_changed + summary.dirs_new + summary.dirs_changed,
        items_unchanged: summary.files_unmodified + summary.dirs_unmodified,
        bytes: summary.data_added,
    }
}

/// What share of the bytes that there were to do `of` tells, such as those sent, from 0.05 to 1, by the
/// median; `None` where no run says.
pub fn share_of_bytes(runs: &[Run], of: impl Fn(&Run) -> Option<u64>) -> Option<f64> {
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
#[derive(Debug, Clone, Default)]
pub struct SpeedHistory {
    runs: Vec<Run>,
}

impl SpeedHistory {
    /// The runs of these lines that can be read.
    pub fn of_lines(lines: &[u8]) -> Self {
        let lines = lines.split(|&byte| byte == b'\n');
        Self { runs: lines.filter_map(|line| serde_json::from_slice(line).ok()).collect() }
    }

    /// The lines to keep.
    ///
    /// # Errors
    /// If a run has no form as JSON.
    pub fn to_lines(&self) -> serde_json::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        for run in &self.runs {
            serde_json::to_writer(&mut bytes, run)?;
            bytes.push(b'\n');
        }
        Ok(bytes)
    }

    /// All runs, oldest first.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// The runs of one kind in one repository that were not held back on purpose, oldest first.
    pub fn comparable(&self, kind: Kind, repository: &str) -> Vec<Run> {
        let is_one = |run: &&Run| run.kind == kind && run.repository == repository && !run.limited;
        self.runs.iter().filter(is_one).cloned().collect()
    }

    /// Adds a run, and says whether it was slower than those before it.
    pub fn add(&mut self, run: Run) -> Option<Slowness> {
        let mut earlier = self.comparable(run.kind, &run.repository);
        earlier.retain(|earlier| earlier.what == run.what);
        let earlier: Vec<_> = earlier.into_iter().map(|run| run.past).collect();
        let slowness = slower_than_usual(&earlier, &run.past).filter(|_| !run.limited);
        self.runs.push(run);
        let gone = self.runs.len().saturating_sub(MOST_RUNS);
        self.runs.drain(..gone);
        slowness
    }
}

/// The model of what such runs take, beside what was `measured`.
pub fn model(runs: &[Run], measured: &[(Work, f64)]) -> CostModel {
    let fitted: Vec<_> = runs.iter().map(|run| (run.past.work, run.past.seconds)).collect();
    CostModel::fit(&fitted, measured)
}

/// The layer that held most of the last runs back, if one did.
pub fn usual_limit(runs: &[Run]) -> Option<Layer> {
    let named = |layer: &Layer| !matches!(layer, Layer::Nothing | Layer::Unsure);
    let recent: Vec<_> =
        runs.iter().rev().take(10).map(|run| run.limited_by).filter(named).collect();
    let times = |layer: Layer| recent.iter().filter(|&&other| other == layer).count();
    let most = recent.iter().copied().max_by_key(|&layer| times(layer))?;
    (times(most) * 2 > recent.len()).then_some(most)
}

/// A slow run in words; `local_time` is a time, in nanoseconds since 1970, by the clock on the wall.
pub fn slowness_in_words(slow: &Slowness, local_time: impl Fn(i64) -> String) -> String {
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
        let mut older = serde_json::to_value(run(1, 20.0)).unwrap();
        assert!(older.as_object_mut().unwrap().remove("place").is_some());
        let mut history = SpeedHistory::of_lines((older.to_string() + "\n").as_bytes());
        history.add(Run { place: Some("/mnt/usb".into()), ..run(2, 20.0) });
        let led_to: Vec<_> = history.runs().iter().map(Run::led_to).collect();
        assert_eq!(led_to, ["one", "/mnt/usb"]);
    }

    #[test]
    fn the_newest_runs_are_kept_and_a_damaged_line_costs_itself_alone() {
        let mut history = SpeedHistory::default();
        assert_eq!(history.runs(), []);
        for at in 0..5 {
            history.add(run(at, 20.0));
        }
        let text = String::from_utf8(history.to_lines().unwrap()).unwrap();
        let damaged = text.replacen("\"backup\"", "\"bac\u{0}", 1) + "{\"half";
        let history = SpeedHistory::of_lines(damaged.as_bytes());
        let times: Vec<_> = history.runs().iter().map(|run| run.past.at_ns).collect();
        assert_eq!(times, [1, 2, 3, 4]);
        let many: Vec<_> = (0..MOST_RUNS as i64 + 7).map(|at| run(at, 20.0)).collect();
        let lines = many.iter().map(|run| serde_json::to_string(run).unwrap() + "\n");
        let mut history = SpeedHistory::of_lines(lines.collect::<String>().as_bytes());
        history.add(run(9999, 20.0));
        let runs = history.runs();
        assert_eq!(
            (runs.len(), runs[0].past.at_ns, runs[MOST_RUNS - 1].past.at_ns),
            (MOST_RUNS, 8, 9999)
        );
    }

    #[test]
    fn a_slow_run_is_told_and_one_that_was_limited_on_purpose_is_not() {
        let mut history = SpeedHistory::default();
        for at in 0..6 {
            assert_eq!(history.add(run(at, 20.0)), None);
        }
        let on_purpose = Run { limited: true, ..run(6, 200.0) };
        assert_eq!(history.add(on_purpose), None);
        let elsewhere = Run { repository: "two".into(), ..run(6, 200.0) };
        assert_eq!(history.add(elsewhere), None);
        let another = Run { what: "/mnt/slow".into(), ..run(6, 200.0) };
        assert_eq!(history.add(another), None, "it may always be so slow");
        assert!(history.add(run(7, 62.0)).is_some());
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
        let mut history = SpeedHistory::default();
        let local_time = |at_ns: i64| format!("{} s", at_ns / 1_000_000_000);
        // Noon, each of them a day after the one before.
        let at = |day: i64| (1_700_049_600 + 86_400 * day) * 1_000_000_000;
        for day in 0..6 {
            assert_eq!(history.add(staged(at(day), 20.0)), None);
        }
        let first = history.add(staged(at(6), 62.0)).unwrap();
        let (usual_until, since) = (local_time(at(5)), local_time(at(6)));
        let stage = "it is the stage `send` that takes longer";
        assert_eq!(
            slowness_in_words(&first, local_time),
            format!(
                "slower than usual: 3.1 times the 20.0 s that such a run takes by the median; it was \
                 not at {usual_until}; {stage}"
            )
        );
        let second = history.add(staged(at(7), 64.0)).unwrap();
        assert_eq!(
            slowness_in_words(&second, local_time),
            format!(
                "slower than usual: 3.2 times the 20.0 s that such a run takes by the median, for 2 \
                 runs now, since {since}; it was not at {usual_until}; {stage}"
            )
        );
    }
}
