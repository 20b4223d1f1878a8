//! Delays that look random, and are the same each time that one asks.

use std::time::Duration;

use jiff::Timestamp;

/// A delay in `[0, most)` for a set's run that is planned for that moment. It follows from the computer's seed, so that
/// a house full of computers does not begin at once, and a restart of the agent changes nothing.
pub(super) fn random_delay(seed: u64, set: &str, planned: Timestamp, most: Duration) -> Duration {
    let moment = planned.as_nanosecond().to_le_bytes();
    let bytes = set.bytes().chain(moment);
    let mixed = bytes.fold(seed, |sum, byte| mix(sum ^ u64::from(byte)));
    let most_ms = u64::try_from(most.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(mixed.checked_rem(most_ms).unwrap_or(0))
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_stay_below_their_bound_and_spread_over_it() {
        let most = Duration::from_mins(5);
        let delays: Vec<_> =
            (0..1000).map(|seed| random_delay(seed, "home", Timestamp::UNIX_EPOCH, most)).collect();
        assert!(delays.iter().all(|delay| *delay < most));
        let early = delays.iter().filter(|delay| **delay < most / 2).count();
        assert!((400..600).contains(&early), "{early}");
        assert_eq!(random_delay(7, "home", Timestamp::UNIX_EPOCH, Duration::ZERO), Duration::ZERO);
    }

    #[test]
    fn each_computer_set_and_moment_has_a_delay_of_its_own() {
        let most = Duration::from_hours(1);
        let delay = |seed, set, second| {
            random_delay(seed, set, Timestamp::from_second(second).unwrap(), most)
        };
        assert_eq!(delay(1, "home", 0), delay(1, "home", 0));
        assert_ne!(delay(1, "home", 0), delay(2, "home", 0));
        assert_ne!(delay(1, "home", 0), delay(1, "mail", 0));
        assert_ne!(delay(1, "home", 0), delay(1, "home", 3600));
    }
}
