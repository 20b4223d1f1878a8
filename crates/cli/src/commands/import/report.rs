//! What an import tells, in words and as JSON.

use anyhow::Result;
use holdall_diagnosis::{Side, Usage, judge, limited_side};
use holdall_engine::{CopySummary, Imported};
use holdall_format::RecordHash;
use holdall_import::ResticSnapshot;
use holdall_meter::{Layer, Verdict, per_second};
use serde::Serialize;

use crate::terminal::output::{Output, Shown, count, counted, duration, local_time, rfc3339, size};

/// Says how a server keeps what was imported: its rules run without being asked.
pub(super) const KEPT_BY_A_SERVER: &str = "the server's rules keep these snapshots by their dates, and delete the others \
    once the server's lock (usually 30 days) is over; `holdall tag SNAP --pin` keeps one whatever they say";

/// What was done so far.
#[derive(Debug, Default, Serialize)]
pub(super) struct Sums {
    pub(super) imported: u64,
    pub(super) already_imported: u64,
    total_items_processed: u64,
    total_bytes_processed: u64,
    data_added: u64,
    data_stored: u64,
    bytes_sent: u64,
    bytes_received: u64,
    pub(super) total_duration: f64,
    /// Entries that could not be read, of snapshots that were imported.
    unreadable: u64,
    /// Snapshots that were not imported.
    pub(super) errors: u64,
}

impl Sums {
    /// Adds a snapshot that was imported without so many of its entries.
    pub(super) fn add(&mut self, done: &CopySummary, unreadable: u64) {
        self.imported += 1;
        self.unreadable += unreadable;
        self.total_items_processed += done.items;
        self.total_bytes_processed = self.total_bytes_processed.saturating_add(done.bytes);
        self.data_added += done.data_added;
        self.data_stored += done.data_stored;
        self.bytes_sent += done.bytes_sent;
        self.bytes_received += done.bytes_received;
    }
}

/// Tells of a snapshot that is there already.
pub(super) fn told_before(
    output: &Output,
    snapshot: &ResticSnapshot,
    imported: &Imported,
) -> Result<()> {
    let Imported { id, unreadable } = imported;
    let object = JsonImport { unreadable: *unreadable, ..JsonImport::new(snapshot, id, None) };
    output.object("import", &object)?;
    let id = short_id(id);
    let without = match unreadable {
        0 => String::new(),
        left => format!(
            ", without {} that could not be read: `holdall forget {id}` and another import bring what can be read now",
            counted(*left, "item")
        ),
    };
    output
        .say(
            format_args!("{}: imported before, as {id}{without}", short(&snapshot.hex_id(), 8),),
        )?;
    Ok(())
}

/// Says so where a snapshot has another date than in restic.
pub(super) fn note_date(output: &Output, snapshot: &ResticSnapshot) {
    if let Some(date) = &snapshot.date {
        output.note(format_args!(
            "note: snapshot {} of restic is of {date}; a snapshot can be of the years 1677 to 2262, so it is imported as of {}",
            short(&snapshot.hex_id(), 8),
            rfc3339(snapshot.foreign.taken_ns),
        ));
    }
}

/// Tells of a snapshot that was imported without so many of its entries.
pub(super) fn told(
    output: &Output,
    snapshot: &ResticSnapshot,
    done: &CopySummary,
    unreadable: u64,
    usage: &Usage,
) -> Result<()> {
    let verdict = judge(done.items, done.bytes, done.seconds, done.stages.clone(), usage);
    let measured = Some((done, &verdict));
    let object = JsonImport::new(snapshot, &done.snapshot_id, measured);
    output.object("import", &JsonImport { unreadable, ..object })?;
    let foreign = &snapshot.foreign;
    let paths = foreign.paths.iter().map(|path| Shown(path).to_string());
    let limit = match verdict.limited_by {
        Layer::Nothing => String::new(),
        layer => format!("; limited by {layer}{}", limited_side(&verdict).map_or("", Side::words)),
    };
    let without = match unreadable {
        0 => String::new(),
        left => format!(", without {} that could not be read", counted(left, "item")),
    };
    output.say(format_args!(
        "{}: imported as {}{without}: {} of {}, {}; {}, {} in {}; {} added, {} sent{limit}",
        short(&snapshot.hex_id(), 8),
        short_id(&done.snapshot_id),
        paths.collect::<Vec<_>>().join(", "),
        Shown(foreign.host.as_bytes()),
        local_time(foreign.taken_ns),
        counted(done.items, "item"),
        size(done.bytes),
        duration(done.seconds),
        size(done.data_added),
        size(done.bytes_sent),
    ))?;
    Ok(())
}

/// Tells what was done altogether.
pub(super) fn summary(output: &Output, sums: &Sums) -> Result<()> {
    output.object("summary", sums)?;
    output.say(format_args!(
        "{} imported, {} imported before, {} failed: {} in {}, {} sent",
        count(sums.imported),
        count(sums.already_imported),
        count(sums.errors),
        size(sums.total_bytes_processed),
        duration(sums.total_duration),
        size(sums.bytes_sent),
    ))?;
    Ok(())
}

fn short_id(id: &RecordHash) -> String {
    short(&id.to_string(), 10)
}

fn short(id: &str, digits: usize) -> String {
    id.chars().take(digits).collect()
}

/// An import as programs see it.
#[derive(Serialize)]
struct JsonImport<'a> {
    source_id: String,
    snapshot_id: String,
    already_imported: bool,
    original_received: String,
    /// The date in restic, if that is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    source_date: Option<&'a str>,
    host: &'a str,
    /// Items that are not in it as they should be, since they could not be read.
    unreadable: u64,
    #[serde(flatten)]
    measured: Option<Measured<'a>>,
}

/// What importing it took.
#[derive(Serialize)]
struct Measured<'a> {
    total_items_processed: u64,
    total_bytes_processed: u64,
    data_added: u64,
    data_stored: u64,
    bytes_sent: u64,
    bytes_received: u64,
    total_duration: f64,
    items_per_second: f64,
    bytes_per_second: f64,
    verdict: &'a Verdict,
}

impl<'a> JsonImport<'a> {
    fn new(
        snapshot: &'a ResticSnapshot,
        snapshot_id: &RecordHash,
        done: Option<(&CopySummary, &'a Verdict)>,
    ) -> Self {
        let foreign = &snapshot.foreign;
        Self {
            source_id: snapshot.hex_id(),
            snapshot_id: snapshot_id.to_string(),
            already_imported: done.is_none(),
            original_received: rfc3339(foreign.taken_ns),
            source_date: snapshot.date.as_deref(),
            host: &foreign.host,
            unreadable: 0,
            measured: done.map(|(done, verdict)| Measured {
                total_items_processed: done.items,
                total_bytes_processed: done.bytes,
                data_added: done.data_added,
                data_stored: done.data_stored,
                bytes_sent: done.bytes_sent,
                bytes_received: done.bytes_received,
                total_duration: done.seconds,
                items_per_second: per_second(done.items, done.seconds),
                bytes_per_second: per_second(done.bytes, done.seconds),
                verdict,
            }),
        }
    }
}
