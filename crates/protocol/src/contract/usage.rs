//! Telling how much is stored.

use super::ContractWorld;
use super::cases;
use super::fixture::Fixture;
use super::forge::{id, ids};
use crate::{RepositoryError, Usage};

cases![
    a_new_repository_holds_nothing,
    what_is_stored_is_counted_and_stays_so_after_a_restart,
    what_was_refused_is_not_counted,
    usage_of_no_repository_says_so,
];

fn a_new_repository_holds_nothing(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    assert_eq!(fixture.repository.usage().unwrap().without_room(), Usage::default());
}

fn what_is_stored_is_counted_and_stays_so_after_a_restart(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let session = fixture.session();
    let chunks = ids("chunk", 6);
    let [few, many] = [&chunks[..2], &chunks[2..]];
    let blocks = [few, many].map(|ids| fixture.forge.chunks_of_bytes(ids, 100_000));
    fixture.put(&session, &blocks);
    let put = fixture.repository.usage().unwrap();
    assert_eq!((put.packs, put.blocks, put.objects, put.records), (1, 2, 6, 0));
    let sent: usize = blocks.iter().map(|block| block.len()).sum();
    let around = put.stored_bytes.checked_sub(sent as u64).expect("all of them are stored");
    assert!(around < 10_000, "{around} bytes around two blocks");

    let head = fixture.snapshot("root", few, None);
    let committed = fixture.repository.usage().unwrap().without_room();
    assert_eq!((committed.packs, committed.blocks, committed.records), (2, 4, 1));
    assert!(committed.stored_bytes > put.stored_bytes);
    let fixture = fixture.restarted();
    assert_eq!(fixture.repository.usage().unwrap().without_room(), committed);
    fixture.snapshot("root 2", many, head);
    assert_eq!(fixture.repository.usage().unwrap().records, 2);
}

fn what_was_refused_is_not_counted(world: &mut dyn ContractWorld) {
    let fixture = Fixture::new(world);
    let session = fixture.session();
    let before = fixture.repository.usage().unwrap().without_room();
    let good = fixture.forge.chunks(&[id("chunk")]);
    let cut = good.slice(..good.len() - 1);
    assert!(fixture.repository.put_blocks(&session, &[good, cut]).is_err());
    assert_eq!(fixture.repository.usage().unwrap().without_room(), before);
}

fn usage_of_no_repository_says_so(world: &mut dyn ContractWorld) {
    let answer = world.repository().usage();
    assert!(matches!(answer, Err(RepositoryError::NoRepository { .. })), "got {answer:?}");
}
