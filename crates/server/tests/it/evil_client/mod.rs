//! Clients that do what none should, each in one way, by hand over TLS. Each is refused as it should
//! be, leaves nothing behind in anybody's repository, and the next honest client is served.

mod blocks;
mod http;
mod mutated;
mod pairing;
mod records;
mod stage;
mod strangers;

use stage::{Asked, Stage};

use crate::raw::{self, Raw};
use crate::world::recovery_seed;
use stage::numbers;

/// Whose key is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    /// No certificate, as a browser.
    Nobody,
    /// A key that was never paired.
    Stranger,
    /// A key whose machine was locked out.
    Revoked,
    /// A machine that may only read.
    Reader,
    /// The recovery kit of the machine that attacks.
    Kit,
    /// A machine with every right over its own repository.
    Machine,
}

/// One way to attack.
struct Row {
    name: &'static str,
    who: Who,
    asks: fn(&Stage) -> Asked,
    /// The status, or what it begins with; "" for a connection that ends without an answer. With a "?" either
    /// is right: where more was sent than was read, the connection's end may overtake the answer.
    status: &'static str,
    /// The kind of the error, or a part of what is said.
    says: &'static str,
}

/// What a machine with every right asks for.
const fn by_machine(
    name: &'static str,
    asks: fn(&Stage) -> Asked,
    status: &'static str,
    says: &'static str,
) -> Row {
    Row { name, who: Who::Machine, asks, status, says }
}

/// What somebody asks for whose key was never paired.
const fn by_stranger(
    name: &'static str,
    asks: fn(&Stage) -> Asked,
    status: &'static str,
    says: &'static str,
) -> Row {
    Row { who: Who::Stranger, ..by_machine(name, asks, status, says) }
}

/// Does all rows, one after another, against one server, and tells of all that do not hold.
fn hold(rows: &[Row]) {
    let stage = Stage::new();
    let fails = |row: &&Row| {
        let held = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| hold_row(&stage, row)));
        held.is_err()
    };
    let failed: Vec<_> = rows.iter().filter(fails).map(|row| row.name).collect();
    assert!(failed.is_empty(), "attacks that do not hold: {failed:#?}");
}

/// What comes before the answer to who asks whether to go on.
const GO_ON: &str = "HTTP/1.1 100 Continue\r\n\r\n";

fn hold_row(stage: &Stage, row: &Row) {
    let name = row.name;
    let asked = (row.asks)(stage);
    let before = stage.everything();
    let answer = send(stage, row.who, &asked);
    let status = answer.strip_prefix(GO_ON).unwrap_or(&answer).get(9..12).unwrap_or_default();
    let fits = match row.status.strip_suffix('?') {
        Some(expected) => status.is_empty() || status == expected,
        None if row.status.is_empty() => status.is_empty(),
        None => status.starts_with(row.status),
    };
    assert!(fits && answer.contains(row.says), "{name}: {answer}");
    assert_eq!(stage.everything(), before, "{name}: something was taken");
    stage.assert_serves_others(name);
}

/// Sends the bytes in that name and reads what comes until the connection ends.
fn send(stage: &Stage, who: Who, asked: &Asked) -> String {
    let seed = match who {
        Who::Nobody => None,
        Who::Stranger => Some([77; 32]),
        Who::Revoked => Some([numbers::REVOKED; 32]),
        Who::Reader => Some([numbers::READER; 32]),
        Who::Kit => Some(recovery_seed(numbers::MACHINE)),
        Who::Machine => Some([numbers::MACHINE; 32]),
    };
    let mut raw: Raw = match seed {
        Some(seed) => raw::machine(&stage.world, &seed),
        None => raw::browser(&stage.world, &[b"http/1.1"]).0,
    };
    raw::exchange_and_end(&mut raw, &asked.bytes, asked.ends)
}

#[test]
fn there_are_as_many_kinds_as_is_said_each_with_a_name_of_its_own() {
    let all = [strangers::ROWS, records::ROWS, blocks::ROWS, pairing::ROWS, http::ROWS];
    let names: Vec<_> = all.iter().flat_map(|rows| rows.iter().map(|row| row.name)).collect();
    let distinct: std::collections::BTreeSet<_> = names.iter().collect();
    assert_eq!((distinct.len(), names.len()), (176, 176), "`docs/reliability.md` says how many");
}
