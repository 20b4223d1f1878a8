//! `lab net` beside iperf3 over one link, as fast as most homes have one: on loopback both would
//! measure how fast a processor copies, and not a link.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use holdall_testkit::{End, Links};
use serde_json::Value;

use super::is_alike;
use crate::command::{prefixed, text};

const BITS_PER_SECOND: u64 = 1_000_000_000;
const PORT: &str = "5201";
const SECONDS: &str = "3";
/// How far the medians may be apart.
pub(super) const TOLERANCE: f64 = 0.05;
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

/// What both measure over.
struct Ground<'a> {
    binary: &'a Path,
    folder: &'a Path,
    file: &'a Path,
    links: &'a Links,
}

/// Runs both on every way by `binary`, with files in `folder`, `runs` times each; prints the medians,
/// and tells how many are too far apart.
pub(super) fn compare(binary: &Path, folder: &Path, runs: u32) -> Result<usize> {
    let links = Links::of_rates(&[BITS_PER_SECOND])?;
    let file = folder.join("holdall-torture-net");
    let content: Vec<u8> = (0..FILE_BYTES).map(|at| (at * 31 % 251) as u8).collect();
    std::fs::write(&file, content).with_context(|| format!("cannot write {file:?}"))?;
    let compared = Ground { binary, folder, file: &file, links: &links }.compare(runs);
    std::fs::remove_file(&file).with_context(|| format!("cannot remove {file:?}"))?;
    compared
}

impl Ground<'_> {
    fn compare(&self, runs: u32) -> Result<usize> {
        let mut serve = Command::new("iperf3");
        serve.args(["-s", "-B", &server(), "-p", PORT]);
        let serving = self.at(End::Server, &serve).stdout(Stdio::null()).spawn();
        let _theirs = Running(serving.context("cannot start iperf3")?);
        let (_ours, address, token) = self.listen()?;
        let mut apart = 0;
        for case in cases() {
            let (mut theirs, mut ours) = (Vec::new(), Vec::new());
            for _ in 0..runs {
                theirs.push(self.by_iperf(case)?);
                ours.push(self.by_lab(&address, &token, case)?);
            }
            let words =
                format!("{:<16} x{} {:>31}", case.operation(), case.streams, "iperf3, holdall");
            apart += usize::from(!is_alike(&words, theirs, ours, TOLERANCE));
        }
        Ok(apart)
    }

    /// `command` at one end of the link.
    fn at(&self, end: End, command: &Command) -> Command {
        prefixed(&self.links.prefix(end), command)
    }

    /// Starts a listener; where it is, and its token.
    fn listen(&self) -> Result<(Running, String, String)> {
        let mut command = Command::new(self.binary);
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
    fn by_iperf(&self, case: Case) -> Result<f64> {
        let mut command = Command::new("iperf3");
        command.args(["-c", &server(), "-p", PORT, "-t", SECONDS, "-l", BUFFER, "-J"]);
        command.args(["-P", &case.streams.to_string()]);
        if !case.up {
            command.arg("-R");
        }
        let received = self.file.with_extension("received");
        if case.file {
            command.arg("-F").arg(if case.up { self.file } else { &received });
        }
        let said = text(&mut self.at(End::Client, &command));
        if case.file && !case.up {
            std::fs::remove_file(&received)
                .with_context(|| format!("cannot remove {received:?}"))?;
        }
        let said: Value = serde_json::from_str(&said?).context("iperf3 did not print JSON")?;
        let bits = said["end"]["sum_received"]["bits_per_second"].as_f64();
        Ok(bits.context("iperf3 told no rate")? / 8.0)
    }

    /// Bytes a second by holdall.
    fn by_lab(&self, address: &str, token: &str, case: Case) -> Result<f64> {
        let mut command = Command::new(self.binary);
        command.args(["lab", "net", address, "--token", token, "--json", "--time", SECONDS]);
        command.args(["--streams", &case.streams.to_string(), "--buffer", BUFFER]);
        command.args(["--wait", "never"]);
        match (case.file, case.up) {
            (false, _) => {}
            (true, true) => drop(command.arg("--from-file").arg(self.file)),
            (true, false) => drop(command.arg("--to-file-here").arg(self.folder)),
        }
        let said = text(&mut self.at(End::Client, &command))?;
        let rows = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut wanted = rows.filter(|row| row["operation"] == case.operation());
        let Some(row) = wanted.next() else { bail!("holdall told no row {}", case.operation()) };
        row["bytes_per_second"].as_f64().context("holdall told no rate")
    }
}

fn server() -> String {
    Links::address(0, End::Server)
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
