//! What was made of a subject: backups and a restore.

use holdall_lab::Measurement;
use holdall_lab::disk::Cache;
use holdall_lab::report::Moment;
use holdall_meter::{Verdict, per_second};

/// A backup or a restore that was made.
pub struct Ran {
    /// How long it took.
    pub seconds: f64,
    /// Items that it went through.
    pub items: u64,
    /// Bytes of their content.
    pub bytes: u64,
    /// Bytes that were stored, sealed.
    pub stored_bytes: u64,
    /// Bytes that went to the server.
    pub sent_bytes: u64,
    /// Items that could not be read or restored.
    pub problems: u64,
    /// What held it back.
    pub verdict: Verdict,
    /// How it went from moment to moment.
    pub timeline: Vec<Moment>,
    /// Where the bytes came from, of a backup that read all of them.
    pub cache: Option<Cache>,
}

/// What was made of a subject, and goes beside the steps of a ladder.
pub(super) struct Reached {
    pub(super) first: Ran,
    pub(super) unchanged: Ran,
    pub(super) restored: Ran,
}

impl Ran {
    /// Of `bytes` how many a second.
    pub fn rate(&self, amount: u64) -> f64 {
        per_second(amount, self.seconds)
    }

    /// As every measurement is told; bytes that were not `moved` have no rate.
    pub fn measurement(&self, operation: String, moved: bool) -> Measurement {
        Measurement {
            bytes_per_second: moved.then(|| self.rate(self.bytes)),
            operations_per_second: Some(self.rate(self.items)),
            cache: self.cache,
            limited_by: Some(self.verdict.limited_by),
            ..Measurement::new(operation, self.seconds)
        }
    }
}
