//! `holdall lab cpu`.

use std::time::Duration;

use anyhow::Result;
use holdall_engine::Samples;
use holdall_lab::{Measurement, Probed, Stop, incompressible, measure_probe, text};
use holdall_meter::Probe;
use serde::Serialize;

use super::answers;
use super::circumstances::Circumstances;
use super::rate::Slowest;
use super::table::{figure, megabytes};
use crate::app::App;
use crate::arguments::quantity;
use crate::exit::Exit;
use crate::lab::lab_report::ReportArgs;
use crate::terminal::progress::Steps;

/// How long a step is measured.
const STEP_TIME: Duration = Duration::from_millis(500);

/// Measures what this computer's processor does with each step of a backup
///
/// The steps: chunking, hashing, compressing at each level that a backup uses, sealing and opening with both
/// ciphers. It runs a backup's own code on samples in memory, on one core and on all at once.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall lab cpu

The rate for each core is that of the time that a core worked on it, so other programs do not count; \
the rate of all together is by the clock. Sizes are of plain bytes.

Exit codes: 0 measured, 1 failed, 2 wrong usage, 4 slower than --fail-below, 130 interrupted")]
pub(crate) struct Args {
    /// Seconds for each step [default: 0.5]
    #[arg(long, value_name = "S", value_parser = quantity::seconds)]
    time: Option<Duration>,
    /// Exit code 4 if any step does fewer bytes a second on one core, such as 100M
    #[arg(long, value_name = "RATE", value_parser = quantity::rate)]
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
    output_ratio: f64,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    let time = args.time.unwrap_or(STEP_TIME);
    let stop = Stop::on(app.interrupt.flag());
    args.report.check()?;
    let circumstances = Circumstances::now(None);
    circumstances.tell(&app.output)?;
    let all_cores = holdall_sys::cpu::available_cores().round().max(1.0) as u32;
    let mut slowest = Slowest::default();
    app.output.say(format_args!(
        "{:<28} {:<15} {:>11} {:>11} {:>9}",
        "", "", "MB/s a core", "all cores", "becomes"
    ))?;
    let samples = Samples { text, incompressible };
    let probes = holdall_engine::cpu_probes(samples);
    let mut steps = Steps::of(&app.output, probes.len());
    for probe in probes {
        steps.show(&probe.name);
        let one = measure_probe(&probe, 1, time, &stop)?;
        keep(app, &probe, &one, &mut slowest)?;
        let all = match all_cores {
            1 => one.clone(),
            _ => {
                let all = measure_probe(&probe, all_cores, time, &stop)?;
                keep(app, &probe, &all, &mut slowest)?;
                all
            }
        };
        let of_core = one.measurement.bytes_per_core_second;
        slowest.add(of_core);
        steps.end();
        app.output.result(format_args!(
            "{:<28} {:<15} {:>11} {:>11} {:>8.1}%",
            probe.name,
            probe.sample,
            of_core.map(|rate| figure(rate / 1e6)).unwrap_or_default(),
            megabytes(&all.measurement),
            one.output_ratio * 100.0,
        ))?;
    }
    let mut report = circumstances.report(slowest.rows());
    let cores = holdall_sys::cpu::available_cores();
    let told = holdall_diagnosis::answers::of_processor(slowest.rows(), cores);
    answers::summarise(app, &mut report, told)?;
    args.report.finish(app, &report)?;
    Ok(slowest.exit(args.fail_below))
}

/// Tells a step as an object, and keeps its row for the report.
fn keep(app: &App, probe: &Probe, probed: &Probed, rows: &mut Slowest) -> Result<()> {
    let Probed { measurement, output_ratio } = probed;
    rows.keep(measurement);
    let told = Told { measurement, sample: probe.sample, output_ratio: *output_ratio };
    Ok(app.output.object("measurement", &told)?)
}
