//! A sample is spread and bounded, what it restores is compared in every respect, and its time says that of all.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use holdall_testkit::Random;

use super::*;
use crate::test_world::World;
use crate::{DamagedPath, RestoreOptions, Run, Snapshot, restore};

const SEED: [u8; 32] = [7; 32];
const LIMITS: DrillLimits = DrillLimits { items: 1000, bytes: 24 << 20 };
const PARTS: [DrillPart; 2] = [DrillPart::Small, DrillPart::Large];

/// 3000 small files in 30 folders, and 12 large ones.
fn backed_up() -> (World, tempfile::TempDir, Snapshot) {
    let (world, folder) = (World::new(), tempfile::tempdir().unwrap());
    let mut random = Random::new(1);
    for dir in 0..30 {
        let dir = folder.path().join(format!("{dir:02}"));
        fs::create_dir(&dir).unwrap();
        for at in 0..100 {
            fs::write(dir.join(format!("{at:02}")), random.bytes(700)).unwrap();
        }
        if dir.ends_with("00") || dir.to_string_lossy().ends_with('5') {
            for at in 0..3 {
                fs::write(dir.join(format!("{at:02}-large")), random.bytes(3 << 20)).unwrap();
            }
        }
    }
    let snapshot = world.back_up(folder.path());
    (world, folder, snapshot)
}

fn restored(
    world: &World,
    snapshot: &Snapshot,
    sample: Option<(&DrillSample, DrillPart)>,
    target: &Path,
) -> Measured {
    let select = sample.map(|(sample, part)| sample.selection(part));
    let options = RestoreOptions { numeric_ids: true, select, ..RestoreOptions::default() };
    let done = restore(&world.access, snapshot, None, target, &options, &Run::new()).unwrap();
    let (items, bytes) = sample.map_or((0, 0), |(sample, part)| sample.amount(part));
    Measured { items, bytes, seconds: done.duration_seconds }
}

fn names(found: &[DamagedPath]) -> Vec<(String, String)> {
    let last = |path: &[u8]| {
        Path::new(&*String::from_utf8_lossy(path)).file_name().unwrap().to_os_string()
    };
    let name = |one: &DamagedPath| (last(&one.path).into_string().unwrap(), one.reason.clone());
    found.iter().map(name).collect()
}

#[test]
fn a_sample_is_bounded_spread_over_the_tree_and_another_by_another_seed() {
    let (world, _folder, snapshot) = backed_up();
    let choose = |seed: u8| {
        DrillSample::choose(&world.access, &snapshot, &[seed; 32], LIMITS, &Run::new()).unwrap()
    };
    let paths = |sample: &DrillSample| -> Vec<Vec<u8>> {
        sample.part(DrillPart::Small).entries.keys().cloned().collect()
    };
    let one = choose(1);
    let (items, bytes) = PARTS
        .map(|part| one.amount(part))
        .iter()
        .fold((0, 0), |sum, more| (sum.0 + more.0, sum.1 + more.1));
    assert!((900..=LIMITS.items).contains(&(items + one.left_out)), "{items}");
    assert!(bytes <= LIMITS.bytes, "{bytes}");
    let folders: std::collections::BTreeSet<_> =
        paths(&one).iter().map(|path| path[..path.len() - 3].to_vec()).collect();
    assert!(folders.len() >= 8, "{}", folders.len());
    assert_eq!(paths(&one), paths(&choose(1)));
    assert_ne!(paths(&one), paths(&choose(2)));
}

#[test]
fn the_time_of_a_sample_says_that_of_a_whole_restore() {
    let (world, folder, snapshot) = backed_up();
    let sample = DrillSample::choose(&world.access, &snapshot, &SEED, LIMITS, &Run::new()).unwrap();
    assert!(sample.amount(DrillPart::Large).0 > 0);
    let mut ratios = Vec::new();
    // A machine that does other work meanwhile may hold up one of them.
    for attempt in 0..4 {
        let target = |what: &str| folder.path().join(format!("{what}{attempt}"));
        let whole = restored(&world, &snapshot, None, &target("whole"));
        let [small, large] = PARTS.map(|part| {
            restored(&world, &snapshot, Some((&sample, part)), &target(&format!("{part:?}")))
        });
        let secret = &snapshot.secret;
        let expected = estimate(secret.items, secret.bytes, small, large).unwrap();
        let ratio = expected / whole.seconds;
        if (1.0 / 3.0..3.0).contains(&ratio) {
            return;
        }
        ratios.push(ratio);
    }
    panic!("{ratios:?}");
}

#[test]
fn what_was_restored_otherwise_is_named_with_what_differs() {
    let (world, folder) = (World::new(), tempfile::tempdir().unwrap());
    let source = folder.path().join("source");
    fs::create_dir(&source).unwrap();
    for name in ["content", "inline", "length", "mode", "time", "gone", "same"] {
        fs::write(source.join(name), vec![1; if name == "inline" { 9 } else { 100_000 }]).unwrap();
    }
    std::os::unix::fs::symlink("there", source.join("link")).unwrap();
    let snapshot = world.back_up(&source);
    let limits = DrillLimits::default();
    let sample = DrillSample::choose(&world.access, &snapshot, &SEED, limits, &Run::new()).unwrap();
    let target = folder.path().join("target");
    restored(&world, &snapshot, Some((&sample, DrillPart::Small)), &target);
    let compare = || {
        let whose = (&world.access, &snapshot);
        sample.compare(DrillPart::Small, whose, &target, |_| false, &Run::new()).unwrap()
    };
    let compared = compare();
    assert_eq!(names(&compared.different), []);
    assert_eq!(compared.same, sample.amount(DrillPart::Small).0);

    let below = target.join(source.strip_prefix("/").unwrap());
    let at = |name: &str| below.join(name);
    let rewrite = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let modified = fs::metadata(at(name)).unwrap().modified().unwrap();
        let mut bytes = fs::read(at(name)).unwrap();
        change(&mut bytes);
        fs::write(at(name), bytes).unwrap();
        fs::File::open(at(name)).unwrap().set_modified(modified).unwrap();
    };
    let folder_time = fs::metadata(&below).unwrap().modified().unwrap();
    rewrite("content", &|bytes| bytes[70_000] = 0);
    rewrite("inline", &|bytes| bytes[1] = 0);
    rewrite("length", &|bytes| bytes.truncate(9));
    fs::set_permissions(at("mode"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::File::open(at("time")).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    fs::remove_file(at("gone")).unwrap();
    fs::remove_file(at("link")).unwrap();
    std::os::unix::fs::symlink("where", at("link")).unwrap();
    fs::File::open(&below).unwrap().set_modified(folder_time).unwrap();
    let different = names(&compare().different);
    let reason = |name: &str| {
        let found = different.iter().find(|(one, _)| one == name);
        found.map_or("nothing", |(_, reason)| reason).to_owned()
    };
    assert_eq!(reason("content"), "content, at or after byte 0 of its data");
    assert_eq!(reason("inline"), "content, at or after byte 0 of its data");
    assert_eq!(reason("length"), "100000 bytes, restored 9");
    assert!(reason("mode").starts_with("mode ") && reason("mode").ends_with("restored 600"));
    assert!(reason("time").ends_with("restored 0.000000000"), "{}", reason("time"));
    assert_eq!(reason("gone"), "was not restored");
    assert!(reason("link").ends_with("the link's target"), "{}", reason("link"));
    assert_eq!(different.len(), 7, "{different:?}");
}
