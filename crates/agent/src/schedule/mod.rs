//! The agent's decisions: given the plan, the clock and what happened, what is to be done now, or until when nothing is.
//!
//! It has no clock, no files and no processes of its own. Whoever drives it reports what happened, with the time, and then
//! asks [`Scheduler::next`] until that says to wait. So a test drives weeks of a laptop's life in a moment.
//!
//! ```text
//!              due, and nothing holds it              ended
//!   waiting ─────────────────────────────> running ──────────> waiting for the schedule, or to try again
//!      ^                                      │
//!      └──────── stopped by a hold ───────────┘   (a pause, an empty battery, another network: still due)
//! ```
//!
//! A set is due at the first moment of its schedule after its last run, later by a random delay. However many moments were
//! missed, by a computer that was off or asleep, one run makes up for them. One set runs at a time.

mod ending;
mod measuring;
mod notice;
mod outlook;
mod random_delay;

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::conditions::{Conditions, Hold};
use crate::plan::{Plan, PlannedSet};
use crate::state::{Cause, Pause, SetState, State, later};
pub use ending::Ending;
use ending::{INTERRUPTED, LONGEST_RETRY, UNREACHABLE};
pub use notice::Notice;
use random_delay::random_delay;

/// How long the network has to come back after a start or a sleep.
const SETTLING: Duration = Duration::from_secs(30);
/// How long a network is given that just changed.
const NETWORK_SETTLING: Duration = Duration::from_secs(5);

/// What is to be done now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Start a run, and report how it ended.
    Start {
        /// The set.
        set: String,
        /// Whether it is to use little of the line.
        slow: bool,
    },
    /// Measure disk and network in a few seconds, and report that it ended.
    Measure,
    /// End what goes on, and report how it ended.
    Stop(Hold),
    /// Tell the user.
    Tell(Notice),
    /// Nothing before that moment, or before something happens.
    Wait(Option<Timestamp>),
}

/// What goes on.
struct Running {
    /// The set that is backed up; none while disk and network are measured.
    set: Option<String>,
    stopped_by: Option<Hold>,
}

/// When a set is due, and why then.
#[derive(Clone, Copy)]
struct Due {
    at: Timestamp,
    cause: Cause,
}

/// Decides what is done when.
pub struct Scheduler {
    plan: Plan,
    zone: TimeZone,
    state: State,
    conditions: Conditions,
    pause: Option<Pause>,
    /// Whether a backup that begins now can read its settings.
    can_read_settings: bool,
    settled_at: Timestamp,
    running: Option<Running>,
    untold: Vec<Notice>,
}

impl Scheduler {
    /// Begins with what was remembered.
    #[must_use]
    pub fn new(state: State, zone: TimeZone, now: Timestamp) -> Self {
        Self {
            plan: Plan::default(),
            zone,
            state,
            conditions: Conditions::default(),
            pause: None,
            can_read_settings: true,
            settled_at: later(now, SETTLING),
            running: None,
            untold: Vec::new(),
        }
    }

    /// Follows another plan from now on. What is remembered of sets that it lacks stays: the settings may just be in the
    /// making.
    pub fn follow(&mut self, plan: Plan, now: Timestamp) {
        for set in &plan.sets {
            self.state.sets.entry(set.name.clone()).or_insert_with(|| SetState::new(now));
        }
        self.plan = plan;
    }

    /// The computer is like that from now on. What failed for want of a network is tried again on another one.
    pub fn conditions_are(&mut self, conditions: Conditions, now: Timestamp) {
        if conditions.connection != self.conditions.connection {
            let unreachable = |set: &&mut SetState| set.exit_code == Some(UNREACHABLE);
            for set in self.state.sets.values_mut().filter(unreachable) {
                let soon = later(now, NETWORK_SETTLING);
                set.retry_at = set.retry_at.map(|retry_at| retry_at.min(soon));
            }
        }
        self.conditions = conditions;
    }

    /// The user paused the agent, or resumed it.
    pub fn pause_is(&mut self, pause: Option<Pause>) {
        self.pause = pause;
    }

    /// The settings can be understood, or not. Nothing begins until they can; what goes on has read them.
    pub fn settings_are(&mut self, can_be_read: bool) {
        self.can_read_settings = can_be_read;
    }

    /// The computer woke up.
    pub fn woke_up(&mut self, now: Timestamp) {
        self.settled_at = later(now, SETTLING);
    }

    /// What went on has ended.
    pub fn ended(&mut self, ending: Ending, now: Timestamp) {
        let Some(running) = self.running.take() else { return };
        let Some(set) = running.set else { return };
        let Some(state) = self.state.sets.get_mut(&set) else { return };
        let stopped = running.stopped_by.filter(|_| ending.exit_code == Some(INTERRUPTED));
        state.ended = Some(now);
        state.exit_code = ending.exit_code;
        state.message.clone_from(&ending.message);
        state.retry_at = None;
        if stopped.is_some() {
            state.stopped_by = stopped;
            return;
        }
        state.served = Some(now);
        if ending.made_snapshot() {
            (state.last_good, state.warned, state.failures) = (Some(now), None, 0);
        } else {
            state.failures = state.failures.saturating_add(1);
            state.retry_at = ending.retry_after(state.failures).map(|wait| later(now, wait));
        }
        if ending.is_good() {
            state.failures_told.clear();
        } else if !ending.is_passing() && state.failures_told.insert(ending.exit_code) {
            self.untold.push(Notice::Failed { set, ending });
        }
    }

    /// What is to be done now. Ask again until it says to wait, and whenever something happened.
    pub fn next(&mut self, now: Timestamp) -> Step {
        self.state.forget_future(now, LONGEST_RETRY);
        self.settled_at = self.settled_at.min(later(now, SETTLING));
        if let Some(notice) = self.untold.pop() {
            return Step::Tell(notice);
        }
        if self.running.is_some() {
            return self.next_while_running(now);
        }
        if let Some(set) = self.ready(now) {
            return self.start(&set, now);
        }
        if let Some(notice) = self.overdue(now) {
            return Step::Tell(notice);
        }
        match self.measuring_at(now) {
            Some(at) if at <= now => self.measure(now),
            _ => Step::Wait(self.next_moment(now)),
        }
    }

    /// What is remembered.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// What the computer is like.
    #[must_use]
    pub fn conditions(&self) -> &Conditions {
        &self.conditions
    }

    fn next_while_running(&mut self, now: Timestamp) -> Step {
        let going_on = self.running.as_ref().filter(|running| running.stopped_by.is_none());
        let set = going_on.and_then(|running| self.planned(running.set.as_ref()?));
        let ends_it = |hold: &Hold| !matches!(hold, Hold::Settling | Hold::Settings);
        match set.and_then(|set| self.hold(set, now)).filter(ends_it) {
            Some(hold) => {
                if let Some(running) = &mut self.running {
                    running.stopped_by = Some(hold.clone());
                }
                Step::Stop(hold)
            }
            None => Step::Wait(None),
        }
    }

    fn start(&mut self, set: &PlannedSet, now: Timestamp) -> Step {
        if let Some(state) = self.state.sets.get_mut(&set.name) {
            state.started = Some(now);
            state.stopped_by = None;
        }
        self.running = Some(Running { set: Some(set.name.clone()), stopped_by: None });
        let slow = self.conditions.is_slow(&self.plan.manners, set);
        Step::Start { set: set.name.clone(), slow }
    }

    /// The set that has been due for longest of those that nothing holds.
    fn ready(&self, now: Timestamp) -> Option<PlannedSet> {
        let due = self.plan.sets.iter().filter_map(|set| Some((self.due(set)?.at, set)));
        let ready = due.filter(|(at, set)| *at <= now && self.hold(set, now).is_none());
        ready.min_by_key(|(at, _)| *at).map(|(_, set)| set.clone())
    }

    /// When a set is due next; `None` of one that only a person starts.
    fn due(&self, set: &PlannedSet) -> Option<Due> {
        set.schedule.calendar()?;
        let state = self.state.sets.get(&set.name)?;
        let planned = match state.served {
            None => Some(Due { at: self.delayed(set, state.known_since), cause: Cause::First }),
            Some(served) => self.due_after(set, served),
        };
        let retry = state.retry_at.map(|at| Due { at, cause: Cause::Retry });
        [planned, retry].into_iter().flatten().min_by_key(|due| due.at)
    }

    /// When a set is due next by its schedule, if that was followed up to then.
    fn due_after(&self, set: &PlannedSet, served: Timestamp) -> Option<Due> {
        let planned = set.schedule.calendar()?.next_after(served, &self.zone)?;
        Some(Due { at: self.delayed(set, planned), cause: Cause::Schedule })
    }

    fn delayed(&self, set: &PlannedSet, planned: Timestamp) -> Timestamp {
        let most = self.plan.manners.random_delay;
        later(planned, random_delay(self.state.seed, &set.name, planned, most))
    }

    /// What keeps a set from being backed up at that moment.
    fn hold(&self, set: &PlannedSet, now: Timestamp) -> Option<Hold> {
        let is_over = |pause: &Pause| pause.until.is_some_and(|until| until <= now);
        let paused = self.pause.filter(|pause| !is_over(pause));
        let paused = paused.map(|pause| Hold::Paused { until: pause.until });
        let unread = || (!self.can_read_settings).then_some(Hold::Settings);
        let settling = || (now < self.settled_at && set.uses_network).then_some(Hold::Settling);
        let conditions = || self.conditions.hold(&self.plan.manners, set);
        paused.or_else(unread).or_else(conditions).or_else(settling)
    }

    /// The next moment at which there may be something to do, though nothing happens until then.
    fn next_moment(&self, now: Timestamp) -> Option<Timestamp> {
        let of_set = |set: &PlannedSet| {
            let due = self.due(set)?.at;
            let next = match self.hold(set, now.max(due)) {
                None => Some(due),
                Some(Hold::Settling) => Some(self.settled_at),
                Some(Hold::Paused { until }) => until,
                Some(_) => None,
            };
            [next, self.overdue_at(set, now)].into_iter().flatten().min()
        };
        self.plan.sets.iter().filter_map(of_set).chain(self.measuring_at(now)).min()
    }

    fn planned(&self, name: &str) -> Option<&PlannedSet> {
        self.plan.sets.iter().find(|set| set.name == name)
    }
}
