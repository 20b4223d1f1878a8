//! `holdall admin upkeep`.

use std::path::Path;

use anyhow::Result;
use holdall_server::admin::{Hours, SetUpkeep, ShowUpkeep, Upkeep};

use super::ask;
use super::week::{Week, parse_days};
use crate::app::App;
use crate::exit::Exit;
use crate::terminal::output::Shown;

/// Shows or changes when a server prunes and reads again what is stored
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall admin upkeep                       (shows it)
         holdall admin upkeep --from 01:00 --to 06:00
         holdall admin upkeep --from 00:00 --to 24:00 --days mon-sun
         holdall admin upkeep --scrub-days 14

Once an hour a server applies the rules, lets go of what is due, and reads a part of what is stored again. Within the \
hours that are given here, by its clock, it begins that; what has begun goes on until it is done. They are at least two \
hours long. `holdall admin prune` and `holdall admin scrub` work at any time.

Exit codes: 0 done, 1 failed, such as for hours that are too short, 2 wrong usage")]
pub(crate) struct Args {
    /// From then on
    #[arg(long, value_name = "HH:MM")]
    from: Option<String>,
    /// Until then; where that is not later than --from, on the next day
    #[arg(long, value_name = "HH:MM")]
    to: Option<String>,
    /// Days on which it begins, such as mon-fri or sat,sun
    #[arg(long, value_name = "DAYS", value_parser = parse_days)]
    days: Option<Week>,
    /// Reads everything again within so many days
    #[arg(long, value_name = "N")]
    scrub_days: Option<u32>,
}

pub(crate) fn run(args: &Args, data: &Path, app: &App) -> Result<Exit> {
    let now = ask(data, &ShowUpkeep {})?;
    let wanted = args.changed(&now);
    let upkeep = match wanted == now {
        true => now,
        false => ask(data, &SetUpkeep { upkeep: wanted })?,
    };
    app.output.object("upkeep", &upkeep)?;
    app.output.result(Shown(upkeep.to_string().as_bytes()))?;
    Ok(Exit::Done)
}

impl Args {
    /// What is not given stays.
    fn changed(&self, now: &Upkeep) -> Upkeep {
        let Hours { from, to, days } = now.hours.clone();
        let hours = Hours {
            from: self.from.clone().unwrap_or(from),
            to: self.to.clone().unwrap_or(to),
            days: self.days.as_ref().map_or(days, |week| week.0.clone()),
        };
        Upkeep { hours, scrub_days: self.scrub_days.unwrap_or(now.scrub_days) }
    }
}
