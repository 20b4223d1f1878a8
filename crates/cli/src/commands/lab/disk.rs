//! `holdall lab disk`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::ValueEnum;
use holdall_lab::LabError;
use holdall_lab::disk::{Access, Row, Until};

use super::answers;
use super::bench::Bench;
use super::place::Place;
use crate::app::App;
use crate::arguments::quantity;
use crate::exit::Exit;
use crate::lab::lab_report::ReportArgs;

const MIB: u64 = 1 << 20;
/// The file of a row that no size was given for.
const ROW_BYTES: u64 = 256 * MIB;
/// How long a row may take that neither a size nor a time was given for.
const ROW_LIMIT: Duration = Duration::from_secs(10);

/// Measures the disk that a directory lies on
///
/// With --op, --block, --queue-depth, --jobs, --size, --time, --direct, --buffered or --end-fsync
/// exactly that row is measured. Without them it is a standard set on 512 MiB, or less if there is no room, which takes
/// about a minute: CrystalDiskMark's four rows come first. Sequential and random reads and writes in blocks of 4 KiB
/// to 1 MiB, 1 and 32 at once, random ones of 4 KiB by 8 and 32 jobs, an average of 20 to 100 MiB, and the time of
/// an fsync follow. Sentences at the end say what it comes to. It writes only to a folder of its own in DIR, takes at most half of the free room, and removes it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall lab disk /mnt/usb
         holdall lab disk /mnt/usb --op randwrite --block 4K --queue-depth 32 --time 10

The disk is asked directly, around the system's cache, unless --buffered is given or the file system \
refuses that. A buffered read empties the cache of its file first; the report says whether it was \
cold. Blocks and sizes are in powers of 1024, rates in powers of 1000.

Exit codes: 0 measured, 1 failed, 2 wrong usage, 4 slower than --fail-below, 130 interrupted")]
pub(crate) struct Args {
    /// A directory on the disk to measure
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// What to do: read, write, randread or randwrite [default: read]
    #[arg(long, value_enum, value_name = "OP", hide_possible_values = true)]
    op: Option<Op>,
    /// Bytes of each request, such as 4K [default: 1M, or 4K at random]
    #[arg(long, value_name = "N", value_parser = quantity::block_bytes)]
    block: Option<u64>,
    /// Requests under way at once, for each job [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    queue_depth: Option<u32>,
    /// Threads, each with a file of its own [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    jobs: Option<u32>,
    /// Bytes of each job's file, such as 1G [default: 256M]
    #[arg(long, value_name = "N", value_parser = quantity::block_bytes)]
    size: Option<u64>,
    /// Seconds for the row: for that long, over and over
    #[arg(long, value_name = "S", value_parser = quantity::seconds)]
    time: Option<Duration>,
    /// Goes around the system's cache (the default)
    #[arg(long, conflicts_with = "buffered")]
    direct: bool,
    /// Goes through the system's cache
    #[arg(long)]
    buffered: bool,
    /// Ends a write with an fsync, and counts its time
    #[arg(long)]
    end_fsync: bool,
    /// Exit code 4 if any row is slower than this many bytes a second, such as 100M
    #[arg(long, value_name = "RATE", value_parser = quantity::rate)]
    fail_below: Option<u64>,
    #[command(flatten)]
    report: ReportArgs,
}

/// Order and way, by fio's names.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Op {
    Read,
    Write,
    #[value(name = "randread")]
    RandomRead,
    #[value(name = "randwrite")]
    RandomWrite,
}

impl Op {
    fn access(self) -> Access {
        match self {
            Self::Read => Access::Read,
            Self::Write => Access::Write,
            Self::RandomRead => Access::RandomRead,
            Self::RandomWrite => Access::RandomWrite,
        }
    }
}

impl Args {
    /// Whether anything is said about a row: who says nothing asks for the standard set.
    fn is_one_row(&self) -> bool {
        let has_bytes = self.block.or(self.size).is_some();
        let has_number = self.queue_depth.or(self.jobs).is_some();
        let has_way = self.direct || self.buffered || self.end_fsync;
        self.op.is_some() || has_bytes || has_number || self.time.is_some() || has_way
    }

    /// The row that was asked for.
    fn row(&self) -> Result<Row, LabError> {
        let access = self.op.unwrap_or(Op::Read).access();
        let file_bytes = self.size.unwrap_or(ROW_BYTES);
        let usual = if access.is_random() { 4096 } else { MIB };
        let row = Row {
            access,
            block_bytes: self.block.unwrap_or(usual.min(file_bytes)),
            queue_depth: self.queue_depth.unwrap_or(1),
            jobs: self.jobs.unwrap_or(1),
            file_bytes,
            until: match (self.time, self.size) {
                (Some(time), _) => Until::Time(time),
                (None, Some(_)) => Until::Once,
                (None, None) => Until::OnceWithin(ROW_LIMIT),
            },
            direct: !self.buffered,
            end_fsync: self.end_fsync,
        };
        row.check()?;
        Ok(row)
    }
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    let row = args.is_one_row().then(|| args.row()).transpose()?;
    let place = Place::open(&args.dir, app)?;
    args.report.check()?;
    let circumstances = place.circumstances();
    circumstances.tell(&app.output)?;
    let mut bench = Bench::new(app, &place);
    match row {
        Some(row) => bench.row(&row, None)?,
        None => bench.standard()?,
    }
    let exit = bench.slowest().exit(args.fail_below);
    let mut report = circumstances.report(bench.slowest().rows());
    report.notes.extend(bench.notes());
    let told =
        holdall_diagnosis::answers::of_disk(bench.slowest().rows(), place.stack.is_in_memory());
    answers::summarise(app, &mut report, told)?;
    args.report.finish(app, &report)?;
    place.close()?;
    Ok(exit)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn asked(options: &[&str]) -> Args {
        let line = ["disk", "/mnt/usb"].into_iter().chain(options.iter().copied());
        Line::try_parse_from(line).unwrap().args
    }

    #[test]
    fn any_option_of_a_row_asks_for_that_row_and_none_for_the_standard_set() {
        assert!(!asked(&[]).is_one_row());
        assert!(!asked(&["--fail-below", "1M", "--report", "usb.html"]).is_one_row());
        let numbers = ["--block", "--queue-depth", "--jobs", "--size", "--time"];
        assert!(numbers.into_iter().all(|option| asked(&[option, "8"]).is_one_row()));
        let flags = ["--direct", "--buffered", "--end-fsync", "--op=read"];
        assert!(flags.into_iter().all(|option| asked(&[option]).is_one_row()));
    }

    #[test]
    fn what_is_not_said_about_a_row_is_the_usual() {
        let row = asked(&["--direct"]).row().unwrap();
        assert_eq!((row.access, row.block_bytes), (Access::Read, MIB));
        assert_eq!((row.queue_depth, row.jobs, row.direct), (1, 1, true));
        assert_eq!((row.file_bytes, row.until), (ROW_BYTES, Until::OnceWithin(ROW_LIMIT)));
        let row = asked(&["--size", "64K"]).row().unwrap();
        assert_eq!((row.block_bytes, row.file_bytes), (64 << 10, 64 << 10));
        assert_eq!(row.until, Until::Once);
        let row = asked(&["--time", "3"]).row().unwrap();
        assert_eq!(row.until, Until::Time(Duration::from_secs(3)));
        assert!(!asked(&["--buffered"]).row().unwrap().direct);
    }
}
