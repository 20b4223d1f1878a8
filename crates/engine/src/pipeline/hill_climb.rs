//! How many threads storage gains from, found by trying.
//!
//! One reader is best for a spinning disk, several for flash, dozens for a share on the network, where
//! every file waits for a few round trips. What a path lies on does not tell which: so twice as many
//! are tried, and half as many, and what was not better is undone.

/// Windows for which nothing is tried once nothing helps: what is read may change.
const REST_WINDOWS: u32 = 40;
/// The share of their number by which more threads have to be faster to be kept.
const GAIN: f64 = 0.2;
/// The share of the rate that fewer threads have to reach to be kept.
const KEPT: f64 = 0.95;

/// What some threads did in a while.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    /// Work done in each second, in any unit.
    pub(crate) rate: f64,
    /// Whether they waited for storage, and not for each other or the processor.
    pub(crate) is_storage: bool,
}

/// Climbs to the number of threads from which on more do not pay.
#[derive(Debug)]
pub(crate) struct HillClimb {
    threads: usize,
    most: usize,
    /// So many or fewer are slower, as was seen on the way here.
    slower: usize,
    phase: Phase,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    Rest { windows: u32 },
    More { before: usize, rate: f64 },
    Fewer { before: usize, rate: f64 },
}

impl HillClimb {
    /// Begins at `threads` of at most `most`; at least one.
    pub(crate) fn new(threads: usize, most: usize) -> Self {
        let phase = Phase::Rest { windows: 0 };
        Self { threads: threads.clamp(1, most.max(1)), most, slower: 0, phase }
    }

    /// How many threads there should be.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Decides how many there should be in the next window.
    pub(crate) fn note(&mut self, window: Window) {
        match self.phase {
            Phase::Rest { windows: 0 } if window.is_storage => self.try_more(window.rate),
            Phase::Rest { windows } => {
                self.phase = Phase::Rest { windows: windows.saturating_sub(1) };
            }
            Phase::More { before, rate } => {
                let more = self.threads as f64 / before as f64 - 1.0;
                if window.rate >= rate * (1.0 + more * GAIN) {
                    self.slower = before;
                    self.phase = Phase::Rest { windows: 0 };
                } else {
                    self.threads = before;
                    // Fewer may do, unless something else than storage held them up.
                    if window.is_storage { self.try_fewer(rate) } else { self.rest() }
                }
            }
            Phase::Fewer { before, rate } => {
                if window.is_storage && window.rate >= rate * KEPT {
                    self.try_fewer(rate);
                } else {
                    self.threads = before;
                    self.rest();
                }
            }
        }
    }

    fn try_more(&mut self, rate: f64) {
        if self.threads >= self.most {
            return self.try_fewer(rate);
        }
        self.phase = Phase::More { before: self.threads, rate };
        self.threads = (self.threads * 2).min(self.most);
    }

    fn try_fewer(&mut self, rate: f64) {
        if self.threads / 2 <= self.slower {
            return self.rest();
        }
        self.phase = Phase::Fewer { before: self.threads, rate };
        self.threads /= 2;
    }

    fn rest(&mut self) {
        self.slower = 0;
        self.phase = Phase::Rest { windows: REST_WINDOWS };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What kinds of storage give to so many threads.
    type Storage = fn(f64) -> f64;

    const SHARE: Storage = |threads| 40.0 * threads;
    const FLASH: Storage = |threads| 1000.0 * threads.min(8.0);
    const SPINNING: Storage = |threads| 200.0 / (1.0 + 0.1 * threads);
    const ONE_AT_A_TIME: Storage = |_| 500.0;

    /// Where most of the windows are spent.
    fn settles(climb: &mut HillClimb, storage: Storage, is_storage: bool) -> usize {
        let mut windows = [0; 64];
        for _ in 0..200 {
            windows[climb.threads()] += 1;
            climb.note(Window { rate: storage(climb.threads() as f64), is_storage });
        }
        (0..64).max_by_key(|threads| windows[*threads]).unwrap()
    }

    #[test]
    fn each_kind_of_storage_gets_as_many_as_it_gains_from() {
        for from in [1, 2, 4, 16] {
            assert_eq!(settles(&mut HillClimb::new(from, 24), SHARE, true), 24);
            assert_eq!(settles(&mut HillClimb::new(from, 24), FLASH, true), 8);
            assert_eq!(settles(&mut HillClimb::new(from, 24), SPINNING, true), 1);
            assert_eq!(settles(&mut HillClimb::new(from, 24), ONE_AT_A_TIME, true), 1);
        }
    }

    #[test]
    fn where_storage_is_not_waited_for_nothing_is_tried() {
        let mut climb = HillClimb::new(2, 24);
        for storage in [SHARE, SPINNING] {
            for _ in 0..200 {
                climb.note(Window { rate: storage(2.0), is_storage: false });
                assert_eq!(climb.threads(), 2);
            }
        }
    }

    #[test]
    fn what_is_tried_is_undone_where_something_else_held_it_up() {
        let mut climb = HillClimb::new(4, 24);
        climb.note(Window { rate: 100.0, is_storage: true });
        assert_eq!(climb.threads(), 8);
        climb.note(Window { rate: 100.0, is_storage: false });
        assert_eq!(climb.threads(), 4, "not 2: storage was not what was seen");
    }

    #[test]
    fn it_follows_a_source_that_goes_on_elsewhere() {
        let mut climb = HillClimb::new(2, 24);
        assert_eq!(settles(&mut climb, SHARE, true), 24);
        assert_eq!(settles(&mut climb, SPINNING, true), 1);
        assert_eq!(settles(&mut climb, FLASH, true), 8);
    }

    #[test]
    fn what_is_tried_costs_little() {
        let (mut climb, mut done) = (HillClimb::new(8, 24), 0.0);
        for _ in 0..1000 {
            done += FLASH(climb.threads() as f64);
            climb.note(Window { rate: FLASH(climb.threads() as f64), is_storage: true });
        }
        assert!(done > 0.97 * 1000.0 * FLASH(8.0), "{done}");
    }
}
