//! The verdict on a run, from its stages' counters and from what the system says of this process.

use holdall_engine::Run;
use holdall_meter::{Layer, RunFigures, StageCounters, Unit, Verdict};
use holdall_protocol::{LimitWaits, ServerLimit};
use holdall_sys::cpu::CoreTimes;

/// Below this many bytes an item, a run is about items; above it, about bytes.
const SMALL_ITEM_BYTES: u64 = 64 << 10;

/// A limit on sending that was waited for so much of the time in which requests were on their way over the
/// network is what limits: where the network does less than the limit, as much of the time is its own.
const LIMIT_HOLDS: f64 = 0.8;

/// What this process used of the processor and could have used, how busy all cores were, how long
/// memory was waited for, how long connections carried what they sent, and how long they waited for a limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Usage {
    cpu_seconds: f64,
    cores_available: f64,
    throttled_seconds: Option<f64>,
    computer_busy_share: Option<f64>,
    memory_stalled_seconds: Option<f64>,
    pages_read_back: u64,
    carrying_seconds: f64,
    limit_waits: LimitWaits,
    server_limit: ServerLimit,
}

/// What the system's counters said at a moment.
#[derive(Debug, Clone, Copy)]
pub struct UsageCounters {
    cpu_seconds: f64,
    throttled_seconds: Option<f64>,
    cores: Option<CoreTimes>,
    memory_stalled_seconds: Option<f64>,
    pages_read_back: u64,
    carrying_seconds: f64,
    limit_waits: LimitWaits,
    server_limit: ServerLimit,
}

impl UsageCounters {
    /// Up to now: what the connections of that run count, and this process.
    pub fn now(run: &Run) -> Self {
        Self {
            cpu_seconds: holdall_sys::cpu::process_cpu_seconds(),
            throttled_seconds: holdall_sys::cpu::throttled_seconds(),
            cores: CoreTimes::now(),
            memory_stalled_seconds: holdall_sys::memory::stalled_seconds(),
            pages_read_back: holdall_sys::memory::pages_read_back(),
            carrying_seconds: run.wire.carrying_seconds(),
            limit_waits: run.wire.limit_waits(),
            server_limit: run.wire.server_limit(),
        }
    }

    /// What was used after `earlier`.
    pub fn since(&self, earlier: &Self) -> Usage {
        let after =
            |now: Option<f64>, then: Option<f64>| now.zip(then).map(|(now, then)| now - then);
        // Others keep cores busy that this process may not use, too.
        let cores_available = holdall_sys::cpu::available_cores();
        let may_use_all = |now: &CoreTimes| cores_available >= now.cores() as f64;
        let cores = self.cores.filter(may_use_all).zip(earlier.cores);
        Usage {
            cpu_seconds: self.cpu_seconds - earlier.cpu_seconds,
            cores_available,
            throttled_seconds: after(self.throttled_seconds, earlier.throttled_seconds),
            computer_busy_share: cores.map(|(now, then)| now.busy_share_since(&then)),
            memory_stalled_seconds: after(
                self.memory_stalled_seconds,
                earlier.memory_stalled_seconds,
            ),
            pages_read_back: self.pages_read_back.saturating_sub(earlier.pages_read_back),
            carrying_seconds: self.carrying_seconds - earlier.carrying_seconds,
            limit_waits: LimitWaits {
                by_limit_seconds: self.limit_waits.by_limit_seconds
                    - earlier.limit_waits.by_limit_seconds,
                by_path_seconds: self.limit_waits.by_path_seconds
                    - earlier.limit_waits.by_path_seconds,
            },
            server_limit: ServerLimit {
                held_seconds: self.server_limit.held_seconds - earlier.server_limit.held_seconds,
                ..self.server_limit
            },
        }
    }
}

/// Whether the network that limited a run, by its verdict, was the limit on sending that was set for it: such a
/// limit is at work where a network would be. It is judged by the time for which it was waited for, not by how
/// much was sent, since a network that does nearly as much as is allowed is a limit of its own.
pub fn is_own_limit(verdict: &Verdict, usage: &Usage) -> bool {
    let LimitWaits { by_limit_seconds, by_path_seconds } = usage.limit_waits;
    holds(verdict, by_limit_seconds) && by_limit_seconds > by_path_seconds
}

/// The server's limit, in bytes a second, if the network that limited a run, by its verdict, was that: as it was
/// waited for by the word of the server, which can make a run's verdict wrong and nothing else.
pub(crate) fn server_limit(verdict: &Verdict, usage: &Usage) -> Option<u64> {
    let ServerLimit { bytes_per_second, held_seconds } = usage.server_limit;
    holds(verdict, held_seconds).then_some(bytes_per_second)
}

/// Whether a limit that was waited for so long held a run back whose network limited it.
fn holds(verdict: &Verdict, waited_seconds: f64) -> bool {
    let talks = verdict.stages.iter().filter(|stage| stage.threads == 0);
    let talking: f64 = talks.map(|stage| stage.working_seconds).sum();
    verdict.limited_by == Layer::Network
        && waited_seconds > 0.0
        && waited_seconds >= LIMIT_HOLDS * talking
}

/// Says which layer limited a run that used `usage`.
pub fn judge(
    items: u64,
    bytes: u64,
    wall_seconds: f64,
    stages: Vec<StageCounters>,
    usage: &Usage,
) -> Verdict {
    let small = bytes / items.max(1) < SMALL_ITEM_BYTES;
    holdall_meter::judge(&RunFigures {
        wall_seconds,
        items,
        bytes,
        unit: if small { Unit::ItemsPerSecond } else { Unit::BytesPerSecond },
        stages,
        process_cpu_seconds: usage.cpu_seconds,
        cores_available: usage.cores_available,
        cpu_throttled_seconds: usage.throttled_seconds,
        computer_busy_share: usage.computer_busy_share,
        memory_stalled_seconds: usage.memory_stalled_seconds,
        pages_read_back: usage.pages_read_back,
        carrying_seconds: usage.carrying_seconds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a run of 10 s, 9 of them on the network, was held back by the limit that was set, which was
    /// waited for so long, and the path so long.
    fn is_limit(limited_by: Layer, by_limit_seconds: f64, by_path_seconds: f64) -> bool {
        let before = UsageCounters::now(&Run::new());
        let usage = Usage {
            limit_waits: LimitWaits { by_limit_seconds, by_path_seconds },
            ..before.since(&before)
        };
        let talk =
            StageCounters { working_seconds: 9.0, ..StageCounters::new("talk", Layer::Network, 0) };
        let mut verdict = judge(100, 100_000_000, 10.0, vec![talk], &usage);
        verdict.limited_by = limited_by;
        is_own_limit(&verdict, &usage)
    }

    #[test]
    fn a_limit_of_the_server_is_named_where_the_network_waited_for_it() {
        let named = |limited_by: Layer, held_seconds: f64| {
            let before = UsageCounters::now(&Run::new());
            let server_limit = ServerLimit { bytes_per_second: 1000, held_seconds };
            let usage = Usage { server_limit, ..before.since(&before) };
            let talk = StageCounters {
                working_seconds: 9.0,
                ..StageCounters::new("talk", Layer::Network, 0)
            };
            let mut verdict = judge(100, 100_000_000, 10.0, vec![talk], &usage);
            verdict.limited_by = limited_by;
            super::server_limit(&verdict, &usage)
        };
        assert_eq!(named(Layer::Network, 8.5), Some(1000));
        assert_eq!(named(Layer::Network, 5.0), None);
        assert_eq!(named(Layer::ServerDisk, 8.5), None);
    }

    #[test]
    fn a_limit_is_named_where_it_was_waited_for_and_not_where_the_path_was() {
        assert!(is_limit(Layer::Network, 8.5, 0.1));
        // The path did 60 % of what was allowed: buffers took what was sent at the limit's pace, and were
        // then emptied at the path's.
        assert!(!is_limit(Layer::Network, 5.4, 0.0));
        assert!(!is_limit(Layer::Network, 8.5, 8.9), "both were waited for, the path longer");
        assert!(!is_limit(Layer::ServerDisk, 8.5, 0.1), "it was not the network at all");
        assert!(!is_limit(Layer::Network, 0.0, 0.0), "none was set");
    }
}
