//! All moments that can be reached, those first which are fewest actions away.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use crate::actions::{self, Action};
use crate::rules::Rules;
use crate::scene::Scene;
use crate::state::State;

/// About a gigabyte.
const MOST_STATES: usize = 3_000_000;

/// What a search came to.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Moments that were reached.
    pub(crate) states: usize,
    /// The fewest actions that lead to something wrong, and what that is.
    pub(crate) violation: Option<(Vec<Action>, String)>,
}

/// A moment, and which one it was first reached from.
#[derive(Debug, Clone, Copy)]
struct Reached {
    state: State,
    from: u32,
}

/// A hash for what nobody chose with an intent: the standard one takes half of the search's time.
#[derive(Debug, Default)]
struct Quick(u64);

impl Hasher for Quick {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0.rotate_left(5) ^ u64::from(*byte)).wrapping_mul(0x517c_c1b7_2722_0a95);
        }
    }

    fn write_isize(&mut self, number: isize) {
        // What an enum's variant is hashed as.
        self.write(&[number.to_le_bytes()[0]]);
    }
}

/// Tries everything until something is wrong or nothing is new.
pub(crate) fn search(
    scene: &Scene,
    rules: &Rules,
    wrong: impl Fn(&State) -> Option<String>,
) -> Outcome {
    search_within(usize::MAX, scene, rules, wrong)
}

/// Tries all that so many actions lead to, or fewer, until something is wrong or nothing is new.
pub(crate) fn search_within(
    most_actions: usize,
    scene: &Scene,
    rules: &Rules,
    wrong: impl Fn(&State) -> Option<String>,
) -> Outcome {
    let actions = scene.actions();
    let start = State::default();
    let mut reached = vec![Reached { state: start, from: 0 }];
    let mut seen = HashSet::<State, BuildHasherDefault<Quick>>::default();
    seen.insert(start);
    let mut at = 0;
    // How many actions lead to the moment that is looked at, and where those begin that take one more.
    let (mut done, mut further) = (0, 1);
    while let Some(&Reached { state, .. }) = reached.get(at) {
        if at == further {
            (done, further) = (done + 1, reached.len());
        }
        if done == most_actions {
            break;
        }
        for action in &actions {
            let Some(next) = actions::apply(&state, *action, rules) else { continue };
            if !scene.has_room(&next) || !seen.insert(next) {
                continue;
            }
            reached.push(Reached { state: next, from: u32::try_from(at).unwrap() });
            if let Some(what) = wrong(&next) {
                let trace = trace(&reached, &actions, rules);
                return Outcome { states: reached.len(), violation: Some((trace, what)) };
            }
        }
        at += 1;
        assert!(reached.len() < MOST_STATES, "more states than memory is meant for");
    }
    Outcome { states: reached.len(), violation: None }
}

/// The actions that led to the moment that was reached last.
fn trace(reached: &[Reached], actions: &[Action], rules: &Rules) -> Vec<Action> {
    let mut at = reached.len() - 1;
    let mut trace = Vec::new();
    while at > 0 {
        let (to, from) = (reached[at].state, reached[at].from as usize);
        let leads_there =
            |action: &&Action| actions::apply(&reached[from].state, **action, rules) == Some(to);
        trace.extend(actions.iter().find(leads_there));
        at = from;
    }
    trace.reverse();
    trace
}
