//! How long pages take, and how long they are, where there are many machines and snapshots. `cargo xtask torture pages` has
//! fifty machines with twenty thousand snapshots; otherwise there are few, and nothing is timed.

use std::time::{Duration, Instant};

use holdall_format::{ObjectId, Record, RecordKind};
use holdall_protocol::{CommitAnswer, Repository};
use holdall_server::admin::{ListMachines, MakeWebCode, Scope};
use holdall_testkit::setting;

use crate::raw;
use crate::world::{World, session};

/// How many machines, and how many snapshots each has.
const MACHINES: &str = "HOLDALL_PAGES_MACHINES";
const SNAPSHOTS: &str = "HOLDALL_PAGES_SNAPSHOTS";
/// No page may take longer, or be longer.
const MOST_MILLISECONDS: f64 = 50.0;
const MOST_BYTES: usize = 100_000;
/// Each page is asked for so often.
const TIMES: usize = 9;

/// Somebody who is signed in.
struct Reader<'a> {
    world: &'a World,
    cookie: String,
}

impl Reader<'_> {
    fn ask(&mut self, method: &str, path: &str, body: &str) -> String {
        let (mut tls, _) = raw::browser(self.world, &[]);
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nCookie: {}\r\nContent-Length: {}\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nConnection: close\r\n\r\n{body}",
            self.world.address(),
            self.cookie,
            body.len()
        );
        let answer = raw::exchange(&mut tls, request.as_bytes()).unwrap();
        if let Some((_, set)) = answer.split_once("set-cookie: ") {
            self.cookie = set.split(';').next().unwrap().to_owned();
        }
        answer
    }

    /// Becomes an administrator.
    fn set_up(&mut self) {
        let form = self.ask("GET", "/setup", "");
        let (_, token) = form.split_once("name=\"token\" value=\"").unwrap();
        let token = token.split('"').next().unwrap();
        let code =
            self.world.admin(&MakeWebCode { name: None, scope: Scope::Administer }).unwrap().code;
        let password = "a long enough password";
        let body =
            format!("token={token}&code={}&name=ann&password={password}&again={password}", *code);
        let answer = self.ask("POST", "/setup", &body.replace(' ', "+"));
        assert!(answer.starts_with("HTTP/1.1 303"), "{answer}");
    }

    /// The milliseconds that a page takes at the median, on one connection for each, and its bytes.
    fn measured(&mut self, path: &str) -> (f64, usize) {
        let mut taken = Vec::new();
        let mut bytes = 0;
        for _ in 0..TIMES {
            let begun = Instant::now();
            let answer = self.ask("GET", path, "");
            taken.push(begun.elapsed().as_secs_f64() * 1e3);
            assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
            bytes = answer.len();
        }
        taken.sort_by(f64::total_cmp);
        (taken[TIMES / 2], bytes)
    }
}

#[test]
fn pages_of_many_machines_are_short_and_come_at_once() {
    let machines = u8::try_from(setting(MACHINES, 3)).unwrap();
    let snapshots = setting(SNAPSHOTS, 5);
    let is_timed = machines >= 50;
    let world = World::new();
    for number in 1..=machines {
        let machine = world.machine(number);
        let (forge, repository) = (machine.forge(), machine.connect());
        let root = ObjectId::from_bytes([number; 32]);
        let mut head = None;
        for _ in 0..snapshots {
            let session = session(&repository);
            repository.put_blocks(&session, &[forge.nodes(&[(root, &[])])]).unwrap();
            let record = forge.record(RecordKind::Snapshot, root, head);
            let answer = repository.commit(&session, &record).unwrap();
            assert!(matches!(answer, CommitAnswer::Committed(_)), "{answer:?}");
            let record = Record::decode(&record).unwrap();
            head = Some((record.hash(), record.head.sequence));
            world.clock.advance(Duration::from_secs(3600));
        }
    }
    let mut reader = Reader { world: &world, cookie: String::new() };
    reader.set_up();
    let known = world.admin(&ListMachines {}).unwrap().machines;
    let machine = format!("/machines/{}", known[0].id);
    for path in ["/", &machine, &format!("{machine}/retention"), "/jobs", "/settings"] {
        let (milliseconds, bytes) = reader.measured(path);
        println!("{path}: {milliseconds:.1} ms, {bytes} bytes");
        assert!(bytes < MOST_BYTES, "{path} has {bytes} bytes");
        assert!(!is_timed || milliseconds < MOST_MILLISECONDS, "{path}: {milliseconds} ms");
    }
}
