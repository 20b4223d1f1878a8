//! A server that hangs, or a box between that forgot the connections: they stay open, nothing comes any
//! more, and nothing says so. That is noticed, and the run goes on over new ones by itself.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use holdall_testkit::{ChaosProxy, CompareOptions, Random, compare_trees};

use crate::house::{Machine, Server};

const FILES: u64 = 12;
const FILE_BYTES: usize = 2_000_000;
/// Into the bytes of the files, which do not compress.
const STALL_AFTER_BYTES: u64 = 9_000_000;
/// What is looked up may take 120 seconds, and the rest of the restore a busy computer's time.
const NOTICED_WITHIN: Duration = Duration::from_secs(240);

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn a_restore_goes_on_when_its_connections_carry_nothing_any_more() {
    let machine = Machine::new();
    let server = Server::start(&machine.path("server"));
    let upstream = server.address().parse().expect("an address");
    let proxy = ChaosProxy::start(upstream).expect("a free port");
    machine.pair(&server.invite_with(&["--address", &proxy.address().to_string()]));
    let (source, target) = (machine.path("source"), machine.path("target"));
    fs::create_dir(&source).expect("room");
    for number in 0..FILES {
        let content = Random::new(number).bytes(FILE_BYTES);
        fs::write(source.join(number.to_string()), content).expect("room");
    }
    machine.ok(["backup", text(&source)]);
    proxy.stall_after(STALL_AFTER_BYTES);
    let begun = Instant::now();
    machine.ok(["restore", &format!("latest:{}", text(&source)), "--target", text(&target)]);
    assert!(proxy.stalled() > 0, "nothing stalled");
    assert!(begun.elapsed() < NOTICED_WITHIN, "{:?}", begun.elapsed());
    assert_eq!(compare_trees(&source, &target, &CompareOptions::default()), []);
}
