//! A model of sessions, commits, condemning and sweeping, of which every state is visited.
//!
//! The random histories of `it/pruning.rs` play the real code and see some orders of what happens.
//! This sees all orders, of something that is small enough for it. It knows nothing of the real code:
//! where docs/concurrency.md changes, `actions.rs` has to follow by hand.
//!
//! `cargo xtask test -p holdall-repository --test model --no-capture` prints the number of states of each
//! scene, and for each planted bug the fewest actions that lead to a loss.
#![expect(clippy::unwrap_used, reason = "what cannot be is a failed test")]

mod actions;
mod bugs;
mod rules;
mod scene;
mod search;
mod state;

use rules::Rules;
use scene::Scene;
use state::State;

/// Visits all states of a scene under the right rules; says how many there are.
fn visit(scene: &Scene) -> usize {
    let half_closed = |state: &State| {
        let node = state.half_closed()?;
        Some(format!("{} is closed, and what it refers to is not", state::NAMES[node]))
    };
    let outcome = search::search(scene, &Rules::RIGHT, |state: &State| {
        state.violation().or_else(|| half_closed(state))
    });
    assert_eq!(outcome.violation, None);
    outcome.states
}

#[test]
fn nothing_is_lost_where_one_client_dies_sleeps_and_restores_and_the_keeper_crashes() {
    let states = visit(&scene::ALONE);
    println!("{states} states");
    assert_eq!(states, 838_366);
}

#[test]
fn nothing_is_lost_where_two_clients_share_what_they_put() {
    let states = visit(&scene::TWO);
    println!("{states} states");
    assert_eq!(states, 1_230_411);
}

#[test]
fn nothing_is_lost_where_two_clients_go_on_from_forgotten_snapshots() {
    let states = visit(&scene::TWO_WITH_PARENTS);
    println!("{states} states");
    assert_eq!(states, 1_577_009);
}

#[test]
fn nothing_is_lost_where_blocks_give_way_to_others() {
    let states = visit(&scene::COMPACTING);
    println!("{states} states");
    assert_eq!(states, 539_328);
}

/// Without this, what is lost under those rules and a bug would not show that it is by the bug.
#[test]
fn nothing_is_lost_by_a_keeper_that_checks_no_commit_and_is_held_to_more() {
    for (scene, states) in [(&bugs::PARENTS, 47_801), (&bugs::PLAIN, 44_227)] {
        let outcome = search::search(scene, &bugs::UNCHECKED, State::violation);
        assert_eq!(outcome.violation, None);
        assert_eq!(outcome.states, states);
    }
}

#[test]
fn every_planted_bug_is_found_and_without_it_nothing_within_as_many_actions() {
    for bug in bugs::BUGS {
        let outcome = search::search(&bug.scene, &bug.rules(), State::violation);
        let Some((trace, what)) = outcome.violation else {
            panic!("{} is not found in {} states", bug.name, outcome.states)
        };
        println!("{}: {what} after {} actions", bug.name, trace.len());
        trace.iter().for_each(|action| println!("    {action:?}"));
        let without = search::search_within(trace.len(), &bug.scene, &bug.base, State::violation);
        assert_eq!(without.violation, None, "found without {}", bug.name);
    }
}
