//! `holdall admin bandwidth`.

use std::path::Path;

use anyhow::Result;
use holdall_server::admin::{
    AddBandwidth, BandwidthEntry, BandwidthRule, Day, Hours, ListBandwidth, RemoveBandwidth,
};
use serde::Serialize;

use super::ask;
use super::week::{Week, parse_days};
use crate::app::App;
use crate::arguments::quantity;
use crate::exit::Exit;
use crate::terminal::output::Shown;

/// Limits what machines send to a server and are sent, by hours of the week
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall admin bandwidth                       (lists the limits)
         holdall admin bandwidth --limit 20MB/s --from 08:00 --to 18:00 --days mon-fri
         holdall admin bandwidth --limit 5MB/s
         holdall admin bandwidth --remove 2

A limit is for all machines together, each way; they share it evenly. Of several that count at an hour, the lowest holds. \
It counts within a second, by the clock of the server, for backups and restores that run too. What a single \
machine sends, `holdall backup --limit-upload` limits.

Exit codes: 0 done, 1 failed, such as for a limit that is too low, 2 wrong usage")]
pub(crate) struct Args {
    /// Adds a limit of so many bytes a second (such as 20MB/s, 500k, 100Mbit)
    #[arg(long, value_name = "RATE", value_parser = quantity::rate)]
    limit: Option<u64>,
    /// From then on
    #[arg(long, value_name = "HH:MM", requires = "limit", default_value = "00:00")]
    from: String,
    /// Until then; where that is not later than --from, on the next day
    #[arg(long, value_name = "HH:MM", requires = "limit", default_value = "24:00")]
    to: String,
    /// Days on which it begins, such as mon-fri or sat,sun [default: all]
    #[arg(long, value_name = "DAYS", requires = "limit", value_parser = parse_days)]
    days: Option<Week>,
    /// Removes the limit of that number
    #[arg(long, value_name = "NUMBER", conflicts_with = "limit")]
    remove: Option<u64>,
}

pub(crate) fn run(args: &Args, data: &Path, app: &App) -> Result<Exit> {
    let rules = if let Some(number) = args.remove {
        ask(data, &RemoveBandwidth { number })?.rules
    } else if let Some(bytes_per_second) = args.limit {
        let days = args.days.as_ref().map_or_else(|| Day::ALL.to_vec(), |week| week.0.clone());
        let (from, to) = (args.from.clone(), args.to.clone());
        let hours = Hours { from, to, days };
        ask(data, &AddBandwidth { rule: BandwidthRule { bytes_per_second, hours } })?.rules
    } else {
        let rules = ask(data, &ListBandwidth {})?.rules;
        if rules.is_empty() {
            app.output.say("no limit: machines are as fast as they can")?;
        }
        rules
    };
    rules.iter().try_for_each(|entry| show(app, entry))?;
    Ok(Exit::Done)
}

fn show(app: &App, entry: &BandwidthEntry) -> Result<()> {
    #[derive(Serialize)]
    struct JsonRule<'a> {
        number: u64,
        #[serde(flatten)]
        rule: &'a BandwidthRule,
    }
    let BandwidthEntry { number, rule } = entry;
    app.output.object("bandwidth", &JsonRule { number: *number, rule })?;
    Ok(app.output.result(format_args!("{number:>3}  {}", Shown(rule.to_string().as_bytes())))?)
}
