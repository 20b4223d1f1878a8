//! `holdall lab quick`: a first impression in less than 5 seconds.
//!
//! The disk's two rows come first; the network has what time they leave.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use holdall_lab::disk::{Access, Row, Until};

use super::bench::Bench;
use super::net;
use super::place::Place;
use crate::app::App;
use crate::exit::Exit;
use crate::lab_report::ReportArgs;
use crate::quantity;

/// 50 MB, in whole blocks.
const LARGE_BLOCK_BYTES: u64 = 1 << 20;
const LARGE_BYTES: u64 = 48 * LARGE_BLOCK_BYTES;
/// 500 requests at once.
const SMALL_BLOCK_BYTES: u64 = 4096;
const SMALL_REQUESTS: u32 = 500;
/// What everything together takes at most, but for a disk that hangs.
const WITHIN: Duration = Duration::from_millis(4700);
/// How long each of the disk's two may take.
const LIMIT: Duration = Duration::from_millis(1200);

/// A first impression in less than 5 seconds: 50 MB in one go, 500 writes of 4 KiB at once, the network
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall lab quick /mnt/usb

`holdall lab disk`, `holdall lab files` and `holdall lab net` say more. A disk that does not take 50 MB \
in time is told by what it took. A paired server is measured for a second each way.

Exit codes: 0 measured, 1 failed, 2 wrong usage, 4 slower than --fail-below, 130 interrupted")]
pub(crate) struct Args {
    /// A directory on the disk to measure [default: the current one]
    #[arg(value_name = "DIR", default_value = ".", hide_default_value = true)]
    dir: PathBuf,
    /// Exit code 4 if any row is slower than this many bytes a second, such as 20M
    #[arg(long, value_name = "RATE", value_parser = quantity::bytes)]
    fail_below: Option<u64>,
    #[command(flatten)]
    report: ReportArgs,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    let begun = Instant::now();
    let place = Place::open(&args.dir, app)?;
    args.report.check()?;
    let circumstances = place.circumstances();
    circumstances.tell(&app.output)?;
    let mut bench = Bench::new(app, &place);
    bench.row(&large(), None)?;
    bench.row(&small(), None)?;
    let (mut slowest, notes) = (bench.slowest().clone(), bench.notes());
    // The disk was measured, whatever becomes of the network.
    let left = WITHIN.saturating_sub(begun.elapsed());
    if let Err(error) = net::paired_quickly(app, &mut slowest, left) {
        app.output.note(format_args!("the paired server is not measured: {error:#}"));
    }
    let exit = slowest.exit(args.fail_below);
    let mut report = circumstances.report(slowest.rows());
    report.notes.extend(notes);
    args.report.finish(app, &report)?;
    place.close()?;
    Ok(exit)
}

fn large() -> Row {
    Row {
        access: Access::Write,
        block_bytes: LARGE_BLOCK_BYTES,
        queue_depth: 1,
        jobs: 1,
        file_bytes: LARGE_BYTES,
        until: Until::OnceWithin(LIMIT),
        direct: true,
        end_fsync: true,
    }
}

fn small() -> Row {
    Row {
        access: Access::RandomWrite,
        block_bytes: SMALL_BLOCK_BYTES,
        queue_depth: SMALL_REQUESTS,
        file_bytes: SMALL_BLOCK_BYTES * u64::from(SMALL_REQUESTS),
        ..large()
    }
}
