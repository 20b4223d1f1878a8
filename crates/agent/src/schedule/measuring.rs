//! When disk and network are measured, so that their history is there on the day when a backup is slow: once a day, and
//! where the network is another one.

use std::time::Duration;

use jiff::Timestamp;

use super::{Running, Scheduler, Step};
use crate::plan::PlannedSet;
use crate::state::later;

/// How often it is measured, wherever the computer is.
const EACH: Duration = Duration::from_hours(24);
/// How often at most, wherever it goes.
const AT_MOST_EACH: Duration = Duration::from_hours(1);

impl Scheduler {
    /// When to measure next, if nothing is backed up then; `None` while something holds what goes to a server, or nothing
    /// does.
    pub(super) fn measuring_at(&self, now: Timestamp) -> Option<Timestamp> {
        let by_network = |set: &&PlannedSet| set.uses_network && set.schedule.calendar().is_some();
        let set = self.plan.sets.iter().find(by_network)?;
        let here = self.conditions.connection.as_ref().filter(|name| !name.is_empty());
        let is_elsewhere = here.is_some() && here != self.state.measured_on.as_ref();
        let each = if is_elsewhere { AT_MOST_EACH } else { EACH };
        let at = self.state.measured.map_or(now, |measured| later(measured, each));
        let at = at.max(self.settled_at);
        self.hold(set, at.max(now)).is_none().then_some(at)
    }

    pub(super) fn measure(&mut self, now: Timestamp) -> Step {
        self.state.measured = Some(now);
        self.state.measured_on.clone_from(&self.conditions.connection);
        self.running = Some(Running { set: None, stopped_by: None });
        Step::Measure
    }
}
