//! Backups in a storm: somebody creates, renames, replaces, cuts and deletes all the time.
//!
//! Whatever the moment, a snapshot is consistent in itself, and a file that was renamed into place is
//! whole: its lines all have one number, and the first line says how many there are.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use holdall_engine::{Run, backup, snapshots};
use holdall_testkit::{Random, files_below};

use crate::world::{World, verified};

const BACKUPS: usize = 6;
/// The line of a whole file: as long for every number.
const LINE_BYTES: usize = 32;

/// Keeps changing what is below `top` until told to stop. Failures are part of it: what it wanted to
/// change may be of another kind by now.
fn storm(top: &Path, seed: u64, stop: &AtomicBool) -> u64 {
    let mut random = Random::new(seed);
    let mut changes = 0;
    while !stop.load(Ordering::Relaxed) {
        changes += u64::from(one_change(top, changes, &mut random).is_ok());
    }
    changes
}

fn one_change(top: &Path, number: u64, random: &mut Random) -> io::Result<()> {
    let dir = top.join(format!("d{}", random.below(6)));
    let place = |random: &mut Random| dir.join(format!("p{}", random.below(12)));
    match random.below(10) {
        0..=3 => {
            let most = if random.one_in(4) { 20_000 } else { 40 };
            let lines = 1 + random.below(most);
            let beside = top.join("beside");
            fs::write(&beside, whole(number, lines))?;
            fs::rename(&beside, dir.join(format!("whole{}", random.below(12))))
        }
        4 => {
            let mut file = fs::File::options().create(true).append(true).open(place(random))?;
            file.write_all(&random.bytes(5_000))
        }
        5 => fs::File::options().write(true).open(place(random))?.set_len(random.below(200_000)),
        6 => fs::remove_file(place(random)),
        7 => {
            let place = place(random);
            let _ = fs::remove_dir_all(&place).or_else(|_| fs::remove_file(&place));
            match random.below(3) {
                0 => fs::create_dir_all(place.join("below")),
                1 => symlink("elsewhere", place),
                _ => fs::write(place, b"small"),
            }
        }
        8 => fs::rename(place(random), place(random)),
        _ => {
            let _ = fs::remove_dir_all(&dir);
            fs::create_dir_all(&dir)
        }
    }
}

fn whole(number: u64, lines: u64) -> Vec<u8> {
    format!("{number:015} {lines:015}\n").repeat(usize::try_from(lines).unwrap()).into_bytes()
}

fn assert_whole(path: &Path) {
    let content = fs::read_to_string(path).unwrap();
    let first = content.get(..LINE_BYTES).unwrap_or_else(|| panic!("{path:?} has no first line"));
    let (number, lines) = first.trim().split_once(' ').unwrap();
    let expected = whole(number.parse().unwrap(), lines.parse().unwrap());
    assert!(content.as_bytes() == expected, "{path:?} was torn");
}

#[test]
fn snapshots_of_a_tree_in_a_storm_are_consistent_and_have_no_torn_files() {
    let world = World::new();
    let top = world.source();
    for dir in 0..6 {
        fs::create_dir(top.join(format!("d{dir}"))).unwrap();
    }
    let mut random = Random::new(1);
    (0..300).for_each(|number| drop(one_change(&top, number, &mut random)));
    let stop = Arc::new(AtomicBool::new(false));
    let stormy = {
        let (top, stop) = (top.clone(), Arc::clone(&stop));
        std::thread::spawn(move || storm(&top, 2, &stop))
    };
    let mut seen = 0;
    for number in 0..BACKUPS {
        let run = Arc::new(Run::new());
        let summary = backup(&world.access(), &world.options(), &run).unwrap();
        let problems = run.take_problems();
        assert_eq!(summary.problems, problems.len() as u64);
        for problem in problems {
            assert!(problem.reason.starts_with("not read: "), "{problem:?}");
        }
        let target = world.restore(&format!("target{number}"));
        let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
        let files = files_below(&target);
        let whole: Vec<_> = files.iter().filter(|path| name(path).starts_with("whole")).collect();
        seen += whole.len();
        whole.into_iter().for_each(|path| assert_whole(path));
    }
    stop.store(true, Ordering::Relaxed);
    assert!(stormy.join().unwrap() > 0 && seen > 0);
    let report = verified(&world.access());
    assert_eq!((report.damaged.len(), report.damaged_path_count), (0, 0));
    assert_eq!(snapshots(&world.access()).unwrap().snapshots.len(), BACKUPS);

    // When it is over, all is as it is.
    world.backup();
    assert_eq!(world.differences("calm"), []);
}
