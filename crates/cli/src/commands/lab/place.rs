//! The place that is measured: what it lies on, and the folder in it that is gone afterwards.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use holdall_lab::ground::{DeviceCounters, Ground};
use holdall_lab::{Remains, Scratch, Stop};

use super::circumstances::Circumstances;
use crate::app::App;

/// The root below which the system tells of its devices.
const ROOT: &str = "/";

/// The place that is measured.
pub(crate) struct Place {
    pub(crate) dir: PathBuf,
    pub(crate) ground: Ground,
    pub(crate) scratch: Scratch,
    pub(crate) stop: Stop,
    remains: Remains,
}

impl Place {
    /// Makes a folder to measure in.
    ///
    /// # Errors
    /// If `dir` is not there or can not be written.
    pub(crate) fn open(dir: &Path, app: &App) -> Result<Self> {
        let named = || format!("measuring in {}", dir.display());
        let dir = dir.canonicalize().with_context(named)?;
        let ground = Ground::of(&dir).with_context(named)?;
        let (scratch, remains) = Scratch::make(&dir)?;
        let stop = Stop::on(app.interrupt.flag());
        Ok(Self { dir, ground, scratch, stop, remains })
    }

    /// What the figures will depend on, and what was found of earlier runs.
    pub(crate) fn circumstances(&self) -> Circumstances {
        let mut told = Circumstances::now(Some((&self.dir, &self.ground)));
        let Remains { removed, in_use, unsure } = self.remains;
        if removed > 0 {
            told.note(format!(
                "What {removed} earlier measurements left when they were killed is removed."
            ));
        }
        if in_use > 0 {
            told.note("Somebody else measures here too, and both slow each other down.");
        }
        if unsure > 0 {
            told.note(
                "Here are folders of earlier measurements (holdall-lab-*) that could not be removed, \
                 or of which it is not certain whether another computer uses them: if none does, \
                 remove them.",
            );
        }
        told
    }

    /// The disks' counters now.
    pub(crate) fn counters(&self) -> Option<DeviceCounters> {
        DeviceCounters::read(Path::new(ROOT), &self.ground)
    }

    /// Removes the folder.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn close(self) -> Result<()> {
        Ok(self.scratch.remove()?)
    }
}
