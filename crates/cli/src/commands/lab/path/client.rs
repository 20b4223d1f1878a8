//! A client whose keys, state and repository are gone with the folder that is measured in.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use holdall_diagnosis::Forecast;
use holdall_diagnosis::path::{Client, PathError, PutBehind};
use holdall_engine::{BackupOptions, LockedRepository, Run, UnlockedRepository};
use holdall_lab::LabError;

use crate::app::App;
use crate::commands::backup;
use crate::exit::{Exit, Refusal};
use crate::lab::lab_server::out_of_io;
use crate::opening::create::NewKeys;
use crate::opening::open::{self, Patience};
use crate::secrets::password::Passwords;
use crate::terminal::progress::watched;

/// A client of its own, which tells what the command's would.
pub(super) struct TemporaryClient<'a>(pub(super) &'a App);

impl Client for TemporaryClient<'_> {
    fn repository(
        &self,
        folder: &Path,
        behind: &PutBehind<'_>,
    ) -> Result<UnlockedRepository, Box<dyn Error + Send + Sync>> {
        Ok(make(self.0, folder, behind)?)
    }

    fn run(&self) -> Arc<Run> {
        self.0.run()
    }

    fn watched<R>(&self, run: &Run, work: impl FnOnce() -> R) -> R {
        watched(&self.0.output, run, Forecast::typical, work)
    }

    fn in_environment(&self, options: BackupOptions) -> BackupOptions {
        backup::with_environment(BackupOptions { user: backup::user_name(), ..options })
    }
}

fn make(app: &App, folder: &Path, behind: &PutBehind<'_>) -> Result<UnlockedRepository> {
    let client = app.within(&folder.join("client"));
    let at = folder.join("repository");
    let named = at.to_str().context("the folder to measure in has a name that is no text")?;
    let client = client.at(named, Passwords::none(&client.interrupt), None);
    let opened = open::place(&client, Patience::default())?;
    let (new, kit) = (NewKeys::draw(None), folder.join("recovery-kit.txt"));
    new.create(&client, &opened.place, None, None, named, Some(&kit))?;
    let LockedRepository { repository, signing, cache, .. } = opened.place;
    Ok(LockedRepository::new(behind(repository), signing, cache).open(&new.ring)?)
}

/// An error of a path; one of the server's says itself what it is.
pub(super) fn out_of_path(error: PathError) -> anyhow::Error {
    match error {
        PathError::Lab(LabError::Io { source, what }) => out_of_io(source).context(what),
        PathError::Lab(error) => error.into(),
        PathError::Engine(error) => error.into(),
        PathError::Repository(error) => error.into(),
        PathError::Io(error) => out_of_io(error),
        PathError::Client(error) => anyhow::Error::from_boxed(error),
        PathError::NoFile { .. } => {
            Refusal::new(Exit::Failed, error.to_string()).hint("give a larger --size").into()
        }
        error => error.into(),
    }
}
