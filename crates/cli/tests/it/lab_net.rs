//! `lab net` against `lab listen` and against a paired server, in processes of their own.

use std::fs;
use std::path::Path;

use holdall_testkit::Process;
use rustix::process::Signal;
use serde_json::Value;

use crate::house::{Machine, Outcome, Server, send_signal};

/// A listener in a process of its own; dropping it kills it.
pub(crate) struct Listening {
    process: Process,
    address: String,
    token: String,
}

impl Listening {
    pub(crate) fn start(machine: &Machine, more: &[&str]) -> Self {
        let args = [&["lab", "listen", "127.0.0.1:0"], more].concat();
        let mut process = Process::spawn(&mut machine.command(args)).expect("it starts");
        let mut line = |prefix: &str| {
            let line = process.wait_for_line(prefix).expect("it is said");
            line.trim_start_matches(prefix).to_owned()
        };
        let (address, token) = (line("listening on "), line("token "));
        Self { process, address, token }
    }

    /// `lab net` with rows of a moment.
    pub(crate) fn measure(&self, machine: &Machine, more: &[&str]) -> Outcome {
        let to = ["lab", "net", &self.address, "--token", &self.token];
        machine.run([&to[..], &["--time", "0.1", "--streams", "1,2"], more].concat())
    }
}

fn operations(rows: &[Value]) -> Vec<&str> {
    rows.iter().map(|row| row["operation"].as_str().expect("text")).collect()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn a_listener_is_measured_from_memory_and_from_and_to_files() {
    let (here, there) = (Machine::new(), Machine::new());
    let scratch = there.path("scratch");
    fs::create_dir(&scratch).unwrap();
    let mut listening = Listening::start(&there, &["--dir", text(&scratch), "--size", "20M"]);
    let source = here.path("source");
    fs::write(&source, [7; 50_000]).unwrap();
    let folder = here.path("folder");
    fs::create_dir(&folder).unwrap();
    let files = [
        "--json",
        "--from-file",
        text(&source),
        "--to-file",
        "--from-file-there",
        "--to-file-here",
        text(&folder),
        "--buffer",
        "4K,128K",
    ];
    let outcome = listening.measure(&here, &files).expect(0);
    let rows = outcome.of_type("measurement");
    let of_files: Vec<_> = operations(&rows).split_off(9);
    assert_eq!(operations(&rows)[..4], ["round trip", "send", "send", "round trip while sending"]);
    assert_eq!(
        of_files,
        [
            "send from file",
            "send from file",
            "send to file, each write durable",
            "send to file, each write durable",
            "receive from file",
            "receive from file",
            "receive to file, each write durable",
            "receive to file, each write durable",
        ]
    );
    assert!(rows[9..].iter().all(|row| row["latency_ns"]["p99"].as_u64() > Some(0)));
    assert!(rows[1..3].iter().all(|row| row["bytes_per_second"].as_f64() > Some(0.0)));
    assert_eq!(outcome.summary()["link"]["interface"], "lo");
    for dir in [&scratch, &folder] {
        assert_eq!(fs::read_dir(dir).unwrap().count(), 0, "something is left in {dir:?}");
    }
    send_signal(&listening.process, Signal::TERM);
    assert_eq!(listening.process.wait().unwrap().0.code(), Some(0));
}

#[test]
fn a_wrong_token_no_listener_and_no_folder_have_exit_codes_of_their_own() {
    let machine = Machine::new();
    let listening = Listening::start(&machine, &[]);
    let wrong = "00".repeat(16);
    let said = machine.run(["lab", "net", &listening.address, "--token", &wrong]).expect(13);
    assert!(said.stderr.contains("wrong token"), "{}", said.stderr);
    let said = listening.measure(&machine, &["--to-file"]).expect(13);
    assert!(said.stderr.contains("started without --dir"), "{}", said.stderr);
    let said = listening.measure(&machine, &["--bind", "203.0.113.9"]).expect(2);
    assert!(said.stderr.contains("--bind takes addresses of this computer"), "{}", said.stderr);
    listening.measure(&machine, &["--fail-below", "1T"]).expect(4);
    listening.measure(&machine, &["--report", "x.pdf"]).expect(2);
    machine.run(["lab", "net", &listening.address]).expect(2);
    machine.run(["lab", "net"]).expect(2);

    let (address, token) = (listening.address.clone(), listening.token.clone());
    drop(listening);
    machine.run(["lab", "net", &address, "--token", &token]).expect(14);
}

#[test]
fn a_paired_server_is_measured_over_tls_and_a_revoked_machine_measures_nothing() {
    let machine = Machine::new();
    let data = machine.path("server");
    let server = Server::start(&data);
    machine.pair_with(&server);
    let quick = ["lab", "net", "--time", "0.1", "--streams", "1,3", "--json"];
    let outcome = machine.run(quick).expect(0);
    let rows = outcome.of_type("measurement");
    assert_eq!(
        operations(&rows),
        [
            "round trip",
            "send",
            "send",
            "round trip while sending",
            "receive",
            "receive",
            "round trip while receiving",
            "send, both ways",
            "receive, both ways"
        ]
    );
    let all = rows.iter().filter(|row| row["bytes_per_second"].as_f64() > Some(0.0)).count();
    assert_eq!(all, 6, "{rows:#?}");
    machine.run(["lab", "net", "--streams", "5"]).expect(2);
    machine.run(["lab", "net", "--to-file"]).expect(2);
    let named = format!("https://{}", server.address());
    machine.run(["lab", "net", &named, "--time", "0.1", "--streams", "1"]).expect(0);

    let stranger = Machine::new();
    stranger.run(["lab", "net", &named]).expect(13);
    let machines = machine.administer(&data, &["machines"]).expect(0).of_type("machine");
    let id = machines[0]["id"].as_str().unwrap();
    machine.administer(&data, &["revoke", id]).expect(0);
    machine.run(quick).expect(13);
}

#[test]
fn a_quick_look_measures_the_paired_server_too_and_goes_on_without_it() {
    let machine = Machine::new();
    let mut server = Server::start(&machine.path("server"));
    machine.pair_with(&server);
    let dir = machine.path("");
    let rows = machine.ok(["lab", "quick", text(&dir), "--json"]).of_type("measurement");
    let disk = ["sequential write", "random write"];
    let all = operations(&rows);
    assert!(all.starts_with(&disk) && all.contains(&"send") && all.contains(&"receive"), "{all:?}");
    let rates = rows.iter().filter(|row| row["bytes_per_second"].as_f64() > Some(0.0));
    assert_eq!(rates.count(), 4, "{rows:#?}");

    server.process().terminate().unwrap();
    server.process().wait().unwrap();
    let outcome = machine.ok(["lab", "quick", text(&dir)]);
    assert!(disk.iter().all(|row| outcome.stdout.contains(row)), "{}", outcome.stdout);
    assert!(outcome.stderr.contains("the paired server is not measured"), "{}", outcome.stderr);
}

#[test]
fn reports_are_written_kept_listed_and_compared() {
    let machine = Machine::new();
    let listening = Listening::start(&machine, &[]);
    let files = ["html", "json", "csv", "txt"].map(|ending| machine.path(&format!("r.{ending}")));
    let mut args = Vec::new();
    files.iter().for_each(|file| args.extend(["--report", text(file)]));
    listening.measure(&machine, &args).expect(0);
    let [html, json, csv, card] = files.each_ref().map(|file| fs::read_to_string(file).unwrap());
    assert!(html.starts_with("<!doctype html>") && html.contains("<svg "));
    assert!(csv.lines().count() > 8 && card.contains("kernel: "));
    for report in [&html, &json, &csv, &card] {
        assert!(!report.contains(&listening.token), "the token is in a report");
    }
    listening.measure(&machine, &[]).expect(0);

    let kept = machine.run(["lab", "history", "--json"]).expect(0).of_type("lab_report");
    assert_eq!(kept.len(), 2, "{kept:?}");
    assert!(kept[0]["command"].as_str().unwrap().contains("lab net"));
    let last = machine.run(["lab", "history", "--json", "--last", "1"]).expect(0);
    assert_eq!(last.of_type("lab_report")[0]["path"], kept[1]["path"]);

    let other = kept[1]["path"].as_str().unwrap();
    let compared = machine.run(["lab", "compare", text(&files[1]), other, "--json"]).expect(0);
    assert_eq!(compared.of_type("difference").len(), 9);
    let summary = compared.summary();
    assert_eq!(
        (summary["compared"].as_u64(), &summary["only_first"]),
        (Some(9), &serde_json::json!([]))
    );
    let said = machine.run(["lab", "compare", text(&files[0]), other]).expect(1);
    assert!(said.stderr.contains("no report of the lab"), "{}", said.stderr);
}
