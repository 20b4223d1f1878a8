//! What a keeper lost is found within a week, and what was pruned is not taken for lost.

use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use bytes::Bytes;
use holdall_crypto::PlainObject;
use holdall_format::{Block, BlockKind, ObjectId};
use holdall_protocol::SessionPurpose;
use holdall_testkit::Random;
use holdall_tree::Chunker;

use super::*;
use crate::storing::Putter;
use crate::test_world::World;
use crate::{BreakKind, ChainBreak, DamagedRecord};

const DAY_NS: i64 = 24 * 3600 * 1_000_000_000;
const WEEK_NS: i64 = 7 * DAY_NS;
/// Any moment.
const NOW_NS: i64 = 1_700_000_000 * 1_000_000_000;

/// A repository with a snapshot of 40 files of 1 MB each, whose first round has begun.
fn world() -> (World, tempfile::TempDir) {
    let (world, folder) = (World::new(), tempfile::tempdir().expect("a folder"));
    let mut random = Random::new(1);
    for number in 0..40 {
        fs::write(file(&folder, number), random.bytes(1_000_000)).expect("room");
    }
    world.back_up(folder.path());
    assert_eq!(asked(&world, NOW_NS).probed, 0, "nothing is due when a round begins");
    (world, folder)
}

fn asked(world: &World, now_ns: i64) -> AuditReport {
    audited(world, now_ns).expect("it can be asked")
}

fn audited(world: &World, now_ns: i64) -> Result<AuditReport, EngineError> {
    audit(&world.access, now_ns, &Run::new(), &|| crate::snapshots(&world.access))
}

/// A repository with a snapshot of a small file, in whose round its block of content is due so many times.
fn world_that_remembers(times: u64) -> World {
    let (world, folder) = (World::new(), tempfile::tempdir().expect("a folder"));
    fs::write(folder.path().join("small"), Random::new(2).bytes(2000)).expect("room");
    world.back_up(folder.path());
    let is_content = |block: &Bytes| {
        let block = Block::decode(block.clone()).expect("whole");
        block.header().kind == BlockKind::Chunks
    };
    let mut blocks = world.repository.blocks();
    blocks.retain(is_content);
    let remembering = Remembering::within(&world.access.cache);
    // Of eight that are put one is remembered.
    let put = vec![blocks.remove(0); 8];
    (0..times).for_each(|_| remembering.remember(&put));
    assert_eq!(asked(&world, NOW_NS).probed, 0, "nothing is due when a round begins");
    world
}

/// Asks for a whole round, however many backups it takes.
fn asked_for_all(world: &World) -> AuditReport {
    let mut all = AuditReport::default();
    loop {
        let report = asked(world, NOW_NS + 6 * DAY_NS);
        if report.probed == 0 {
            return all;
        }
        all.probed += report.probed;
        all.read += report.read;
        all.lost_count += report.lost_count;
    }
}

fn file(folder: &tempfile::TempDir, number: usize) -> PathBuf {
    folder.path().join(format!("{number:02}"))
}

/// Every chunk of these files.
fn content_of(world: &World, folder: &tempfile::TempDir, files: Range<usize>) -> Vec<ObjectId> {
    let (chunker, ids) = (Chunker::new(world.access.keys.chunker_key()), world.access.keys.ids());
    let mut found = Vec::new();
    for number in files {
        let content = fs::read(file(folder, number)).expect("a file");
        let mut rest = &content[..];
        while !rest.is_empty() {
            let (chunk, behind) = rest.split_at(chunker.cut(rest));
            found.push(ids.chunk_id(chunk));
            rest = behind;
        }
    }
    found
}

#[test]
fn a_keeper_that_has_everything_shows_it_and_nothing_is_told() {
    let (world, _folder) = world();
    let report = asked(&world, NOW_NS + 6 * DAY_NS);
    // Of three times eight blocks of content at least, and of nodes.
    assert!(report.probed >= 4, "{report:?}");
    assert_eq!((report.lost_count, report.gone), (0, 0));
    // Half a round later half of them are due again.
    let again = asked(&world, NOW_NS + 9 * DAY_NS);
    assert!((report.probed / 2..=report.probed / 2 + 1).contains(&again.probed), "{again:?}");
}

#[test]
fn what_a_keeper_lost_is_found_within_a_week_with_the_paths_that_need_it() {
    let (world, folder) = world();
    let lost = content_of(&world, &folder, 0..39);
    lost.iter().for_each(|id| world.repository.lose(id));
    let report = asked(&world, NOW_NS + WEEK_NS);
    assert!(report.lost_count > 0, "{report:?}");
    let path = String::from_utf8(report.lost[0].path.clone()).expect("UTF-8");
    assert!(path.contains(folder.path().to_str().expect("UTF-8")), "{path}");
    assert_eq!(report.gone, 0);
    // It is told again by the next round.
    assert!(asked(&world, NOW_NS + 2 * WEEK_NS).lost_count > 0);
}

#[test]
fn what_a_keeper_damaged_is_found_too() {
    let (world, _folder) = world();
    world.repository.damage_all(|_| true);
    assert!(asked(&world, NOW_NS + WEEK_NS).lost_count > 0);
}

#[test]
fn one_of_512_blocks_that_are_asked_for_is_read_as_a_whole() {
    let report = asked_for_all(&world_that_remembers(200 * 512));
    assert!(report.probed >= 200 * 512, "{report:?}");
    // 200 on average, give or take five times the 14 by which chance spreads them.
    assert!((130..=270).contains(&report.read), "{report:?}");
}

#[test]
fn a_keeper_that_can_show_slices_of_what_it_can_not_give_is_found_by_what_is_read_as_a_whole() {
    let world = world_that_remembers(20 * 512);
    world.repository.keep_what_proves();
    world.repository.damage_all(|_| true);
    assert!(asked_for_all(&world).lost_count > 0);
}

#[test]
fn lost_nodes_are_found_though_they_are_cached_here() {
    let (world, _folder) = world();
    // The first block of each kind is remembered.
    let ids = world.repository.ids().into_iter();
    let nodes: HashSet<_> = ids.filter(|id| world.repository.is_in(id, BlockKind::Nodes)).collect();
    world.repository.damage_all(|id| nodes.contains(id));
    assert!(asked(&world, NOW_NS + WEEK_NS).lost_count > 0);
}

#[test]
fn what_no_snapshot_needs_any_more_is_forgotten_and_not_told() {
    let (world, folder) = world();
    let gone = content_of(&world, &folder, 0..40);
    for number in 0..40 {
        fs::write(file(&folder, number), "small").expect("room");
    }
    world.back_up(folder.path());
    world.repository.lose_record(0);
    gone.iter().for_each(|id| world.repository.lose(id));
    // As if its tombstone were there.
    let list = || {
        let all = crate::snapshots(&world.access)?;
        Ok(Listed { damaged: Vec::new(), breaks: Vec::new(), ..all })
    };
    let asked = |now_ns| audit(&world.access, now_ns, &Run::new(), &list).expect("it can be asked");
    let report = asked(NOW_NS + WEEK_NS);
    assert_eq!(report.lost_count, 0, "{report:?}");
    assert!(report.gone > 0, "{report:?}");
    let again = asked(NOW_NS + 2 * WEEK_NS);
    assert_eq!((again.gone, again.lost_count), (0, 0));
}

#[test]
fn what_is_lost_is_not_forgotten_while_snapshots_are_hidden_that_may_need_it() {
    let (world, folder) = world();
    let lost = content_of(&world, &folder, 0..40);
    lost.iter().for_each(|id| world.repository.lose(id));
    let hides_all = || Err(EngineError::damaged("the list of snapshots", "the newest is hidden"));
    let all = crate::snapshots(&world.access).expect("they are listed");
    let damaged = DamagedRecord { position: 0, reason: String::new(), may_be_tombstone: false };
    let shows_one_damaged = || Ok(Listed { damaged: vec![damaged.clone()], ..Listed::default() });
    let kind = BreakKind::LeftOut(1);
    let broken = ChainBreak { record: all.snapshots[0].id, position: 1, kind };
    let leaves_one_out = || Ok(Listed { breaks: vec![broken], ..Listed::default() });
    let audit = |list: &dyn Fn() -> Result<Listed, EngineError>, weeks| {
        audit(&world.access, NOW_NS + weeks * WEEK_NS, &Run::new(), list)
    };
    audit(&hides_all, 1).expect_err("the list is damaged");
    assert_eq!(audit(&shows_one_damaged, 1).expect("it is listed").gone, 0);
    assert_eq!(audit(&leaves_one_out, 2).expect("it is listed").gone, 0);
    assert!(asked(&world, NOW_NS + 3 * WEEK_NS).lost_count > 0);
}

#[test]
fn what_had_to_wait_for_more_than_a_week_is_told_and_gets_more_time() {
    let hours = |hours: i128| hours * 3600 * 1_000_000_000;
    assert_eq!(waiting_for(hours(24)), None, "a day is left for the next backup");
    assert_eq!(waiting_for(hours(25)), Some(Duration::from_secs((6 * 24 + 25) * 3600)));
    assert_eq!(most_time(hours(25)), MOST_TIME);
    assert_eq!(most_time(hours(37)), MOST_TIME_BEHIND);
}

#[test]
fn what_a_compacting_or_a_repair_puts_is_remembered_too() {
    let world = World::new();
    let backup = SessionPurpose::Backup { parents: Vec::new() };
    let session = world.access.repository.open_session(&backup);
    let session = session.expect("it opens").session;
    let mut putter = Putter::new(&world.access, session);
    let content = Random::new(1).bytes(1000);
    putter.chunk(world.access.keys.ids().chunk_id(&content), &content).expect("it puts");
    assert!(Round::open(&world.access.cache, NOW_NS).is_none(), "nothing was put yet");
    putter.finish().expect("it puts");
    assert!(Round::open(&world.access.cache, NOW_NS).is_some());
}

#[test]
fn what_was_stored_again_in_another_block_is_not_taken_for_lost() {
    let (world, _folder) = world();
    let mut opener = ChunkSource::opener(&world.access);
    for block in world.repository.take_blocks() {
        let block = Block::decode(block).expect("whole");
        let kind = block.header().kind;
        let opened = opener.open(&block, kind).expect("it opens");
        let objects = opened.objects.into_iter().map(|object| PlainObject {
            id: object.id,
            refs: object.refs,
            len: object.range.len(),
        });
        world.seal(kind, &objects.collect::<Vec<_>>(), &opened.plain);
    }
    let report = asked(&world, NOW_NS + WEEK_NS);
    assert_eq!((report.lost_count, report.gone), (0, 0), "{report:?}");
    assert_eq!(report.read, report.probed, "none could be shown by its name");
}

#[test]
fn a_keeper_that_is_away_whenever_it_is_asked_is_told_in_the_fifth_run_and_what_it_lost_stays_due()
{
    let (world, _folder) = world();
    world.repository.damage_all(|_| true);
    world.repository.be_away_for_proofs(true);
    let now_ns = NOW_NS + WEEK_NS;
    for run in 1..=6 {
        let error = audited(&world, now_ns).expect_err("it is away");
        let is_told = matches!(error, EngineError::Damaged { .. });
        assert_eq!(is_told, run > 4, "{run}: {error}");
    }
    world.repository.be_away_for_proofs(false);
    assert!(asked(&world, now_ns).lost_count > 0);
    // What was asked for to its end is not due again, and nothing is held against it.
    world.repository.be_away_for_proofs(true);
    assert_eq!(asked(&world, now_ns).probed, 0);
    let error = audited(&world, now_ns + WEEK_NS).expect_err("it is away");
    assert!(matches!(error, EngineError::Repository(_)), "{error}");
}
