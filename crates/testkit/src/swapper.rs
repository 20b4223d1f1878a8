//! Somebody who swaps directories for symbolic links while others work in them.
//!
//! Every path below a folder is exchanged with a link to elsewhere, and back, in one system call each,
//! so there is no moment at which the name is not there: whoever looks and then uses a path is caught.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::Random;

/// A thread that swaps; it ends when it is dropped.
#[derive(Debug)]
pub struct Swapper {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    ends: AtomicBool,
    swaps: AtomicU64,
}

impl Swapper {
    /// Swaps what lies at `victims`, as far as it is there, for links to `elsewhere`, at random. The
    /// links wait in `links`, a new folder on the same file system.
    ///
    /// # Errors
    /// If the links can not be made.
    pub fn start(
        victims: Vec<PathBuf>,
        links: &Path,
        elsewhere: &Path,
        seed: u64,
    ) -> io::Result<Self> {
        fs::create_dir(links)?;
        let mut pairs = Vec::with_capacity(victims.len());
        for (number, victim) in victims.into_iter().enumerate() {
            let link = links.join(number.to_string());
            std::os::unix::fs::symlink(elsewhere, &link)?;
            pairs.push((victim, link));
        }
        let shared = Arc::new(Shared { ends: AtomicBool::new(false), swaps: AtomicU64::new(0) });
        let inner = Arc::clone(&shared);
        let thread = std::thread::spawn(move || swap(&pairs, &inner, &mut Random::new(seed)));
        Ok(Self { shared, thread: Some(thread) })
    }

    /// How many swaps there were so far.
    #[must_use]
    pub fn swaps(&self) -> u64 {
        self.shared.swaps.load(Ordering::Relaxed)
    }
}

impl Drop for Swapper {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn swap(pairs: &[(PathBuf, PathBuf)], shared: &Shared, random: &mut Random) {
    while !shared.ends.load(Ordering::Relaxed) {
        let at = usize::try_from(random.below(pairs.len().max(1) as u64)).unwrap_or_default();
        let Some((victim, link)) = pairs.get(at) else { return };
        // What is not there yet, or no more, is not swapped.
        if renameat_with(CWD, victim, CWD, link, RenameFlags::EXCHANGE).is_ok() {
            shared.swaps.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_a_link_and_a_directory_in_turn() {
        let folder = tempfile::tempdir().expect("a folder");
        let [victim, elsewhere] = ["victim", "elsewhere"].map(|name| folder.path().join(name));
        fs::create_dir(&victim).expect("a folder");
        fs::create_dir(&elsewhere).expect("a folder");
        let links = folder.path().join("links");
        let swapper =
            Swapper::start(vec![victim.clone()], &links, &elsewhere, 1).expect("it starts");
        let mut seen = [false; 2];
        while seen != [true; 2] || swapper.swaps() < 100 {
            let kind = fs::symlink_metadata(&victim).expect("it is always there").file_type();
            assert!(kind.is_dir() || kind.is_symlink());
            seen[usize::from(kind.is_symlink())] = true;
        }
    }
}
