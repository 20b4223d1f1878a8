//! The place that is measured: what it lies on, and the folder in it that is gone afterwards.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use holdall_lab::storage_stack::{DeviceCounters, StorageStack};
use holdall_lab::{Remains, Scratch, Stop};

use super::circumstances::Circumstances;
use crate::app::App;

/// The root below which the system tells of its devices.
const ROOT: &str = "/";

/// The place that is measured.
pub(crate) struct Place {
    pub(crate) dir: PathBuf,
    pub(crate) stack: StorageStack,
    pub(crate) scratch: Scratch,
    pub(crate) stop: Stop,
    /// What was found of earlier runs, by directory.
    remains: Vec<(PathBuf, Remains)>,
}

impl Place {
    /// Makes a folder to measure in.
    ///
    /// # Errors
    /// If `dir` is not there or cannot be written.
    pub(crate) fn open(dir: &Path, app: &App) -> Result<Self> {
        let named = || format!("measuring in {}", dir.display());
        let dir = dir.canonicalize().with_context(named)?;
        let stack = StorageStack::of(&dir).with_context(named)?;
        let (scratch, remains) = Scratch::make(&dir)?;
        let stop = Stop::on(app.interrupt.flag());
        let remains = vec![(dir.clone(), remains)];
        Ok(Self { dir, stack, scratch, stop, remains })
    }

    /// Looks for what earlier runs left in another directory, too, and removes it.
    pub(crate) fn sweep(&mut self, dir: &Path) {
        // In the directory that is measured the own folder would be taken for somebody else's.
        if dir.canonicalize().is_ok_and(|dir| dir != self.dir)
            && let Ok(found) = Remains::sweep(dir)
        {
            self.remains.push((dir.to_owned(), found));
        }
    }

    /// What the figures will depend on, and what was found of earlier runs.
    pub(crate) fn circumstances(&self) -> Circumstances {
        let mut told = Circumstances::now(Some((&self.dir, &self.stack)));
        for (dir, Remains { removed, in_use, unsure }) in &self.remains {
            let dir = dir.display();
            if *removed > 0 {
                told.note(format!(
                    "What {removed} earlier measurements left in {dir} when they were killed is removed."
                ));
            }
            if *in_use > 0 {
                told.note("Somebody else measures here too, and both slow each other down.");
            }
            if *unsure > 0 {
                told.note(format!(
                    "There are folders of earlier measurements in {dir} (holdall-lab-*) that could not \
                     be removed, that belong to another user, or of which it is not certain whether \
                     another computer uses them: if nobody does, remove them."
                ));
            }
        }
        told
    }

    /// The disks' counters now.
    pub(crate) fn counters(&self) -> Option<DeviceCounters> {
        DeviceCounters::read(Path::new(ROOT), &self.stack)
    }

    /// Removes the folder.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn close(self) -> Result<()> {
        Ok(self.scratch.remove()?)
    }
}
