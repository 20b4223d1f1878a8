//! What may happen to a repository's folder: the power is cut at any moment, and any bit rots.
//!
//! The states are made by `holdall_testkit::disk` from what a real process did, and each is opened and
//! held against what was acknowledged. `HOLDALL_POWER_STATES` says how many states of a power cut there
//! are in all slices together, and `HOLDALL_ROTS` how much happens to files at least. What fails is printed
//! with its seed, which `HOLDALL_POWER_SEED` repeats.
#![expect(clippy::unwrap_used, reason = "an unexpected error is a failed test")]
#![expect(clippy::print_stdout, reason = "how many states there were is a figure to publish")]

mod machine;
mod oracle;
mod plan;
mod power;
mod rot;
mod script;

use std::path::Path;
use std::process::Command;

use holdall_testkit::{History, Image, Watch};

use script::Place;

/// A place for a script, with what is found there.
fn place(folder: &Path, image: &Image, said: &str) -> (Place, History) {
    let place = Place { folder: folder.to_owned() };
    image.lay_down(&place.disk()).unwrap();
    std::fs::write(place.notes(), said).unwrap();
    let history = History::new(&place.disk(), &place.notes(), image, said);
    (place, history)
}

/// Runs the script in a process of its own, which strace watches; killed at some call or not.
fn watching(
    place: &Place,
    seed: u64,
    rounds: u32,
    history: &mut History,
    killed_at: Option<(&str, u32)>,
) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "script::a_script_that_nothing_interrupts_is_all_there"]);
    command.env("HOLDALL_POWER_PLACE", &place.folder);
    command.env("HOLDALL_POWER_SEED", seed.to_string());
    command.env("HOLDALL_POWER_ROUNDS", rounds.to_string());
    let watch = Watch::new(&place.folder.join("trace"));
    let output = watch.run(&command, history, killed_at).unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() || killed_at.is_some(), "seed {seed}: {said}");
    let folder = Image::read(&place.disk()).unwrap();
    assert!(history.last() == folder, "seed {seed}: the model is not the disk");
}

/// Fails with some of what failed.
fn assert_none(failed: &[String], of: usize) {
    let some: Vec<&String> = failed.iter().step_by(failed.len().div_ceil(8).max(1)).collect();
    assert!(failed.is_empty(), "{} of {of} states: {some:#?}", failed.len());
}
