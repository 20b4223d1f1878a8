//! `holdall lab quick`: a first impression in less than 5 seconds.
//!
//! The disk's two rows come first; the network has what time they leave.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use holdall_lab::disk::{QUICK_LIMIT, Row, growing_at_once, growing_write, larger_in_time};
use holdall_lab::report::Fact;

use super::answers;
use super::bench::Bench;
use super::net;
use super::place::Place;
use crate::app::App;
use crate::arguments::quantity;
use crate::exit::Exit;
use crate::lab::lab_report::ReportArgs;

/// What everything together takes at most, but for a disk that hangs.
const WITHIN: Duration = Duration::from_millis(4700);
const TOLD_BY_LESS: &str = "this disk is too slow or too full for every row: rows that were cut short show what \
was done in the time";

/// A first impression in less than 5 seconds: 50 MB in one go, 500 writes of 4 KiB at once, the network
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall lab quick /mnt/usb

`holdall lab disk`, `holdall lab files` and `holdall lab net` say more. A disk that would take too long \
for 50 MB, or for 500 at once, is told by a smaller write, or by fewer. A paired server is measured for a \
second each way.

Exit codes: 0 measured, 1 failed, 2 wrong usage, 4 slower than --fail-below, 130 interrupted")]
pub(crate) struct Args {
    /// A directory on the disk to measure [default: the current one]
    #[arg(value_name = "DIR", default_value = ".", hide_default_value = true)]
    dir: PathBuf,
    /// Exit code 4 if any row is slower than this many bytes a second, such as 20M
    #[arg(long, value_name = "RATE", value_parser = quantity::rate)]
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
    let room_bytes = place.scratch.room_bytes();
    tell_largest(&mut bench, &growing_write(), (room_bytes, QUICK_LIMIT))?;
    let left = (QUICK_LIMIT * 2).saturating_sub(begun.elapsed());
    tell_largest(&mut bench, &growing_at_once(), (room_bytes, left.min(QUICK_LIMIT)))?;
    let (mut slowest, notes) = (bench.slowest().clone(), bench.notes());
    // The disk was measured, whatever becomes of the network.
    let left = WITHIN.saturating_sub(begun.elapsed());
    let server = net::paired_quickly(app, &mut slowest, left).unwrap_or_else(|error| {
        app.output.note(format_args!("the paired server is not measured: {error:#}"));
        None
    });
    let exit = slowest.exit(args.fail_below);
    let mut report = circumstances.report(slowest.rows());
    if let Some((server, _)) = &server {
        app.output.say(format_args!("server       {server}"))?;
        report.facts.push(Fact::new("server", server.as_str()));
    }
    report.notes.extend(notes);
    let link = server.as_ref().and_then(|(_, link)| link.as_ref());
    let is_in_memory = place.stack.is_in_memory();
    let told = holdall_diagnosis::answers::of_quick(slowest.rows(), is_in_memory, link);
    answers::summarise(app, &mut report, told)?;
    args.report.finish(app, &report)?;
    place.close()?;
    Ok(exit)
}

/// Measures rows, each larger than the one before, and tells the largest that has room and is done in time.
fn tell_largest(
    bench: &mut Bench<'_>,
    rows: &[Row],
    (room_bytes, limit): (u64, Duration),
) -> Result<()> {
    let (begun, mut at) = (Instant::now(), 0);
    let fitting = rows.partition_point(|row| row.file_bytes <= room_bytes).max(1);
    loop {
        let (measured, device) = bench.measured(&rows[at])?;
        let left = limit.saturating_sub(begun.elapsed());
        if let Some(larger) = larger_in_time(&rows[..fitting], at, measured.duration, left) {
            at = larger;
            continue;
        }
        bench.tell_row(&measured, None, device)?;
        let is_all = at + 1 == rows.len();
        return if is_all { Ok(()) } else { bench.note(TOLD_BY_LESS) };
    }
}
