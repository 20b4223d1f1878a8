//! `cargo xtask torture lab`, the network's part: `lab net` beside iperf3 on the same link, which is
//! loopback: two programs that ask the same of the same kernel.
//!
//! Both run in turns, and medians are compared, as for disks.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::lab::{median, said_by};

const RUNS: usize = 5;
const SECONDS: &str = "2";
/// How far the medians may be apart.
const TOLERANCE: f64 = 0.05;
/// As long as what iperf3 writes and reads at once.
const BUFFER: &str = "128K";
/// What is sent from a file.
const FILE_BYTES: usize = 64 << 20;

/// One way that both measure.
#[derive(Debug, Clone, Copy)]
struct Case {
    streams: u8,
    up: bool,
    file: bool,
}

impl Case {
    /// What the lab calls it.
    fn operation(self) -> &'static str {
        match (self.up, self.file) {
            (true, false) => "send",
            (true, true) => "send from file",
            (false, false) => "receive",
            (false, true) => "receive to file",
        }
    }
}

/// Every direction with one and two streams, and from and to a file.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for up in [true, false] {
        for streams in [1, 2] {
            cases.push(Case { streams, up, file: false });
        }
        cases.push(Case { streams: 1, up, file: true });
    }
    cases
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

/// Runs both on every way by `binary`, with files in `folder`; prints the medians, and tells how many
/// are too far apart.
pub(crate) fn run(binary: &Path, folder: &Path) -> Result<usize> {
    let file = folder.join("holdall-torture-net");
    let content: Vec<u8> = (0..FILE_BYTES).map(|at| (at * 31 % 251) as u8).collect();
    std::fs::write(&file, content).with_context(|| format!("cannot write {file:?}"))?;
    let compared = compare(binary, folder, &file);
    std::fs::remove_file(&file).with_context(|| format!("cannot remove {file:?}"))?;
    compared
}

fn compare(binary: &Path, folder: &Path, file: &Path) -> Result<usize> {
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port().to_string();
    let mut iperf = Command::new("iperf3");
    let theirs = iperf.args(["-s", "-B", "127.0.0.1", "-p", &port]).stdout(Stdio::null()).spawn();
    let _theirs = Running(theirs.context("cannot start iperf3")?);
    let (_ours, address, token) = listen(binary)?;
    let mut apart = 0;
    for case in cases() {
        let (mut theirs, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            theirs.push(by_iperf(&port, file, case)?);
            ours.push(by_lab(binary, (&address, &token), (folder, file), case)?);
        }
        let (theirs, ours) = (median(theirs), median(ours));
        let ratio = ours / theirs;
        apart += usize::from((ratio - 1.0).abs() > TOLERANCE);
        println!(
            "{:<16} x{} {:>24} {:>7.1} MB/s {:>7.1} MB/s {ratio:>7.2}",
            case.operation(),
            case.streams,
            "iperf3, holdall",
            theirs / 1e6,
            ours / 1e6,
        );
    }
    Ok(apart)
}

/// Starts a listener; where it is, and its token.
fn listen(binary: &Path) -> Result<(Running, String, String)> {
    let mut command = Command::new(binary);
    let child = command.args(["lab", "listen", "127.0.0.1:0"]).stdout(Stdio::piped()).spawn();
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
fn by_iperf(port: &str, file: &Path, case: Case) -> Result<f64> {
    let mut command = Command::new("iperf3");
    command.args(["-c", "127.0.0.1", "-p", port, "-t", SECONDS, "-l", BUFFER, "-J"]);
    command.args(["-P", &case.streams.to_string()]);
    if !case.up {
        command.arg("-R");
    }
    let received = file.with_extension("received");
    if case.file {
        command.arg("-F").arg(if case.up { file } else { &received });
    }
    let said = said_by(&mut command);
    if case.file && !case.up {
        std::fs::remove_file(&received).with_context(|| format!("cannot remove {received:?}"))?;
    }
    let said: Value = serde_json::from_str(&said?).context("iperf3 did not print JSON")?;
    let bits = said["end"]["sum_received"]["bits_per_second"].as_f64();
    Ok(bits.context("iperf3 told no rate")? / 8.0)
}

/// Bytes a second by holdall.
fn by_lab(
    binary: &Path,
    (address, token): (&str, &str),
    (folder, file): (&Path, &Path),
    case: Case,
) -> Result<f64> {
    let mut command = Command::new(binary);
    command.args(["lab", "net", address, "--token", token, "--json", "--time", SECONDS]);
    command.args(["--streams", &case.streams.to_string(), "--buffer", BUFFER, "--wait", "never"]);
    match (case.file, case.up) {
        (false, _) => {}
        (true, true) => drop(command.arg("--from-file").arg(file)),
        (true, false) => drop(command.arg("--to-file-here").arg(folder)),
    }
    let said = said_by(&mut command)?;
    let rows = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut wanted = rows.filter(|row| row["operation"] == case.operation());
    let Some(row) = wanted.next() else { bail!("holdall told no row {}", case.operation()) };
    row["bytes_per_second"].as_f64().context("holdall told no rate")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_are_compared_with_one_and_two_streams_and_a_file() {
        let cases = cases();
        assert_eq!(cases.len(), 6);
        for up in [true, false] {
            assert_eq!(cases.iter().filter(|case| case.up == up && case.streams == 2).count(), 1);
            assert_eq!(cases.iter().filter(|case| case.up == up && case.file).count(), 1);
        }
    }
}
