//! `holdall lab estimate`.

use std::path::Path;

use anyhow::Result;
use holdall_diagnosis::speed_history::{Kind, SpeedHistory};
use holdall_diagnosis::{Earlier, Expected, Fits, Way, Wished};
use holdall_meter::cost::Work;
use serde::Serialize;

use crate::app::App;
use crate::arguments::quantity;
use crate::exit::Exit;
use crate::lab::remembered;
use crate::opening::open::{self, Where};

/// Says what a backup will take, from what earlier ones took
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples: holdall lab estimate --items 1000000 --bytes 80G
          holdall lab estimate --items 300 --unchanged 1000000 --bytes 2G --link 50Mbit

Time is items divided by an item rate, and bytes by a byte rate, with rates fitted to the backups that \
this computer made to that repository, or to the one that it used last where none is named or paired, \
and where these say nothing to those of the last `holdall lab path` there. Without any, they \
are those of a small computer at gigabit Ethernet, and the answer says how unsure that is.

A faster link or disk helps only where it is what holds backups back; how fast the rest is then, the last \
`holdall lab path` says.

Exit codes: 0 done, 2 wrong usage")]
pub(crate) struct Args {
    /// Files and folders that are new or changed
    #[arg(long, value_name = "N", value_parser = quantity::count)]
    items: u64,
    /// Their size (such as 500M, 80G)
    #[arg(long, value_name = "B", value_parser = quantity::bytes)]
    bytes: u64,
    /// Files and folders beside them that did not change
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = quantity::count)]
    unchanged: u64,
    /// Over a link of this rate: in bytes (12M), or in bits (100Mbit, 1Gb) a second
    #[arg(long, value_name = "RATE", value_parser = quantity::rate)]
    link: Option<u64>,
    /// To a disk that takes so many bytes a second (such as 200M)
    #[arg(long, value_name = "RATE", value_parser = quantity::rate)]
    disk: Option<u64>,
    /// With a disk that takes so many items a second
    #[arg(long, value_name = "R", value_parser = parse_item_rate)]
    item_rate: Option<f64>,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    #[derive(Serialize)]
    struct Summary<'a> {
        #[serde(flatten)]
        expected: &'a Expected,
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<&'a str>,
        fits_into_an_hour: Fits,
    }
    app.named_repository().map(Where::parse).transpose()?;
    let earlier = earlier(app);
    let (items, bytes, items_unchanged) = (args.items, args.bytes, args.unchanged);
    let wished = Wished {
        link: args.link.map(|rate| rate as f64),
        disk: args.disk,
        item_rate: args.item_rate,
    };
    let work = Work { items, items_unchanged, bytes };
    let addresses = |repository: &str| remembered::addresses(app, repository);
    let (expected, way) = earlier.expects_with(&work, &wished, addresses);
    let notes = [nothing_known(app, &earlier), way.as_ref().and_then(Way::note)];
    let note = notes.into_iter().flatten().reduce(|one, other| format!("{one}; {other}"));
    let fits = Fits::of(expected.estimate());
    let summary = Summary { expected: &expected, note: note.as_deref(), fits_into_an_hour: fits };
    app.output.object("summary", &summary)?;
    let condition = way.as_ref().and_then(|way| way.condition(expected.estimate().mostly));
    app.output.result(expected.words() + condition.unwrap_or_default())?;
    if let Some(note) = &note {
        app.output.result(note)?;
    }
    app.output.result(match fits {
        Fits::Yes => "it can run every hour",
        Fits::Perhaps => "every hour, it may take longer than the hour",
        Fits::No => "it takes longer than an hour: let it run less often",
    })?;
    Ok(Exit::Done)
}

/// What is known of the repository that is meant.
fn earlier(app: &App) -> Earlier {
    let history = remembered::speed_history(app);
    let Some((repository, place)) = meant(app, &history) else { return Earlier::default() };
    let is_paired = app.pairings().is_ok_and(|all| all.of(&repository).is_some());
    let ceilings = remembered::ceilings_of_place(app, &place);
    Earlier::of(&history, &repository, ceilings, !is_paired)
}

/// That nothing is known of the repository that is named or paired, if so.
fn nothing_known(app: &App, earlier: &Earlier) -> Option<String> {
    if !earlier.is_nothing() {
        return None;
    }
    let name = match app.named_repository() {
        Some(named) => named.to_owned(),
        None => app.pairings().ok()?.default()?.name.clone(),
    };
    Some(format!("nothing is known of {name} yet; typical rates are taken"))
}

/// The id of the repository that is named or paired, as far as it is known, and its place; without
/// either, those of the repository that was used last.
fn meant(app: &App, history: &SpeedHistory) -> Option<(String, String)> {
    if let Some(place) = remembered::place(app) {
        // The place of a server's repository is its id.
        let id = open::last_opened(app, Path::new(&place)).unwrap_or_else(|| place.clone());
        return Some((id, place));
    }
    if app.named_repository().is_some() {
        return None;
    }
    let last = history.runs().iter().rev().find(|run| run.kind == Kind::Backup)?;
    Some((last.repository.clone(), last.led_to().to_owned()))
}

/// Reads a rate of items, which may be less than one a second.
fn parse_item_rate(text: &str) -> Result<f64, String> {
    let rate = match text.parse() {
        Ok(rate) => rate,
        Err(_) => quantity::count(text).map_err(|_| "it is a number of items a second")? as f64,
    };
    if rate > 0.0 && rate.is_finite() { Ok(rate) } else { Err("it is more than nothing".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_of_items_may_have_a_fraction_or_be_in_thousands() {
        assert_eq!(["0.5", "248", "2k"].map(parse_item_rate), [0.5, 248.0, 2000.0].map(Ok));
        for bad in ["", "0", "-1", "NaN", "inf", "5x"] {
            assert!(parse_item_rate(bad).is_err(), "{bad}");
        }
    }
}
