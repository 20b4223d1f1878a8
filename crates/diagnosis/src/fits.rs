//! Whether a backup that runs every hour is done within it.

use holdall_meter::cost::Estimate;
use serde::Serialize;

const HOUR_SECONDS: f64 = 3600.0;
/// By which factor an estimate is off at most that may be off by all of itself.
const FURTHEST_OFF: f64 = 10.0;

/// Whether a run fits into an hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fits {
    /// It does.
    Yes,
    /// It may, or may not.
    Perhaps,
    /// It does not.
    No,
}

impl Fits {
    /// By an estimate and how sure that is.
    pub fn of(estimate: &Estimate) -> Self {
        let Estimate { seconds, plus_minus_seconds, .. } = estimate;
        // What runs took was so much less than was expected of them.
        let factor = if plus_minus_seconds < seconds {
            1.0 + plus_minus_seconds / seconds
        } else {
            FURTHEST_OFF
        };
        match (seconds + plus_minus_seconds <= HOUR_SECONDS, seconds / factor > HOUR_SECONDS) {
            (true, _) => Self::Yes,
            (_, true) => Self::No,
            _ => Self::Perhaps,
        }
    }
}

#[cfg(test)]
mod tests {
    use holdall_meter::cost::Part;

    use super::*;

    fn estimate(seconds: f64, plus_minus_seconds: f64) -> Estimate {
        Estimate {
            seconds,
            plus_minus_seconds,
            mostly: Part::Bytes,
            rate: 38e6,
            runs: 12,
            measured: false,
        }
    }

    #[test]
    fn whether_it_fits_into_the_hour_is_as_sure_as_the_estimate() {
        let fits = |seconds, more| Fits::of(&estimate(seconds, more));
        assert_eq!(fits(3000.0, 600.0), Fits::Yes);
        assert_eq!(fits(3000.0, 601.0), Fits::Perhaps);
        assert_eq!(fits(4000.0, 300.0), Fits::No);
        assert_eq!(fits(4000.0, 500.0), Fits::Perhaps);
        // One of which nothing is sure is still that of an hour or of a week.
        assert_eq!(fits(20_000.0, 20_000.0), Fits::Perhaps);
        assert_eq!(fits(1_000_000.0, 1_000_000.0), Fits::No);
    }
}
