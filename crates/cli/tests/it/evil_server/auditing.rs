//! Lies about what is still there, when a backup asks for it.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::house::files_below;

use super::stage::Stage;
use super::{Answer, Ask, BACKUP, Lie, Reply, Row, honest};

const LOST: &str = "the repository no longer has what snapshots need";
const REFUSED: &str = "the repository does not prove that it still has what was backed up";

pub(super) const ROWS: &[Row] = &[
    told("it shows nothing and has nothing", LOST, |_| without_blocks(|_| Vec::new())),
    told("proofs with a bit changed", LOST, |_| {
        without_blocks(|mut proof| {
            let middle = proof.len() / 2;
            proof[middle] ^= 1;
            proof
        })
    }),
    told("proofs without their end", LOST, |_| {
        without_blocks(|mut proof| {
            proof.pop();
            proof
        })
    }),
    told("the hashes without the slice", LOST, |_| {
        without_blocks(|mut proof| {
            let kept = proof.len().saturating_sub(1024);
            proof[kept..].fill(0);
            proof
        })
    }),
    told("a longer block", LOST, |_| {
        without_blocks(|mut proof| {
            proof[0] ^= 1;
            proof
        })
    }),
    told(
        "it shows nothing, has nothing, and says then that there are no snapshots",
        REFUSED,
        |_| forgetting_all(),
    ),
    told("no answers", REFUSED, |_| at_proofs(|_| (200, Vec::new()))),
    told("an answer too many", REFUSED, |_| at_proofs(|body| (200, [&body[..], &[0, 0]].concat()))),
    told("a proof that is longer than proofs are", REFUSED, |_| {
        at_proofs(|_| (200, vec![0xff; 9000]))
    }),
    told("that it shows nothing to anybody", REFUSED, |_| {
        at_proofs(|_| (403, br#"{"error":"not-allowed","message":"","reason":"no"}"#.to_vec()))
    }),
    told("that it does not know the question", REFUSED, |_| {
        at_proofs(|_| (404, br#"{"error":"no-such-route","message":""}"#.to_vec()))
    }),
    Row {
        name: "it shows nothing and has everything",
        lie: |_| at_proofs(|body| (200, without_proofs(&body))),
        command: BACKUP,
        exit: 0,
        says: "",
    },
];

const fn told(name: &'static str, says: &'static str, lie: fn(&Stage) -> Lie) -> Row {
    Row { name, lie, command: BACKUP, exit: 20, says }
}

/// Another status and body where proofs are asked for.
fn at_proofs(lie: impl Fn(Vec<u8>) -> (u16, Vec<u8>) + Send + Sync + 'static) -> Lie {
    super::at("proofs", move |_, answer| {
        let (status, body) = lie(answer.body);
        Reply::Answer(Answer { status, body })
    })
}

/// Changes each proof, and has no block when it is asked for one.
fn without_blocks(change: impl Fn(Vec<u8>) -> Vec<u8> + Send + Sync + 'static) -> Lie {
    Arc::new(move |asked: &Ask, ask: &mut dyn FnMut() -> Answer| match asked.verb() {
        "proofs" => {
            let answer = ask();
            let proofs = proofs_in(&answer.body).into_iter().map(&change);
            let body = proofs.flat_map(|proof| encoded(&proof)).collect();
            Reply::Answer(Answer { body, ..answer })
        }
        "fetch" => {
            let body = br#"{"error":"missing-objects","message":"","ids":[]}"#.to_vec();
            Reply::Answer(Answer { status: 404, body })
        }
        _ => Reply::Answer(ask()),
    })
}

/// The same without any change, and lists no record from the first proof on.
fn forgetting_all() -> Lie {
    let (was_asked, lie) = (AtomicBool::new(false), without_blocks(|_| Vec::new()));
    Arc::new(move |asked, ask| match asked.verb() {
        "list" if was_asked.load(Ordering::SeqCst) => {
            Reply::Answer(Answer { body: Vec::new(), ..ask() })
        }
        verb => {
            was_asked.fetch_or(verb == "proofs", Ordering::SeqCst);
            lie(asked, ask)
        }
    })
}

fn without_proofs(body: &[u8]) -> Vec<u8> {
    proofs_in(body).iter().flat_map(|_| encoded(&[])).collect()
}

fn encoded(proof: &[u8]) -> Vec<u8> {
    [&u16::try_from(proof.len()).expect("short").to_le_bytes(), proof].concat()
}

fn proofs_in(mut body: &[u8]) -> Vec<Vec<u8>> {
    let mut proofs = Vec::new();
    while let Some((length, rest)) = body.split_first_chunk() {
        let (proof, rest) = rest.split_at(usize::from(u16::from_le_bytes(*length)));
        assert!(!proof.is_empty(), "the server has everything");
        proofs.push(proof.to_vec());
        body = rest;
    }
    proofs
}

/// Where the desk remembers the blocks that it put.
fn remembered(stage: &Stage) -> PathBuf {
    let files = files_below(&stage.desk.path("cache"));
    files.into_iter().find(|file| file.ends_with("blocks")).expect("it remembers")
}

/// Sets the round's clock back, as if nothing had been asked for in a year.
fn make_due(stage: &Stage) {
    let file = OpenOptions::new().write(true).open(remembered(stage)).expect("its own");
    let year_ago = holdall_sys::host::now().secs - 365 * 24 * 3600;
    file.write_all_at(&(year_ago * 1_000_000_000).to_le_bytes(), 8).expect("room");
}

#[test]
fn a_server_that_can_not_show_what_it_acknowledged_is_told() {
    let stage = Stage::new();
    for row in ROWS {
        make_due(&stage);
        let remembers = || fs::metadata(remembered(&stage)).expect("its own").len();
        let before = remembers();
        let outcome = stage.run_under((row.lie)(&stage), row.command);
        let said = format!("{}{}", outcome.stdout, outcome.stderr);
        assert_eq!(outcome.code, Some(row.exit), "{}: {said}", row.name);
        assert!(said.contains(row.says), "{}: {said}", row.name);
        assert!(remembers() >= before, "{}: what was put is asked for no more", row.name);
        make_due(&stage);
        let honest = stage.run_under(honest(), BACKUP);
        assert_eq!(honest.code, Some(0), "{}: {}", row.name, honest.stderr);
    }
}

#[test]
fn a_pack_that_a_server_lost_is_told_by_a_backup() {
    let stage = Stage::new();
    make_due(&stage);
    assert_eq!(stage.run(BACKUP).code, Some(0));
    // As a disk loses it: what was opened before stays as it was for whoever has it open.
    for file in files_below(&stage.data.join("repositories")) {
        if ["tails", "packs"].iter().any(|folder| file.parent().unwrap().ends_with(folder)) {
            let bytes = fs::read(&file).unwrap();
            fs::write(&file, vec![0; bytes.len()]).unwrap();
        }
    }
    make_due(&stage);
    let told = stage.run(BACKUP);
    assert_eq!(told.code, Some(20), "{}{}", told.stdout, told.stderr);
    assert!(told.stderr.contains(LOST), "{}", told.stderr);
}
