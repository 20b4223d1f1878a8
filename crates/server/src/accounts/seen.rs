//! When machines were here last: kept in memory with every request, and now and then on disk.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use holdall_format::MachineId;

use super::Accounts;
use crate::ServerError;

/// It is written down again after this long, not with every request.
const NOTE_NS: i64 = 60 * 1_000_000_000;

#[derive(Debug, Clone, Copy)]
struct Times {
    last_ns: i64,
    /// The last time that is on disk.
    noted_ns: i64,
}

/// When each machine last asked for something.
#[derive(Debug, Default)]
pub(super) struct Seen {
    times: Mutex<HashMap<MachineId, Times>>,
}

impl Seen {
    /// What is on disk.
    pub(super) fn of_noted(noted: impl Iterator<Item = (MachineId, i64)>) -> Self {
        let times = |last_ns| Times { last_ns, noted_ns: last_ns };
        Self { times: Mutex::new(noted.map(|(id, ns)| (id, times(ns))).collect()) }
    }

    pub(super) fn last_ns(&self, machine: &MachineId) -> Option<i64> {
        self.lock().get(machine).map(|times| times.last_ns)
    }

    /// Remembers that a machine is here, and tells whether that is to be written down.
    fn now(&self, machine: MachineId, now_ns: i64) -> bool {
        let mut all = self.lock();
        let fresh = Times { last_ns: now_ns, noted_ns: i64::MIN };
        let times = all.entry(machine).or_insert(fresh);
        times.last_ns = now_ns;
        // A clock that was set back counts as much time.
        let is_due = now_ns.saturating_sub(times.noted_ns).unsigned_abs() >= NOTE_NS as u64;
        if is_due {
            times.noted_ns = now_ns;
        }
        is_due
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<MachineId, Times>> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Accounts {
    /// Whether something that is done every so often is due; then it counts as done.
    pub(crate) fn is_due_again(
        &self,
        what: &str,
        now_ns: i64,
        every_ns: i64,
    ) -> Result<bool, ServerError> {
        let last_ns = self.database.setting(what)?.and_then(|last| last.parse::<i64>().ok());
        let is_due = |last_ns: i64| !(0..every_ns).contains(&now_ns.saturating_sub(last_ns));
        let is_due = last_ns.is_none_or(is_due);
        if is_due {
            self.database.put_setting(what, &now_ns.to_string())?;
        }
        Ok(is_due)
    }

    /// Remembers that a machine asked for something; a recovery kit is none.
    pub(crate) fn saw(&self, machine: MachineId) -> Result<(), ServerError> {
        let now_ns = self.now_ns();
        let is_known = self.state().machines.contains_key(&machine);
        match is_known && self.seen.now(machine, now_ns) {
            true => self.database.change(|changes| changes.put_seen(&machine, now_ns)),
            false => Ok(()),
        }
    }
}
