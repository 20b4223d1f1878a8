//! `restore --delete`: what the target has and the snapshot has not is listed, and removed when everything is restored.

use std::path::{Path, PathBuf};

use anyhow::Result;
use holdall_engine::{
    DeleteIn, Extras, RestoreOptions, Snapshot, UnlockedRepository, is_directory_at,
};
use serde::Serialize;

use super::Done;
use crate::app::App;
use crate::arguments::selection::Patterns;
use crate::config::Folders;
use crate::exit::{Exit, Refusal};
use crate::opening::open::Where;
use crate::terminal::output::{JsonPath, Shown, count, counted};

/// What is to be removed from a target.
pub(super) struct Deleting {
    target: PathBuf,
    keep: Vec<PathBuf>,
    extras: Extras,
}

impl Deleting {
    /// Lists what is to be removed.
    ///
    /// # Errors
    /// [`Refusal`] of what is no folder, and of a snapshot that lacks what could not be read: the target may have just that;
    /// what keeps the target or the repository from being read.
    pub(super) fn list(
        app: &App,
        access: &UnlockedRepository,
        (snapshot, path): (&Snapshot, Option<&[u8]>),
        target: &Path,
        (options, patterns): (&RestoreOptions, &Patterns),
    ) -> Result<Self> {
        if let Some(path) = path
            && !is_directory_at(access, snapshot, path)?
        {
            let message = format!("--delete: {} is no folder in the snapshot", Shown(path));
            let hint = "leave --delete out, or name the folder that it is in";
            return Err(Refusal::new(Exit::Usage, message).hint(hint).into());
        }
        let unreadable = snapshot.secret.unreadable;
        if unreadable > 0 {
            let message = format!(
                "--delete: {} could not be read when this snapshot was made, and would be taken for deleted",
                counted(unreadable, "item")
            );
            let hint =
                "restore without --delete, or name a snapshot that is whole (`holdall snapshots`)";
            return Err(Refusal::new(Exit::Failed, message).hint(hint).into());
        }
        let Folders { config, state, cache } = app.folders.clone();
        let mut keep = vec![config, state, cache];
        if let Some(Ok(Where::Directory(folder))) = app.named_repository().map(Where::parse) {
            keep.push(folder);
        }
        keep.extend(app.files_that_open().map(Path::to_owned));
        let within = DeleteIn { target, options, keep: &keep };
        let extras = within.find(access, snapshot, path, &app.run())?;
        let deleting = Self { target: target.to_owned(), keep, extras };
        deleting.tell(app, options.dry_run)?;
        for rule in patterns.unmet_excludes() {
            let is_path = rule.trim_end_matches('/').contains('/');
            let why = if is_path { ": a pattern with a / in it counts from / on" } else { "" };
            app.output.note(format_args!("note: --exclude {rule} matches nothing{why}"));
        }
        Ok(deleting)
    }

    fn tell(&self, app: &App, dry_run: bool) -> Result<()> {
        #[derive(Serialize)]
        struct JsonDelete {
            #[serde(flatten)]
            path: JsonPath,
            is_dir: bool,
        }
        #[derive(Serialize)]
        struct JsonKept {
            #[serde(flatten)]
            path: JsonPath,
            reason: &'static str,
        }
        use std::os::unix::ffi::OsStrExt;
        let place = |below: &[u8]| match below.is_empty() {
            true => self.target.clone(),
            false => self.target.join(std::ffi::OsStr::from_bytes(below)),
        };
        let deletes = if dry_run { "would delete" } else { "to delete:" };
        for extra in &self.extras.extras {
            let place = place(&extra.below);
            let path = place.as_os_str().as_bytes();
            app.output.object(
                "delete",
                &JsonDelete { path: JsonPath::new(path), is_dir: extra.is_dir },
            )?;
            let all = if extra.is_dir { ", with all that is in it" } else { "" };
            app.output.result(format_args!("{deletes} {}{all}", Shown(path)))?;
        }
        for (below, why) in &self.extras.kept {
            let place = place(below);
            let path = place.as_os_str().as_bytes();
            let kept = JsonKept { path: JsonPath::new(path), reason: why };
            app.output.object("kept", &kept)?;
            app.output.note(format_args!("note: {} stays: {why}", Shown(path)));
        }
        Ok(())
    }

    /// Removes it, if everything was restored, and notes in `done` how many things were removed, and how many could not be.
    pub(super) fn carry_out(
        &self,
        app: &App,
        options: &RestoreOptions,
        done: &mut Done,
    ) -> Result<()> {
        done.deleted = Some(0);
        if options.dry_run || self.extras.extras.is_empty() {
            return Ok(());
        }
        let problems = done.summary.problems;
        if problems > 0 {
            app.output.note(format_args!(
                "note: nothing was deleted, since {} could not be restored",
                count(problems)
            ));
            return Ok(());
        }
        let run = app.run();
        let within = DeleteIn { target: &self.target, options, keep: &self.keep };
        let removed = within.remove(&self.extras, &run);
        run.take_problems().iter().try_for_each(|problem| app.output.problem(problem))?;
        let removed = removed?;
        app.output.say(format_args!("{} deleted", counted(removed, "item")))?;
        done.deleted = Some(removed);
        done.not_deleted = run.problem_count();
        if done.not_deleted > 0 {
            let stayed = count(done.not_deleted);
            app.output.say(format_args!("{stayed} could not be deleted, or changed meanwhile"))?;
        }
        Ok(())
    }
}
