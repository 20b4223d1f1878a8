//! Clocks that are wrong in all ways: whatever they show, no snapshot goes before it has truly been
//! there for as long as nothing may go, and none that was asked for before its delay.

use super::*;
use Step::{Jump, Off, Pass};

/// As long as nothing goes, by the usual rules, and how long a deletion waits.
const LOCK_HOURS: i64 = 30 * 24;
const DELAY_HOURS: i64 = 7 * 24;
const YEAR: i64 = 365 * 24;
/// The server looks so often.
const LOOK_HOURS: i64 = 6;

/// What happens next, in hours.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// Time that passes, by all clocks.
    Pass(i64),
    /// The clock is set while the server runs.
    Jump(i64),
    /// The server is off for so long, and the clock then shows so much more or less than that.
    Off(i64, i64),
}

/// Thirty ways; in front of each are three days of a snapshot every three hours.
const SCENARIOS: &[(&str, &[Step])] = &[
    ("it goes evenly", &[Pass(10 * 24)]),
    ("ahead by an hour", &[Jump(1), Pass(72)]),
    ("ahead by a day", &[Jump(24), Pass(72)]),
    ("ahead by a month", &[Jump(31 * 24), Pass(72)]),
    ("ahead by a year", &[Jump(YEAR), Pass(72)]),
    ("ahead by ten years, and a week goes by", &[Jump(10 * YEAR), Pass(7 * 24)]),
    ("ahead by a century", &[Jump(100 * YEAR), Pass(72)]),
    ("back by an hour", &[Jump(-1), Pass(72)]),
    ("back by a day", &[Jump(-24), Pass(72)]),
    ("back by a year", &[Jump(-YEAR), Pass(72)]),
    ("back by fifty years", &[Jump(-50 * YEAR), Pass(72)]),
    ("ahead and back at once", &[Jump(YEAR), Jump(-YEAR), Pass(72)]),
    ("ahead, and back after a day and a half", &[Jump(YEAR), Pass(36), Jump(-YEAR), Pass(72)]),
    ("back, and ahead after a day and a half", &[Jump(-YEAR), Pass(36), Jump(YEAR), Pass(72)]),
    ("ahead twice", &[Jump(YEAR), Pass(30), Jump(YEAR), Pass(72)]),
    (
        "ahead every day",
        &[Jump(40), Pass(25), Jump(40), Pass(25), Jump(40), Pass(25), Jump(40), Pass(30)],
    ),
    (
        "ahead by half a day, ten times",
        &[
            Jump(12),
            Pass(2),
            Jump(12),
            Pass(2),
            Jump(12),
            Pass(2),
            Jump(12),
            Pass(2),
            Jump(12),
            Pass(2),
            Jump(12),
            Pass(2),
            Jump(12),
            Pass(2),
            Jump(12),
            Pass(2),
            Jump(12),
            Pass(2),
            Jump(12),
            Pass(48),
        ],
    ),
    (
        "to and fro by a year",
        &[Jump(YEAR), Pass(3), Jump(-YEAR), Pass(3), Jump(YEAR), Pass(3), Jump(-YEAR), Pass(48)],
    ),
    ("off for an hour", &[Off(1, 0), Pass(72)]),
    ("off for a week", &[Off(7 * 24, 0), Pass(72)]),
    ("off for two months", &[Off(60 * 24, 0), Pass(72)]),
    ("off for an hour, and ahead by a year", &[Off(1, YEAR), Pass(72)]),
    ("off for an hour, and ahead by sixteen days", &[Off(1, 16 * 24), Pass(72)]),
    ("off for an hour, and back by a year", &[Off(1, -YEAR), Pass(72)]),
    (
        "without a battery: in 1970 after every start",
        &[
            Off(1, -50 * YEAR),
            Jump(50 * YEAR),
            Pass(30),
            Off(1, -50 * YEAR),
            Jump(50 * YEAR),
            Pass(30),
        ],
    ),
    ("off for a week with a clock that stood still", &[Off(7 * 24, -7 * 24), Pass(72)]),
    ("off, and ahead, and off again", &[Off(2, YEAR), Pass(26), Off(2, YEAR), Pass(48)]),
    ("ahead, then off before a day was over", &[Jump(YEAR), Pass(12), Off(2, 0), Pass(48)]),
    ("ahead by a year, and a month goes by", &[Jump(YEAR), Pass(LOCK_HOURS - 90), Pass(48)]),
    ("off for nearly two weeks, twice", &[Off(13 * 24, 0), Pass(6), Off(13 * 24, 0), Pass(48)]),
    ("it goes evenly for two months", &[Pass(60 * 24)]),
];

#[test]
fn whatever_the_clock_does_nothing_goes_before_its_time() {
    let names: std::collections::BTreeSet<_> = SCENARIOS.iter().map(|(name, _)| name).collect();
    assert!(names.len() == SCENARIOS.len() && names.len() >= 30, "{} scenarios", names.len());
    let mut gone = 0;
    for (name, steps) in SCENARIOS {
        gone += run(name, steps);
    }
    assert!(gone > 0, "where two months go by evenly, rules let some go");
}

/// A world, and how many hours have truly passed.
struct Truth {
    world: World,
    hours: i64,
    /// When each snapshot was made.
    made: Vec<(String, i64)>,
    /// A deletion was asked for of this one, at that hour.
    asked: (String, i64),
    gone: usize,
}

/// Goes through one scenario, and gives how many snapshots went.
fn run(name: &str, steps: &[Step]) -> usize {
    let mut world = World::new();
    let mut made = Vec::new();
    world.prune();
    for hour in (0..72).step_by(3) {
        made.push((world.back_up(&format!("hour {hour}"), 100).to_string(), hour));
        world.clocks.pass(3 * HOUR_NS);
    }
    let asked = (made[5].0.clone(), 72);
    world.administration().forget("laptop", std::slice::from_ref(&asked.0)).unwrap();
    let mut truth = Truth { world, hours: 72, made, asked, gone: 0 };
    truth.look(name);
    for step in steps {
        truth.take(name, *step);
    }
    truth.gone
}

impl Truth {
    fn take(&mut self, name: &str, step: Step) {
        match step {
            Pass(hours) => {
                for _ in 0..hours / LOOK_HOURS {
                    self.world.clocks.pass(LOOK_HOURS * HOUR_NS);
                    self.hours += LOOK_HOURS;
                    self.look(name);
                }
            }
            Jump(hours) => self.world.clocks.jump(hours * HOUR_NS),
            Off(hours, wrong) => {
                self.world.restart();
                self.world.clocks.jump((hours + wrong) * HOUR_NS);
                self.hours += hours;
            }
        }
        self.look(name);
    }

    /// Has the server apply its rules, and looks at what they let go.
    fn look(&mut self, name: &str) {
        let pruned = self.world.prune();
        assert_eq!(pruned.problem, None, "{name}");
        for forgotten in &pruned.forgotten {
            let (_, at) = self.made.iter().find(|(id, _)| *id == forgotten.id).unwrap();
            let (age, waited) = (self.hours - at, self.hours - self.asked.1);
            let was_asked = forgotten.id == self.asked.0 && waited >= DELAY_HOURS;
            assert!(age >= LOCK_HOURS || was_asked, "{name}: one went that was {age} hours old");
        }
        self.gone += pruned.forgotten.len();
    }
}

impl World {
    /// Comes back as after a restart: what was in memory alone is gone.
    fn restart(&mut self) {
        self.stores.forget_clock();
    }
}
