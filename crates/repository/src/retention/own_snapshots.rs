//! What rules keep of snapshots whose owner has listed them, and whose dates are therefore trusted: who has the keys may
//! forget any snapshot anyway.

use std::cmp::Reverse;

use jiff::tz::TimeZone;

use crate::retention::evaluate::{Aged, Backwards, Came, Policy, Reason, keep};

/// A snapshot as its owner knows it. Times are in nanoseconds since 1970 UTC.
#[derive(Debug, Clone, Copy)]
pub struct OwnSnapshot<K> {
    /// Its place in the log.
    pub log_position: u64,
    /// What it is counted together with.
    pub series: K,
    /// When it was received.
    pub received_ns: i64,
    /// Whether the clock that said so had been set.
    pub received_sure: bool,
    /// Of a copy: when the original was received. Copies are counted apart, as on a server.
    pub original_ns: Option<i64>,
    /// Whether it is kept whatever the rules say.
    pub pinned: bool,
    /// Whether it has a tag that is kept.
    pub tagged: bool,
    /// Whether the rules are about it. If not, it only shows how the clock went.
    pub is_judged: bool,
}

/// Why each of the snapshots that are judged is kept, nothing for those that go; by their indices, in the order in which
/// they came. Hours and days are those of `zone`.
pub fn keep_own<K: Ord + Copy>(
    policy: &Policy,
    snapshots: &[OwnSnapshot<K>],
    now_ns: i64,
    zone: &TimeZone,
) -> Vec<(usize, Vec<Reason>)> {
    let mut dated = dated(snapshots, now_ns);
    dated.retain(|(at, _)| snapshots[*at].is_judged);
    let aged: Vec<_> = dated.iter().map(|(at, came)| aged(&snapshots[*at], came, now_ns)).collect();
    dated.iter().map(|(at, _)| *at).zip(keep(policy, &aged, zone)).collect()
}

fn aged<K: Copy>(one: &OwnSnapshot<K>, came: &Came, now_ns: i64) -> Aged<(K, bool)> {
    Aged {
        series: (one.series, one.original_ns.is_some()),
        received_ns: one.original_ns.unwrap_or(one.received_ns),
        passed_ns: now_ns.saturating_sub(came.latest_ns),
        taken_ns: None,
        clock_sure: one.received_sure,
        is_sure: came.is_sure,
        pinned: one.pinned,
        tagged: one.tagged,
    }
}

/// The indices of snapshots in the order in which they came, with what is known of when: a clock that was ahead for a
/// while puts none behind those that came later.
fn dated<K>(snapshots: &[OwnSnapshot<K>], now_ns: i64) -> Vec<(usize, Came)> {
    let mut newest_first: Vec<usize> = (0..snapshots.len()).collect();
    newest_first.sort_by_key(|at| Reverse(snapshots[*at].log_position));
    let mut log = Backwards::from_now(now_ns);
    let came = |at: usize| match (&snapshots[at], snapshots[at].original_ns) {
        // It is as old as what it is a copy of, wherever it lies in the log.
        (one, Some(taken_ns)) => Backwards::from_now(now_ns).came(taken_ns, one.received_sure),
        (one, None) => log.came(one.received_ns, one.received_sure),
    };
    let came: Vec<_> = newest_first.iter().copied().map(came).collect();
    let mut dated: Vec<_> = newest_first.into_iter().zip(came).collect();
    dated.sort_by_key(|(at, came)| (came.latest_ns, snapshots[*at].log_position));
    dated
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_NS: i64 = 3_600_000_000_000;
    const NOW_NS: i64 = 1_000 * HOUR_NS;

    fn snapshot(log_position: u64, received_hour: i64) -> OwnSnapshot<u8> {
        OwnSnapshot {
            log_position,
            series: 0,
            received_ns: received_hour * HOUR_NS,
            received_sure: true,
            original_ns: None,
            pinned: false,
            tagged: false,
            is_judged: true,
        }
    }

    /// Which are kept by a rule for the last one, in the order in which they came.
    fn judged(snapshots: &[OwnSnapshot<u8>]) -> Vec<(usize, bool)> {
        let policy = Policy { last: 1, ..Policy::default() };
        let kept = keep_own(&policy, snapshots, NOW_NS, &TimeZone::UTC);
        kept.into_iter().map(|(at, reasons)| (at, !reasons.is_empty())).collect()
    }

    #[test]
    fn a_clock_that_was_ahead_puts_nothing_behind_what_came_later() {
        let ahead = snapshot(1, 2_000);
        assert_eq!(judged(&[snapshot(2, 900), ahead]), [(1, false), (0, true)]);
    }

    #[test]
    fn a_copy_is_as_old_as_its_original_and_counted_apart() {
        let copy = OwnSnapshot { original_ns: Some(100 * HOUR_NS), ..snapshot(3, 950) };
        let all = [snapshot(1, 800), snapshot(2, 900), copy];
        assert_eq!(judged(&all), [(2, true), (0, false), (1, true)]);
    }

    #[test]
    fn what_the_rules_are_not_about_goes_not_and_keeps_none() {
        let other = OwnSnapshot { is_judged: false, ..snapshot(2, 900) };
        let pinned = OwnSnapshot { pinned: true, ..snapshot(1, 700) };
        assert_eq!(judged(&[pinned, other, snapshot(3, 950)]), [(0, true), (2, true)]);
    }
}
