//! Group commit: many writers append to one file, and one fsync makes all of it durable.
//!
//! Whoever needs durability first leads: it syncs everything appended so far, for itself and for
//! all who wait. Those who came while it was syncing wait for the next leader. A sync that failed
//! fails everybody, for good: the file is to be abandoned, since a second fsync may lie.

use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
struct State {
    appended: u64,
    synced: u64,
    /// Whether somebody syncs.
    is_led: bool,
    failed: Option<(io::ErrorKind, String)>,
}

/// What is appended to and what is durable, counted by the caller in whatever unit.
#[derive(Debug, Default)]
pub(crate) struct GroupCommit {
    state: Mutex<State>,
    changed: Condvar,
}

impl GroupCommit {
    /// A group whose first `synced` appends are durable already.
    pub(crate) fn starting_at(synced: u64) -> Self {
        let state = State { appended: synced, synced, ..State::default() };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Says that everything up to `appended` is in the file, though not durable.
    pub(crate) fn announce(&self, appended: u64) {
        let mut state = self.lock();
        state.appended = state.appended.max(appended);
    }

    /// Counts one append more, and gives the ticket to wait for it.
    pub(crate) fn announce_one(&self) -> u64 {
        let mut state = self.lock();
        state.appended += 1;
        state.appended
    }

    /// Up to where everything is durable.
    pub(crate) fn synced(&self) -> u64 {
        self.lock().synced
    }

    /// Whether a sync failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.lock().failed.is_some()
    }

    /// Waits until everything up to `ticket` is durable, calling `sync` if nobody else does.
    ///
    /// # Errors
    /// The error of the sync that failed, now or earlier.
    pub(crate) fn wait(
        &self,
        ticket: u64,
        sync: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        let mut state = self.lock();
        loop {
            if state.synced >= ticket {
                return Ok(());
            }
            if let Some((kind, reason)) = &state.failed {
                return Err(io::Error::new(*kind, reason.clone()));
            }
            if !state.is_led {
                return self.lead(state, sync);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lead(
        &self,
        mut state: MutexGuard<'_, State>,
        sync: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        let target = state.appended;
        state.is_led = true;
        drop(state);
        let outcome = sync();
        let mut state = self.lock();
        state.is_led = false;
        match &outcome {
            Ok(()) => state.synced = state.synced.max(target),
            Err(error) => state.failed = Some((error.kind(), error.to_string())),
        }
        drop(state);
        self.changed.notify_all();
        outcome
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::mpsc;

    #[test]
    fn whoever_waits_during_a_sync_shares_the_next_one() {
        let group = GroupCommit::default();
        let syncs = AtomicU64::new(0);
        let (release, released) = mpsc::channel();
        let (entered, has_entered) = mpsc::channel();
        std::thread::scope(|scope| {
            group.announce(1);
            let (group, syncs) = (&group, &syncs);
            scope.spawn(move || {
                group.wait(1, || {
                    entered.send(()).unwrap();
                    released.recv().unwrap();
                    syncs.fetch_add(1, Ordering::SeqCst);
                    Ok(())
                })
            });
            has_entered.recv().unwrap();
            // Everything announced before the second leader starts is covered by it.
            group.announce(9);
            let waiters: Vec<_> = (2..10)
                .map(|ticket| {
                    scope.spawn(move || {
                        group.wait(ticket, || {
                            syncs.fetch_add(1, Ordering::SeqCst);
                            Ok(())
                        })
                    })
                })
                .collect();
            release.send(()).unwrap();
            for waiter in waiters {
                waiter.join().unwrap().unwrap();
            }
        });
        assert_eq!((syncs.into_inner(), group.synced()), (2, 9));
    }

    #[test]
    fn a_failed_sync_fails_everybody_who_was_not_durable_before() {
        let group = GroupCommit::starting_at(3);
        group.announce(5);
        assert!(group.wait(4, || Err(io::Error::other("lost"))).is_err());
        assert!(group.wait(5, || panic!("never synced again")).is_err());
        assert!(group.wait(3, || panic!("durable before")).is_ok());
        assert!(group.has_failed());
    }
}
