//! Lines to the socket beside a real server, by which it is administered: whatever they are, each is answered,
//! if it is text, and no worker of the server ends by it.

#![no_main]

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use holdall_fuzz::{Served, edited};
use libfuzzer_sys::fuzz_target;

thread_local! {
    static SERVED: Served = Served::start();
}

/// A command as `holdall admin` sends it, of a kind.
fn command(kind: u8, repository: &str) -> String {
    let of = |command: &str, more: &str| {
        format!(r#"{{"command":"{command}","repository":"{repository}"{more}}}"#)
    };
    let keeping = concat!(
        r#","wanted":{"policy":{"last":3,"hourly":24,"daily":7,"weekly":5,"monthly":0,"yearly":0,"#,
        r#""within_ns":86400000000000,"lock_ns":0},"tags":[],"delay_ns":0}"#,
    );
    let commands = [
        r#"{"command":"invite","name":"attic","repository":"attic","addresses":["nas:1"]}"#.into(),
        r#"{"command":"invite","for_machine":"desk"}"#.into(),
        r#"{"command":"machines"}"#.into(),
        r#"{"command":"runs","machine":"desk"}"#.into(),
        r#"{"command":"rights","machine":"desk","right":"read"}"#.into(),
        r#"{"command":"revoke","machine":"desk"}"#.into(),
        of("quota", r#","quota":{"bytes":1000000}"#),
        r#"{"command":"repositories"}"#.into(),
        of("keeping", keeping),
        of("forget", r#","snapshots":["0"]"#),
        r#"{"command":"pending"}"#.into(),
        of("token", ""),
        r#"{"command":"cancel","number":1}"#.into(),
        of("resume", ""),
        of("thin", r#","confirmed":true"#),
        of("prune", r#","dry_run":false"#),
        of("scrub", r#","also":{"repair":true,"dry_run":false,"parity":5}"#),
    ];
    let at = usize::from(kind) % commands.len();
    commands.into_iter().nth(at).expect("one of them")
}

/// Sends a line, and gives the answer.
fn ask(served: &Served, line: &[u8]) -> String {
    let socket = served.folder.path().join("admin.sock");
    let mut stream = UnixStream::connect(socket).expect("it listens");
    // A server that has seen enough answers before all of it was sent.
    let _ = stream.write_all(line);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fuzz_target!(|data: &[u8]| {
    let Some(([kind, how], rest)) = data.split_first_chunk() else { return };
    SERVED.with(|served| {
        let good = command(*kind, &served.name);
        let is_edited = how & 1 == 1;
        let line =
            if is_edited { edited(good.as_bytes(), rest, how >> 1 & 3) } else { rest.to_vec() };
        let answer = ask(served, &line);
        let is_answered = answer.starts_with("{\"ok\":") || answer.starts_with("{\"error\":");
        let is_left = answer.is_empty() && str::from_utf8(&line).is_err();
        let is_fine = (is_answered || is_left) && !answer.contains("the server is ending");
        assert!(is_fine, "{}: {answer}", String::from_utf8_lossy(&line));
    });
});
