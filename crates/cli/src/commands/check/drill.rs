//! `holdall check --drill`: a sample is restored, compared and removed again.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use holdall_crypto::{Entropy, SystemEntropy};
use holdall_engine::{
    DamagedPath, DrillLimits, DrillPart, DrillSample, Measured, Problem, RestoreOptions, Snapshot,
    UnlockedRepository, estimate, newest_of_each_series,
};
use holdall_meter::{Verdict, per_second};
use serde::Serialize;

use crate::app::App;
use crate::commands::restore;
use crate::commands::work_folder::WorkFolder;
use crate::exit::{Exit, Refusal};
use crate::opening::open::Where;
use crate::terminal::output::{count, counted, duration, size};

/// What a file takes on a disk beyond its bytes.
const ROOM_PER_ITEM_BYTES: u64 = 8 << 10;
const HINT: &str = "name a folder on a disk with enough room with --target, or in TMPDIR";

/// What a drill found.
pub(super) struct Drilled {
    /// What is not as the snapshot says.
    pub(super) damaged: Vec<DamagedPath>,
    pub(super) report: Report,
}

/// What a drill measured, as programs see it.
#[derive(Serialize)]
pub(super) struct Report {
    snapshot_id: String,
    /// What was restored and is as the snapshot says.
    items_same: u64,
    items: u64,
    bytes: u64,
    items_total: u64,
    bytes_total: u64,
    /// Files that are too large for a drill.
    left_out: u64,
    /// What could not be restored there, and is no damage.
    pub(super) errors: u64,
    notes: Vec<String>,
    total_duration: f64,
    /// How long a restore of everything takes there.
    #[serde(skip_serializing_if = "Option::is_none")]
    restore_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    items_per_second: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_per_second: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<Verdict>,
}

/// Makes a drill with the newest snapshot. Nothing if there is none.
pub(super) fn run(
    app: &App,
    access: &UnlockedRepository,
    snapshots: &[Snapshot],
    target: Option<&Path>,
) -> Result<Option<Drilled>> {
    let Some(snapshot) = newest_of_each_series(snapshots).into_iter().next() else {
        app.output.note("note: there is no snapshot to make a drill with");
        return Ok(None);
    };
    let mut seed = [0; 32];
    SystemEntropy.fill(&mut seed);
    let sample = DrillSample::choose(access, snapshot, &seed, DrillLimits::default(), &app.run())?;
    let work = work_folder(app, &sample, target)?;
    let mut drill = Drill {
        app,
        access,
        snapshot,
        damaged: sample.damaged.clone(),
        same: 0,
        errors: 0,
        notes: Vec::new(),
        verdict: None,
    };
    let parts = [DrillPart::Small, DrillPart::Large];
    let measured = parts.map(|part| drill.part(&sample, part, work.path()));
    let removed = work.remove();
    let [small, large] = measured;
    let (small, large) = (small?, large?);
    removed?;
    Ok(Some(drill.end(&sample, small, large)))
}

/// Where the sample is restored.
fn work_folder(
    app: &App,
    sample: &DrillSample,
    target: Option<&Path>,
) -> Result<WorkFolder, Refusal> {
    let items: u64 =
        [DrillPart::Small, DrillPart::Large].map(|part| sample.amount(part).0).iter().sum();
    let room_bytes = sample.stored_bytes.saturating_add(items * ROOM_PER_ITEM_BYTES);
    if let Some(target) = target {
        return WorkFolder::make_in(target, room_bytes).map_err(|reason| {
            let message = format!("{}: a drill cannot restore there: {reason}", target.display());
            Refusal::new(Exit::Failed, message).hint(HINT)
        });
    }
    let set = std::env::var_os("TMPDIR").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let beside = match app.named_repository().map(Where::parse) {
        Some(Ok(Where::Directory(folder))) => folder.canonicalize().ok(),
        _ => None,
    };
    let beside = beside.as_deref().and_then(Path::parent).map(Path::to_owned);
    let mut all: Vec<_> = set.into_iter().chain(beside).collect();
    all.push(PathBuf::from("/var/tmp"));
    all.extend(app.folders.cache_to_work_in());
    WorkFolder::make(&all, room_bytes, HINT)
}

struct Drill<'a> {
    app: &'a App,
    access: &'a UnlockedRepository,
    snapshot: &'a Snapshot,
    damaged: Vec<DamagedPath>,
    same: u64,
    errors: u64,
    notes: Vec<String>,
    /// What held back the longer one of the restores, and how long that took.
    verdict: Option<(f64, Verdict)>,
}

impl Drill<'_> {
    /// Restores a part of the sample and compares it.
    fn part(&mut self, sample: &DrillSample, part: DrillPart, work: &Path) -> Result<Measured> {
        let (items, bytes) = sample.amount(part);
        if items == 0 {
            return Ok(Measured::default());
        }
        let (app, access, snapshot) = (self.app, self.access, self.snapshot);
        let target = work.join(format!("{part:?}"));
        let select = Some(sample.selection(part));
        let options = RestoreOptions { numeric_ids: true, select, ..RestoreOptions::default() };
        let run = app.run();
        run.expect(items, bytes, false);
        let done = restore::timed(app, access, snapshot, None, &target, &options, &run)?;
        let mut told = Vec::new();
        for problem in run.take_problems() {
            told.push(self.problem(problem, &target)?);
        }
        let is_told = |path: &[u8]| told.iter().any(|told| told == path);
        let compared = sample.compare(part, (access, snapshot), &target, is_told, &app.run())?;
        self.same += compared.same;
        self.damaged.extend(compared.different);
        self.notes.extend(done.summary.notes);
        if compared.unseen > 0 {
            let items = counted(compared.unseen, "item");
            self.notes.push(format!("{items} could not be compared without root"));
        }
        let seconds = done.summary.duration_seconds;
        if self.verdict.as_ref().is_none_or(|(longest, _)| *longest < seconds) {
            self.verdict = Some((seconds, done.verdict));
        }
        Ok(Measured { items, bytes, seconds })
    }

    /// Tells damage from what this computer did not restore, which is named by its path in the target. Gives its path
    /// in the snapshot.
    fn problem(&mut self, problem: Problem, target: &Path) -> Result<Vec<u8>> {
        let Problem { path, reason } = problem;
        match path.strip_prefix(target.as_os_str().as_bytes()) {
            Some(below) => {
                let path = below.to_vec();
                self.errors += 1;
                self.app.output.problem(&Problem { path: path.clone(), reason })?;
                Ok(path)
            }
            None => {
                let snapshot = self.snapshot.id.to_string();
                self.damaged.push(DamagedPath { snapshot, path: path.clone(), reason });
                Ok(path)
            }
        }
    }

    fn end(self, sample: &DrillSample, small: Measured, large: Measured) -> Drilled {
        let secret = &self.snapshot.secret;
        let (items_total, bytes_total) = (secret.items, secret.bytes);
        let restore_seconds = estimate(items_total, bytes_total, small, large);
        let rate = |amount| restore_seconds.map(|seconds| per_second(amount, seconds));
        let report = Report {
            snapshot_id: self.snapshot.id.to_string(),
            items_same: self.same,
            items: small.items + large.items,
            bytes: small.bytes + large.bytes,
            items_total,
            bytes_total,
            left_out: sample.left_out,
            errors: self.errors,
            notes: self.notes,
            total_duration: small.seconds + large.seconds,
            restore_seconds,
            items_per_second: rate(items_total),
            bytes_per_second: rate(bytes_total),
            verdict: self.verdict.map(|(_, verdict)| verdict),
        };
        Drilled { damaged: self.damaged, report }
    }
}

impl Report {
    /// What is said of it, a line each.
    pub(super) fn words(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "drill: {} of {}, {} of {} of snapshot {:.10}, were restored in {}; {} as the snapshot says",
            count(self.items),
            counted(self.items_total, "item"),
            size(self.bytes),
            size(self.bytes_total),
            self.snapshot_id,
            duration(self.total_duration),
            if self.items_same == self.items {
                "all are".into()
            } else {
                format!("{} are", count(self.items_same))
            },
        )];
        if self.left_out > 0 {
            let files = counted(self.left_out, "file");
            lines.push(format!("{files} would have been too much for a drill, and left out"));
        }
        lines.extend(self.notes.iter().map(|note| format!("note: {note}")));
        let rates = (self.restore_seconds, self.items_per_second, self.bytes_per_second);
        if let (Some(seconds), Some(items), Some(bytes)) = rates {
            lines.push(format!(
                "a restore of all of it takes about {} there: {}/s, {}/s",
                duration(seconds),
                counted(items as u64, "item"),
                size(bytes as u64),
            ));
        }
        lines.extend(self.verdict.as_ref().and_then(Verdict::words));
        lines
    }
}
