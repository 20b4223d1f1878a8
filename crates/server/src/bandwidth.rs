//! The rate that all machines together keep, where an administrator set one for this hour.
//!
//! What is taken and what is given each have it. Bytes are paid for in pieces, and each machine stands in the line with one
//! of its connections alone: so each has its share, however many connections it opens, and what one leaves others have.
//! Small bodies do not come here: whoever asks for a list does not stand behind others' uploads.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use holdall_format::PublicKey;
use holdall_protocol::wire::Held;
use tokio::sync::Mutex as Turn;
use tokio::time::{Instant, sleep_until};

use crate::accounts::{Accounts, BandwidthRule, bandwidth_in_force, local};

/// Bytes that are paid for at a time: so few that of many connections each moves before anybody takes it for dead.
pub(crate) const PIECE_BYTES: usize = 16 << 10;
/// What a timer may oversleep, which is made up for.
const OVERSLEPT: Duration = Duration::from_millis(20);
/// So often it is looked which limit counts: soon after one was changed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Taken,
    Given,
}

/// The limit, and what waits for it.
pub(crate) struct Bandwidth {
    accounts: Arc<Accounts>,
    known: Mutex<Known>,
    taken: Lane,
    given: Lane,
    /// For how long each machine was held back, added up over its connections.
    held: Mutex<HashMap<PublicKey, Duration>>,
}

/// Which limit counts, as it was found when it was looked last.
struct Known {
    looked: Option<Instant>,
    rule: Option<BandwidthRule>,
}

/// One way.
#[derive(Default)]
struct Lane {
    /// When the next piece may pass; who has it locked is next. Others come in the order in which they asked.
    free_at: Turn<Option<Instant>>,
    /// Each machine's place in that line.
    places: Mutex<HashMap<PublicKey, Arc<Turn<()>>>>,
}

impl Bandwidth {
    pub(crate) fn new(accounts: Arc<Accounts>) -> Self {
        let known = Mutex::new(Known { looked: None, rule: None });
        let (taken, given) = (Lane::default(), Lane::default());
        Self { accounts, known, taken, given, held: Mutex::default() }
    }

    /// The limit that counts now.
    pub(crate) fn rule(&self) -> Option<BandwidthRule> {
        let mut known = lock(&self.known);
        let is_due = known.looked.is_none_or(|looked| looked.elapsed() >= LOOK_EVERY);
        if is_due {
            let (day, minute) = local(self.accounts.clock().now_ns());
            // Where the rules cannot be read, none counts: backups go on.
            let rules = self.accounts.bandwidth_rules().unwrap_or_default();
            known.rule = bandwidth_in_force(&rules, day, minute).cloned();
            known.looked = Some(Instant::now());
        }
        known.rule.clone()
    }

    /// Waits until so many bytes of a machine may pass, or have: they count from now on.
    ///
    /// # Cancel safety
    /// What was waited for is lost.
    pub(crate) async fn pass(&self, way: Way, key: &PublicKey, bytes: usize) {
        let lane = match way {
            Way::Taken => &self.taken,
            Way::Given => &self.given,
        };
        let begun = Instant::now();
        let mut left = bytes;
        while left > 0 {
            let Some(rule) = self.rule() else { return };
            let piece = left.min(PIECE_BYTES);
            lane.pass(key, Duration::from_secs_f64(piece as f64 / rule.bytes_per_second as f64))
                .await;
            left -= piece;
        }
        let held = begun.elapsed();
        *lock(&self.held).entry(*key).or_default() += held;
    }

    /// What a machine is told of the limit that counts now.
    pub(crate) fn told(&self, key: &PublicKey) -> Option<Held> {
        let bytes_per_second = self.rule()?.bytes_per_second;
        let millis = u64::try_from(self.held(key).as_millis()).unwrap_or(u64::MAX);
        Some(Held { bytes_per_second, millis })
    }

    /// For how long a machine was held back so far, added up over its connections.
    pub(crate) fn held(&self, key: &PublicKey) -> Duration {
        lock(&self.held).get(key).copied().unwrap_or_default()
    }
}

impl Lane {
    async fn pass(&self, key: &PublicKey, takes: Duration) {
        let place = Arc::clone(lock(&self.places).entry(*key).or_default());
        let _place = place.lock().await;
        let mut free_at = self.free_at.lock().await;
        if let Some(free_at) = *free_at {
            sleep_until(free_at).await;
        }
        let now = Instant::now();
        let earliest = now.checked_sub(OVERSLEPT).unwrap_or(now);
        *free_at = Some(free_at.unwrap_or(now).max(earliest) + takes);
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOMENT: Duration = Duration::from_millis(2);
    const LASTS: Duration = Duration::from_millis(600);
    /// As many moments as that has, and those that may be made up for.
    const MOST: usize = 300 + 11;

    /// How many pieces of a moment each pass of each machine, which has a connection for each of its numbers.
    async fn passed(connections: &[u8]) -> HashMap<u8, usize> {
        let lane = Arc::new(Lane::default());
        let counts = Arc::<Mutex<HashMap<u8, usize>>>::default();
        let mut tasks = tokio::task::JoinSet::new();
        for &machine in connections {
            let (lane, counts) = (Arc::clone(&lane), Arc::clone(&counts));
            tasks.spawn(async move {
                let end = Instant::now() + LASTS;
                while Instant::now() < end {
                    lane.pass(&PublicKey::from_bytes([machine; 32]), MOMENT).await;
                    *lock(&counts).entry(machine).or_default() += 1;
                }
            });
        }
        while tasks.join_next().await.is_some() {}
        lock(&counts).clone()
    }

    #[tokio::test]
    async fn a_machine_has_its_share_however_many_connections_others_open() {
        let counts = passed(&[1, 1, 1, 1, 1, 1, 1, 1, 2]).await;
        let total: usize = counts.values().sum();
        assert!(total <= MOST + 9, "{counts:?}");
        // By connections it would be a ninth.
        assert!(counts.values().all(|count| *count >= total / 3), "{counts:?}");
    }

    #[tokio::test]
    async fn what_others_leave_one_machine_has() {
        let counts = passed(&[1]).await;
        assert!((MOST / 3..=MOST + 1).contains(&counts[&1]), "{counts:?}");
    }
}
