//! Two threads that only create files, write them and set their times: what a restore is held against.
//!
//! They know every name and size beforehand, read nothing and write the same bytes again and again, each
//! directory by one thread. What they take is the file system's share of a restore.

use std::fs::{self, File};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use rustix::fs::{Mode, OFlags, Timespec, Timestamps, UTIME_OMIT};

use crate::dataset::{File as Planned, Plan};
use crate::generate::on_threads;
use crate::machine::Busy;
use crate::processes::Usage;
use crate::stage::Figures;

/// As tables name them.
pub(crate) const NAME: &str = "2 writers";
/// What they are, where tools have their version.
pub(crate) const WORDS: &str = "threads that only create files, write them and set their times";

const THREADS: usize = 2;
/// As much is written with one call at most.
const PIECE_BYTES: usize = 1 << 20;
/// Any time that is not now.
const MTIME_SECS: i64 = 1_700_000_000;
const TIMES: Timestamps = Timestamps {
    last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
    last_modification: Timespec { tv_sec: MTIME_SECS, tv_nsec: 0 },
};

/// Makes what `plan` has below the empty folder `target`, other bytes in it; what that took.
///
/// # Errors
///
/// The first directory or file that cannot be made.
pub(crate) fn write(plan: &Plan, target: &Path) -> Result<Figures> {
    let piece: Vec<u8> = (0..PIECE_BYTES).map(|at| (at % 251) as u8).collect();
    let own = std::process::id();
    // What was left to be written is not theirs.
    rustix::fs::sync();
    let (usage_before, busy_before) = (Usage::of_tree(own), Busy::now()?);
    let start = Instant::now();
    make(plan, target, &piece)?;
    let wall_seconds = start.elapsed().as_secs_f64();
    let busy = Busy::since(busy_before)?;
    let cpu_seconds = Usage::of_tree(own).cpu_seconds - usage_before.cpu_seconds;
    Ok(Figures {
        wall_seconds,
        client_cpu_seconds: cpu_seconds,
        client_peak_bytes: 0,
        server_cpu_seconds: 0.0,
        server_peak_bytes: 0,
        other_cpu_seconds: (busy.cpu_seconds - cpu_seconds).max(0.0),
        steal_seconds: busy.steal_seconds,
        wire: None,
        output: String::new(),
    })
}

fn make(plan: &Plan, target: &Path, piece: &[u8]) -> Result<()> {
    for dir in &plan.dirs {
        let path = target.join(dir);
        fs::create_dir_all(&path).with_context(|| format!("cannot make {path:?}"))?;
    }
    let dirs: Vec<&[Planned]> = plan.files.chunk_by(|a, b| a.dir() == b.dir()).collect();
    on_threads(THREADS, dirs.len(), |at| {
        let files = dirs[at];
        let dir = target.join(files[0].dir());
        fill(&dir, files, piece).with_context(|| format!("cannot write in {dir:?}"))
    })
}

/// Makes `files`, which all lie in `dir`.
fn fill(dir: &Path, files: &[Planned], piece: &[u8]) -> Result<()> {
    let dir = File::open(dir)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    for planned in files {
        let file = rustix::fs::openat(&dir, planned.name(), flags, Mode::RUSR | Mode::WUSR)?;
        let mut written_bytes = 0;
        while written_bytes < planned.size_bytes {
            let len_bytes = (planned.size_bytes - written_bytes).min(PIECE_BYTES as u64);
            let part = &piece[..len_bytes as usize];
            written_bytes += rustix::io::pwrite(&file, part, written_bytes)? as u64;
        }
        rustix::fs::futimens(&file, &TIMES)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::dataset::{Content, Set};

    #[test]
    fn everything_that_is_planned_is_made_with_its_size_and_a_time() {
        let mut plan = Set::T0.plan();
        let size_bytes = 2 * PIECE_BYTES as u64 + 1;
        plan.files.push(Planned { path: "large".into(), size_bytes, content: Content::Binary });
        let dir = tempfile::tempdir().unwrap();
        let figures = write(&plan, dir.path()).unwrap();
        assert!(figures.wall_seconds > 0.0);
        for planned in &plan.files {
            let made = fs::metadata(dir.path().join(&planned.path)).unwrap();
            assert_eq!((made.len(), made.mtime()), (planned.size_bytes, MTIME_SECS));
        }
        assert!(write(&plan, dir.path()).is_err(), "what is there is not written again");
    }
}
