//! Somebody who swaps directories for symbolic links while others work in them.
//!
//! What lies in a folder is exchanged with a link to elsewhere, and back, in one system call each, so
//! there is no moment at which the name is not there: whoever looks and then uses a path is caught. It is
//! a process of its own, as an attacker is, and stands still but while it is let go on.

use std::convert::Infallible;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::process::{
    Pid, Signal, WaitOptions, kill_process, set_parent_process_death_signal, waitpid,
};

use crate::{Random, this_test};

/// Names the folder to a process that is to swap.
const FOLDER: &str = "HOLDALL_SWAPPER_FOLDER";
/// What is swapped lies in this folder of it,
const TARGET: &str = "target";
/// and what it is swapped for in this one, under the same name.
const LINKS: &str = "links";
/// The file that is as long as there were swaps.
const SWAPS: &str = "swaps";

/// A process that swaps while it is let go on; it is killed when it is dropped.
#[derive(Debug)]
pub struct Swapper {
    child: Child,
    folder: PathBuf,
}

impl Swapper {
    /// In the process that [`Swapper::start`] makes, swaps what has one of these names until it is killed;
    /// returns at once in any other. The first thing that a test with a swapper does.
    ///
    /// # Panics
    /// If swaps cannot be counted.
    #[expect(
        clippy::disallowed_methods,
        reason = "a test is told by a variable that it is to swap"
    )]
    pub fn serve(names: &[&str]) {
        if let Some(folder) = std::env::var_os(FOLDER) {
            let Err(error) = swap(Path::new(&folder), names);
            panic!("swaps cannot be counted: {error}");
        }
    }

    /// Starts the process, which runs the test that calls this; it stands still.
    ///
    /// # Errors
    /// What the system says.
    pub fn start(folder: &Path) -> io::Result<Self> {
        File::create(folder.join(SWAPS))?;
        let child = this_test()?.env(FOLDER, folder).stdout(Stdio::null()).spawn()?;
        let swapper = Self { child, folder: folder.to_owned() };
        swapper.pause()?;
        Ok(swapper)
    }

    /// Where what is swapped lies.
    #[must_use]
    pub fn target(&self) -> PathBuf {
        self.folder.join(TARGET)
    }

    /// Lets it swap what has these names, for links to `elsewhere`, and does `work` meanwhile; returns the
    /// number of swaps. What is left of links, and of what was swapped for them, is removed.
    ///
    /// # Errors
    /// What the system says.
    pub fn beside(&self, names: &[&str], elsewhere: &Path, work: impl FnOnce()) -> io::Result<u64> {
        let links = self.folder.join(LINKS);
        fs::create_dir(&links)?;
        for name in names {
            std::os::unix::fs::symlink(elsewhere, links.join(name))?;
        }
        let before = self.swaps()?;
        self.signal(Signal::CONT)?;
        work();
        self.pause()?;
        fs::remove_dir_all(&links)?;
        Ok(self.swaps()? - before)
    }

    fn swaps(&self) -> io::Result<u64> {
        Ok(fs::metadata(self.folder.join(SWAPS))?.len())
    }

    /// Returns when it stands still.
    fn pause(&self) -> io::Result<()> {
        self.signal(Signal::STOP)?;
        let stopped = waitpid(Some(self.pid()), WaitOptions::UNTRACED)?;
        if !stopped.is_some_and(|(_, status)| status.stopped()) {
            return Err(io::Error::other("the process that swaps has ended"));
        }
        Ok(())
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(kill_process(self.pid(), signal)?)
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for Swapper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn swap(folder: &Path, names: &[&str]) -> io::Result<Infallible> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let pair = |name| [TARGET, LINKS].map(|side| folder.join(side).join(name));
    let pairs: Vec<[PathBuf; 2]> = names.iter().map(pair).collect();
    let mut swaps = File::options().append(true).open(folder.join(SWAPS))?;
    let mut random = Random::new(1);
    loop {
        let at = usize::try_from(random.below(pairs.len() as u64)).unwrap_or_default();
        let [victim, link] = &pairs[at];
        // What is not there yet, or no more, is not swapped.
        if renameat_with(CWD, victim, CWD, link, RenameFlags::EXCHANGE).is_ok() {
            swaps.write_all(b".")?;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_directory_is_a_link_and_a_directory_in_turn() {
        Swapper::serve(&["victim"]);
        let folder = tempfile::tempdir().expect("a folder");
        let swapper = Swapper::start(folder.path()).expect("it starts");
        let victim = swapper.target().join("victim");
        fs::create_dir_all(&victim).expect("a folder");
        let is_link =
            || fs::symlink_metadata(&victim).expect("it is always there").file_type().is_symlink();
        let changes = Cell::new(0);
        let swaps = swapper.beside(&["victim"], folder.path(), || {
            let mut was_link = false;
            while changes.get() < 100 {
                let is_link = is_link();
                changes.set(changes.get() + u64::from(is_link != was_link));
                was_link = is_link;
            }
        });
        // It may be stopped before it counts the last.
        assert!(swaps.expect("it goes on") + 1 >= changes.get());
    }
}
