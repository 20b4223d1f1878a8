//! How far a run was over its time, in a bounded number of points.
//!
//! Nobody knows how long a run takes when it begins. So points are taken often at first; each time that there is no room
//! for more, every second one goes, and from then on they are taken half as often.
//!
//! ```
//! use holdall_meter::{RunCurve, RunPoint};
//!
//! let mut curve = RunCurve::new();
//! for seconds in 0..3600 {
//!     curve.add(RunPoint { milliseconds: 1000 * seconds, bytes: 5000 * seconds, items: seconds });
//! }
//! assert!(curve.points().len() <= RunCurve::MOST_POINTS);
//! ```

use serde::{Deserialize, Serialize};

/// How far a run was at one moment. Serialised as three numbers: `[milliseconds, bytes, items]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "(u64, u64, u64)", into = "(u64, u64, u64)")]
pub struct RunPoint {
    /// Milliseconds since the run began.
    pub milliseconds: u64,
    /// Plain bytes that were dealt with until then.
    pub bytes: u64,
    /// Items that were dealt with until then.
    pub items: u64,
}

impl From<(u64, u64, u64)> for RunPoint {
    fn from((milliseconds, bytes, items): (u64, u64, u64)) -> Self {
        Self { milliseconds, bytes, items }
    }
}

impl From<RunPoint> for (u64, u64, u64) {
    fn from(point: RunPoint) -> Self {
        (point.milliseconds, point.bytes, point.items)
    }
}

/// How far a run was over its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunCurve {
    points: Vec<RunPoint>,
    every_milliseconds: u64,
}

impl RunCurve {
    /// Most points of a curve.
    pub const MOST_POINTS: usize = 300;
    /// How far apart the first points are.
    const FIRST_MILLISECONDS: u64 = 200;

    /// The curve of a run that begins.
    pub fn new() -> Self {
        Self { points: vec![RunPoint::default()], every_milliseconds: Self::FIRST_MILLISECONDS }
    }

    /// How far apart points are taken now, in milliseconds.
    pub fn every_milliseconds(&self) -> u64 {
        self.every_milliseconds
    }

    /// Adds a point, unless it is nearer to the one before than points are taken now.
    pub fn add(&mut self, point: RunPoint) {
        let last = self.points.last().map_or(0, |last| last.milliseconds);
        // What wakes up for it may be a little early.
        let nearest = self.every_milliseconds - self.every_milliseconds / 8;
        if point.milliseconds.saturating_sub(last) >= nearest {
            self.push(point);
        }
    }

    /// Adds the last point of a run, however near the one before it is.
    pub fn end(&mut self, point: RunPoint) {
        self.push(point);
    }

    /// All of them, the oldest first.
    pub fn points(&self) -> &[RunPoint] {
        &self.points
    }

    fn push(&mut self, point: RunPoint) {
        if self.points.len() == Self::MOST_POINTS {
            let mut place = 0;
            self.points.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.every_milliseconds *= 2;
        }
        self.points.push(point);
    }
}

impl Default for RunCurve {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> RunPoint {
        RunPoint { milliseconds, bytes: 10 * milliseconds, items: milliseconds / 2 }
    }

    #[test]
    fn a_short_run_has_its_beginning_and_its_end() {
        let mut curve = RunCurve::new();
        curve.add(at(3));
        curve.end(at(5));
        assert_eq!(curve.points(), [at(0), at(5)]);
    }

    #[test]
    fn a_full_curve_loses_every_second_point_and_takes_them_half_as_often() {
        let mut curve = RunCurve::new();
        for place in 1..RunCurve::MOST_POINTS as u64 {
            curve.add(at(200 * place));
        }
        assert_eq!((curve.points().len(), curve.every_milliseconds()), (300, 200));
        curve.add(at(60_000));
        assert_eq!((curve.points().len(), curve.every_milliseconds()), (151, 400));
        assert_eq!(curve.points()[..3], [at(0), at(400), at(800)]);
        curve.add(at(60_200));
        assert_eq!(curve.points().len(), 151, "that is too near by now");
    }

    #[test]
    fn a_run_of_a_month_has_no_more_points_than_one_of_an_hour_and_they_are_even() {
        let mut curve = RunCurve::new();
        let month = 30 * 24 * 3_600_000;
        let mut now = 0;
        while now < month {
            now += curve.every_milliseconds();
            curve.add(at(now));
        }
        curve.end(at(now + 1));
        let points = curve.points();
        assert!((100..=RunCurve::MOST_POINTS).contains(&points.len()), "{}", points.len());
        let steps = points.windows(2).map(|pair| pair[1].milliseconds - pair[0].milliseconds);
        let steps: Vec<_> = steps.collect();
        let (_, even) = steps.split_last().unwrap();
        assert!(even.iter().max() <= even.iter().min().map(|least| 2 * least).as_ref(), "{even:?}");
    }

    #[test]
    fn a_point_is_three_numbers() {
        let json = serde_json::to_string(&at(4)).unwrap();
        assert_eq!(json, "[4,40,2]");
        assert_eq!(serde_json::from_str::<RunPoint>(&json).unwrap(), at(4));
    }
}
