//! What is measured of a path, and in which order.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use holdall_lab::files::not_seen;
use holdall_lab::path::{Content, Limits, Sample, Shape, Tree, walk};
use holdall_lab::{Scratch, Stop};
use holdall_meter::{counted, size};

use super::PathError;
use super::client::{Client, Telling};
use super::ladder::{Climbed, Ladder};
use super::pipeline::{Pipeline, Series, Subject};
use super::ran::{Ran, Reached};
use super::steps::{Steps, WALK_LIMIT};
use super::target::Target;

/// Beside the tree on which every step is measured, each other one has this part of what may be measured.
const OTHER_TREES_PART: u64 = 4;
/// They have all of their files where that is this much.
const WHOLE_TREE_BYTES: u64 = 64 << 20;
/// How many items of a source are measured at most.
const MOST_ITEMS: u64 = 50_000;

/// What goes on.
pub struct Measuring<'a, C> {
    client: &'a C,
    /// How many cores there are.
    cores: usize,
    scratch: &'a Scratch,
    interrupt: Arc<AtomicBool>,
    stop: Stop,
    target: &'a Target,
    told: &'a mut dyn Telling,
    ladder: Ladder,
}

impl<'a, C: Client> Measuring<'a, C> {
    /// Of the path to `target`, with what is written below `scratch`, until `interrupt` is set.
    pub fn new(
        client: &'a C,
        cores: usize,
        (scratch, interrupt): (&'a Scratch, Arc<AtomicBool>),
        target: &'a Target,
        told: &'a mut dyn Telling,
    ) -> Self {
        let (stop, ladder) = (Stop::on(Arc::clone(&interrupt)), Ladder::default());
        Self { client, cores, scratch, interrupt, stop, target, told, ladder }
    }

    /// What came of it.
    pub fn end(self) -> Climbed {
        self.ladder.end()
    }

    /// Every step, and the backups of a source that is there, of at most so many bytes.
    ///
    /// # Errors
    /// What fails one of them.
    pub fn source(&mut self, source: &Path, size: u64) -> Result<(), PathError> {
        let pipeline = Pipeline::new(self.client, self.scratch, self.target)?;
        let most_bytes = pipeline.most_bytes(size)?;
        let sample = self.steps(source, most_bytes, &pipeline)?;
        self.told.note("SOURCE is not changed, so no backup with 1 % changed is measured.");
        let subject = Subject { name: String::new(), starts: &sample.starts, made: None };
        let ran = self.series(&pipeline, &subject, &sample)?;
        self.ladder.reached(&ran);
        Ok(())
    }

    /// Every step, and the backups of trees that are made.
    ///
    /// # Errors
    /// What fails one of them.
    pub fn trees(&mut self, size: u64) -> Result<(), PathError> {
        let pipeline = Pipeline::new(self.client, self.scratch, self.target)?;
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
            let folder = self.scratch.path().join(format!("tree-{number}"));
            tree.make(self.scratch, &folder, &self.stop)?;
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
            tree.remove(self.scratch, &folder)?;
        }
        Ok(())
    }

    /// All of a tree that was made, so that it can be dropped from the cache like a source.
    fn whole(&self, folder: &Path) -> Result<Sample, PathError> {
        let (walked, _) = walk(folder, WALK_LIMIT, &self.stop)?;
        Ok(Sample::of(&walked, Limits { items: u64::MAX, bytes: u64::MAX }))
    }

    /// Each step alone; what was measured of the source.
    fn steps(
        &mut self,
        source: &Path,
        most_bytes: u64,
        pipeline: &Pipeline<'_, C>,
    ) -> Result<Sample, PathError> {
        let (walked, row) = walk(source, WALK_LIMIT, &self.stop)?;
        let limits = Limits { items: MOST_ITEMS, bytes: most_bytes };
        let sample = Sample::of(&walked, limits);
        let mut steps = Steps {
            cores: self.cores,
            scratch: self.scratch,
            interrupt: &self.interrupt,
            stop: &self.stop,
            target: self.target,
            told: &mut *self.told,
            ladder: &mut self.ladder,
        };
        steps.walked(&row)?;
        if sample.files() == 0 {
            return Err(PathError::NoFile { source_path: source.to_owned(), most_bytes });
        }
        steps.measure(&sample, pipeline)?;
        self.told.note(&what_is_measured(
            &sample,
            (walked.items, walked.bytes),
            walked.ended_early,
        ));
        not_seen(walked.unreadable_directories, walked.mount_points)
            .for_each(|note| self.told.note(&note));
        Ok(sample)
    }

    /// The backups and the restore of a subject, which is what is in `sample`; the first backup finds none of it
    /// in the cache, where that can be.
    fn series(
        &mut self,
        pipeline: &Pipeline<'_, C>,
        subject: &Subject<'_>,
        sample: &Sample,
    ) -> Result<Reached, PathError> {
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
        pipeline: &Pipeline<'_, C>,
        series: &mut Series<'_, C>,
        stored_bytes: u64,
    ) -> Result<Ran, PathError> {
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
    let part = format!("{}, {}", counted(sample.items, "item"), size(sample.bytes));
    if sample.is_whole {
        return format!("All of the source is measured: {part}.");
    }
    let more = if is_more { " seen until then" } else { "" };
    format!(
        "Of the source's {}, {}{more}, the first that fit are measured: {part}.",
        counted(items, "item"),
        size(bytes)
    )
}
