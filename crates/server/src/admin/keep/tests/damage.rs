//! Damage, and what cannot be looked after, is told whatever stands in the way.

use super::*;

#[test]
fn everything_is_read_again_by_a_date_and_damage_is_told_until_it_is_repaired() {
    let mut world = World::new();
    world.back_up("one", 100_000);
    let told = |world: &World| {
        world.administration().keep_house();
        world.entry()
    };
    let begun_ns = world.clocks.now_ns();
    let fresh = told(&world);
    assert_eq!(fresh.read_by_ns, Some(begun_ns + 30 * DAY_NS));
    assert_eq!((fresh.read_since_ns, fresh.damaged.len()), (None, 0));
    world.flip_a_byte();
    for day in 1..=30 {
        world.clocks.advance_ns(DAY_NS);
        assert_eq!(told(&world).damaged.is_empty(), day < 30, "{day}");
    }
    assert_eq!(told(&world).read_since_ns, Some(begun_ns));
    let also = AlsoRepair { repair: true, dry_run: false, parity: None };
    world.administration().scrub(Some("laptop"), also).unwrap();
    // The pack is sound now, what the byte was of is missing: until a backup sends it again.
    let repaired = told(&world);
    assert_eq!(repaired.read_since_ns, Some(world.clocks.now_ns()));
    assert!(matches!(&repaired.damaged[..], [one] if one.starts_with("snapshots: ")));
    world.back_up("one", 100_000);
    assert_eq!(told(&world).damaged, Vec::<String>::new());
}

/// Has a path of the repository be something else than what is needed there.
fn put_in_the_way(world: &World, path: &str) {
    let path = world.temp.path().join("repositories/laptop").join(path);
    std::fs::rename(&path, path.with_extension("aside")).unwrap();
    std::fs::write(path, "in the way").unwrap();
}

#[test]
fn damage_is_told_though_it_can_not_be_noted_nor_parity_be_made() {
    let mut world = World::new();
    world.back_up("one", 100_000);
    let also = AlsoRepair { parity: Some(10), ..AlsoRepair::default() };
    world.administration().scrub(Some("laptop"), also).unwrap();
    world.flip_a_byte();
    world.clocks.advance_ns(31 * DAY_NS);
    put_in_the_way(&world, "parity/percent");
    put_in_the_way(&world, "tmp");
    for hour in 0..2 {
        world.administration().keep_house();
        let lines = std::mem::take(&mut *world.told.lock().unwrap());
        let is_told = |text: &str| lines.iter().any(|line| line.starts_with(text));
        assert!(is_told("parity of laptop could not be made: "), "{hour}: {lines:?}");
        assert!(is_told("laptop could not be scrubbed: "), "{hour}: {lines:?}");
        assert!(is_told("laptop: damaged: tails: "), "{hour}: {lines:?}");
        world.clocks.advance_ns(HOUR_NS);
    }
    let scrubbed = world.administration().scrub(None, AlsoRepair::default()).unwrap();
    assert!(scrubbed[0].problem.is_some() && !scrubbed[0].damaged.is_empty(), "{scrubbed:?}");
}

#[test]
fn that_a_repository_can_not_be_opened_to_write_or_that_none_can_be_listed_is_told() {
    let mut world = World::new();
    world.back_up("one", 1000);
    let world = world.restarted(|_| {});
    put_in_the_way(&world, "tmp");
    let entry = world.entry();
    assert!(entry.id.is_some() && entry.problem.is_some(), "{entry:?}");

    let all = world.temp.path().join("repositories");
    std::fs::rename(&all, world.temp.path().join("aside")).unwrap();
    std::fs::write(&all, "in the way").unwrap();
    world.administration().keep_house();
    let lines = world.told.lock().unwrap();
    assert!(matches!(&lines[..], [one] if one.starts_with("no repository")), "{lines:?}");
}
