//! The clock, as everything in a server reads it: beside what was noted of it.
//!
//! What is received and what is asked for has its time by the clock, and goes for its age. So whoever asks
//! what time it is also looks whether the clock was set, and that is noted before the time is told.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdall_repository::EARLIEST_NS;
use holdall_sys::Clock;

use super::database::Database;
use crate::ServerError;
use crate::clock_trust::{Noted, Shown};

const SETTING: &str = "clock";

/// A clock, and what was noted of it. Of the time that passed it counts what certainly did.
pub(super) struct WatchedClock {
    clock: Arc<dyn Clock>,
    database: Arc<Database>,
    /// What was noted last; `None` until this process has looked.
    noted: Mutex<Option<Noted>>,
}

impl WatchedClock {
    pub(super) fn new(clock: Arc<dyn Clock>, database: Arc<Database>) -> Self {
        Self { clock, database, noted: Mutex::default() }
    }

    /// Notes what it shows; tells whether it can be believed.
    pub(super) fn look(&self) -> Result<Noted, ServerError> {
        let mut noted = self.noted();
        let shown = self.shown();
        if shown.now_ns < EARLIEST_NS {
            return Ok(Noted::not_set(shown));
        }
        let before = match &*noted {
            None => self.stored()?,
            known => known.clone(),
        };
        let after = noted.insert(Noted::after(before, shown)).clone();
        // It counts here whether or not the disk takes it.
        let text = serde_json::to_string(&after).unwrap_or_default();
        self.database.put_setting(SETTING, &text)?;
        Ok(after)
    }

    fn shown(&self) -> Shown {
        let (now_ns, running_ns) = (self.clock.now_ns(), self.clock.running_ns());
        Shown { now_ns, running_ns, boot_id: self.clock.boot_id() }
    }

    /// What another process noted.
    fn stored(&self) -> Result<Option<Noted>, ServerError> {
        let text = self.database.setting(SETTING)?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }

    fn noted(&self) -> MutexGuard<'_, Option<Noted>> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for WatchedClock {
    fn now_ns(&self) -> i64 {
        let (now_ns, running_ns) = (self.clock.now_ns(), self.clock.running_ns());
        let is_even = self.noted().as_ref().is_some_and(|noted| noted.is_even(now_ns, running_ns));
        if !is_even {
            // Where it cannot be made durable now, the next look tries again.
            let _ = self.look();
        }
        now_ns
    }

    fn running_ns(&self) -> i64 {
        self.clock.running_ns()
    }

    fn boot_id(&self) -> Option<String> {
        self.clock.boot_id()
    }

    fn passed_ns(&self, since_ns: i64) -> i64 {
        let now_ns = self.now_ns();
        if since_ns < EARLIEST_NS {
            // Nobody knows when that was.
            return 0;
        }
        self.noted().as_ref().map_or(0, |noted| noted.passed_ns(since_ns, now_ns))
    }
}
