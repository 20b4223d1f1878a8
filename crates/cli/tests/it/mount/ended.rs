//! How it ends, and what it says of what it could not give.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::process::Command;

use holdall_testkit::{Process, Random, files_below};
use rustix::process::Signal;

use super::newest;
use super::place::Place;
use crate::house::{send_signal, text};
use crate::repair::flip;

#[test]
fn signals_and_umount_end_it_and_leave_nothing_behind() {
    let Some(place) = Place::new() else { return };
    place.back_up(&[]);
    for signal in [Signal::TERM, Signal::INT] {
        let mut mounted = place.mount();
        send_signal(mounted.process(), signal);
        assert_eq!(mounted.wait(), (Some(0), String::new()));
    }
    for command in [&["umount"][..], &["fusermount3", "-u"]] {
        let mut mounted = place.mount();
        let point = mounted.path("");
        let point = text(&point).trim_end_matches('/');
        let done = Command::new(command[0]).args(&command[1..]).arg(point).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        assert_eq!(mounted.wait(), (Some(0), String::new()));
    }
}

#[test]
fn what_is_in_use_is_unmounted_all_the_same_and_told() {
    let Some(place) = Place::new() else { return };
    let content = Random::new(1).bytes(8 << 20);
    fs::write(place.source().join("file"), &content).unwrap();
    place.back_up(&[]);
    let mut mounted = place.mount();
    let mut file = File::open(newest(&mounted, &place.source().join("file"))).unwrap();
    let mut begin = vec![0; 1000];
    file.read_exact(&mut begin).unwrap();
    assert_eq!(begin, content[..1000]);
    mounted.process().terminate().unwrap();
    let (code, told) = mounted.wait();
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("was in use"), "{told}");
    // Behind what the kernel read ahead.
    file.seek(SeekFrom::Start(7 << 20)).unwrap();
    file.read_exact(&mut begin).unwrap_err();
}

#[test]
fn what_is_damaged_is_an_error_for_who_reads_it_and_told_once() {
    let Some(place) = Place::new() else { return };
    fs::write(place.source().join("good"), "good").unwrap();
    let content = Random::new(1).bytes(3 << 20);
    fs::write(place.source().join("hit"), content).unwrap();
    place.back_up(&[]);
    let repo = place.machine.path("repo");
    let largest =
        files_below(&repo).into_iter().max_by_key(|file| fs::metadata(file).unwrap().len());
    let largest = largest.unwrap();
    let len = fs::metadata(&largest).unwrap().len() as usize;
    (0..len).step_by(len / 50).for_each(|at| flip(&largest, at));
    let mounted = place.mount();
    let hit = newest(&mounted, &place.source().join("hit"));
    for _ in 0..3 {
        let error = fs::read(&hit).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::IO.raw_os_error()));
    }
    assert_eq!(fs::read_to_string(hit.with_file_name("good")).unwrap(), "good");
    let (code, told) = mounted.end();
    assert_eq!(code, Some(20), "{told}");
    let named = told.lines().filter(|line| line.contains("source/hit")).count();
    assert_eq!(named, 1, "{told}");
}

#[test]
fn a_snapshot_that_is_forgotten_while_it_is_mounted_is_told_as_such() {
    let Some(place) = Place::new() else { return };
    let (one, two) = (place.source().join("one"), place.source().join("two"));
    fs::write(&one, Random::new(1).bytes(100_000)).unwrap();
    fs::write(&two, Random::new(2).bytes(3_000_000)).unwrap();
    fs::write(place.source().join("kept"), "kept").unwrap();
    let gone = place.back_up(&[]);
    fs::remove_file(&one).unwrap();
    fs::remove_file(&two).unwrap();
    place.back_up(&[]);
    let mounted = place.mount();
    let folder = fs::canonicalize(mounted.path(&format!("ids/{gone:.10}"))).unwrap();
    let seen = |path: &std::path::Path| folder.join(&text(path)[1..]);
    assert_eq!(fs::read(seen(&one)).unwrap().len(), 100_000);
    place.run_beside(&["forget", &gone]);
    place.run_beside(&["prune"]);
    let error = fs::read(seen(&two)).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::IO.raw_os_error()));
    // The kernel has it still.
    assert_eq!(fs::read(seen(&one)).unwrap().len(), 100_000);
    let (code, told) = mounted.end();
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("its snapshot was forgotten"), "{told}");
}

#[test]
fn one_that_reads_in_the_middle_of_a_folder_does_not_keep_it_from_ending() {
    let Some(place) = Place::new() else { return };
    for number in 0..3000 {
        fs::write(place.source().join(format!("{number:04}")), number.to_string()).unwrap();
    }
    place.back_up(&[]);
    let mounted = place.mount();
    let seen = newest(&mounted, &place.source());
    let mut grep = Command::new("sh");
    grep.args(["-c", "while grep -r 2999 . ; do :; done"]).current_dir(&seen);
    let mut grep = Process::spawn(&mut grep).unwrap();
    grep.wait_for_line("./2999:").unwrap();
    let (code, told) = mounted.end();
    assert_eq!(code, Some(0), "{told}");
    grep.wait().unwrap();
}
