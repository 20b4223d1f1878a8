//! The verdict on a run, from its stages' counters and from what the system says of this process.

use holdall_lab::{RunFigures, StageCounters, Unit, Verdict};
use holdall_sys::cpu::CoreTimes;

/// Below this many bytes an item, a run is about items; above it, about bytes.
const SMALL_ITEM_BYTES: u64 = 64 << 10;

/// What this process used of the processor and could have used, how busy all cores were, how long
/// memory was waited for, and how long connections carried what they sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Usage {
    cpu_seconds: f64,
    cores_available: f64,
    throttled_seconds: Option<f64>,
    computer_busy_share: Option<f64>,
    memory_stalled_seconds: Option<f64>,
    pages_read_back: u64,
    carrying_seconds: f64,
}

/// What the system's counters said at a moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UsageCounters {
    cpu_seconds: f64,
    throttled_seconds: Option<f64>,
    cores: Option<CoreTimes>,
    memory_stalled_seconds: Option<f64>,
    pages_read_back: u64,
    carrying_seconds: f64,
}

impl UsageCounters {
    /// Up to now.
    pub(crate) fn now() -> Self {
        Self {
            cpu_seconds: holdall_sys::cpu::process_cpu_seconds(),
            throttled_seconds: holdall_sys::cpu::throttled_seconds(),
            cores: CoreTimes::now(),
            memory_stalled_seconds: holdall_sys::memory::stalled_seconds(),
            pages_read_back: holdall_sys::memory::pages_read_back(),
            carrying_seconds: holdall_protocol::carrying_seconds(),
        }
    }

    /// What was used after `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> Usage {
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
        }
    }
}

/// Says which layer limited a run that used `usage`.
pub(crate) fn judge(
    items: u64,
    bytes: u64,
    wall_seconds: f64,
    stages: Vec<StageCounters>,
    usage: &Usage,
) -> Verdict {
    let small = bytes / items.max(1) < SMALL_ITEM_BYTES;
    holdall_lab::judge(&RunFigures {
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

/// How much of something a second; 0 for no time at all.
pub(crate) fn per_second(amount: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { amount as f64 / seconds } else { 0.0 }
}
