//! `lab net` beside iperf3 over one link, as fast as most homes have one: on loopback both would
//! measure how fast a processor copies, and not a link.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use holdall_testkit::{End, Links};
use serde_json::Value;

use super::{Both, Compared, print};
use crate::command::{prefixed, text};

const BITS_PER_SECOND: u64 = 1_000_000_000;
const PORT: &str = "5201";
const SECONDS: &str = "3";
/// How far both may be apart.
pub(super) const TOLERANCE: f64 = 0.05;
/// As long as what iperf3 writes and reads at once.
const BUFFER: &str = "128K";
/// What is sent from a file.
const FILE_BYTES: usize = 64 << 20;

/// What both measure, up and down.
#[derive(Debug, Clone, Copy)]
struct Case {
    streams: u8,
    file: bool,
}

/// From memory over one stream and over two, and from and to a file.
const CASES: [Case; 3] = [
    Case { streams: 1, file: false },
    Case { streams: 2, file: false },
    Case { streams: 1, file: true },
];

impl Case {
    /// What the lab calls both ways.
    fn operations(self) -> [&'static str; 2] {
        if self.file { ["send from file", "receive to file"] } else { ["send", "receive"] }
    }
}

/// A server that runs as long as this is there.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself, which is just as well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What both measure over.
struct Ground<'a> {
    both: &'a Both<'a>,
    file: &'a Path,
    links: &'a Links,
}

/// Runs both on every way, `runs` times each; prints and tells how they compare.
pub(super) fn compare(both: &Both<'_>, runs: u32) -> Result<Vec<Compared>> {
    let links = Links::of_rates(&[BITS_PER_SECOND])?;
    let file = both.folder.join("holdall-torture-net");
    let content: Vec<u8> = (0..FILE_BYTES).map(|at| (at * 31 % 251) as u8).collect();
    std::fs::write(&file, content).with_context(|| format!("cannot write {file:?}"))?;
    let compared = Ground { both, file: &file, links: &links }.compare(runs);
    std::fs::remove_file(&file).with_context(|| format!("cannot remove {file:?}"))?;
    compared
}

impl Ground<'_> {
    fn compare(&self, runs: u32) -> Result<Vec<Compared>> {
        let mut serve = Command::new("iperf3");
        serve.args(["-s", "-B", &server(), "-p", PORT]);
        let serving = self.at(End::Server, &serve).stdout(Stdio::null()).spawn();
        let _theirs = Running(serving.context("cannot start iperf3")?);
        let (_ours, address, token) = self.listen()?;
        let mut found = Vec::new();
        for case in CASES {
            let (mut theirs, mut ours) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
            for _ in 0..runs {
                theirs[0].push(self.by_iperf(case, true)?);
                theirs[1].push(self.by_iperf(case, false)?);
                let both = self.by_lab(&address, &token, case)?;
                ours.iter_mut().zip(both).for_each(|(ours, rate)| ours.push(rate));
            }
            for ((operation, theirs), ours) in case.operations().into_iter().zip(theirs).zip(ours) {
                let words = format!("{operation:<16} x{} {:>31}", case.streams, "iperf3, holdall");
                found.push(print(&words, &theirs, &ours, TOLERANCE));
            }
        }
        Ok(found)
    }

    /// `command` at one end of the link.
    fn at(&self, end: End, command: &Command) -> Command {
        prefixed(&self.links.prefix(end), command)
    }

    /// Starts a listener; where it is, and its token.
    fn listen(&self) -> Result<(Running, String, String)> {
        let mut command = self.both.command();
        command.args(["lab", "listen", &format!("{}:0", server())]);
        let child = self.at(End::Server, &command).stdout(Stdio::piped()).spawn();
        let mut running = Running(child.context("cannot start the listener")?);
        let said = running.0.stdout.take().context("it says nothing")?;
        let mut lines = BufReader::new(said).lines();
        let mut next = |prefix: &str| -> Result<String> {
            let line = lines.next().context("it ended")??;
            Ok(line.strip_prefix(prefix).with_context(|| format!("it said {line}"))?.to_owned())
        };
        let (address, token) = (next("listening on ")?, next("token ")?);
        Ok((running, address, token))
    }

    /// Bytes a second by iperf3, as the receiver counts them.
    fn by_iperf(&self, case: Case, is_up: bool) -> Result<f64> {
        let mut command = Command::new("iperf3");
        command.args(["-c", &server(), "-p", PORT, "-t", SECONDS, "-l", BUFFER, "-J"]);
        command.args(["-P", &case.streams.to_string()]);
        if !is_up {
            command.arg("-R");
        }
        let received = self.file.with_extension("received");
        if case.file {
            command.arg("-F").arg(if is_up { self.file } else { &received });
        }
        let said = text(&mut self.at(End::Client, &command));
        if case.file && !is_up {
            std::fs::remove_file(&received)
                .with_context(|| format!("cannot remove {received:?}"))?;
        }
        let said: Value = serde_json::from_str(&said?).context("iperf3 did not print JSON")?;
        let bits = said["end"]["sum_received"]["bits_per_second"].as_f64();
        Ok(bits.context("iperf3 told no rate")? / 8.0)
    }

    /// Bytes a second by holdall, up and down.
    fn by_lab(&self, address: &str, token: &str, case: Case) -> Result<[f64; 2]> {
        let mut command = self.both.command();
        command.args(["lab", "net", address, "--token", token, "--json", "--time", SECONDS]);
        command.args(["--streams", &case.streams.to_string(), "--buffer", BUFFER]);
        command.args(["--wait", "never"]);
        if case.file {
            command.arg("--from-file").arg(self.file).arg("--to-file-here").arg(self.both.folder);
        }
        let said = text(&mut self.at(End::Client, &command))?;
        let rows: Vec<Value> =
            said.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let rate = |operation: &str| {
            let row = rows.iter().find(|row| row["operation"] == operation);
            let rate = row.and_then(|row| row["bytes_per_second"].as_f64());
            rate.with_context(|| format!("holdall told no rate of {operation}"))
        };
        let [up, down] = case.operations();
        Ok([rate(up)?, rate(down)?])
    }
}

fn server() -> String {
    Links::address(0, End::Server)
}
