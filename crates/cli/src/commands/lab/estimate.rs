//! `holdall lab estimate`.

use anyhow::Result;
use holdall_lab::Layer;
use holdall_lab::cost::{CostModel, Estimate, Work};
use serde::Serialize;

use crate::app::App;
use crate::exit::Exit;
use crate::lab_ceilings::{self, Ceilings};
use crate::output::duration;
use crate::quantity;
use crate::speed_history::{self, Kind, SpeedHistory};

const HOUR_SECONDS: f64 = 3600.0;
/// What a small computer's processor and disk do, in bytes a second, where nobody measured it.
const BESIDE_LINK: f64 = 150e6;

/// Says what a backup will take, from what earlier ones took
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples: holdall lab estimate --items 1000000 --bytes 80G
          holdall lab estimate --items 300 --unchanged 1000000 --bytes 2G --link 50Mbit

Time is items divided by an item rate, and bytes by a byte rate, with rates fitted to the backups that \
this computer made, and as long as these are few to those of the last `holdall lab path` there. Without \
any, they are those of a small computer at gigabit Ethernet, and the answer says how unsure that is.

A faster link helps only where the link is what holds backups back; how fast the rest is then, the last \
`holdall lab path` says.

Exit codes: 0 done, 2 wrong usage")]
pub(crate) struct Args {
    /// Files and folders that are new or changed
    #[arg(long, value_name = "N")]
    items: u64,
    /// Their size (such as 500M, 80G)
    #[arg(long, value_name = "B", value_parser = quantity::bytes)]
    bytes: u64,
    /// Files and folders beside them that did not change
    #[arg(long, value_name = "N", default_value_t = 0)]
    unchanged: u64,
    /// Over a link of this rate: in bytes (12M), or in bits (100Mbit) a second
    #[arg(long, value_name = "RATE", value_parser = parse_link)]
    link: Option<f64>,
    /// To a disk that takes so many bytes a second (such as 200M)
    #[arg(long, value_name = "RATE", value_parser = quantity::bytes)]
    disk: Option<u64>,
    /// With a disk that takes so many items a second
    #[arg(long, value_name = "R", value_parser = parse_item_rate)]
    item_rate: Option<f64>,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    #[derive(Serialize)]
    struct Summary<'a> {
        #[serde(flatten)]
        estimate: &'a Estimate,
        fits_into_an_hour: Fits,
    }
    let model = args.model(app);
    let Args { items, bytes, unchanged: items_unchanged, .. } = *args;
    let estimate = model.estimate(&Work { items, items_unchanged, bytes });
    let fits = Fits::of(&estimate);
    app.output.object("summary", &Summary { estimate: &estimate, fits_into_an_hour: fits })?;
    app.output.result(in_words(&estimate))?;
    app.output.result(match fits {
        Fits::Yes => "run every hour, it fits into the hour",
        Fits::Perhaps => "run every hour, it may or may not fit into the hour",
        Fits::No => "run every hour, it does not fit into the hour",
    })?;
    Ok(Exit::Done)
}

impl Args {
    /// What the history and `lab path` say, over the link and to the disk that were named.
    fn model(&self, app: &App) -> CostModel {
        let history = SpeedHistory::in_state(&app.folders.state);
        // The repository that was used last is the one that is meant.
        let last = history.runs().into_iter().rev().find(|run| run.kind == Kind::Backup);
        let is_there = |repository: &String| lab_ceilings::place(app).as_ref() == Some(repository);
        let ceilings = match &last {
            // A directory's id is not known without opening it.
            Some(last) if !is_there(&last.repository) => None,
            _ => Ceilings::newest(app),
        };
        let runs = match last {
            Some(last) => history.comparable(Kind::Backup, &last.repository),
            None => Vec::new(),
        };
        let measured = ceilings.as_ref().map(Ceilings::runs).unwrap_or_default();
        let mut model = speed_history::model(&runs, &measured);
        if let Some(link) = self.link {
            let is_link_the_limit = match speed_history::usual_limit(&runs) {
                Some(layer) => layer == Layer::Network,
                None => runs.is_empty() && measured.is_empty(),
            };
            let beside = match is_link_the_limit {
                true => ceilings.and_then(|found| found.beside_wire()).unwrap_or(BESIDE_LINK),
                false => model.bytes_per_second(),
            };
            model = model.over_link(link, beside);
        }
        if let Some(disk) = self.disk {
            model = model.at_disk_rate(disk as f64);
        }
        if let Some(rate) = self.item_rate {
            model = model.at_item_rate(rate);
        }
        model
    }
}

/// Whether a run fits into an hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Fits {
    Yes,
    Perhaps,
    No,
}

impl Fits {
    fn of(estimate: &Estimate) -> Self {
        let Estimate { seconds, plus_minus_seconds, .. } = estimate;
        match (
            seconds + plus_minus_seconds <= HOUR_SECONDS,
            seconds - plus_minus_seconds > HOUR_SECONDS,
        ) {
            (true, _) => Self::Yes,
            (_, true) => Self::No,
            _ => Self::Perhaps,
        }
    }
}

/// An estimate in words: `about 3 h 10 min, ± 20 min 0 s, most of it for bytes at 38.0 MB/s (from 12
/// earlier backups)`.
pub(crate) fn in_words(estimate: &Estimate) -> String {
    use holdall_lab::{Unit, cost::Part};
    let rate = match estimate.mostly {
        Part::Items => format!("items at {}", Unit::ItemsPerSecond.show(estimate.rate)),
        Part::UnchangedItems => {
            format!("unchanged items at {}", Unit::ItemsPerSecond.show(estimate.rate))
        }
        Part::Bytes => format!("bytes at {}", Unit::BytesPerSecond.show(estimate.rate)),
    };
    let path = "what `holdall lab path` measured";
    let from = match (estimate.runs, estimate.measured) {
        (0, false) => "typical rates, since this computer made no backup yet".to_owned(),
        (0, true) => path.to_owned(),
        (1, false) => "1 earlier backup".to_owned(),
        (runs, false) => format!("{runs} earlier backups"),
        (1, true) => format!("1 earlier backup, and {path}"),
        (runs, true) => format!("{runs} earlier backups, and {path}"),
    };
    format!(
        "about {}, ± {}, most of it for {rate} (from {from})",
        duration(estimate.seconds),
        duration(estimate.plus_minus_seconds),
    )
}

/// Reads `12M`, in bytes a second, or `100Mbit`, in bits.
fn parse_link(text: &str) -> Result<f64, String> {
    let (number, bits) = match text.strip_suffix("bit") {
        Some(number) => (number, 8.0),
        None => (text, 1.0),
    };
    match quantity::bytes(number)? {
        0 => Err("a link of nothing would never end".into()),
        rate => Ok(rate as f64 / bits),
    }
}

fn parse_item_rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| "it is a number of items a second")?;
    if rate > 0.0 && rate.is_finite() { Ok(rate) } else { Err("it is more than nothing".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdall_lab::cost::Part;

    fn estimate(seconds: f64, plus_minus_seconds: f64) -> Estimate {
        Estimate {
            seconds,
            plus_minus_seconds,
            mostly: Part::Bytes,
            rate: 38e6,
            runs: 12,
            measured: false,
        }
    }

    #[test]
    fn an_estimate_reads_like_a_person_would_say_it() {
        assert_eq!(
            in_words(&estimate(11_400.0, 1_200.0)),
            "about 3 h 10 min, ± 20 min 0 s, most of it for bytes at 38.0 MB/s (from 12 earlier \
             backups)"
        );
    }

    #[test]
    fn whether_it_fits_into_the_hour_is_as_sure_as_the_estimate() {
        let fits = |seconds, more| Fits::of(&estimate(seconds, more));
        assert_eq!(fits(3000.0, 600.0), Fits::Yes);
        assert_eq!(fits(3000.0, 601.0), Fits::Perhaps);
        assert_eq!(fits(4000.0, 300.0), Fits::No);
        assert_eq!(fits(4000.0, 500.0), Fits::Perhaps);
    }

    #[test]
    fn a_link_is_given_in_bytes_or_bits() {
        assert_eq!(parse_link("12M"), Ok(12e6));
        assert_eq!(parse_link("100Mbit"), Ok(12.5e6));
        for bad in ["", "0", "0bit", "bit", "xbit", "-1M"] {
            assert!(parse_link(bad).is_err(), "{bad}");
        }
        for bad in ["", "0", "-1", "NaN", "inf"] {
            assert!(parse_item_rate(bad).is_err(), "{bad}");
        }
    }
}
