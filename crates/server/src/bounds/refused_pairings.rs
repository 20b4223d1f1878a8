//! How many pairings were refused in the last minute, and whether that is too many.
//!
//! An invite's secret has 128 random bits, so it is not for want of this that it cannot be guessed. It is for
//! what guessing costs the server. A good invite is taken however many bad ones came before it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::bounds::limits::Limits;
use crate::bounds::source::Source;

const MINUTE_NS: i64 = 60 * 1_000_000_000;

/// Those of the minute that goes on.
#[derive(Default)]
pub(crate) struct RefusedPairings(Mutex<Minute>);

#[derive(Default)]
struct Minute {
    began_ns: i64,
    of_all: u32,
    by_source: HashMap<Source, u32>,
}

impl RefusedPairings {
    /// Counts one more at `now_ns`; true if it is within the limits.
    pub(crate) fn count(&self, source: Source, now_ns: i64, limits: &Limits) -> bool {
        let mut minute = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !(0..MINUTE_NS).contains(&now_ns.saturating_sub(minute.began_ns)) {
            *minute = Minute { began_ns: now_ns, ..Minute::default() };
        }
        let of_source = minute.by_source.get(&source).copied().unwrap_or_default();
        let is_within = of_source < limits.refused_pairings_of_address
            && minute.of_all < limits.refused_pairings;
        if is_within {
            minute.of_all += 1;
            minute.by_source.insert(source, of_source + 1);
        }
        is_within
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    #[test]
    fn so_many_a_minute_are_within_the_limits_of_an_address_and_of_all() {
        let (refused, second_ns) = (RefusedPairings::default(), 1_000_000_000);
        let limits =
            Limits { refused_pairings_of_address: 2, refused_pairings: 3, ..Limits::default() };
        let count = |address: u8, seconds: i64| {
            let source = Source::from(IpAddr::from([10, 0, 0, address]));
            refused.count(source, 90_000 * second_ns + seconds * second_ns, &limits)
        };
        assert_eq!([0, 1, 2, 59].map(|seconds| count(1, seconds)), [true, true, false, false]);
        assert_eq!([count(2, 59), count(3, 59)], [true, false], "of all");
        assert_eq!([count(1, 60), count(3, 60)], [true, true], "another minute");
    }
}
