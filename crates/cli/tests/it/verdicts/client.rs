//! Clients without processor or memory, slow sources, and slow targets.

use std::fs;
use std::path::Path;
use std::time::Duration;

use holdall_testkit::Random;
use serde_json::Value;

use super::world::{
    Folder, World, enough, enough_tiny, large_files, prefix_of, run_by_or_not, summary_of, texts,
    tiny_files, vainly_compressible_files,
};
use super::{Row, hold, plant, row};
use crate::house::{Outcome, files_below, text};
use crate::plants::{OtherWork, Ration, Squeeze, forget_cached};

const PROCESSOR: &[&str] = &["client-cpu"];
const METADATA: &[&str] = &["source-metadata"];
const SOURCE: &[&str] = &["source-read", "source-metadata"];

pub(super) const ROWS: &[Row] = &[
    row("a client whose memory is taken again and again", &["client-memory"], memory),
    row("a client with a tenth of a core", PROCESSOR, processor),
    row("data that is compressed in vain, by a tenth of a core", PROCESSOR, vain_compression),
    row("a client with a tenth of a core under a restore", PROCESSOR, processor_of_a_restore),
    row("a source that reads slowly", &["source-read"], slow_source),
    row("one large file on a source that reads slowly", &["source-read"], slow_large_file),
    Row {
        also: more_are_read_at_once_than_there_are_cores,
        ..row("tiny files on a share that is far away", SOURCE, far_tiny_files)
    },
    row("names on a share that is far away", METADATA, far_names),
    Row { also: says_that_others_had_the_cores, ..row("three busy loops", PROCESSOR, loops) },
    Row {
        also: says_that_others_had_the_cores,
        ..row("three busy loops under a ladder", PROCESSOR, loops_under_a_ladder)
    },
    row("tiny files to a share that is far away", &["target-write"], far_target),
];

#[test]
fn a_client_its_source_and_its_target_are_named_where_they_are_slow_and_nowhere_else() {
    hold(ROWS);
}

/// Without the plant: nobody takes its memory.
fn memory(planted: bool) -> Option<Value> {
    let squeeze = plant(planted, || Squeeze::every(Duration::from_millis(100)))?;
    let world = World::new();
    let source = world.machine.path("source");
    tiny_files(&source, 40_000);
    let prefix = squeeze.as_ref().map_or_else(Vec::new, Squeeze::prefix);
    Some(summary_of(&mut run_by_or_not(&prefix, world.backup(&source))))
}

/// A backup by a tenth of a core. Without the plant a limit of the client's own holds it back: whoever
/// sends all he can may truly be out of processor, at 4 MB/s he is not.
fn by_a_tenth(planted: bool, name: &str, fill: impl FnOnce(&Path)) -> Option<Value> {
    let ration = plant(planted, || Ration::of_processor(name, 10))?;
    let world = World::new();
    let source = world.machine.path("source");
    fill(&source);
    let mut backup = world.backup(&source);
    if !planted {
        backup.args(["--limit-upload", "4M"]);
    }
    Some(summary_of(&mut run_by_or_not(&prefix_of(ration.as_ref()), backup)))
}

fn processor(planted: bool) -> Option<Value> {
    by_a_tenth(planted, "c", |dir| large_files(dir, 8))
}

/// The limit of the control leaves time for the highest level, which is tried on every block and saves
/// nothing, and that must not be taken for the limit.
fn vain_compression(planted: bool) -> Option<Value> {
    by_a_tenth(planted, "cv", |dir| vainly_compressible_files(dir, 8))
}

/// Much to decompress and to hash, and little to fetch. Without the plant that little comes over a
/// way that carries 2 MB/s, while the processor has time: at its own pace a restore may truly be
/// limited by it.
fn processor_of_a_restore(planted: bool) -> Option<Value> {
    let ration = plant(planted, || Ration::of_processor("cr", 10))?;
    let world = match planted {
        true => World::new(),
        false => World::over(Duration::ZERO, Some(2_000_000)),
    };
    let source = world.machine.path("source");
    texts(&source, 8);
    large_files(&source, 4);
    summary_of(&mut world.backup(&source));
    Some(summary_of(&mut run_by_or_not(&prefix_of(ration.as_ref()), world.restore())))
}

/// Without the plant: everything in memory, since a real disk may truly be what limits.
fn slow_source(planted: bool) -> Option<Value> {
    let world = if planted { World::new() } else { World::in_memory()? };
    let source = world.large_source(enough(planted, 6));
    read_slowly(planted, "r", &world, &source)
}

/// One thread reads it, however many there are. Without the plant: everything in memory.
fn slow_large_file(planted: bool) -> Option<Value> {
    let world = if planted { World::new() } else { World::in_memory()? };
    let source = world.machine.path("source");
    fs::create_dir_all(&source).expect("a folder");
    let bytes = 2_000_000 * enough(planted, 8) as usize;
    fs::write(source.join("large"), Random::new(1).bytes(bytes)).expect("room");
    read_slowly(planted, "rl", &world, &source)
}

/// A backup of what nothing is cached of, and with the plant at no more than 4 MB/s.
fn read_slowly(planted: bool, name: &str, world: &World, source: &Path) -> Option<Value> {
    let ration = plant(planted, || Ration::of_reading(name, source, 4_000_000))?;
    for file in files_below(source) {
        forget_cached(&file);
    }
    let backup = world.backup(source);
    Some(summary_of(&mut run_by_or_not(&prefix_of(ration.as_ref()), backup)))
}

/// Without the plant: a source in memory.
fn far_tiny_files(planted: bool) -> Option<Value> {
    let source = Folder::new(planted, Duration::from_millis(5), |dir| {
        tiny_files(dir, enough_tiny(planted, 600))
    })?;
    Some(summary_of(&mut World::new().backup(source.path())))
}

/// Without the plant: a source in memory, with files besides, so that it takes long enough.
fn far_names(planted: bool) -> Option<Value> {
    let make = |dir: &Path| {
        for number in 0..60 {
            fs::create_dir_all(dir.join(format!("dir-{number}/below"))).expect("room");
        }
        if !planted {
            tiny_files(dir, enough_tiny(planted, 0));
        }
    };
    let source = Folder::new(planted, Duration::from_millis(20), make)?;
    Some(summary_of(&mut World::new().backup(source.path())))
}

/// Without the plant: a target in memory, and large files: to make tiny ones costs there, too, and may
/// truly be what limits.
fn far_target(planted: bool) -> Option<Value> {
    let folder = Folder::new(planted, Duration::from_millis(5), |_| ())?;
    let world = World::new();
    let source = world.machine.path("source");
    match planted {
        true => tiny_files(&source, 100),
        false => large_files(&source, enough(planted, 0)),
    }
    summary_of(&mut world.backup(&source));
    let target = folder.path().join("target");
    let args = ["restore", "latest", "--target", text(&target), "--json"];
    // The share keeps no owners, which the exit code tells.
    Some(Outcome::of(&mut world.machine.command(args)).summary())
}

/// Small files beside half as many busy loops again as there are cores. Without the plant a limit of the client's
/// own holds the backup back.
fn loops(planted: bool) -> Option<Value> {
    let world = World::new();
    let source = world.machine.path("source");
    tiny_files(&source, 6_000);
    let _work = planted.then(busy_loops);
    let mut backup = world.backup(&source);
    if !planted {
        backup.args(["--limit-upload", "2M"]);
    }
    Some(summary_of(&mut backup))
}

/// The same beside `lab path`. Without the plant: over a way that carries 2 MB/s.
fn loops_under_a_ladder(planted: bool) -> Option<Value> {
    let world = match planted {
        true => World::new(),
        false => World::over(Duration::ZERO, Some(2_000_000)),
    };
    let source = world.machine.path("source");
    tiny_files(&source, 6_000);
    let _work = planted.then(busy_loops);
    Some(summary_of(&mut world.machine.command(["lab", "path", text(&source), "--json"])))
}

/// Three on two cores.
fn busy_loops() -> OtherWork {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    OtherWork::of_loops(cores + cores.div_ceil(2))
}

fn says_that_others_had_the_cores(summary: &Value) {
    let why = summary["verdict"]["explanation"].as_str().expect("an explanation");
    assert!(why.contains("Other programs kept this computer's cores busy"), "{why}");
}

fn more_are_read_at_once_than_there_are_cores(summary: &Value) {
    let stages = summary["verdict"]["stages"].as_array().expect("stages");
    let read = stages.iter().find(|stage| stage["name"] == "read").expect("it reads");
    let cores = holdall_sys::cpu::available_cores().ceil() as u64;
    assert!(read["threads"].as_u64() > Some(cores), "{read}");
}
