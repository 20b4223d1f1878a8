//! The hours in which a server keeps house.

use super::*;
use crate::accounts::{Day, Hours, local};

#[test]
fn outside_of_its_hours_nothing_is_pruned_or_read_and_within_them_it_is() {
    let mut world = World::new();
    world.back_up("one", 100_000);
    let (_, minute) = local(world.clocks.now_ns());
    let hour = |after: u16| format!("{:02}:00", (minute / 60 + after) % 24);
    let hours = Hours { from: hour(3), to: hour(5), days: Day::ALL.to_vec() };
    world.administration().set_upkeep(&Upkeep { hours, scrub_days: 7 }).unwrap();
    let begun = |log: &[String]| log.iter().any(|line| line.contains("prune of"));
    for passed in 0..7 {
        world.told.lock().unwrap().clear();
        world.administration().keep_house();
        let log = world.told.lock().unwrap().clone();
        let is_within = (3..5).contains(&passed);
        assert_eq!(begun(&log), is_within, "{passed}: {log:?}");
        let says = log.iter().any(|line| line.contains("nothing is pruned or read again now"));
        assert_eq!(says, !is_within, "{passed}: {log:?}");
        assert_eq!(world.entry().read_by_ns.is_some(), passed >= 3, "{passed}");
        world.clocks.advance_ns(HOUR_NS);
    }
    let round_ns = world.entry().read_by_ns.unwrap() - world.clocks.now_ns();
    assert_eq!(round_ns, 7 * DAY_NS - 4 * HOUR_NS);
}
