//! Repair: what is damaged is repaired from parity, or counts as missing; nothing is made worse.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use holdall_format::PackName;
use holdall_protocol::contract::ContractWorld;
use holdall_protocol::{
    OwnedRepository, Repair, RepairReport, Repository, RepositoryError, ScrubDamage,
};
use holdall_sys::Clock;

use crate::house::{House, id, names};
use crate::world::SharedWorld;

const CHUNK_BYTES: usize = 5 << 20;

/// The files two folders below.
fn files_in(dir: &Path) -> Vec<PathBuf> {
    let entries = |dir: &Path| fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let folders = entries(dir).filter(|path| path.is_dir());
    let mut files: Vec<PathBuf> =
        folders.flat_map(|folder| entries(&folder).collect::<Vec<_>>()).collect();
    files.sort();
    files
}

fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

fn name_of(pack: &Path) -> PackName {
    pack.file_name().unwrap().to_str().unwrap().parse().unwrap()
}

/// A repository with a snapshot in some packs, and parity if any is wanted.
fn backed_up(percent: u8) -> House {
    let mut house = House::new();
    if percent > 0 {
        assert_eq!(house.repository().keep_parity(percent).unwrap(), 0, "there is no pack yet");
    }
    house.snapshot("one", &names(0..20), CHUNK_BYTES);
    house.world.restart();
    house
}

impl House {
    fn packs(&self) -> Vec<PathBuf> {
        files_in(&self.world.dir().join("packs"))
    }

    fn parity(&self) -> Vec<PathBuf> {
        files_in(&self.world.dir().join("parity"))
    }

    fn quarantine(&self) -> Vec<PathBuf> {
        let dir = self.world.dir().join("quarantine");
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    fn repair(&self, dry_run: bool) -> RepairReport {
        self.repository().repair(dry_run, &mut |_| {}).unwrap()
    }

    fn assert_all_there(&self, chunks: std::ops::Range<usize>) {
        for chunk in names(chunks) {
            assert!(self.has(id(&chunk)), "{chunk}");
        }
    }
}

#[test]
fn a_pack_with_parity_is_as_it_was_again_wherever_it_was_damaged() {
    let mut house = backed_up(5);
    assert_eq!(house.packs().len(), house.parity().len(), "each pack has parity once it is closed");
    let pack = house.packs()[0].clone();
    let whole = fs::read(&pack).unwrap();
    let end = whole.len();
    // Content, several places, the footer, the trailer, a cut, and garbage behind the end.
    type Damage = fn(&mut Vec<u8>);
    let damages: [(&str, Damage); 6] = [
        ("a byte", |bytes| bytes[1_000_000] ^= 1),
        ("sectors", |bytes| (0..20).for_each(|at| bytes[at << 20] ^= 0xff)),
        ("footer", |bytes| {
            let at = bytes.len() - 100;
            bytes[at] ^= 1;
        }),
        ("trailer", |bytes| *bytes.last_mut().unwrap() ^= 1),
        ("cut short", |bytes| bytes.truncate(bytes.len() - 300_000)),
        ("longer", |bytes| bytes.extend_from_slice(&[7; 5000])),
    ];
    for (number, (name, damage)) in damages.into_iter().enumerate() {
        house.world.close();
        change(&pack, damage);
        let damaged = fs::read(&pack).unwrap();
        house.world.restart();
        let foreseen = house.repair(true);
        assert!(fs::read(&pack).unwrap() == damaged, "{name}: a dry run changes nothing");
        assert_ne!(foreseen.scrub.damaged, [], "{name}");
        let repaired = house.repair(false);
        assert_eq!(repaired.repairs, foreseen.repairs, "{name}");
        let [Repair::Restored { pack: restored, .. }] = repaired.repairs[..] else {
            panic!("{name}: {:?}", repaired.repairs)
        };
        assert_eq!(restored, name_of(&pack));
        assert_eq!(repaired.scrub.damaged, [], "{name}");
        let repaired = fs::read(&pack).unwrap();
        assert_eq!((repaired.len(), repaired == whole), (end, true), "{name}");
        let kept = house.quarantine();
        assert_eq!(kept.len(), number + 1, "{name}");
        assert!(kept.iter().any(|file| fs::read(file).unwrap() == damaged), "{name}");
        assert_eq!(house.repair(false).repairs, [], "{name}: once is enough");
    }
    house.assert_all_there(0..20);
    house.snapshot("two", &names(5..25), CHUNK_BYTES);
    house.prune();
    house.assert_whole();
}

#[test]
fn without_parity_what_is_lost_counts_as_missing_and_can_be_sent_again() {
    let mut house = backed_up(0);
    assert_eq!(house.parity().len(), 0);
    let pack = house.packs()[0].clone();
    house.world.close();
    let cached = house.world.cached();
    house.world.restart();
    change(&pack, |bytes| bytes[1000] ^= 1);
    let damaged = fs::read(&pack).unwrap();
    let repaired = house.repair(false);
    let [Repair::Salvaged { pack: salvaged, kept_blocks, lost_blocks }] = repaired.repairs[..]
    else {
        panic!("{:?}", repaired.repairs)
    };
    assert_eq!((salvaged, lost_blocks), (name_of(&pack), 1));
    assert!(kept_blocks > 3, "{kept_blocks}");
    let kept = house.quarantine();
    assert!(kept.len() == 1 && fs::read(&kept[0]).unwrap() == damaged);
    let [ScrubDamage::Missing { object: lost, .. }] = repaired.scrub.damaged[..] else {
        panic!("{:?}", repaired.scrub.damaged)
    };
    for (restart, cache_from_before) in [(false, false), (true, false), (true, true)] {
        if cache_from_before {
            house.world.close_with_cache(&cached);
        }
        if restart {
            house.world.restart();
        }
        let session = house.session(&[]);
        let ids: Vec<_> = names(0..20).iter().map(|chunk| id(chunk)).collect();
        let missing = house.repository().missing(&session, &ids).unwrap();
        let told: Vec<_> = ids.iter().zip(missing).filter(|(_, missing)| *missing).collect();
        assert_eq!(told.len(), 1, "only what is lost is asked for");
        assert_eq!(*told[0].0, lost);
        assert!(house.try_commit(&session, "one").is_err(), "nobody says that it is whole");
        assert!(house.repository().prune(false).is_err(), "nothing is deleted meanwhile");
    }
    house.snapshot("two", &names(0..20), CHUNK_BYTES);
    house.assert_whole();
    house.prune();
    house.assert_whole();
    assert_eq!(house.quarantine().len(), 1, "only a person deletes what was put aside");
    assert!(!pack.exists(), "the damaged pack itself went with the prune");
    house.assert_all_there(0..20);
}

#[test]
fn a_pack_that_can_not_be_read_at_all_is_put_aside_and_in_nobodys_way() {
    let mut house = backed_up(0);
    let pack = house.packs()[0].clone();
    house.world.close();
    change(&pack, |bytes| bytes.truncate(1000));
    house.world.restart();
    let repaired = house.repair(false);
    assert_eq!(repaired.repairs.len(), 1, "{repaired:?}");
    assert!(!pack.exists() && house.quarantine().len() == 1);
    assert_ne!(repaired.scrub.damaged, [], "what it held is missed");
    house.snapshot("two", &names(0..20), CHUNK_BYTES);
    house.assert_whole();
    // And one that is gone is missed, and nothing can be repaired.
    fs::remove_file(&house.packs()[0]).unwrap();
    house.world.restart();
    let repaired = house.repair(false);
    assert_eq!(repaired.repairs, []);
    assert_ne!(repaired.scrub.damaged, []);
}

#[test]
fn what_is_in_no_pack_yet_is_salvaged_too() {
    let mut house = House::new();
    house.snapshot("one", &names(0..6), 100_000);
    let tails = house.world.dir().join("tails");
    let files = || fs::read_dir(&tails).unwrap().map(|entry| entry.unwrap().path());
    change(&house.world.tail_file("chunks", "payload"), |bytes| bytes[250_000] ^= 1);
    house.world.restart();
    let foreseen = house.repair(true);
    assert_eq!(foreseen.repairs, [Repair::Tail { kept_blocks: 5, lost_blocks: 1 }]);
    let repaired = house.repair(false);
    assert_eq!(repaired.repairs, foreseen.repairs);
    assert!(matches!(repaired.scrub.damaged[..], [ScrubDamage::Missing { .. }]), "{repaired:?}");
    assert!(files().any(|path| path.extension().is_some_and(|end| end == "damaged")));
    house.world.restart();
    house.snapshot("two", &names(0..6), 100_000);
    house.assert_whole();
    house.assert_all_there(0..6);
    house.prune();
}

#[test]
fn what_a_prune_moved_stays_where_the_first_of_it_is_damaged() {
    let mut house = House::new();
    let first = house.snapshot("one", &names(0..60), 1 << 20);
    house.snapshot("two", &names(9..12), 1 << 20);
    house.repository().forget(&[first]).unwrap();
    assert!(house.prune().deleted_packs >= 1);
    house.world.close();
    let payload = house.world.tail_file("chunks", "payload");
    assert!(fs::metadata(&payload).unwrap().len() > 2 << 20, "at least two were moved");
    change(&payload, |bytes| bytes[0] ^= 1);
    house.world.restart();
    let there = (9..12).filter(|number| house.has(id(&format!("chunk {number}"))));
    assert_eq!(there.count(), 2);
}

#[test]
fn what_nobody_can_open_is_put_aside_and_prunes_go_on() {
    let mut house = House::new();
    house.snapshot("one", &names(0..6), 100_000);
    house.world.close();
    let journal = house.world.tail_file("chunks", "journal");
    change(&journal, |bytes| bytes[30] ^= 1);
    house.world.restart();
    assert!(house.repository().prune(false).is_err(), "nobody knows what lies there");
    let foreseen = house.repair(true);
    assert_eq!(foreseen.repairs, [Repair::Tail { kept_blocks: 0, lost_blocks: 0 }]);
    let repaired = house.repair(false);
    assert_eq!(repaired.repairs, foreseen.repairs);
    assert_eq!(repaired.quarantined.len(), 2);
    assert!(!journal.exists() && journal.with_added_extension("damaged").exists());
    let is_missing = |damage: &ScrubDamage| matches!(damage, ScrubDamage::Missing { .. });
    assert!(repaired.scrub.damaged.iter().all(is_missing), "{repaired:?}");
    house.snapshot("two", &names(0..6), 100_000);
    house.assert_whole();
    house.assert_all_there(0..6);
    house.prune();
    house.world.restart();
    assert_eq!(house.repair(false).repairs, []);
    house.assert_all_there(0..6);
}

#[test]
fn more_damage_than_parity_is_salvaged_like_any_other() {
    let mut house = backed_up(1);
    let (pack, parity) = (house.packs()[0].clone(), house.parity()[0].clone());
    assert_eq!(name_of(&pack), name_of(&parity));
    change(&pack, |bytes| (0..30).for_each(|at| bytes[(1 << 20) + at * 65_536] ^= 1));
    // No repair takes away what is damaged of the pack's parity.
    change(&parity, |bytes| *bytes.last_mut().unwrap() ^= 1);
    let kept = fs::read(&parity).unwrap();
    let repaired = house.repair(false);
    let aside = house.quarantine();
    assert!(aside.iter().any(|path| fs::read(path).unwrap() == kept), "{aside:?}");
    let [Repair::Salvaged { lost_blocks, .. }] = repaired.repairs[..] else {
        panic!("{:?}", repaired.repairs)
    };
    assert!((1..=2).contains(&lost_blocks), "{lost_blocks}");
    house.snapshot("two", &names(0..20), CHUNK_BYTES);
    house.assert_whole();
}

#[test]
fn parity_is_made_later_checked_made_anew_and_goes_with_its_pack() {
    let mut house = backed_up(0);
    let packs = house.packs().len() as u64;
    assert_eq!(house.repository().keep_parity(10).unwrap(), packs);
    assert_eq!(house.repository().keep_parity(10).unwrap(), 0, "all have it");
    let parity = house.parity()[0].clone();
    for damage in [10, 5000, 700_000] {
        change(&parity, |bytes| {
            let at = damage % bytes.len();
            bytes[at] ^= 1;
        });
        let foreseen = house.repair(true);
        assert!(matches!(foreseen.scrub.damaged[..], [ScrubDamage::Pack { .. }]), "{foreseen:?}");
        let repaired = house.repair(false);
        assert_eq!(repaired.repairs, [Repair::Parity { pack: name_of(&parity) }]);
        assert_eq!(repaired.scrub.damaged, []);
        assert_eq!(house.quarantine().len(), 0, "parity holds nothing that the pack lacks");
    }
    let first = house.head.unwrap().0;
    house.snapshot("two", &names(30..31), 100);
    house.repository().forget(&[first]).unwrap();
    house.prune();
    house.world.restart();
    assert_eq!(house.parity().len(), house.packs().len());
    house.assert_whole();
}

#[test]
fn more_parity_is_made_of_sound_packs_and_less_takes_none_away() {
    let house = backed_up(10);
    let packs = house.packs().len() as u64;
    let bytes = |house: &House| {
        house.parity().iter().map(|path| fs::metadata(path).unwrap().len()).sum::<u64>()
    };
    let few = bytes(&house);
    assert_eq!(house.repository().keep_parity(5).unwrap(), 0);
    assert_eq!(bytes(&house), few);

    let damaged = house.packs()[0].clone();
    let (whole, before) = (fs::read(&damaged).unwrap(), house.parity());
    change(&damaged, |bytes| bytes[5000] ^= 1);
    assert_eq!(house.repository().keep_parity(100).unwrap(), packs - 1);
    assert!(bytes(&house) > few);
    assert_eq!(house.parity(), before, "in the place of what there was");
    let repaired = house.repair(false);
    assert_eq!(repaired.scrub.damaged, [], "what there was of the damaged one is left");
    assert_eq!(fs::read(&damaged).unwrap(), whole);
    assert_eq!(house.repository().keep_parity(100).unwrap(), 1);
    assert_eq!(house.repository().keep_parity(100).unwrap(), 0);

    // All of a pack comes back from as much parity.
    fs::remove_file(&damaged).unwrap();
    assert_eq!(house.repair(false).scrub.damaged, []);
    assert_eq!(fs::read(&damaged).unwrap(), whole);
}

#[test]
fn who_may_not_delete_may_not_repair_and_parity_has_a_limit() {
    let house = House::new();
    assert!(matches!(house.repository().keep_parity(101), Err(RepositoryError::Refused { .. })));
    let shared = SharedWorld::new();
    shared.repository().create(&house.forge.new_repository()).unwrap();
    for refused in [
        shared.handle().repair(true, &mut |_| {}).map(drop),
        shared.handle().keep_parity(5).map(drop),
    ] {
        assert!(matches!(refused, Err(RepositoryError::NotAllowed { .. })), "{refused:?}");
    }
}

#[test]
fn rounds_read_what_is_in_no_pack_too_and_so_does_a_scrub() {
    const DAY_NS: i64 = 24 * 3600 * 1_000_000_000;
    let mut house = backed_up(5);
    house.store().scrub_on(30 * DAY_NS, &AtomicBool::new(false)).unwrap();
    let dir = house.world.dir();
    let only = |folder: &str| {
        let mut entries = fs::read_dir(dir.join(folder)).unwrap();
        entries.next().unwrap().unwrap().path()
    };
    let (records, keys) = ("records".to_owned(), "keys".to_owned());
    let parity = house.parity().remove(0);
    let of_parity = name_of(&parity).to_string();
    // The fifth byte is the version: what a later program wrote is nothing that this one reads.
    for (path, byte, told) in [
        (only("records"), 20, &records),
        (only("records"), 4, &records),
        (only("wrappings"), 20, &keys),
        (only("wrappings"), 4, &keys),
        (dir.join("config"), 20, &keys),
        (dir.join("config"), 4, &keys),
        (dir.join("holdall-repository"), 20, &keys),
        (parity.clone(), 20, &of_parity),
    ] {
        let before = fs::read(&path).unwrap();
        let store = house.store();
        let on = || store.scrub_on(30 * DAY_NS, &AtomicBool::new(false)).unwrap();
        change(&path, |bytes| bytes[byte] ^= 1);
        house.world.clock.advance_ns(31 * DAY_NS);
        assert_eq!(on().damaged.keys().collect::<Vec<_>>(), [told], "{}", path.display());
        let report = store.scrub(&AtomicBool::new(false), &mut |_| {}).unwrap();
        assert_eq!(report.damaged.len(), 1, "{report:?}");
        store.note_scrubbed(house.world.clock.now_ns(), &report).unwrap();
        assert_eq!(on().damaged.keys().collect::<Vec<_>>(), [told], "{}", path.display());
        fs::write(&path, before).unwrap();
        if *told == of_parity {
            house.world.clock.advance_ns(31 * DAY_NS);
        }
        assert_eq!(on().damaged.len(), 0, "{}", path.display());
    }
}

#[test]
fn a_set_of_wrappings_that_is_gone_is_told_where_an_older_one_is_left() {
    let mut house = backed_up(0);
    let store = house.store();
    store.put_wrappings(&house.forge.wrappings(2)).unwrap();
    let damaged = || store.scrub(&AtomicBool::new(false), &mut |_| {}).unwrap().damaged;
    assert_eq!(damaged(), []);
    fs::remove_file(house.world.dir().join("wrappings/0000000000000002")).unwrap();
    assert_eq!(damaged().len(), 1);
}

#[test]
fn rounds_read_everything_by_their_end_and_remember_what_is_damaged() {
    const DAY_NS: i64 = 24 * 3600 * 1_000_000_000;
    let mut house = backed_up(0);
    let packs = house.packs();
    assert!(packs.len() >= 2);
    change(packs.last().unwrap(), |bytes| bytes[1000] ^= 1);
    let on = |house: &mut House, days: i64| {
        house.world.clock.advance_ns(days * DAY_NS);
        let store = house.store();
        let round = store.scrub_on(30 * DAY_NS, &AtomicBool::new(false)).unwrap();
        assert_eq!(store.scrub_round().unwrap().as_ref(), Some(&round));
        round
    };
    let first = on(&mut house, 0);
    assert_eq!((first.before_ns, first.damaged.len()), (None, 0));
    assert_eq!(on(&mut house, 1).damaged.len(), 0, "the last one has time until the end");
    let late = on(&mut house, 28);
    assert_eq!(
        late.damaged.keys().collect::<Vec<_>>(),
        [&name_of(&packs[packs.len() - 1]).to_string()]
    );
    let over = on(&mut house, 1);
    assert_eq!((over.before_ns, over.damaged.len()), (Some(first.begun_ns), 1));
    house.world.restart();
    house.repair(false);
    house.snapshot("two", &names(0..20), CHUNK_BYTES);
    let repaired = on(&mut house, 30);
    assert_eq!((repaired.before_ns, repaired.damaged.len()), (Some(over.begun_ns), 0));

    // What is in no pack yet is read at the end of a round.
    let tails = house.world.dir().join("tails");
    house.world.close();
    let files = fs::read_dir(&tails).unwrap().map(|entry| entry.unwrap().path());
    let payload = files.filter(|path| path.extension().is_some_and(|end| end == "payload"));
    let payload = payload.max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
    change(&payload, |bytes| bytes[50] ^= 1);
    assert_eq!(on(&mut house, 15).damaged.len(), 0);
    assert_eq!(on(&mut house, 15).damaged.keys().collect::<Vec<_>>(), ["tails"]);
    // Without the file a round begins anew, and a clock that was set back is no reason to wait.
    fs::remove_file(house.world.dir().join("scrubbed")).unwrap();
    let anew = on(&mut house, 0);
    assert_eq!(anew.before_ns, None);
    assert!(on(&mut house, -40).begun_ns < anew.begun_ns);
}
