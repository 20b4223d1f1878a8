//! How long somebody waits who gave a wrong password: twice as long each time, by account and by address.
//!
//! An account waits a minute at most, so that nobody locks an administrator out by guessing. An address waits
//! up to an hour.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

use crate::bounds::source::Source;

const SECOND_NS: i64 = 1_000_000_000;
/// So many mistakes cost nothing.
const FREE: u32 = 3;
const LONGEST_OF_ACCOUNT_NS: i64 = 60 * SECOND_NS;
const LONGEST_OF_SOURCE_NS: i64 = 3600 * SECOND_NS;
/// Mistakes are forgotten so long after the last.
const FORGOTTEN_NS: i64 = 24 * LONGEST_OF_SOURCE_NS;
/// Most accounts and most addresses that are remembered.
const MOST: usize = 10_000;

/// Mistakes of everybody. Times are those of a clock that only runs.
#[derive(Default)]
pub(super) struct Backoff(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    accounts: HashMap<String, Mistakes>,
    sources: HashMap<Source, Mistakes>,
}

#[derive(Clone, Copy, Default)]
struct Mistakes {
    count: u32,
    last_ns: i64,
}

impl Mistakes {
    fn wait_ns(self, longest_ns: i64) -> i64 {
        match self.count.checked_sub(FREE) {
            None => 0,
            Some(more) => (SECOND_NS << more.min(20)).min(longest_ns),
        }
    }

    fn left_ns(self, longest_ns: i64, now_ns: i64) -> i64 {
        self.last_ns.saturating_add(self.wait_ns(longest_ns)).saturating_sub(now_ns)
    }
}

impl Backoff {
    /// Counts an attempt as a mistake until it is known to be none, so that many at once are no way around. So many seconds
    /// are to be waited first, if any are.
    ///
    /// # Errors
    /// The seconds to wait; then nothing is counted.
    pub(super) fn begin(&self, account: &str, source: Source, now_ns: i64) -> Result<(), i64> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_account = kept.accounts.get(account).copied().unwrap_or_default();
        let of_source = kept.sources.get(&source).copied().unwrap_or_default();
        let left_ns = of_account
            .left_ns(LONGEST_OF_ACCOUNT_NS, now_ns)
            .max(of_source.left_ns(LONGEST_OF_SOURCE_NS, now_ns));
        if left_ns > 0 {
            return Err(left_ns.div_ceil_seconds());
        }
        count(&mut kept.accounts, account.to_owned(), now_ns);
        count(&mut kept.sources, source, now_ns);
        Ok(())
    }

    /// Takes an attempt back that was no mistake, and forgets none before it: it proved a part only of who it is.
    pub(super) fn take_back(&self, account: &str, source: Source) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        take_one(&mut kept.accounts, &account.to_owned());
        take_one(&mut kept.sources, &source);
    }

    /// Forgets the mistakes of who gave the right password, and the right code where there is a second factor.
    pub(super) fn forget(&self, account: &str, source: Source) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.accounts.remove(account);
        kept.sources.remove(&source);
    }
}

/// What `begin` counted, of one that was no mistake.
fn take_one<K: Hash + Eq>(of: &mut HashMap<K, Mistakes>, key: &K) {
    if let Some(one) = of.get_mut(key) {
        one.count = one.count.saturating_sub(1);
    }
}

trait Seconds {
    fn div_ceil_seconds(self) -> i64;
}

impl Seconds for i64 {
    fn div_ceil_seconds(self) -> i64 {
        self.saturating_add(SECOND_NS - 1) / SECOND_NS
    }
}

fn count<K: Hash + Eq + Clone>(of: &mut HashMap<K, Mistakes>, key: K, now_ns: i64) {
    if of.len() >= MOST && !of.contains_key(&key) {
        of.retain(|_, one| now_ns.saturating_sub(one.last_ns) < FORGOTTEN_NS);
        if of.len() >= MOST {
            let oldest = of.iter().min_by_key(|(_, one)| one.last_ns).map(|(key, _)| key.clone());
            oldest.map(|key| of.remove(&key));
        }
    }
    let one = of.entry(key).or_default();
    if now_ns.saturating_sub(one.last_ns) >= FORGOTTEN_NS {
        one.count = 0;
    }
    *one = Mistakes { count: one.count.saturating_add(1), last_ns: now_ns };
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn from(address: u8) -> Source {
        Source::from(IpAddr::from([10, 0, 0, address]))
    }

    #[test]
    fn each_mistake_costs_twice_as_long_and_an_account_no_more_than_a_minute() {
        let (backoff, mut now_ns) = (Backoff::default(), SECOND_NS);
        let mut waits = Vec::new();
        for address in 0..12 {
            if let Err(seconds) = backoff.begin("ann", from(address), now_ns) {
                waits.push(seconds);
                now_ns += seconds * SECOND_NS;
                backoff.begin("ann", from(address), now_ns).unwrap();
            }
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    }

    #[test]
    fn an_address_waits_for_longer_whichever_account_it_tries() {
        let (backoff, mut now_ns) = (Backoff::default(), SECOND_NS);
        for account in 0..40 {
            let name = account.to_string();
            if let Err(seconds) = backoff.begin(&name, from(1), now_ns) {
                now_ns += seconds * SECOND_NS;
                backoff.begin(&name, from(1), now_ns).unwrap();
            }
        }
        assert_eq!(backoff.begin("x", from(1), now_ns), Err(3600));
        assert_eq!(backoff.begin("x", from(2), now_ns), Ok(()), "another address");
    }

    #[test]
    fn a_password_alone_forgets_no_mistake_of_a_code() {
        let (backoff, mut now_ns) = (Backoff::default(), SECOND_NS);
        let mut waits = 0;
        for _ in 0..10 {
            now_ns += SECOND_NS;
            while let Err(seconds) = backoff.begin("ann", from(1), now_ns) {
                (now_ns, waits) = (now_ns + seconds * SECOND_NS, waits + seconds);
            }
            // A wrong code, and then the right password where no code is asked for.
            while let Err(seconds) = backoff.begin("ann", from(1), now_ns) {
                (now_ns, waits) = (now_ns + seconds * SECOND_NS, waits + seconds);
            }
            backoff.take_back("ann", from(1));
        }
        assert!(waits > 200, "{waits}");
    }

    #[test]
    fn the_right_password_forgets_and_so_does_a_day() {
        let backoff = Backoff::default();
        for _ in 0..FREE {
            backoff.begin("ann", from(1), SECOND_NS).unwrap();
        }
        assert_eq!(backoff.begin("ann", from(1), SECOND_NS), Err(1));
        backoff.forget("ann", from(1));
        for _ in 0..FREE {
            backoff.begin("ann", from(1), SECOND_NS).unwrap();
        }
        let later_ns = SECOND_NS + FORGOTTEN_NS;
        for _ in 0..FREE {
            assert_eq!(backoff.begin("ann", from(1), later_ns), Ok(()));
        }
    }
}
