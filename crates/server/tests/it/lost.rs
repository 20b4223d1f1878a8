//! Connections and servers that go away in the middle, and servers that come back without what they
//! knew.

use std::sync::mpsc;
use std::time::Duration;

use bytes::Bytes;
use holdall_format::{MachineId, ObjectId, Record, RecordHash, RecordKind};
use holdall_protocol::{
    ClientOptions, CommitAnswer, FormerAccount, HttpRepository, MachineIdentity, Paired, RateLimit,
    Repository, RepositoryError, ServerAddress, SessionPurpose, pair, pair_again,
};
use holdall_server::admin;
use holdall_testkit::ChaosProxy;

use crate::world::{Machine, World, identity, quick, recovery_seed, session};

/// A machine's way through a proxy.
fn through(machine: &Machine, proxy: &ChaosProxy) -> ServerAddress {
    let hosts = vec![proxy.address().to_string()];
    ServerAddress { hosts, ..machine.paired.address.clone() }
}

/// As patient as a client is by default.
fn patient() -> ClientOptions {
    ClientOptions::default()
}

fn id(number: u32) -> ObjectId {
    ObjectId::from_bytes(*blake3::hash(&number.to_le_bytes()).as_bytes())
}

#[test]
fn a_client_outlives_a_server_that_restarts_while_it_puts() {
    let mut world = World::new();
    let machine = world.machine(1);
    let (acknowledged, acknowledgements) = mpsc::channel();
    std::thread::scope(|scope| {
        let machine = &machine;
        let putting = scope.spawn(move || {
            let forge = machine.forge();
            let repository = machine.connect_to(machine.paired.address.clone(), patient()).unwrap();
            let session = session(&repository);
            for number in 0..40 {
                let block = forge.chunks_of_bytes(&[id(number)], 500_000);
                repository.put_blocks(&session, &[block]).unwrap();
                acknowledged.send(number).unwrap();
            }
            let ids: Vec<_> = (0..40).map(id).collect();
            assert_eq!(repository.missing(&session, &ids).unwrap(), [false; 40]);
        });
        for _ in 0..10 {
            acknowledgements.recv().unwrap();
        }
        world.stop();
        world.start();
        putting.join().unwrap();
    });
}

#[test]
fn a_connection_that_is_cut_again_and_again_costs_nothing_but_time() {
    let world = World::new();
    let machine = world.machine(1);
    let proxy = ChaosProxy::start(world.address()).unwrap();
    let repository = machine.connect_to(through(&machine, &proxy), patient()).unwrap();
    let session = session(&repository);
    proxy.cut_repeatedly(7, 20, 300_000);
    let forge = machine.forge();
    let ids: Vec<_> = (0..30).map(id).collect();
    for id in &ids {
        repository.put_blocks(&session, &[forge.chunks_of_bytes(&[*id], 200_000)]).unwrap();
    }
    assert_eq!(repository.missing(&session, &ids).unwrap(), vec![false; ids.len()]);
    assert!(proxy.cuts() > 0);
}

#[test]
fn of_a_put_that_was_cut_only_what_had_not_come_whole_is_sent_again() {
    let world = World::new();
    let machine = world.machine(1);
    let proxy = ChaosProxy::start(world.address()).unwrap();
    // So slow that nothing waits unread at the server, which a reset would take with it.
    proxy.carry_at(2_000_000);
    let repository = machine.connect_to(through(&machine, &proxy), patient()).unwrap();
    let session = session(&repository);
    let forge = machine.forge();
    let put = |first: u32| -> u64 {
        let blocks = [0, 1, 2].map(|next| forge.chunks_of_bytes(&[id(first + next)], 400_000));
        let before = proxy.forwarded_bytes();
        repository.put_blocks(&session, &blocks).unwrap();
        proxy.forwarded_bytes() - before
    };
    let whole = put(0);
    // In the third block, in the answer, and near the end of the request.
    for (cuts, (first, before_end)) in (1..).zip([(10, 100_000), (20, 100), (30, 1000)]) {
        let stored = repository.usage().unwrap().blocks;
        proxy.cut_after(whole - before_end);
        let again = put(first).saturating_sub(whole);
        assert_eq!(proxy.cuts(), cuts, "{first}");
        assert!(again < 400_000 + 20_000, "{again} bytes, {first}");
        assert_eq!(repository.usage().unwrap().blocks, stored + 3, "{first}");
        let ids = [0, 1, 2].map(|next| id(first + next));
        assert_eq!(repository.missing(&session, &ids).unwrap(), [false; 3]);
    }
}

#[test]
fn a_put_that_never_gets_through_is_given_up_though_questions_are_answered() {
    let world = World::new();
    let machine = world.machine(1);
    let proxy = ChaosProxy::start(world.address()).unwrap();
    let options = ClientOptions { retry_for: Duration::from_secs(1), ..patient() };
    let repository = machine.connect_to(through(&machine, &proxy), options).unwrap();
    let session = session(&repository);
    let block = machine.forge().chunks_of_bytes(&[id(1)], 2_000_000);
    // Questions go through between two cuts, the block never does.
    proxy.cut_repeatedly(7, 10_000, 500_000);
    let error = repository.put_blocks(&session, &[block]).unwrap_err();
    assert!(matches!(error, RepositoryError::Unreachable { .. }), "{error:?}");
    // With growing pauses there is time for a few; a question makes the connection of the next one.
    assert!((3..20).contains(&proxy.cuts()), "{} cuts", proxy.cuts());
    assert!(proxy.connections() > 2, "{} connections", proxy.connections());
}

#[test]
fn a_repository_whose_making_was_cut_is_made_once() {
    let world = World::new();
    for (number, cut_after) in (1u8..).zip([3000u64, 3500, 4000, 4500, 5000]) {
        let machine = world.paired(number);
        let proxy = ChaosProxy::start(world.address()).unwrap();
        let repository = machine.connect_to(through(&machine, &proxy), patient()).unwrap();
        proxy.cut_after(cut_after.saturating_sub(proxy.forwarded_bytes()).max(1));
        let new = machine.forge().new_repository();
        repository.create(&new).unwrap();
        assert_eq!(repository.describe().unwrap().config, new.config);
    }
}

#[test]
fn a_server_that_stays_away_is_given_up_after_the_retry_time() {
    let mut world = World::new();
    let machine = world.machine(1);
    let retry_for = Duration::from_millis(300);
    let options = ClientOptions { retry_for, ..quick() };
    let repository = machine.connect_to(machine.paired.address.clone(), options).unwrap();
    world.stop();
    let error = repository.describe().unwrap_err();
    assert!(matches!(error, RepositoryError::Unreachable { .. }), "{error:?}");
}

#[test]
fn a_server_that_ends_waits_for_nobody_who_is_idle() {
    let mut world = World::new();
    let machine = world.machine(1);
    let idle = machine.connect();
    idle.describe().unwrap();
    world.stop();
    world.start();
    idle.describe().unwrap();
}

#[test]
fn a_client_with_a_rate_and_a_local_address_does_the_same_work() {
    let world = World::new();
    let machine = world.machine(1);
    let options = ClientOptions {
        bind: vec!["127.0.0.1".parse().unwrap(), "127.0.0.2".parse().unwrap()],
        upload: Some(RateLimit::BytesPerSecond(20_000_000)),
        download_bytes_per_second: Some(20_000_000),
        ..quick()
    };
    let repository = machine.connect_to(machine.paired.address.clone(), options).unwrap();
    let session = session(&repository);
    let block = machine.forge().chunks_of_bytes(&[id(1)], 500_000);
    repository.put_blocks(&session, std::slice::from_ref(&block)).unwrap();
    assert_eq!(repository.fetch_objects(&session, &[id(1)], 0).unwrap().blocks, [block]);
    assert!(repository.traffic().sent_bytes > 500_000);
}

#[test]
fn many_callers_share_a_repository() {
    let world = World::new();
    let machine = world.machine(1);
    let options = ClientOptions { streams: 2, ..patient() };
    let repository = machine.connect_to(machine.paired.address.clone(), options).unwrap();
    let session = session(&repository);
    std::thread::scope(|scope| {
        for caller in 0..6u32 {
            let (repository, machine) = (&repository, &machine);
            scope.spawn(move || {
                let forge = holdall_protocol::contract::Forge::new(1, machine.id(), &machine.seed);
                for number in 0..5 {
                    let id = id(caller * 100 + number);
                    let block = forge.chunks_of_bytes(&[id], 100_000 + caller as usize);
                    repository.put_blocks(&session, &[block]).unwrap();
                    assert_eq!(repository.missing(&session, &[id]).unwrap(), [false]);
                    assert_eq!(
                        repository.fetch_objects(&session, &[id], 0).unwrap().blocks.len(),
                        1
                    );
                }
            });
        }
    });
}

/// Commits a snapshot behind `head`.
fn commit(repository: &dyn Repository, record: Bytes, root: Bytes) -> (RecordHash, u64) {
    let session = session(repository);
    repository.put_blocks(&session, &[root]).unwrap();
    let answer = repository.commit(&session, &record).unwrap();
    assert!(matches!(answer, CommitAnswer::Committed(_)), "{answer:?}");
    let record = Record::decode(&record).unwrap();
    (record.hash(), record.head.sequence)
}

fn snapshot(machine: &Machine, repository: &dyn Repository, head: Option<(RecordHash, u64)>) {
    let forge = machine.forge();
    let root = id(1000 + head.map_or(0, |(_, sequence)| sequence as u32));
    commit(repository, forge.record(RecordKind::Snapshot, root, head), forge.nodes(&[(root, &[])]));
}

impl World {
    /// Comes back as a server that was set up anew beside its repositories.
    fn rebuild(&mut self) {
        self.stop();
        for lost in ["server.redb", "identity.key"] {
            std::fs::remove_file(self.folder.path().join(lost)).unwrap();
        }
        self.start();
    }

    fn pair_again(
        &self,
        identity: &MachineIdentity,
        machine: MachineId,
        repository: &str,
    ) -> Result<Paired, RepositoryError> {
        let former = FormerAccount { machine, repository: repository.into() };
        pair_again(&self.invite(), &former, "", identity, quick())
    }
}

/// Why rules let nothing go of the only repository.
fn alarm(world: &World) -> Option<String> {
    let asked = admin::Prune { repository: None, dry_run: false };
    let mut pruned = world.admin(&asked).unwrap().pruned;
    assert_eq!((pruned.len(), &pruned[0].problem), (1, &None));
    pruned.remove(0).alarm
}

#[test]
fn a_server_that_lost_its_accounts_lets_nothing_go_by_rules_until_it_is_told_which() {
    let mut world = World::new();
    let machine = world.machine(1);
    snapshot(&machine, &machine.connect(), None);
    assert_eq!(alarm(&world), None, "the usual rules are those of one that was made here");
    let (id, name) = (machine.id(), machine.paired.repository.clone());
    world.rebuild();
    assert!(alarm(&world).is_some());
    world.pair_again(&identity(&machine.seed), id, &name).unwrap();
    assert!(alarm(&world).is_some_and(|alarm| alarm.contains("not known here which rules")));
    world.admin(&admin::Resume { repository: name }).unwrap();
    assert_eq!(alarm(&world), None);
}

fn refusal(result: Result<Paired, RepositoryError>) -> String {
    match result {
        Err(RepositoryError::NotAllowed { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_server_that_was_set_up_anew_gives_a_machine_back_what_its_records_prove() {
    let mut world = World::new();
    let machine = world.machine(1);
    snapshot(&machine, &machine.connect(), None);
    let (id, name) = (machine.id(), machine.paired.repository.clone());
    world.rebuild();
    let unknown = machine.connect_to(world.server_address(), quick()).unwrap();
    assert!(matches!(unknown.describe(), Err(RepositoryError::NotAllowed { .. })));

    let own = identity(&machine.seed);
    let again = world.pair_again(&own, id, &name).unwrap();
    assert_eq!((again.machine, &again.repository), (id, &name));
    let repository = HttpRepository::connect(again.address, &own, quick()).unwrap();
    let grant = repository.open_session(&SessionPurpose::Read).unwrap();
    assert_eq!(grant.sequence, 1);
    snapshot(&machine, &repository, grant.head.map(|head| (head, grant.sequence)));
    assert_eq!(world.pair_again(&own, id, &name).unwrap().machine, id, "it is known now");
}

#[test]
fn nobody_gets_a_machine_that_the_records_do_not_prove() {
    let mut world = World::new();
    let (owner, idle) = (world.machine(1), world.machine(2));
    snapshot(&owner, &owner.connect(), None);
    let name = owner.paired.repository.clone();
    world.rebuild();
    let (own, other) = (identity(&owner.seed), identity(&[9; 32]));
    let refused = |identity: &MachineIdentity, machine, name: &str| {
        let reason = refusal(world.pair_again(identity, machine, name));
        let log = world.log.lock().unwrap();
        let told = log.iter().rfind(|line| line.contains("nothing proves")).unwrap().clone();
        (reason.replace(&format!("{name:?}"), "it"), told)
    };
    let (reason, stolen) = refused(&other, owner.id(), &name);
    assert!(stolen.contains("signed by another key"), "{stolen}");
    let of_idle = [(&own, &name), (&identity(&idle.seed), &idle.paired.repository)];
    for (identity, name) in of_idle {
        let (same, told) = refused(identity, idle.id(), name);
        assert!(same == reason && told.contains("no record there"), "{same} {told}");
    }
    for elsewhere in ["gone", "..", "", "../repositories/machine-1"] {
        let (same, told) = refused(&own, owner.id(), elsewhere);
        assert!(same == reason && told.contains("not stored"), "{elsewhere:?}: {same} {told}");
    }
    // What nobody proves is given to nobody who does not ask for it either.
    let fresh = pair(&world.invite(), "machine 1", &own, quick()).unwrap();
    assert_ne!((fresh.machine, &fresh.repository), (owner.id(), &name));
}

#[test]
fn a_server_that_lost_its_accounts_lets_recovery_kits_in_before_any_machine() {
    let mut world = World::new();
    let machine = world.machine(1);
    let kit = identity(&recovery_seed(1));
    world.rebuild();
    let repository = Some(machine.paired.repository.clone());
    let address = ServerAddress { repository, ..world.server_address() };
    let reader = HttpRepository::connect(address, &kit, quick()).unwrap();
    assert_eq!(reader.describe().unwrap().config, machine.forge().config());
    let backup = SessionPurpose::Backup { parents: vec![] };
    assert!(matches!(reader.open_session(&backup), Err(RepositoryError::NotAllowed { .. })));
}
