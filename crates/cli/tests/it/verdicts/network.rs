//! Networks that are slow, far away, or held back on purpose.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::world::{
    World, enough, hardly_compressible_files, large_files, linked, prose, summary_of, summary_over,
};
use super::{Row, hold, row};
use crate::house::text;
use crate::linked::Linked;
use crate::plants::OtherWork;

const NETWORK: &[&str] = &["network"];

pub(super) const ROWS: &[Row] = &[
    Row {
        // 6.25 MB/s is all that it carries.
        also: |summary| achieves_less_than(6.3e6, summary),
        ..row("a link of 50 Mb/s", NETWORK, link_of_50_megabits)
    },
    Row {
        // 125 MB/s is all that it carries.
        also: |summary| achieves_less_than(126e6, summary),
        ..row("a link of 1 Gb/s", NETWORK, link_of_a_gigabit)
    },
    row("data that hardly compresses before a link of 50 Mb/s", NETWORK, hardly_compressible),
    row("the same before a link of 300 Mb/s", NETWORK, hardly_compressible_and_faster),
    row("prose before a link of 150 Mb/s, beside other work on all cores", NETWORK, beside_work),
    Row { also: wire_is_used_up, ..row("a link of 50 Mb/s under a ladder", NETWORK, ladder) },
    row("one slow path of two", NETWORK, slow_path_of_two),
    row("a link of 50 Mb/s under a restore", NETWORK, restore),
    row("a delay of 20 ms each way", NETWORK, delay),
    Row { also: names_the_option, ..row("a limit of one's own", NETWORK, own_limit) },
    Row { also: reaches_the_limit, ..row("a high limit of one's own", NETWORK, own_high_limit) },
];

#[test]
fn a_network_is_named_where_it_is_slow_and_nowhere_else() {
    hold(ROWS);
}

/// A backup over such a link. Without the plant: over one as fast as this computer.
fn over(planted: bool, rate: u64, fill: impl FnOnce(&Path)) -> Option<Value> {
    let (linked, source) = with_source(planted, &[rate], fill)?;
    Some(summary_over(&linked, &["backup", text(&source)]))
}

fn with_source(
    planted: bool,
    rates: &[u64],
    fill: impl FnOnce(&Path),
) -> Option<(Linked, PathBuf)> {
    let linked = linked(planted, rates)?;
    let source = linked.path("source");
    fill(&source);
    Some((linked, source))
}

fn link_of_50_megabits(planted: bool) -> Option<Value> {
    over(planted, 50_000_000, |dir| large_files(dir, enough(planted, 8)))
}

fn link_of_a_gigabit(planted: bool) -> Option<Value> {
    over(planted, 1_000_000_000, |dir| large_files(dir, 200))
}

fn hardly_compressible(planted: bool) -> Option<Value> {
    over(planted, 50_000_000, |dir| hardly_compressible_files(dir, enough(planted, 20)))
}

/// A link that leaves a compressor time for more than it would take by itself, and not for everything.
fn hardly_compressible_and_faster(planted: bool) -> Option<Value> {
    over(planted, 300_000_000, |dir| hardly_compressible_files(dir, enough(planted, 60)))
}

/// Without the plant: the work, before a link as fast as this computer. Then it is the cores that are short, and
/// nothing on the way may be taken for the limit because it waits for one.
fn beside_work(planted: bool) -> Option<Value> {
    let (linked, source) = with_source(planted, &[150_000_000], |dir| prose(dir, 40))?;
    let _work = OtherWork::on_all_cores();
    Some(summary_over(&linked, &["backup", text(&source)]))
}

/// Without the plant: a link as fast as this computer, and as much as makes the start count for little.
fn ladder(planted: bool) -> Option<Value> {
    let fill = |dir: &Path| large_files(dir, if planted { 8 } else { 400 });
    let (linked, source) = with_source(planted, &[50_000_000], fill)?;
    Some(summary_over(&linked, &["lab", "path", text(&source), "--size", "1G"]))
}

/// Without the plant: two links as fast as this computer, both of them used.
fn slow_path_of_two(planted: bool) -> Option<Value> {
    let fill = |dir: &Path| large_files(dir, enough(planted, 8));
    let (linked, source) = with_source(planted, &[1_000_000_000, 20_000_000], fill)?;
    let bind = linked.links.client_addresses().join(",");
    let args = ["backup", text(&source), "--bind", &bind, "--streams", "2"];
    Some(summary_over(&linked, &args))
}

/// Without the plant: a link as fast as this computer, over which a restore is so quick that its start
/// counts unless there is much of it.
fn restore(planted: bool) -> Option<Value> {
    let fill = |dir: &Path| large_files(dir, if planted { 8 } else { 400 });
    let (linked, source) = with_source(planted, &[50_000_000], fill)?;
    linked.run(&["backup", text(&source)]);
    Some(summary_over(&linked, &["restore", "latest", "--target", text(&linked.path("target"))]))
}

/// Without the plant: straight to the server.
fn delay(planted: bool) -> Option<Value> {
    let world = match planted {
        true => World::over(Duration::from_millis(20), None),
        false => World::new(),
    };
    Some(summary_of(&mut world.backup(&large_or_prose(&world, planted, 10))))
}

/// Without the plant: no limit.
fn own_limit(planted: bool) -> Option<Value> {
    limited(planted, "4M", 8)
}

/// So high that timers matter. Without the plant: no limit.
fn own_high_limit(planted: bool) -> Option<Value> {
    limited(planted, "40M", 120)
}

fn limited(planted: bool, limit: &str, files: u64) -> Option<Value> {
    let world = World::new();
    let mut backup = world.backup(&large_or_prose(&world, planted, files));
    if planted {
        backup.args(["--limit-upload", limit]);
    }
    Some(summary_of(&mut backup))
}

/// So many large files. Without the plant: prose, which the processor has to do with. Between two programs of
/// one computer, what does not compress may truly be limited by the sockets between them.
fn large_or_prose(world: &World, planted: bool, files: u64) -> PathBuf {
    if planted {
        return world.large_source(files);
    }
    let source = world.machine.path("source");
    prose(&source, 60);
    source
}

fn achieves_less_than(limit: f64, summary: &Value) {
    let achieved = summary["verdict"]["achieved"].as_f64().expect("a rate");
    assert!(achieved < limit, "{:#}", summary["verdict"]);
}

fn wire_is_used_up(summary: &Value) {
    let ladder = summary["ladder"].as_array().expect("a ladder");
    let wire = ladder.iter().find(|rung| rung["name"] == "wire").expect("a wire");
    // 6.25 MB/s is all that it carries.
    let (rate, used) = (wire["bytes_per_second"].as_f64(), wire["used"].as_f64());
    assert!((4e6..6.3e6).contains(&rate.expect("a rate")), "{wire}");
    assert!((0.7..1.3).contains(&used.expect("a share")), "{wire}");
    let help = summary["verdict"]["help"].as_str().expect("help");
    assert!(help.contains("a faster wire"), "{help}");
}

fn reaches_the_limit(summary: &Value) {
    names_the_option(summary);
    let achieved = summary["verdict"]["achieved"].as_f64().expect("a rate");
    assert!(achieved > 0.7 * 40e6, "{:#}", summary["verdict"]);
}

fn names_the_option(summary: &Value) {
    let why = summary["verdict"]["explanation"].as_str().expect("text");
    assert!(why.contains("--limit-upload"), "the limit is not named: {why}");
}
