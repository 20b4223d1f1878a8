//! `holdall lab compare`.

use std::path::PathBuf;

use anyhow::Result;
use holdall_lab::report::compare;
use serde::Serialize;

use crate::app::App;
use crate::exit::Exit;
use crate::lab_report;
use crate::output::Shown;

/// Puts two reports beside each other
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall lab disk /mnt/usb --report before.json
         holdall lab disk /mnt/usb --report after.json
         holdall lab compare before.json after.json

Rows of the same settings belong together, and each figure that both have is compared: bytes a \
second, operations where they say more than that, and how long requests took. What differs in the \
circumstances is told, for a figure means little without them.

Exit codes: 0 compared, 1 failed, 2 wrong usage")]
pub(crate) struct Args {
    /// A report in JSON
    #[arg(value_name = "A")]
    first: PathBuf,
    /// Another one
    #[arg(value_name = "B")]
    second: PathBuf,
}

/// What is in a report may come from anybody.
fn shown(text: &str) -> String {
    Shown(text.as_bytes()).to_string()
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    let (first, second) = (lab_report::read(&args.first)?, lab_report::read(&args.second)?);
    let compared = compare(&first, &second);
    let names: Vec<_> = compared.differences.iter().map(|one| shown(&one.words())).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    for (one, name) in compared.differences.iter().zip(&names) {
        app.output.object("difference", one)?;
        let percent = match one.percent {
            Some(percent) => format!("{percent:+.1} %"),
            None => String::new(),
        };
        let (a, b) = (one.show(one.first), one.show(one.second));
        app.output.result(format_args!("{name:width$} {a:>12} {b:>12} {percent:>9}"))?;
    }
    for (only, name) in [(&compared.only_first, "A"), (&compared.only_second, "B")] {
        for row in only {
            app.output.say(format_args!("only {name} has: {}", shown(row)))?;
        }
    }
    for (name, a, b) in &compared.circumstances {
        app.output.say(format_args!(
            "not the same: {}: {} / {}",
            shown(name),
            shown(a),
            shown(b)
        ))?;
    }
    #[derive(Serialize)]
    struct Other<'a> {
        name: &'a str,
        first: &'a str,
        second: &'a str,
    }
    #[derive(Serialize)]
    struct Summary<'a> {
        compared: usize,
        only_first: &'a [String],
        only_second: &'a [String],
        circumstances: Vec<Other<'a>>,
    }
    let other = compared.circumstances.iter();
    let circumstances = other.map(|(name, first, second)| Other { name, first, second }).collect();
    let (only_first, only_second) = (&compared.only_first[..], &compared.only_second[..]);
    let compared = compared.compared;
    app.output.object("summary", &Summary { compared, only_first, only_second, circumstances })?;
    Ok(Exit::Done)
}
