//! Copies of old snapshots beside what was backed up here.

use super::*;

impl World {
    /// A copy of a snapshot, of so many chunks, that is so old.
    fn copy(&mut self, name: &str, chunks: usize, age_ns: i64) -> RecordHash {
        let id = |text: String| ObjectId::from_bytes(*blake3::hash(text.as_bytes()).as_bytes());
        let root = id(name.to_owned());
        let chunks: Vec<_> = (0..chunks).map(|number| id(format!("{name} {number}"))).collect();
        let blocks =
            [self.forge.chunks_of_bytes(&chunks, 100), self.forge.nodes(&[(root, &chunks)])];
        let taken_ns = Some(self.clocks.now_ns() - age_ns);
        self.commit_head(root, blocks.to_vec(), |head| head.taken_ns = taken_ns)
    }

    fn ids(&self) -> Vec<RecordHash> {
        let judged = self.stores.store("laptop").unwrap().judge(&Policy::USUAL, &[]);
        judged.iter().map(|one| one.id).collect()
    }
}

#[test]
fn copies_of_old_snapshots_stay_and_displace_nothing() {
    let mut world = World::new();
    world.prune();
    let mut all = vec![world.back_up("real", 100)];
    for age in (1..=12).rev() {
        all.push(world.copy(&format!("{age} months old"), 1, age * 30 * DAY_NS));
    }
    let before = world.ids();
    assert!(world.days(40).iter().all(|pruned| pruned.alarm.is_none()));
    assert_eq!(world.ids(), before);
    assert_eq!(before, all);
}

/// Whoever took a machine over makes copies of any age.
#[test]
fn invented_copies_have_no_older_ones_go() {
    let mut world = World::new();
    world.prune();
    let years: Vec<_> = (1..=9)
        .rev()
        .map(|age| world.copy(&format!("year {age}"), 1, age * 365 * DAY_NS))
        .collect();
    world.days(40);
    assert_eq!(world.ids(), years);
    for number in 0..90 {
        world.copy(&format!("invented {number}"), 1, number * 37 * DAY_NS);
    }
    world.days(40);
    assert_eq!(world.ids()[..9], years);
}

#[test]
fn an_old_snapshot_that_is_copied_is_no_loss_of_what_is_backed_up() {
    let mut world = World::new();
    let all: Vec<String> = (0..100).map(|number| format!("file {number}")).collect();
    world.back_up_chunks("first", &all);
    assert_eq!(world.prune().alarm, None);
    world.copy("old and small", 2, 900 * DAY_NS);
    assert_eq!(world.prune().alarm, None);
    world.back_up_chunks("second", &all);
    assert_eq!(world.prune().alarm, None);
    // What is backed up here is compared with what was.
    world.back_up_chunks("half", &all[..40]);
    assert!(world.prune().alarm.is_some());
}
