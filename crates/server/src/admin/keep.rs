//! Keeping and letting go: rules, deletions that wait, prune and scrub.
//!
//! The same is done by commands and, once an hour, by the server itself. Nobody has keys here: rules
//! go by the times of receipts, and what nothing needs is known from references in clear.

use std::sync::atomic::Ordering;
use std::time::Duration;

use holdall_format::{RecordHash, TombstoneReason};
use holdall_protocol::ScrubDamage;
use holdall_repository::{Judged, PruneOptions, Store};

use super::carry_out::Administration;
use super::command::{
    AlsoMend, Deletion, Keeping, PrunedEntry, Reply, ScrubbedEntry, SnapshotEntry,
};
use crate::ServerError;

/// How long condemned packs stay: whoever reads when a snapshot is forgotten reads to the end.
const GRACE: Duration = Duration::from_secs(24 * 3600);
/// Everything is read again within a month.
pub(super) const SCRUB_ROUND_NS: i64 = 30 * 24 * 3600 * 1_000_000_000;
/// Once a quarter of a pack is not needed, the rest is copied and the pack goes.
const SPARSE_PART: u64 = 4;

impl Administration<'_> {
    /// Tells what is kept of a repository, after changing that where something is wanted.
    pub(super) fn keeping(
        &self,
        repository: &str,
        wanted: Option<Keeping>,
    ) -> Result<Reply, ServerError> {
        self.check_name(repository)?;
        let Some(wanted) = wanted else {
            return Ok(Reply::Keeping(self.accounts.keeping(repository)));
        };
        let entry = self.accounts.set_keeping(repository, wanted)?;
        self.log(&format!("changed what is kept of repository {repository}"));
        Ok(Reply::Keeping(entry))
    }

    /// Asks for snapshots to be deleted, named by their ids or the beginnings of those.
    pub(super) fn forget(&self, name: &str, wanted: &[String]) -> Result<Reply, ServerError> {
        self.check_name(name)?;
        let store = self.stores.store(name)?;
        let snapshots = store.judge(&self.accounts.keeping(name).now.policy);
        let ids = wanted.iter().map(|wanted| find(&snapshots, wanted).map(|id| id.to_string()));
        let deletion = self.accounts.ask_deletion(name, ids.collect::<Result<_, _>>()?)?;
        self.log(&format!("deletion {} of {name} was asked for", deletion.number));
        Ok(Reply::Deletions { deletions: vec![deletion] })
    }

    /// Takes a deletion back.
    pub(super) fn cancel(&self, number: u64) -> Result<Reply, ServerError> {
        let deletion = self.accounts.drop_deletion(number)?;
        self.log(&format!("deletion {number} of {} was cancelled", deletion.repository));
        Ok(Reply::Deletions { deletions: vec![deletion] })
    }

    /// Has rules and deletions that are due be applied, and prunes: one repository, or all of them.
    pub(super) fn prune(
        &self,
        repository: Option<&str>,
        dry_run: bool,
    ) -> Result<Reply, ServerError> {
        let names = self.chosen(repository)?;
        let pruned = names.iter().map(|name| self.prune_one(name, dry_run)).collect();
        Ok(Reply::Pruned { pruned })
    }

    /// One repository that is there, or all of them.
    fn chosen(&self, repository: Option<&str>) -> Result<Vec<String>, ServerError> {
        let Some(name) = repository else { return self.stores.stored_names() };
        self.check_name(name)?;
        Ok(vec![name.to_owned()])
    }

    /// Does the same for all repositories, and tells the log. Ends early once the server ends.
    pub(crate) fn keep_house(&self) {
        let Ok(names) = self.stores.stored_names() else { return };
        for name in names {
            if self.should_stop.load(Ordering::Acquire) {
                return;
            }
            self.log(&self.prune_one(&name, false).line());
            self.scrub_on(&name);
        }
    }

    /// Reads as much again as is due, and tells the log of damage for as long as there is any.
    fn scrub_on(&self, name: &str) {
        let scrub = || {
            let store = self.stores.store(name)?;
            // What a crash kept from being made.
            store.make_missing_parity(self.should_stop)?;
            store.scrub_on(SCRUB_ROUND_NS, self.should_stop)
        };
        match scrub() {
            Ok(round) => {
                for (what, reason) in &round.damaged {
                    self.log(&format!(
                        "{name}: damaged: {what}: {reason}; `holdall admin scrub {name} --repair`"
                    ));
                }
            }
            Err(error) => self.log(&format!("{name} could not be scrubbed: {error}")),
        }
    }

    fn prune_one(&self, name: &str, dry_run: bool) -> PrunedEntry {
        let mut entry = PrunedEntry { repository: name.to_owned(), dry_run, ..Default::default() };
        if let Err(error) = self.try_prune(name, dry_run, &mut entry) {
            entry.problem = Some(error.to_string());
        }
        entry
    }

    fn try_prune(
        &self,
        name: &str,
        dry_run: bool,
        entry: &mut PrunedEntry,
    ) -> Result<(), ServerError> {
        let store = self.stores.store(name)?;
        let clock = self.stores.watch_clock()?;
        if !clock.is_believed() {
            entry.frozen_until_ns = Some(clock.believed_from_ns());
            return Ok(());
        }
        self.delete_due(&store, dry_run, entry)?;
        self.apply_rules(&store, dry_run, entry)?;
        let options = PruneOptions { grace: GRACE, sparse_part: SPARSE_PART, dry_run };
        entry.add(&store.prune(&options, self.should_stop)?);
        Ok(())
    }

    fn delete_due(
        &self,
        store: &Store,
        dry_run: bool,
        entry: &mut PrunedEntry,
    ) -> Result<(), ServerError> {
        let now_ns = self.stores.now_ns();
        let deletions = self.accounts.deletions().into_iter();
        let due = |one: &Deletion| one.repository == entry.repository && one.due_ns <= now_ns;
        for deletion in deletions.filter(due) {
            let there = store.judge(&self.accounts.keeping(&deletion.repository).now.policy);
            let asked = |one: &&Judged| deletion.snapshots.contains(&one.id.to_string());
            let chosen: Vec<_> = there.iter().filter(asked).collect();
            if !dry_run {
                let ids: Vec<RecordHash> = chosen.iter().map(|one| one.id).collect();
                store.forget(&ids, TombstoneReason::Request)?;
                self.accounts.drop_deletion(deletion.number)?;
            }
            entry.forgotten.extend(chosen.into_iter().map(SnapshotEntry::of));
        }
        Ok(())
    }

    fn apply_rules(
        &self,
        store: &Store,
        dry_run: bool,
        entry: &mut PrunedEntry,
    ) -> Result<(), ServerError> {
        let judged = store.judge(&self.accounts.keeping(&entry.repository).now.policy);
        let (goes, kept): (Vec<_>, Vec<_>) =
            judged.into_iter().partition(|one| one.reasons.is_empty());
        if !dry_run {
            let ids: Vec<RecordHash> = goes.iter().map(|one| one.id).collect();
            store.forget(&ids, TombstoneReason::Retention)?;
        }
        entry.snapshots_kept = kept.len() as u64;
        let goes: Vec<_> = goes.iter().map(SnapshotEntry::of).collect();
        // A dry run left what was asked for where it was.
        let more = goes.into_iter().filter(|one| !entry.forgotten.contains(one));
        let more: Vec<_> = more.collect();
        entry.forgotten.extend(more);
        Ok(())
    }

    /// Reads everything of a repository again, or of all of them, and mends what is to be mended.
    pub(super) fn scrub(
        &self,
        repository: Option<&str>,
        also: AlsoMend,
    ) -> Result<Reply, ServerError> {
        let names = self.chosen(repository)?;
        let scrubbed = names.iter().map(|name| self.scrub_one(name, also)).collect();
        Ok(Reply::Scrubbed { scrubbed })
    }

    fn scrub_one(&self, name: &str, also: AlsoMend) -> ScrubbedEntry {
        let mut entry = ScrubbedEntry { repository: name.to_owned(), ..Default::default() };
        if let Err(error) = self.try_scrub(name, also, &mut entry) {
            entry.problem = Some(error.to_string());
        }
        entry
    }

    fn try_scrub(
        &self,
        name: &str,
        also: AlsoMend,
        entry: &mut ScrubbedEntry,
    ) -> Result<(), ServerError> {
        let store = self.stores.store(name)?;
        if let Some(percent) = also.parity {
            entry.parity_made = store.keep_parity(percent, self.should_stop)?;
            self.log(&format!("{percent} % of each pack of {name} is kept as parity"));
        }
        let report = match also.repair {
            false => store.scrub(self.should_stop, &mut |_| {})?,
            true => {
                let repaired = store.repair(also.dry_run, self.should_stop, &mut |_| {})?;
                let sentences = repaired.repairs.iter().map(|one| one.sentence(also.dry_run));
                entry.repaired = sentences.collect();
                entry.repaired.iter().for_each(|one| self.log(&format!("{name}: {one}")));
                entry.quarantined = repaired.quarantined;
                repaired.scrub
            }
        };
        if !also.dry_run {
            store.note_scrubbed(&report)?;
        }
        entry.packs = report.packs;
        entry.blocks = report.blocks;
        entry.objects = report.objects;
        entry.snapshots = report.snapshots;
        entry.bytes = report.bytes;
        entry.damaged = report.damaged.iter().map(damage).collect();
        Ok(())
    }
}

/// The snapshot of that id, or the only one whose id begins so.
fn find(snapshots: &[Judged], wanted: &str) -> Result<RecordHash, ServerError> {
    let begins = |one: &&Judged| !wanted.is_empty() && one.id.to_string().starts_with(wanted);
    let mut found = snapshots.iter().filter(begins);
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one.id),
        (None, _) => Err(ServerError::refused(format!("there is no snapshot {wanted:?}"))),
        _ => Err(ServerError::refused(format!(
            "the ids of several snapshots begin with {wanted:?}; give more digits"
        ))),
    }
}

fn damage(damage: &ScrubDamage) -> String {
    match damage {
        ScrubDamage::Pack { pack, reason } => format!("pack {pack}: {reason}"),
        ScrubDamage::Block { block, reason, .. } => format!("block {block}: {reason}"),
        ScrubDamage::Record { record, reason } => format!("{record}: {reason}"),
        ScrubDamage::Missing { object, record } => {
            format!("object {object} is missing, which snapshot {record} needs")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LogSink;
    use crate::accounts::Accounts;
    use crate::admin::Command;
    use crate::data_folder::DataFolder;
    use crate::identity::ServerIdentity;
    use crate::stores::Stores;
    use holdall_format::{MachineId, ObjectId, Record, RecordKind};
    use holdall_protocol::contract::Forge;
    use holdall_protocol::{CommitAnswer, Repository, SessionPurpose};
    use holdall_repository::Clock;
    use holdall_repository::retention::Policy;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicI64};

    const HOUR_NS: i64 = 3600 * 1_000_000_000;
    const DAY_NS: i64 = 24 * HOUR_NS;
    const MACHINE: MachineId = MachineId::from_bytes([3; 16]);

    /// A clock that can be set beside one that can not.
    #[derive(Default)]
    struct Clocks {
        now_ns: AtomicI64,
        running_ns: AtomicI64,
    }

    impl Clocks {
        fn pass(&self, ns: i64) {
            self.now_ns.fetch_add(ns, Ordering::SeqCst);
            self.running_ns.fetch_add(ns, Ordering::SeqCst);
        }

        fn jump(&self, ns: i64) {
            self.now_ns.fetch_add(ns, Ordering::SeqCst);
        }
    }

    impl Clock for Clocks {
        fn now_ns(&self) -> i64 {
            self.now_ns.load(Ordering::SeqCst)
        }

        fn running_ns(&self) -> i64 {
            self.running_ns.load(Ordering::SeqCst)
        }
    }

    /// A server's folder with one repository, without a server.
    struct World {
        clocks: Arc<Clocks>,
        accounts: Arc<Accounts>,
        stores: Stores,
        log: LogSink,
        forge: Forge,
        head: Option<(RecordHash, u64)>,
        should_stop: AtomicBool,
        temp: tempfile::TempDir,
    }

    impl World {
        fn new() -> Self {
            let temp = tempfile::tempdir().unwrap();
            let clocks = Arc::new(Clocks::default());
            clocks.jump(1_700_000_000_000_000_000);
            let folder = Arc::new(DataFolder::take(temp.path()).unwrap());
            let clock: Arc<dyn Clock> = Arc::clone(&clocks) as _;
            let accounts = Arc::new(Accounts::open(&folder.database(), clock.clone()).unwrap());
            let signer = Arc::new(ServerIdentity::of(&folder).unwrap());
            let log: LogSink = Arc::new(|_| {});
            let forge = Forge::new(1, MACHINE, &[8; 32]);
            Store::create(&folder.repository("laptop"), &forge.new_repository()).unwrap();
            let stores = Stores::new(folder, signer, clock, accounts.clone(), log.clone());
            let should_stop = AtomicBool::new(false);
            Self { clocks, accounts, stores, log, forge, head: None, should_stop, temp }
        }

        fn administration(&self) -> Administration<'_> {
            Administration {
                accounts: &self.accounts,
                stores: &self.stores,
                identity: self.forge.key.public(),
                listen: "127.0.0.1:1".parse().unwrap(),
                log: &self.log,
                should_stop: &self.should_stop,
            }
        }

        /// Damages what is in no pack yet.
        fn flip_a_byte(&self) {
            let tails = self.temp.path().join("repositories/laptop/tails");
            let files = std::fs::read_dir(tails).unwrap().map(|entry| entry.unwrap().path());
            let payloads =
                files.filter(|path| path.extension().is_some_and(|end| end == "payload"));
            let length = |path: &std::path::PathBuf| std::fs::metadata(path).unwrap().len();
            let largest = payloads.max_by_key(length).unwrap();
            let mut bytes = std::fs::read(&largest).unwrap();
            bytes[1000] ^= 1;
            std::fs::write(largest, bytes).unwrap();
        }

        /// A snapshot of so much that nobody else has.
        fn back_up(&mut self, name: &str, bytes: usize) -> RecordHash {
            let id = |text: &str| ObjectId::from_bytes(*blake3::hash(text.as_bytes()).as_bytes());
            let machine =
                self.stores.store("laptop").unwrap().for_machine(MACHINE, self.forge.key.public());
            let purpose = SessionPurpose::Backup { parents: vec![] };
            let session = machine.open_session(&purpose).unwrap().session;
            let (root, chunk) = (id(name), id(&format!("{name} content")));
            let blocks = [
                self.forge.chunks_of_bytes(&[chunk], bytes),
                self.forge.nodes(&[(root, &[chunk])]),
            ];
            machine.put_blocks(&session, &blocks).unwrap();
            let record = self.forge.record(RecordKind::Snapshot, root, self.head);
            let answer = machine.commit(&session, &record).unwrap();
            assert!(matches!(answer, CommitAnswer::Committed(_)));
            let record = Record::decode(&record).unwrap();
            self.head = Some((record.hash(), record.head.sequence));
            record.hash()
        }

        fn prune(&self) -> PrunedEntry {
            match self.administration().prune(Some("laptop"), false).unwrap() {
                Reply::Pruned { mut pruned } => pruned.remove(0),
                other => panic!("{other:?}"),
            }
        }

        fn snapshots(&self) -> usize {
            self.stores.store("laptop").unwrap().judge(&Policy::USUAL).len()
        }
    }

    /// As a client that backs up every hour, for so many days.
    fn hourly(world: &mut World, days: i64) {
        for hour in 0..days * 24 {
            world.back_up(&format!("hour {hour}"), 1000);
            world.clocks.pass(HOUR_NS);
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
            world.clocks.pass(31 * DAY_NS);
            // The time that passed unseen looks like a server that was off.
            assert!(world.prune().frozen_until_ns.is_none(), "it ran all the time");
            world.clocks.pass(25 * HOUR_NS);
            world.prune();
            stored.push(world.stores.store("laptop").unwrap().usage().stored_bytes);
        }
        // 24 hours, 29 days of which the newest is among those hours, and 5 weeks.
        let left = world.snapshots();
        assert!((24 + 28..=24 + 30).contains(&left), "{left}");
        assert!(stored[1] < 29 * 24 * 1000, "what was let go is given back: {stored:?}");
    }

    #[test]
    fn a_deletion_waits_can_be_cancelled_and_then_takes_only_what_was_asked() {
        let mut world = World::new();
        let ids: Vec<String> =
            (0..4).map(|number| world.back_up(&number.to_string(), 1000).to_string()).collect();
        let ask = |world: &World, id: &str| match world
            .administration()
            .forget("laptop", &[id.get(..12).unwrap().to_owned()])
            .unwrap()
        {
            Reply::Deletions { deletions } => deletions[0].number,
            other => panic!("{other:?}"),
        };
        let (first, second) = (ask(&world, &ids[0]), ask(&world, &ids[1]));
        assert_ne!(first, second);
        world.administration().cancel(first).unwrap();
        assert!(world.administration().cancel(first).is_err());
        assert!(world.administration().forget("laptop", &["ffff".to_owned()]).is_err());
        for _ in 0..7 {
            world.clocks.pass(DAY_NS - 1);
            assert!(world.prune().forgotten.is_empty());
        }
        world.clocks.pass(7);
        let pruned = world.prune();
        assert_eq!(pruned.forgotten.len(), 1);
        assert_eq!(pruned.forgotten[0].id, ids[1]);
        assert!(world.accounts.deletions().is_empty());
        assert_eq!(world.snapshots(), 3);
    }

    #[test]
    fn a_clock_that_was_set_deletes_nothing() {
        let mut world = World::new();
        hourly(&mut world, 3);
        let before = world.snapshots();
        for jump in [10 * 365 * DAY_NS, -20 * 365 * DAY_NS, 400 * DAY_NS] {
            world.clocks.jump(jump);
            for _ in 0..3 {
                world.clocks.pass(HOUR_NS);
                let pruned = world.prune();
                assert!(pruned.frozen_until_ns.is_some() && pruned.forgotten.is_empty());
            }
        }
        assert_eq!(world.snapshots(), before);
        // And once it is believed, rules that count still keep what they kept.
        world.clocks.pass(DAY_NS);
        assert!(world.prune().frozen_until_ns.is_none());
        assert!(world.snapshots() >= 24);
    }

    #[test]
    fn everything_is_read_again_by_a_date_and_damage_is_told_until_it_is_mended() {
        let mut world = World::new();
        world.back_up("one", 100_000);
        let told = |world: &World| {
            world.administration().keep_house();
            match world.administration().carry_out(Command::Repositories).unwrap() {
                Reply::Repositories { mut repositories } => repositories.remove(0),
                other => panic!("{other:?}"),
            }
        };
        let begun_ns = world.clocks.now_ns();
        let fresh = told(&world);
        assert_eq!(fresh.read_by_ns, Some(begun_ns + SCRUB_ROUND_NS));
        assert_eq!((fresh.read_since_ns, fresh.damaged.len()), (None, 0));
        world.flip_a_byte();
        for day in 1..=30 {
            world.clocks.pass(DAY_NS);
            assert_eq!(told(&world).damaged.is_empty(), day < 30, "{day}");
        }
        assert_eq!(told(&world).read_since_ns, Some(begun_ns));
        let also = AlsoMend { repair: true, dry_run: false, parity: None };
        world.administration().scrub(Some("laptop"), also).unwrap();
        let mended = told(&world);
        assert_eq!((mended.damaged.len(), mended.read_since_ns), (0, Some(world.clocks.now_ns())));
    }
}
