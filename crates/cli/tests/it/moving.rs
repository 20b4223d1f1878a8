//! A computer that is carried from one network to another in the middle of a backup: the link goes down,
//! comes back, goes down again, and then the computer has another address. The backup goes on by itself.

use std::fs;
use std::time::{Duration, Instant};

use holdall_testkit::{CompareOptions, End, Process, Random, compare_trees};

use crate::house::{Outcome, run_by, wait_for_progress};
use crate::linked::Linked;

const FILES: u64 = 24;
const FILE_BYTES: usize = 1_000_000;
const BITS_PER_SECOND: u64 = 30_000_000;
/// Another address is noticed within a second, and the rest of the backup takes six; the rest is a busy computer's time.
const NOTICED_WITHIN: Duration = Duration::from_secs(30);

#[test]
fn a_backup_goes_on_when_its_link_goes_down_and_its_address_changes() {
    let Some(linked) = Linked::of_rates(&[BITS_PER_SECOND]) else { return };
    let source = linked.path("source");
    fs::create_dir(&source).expect("room");
    for number in 0..FILES {
        let content = Random::new(number).bytes(FILE_BYTES);
        fs::write(source.join(number.to_string()), content).expect("room");
    }
    let source_text = source.to_str().expect("UTF-8");
    let command = linked.machine.command(["backup", source_text, "--json"]);
    let mut command = run_by(&linked.links.prefix(End::Client), &command);
    let mut backup = Process::spawn(&mut command).expect("it starts");
    wait_for_progress(&mut backup, 1);
    linked.links.plug(0, false).expect("ip");
    linked.links.plug(0, true).expect("ip");
    wait_for_progress(&mut backup, 2);
    linked.links.plug(0, false).expect("ip");
    linked.links.move_client(0).expect("ip");
    let (sent_bytes, _) = linked.links.carried_bytes().expect("a table");
    assert!(sent_bytes < FILES * FILE_BYTES as u64, "it was over: {sent_bytes} bytes");
    linked.links.plug(0, true).expect("ip");
    let begun = Instant::now();
    Outcome::of_process(backup).expect(0);
    assert!(begun.elapsed() < NOTICED_WITHIN, "{:?}", begun.elapsed());
    println!("went on and ended {:?} after the address changed", begun.elapsed());

    let (from, target) = (format!("latest:{source_text}"), linked.path("target"));
    linked.run(&["restore", &from, "--target", target.to_str().expect("UTF-8")]);
    assert_eq!(compare_trees(&source, &target, &CompareOptions::default()), []);
}
