//! The rate of the last minute.

use std::collections::VecDeque;

/// The rate is that of so many seconds.
const WINDOW_SECONDS: f64 = 60.0;
/// A point a second is enough.
const STEP_SECONDS: f64 = 1.0;

/// How many bytes there were when, within the last minute.
#[derive(Debug, Default)]
pub(crate) struct Recent(VecDeque<(f64, u64)>);

impl Recent {
    /// Notes that there were so many bytes after so many seconds. Fewer than before begin anew.
    pub(crate) fn note(&mut self, bytes: u64, seconds: f64) {
        if self.0.back().is_some_and(|(_, before)| *before > bytes) {
            self.0.clear();
        }
        if self.0.back().is_none_or(|(last, _)| seconds - last >= STEP_SECONDS) {
            self.0.push_back((seconds, bytes));
        }
        while self.0.front().is_some_and(|(first, _)| seconds - first > WINDOW_SECONDS) {
            self.0.pop_front();
        }
    }

    /// Bytes a second of the last minute, by how many there are now.
    pub(crate) fn rate(&self, bytes: u64, seconds: f64) -> f64 {
        let is_within = |(at, _): &&(f64, u64)| seconds - at <= WINDOW_SECONDS;
        let Some((since, before)) = self.0.iter().find(is_within) else { return 0.0 };
        let taken = seconds - since;
        if taken > 0.0 { bytes.saturating_sub(*before) as f64 / taken } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_last_minute() {
        let mut recent = Recent::default();
        assert!(recent.rate(10, 1.0).abs() < 0.01);
        for second in 0..120_u32 {
            let bytes = if second < 60 { second * 100 } else { 6000 + (second - 60) * 10 };
            recent.note(bytes.into(), second.into());
        }
        let rate = recent.rate(6600, 120.0);
        assert!((9.0..12.0).contains(&rate), "{rate}");
        assert!(recent.rate(6600, 500.0).abs() < 0.01, "nothing was noted lately");
        recent.note(5, 501.0);
        assert!((recent.rate(25, 502.0) - 20.0).abs() < 0.01);
    }
}
