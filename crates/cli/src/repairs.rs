//! What was mended, told to people and programs.

use std::io;

use holdall_format::PackName;
use holdall_protocol::{Repair, RepairReport};
use serde::Serialize;

use crate::app::App;

/// Something that was mended, as programs see it.
#[derive(Serialize)]
struct JsonRepair {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pack: Option<String>,
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
        let of = |kind, pack: Option<&PackName>| Self {
            kind,
            pack: pack.map(ToString::to_string),
            dry_run,
            pieces: None,
            kept_blocks: None,
            lost_blocks: None,
        };
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
        }
    }
}

/// Says what a repair did, or would do.
///
/// # Errors
/// If standard output can not be written.
pub(crate) fn tell(app: &App, report: &RepairReport, dry_run: bool) -> io::Result<()> {
    for repair in &report.repairs {
        app.output.object("repair", &JsonRepair::new(repair, dry_run))?;
        app.output.result(repair.sentence(dry_run))?;
    }
    for file in &report.quarantined {
        app.output.note(format_args!("the damaged file is kept as {file}"));
    }
    let has_lost = report
        .repairs
        .iter()
        .any(|repair| matches!(repair, Repair::Salvaged { .. } | Repair::Tail { .. }));
    if has_lost && !dry_run {
        app.output.note("`holdall backup` sends again what is lost, as far as the sources have it");
    }
    Ok(())
}
