//! `holdall lab files`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use holdall_lab::LabError;
use holdall_lab::files::{
    FilesMeasured, LADDER_BYTES, MIX_BYTES, SmallFiles, count_items, measure_mix, measure_size,
    measure_small, not_seen,
};

use super::answers;
use super::circumstances::Circumstances;
use super::place::Place;
use super::rate::Slowest;
use super::table::{binary_size, latency, latency_heads, megabytes, operations, tell_row};
use crate::app::App;
use crate::arguments::quantity;
use crate::exit::Exit;
use crate::lab::lab_report::ReportArgs;
use crate::terminal::output::{count, counted, size};
use crate::terminal::progress::Steps;

/// How many small files of how many bytes.
const FILES: u64 = 1000;
const FILE_BYTES: u64 = 4096;
/// By how many at once.
const WORKERS: [u32; 4] = [1, 2, 4, 8];
/// How long each kind of work may take.
const LIMIT: Duration = Duration::from_secs(5);
/// From creating to deleting, a row each.
const KINDS_OF_WORK: usize = 8;
/// The share of the room that a mix which does not fit is made for: small files take more than bytes.
const MIX_SHARE: f64 = 0.8;

/// Measures what a mounted folder does with files: on a disk, a share, anything
///
/// Creates, writes, fsyncs, stats, lists, reads, renames and deletes 1,000 files of 4 KiB, by 1, 2, 4 and 8
/// workers. Then come files of 2 KB to 200 MB, each with an fsync, and a mix of 600 MB. What has no room is
/// left out. Sentences at the end say what it comes to. It takes a few seconds to two minutes. It writes only to a folder of its own in DIR, and removes it afterwards.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall lab files /mnt/nas
         holdall lab files /mnt/nas --files 5000 --size 16K --workers 4
         holdall lab files /home --count

Reads drop their files' content from the system's cache first; whether that was heeded is told. Names \
stay cached: an ordinary user cannot change that. --fail-below is about items a second.

Exit codes: 0 measured, 1 failed, 2 wrong usage, 4 slower than --fail-below, 130 interrupted")]
pub(crate) struct Args {
    /// A directory to measure in
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Only small files, and so many of them
    #[arg(long, value_name = "N", value_parser = parse_files)]
    files: Option<u64>,
    /// Only small files, of so many bytes each, such as 16K
    #[arg(long, value_name = "N", value_parser = quantity::block_bytes)]
    size: Option<u64>,
    /// Only small files, by so many at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    workers: Option<u32>,
    /// Measures nothing, and counts what is in DIR: files, directories, links
    #[arg(long, conflicts_with_all = ["files", "size", "workers", "report"])]
    count: bool,
    /// Exit code 4 if any row has fewer items a second
    #[arg(long, value_name = "RATE", value_parser = quantity::count)]
    fail_below: Option<u64>,
    #[command(flatten)]
    report: ReportArgs,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    let steps = Steps::of(&app.output, 0);
    let (slowest, notes) = (Slowest::default(), Vec::new());
    let mut told = Told { app, slowest, steps, notes, has_heads: false };
    if args.count {
        let place = holdall_lab::storage_stack::StorageStack::of(&args.dir)
            .map_err(|error| anyhow::Error::from(error).context(args.dir.display().to_string()))?;
        Circumstances::now(Some((&args.dir, &place))).tell(&app.output)?;
        let stop = holdall_lab::Stop::on(app.interrupt.flag());
        told.count(&count_items(&args.dir, &stop)?)?;
        return Ok(told.slowest.exit(args.fail_below));
    }
    let place = Place::open(&args.dir, app)?;
    args.report.check()?;
    let circumstances = place.circumstances();
    circumstances.tell(&app.output)?;
    let is_standard = args.files.is_none() && args.size.is_none() && args.workers.is_none();
    let workers = args.workers.map_or_else(|| WORKERS.to_vec(), |workers| vec![workers]);
    let workers = if is_standard || args.workers.is_some() { workers } else { vec![1] };
    let of_sizes = if is_standard { 2 * LADDER_BYTES.len() + 2 } else { 0 };
    told.steps = Steps::of(&app.output, KINDS_OF_WORK * workers.len() + of_sizes);
    told.steps.show("");
    for workers in workers {
        let asked = SmallFiles {
            files: args.files.unwrap_or(FILES),
            file_bytes: args.size.unwrap_or(FILE_BYTES),
            workers,
            limit: LIMIT,
        };
        measure_small(&place.scratch, &asked, &place.stop, |row| told.row(&row))?;
    }
    if is_standard {
        told.ladder_and_mix(&place)?;
    }
    let mut report = circumstances.report(told.slowest.rows());
    report.notes.append(&mut told.notes);
    let comes_to = holdall_diagnosis::answers::of_files(told.slowest.rows());
    answers::summarise(app, &mut report, comes_to)?;
    args.report.finish(app, &report)?;
    place.close()?;
    Ok(told.slowest.exit(args.fail_below))
}

/// What was told so far.
struct Told<'a> {
    app: &'a App,
    slowest: Slowest,
    steps: Steps,
    /// What to make of the rows, in sentences.
    notes: Vec<String>,
    has_heads: bool,
}

impl Told<'_> {
    fn ladder_and_mix(&mut self, place: &Place) -> Result<()> {
        for bytes in LADDER_BYTES {
            match measure_size(&place.scratch, bytes, LIMIT, &place.stop) {
                Ok(both) => both.iter().try_for_each(|row| self.row(row))?,
                Err(LabError::NoRoom { .. }) => self.left_out(&format!("files of {}", size(bytes))),
                Err(error) => return Err(error.into()),
            }
        }
        let room = (place.scratch.room_bytes() as f64 * MIX_SHARE) as u64;
        if room < MIX_BYTES {
            self.note(format!(
                "The mix is made smaller, to {} of its {}: there is no room for more.",
                size(room),
                size(MIX_BYTES)
            ));
        }
        match measure_mix(&place.scratch, room.min(MIX_BYTES), &place.stop) {
            Ok(both) => both.iter().try_for_each(|row| self.row(row)),
            Err(LabError::NoRoom { .. }) => {
                self.left_out("the mix");
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn left_out(&mut self, what: &str) {
        self.note(format!("Left out, since there is no room: {what}."));
    }

    fn note(&mut self, note: String) {
        self.app.output.note(&note);
        self.notes.push(note);
    }

    fn row(&mut self, measured: &FilesMeasured) -> Result<()> {
        let (output, row) = (&self.app.output, &measured.measurement);
        self.steps.end();
        output.object("measurement", measured)?;
        self.slowest.add_items(&measured.reported());
        if !self.has_heads {
            self.has_heads = true;
            output.say(format_args!(
                "{:<14} {:>8} {:>7} {:>8} {:>9} {:>8} {}",
                "",
                "size",
                "workers",
                "items",
                "items/s",
                "MB/s",
                latency_heads()
            ))?;
        }
        let figures = format!(
            "{:<14} {:>8} {:>7} {:>8} {:>9} {:>8} {}",
            row.operation,
            row.file_bytes.map(file_size).unwrap_or_default(),
            row.jobs.unwrap_or(1),
            count(measured.items.all()),
            operations(row),
            megabytes(row),
            latency(row),
        );
        let more = row.cache.map_or("", holdall_lab::disk::Cache::words);
        tell_row(output, &figures, more)?;
        self.steps.show("");
        Ok(())
    }

    fn count(&mut self, found: &FilesMeasured) -> Result<()> {
        let output = &self.app.output;
        output.object("measurement", found)?;
        self.slowest.add_items(&found.measurement);
        let items = found.items;
        output.result(format_args!(
            "{}: {} of {}, {}, {}, {}; {} items/s",
            counted(items.all(), "item"),
            counted(items.files, "file"),
            size(found.bytes),
            counted(items.directories, "directory"),
            counted(items.links, "link"),
            counted(items.others, "other"),
            operations(&found.measurement),
        ))?;
        let left_out = found.left_out.unwrap_or_default();
        for note in not_seen(left_out.unreadable_directories, left_out.mount_points) {
            self.note(note);
        }
        Ok(())
    }
}

/// Reads how many files: more than none.
fn parse_files(text: &str) -> Result<u64, String> {
    match quantity::count(text)? {
        0 => Err("it is more than none".into()),
        files => Ok(files),
    }
}

/// A file's size in the units that it comes out even in.
fn file_size(bytes: u64) -> String {
    if bytes.is_multiple_of(1024) { binary_size(bytes) } else { size(bytes) }
}
