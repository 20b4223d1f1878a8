//! `holdall lab cpu`.

use std::time::Duration;

use anyhow::Result;
use holdall_crypto::SystemEntropy;
use holdall_lab::{Measurement, Probe, Probed, Stop, measure_probe};
use serde::Serialize;

use super::circumstances::Circumstances;
use super::rate::Slowest;
use super::table::{figure, megabytes};
use crate::app::App;
use crate::exit::{Exit, Refusal};
use crate::lab_report::ReportArgs;
use crate::quantity;

/// How long a step is measured, in seconds.
const STEP_SECONDS: f64 = 0.5;

/// Measures what this computer's processor does with each step of a backup
///
/// Chunking, hashing, compressing at the levels that a backup chooses from, sealing and opening with
/// both ciphers: the code that a backup runs, on samples in memory, on one core and on all at once.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall lab cpu

The rate for each core is that of the time that a core worked on it, so other programs do not count; \
the rate of all together is by the clock. Sizes are of plain bytes.

Exit codes: 0 measured, 1 failed, 2 wrong usage, 4 slower than --fail-below, 130 interrupted")]
pub(crate) struct Args {
    /// Seconds for each step [default: 0.5]
    #[arg(long, value_name = "S")]
    time: Option<f64>,
    /// Exit code 4 if any step does fewer bytes a second on one core, such as 100M
    #[arg(long, value_name = "RATE", value_parser = quantity::bytes)]
    fail_below: Option<u64>,
    #[command(flatten)]
    report: ReportArgs,
}

/// What a step is told as.
#[derive(Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    measurement: &'a Measurement,
    sample: &'a str,
    bytes_per_core_second: f64,
    output_ratio: f64,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    let time = Duration::try_from_secs_f64(args.time.unwrap_or(STEP_SECONDS));
    let time = time.map_err(|_| Refusal::new(Exit::Usage, "--time is a number of seconds"))?;
    let stop = Stop::on(app.interrupt.flag());
    args.report.check()?;
    let circumstances = Circumstances::now(None);
    circumstances.tell(&app.output)?;
    let all_cores = holdall_sys::cpu::available_cores().round().max(1.0) as u32;
    let mut slowest = Slowest::default();
    app.output.say(format_args!(
        "{:<32} {:<15} {:>14} {:>14} {:>9}",
        "", "", "MB/s each core", "MB/s all cores", "becomes"
    ))?;
    for probe in holdall_engine::cpu_probes(|| Box::new(SystemEntropy)) {
        let one = measure_probe(&probe, 1, time, &stop)?;
        tell_object(app, &probe, &one)?;
        let all = match all_cores {
            1 => one.clone(),
            _ => {
                let all = measure_probe(&probe, all_cores, time, &stop)?;
                tell_object(app, &probe, &all)?;
                all
            }
        };
        slowest.add(Some(one.bytes_per_core_second));
        slowest.keep(&all.measurement);
        app.output.result(format_args!(
            "{:<32} {:<15} {:>14} {:>14} {:>8.1}%",
            probe.name,
            probe.sample,
            figure(one.bytes_per_core_second / 1e6),
            megabytes(&all.measurement),
            one.output_ratio * 100.0,
        ))?;
    }
    args.report.finish(app, &circumstances.report(slowest.rows()))?;
    Ok(slowest.exit(args.fail_below))
}

fn tell_object(app: &App, probe: &Probe, probed: &Probed) -> Result<()> {
    let told = Told {
        measurement: &probed.measurement,
        sample: probe.sample,
        bytes_per_core_second: probed.bytes_per_core_second,
        output_ratio: probed.output_ratio,
    };
    Ok(app.output.object("measurement", &told)?)
}
