//! What was mended, told to people and programs.

use std::io;

use holdall_protocol::{Repair, RepairReport};
use serde::Serialize;

use crate::app::App;
use crate::output::count;

/// Something that was mended, as programs see it.
#[derive(Serialize)]
struct JsonRepair {
    kind: &'static str,
    pack: String,
    dry_run: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pieces: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kept_blocks: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_blocks: Option<u64>,
}

impl JsonRepair {
    fn new(repair: &Repair, dry_run: bool) -> Self {
        let of = |kind, pack: String| Self {
            kind,
            pack,
            dry_run,
            pieces: None,
            kept_blocks: None,
            lost_blocks: None,
        };
        match repair {
            Repair::Restored { pack, pieces } => {
                Self { pieces: Some(*pieces), ..of("restored", pack.to_string()) }
            }
            Repair::Salvaged { pack, kept_blocks, lost_blocks } => Self {
                kept_blocks: Some(*kept_blocks),
                lost_blocks: Some(*lost_blocks),
                ..of("salvaged", pack.to_string())
            },
            Repair::Parity { pack } => of("parity", pack.to_string()),
        }
    }
}

/// Says what a repair did, or would do.
///
/// # Errors
/// If standard output can not be written.
pub(crate) fn tell(app: &App, report: &RepairReport, dry_run: bool) -> io::Result<()> {
    let would = if dry_run { "would be " } else { "" };
    for repair in &report.repairs {
        app.output.object("repair", &JsonRepair::new(repair, dry_run))?;
        app.output.result(match repair {
            Repair::Restored { pack, pieces } => format!(
                "pack {pack} {would}restored from its parity: {} pieces were damaged",
                count(*pieces)
            ),
            Repair::Salvaged { pack, kept_blocks: 0, lost_blocks: 0 } => {
                format!("pack {pack} {would}put aside: nothing of it can be read")
            }
            Repair::Salvaged { pack, kept_blocks, lost_blocks } => format!(
                "pack {pack} {would}put aside: {} sound blocks of it {would}stored again, {} are lost",
                count(*kept_blocks),
                count(*lost_blocks)
            ),
            Repair::Parity { pack } => format!("the parity of pack {pack} {would}made anew"),
        })?;
    }
    for file in &report.quarantined {
        app.output.note(format_args!("the damaged file is kept as {file}"));
    }
    let has_lost = report.repairs.iter().any(|repair| matches!(repair, Repair::Salvaged { .. }));
    if has_lost && !dry_run {
        app.output.note("`holdall backup` sends again what is lost, as far as the sources have it");
    }
    Ok(())
}
