//! `lab path`: every step is measured, a real backup beside them, and neither the source nor the
//! repository is the worse for it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use holdall_testkit::{Process, Random};
use rustix::process::Signal;
use serde_json::Value;

use crate::house::{
    Machine, Outcome, Server, files_below, folder, is_root, send_signal, small_tree, text,
};
use crate::mounts::{Mount, namespace};

/// A source of some folders, small files and large ones.
fn source(machine: &Machine) -> PathBuf {
    let source = machine.path("source");
    small_tree(&source);
    for number in 0..60 {
        let folder = source.join(format!("folder-{}", number % 3));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("{number}")), Random::new(number).bytes(5000)).unwrap();
    }
    source
}

/// All that one can see of a tree: content, times of change and of access, places on the disk.
fn seen(dir: &Path) -> BTreeMap<PathBuf, (Vec<u8>, [i64; 4], u64)> {
    let file = |path: PathBuf| {
        let found = fs::symlink_metadata(&path).unwrap();
        let times = [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()];
        let content = fs::read(&path).unwrap();
        (path, (content, times, found.ino()))
    };
    files_below(dir).into_iter().map(file).collect()
}

/// `lab path` whose own folder lies in `work`.
fn command(machine: &Machine, work: &Path, more: &[&str]) -> Command {
    let mut command = machine.command([&["lab", "path", "--json"], more].concat());
    command.env("TMPDIR", work);
    command
}

fn names(ladder: &Value) -> Vec<&str> {
    ladder.as_array().unwrap().iter().map(|rung| rung["name"].as_str().unwrap()).collect()
}

/// Checks that every step can do something, and says of each how much of it the backup used.
#[track_caller]
fn expect_sensible(summary: &Value) {
    for rung in summary["ladder"].as_array().unwrap() {
        let rates = ["bytes_per_second", "items_per_second"].map(|rate| rung[rate].as_f64());
        assert!(rates.iter().flatten().count() > 0, "{rung}");
        assert!(rates.iter().flatten().all(|&rate| rate > 0.0 && rate < 1e13), "{rung}");
        let used = rung["used"].as_f64();
        let is_step = !rung["reached"].as_bool().unwrap();
        assert_eq!(used.is_some_and(|used| used > 0.0), is_step, "{rung}");
    }
    assert!(summary["verdict"]["limited_by"].is_string(), "{summary:#}");
}

fn operations(outcome: &Outcome) -> Vec<String> {
    let rows = outcome.of_type("measurement");
    rows.iter().map(|row| row["operation"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_path_to_a_paired_server_has_every_step_and_leaves_nothing_there() {
    let (machine, work) = (Machine::new(), folder());
    let data = machine.path("server");
    let server = Server::start(&data);
    machine.pair_with(&server);
    let source = source(&machine);
    machine.ok(["backup", text(&source)]);
    let repositories = data.join("repositories");
    let (source_before, stored_before) = (seen(&source), seen(&repositories));
    assert!(!stored_before.is_empty());

    let page = work.path().join("page.html");
    let more = [text(&source), "--report", text(&page)];
    let outcome = Outcome::of(&mut command(&machine, work.path(), &more)).expect(0);
    let summary = outcome.summary();
    assert_eq!(
        names(&summary["ladder"]),
        [
            "source walk",
            "source read",
            "processor",
            "wire",
            "server processor",
            "server disk, fsync",
            "send file by file",
            "send as one stream",
            "first backup",
            "unchanged backup",
            "restore",
        ]
    );
    expect_sensible(&summary);
    // What was stored went over the wire.
    let rows = outcome.of_type("measurement");
    let first = rows.iter().find(|row| row["operation"] == "first backup").unwrap();
    let wire = summary["ladder"].as_array().unwrap().iter().find(|rung| rung["name"] == "wire");
    let of = |value: &Value, field: &str| value[field].as_f64().unwrap();
    let sent = of(wire.unwrap(), "bytes_per_second") * of(wire.unwrap(), "used");
    let sent = sent * of(first, "duration_seconds");
    assert!(of(first, "stored_bytes") > 3e6 && sent > of(first, "stored_bytes"), "{sent}");
    let notes = outcome.objects()[0]["notes"].to_string();
    assert!(notes.contains("goes to the server over TLS"), "{notes}");
    assert_eq!(seen(&source), source_before);
    assert_eq!(seen(&repositories), stored_before);
    assert_eq!(machine.ok(["snapshots", "--json"]).of_type("snapshot").len(), 1);
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("The ladder") && page.contains(" % used"), "{page}");
    assert!(first["cache"].is_string() && first["limited_by"].is_string(), "{first:#}");
    assert!(page.contains("limited by</th>"), "each backup says what held it back: {page}");
    let which = format!("https://{}, holdall {}", server.address(), env!("CARGO_PKG_VERSION"));
    assert!(page.contains(&which), "{page}");
    assert_eq!(fs::read_dir(work.path()).unwrap().count(), 1, "only the report stays");

    drop(server);
    let more = [text(&source)];
    Outcome::of(&mut command(&machine, work.path(), &more)).expect(14);
}

#[test]
fn the_path_to_a_directory_is_measured_beside_it() {
    let (machine, work, disk) = (Machine::new(), folder(), folder());
    let (source, repository) = (source(&machine), disk.path().join("repository"));
    machine.init(&["-r", text(&repository)]);
    machine.ok(["backup", text(&source), "-r", text(&repository)]);
    let (source_before, stored_before) = (seen(&source), seen(&repository));
    let more = [text(&source), "-r", text(&repository)];
    let outcome = Outcome::of(&mut command(&machine, work.path(), &more)).expect(0);
    let summary = outcome.summary();
    assert_eq!(
        names(&summary["ladder"]),
        [
            "source walk",
            "source read",
            "processor",
            "repository disk, fsync",
            "copy file by file",
            "copy as one stream",
            "first backup",
            "unchanged backup",
            "restore",
        ]
    );
    expect_sensible(&summary);
    let told = &outcome.objects()[0];
    assert_eq!(told["path"], text(&disk.path().canonicalize().unwrap()), "beside the repository");
    assert_eq!((seen(&source), seen(&repository)), (source_before, stored_before));
    let left =
        fs::read_dir(disk.path()).unwrap().count() + fs::read_dir(work.path()).unwrap().count();
    assert_eq!(left, 1, "only the repository stays");
    // All 68 items of it, and the folders that lead there.
    let rows = outcome.of_type("measurement");
    let of = |operation: &str| {
        let row = rows.iter().find(|row| row["operation"] == operation).unwrap();
        let done =
            |rate: &str| row[rate].as_f64().unwrap() * row["duration_seconds"].as_f64().unwrap();
        (done("operations_per_second").round() as u64, done("bytes_per_second").round() as u64)
    };
    let files = files_below(&source);
    let bytes: u64 = files.iter().map(|file| fs::metadata(file).unwrap().len()).sum();
    assert_eq!(of("source read"), (files.len() as u64, bytes));
    assert_eq!(of("copy file by file"), (files.len() as u64, bytes));
    assert_eq!(of("first backup").1, bytes);
    assert_eq!(of("restore").1, bytes);
    // Where a source can be dropped from the cache, so can a repository beside it.
    let cache = |operation: &str| {
        let row = rows.iter().find(|row| row["operation"] == operation).unwrap();
        row["cache"].as_str().expect("where the bytes came from").to_owned()
    };
    let (first, restored) = (cache("first backup"), cache("restore"));
    assert!(first != "cold" || restored != "warm", "{first}, {restored}");
}

#[test]
fn a_part_of_a_source_is_measured_where_all_of_it_is_too_much() {
    let (machine, work) = (Machine::new(), folder());
    let source = source(&machine);
    let mounted = Mount::in_memory(&source.join("mounted"), 1 << 20);
    let more = [text(&source), "--size", "200K"];
    let outcome = Outcome::of(&mut command(&machine, work.path(), &more)).expect(0);
    let rows = outcome.of_type("measurement");
    let first = rows.iter().find(|row| row["operation"] == "first backup").unwrap();
    let bytes =
        first["bytes_per_second"].as_f64().unwrap() * first["duration_seconds"].as_f64().unwrap();
    // Two of the three folders have 100 kB each, and the large file is left out.
    assert!((100_000.0..204_800.0).contains(&bytes), "{bytes}");
    let notes = outcome.summary()["notes"].to_string();
    assert!(notes.contains("the first that fit are measured"), "{notes}");
    assert_eq!(notes.contains("1 directory has another file system mounted"), mounted.is_some());
    let empty = source.join("docs/empty");
    let too_small = [text(&empty), "--size", "4K"];
    let said = Outcome::of(&mut command(&machine, work.path(), &too_small)).expect(1);
    assert!(said.stderr.contains("--size") || said.stdout.contains("--size"), "{said:?}");
}

#[test]
fn without_a_source_trees_of_every_kind_are_made_changed_and_restored() {
    let (machine, work) = (Machine::new(), folder());
    let outcome = Outcome::of(&mut command(&machine, work.path(), &["--size", "2M"])).expect(0);
    let operations = operations(&outcome);
    for content in ["text", "incompressible"] {
        for shape in ["mixed files", "few large files", "many small files"] {
            for run in ["first backup", "unchanged backup", "backup, 1 % changed", "restore"] {
                let wanted = format!("{run}, {shape}, {content}");
                assert_eq!(operations.iter().filter(|one| **one == wanted).count(), 1, "{wanted}");
            }
        }
    }
    expect_sensible(&outcome.summary());
    let rows = outcome.of_type("measurement");
    let stored = |operation: &str| {
        let row = rows.iter().find(|row| row["operation"] == operation).unwrap();
        row["stored_bytes"].as_u64().unwrap_or_default()
    };
    let [text, noise] = ["text", "incompressible"]
        .map(|content| stored(&format!("first backup, few large files, {content}")));
    assert!(text > 0 && text < noise * 3 / 4, "{text} of text, {noise} of what does not compress");
    let changed = stored("backup, 1 % changed, many small files, incompressible");
    let first = stored("first backup, many small files, incompressible");
    assert!(changed > 0 && changed < first / 2, "{changed} after a change, {first} at first");
    assert_eq!(fs::read_dir(work.path()).unwrap().count(), 0);
}

#[test]
fn where_little_fits_into_memory_the_index_of_the_path_lies_on_the_disk_and_that_is_said() {
    if !is_root("mounts") {
        return;
    }
    let (machine, work) = (Machine::new(), folder());
    let server = Server::start(&machine.path("server"));
    machine.pair_with(&server);
    let source = source(&machine);
    // As in a container, whose is 64 MB.
    let script = "mount -t tmpfs -o size=8m none /dev/shm";
    let mut lab = namespace(&machine, script, &["lab", "path", "--json", text(&source)]);
    let summary = Outcome::of(lab.env("TMPDIR", work.path())).expect(0).summary();
    expect_sensible(&summary);
    let notes = summary["notes"].to_string();
    assert!(notes.contains("repository lies on this computer's disk"), "{notes}");
    assert_eq!(fs::read_dir(work.path()).unwrap().count(), 0);
}

#[test]
fn a_run_to_a_server_that_is_killed_leaves_nothing_there_and_the_next_removes_the_rest_here() {
    let (machine, work) = (Machine::new(), folder());
    let data = machine.path("server");
    let server = Server::start(&data);
    machine.pair_with(&server);
    let source = source(&machine);
    let before = files_below(&data.join("repositories"));
    let mut lab = Process::spawn(&mut command(&machine, work.path(), &["--size", "64M"])).unwrap();
    // Here a repository lies in memory, or on the disk; there a file without a name was written.
    lab.wait_for_line("{\"message_type\":\"measurement\",\"operation\":\"first backup").unwrap();
    lab.kill().unwrap();
    assert_eq!(fs::read_dir(work.path()).unwrap().count(), 1);
    let next = Outcome::of(&mut command(&machine, work.path(), &[text(&source)])).expect(0);
    let notes = next.objects()[0]["notes"].to_string();
    assert!(notes.contains("is removed"), "{notes}");
    assert_eq!(fs::read_dir(work.path()).unwrap().count(), 0);
    assert_eq!(files_below(&data.join("repositories")), before);
}

#[test]
fn ctrl_c_leaves_nothing_behind() {
    let (machine, work) = (Machine::new(), folder());
    let mut lab = Process::spawn(&mut command(&machine, work.path(), &["--size", "64M"])).unwrap();
    lab.wait_for_line("{\"message_type\":\"measurement\",\"operation\":\"first backup").unwrap();
    send_signal(&lab, Signal::INT);
    let ended = Outcome::of_process(lab).expect(130);
    assert!(ended.of_type("summary").is_empty());
    assert_eq!(fs::read_dir(work.path()).unwrap().count(), 0);
}

#[test]
fn what_a_killed_run_left_is_removed_by_the_next() {
    let (machine, work) = (Machine::new(), folder());
    let source = source(&machine);
    let mut lab = Process::spawn(&mut command(&machine, work.path(), &["--size", "64M"])).unwrap();
    // A tree was made by then, and backups are to come.
    lab.wait_for_line("{\"message_type\":\"measurement\",\"operation\":\"source read\"").unwrap();
    lab.kill().unwrap();
    assert_eq!(fs::read_dir(work.path()).unwrap().count(), 1);
    assert!(!files_below(work.path()).is_empty());
    let memory = Path::new("/dev/shm/");
    let index = memory.join(format!("holdall-lab-{:08x}", std::process::id()));
    if memory.is_dir() {
        // As a run to a server leaves it that was killed early. Any run looks there, another test's too.
        fs::create_dir(&index).unwrap();
    }
    let next = Outcome::of(&mut command(&machine, work.path(), &[text(&source)])).expect(0);
    let notes = next.objects()[0]["notes"].to_string();
    assert!(notes.contains("is removed"), "{notes}");
    assert!(!index.exists(), "{notes}");
    assert_eq!(fs::read_dir(work.path()).unwrap().count(), 0);
    let theirs = work.path().join("holdall-lab-0123abcd");
    fs::create_dir(&theirs).unwrap();
    // Only root can give something away.
    if chown(&theirs, Some(65534), None).is_ok() {
        let next = Outcome::of(&mut command(&machine, work.path(), &[text(&source)])).expect(0);
        let notes = next.objects()[0]["notes"].to_string();
        assert!(notes.contains("belong to another user") && theirs.is_dir(), "{notes}");
    }
}

#[test]
fn what_can_not_be_measured_or_is_too_slow_has_its_exit_code() {
    let (machine, work) = (Machine::new(), folder());
    let source = source(&machine);
    let end =
        |more: &[&str], code| Outcome::of(&mut command(&machine, work.path(), more)).expect(code);
    end(&[text(&source), "--fail-below", "900T"], 4);
    end(&["/no/such/source"], 1);
    end(&[text(&source.join("large.bin"))], 2);
    end(&[text(&source), "--report", "x.pdf"], 2);
    assert_eq!(fs::read_dir(work.path()).unwrap().count(), 0);
}
