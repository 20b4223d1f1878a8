//! What backups and checks came to, a file each in the folder `runs`: written when one starts, and again when it ends.
//!
//! The file of a run that goes on is locked, so that it is told from one that was killed. That a note cannot be written or
//! read fails no run.

use std::io;
use std::path::{Path, PathBuf};

use holdall_crypto::{Entropy, SystemEntropy};
use holdall_diagnosis::runs::{MOST_NOTES, NOTE_MAX_BYTES, RunEnd, RunKind, RunNote, Runs};
use holdall_sys::lock::Held;
use holdall_sys::{Clock, SystemClock, guarded};

use crate::error::StateError;
use crate::private_file;

/// A run that goes on.
pub struct RunGoingOn {
    file: PathBuf,
    note: RunNote,
    /// Says that it goes on.
    _locked: Option<Held>,
}

impl RunGoingOn {
    /// Notes that a run starts that goes to a place; how that is called here, and by people. `None` if it cannot be noted.
    pub fn start(
        state: &Path,
        kind: RunKind,
        (to, place): (String, String),
        sources: &[PathBuf],
    ) -> Option<Self> {
        let started_ns = SystemClock.now_ns();
        let mut random = [0; 4];
        SystemEntropy.fill(&mut random);
        let name = format!("{started_ns:020}-{:08x}", u32::from_le_bytes(random));
        let file = folder(state).join(name);
        let mut note = RunNote::starting(kind, to, place, started_ns);
        let shown = |path: &PathBuf| path.to_string_lossy().chars().take(1000).collect();
        note.sources = sources.iter().take(20).map(shown).collect();
        write(&file, &note).ok()?;
        let locked = guarded::open_regular(&file).and_then(Held::exclusive);
        Some(Self { file, note, _locked: locked.ok().flatten() })
    }

    /// Notes how it ended.
    pub fn end(self, end: RunEnd) {
        let note = self.note.ended(RunEnd { ended_ns: SystemClock.now_ns(), ..end });
        // Without it, status knows less.
        let _ = write(&self.file, &note);
        let _ = self.file.parent().map(remove_surplus);
    }
}

/// What is known of the runs of this computer.
pub struct KnownRuns {
    /// Those whose notes can be read.
    pub runs: Runs,
    /// How many notes cannot.
    pub unreadable: u64,
    folder: PathBuf,
}

impl KnownRuns {
    /// Those in a state folder.
    pub fn in_state(state: &Path) -> Self {
        Self::in_folder(folder(state))
    }

    fn in_folder(folder: PathBuf) -> Self {
        let names = guarded::place(&folder).names().unwrap_or_default();
        let names = names.into_iter().filter_map(|name| name.into_string().ok());
        let (mut notes, mut unreadable) = (Vec::new(), 0);
        // Others are being written.
        for name in names.filter(|name| !name.starts_with('.')) {
            let bytes = private_file::read(&folder.join(&name), NOTE_MAX_BYTES);
            match bytes.ok().flatten().and_then(|bytes| RunNote::decode(&bytes)) {
                Some(note) => notes.push((name, note)),
                None => unreadable += 1,
            }
        }
        Self { runs: Runs::new(notes), unreadable, folder }
    }

    /// Whether the run with that note goes on.
    pub fn goes_on(&self, name: &str, note: &RunNote) -> bool {
        let locked = || Held::shared(guarded::open_regular(&self.folder.join(name))?);
        note.end.is_none() && matches!(locked(), Ok(None))
    }
}

fn remove_surplus(folder: &Path) -> io::Result<()> {
    // Reading all of them each time would be in vain.
    if guarded::place(folder).names()?.len() <= MOST_NOTES + MOST_NOTES / 10 {
        return Ok(());
    }
    let known = KnownRuns::in_folder(folder.to_owned());
    for name in known.runs.surplus() {
        guarded::place(&folder.join(name)).remove_file()?;
    }
    Ok(())
}

fn write(file: &Path, note: &RunNote) -> Result<(), StateError> {
    private_file::replace(file, &note.encode()?)
}

fn folder(state: &Path) -> PathBuf {
    state.join("runs")
}
