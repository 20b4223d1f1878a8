//! Requests that were good before something in them was changed: a byte, a length, the end, the path of
//! another one. Whatever becomes of them, each is answered, never with a failure of the server's own, and
//! nothing of anybody else's is touched.
//!
//! `HOLDALL_MUTATED_REQUESTS` says how many are sent.

use holdall_format::{RecordKind, SessionId};
use holdall_protocol::wire::{encode_forget, encode_ids, encode_probes, encode_supersede};
use holdall_protocol::{AdminToken, BlockProbe};
use holdall_server::admin;
use holdall_testkit::{Random, Slice, setting};

use super::stage::{OWN, Stage, chunk, framed, node, nothing, request};
use super::{Who, send};
use crate::world::session;

const REQUESTS: u64 = 5000;
/// So many requests share a session, which any of them may close.
const WITH_A_SESSION: u64 = 25;
/// What is put into paths: nothing that HTTP itself refuses.
const OF_PATHS: &[u8] = b"0123456789abcdefz/?&=~.-%_";

/// A request before it is written down.
#[derive(Debug, Clone)]
struct Parts {
    method: &'static str,
    path: String,
    body: Vec<u8>,
}

#[test]
fn whatever_a_request_is_changed_to_it_is_answered_and_touches_nobody_else() {
    let slice = Slice::one_in(1);
    let requests = slice.share(setting("HOLDALL_MUTATED_REQUESTS", REQUESTS));
    (1..=requests.div_ceil(REQUESTS)).for_each(|seed| send_changed(slice.seed(seed)));
}

/// Sends so many to a server of their own: a machine has no more sessions than they may open.
fn send_changed(seed: u64) {
    let stage = Stage::new();
    let name = &stage.machine.paired.repository;
    let asked = admin::MakeToken { repository: name.clone() };
    let token = stage.world.admin(&asked).unwrap().token;
    let others = || stage.everything().split_off(1);
    let before = others();
    let mut random = Random::new(seed);
    let (mut good, mut taken) = (Vec::new(), 0);
    for number in 0..REQUESTS {
        if number % WITH_A_SESSION == 0 {
            good = good_requests(&stage, &session(&stage.machine.connect()), &token);
        }
        let asked = changed(&good, &mut random);
        let answer = send(&stage, Who::Machine, &request(asked.method, &asked.path, &asked.body));
        let status = answer.get(9..12).unwrap_or_default();
        // A scrub that fails says so in its last line.
        assert!(
            status.starts_with('2') && !answer.contains("\"failed\"") || status.starts_with('4'),
            "seed {seed}, request {number}, {asked:02x?}: {answer}"
        );
        taken += u64::from(status.starts_with('2'));
    }
    let part = taken * 100 / REQUESTS;
    assert!((5..80).contains(&part), "{part} % were taken: not changed as they should be");
    assert_eq!(others(), before);
    stage.assert_serves_others("changed requests");
}

/// One of each kind, as an honest client would send it.
fn good_requests(stage: &Stage, session: &SessionId, token: &AdminToken) -> Vec<Parts> {
    let post = |path: String, body: &[u8]| Parts { method: "POST", path, body: body.to_vec() };
    let get = |path: String| Parts { method: "GET", path, body: Vec::new() };
    let put = |path: String, body: &[u8]| Parts { method: "PUT", path, body: body.to_vec() };
    let in_session =
        |verb: &str, body: &[u8]| post(format!("{OWN}/sessions/{session}/{verb}"), body);
    let forge = stage.forge();
    let blocks = [forge.chunks(&[nothing()]), forge.nodes(&[(nothing(), &[chunk()])])];
    let probe = BlockProbe {
        object: chunk(),
        block: holdall_format::BlockName::from_bytes(
            *blake3::hash(&forge.chunks(&[chunk()])).as_bytes(),
        ),
        slice: 0,
    };
    let (head, _) = stage.head().unwrap();
    let ids = encode_ids(&[node(), chunk(), nothing()]);
    let new = forge.new_repository();
    vec![
        put(OWN.to_owned(), &framed(&[new.config, new.wrappings])),
        put(format!("{OWN}/wrappings"), &forge.wrappings(2)),
        get(OWN.to_owned()),
        get(format!("{OWN}/records?after=0&limit=9")),
        get(format!("{OWN}/usage")),
        get(format!("{OWN}/deletions")),
        post(
            format!("{OWN}/sessions"),
            format!("{{\"purpose\":\"backup\",\"parents\":[\"{head}\"]}}").as_bytes(),
        ),
        post(format!("{OWN}/sessions"), br#"{"purpose":"read"}"#),
        post(format!("{OWN}/scrub"), b""),
        post(format!("{OWN}/deletions"), &encode_forget(token, &[head])),
        post(format!("{OWN}/prune?dry=1"), token.as_bytes()),
        post(format!("{OWN}/sparse?from=0"), token.as_bytes()),
        post("/api/v1/lab/take".to_owned(), b"some bytes"),
        post("/api/v1/lab/give?bytes=1000".to_owned(), b""),
        post("/api/v1/lab/write".to_owned(), b"some bytes for the disk"),
        post("/api/v1/lab/read?bytes=1000".to_owned(), b""),
        in_session("missing", &ids),
        in_session("blocks", &framed(&blocks)),
        in_session("records", &forge.record(RecordKind::Checkpoint, node(), stage.head())),
        in_session("close", b""),
        in_session("fetch?copy=0", &ids[..64]),
        in_session("pages?cursor=0", b""),
        in_session("proofs", &encode_probes(&[probe])),
        in_session("superseded", &encode_supersede(token, &[1, 2])),
    ]
}

/// One of these, changed once or more, or with another one's path or body.
fn changed(good: &[Parts], random: &mut Random) -> Parts {
    let mut parts = good[random.index(good.len())].clone();
    if random.one_in(8) {
        parts.body.clone_from(&good[random.index(good.len())].body);
    }
    for _ in 0..=random.below(3) {
        match random.below(8) {
            0 => change_path(&mut parts.path, random),
            1 => parts.body.truncate(random.index(parts.body.len() + 1)),
            2 => parts.body.extend_from_within(random.index(parts.body.len() + 1)..),
            3 => {
                let length = random.index(40);
                parts.body.extend(random.bytes(length));
            }
            4 => put_number(&mut parts.body, random),
            _ => {
                let at = random.index(parts.body.len());
                parts.body.get_mut(at).into_iter().for_each(|byte| *byte = random.next_u64() as u8);
            }
        }
    }
    parts
}

fn change_path(path: &mut String, random: &mut Random) {
    let other = char::from(OF_PATHS[random.index(OF_PATHS.len())]);
    let at = 1 + random.index(path.len() - 1);
    match random.below(3) {
        0 => path.insert(at, other),
        1 => drop(path.remove(at)),
        _ => path.replace_range(at..=at, &other.to_string()),
    }
}

/// Lengths and counts at their limits.
fn put_number(body: &mut [u8], random: &mut Random) {
    let number = [0, 1, u32::MAX, 1 << 31, 16_385][random.index(5)];
    let at = random.index(body.len());
    body.get_mut(at..at + 4)
        .into_iter()
        .for_each(|place| place.copy_from_slice(&number.to_le_bytes()));
}
