//! What backups and checks came to, a file each in the folder `runs`: written when one starts, and again when it ends.
//!
//! A note names the process of its run, so that one that goes on is told from one that was killed. That a note cannot be
//! written or read fails no run.

use std::io;
use std::path::{Path, PathBuf};

use holdall_crypto::{Entropy, SystemEntropy};
use holdall_diagnosis::runs::{MOST_NOTES, NOTE_MAX_BYTES, RunEnd, RunKind, RunNote, Runs};
use holdall_sys::{Clock, SystemClock, guarded, process};

use crate::error::StateError;
use crate::private_file;

/// A run that goes on.
pub struct RunGoingOn {
    file: PathBuf,
    note: RunNote,
}

impl RunGoingOn {
    /// Notes that a run starts that goes to a place; how that is called here, and by people. `None` if it cannot be noted.
    pub fn start(
        state: &Path,
        kind: RunKind,
        to: String,
        place: String,
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
        note.process = process::own().ok();
        write(&file, &note).ok()?;
        Some(Self { file, note })
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
    /// Why their folder cannot be listed, if it is there.
    pub unlisted: Option<StateError>,
}

impl KnownRuns {
    /// Those in a state folder.
    pub fn in_state(state: &Path) -> Self {
        Self::in_folder(folder(state))
    }

    fn in_folder(folder: PathBuf) -> Self {
        let names = guarded::place(&folder).names();
        let (names, unlisted) = match names {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                (Vec::new(), Some(StateError::io(format!("listing {}", folder.display()))(error)))
            }
            names => (names.unwrap_or_default(), None),
        };
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
        Self { runs: Runs::new(notes, SystemClock.now_ns()), unreadable, unlisted }
    }
}

/// Whether a run goes on. One of before this computer was started does not.
pub fn run_goes_on(note: &RunNote) -> bool {
    // Behind the boot are the number of the process and when it started.
    let boot = |name: &str| name.rsplitn(3, ' ').last().map(str::to_owned);
    let is_alive = |name: &str| {
        let own = process::own().ok();
        own.is_some_and(|own| boot(&own) == boot(name)) && !process::has_ended(name)
    };
    note.end.is_none() && note.process.as_deref().is_some_and(is_alive)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_another_process_or_boot_does_not_go_on() {
        let of = |process: Option<String>| {
            let mut note = RunNote::starting(RunKind::Backup, String::new(), String::new(), 0);
            note.process = process;
            note
        };
        let own = process::own().unwrap();
        assert!(run_goes_on(&of(Some(own.clone()))));
        assert!(!run_goes_on(&of(Some(own.clone())).ended(RunEnd::default())));
        for other in [format!("x{own}"), format!("{own}1"), String::new(), "x".to_owned()] {
            assert!(!run_goes_on(&of(Some(other.clone()))), "{other}");
        }
        assert!(!run_goes_on(&of(None)));
    }
}
