//! `holdall lab compare`.

use std::path::{Path, PathBuf};

use anyhow::Result;
use holdall_lab::report::{Comparison, Limited, Report, compare};
use holdall_state::read_report;
use serde::Serialize;

use crate::app::App;
use crate::exit::Exit;
use crate::terminal::output::{Output, Shown, local_time_of};

/// Puts two reports beside each other
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall lab disk /mnt/usb --report before.json
         holdall lab disk /mnt/usb --report after.json
         holdall lab compare before.json after.json

Rows of the same settings belong together, a disk's also where the file that was measured has \
another size. Each figure that both have is compared: bytes a second, operations where they say \
more than that, and how long requests took; and so are the steps of `lab path`. What limited the \
backups and what differs in the circumstances is told, for a figure means little without them.

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
    let (first, second) = (read_report(&args.first)?, read_report(&args.second)?);
    let compared = compare(&first, &second);
    tell_heads([(&args.first, &first), (&args.second, &second)], &app.output)?;
    tell_differences(&compared, &app.output)?;
    tell_beside(&compared, &app.output)?;
    app.output.object("summary", &Summary::of(&compared))?;
    Ok(Exit::Done)
}

/// Says which report is which, and what measured it when.
fn tell_heads(reports: [(&Path, &Report); 2], output: &Output) -> Result<()> {
    for ((path, report), name) in reports.into_iter().zip(["A", "B"]) {
        let (command, made) = (shown(&report.command), shown(&local_time_of(&report.made)));
        output.say(format_args!("{name}: {}: {command}, {made}", path.display()))?;
    }
    Ok(())
}

fn tell_differences(compared: &Comparison, output: &Output) -> Result<()> {
    let names: Vec<_> = compared.differences.iter().map(|one| shown(&one.words())).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    if !names.is_empty() {
        output.say(format_args!("{:width$} {:>12} {:>12} {:>9}", "", "A", "B", "B to A"))?;
    }
    for (one, name) in compared.differences.iter().zip(&names) {
        output.object("difference", one)?;
        let percent = match one.percent {
            Some(percent) => format!("{percent:+.1} %"),
            None => String::new(),
        };
        let (a, b) = (one.show(one.first), one.show(one.second));
        output.result(format_args!("{name:width$} {a:>12} {b:>12} {percent:>9}"))?;
    }
    Ok(())
}

/// Says what only one has, what limited each, and which circumstances are not the same.
fn tell_beside(compared: &Comparison, output: &Output) -> Result<()> {
    for (only, name) in [(&compared.only_first, "A"), (&compared.only_second, "B")] {
        for row in only {
            output.say(format_args!("only {name} has: {}", shown(row)))?;
        }
    }
    for limited in &compared.limited_by {
        output.say(limited.words())?;
    }
    for (name, a, b) in &compared.circumstances {
        let (name, a, b) = (shown(name), shown(a), shown(b));
        output.say(format_args!("not the same: {name}: {a} / {b}"))?;
    }
    Ok(())
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
    limited_by: &'a [Limited],
    circumstances: Vec<Other<'a>>,
}

impl<'a> Summary<'a> {
    fn of(compared: &'a Comparison) -> Self {
        let other = compared.circumstances.iter();
        Self {
            compared: compared.compared,
            only_first: &compared.only_first,
            only_second: &compared.only_second,
            limited_by: &compared.limited_by,
            circumstances: other.map(|(name, a, b)| Other { name, first: a, second: b }).collect(),
        }
    }
}
