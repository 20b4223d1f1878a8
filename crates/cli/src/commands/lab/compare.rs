//! `holdall lab compare`.

use std::path::{Path, PathBuf};

use anyhow::Result;
use holdall_lab::report::{Comparison, Limited, Report, compare};
use holdall_state::{KeptReports, read_report};
use serde::Serialize;

use super::table::tell_named;
use crate::app::App;
use crate::exit::{Exit, Refusal};
use crate::terminal::output::{Output, Shown, local_time_of};

/// Puts two reports beside each other
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall lab disk /mnt/usb --report before.json
         holdall lab disk /mnt/usb --report after.json
         holdall lab compare before.json after.json
         holdall lab compare 3 7
         holdall lab compare last

A number is one of `holdall lab history`, `last` the newest there. Without B, a number or file is compared with \
the newest, and `last` with the one of its kind before it.

Rows of the same settings belong together, a disk's also where the file that was measured has \
another size. Each figure that both have is compared: bytes a second, operations where they say \
more than that, and how long requests took; and so are the steps of `lab path`. What limited the \
backups and what differs in the circumstances is told, for a figure means little without them.

Exit codes: 0 compared, 1 failed, 2 wrong usage")]
pub(crate) struct Args {
    /// A report in JSON, a number of `holdall lab history`, or `last`
    #[arg(value_name = "A")]
    first: PathBuf,
    /// Another one [default: the newest]
    #[arg(value_name = "B")]
    second: Option<PathBuf>,
}

/// As many columns as the figures leave to the names of rows, of 80.
const NAME_COLUMNS: usize = 44;
/// What stands for the newest report that is kept.
const LAST: &str = "last";

/// Reports, by a number of the history, by `last`, or by a file.
struct Found {
    kept: Vec<PathBuf>,
}

impl Found {
    /// Both that are meant, and how they are called.
    fn both(&self, args: &Args) -> Result<[(String, Report); 2]> {
        let last = Path::new(LAST);
        match &args.second {
            Some(second) => Ok([self.one(&args.first)?, self.one(second)?]),
            None if args.first == last => self.last_two(),
            None => Ok([self.one(&args.first)?, self.one(last)?]),
        }
    }

    fn one(&self, named: &Path) -> Result<(String, Report)> {
        let text = named.to_str().unwrap_or_default();
        let number = if text == LAST { Some(self.kept.len()) } else { text.parse().ok() };
        match number {
            Some(number) => self.kept_at(number),
            None => Ok((named.display().to_string(), read_report(named)?)),
        }
    }

    fn kept_at(&self, number: usize) -> Result<(String, Report)> {
        let file = number.checked_sub(1).and_then(|at| self.kept.get(at)).ok_or_else(|| {
            let count = self.kept.len();
            Refusal::new(
                Exit::Failed,
                format!("the history has no measurement {number}, but {count}"),
            )
            .hint("`holdall lab history` lists them with their numbers; a file is named as ./3")
        })?;
        Ok((number.to_string(), KeptReports::read(file)?))
    }

    /// The newest of the same kind before the newest, and the newest.
    fn last_two(&self) -> Result<[(String, Report); 2]> {
        let newest = self.kept_at(self.kept.len())?;
        let is_like = |(_, report): &(String, Report)| kind(report) == kind(&newest.1);
        let mut earlier = (1..self.kept.len()).rev().filter_map(|number| self.kept_at(number).ok());
        let before = earlier.find(is_like).ok_or_else(|| {
            let what = shown(&kind(&newest.1));
            Refusal::new(Exit::Failed, format!("there is only one `{what}` in the history"))
                .hint("measure again, or name another: `holdall lab history` lists them")
        })?;
        Ok([before, newest])
    }
}

/// What a report measures, by its command: `holdall lab disk`.
fn kind(report: &Report) -> String {
    report.command.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

/// What is in a report may come from anybody.
fn shown(text: &str) -> String {
    Shown(text.as_bytes()).to_string()
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    let found = Found { kept: KeptReports::in_state(&app.folders.state).files()? };
    let [(first_name, first), (second_name, second)] = found.both(args)?;
    tell([(&first_name, &first), (&second_name, &second)], app)
}

/// Puts two reports beside each other, each with what it is called.
///
/// # Errors
/// If standard output cannot be written.
pub(crate) fn tell([first, second]: [(&str, &Report); 2], app: &App) -> Result<Exit> {
    tell_heads([first, second], &app.output)?;
    let (first, second) = (first.1, second.1);
    let compared = compare(first, second);
    tell_differences(&compared, &app.output)?;
    if compared.compared > 0 {
        tell_only(&compared, &app.output)?;
        tell_beside(&compared, &app.output)?;
    } else {
        let [a, b] = [first, second].map(|report| shown(&kind(report)));
        app.output.say(format_args!(
            "these reports measure different things ({a}, {b}): no row of one is in the other"
        ))?;
    }
    app.output.object("summary", &Summary::of(&compared))?;
    Ok(Exit::Done)
}

/// Says which report is which, and what measured it when.
fn tell_heads(reports: [(&str, &Report); 2], output: &Output) -> Result<()> {
    for ((named, report), name) in reports.into_iter().zip(["A", "B"]) {
        let (command, made) = (shown(&report.command), shown(&local_time_of(&report.made)));
        output.say(format_args!("{name}: {}: {command}, {made}", shown(named)))?;
    }
    Ok(())
}

fn tell_differences(compared: &Comparison, output: &Output) -> Result<()> {
    let names: Vec<_> = compared.differences.iter().map(|one| shown(&one.words())).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).min(NAME_COLUMNS);
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
        tell_named(output, (name, width), &format!("{a:>12} {b:>12} {percent:>9}"), "")?;
    }
    Ok(())
}

/// Says what only one has.
fn tell_only(compared: &Comparison, output: &Output) -> Result<()> {
    for (only, name) in [(&compared.only_first, "A"), (&compared.only_second, "B")] {
        for row in only {
            output.say(format_args!("only {name} has: {}", shown(row)))?;
        }
    }
    Ok(())
}

/// Says what limited each, and which circumstances are not the same.
fn tell_beside(compared: &Comparison, output: &Output) -> Result<()> {
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
