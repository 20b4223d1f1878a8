//! One call of the benchmark: every tool in turn, run after run, set after set.
//!
//! Tools alternate (run 1 of every tool, then run 2 of every tool), so that a slow minute of the
//! computer hits all of them. Each run has a fresh server and an empty repository.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::compare;
use crate::dataset::Plan;
use crate::generate;
use crate::link::Site;
use crate::measure::Measure;
use crate::mutate::{self, Spread};
use crate::peers::{Binaries, Contender, Tool, stored_bytes};
use crate::record::{Ceiling, Record, Row, Sink};
use crate::report::console;
use crate::stage::{Figures, Stage};
use crate::writers;

/// Tools read a file again whose times are so young that a later change might not show in them;
/// no set is as young as that when a run begins.
const SETTLING: Duration = Duration::from_secs(3);

/// What all sets are measured with.
pub(crate) struct Bench<'a> {
    pub(crate) work: &'a Path,
    pub(crate) site: &'a Site,
    pub(crate) ceiling: Option<Ceiling>,
    pub(crate) binaries: Binaries,
    pub(crate) tools: Vec<Tool>,
    /// Whether threads that only write are measured beside restores.
    pub(crate) writers: bool,
    pub(crate) measures: Vec<Measure>,
    pub(crate) runs: u32,
    pub(crate) sink: Sink,
}

/// A data set that lies there.
struct Laid<'a> {
    name: &'a str,
    plan: &'a Plan,
    source: PathBuf,
    folder: PathBuf,
}

/// One run of one tool.
struct Run {
    tool: Tool,
    version: String,
    run: u32,
    contender: Box<dyn Contender>,
}

/// Whose figures a row has.
struct Who {
    tool: String,
    version: String,
    run: u32,
}

impl Bench<'_> {
    /// Measures every tool on one set and adds the rows; the set is gone afterwards.
    ///
    /// # Errors
    ///
    /// If the set cannot be laid out or a tool failed; the others went on.
    pub(crate) fn measure(&self, name: &str, plan: &Plan, rows: &mut Vec<Row>) -> Result<()> {
        let folder = self.work.join(name);
        remove(&folder)?;
        let set = Laid { name, plan, source: folder.join("source"), folder: folder.clone() };
        let laid = generate::generate(&set.source, plan);
        let measured = laid.and_then(|()| self.measure_in(&set, rows));
        let removed = remove(&folder);
        measured.with_context(|| format!("{name} was not measured to its end"))?;
        removed
    }

    fn measure_in(&self, set: &Laid<'_>, rows: &mut Vec<Row>) -> Result<()> {
        std::thread::sleep(SETTLING);
        let mut failed = Vec::new();
        for run in 1..=self.runs {
            for tool in self.tools.iter().copied() {
                let folder = set.folder.join(tool.name());
                if let Err(error) = self.run(set, tool, run, &folder, rows) {
                    println!("{}: {error:#}", tool.name());
                    failed.push(tool.name());
                }
                remove(&folder)?;
            }
            if self.writers && self.measures.contains(&Measure::Restore) {
                self.write(set, run, rows)?;
            }
        }
        ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
        Ok(())
    }

    fn run(
        &self,
        set: &Laid<'_>,
        tool: Tool,
        run: u32,
        folder: &Path,
        rows: &mut Vec<Row>,
    ) -> Result<()> {
        let contender = tool.contender(&self.binaries).context("is not there any more")?;
        let mut run = Run { tool, version: contender.version()?, run, contender };
        let mut stage = Stage::new(folder, self.site)?;
        run.contender.start(&mut stage)?;
        compare::warm(&set.source, set.plan)?;
        for measure in Measure::ALL {
            if measure == Measure::First || self.measures.contains(&measure) {
                let row = self.step(set, &mut run, &stage, measure)?;
                if self.measures.contains(&measure) {
                    self.keep(row, rows)?;
                }
            }
        }
        Ok(())
    }

    fn keep(&self, row: Row, rows: &mut Vec<Row>) -> Result<()> {
        println!("{}", console::line(&row));
        self.sink.add(&Record::Row(Box::new(row.clone())))?;
        rows.push(row);
        Ok(())
    }

    /// What a restore is held against: the files alone.
    fn write(&self, set: &Laid<'_>, run: u32, rows: &mut Vec<Row>) -> Result<()> {
        let target = set.folder.join("written");
        fs::create_dir_all(&target).with_context(|| format!("cannot make {target:?}"))?;
        let figures = writers::write(set.plan, &target)?;
        remove(&target)?;
        let version = writers::WORDS.to_owned();
        let who = Who { tool: writers::NAME.to_owned(), version, run };
        self.keep(self.row(set, who, Measure::Restore, figures), rows)
    }

    /// Does one measure, with what belongs before and after it.
    fn step(
        &self,
        set: &Laid<'_>,
        run: &mut Run,
        stage: &Stage<'_>,
        measure: Measure,
    ) -> Result<Row> {
        if measure == Measure::ChangedNear {
            // What is compared with is the set as it was, not as another measure left it.
            self.backup(set, run, stage)?;
        }
        let before_bytes = stored_bytes(stage)?;
        let figures = match measure {
            Measure::First | Measure::Unchanged => self.backup(set, run, stage),
            Measure::Restore => restore(set, run, stage),
            Measure::Changed => self.backup_changed(set, run, stage, Spread::AllOver),
            Measure::ChangedNear => self.backup_changed(set, run, stage, Spread::Near),
        };
        let figures = figures.with_context(|| measure.words())?;
        let stored_bytes = measure.is_backup().then(|| stored_bytes(stage)).transpose()?;
        let summary = run.contender.summary(&figures.output).unwrap_or_default();
        let who = Who { tool: run.tool.name(), version: run.version.clone(), run: run.run };
        Ok(Row {
            sent_bytes: summary["bytes_sent"].as_u64(),
            received_bytes: summary["bytes_received"].as_u64(),
            content_bytes: content_bytes(&summary),
            stored_bytes,
            growth_bytes: stored_bytes
                .map(|bytes| bytes.cast_signed() - before_bytes.cast_signed()),
            limited_by: console::verdict(&summary),
            ..self.row(set, who, measure, figures)
        })
    }

    fn backup(&self, set: &Laid<'_>, run: &mut Run, stage: &Stage<'_>) -> Result<Figures> {
        let command = run.contender.backup(stage, &set.source)?;
        stage.measure(&command)
    }

    fn backup_changed(
        &self,
        set: &Laid<'_>,
        run: &mut Run,
        stage: &Stage<'_>,
        spread: Spread,
    ) -> Result<Figures> {
        let seed = set.plan.seed + 1000 + u64::from(run.run);
        let mutation = mutate::mutate(&set.source, set.plan, spread, seed)?;
        if mutation.changed_bytes == 0 {
            bail!("nothing was changed");
        }
        let figures = self.backup(set, run, stage);
        mutation.undo()?;
        std::thread::sleep(SETTLING);
        figures
    }

    /// A row of what is known of every run.
    fn row(&self, set: &Laid<'_>, who: Who, measure: Measure, figures: Figures) -> Row {
        let ceiling = self.ceiling.as_ref().map(|ceiling| match measure.is_backup() {
            true => ceiling.up_bytes_per_second,
            false => ceiling.down_bytes_per_second,
        });
        Row {
            session: 0,
            tool: who.tool,
            version: who.version,
            set: set.name.to_owned(),
            measure,
            link: self.site.name(),
            run: who.run,
            files: set.plan.files.len() as u64,
            bytes: set.plan.total_bytes(),
            figures,
            sent_bytes: None,
            received_bytes: None,
            content_bytes: None,
            stored_bytes: None,
            growth_bytes: None,
            ceiling_bytes_per_second: ceiling,
            limited_by: None,
        }
    }
}

/// What a backup stored of contents alone, sealed, by its summary.
fn content_bytes(summary: &Value) -> Option<u64> {
    let [stored, nodes] = ["data_stored", "stored_nodes"].map(|field| summary[field].as_u64());
    stored?.checked_sub(nodes?)
}

/// Restores, and in the first run compares what came with the source.
fn restore(set: &Laid<'_>, run: &Run, stage: &Stage<'_>) -> Result<Figures> {
    let target = stage.folder("restored")?;
    let command = run.contender.restore(stage, &set.source, &target)?;
    let figures = stage.measure(&command)?;
    if run.run == 1 {
        compare::compare(&set.source, &target, set.plan).context("the restore is not identical")?;
    }
    remove(&target)?;
    Ok(figures)
}

fn remove(folder: &Path) -> Result<()> {
    if !fs::exists(folder)? {
        return Ok(());
    }
    fs::remove_dir_all(folder).with_context(|| format!("cannot remove {folder:?}"))
}
