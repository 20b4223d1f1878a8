//! What has rules let nothing go until an administrator has looked: much that was lost, a flood, most of what
//! a machine has, and rules that are not known.

use super::*;

#[test]
fn rules_stand_still_when_much_was_lost_until_somebody_has_looked() {
    let mut world = World::new();
    let all: Vec<String> = (0..100).map(|number| format!("file {number}")).collect();
    world.back_up_chunks("first", &all);
    assert_eq!(world.prune().alarm, None, "nobody knows yet what is usual");
    for hour in 0..40 {
        world.clocks.advance_ns(HOUR_NS);
        world.back_up_chunks(&format!("hour {hour}"), &all);
    }
    assert_eq!(world.prune().alarm, None);
    let changed: Vec<String> = (0..100).map(|number| format!("locked {number}")).collect();
    for (name, left) in [("half", &all[..49]), ("changed", &changed[..])] {
        world.back_up_chunks(name, left);
        world.clocks.advance_ns(32 * DAY_NS);
        let foreseen = world.administration().prune_one("laptop", true);
        assert!(foreseen.alarm.is_some() && foreseen.forgotten.is_empty(), "{foreseen:?}");
        world.clocks.advance_ns(DAY_NS);
        let pruned = world.prune();
        let before = world.snapshots() as u64;
        assert!(pruned.alarm.is_some() && pruned.forgotten.is_empty(), "{pruned:?}");
        assert_eq!(pruned.snapshots_kept, before);
        // It does not go by itself, whatever comes next.
        world.back_up_chunks(&format!("{name} again"), &all);
        assert_eq!(world.prune().alarm, pruned.alarm);
        assert_eq!(world.resume(), pruned.alarm);
        assert_eq!(world.resume(), None);
        assert_eq!(world.prune().alarm, None);
    }
    assert!(world.snapshots() < 40, "and then rules let go what they do not keep");
}

#[test]
fn rules_stand_still_when_somebody_forged_a_node_until_somebody_has_looked() {
    let mut world = World::new();
    let id = |text: &str| ObjectId::from_bytes(*blake3::hash(text.as_bytes()).as_bytes());
    world.back_up("first", 100);
    assert_eq!(world.prune().alarm, None);
    let machine =
        world.stores.store("laptop").unwrap().for_machine(MACHINE, world.forge.key.public());
    let purpose = SessionPurpose::Backup { parents: vec![] };
    let session = machine.open_session(&purpose).unwrap().session;
    // Whoever needs the node would be told that nothing more is needed.
    let forged = world.forge.nodes(&[(id("first"), &[])]);
    assert!(machine.put_blocks(&session, &[forged]).is_err());
    world.clocks.advance_ns(31 * DAY_NS);
    world.back_up("second", 100);
    let foreseen = world.administration().prune_one("laptop", true);
    let pruned = world.prune();
    let alarm = pruned.alarm.clone().unwrap();
    assert!(alarm.contains("other references") && foreseen.alarm == pruned.alarm, "{pruned:?}");
    assert_eq!(world.prune().alarm, pruned.alarm, "it does not go by itself");
    assert_eq!(world.resume(), pruned.alarm);
    assert_eq!(world.prune().alarm, None, "it was answered");
}

#[test]
fn a_flood_of_snapshots_displaces_none_until_somebody_has_looked() {
    let mut world = World::new();
    world.back_up("first", 100);
    assert_eq!(world.prune().alarm, None);
    world.clocks.advance_ns(DAY_NS);
    let honest = world.back_up("honest", 100);
    // Administrators look in the middle of it, too.
    for part in ["one", "two"] {
        assert_eq!(world.prune().alarm, None);
        world.flood(part, 60);
    }
    let is_there = |world: &World| {
        let snapshots = world.stores.store("laptop").unwrap().judge(&Policy::USUAL, &[]);
        snapshots.iter().any(|one| one.id == honest)
    };
    let alarm = world.prune().alarm;
    assert!(alarm.as_ref().is_some_and(|alarm| alarm.contains("within an hour")), "{alarm:?}");
    world.clocks.advance_ns(31 * DAY_NS);
    let pruned = world.prune();
    assert!(pruned.alarm == alarm && pruned.forgotten.is_empty(), "{pruned:?}");
    assert!(is_there(&world));
    world.resume();
    assert_eq!(world.prune().alarm, None);
    assert!(!is_there(&world), "it was not the last of its hour");
}

#[test]
fn rules_wait_while_there_is_more_that_is_new_than_one_look_goes_through() {
    let mut world = World::new();
    for name in ["one", "two", "three"] {
        world.back_up(name, 100);
    }
    assert_eq!(world.prune().alarm, None);
    world.flood_of_series(1200);
    world.clocks.advance_ns(31 * DAY_NS);
    let pruned = world.prune();
    assert_eq!((pruned.alarm, pruned.problem, pruned.forgotten), (None, None, vec![]));
    assert!(world.told.lock().unwrap().iter().any(|line| line.contains("had no time for")));
    assert_eq!(world.prune().forgotten.len(), 2, "the last of an hour stays");
}

/// A full disk is what whoever floods a repository waits for.
#[test]
fn nothing_is_thinned_after_a_flood_until_somebody_has_looked() {
    let mut world = World::new();
    world.back_up("honest", 100);
    assert_eq!(world.prune().alarm, None);
    world.clocks.advance_ns(DAY_NS);
    world.flood("garbage", 120);
    world.clocks.advance_ns(31 * DAY_NS);
    let thin = |world: &World, confirmed| world.administration().thin("laptop", confirmed);
    let offered = thin(&world, false).unwrap();
    assert!(offered.snapshots.len() > 100, "{}", offered.snapshots.len());
    let refused = thin(&world, true).unwrap_err().to_string();
    assert!(refused.contains("within an hour") && refused.contains("resume laptop"), "{refused}");
    assert!(world.accounts.deletions().is_empty());
    assert!(world.resume().is_some());
    let asked = thin(&world, true).unwrap();
    assert_eq!(world.accounts.deletions(), [asked.deletion.unwrap()]);
}

#[test]
fn a_flood_that_somebody_has_looked_at_raises_no_alarm_again() {
    let mut world = World::new();
    world.back_up("first", 100);
    world.prune();
    world.flood("garbage", 120);
    assert!(world.prune().alarm.is_some());
    world.resume();
    for name in ["of the same hour", "the next"] {
        assert_eq!(world.prune().alarm, None);
        world.back_up(name, 100);
    }
    assert_eq!(world.prune().alarm, None);
    world.flood("more garbage", 120);
    assert!(world.prune().alarm.is_some());
}

/// As of a machine that made all of them within an hour, and none since.
#[test]
fn rules_do_not_delete_most_of_a_machines_snapshots_at_once_until_somebody_has_looked() {
    let mut world = World::new();
    world.prune();
    for number in 0..12 {
        world.back_up(&number.to_string(), 100);
    }
    assert!(world.days(29).iter().all(|pruned| pruned.alarm.is_none()));
    world.clocks.advance_ns(DAY_NS);
    let foreseen = world.administration().prune_one("laptop", true);
    let pruned = world.prune();
    let alarm = pruned.alarm.clone().unwrap();
    assert!(alarm.contains("11 of the 12 snapshots of machine"), "{alarm}");
    assert_eq!((foreseen.alarm, foreseen.forgotten), (pruned.alarm, vec![]));
    assert_eq!((pruned.forgotten, pruned.snapshots_kept), (vec![], 12));
    assert_eq!(world.entry().alarm.as_ref(), Some(&alarm));
    let told = |world: &World| {
        let log = world.told.lock().unwrap();
        log.iter().filter(|line| line.starts_with("alarm: laptop: unchanged rules")).count()
    };
    assert_eq!(told(&world), 1);
    assert_eq!(world.prune().alarm.as_ref(), Some(&alarm), "it does not go by itself");
    assert_eq!(world.resume(), Some(alarm));
    let pruned = world.prune();
    assert_eq!((pruned.alarm, pruned.forgotten.len(), told(&world)), (None, 11, 1));
}

#[test]
fn rules_that_always_keep_a_few_of_many_may_delete_most_at_once() {
    let mut world = World::new();
    world.prune();
    let policy = Policy { last: 4, ..Policy::default() };
    world.accounts.set_keeping(Some("laptop"), Keeping { policy, ..Keeping::USUAL }).unwrap();
    world.days(9);
    for hour in 0..4 {
        for number in 0..12 {
            world.back_up(&format!("{number} of hour {hour}"), 100);
        }
        world.clocks.advance_ns(HOUR_NS);
        assert_eq!((world.prune().alarm, world.snapshots()), (None, 4));
    }
}

#[test]
fn rules_that_were_changed_may_delete_most_at_once() {
    let mut world = World::new();
    for day in 0..20 {
        world.back_up(&day.to_string(), 100);
        world.clocks.advance_ns(DAY_NS);
        assert_eq!(world.prune().alarm, None);
    }
    let policy = Policy { last: 1, ..Policy::default() };
    let fewer = Keeping { policy, ..Keeping::USUAL };
    world.accounts.set_keeping(Some("laptop"), fewer).unwrap();
    assert!(world.days(9).iter().all(|pruned| pruned.alarm.is_none()));
    assert_eq!(world.snapshots(), 1);
}

/// Four snapshots, of which rules keep the first for its tag, and all too old for any lock.
fn kept_by_a_tag() -> (World, Keeping) {
    let mut world = World::new();
    let tag = TagToken::from_bytes([1; 16]);
    let ids: Vec<_> = (0..4).map(|number| world.back_up(&number.to_string(), 1000)).collect();
    world.tag(ids[0], "0", vec![tag]);
    let keeping = Keeping { tags: vec![tag], ..Keeping::USUAL };
    world.accounts.set_keeping(Some("laptop"), keeping.clone()).unwrap();
    assert_eq!(world.prune().alarm, None);
    (world, keeping)
}

#[test]
fn a_repository_whose_rules_were_lost_lets_nothing_go_until_somebody_has_said_them() {
    let (world, keeping) = kept_by_a_tag();
    let lose = |repository: &std::path::Path| {
        std::fs::remove_file(repository.join("../../server.redb")).unwrap();
    };
    let world = world.restarted(lose);
    let foreseen = world.administration().prune_one("laptop", true);
    for _ in 0..40 {
        world.clocks.advance_ns(DAY_NS);
        let pruned = world.prune();
        assert!(pruned.alarm.is_some() && pruned.alarm == foreseen.alarm, "{pruned:?}");
        assert_eq!((pruned.forgotten, pruned.snapshots_kept), (vec![], 4));
    }
    world.accounts.set_keeping(Some("laptop"), keeping).unwrap();
    let pruned = world.prune();
    assert_eq!((pruned.alarm, pruned.forgotten.len()), (None, 2));
    let mut world = world.restarted(|_| ());
    assert_eq!(world.prune().alarm, None);
    // Or that the usual ones are all right, be it before any look.
    for looks in [true, false] {
        world = world.restarted(lose);
        if looks {
            assert_eq!(world.prune().alarm, foreseen.alarm);
        }
        assert_eq!(world.resume(), foreseen.alarm);
        assert_eq!(world.prune().alarm, None);
    }
}

#[test]
fn a_folder_that_was_renamed_is_not_judged_by_what_is_usual_nor_by_another_s_rules() {
    let (world, _) = kept_by_a_tag();
    let other = Forge::new(2, MACHINE, &[9; 32]);
    let world = world.restarted(|repository| {
        std::fs::rename(repository, repository.with_file_name("table")).unwrap();
        Store::create(repository, &other.new_repository()).unwrap();
    });
    for name in ["table", "laptop"] {
        world.clocks.advance_ns(40 * DAY_NS);
        let pruned = world.administration().prune_one(name, false);
        assert!(pruned.alarm.is_some() && pruned.forgotten.is_empty(), "{pruned:?}");
    }
}

#[test]
fn an_alarm_of_another_kind_is_not_answered_by_saying_the_rules() {
    let mut world = World::new();
    world.back_up("first", 100);
    world.prune();
    world.flood("garbage", 120);
    let alarm = world.prune().alarm;
    world.accounts.set_keeping(Some("laptop"), Keeping::USUAL).unwrap();
    assert!(alarm.is_some() && world.prune().alarm == alarm);
}
