//! Peers that send a byte now and then and never get anywhere, by the thousand: the server's memory
//! stays small, whoever is honest is answered, and the peers are let go.
//!
//! `HOLDALL_DRIPS` changes how many there are.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use holdall_testkit::setting;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::house::{Machine, Server};

const DRIPS: u64 = 2_000;
/// From so many on, which have a computer of their own, honest requests are held to take at most twice as long.
const JUDGED_FROM: usize = 10_000;
const MEMORY_BYTES: u64 = 256 << 20;
/// Honest requests that are timed after each byte of the drips, and as many before and behind them with nobody
/// beside them.
const REQUESTS: usize = 10;
/// Bytes of each drip.
const ROUNDS: usize = 5;
/// The beginning of a TLS record that never ends.
const HELLO: [u8; 12] = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3, 0];

#[test]
fn two_thousand_slow_drips_cost_little_memory_and_keep_nobody_out() {
    let wanted = setting("HOLDALL_DRIPS", DRIPS) as usize;
    // The server takes as many as it is allowed to, so this comes before it starts.
    allow_open_files(wanted as u64 + 1000);
    let machine = Machine::new().with_password(None);
    let mut server = Server::start(&machine.path("data"));
    machine.pair_with(&server);
    let mut alone = Vec::new();
    (0..ROUNDS).for_each(|_| alone.extend(timed(&machine)));
    let address: SocketAddr = server.address().parse().expect("an address");
    let mut drips: Vec<TcpStream> = Vec::new();
    while drips.len() < wanted {
        // So many descriptors may be more than this process has.
        let Ok(mut drip) = TcpStream::connect(address) else { break };
        drip.write_all(&HELLO[..1]).expect("it was accepted");
        drips.push(drip);
    }
    let started = drips.len();
    assert!(started >= wanted, "{started} connections: raise the limit of open files");
    let mut beside = Vec::new();
    for byte in &HELLO[1..=ROUNDS] {
        // Whoever was let go is replaced, so that the pressure stays.
        for drip in &mut drips {
            if drip.write_all(&[*byte]).is_err()
                && let Ok(mut again) = TcpStream::connect(address)
            {
                let _ = again.write_all(&HELLO[..1]);
                *drip = again;
            }
        }
        beside.extend(timed(&machine));
    }
    let memory = server.process().peak_rss_bytes().expect("it runs");
    assert!(memory < MEMORY_BYTES, "the server took {memory} bytes");
    let limit = Duration::from_secs(60);
    let begun = Instant::now();
    while !drips.is_empty() {
        assert!(begun.elapsed() < limit, "{} are never let go", drips.len());
        drips.retain_mut(|drip| drip.write_all(&[0]).is_ok());
        std::thread::sleep(Duration::from_millis(200));
    }
    // Before and behind them: a computer is not as fast at one time as at another.
    (0..ROUNDS).for_each(|_| alone.extend(timed(&machine)));
    let (alone, beside) = (median(alone), median(beside));
    eprintln!(
        "{started} drips: {memory} bytes; a listing took {alone:?} alone, {beside:?} beside them"
    );
    assert!(started < JUDGED_FROM || beside <= alone * 2, "{beside:?} and {alone:?}");
}

/// Raises how many files this process and what it starts may have open. Who is not root gets as many as
/// are allowed; then fewer connections are made, and that is told.
fn allow_open_files(wanted: u64) {
    let limit = getrlimit(Resource::Nofile);
    let at_least = |limit: Option<u64>| limit.map(|files| files.max(wanted));
    let raised = Rlimit { current: at_least(limit.current), maximum: at_least(limit.maximum) };
    if setrlimit(Resource::Nofile, raised).is_err() {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    }
}

/// How long honest requests took, each of a process and connections of its own.
fn timed(machine: &Machine) -> [Duration; REQUESTS] {
    std::array::from_fn(|_| {
        let begun = Instant::now();
        machine.ok(["snapshots"]);
        begun.elapsed()
    })
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
