//! The steps of the path, each measured alone.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use bytes::Bytes;
use holdall_engine::{MAX_READERS, PUT_TARGET_BYTES};
use holdall_lab::disk::{Access, DiskFiles, Row, Until, measure as measure_row, measure_fsync};
use holdall_lab::net::{self, NetRow};
use holdall_lab::path::{
    CopyTarget, FileByFile, OneStream, Sample, SampleRead, measure_copy, read_into_memory,
};
use holdall_lab::report::Needs;
use holdall_lab::{Measurement, Scratch, Stop, measure_probe};
use holdall_meter::{LatencyCount, Layer};
use holdall_protocol::wire::Frames;
use holdall_protocol::{MeasuredServer, RepositoryError, RequestTimes};
use holdall_sys::cpu::process_cpu_seconds;

use super::PathError;
use super::client::{Client, Telling};
use super::ladder::{Ladder, Step};
use super::pipeline::Pipeline;
use super::sent::{SentFiles, SentStream};
use super::target::{self, Target};
use super::wire::{ServerCpu, Wire};
use crate::LabServer;

/// So much of the source goes through the processor's part.
const CONTENT_BYTES: usize = 32 << 20;
/// How long the processor's part, and each of the disk's, may take.
const STEP_TIME: Duration = Duration::from_secs(1);
/// How long walking and reading may take.
pub(super) const WALK_LIMIT: Duration = Duration::from_secs(15);
/// What is written to the disk in one go, and in all at most.
const DISK_BLOCK_BYTES: u64 = 1 << 20;
const DISK_BYTES: u64 = 128 << 20;
/// Below this share of the cores' time, reading waits for the source: more threads may have more of it.
const MORE_READERS_BELOW: f64 = 0.5;
/// Requests with blocks that a backup has under way.
const PUTS_AT_ONCE: usize = 4;

/// What the steps need.
pub(super) struct Steps<'a> {
    pub(super) cores: usize,
    pub(super) scratch: &'a Scratch,
    pub(super) interrupt: &'a Arc<AtomicBool>,
    pub(super) stop: &'a Stop,
    pub(super) target: &'a Target,
    pub(super) told: &'a mut dyn Telling,
    pub(super) ladder: &'a mut Ladder,
}

impl Steps<'_> {
    /// Tells the walk.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub(super) fn walked(&mut self, row: &Measurement) -> Result<(), PathError> {
        let items = row.operations_per_second;
        self.add("source walk", Layer::SourceMetadata, Needs::Items, (None, items));
        self.told.note(
            "File names were read by the walk and are cached for the backups, which may scan faster than your \
             next one.",
        );
        Ok(self.told.row(row)?)
    }

    /// All other steps.
    ///
    /// # Errors
    /// What fails one of them.
    pub(super) fn measure(
        &mut self,
        sample: &Sample,
        pipeline: &Pipeline<'_, impl Client>,
    ) -> Result<(), PathError> {
        self.read(sample)?;
        self.processor(sample)?;
        if let (Some(far), Some(wire)) = (self.target.server(), pipeline.wire()) {
            self.wire(far)?;
            self.server_disk(wire)?;
            self.send_copies(sample, far.measured())?;
            if !pipeline.is_in_memory() {
                self.told.note(
                    "The temporary repository lies on this computer's disk: where that is slower \
                     than the path to the server, backups wait for it, which counts as the network's.",
                );
            }
            return Ok(());
        }
        self.disk()?;
        self.copies(sample)
    }

    fn add(
        &mut self,
        name: &str,
        layer: Layer,
        needs: Needs,
        (bytes, items): (Option<f64>, Option<f64>),
    ) {
        self.ladder.add(Step { name: name.to_owned(), layer, needs, bytes, items });
    }

    /// Reads the source as a backup does, which finds out while it runs how many threads gain from it: with
    /// few, and with as many as there may be where that is waiting for the source.
    fn read(&mut self, sample: &Sample) -> Result<(), PathError> {
        let used_before = process_cpu_seconds();
        let few = self.read_with(sample, self.cores)?;
        let used = process_cpu_seconds() - used_before;
        let had = few.measurement.duration_seconds * self.cores as f64;
        let many = match used < had * MORE_READERS_BELOW {
            true => Some(self.read_with(sample, MAX_READERS)?),
            false => None,
        };
        let all = [Some(&few), many.as_ref()].into_iter().flatten().map(|read| &read.measurement);
        let best =
            |rate: fn(&Measurement) -> Option<f64>| all.clone().filter_map(rate).reduce(f64::max);
        let can_do = (best(|row| row.bytes_per_second), best(|row| row.operations_per_second));
        self.add("source read", Layer::SourceRead, Needs::Plain, can_do);
        Ok(())
    }

    /// Tells how fast so many threads read the source.
    fn read_with(&mut self, sample: &Sample, readers: usize) -> Result<SampleRead, PathError> {
        sample.drop_cached();
        let readers = u32::try_from(readers).unwrap_or(u32::MAX);
        let read = sample.read(readers, WALK_LIMIT, self.stop)?;
        if read.ended_early {
            self.told.note(&format!(
                "Reading the source by {readers} threads was ended before all of it was read."
            ));
        }
        self.told.row(&read.measurement)?;
        Ok(read)
    }

    fn processor(&mut self, sample: &Sample) -> Result<(), PathError> {
        let content = Arc::new(read_into_memory(sample, CONTENT_BYTES));
        if content.is_empty() {
            self.told
                .note("The source's files are empty: there is nothing for the processor to do.");
            return Ok(());
        }
        let probe = holdall_engine::content_probe(content);
        let cores = u32::try_from(self.cores).unwrap_or(u32::MAX);
        let probed = measure_probe(&probe, cores, STEP_TIME, self.stop)?;
        let becomes = probed.output_ratio * 100.0;
        self.told.note(&format!("The data compresses to {becomes:.0} % at the fastest level."));
        let rate = probed.measurement.bytes_per_second;
        self.add("processor", Layer::ClientCpu, Needs::Plain, (rate, None));
        let row = Measurement {
            operations_per_second: None,
            bytes_per_core_second: None,
            ..probed.measurement
        };
        Ok(self.told.row(&row)?)
    }

    fn wire(&mut self, far: &LabServer) -> Result<(), PathError> {
        let told = &mut *self.told;
        let mut tell = |row: &NetRow| told.row(&row.reported());
        let measured = net::measure(far, &target::plan(), self.interrupt, &mut tell)?;
        let sent = measured.rows.iter().filter(|row| row.measurement.operation == "send");
        let rate = sent.filter_map(|row| row.measurement.bytes_per_second).reduce(f64::max);
        self.add("wire", Layer::Network, Needs::Sent, (rate, None));
        measured.advice.iter().for_each(|advice| self.told.note(advice));
        Ok(())
    }

    /// The disk that the repository lies on, written through the cache and made durable, as packs
    /// are.
    fn disk(&mut self) -> Result<(), PathError> {
        let row = Row {
            access: Access::Write,
            block_bytes: DISK_BLOCK_BYTES,
            queue_depth: 1,
            jobs: 1,
            file_bytes: DISK_BYTES.min(self.scratch.room_bytes() / 2).max(DISK_BLOCK_BYTES)
                / DISK_BLOCK_BYTES
                * DISK_BLOCK_BYTES,
            until: Until::OnceWithin(STEP_TIME),
            direct: false,
            end_fsync: true,
        };
        let mut files = DiskFiles::new(self.scratch, self.stop.clone(), 0);
        files.prepare(&row)?;
        let measured = measure_row(&row, &mut files)?.measurement();
        let rate = measured.bytes_per_second;
        self.add(self.target.disk_name(), Layer::ServerDisk, Needs::Stored, (rate, None));
        self.told.row(&measured)?;
        let fsync = measure_fsync(&files, STEP_TIME)?;
        Ok(self.told.row(&fsync)?)
    }

    /// The server's disk: by what the server says of single requests, or by several at once, whichever
    /// is more.
    fn server_disk(&mut self, wire: &Wire) -> Result<(), PathError> {
        if !wire.writes() {
            self.told.note(
                "The server does not write what is measured to its disk: it is older, its file \
                 system has no files without names, or this machine may only read. Its disk is not \
                 measured, and its processor not known.",
            );
            return Ok(());
        }
        let alone = written(wire, 1, self.stop)?;
        let before = wire.server_cpu();
        let together = written(wire, PUTS_AT_ONCE, self.stop)?;
        if let Some(rate) = processor_rate(together.bytes, before, wire.server_cpu()) {
            self.add("server processor", Layer::ServerCpu, Needs::Sent, (Some(rate), None));
        }
        let seen = together.row.bytes_per_second.unwrap_or_default();
        let rate = alone.disk_rate.max(seen);
        self.add(self.target.disk_name(), Layer::ServerDisk, Needs::Stored, (Some(rate), None));
        self.told.note(
            "The server's disk is told by the server's own clock. The rows of what was written there also have the \
             wire and the server's processor in them.",
        );
        Ok([alone, together].iter().try_for_each(|written| self.told.row(&written.row))?)
    }

    fn copies(&mut self, sample: &Sample) -> Result<(), PathError> {
        let scratch = self.scratch;
        let room = sample.bytes + sample.files() * 4096;
        scratch.claim(room)?;
        let (files, stream) = (scratch.path().join("copy"), scratch.path().join("stream"));
        sample.drop_cached();
        self.copy("copy file by file", sample, &mut FileByFile::make(&files)?)?;
        holdall_sys::removal::remove_tree(&files)?;
        sample.drop_cached();
        self.copy("copy as one stream", sample, &mut OneStream::make(&stream)?)?;
        std::fs::remove_file(&stream)?;
        scratch.release(room);
        Ok(())
    }

    fn send_copies(
        &mut self,
        sample: &Sample,
        server: Arc<MeasuredServer>,
    ) -> Result<(), PathError> {
        sample.drop_cached();
        self.copy("send file by file", sample, &mut SentFiles::to(Arc::clone(&server)))?;
        sample.drop_cached();
        self.copy("send as one stream", sample, &mut SentStream::to(server))
    }

    fn copy(
        &mut self,
        name: &str,
        sample: &Sample,
        to: &mut dyn CopyTarget,
    ) -> Result<(), PathError> {
        let copied = measure_copy(name, sample, to, self.stop)?;
        let can_do = (copied.bytes_per_second, copied.operations_per_second);
        self.add(name, Layer::Unsure, Needs::Copy, can_do);
        Ok(self.told.row(&copied)?)
    }
}

/// What the server wrote.
struct Written {
    row: Measurement,
    bytes: f64,
    /// Bytes a second, by the server's own clock.
    disk_rate: f64,
}

/// How many bytes a second a server's processor takes over TLS and writes, with all cores that it may keep busy: so many
/// were written between these two times that it told. `None` where it does not tell, or used too little to count.
fn processor_rate(bytes: f64, before: Option<ServerCpu>, after: Option<ServerCpu>) -> Option<f64> {
    let (before, after) = before.zip(after)?;
    let used = after.seconds - before.seconds;
    let rate = bytes / used * after.cores?;
    (used > 0.0 && rate.is_finite() && rate > 0.0).then_some(rate)
}

/// Has the server write for a while, by so many requests at once.
fn written(wire: &Wire, at_once: usize, stop: &Stop) -> Result<Written, PathError> {
    let content = holdall_lab::incompressible(PUT_TARGET_BYTES, at_once as u64);
    let body = Frames::plain(Bytes::from(content));
    let begun = Instant::now();
    let put = || -> Result<Vec<(Duration, RequestTimes)>, RepositoryError> {
        let mut all = Vec::new();
        while all.is_empty() || (begun.elapsed() < STEP_TIME && !stop.is_wished()) {
            let asked = Instant::now();
            let times = wire.write(&body)?;
            all.push((asked.elapsed(), times));
        }
        Ok(all)
    };
    let all: Result<Vec<_>, _> = std::thread::scope(|scope| {
        let started: Vec<_> = (0..at_once).map(|_| scope.spawn(put)).collect();
        started.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    let all: Vec<_> = all?.into_iter().flatten().collect();
    stop.check()?;
    let seconds = begun.elapsed().as_secs_f64();
    let bytes = (all.len() * PUT_TARGET_BYTES) as f64;
    let mut latency = LatencyCount::default();
    all.iter().for_each(|(took, _)| latency.add(*took));
    let disk_seconds: f64 = all.iter().map(|(_, times)| times.disk_seconds).sum();
    let row = Measurement {
        block_bytes: Some(PUT_TARGET_BYTES as u64),
        jobs: u32::try_from(at_once).ok(),
        direct: Some(false),
        end_fsync: Some(true),
        bytes_per_second: Some(bytes / seconds),
        operations_per_second: Some(all.len() as f64 / seconds),
        latency_ns: latency.latency(),
        ..Measurement::new("write at the server, durable", seconds)
    };
    Ok(Written {
        row,
        bytes,
        disk_rate: if disk_seconds > 0.0 { bytes / disk_seconds } else { 0.0 },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_processor_does_what_all_of_its_cores_would() {
        let told = |seconds, cores| Some(ServerCpu { at: Instant::now(), seconds, cores });
        // A fiftieth of a core, all of it used for a second.
        let starved = processor_rate(14.5e6, told(3.0, Some(0.02)), told(3.02, Some(0.02)));
        assert!((starved.unwrap() - 14.5e6).abs() < 1.0, "{starved:?}");
        // Half a second of two cores.
        let idle = processor_rate(500e6, told(3.0, Some(2.0)), told(3.5, Some(2.0)));
        assert!((idle.unwrap() - 2e9).abs() < 1.0, "{idle:?}");
        assert_eq!(processor_rate(1e6, told(3.0, None), told(3.5, None)), None, "an older server");
        assert_eq!(processor_rate(1e6, told(3.0, Some(1.0)), told(3.0, Some(1.0))), None);
        assert_eq!(processor_rate(1e6, None, told(3.0, Some(1.0))), None);
    }
}
