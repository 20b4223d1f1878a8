//! fio on a file that was laid out as holdall lays out its own.
//!
//! fio lays out what it is to read in blocks of the size that it will read. The memory of a cache that was
//! filled in pages of 4 KiB comes back in pieces, and the first to read through it afterwards needs other memory,
//! which a virtual machine may have given back to its host: a third of the speed, and nothing of the disk.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use rustix::fs::{Advice, FallocateFlags};
use serde_json::Value;

use super::Case;
use crate::command::text;

const LAYOUT_BLOCK_BYTES: u64 = 1 << 20;

/// Bytes a second by fio, with one file in `folder` that is gone when this returns.
///
/// # Errors
///
/// If the file cannot be made, or fio is not there or fails.
pub(super) fn measure(folder: &Path, case: &Case) -> Result<f64> {
    let path = folder.join("holdall-torture-lab");
    // Each run lays out its own, as each of ours does.
    let laid_out = if case.writes() { Ok(()) } else { lay_out(&path, case.bytes) };
    let measured = laid_out.and_then(|()| {
        case.warm_memory();
        run(&path, case)
    });
    if path.exists() {
        fs::remove_file(&path).with_context(|| format!("cannot remove {path:?}"))?;
    }
    measured
}

/// Makes a file of random content, which is durable and dropped from the cache when this returns.
fn lay_out(path: &Path, bytes: u64) -> Result<()> {
    let mut file = File::create_new(path).with_context(|| format!("cannot make {path:?}"))?;
    rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes)?;
    let mut random = File::open("/dev/urandom")?;
    let mut block = vec![0; LAYOUT_BLOCK_BYTES as usize];
    for _ in 0..bytes / LAYOUT_BLOCK_BYTES {
        random.read_exact(&mut block)?;
        file.write_all(&block)?;
    }
    file.sync_all()?;
    rustix::fs::fadvise(&file, 0, None, Advice::DontNeed)?;
    Ok(())
}

fn run(path: &Path, case: &Case) -> Result<f64> {
    let engine = if case.depth == 1 { "psync" } else { "io_uring" };
    let mut command = Command::new("fio");
    // Of its calls of the clock, three for each block, a block of 4K from the cache waits longer than for the copy.
    command.args(["--name=lab", "--output-format=json", "--thread", "--gtod_reduce=1"]);
    // It would drop what is in the cache within the time that it measures.
    command.arg("--invalidate=0");
    command.arg(format!("--filename={}", path.display()));
    command.arg(format!("--rw={}", case.operation)).arg(format!("--bs={}", case.block));
    command.arg(format!("--size={}", case.bytes)).arg(format!("--iodepth={}", case.depth));
    command.arg(format!("--ioengine={engine}")).arg(format!("--direct={}", u8::from(case.direct)));
    if let Some(seconds) = case.seconds() {
        command.args(["--time_based", &format!("--runtime={seconds}")]);
    }
    if case.writes() && !case.direct {
        command.arg("--end_fsync=1");
    }
    let said = text(&mut command)?;
    let said: Value = serde_json::from_str(&said).context("fio did not print JSON")?;
    let way = if case.writes() { "write" } else { "read" };
    said["jobs"][0][way]["bw_bytes"].as_f64().context("fio told no rate")
}
