//! Measuring: row after row, each told, and none begun once it is to end.

use std::hash::{BuildHasher, RandomState};
use std::path::Path;

use holdall_lab::disk::{Access, measure_fsync, standard_set};
use holdall_lab::disk::{DiskFiles, average, large_steps, measure as measure_row};
use holdall_lab::files::{SmallFiles, measure_size, measure_small};
use holdall_lab::report::{Fact, Report};
use holdall_lab::storage_stack::StorageStack;
use holdall_lab::{LabError, Measurement, Scratch};
use holdall_meter::size;
use holdall_sys::host;

use super::rows::{Rows, Watch};
use super::{Extent, LabTest, MIB, net};
use crate::ServerError;

/// Of what is free, so much is written at most.
const SHARE: u64 = 10;
/// The least that a disk is measured with.
const LEAST_BYTES: u64 = 4 * MIB;
/// By how many at once small files are worked on, and bytes of each.
const WORKERS: [u32; 2] = [1, 4];
const FILE_BYTES: u64 = 4096;
/// Kinds of work on small files, a row each.
const KINDS_OF_WORK: usize = 8;
/// Sizes of files that are written and read, from small to large.
const SIZES: [u64; 3] = [20_000, 200_000, 2_000_000];
/// What each of those takes at most.
const SIZE_BYTES: u64 = 200_000_000;

/// Measures in `folder`, of which nothing is left afterwards, and gives the report. `made` is when, in RFC 3339.
///
/// # Errors
/// Why it is not to go on, and what the system says.
pub(crate) fn measure(
    what: LabTest,
    extent: Extent,
    folder: &Path,
    made: String,
    watch: &Watch<'_>,
) -> Result<Report, ServerError> {
    let (facts, notes) = match what {
        LabTest::Net => net::links(),
        LabTest::Disk | LabTest::Files => below(folder)?,
    };
    let mut rows = Rows::new(watch, notes);
    rows.may_go_on()?;
    match what {
        LabTest::Net => net::net(extent, &mut rows)?,
        LabTest::Disk | LabTest::Files => {
            let (scratch, _) = Scratch::make(folder)?;
            match what {
                LabTest::Disk => disk(&scratch, extent, &mut rows)?,
                _ => files(&scratch, extent, &mut rows)?,
            }
            scratch.remove()?;
        }
    }
    let mut report = Report::new(format!("holdall lab {what} (by the server)"), made);
    report.circumstances = circumstances();
    report.facts = facts;
    report.measurements = rows.rows;
    report.notes = rows.notes;
    Ok(report)
}

/// What a folder lies on: facts and notes.
fn below(folder: &Path) -> Result<(Vec<Fact>, Vec<String>), ServerError> {
    let stack = StorageStack::of(folder)
        .map_err(|source| ServerError::io("looking at what lies below", folder, source))?;
    let facts = stack.facts().into_iter().map(|(name, value)| Fact::new(name, value));
    Ok((facts.collect(), stack.notes()))
}

/// The bytes that may be written: the lab itself would take half of what is free.
fn may_take(scratch: &Scratch) -> u64 {
    scratch.room_bytes() / (SHARE / 2)
}

fn disk(scratch: &Scratch, extent: Extent, rows: &mut Rows<'_>) -> Result<(), ServerError> {
    let file_bytes = may_take(scratch).min(extent.disk_bytes) / MIB * MIB;
    if file_bytes < LEAST_BYTES {
        return Err(ServerError::refused(format!(
            "the disk is too full to be measured: a tenth of what is free would be {}",
            size(may_take(scratch))
        )));
    }
    let mut set = standard_set(file_bytes, extent.row);
    // The rows that others know, and each size of a request by itself.
    set.retain(|one| one.known_as.is_some() || one.row.queue_depth == 1 && one.row.jobs == 1);
    let steps = large_steps(Access::Write, extent.row);
    let has_room = steps.iter().all(|step| step.file_bytes <= file_bytes);
    rows.total = set.len() + 1 + usize::from(has_room);
    let seed = RandomState::new().hash_one(std::process::id());
    let mut files = DiskFiles::new(scratch, rows.watch.stop.clone(), seed);
    for one in &set {
        files.prepare(&one.row)?;
        let measured = measure_row(&one.row, &mut files)?;
        if measured.direct_refused || measured.direct_in_doubt.is_some() {
            note_cache(&mut rows.notes);
        }
        let known_as = one.known_as.map(str::to_owned);
        rows.add(Measurement { known_as, ..measured.measurement() })?;
    }
    if has_room {
        let mut all = Vec::new();
        for step in &steps {
            files.prepare(step)?;
            all.push(measure_row(step, &mut files)?);
        }
        average(&all, None).map_or(Ok(()), |row| rows.add(row))?;
    }
    rows.add(measure_fsync(&files, extent.row)?)
}

fn note_cache(notes: &mut Vec<String>) {
    const NOTE: &str = "This file system does not go around its cache when it is asked to: reads may come from memory, and \
                        writes end with an fsync.";
    if !notes.iter().any(|note| note == NOTE) {
        notes.push(NOTE.to_owned());
    }
}

fn files(scratch: &Scratch, extent: Extent, rows: &mut Rows<'_>) -> Result<(), ServerError> {
    let sizes = if may_take(scratch) >= SIZE_BYTES { &SIZES[..] } else { &[] };
    rows.total = WORKERS.len() * KINDS_OF_WORK + 2 * sizes.len();
    let stop = rows.watch.stop.clone();
    for workers in WORKERS {
        let asked =
            SmallFiles { files: extent.files, file_bytes: FILE_BYTES, workers, limit: extent.row };
        measure_small(scratch, &asked, &stop, |measured| rows.add(measured.reported()))?;
    }
    for &bytes in sizes {
        for measured in measure_size(scratch, bytes, extent.row, &stop)? {
            rows.add(measured.reported())?;
        }
    }
    if sizes.is_empty() {
        let note = "Files of several sizes are left out, since there is too little room.";
        rows.notes.push(note.to_owned());
    }
    Ok(())
}

/// What the figures depend on.
fn circumstances() -> Vec<Fact> {
    let memory = holdall_sys::memory::total_bytes().ok().map(size);
    let known = [
        ("holdall", Some(env!("CARGO_PKG_VERSION").to_owned())),
        ("computer", Some(host::host_name())),
        ("kernel", Some(host::kernel())),
        ("processor", host::processor()),
        ("cores", Some(holdall_sys::cpu::available_cores().to_string())),
        ("memory", memory),
    ];
    known.into_iter().filter_map(|(name, value)| Some(Fact::new(name, value?))).collect()
}

/// Somebody had it end: the job says so.
impl From<LabError> for ServerError {
    fn from(error: LabError) -> Self {
        Self::refused(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use holdall_lab::Stop;

    use super::*;

    const TINY: Extent =
        Extent { disk_bytes: 8 * MIB, files: 8, row: std::time::Duration::from_millis(20) };

    fn measured(
        what: LabTest,
        stop: &Stop,
        may_go_on: &dyn Fn() -> Result<(), ServerError>,
    ) -> Result<(Report, usize), ServerError> {
        let folder = tempfile::tempdir().unwrap();
        let seen = Cell::new(0);
        let told = |_: &str, at: usize, total: usize| {
            assert_eq!(at, seen.get() + 1);
            assert!(at <= total, "{at} of {total}");
            seen.set(at);
        };
        let watch = Watch { stop: stop.clone(), may_go_on, told: &told };
        let report = measure(what, TINY, folder.path(), "now".into(), &watch);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
        Ok((report?, seen.get()))
    }

    #[test]
    fn each_test_has_its_rows_and_leaves_nothing() {
        for (what, has, fact) in [
            (LabTest::Disk, "random read", "file system"),
            (LabTest::Files, "create", "file system"),
            (LabTest::Net, "send", "link"),
        ] {
            let (report, told) = measured(what, &Stop::default(), &|| Ok(())).unwrap();
            assert_eq!(report.measurements.len(), told, "{what}");
            assert!(report.measurements.iter().any(|row| row.operation == has), "{report:?}");
            assert!(report.facts.iter().any(|one| one.name == fact), "{report:?}");
        }
    }

    #[test]
    fn it_ends_before_the_next_row_when_it_is_cancelled_or_a_machine_comes() {
        let wished = Stop::on(Arc::new(AtomicBool::new(true)));
        measured(LabTest::Disk, &wished, &|| Ok(())).unwrap_err();
        let asked = Cell::new(0);
        let comes = || {
            asked.set(asked.get() + 1);
            if asked.get() > 3 { Err(ServerError::refused("laptop came")) } else { Ok(()) }
        };
        let error = measured(LabTest::Files, &Stop::default(), &comes).unwrap_err();
        assert_eq!((error.to_string().as_str(), asked.get()), ("laptop came", 4));
    }
}
