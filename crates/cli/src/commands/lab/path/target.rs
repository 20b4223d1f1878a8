//! Where the path leads, as it is named or paired, and where there is room to measure.

use std::path::PathBuf;

use anyhow::Result;
use holdall_diagnosis::path::{self, Target};

use crate::app::App;
use crate::exit::{Exit, Refusal};
use crate::lab::lab_server;
use crate::opening::open::{self, Patience, Where};

/// The repository that was named, or else the paired server.
///
/// # Errors
/// If what was named makes no sense, there is no repository, or the server cannot be reached.
pub(super) fn find(app: &App) -> Result<Target> {
    let named = app.named_repository();
    Ok(match named.map(Where::parse).transpose()? {
        Some(Where::Directory(folder)) => {
            // What of it everybody may read says that there is one.
            open::place(app, Patience::default())?.place.wrappings()?;
            Target::Directory(folder)
        }
        None if app.pairings()?.default().is_none() => Target::Nowhere,
        Some(Where::Server { .. }) | None => {
            Target::Server(lab_server::connect(app, named, &path::plan(), app.interrupt.flag())?)
        }
    })
}

/// A directory to measure in, and what to say of it.
///
/// # Errors
/// If there is none that is on a disk.
pub(super) fn place(target: &Target, app: &App) -> Result<(PathBuf, Vec<String>)> {
    let Target::Directory(folder) = target else { return Ok((own_disk(app)?, Vec::new())) };
    let folder = std::path::absolute(folder)?;
    match path::beside(&folder) {
        Some(parent) => Ok((parent, Vec::new())),
        None => {
            let note = format!(
                "{} is a file system of its own, or what it lies in cannot be written: another \
                 disk than the repository's is measured.",
                folder.display()
            );
            Ok((own_disk(app)?, vec![note]))
        }
    }
}

/// The first usual place for what is temporary that lies on a disk.
fn own_disk(app: &App) -> Result<PathBuf> {
    app.folders.prepare_cache();
    let usual = [std::env::temp_dir(), PathBuf::from("/var/tmp")];
    let is_disk = |place: &PathBuf| holdall_sys::memory::is_ram_disk(place).is_ok_and(|ram| !ram);
    usual.into_iter().chain(app.folders.cache_to_work_in()).find(is_disk).ok_or_else(|| {
        Refusal::new(Exit::Failed, "no place to measure in: all usual ones lie in memory")
            .hint("name a folder on a disk in TMPDIR")
            .into()
    })
}
