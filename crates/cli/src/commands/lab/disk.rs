//! `holdall lab disk`.

use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::ValueEnum;
use holdall_lab::disk::{
    Access, DiskFiles, Engine, Measured, Row, Until, large_steps, measure, measure_fsync,
    standard_set,
};
use holdall_lab::ground::DeviceWork;
use holdall_lab::{LabError, Measurement};
use serde::Serialize;

use super::place::Place;
use super::rate::Slowest;
use super::table::{binary_size, latency, latency_heads, megabytes, operations};
use crate::app::App;
use crate::exit::Exit;
use crate::quantity;

const MIB: u64 = 1 << 20;
/// A row's file, and that of the standard set.
const ROW_BYTES: u64 = 256 * MIB;
const SET_BYTES: u64 = 512 * MIB;
/// How long a row of the standard set may take.
const SET_LIMIT: Duration = Duration::from_secs(2);
/// How long a row may take that neither a size nor a time was given for.
const ROW_LIMIT: Duration = Duration::from_secs(10);

/// Measures the disk that a directory lies on
///
/// With --op, --block, --queue-depth, --jobs or --end-fsync exactly that row is measured; without, a
/// standard set: reads and writes, one after the other and at random, in blocks of 4 KiB to 1 MiB, 1
/// and 32 at once, the four that CrystalDiskMark has, the average of 20 to 100 MiB at a time, and how
/// long an fsync takes. Nothing but a folder of its own in DIR is written, and it is gone afterwards;
/// at most half of the free room is taken.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall lab disk /mnt/usb
         holdall lab disk /mnt/usb --op randwrite --block 4K --queue-depth 32 --time 10

The disk is asked directly, around the system's cache, unless --buffered is given or the file system \
refuses that. A buffered read empties the cache of its file first; the report says whether it was \
cold. Blocks and sizes are in powers of 1024, rates in powers of 1000.

Exit codes: 0 measured, 1 failed, 2 wrong usage, 4 measured, and below --fail-below, 130 interrupted")]
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
    /// Bytes of each job's file, such as 1G [default: 256M, or 512M for the standard set]
    #[arg(long, value_name = "N", value_parser = quantity::block_bytes)]
    size: Option<u64>,
    /// Seconds for a row: for that long, over and over; of the standard set, at most
    #[arg(long, value_name = "S")]
    time: Option<f64>,
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
    #[arg(long, value_name = "RATE", value_parser = quantity::bytes)]
    fail_below: Option<u64>,
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
    fn is_one_row(&self) -> bool {
        let has_number = self.block.is_some() || self.queue_depth.is_some() || self.jobs.is_some();
        self.op.is_some() || has_number || self.end_fsync
    }

    fn time(&self) -> Result<Option<Duration>, LabError> {
        let wrong = |_| LabError::Settings("--time is a number of seconds".to_owned());
        self.time.map(Duration::try_from_secs_f64).transpose().map_err(wrong)
    }

    /// The row that was asked for.
    fn row(&self) -> Result<Row, LabError> {
        let access = self.op.unwrap_or(Op::Read).access();
        let row = Row {
            access,
            block_bytes: self.block.unwrap_or(if access.is_random() { 4096 } else { MIB }),
            queue_depth: self.queue_depth.unwrap_or(1),
            jobs: self.jobs.unwrap_or(1),
            file_bytes: self.size.unwrap_or(ROW_BYTES),
            until: match (self.time()?, self.size) {
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
    let limit = args.time()?.unwrap_or(SET_LIMIT);
    let place = Place::open(&args.dir, app)?;
    place.circumstances().tell(&app.output)?;
    let mut bench = Bench::new(app, &place);
    match row {
        Some(row) => bench.row(&row, None)?,
        None => bench.standard(args.size.unwrap_or(SET_BYTES), limit, !args.buffered)?,
    }
    let slowest = bench.slowest;
    place.close()?;
    Ok(slowest.exit(args.fail_below))
}

/// What a row is told as.
#[derive(Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    measurement: &'a Measurement,
    #[serde(skip_serializing_if = "Option::is_none")]
    known_as: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    engine: Option<Engine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache: Option<holdall_lab::disk::Cache>,
    #[serde(skip_serializing_if = "Option::is_none")]
    direct_refused: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<DeviceWork>,
}

/// Measures row after row and tells each.
struct Bench<'a> {
    app: &'a App,
    place: &'a Place,
    files: DiskFiles<'a>,
    slowest: Slowest,
    has_heads: bool,
    told_refusal: bool,
}

impl<'a> Bench<'a> {
    fn new(app: &'a App, place: &'a Place) -> Self {
        let seed = RandomState::new().hash_one(std::process::id());
        let files = DiskFiles::new(&place.scratch, place.stop.clone(), seed);
        let slowest = Slowest::default();
        Self { app, place, files, slowest, has_heads: false, told_refusal: false }
    }

    fn standard(&mut self, file_bytes: u64, limit: Duration, direct: bool) -> Result<()> {
        for one in standard_set(file_bytes, limit, direct) {
            self.row(&one.row, one.known_as)?;
        }
        for access in [Access::Read, Access::Write] {
            let steps = large_steps(access, direct);
            if steps.iter().all(|step| step.file_bytes <= file_bytes) {
                self.average(access, &steps)?;
            }
        }
        let measurement = measure_fsync(&self.files, limit)?;
        self.tell(&Told::new(&measurement), "")
    }

    fn row(&mut self, row: &Row, known_as: Option<&str>) -> Result<()> {
        let (measured, device) = self.measured(row)?;
        let measurement = measured.measurement();
        let told = Told { known_as, device, ..Told::of(&measurement, &measured) };
        self.tell(&told, &how(&measured))
    }

    /// One row for several: all bytes over all time.
    fn average(&mut self, access: Access, steps: &[Row]) -> Result<()> {
        let all = steps.iter().map(|step| Ok(self.measured(step)?.0));
        let all = all.collect::<Result<Vec<_>>>()?;
        let Some(first) = all.first() else { return Ok(()) };
        let seconds: f64 = all.iter().map(|one| one.duration.as_secs_f64()).sum();
        let bytes: u64 = all.iter().map(|one| one.bytes).sum();
        let measurement = Measurement {
            operation: format!("{}, average of 20 to 100 MiB", access.words()),
            block_bytes: None,
            file_bytes: None,
            duration_seconds: seconds,
            bytes_per_second: (seconds > 0.0).then(|| bytes as f64 / seconds),
            operations_per_second: (seconds > 0.0).then(|| all.len() as f64 / seconds),
            latency_ns: None,
            ..first.measurement()
        };
        self.tell(&Told::of(&measurement, first), &how(first))
    }

    /// Measures a row, and what the disks did for it.
    fn measured(&mut self, row: &Row) -> Result<(Measured, Option<DeviceWork>)> {
        self.files.prepare(row)?;
        let before = self.place.counters();
        let measured = measure(row, &mut self.files)?;
        let counted = self.place.counters().zip(before).map(|(now, before)| now.since(&before));
        let device = counted.map(|counted| {
            DeviceWork::new(&counted, measured.bytes, row.block_bytes, row.access.is_random())
        });
        Ok((measured, device))
    }

    fn tell(&mut self, told: &Told<'_>, how: &str) -> Result<()> {
        let (output, row) = (&self.app.output, told.measurement);
        output.object("measurement", told)?;
        self.slowest.add_bytes(row);
        if !self.has_heads {
            self.has_heads = true;
            output.say(format_args!(
                "{:<28} {:>8} {:>5} {:>4} {:>10} {:>10} {}",
                "",
                "block",
                "queue",
                "jobs",
                "MB/s",
                "ops/s",
                latency_heads()
            ))?;
        }
        let block = row.block_bytes.map(binary_size).unwrap_or_default();
        let number =
            |number: Option<u32>| number.map(|number| number.to_string()).unwrap_or_default();
        output.say(
            format!(
                "{:<28} {block:>8} {:>5} {:>4} {:>10} {:>10} {:<39}  {how}{}",
                row.operation.replace(", average of", ","),
                number(row.queue_depth),
                number(row.jobs),
                megabytes(row),
                operations(row),
                latency(row),
                told.known_as.map(|name| format!(", {name}")).unwrap_or_default(),
            )
            .trim_end(),
        )?;
        if let Some(device) = told.device {
            self.app.output.detail(work(&device));
        }
        if told.direct_refused == Some(true) && !self.told_refusal {
            self.told_refusal = true;
            output.say(
                "note: this file system refuses direct access: measured through the cache, writes \
                 with an fsync at their end",
            )?;
        }
        Ok(())
    }
}

impl<'a> Told<'a> {
    fn new(measurement: &'a Measurement) -> Self {
        let (known_as, engine, cache, direct_refused, device) = (None, None, None, None, None);
        Self { measurement, known_as, engine, cache, direct_refused, device }
    }

    fn of(measurement: &'a Measurement, measured: &Measured) -> Self {
        Self {
            engine: Some(measured.engine),
            cache: measured.cache,
            direct_refused: Some(measured.direct_refused),
            ..Self::new(measurement)
        }
    }
}

/// How a row was measured, in words.
fn how(measured: &Measured) -> String {
    let cache = match measured.cache {
        Some(cache) => cache.words(),
        None if measured.row.direct => "direct",
        None => "buffered",
    };
    let fsync = if measured.row.end_fsync { ", with fsync" } else { "" };
    let engine = match measured.engine {
        Engine::Calls => String::new(),
        engine => format!(", {}", engine.words()),
    };
    format!("{cache}{fsync}{engine}")
}

/// What the disks did for a row, in words.
fn work(device: &DeviceWork) -> String {
    let each = device.bytes_for_each_operation.map(|bytes| format!(" of {}", binary_size(bytes)));
    format!(
        "  the disk: {} operations{}, {} flushes, {:.2} bytes for each asked{}",
        device.operations,
        each.unwrap_or_default(),
        device.flushes,
        device.bytes_for_each_asked,
        device.pattern.map(|pattern| format!(", {}", pattern.words())).unwrap_or_default(),
    )
}
