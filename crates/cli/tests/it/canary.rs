//! The server cannot read: a canary put into everything that a user may put in is found nowhere on
//! the server's side.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};

use holdall_testkit::Random;

use crate::house::{Machine, Server, files_below};

/// Letters that occur nowhere by chance.
const CANARY: &str = "kanarienvogel7q3x9";

#[test]
fn a_canary_is_found_nowhere_in_the_servers_data_logs_or_memory() {
    let machine = Machine::new().with_password(Some("kanarienvogel7q3x9-password"));
    let data = machine.path("data");
    let log = machine.path("server.log");
    let mut command = Server::command(&data);
    let mut server = Server::start_by(command.stderr(File::create(&log).unwrap()), &data);
    machine.pair_with(&server);
    let source = machine.path("source");
    make_tree(&source);
    let source = source.to_str().unwrap();
    let tag = format!("{CANARY}-tag");
    let host = format!("{CANARY}-host");
    machine.ok(["backup", source, "--tag", &tag, "--host", &host, "--exclude", CANARY]);
    machine.ok(["ls", "latest", "-R", source]);
    machine.ok(["check", "--scrub", "--verify", "all"]);
    let target = machine.path("target");
    machine.ok(["restore", "latest", "--target", target.to_str().unwrap()]);
    machine.run(["ls", "latest", &format!("/{CANARY}")]).expect(1);

    let pid = server.process().id();
    // The search works: it finds what the server does know.
    assert!(found_in_memory(pid, server.address().as_bytes()), "the address is not in its memory");
    assert!(!found_in_memory(pid, CANARY.as_bytes()), "the canary is in the server's memory");
    server.process().terminate().unwrap();
    let (_, lines) = server.process().wait().unwrap();
    assert!(!lines.concat().contains(CANARY), "the canary is in the server's output");
    assert!(!holds(&fs::read(&log).unwrap(), CANARY.as_bytes()), "the canary is in the log");
    let files = files_below(&data);
    assert!(files.len() > 3);
    for file in files {
        let name = file.strip_prefix(&data).unwrap().as_os_str().as_encoded_bytes().to_vec();
        assert!(!holds(&name, CANARY.as_bytes()), "the canary names {}", file.display());
        let content = fs::read(&file).unwrap();
        assert!(!holds(&content, CANARY.as_bytes()), "the canary is in {}", file.display());
    }
    // And it was not simply lost.
    let restored = target.join(source.trim_start_matches('/')).join(format!("{CANARY}-dir/inline"));
    assert_eq!(fs::read_to_string(restored).unwrap(), CANARY);
}

/// Names, small, large, compressible and random contents, link targets and attributes.
fn make_tree(dir: &Path) {
    let named = dir.join(format!("{CANARY}-dir"));
    fs::create_dir_all(&named).unwrap();
    fs::write(named.join("inline"), CANARY).unwrap();
    fs::write(named.join(format!("{CANARY}-long")), CANARY.repeat(50_000)).unwrap();
    let mut random = Random::new(11).bytes(4 << 20);
    for at in (0..random.len() - CANARY.len()).step_by(10_000) {
        random[at..at + CANARY.len()].copy_from_slice(CANARY.as_bytes());
    }
    fs::write(named.join("random"), random).unwrap();
    std::os::unix::fs::symlink(format!("/{CANARY}/target"), named.join("link")).unwrap();
    let set = Command::new("setfattr")
        .args(["-n", &format!("user.{CANARY}"), "-v", CANARY])
        .arg(named.join("inline"))
        .stderr(Stdio::null())
        .status();
    // Without the tool or on a file system without attributes the rest is still a test.
    drop(set);
}

fn holds(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

/// Searches everything that a process has mapped and that can be read.
fn found_in_memory(pid: u32, wanted: &[u8]) -> bool {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let memory = File::open(format!("/proc/{pid}/mem")).unwrap();
    maps.lines().filter_map(range_of_line).any(|(from, to)| {
        const STEP: u64 = 4 << 20;
        let mut buffer = vec![0; STEP as usize + wanted.len()];
        (from..to).step_by(STEP as usize).any(|at| {
            let len = ((to - at).min(STEP + wanted.len() as u64)) as usize;
            // What cannot be read, such as a guard page, holds nothing.
            memory.read_exact_at(&mut buffer[..len], at).is_ok() && holds(&buffer[..len], wanted)
        })
    })
}

/// `from-to perms ...` of a readable mapping.
fn range_of_line(line: &str) -> Option<(u64, u64)> {
    let (range, rest) = line.split_once(' ')?;
    let (from, to) = range.split_once('-')?;
    let readable = rest.starts_with('r') && !rest.contains("[v");
    let range = (u64::from_str_radix(from, 16).ok()?, u64::from_str_radix(to, 16).ok()?);
    readable.then_some(range)
}
