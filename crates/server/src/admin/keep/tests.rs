//! A server's house, in which time passes as it is told.

mod alarms;
mod clock_faults;
mod copies;
mod damage;
mod defaults;
mod upkeep;

use holdall_testkit::FakeClock;

use super::*;
use crate::LogSink;
use crate::accounts::Accounts;
use crate::admin::RepositoryEntry;
use crate::auth::actor::Actor;
use crate::auth::identity::ServerIdentity;
use crate::data_folder::DataFolder;
use crate::jobs::Jobs;
use crate::stores::Stores;
use bytes::Bytes;
use holdall_format::{MachineId, ObjectId, Record, RecordHead, RecordKind, SeriesId, TagToken};
use holdall_protocol::contract::Forge;
use holdall_protocol::{CommitAnswer, Repository, SessionPurpose};
use holdall_repository::retention::Policy;
use holdall_sys::Clock;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

const HOUR_NS: i64 = 3600 * 1_000_000_000;
const DAY_NS: i64 = 24 * HOUR_NS;
const MACHINE: MachineId = MachineId::from_bytes([3; 16]);

/// A server's folder with one repository, without a server.
struct World {
    clocks: Arc<FakeClock>,
    accounts: Arc<Accounts>,
    stores: Stores,
    log: LogSink,
    /// What the log was told.
    told: Arc<Mutex<Vec<String>>>,
    forge: Forge,
    head: Option<(RecordHash, u64)>,
    actor: Actor,
    jobs: Jobs,
    should_stop: AtomicBool,
    temp: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let clocks = Arc::new(FakeClock::default());
        clocks.jump_ns(1_700_000_000_000_000_000);
        Self::open(tempfile::tempdir().unwrap(), clocks, Forge::new(1, MACHINE, &[8; 32]), None)
    }

    /// The same after the server was started anew; its files may be changed by `meanwhile`.
    fn restarted(self, meanwhile: impl FnOnce(&std::path::Path)) -> Self {
        let Self { temp, clocks, forge, head, accounts, stores, .. } = self;
        drop((accounts, stores));
        meanwhile(&temp.path().join("repositories/laptop"));
        Self::open(temp, clocks, forge, head)
    }

    fn open(
        temp: tempfile::TempDir,
        clocks: Arc<FakeClock>,
        forge: Forge,
        head: Option<(RecordHash, u64)>,
    ) -> Self {
        let folder = Arc::new(DataFolder::take(temp.path()).unwrap());
        let clock: Arc<dyn Clock> = Arc::clone(&clocks) as _;
        let accounts = Arc::new(Accounts::open(&folder.database(), clock).unwrap());
        let signer = Arc::new(ServerIdentity::of(&folder).unwrap());
        let told = Arc::new(Mutex::new(Vec::new()));
        let lines = Arc::clone(&told);
        let log: LogSink = Arc::new(move |line| lines.lock().unwrap().push(line.to_owned()));
        let repository = folder.repository("laptop");
        if !repository.exists() {
            Store::create(&repository, &forge.new_repository()).unwrap();
            accounts.watch_anew("laptop").unwrap();
        }
        accounts.watch_clock().unwrap();
        let stores = Stores::new(folder, signer, accounts.clone(), log.clone());
        let should_stop = AtomicBool::new(false);
        let actor = Actor::terminal();
        Self {
            clocks,
            accounts,
            stores,
            log,
            told,
            forge,
            head,
            actor,
            jobs: Jobs::default(),
            should_stop,
            temp,
        }
    }

    fn administration(&self) -> Administration<'_> {
        Administration {
            accounts: &self.accounts,
            stores: &self.stores,
            identity: self.forge.key.public(),
            listen: "127.0.0.1:1".parse().unwrap(),
            log: &self.log,
            actor: &self.actor,
            activities: None,
            short_codes: None,
            #[cfg(feature = "web")]
            web_sessions: None,
            jobs: &self.jobs,
            job: None,
            should_stop: &self.should_stop,
        }
    }

    /// Damages what is in no pack yet.
    fn flip_a_byte(&self) {
        let tails = self.temp.path().join("repositories/laptop/tails");
        let files = std::fs::read_dir(tails).unwrap().map(|entry| entry.unwrap().path());
        let payloads = files.filter(|path| path.extension().is_some_and(|end| end == "payload"));
        let length = |path: &std::path::PathBuf| std::fs::metadata(path).unwrap().len();
        let largest = payloads.max_by_key(length).unwrap();
        let mut bytes = std::fs::read(&largest).unwrap();
        bytes[1000] ^= 1;
        std::fs::write(largest, bytes).unwrap();
    }

    /// A snapshot of so many chunks that lie in one block of that length, and one of the first of them
    /// alone; says which the former is, and the chunks.
    fn back_up_together(&mut self, count: usize, bytes: usize) -> (RecordHash, Vec<ObjectId>) {
        let id = |text: String| ObjectId::from_bytes(*blake3::hash(text.as_bytes()).as_bytes());
        let chunks: Vec<ObjectId> = (0..count).map(|chunk| id(format!("chunk {chunk}"))).collect();
        let [all, first] = ["all", "first"].map(|root| id(root.to_owned()));
        let block = self.forge.chunks_of_bytes(&chunks, bytes);
        let old = self.commit(all, vec![block, self.forge.nodes(&[(all, &chunks)])]);
        self.commit(first, vec![self.forge.nodes(&[(first, &chunks[..1])])]);
        (old, chunks)
    }

    /// A snapshot of so much that nobody else has.
    fn back_up(&mut self, name: &str, bytes: usize) -> RecordHash {
        let id = |text: &str| ObjectId::from_bytes(*blake3::hash(text.as_bytes()).as_bytes());
        let (root, chunk) = (id(name), id(&format!("{name} content")));
        let blocks = vec![
            self.forge.chunks_of_bytes(&[chunk], bytes),
            self.forge.nodes(&[(root, &[chunk])]),
        ];
        self.commit(root, blocks)
    }

    /// A snapshot of that root, for which these blocks are put.
    fn commit(&mut self, root: ObjectId, blocks: Vec<Bytes>) -> RecordHash {
        self.commit_head(root, blocks, |_| ())
    }

    /// The same with a head that is changed before it is signed.
    fn commit_head(
        &mut self,
        root: ObjectId,
        blocks: Vec<Bytes>,
        change: impl FnOnce(&mut RecordHead),
    ) -> RecordHash {
        let machine =
            self.stores.store("laptop").unwrap().for_machine(MACHINE, self.forge.key.public());
        let purpose = SessionPurpose::Backup { parents: vec![] };
        let session = machine.open_session(&purpose).unwrap().session;
        machine.put_blocks(&session, &blocks).unwrap();
        let mut head = self.forge.record_head(RecordKind::Snapshot, root, self.head);
        change(&mut head);
        let record = self.forge.sign(head);
        let answer = machine.commit(&session, &record).unwrap();
        assert!(matches!(answer, CommitAnswer::Committed(_)));
        let record = Record::decode(&record).unwrap();
        self.head = Some((record.hash(), record.head.sequence));
        record.hash()
    }

    /// Gives a snapshot that `back_up` made of `name` these tags.
    fn tag(&mut self, snapshot: RecordHash, name: &str, tags: Vec<TagToken>) {
        self.amend(snapshot, name, |head| head.tags = tags);
    }

    /// Amends a snapshot that `back_up` made of `name`.
    fn amend(&mut self, snapshot: RecordHash, name: &str, change: impl FnOnce(&mut RecordHead)) {
        let machine =
            self.stores.store("laptop").unwrap().for_machine(MACHINE, self.forge.key.public());
        let session = machine.open_session(&SessionPurpose::Read).unwrap().session;
        let root = ObjectId::from_bytes(*blake3::hash(name.as_bytes()).as_bytes());
        let mut head = self.forge.record_head(RecordKind::Amendment, root, self.head);
        head.amends = Some(snapshot);
        change(&mut head);
        let record = self.forge.sign(head);
        assert!(matches!(machine.commit(&session, &record).unwrap(), CommitAnswer::Committed(_)));
        let record = Record::decode(&record).unwrap();
        self.head = Some((record.hash(), record.head.sequence));
    }

    /// A snapshot of these chunks, of which those that are there are not sent again.
    fn back_up_chunks(&mut self, root: &str, chunks: &[String]) {
        let id = |text: &str| ObjectId::from_bytes(*blake3::hash(text.as_bytes()).as_bytes());
        let machine =
            self.stores.store("laptop").unwrap().for_machine(MACHINE, self.forge.key.public());
        let purpose = SessionPurpose::Backup { parents: vec![] };
        let session = machine.open_session(&purpose).unwrap().session;
        let ids: Vec<ObjectId> = chunks.iter().map(|chunk| id(chunk)).collect();
        let missing = machine.missing(&session, &ids).unwrap();
        let new: Vec<_> = ids.iter().zip(missing).filter(|(_, new)| *new).collect();
        let new: Vec<ObjectId> = new.into_iter().map(|(id, _)| *id).collect();
        let mut blocks = vec![self.forge.nodes(&[(id(root), &ids)])];
        if !new.is_empty() {
            blocks.push(self.forge.chunks_of_bytes(&new, 1000));
        }
        machine.put_blocks(&session, &blocks).unwrap();
        let record = self.forge.record(RecordKind::Snapshot, id(root), self.head);
        let answer = machine.commit(&session, &record).unwrap();
        assert!(matches!(answer, CommitAnswer::Committed(_)));
        let record = Record::decode(&record).unwrap();
        self.head = Some((record.hash(), record.head.sequence));
    }

    /// So many snapshots within a minute.
    fn flood(&mut self, name: &str, count: u32) {
        for number in 0..count {
            self.back_up(&format!("{name} {number}"), 100);
        }
        self.clocks.advance_ns(HOUR_NS / 60);
    }

    /// So many snapshots, each of a series of its own.
    fn flood_of_series(&mut self, count: usize) {
        let id = |number: usize| *blake3::hash(format!("series {number}").as_bytes()).as_bytes();
        let roots: Vec<ObjectId> = (0..count).map(|at| ObjectId::from_bytes(id(at))).collect();
        let nodes: Vec<(ObjectId, &[ObjectId])> = roots.iter().map(|id| (*id, &[][..])).collect();
        let machine =
            self.stores.store("laptop").unwrap().for_machine(MACHINE, self.forge.key.public());
        let purpose = SessionPurpose::Backup { parents: vec![] };
        let session = || machine.open_session(&purpose).unwrap().session;
        machine.put_blocks(&session(), &[self.forge.nodes(&nodes)]).unwrap();
        for root in roots {
            let mut head = self.forge.record_head(RecordKind::Snapshot, root, self.head);
            head.series = SeriesId::from_bytes(*root.as_bytes().first_chunk().unwrap());
            let record = self.forge.sign(head);
            let answer = machine.commit(&session(), &record).unwrap();
            assert!(matches!(answer, CommitAnswer::Committed(_)));
            let record = Record::decode(&record).unwrap();
            self.head = Some((record.hash(), record.head.sequence));
        }
    }

    /// Answers the alarm, and says what it was.
    fn resume(&self) -> Option<String> {
        self.administration().resume("laptop").unwrap()
    }

    fn prune(&self) -> PrunedEntry {
        self.administration().prune(Some("laptop"), false).unwrap().remove(0)
    }

    /// Prunes every day for so long.
    fn days(&self, days: i64) -> Vec<PrunedEntry> {
        let days = (0..days).map(|_| {
            self.clocks.advance_ns(DAY_NS);
            self.prune()
        });
        days.collect()
    }

    /// What an administrator is told of the repository.
    fn entry(&self) -> RepositoryEntry {
        self.administration().repositories().unwrap().remove(0)
    }

    fn damaged(&self) -> Vec<String> {
        self.entry().damaged
    }

    fn snapshots(&self) -> usize {
        self.stores.store("laptop").unwrap().judge(&Policy::USUAL, &[]).len()
    }
}

/// As a client that backs up every hour, for so many days.
fn hourly(world: &mut World, days: i64) {
    for hour in 0..days * 24 {
        world.back_up(&format!("hour {hour}"), 1000);
        world.clocks.advance_ns(HOUR_NS);
        if hour % 24 == 23 {
            assert_eq!(world.prune().problem, None);
        }
    }
}

#[test]
fn hourly_backups_thin_out_to_days_and_weeks_and_nothing_young_goes() {
    let mut world = World::new();
    hourly(&mut world, 29);
    assert_eq!(world.snapshots(), 29 * 24, "nothing is old enough to go");
    let mut stored = Vec::new();
    for _ in 0..2 {
        world.clocks.advance_ns(31 * DAY_NS);
        // The time that passed unseen looks like a server that was off.
        assert!(world.prune().frozen_until_ns.is_none(), "it ran all the time");
        // And like a burst: most of them are old enough at once.
        world.resume();
        world.clocks.advance_ns(25 * HOUR_NS);
        world.prune();
        stored.push(world.stores.store("laptop").unwrap().usage().stored_bytes);
    }
    // 24 hours, 29 days of which the newest is among those hours, and 5 weeks.
    let left = world.snapshots();
    assert!((24 + 28..=24 + 30).contains(&left), "{left}");
    assert!(stored[1] < 29 * 24 * 1000, "what was let go is given back: {stored:?}");
}

/// What is left once no lock keeps anything any more, of a server that prunes every day.
fn left_after_the_lock(world: &World) -> Vec<RecordHash> {
    for _ in 0..33 {
        world.clocks.advance_ns(DAY_NS);
        assert_eq!(world.prune().problem, None);
    }
    let there = world.stores.store("laptop").unwrap().judge(&Policy::USUAL, &[]);
    there.iter().map(|one| one.id).collect()
}

#[test]
fn what_has_a_kept_tag_stays_until_it_is_taken_off_or_kept_no_more() {
    let mut world = World::new();
    let ids: Vec<_> = (0..4).map(|number| world.back_up(&number.to_string(), 1000)).collect();
    let [kept, other] = [1, 2].map(|byte| TagToken::from_bytes([byte; 16]));
    for (number, tags) in [(0, vec![kept, other]), (1, vec![other]), (2, vec![kept])] {
        world.tag(ids[number], &number.to_string(), tags);
    }
    let keeping = |tags| Keeping {
        policy: Policy { last: 1, lock_ns: 30 * DAY_NS, ..Policy::default() },
        tags,
        ..Keeping::USUAL
    };
    world.accounts.set_keeping(Some("laptop"), keeping(vec![kept])).unwrap();
    assert_eq!(left_after_the_lock(&world), [ids[0], ids[2], ids[3]]);
    world.tag(ids[0], "0", vec![other]);
    assert_eq!(left_after_the_lock(&world), [ids[2], ids[3]]);
    world.accounts.set_keeping(Some("laptop"), keeping(Vec::new())).unwrap();
    assert_eq!(left_after_the_lock(&world), [ids[3]]);
}

#[test]
fn what_is_pinned_stays_until_the_pin_is_taken_off() {
    let mut world = World::new();
    let ids: Vec<_> = (0..3).map(|number| world.back_up(&number.to_string(), 1000)).collect();
    let rules = Policy { last: 1, lock_ns: 30 * DAY_NS, ..Policy::default() };
    let keeping = Keeping { policy: rules, ..Keeping::USUAL };
    world.accounts.set_keeping(Some("laptop"), keeping).unwrap();
    world.amend(ids[0], "0", |head| head.pinned = true);
    assert_eq!(left_after_the_lock(&world), [ids[0], ids[2]]);
    world.amend(ids[0], "0", |head| head.pinned = false);
    assert_eq!(left_after_the_lock(&world), [ids[2]]);
}

#[test]
fn a_pin_or_a_tag_that_comes_while_rules_are_carried_out_holds() {
    let mut world = World::new();
    let ids: Vec<_> = (0..4).map(|number| world.back_up(&number.to_string(), 1000)).collect();
    let (policy, kept) = (Policy { last: 1, ..Policy::default() }, TagToken::from_bytes([1; 16]));
    let store = world.stores.store("laptop").unwrap();
    let judged = store.judge(&policy, &[kept]).into_iter();
    let goes: Vec<_> = judged.filter(|one| one.reasons.is_empty()).map(|one| one.id).collect();
    assert_eq!(goes, ids[..3]);
    world.amend(ids[0], "0", |head| head.pinned = true);
    world.tag(ids[1], "1", vec![kept]);
    world.back_up("4", 1000);
    // Nobody judged the newest but one to go.
    assert_eq!(store.forget_by_rules(&goes, &policy, &[kept]).unwrap(), [ids[2]].into());
    assert!(!store.is_forgotten(&ids[0]) && !store.is_forgotten(&ids[1]));
}

#[test]
fn a_dry_run_goes_by_the_rules_that_are_in_force_by_then_and_changes_none() {
    let mut world = World::new();
    let all: Vec<_> = (0..3).map(|number| world.back_up(&number.to_string(), 100_000)).collect();
    let keeping = Keeping { policy: Policy { last: 1, ..Policy::default() }, ..Keeping::USUAL };
    world.accounts.set_keeping(Some("laptop"), keeping.clone()).unwrap();
    world.prune();
    let mut foreseen = PrunedEntry::default();
    for (days, gone) in [(6, 0), (2, 2)] {
        world.clocks.advance_ns(days * DAY_NS);
        let before = world.accounts.keeping("laptop");
        foreseen = world.administration().prune_one("laptop", true);
        let ids: Vec<_> = foreseen.forgotten.iter().map(|one| one.id.clone()).collect();
        let expected: Vec<_> = all[..gone].iter().map(ToString::to_string).collect();
        assert_eq!((ids, world.accounts.keeping("laptop")), (expected, before));
        assert_eq!(world.prune().forgotten, foreseen.forgotten);
    }
    assert_eq!(world.accounts.keeping("laptop").now, keeping);
    // What the snapshots that went held alone is counted, once the grace is over.
    world.clocks.advance_ns(2 * DAY_NS);
    let left = world.prune().stored_after_bytes;
    assert!(left < 150_000 && foreseen.stored_before_bytes > 300_000, "{left} {foreseen:?}");
    assert!(foreseen.stored_after_bytes.abs_diff(left) < 10_000, "{left} {foreseen:?}");
}

#[test]
fn whoever_asks_for_a_prune_is_told_what_went_and_why_nothing_does() {
    let mut world = World::new();
    let old: Vec<_> = (0..3).map(|number| world.back_up(&number.to_string(), 1000)).collect();
    let ask = |world: &World| world.administration().ask_prune("laptop", false).unwrap();
    assert_eq!(ask(&world).forgotten, []);
    world.clocks.advance_ns(40 * DAY_NS);
    let forgotten: Vec<_> = ask(&world).forgotten.iter().map(|(id, _)| *id).collect();
    assert_eq!(forgotten, old[..2]);
    world.flood("garbage", 120);
    let alarm = ask(&world).alarm;
    assert!(alarm.is_some() && alarm == world.prune().alarm, "{alarm:?}");
    // The log says it every time, and so does the list of repositories.
    for _ in 0..2 {
        assert!(world.prune().line().contains(alarm.as_deref().unwrap()));
    }
    assert_eq!(world.entry().alarm, alarm);
    world.resume();
    assert_eq!(world.entry().alarm, None);
}

#[test]
fn rules_that_keep_less_are_announced_until_they_are_in_force_or_taken_back() {
    let world = World::new();
    let announced = |world: &World| world.administration().announced("laptop").fewer_kept_from_ns;
    let less = Keeping { policy: Policy { daily: 1, ..Policy::USUAL }, ..Keeping::USUAL };
    let more = Keeping { delay_ns: 9 * DAY_NS, ..Keeping::USUAL };
    assert_eq!(announced(&world), None);
    world.accounts.set_keeping(Some("laptop"), less.clone()).unwrap();
    assert_eq!(announced(&world), Some(world.clocks.now_ns() + 7 * DAY_NS));
    world.accounts.set_keeping(Some("laptop"), more).unwrap();
    assert_eq!(announced(&world), None, "they were taken back");
    world.accounts.set_keeping(Some("laptop"), less).unwrap();
    world.clocks.advance_ns(9 * DAY_NS);
    assert!(announced(&world).is_some());
    world.prune();
    assert_eq!(announced(&world), None);
}

#[test]
fn damage_that_is_known_stays_known_when_the_clock_is_set_back() {
    let mut world = World::new();
    world.back_up("one", 100_000);
    world.flip_a_byte();
    let only_read = AlsoRepair { repair: false, dry_run: false, parity: None };
    world.administration().scrub(Some("laptop"), only_read).unwrap();
    let known = world.damaged();
    assert_eq!(known.len(), 1, "{known:?}");
    world.clocks.jump_ns(-3 * DAY_NS);
    for _ in 0..2 {
        world.administration().keep_house();
        assert_eq!(world.damaged().len(), 1, "{:?}", world.damaged());
    }
}

#[test]
fn what_comes_while_everything_is_read_does_not_count_as_read() {
    let mut world = World::new();
    world.back_up("one", 1000);
    let begun_ns = world.clocks.now_ns();
    let store = world.stores.store("laptop").unwrap();
    let report = store.scrub(&AtomicBool::new(false), &mut |_| {}).unwrap();
    world.clocks.advance_ns(HOUR_NS);
    store.note_scrubbed(begun_ns, &report).unwrap();
    assert_eq!(world.entry().read_since_ns, Some(begun_ns));
    assert_eq!(world.entry().read_by_ns, Some(world.clocks.now_ns() + 30 * DAY_NS));
}

#[test]
fn a_deletion_waits_can_be_cancelled_and_then_takes_only_what_was_asked() {
    let mut world = World::new();
    let ids: Vec<String> =
        (0..4).map(|number| world.back_up(&number.to_string(), 1000).to_string()).collect();
    let ask = |world: &World, id: &str| {
        let id = id.get(..12).unwrap().to_owned();
        world.administration().forget("laptop", &[id]).unwrap().number
    };
    let (first, second) = (ask(&world, &ids[0]), ask(&world, &ids[1]));
    assert_ne!(first, second);
    world.administration().cancel(first).unwrap();
    assert!(world.administration().cancel(first).is_err());
    assert!(world.administration().forget("laptop", &["ffff".to_owned()]).is_err());
    for _ in 0..7 {
        world.clocks.advance_ns(DAY_NS - 1);
        assert!(world.prune().forgotten.is_empty());
    }
    world.clocks.advance_ns(7);
    let pruned = world.prune();
    assert_eq!(pruned.forgotten.len(), 1);
    assert_eq!(pruned.forgotten[0].id, ids[1]);
    assert!(world.accounts.deletions().is_empty());
    assert_eq!(world.snapshots(), 3);
}

#[test]
fn what_is_done_to_one_repository_s_deletions_keeps_no_other_waiting() {
    let mut world = World::new();
    let ids = [(); 2].map(|()| world.back_up("one", 1000).to_string());
    for id in &ids {
        world.administration().forget("laptop", std::slice::from_ref(id)).unwrap();
    }
    let cancelled = world.accounts.deletions()[0].clone();
    let world = Arc::new(world);
    let asking = world.accounts.asking("table");
    let _held = asking.hold();
    let (done, doing) = std::sync::mpsc::channel();
    let of_thread = Arc::clone(&world);
    std::thread::spawn(move || {
        of_thread.administration().cancel(cancelled.number).unwrap();
        of_thread.clocks.advance_ns(8 * DAY_NS);
        done.send(of_thread.prune()).unwrap();
    });
    let pruned = doing.recv_timeout(std::time::Duration::from_secs(20)).expect("it waits");
    assert_eq!(pruned.problem, None);
    assert!(world.accounts.drop_deletion(&cancelled).is_err());
}

#[test]
fn blocks_that_gave_way_stay_for_the_delay_and_come_back_when_it_is_cancelled() {
    let mut world = World::new();
    let (old, chunks) = world.back_up_together(10, 3 << 20);
    let store = world.stores.store("laptop").unwrap();
    store.forget(&[old], TombstoneReason::Request).unwrap();
    let machine = store.for_machine(MACHINE, world.forge.key.public());
    let ask = |world: &World| {
        let sparse = world.administration().ask_sparse("laptop", 0).unwrap();
        let block = sparse.first().unwrap();
        assert_eq!(block.living, chunks[..1]);
        let purpose = SessionPurpose::Backup { parents: vec![] };
        let session = machine.open_session(&purpose).unwrap().session;
        machine.put_blocks(&session, &[world.forge.chunks(&block.living)]).unwrap();
        let administration = world.administration();
        let asked = administration.ask_supersede("laptop", &MACHINE, &session, &[block.arrival]);
        let asked = asked.unwrap();
        assert_eq!(asked.blocks, 1);
        asked.waiting.unwrap()
    };
    let stored = |world: &World| world.prune().stored_after_bytes;
    let is_large = |stored: u64| stored > 3 << 20;

    let waiting = ask(&world);
    assert_eq!((waiting.blocks, waiting.snapshots.len()), (1, 0));
    assert_eq!(waiting.due_ns - waiting.asked_ns, 7 * DAY_NS);
    let announced = world.administration().announced("laptop");
    assert_eq!(announced.deletions, std::slice::from_ref(&waiting));
    world.administration().cancel(waiting.number).unwrap();
    assert!(is_large(stored(&world)));
    assert!(store.held_supersessions().unwrap().is_empty(), "taken back");
    for _ in 0..10 {
        world.clocks.advance_ns(DAY_NS);
        assert!(is_large(stored(&world)), "it was cancelled");
    }

    ask(&world);
    for _ in 0..7 {
        world.clocks.advance_ns(DAY_NS - 1);
        assert!(is_large(stored(&world)));
    }
    assert_eq!(store.held_supersessions().unwrap().len(), 1);
    world.clocks.advance_ns(7);
    world.prune();
    assert!(world.accounts.deletions().is_empty());
    for _ in 0..2 {
        world.clocks.advance_ns(2 * DAY_NS);
        world.prune();
    }
    assert!(!is_large(stored(&world)));
    assert_eq!(store.scrub(&AtomicBool::new(false), &mut |_| {}).unwrap().damaged, []);
}

#[test]
fn rules_let_nothing_go_while_a_snapshot_is_damaged() {
    let mut world = World::new();
    for number in 0..5 {
        world.back_up(&number.to_string(), 1000);
        world.clocks.advance_ns(HOUR_NS);
    }
    let newest = Keeping { policy: Policy { last: 1, ..Policy::USUAL }, ..Keeping::USUAL };
    let rules = Policy { hourly: 0, daily: 0, weekly: 0, ..newest.policy };
    world.accounts.set_keeping(Some("laptop"), Keeping { policy: rules, ..newest }).unwrap();
    world.back_up("newest", 1000);
    let pass = |world: &World| {
        for _ in 0..33 {
            world.clocks.advance_ns(DAY_NS);
            world.accounts.watch_clock().unwrap();
        }
    };
    pass(&world);
    let mut payload = Vec::new();
    let mut world = world.restarted(|repository| {
        let file = holdall_testkit::only_file(&repository.join("tails"), "chunks.", ".payload");
        payload = std::fs::read(&file).unwrap();
        std::fs::write(file, &payload[..payload.len() - 500]).unwrap();
    });
    for _ in 0..3 {
        pass(&world);
        let pruned = world.prune();
        assert!(pruned.problem.is_some_and(|problem| problem.contains("nothing is deleted")));
        assert_eq!(pruned.forgotten, []);
        assert!(world.damaged().iter().any(|told| told.starts_with("snapshots: ")));
    }
    assert_eq!(world.snapshots(), 6);
    // What was lost comes back, and rules go on.
    world.back_up("newest", 1000);
    pass(&world);
    assert_eq!((world.prune().problem, world.snapshots()), (None, 1));
    assert!(!world.damaged().iter().any(|told| told.starts_with("snapshots: ")));
}

#[test]
fn a_shorter_lock_comes_into_force_by_no_clock_that_was_set() {
    let world = World::new();
    let mut hasty = Keeping { delay_ns: 0, ..Keeping::USUAL };
    hasty.policy.lock_ns = 0;
    world.accounts.set_keeping(Some("laptop"), hasty.clone()).unwrap();
    world.clocks.jump_ns(200 * DAY_NS);
    for _ in 0..6 {
        world.prune();
        assert_eq!(world.accounts.keeping("laptop").now, Keeping::USUAL);
        world.clocks.advance_ns(DAY_NS);
    }
    for _ in 0..3 {
        world.clocks.advance_ns(DAY_NS);
        world.prune();
    }
    assert_eq!(world.accounts.keeping("laptop").now, hasty, "it waited for as long as it was to");
}

#[test]
fn a_clock_that_was_set_deletes_nothing() {
    let mut world = World::new();
    hourly(&mut world, 3);
    let before = world.snapshots();
    for jump in [10 * 365 * DAY_NS, -9 * 365 * DAY_NS, 400 * DAY_NS] {
        world.clocks.jump_ns(jump);
        for _ in 0..3 {
            world.clocks.advance_ns(HOUR_NS);
            let pruned = world.prune();
            assert!(pruned.frozen_until_ns.is_some() && pruned.forgotten.is_empty());
        }
    }
    assert_eq!(world.snapshots(), before);
    // And once it is believed, rules that count still keep what they kept.
    world.clocks.advance_ns(DAY_NS);
    assert!(world.prune().frozen_until_ns.is_none());
    assert!(world.snapshots() >= 24);
}

#[test]
fn a_snapshot_that_came_ahead_makes_no_other_look_old_though_its_time_has_come() {
    let mut world = World::new();
    let mut keeping = Keeping::USUAL;
    keeping.policy = Policy { within_ns: Some(10 * DAY_NS), lock_ns: HOUR_NS, ..Policy::default() };
    world.accounts.set_keeping(Some("laptop"), keeping).unwrap();
    world.clocks.advance_ns(8 * DAY_NS);
    world.prune();
    let first = world.back_up("first", 1000);
    world.clocks.jump_ns(14 * DAY_NS);
    world.back_up("ahead", 1000);
    world.clocks.jump_ns(-14 * DAY_NS);
    // What comes behind it tells, also of another kind.
    world.tag(first, "first", vec![]);
    for _ in 0..20 {
        world.clocks.advance_ns(DAY_NS);
        assert_eq!(world.prune().forgotten, []);
    }
    assert_eq!(world.snapshots(), 2);
}

#[test]
fn the_grace_of_packs_is_not_over_because_the_computer_was_off() {
    let mut world = World::new();
    // More than a pack.
    let all: Vec<_> = (0..11).map(|part| world.back_up(&part.to_string(), 5 << 20)).collect();
    let store = world.stores.store("laptop").unwrap();
    store.forget(&all[..10], TombstoneReason::Request).unwrap();
    drop(store);
    let condemned = world.prune();
    let packs = condemned.waiting_packs;
    assert!(packs > 0 && condemned.deleted_packs == 0, "{condemned:?}");
    world.clocks.reboot(13 * DAY_NS);
    let world = world.restarted(|_| ());
    for hours in [0, 23] {
        world.clocks.advance_ns(hours * HOUR_NS);
        assert_eq!(world.prune().deleted_packs, 0);
    }
    world.clocks.advance_ns(HOUR_NS);
    assert_eq!(world.prune().deleted_packs, packs);
}

#[test]
fn a_full_repository_is_told_and_thinned_only_once_that_is_confirmed() {
    let mut world = World::new();
    for day in 0..100 {
        world.back_up(&format!("day {day}"), 1000);
        world.clocks.advance_ns(DAY_NS);
    }
    world.stores.store("laptop").unwrap().limit_to(Some(1));
    let machine =
        world.stores.store("laptop").unwrap().for_machine(MACHINE, world.forge.key.public());
    let session =
        machine.open_session(&SessionPurpose::Backup { parents: vec![] }).unwrap().session;
    let id = ObjectId::from_bytes([5; 32]);
    assert!(machine.put_blocks(&session, &[world.forge.chunks_of_bytes(&[id], 1000)]).is_err());
    let all = world.snapshots();
    let told = |world: &World| {
        let log = world.told.lock().unwrap();
        log.iter().filter(|line| line.contains("admin thin laptop")).count()
    };
    for _ in 0..2 {
        world.administration().tell_if_full("laptop");
        assert_eq!(told(&world), 1, "once for each time that something was refused");
    }
    let thin = |world: &World, confirmed| world.administration().thin("laptop", confirmed).unwrap();
    let offered = thin(&world, false);
    assert_eq!(offered.kept + offered.snapshots.len() as u64, all as u64);
    // Those of 30 days are locked; of the 70 days before, one of each month stays.
    assert!((65..=69).contains(&offered.snapshots.len()), "{}", offered.snapshots.len());
    assert!(world.accounts.deletions().is_empty() && world.snapshots() == all);
    let asked = thin(&world, true);
    assert_eq!(asked.snapshots, offered.snapshots);
    assert_eq!(world.accounts.deletions(), [asked.deletion.unwrap()]);
    assert_eq!(world.snapshots(), all, "it waits as any deletion does");
    for _ in 0..8 {
        world.clocks.advance_ns(DAY_NS);
        world.prune();
    }
    // The rules let go what is the last of its month and not of its week.
    let left = world.snapshots() as u64;
    assert!((asked.kept - 1..=asked.kept).contains(&left), "{left} of {}", asked.kept);
}
