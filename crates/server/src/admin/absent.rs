//! Machines of which nothing was heard for long, told to the log once a day: a backup that no longer runs tells nobody.

use std::time::Duration;

use super::administration::Administration;
use crate::ServerError;
use crate::accounts::MachineEntry;

/// So long a machine is away before it is told of.
const ABSENT_FOR: Duration = Duration::from_secs(7 * 24 * 3600);
const DAY_NS: i64 = 24 * 3600 * 1_000_000_000;

impl Administration<'_> {
    /// Tells of machines that are away, unless that was told within a day.
    pub(super) fn tell_absent(&self) -> Result<(), ServerError> {
        let now_ns = self.stores.now_ns();
        let mut machines = self.accounts.machines();
        machines.retain(|machine| !machine.revoked && machine.is_absent(ABSENT_FOR, now_ns));
        if machines.is_empty() || !self.accounts.is_due_again("told of absent", now_ns, DAY_NS)? {
            return Ok(());
        }
        let away = |machine: &MachineEntry| match machine.last_seen_ns {
            Some(last_ns) => format!("{} ({} days)", machine.name, (now_ns - last_ns) / DAY_NS),
            None => format!("{} (never)", machine.name),
        };
        let names: Vec<_> = machines.iter().map(away).collect();
        self.log(&format!(
            "not here for a week or longer: {}; `holdall admin machines --absent-for 7d`",
            names.join(", ")
        ));
        Ok(())
    }
}
