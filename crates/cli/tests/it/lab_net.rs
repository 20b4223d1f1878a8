//! `lab net` against `lab listen` and against a paired server, in processes of their own.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};

use holdall_testkit::{Process, is_there};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::house::{Machine, Outcome, Server, send_signal, text};
use crate::linked::Linked;

/// A listener in a process of its own; dropping it kills it.
pub(crate) struct Listening {
    process: Process,
    address: String,
    token: String,
}

impl Listening {
    pub(crate) fn start(machine: &Machine, more: &[&str]) -> Self {
        Self::start_at("127.0.0.1:0", machine, more)
    }

    fn start_at(address: &str, machine: &Machine, more: &[&str]) -> Self {
        let args = [&["lab", "listen", address], more].concat();
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
        self.measure_at(&self.address, machine, more)
    }

    /// The same, reached at another address.
    fn measure_at(&self, address: &str, machine: &Machine, more: &[&str]) -> Outcome {
        let to = ["lab", "net", address, "--token", &self.token];
        machine.run([&to[..], &["--time", "0.1", "--streams", "1,2"], more].concat())
    }

    /// An address that leads here until a connection asks for `operation`: so many bytes of either
    /// direction later, the listener is killed.
    fn killed_by(&self, operation: [u8; 2], after_bytes: u64) -> String {
        let relay = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = relay.local_addr().expect("it is bound").to_string();
        let to: SocketAddr = self.address.parse().expect("it listens");
        let id = Pid::from_raw(self.process.id().try_into().expect("a pid")).expect("a pid");
        let kill = move || kill_process(id, Signal::KILL).expect("it is not waited for yet");
        std::thread::spawn(move || {
            for caller in relay.incoming().flatten() {
                // What ends it is seen by the caller, who is asked about it.
                std::thread::spawn(move || relayed(caller, to, operation, after_bytes, kill));
            }
        });
        address
    }
}

/// Carries one connection, as `docs/lab.md` has it: a greeting of 32 bytes, then an ask of 64 whose
/// operation and end stand behind the proof.
fn relayed(
    mut caller: TcpStream,
    to: SocketAddr,
    operation: [u8; 2],
    after_bytes: u64,
    kill: impl Fn() + Copy + Send + 'static,
) -> io::Result<()> {
    let mut listener = TcpStream::connect(to)?;
    let (mut greeting, mut ask) = ([0; 32], [0; 64]);
    listener.read_exact(&mut greeting)?;
    caller.write_all(&greeting)?;
    caller.read_exact(&mut ask)?;
    let kills = ask[32..34] == operation;
    if kills && after_bytes == 0 {
        kill();
    }
    listener.write_all(&ask)?;
    let carry = move |mut from: TcpStream, mut to: TcpStream| {
        if kills && io::copy(&mut (&from).take(after_bytes), &mut to)? == after_bytes {
            kill();
        }
        let carried = io::copy(&mut from, &mut to);
        to.shutdown(Shutdown::Write)?;
        carried
    };
    let (from, back) = (caller.try_clone()?, listener.try_clone()?);
    std::thread::spawn(move || carry(from, back));
    carry(listener, caller)?;
    Ok(())
}

fn operations(rows: &[Value]) -> Vec<&str> {
    rows.iter().map(|row| row["operation"].as_str().expect("text")).collect()
}

/// Operation, buffer and streams of each row.
fn shapes(rows: &[Value]) -> Vec<(&str, Option<u64>, Option<u64>)> {
    let number = |row: &Value, name: &str| row[name].as_u64();
    let others = rows.iter().map(|row| (number(row, "block_bytes"), number(row, "jobs")));
    let named = operations(rows).into_iter().zip(others);
    named.map(|(operation, (buffer, streams))| (operation, buffer, streams)).collect()
}

/// What [`shapes`] finds of operations with each of these buffers over one stream and over two.
fn with_buffers_and_streams<'a>(
    operations: &[&'a str],
    buffers: [u64; 2],
) -> Vec<(&'a str, Option<u64>, Option<u64>)> {
    let mut shapes = Vec::new();
    for &operation in operations {
        for buffer in buffers {
            shapes.extend([1, 2].map(|streams| (operation, Some(buffer), Some(streams))));
        }
    }
    shapes
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
    assert_eq!(operations(&rows)[..4], ["round trip", "send", "send", "round trip while sending"]);
    let operations = [
        "send from file",
        "send to file, each write durable",
        "receive from file",
        "receive to file, each write durable",
    ];
    assert_eq!(shapes(&rows[9..]), with_buffers_and_streams(&operations, [4 << 10, 128 << 10]));
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

/// The last bytes of what was sent were taken for the listener's result, a report with billions of
/// retransmits was kept, and one that died early was told as a wrong token.
#[test]
fn a_listener_that_is_killed_while_a_row_runs_is_a_lost_connection_and_nothing_is_reported() {
    const TAKE: u8 = 1;
    const GIVE: u8 = 2;
    // Less than the first piece that is sent, so that it is reached whatever else the computer does.
    const MIDDLE: u64 = 50_000;
    let scratch = Machine::new();
    let dir = scratch.path("");
    let there = || std::fs::read_dir(&dir).expect("a folder").count();
    let before = there();
    let moments = [([TAKE, 0], MIDDLE), ([GIVE, 0], MIDDLE), ([GIVE, 1], MIDDLE), ([TAKE, 0], 0)];
    for (operation, after_bytes) in moments {
        let machine = Machine::new();
        let mut listening = Listening::start(&machine, &["--dir", text(&dir), "--size", "20M"]);
        let address = listening.killed_by(operation, after_bytes);
        let token = &listening.token;
        let to = ["lab", "net", &address, "--token", token, "--json", "--from-file-there"];
        let outcome = machine.run([&to[..], &["--time", "0.5", "--streams", "1"]].concat());
        let outcome = outcome.expect(14);
        let said = format!("{}{}", outcome.stdout, outcome.stderr);
        assert!(said.contains("the connection was lost"), "{operation:?}: {said}");
        assert!(outcome.of_type("summary").is_empty(), "{operation:?}: {said}");
        let kept = machine.run(["lab", "history", "--json"]).expect(0);
        assert_eq!(kept.of_type("lab_report"), Vec::<Value>::new(), "{operation:?}");
        assert!(!listening.process.kill().expect("it was there").success());
        assert_eq!(there(), before, "{operation:?}: something stayed");
    }
}

#[test]
fn a_listener_on_all_addresses_is_measured_by_ipv6_and_by_a_name() {
    let machine = Machine::new();
    let listening = Listening::start_at("[::]:0", &machine, &[]);
    let (_, port) = listening.address.rsplit_once(':').expect("a port");
    // Whichever of its addresses comes first.
    listening.measure_at(&format!("localhost:{port}"), &machine, &[]).expect(0);
    if is_there("IPv6 on loopback", TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok()) {
        let outcome = listening.measure_at(&format!("[::1]:{port}"), &machine, &["--json"]);
        assert_eq!(outcome.expect(0).summary()["link"]["interface"], "lo");
    }
    let said = listening.measure_at("[fe80::1]:7444", &machine, &[]).expect(2);
    assert!(said.stderr.contains("name the interface: [fe80::1%eth0]:7444"), "{}", said.stderr);
}

#[test]
fn streams_from_one_address_take_one_path_and_from_two_addresses_two() {
    let Some(linked) = Linked::of_rates(&[200_000_000; 2]) else { return };
    let addresses = linked.links.client_addresses();
    let summary = |streams: &str, bind: &[String]| {
        let from = bind.join(",");
        let quick = ["lab", "net", "--json", "--time", "0.5", "--streams", streams];
        linked.run(&[&quick[..], &["--bind", &from]].concat()).summary()
    };
    let said = |summary: &Value, words: &str| {
        let advice = summary["advice"].as_array().expect("sentences").iter();
        advice.filter_map(Value::as_str).any(|sentence| sentence.contains(words))
    };
    let share = |summary: &Value, name: &str| {
        let paths = summary["paths"].as_array().expect("a list");
        let path = paths.iter().find(|path| path["interface"] == name);
        path.and_then(|path| path["share"].as_f64()).unwrap_or_default()
    };
    let four = summary("4", &addresses);
    assert!(said(&four, "sending: the 4 streams took 2 paths: "), "{four:#}");
    assert!(said(&four, "receiving: the 4 streams took 2 paths: "), "{four:#}");
    // Both could come from one address, as each connection was taken by whoever asked next.
    let two = summary("2", &addresses);
    assert!(said(&two, "the 2 streams took 2 paths: "), "{two:#}");
    for summary in [&four, &two] {
        let shares = ["link0", "link1"].map(|name| share(summary, name));
        assert!(shares.iter().all(|share| *share > 0.3), "{summary:#}");
    }
    for (at, address) in addresses.iter().enumerate() {
        let one = summary("4", std::slice::from_ref(address));
        for way in ["sending", "receiving"] {
            let path = format!("{way}: all 4 streams took one path: link{at} ");
            assert!(said(&one, &path), "{one:#}");
        }
    }
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
    let more = ["lab", "net", "--time", "0.1", "--streams", "1", "--buffer", "4K,64K", "--json"];
    let rows = machine.run([&more[..], &["--to-file"]].concat()).expect(0).of_type("measurement");
    let to_file = rows.iter().filter(|row| row["operation"] == "send to file, each write durable");
    let rates: Vec<_> = to_file.filter_map(|row| row["bytes_per_second"].as_f64()).collect();
    assert!(rates.len() == 1 && rates[0] > 0.0, "{rows:#?}");
    machine.run([&more[..], &["--to-file", "--wait", "end"]].concat()).expect(2);
    let named = format!("https://{}", server.address());
    let report = machine.path("report.json");
    let told = ["lab", "net", &named, "--time", "0.1", "--streams", "1", "--to-file"];
    let reports = ["--buffer", "4K,64K", "--report", text(&report)];
    let said = machine.run([&told[..], &reports].concat()).expect(0).stdout;
    assert!(said.contains("all of --buffer are one row"), "{said}");
    let report: serde_json::Value = serde_json::from_slice(&fs::read(&report).unwrap()).unwrap();
    // The report, and the lines, say which server it was, and of which version.
    let which = format!("{named}, holdall {}", env!("CARGO_PKG_VERSION"));
    let facts = report["facts"].as_array().unwrap();
    assert!(
        facts.iter().any(|fact| fact["name"] == "server" && fact["value"] == *which),
        "{facts:#?}"
    );
    assert_eq!(outcome.of_type("circumstances")[0]["server"], *which);

    let stranger = Machine::new();
    stranger.run(["lab", "net", &named]).expect(13);
    let machines = machine.administer(&data, &["machines"]).expect(0).of_type("machine");
    let id = machines[0]["id"].as_str().unwrap();
    machine.administer(&data, &["revoke", id]).expect(0);
    machine.run(quick).expect(13);
}

#[test]
fn a_paired_server_is_measured_from_and_to_files_here_over_each_number_of_streams() {
    let machine = Machine::new();
    let server = Server::start(&machine.path("server"));
    machine.pair_with(&server);
    let (source, folder) = (machine.path("source"), machine.path("folder"));
    fs::write(&source, [7; 50_000]).unwrap();
    fs::create_dir(&folder).unwrap();
    let quick = ["lab", "net", "--time", "0.1", "--streams", "1,2", "--buffer", "4K,64K", "--json"];
    let files = ["--from-file", text(&source), "--to-file-here", text(&folder)];
    let rows = machine.run([&quick[..], &files].concat()).expect(0).of_type("measurement");
    let operations = ["send from file", "receive to file, each write durable"];
    assert_eq!(shapes(&rows[9..]), with_buffers_and_streams(&operations, [4 << 10, 64 << 10]));
    for row in &rows[9..] {
        assert!(row["bytes_per_second"].as_f64() > Some(0.0), "{row:#}");
        assert!(row["latency_ns"]["p50"].as_u64() > Some(0), "{row:#}");
    }
    assert_eq!(fs::read(&source).unwrap(), [7; 50_000]);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "something is left");

    // What the server writes it writes as requests come: buffers make no other rows of it.
    let rows = machine.run([&quick[..], &["--to-file"]].concat()).expect(0);
    let rows = rows.of_type("measurement");
    let written = "send to file, each write durable";
    assert_eq!(shapes(&rows[9..]), [1, 2].map(|streams| (written, None, Some(streams))));
    let rows = machine.run([&quick[..], &["--from-file-there"]].concat()).expect(0);
    let rows = rows.of_type("measurement");
    assert_eq!(
        shapes(&rows[9..]),
        [1, 2].map(|streams| ("receive from file", None, Some(streams)))
    );
    for row in &rows[9..] {
        assert!(row["bytes_per_second"].as_f64() > Some(0.0), "{row:#}");
    }
    // Five rows from memory, and two to files: 280 seconds.
    let long = ["lab", "net", "--time", "40", "--streams", "1,2", "--to-file", "--json"];
    let said = machine.run(long).expect(2);
    assert!(said.stdout.contains("at most 5 minutes"), "{}", said.stdout);
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
    let report: Value = serde_json::from_str(&json).unwrap();
    let rows = report["measurements"].as_array().unwrap();
    let counted = rows.iter().filter(|row| row["retransmits"].is_u64()).count();
    assert_eq!(counted, 6, "all but the round trips, also what the listener sent: {report:#}");
    assert!(csv.contains(",retransmits,") && html.contains("retransmits</th>"));
    listening.measure(&machine, &[]).expect(0);

    let kept = machine.run(["lab", "history", "--json"]).expect(0).of_type("lab_report");
    assert_eq!(kept.len(), 2, "{kept:?}");
    assert!(kept[0]["command"].as_str().unwrap().contains("lab net"));
    let last = machine.run(["lab", "history", "--json", "--last", "1"]).expect(0);
    assert_eq!(last.of_type("lab_report")[0]["path"], kept[1]["path"]);

    let other = kept[1]["path"].as_str().unwrap();
    let compared = machine.run(["lab", "compare", text(&files[1]), other, "--json"]).expect(0);
    // The three rows of round trips have two figures each.
    assert_eq!(compared.of_type("difference").len(), 12);
    let summary = compared.summary();
    assert_eq!(
        (summary["compared"].as_u64(), &summary["only_first"]),
        (Some(9), &serde_json::json!([]))
    );
    let by_number = machine.run(["lab", "compare", "1", "2", "--json"]).expect(0);
    assert_eq!(by_number.of_type("difference").len(), 12);
    assert_eq!((&kept[0]["number"], &kept[1]["number"]), (&1.into(), &2.into()));
    let last = machine.run(["lab", "compare", "last"]).expect(0);
    assert!(last.stdout.contains("A: 1: ") && last.stdout.contains("B: 2: "), "{}", last.stdout);
    let none = machine.run(["lab", "compare", "3", "last"]).expect(1);
    assert!(none.stderr.contains("no measurement 3, but 2"), "{}", none.stderr);
    let said = machine.run(["lab", "history"]).expect(0).stdout;
    assert!(said.contains("  2  20") && !said.contains(other), "{said}");

    // What measures something else has no row in common, and that is one sentence.
    machine.run(["lab", "cpu", "--time", "0.001"]).expect(0);
    let unlike = machine.run(["lab", "compare", "last", "1"]).expect(0).stdout;
    assert!(
        unlike.contains("measure different things (holdall lab cpu, holdall lab net)"),
        "{unlike}"
    );
    assert!(!unlike.contains("only A has"), "{unlike}");
    let only_one = machine.run(["lab", "compare", "last"]).expect(1).stderr;
    assert!(only_one.contains("only one `holdall lab cpu`"), "{only_one}");

    // A card is for strangers.
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let address = listening.address.to_string();
    assert!(html.contains(&address) && html.contains(&host), "{html}");
    assert!(!card.contains(&address) && !card.contains(&format!("computer: {host}")), "{card}");
    assert!(!card.contains(text(&files[0])), "{card}");
    let named = machine.path("named.txt");
    listening.measure(&machine, &["--report", text(&named), "--with-names"]).expect(0);
    let named = fs::read_to_string(named).unwrap();
    assert!(named.contains(&address) && named.contains(&format!("computer: {host}")), "{named}");

    let said = machine.run(["lab", "compare", text(&files[0]), other]).expect(1);
    assert!(said.stderr.contains("no report of the lab"), "{}", said.stderr);
}

/// A report of `lab path` with a row, a step, and what limited the backup.
fn path_report(file_mebibytes: u64, bytes_per_second: f64, limited_by: &str) -> String {
    let report = serde_json::json!({
        "format": "holdall-lab-report",
        "version": 1,
        "command": "holdall lab path",
        "made": "2026-11-20T10:00:00Z",
        "measurements": [{
            "operation": "sequential write",
            "block_bytes": 1_048_576,
            "file_bytes": file_mebibytes << 20,
            "duration_seconds": 2.0,
            "bytes_per_second": bytes_per_second,
        }],
        "ladder": [{ "name": "wire", "bytes_per_second": bytes_per_second }],
        "verdicts": [{
            "limited_by": limited_by,
            "confidence": 0.9,
            "achieved": 1.0,
            "ceiling": 2.0,
            "unit": "bytes/s",
            "ratio": 0.5,
            "explanation": "It is so.",
            "stages": [],
        }],
    });
    report.to_string()
}

#[test]
fn paths_to_two_servers_are_compared_step_by_step_with_what_limited_them() {
    let machine = Machine::new();
    let (one, other) = (machine.path("one.json"), machine.path("other.json"));
    fs::write(&one, path_report(1024, 100e6, "network")).unwrap();
    fs::write(&other, path_report(256, 50e6, "server-disk")).unwrap();
    let compared = machine.ok(["lab", "compare", text(&one), text(&other), "--json"]);
    let differences = compared.of_type("difference");
    let rows: Vec<_> = differences.iter().map(|one| one["row"].as_str().unwrap()).collect();
    assert_eq!(rows, ["sequential write 1M, files of 1 GiB / 256 MiB", "step wire"]);
    assert!(differences.iter().all(|one| one["percent"] == -50.0), "{differences:?}");
    let summary = compared.summary();
    assert_eq!(summary["compared"], 2);
    let limited = serde_json::json!([{ "first": "network", "second": "server-disk" }]);
    assert_eq!(summary["limited_by"], limited);

    let mut command = machine.command(["lab", "compare", text(&one), text(&other)]);
    let said = Outcome::of(command.env("TZ", "Europe/Berlin")).expect(0).stdout;
    assert!(said.contains("step wire") && said.contains("100.0 MB/s"), "{said}");
    let heads = format!("A: {}: holdall lab path, 2026-11-20 11:00 CET\nB: ", text(&one));
    assert!(said.starts_with(&heads), "{said}");
    let columns: Vec<_> = said.lines().nth(2).unwrap().split_whitespace().collect();
    assert_eq!(columns, ["A", "B", "B", "to", "A"]);
    assert!(said.contains("limited by: network / server-disk\n"), "{said}");
    let said = machine.ok(["lab", "compare", text(&one), text(&one)]).stdout;
    assert!(said.contains("limited by network in both\n"), "{said}");
}
