//! Which objects need not be put.

use holdall_format::{RecordKind, SessionId};

use super::ContractWorld;
use super::cases;
use super::fixture::{Fixture, assert_no_session, assert_refused, head_after};
use super::forge::{id, ids};
use crate::MAX_IDS;

cases![
    what_nobody_put_is_missing,
    what_this_session_put_is_there,
    answers_come_in_the_order_of_the_questions,
    what_a_closed_session_put_is_there_for_the_next,
    what_a_session_put_is_there_after_a_restart_and_the_session_too,
    what_a_commit_reached_is_there_for_ever,
    what_a_commit_did_not_reach_is_missing_once_its_session_ended,
    a_checkpoint_leaves_everything_there,
    more_ids_than_the_limit_are_refused,
    questions_need_an_open_session,
];

fn what_nobody_put_is_missing(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let session = fixture.session();
    assert_eq!(fixture.missing(&session, &ids("chunk", 3)), [true; 3]);
    assert_eq!(fixture.missing(&session, &[]), [false; 0]);
}

fn what_this_session_put_is_there(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let session = fixture.session();
    let chunks = ids("chunk", 3);
    fixture.put(&session, &[fixture.forge.chunks(&chunks)]);
    assert_eq!(fixture.missing(&session, &chunks), [false; 3]);
}

fn answers_come_in_the_order_of_the_questions(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let session = fixture.session();
    let chunks = ids("chunk", 500);
    let put: Vec<_> = chunks.iter().copied().step_by(3).collect();
    fixture.put(&session, &[fixture.forge.chunks(&put)]);
    let mut questions = chunks.clone();
    questions.extend(chunks.iter().rev());
    let expected: Vec<bool> = questions.iter().map(|id| !put.contains(id)).collect();
    assert_eq!(fixture.missing(&session, &questions), expected);
}

fn what_a_closed_session_put_is_there_for_the_next(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let first = fixture.session();
    fixture.put(&first, &[fixture.forge.chunks(&[id("chunk")])]);
    fixture.repository.close_session(&first).unwrap();
    assert_eq!(fixture.missing(&fixture.session(), &[id("chunk")]), [false]);
}

fn what_a_session_put_is_there_after_a_restart_and_the_session_too(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let first = fixture.session();
    fixture.put(&first, &[fixture.forge.chunks(&[id("chunk")])]);
    let fixture = fixture.restarted();
    assert_eq!(fixture.missing(&first, &[id("chunk")]), [false]);
    assert_eq!(fixture.missing(&fixture.session(), &[id("chunk")]), [false]);
    fixture.put(&first, &[fixture.forge.chunks(&[id("more")])]);
}

fn what_a_commit_reached_is_there_for_ever(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let chunks = ids("chunk", 3);
    fixture.snapshot("root", &chunks, None);
    let reached = [&chunks[..], &[id("root")]].concat();
    assert_eq!(fixture.missing(&fixture.session(), &reached), [false; 4]);
    let fixture = fixture.restarted();
    assert_eq!(fixture.missing(&fixture.session(), &reached), [false; 4]);
}

fn what_a_commit_did_not_reach_is_missing_once_its_session_ended(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let session = fixture.session();
    let chunks = ids("chunk", 2);
    let root = fixture.forge.nodes(&[(id("root"), &chunks[..1]), (id("stray"), &[])]);
    fixture.put(&session, &[fixture.forge.chunks(&chunks), root]);
    fixture.commit(&session, &fixture.forge.record(RecordKind::Snapshot, id("root"), None));
    let questions = [chunks[0], chunks[1], id("root"), id("stray")];
    assert_eq!(fixture.missing(&fixture.session(), &questions), [false, true, false, true]);
    let fixture = fixture.restarted();
    let session = fixture.session();
    assert_eq!(fixture.missing(&session, &questions), [false, true, false, true]);
    fixture.put(&session, &[fixture.forge.chunks(&chunks[1..])]);
    assert_eq!(fixture.missing(&session, &questions), [false, false, false, true]);
}

fn a_checkpoint_leaves_everything_there(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let session = fixture.session();
    let chunks = ids("chunk", 2);
    let root = fixture.forge.nodes(&[(id("partial"), &chunks[..1])]);
    fixture.put(&session, &[fixture.forge.chunks(&chunks), root]);
    let record = fixture.forge.record(RecordKind::Checkpoint, id("partial"), None);
    fixture.commit(&session, &record);
    let fixture = fixture.restarted();
    let questions = [chunks[0], chunks[1], id("partial")];
    assert_eq!(fixture.missing(&session, &questions), [false; 3]);
    let whole = fixture.forge.nodes(&[(id("whole"), &chunks)]);
    fixture.put(&session, &[whole]);
    let record = fixture.forge.record(RecordKind::Snapshot, id("whole"), head_after(&record));
    fixture.commit(&session, &record);
}

fn more_ids_than_the_limit_are_refused(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let session = fixture.session();
    let many = ids("chunk", MAX_IDS + 1);
    assert_refused(fixture.repository.missing(&session, &many));
    assert_refused(fixture.repository.fetch_objects(&session, &many, 0));
    assert_eq!(fixture.missing(&session, &many[1..]).len(), MAX_IDS);
}

fn questions_need_an_open_session(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let unknown = SessionId::from_bytes([5; 16]);
    assert_no_session(fixture.repository.missing(&unknown, &[id("chunk")]));
    let session = fixture.session();
    fixture.repository.close_session(&session).unwrap();
    assert_no_session(fixture.repository.missing(&session, &[id("chunk")]));
}
