//! Rows of a disk, measured one after the other and told.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use anyhow::Result;
use holdall_lab::Measurement;
use holdall_lab::disk::{
    Access, DiskFiles, Engine, Measured, Row, large_steps, measure, measure_fsync, standard_set,
};
use holdall_lab::ground::DeviceWork;
use serde::Serialize;

use super::place::Place;
use super::rate::Slowest;
use super::table::{binary_size, latency, latency_heads, megabytes, operations};
use crate::app::App;

const DIRECT_REFUSED: &str = "this file system refuses direct access: measured through the cache, writes \
    with an fsync at their end";

/// What a row is told as.
#[derive(Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    measurement: &'a Measurement,
    #[serde(skip_serializing_if = "Option::is_none")]
    engine: Option<Engine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    direct_refused: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<DeviceWork>,
}

/// Measures row after row and tells each.
pub(super) struct Bench<'a> {
    app: &'a App,
    place: &'a Place,
    files: DiskFiles<'a>,
    slowest: Slowest,
    has_heads: bool,
    told_refusal: bool,
}

impl<'a> Bench<'a> {
    /// Nothing is measured yet.
    pub(super) fn new(app: &'a App, place: &'a Place) -> Self {
        let seed = RandomState::new().hash_one(std::process::id());
        let files = DiskFiles::new(&place.scratch, place.stop.clone(), seed);
        let slowest = Slowest::default();
        Self { app, place, files, slowest, has_heads: false, told_refusal: false }
    }

    /// The rows that are measured when nobody asks for one, on files of `file_bytes` and each for at
    /// most `limit`.
    ///
    /// # Errors
    /// As for [`measure`].
    pub(super) fn standard(
        &mut self,
        file_bytes: u64,
        limit: Duration,
        direct: bool,
    ) -> Result<()> {
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

    /// One row, and what CrystalDiskMark calls it.
    ///
    /// # Errors
    /// As for [`measure`].
    pub(super) fn row(&mut self, row: &Row, known_as: Option<&str>) -> Result<()> {
        let (measured, device) = self.measured(row)?;
        let known_as = known_as.map(str::to_owned);
        let measurement = Measurement { known_as, ..measured.measurement() };
        let told = Told { device, ..Told::of(&measurement, &measured) };
        self.tell(&told, &how(&measured))
    }

    /// What to make of the rows, in sentences.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> {
        self.told_refusal.then(|| DIRECT_REFUSED.to_owned()).into_iter()
    }

    /// The slowest row so far.
    pub(super) fn slowest(&self) -> &Slowest {
        &self.slowest
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
        output.result(
            format!(
                "{:<28} {block:>8} {:>5} {:>4} {:>10} {:>10} {:<39}  {how}{}",
                row.operation.replace(", average of", ","),
                number(row.queue_depth),
                number(row.jobs),
                megabytes(row),
                operations(row),
                latency(row),
                row.known_as.as_ref().map(|name| format!(", {name}")).unwrap_or_default(),
            )
            .trim_end(),
        )?;
        if let Some(device) = told.device.filter(|_| output.verbose > 0) {
            output.say(work(&device))?;
        }
        if told.direct_refused == Some(true) && !self.told_refusal {
            self.told_refusal = true;
            output.say(format_args!("note: {DIRECT_REFUSED}"))?;
        }
        Ok(())
    }
}

impl<'a> Told<'a> {
    fn new(measurement: &'a Measurement) -> Self {
        Self { measurement, engine: None, direct_refused: None, device: None }
    }

    fn of(measurement: &'a Measurement, measured: &Measured) -> Self {
        Self {
            engine: Some(measured.engine),
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
