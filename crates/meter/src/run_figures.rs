//! What is known of a run as a whole: how long it took, what it did, and what it had of this computer.

use crate::{Layer, StageCounters, Unit};

/// The kernel adds up who waited for memory every 2 seconds: of a shorter run it tells nothing.
const STALLS_COUNT_FROM_SECONDS: f64 = 5.0;
/// The least that a thread waits for a page that is read back: what quick flash takes.
const PAGE_SECONDS: f64 = 20e-6;

/// What [`judge`](crate::judge) needs to know of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunFigures {
    /// How long the run took.
    pub wall_seconds: f64,
    /// Entries processed.
    pub items: u64,
    /// Plain bytes processed.
    pub bytes: u64,
    /// What the verdict's speeds are counted in.
    pub unit: Unit,
    /// The stages in pipeline order; parts of one stage share its name.
    pub stages: Vec<StageCounters>,
    /// User and system time of the whole process during the run.
    pub process_cpu_seconds: f64,
    /// Cores that the process may use: the affinity mask, or less where a quota says so (0.2 for
    /// a fifth of a core).
    pub cores_available: f64,
    /// Time for which a quota kept the process off the processor during the run, where known.
    pub cpu_throttled_seconds: Option<f64>,
    /// Share of the run in which this computer's cores were at work, for whichever program; where it is
    /// known, and the process may use all of them.
    pub computer_busy_share: Option<f64>,
    /// Time for which some program of this computer waited for memory during the run, where known.
    pub memory_stalled_seconds: Option<f64>,
    /// Pages that the process waited for during the run because they had been taken from its memory.
    pub pages_read_back: u64,
    /// For how long connections carried what this run sent, added up over them: bytes were under way, and the
    /// other end had room for them. 0 where it is not known, or nothing but questions was sent.
    pub carrying_seconds: f64,
}

impl RunFigures {
    /// Share of the available cores that the process used, from 0 to 1.
    pub(crate) fn used_share(&self) -> f64 {
        let available = self.wall_seconds * self.cores_available;
        if available > 0.0 { (self.process_cpu_seconds / available).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Share of the run in which this computer's cores were at work, from 0 to 1; 0 where it is not known.
    pub(crate) fn busy_share(&self) -> f64 {
        self.computer_busy_share.unwrap_or(0.0).clamp(0.0, 1.0)
    }

    /// Share of the run in which connections carried what it sent, from 0 to 1: as many at once as the stage on the
    /// network has threads that has most.
    pub(crate) fn carrying_share(&self) -> f64 {
        let of_network = self.stages.iter().filter(|stage| stage.layer == Layer::Network);
        let shares = of_network.map(|stage| stage.share(self.carrying_seconds, self.wall_seconds));
        shares.reduce(f64::min).unwrap_or(0.0)
    }

    /// Share of the run in which the process was denied the processor, from 0 to 1.
    pub(crate) fn throttled_share(&self) -> f64 {
        share_of(self.cpu_throttled_seconds.unwrap_or(0.0), self.wall_seconds)
    }

    /// Share of the run in which memory was waited for, from 0 to 1; 0 where it is not known.
    pub(crate) fn stalled_share(&self) -> f64 {
        let stalled = self.memory_stalled_seconds.unwrap_or(0.0);
        let known = self.wall_seconds >= STALLS_COUNT_FROM_SECONDS;
        if known { share_of(stalled, self.wall_seconds) } else { 0.0 }
    }

    /// Share of the run, from 0 to 1, that reading back took at the least which had been taken from the
    /// process's memory. The kernel's count of those who wait for memory lacks most of it.
    pub(crate) fn reading_back_share(&self) -> f64 {
        let reading = self.pages_read_back as f64 * PAGE_SECONDS;
        share_of(reading, self.wall_seconds)
    }
}

/// `seconds` as a share of so many, from 0 to 1.
pub(crate) fn share_of(seconds: f64, all_seconds: f64) -> f64 {
    if all_seconds > 0.0 { (seconds / all_seconds).clamp(0.0, 1.0) } else { 0.0 }
}
