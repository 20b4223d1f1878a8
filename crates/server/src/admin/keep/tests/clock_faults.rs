//! Clocks that are wrong in all ways: whatever they show, no snapshot goes before it has truly been
//! there for as long as nothing may go, and none that was asked for before its delay; no pack before its
//! grace is truly over, and nothing of a backup that somebody may go on with.

use super::*;
use Step::{Ask, BackUp, Jump, Off, Pass, Reboot, Slip};
use holdall_format::{SeriesId, StoredRecord};
use holdall_protocol::RecordQuery;
use holdall_repository::EARLIEST_NS;

/// As long as nothing goes, by the usual rules, and how long a deletion waits.
const LOCK_HOURS: i64 = 30 * 24;
const DELAY_HOURS: i64 = 7 * 24;
/// How long packs stay that are condemned.
const GRACE_HOURS: i64 = 24;
/// How long all stays that came since somebody began to back up who did not end.
const SESSION_HOURS: i64 = 7 * 24;
const WEEK: i64 = 7 * 24;
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
    /// The same, and nobody looks before the next step.
    Slip(i64),
    /// The server is off for so long while the computer runs, and the clock then shows so much more or less
    /// than that.
    Off(i64, i64),
    /// The computer is off, in the same way.
    Reboot(i64, i64),
    /// A snapshot is made.
    BackUp,
    /// A deletion of one more snapshot is asked for.
    Ask,
}

/// How a scenario ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct End {
    /// When the pack went that was condemned just before, in hours that have truly passed since.
    pack_went: Option<i64>,
    /// How many snapshots went.
    gone: usize,
    /// Whether nothing goes yet, since the clock is not believed.
    is_frozen: bool,
}

/// The pack went after so many hours, and so many snapshots did.
const fn went(hours: i64, gone: usize) -> End {
    End { pack_went: Some(hours), gone, is_frozen: false }
}

/// The pack is still there, and may go once the clock has gone on for long enough.
const WAITS: End = End { pack_went: None, gone: 0, is_frozen: false };
/// The pack is still there, and nothing goes.
const FROZEN: End = End { is_frozen: true, ..WAITS };

/// What happens, and how it ends.
type Scenario = (&'static str, &'static [Step], End);

/// Clocks that go wrong. In front of each are three days of a snapshot every three hours, and rules that
/// keep one.
const FAULTS: &[Scenario] = &[
    ("ahead by an hour", &[Jump(1), Pass(72)], went(24, 0)),
    ("ahead by a day", &[Jump(24), Pass(72)], went(24, 0)),
    ("ahead by a month", &[Jump(31 * 24), Pass(72)], went(24, 0)),
    ("ahead by a year", &[Jump(YEAR), Pass(72)], went(24, 0)),
    ("ahead by ten years, and a week goes by", &[Jump(10 * YEAR), Pass(WEEK)], went(24, 1)),
    ("ahead by a century", &[Jump(100 * YEAR), Pass(72)], went(24, 0)),
    ("back by an hour", &[Jump(-1), Pass(72)], went(30, 0)),
    ("back by a day", &[Jump(-24), Pass(72)], went(48, 0)),
    ("back by a year", &[Jump(-YEAR), Pass(72)], WAITS),
    ("back by fifty years", &[Jump(-50 * YEAR), Pass(72)], FROZEN),
    ("ahead and back at once", &[Jump(YEAR), Jump(-YEAR), Pass(72)], went(24, 0)),
    (
        "ahead, and back after a day and a half",
        &[Jump(YEAR), Pass(36), Jump(-YEAR), Pass(72)],
        went(24, 0),
    ),
    (
        "back, and ahead after a day and a half",
        &[Jump(-YEAR), Pass(36), Jump(YEAR), Pass(72)],
        went(60, 0),
    ),
    ("ahead twice", &[Jump(YEAR), Pass(30), Jump(YEAR), Pass(72)], went(24, 0)),
    (
        "ahead every day",
        &[Jump(40), Pass(25), Jump(40), Pass(25), Jump(40), Pass(25), Jump(40), Pass(30)],
        went(24, 0),
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
        went(42, 0),
    ),
    (
        "to and fro by a year",
        &[Jump(YEAR), Pass(3), Jump(-YEAR), Pass(3), Jump(YEAR), Pass(3), Jump(-YEAR), Pass(48)],
        went(33, 0),
    ),
    (
        "back by forty days for two snapshots",
        &[Slip(-40 * 24), BackUp, BackUp, Slip(40 * 24), Pass(72)],
        went(30, 0),
    ),
    (
        "back by eight days for a deletion that is asked for",
        &[Slip(-8 * 24), Ask, Slip(8 * 24), Pass(72)],
        went(30, 0),
    ),
    ("off, and ahead by eight days", &[Off(1, 8 * 24), Pass(72)], went(25, 0)),
    ("off, and ahead by thirteen days", &[Off(1, 13 * 24), Pass(72)], went(25, 0)),
    (
        "off, and ahead by thirteen days, three times",
        &[Off(1, 13 * 24), Pass(6), Off(1, 13 * 24), Pass(6), Off(1, 13 * 24), Pass(48)],
        went(39, 0),
    ),
    ("off, and ahead by sixteen days", &[Off(1, 16 * 24), Pass(72)], went(25, 0)),
    ("off, and ahead by a year", &[Off(1, YEAR), Pass(72)], went(25, 0)),
    ("off, and back by a year", &[Off(1, -YEAR), Pass(72)], WAITS),
    (
        "off, and ahead, and off again",
        &[Off(2, YEAR), Pass(26), Off(2, YEAR), Pass(48)],
        went(26, 0),
    ),
    (
        "ahead, then off before a day was over",
        &[Jump(YEAR), Pass(12), Off(2, 0), Pass(48)],
        went(26, 0),
    ),
    (
        "off, and back by forty days for two snapshots",
        &[Off(1, -40 * 24), BackUp, BackUp, Off(1, 40 * 24), Pass(72)],
        went(26, 0),
    ),
    ("switched off, and ahead by eight days", &[Reboot(1, 8 * 24), Pass(72)], went(25, 0)),
    ("switched off, and ahead by thirteen days", &[Reboot(1, 13 * 24), Pass(72)], went(25, 0)),
    (
        "switched off, and ahead by thirteen days, three times",
        &[Reboot(1, 13 * 24), Pass(6), Reboot(1, 13 * 24), Pass(6), Reboot(1, 13 * 24), Pass(48)],
        went(27, 0),
    ),
    ("switched off, and ahead by sixteen days", &[Reboot(1, 16 * 24), Pass(72)], went(25, 0)),
    ("switched off, and ahead by a year", &[Reboot(1, YEAR), Pass(72)], went(25, 0)),
    ("switched off, and back by a year", &[Reboot(1, -YEAR), Pass(72)], WAITS),
    (
        "without a battery: in 1970 after every start",
        &[
            Reboot(1, -50 * YEAR),
            Jump(50 * YEAR),
            Pass(30),
            Reboot(1, -50 * YEAR),
            Jump(50 * YEAR),
            Pass(30),
        ],
        went(25, 0),
    ),
    (
        "without a battery: in 1970 while somebody asks",
        &[Reboot(1, -50 * YEAR), Ask, Jump(50 * YEAR), Pass(72), Ask, Pass(72)],
        went(25, 0),
    ),
    (
        "without a battery: forty days ago for two snapshots after a start",
        &[Reboot(1, -40 * 24), BackUp, BackUp, Jump(40 * 24), Pass(72)],
        went(25, 0),
    ),
    (
        "switched off for a week with a clock that stood still",
        &[Reboot(WEEK, -WEEK), Pass(72)],
        went(192, 0),
    ),
];

/// Clocks that are right.
const SOUND: &[Scenario] = &[
    ("it goes evenly", &[Pass(10 * 24)], went(24, 1)),
    ("it goes evenly for two months", &[Pass(60 * 24)], went(24, 23)),
    ("off for an hour", &[Off(1, 0), Pass(72)], went(25, 0)),
    ("off for a week", &[Off(WEEK, 0), Pass(72)], went(168, 1)),
    ("off for two months", &[Off(60 * 24, 0), Pass(72)], went(1440, 23)),
    (
        "off for nearly two weeks, twice",
        &[Off(13 * 24, 0), Pass(6), Off(13 * 24, 0), Pass(48)],
        went(312, 11),
    ),
    ("switched off for an hour", &[Reboot(1, 0), Pass(72)], went(25, 0)),
    ("switched off for a week", &[Reboot(WEEK, 0), Pass(72)], went(192, 0)),
    ("switched off for two months", &[Reboot(60 * 24, 0), Pass(72)], went(1464, 0)),
];

#[test]
fn whatever_the_clock_does_nothing_goes_before_its_time() {
    let all = || FAULTS.iter().chain(SOUND);
    let names: std::collections::BTreeSet<_> = all().map(|(name, _, _)| name).collect();
    assert_eq!(names.len(), all().count());
    assert!(FAULTS.len() >= 30, "{} faults", FAULTS.len());
    for table in [FAULTS, SOUND] {
        let ended = beside_each_other(table, |(name, steps, _)| run(name, steps.iter().copied()));
        for ((name, _, end), ended) in table.iter().zip(ended) {
            assert_eq!(ended, *end, "{name}");
        }
    }
}

/// Later than where it runs on, and not never.
#[test]
fn a_server_that_is_switched_off_every_night_lets_go_of_what_is_old() {
    let nights = |count| [Pass(18), Reboot(6, 0)].repeat(count);
    assert_eq!(run("thirty nights", nights(29).into_iter()).gone, 1, "what was asked for");
    assert!(run("forty nights", nights(45).into_iter()).gone > 1);
}

/// All within this of the newest snapshot is kept, in other runs.
const WITHIN_HOURS: i64 = 20 * 24;

/// Where a snapshot follows each thing that happens, none goes that truly came that short a time before the
/// newest.
#[test]
fn whatever_the_clock_does_all_within_is_kept() {
    let policy =
        Policy { within_ns: Some(WITHIN_HOURS * HOUR_NS), lock_ns: HOUR_NS, ..Policy::default() };
    let with_snapshots = |steps: &[Step]| {
        let happens = steps.iter().filter(|step| !matches!(step, Ask));
        happens.flat_map(|step| [*step, BackUp]).chain([Pass(72)]).collect::<Vec<_>>()
    };
    let gone = |table: &[Scenario]| -> usize {
        let ended = beside_each_other(table, |(name, steps, _)| {
            run_by(policy, name, with_snapshots(steps).into_iter())
        });
        ended.iter().map(|end| end.gone).sum()
    };
    gone(FAULTS);
    assert!(gone(SOUND) > 0, "where two months go by evenly, some go");
}

/// A world, and how many hours have truly passed.
struct Truth {
    name: String,
    world: World,
    policy: Policy,
    hours: i64,
    /// When each snapshot was made, by its id.
    made: Vec<(String, i64)>,
    /// When the deletion of a snapshot was asked for, by its id.
    asked: Vec<(String, i64)>,
    /// What is more than all the others, for a pack that is condemned.
    large: RecordHash,
    /// The checkpoint of a backup that was begun before all that were made, and did not end.
    checkpoint: RecordHash,
    /// When packs that wait were condemned.
    condemned: Vec<i64>,
    end: End,
}

/// Goes through all scenarios at once: each waits for the disk most of the time.
fn beside_each_other(
    table: &[Scenario],
    run: impl Fn(&Scenario) -> End + Copy + Send + Sync,
) -> Vec<End> {
    std::thread::scope(|scope| {
        let running = table.iter().map(|scenario| scope.spawn(move || run(scenario)));
        let running: Vec<_> = running.collect();
        running.into_iter().map(|one| one.join().unwrap()).collect()
    })
}

/// Goes through one scenario with rules that keep one, and tells how it ends.
fn run(name: &str, steps: impl Iterator<Item = Step>) -> End {
    let lock_ns = LOCK_HOURS * HOUR_NS;
    run_by(Policy { last: 1, lock_ns, ..Policy::default() }, name, steps)
}

/// The same with these rules.
fn run_by(policy: Policy, name: &str, steps: impl Iterator<Item = Step>) -> End {
    let mut truth = Truth::new(policy, name);
    for _ in 0..24 {
        truth.back_up();
        truth.pass(3);
    }
    if policy.within_ns.is_none() {
        truth.ask();
    }
    truth.condemn();
    let truth = steps.fold(truth, Truth::take);
    truth.assert_whole();
    truth.end
}

impl Truth {
    fn new(policy: Policy, name: &str) -> Self {
        let mut world = World::new();
        // So that a year back a clock may show the right time, too.
        world.clocks.advance_ns(2 * YEAR * HOUR_NS);
        world.prune();
        let strict = Keeping { policy, ..Keeping::USUAL };
        world.accounts.set_keeping(Some("laptop"), strict.clone()).unwrap();
        world.clocks.advance_ns(DELAY_HOURS * HOUR_NS);
        world.prune();
        assert_eq!(world.accounts.keeping("laptop").now, strict);
        let large = world.back_up("large", 100_000);
        let checkpoint = world.begin("unfinished", 20_000);
        let (made, asked, condemned) = (Vec::new(), Vec::new(), Vec::new());
        let (name, end) = (name.to_owned(), WAITS);
        Self { name, world, policy, hours: 0, made, asked, large, checkpoint, condemned, end }
    }

    /// Forgets what is large, and has the pack be condemned that holds it.
    fn condemn(&mut self) {
        let store = self.world.stores.store("laptop").unwrap();
        store.forget(&[self.large], TombstoneReason::Request).unwrap();
        assert_eq!(self.world.prune().condemned_packs, 1, "{}", self.name);
        self.condemned.push(self.hours);
    }

    fn take(mut self, step: Step) -> Self {
        match step {
            Pass(hours) => {
                for passed in (0..hours).step_by(LOOK_HOURS as usize) {
                    self.pass(LOOK_HOURS.min(hours - passed));
                    self.look();
                }
            }
            Jump(hours) => {
                self.world.clocks.jump_ns(hours * HOUR_NS);
                self.look();
            }
            Slip(hours) => self.world.clocks.jump_ns(hours * HOUR_NS),
            Off(hours, wrong) => {
                self.pass(hours);
                self.world.clocks.jump_ns(wrong * HOUR_NS);
                self = self.restarted();
            }
            Reboot(hours, wrong) => {
                self.hours += hours;
                self.world.clocks.reboot((hours + wrong) * HOUR_NS);
                self = self.restarted();
            }
            BackUp => self.back_up(),
            Ask => self.ask(),
        }
        self
    }

    fn pass(&mut self, hours: i64) {
        self.world.clocks.advance_ns(hours * HOUR_NS);
        self.hours += hours;
    }

    /// Comes back as after a restart: what was in memory alone is gone.
    fn restarted(self) -> Self {
        let mut truth = Self { world: self.world.restarted(|_| ()), ..self };
        truth.look();
        truth
    }

    fn back_up(&mut self) {
        let id = self.world.back_up(&format!("number {}", self.made.len()), 100);
        self.made.push((id.to_string(), self.hours));
    }

    /// Asks for one more snapshot to be deleted.
    fn ask(&mut self) {
        let id = self.made[5 + self.asked.len()].0.clone();
        let asked = self.world.administration().forget("laptop", std::slice::from_ref(&id));
        // A clock that nobody has set yet says nothing of when it was.
        assert_eq!(asked.is_ok(), self.world.clocks.now_ns() >= EARLIEST_NS, "{}", self.name);
        if asked.is_ok() {
            self.asked.push((id, self.hours));
        }
    }

    /// Has the server apply its rules, and looks at what they let go.
    fn look(&mut self) {
        let pruned = self.world.prune();
        assert_eq!(pruned.problem, None, "{}", self.name);
        pruned.forgotten.iter().for_each(|one| self.assert_old(&one.id));
        self.end.gone += pruned.forgotten.len();
        self.end.is_frozen = pruned.frozen_until_ns.is_some();
        if pruned.alarm.is_some() {
            // Most of them were old enough at once, as where the server was off for long.
            self.world.resume();
        }
        self.look_at_packs(&pruned);
    }

    /// A snapshot that went had been there, or waited, for long enough.
    fn assert_old(&self, id: &str) {
        let since = |all: &[(String, i64)]| {
            let (_, at) = all.iter().find(|(one, _)| one == id)?;
            Some(self.hours - at)
        };
        let age = since(&self.made).unwrap();
        let was_asked = since(&self.asked).is_some_and(|it| it >= DELAY_HOURS);
        let newest = self.made.last().map_or(self.hours, |(_, at)| *at);
        let before_newest = newest - (self.hours - age);
        let is_kept = self.policy.within_ns.is_some_and(|ns| before_newest * HOUR_NS <= ns);
        let is_old = !is_kept && age * HOUR_NS >= self.policy.lock_ns || was_asked;
        assert!(is_old, "{}: one went that was {age} hours old", self.name);
    }

    /// Packs that went had waited for long enough, and nothing was condemned of what came since a backup was
    /// begun that somebody may go on with.
    fn look_at_packs(&mut self, pruned: &PrunedEntry) {
        for condemned in self.condemned.drain(..pruned.deleted_packs as usize) {
            let waited = self.hours - condemned;
            assert!(waited >= GRACE_HOURS, "{}: a pack went after {waited} hours", self.name);
            self.end.pack_went.get_or_insert(waited);
        }
        let may_be_gone_on_with = self.hours <= SESSION_HOURS;
        assert!(pruned.condemned_packs == 0 || !may_be_gone_on_with, "{}: {pruned:?}", self.name);
        self.condemned.extend((0..pruned.condemned_packs).map(|_| self.hours));
    }

    /// Everything that is still there is whole, and what the unfinished backup came to is among it.
    fn assert_whole(&self) {
        let store = self.world.stores.store("laptop").unwrap();
        let damaged = store.scrub(&AtomicBool::new(false), &mut |_| {}).unwrap().damaged;
        assert_eq!(damaged, [], "{}", self.name);
        let query = RecordQuery { limit: 1000, ..RecordQuery::default() };
        let machine = store.for_machine(MACHINE, self.world.forge.key.public());
        let listed = machine.records(&query).unwrap();
        let mut records = listed.iter().filter_map(|one| StoredRecord::decode(&one.stored).ok());
        let is_there = records.any(|stored| stored.record.hash() == self.checkpoint);
        assert!(is_there, "{}: a checkpoint went after {} hours", self.name, self.hours);
    }
}

impl World {
    /// A checkpoint of so much, as much that was put behind it, and no snapshot.
    fn begin(&mut self, name: &str, bytes: usize) -> RecordHash {
        let id = |text: &str| ObjectId::from_bytes(*blake3::hash(text.as_bytes()).as_bytes());
        let [chunk, late] = ["content", "later"].map(|part| id(&format!("{name} {part}")));
        let root = id(name);
        let machine =
            self.stores.store("laptop").unwrap().for_machine(MACHINE, self.forge.key.public());
        let purpose = SessionPurpose::Backup { parents: vec![] };
        let session = machine.open_session(&purpose).unwrap().session;
        let blocks =
            [self.forge.chunks_of_bytes(&[chunk], bytes), self.forge.nodes(&[(root, &[chunk])])];
        machine.put_blocks(&session, &blocks).unwrap();
        let head = self.forge.record_head(RecordKind::Checkpoint, root, self.head);
        let series = SeriesId::from_bytes([4; 16]);
        let record = self.forge.sign(RecordHead { series, ..head });
        assert!(matches!(machine.commit(&session, &record).unwrap(), CommitAnswer::Committed(_)));
        machine.put_blocks(&session, &[self.forge.chunks_of_bytes(&[late], bytes)]).unwrap();
        let record = Record::decode(&record).unwrap();
        self.head = Some((record.hash(), record.head.sequence));
        record.hash()
    }
}
