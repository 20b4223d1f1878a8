//! What people read: lines while it runs, and a page with charts made from what was kept.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::record::{Record, Row};

mod chart;
pub(crate) mod console;
mod growth;
mod page;
mod stats;
mod svg;
mod table;

/// Prefix of the sets that `growth` measures; they have a table of their own.
pub(crate) const GROWTH_PREFIX: &str = "G";

/// Writes `RESULTS.md` and its charts into `folder` from the records in `file`.
///
/// # Errors
///
/// If the file cannot be read or has no rows, or the folder cannot be written.
pub(crate) fn write(file: &Path, folder: &Path) -> Result<()> {
    let records = crate::record::read(file)?;
    let rows: Vec<Row> = records
        .iter()
        .filter_map(|record| match record {
            Record::Row(row) => Some((**row).clone()),
            _ => None,
        })
        .collect();
    ensure!(!rows.is_empty(), "{file:?} has no rows");
    let (growth_rows, rows): (Vec<Row>, Vec<Row>) =
        rows.into_iter().partition(|row| row.set.starts_with(GROWTH_PREFIX));
    let chart = chart::svg(&rows);
    let growth = growth::svg(&growth_rows);
    let page = page::Page { records: &records, rows: &rows, growth_rows: &growth_rows };
    let page = page.markdown(file, chart.is_some(), growth.is_some());
    let outputs = [("RESULTS.md", Some(page)), ("chart.svg", chart), ("growth.svg", growth)];
    for (name, text) in outputs {
        let path = folder.join(name);
        if let Some(text) = text {
            fs::write(&path, text).with_context(|| format!("cannot write {path:?}"))?;
            println!("wrote {}", path.display());
        }
    }
    Ok(())
}
