//! `holdall check`.

mod drill;

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Error, Result};
use holdall_crypto::{Entropy, SystemEntropy};
use holdall_diagnosis::runs::RunKind;
use holdall_engine::{
    BreakKind, DamagedPath, DamagedRecord, GoneRecord, Snapshot, UnlockedRepository, Verify,
    VerifyProgress, VerifyReport, put_back_record_at,
};
use holdall_format::record_file;
use holdall_protocol::{RepairReport, ScrubDamage, ScrubProgress, ScrubReport};
use holdall_state::Receipts;
use serde::Serialize;

use super::noted::noted;
use crate::app::App;
use crate::exit::{Exit, Refusal, exit_of};
use crate::opening::keeper::Keeper;
use crate::opening::open::{self, Patience};
use crate::opening::second::{Second, SecondKey};
use crate::report::listing;
use crate::report::repairs::{self, RepairArgs};
use crate::terminal::output::{JsonPath, Shown, count, counted};
use crate::terminal::progress::Meter;

/// Checks that everything stored is whole
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples: holdall check                 reads everything again and checks hashes and references
          holdall check --verify all    opens everything with the key, too
          holdall check --verify 5      opens the trees, and 5 % of the content
          holdall check --repair -n     says what of the damage could be repaired
          holdall check --repair --from /mnt/second
                                        fetches what is lost from another repository
          holdall check --repair --record 000000000000002a
                                        says that what this computer, or --from, has of that record is the right one
          holdall check --parity 5      from now on keeps 5 % of parity beside each pack
          holdall check --drill         restores a sample, compares it, and says how long a restore of all takes

What cannot be repaired counts as missing, and the next backup that has it sends it again. Damaged \
files are kept, in the repository's folder `quarantine` or, of a tail, in `tails` as `NAME.damaged`.

With --from, what snapshots need and the repository has lost is fetched from a second one: to which they \
were copied, or from which, by `holdall copy`, or whose directory is a copy of this one's. All that is \
stored is opened with the key first. What comes from there is stored only under the id that is missed; \
what is not the same is told and left out. Of a repository on a server, its administrator does the \
rest of the repair.

A drill restores at most 10,000 items and 1 GiB of the newest snapshot, here and there in its tree, into a folder that is \
removed again: in TMPDIR if that is set, beside the repository, in /var/tmp or in the cache folder. --target names another one; \
the time that is told is that of its disk.

Exit codes: 0 everything is whole, 1 failed, 2 wrong usage, 3 whole, but a drill could not restore some items there, 10 no such repository, 11 in use, 12 \
wrong password, 13 not allowed, 14 server unreachable, 20 damage found, 130 interrupted")]
pub(crate) struct Args {
    /// Reads everything where it is stored, without keys; what happens if nothing else is asked
    #[arg(long)]
    scrub: bool,
    /// Opens what is stored with the key: so many percent of the content, or all
    #[arg(
        long,
        value_name = "PERCENT|all",
        num_args = 0..=1,
        default_missing_value = "all",
        value_parser = parse_share
    )]
    verify: Option<Share>,
    /// Restores a sample of the newest snapshot, compares it, and says how long a restore of all of it takes
    #[arg(long)]
    drill: bool,
    /// With --drill: the folder in which the sample is restored for a while
    #[arg(long, value_name = "DIR", requires = "drill")]
    target: Option<PathBuf>,
    #[command(flatten)]
    repairs: RepairArgs,
    /// With --repair: fetches what is lost from this repository that has it too
    #[arg(long, value_name = "REPO", requires = "repair")]
    from: Option<String>,
    #[command(flatten)]
    from_key: SecondKey,
    /// With --repair: puts this record back, named by its file in `records`, where nothing shows which one it was
    #[arg(long, value_name = "N", requires = "repair", value_parser = parse_record)]
    record: Option<u64>,
}

impl Args {
    fn wants_scrub(&self) -> bool {
        let others = self.verify.is_some() || self.repairs.parity.is_some() || self.drill;
        self.scrub || !others
    }

    /// Whether anything is looked at but records.
    fn reads(&self) -> bool {
        self.repairs.repair || self.wants_scrub() || self.verify.is_some()
    }

    /// Opens the repository that is named with `--from`.
    fn second(&self, app: &App) -> Result<Option<Second>> {
        let Some(from) = &self.from else { return Ok(None) };
        if app.named_repository() == Some(from) {
            let same = Refusal::new(Exit::Usage, "both are the same repository");
            return Err(same.hint("name a second one with --from").into());
        }
        self.from_key.open(app, from, Patience::default()).map(Some)
    }

    /// How many percent of the content are looked at, if that is not all.
    fn part(&self) -> Option<u8> {
        match self.verify {
            Some(Share::Percent(percent @ ..100)) if !self.scrub && !self.repairs.repair => {
                Some(percent)
            }
            _ => None,
        }
    }
}

/// How much to verify.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Share {
    All,
    Percent(u8),
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    noted(app, RunKind::Check, &[], |_| look_at_all(args, app))
}

fn look_at_all(args: &Args, app: &App) -> Result<Exit> {
    // Opened first: the other may lack what it takes to be opened.
    let second = args.second(app)?;
    let other = second.as_ref().map(|second| second.access.config().repository);
    let (access, keeper) = open::access_beside(app, other)?;
    let (put_back, unproven) = put_back_records(args, app, &access, &keeper, second.as_ref())?;
    let mut found = Found { repaired: put_back, ..Found::default() };
    if let Some(percent) = args.repairs.parity {
        keep_parity(app, &keeper, percent)?;
    }
    if args.repairs.repair {
        repair_all(args, app, &access, &keeper, second.as_ref(), &mut found)?;
    }
    // A repair moves tombstones away that cannot be read.
    let Records { snapshots, damaged, followers, unlisted } = Records::look_at(app, &access)?;
    (found.lacking, found.is_short) = (open::lacking(app)?, unlisted.is_some());
    if !args.repairs.repair && args.wants_scrub() {
        found.add_scrub(&scrub(app, &access)?);
    }
    if let Some(share) = args.verify {
        found.add_verify(&verify(app, &access, &snapshots, share)?);
    }
    if args.drill {
        found.add_drill(drill::run(app, &access, &snapshots, args.target.as_deref())?);
    }
    found.followers = followers.iter().map(|broken| record_file(broken.position)).collect();
    found.add_records(&damaged);
    found.add_records(&followers);
    found.add_records(&unproven.iter().map(|at| unproven_record(*at)).collect::<Vec<_>>());
    let exit = report(app, &found, args.reads(), args.part())?;
    if found.may_affect_more_paths() && args.verify != Some(Share::All) {
        app.output.say("`holdall check --verify all` names the paths that are affected")?;
    }
    if let (Some(position), Some(second)) = (unproven.first(), &second) {
        app.output.say(listing::way_out_by(&record_file(*position), &second.name))?;
    } else if let Some(record) = found.damaged_record() {
        app.output.say(listing::way_out(record, access.is_in_directory()))?;
    } else if !found.followers.is_empty() {
        app.output.say(listing::WAY_OUT_OF_UNKNOWN)?;
    }
    listing::tell_unknown(app, &access)?;
    let Some(error) = unlisted else { return Ok(exit) };
    app.output.failure(&error, Exit::Damage.code(), None);
    Ok(Exit::Damage)
}

/// What the repository says of its records. What keeps snapshots from being listed is damage like any other,
/// and no reason to stop there.
#[derive(Default)]
struct Records {
    snapshots: Vec<Snapshot>,
    /// Those that are damaged or gone.
    damaged: Vec<DamagedRecord>,
    /// Those whose machine's record before them is gone.
    followers: Vec<DamagedRecord>,
    /// What keeps snapshots from being listed, or is missing among them.
    unlisted: Option<anyhow::Error>,
}

impl Records {
    fn look_at(app: &App, access: &UnlockedRepository) -> Result<Self> {
        let listed = match holdall_engine::snapshots(access) {
            Ok(listed) => listed,
            Err(error) => {
                let unlisted = Some(only_damage(error.into())?);
                return Ok(Self { unlisted, ..Self::default() });
            }
        };
        let missing = Receipts::in_state(&app.folders.state).check(access, &listed).err();
        let unlisted = missing.map(|error| only_damage(error.into())).transpose()?;
        let mut gone = listing::untold(app, access, &listed)?;
        gone.extend(listed.gone.iter().filter(|gone| gone.is_followed));
        let gone: Vec<_> = gone.into_iter().map(|gone| gone_record(gone, access)).collect();
        let followers = listed.breaks.into_iter().filter_map(|broken| match broken.kind {
            BreakKind::LeftOut(count) => {
                let reason = listing::left_out(count);
                Some(of_record(broken.position, reason))
            }
            BreakKind::TwoHistories => {
                listing::tell_two_histories(app, &broken);
                None
            }
        });
        let followers = followers.collect();
        let damaged = listed.damaged.into_iter().chain(gone).collect();
        Ok(Self { snapshots: listed.snapshots, damaged, followers, unlisted })
    }
}

fn gone_record(gone: &GoneRecord, access: &UnlockedRepository) -> DamagedRecord {
    let reason = format!("{:#}", Error::from(listing::is_gone(gone, access.is_in_directory())));
    of_record(gone.position, reason)
}

fn of_record(position: u64, reason: String) -> DamagedRecord {
    DamagedRecord { position, reason, may_be_tombstone: false }
}

/// Tells damage, which is what a check is for, from what keeps it from checking.
fn only_damage(error: anyhow::Error) -> Result<anyhow::Error> {
    if exit_of(&error) == Exit::Damage { Ok(error) } else { Err(error) }
}

fn scrub(app: &App, access: &UnlockedRepository) -> Result<ScrubReport> {
    let meter = Meter::begin(&app.output, "scrub");
    let report = access.repository().scrub(&mut |progress: ScrubProgress| {
        meter.show(progress.bytes_done, Some(progress.bytes_total));
    });
    Ok(report?)
}

fn keep_parity(app: &App, keeper: &Keeper, percent: u8) -> Result<()> {
    let packs = keeper.to_repair()?.keep_parity(percent)?;
    Ok(app.output.say(match percent {
        0 => "no parity is made from now on; what there is stays".to_owned(),
        _ => format!(
            "{percent} % of each pack is kept as parity from now on; {} packs that had none got theirs",
            count(packs)
        ),
    })?)
}

/// With `--repair`: stores records again that are damaged, as far as this computer or the second repository has them;
/// says how many, and which the second repository has that nothing shows to be the right ones.
fn put_back_records(
    args: &Args,
    app: &App,
    access: &UnlockedRepository,
    keeper: &Keeper,
    second: Option<&Second>,
) -> Result<(u64, Vec<u64>)> {
    if !args.repairs.repair {
        return Ok((0, Vec::new()));
    }
    let dry_run = args.repairs.dry_run;
    let known = || Receipts::in_state(&app.folders.state).all_stored(access.config().repository);
    let other = second.map(|second| &second.access);
    let mut repairs = Vec::new();
    if let Some(position) = args.record {
        let owner = keeper.to_repair()?;
        repairs.extend(put_back_record_at(access, owner, position, known(), other, dry_run)?);
    }
    let others = holdall_engine::put_back_records(access, known(), other, dry_run)?;
    repairs.extend(others.repairs);
    repairs.dedup();
    let report = RepairReport { repairs, ..RepairReport::default() };
    repairs::tell(app, &report, dry_run)?;
    Ok((if dry_run { 0 } else { report.repairs.len() as u64 }, others.unproven))
}

fn unproven_record(position: u64) -> DamagedRecord {
    let reason =
        "nothing shows that what the repository named with --from has in this place was here";
    of_record(position, reason.into())
}

/// Repairs what the repository can repair by itself, and then what a second one has.
fn repair_all(
    args: &Args,
    app: &App,
    access: &UnlockedRepository,
    keeper: &Keeper,
    second: Option<&Second>,
    found: &mut Found,
) -> Result<()> {
    match repair(app, keeper, args.repairs.dry_run) {
        Ok(report) => {
            if second.is_none() && !args.repairs.dry_run {
                repairs::tell_next(app, &report);
            }
            found.add_repair(&report, args.repairs.dry_run);
        }
        // A machine may give records back to a server, and fetch what is lost, but do nothing else.
        Err(error)
            if exit_of(&error) == Exit::NotAllowed && (second.is_some() || found.repaired > 0) =>
        {
            app.output.note(format_args!("{error:#}"));
            found.add_scrub(&scrub(app, access)?);
        }
        Err(error) => return Err(error),
    }
    let Some(second) = second else { return Ok(()) };
    let meter = Meter::begin(&app.output, "open");
    let (run, second_access) = (app.run(), &second.access);
    let repaired = holdall_engine::repair_from_copy(
        access,
        second_access,
        args.repairs.dry_run,
        &run,
        &mut |progress| {
            meter.show(progress.bytes, None);
        },
    );
    drop(meter);
    let repaired = repaired?;
    repairs::tell_repaired(app, &repaired, &second.name, args.repairs.dry_run)?;
    if !args.repairs.dry_run && !repaired.repaired.is_empty() {
        found.damaged.clear();
        found.add_scrub(&scrub(app, access)?);
        found.repaired += repaired.repaired.len() as u64;
    }
    found.add_paths(&repaired.left);
    Ok(())
}

fn repair(app: &App, keeper: &Keeper, dry_run: bool) -> Result<RepairReport> {
    let meter = Meter::begin(&app.output, "repair");
    let report = keeper.to_repair()?.repair(dry_run, &mut |progress: ScrubProgress| {
        meter.show(progress.bytes_done, Some(progress.bytes_total));
    })?;
    drop(meter);
    repairs::tell(app, &report, dry_run)?;
    Ok(report)
}

fn verify(
    app: &App,
    access: &UnlockedRepository,
    snapshots: &[Snapshot],
    share: Share,
) -> Result<VerifyReport> {
    let how = match share {
        Share::All => Verify::All,
        Share::Percent(percent) => {
            let mut seed = [0; 32];
            SystemEntropy.fill(&mut seed);
            Verify::Percent { percent, seed }
        }
    };
    let meter = Meter::begin(&app.output, "verify");
    let mut show = |progress: VerifyProgress| meter.show(progress.bytes, None);
    Ok(holdall_engine::verify(access, snapshots, how, &app.run(), &mut show)?)
}

fn parse_record(text: &str) -> Result<u64, String> {
    let name = text.trim_start_matches("records/");
    u64::from_str_radix(name, 16)
        .map_err(|_| "it is the name of a file in `records`: up to 16 hexadecimal digits".into())
}

fn parse_share(text: &str) -> Result<Share, String> {
    match text.trim_end_matches('%').parse() {
        _ if text == "all" => Ok(Share::All),
        Ok(percent) if (1..=100).contains(&percent) => Ok(Share::Percent(percent)),
        _ => Err("it is `all`, or a percentage from 1 to 100".into()),
    }
}

/// What scrub and verification found together.
#[derive(Default)]
struct Found {
    packs: u64,
    blocks: u64,
    objects: u64,
    snapshots: u64,
    damaged: BTreeSet<Damage>,
    /// How many paths are damaged besides those.
    damaged_unnamed: u64,
    /// How much was repaired.
    repaired: u64,
    /// What the place cannot do.
    lacking: Vec<String>,
    /// Whether a snapshot is missing, or none could be listed.
    is_short: bool,
    /// Files of records that are sound, but the one before them is gone.
    followers: BTreeSet<String>,
    /// What a drill measured.
    drill: Option<drill::Report>,
}

/// Something that is damaged, as programs see it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Damage {
    kind: &'static str,
    #[serde(flatten)]
    what: JsonPath,
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<String>,
    reason: String,
}

impl Found {
    fn add_scrub(&mut self, report: &ScrubReport) {
        self.packs = report.packs;
        self.blocks = report.blocks;
        self.objects = report.objects;
        self.snapshots = report.snapshots;
        self.damaged.extend(report.damaged.iter().map(Damage::stored));
    }

    fn add_repair(&mut self, report: &RepairReport, dry_run: bool) {
        self.add_scrub(&report.scrub);
        self.repaired += if dry_run { 0 } else { report.repairs.len() as u64 };
    }

    fn add_verify(&mut self, report: &VerifyReport) {
        self.blocks = self.blocks.max(report.blocks);
        self.objects = self.objects.max(report.objects);
        self.snapshots = self.snapshots.max(report.snapshots);
        self.damaged.extend(report.damaged.iter().map(Damage::stored));
        self.add_paths(&report.damaged_paths);
        self.damaged_unnamed += report.unnamed_paths();
    }

    fn add_paths(&mut self, paths: &[DamagedPath]) {
        self.damaged.extend(paths.iter().map(|path| Damage {
            kind: "path",
            what: JsonPath::new(&path.path),
            snapshot: Some(path.snapshot.clone()),
            reason: path.reason.clone(),
        }));
    }

    fn add_drill(&mut self, drilled: Option<drill::Drilled>) {
        let Some(drilled) = drilled else { return };
        self.add_paths(&drilled.damaged);
        self.drill = Some(drilled.report);
    }

    /// The file name of a record that is damaged or gone.
    fn damaged_record(&self) -> Option<&str> {
        let mut records = self.damaged.iter().filter(|damage| damage.kind == "record");
        records.find_map(|damage| {
            let (_, file) = damage.what.text().rsplit_once("records/")?;
            (!self.followers.contains(file)).then_some(file)
        })
    }

    /// Whether something is damaged that may hold content of any path.
    fn may_affect_more_paths(&self) -> bool {
        self.damaged.iter().any(|damage| matches!(damage.kind, "pack" | "block" | "object"))
    }

    /// Adds the records that are damaged for whoever has the key, but for those that the keeper
    /// named, who has none.
    fn add_records(&mut self, records: &[DamagedRecord]) {
        for DamagedRecord { position, reason, .. } in records {
            let file = record_file(*position);
            let [record, tombstone] = ["records", "tombstones"].map(|dir| format!("{dir}/{file}"));
            let is_named = |damage: &Damage| {
                damage.what.text().ends_with(&record) || damage.what.text().ends_with(&tombstone)
            };
            if !self.damaged.iter().any(is_named) {
                let reason = reason.clone();
                self.damaged.insert(Damage::stored(&ScrubDamage::Record { record, reason }));
            }
        }
    }
}

impl Damage {
    fn stored(damage: &ScrubDamage) -> Self {
        let (kind, what, reason) = match damage {
            ScrubDamage::Pack { pack, reason } => ("pack", pack.clone(), reason.clone()),
            ScrubDamage::Block { block, reason, .. } => {
                ("block", block.to_string(), reason.clone())
            }
            ScrubDamage::Record { record, reason } => ("record", record.clone(), reason.clone()),
            ScrubDamage::Missing { object, record } => {
                let reason = format!("no copy of it is left; snapshot {record} needs it");
                ("object", object.to_string(), reason)
            }
        };
        Self { kind, what: JsonPath::new(what.as_bytes()), snapshot: None, reason }
    }

    fn words(&self) -> String {
        let of = self.snapshot.as_ref().map(|id| format!(" of snapshot {id}")).unwrap_or_default();
        format!("damaged {} {}{of}: {}", self.kind, Shown(self.what.text().as_bytes()), self.reason)
    }
}

/// Tells what was found, and that all else is whole where that was looked at, be it a `part` in percent.
fn report(app: &App, found: &Found, has_read: bool, part: Option<u8>) -> Result<Exit> {
    #[derive(Serialize)]
    struct Summary<'a> {
        packs: u64,
        blocks: u64,
        objects: u64,
        snapshots: u64,
        damaged: &'a BTreeSet<Damage>,
        damaged_unnamed: u64,
        repaired: u64,
        lacking: &'a [String],
        #[serde(skip_serializing_if = "Option::is_none")]
        drill: Option<&'a drill::Report>,
    }
    let Found { damaged, lacking, .. } = found;
    let drill = found.drill.as_ref();
    let &Found { packs, blocks, objects, snapshots, damaged_unnamed, repaired, .. } = found;
    let summary = Summary {
        packs,
        blocks,
        objects,
        snapshots,
        damaged,
        damaged_unnamed,
        repaired,
        lacking,
        drill,
    };
    app.output.object("summary", &summary)?;
    lacking.iter().for_each(|sentence| app.output.note(format_args!("of this place: {sentence}")));
    for damage in damaged {
        app.output.result(damage.words())?;
    }
    if damaged_unnamed > 0 {
        app.output.result(format_args!("and {} more damaged paths", count(damaged_unnamed)))?;
    }
    drill.map(drill::Report::words).iter().flatten().try_for_each(|line| app.output.say(line))?;
    let is_restored = drill.is_none_or(|drill| drill.errors == 0);
    let exit = match (damaged.is_empty(), is_restored) {
        (false, _) => Exit::Damage,
        (true, false) => Exit::Incomplete,
        (true, true) => Exit::Done,
    };
    if !has_read && (damaged.is_empty() || drill.is_some()) {
        return Ok(exit);
    }
    app.output.say(format_args!(
        "{}, {} in {}: {}",
        counted(snapshots, "snapshot"),
        counted(objects, "object"),
        counted(blocks, "block"),
        match (damaged.len(), part) {
            (0, None) if found.is_short => "what is there is whole".to_owned(),
            (0, None) => "all whole".to_owned(),
            (0, Some(percent)) => {
                format!("no damage in what was read: the trees, and {percent} % of the content")
            }
            (several, _) => format!("{} damaged", count(several as u64 + damaged_unnamed)),
        },
    ))?;
    Ok(exit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_all_or_a_percentage() {
        assert_eq!(parse_share("all"), Ok(Share::All));
        assert_eq!(parse_share("5"), Ok(Share::Percent(5)));
        assert_eq!(parse_share("100%"), Ok(Share::Percent(100)));
        for bad in ["", "0", "101", "some"] {
            assert!(parse_share(bad).is_err(), "{bad}");
        }
    }
}
