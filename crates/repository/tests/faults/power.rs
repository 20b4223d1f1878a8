//! The power is cut at every moment of a script, and the disk keeps as little as it may: what was
//! acknowledged is there all the same, nothing else is, nothing is called damaged, and it goes on.
//!
//! A real process is watched with strace. It may have been killed and started again before, or have
//! started after another power cut.

use std::path::Path;

use holdall_testkit::{Image, Random, Slice, State, failing, has_strace, memory, setting, states};

use crate::oracle::Expected;
use crate::plan::{Step, plan};
use crate::{assert_none, place, watching};

/// Backups in a script.
pub(crate) const ROUNDS: u32 = 4;
const STATES: u64 = 10_000;
/// A change meets one state in so many, of a script of its own.
const SLICES: u64 = 8;

/// Checks all states; returns those that fail.
fn check_all(plan: &[Step], states: &[State]) -> Vec<String> {
    failing(states, |state, folder| {
        let disk = folder.join("disk");
        state.image.lay_down(&disk).unwrap();
        let checked = Expected::after(plan, &state.said).check(&disk);
        std::fs::remove_dir_all(&disk).unwrap();
        checked.map_err(|reason| format!("{reason}\n  {}", state.what))
    })
}

/// At most so many of these, from the first to the last: of a script of which there are more states than
/// are wanted, the end is cut as well.
fn spread(states: Vec<State>, most: usize) -> Vec<State> {
    let there = states.len();
    let is_taken = |number: usize| number * most / there != (number + 1) * most / there;
    let taken =
        states.into_iter().enumerate().filter(|(number, _)| there <= most || is_taken(*number));
    taken.map(|(_, state)| state).collect()
}

/// A test that checks states until there are enough of them: those of one seed, then of the next.
fn check_until(slice: Slice, share: u64, states_of: impl Fn(&Path, u64, usize) -> Vec<State>) {
    if !has_strace() {
        return;
    }
    let wanted = slice.share(setting("HOLDALL_POWER_STATES", STATES) / share) as usize;
    let mut seed = setting("HOLDALL_POWER_SEED", slice.seed(1));
    let mut checked = 0;
    while checked < wanted {
        let folder = memory().unwrap();
        let all = states_of(folder.path(), seed, wanted - checked);
        let there = all.len();
        let states = spread(all, wanted - checked);
        println!("seed {seed}: {} of {there} states", states.len());
        assert_none(&check_all(&plan(seed, ROUNDS), &states), states.len());
        checked += states.len();
        seed = seed.wrapping_add(1);
    }
    println!("{checked} states");
}

#[test]
fn whenever_the_power_is_cut_nothing_acknowledged_is_lost() {
    check_until(Slice::one_in(SLICES), 2, |folder, seed, wanted| {
        let (place, mut history) = place(folder, &Image::default(), "");
        watching(&place, seed, ROUNDS, &mut history, None);
        states(&history, seed, wanted)
    });
}

#[test]
fn what_a_killed_process_left_is_no_more_durable_than_it_made_it() {
    const CALLS: [&str; 6] = ["fsync", "fdatasync", "renameat2", "unlink", "pwrite64", "mkdir"];
    check_until(Slice::one_in(SLICES), 4, |folder, seed, wanted| {
        let (place, mut history) = place(folder, &Image::default(), "");
        let mut random = Random::new(seed);
        for call in CALLS {
            let times = 1 + random.below(12) as u32;
            watching(&place, seed, ROUNDS, &mut history, Some((call, times)));
        }
        watching(&place, seed, ROUNDS, &mut history, None);
        states(&history, seed, wanted)
    });
}

#[test]
fn a_power_cut_during_the_start_after_a_power_cut_takes_nothing_either() {
    /// So many first states are gone on from.
    const FIRST: u64 = 24;
    let slice = Slice::one_in(SLICES);
    let first_states = slice.share(FIRST) as usize;
    check_until(slice, 4, |folder, seed, wanted| {
        let (first, mut history) = place(&folder.join("first"), &Image::default(), "");
        watching(&first, seed, ROUNDS, &mut history, None);
        let begun = states(&history, seed, 0);
        let mut random = Random::new(seed);
        let mut found = Vec::new();
        for number in 0..first_states {
            let state = &begun[random.index(begun.len())];
            let folder = folder.join(number.to_string());
            let (place, mut history) = place(&folder, &state.image, &state.said);
            watching(&place, seed, ROUNDS, &mut history, None);
            found.extend(spread(states(&history, seed, 0), wanted.div_ceil(first_states)));
        }
        found
    });
}
