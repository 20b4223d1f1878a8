//! What runs take is remembered: estimates before, and slowness after.

use std::fs;
use std::path::Path;
use std::time::Duration;

use holdall_testkit::{DelayProxy, Random};
use serde_json::{Value, json};

use crate::house::{Machine, Server, small_tree};
use crate::linked::Linked;

/// A machine with a repository in a directory, and something to back up.
fn ready() -> (Machine, String, String) {
    let machine = Machine::new();
    let [repo, source] = ["repo", "source"].map(|name| machine.path(name));
    small_tree(&source);
    let [repo, source] = [repo, source].map(|path| path.to_str().unwrap().to_owned());
    machine.init(&["-r", &repo]);
    (machine, repo, source)
}

const HISTORY: &str = "config/state/speed-history.jsonl";

fn lines(machine: &Machine) -> Vec<Value> {
    let text = fs::read_to_string(machine.path(HISTORY)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Puts others in the place of the lines.
fn set_lines(machine: &Machine, lines: &[Value]) {
    let lines = lines.iter().map(|line| line.to_string() + "\n");
    fs::write(machine.path(HISTORY), lines.collect::<String>()).unwrap();
}

/// Noon in UTC of that day of November 2023, in nanoseconds: the same day nearly everywhere.
fn noon(day: i64) -> i64 {
    (1_700_049_600 + 86_400 * (day - 15)) * 1_000_000_000
}

#[test]
fn backups_and_restores_are_remembered_and_a_dry_run_tells_what_one_would_take() {
    let (machine, repo, source) = ready();
    let dry = ["backup", "-r", &repo, &source, "--dry-run"];
    assert_eq!(machine.summary(dry)["estimate"]["runs"], 0);
    machine.ok(["backup", "-r", &repo, &source]);
    machine.ok(["backup", "-r", &repo, &source, "--limit-upload", "100M"]);
    let target = machine.path("target");
    machine.ok(["restore", "-r", &repo, "latest", "--target", target.to_str().unwrap()]);

    let kept = lines(&machine);
    let of = |field: &str| kept.iter().map(|line| line[field].clone()).collect::<Vec<_>>();
    assert_eq!(of("kind"), ["backup", "backup", "restore"]);
    assert_eq!(of("limited"), [false, true, false]);
    assert!(kept[0]["work"]["bytes"].as_u64() > Some(3_000_000), "{kept:#?}");
    // What was written in the last two seconds is read again, and nothing else.
    assert!(kept[1]["work"]["items_unchanged"].as_u64() > Some(0), "{kept:#?}");
    assert!(kept[0]["stages"].as_array().is_some_and(|stages| stages.len() > 5));

    let told = machine.summary(dry);
    assert_eq!(told["estimate"]["runs"], 1, "one that was limited on purpose counts: {told:#}");
    let said = machine.ok(dry).stdout;
    assert!(
        said.contains("it would take about") && said.contains("from 1 earlier backup"),
        "{said}"
    );
    assert_eq!(lines(&machine).len(), 3, "a dry run was remembered");
}

#[test]
fn a_moment_more_is_no_matter_and_a_history_that_can_not_be_read_does_no_harm() {
    let (machine, repo, source) = ready();
    machine.ok(["backup", "-r", &repo, &source]);
    // The past was a thousand times as fast: what the next backup takes is slow beside it, but takes
    // no ten seconds.
    let one = lines(&machine).remove(0);
    let past = |seconds: f64| {
        let mut line = one.clone();
        line["seconds"] = json!(seconds);
        line.to_string() + "\n"
    };
    let file = machine.path(HISTORY);
    fs::write(&file, past(1e-6).repeat(8)).unwrap();
    let told = machine.summary(["backup", "-r", &repo, &source]);
    assert_eq!(told.get("slower_than_usual"), None, "a moment is no matter");
    fs::write(&file, "not a line\n").unwrap();
    machine.ok(["backup", "-r", &repo, &source]);
    assert_eq!(lines(&machine).len(), 1, "the history goes on without what cannot be read");
}

#[test]
fn backups_that_became_slow_say_how_slow_since_when_and_in_which_stage() {
    // The usual way to the server, and a slow one that is taken when there is no other.
    let machine = Machine::new();
    let server = Server::start(&machine.path("server"));
    let upstream = server.address().parse().unwrap();
    let way = |rate| DelayProxy::start(upstream, Duration::ZERO, rate).unwrap();
    let (usual, slow) = (way(None), way(Some(140_000)));
    let [first, second] = [&usual, &slow].map(|way| way.address().to_string());
    machine.pair(&server.invite_with(&["--address", &first, "--address", &second]));
    let source = machine.path("source");
    fs::create_dir(&source).unwrap();
    // Each has as much to do, and takes 14 seconds at least over the slow way.
    let change = |run: u64| {
        fs::write(source.join("letters"), Random::new(run).bytes(2_000_000)).unwrap();
    };
    let backup = ["backup", source.to_str().unwrap(), "--streams", "1"];
    for run in 0..6 {
        change(run);
        machine.ok(backup);
    }
    // However long they took on a computer that does much else: a second each, one a day.
    let mut kept = lines(&machine);
    assert_eq!(kept.len(), 6);
    for (day, line) in (15..).zip(&mut kept) {
        (line["at_ns"], line["seconds"]) = (json!(noon(day)), json!(1.0));
    }
    set_lines(&machine, &kept);
    drop(usual);

    change(6);
    let told = machine.summary(backup)["slower_than_usual"].clone();
    let mut kept = lines(&machine);
    assert_eq!((&told["runs"], &told["stage"]), (&json!(1), &json!("send")), "{told:#}");
    assert_eq!((&told["since_ns"], &told["usual_until_ns"]), (&kept[6]["at_ns"], &json!(noon(20))));
    assert!(told["times"].as_f64() > Some(10.0), "{told:#}");
    assert!(told["usual_seconds"].as_f64().is_some_and(|usual| usual < 2.0), "{told:#}");

    kept[6]["at_ns"] = json!(noon(21));
    set_lines(&machine, &kept);
    change(7);
    let said = machine.ok(backup).stdout;
    for part in [
        "slower than usual: ",
        " such a run takes by the median, for 2 runs now, since 2023-11-21 ",
        "; it was not at 2023-11-20 ",
        "; it is the stage `send` that takes longer",
    ] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
}

#[test]
fn an_estimate_for_a_faster_disk_is_lower_where_the_disk_is_what_limits_and_says_so_where_not() {
    let (machine, repo, source) = ready();
    machine.ok(["backup", "-r", &repo, &source]);
    let mut line = lines(&machine).remove(0);
    line["work"] = json!({ "items": 1, "items_unchanged": 0, "bytes": 3_000_000_000_u64 });
    line["seconds"] = json!(100.0);
    let asked = ["lab", "estimate", "--items", "1", "--bytes", "30G", "--disk", "500M"];
    let estimate = |limited_by: &str| {
        let mut line = line.clone();
        line["limited_by"] = json!(limited_by);
        set_lines(&machine, &vec![line; 10]);
        let usual = machine.summary(&asked[..6])["rate"].as_f64().unwrap();
        let other = machine.summary(asked);
        let said = machine.ok(asked).stdout;
        (usual, other["rate"].as_f64().unwrap(), other["note"].as_str().unwrap().to_owned(), said)
    };
    let (usual, other, note, said) = estimate("server-disk");
    assert!((25e6..35e6).contains(&usual), "{usual}");
    assert!((other - 150e6).abs() < 1.0, "{other}");
    assert!(note.contains("is taken to do 150.0 MB/s") && said.contains(&note), "{said}");
    let (usual, other, note, said) = estimate("client-cpu");
    assert!((other / usual - 1.0).abs() < 1e-9, "{other} and {usual}");
    assert!(
        note.contains("a faster disk changes nothing: what holds backups back is this computer's")
    );
    assert!(said.contains(&note), "{said}");
    // Half of each byte went over the wire: a link of 20 MB/s lets twice as much pass of the source.
    let mut line = line.clone();
    line["limited_by"] = json!("network");
    line["sent_bytes"] = json!(1_500_000_000_u64);
    set_lines(&machine, &vec![line; 10]);
    let asked = [&asked[..6], &["--link", "20M"]].concat();
    let over = machine.summary(&asked);
    assert!((over["rate"].as_f64().unwrap() - 37.6e6).abs() < 1.0, "{over}");
    let said = machine.ok(&asked).stdout;
    assert!(!said.contains("compress"), "it is known how well it does: {said}");
}

/// Estimates are for bytes, so that a rate of these is told.
const ASKED: [&str; 6] = ["lab", "estimate", "--items", "1", "--bytes", "30G"];

#[test]
fn an_estimate_for_a_repository_that_is_named_goes_by_the_backups_there_alone() {
    let (machine, first, source) = ready();
    let second = machine.path("second").to_str().unwrap().to_owned();
    machine.init(&["-r", &second]);
    machine.ok(["backup", "-r", &first, &source]);
    let ask = |repo: &str| machine.summary([&ASKED[..], &["-r", repo]].concat());
    let unknown = ask(&second);
    let note = format!("nothing is known of {second} yet; typical rates are taken");
    assert_eq!((&unknown["runs"], &unknown["note"]), (&json!(0), &json!(note)));
    let said = machine.ok([&ASKED[..], &["-r", &second]].concat()).stdout;
    assert!(said.contains(&note), "{said}");
    // A server that this machine is not paired with.
    let elsewhere = ask("https://nas.example/attic");
    assert_eq!(elsewhere["runs"], 0, "{elsewhere}");

    machine.ok(["backup", "-r", &second, &source]);
    let kept = lines(&machine);
    let times = |line: &Value, seconds: f64| {
        let mut line = line.clone();
        line["work"] = json!({ "items": 1, "items_unchanged": 0, "bytes": 3_000_000_000_u64 });
        line["seconds"] = json!(seconds);
        vec![line; 10]
    };
    let mut all = [times(&kept[0], 1000.0), times(&kept[1], 100.0)].concat();
    let expect = |what: &str| {
        let rate = |told: Value| told["rate"].as_f64().unwrap();
        let rates = [rate(ask(&first)), rate(ask(&second)), rate(machine.summary(ASKED))];
        assert!(rates[0] < 8e6, "{what}: {rates:?}");
        assert!((25e6..35e6).contains(&rates[1]), "{what}: {rates:?}");
        assert!((rates[2] / rates[1] - 1.0).abs() < 1e-9, "{what}: {rates:?}");
        assert_eq!(ask(&first).get("note"), None, "{what}");
    };
    set_lines(&machine, &all);
    expect("the second was used last");
    for line in &mut all {
        assert!(line.as_object_mut().unwrap().remove("place").is_some());
    }
    set_lines(&machine, &all);
    expect("lines without a place");
}

/// The layer of the step of which a backup used most, as `lab path` to a directory told it.
fn slowest_step(ladder: &Value) -> &'static str {
    let layers = [
        ("source read", "source-read"),
        ("processor", "client-cpu"),
        ("repository disk, fsync", "server-disk"),
    ];
    let used = |name: &str| {
        let mut rungs = ladder.as_array().unwrap().iter();
        rungs.find(|rung| rung["name"] == name).unwrap()["used"].as_f64().unwrap()
    };
    layers.into_iter().max_by(|one, other| used(one.0).total_cmp(&used(other.0))).unwrap().1
}

#[test]
fn before_the_first_backup_the_slowest_step_of_lab_path_says_what_will_hold_it_back() {
    let (machine, repo, source) = ready();
    let dry = ["backup", "-r", &repo, &source, "--dry-run"];
    assert_eq!(machine.summary(dry)["estimate"].get("limited_by"), None, "nobody measured");
    let measured = machine.summary(["lab", "path", &source, "-r", &repo]);
    let slowest = json!(slowest_step(&measured["ladder"]));
    // The same directory, as one might write it.
    let estimate = machine.summary([&ASKED[..], &["-r", &format!("{repo}/")]].concat());
    for told in [&machine.summary(dry)["estimate"], &estimate] {
        let facts = ["runs", "measured", "limited_by", "note"].map(|field| told[field].clone());
        assert_eq!(facts, [json!(0), json!(true), slowest.clone(), Value::Null], "{told}");
    }
    let said = machine.ok([&ASKED[..], &["-r", &repo]].concat()).stdout;
    assert!(said.contains("limited by ") && said.contains("`holdall lab path` measured"), "{said}");
}

#[test]
fn what_lab_path_measured_to_a_directory_counts_after_a_backup_there_too() {
    let (machine, repo, source) = ready();
    machine.ok(["lab", "path", &source, "-r", &repo]);
    machine.ok(["backup", "-r", &repo, &source]);
    let ask = |more: &[&str]| {
        let told = machine.summary([&ASKED[..], more].concat());
        (told["runs"].as_u64().unwrap(), told["measured"].as_bool().unwrap())
    };
    assert_eq!((ask(&["-r", &repo]), ask(&[])), ((1, true), (1, true)));
    let mut kept = lines(&machine);
    assert_eq!(kept[0]["place"], json!(repo));
    // An older line does not tell where the repository is; who names it does.
    kept[0].as_object_mut().unwrap().remove("place");
    set_lines(&machine, &kept);
    assert_eq!((ask(&["-r", &repo]), ask(&[])), ((1, true), (1, false)));
    // Another directory's figures are not its.
    let other = machine.path("other").to_str().unwrap().to_owned();
    assert_eq!(ask(&["-r", &other]), (0, false));
}

#[test]
fn an_estimate_says_how_unsure_it_is_and_whether_it_fits_into_the_hour() {
    let machine = Machine::new();
    let estimate = |args: &[&str]| machine.summary([&["lab", "estimate"], args].concat());
    let small = estimate(&["--items", "1000", "--bytes", "1G"]);
    assert_eq!((small["runs"].as_u64(), &small["fits_into_an_hour"]), (Some(0), &json!("yes")));
    let slow = estimate(&["--items", "1000", "--bytes", "100G", "--link", "50Mbit"]);
    assert_eq!((&slow["fits_into_an_hour"], &slow["mostly"]), (&json!("no"), &json!("bytes")));
    let seconds = slow["seconds"].as_f64().unwrap();
    assert!((17_000.0..17_500.0).contains(&seconds), "{slow}");
    let asked = ["lab", "estimate", "--items", "1000", "--bytes", "100G"];
    let uncertain = |args: &[&str]| {
        machine.ok([&asked[..], args].concat()).stdout.contains(", if it does not compress")
    };
    assert!(uncertain(&["--link", "50Mbit"]) && !uncertain(&[]));
    let items = estimate(&["--items", "3600", "--bytes", "0", "--item-rate", "1"]);
    assert_eq!(
        (&items["fits_into_an_hour"], &items["mostly"]),
        (&json!("perhaps"), &json!("items"))
    );
    let said = machine.ok(["lab", "estimate", "--items", "1", "--bytes", "1"]).stdout;
    assert!(said.contains("typical rates"), "{said}");
    machine.run(["lab", "estimate", "--items", "1"]).expect(2);
}

#[test]
fn a_backup_over_wifi_is_expected_to_be_limited_by_it_and_not_by_a_network() {
    let Some(linked) = Linked::of_rates(&[1_000_000_000]) else { return };
    let source = linked.path("source");
    small_tree(&source);
    let source = source.to_str().unwrap();
    linked.run(&["backup", source]);
    let mut line = lines(&linked.machine).remove(0);
    line["work"] = json!({ "items": 1, "items_unchanged": 0, "bytes": 3_000_000_000_u64 });
    (line["seconds"], line["limited_by"]) = (json!(100.0), json!("network"));
    set_lines(&linked.machine, &vec![line; 10]);
    // Enough that what it takes is mostly for bytes.
    fs::write(Path::new(source).join("letters"), Random::new(1).bytes(20_000_000)).unwrap();
    let dry = ["backup", source, "--dry-run"];
    let said = linked.run(&dry).stdout;
    assert!(said.contains(", limited by the network at "), "{said}");
    let said = linked.run_over_wifi(&dry).stdout;
    assert!(said.contains(", limited by Wi-Fi at "), "{said}");
}

#[test]
fn a_restore_tells_how_much_it_used_of_the_wire_that_was_measured() {
    let machine = Machine::new();
    let server = Server::start(&machine.path("server"));
    // So slow that nothing else counts beside it.
    let upstream = server.address().parse().unwrap();
    let way = DelayProxy::start(upstream, Duration::ZERO, Some(4_000_000)).unwrap();
    machine.pair(&server.invite_with(&["--address", &way.address().to_string()]));
    let source = machine.path("source");
    small_tree(&source);
    fs::write(source.join("letters"), Random::new(1).bytes(5_000_000)).unwrap();
    let source = source.to_str().unwrap();
    machine.ok(["backup", source]);
    let restored = |name: &str| {
        let target = machine.path(name);
        let restore = ["restore", "latest", "--target", target.to_str().unwrap()];
        machine.summary(restore)["verdict"]["explanation"].as_str().unwrap().to_owned()
    };
    let why = restored("before");
    assert!(!why.contains("lab path"), "nothing was measured: {why}");
    machine.ok(["lab", "path", source]);
    let why = restored("after");
    // ` By `holdall lab path` of 2026-11-20, the wire to here does 4.0 MB/s (91 % used).`
    let (_, used) = why.split_once(", the wire to here does ").unwrap_or_else(|| panic!("{why}"));
    let share = used.split_once(" (").and_then(|(_, used)| used.split_once(" % used)"));
    let share = share.and_then(|(share, _)| share.parse::<f64>().ok());
    assert!(share.is_some_and(|share| (40.0..130.0).contains(&share)), "{why}");
}

/// A machine that is paired with a server over a link of so many bytes a second, and something to back up of so
/// many bytes, which do not compress.
fn over_a_link(
    bytes_per_second: u64,
    source_bytes: usize,
) -> (Machine, Server, DelayProxy, String) {
    let machine = Machine::new();
    let server = Server::start(&machine.path("server"));
    let upstream = server.address().parse().unwrap();
    let way = DelayProxy::start(upstream, Duration::ZERO, Some(bytes_per_second)).unwrap();
    machine.pair(&server.invite_with(&["--address", &way.address().to_string()]));
    let source = machine.path("source");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("large"), Random::new(1).bytes(source_bytes)).unwrap();
    let source = source.to_str().unwrap().to_owned();
    (machine, server, way, source)
}

#[test]
fn a_limit_on_sending_is_named_where_it_holds_back_and_not_where_the_link_does() {
    let why = |link, limit: &str, bytes| {
        let (machine, _server, _way, source) = over_a_link(link, bytes);
        let verdict = &machine.summary(["backup", &source, "--limit-upload", limit])["verdict"];
        assert_eq!(verdict["limited_by"], "network", "{verdict:#}");
        verdict["explanation"].as_str().unwrap().to_owned()
    };
    let by_limit = why(50_000_000, "2M", 6_000_000);
    assert!(by_limit.contains("--limit-upload allows 2.0 MB/s"), "{by_limit}");
    // Two thirds of what is allowed were sent, all that the link carries.
    let by_link = why(4_000_000, "6M", 20_000_000);
    assert!(!by_link.contains("--limit-upload"), "{by_link}");
}

#[test]
fn a_limit_on_receiving_holds_and_is_named() {
    // Several fetches at once, as of anything but a handful of files.
    let (machine, _server, _way, source) = over_a_link(100_000_000, 32_000_000);
    machine.ok(["backup", &source]);
    let target = machine.path("target");
    let (target, begun) = (target.to_str().unwrap(), std::time::Instant::now());
    let restore = ["restore", "latest", "--target", target, "--limit-download", "8M"];
    let verdict = &machine.summary(restore)["verdict"];
    let took = begun.elapsed();
    assert!(took > Duration::from_millis(3500), "32 MB at 8 MB/s in {took:?}");
    let explanation = verdict["explanation"].as_str().unwrap();
    assert!(explanation.contains("--limit-download allows 8.0 MB/s"), "{explanation}");
}

#[test]
fn an_estimate_is_not_faster_than_the_limit_on_sending_permits_and_names_it() {
    let (machine, _server, _way, source) = over_a_link(100_000_000, 20_000_000);
    let estimate = |more: &[&str]| {
        let dry = ["backup", &source, "--dry-run"];
        machine.summary(dry.iter().chain(more))["estimate"].clone()
    };
    let usual = estimate(&[]);
    assert!(usual["seconds"].as_f64() < Some(10.0) && usual["limit_upload"].is_null(), "{usual:#}");
    let held = estimate(&["--limit-upload", "500k"]);
    assert!(held["seconds"].as_f64() >= Some(40.0), "{held:#}");
    assert_eq!((&held["limit_upload"], &held["limited_by"]), (&json!(500_000), &json!("network")));
}
