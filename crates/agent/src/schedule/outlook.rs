//! What comes next for each set, for people who ask.

use jiff::Timestamp;

use super::{Running, Scheduler};
use crate::conditions::Hold;
use crate::plan::PlannedSet;
use crate::state::Outlook;

impl Scheduler {
    /// What comes next for each set, in the order of the plan.
    #[must_use]
    pub fn outlook(&self, now: Timestamp) -> Vec<Outlook> {
        self.plan.sets.iter().map(|set| self.outlook_of(set, now)).collect()
    }

    fn outlook_of(&self, set: &PlannedSet, now: Timestamp) -> Outlook {
        let busy_with = self.running.as_ref().and_then(|Running { set, .. }| set.as_ref());
        let is_running = busy_with == Some(&set.name);
        let due = if is_running { self.due_after(set, now) } else { self.due(set) };
        let is_due = due.is_some_and(|due| due.at <= now);
        let busy = || Some(Hold::Busy { set: busy_with.filter(|_| is_due)?.clone() });
        let hold = due.and_then(|_| self.hold(set, now).or_else(busy));
        Outlook {
            set: set.name.clone(),
            schedule: set.schedule.to_string(),
            is_running,
            next: due.map(|due| due.at),
            cause: due.map(|due| due.cause),
            hold: hold.filter(|_| !is_running),
        }
    }
}
