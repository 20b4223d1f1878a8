//! Rules of all repositories that have none of their own.

use super::*;

#[test]
fn the_default_counts_where_a_repository_has_no_rules_of_its_own() {
    let mut world = World::new();
    let daily = |daily| Keeping { policy: Policy { daily, ..Policy::USUAL }, ..Keeping::USUAL };
    let in_force = |world: &World, name| world.accounts.in_force(name, false).unwrap();
    world.accounts.set_keeping(None, daily(1)).unwrap();
    assert_eq!(in_force(&world, "laptop"), daily(30), "what keeps less waits");
    assert!(world.administration().announced("laptop").fewer_kept_from_ns.is_some());
    world.days(8);
    assert_eq!(in_force(&world, "laptop"), daily(1));
    assert!(world.accounts.keeping("laptop").is_default);

    world.accounts.set_keeping(Some("laptop"), daily(90)).unwrap();
    world = world.restarted(|_| {});
    assert_eq!((in_force(&world, "laptop"), in_force(&world, "other")), (daily(90), daily(1)));
    world.accounts.set_keeping(None, daily(40)).unwrap();
    assert_eq!((in_force(&world, "laptop"), in_force(&world, "other")), (daily(90), daily(40)));

    let asked = world.accounts.follow_default("laptop").unwrap();
    assert!(!asked.is_default && asked.then.is_some(), "what keeps less waits: {asked:?}");
    assert_eq!(world.accounts.follow_default("laptop").unwrap(), asked);
    world = world.restarted(|_| {});
    assert_eq!(in_force(&world, "laptop"), daily(90));
    world.days(8);
    assert_eq!(in_force(&world, "laptop"), daily(40));
    world.accounts.set_keeping(None, daily(50)).unwrap();
    assert_eq!(in_force(&world, "laptop"), daily(50), "it follows from then on");
    world.accounts.set_keeping(Some("laptop"), daily(50)).unwrap();
    assert!(world.accounts.follow_default("laptop").unwrap().is_default, "that keeps as much");
}
