//! `holdall admin audit`.

use std::path::Path;

use anyhow::Result;
use holdall_server::admin::{AuditEntry, ListAudit};
use serde::Serialize;

use super::ask;
use crate::app::App;
use crate::exit::Exit;
use crate::terminal::output::{Shown, local_time, rfc3339};

/// Entries that are asked for at once.
const AT_ONCE: usize = 500;

/// Tells who had what changed on this server, the newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall admin audit --limit 20

Every command that changes something is noted, whether it came from a terminal, a browser or a program, and whether \
it was done. Entries are never changed; of more than 20,000 the oldest go.

Exit codes: 0 done, 1 failed, 2 wrong usage")]
pub(crate) struct Args {
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
}

pub(crate) fn run(args: &Args, data: &Path, app: &App) -> Result<Exit> {
    let (mut left, mut before) = (args.limit, None);
    while left > 0 {
        let most = left.min(AT_ONCE);
        let entries = ask(data, &ListAudit { before, most })?.entries;
        entries.iter().try_for_each(|entry| show(app, entry))?;
        before = entries.last().map(|entry| entry.number);
        left -= entries.len();
        if entries.len() < most {
            break;
        }
    }
    Ok(Exit::Done)
}

fn show(app: &App, entry: &AuditEntry) -> Result<()> {
    let AuditEntry { number, time_ns, who, from, command, fields, error } = entry;
    let object = JsonEntry {
        number: *number,
        time: rfc3339(*time_ns),
        who,
        from: from.as_deref(),
        command,
        fields,
        error: error.as_deref(),
    };
    app.output.object("audit", &object)?;
    let from = from.as_ref().map(|from| format!(" at {from}")).unwrap_or_default();
    let failed = error.as_ref().map(|why| format!(": not done: {why}")).unwrap_or_default();
    let line = format!("{who}{from}: {command} {fields}{failed}");
    app.output.result(format_args!("{} {}", local_time(*time_ns), Shown(line.as_bytes())))?;
    Ok(())
}

#[derive(Serialize)]
struct JsonEntry<'a> {
    number: u64,
    time: String,
    who: &'a str,
    from: Option<&'a str>,
    command: &'a str,
    fields: &'a serde_json::Value,
    error: Option<&'a str>,
}
