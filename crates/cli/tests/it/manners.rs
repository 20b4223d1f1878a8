//! A backup leaves the line to others where that is asked for: a call in the same house goes on as if it were alone.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use holdall_testkit::{End, Links, Process, Random};

use crate::house::{run_by, send_signal, text};
use crate::linked::Linked;

/// As many homes send, behind a modem that keeps half a second of it.
const BITS_PER_SECOND: u64 = 20_000_000;
const QUEUE_MS: u64 = 500;
const CALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/call.py");
/// A backup that has sent so much is under way.
const SENDING_BYTES: u64 = 1 << 20;
/// Of what the link carries, so much is left to a backup beside a call.
const SHARE: f64 = 0.6;

/// A call of so many seconds from the machine to the server: how many packets were lost, and how many milliseconds the
/// others took, in order.
fn call(links: &Links, seconds: u32) -> (usize, Vec<f64>) {
    let python = |end: End, args: &[&str]| {
        let mut command = Command::new("python3");
        command.arg(CALL).args(args);
        let mut command = run_by(&links.prefix(end), &command);
        command.stdout(Stdio::piped()).spawn().unwrap()
    };
    let (address, seconds) = (Links::address(0, End::Server), seconds.to_string());
    let mut receiving = python(End::Server, &["receive", &address, &seconds]);
    let mut told = BufReader::new(receiving.stdout.take().unwrap()).lines();
    let ready = told.next().unwrap().unwrap();
    let port = ready.strip_prefix("ready ").unwrap();
    let mut sending = python(End::Client, &["send", &address, port, &seconds]);
    let mut sent = String::new();
    sending.stdout.take().unwrap().read_to_string(&mut sent).unwrap();
    let mut took: Vec<f64> = serde_json::from_str(&told.next().unwrap().unwrap()).unwrap();
    assert!(sending.wait().unwrap().success() && receiving.wait().unwrap().success());
    took.sort_by(f64::total_cmp);
    (sent.trim().parse::<usize>().unwrap() - took.len(), took)
}

fn at(took: &[f64], share: f64) -> f64 {
    took[((took.len() - 1) as f64 * share) as usize]
}

/// A call while a backup goes on that is told so; and how fast that backup sent, in bytes a second.
fn beside_a_backup(linked: &Linked, seed: u64, limit: &[&str]) -> ((usize, Vec<f64>), f64) {
    let source = linked.path(&format!("source-{seed}"));
    fs::create_dir(&source).unwrap();
    fs::write(source.join("large"), Random::new(seed).bytes(200 << 20)).unwrap();
    let args = [&["backup", text(&source)], limit].concat();
    let command = linked.machine.command(args);
    let mut process =
        Process::spawn(&mut run_by(&linked.links.prefix(End::Client), &command)).unwrap();
    let carried = || linked.links.carried_bytes().unwrap().0;
    let at_first = carried();
    while carried() < at_first + SENDING_BYTES {
        std::thread::sleep(Duration::from_millis(10));
    }
    let (before, begun) = (carried(), Instant::now());
    let called = call(&linked.links, 8);
    let sent = (carried() - before) as f64;
    let rate = sent / begun.elapsed().as_secs_f64();
    send_signal(&process, rustix::process::Signal::INT);
    process.wait().unwrap();
    (called, rate)
}

#[test]
fn beside_a_backup_that_leaves_the_line_to_others_a_call_goes_on() {
    let Some(linked) = Linked::of_rates(&[BITS_PER_SECOND]) else { return };
    linked.links.lengthen_queue(0, BITS_PER_SECOND, QUEUE_MS).unwrap();
    let (lost, alone) = call(&linked.links, 2);
    assert_eq!(lost, 0);
    let ((_, usual), _) = beside_a_backup(&linked, 1, &[]);
    let ((lost, took), rate) = beside_a_backup(&linked, 2, &["--limit-upload", "auto"]);
    let grown = |took: &[f64], share| at(took, share) - at(&alone, 0.5);
    println!(
        "a packet of a call takes {:.1} ms alone; beside a backup {:.1} ms more (19 of 20 less than {:.1}); beside one that \
         leaves the line to others {:.1} (19 of 20 less than {:.1}), {lost} lost, and that has {:.0} % of the line",
        at(&alone, 0.5),
        grown(&usual, 0.5),
        grown(&usual, 0.95),
        grown(&took, 0.5),
        grown(&took, 0.95),
        rate * 8.0 / BITS_PER_SECOND as f64 * 100.0,
    );
    assert_eq!(lost, 0);
    // On a computer that does much else, a packet may wait for that.
    assert!(grown(&took, 0.5) < 20.0 && grown(&took, 0.95) < grown(&usual, 0.95) / 3.0);
    assert!(rate * 8.0 > SHARE * BITS_PER_SECOND as f64, "{rate} bytes a second");
}
