//! The power is cut at every moment of a script, and the disk keeps as little as it may: what was
//! acknowledged is there all the same, nothing else is, nothing is called damaged, and it goes on.
//!
//! A real process is watched with strace, `holdall_testkit::disk` makes the states, and each is opened
//! as after a reboot. `HOLDALL_POWER_STATES` says how many states there are at least; one that fails is
//! printed with its seed, which `HOLDALL_POWER_SEED` repeats.

#![expect(clippy::unwrap_used, reason = "an unexpected error is a failed test")]
#![expect(clippy::disallowed_methods, reason = "a test is told by the environment how long it is")]
#![expect(clippy::print_stdout, reason = "how many states there were is a figure to publish")]

mod machine;
mod oracle;
mod plan;
mod script;

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use holdall_testkit::{History, Image, Moment, Random, Watch, choices};

use oracle::Expected;
use plan::{Step, plan};
use script::Place;

/// Backups in a script.
const ROUNDS: u32 = 4;
const STATES: u64 = 10_000;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().unwrap())
}

/// One test at a time: a process that is started while another test has a repository open keeps its
/// lock for a moment.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A folder in memory where there is one: nothing of it has to outlive the test.
fn memory() -> tempfile::TempDir {
    let shared = Path::new("/dev/shm");
    tempfile::tempdir_in(if shared.is_dir() { shared } else { Path::new("/tmp") }).unwrap()
}

/// A place for a script, with what is found there.
fn place(folder: &Path, image: &Image, said: &str) -> (Place, History) {
    let place = Place { folder: folder.to_owned() };
    image.lay_down(&place.disk()).unwrap();
    std::fs::write(place.notes(), said).unwrap();
    let history = History::new(&place.disk(), &place.notes(), image, said);
    (place, history)
}

/// Runs the script in a process of its own, which strace watches; killed at some call or not.
fn watching(place: &Place, seed: u64, history: &mut History, killed_at: Option<(&str, u32)>) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "script::a_script_that_nothing_interrupts_is_all_there"]);
    command.env("HOLDALL_POWER_PLACE", &place.folder);
    command.env("HOLDALL_POWER_SEED", seed.to_string());
    let watch = Watch::new(&place.folder.join("trace"));
    let output = watch.run(&command, history, killed_at).unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() || killed_at.is_some(), "seed {seed}: {said}");
    let folder = Image::read(&place.disk()).unwrap();
    assert!(history.last() == folder, "seed {seed}: the model is not the disk");
}

/// A state that is to be checked.
struct State {
    image: Image,
    said: String,
    what: String,
}

/// States of a history, no two alike.
fn states(history: &History, seed: u64, share: usize) -> Vec<State> {
    let mut random = Random::new(seed);
    let mut seen = HashSet::new();
    let mut states = Vec::new();
    let moments: Vec<Moment<'_>> = history.moments().collect();
    let more = share / moments.len().max(1);
    for (number, moment) in moments.iter().enumerate() {
        for choice in choices(history, *moment, &mut random, more) {
            let image = history.image(*moment, &choice);
            let mut hasher = DefaultHasher::new();
            (&image, moment.said.len()).hash(&mut hasher);
            if seen.insert(hasher.finish()) {
                let what = format!("seed {seed}, moment {number}, {choice:?}");
                states.push(State { image, said: moment.said.to_owned(), what });
            }
        }
    }
    states
}

/// Checks all states, on as many threads as there are cores; returns those that fail.
fn failing(plan: &[Step], states: &[State]) -> Vec<String> {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(state) = states.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let folder = memory();
                    let disk: PathBuf = folder.path().join("disk");
                    state.image.lay_down(&disk).unwrap();
                    if let Err(reason) = Expected::after(plan, &state.said).check(&disk) {
                        failed.lock().unwrap().push(format!("{reason}\n  {}", state.what));
                    }
                }
            });
        }
    });
    failed.into_inner().unwrap()
}

fn assert_none(failed: &[String], of: usize) {
    let first: Vec<&String> = failed.iter().step_by(failed.len().div_ceil(8).max(1)).collect();
    assert!(failed.is_empty(), "{} of {of} states: {first:#?}", failed.len());
}

/// A test that checks states until there are enough of them: those of one seed, then of the next.
fn check_until(share: u64, states_of: impl Fn(&Path, u64, usize) -> Vec<State>) {
    let _turn = turn();
    let wanted = (setting("HOLDALL_POWER_STATES", STATES) / share) as usize;
    let mut seed = setting("HOLDALL_POWER_SEED", 1);
    let mut checked = 0;
    while checked < wanted {
        let folder = memory();
        let mut states = states_of(folder.path(), seed, wanted - checked);
        states.truncate(wanted - checked);
        assert_none(&failing(&plan(seed, ROUNDS), &states), states.len());
        checked += states.len();
        seed += 1;
    }
    println!("{checked} states");
}

#[test]
fn whenever_the_power_is_cut_nothing_acknowledged_is_lost() {
    check_until(2, |folder, seed, wanted| {
        let (place, mut history) = place(folder, &Image::default(), "");
        watching(&place, seed, &mut history, None);
        states(&history, seed, wanted)
    });
}

#[test]
fn what_a_killed_process_left_is_no_more_durable_than_it_made_it() {
    const CALLS: [&str; 6] = ["fsync", "fdatasync", "renameat2", "unlink", "pwrite64", "mkdir"];
    check_until(4, |folder, seed, wanted| {
        let (place, mut history) = place(folder, &Image::default(), "");
        let mut random = Random::new(seed);
        for call in CALLS {
            let times = 1 + random.below(12) as u32;
            watching(&place, seed, &mut history, Some((call, times)));
        }
        watching(&place, seed, &mut history, None);
        states(&history, seed, wanted)
    });
}

#[test]
fn a_power_cut_during_the_start_after_a_power_cut_takes_nothing_either() {
    /// So many first states are gone on from.
    const FIRST: usize = 24;
    check_until(4, |folder, seed, wanted| {
        let (first, mut history) = place(&folder.join("first"), &Image::default(), "");
        watching(&first, seed, &mut history, None);
        let begun = states(&history, seed, 0);
        let mut random = Random::new(seed);
        let mut found = Vec::new();
        for number in 0..FIRST {
            let state = &begun[random.index(begun.len())];
            let folder = folder.join(number.to_string());
            let (place, mut history) = place(&folder, &state.image, &state.said);
            watching(&place, seed, &mut history, None);
            found.extend(states(&history, seed, 0).into_iter().take(wanted.div_ceil(FIRST)));
        }
        found
    });
}
