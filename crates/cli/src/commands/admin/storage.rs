//! `holdall admin storage`.

use std::path::Path;

use anyhow::Result;
use holdall_server::admin::{ShowStorage, Storage, StorageFact};
use serde::Serialize;

use super::ask;
use crate::app::App;
use crate::exit::Exit;
use crate::terminal::output::{Shown, local_time, rfc3339, size};

/// Shows what a server's repositories lie on, how full that is, and when it will be full
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall admin storage

How full the disk is, the server notes twice a day; from some days on it says when it will be full, by the last two months. \
`holdall admin repositories` lists what each repository takes, `holdall admin lab disk` measures how fast the disk is.

Exit codes: 0 done, 1 failed, 2 wrong usage")]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args, data: &Path, app: &App) -> Result<Exit> {
    let storage = ask(data, &ShowStorage {})?;
    app.output.object("storage", &JsonStorage::of(&storage))?;
    let told = |bytes: Option<u64>| bytes.map_or_else(|| "unknown".to_owned(), size);
    let line = |name: &str, value: &str| {
        app.output.result(format_args!("{name:<12} {}", Shown(value.as_bytes())))
    };
    line("folder", &storage.folder)?;
    storage.facts.iter().try_for_each(|fact| line(&fact.name, &fact.value))?;
    line("room", &format!("{}, {} left", told(storage.total_bytes), told(storage.free_bytes)))?;
    let quotas = size(storage.quota_bytes);
    line("backups", &format!("{}, quotas together {quotas}", size(storage.stored_bytes)))?;
    let full = match (storage.bytes_per_day, storage.full_ns) {
        (None, _) => "unknown yet: it takes some days".to_owned(),
        (_, None) => "not within ten years".to_owned(),
        (_, Some(ns)) => local_time(ns),
    };
    line("full", &full)?;
    storage.notes.iter().for_each(|note| app.output.note(Shown(note.as_bytes())));
    Ok(Exit::Done)
}

#[derive(Serialize)]
struct JsonStorage<'a> {
    folder: &'a str,
    facts: &'a [StorageFact],
    notes: &'a [String],
    total_bytes: Option<u64>,
    free_bytes: Option<u64>,
    stored_bytes: u64,
    quota_bytes: u64,
    bytes_per_day: Option<f64>,
    full: Option<String>,
}

impl<'a> JsonStorage<'a> {
    fn of(storage: &'a Storage) -> Self {
        Self {
            folder: &storage.folder,
            facts: &storage.facts,
            notes: &storage.notes,
            total_bytes: storage.total_bytes,
            free_bytes: storage.free_bytes,
            stored_bytes: storage.stored_bytes,
            quota_bytes: storage.quota_bytes,
            bytes_per_day: storage.bytes_per_day,
            full: storage.full_ns.map(rfc3339),
        }
    }
}
