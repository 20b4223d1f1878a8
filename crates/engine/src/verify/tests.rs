//! Damage of every kind is found and named with the paths that it hits.

use std::fs;

use holdall_format::{BlockKind, SessionId};
use holdall_tree::NodeSource;

use super::*;
use crate::blocks::Nodes;
use crate::test_world::World;

/// Two snapshots of a folder: `old` is in both, `new` only in the second.
fn backed_up() -> (World, tempfile::TempDir) {
    let (world, folder) = (World::new(), tempfile::tempdir().unwrap());
    fs::create_dir(folder.path().join("d")).unwrap();
    for at in 0..200 {
        fs::write(folder.path().join(format!("d/{at}")), b"small").unwrap();
    }
    fs::write(folder.path().join("old"), vec![1; 100_000]).unwrap();
    world.back_up(folder.path());
    fs::write(folder.path().join("new"), vec![2; 100_000]).unwrap();
    world.back_up(folder.path());
    (world, folder)
}

const HALVES: [Verify; 2] = [Verify::All, Verify::Percent { percent: 100, seed: [1; 32] }];

fn verified(world: &World, how: Verify) -> VerifyReport {
    let all = crate::snapshots(&world.access).unwrap().snapshots;
    verify(&world.access, &all, how, &Run::new(), &mut |_| {}).unwrap()
}

fn damaged_names(report: &VerifyReport) -> Vec<String> {
    let name = |path: &DamagedPath| {
        let path = String::from_utf8(path.path.clone()).unwrap();
        path.rsplit('/').next().unwrap_or_default().to_owned()
    };
    report.damaged_paths.iter().map(name).collect()
}

#[test]
fn what_is_whole_is_clean_and_each_snapshot_is_walked() {
    let (world, _folder) = backed_up();
    for how in HALVES {
        let report = verified(&world, how);
        assert!(report.is_clean(), "{report:?}");
        assert_eq!(report.snapshots, 2);
        assert!(report.objects >= 2, "{report:?}");
    }
    let none = verified(&world, Verify::Percent { percent: 0, seed: [1; 32] });
    assert!(none.is_clean() && none.objects == 0);
}

#[test]
fn a_damaged_chunk_is_named_with_its_file_once() {
    let (world, _folder) = backed_up();
    let id = world.access.keys.ids().chunk_id(&vec![2; 100_000]);
    assert!(world.repository.is_in(&id, BlockKind::Chunks));
    world.repository.damage(&id);
    for how in HALVES {
        let report = verified(&world, how);
        assert_eq!(damaged_names(&report), ["new"]);
        assert_eq!(report.damaged.len(), usize::from(how == Verify::All));
    }
}

#[test]
fn a_false_chunk_is_damage_though_every_hash_of_the_keeper_fits() {
    let (world, _folder) = backed_up();
    let id = world.access.keys.ids().chunk_id(&vec![1; 100_000]);
    world.repository.lose(&id);
    world.false_chunk(id, &vec![7; 100_000]);
    // The block that holds the true chunk is still read when everything is.
    assert_eq!(verified(&world, Verify::All).damaged.len(), 1);
    assert_eq!(damaged_names(&verified(&world, HALVES[1])), ["old"]);
}

#[test]
fn a_missing_part_of_the_tree_is_found() {
    let (world, _folder) = backed_up();
    for id in world.repository.ids() {
        if world.repository.is_in(&id, BlockKind::Nodes) {
            world.repository.lose(&id);
        }
    }
    fs::remove_dir_all(&world.access.cache).unwrap();
    let report = verified(&world, HALVES[1]);
    assert!(!report.is_clean() && report.snapshots == 2);
}

#[test]
fn a_node_that_only_the_cache_of_this_machine_has_is_damage() {
    type Harm = fn(&World, &holdall_format::ObjectId);
    let harms: [Harm; 2] =
        [|world, id| world.repository.lose(id), |world, id| world.repository.damage(id)];
    for harm in harms {
        let (world, _folder) = backed_up();
        let root = world.snapshots().pop().unwrap().root;
        let cached = || Nodes::open(&world.access, SessionId::from_bytes([9; 16])).node(&root);
        cached().unwrap();
        harm(&world, &root);
        assert!(cached().is_ok(), "the cache has it");
        for how in HALVES {
            let report = verified(&world, how);
            assert!(report.damaged_path_count > 0, "{how:?}: {report:?}");
        }
    }
}
