//! `holdall lab path`: the whole path of a backup, step by step, and a real backup beside it.
//!
//! A repository is append-only: a backup to measure with would stay in it for as long as its rules
//! keep snapshots. So the backups that are measured go into a temporary repository, and the repository
//! that was named is not opened at all; it says where the path leads. Of a directory, the temporary
//! repository lies beside it, on the same disk. Of a server, every request of the backup goes over the
//! wire with as many bytes, and the server writes what would be stored to its disk, makes it durable
//! and forgets it ([`through`]); only its index is kept here, in memory where there is room.

mod ladder;
mod looks;
mod pipeline;
mod sent;
mod steps;
mod target;
mod through;
mod told;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use holdall_lab::path::{Content, Limits, Sample, Shape, Tree, walk};
use holdall_lab::report::Fact;

use super::files::not_seen;
use super::place::Place;
use crate::app::App;
use crate::exit::{Exit, Refusal};
use crate::lab_report::ReportArgs;
use crate::output::{count, size};
use crate::{quantity, remembered};

use ladder::Ladder;
use pipeline::{Pipeline, Ran, Reached, Series, Subject};
use steps::Steps;
use target::Target;
use told::Told;

/// How much of a source is measured at most, unless --size says.
const USUAL_BYTES: u64 = 256 << 20;
/// Beside the tree on which every step is measured, each other one has this part of what may be measured.
const OTHER_TREES_PART: u64 = 4;
/// They have all of their files where that is this much.
const WHOLE_TREE_BYTES: u64 = 64 << 20;
/// How many items of a source are measured at most.
const MOST_ITEMS: u64 = 50_000;
/// How long walking and reading may take.
const WALK_LIMIT: Duration = Duration::from_secs(15);

/// Measures every step of a backup's path, and a real backup beside them
///
/// Walks through SOURCE and reads it, lets the processor do its part on what was read, measures the
/// wire and the disk that leads to the repository, copies SOURCE file by file and as one stream, and
/// then backs it up, unchanged once more, and restores it. At the end stand each step's ceiling, how
/// much of it the backup used, and which layer held it back. Without SOURCE, trees are made: few large
/// files, many small ones, a mix, text and what does not compress; of these, backups with 1 % changed,
/// too. Nothing is stored in the repository, and nothing of SOURCE is changed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall lab path /home
         holdall lab path /home -r /mnt/usb/backups --report path.html
         holdall lab path

The repository that is named, or else the paired server, says where the path leads; without either, the \
backups go to this computer's own disk. They go into a temporary repository, beside the one in a \
directory; of a server, all bytes go over the wire to its disk, and it forgets them. SOURCE is measured \
up to --size, the first part of it in the order of names if it is larger. What is written lies in a \
folder of its own, takes at most half of the free room, and is gone afterwards.

Exit codes: 0 measured, 1 failed, 2 wrong usage, 4 slower than --fail-below, 10 no such repository, 13 not \
allowed, 14 server unreachable, 20 the repository is damaged, 130 interrupted")]
pub(crate) struct Args {
    /// The directory to back up [default: trees are made]
    #[arg(value_name = "SOURCE")]
    source: Option<PathBuf>,
    /// Measures at most so many bytes of SOURCE, or of the first tree that is made, such as 1G [default: 256M]
    #[arg(long, value_name = "N", value_parser = quantity::block_bytes)]
    size: Option<u64>,
    /// Exit code 4 if a first backup does fewer bytes a second, such as 20M
    #[arg(long, value_name = "RATE", value_parser = quantity::bytes)]
    fail_below: Option<u64>,
    #[command(flatten)]
    report: ReportArgs,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    args.report.check()?;
    let source = args.source.as_deref().map(directory).transpose()?;
    let target = Target::find(app)?;
    let (dir, notes) = target.place(app)?;
    let mut place = Place::open(&dir, app)?;
    // A run to a server that was killed left its index there, and only such a run needs that folder.
    place.sweep(Path::new(pipeline::MEMORY_DIR));
    let mut circumstances = place.circumstances();
    if let Some(source) = &source {
        circumstances.add_place("source", source);
    }
    if let Some(folder) = target.folder() {
        circumstances.add_place("repository", folder);
    }
    if let Some(far) = target.server() {
        circumstances.set_server(far.words());
    }
    notes.into_iter().chain([target.words()]).for_each(|note| circumstances.note(note));
    circumstances.tell(&app.output)?;
    let told = Told::new(app);
    let mut measuring =
        Measuring { app, place: &place, target: &target, told, ladder: Ladder::default() };
    let size = args.size.unwrap_or(USUAL_BYTES);
    match &source {
        Some(source) => measuring.source(source, size)?,
        None => measuring.trees(size)?,
    }
    let Measuring { told, ladder, .. } = measuring;
    let mut report = circumstances.report(told.rows());
    let leads_to = remembered::place(app);
    report.facts.extend(leads_to.map(|place| Fact::new(holdall_diagnosis::REPOSITORY, &place)));
    ladder.conclude(app, told.notes(), &mut report)?;
    args.report.finish(app, &report)?;
    place.close()?;
    Ok(told.exit(args.fail_below))
}

/// A directory that is there.
fn directory(path: &Path) -> Result<PathBuf> {
    let named = || path.display().to_string();
    let path = path.canonicalize().with_context(named)?;
    if !path.is_dir() {
        let refusal = Refusal::new(Exit::Usage, format!("{} is no directory", path.display()));
        return Err(refusal.hint("name the directory that it lies in").into());
    }
    Ok(path)
}

/// What goes on.
struct Measuring<'a, 'b> {
    app: &'a App,
    place: &'a Place,
    target: &'a Target,
    told: Told<'b>,
    ladder: Ladder,
}

impl Measuring<'_, '_> {
    /// Every step, and the backups of a source that is there.
    fn source(&mut self, source: &Path, size: u64) -> Result<()> {
        let pipeline = Pipeline::new(self.app, self.place, self.target)?;
        let most_bytes = pipeline.most_bytes(size)?;
        let sample = self.steps(source, most_bytes, &pipeline)?;
        self.told.note("SOURCE is not changed, so no backup with 1 % changed is measured.");
        let subject = Subject { name: String::new(), starts: &sample.starts, made: None };
        let ran = self.series(&pipeline, &subject, &sample)?;
        self.ladder.reached(&ran);
        Ok(())
    }

    /// Every step, and the backups of trees that are made.
    fn trees(&mut self, size: u64) -> Result<()> {
        let pipeline = Pipeline::new(self.app, self.place, self.target)?;
        let most_bytes = pipeline.most_bytes(size)?;
        self.told.note("Every step is measured on a tree of mixed files with text.");
        let contents = Content::ALL.into_iter();
        let all = contents.flat_map(|content| {
            [Shape::Mixed, Shape::FewLarge, Shape::ManySmall].map(|shape| (shape, content))
        });
        for (number, (shape, content)) in all.enumerate() {
            let is_ladders = number == 0;
            let share = match is_ladders {
                // A backup of it is to take long enough for a verdict.
                true => most_bytes as f64 / shape.bytes() as f64,
                false => (most_bytes / OTHER_TREES_PART) as f64 / WHOLE_TREE_BYTES as f64,
            };
            let tree = Tree { shape, content, share };
            let folder = self.place.scratch.path().join(format!("tree-{number}"));
            tree.make(&self.place.scratch, &folder, &self.place.stop)?;
            let starts = [folder.clone()];
            let sample = match is_ladders {
                true => self.steps(&folder, u64::MAX, &pipeline)?,
                false => self.whole(&folder)?,
            };
            let name = format!(", {}, {}", shape.words(), content.words());
            let subject = Subject { name, starts: &starts, made: Some((&tree, &folder)) };
            let ran = self.series(&pipeline, &subject, &sample)?;
            if is_ladders {
                self.ladder.reached(&ran);
            }
            tree.remove(&self.place.scratch, &folder)?;
        }
        Ok(())
    }

    /// All of a tree that was made, so that it can be dropped from the cache like a source.
    fn whole(&self, folder: &Path) -> Result<Sample> {
        let (walked, _) = walk(folder, WALK_LIMIT, &self.place.stop)?;
        Ok(Sample::of(&walked, Limits { items: u64::MAX, bytes: u64::MAX }))
    }

    /// Each step alone; what was measured of the source.
    fn steps(&mut self, source: &Path, most_bytes: u64, pipeline: &Pipeline) -> Result<Sample> {
        let stop = &self.place.stop;
        let (walked, row) = walk(source, WALK_LIMIT, stop)?;
        let limits = Limits { items: MOST_ITEMS, bytes: most_bytes };
        let sample = Sample::of(&walked, limits);
        let mut steps = Steps {
            app: self.app,
            place: self.place,
            target: self.target,
            told: &mut self.told,
            ladder: &mut self.ladder,
        };
        steps.walked(&row)?;
        if sample.files() == 0 {
            let what = format!("{} has no file of up to {}", source.display(), size(most_bytes));
            return Err(Refusal::new(Exit::Failed, what).hint("give a larger --size").into());
        }
        steps.measure(&sample, pipeline)?;
        self.told.note(what_is_measured(&sample, (walked.items, walked.bytes), walked.ended_early));
        not_seen(walked.unreadable_directories, walked.mount_points)
            .for_each(|note| self.told.note(note));
        Ok(sample)
    }

    /// The backups and the restore of a subject, which is what is in `sample`; the first backup finds none of it
    /// in the cache, where that can be.
    fn series(
        &mut self,
        pipeline: &Pipeline,
        subject: &Subject<'_>,
        sample: &Sample,
    ) -> Result<Reached> {
        let mut series = pipeline.begin(sample.items, sample.bytes)?;
        sample.drop_cached();
        let read_before = holdall_sys::process::bytes_read_from_disks();
        let mut first = series.backup(subject)?;
        first.cache = Some(sample.cache(first.bytes, read_before));
        self.told.ran(("first backup", true), &subject.name, &first)?;
        self.told.counts(&first);
        let unchanged = series.backup(subject)?;
        self.told.ran(("unchanged backup", false), &subject.name, &unchanged)?;
        if let Some((tree, folder)) = subject.made {
            tree.change(folder)?;
            let changed = series.backup(subject)?;
            self.told.ran(("backup, 1 % changed", false), &subject.name, &changed)?;
        }
        let restored = self.restore(pipeline, &mut series, first.stored_bytes)?;
        self.told.ran(("restore", true), &subject.name, &restored)?;
        series.end()?;
        Ok(Reached { first, unchanged, restored })
    }

    /// A restore of so many bytes that are stored. It finds none of a repository's disk in the cache, where that can
    /// be; over a wire there is no such disk, and what lies here of a server's repository is as it is.
    fn restore(
        &self,
        pipeline: &Pipeline,
        series: &mut Series<'_>,
        stored_bytes: u64,
    ) -> Result<Ran> {
        let repository = self.whole(&series.repository())?;
        if pipeline.wire().is_none() {
            repository.drop_cached();
        }
        let read_before = holdall_sys::process::bytes_read_from_disks();
        let mut restored = series.restore()?;
        restored.cache = Some(repository.cache(stored_bytes, read_before));
        Ok(restored)
    }
}

/// Which part of a source it is about, in a sentence.
fn what_is_measured(sample: &Sample, (items, bytes): (u64, u64), is_more: bool) -> String {
    let part = format!("{} items, {}", count(sample.items), size(sample.bytes));
    if sample.is_whole {
        return format!("All of the source is measured: {part}.");
    }
    let more = if is_more { " seen until then" } else { "" };
    format!(
        "Of the source's {} items, {}{more}, the first that fit are measured: {part}.",
        count(items),
        size(bytes)
    )
}
