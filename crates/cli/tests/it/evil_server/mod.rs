//! Servers that lie, in one way each, to a real client over real TLS. Whatever they say, nothing false
//! is restored, nothing that this machine keeps is moved on, what is wrong is named, and the next
//! honest answer is taken as if nothing had been.

mod auditing;
mod fetching;
mod listing;
mod opening;
mod proxy;
mod repairing;
mod reporting;
mod stage;
mod storing;
mod versions;
mod wire;

use proxy::{Answer, Ask, Lie, Reply, honest};
use stage::Stage;

/// One way to lie.
struct Row {
    name: &'static str,
    lie: fn(&Stage) -> Lie,
    /// What is run meanwhile.
    command: &'static str,
    exit: i32,
    /// What it says.
    says: &'static str,
}

const LIST: &str = "snapshots";
const RESTORE: &str = "restore latest --target {target}";
const BACKUP: &str = "backup {source} --host desk --retry-for 1s";

/// Does all rows, one after another, to one machine, and tells of all that do not hold.
fn hold(rows: &[Row]) {
    let stage = Stage::new();
    let fails = |row: &&Row| {
        let held = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| hold_row(&stage, row)));
        stage.evil.lie(honest());
        held.is_err()
    };
    let failed: Vec<_> = rows.iter().filter(fails).map(|row| row.name).collect();
    assert!(failed.is_empty(), "lies that do not hold: {failed:#?}");
}

fn hold_row(stage: &Stage, row: &Row) {
    let name = row.name;
    stage.drop_cache();
    let before = stage.state();
    let outcome = stage.run_under((row.lie)(stage), row.command);
    let said = format!("{}{}", outcome.stdout, outcome.stderr);
    assert_eq!(outcome.code, Some(row.exit), "{name}: {said}");
    assert!(said.contains(row.says), "{name} does not say {:?}: {said}", row.says);
    assert!(!said.contains("panicked"), "{name}: {said}");
    stage.assert_nothing_false(name);
    assert!(stage.state() == before, "{name}: what this machine keeps has changed");
    stage.assert_unharmed(name);
}

/// Lies where something is asked, by its verb, and is honest otherwise.
fn at(verb: &'static str, lie: impl Fn(&Ask, Answer) -> Reply + Send + Sync + 'static) -> Lie {
    std::sync::Arc::new(move |asked, ask| {
        let answer = ask();
        if asked.verb() == verb { lie(asked, answer) } else { Reply::Answer(answer) }
    })
}

/// The same, once: the next time it is honest.
fn once_at(verb: &'static str, lie: impl Fn(Answer) -> Reply + Send + Sync + 'static) -> Lie {
    let done = std::sync::atomic::AtomicBool::new(false);
    at(verb, move |_, answer| match done.swap(true, std::sync::atomic::Ordering::SeqCst) {
        false => lie(answer),
        true => Reply::Answer(answer),
    })
}

/// Answers with another body there, where it would not refuse.
fn says(verb: &'static str, body: impl Fn(Vec<u8>) -> Vec<u8> + Send + Sync + 'static) -> Lie {
    at(verb, move |_, answer| match answer.status {
        200 => Reply::Answer(Answer { body: body(answer.body), ..answer }),
        _ => Reply::Answer(answer),
    })
}

/// Answers with a status and a body there.
fn refuses(verb: &'static str, status: u16, body: impl Into<Vec<u8>>) -> Lie {
    let body = body.into();
    at(verb, move |_, _| Reply::Answer(Answer { status, body: body.clone() }))
}

#[test]
fn there_are_as_many_kinds_as_is_said_each_with_a_name_of_its_own() {
    let all =
        [listing::ROWS, opening::ROWS, fetching::ROWS, storing::ROWS, wire::ROWS, auditing::ROWS];
    let names: Vec<_> = all.iter().flat_map(|rows| rows.iter().map(|row| row.name)).collect();
    let distinct: std::collections::BTreeSet<_> = names.iter().collect();
    assert_eq!((distinct.len(), names.len()), (144, 144), "`docs/reliability.md` says how many");
}
