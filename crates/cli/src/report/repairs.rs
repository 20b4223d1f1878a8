//! What is to be repaired, as it is typed, and what was, told to people and programs.

use std::io;

use holdall_engine::{CopyRepairReport, RepairedSnapshot};
use holdall_format::PackName;
use holdall_protocol::{Repair, RepairReport};
use serde::Serialize;

use crate::app::App;
use crate::terminal::output::{count, size};

/// What is to be repaired.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct RepairArgs {
    /// Repairs what is damaged: packs from their parity, and whatever is sound of others
    #[arg(long)]
    pub(crate) repair: bool,
    /// With --repair: says what would be done, and changes nothing
    #[arg(short = 'n', long, requires = "repair")]
    pub(crate) dry_run: bool,
    /// Keeps so much parity beside each pack from now on, and makes what is missing of it; 0 ends that
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub(crate) parity: Option<u8>,
}

/// Something that was repaired, as programs see it.
#[derive(Serialize)]
struct JsonRepair {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pack: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    dry_run: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pieces: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kept_blocks: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_blocks: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    objects: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
}

impl JsonRepair {
    fn of(kind: &'static str, pack: Option<&PackName>, dry_run: bool) -> Self {
        let pack = pack.map(ToString::to_string);
        let (file, pieces, kept_blocks, lost_blocks, snapshot, objects, bytes) = Default::default();
        Self {
            kind,
            pack,
            file,
            dry_run,
            pieces,
            kept_blocks,
            lost_blocks,
            snapshot,
            objects,
            bytes,
        }
    }

    fn new(repair: &Repair, dry_run: bool) -> Self {
        let of = |kind, pack| Self::of(kind, pack, dry_run);
        match repair {
            Repair::Restored { pack, pieces } => {
                Self { pieces: Some(*pieces), ..of("restored", Some(pack)) }
            }
            Repair::Salvaged { pack, kept_blocks, lost_blocks } => Self {
                kept_blocks: Some(*kept_blocks),
                lost_blocks: Some(*lost_blocks),
                ..of("salvaged", Some(pack))
            },
            Repair::Tail { kept_blocks, lost_blocks } => Self {
                kept_blocks: Some(*kept_blocks),
                lost_blocks: Some(*lost_blocks),
                ..of("tail", None)
            },
            Repair::Parity { pack } => of("parity", Some(pack)),
            Repair::Copy { file } => Self { file: Some(file.clone()), ..of("copy", None) },
        }
    }

    fn fetched(repaired: &RepairedSnapshot, dry_run: bool) -> Self {
        Self {
            snapshot: Some(repaired.snapshot.clone()),
            objects: Some(repaired.objects),
            bytes: Some(repaired.bytes),
            ..Self::of("fetched", None, dry_run)
        }
    }
}

/// Says what a repair did, or would do.
///
/// # Errors
/// If standard output cannot be written.
pub(crate) fn tell(app: &App, report: &RepairReport, dry_run: bool) -> io::Result<()> {
    for repair in &report.repairs {
        app.output.object("repair", &JsonRepair::new(repair, dry_run))?;
        app.output.result(repair.sentence(dry_run))?;
    }
    for file in &report.quarantined {
        app.output.note(format_args!("the damaged file is kept as {file}"));
    }
    Ok(())
}

/// Says what can be done about what is lost, if anything is.
pub(crate) fn tell_next(app: &App, report: &RepairReport) {
    let is_loss = |repair: &Repair| matches!(repair, Repair::Salvaged { .. } | Repair::Tail { .. });
    if report.repairs.iter().any(is_loss) {
        app.output.note(
            "`holdall backup` sends again what is lost, as far as the sources have it; `holdall check \
             --repair --from REPO` fetches it from a second repository",
        );
    }
}

/// Says what a second repository gave, or would give.
///
/// # Errors
/// If standard output cannot be written.
pub(crate) fn tell_repaired(
    app: &App,
    report: &CopyRepairReport,
    from: &str,
    dry_run: bool,
) -> io::Result<()> {
    let would = if dry_run { "would be " } else { "" };
    for repaired in &report.repaired {
        app.output.object("repair", &JsonRepair::fetched(repaired, dry_run))?;
        let RepairedSnapshot { snapshot, objects, bytes } = repaired;
        app.output.result(format_args!(
            "snapshot {snapshot}: {} lost objects, {}, {would}fetched from {from} and stored again",
            count(*objects),
            size(*bytes),
        ))?;
    }
    Ok(())
}
