//! The lab's commands: what is asked is really done, the figures say how, and nothing stays behind.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use holdall_testkit::{Process, has_strace};
use rustix::process::Signal;
use serde_json::Value;

use crate::house::{Machine, Outcome, send_signal};
use crate::mounts::{Mount, Share};

/// A machine and an empty folder on its disk.
fn with_folder() -> (Machine, PathBuf) {
    let machine = Machine::new().with_password(None);
    let folder = machine.path("measured");
    fs::create_dir(&folder).unwrap();
    (machine, folder)
}

/// `holdall lab VERB DIR MORE --json`.
fn args<'a>(verb: &'a str, dir: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    [&["lab", verb, dir.to_str().unwrap(), "--json"], more].concat()
}

fn measurements(outcome: &Outcome) -> Vec<Value> {
    assert_eq!(outcome.objects()[0]["message_type"], "circumstances");
    outcome.of_type("measurement")
}

#[track_caller]
fn expect_empty(dir: &Path) {
    assert_eq!(fs::read_dir(dir).unwrap().count(), 0, "something stayed in {}", dir.display());
}

#[test]
fn exactly_the_row_that_was_asked_for_is_measured_and_told() {
    let (machine, dir) = with_folder();
    let row = ["--op", "randwrite", "--block", "64K", "--queue-depth", "4", "--jobs", "2"];
    let more = [&row[..], &["--size", "1M", "--buffered", "--end-fsync"]].concat();
    let outcome = machine.ok(args("disk", &dir, &more));
    let told = &outcome.objects()[0];
    assert_eq!(told["path"], dir.to_str().unwrap());
    assert!(told["kernel"].as_str().unwrap().starts_with("Linux "));
    assert!(told["command"].as_str().unwrap().contains("--queue-depth 4"), "{told}");
    assert!(!told["file_system"]["kind"].as_str().unwrap().is_empty());
    let rows = measurements(&outcome);
    let [row] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!((&row["operation"], &row["block_bytes"]), (&"random write".into(), &65536.into()));
    assert_eq!((&row["queue_depth"], &row["jobs"]), (&4.into(), &2.into()));
    assert_eq!((&row["direct"], &row["end_fsync"]), (&false.into(), &true.into()));
    let seconds = row["duration_seconds"].as_f64().unwrap();
    let bytes = row["bytes_per_second"].as_f64().unwrap() * seconds;
    assert_eq!(bytes.round() as u64, 2 << 20, "each job's file once");
    let took = |share: &str| row["latency_ns"][share].as_u64().expect("it is told");
    assert!(took("p99.9") >= took("p50"), "{row}");
    if told["disks"].as_array().is_some_and(|disks| !disks.is_empty()) {
        assert!(row["device"]["bytes_written"].as_u64() >= Some(2 << 20), "{row}");
    }
    let usual = measurements(&machine.ok(args("disk", &dir, &["--size", "64K"])));
    let [row] = &usual[..] else { panic!("{usual:?}") };
    assert_eq!((&row["operation"], &row["queue_depth"]), (&"sequential read".into(), &1.into()));
    expect_empty(&dir);
}

/// What each command says at its end, in sentences for people; the report has them, too.
#[test]
fn each_command_ends_with_sentences_about_what_its_rows_come_to() {
    let (machine, dir) = with_folder();
    let page = machine.path("page.html");
    let report = ["--report", page.to_str().unwrap()];
    let small = [&["--op", "write", "--size", "4M"][..], &report].concat();
    for (verb, more, says) in [
        ("disk", &small[..], "Large files are written at "),
        ("files", &["--files", "20"], "To read a million small files"),
        ("quick", &[], "Large files are written at "),
    ] {
        let outcome = machine.ok(args(verb, &dir, more));
        let answers = outcome.summary()["answers"].clone();
        assert!(answers.to_string().contains(says), "{verb}: {answers}");
    }
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("Large files are written at "), "{page}");
    let cpu = machine.ok(["lab", "cpu", "--time", "0.01", "--json"]);
    let answers = cpu.summary()["answers"].to_string();
    assert!(answers.contains("prepares about "), "{answers}");
}

#[test]
fn the_system_sees_as_many_calls_as_the_row_has_blocks_and_one_fsync() {
    let (machine, dir) = with_folder();
    if !has_strace() {
        return;
    }
    let log = machine.path("calls");
    let by =
        ["strace", "-f", "-qq", "-e", "trace=pwrite64,pread64,fsync", "-o", log.to_str().unwrap()];
    let row = ["--block", "4K", "--size", "256K", "--buffered"];
    let count = |what: &str| {
        fs::read_to_string(&log).unwrap().lines().filter(|line| line.contains(what)).count()
    };
    let write = [&row[..], &["--op", "write", "--end-fsync"]].concat();
    machine.run_by(&by, args("disk", &dir, &write)).expect(0);
    assert_eq!(["pwrite64(", ", 4096, "].map(count), [64, 64]);
    // The history is made durable, too, by another thread.
    let calls = fs::read_to_string(&log).unwrap();
    let writer = calls.lines().find(|line| line.contains("pwrite64("));
    let writer = writer.and_then(|line| line.split_whitespace().next()).unwrap();
    let fsync = |line: &&str| line.starts_with(writer) && line.contains("fsync(");
    assert_eq!(calls.lines().filter(fsync).count(), 1, "{calls}");
    let read = [&row[..], &["--op", "randread"]].concat();
    machine.run_by(&by, args("disk", &dir, &read)).expect(0);
    // The loader of programs reads some headers.
    let calls = fs::read_to_string(&log).unwrap();
    let reads = calls.lines().filter(|line| line.contains("pread64(") && line.contains(", 4096, "));
    let offsets = reads.filter_map(|line| line.split(", 4096, ").nth(1)?.split(')').next());
    let (all, offsets) = (offsets.clone().count(), offsets.collect::<BTreeSet<_>>());
    assert_eq!((all, offsets.len()), (64, 64), "each block once");
}

#[test]
fn without_io_uring_threads_do_it_and_the_row_says_so() {
    let (machine, dir) = with_folder();
    if !has_strace() {
        return;
    }
    let refused = "inject=io_uring_setup:error=ENOSYS";
    let by =
        ["strace", "-f", "-qq", "-e", "trace=io_uring_setup", "-e", refused, "-o", "/dev/null"];
    let row = ["--op", "randread", "--size", "1M", "--queue-depth", "8", "--jobs", "2"];
    for (by, engine) in [(&by[..], "threads"), (&[], "io_uring")] {
        let rows = measurements(&machine.run_by(by, args("disk", &dir, &row)).expect(0));
        assert_eq!(rows[0]["engine"], engine);
        let done = |rate: &str| {
            rows[0][rate].as_f64().unwrap() * rows[0]["duration_seconds"].as_f64().unwrap()
        };
        assert_eq!(done("operations_per_second").round() as u64, 512, "{engine}");
    }
}

#[test]
fn ctrl_c_leaves_nothing_behind() {
    let (machine, dir) = with_folder();
    let endless = ["--op", "write", "--size", "8M", "--time", "3600"];
    let mut lab = Process::spawn(&mut machine.command(args("disk", &dir, &endless))).unwrap();
    lab.wait_for_line("{\"message_type\":\"circumstances\"").unwrap();
    send_signal(&lab, Signal::INT);
    let ended = Outcome::of_process(lab).expect(130);
    assert!(ended.of_type("measurement").is_empty());
    expect_empty(&dir);
}

#[test]
fn what_a_killed_run_left_is_removed_by_the_next_and_nothing_else_is() {
    let (machine, dir) = with_folder();
    fs::write(dir.join("holdall-lab-notes"), "mine").unwrap();
    let endless = ["--op", "read", "--size", "8M", "--time", "3600"];
    for long in [args("disk", &dir, &endless), args("files", &dir, &["--files", "1000000"])] {
        let mut lab = Process::spawn(&mut machine.command(long)).unwrap();
        lab.wait_for_line("{\"message_type\":\"circumstances\"").unwrap();
        let short = ["--op", "write", "--size", "64K"];
        let beside = machine.ok(args("disk", &dir, &short));
        assert!(beside.objects()[0]["notes"][0].as_str().unwrap().contains("measures here too"));
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 2, "the other's folder is in use");
        lab.kill().unwrap();
        let next = machine.ok(args("disk", &dir, &short));
        let told = next.objects()[0]["notes"][0].as_str().unwrap().to_owned();
        assert!(told.contains("is removed"), "{next:?}");
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
    }
    assert_eq!(fs::read(dir.join("holdall-lab-notes")).unwrap(), b"mine");
}

#[test]
fn a_share_is_measured_and_left_as_it_was_and_so_it_is_after_a_killed_run() {
    let Some(share) = Share::new() else { return };
    let mount = share.mount("seen", &[]);
    let (machine, dir) = (Machine::new(), mount.point());
    let report = machine.path("report.json");
    let small = ["--op", "write", "--size", "64K", "--report", report.to_str().unwrap()];
    machine.ok(args("disk", dir, &small));
    expect_empty(dir);
    assert!(report.is_file());
    machine.ok(args("files", dir, &["--files", "5", "--size", "1K"]));
    expect_empty(dir);
    let endless = ["--op", "read", "--size", "8M", "--time", "3600"];
    let mut lab = Process::spawn(&mut machine.command(args("disk", dir, &endless))).unwrap();
    lab.wait_for_line("{\"message_type\":\"circumstances\"").unwrap();
    lab.kill().unwrap();
    let next = machine.ok(args("disk", dir, &small));
    assert!(next.objects()[0]["notes"][0].as_str().unwrap().contains("is removed"), "{next:?}");
    expect_empty(dir);
}

#[test]
fn a_report_that_could_not_be_written_is_refused_before_anything_is_measured() {
    let (machine, dir) = with_folder();
    let nowhere = machine.path("none/report.html");
    let (dir_text, nowhere) = (dir.to_str().unwrap(), nowhere.to_str().unwrap());
    let refused = machine.run(["lab", "disk", dir_text, "--report", nowhere]).expect(2);
    assert!(refused.stderr.contains("none/report.html"), "{}", refused.stderr);
    let counted = machine.run(args("files", &dir, &["--count", "--report", "x.json"])).expect(2);
    assert!(counted.stderr.contains("--report"), "{}", counted.stderr);
}

#[test]
fn without_room_nothing_is_written_and_the_error_says_what_to_do() {
    let machine = Machine::new().with_password(None);
    let Some(disk) = Mount::in_memory(&machine.path("disk"), 8 << 20) else { return };
    let dir = disk.point();
    let row = ["lab", "disk", dir.to_str().unwrap(), "--op", "write", "--size", "5M"];
    let said = machine.run(row).expect(1).stderr;
    assert!(said.contains("no room in") && said.contains("--size"), "{said}");
    expect_empty(dir);
    let none = machine.run(["lab", "disk", "/no/such/folder"]).expect(1).stderr;
    assert!(none.contains("/no/such/folder"), "{none}");
}

#[test]
fn a_file_system_without_direct_access_is_measured_through_the_cache_and_told_so() {
    let machine = Machine::new().with_password(None);
    let Some(disk) = Mount::without_direct(&machine.path("disk")) else { return };
    let row = ["--op", "randwrite", "--size", "64K"];
    let rows = measurements(&machine.ok(args("disk", disk.point(), &row)));
    assert_eq!((&rows[0]["direct"], &rows[0]["direct_refused"]), (&false.into(), &true.into()));
    assert_eq!(rows[0]["end_fsync"], true, "or it would measure memory");
    let row = ["lab", "disk", disk.point().to_str().unwrap(), "--op", "read", "--size", "64K"];
    let said = machine.ok(row).stdout;
    assert!(said.contains("refuses direct access") && said.contains("lies in memory"), "{said}");
    expect_empty(disk.point());
}

#[test]
fn a_rate_that_is_not_reached_is_exit_code_4() {
    let (machine, dir) = with_folder();
    let row = |rate| ["--op", "write", "--size", "1M", "--fail-below", rate];
    machine.run(args("disk", &dir, &row("1"))).expect(0);
    let below = machine.run(args("disk", &dir, &row("9000T"))).expect(4);
    assert_eq!(measurements(&below).len(), 1, "it was measured");
    machine.run(args("disk", &dir, &["--op", "read", "--end-fsync"])).expect(2);
    machine.run(args("disk", &dir, &["--block", "1000"])).expect(2);
    expect_empty(&dir);
}

#[test]
fn the_standard_set_has_the_four_known_rows_both_ways_and_an_fsync() {
    let machine = Machine::new().with_password(None);
    let Some(disk) = Mount::in_memory(&machine.path("disk"), 8 << 20) else { return };
    let rows = measurements(&machine.ok(args("disk", disk.point(), &[])));
    assert_eq!(rows.len(), 38 + 1);
    for name in ["SEQ1M Q8T1", "SEQ1M Q1T1", "RND4K Q32T1", "RND4K Q1T1"] {
        assert_eq!(rows.iter().filter(|row| row["known_as"] == name).count(), 2, "{name}");
    }
    let fsync = rows.last().unwrap();
    assert!(fsync["operation"] == "fsync" && fsync["latency_ns"]["p50"].as_u64() > Some(0));
    let said = machine.ok(["lab", "disk", disk.point().to_str().unwrap()]).stdout;
    assert!(said.contains("RND4K Q32T1") && said.contains("file system"), "{said}");
    let rows = said.lines().skip_while(|line| !line.contains("p50"));
    let rows = rows.filter(|line| !line.starts_with("note: "));
    let widths: Vec<_> = rows.map(|line| line.chars().count()).collect();
    assert!(widths.len() > 38 && widths.iter().all(|&width| width <= 80), "{widths:?}\n{said}");
    assert!(said.contains("the set is measured on "), "{said}");
    assert!(said.contains("there is no room for a file of 100 MiB"), "{said}");
    expect_empty(disk.point());
}

/// What was laid out to be read stayed until the end, and the set died at its first write.
#[test]
fn the_standard_set_needs_room_for_one_of_its_files_and_no_more() {
    let machine = Machine::new().with_password(None);
    let Some(disk) = Mount::in_memory(&machine.path("disk"), 20 << 20) else { return };
    // At most half of the room is taken: one file of that size fits, two do not.
    let rows = measurements(&machine.ok(args("disk", disk.point(), &[])));
    assert_eq!(rows.len(), 38 + 1);
    assert!(rows[0]["file_bytes"].as_u64() >= Some(9 << 20), "{}", rows[0]);
    let is_in_memory = |row: &&Value| {
        let doubted = row["direct_in_doubt"] == true && row["direct"] == true;
        doubted || row["direct_refused"] == true
    };
    let asked = rows.iter().filter(|row| row["operation"] != "fsync");
    assert!(asked.clone().all(|row| is_in_memory(&row)), "{rows:?}");
    let mut writes = asked.filter(|row| row["operation"].as_str().unwrap().contains("write"));
    assert!(writes.all(|row| row["end_fsync"] == true), "or they would measure memory");
    let words = ["lab", "disk", disk.point().to_str().unwrap(), "--op", "write", "--size", "64K"];
    let said = machine.ok(words).stdout;
    assert!(said.contains("going around its cache") || said.contains("refuses direct"), "{said}");
    let too_large = ["lab", "disk", disk.point().to_str().unwrap(), "--size", "16M"];
    let said = machine.run(too_large).expect(1).stderr;
    assert!(said.contains("no room in"), "{said}");
    expect_empty(disk.point());
}

#[test]
fn a_report_takes_the_place_of_a_report_and_of_nothing_else() {
    let (machine, dir) = with_folder();
    let at = |name: &str| machine.path(name).to_str().unwrap().to_owned();
    let (thesis, page) = (at("thesis.txt"), at("page.html"));
    fs::write(&thesis, "To be or not to be").unwrap();
    let short = ["--op", "write", "--size", "64K", "--report"];
    let refused = machine.run(args("disk", &dir, &[&short[..], &[&*thesis]].concat())).expect(2);
    assert!(refused.of_type("measurement").is_empty(), "{refused:?}");
    let said = refused.of_type("error").pop().unwrap().to_string();
    assert!(said.contains("thesis.txt") && said.contains("name another file"), "{said}");
    assert_eq!(fs::read_to_string(&thesis).unwrap(), "To be or not to be");
    let to_page = [&short[..], &[&*page]].concat();
    machine.ok(args("disk", &dir, &to_page));
    let first = fs::read_to_string(&page).unwrap();
    machine.ok(args("disk", &dir, &[&to_page[..], &["--buffered"]].concat()));
    let second = fs::read_to_string(&page).unwrap();
    assert!(!first.contains("--buffered") && second.contains("--buffered"), "replaced");
}

#[test]
fn all_kinds_of_work_on_files_all_sizes_and_a_mix_that_fits_are_measured() {
    let machine = Machine::new().with_password(None);
    let Some(disk) = Mount::in_memory(&machine.path("disk"), 48 << 20) else { return };
    let rows = measurements(&machine.ok(args("files", disk.point(), &[])));
    let of = |word: &'static str| rows.iter().filter(move |row| row["operation"] == word);
    for word in ["create", "write", "fsync", "stat", "list", "rename", "delete"] {
        let workers: Vec<_> = of(word).map(|row| row["jobs"].as_u64().unwrap()).collect();
        assert_eq!(workers, [1, 2, 4, 8], "{word}");
        assert!(of(word).all(|row| row["items"]["files"] == 1000), "{word}");
    }
    let sizes: Vec<_> =
        of("write with fsync").map(|row| row["file_bytes"].as_u64().unwrap()).collect();
    assert!(sizes.starts_with(&[2_000, 20_000]) && !sizes.contains(&200_000_000), "{sizes:?}");
    // There is no room for the whole one, and a smaller one is called another.
    let mix =
        rows.iter().find(|row| row["operation"].as_str().unwrap().starts_with("write a mix of"));
    let mix = mix.unwrap();
    assert!(mix["items"]["links"].as_u64() > Some(0) && mix["end_fsync"] == true);
    expect_empty(disk.point());
    let few = ["--files", "10", "--size", "1K", "--workers", "2", "--fail-below", "9000T"];
    let report = machine.path("files.json");
    let few = [&few[..], &["--report", report.to_str().unwrap()]].concat();
    let rows = measurements(&machine.run(args("files", disk.point(), &few)).expect(4));
    assert_eq!((rows.len(), &rows[0]["items"]["files"]), (8, &10.into()));
    let report: Value = serde_json::from_slice(&fs::read(&report).unwrap()).unwrap();
    let rows = report["measurements"].as_array().unwrap();
    assert!(rows.len() == 8 && rows.iter().all(|row| row["items"] == 10), "{report:#}");
}

#[test]
fn what_is_made_durable_was_opened_for_writing() {
    let (machine, dir) = with_folder();
    if !has_strace() {
        return;
    }
    let log = machine.path("calls");
    let trace = "trace=openat,fsync";
    let by = ["strace", "-f", "-qq", "-y", "-e", trace, "-o", log.to_str().unwrap()];
    let few = ["--files", "3", "--size", "1K", "--workers", "1"];
    machine.run_by(&by, args("files", &dir, &few)).expect(0);
    let calls = fs::read_to_string(&log).unwrap();
    let is_of_file = |line: &&str| line.contains("/worker-0/file-") && !line.contains(" resumed>");
    let of_files: Vec<_> = calls.lines().filter(is_of_file).collect();
    let made_durable = of_files.windows(2).filter(|pair| pair[1].contains("fsync("));
    assert_eq!(made_durable.clone().count(), 3, "{calls}");
    // A share (cifs) does nothing for a file that is open for reading.
    assert!(made_durable.clone().all(|pair| pair[0].contains("O_WRONLY")), "{calls}");
    expect_empty(&dir);
}

#[test]
fn items_are_counted_without_writing_anything() {
    let (machine, dir) = with_folder();
    crate::house::small_tree(&dir);
    let rows = measurements(&machine.ok(args("files", &dir, &["--count"])));
    assert_eq!(
        rows[0]["items"],
        serde_json::json!({ "files": 3, "directories": 3, "links": 1, "others": 0 })
    );
    let said = machine.ok(["lab", "files", dir.to_str().unwrap(), "--count"]).stdout;
    assert!(said.contains("7 items: 3 files of 3.0 MB, 3 directories, 1 link"), "{said}");
}

#[test]
fn what_a_count_does_not_see_is_told_and_is_no_failure() {
    let (machine, dir) = with_folder();
    for folder in ["mounted", "locked", "open"] {
        fs::create_dir(dir.join(folder)).unwrap();
        fs::write(dir.join(folder).join("file"), folder).unwrap();
    }
    let Some(mounted) = Mount::in_memory(&dir.join("mounted"), 1 << 20) else { return };
    fs::write(mounted.point().join("unseen"), "unseen").unwrap();
    fs::set_permissions(dir.join("locked"), Permissions::from_mode(0o700)).unwrap();
    // An ordinary user has to come as far as the folder.
    chown(machine.path(""), Some(65534), Some(65534)).unwrap();
    let by = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let rows = measurements(&machine.run_by(&by, args("files", &dir, &["--count"])).expect(0));
    let row = &rows[0];
    let items = &row["items"];
    assert_eq!((&items["files"], &items["directories"]), (&1.into(), &4.into()), "{row}");
    assert_eq!((&row["unreadable_directories"], &row["mount_points"]), (&1.into(), &1.into()));
    let words = ["lab", "files", dir.to_str().unwrap(), "--count"];
    let said = machine.run_by(&by, words).expect(0).stderr;
    assert!(said.contains("could not be read") && said.contains("file system mounted"), "{said}");
}

#[test]
fn every_step_of_the_pipeline_is_measured_with_both_ciphers() {
    let machine = Machine::new().with_password(None);
    let outcome = machine.ok(["lab", "cpu", "--time", "0.01", "--json"]);
    let rows = measurements(&outcome);
    let named = |name: &str| rows.iter().find(|row| row["operation"] == name).expect("the step");
    for name in ["chunk", "id", "seal, AES-256-GCM", "seal, ChaCha20-Poly1305", "open, AES-256-GCM"]
    {
        assert!(named(name)["bytes_per_core_second"].as_f64() > Some(0.0), "{name}");
    }
    let ratio = |name: &str| named(name)["output_ratio"].as_f64().unwrap();
    assert!(ratio("compress at level 3 and seal") < ratio("compress at level 1 and seal"));
    assert!(ratio("seal, AES-256-GCM") >= 1.0);
    machine.run(["lab", "cpu", "--time", "0.01", "--fail-below", "9000T"]).expect(4);
}

#[test]
fn a_quick_look_is_two_rows_here_and_soon_over() {
    let (machine, dir) = with_folder();
    let begun = Instant::now();
    let outcome = machine.ok(args("quick", &dir, &[]));
    // It is to take less than 5 seconds, and has three times as many beside other tests.
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    let rows = measurements(&outcome);
    let [large, small] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!((&large["operation"], &large["jobs"]), (&"sequential write".into(), &1.into()));
    assert_eq!(large["block_bytes"], large["file_bytes"], "one write");
    assert_eq!((&small["operation"], &small["jobs"]), (&"random write".into(), &1.into()));
    let at_once = small["queue_depth"].as_u64().unwrap();
    assert_eq!(small["file_bytes"].as_u64(), Some(at_once * 4096), "all at once");
    assert!(rows.iter().all(|row| row["end_fsync"] == true));
    expect_empty(&dir);
}

#[test]
fn a_quick_look_at_what_is_fast_has_50_mb_in_one_write_and_500_writes_at_once() {
    let machine = Machine::new().with_password(None);
    let Some(disk) = Mount::in_memory(&machine.path("disk"), 256 << 20) else { return };
    // Other tests may take the processors away for so long that even memory looks slow.
    let is_all = (0..5).any(|_| {
        let rows = measurements(&machine.ok(args("quick", disk.point(), &[])));
        rows[0]["block_bytes"] == 48 << 20 && rows[1]["queue_depth"] == 500
    });
    assert!(is_all);
    expect_empty(disk.point());
}

#[test]
fn a_quick_look_where_there_is_little_room_is_told_by_what_fits() {
    let machine = Machine::new().with_password(None);
    let Some(disk) = Mount::in_memory(&machine.path("disk"), 40 << 20) else { return };
    let outcome = machine.ok(args("quick", disk.point(), &[]));
    let bytes = measurements(&outcome)[0]["block_bytes"].as_u64();
    assert!(bytes >= Some(64 << 10) && bytes <= Some(20 << 20), "{bytes:?}");
    let said = machine.ok(["lab", "quick", disk.point().to_str().unwrap()]).stdout;
    assert!(said.contains("too slow or too full"), "{said}");
    expect_empty(disk.point());
}

/// Seen: memory was said to be like a fast SSD.
#[test]
fn memory_is_not_called_a_disk() {
    let machine = Machine::new();
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let disk = machine.ok(["lab", "disk", "--size", "64K", dir.path().to_str().unwrap()]).stdout;
    let quick = machine.ok(["lab", "quick", dir.path().to_str().unwrap()]).stdout;
    for told in [disk, quick] {
        assert!(told.contains("figures are of memory") && !told.contains("like "), "{told}");
        assert!(!told.contains("to this disk"), "{told}");
    }
}
