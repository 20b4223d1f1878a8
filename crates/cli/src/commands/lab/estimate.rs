//! `holdall lab estimate`.

use std::path::Path;

use anyhow::Result;
use holdall_meter::cost::{Estimate, Part, Work};
use holdall_meter::{Layer, Unit};
use serde::Serialize;

use crate::app::App;
use crate::exit::Exit;
use crate::expected::Expected;
use crate::lab_ceilings::{self, Ceilings};
use crate::open::{self, Where};
use crate::quantity;
use crate::speed_history::{self, Kind, Run, SpeedHistory};

const HOUR_SECONDS: f64 = 3600.0;
/// By which factor an estimate is off at most that may be off by all of itself.
const FURTHEST_OFF: f64 = 10.0;
/// What of a link's rate is payload: Ethernet, IP, TCP and TLS take the rest.
const PAYLOAD: f64 = 0.94;
/// What a small computer's processor and disk do, in bytes a second, where nobody measured it.
const BESIDE_LINK: f64 = 150e6;
/// The same of its processor and of gigabit Ethernet to a server.
const BESIDE_DISK: f64 = 110e6;

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
        expected: &'a Expected,
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<&'a str>,
        fits_into_an_hour: Fits,
    }
    app.named_repository().map(Where::parse).transpose()?;
    let earlier = Earlier::of(app);
    let (expected, way) = args.expected(app, &earlier);
    let notes = [earlier.note(app), way.as_ref().and_then(Way::note)];
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
        Fits::Yes => "run every hour, it fits into the hour",
        Fits::Perhaps => "run every hour, it may or may not fit into the hour",
        Fits::No => "run every hour, it does not fit into the hour",
    })?;
    Ok(Exit::Done)
}

impl Args {
    /// What the history and `lab path` say, over the link and to the disk that were named; and the way
    /// with these, if any was.
    fn expected(&self, app: &App, earlier: &Earlier) -> (Expected, Option<Way>) {
        let Earlier { runs, ceilings, is_local } = earlier;
        let measured = ceilings.as_ref().map(Ceilings::runs).unwrap_or_default();
        let mut model = speed_history::model(runs, &measured);
        let way = Way::of(self.named(runs), model.bytes_per_second(), runs, ceilings.as_ref());
        let way = way.map(|way| Way { is_local: *is_local, ..way });
        if let Some(way) = &way {
            model = model.at_byte_rate(way.rate());
        }
        if let Some(rate) = self.item_rate {
            model = model.at_item_rate(rate);
        }
        let Self { items, bytes, unchanged: items_unchanged, .. } = *self;
        let estimate = model.estimate(&Work { items, items_unchanged, bytes });
        // Over another link or to another disk, something else may hold it back.
        let is_usual = way.is_none() && self.item_rate.is_none();
        let nothing = Earlier::default();
        let Earlier { runs, ceilings, .. } = if is_usual { earlier } else { &nothing };
        (Expected::new(app, estimate, runs, ceilings.as_ref()), way)
    }

    /// The layers that were named: what is sent and stored of each byte of a source is less, as far as
    /// `runs` say.
    fn named(&self, runs: &[Run]) -> Vec<Named> {
        let sent = speed_history::share_of_bytes(runs, |run| run.sent_bytes);
        let stored = speed_history::share_of_bytes(runs, |run| run.stored_bytes);
        let link = self.link.map(|link| Named::new(Layer::Network, link * PAYLOAD, sent));
        let disk = self.disk.map(|disk| Named::new(Layer::ServerDisk, disk as f64, stored));
        link.into_iter().chain(disk).collect()
    }
}

/// A layer that is to be another one.
#[derive(Debug, Clone, Copy)]
struct Named {
    layer: Layer,
    /// How many bytes of a source it lets pass in a second.
    rate: f64,
    /// Whether it is known what share of these it has to carry; all of them, where it is not.
    is_share_known: bool,
}

impl Named {
    /// A layer that carries so many bytes a second, which are that share of a source's.
    fn new(layer: Layer, carried: f64, share: Option<f64>) -> Self {
        Self { layer, rate: carried / share.unwrap_or(1.0), is_share_known: share.is_some() }
    }
}

/// The way that bytes take, a part of which is to be another one.
#[derive(Debug, Clone)]
struct Way {
    /// The layers that are to be others; at least one.
    named: Vec<Named>,
    /// How many bytes a second the way carries as it is.
    usual: f64,
    /// What holds it back as it is.
    limit: Option<Layer>,
    /// What the steps that stay as they are can do, where `lab path` measured them.
    beside: Option<f64>,
    /// Whether it is known that there is no link.
    is_local: bool,
}

impl Way {
    /// The way as the backups and the last `lab path` know it; `None` if nothing was named.
    fn of(
        named: Vec<Named>,
        usual: f64,
        runs: &[Run],
        ceilings: Option<&Ceilings>,
    ) -> Option<Self> {
        let layers: Vec<_> = named.iter().map(|named| named.layer).collect();
        let limit = match (runs, ceilings) {
            ([], Some(ceilings)) => ceilings.slowest(),
            // Typical rates are those of a link of 1 Gb/s.
            ([], None) => Some(Layer::Network),
            _ => speed_history::usual_limit(runs),
        };
        let beside = ceilings.and_then(|ceilings| ceilings.beside(&layers));
        (!named.is_empty()).then_some(Self { named, usual, limit, beside, is_local: false })
    }

    fn is_named(&self, layer: Layer) -> bool {
        self.named.iter().any(|named| named.layer == layer)
    }

    /// Whether what holds the way back is to be another.
    fn is_limit_named(&self) -> bool {
        self.limit.is_some_and(|limit| self.is_named(limit))
    }

    /// How much the slowest of the layers that were named does.
    fn named_rate(&self) -> f64 {
        self.named.iter().map(|named| named.rate).fold(f64::INFINITY, f64::min)
    }

    /// How much everything that stays as it is can do.
    fn rest(&self) -> f64 {
        if !self.is_limit_named() {
            return self.usual;
        }
        let has_usual_link = !self.is_local && !self.is_named(Layer::Network);
        let typical = if has_usual_link { BESIDE_DISK } else { BESIDE_LINK };
        // It did as much as the way did, whatever was measured or is typical.
        self.beside.unwrap_or(typical).max(self.usual)
    }

    /// How many bytes a second the way would carry.
    fn rate(&self) -> f64 {
        self.named_rate().min(self.rest())
    }

    /// What is taken for granted of an estimate that is mostly for such a part, to be said behind it.
    fn condition(&self, mostly: Part) -> Option<&'static str> {
        let slowest = self.named.iter().min_by(|one, other| one.rate.total_cmp(&other.rate))?;
        let decides = mostly == Part::Bytes && slowest.rate <= self.rest();
        (decides && !slowest.is_share_known).then_some(", if it does not compress")
    }

    /// Why what was named does not help, or not as much as it could.
    fn note(&self) -> Option<String> {
        let rest = self.rest();
        if self.named_rate() <= rest {
            return None;
        }
        let rate = Unit::BytesPerSecond.show(rest);
        let what = match (self.is_named(Layer::Network), self.is_named(Layer::ServerDisk)) {
            (true, true) => "link and disk",
            (true, false) => "link",
            _ => "disk",
        };
        Some(match (self.is_limit_named(), self.limit) {
            (true, _) if self.beside.is_none() && rest > self.usual => format!(
                "the rest of the way is taken to do {rate}, since nobody measured it: `holdall lab path` \
                 does"
            ),
            (true, _) => format!("the rest of the way does {rate}, as far as is known"),
            (false, Some(limit)) => format!(
                "a faster {what} changes nothing: what holds backups back is {}, as far as is known",
                limit.named()
            ),
            (false, None) => format!(
                "a faster {what} is not counted, since it is not known what holds backups back: \
                 `holdall lab path` may tell"
            ),
        })
    }
}

/// What is known of the repository that is meant.
#[derive(Default)]
struct Earlier {
    /// The backups there that were not held back on purpose, oldest first.
    runs: Vec<Run>,
    /// What `lab path` found on the way there.
    ceilings: Option<Ceilings>,
    /// Whether it is in a directory: nobody pairs with one.
    is_local: bool,
}

impl Earlier {
    fn of(app: &App) -> Self {
        let history = SpeedHistory::in_state(&app.folders.state);
        let Some((repository, place)) = meant(app, &history) else { return Self::default() };
        let is_paired = app.pairings().is_ok_and(|all| all.of(&repository).is_some());
        Self {
            runs: history.comparable(Kind::Backup, &repository),
            ceilings: Ceilings::of_place(app, &place),
            is_local: !is_paired,
        }
    }

    /// That nothing is known of the repository that is named or paired, if so.
    fn note(&self, app: &App) -> Option<String> {
        if !self.runs.is_empty() || self.ceilings.is_some() {
            return None;
        }
        let name = match app.named_repository() {
            Some(named) => named.to_owned(),
            None => app.pairings().ok()?.default()?.name.clone(),
        };
        Some(format!("nothing is known of {name} yet; typical rates are taken"))
    }
}

/// The id of the repository that is named or paired, as far as it is known, and its place; without
/// either, those of the repository that was used last.
fn meant(app: &App, history: &SpeedHistory) -> Option<(String, String)> {
    if let Some(place) = lab_ceilings::place(app) {
        // The place of a server's repository is its id.
        let id = open::last_opened(app, Path::new(&place)).unwrap_or_else(|| place.clone());
        return Some((id, place));
    }
    if app.named_repository().is_some() {
        return None;
    }
    let last = history.runs().into_iter().rev().find(|run| run.kind == Kind::Backup)?;
    Some((last.repository.clone(), last.led_to().to_owned()))
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
        // What runs took was so much less than was expected of them.
        let factor = if plus_minus_seconds < seconds {
            1.0 + plus_minus_seconds / seconds
        } else {
            FURTHEST_OFF
        };
        match (seconds + plus_minus_seconds <= HOUR_SECONDS, seconds / factor > HOUR_SECONDS) {
            (true, _) => Self::Yes,
            (_, true) => Self::No,
            _ => Self::Perhaps,
        }
    }
}

/// Reads `12M`, in bytes a second, or `100Mbit`, in bits.
fn parse_link(text: &str) -> Result<f64, String> {
    let (number, bits) = match text.strip_suffix("bit") {
        Some(number) if !number.ends_with('B') => (number, 8.0),
        _ => (text, 1.0),
    };
    let units = "a rate is a number with k, M, G or T for bytes a second (12M), and with kbit, Mbit or Gbit for \
        bits (100Mbit)";
    match quantity::bytes(number).map_err(|_| units)? {
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
    fn whether_it_fits_into_the_hour_is_as_sure_as_the_estimate() {
        let fits = |seconds, more| Fits::of(&estimate(seconds, more));
        assert_eq!(fits(3000.0, 600.0), Fits::Yes);
        assert_eq!(fits(3000.0, 601.0), Fits::Perhaps);
        assert_eq!(fits(4000.0, 300.0), Fits::No);
        assert_eq!(fits(4000.0, 500.0), Fits::Perhaps);
        // One of which nothing is sure is still that of an hour or of a week.
        assert_eq!(fits(20_000.0, 20_000.0), Fits::Perhaps);
        assert_eq!(fits(1_000_000.0, 1_000_000.0), Fits::No);
    }

    #[test]
    fn a_link_is_given_in_bytes_or_bits() {
        assert_eq!(parse_link("12M"), Ok(12e6));
        assert_eq!(parse_link("100Mbit"), Ok(12.5e6));
        for unknown in ["50Mb", "50Mb/s", "50Mbps", "50 MB", "50MBbit"] {
            let told = parse_link(unknown).unwrap_err();
            assert!(told.contains("100Mbit") && told.contains("Gbit"), "{told}");
        }
        for bad in ["", "0", "0bit", "bit", "xbit", "-1M"] {
            assert!(parse_link(bad).is_err(), "{bad}");
        }
        for bad in ["", "0", "-1", "NaN", "inf"] {
            assert!(parse_item_rate(bad).is_err(), "{bad}");
        }
    }

    /// A way that carries 30 MB/s.
    fn way(limit: Option<Layer>, beside: Option<f64>, named: &[(Layer, f64)]) -> Way {
        let named = named.iter().map(|&(layer, rate)| Named::new(layer, rate, None)).collect();
        Way { named, usual: 30e6, limit, beside, is_local: false }
    }

    const DISK: (Layer, f64) = (Layer::ServerDisk, 500e6);
    const LINK: (Layer, f64) = (Layer::Network, 500e6);

    #[test]
    fn a_faster_disk_or_link_helps_where_it_is_the_limit_until_the_rest_is_reached() {
        for (layer, typical) in [(Layer::ServerDisk, BESIDE_DISK), (Layer::Network, BESIDE_LINK)] {
            let at = |beside, rate| way(Some(layer), beside, &[(layer, rate)]);
            assert_eq!(at(Some(200e6), 500e6).rate(), 200e6);
            assert_eq!(at(Some(200e6), 90e6).rate(), 90e6);
            assert_eq!(at(None, 500e6).rate(), typical);
            // What was measured on a bad day: the backups did more.
            assert_eq!(at(Some(20e6), 500e6).rate(), 30e6);
            assert_eq!(at(Some(200e6), 10e6).rate(), 10e6, "a slower one is slower");
        }
        let to_server = way(Some(Layer::ServerDisk), None, &[DISK]);
        assert_eq!(Way { is_local: true, ..to_server }.rate(), BESIDE_LINK);
        let both = way(Some(Layer::ServerDisk), Some(900e6), &[LINK, DISK]);
        assert_eq!(both.rate(), 500e6);
    }

    #[test]
    fn a_faster_disk_or_link_that_is_not_the_limit_changes_nothing_and_a_slower_one_does() {
        for limit in [Some(Layer::ClientCpu), None] {
            let at = |rate| way(limit, Some(200e6), &[(Layer::ServerDisk, rate)]).rate();
            assert_eq!((at(500e6), at(10e6)), (30e6, 10e6), "{limit:?}");
        }
        assert_eq!(way(Some(Layer::Network), None, &[DISK]).rate(), 30e6);
        assert_eq!(way(Some(Layer::ServerDisk), None, &[LINK]).rate(), 30e6);
    }

    #[test]
    fn it_is_told_why_a_faster_disk_does_not_help_or_only_so_much() {
        let said = |limit, beside| way(limit, beside, &[DISK]).note().unwrap();
        let disk = Some(Layer::ServerDisk);
        assert_eq!(
            said(Some(Layer::Network), None),
            "a faster disk changes nothing: what holds backups back is the network, as far as is known"
        );
        assert!(said(None, None).contains("not known what holds backups back"));
        let rest = "the rest of the way does 200.0 MB/s, as far as is known";
        assert_eq!(said(disk, Some(200e6)), rest);
        let taken = "the rest of the way is taken to do 110.0 MB/s, since nobody measured it";
        assert!(said(disk, None).starts_with(taken));
        assert_eq!(way(disk, Some(900e6), &[DISK]).note(), None, "it is still the limit");
        let slower = way(Some(Layer::Network), None, &[(Layer::ServerDisk, 10e6)]);
        assert_eq!(slower.note(), None);
    }

    #[test]
    fn what_a_layer_lets_pass_of_a_source_is_more_where_less_of_it_has_to_be_carried() {
        let named = |share| Named::new(Layer::Network, 119e6, share);
        assert_eq!((named(Some(0.5)).rate, named(Some(0.5)).is_share_known), (238e6, true));
        assert_eq!((named(None).rate, named(None).is_share_known), (119e6, false));
    }

    #[test]
    fn that_nothing_is_compressed_is_said_where_it_is_taken_for_granted_and_matters() {
        let at = |rate, share| Way {
            named: vec![Named::new(Layer::Network, rate, share)],
            ..way(Some(Layer::Network), Some(200e6), &[])
        };
        let said = at(20e6, None).condition(Part::Bytes);
        assert_eq!(said, Some(", if it does not compress"));
        assert_eq!(at(20e6, None).condition(Part::Items), None);
        assert_eq!(at(20e6, Some(1.0)).condition(Part::Bytes), None, "it is known not to");
        assert_eq!(at(500e6, None).condition(Part::Bytes), None, "the rest is slower");
    }
}
