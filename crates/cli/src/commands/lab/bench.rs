//! Rows of a disk, measured one after the other and told.

use std::hash::{BuildHasher, RandomState};
use std::io::ErrorKind;
use std::time::Duration;

use anyhow::Result;
use holdall_lab::disk::{
    Access, DiskFiles, Engine, Measured, Row, average, large_steps, measure, measure_fsync,
    standard_set,
};
use holdall_lab::storage_stack::{DeviceCounters, DeviceWork, DirectAccess};
use holdall_lab::{LabError, Measurement};
use serde::Serialize;

use super::place::Place;
use super::rate::Slowest;
use super::table::{binary_size, latency, latency_heads, megabytes, operations, tell_row};
use crate::app::App;
use crate::terminal::progress::Steps;

const MIB: u64 = 1 << 20;
/// The file of the standard set, where there is room for it.
const SET_BYTES: u64 = 512 * MIB;
/// How long a row of the standard set may take.
const SET_LIMIT: Duration = Duration::from_secs(2);
const DIRECT_REFUSED: &str = "this file system refuses direct access: measured through the cache, writes \
    with an fsync at their end";
const AVERAGES_LEFT_OUT: &str = "the averages of 20 to 100 MiB at a time are left out, since there is no \
    room for a file of 100 MiB";
const AVERAGES_END: &str =
    "an average of large requests ends with the first that took longer than a row may";
const IN_MEMORY: &str = "this file system takes direct access without going around its cache, since it lies in \
    memory: writes end with an fsync";
const MAY_CACHE: &str = "this file system takes direct access and may not go around its cache: writes end \
    with an fsync, and reads may come from memory";

/// What a row is told as.
#[derive(Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    measurement: &'a Measurement,
    #[serde(skip_serializing_if = "Option::is_none")]
    engine: Option<Engine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    direct_refused: Option<bool>,
    /// Whether the file system takes direct access and may not, or does not, go around its cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    direct_in_doubt: Option<bool>,
}

/// A row that was measured, and what the disks counted meanwhile where they do.
struct Counted {
    measured: Measured,
    disks: Option<DeviceCounters>,
}

/// Measures row after row and tells each.
pub(super) struct Bench<'a> {
    app: &'a App,
    place: &'a Place,
    files: DiskFiles<'a>,
    slowest: Slowest,
    steps: Steps,
    has_heads: bool,
    notes: Vec<String>,
    /// Rows that had no room, in words.
    left_out: Vec<String>,
}

impl<'a> Bench<'a> {
    /// Nothing is measured yet.
    pub(super) fn new(app: &'a App, place: &'a Place) -> Self {
        let seed = RandomState::new().hash_one(std::process::id());
        let files = DiskFiles::new(&place.scratch, place.stop.clone(), seed);
        let slowest = Slowest::default();
        let (notes, left_out) = (Vec::new(), Vec::new());
        let steps = Steps::of(&app.output, 0);
        Self { app, place, files, slowest, steps, has_heads: false, notes, left_out }
    }

    /// The rows that are measured when nobody asks for one. What has no room any more is left out, and
    /// said.
    ///
    /// # Errors
    /// As for [`measure`]; `NoRoom` only where there is none for the first of them.
    pub(super) fn standard(&mut self) -> Result<()> {
        let file_bytes = self.set_bytes()?;
        let (set, mut is_known) = (standard_set(file_bytes, SET_LIMIT), true);
        // An average of each way, and an fsync.
        self.steps = Steps::of(&self.app.output, set.len() + 3);
        for one in set {
            if std::mem::replace(&mut is_known, one.known_as.is_some()) != is_known {
                self.app.output.say("")?;
            }
            self.steps.show(&in_words(&one.row));
            let done = self.row(&one.row, one.known_as);
            self.unless_without_room(done, || in_words(&one.row))?;
        }
        for access in [Access::Read, Access::Write] {
            let steps = large_steps(access, SET_LIMIT);
            if steps.iter().all(|step| step.file_bytes <= file_bytes) {
                self.steps.show(&format!("{}, average", access.words()));
                let done = self.average(&steps, SET_LIMIT);
                self.unless_without_room(done, || format!("{}, average", access.words()))?;
            } else {
                self.note(AVERAGES_LEFT_OUT)?;
            }
        }
        self.steps.show("fsync");
        let done = self.fsync(SET_LIMIT);
        self.unless_without_room(done, || "fsync".to_owned())?;
        if self.left_out.is_empty() {
            return Ok(());
        }
        let rows = std::mem::take(&mut self.left_out).join("; ");
        self.note(&format!("left out, since there is no room any more: {rows}"))
    }

    /// How long the set's files are: whole MiB, so that each of several jobs has whole blocks of its
    /// part.
    fn set_bytes(&mut self) -> Result<u64> {
        let room = self.place.scratch.room_bytes();
        if room >= SET_BYTES {
            return Ok(SET_BYTES);
        }
        let bytes = (room / MIB).max(1) * MIB;
        let measured = binary_size(bytes);
        self.note(&format!("the set is measured on {measured}: there is no room for more"))?;
        Ok(bytes)
    }

    fn fsync(&mut self, limit: Duration) -> Result<()> {
        let before = self.place.counters();
        let mut measurement = measure_fsync(&self.files, limit)?;
        let block_bytes = measurement.block_bytes.unwrap_or_default();
        let syncs =
            measurement.operations_per_second.unwrap_or_default() * measurement.duration_seconds;
        let asked_bytes = syncs.round() as u64 * block_bytes;
        let counted = self.counted_since(before);
        measurement.device =
            counted.map(|counted| DeviceWork::new(&counted, asked_bytes, block_bytes, false));
        self.tell(&Told::new(&measurement), "")
    }

    /// Lets a row without room be left out where others were measured: these are worth something.
    fn unless_without_room(
        &mut self,
        done: Result<()>,
        named: impl FnOnce() -> String,
    ) -> Result<()> {
        match done {
            Err(error) if is_without_room(&error) && !self.slowest.rows().is_empty() => {
                self.left_out.push(named());
                Ok(())
            }
            done => done,
        }
    }

    /// One row, and what CrystalDiskMark calls it.
    ///
    /// # Errors
    /// As for [`measure`].
    pub(super) fn row(&mut self, row: &Row, known_as: Option<&str>) -> Result<()> {
        let (measured, device) = self.measured(row)?;
        let known_as = known_as.map(str::to_owned);
        self.tell_row(&measured, known_as, device)
    }

    /// Tells a row that was measured.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub(super) fn tell_row(
        &mut self,
        measured: &Measured,
        known_as: Option<String>,
        device: Option<DeviceWork>,
    ) -> Result<()> {
        let measurement = Measurement { known_as, device, ..measured.measurement() };
        self.tell_measured(&measurement, measured)
    }

    /// What to make of the rows, in sentences.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> {
        self.notes.iter().cloned()
    }

    /// The slowest row so far.
    pub(super) fn slowest(&self) -> &Slowest {
        &self.slowest
    }

    /// Measures from the smallest to the largest, until one takes longer than `limit`.
    fn measured_steps(&mut self, steps: &[Row], limit: Duration) -> Result<Vec<Counted>> {
        if let Some(largest) = steps.last() {
            // The smaller ones read the beginning of its file.
            self.files.prepare(largest)?;
        }
        let mut all = Vec::new();
        for step in steps {
            let counted = self.counted(step)?;
            let was_slow = counted.measured.duration > limit;
            all.push(counted);
            if was_slow {
                break;
            }
        }
        Ok(all)
    }

    /// One row for several: all bytes over all time.
    fn average(&mut self, steps: &[Row], limit: Duration) -> Result<()> {
        let counted = self.measured_steps(steps, limit)?;
        let of_each = counted.iter().map(|one| one.disks);
        let disks = of_each.reduce(|sum, disks| Some(sum?.plus(&disks?))).flatten();
        let all: Vec<_> = counted.into_iter().map(|one| one.measured).collect();
        let (Some(first), Some(measurement)) = (all.first(), average(&all, disks.as_ref())) else {
            return Ok(());
        };
        self.tell_measured(&measurement, first)?;
        if all.len() < steps.len() { self.note(AVERAGES_END) } else { Ok(()) }
    }

    /// Measures a row, and what the disks did for it, and tells nothing yet.
    ///
    /// # Errors
    /// As for [`measure`].
    pub(super) fn measured(&mut self, row: &Row) -> Result<(Measured, Option<DeviceWork>)> {
        let Counted { measured, disks } = self.counted(row)?;
        let device = disks.map(|disks| {
            DeviceWork::new(&disks, measured.bytes, row.block_bytes, row.access.is_random())
        });
        Ok((measured, device))
    }

    fn counted(&mut self, row: &Row) -> Result<Counted> {
        self.files.prepare(row)?;
        let before = self.place.counters();
        let measured = measure(row, &mut self.files)?;
        Ok(Counted { measured, disks: self.counted_since(before) })
    }

    /// What the disks counted since `before`.
    fn counted_since(&self, before: Option<DeviceCounters>) -> Option<DeviceCounters> {
        Some(self.place.counters()?.since(&before?))
    }

    /// Tells a row with what is to be known of how it was measured.
    fn tell_measured(&mut self, measurement: &Measurement, measured: &Measured) -> Result<()> {
        self.tell(&Told::of(measurement, measured), &how(measured))?;
        if measured.direct_refused {
            self.note(DIRECT_REFUSED)?;
        }
        match measured.direct_in_doubt {
            Some(DirectAccess::InMemory) => self.note(IN_MEMORY),
            Some(DirectAccess::MayCache) => self.note(MAY_CACHE),
            Some(DirectAccess::Around) | None => Ok(()),
        }
    }

    fn tell(&mut self, told: &Told<'_>, how: &str) -> Result<()> {
        self.steps.end();
        let (output, row) = (&self.app.output, told.measurement);
        output.object("measurement", told)?;
        self.slowest.add_bytes(row);
        if !self.has_heads {
            self.has_heads = true;
            output.say(format_args!(
                "{:<22} {:>7} {:>5} {:>4} {:>8} {:>8} {}",
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
        let figures = format!(
            "{:<22} {block:>7} {:>5} {:>4} {:>8} {:>8} {}",
            row.operation.replace(", average of", ","),
            number(row.queue_depth),
            number(row.jobs),
            megabytes(row),
            operations(row),
            latency(row),
        );
        let known_as = row.known_as.as_ref().map(|name| format!(", {name}")).unwrap_or_default();
        tell_row(output, &figures, &format!("{how}{known_as}"))?;
        if let Some(device) = row.device.filter(|_| output.verbose > 0) {
            output.say(work(&device))?;
        }
        Ok(())
    }

    /// Says a sentence where it was not said before, and keeps it for the report.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub(super) fn note(&mut self, note: &str) -> Result<()> {
        if !self.notes.iter().any(|known| known == note) {
            self.notes.push(note.to_owned());
            self.app.output.say(format_args!("note: {note}"))?;
        }
        Ok(())
    }
}

impl<'a> Told<'a> {
    fn new(measurement: &'a Measurement) -> Self {
        Self { measurement, engine: None, direct_refused: None, direct_in_doubt: None }
    }

    fn of(measurement: &'a Measurement, measured: &Measured) -> Self {
        Self {
            engine: Some(measured.engine),
            direct_refused: Some(measured.direct_refused),
            direct_in_doubt: measured.direct_in_doubt.map(|_| true),
            ..Self::new(measurement)
        }
    }
}

/// A row that was not measured, in words.
fn in_words(row: &Row) -> String {
    let at_once = u64::from(row.queue_depth) * u64::from(row.jobs);
    format!("{} of {}, {at_once} at once", row.access.words(), binary_size(row.block_bytes))
}

/// Whether there was no room, by our own measure or by the system's.
fn is_without_room(error: &anyhow::Error) -> bool {
    let is_full = |kind| matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
    match error.downcast_ref::<LabError>() {
        Some(LabError::NoRoom { .. }) => true,
        Some(LabError::Io { source, .. }) => is_full(source.kind()),
        _ => false,
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
