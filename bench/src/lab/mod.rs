//! The lab's figures beside those of fio and iperf3, on the same folder, link and settings.
//!
//! Both run in turns, each first as often as the other, so that what else the computer does meets both
//! alike, and the medians are compared. What goes past the cache goes on for seconds: a disk that others
//! use too is twice as fast in one half of a second as in the next. No comparison is finer than the other
//! tool's own runs are apart: where our median lies among them, and not within the tolerance, the row is
//! called undecided. Run it on a quiet computer.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::command::text;

mod net;

/// How far the medians may be apart.
const TOLERANCE: f64 = 0.10;

/// One setting that both measure.
#[derive(Debug, Clone, Copy)]
struct Case {
    operation: &'static str,
    block: &'static str,
    size: &'static str,
    depth: u32,
    direct: bool,
}

/// Runs both on every setting in `folder`, `runs` times each; prints the medians, and fails if any
/// are too far apart.
///
/// # Errors
///
/// If fio or iperf3 (Debian packages of these names) is not there, or a link can not be made.
pub(crate) fn compare(binary: &Path, folder: &Path, runs: u32) -> Result<()> {
    println!(
        "{:<16} {:>5} {:>6} {:<20} {:>12} {:>12} {:>7}   fio's, iperf3's own",
        "", "block", "queue", "", "fio, iperf3", "holdall", "ratio"
    );
    let mut found = Vec::new();
    for case in cases() {
        let (mut theirs, mut ours) = (Vec::new(), Vec::new());
        for run in 0..runs {
            if run % 2 == 0 {
                theirs.push(fio(folder, &case)?);
            }
            ours.push(holdall(binary, folder, &case)?);
            if run % 2 == 1 {
                theirs.push(fio(folder, &case)?);
            }
        }
        let words = format!(
            "{:<16} {:>5} {:>6} {:<20}",
            case.operation,
            case.block,
            case.depth,
            case.words()
        );
        found.push(Compared::print(&words, theirs, ours, TOLERANCE));
    }
    found.extend(net::compare(binary, folder, runs)?);
    let count = |wanted| found.iter().filter(|one| **one == wanted).count();
    let (alike, undecided) = (count(Compared::Alike), count(Compared::Undecided));
    println!("{alike} of {} rows alike, {undecided} undecided", found.len());
    // Where most rows are undecided, nothing was shown.
    if alike + undecided < found.len() || alike * 2 < found.len() {
        bail!(
            "medians are too far apart: {:.0} % is allowed for disks, {:.0} % for the network",
            TOLERANCE * 100.0,
            net::TOLERANCE * 100.0
        );
    }
    Ok(())
}

/// How the medians of both tools stand to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compared {
    /// As near as they have to be.
    Alike,
    /// Ours is farther away, and among the other tool's own runs.
    Undecided,
    /// Ours is not what the other tool measures.
    Apart,
}

impl Compared {
    fn of(theirs: &[f64], ours: &[f64], tolerance: f64) -> Self {
        let (low, high) = range(theirs);
        let (theirs, ours) = (median(theirs), median(ours));
        if (ours / theirs - 1.0).abs() <= tolerance {
            Self::Alike
        } else if (low..=high).contains(&ours) {
            Self::Undecided
        } else {
            Self::Apart
        }
    }

    /// Compares what both measured, in bytes a second, and prints it in a line that begins with `words`.
    fn print(words: &str, theirs: Vec<f64>, ours: Vec<f64>, tolerance: f64) -> Self {
        let compared = Self::of(&theirs, &ours, tolerance);
        let (low, high) = range(&theirs);
        let (theirs, ours) = (median(&theirs), median(&ours));
        let (low, high) = (low / theirs, high / theirs);
        let mark = match compared {
            Self::Alike => "",
            Self::Undecided => "  ?",
            Self::Apart => "  !",
        };
        println!(
            "{words} {:>7.1} MB/s {:>7.1} MB/s {:>7.2}   {low:.2}-{high:.2}{mark}",
            theirs / 1e6,
            ours / 1e6,
            ours / theirs
        );
        compared
    }
}

/// Every order and way, small and large blocks; directly with one request and with many, and through
/// the cache.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for operation in ["read", "write", "randread", "randwrite"] {
        for (block, size) in [("4K", "256M"), ("128K", "1G")] {
            for (depth, direct) in [(1, true), (32, true), (1, false)] {
                cases.push(Case { operation, block, size, depth, direct });
            }
        }
    }
    cases
}

impl Case {
    fn writes(&self) -> bool {
        self.operation.ends_with("write")
    }

    /// For how long blocks are moved again and again; each is moved once where there is none. What goes
    /// through the cache would only meet itself there.
    fn seconds(&self) -> Option<&'static str> {
        self.direct.then_some("3")
    }

    fn words(&self) -> &'static str {
        match (self.direct, self.writes()) {
            (true, _) => "direct",
            (false, true) => "buffered, fsync",
            (false, false) => "buffered",
        }
    }
}

/// Bytes a second by fio.
fn fio(folder: &Path, case: &Case) -> Result<f64> {
    let engine = if case.depth == 1 { "psync" } else { "io_uring" };
    let file = folder.join("holdall-torture-lab");
    let mut command = Command::new("fio");
    command.args(["--name=lab", "--output-format=json", "--thread"]);
    command.arg(format!("--filename={}", file.display()));
    command.arg(format!("--rw={}", case.operation)).arg(format!("--bs={}", case.block));
    command.arg(format!("--size={}", case.size)).arg(format!("--iodepth={}", case.depth));
    command.arg(format!("--ioengine={engine}")).arg(format!("--direct={}", u8::from(case.direct)));
    if let Some(seconds) = case.seconds() {
        command.args(["--time_based", &format!("--runtime={seconds}")]);
    }
    if case.writes() && !case.direct {
        command.arg("--end_fsync=1");
    }
    let said = text(&mut command);
    // Each run lays out its own, as each of ours does.
    std::fs::remove_file(&file).with_context(|| format!("cannot remove {file:?}"))?;
    let said: Value = serde_json::from_str(&said?).context("fio did not print JSON")?;
    let way = if case.writes() { "write" } else { "read" };
    said["jobs"][0][way]["bw_bytes"].as_f64().context("fio told no rate")
}

/// Bytes a second by holdall.
fn holdall(binary: &Path, folder: &Path, case: &Case) -> Result<f64> {
    let mut command = Command::new(binary);
    command.args(["lab", "disk", "--json", "--op", case.operation, "--block", case.block]);
    command.args(["--size", case.size, "--queue-depth", &case.depth.to_string()]).arg(folder);
    command.arg(if case.direct { "--direct" } else { "--buffered" });
    if let Some(seconds) = case.seconds() {
        command.args(["--time", seconds]);
    }
    if case.writes() && !case.direct {
        command.arg("--end-fsync");
    }
    let said = text(&mut command)?;
    let rows = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut rates = rows.filter_map(|row| row["bytes_per_second"].as_f64());
    rates.next().context("holdall told no rate")
}

/// The least and the most.
fn range(values: &[f64]) -> (f64, f64) {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    (least, values.iter().copied().fold(0.0, f64::max))
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_value_counts() {
        assert_eq!(median(&[5.0, 1.0, 100.0]), 5.0);
        assert_eq!(range(&[5.0, 1.0, 100.0]), (1.0, 100.0));
    }

    #[test]
    fn what_lies_among_the_other_tools_runs_is_not_decided() {
        let of = |ours| Compared::of(&[80.0, 100.0, 140.0], &[ours], 0.1);
        assert_eq!([of(91.0), of(109.0)], [Compared::Alike; 2]);
        assert_eq!([of(81.0), of(139.0)], [Compared::Undecided; 2]);
        assert_eq!([of(79.0), of(141.0)], [Compared::Apart; 2]);
        assert_eq!(Compared::of(&[100.0; 3], &[111.0], 0.1), Compared::Apart);
    }

    #[test]
    fn every_way_is_compared_directly_and_through_the_cache() {
        let cases = cases();
        assert_eq!(cases.len(), 4 * 2 * 3);
        assert!(cases.iter().any(|case| !case.direct && case.writes() && case.block == "4K"));
    }
}
