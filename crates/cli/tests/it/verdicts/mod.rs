//! Verdicts, on bottlenecks that are planted for real: each names the planted layer, and none names
//! it where it was not planted.
//!
//! A row's work is done twice: with its plant, and as its control in the same world without it.
//! Where this computer's own limit could truly be of the row's layers, the control is made so that
//! it cannot be: what has to be quick lies in memory instead of on a disk or a share, and where
//! processors have to have time, something else slows the run down. Each row says how, at its
//! function. A control does more of the same work, so that it takes long enough for a verdict; `nothing`
//! and `unsure` name no plant.
//!
//! One row after another, since they share the computer; each takes seconds. What else runs on the
//! computer may be what limits, so they are not among the tests of every day: `cargo xtask torture
//! verdicts`.
//!
//! There is no level of compression to set: it follows what is behind it, and sinks where the processor
//! is what the others wait for. So no level that is too high can be planted. Data that hardly compresses
//! is planted before a slow link, where the highest level is tried on it, and that must not be taken for
//! the limit; and data on which every level is tried in vain is given to a client without processor, which
//! has to be named, and to one that has time, which has not.

mod client;
mod network;
mod server;
mod world;

use std::any::Any;
use std::collections::BTreeSet;
use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use world::{World, summary_of};

/// One bottleneck.
struct Row {
    /// What is planted.
    name: &'static str,
    /// The layers of which one is named with it, and none without it.
    layers: &'static [&'static str],
    /// Makes the world with the plant (`true`) or without it, does the work, and returns the
    /// summary; `None` where this computer cannot do that.
    work: fn(bool) -> Option<Value>,
    /// Checks what else is told with the plant.
    also: fn(&Value),
}

/// A row of which nothing else has to be told.
const fn row(
    name: &'static str,
    layers: &'static [&'static str],
    work: fn(bool) -> Option<Value>,
) -> Row {
    Row { name, layers, work, also: nothing_else }
}

fn nothing_else(_summary: &Value) {}

/// Whether a row holds.
#[derive(Debug, PartialEq)]
enum Held {
    Yes,
    /// What is wrong.
    No(String),
    LeftOut,
}

impl Row {
    /// Whether this row holds, with its plant or without it.
    fn held(&self, planted: bool) -> Held {
        // The other rows are to be done in any case.
        match std::panic::catch_unwind(|| self.check(planted)) {
            Ok(true) => Held::Yes,
            Ok(false) => Held::LeftOut,
            Err(cause) => Held::No(format!("{}: {}\n", self.called(planted), message_of(&*cause))),
        }
    }

    /// Does the work and checks what is told of it; `false` where this computer cannot do that.
    fn check(&self, planted: bool) -> bool {
        let called = self.called(planted);
        let Some(summary) = (self.work)(planted) else {
            eprintln!("{called}: left out");
            return false;
        };
        let verdict = &summary["verdict"];
        let layer = layer_of(verdict);
        let confidence = verdict["confidence"].as_f64().expect("how sure");
        eprintln!("{called}: {layer}, confidence {confidence:.2}");
        let layers = self.layers;
        assert_eq!(layers.contains(&layer), planted, "{layer}, of {layers:?}: {verdict:#}");
        if planted {
            (self.also)(&summary);
        }
        true
    }

    fn called(&self, planted: bool) -> String {
        format!("{}, {}", self.name, if planted { "planted" } else { "control" })
    }
}

/// The layer that a verdict names; it must say how it came to that.
fn layer_of(verdict: &Value) -> &str {
    assert!(verdict["explanation"].as_str().is_some_and(|why| why.len() > 20), "{verdict:#}");
    verdict["limited_by"].as_str().expect("a layer")
}

/// What was said with a panic.
fn message_of(cause: &(dyn Any + Send)) -> &str {
    let formatted = cause.downcast_ref::<String>().map(String::as_str);
    formatted.or_else(|| cause.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

/// Does the work of all rows, one after another, with each plant and without it; tells of all that
/// do not hold. Where no plant can be made, nothing was seen to hold.
#[track_caller]
fn hold(rows: &[Row]) {
    let _alone = alone();
    let planted: Vec<_> = rows.iter().map(|row| row.held(true)).collect();
    let controls: Vec<_> = rows.iter().map(|row| row.held(false)).collect();
    let some_planted = planted.iter().any(|held| *held != Held::LeftOut);
    let _ = holdall_testkit::is_there("what any plant needs", some_planted);
    let wrong = planted.into_iter().chain(controls).filter_map(|held| match held {
        Held::No(why) => Some(why),
        Held::Yes | Held::LeftOut => None,
    });
    let (wrong, all): (Vec<_>, _) = (wrong.collect(), 2 * rows.len());
    assert!(wrong.is_empty(), "{} of {all} do not hold:\n\n{}", wrong.len(), wrong.join("\n"));
}

/// Tests share the computer.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is planted, or that nothing is; `None` where this computer cannot do it.
fn plant<T>(planted: bool, make: impl FnOnce() -> Option<T>) -> Option<Option<T>> {
    if planted { make().map(Some) } else { Some(None) }
}

#[test]
fn there_are_at_least_sixteen_plants_each_with_a_name_of_its_own() {
    let all = [network::ROWS, server::ROWS, client::ROWS];
    let names: Vec<_> = all.iter().flat_map(|rows| rows.iter().map(|row| row.name)).collect();
    let distinct: BTreeSet<_> = names.iter().collect();
    assert!(distinct.len() == names.len() && names.len() >= 16, "{names:#?}");
}

#[test]
fn a_run_of_a_moment_is_held_back_by_nothing() {
    let _alone = alone();
    let world = World::new();
    let source = world.machine.path("source");
    fs::create_dir(&source).expect("a folder");
    fs::write(source.join("one"), "few bytes").expect("room");
    let summary = summary_of(&mut world.backup(&source));
    assert_eq!(layer_of(&summary["verdict"]), "nothing", "{summary:#}");
}
