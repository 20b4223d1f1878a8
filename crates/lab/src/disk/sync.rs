//! How long it takes until a disk says that something is safe.

use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use holdall_meter::LatencyCount;
use holdall_sys::raw_file;

use super::content;
use super::files::DiskFiles;
use crate::{LabError, Measurement};

const BLOCK_BYTES: u64 = 4096;
/// The file that is written over and over.
const FILE_BYTES: u64 = 64 * BLOCK_BYTES;
/// How often: enough for the second-worst of a hundred.
const SYNCS: u64 = 500;

/// Writes a block and makes it durable, over and over for at most `limit`: the latency is that of the
/// fsync alone, the rate that of both.
///
/// # Errors
/// As for [`measure`](super::measure).
pub fn measure_fsync(files: &DiskFiles<'_>, limit: Duration) -> Result<Measurement, LabError> {
    let path = files.path("sync");
    let failed = |error| LabError::io("making durable", &path, error);
    let file = raw_file::create_new(&path).map_err(failed)?;
    raw_file::reserve(&file, FILE_BYTES).map_err(failed)?;
    let mut block = [0; BLOCK_BYTES as usize];
    content::fill(&mut block, files.seed());
    let mut latency = LatencyCount::default();
    let (started, mut syncs) = (Instant::now(), 0);
    while syncs < SYNCS && started.elapsed() < limit {
        files.stop().check()?;
        content::stamp(&mut block, syncs);
        file.write_all_at(&block, syncs * BLOCK_BYTES % FILE_BYTES).map_err(failed)?;
        let begun = Instant::now();
        file.sync_all().map_err(failed)?;
        latency.add(begun.elapsed());
        syncs += 1;
    }
    let seconds = started.elapsed().as_secs_f64();
    std::fs::remove_file(&path).map_err(failed)?;
    Ok(Measurement {
        block_bytes: Some(BLOCK_BYTES),
        file_bytes: Some(FILE_BYTES),
        queue_depth: Some(1),
        jobs: Some(1),
        direct: Some(false),
        end_fsync: Some(true),
        // It is waiting that is measured, not moving.
        operations_per_second: Some(syncs as f64 / seconds),
        latency_ns: latency.latency(),
        ..Measurement::new("fsync", seconds)
    })
}
