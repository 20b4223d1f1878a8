//! `holdall lab history`.

use anyhow::Result;
use holdall_lab::report::Report;
use holdall_state::KeptReports;
use serde::Serialize;

use crate::app::App;
use crate::exit::Exit;
use crate::terminal::output::{JsonPath, Shown, local_time_of};

/// Lists what the lab measured on this computer before
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall lab history
         holdall lab compare 3 7     with two of the numbers that it lists
         holdall lab compare last    the newest with the one of its kind before it

Each measurement is kept in the state folder, the last 200 of them. `-v` names their files.

Exit codes: 0 done, 1 failed, 2 wrong usage")]
pub(crate) struct Args {
    /// Lists only the last N
    #[arg(long, value_name = "N")]
    last: Option<usize>,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    #[derive(Serialize)]
    struct Line<'a> {
        number: usize,
        #[serde(flatten)]
        file: JsonPath,
        made: &'a str,
        command: &'a str,
        measurements: usize,
        fastest_bytes_per_second: Option<f64>,
    }
    let files = KeptReports::in_state(&app.folders.state).files()?;
    let skipped = files.len().saturating_sub(args.last.unwrap_or(usize::MAX));
    for (at, file) in files.iter().enumerate().skip(skipped) {
        let number = at + 1;
        // One that is damaged costs itself alone.
        let report = match KeptReports::read(file).map_err(anyhow::Error::from) {
            Ok(report) => report,
            Err(error) => {
                app.output.note(format_args!("{error:#}"));
                continue;
            }
        };
        let path = std::os::unix::ffi::OsStrExt::as_bytes(file.as_os_str());
        let fastest = fastest(&report);
        let Report { made, command, measurements, .. } = &report;
        let words = fastest.map(|rate| holdall_meter::Unit::BytesPerSecond.show(rate));
        let time = Shown(local_time_of(made).as_bytes()).to_string();
        let about = format!("{number:>3}  {time}  {:>10}  ", words.unwrap_or_default());
        app.output.result_beside(&about, Shown(command.as_bytes()))?;
        if app.output.verbose > 0 {
            app.output.result(format_args!("     {}", Shown(path)))?;
        }
        app.output.object(
            "lab_report",
            &Line {
                number,
                file: JsonPath::new(path),
                made,
                command,
                measurements: measurements.len(),
                fastest_bytes_per_second: fastest,
            },
        )?;
    }
    Ok(Exit::Done)
}

fn fastest(report: &Report) -> Option<f64> {
    report.measurements.iter().filter_map(|row| row.bytes_per_second).reduce(f64::max)
}
