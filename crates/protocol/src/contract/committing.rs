//! Publishing records.

use bytes::Bytes;
use holdall_format::{MachineId, RecordHash, RecordKind, RepositoryId};

use super::ContractWorld;
use super::cases;
use super::fixture::{Fixture, assert_no_session, assert_refused, head_after};
use super::forge::{Forge, TestKey, id, ids};
use crate::{CommitAnswer, RepositoryError, SessionPurpose};

cases![
    a_commit_answers_with_a_receipt_of_the_described_signer,
    a_session_says_where_the_chain_stands,
    what_is_missing_is_named_and_nothing_is_published,
    objects_that_are_missing_deep_down_are_found,
    what_an_earlier_commit_closed_need_not_be_put_again,
    many_nodes_and_chunks_are_followed_to_the_end,
    a_root_that_is_no_node_is_refused,
    a_record_must_go_on_from_the_head,
    a_record_must_have_the_next_sequence_number,
    the_same_record_again_gets_the_same_answer,
    only_the_machine_itself_may_commit,
    records_that_break_the_format_are_refused,
    an_amendment_of_a_snapshot_joins_the_chain,
    an_amendment_of_anything_else_is_refused,
    an_amendment_goes_on_from_the_head_like_every_record,
    a_snapshot_ends_its_session,
    commits_need_an_open_session,
    of_two_commits_at_once_one_wins,
];

fn a_commit_answers_with_a_receipt_of_the_described_signer(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let session = fixture.session();
    fixture.put(&session, &[fixture.forge.nodes(&[(id("root"), &[])])]);
    let record = fixture.forge.record(RecordKind::Snapshot, id("root"), None);
    let stored = fixture.commit(&session, &record);
    assert_eq!(stored.record.encode(), record);
    assert_eq!(stored.receipt.signer, fixture.repository.describe().unwrap().signer);
    assert_eq!(fixture.all_records(), [stored]);
}

fn a_session_says_where_the_chain_stands(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let grant = fixture.repository.open_session(&SessionPurpose::Read).unwrap();
    assert_eq!((grant.head, grant.sequence), (None, 0));
    let head = fixture.snapshot("first", &[id("chunk")], None);
    let head = fixture.snapshot("second", &[id("chunk")], head);
    let fixture = fixture.restarted();
    let grant = fixture.repository.open_session(&SessionPurpose::Read).unwrap();
    assert_eq!((grant.head, grant.sequence), (head.map(|(hash, _)| hash), 2));
}

fn what_is_missing_is_named_and_nothing_is_published(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let session = fixture.session();
    let record = fixture.forge.record(RecordKind::Snapshot, id("root"), None);
    assert_eq!(fixture.commit_lacks(&session, &record), [id("root")]);

    let mut chunks = ids("chunk", 3);
    fixture.put(&session, &[fixture.forge.nodes(&[(id("root"), &chunks)])]);
    let put = chunks.remove(0);
    fixture.put(&session, &[fixture.forge.chunks(&[put])]);
    chunks.sort_unstable();
    assert_eq!(fixture.commit_lacks(&session, &record), chunks);
    assert_eq!(fixture.all_records(), []);

    fixture.put(&session, &[fixture.forge.chunks(&chunks)]);
    fixture.commit(&session, &record);
    assert_eq!(fixture.all_records().len(), 1);
}

fn objects_that_are_missing_deep_down_are_found(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let session = fixture.session();
    let levels = ids("level", 40);
    for pair in levels.windows(2) {
        fixture.put(&session, &[fixture.forge.nodes(&[(pair[0], &pair[1..])])]);
    }
    let record = fixture.forge.record(RecordKind::Snapshot, levels[0], None);
    assert_eq!(fixture.commit_lacks(&session, &record), [levels[39]]);
    // A failed commit closes nothing: the second one finds the same hole.
    assert_eq!(fixture.commit_lacks(&session, &record), [levels[39]]);
    fixture.put(&session, &[fixture.forge.nodes(&[(levels[39], &[])])]);
    fixture.commit(&session, &record);
}

fn what_an_earlier_commit_closed_need_not_be_put_again(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let chunks = ids("chunk", 5);
    let head = fixture.snapshot("left", &chunks, None);
    let fixture = fixture.restarted();
    let session = fixture.session();
    let both = [id("left"), id("right")];
    let nodes = [(id("root"), &both[..]), (id("right"), &chunks[..2])];
    fixture.put(&session, &[fixture.forge.nodes(&nodes)]);
    fixture.commit(&session, &fixture.forge.record(RecordKind::Snapshot, id("root"), head));
}

fn many_nodes_and_chunks_are_followed_to_the_end(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let session = fixture.session();
    let chunks = ids("chunk", 20_000);
    let leaves = ids("leaf", 1000);
    for part in chunks.chunks(4000) {
        fixture.put(&session, &[fixture.forge.chunks(part)]);
    }
    for (leaves, chunks) in leaves.chunks(100).zip(chunks.chunks(2000)) {
        let nodes: Vec<_> = leaves.iter().copied().zip(chunks.chunks(20)).collect();
        fixture.put(&session, &[fixture.forge.nodes(&nodes)]);
    }
    let (root, stray) = (id("root"), id("stray"));
    fixture.put(&session, &[fixture.forge.nodes(&[(root, &leaves), (stray, &chunks[..1])])]);
    fixture.commit(&session, &fixture.forge.record(RecordKind::Snapshot, root, None));
    let session = fixture.session();
    for part in chunks.chunks(5000).chain([&leaves[..]]) {
        assert!(!fixture.missing(&session, part).contains(&true));
    }
    assert_eq!(fixture.missing(&session, &[stray]), [true]);
}

fn a_root_that_is_no_node_is_refused(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let session = fixture.session();
    fixture.put(&session, &[fixture.forge.chunks(&[id("chunk")])]);
    let record = fixture.forge.record(RecordKind::Snapshot, id("chunk"), None);
    assert_refused(fixture.repository.commit(&session, &record));
}

fn a_record_must_go_on_from_the_head(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let head = fixture.snapshot("first", &[id("chunk")], None);
    let session = fixture.session();
    fixture.put(&session, &[fixture.forge.nodes(&[(id("root"), &[])])]);
    for wrong in [None, Some((RecordHash::from_bytes([7; 32]), 1))] {
        let record = fixture.forge.record(RecordKind::Snapshot, id("root"), wrong);
        match fixture.repository.commit(&session, &record) {
            Err(RepositoryError::HeadMoved { head: found }) => {
                assert_eq!(found, head.map(|(hash, _)| hash));
            }
            other => panic!("expected the head to have moved, got {other:?}"),
        }
    }
    assert_eq!(fixture.all_records().len(), 1);
    let session = fixture.session();
    fixture.commit(&session, &fixture.forge.record(RecordKind::Snapshot, id("root"), head));
}

fn a_record_must_have_the_next_sequence_number(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let head = fixture.snapshot("first", &[id("chunk")], None).unwrap();
    let session = fixture.session();
    for sequence in [0, 1, 3, u64::MAX] {
        let mut record = fixture.forge.record_head(RecordKind::Snapshot, id("first"), Some(head));
        record.sequence = sequence;
        assert_refused(fixture.repository.commit(&session, &fixture.forge.sign(record)));
    }
}

fn the_same_record_again_gets_the_same_answer(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let session = fixture.session();
    fixture.put(&session, &[fixture.forge.nodes(&[(id("root"), &[])])]);
    let record = fixture.forge.record(RecordKind::Snapshot, id("root"), None);
    let stored = fixture.commit(&session, &record);
    // The session has ended; a client that never saw the answer asks again all the same.
    assert_eq!(fixture.commit(&session, &record), stored);
    let fixture = fixture.restarted();
    assert_eq!(fixture.commit(&session, &record), stored);
    fixture.snapshot("second", &[id("chunk")], head_after(&record));
    assert_eq!(fixture.commit(&session, &record), stored);
    assert_eq!(fixture.all_records().len(), 2);
}

fn only_the_machine_itself_may_commit(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let session = fixture.session();
    fixture.put(&session, &[fixture.forge.nodes(&[(id("root"), &[])])]);
    let head = fixture.forge.record_head(RecordKind::Snapshot, id("root"), None);

    let mut other_machine = head.clone();
    other_machine.machine = MachineId::from_bytes([0xee; 16]);
    let thief = TestKey::from_seed(&[0xdd; 32]);
    let mut other_key = head.clone();
    other_key.key = thief.public();
    let mut other_repository = head;
    other_repository.repository = RepositoryId::from_bytes([2; 16]);
    for record in [
        fixture.forge.sign(other_machine),
        Forge::sign_with(&thief, other_key),
        fixture.forge.sign(other_repository),
    ] {
        assert_refused(fixture.repository.commit(&session, &record));
    }
    assert_eq!(fixture.all_records(), []);
}

fn records_that_break_the_format_are_refused(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let session = fixture.session();
    fixture.put(&session, &[fixture.forge.nodes(&[(id("root"), &[])])]);
    let good = fixture.forge.record(RecordKind::Snapshot, id("root"), None);
    for at in [10, 40, good.len() - 1] {
        let mut bad = good.to_vec();
        bad[at] ^= 1;
        assert_refused(fixture.repository.commit(&session, &Bytes::from(bad)));
    }
    assert_refused(fixture.repository.commit(&session, &Bytes::new()));
    assert_eq!(fixture.all_records(), []);
}

fn an_amendment_of_a_snapshot_joins_the_chain(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let first = fixture.snapshot("first", &[id("chunk")], None);
    let second = fixture.snapshot("second", &[id("chunk")], first);
    // Nothing is put for an amendment: a session that reads is enough.
    let session = fixture.repository.open_session(&SessionPurpose::Read).unwrap().session;
    let amended = first.unwrap().0;
    let once = fixture.forge.amendment(amended, id("first"), second);
    let stored = fixture.commit(&session, &once);
    assert_eq!(stored.record.encode(), once);
    let fixture = fixture.restarted();
    let session = fixture.session();
    assert_eq!(fixture.commit(&session, &once), stored);
    let again = fixture.forge.amendment(amended, id("first"), head_after(&once));
    fixture.commit(&session, &again);
    fixture.snapshot("third", &[id("chunk")], head_after(&again));
    assert_eq!(fixture.all_records().len(), 5);
}

fn an_amendment_of_anything_else_is_refused(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let session = fixture.session();
    fixture.put(&session, &[fixture.forge.nodes(&[(id("root"), &[])])]);
    let checkpoint = fixture.forge.record(RecordKind::Checkpoint, id("root"), None);
    fixture.commit(&session, &checkpoint);
    let snapshot = fixture.forge.record(RecordKind::Snapshot, id("root"), head_after(&checkpoint));
    fixture.commit(&session, &snapshot);
    let session = fixture.session();
    let hash = |record| head_after(record).unwrap().0;
    let amendment = fixture.forge.amendment(hash(&snapshot), id("root"), head_after(&snapshot));
    fixture.commit(&session, &amendment);

    let unknown = RecordHash::from_bytes([7; 32]);
    for (amended, root) in [
        (unknown, id("root")),
        (hash(&snapshot), id("other root")),
        (hash(&amendment), id("root")),
        (hash(&checkpoint), id("root")),
    ] {
        let record = fixture.forge.amendment(amended, root, head_after(&amendment));
        assert_refused(fixture.repository.commit(&session, &record));
    }
    assert_eq!(fixture.all_records().len(), 3);
}

fn an_amendment_goes_on_from_the_head_like_every_record(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let first = fixture.snapshot("first", &[id("chunk")], None);
    let second = fixture.snapshot("second", &[id("chunk")], first);
    let session = fixture.session();
    let late = fixture.forge.amendment(first.unwrap().0, id("first"), first);
    match fixture.repository.commit(&session, &late) {
        Err(RepositoryError::HeadMoved { head }) => assert_eq!(head, second.map(|(hash, _)| hash)),
        other => panic!("expected the head to have moved, got {other:?}"),
    }
    assert_eq!(fixture.all_records().len(), 2);
}

fn a_snapshot_ends_its_session(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let session = fixture.session();
    fixture.put(&session, &[fixture.forge.nodes(&[(id("root"), &[])])]);
    let checkpoint = fixture.forge.record(RecordKind::Checkpoint, id("root"), None);
    fixture.commit(&session, &checkpoint);
    assert_eq!(fixture.missing(&session, &[id("root")]), [false]);
    let head = head_after(&checkpoint);
    fixture.commit(&session, &fixture.forge.record(RecordKind::Snapshot, id("root"), head));
    assert_no_session(fixture.repository.missing(&session, &[id("root")]));
    let fixture = fixture.restarted();
    assert_no_session(fixture.repository.missing(&session, &[id("root")]));
}

fn commits_need_an_open_session(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let session = fixture.session();
    fixture.put(&session, &[fixture.forge.nodes(&[(id("root"), &[])])]);
    fixture.repository.close_session(&session).unwrap();
    let record = fixture.forge.record(RecordKind::Snapshot, id("root"), None);
    assert_no_session(fixture.repository.commit(&session, &record));
}

fn of_two_commits_at_once_one_wins(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let roots = ids("root", 4);
    let sessions: Vec<_> = roots.iter().map(|_| fixture.session()).collect();
    for (root, session) in roots.iter().zip(&sessions) {
        fixture.put(session, &[fixture.forge.nodes(&[(*root, &[])])]);
    }
    let answers: Vec<_> = std::thread::scope(|scope| {
        let commit = |(root, session)| {
            let repository = &fixture.repository;
            let record = fixture.forge.record(RecordKind::Snapshot, root, None);
            scope.spawn(move || repository.commit(session, &record))
        };
        let threads: Vec<_> = roots.iter().copied().zip(&sessions).map(commit).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let won = |answer: &&Result<_, _>| matches!(answer, Ok(CommitAnswer::Committed(_)));
    let lost = |answer: &&Result<_, _>| matches!(answer, Err(RepositoryError::HeadMoved { .. }));
    assert_eq!(answers.iter().filter(won).count(), 1, "{answers:?}");
    assert_eq!(answers.iter().filter(lost).count(), 3, "{answers:?}");
    assert_eq!(fixture.all_records().len(), 1);
}
