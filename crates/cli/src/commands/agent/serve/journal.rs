//! The change journal and the runs that it tells what may have changed.

use std::io;
use std::path::{Path, PathBuf};

use holdall_agent::journal::{Answer, Walk};
use holdall_engine::{Changes, Place};
use holdall_state::AgentFiles;

/// Writes what a run is to look at into its file.
pub(super) fn answer(state: &Path) -> Answer {
    let files = AgentFiles::in_state(state);
    Box::new(move |walk| {
        let changes = changes(walk).map(|changes| changes.to_bytes()).unwrap_or_default();
        files.write_changes(&changes).map_err(io::Error::other)?;
        Ok("!".to_owned())
    })
}

/// What a run is to look at; nothing stands for everything.
fn changes(walk: &Walk) -> Option<Changes> {
    let Walk::Changes { since, places } = walk else { return None };
    let place = |(directory, is_deep): &(PathBuf, bool)| Place {
        directory: directory.clone(),
        is_deep: *is_deep,
    };
    Some(Changes { since: since.parse().ok()?, places: places.iter().map(place).collect() })
}
