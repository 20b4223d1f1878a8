//! `holdall admin place`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use holdall_meter::{counted, size};
use holdall_server::admin::{AddPlace, DrainPlace, ListPlaces, PlaceEntry, Places, RemovePlace};

use super::ask;
use crate::app::App;
use crate::exit::Exit;
use crate::terminal::output::Shown;

/// Lets a server keep its backups on further disks
///
/// Backups arrive in the data folder, on a fast disk, and are acknowledged there. Within seconds what they brought is moved
/// to a storage place, on a large disk; what backups compare with and listings read stays in the data folder. Without the disks
/// of all places, nothing is lost and backups go on, but what lies there cannot be restored meanwhile.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples: holdall admin place list
          holdall admin place add large /mnt/large/holdall
          holdall admin place drain large          (moves everything out of it)
          holdall admin place remove large

The folder has to be on another disk, be empty and belong to the user of the server.

Exit codes: 0 done, 1 failed, such as for a folder in the data folder, 2 wrong usage")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Lists them, with their room
    #[command(after_help = "\
Example: holdall admin place list

Exit codes: 0 done, 1 failed, 2 wrong usage")]
    List,
    /// Adds one
    #[command(after_help = "\
Example: holdall admin place add large /mnt/large/holdall

Exit codes: 0 done, 1 failed, such as for a folder in the data folder, 2 wrong usage")]
    Add {
        /// What to call it
        #[arg(value_name = "NAME")]
        name: String,
        /// A folder on another disk
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// What it is for: backups are moved there
        #[arg(long, value_name = "ROLE", default_value = "storage")]
        role: Role,
    },
    /// Empties one: what lies in it is moved to the others, or into the data folder
    #[command(after_help = "\
Example: holdall admin place drain large

Exit codes: 0 begun, 1 failed, 2 wrong usage")]
    Drain {
        /// Its name
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Removes one that is empty
    #[command(after_help = "\
Example: holdall admin place remove large

Exit codes: 0 done, 1 failed, such as for one that is not empty, 2 wrong usage")]
    Remove {
        /// Its name
        #[arg(value_name = "NAME")]
        name: String,
    },
}

/// What a place is for.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Role {
    Storage,
}

pub(crate) fn run(args: &Args, data: &Path, app: &App) -> Result<Exit> {
    let Places { places, waiting } = match &args.verb {
        Verb::List => {
            let places = ask(data, &ListPlaces {})?;
            if places.places.is_empty() {
                app.output.say("no place: backups stay in the data folder")?;
            }
            places
        }
        Verb::Add { name, folder, role: Role::Storage } => {
            let folder = std::path::absolute(folder).context("no such folder")?;
            let folder = folder.to_str().context("a place's folder has a name in UTF-8")?;
            ask(data, &AddPlace { name: name.clone(), folder: folder.to_owned() })?
        }
        Verb::Drain { name } => ask(data, &DrainPlace { name: name.clone() })?,
        Verb::Remove { name } => ask(data, &RemovePlace { name: name.clone() })?,
    };
    places.iter().try_for_each(|place| show(app, place))?;
    waiting.iter().for_each(|waits| app.output.note(Shown(waits.as_bytes())));
    Ok(Exit::Done)
}

fn show(app: &App, place: &PlaceEntry) -> Result<()> {
    app.output.object("place", place)?;
    let state = match (place.is_there, place.is_draining) {
        (false, _) => "its disk is not there",
        (true, true) => "being emptied",
        (true, false) => "in use",
    };
    let free = place.free_bytes.map(|bytes| format!(", {} left", size(bytes))).unwrap_or_default();
    let (name, folder) = (Shown(place.name.as_bytes()), Shown(place.folder.as_bytes()));
    let packs = counted(place.packs as u64, "pack");
    Ok(app.output.result(format_args!("{name}  {folder}  {state}, {packs}{free}"))?)
}
