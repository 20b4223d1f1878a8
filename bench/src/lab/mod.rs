//! The lab's figures beside those of fio and iperf3, on the same folder, link and settings.
//!
//! Both run in turns, each first as often as the other, so that what else the computer does meets both
//! alike. What goes past the cache goes on for seconds: a disk that others use too is twice as fast in
//! one half of a second as in the next. What counts is the median of the ratios of runs that followed
//! each other, since a disk that others use drifts, and meets such two alike. Where it is not within the
//! tolerance, but may be by how far the ratios are apart, as many runs are added, four times at most; what is
//! undecided then fails as what is apart does, for nothing was shown.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::command::text;

mod fio;
mod memory;
mod net;

/// How far both may be apart.
const TOLERANCE: f64 = 0.10;
/// Fewer runs than that show that both are alike, and not that they are apart: nothing can be left out of their
/// ratios for chance.
const FEWEST_TO_DIFFER: usize = 6;
/// So many times its file's size a run through the cache may take of memory: to lay it out, to read it, and what
/// a cache gives back a little late.
const MEMORY_OF_A_RUN: u64 = 4;
/// So often the runs that were asked for are made of a row that they do not decide.
const ROUNDS: u32 = 5;

/// One setting that both measure.
#[derive(Debug, Clone, Copy)]
struct Case {
    operation: &'static str,
    block: &'static str,
    bytes: u64,
    depth: u32,
    direct: bool,
}

/// Runs both on every setting in `folder`, `runs` times each; prints how they compare, and fails if
/// any are too far apart.
///
/// # Errors
///
/// If fio or iperf3 (Debian packages of these names) is not there, or a link cannot be made.
pub(crate) fn compare(binary: &Path, folder: &Path, runs: u32) -> Result<()> {
    println!(
        "{:<16} {:>5} {:>6} {:<20} {:>12} {:>12} {:>7}   it lies within",
        "", "block", "queue", "", "fio, iperf3", "holdall", "ratio"
    );
    // The history of whoever runs this is not for these figures.
    let state = folder.join("holdall-torture-state");
    let found = Both { binary, folder, state: &state }.compare_all(runs);
    std::fs::remove_dir_all(&state).with_context(|| format!("cannot remove {state:?}"))?;
    let found = found?;
    let count = |wanted| found.iter().filter(|one| **one == wanted).count();
    let (alike, undecided) = (count(Compared::Alike), count(Compared::Undecided));
    println!("{alike} of {} rows alike, {undecided} undecided", found.len());
    if alike < found.len() {
        bail!(
            "they are too far apart, or more runs have to decide: {:.0} % is allowed for disks, {:.0} % for \
             the network",
            TOLERANCE * 100.0,
            net::TOLERANCE * 100.0
        );
    }
    Ok(())
}

/// Where both measure.
struct Both<'a> {
    binary: &'a Path,
    folder: &'a Path,
    /// What holdall keeps of its reports.
    state: &'a Path,
}

impl Both<'_> {
    fn compare_all(&self, runs: u32) -> Result<Vec<Compared>> {
        let disk = cases().into_iter().map(|case| self.compare(&case, runs));
        let mut found = disk.collect::<Result<Vec<_>>>()?;
        found.extend(net::compare(self, runs)?);
        Ok(found)
    }

    /// holdall, with a history of its own.
    fn command(&self) -> Command {
        let mut command = Command::new(self.binary);
        command.env("HOLDALL_CONFIG_DIR", self.state);
        command
    }

    /// Measures one setting with both until it is decided, and prints how they compare.
    fn compare(&self, case: &Case, runs: u32) -> Result<Compared> {
        let (mut theirs, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            for run in 0..runs {
                if run % 2 == 0 {
                    theirs.push(fio::measure(self.folder, case)?);
                }
                ours.push(self.holdall(case)?);
                if run % 2 == 1 {
                    theirs.push(fio::measure(self.folder, case)?);
                }
            }
            if Ratio::of(&theirs, &ours).judged(TOLERANCE) != Compared::Undecided {
                break;
            }
        }
        let Case { operation, block, depth, .. } = case;
        let words = format!("{operation:<16} {block:>5} {depth:>6} {:<20}", case.words());
        Ok(print(&words, &theirs, &ours, TOLERANCE))
    }

    /// Bytes a second by holdall.
    fn holdall(&self, case: &Case) -> Result<f64> {
        case.warm_memory();
        let mut command = self.command();
        command.args(["lab", "disk", "--json", "--op", case.operation, "--block", case.block]);
        command.args(["--size", &case.bytes.to_string()]);
        command.args(["--queue-depth", &case.depth.to_string()]);
        command.arg(self.folder).arg(if case.direct { "--direct" } else { "--buffered" });
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
}

/// How both tools stand to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compared {
    /// As near as they have to be.
    Alike,
    /// Farther away, and by how far the runs are apart it may be chance.
    Undecided,
    /// Ours is not what the other tool measures.
    Apart,
}

/// How many times the other tool's figure ours is, by runs in pairs.
struct Ratio {
    runs: usize,
    median: f64,
    /// Between these it lies with a probability of 95 %, however the ratios are distributed; with fewer
    /// than [`FEWEST_TO_DIFFER`] runs these are the least and the most, and it is less sure.
    interval: (f64, f64),
}

impl Ratio {
    fn of(theirs: &[f64], ours: &[f64]) -> Self {
        let mut ratios: Vec<f64> = theirs.iter().zip(ours).map(|(t, o)| o / t).collect();
        ratios.sort_by(f64::total_cmp);
        let outside = outside(ratios.len());
        let at = |place: usize| ratios.get(place).copied().unwrap_or(f64::NAN);
        let interval = (at(outside), at(ratios.len().saturating_sub(outside + 1)));
        Self { runs: ratios.len(), median: median(&ratios), interval }
    }

    fn judged(&self, tolerance: f64) -> Compared {
        let (low, high) = self.interval;
        if (self.median - 1.0).abs() <= tolerance {
            Compared::Alike
        } else if self.runs < FEWEST_TO_DIFFER
            || (low <= 1.0 + tolerance && high >= 1.0 - tolerance)
        {
            Compared::Undecided
        } else {
            Compared::Apart
        }
    }
}

/// How many of `count` values in order lie below an interval that has their true median with a
/// probability of 95 %, and as many above: each value lies below the median as a coin falls.
fn outside(count: usize) -> usize {
    let mut chance = 0.5_f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let (mut below, mut left_out) = (chance, 0);
    while below <= 0.025 {
        left_out += 1;
        chance *= (count + 1 - left_out) as f64 / left_out as f64;
        below += chance;
    }
    left_out.saturating_sub(1)
}

/// Compares what both measured, in bytes a second, and prints it in a line that begins with `words`.
fn print(words: &str, theirs: &[f64], ours: &[f64], tolerance: f64) -> Compared {
    let ratio = Ratio::of(theirs, ours);
    let compared = ratio.judged(tolerance);
    let mark = match compared {
        Compared::Alike => "",
        Compared::Undecided => "  ?",
        Compared::Apart => "  !",
    };
    println!(
        "{words} {:>7.1} MB/s {:>7.1} MB/s {:>7.2}   {:.2}-{:.2}{mark}",
        median(theirs) / 1e6,
        median(ours) / 1e6,
        ratio.median,
        ratio.interval.0,
        ratio.interval.1
    );
    compared
}

/// Every order and way, small and large blocks; directly with one request and with many, and through
/// the cache.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for operation in ["read", "write", "randread", "randwrite"] {
        for block in ["4K", "128K"] {
            for (depth, direct) in [(1, true), (32, true), (1, false)] {
                // What goes through the cache once takes too short a time on less.
                let bytes = if direct && block == "4K" { 1 << 28 } else { 1 << 30 };
                cases.push(Case { operation, block, bytes, depth, direct });
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

    fn warm_memory(&self) {
        if !self.direct {
            memory::warm(MEMORY_OF_A_RUN * self.bytes);
        }
    }

    fn words(&self) -> &'static str {
        match (self.direct, self.writes()) {
            (true, _) => "direct",
            (false, true) => "buffered, fsync",
            (false, false) => "buffered",
        }
    }
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
    }

    #[test]
    fn the_interval_leaves_out_what_tables_of_the_sign_test_say() {
        let counts = [1, 5, 6, 8, 9, 15, 17, 25];
        assert_eq!(counts.map(outside), [0, 0, 0, 0, 1, 3, 4, 7]);
    }

    #[test]
    fn runs_are_compared_in_pairs() {
        // The disk is twice as fast in the second half, and both tools say so.
        let ratio =
            Ratio::of(&[100.0, 90.0, 200.0, 180.0, 220.0], &[102.0, 90.0, 200.0, 178.0, 224.0]);
        assert!((ratio.median - 1.0).abs() < 0.001, "{}", ratio.median);
        assert_eq!(ratio.judged(0.05), Compared::Alike);
    }

    #[test]
    fn what_may_be_chance_is_not_decided() {
        let judged = |ours: [f64; 6]| Ratio::of(&[100.0; 6], &ours).judged(0.1);
        assert_eq!(judged([91.0, 109.0, 109.0, 109.0, 150.0, 60.0]), Compared::Alike);
        assert_eq!(judged([109.0, 111.0, 111.0, 112.0, 130.0, 131.0]), Compared::Undecided);
        assert_eq!(judged([80.0, 81.0, 81.0, 81.0, 85.0, 91.0]), Compared::Undecided);
        assert_eq!(judged([111.0, 111.0, 111.0, 112.0, 130.0, 131.0]), Compared::Apart);
        assert_eq!(judged([70.0, 75.0, 80.0, 80.0, 85.0, 89.0]), Compared::Apart);
        // So it may fall in five runs, too, where both are alike.
        assert_eq!(Ratio::of(&[100.0; 5], &[128.0; 5]).judged(0.1), Compared::Undecided);
    }

    #[test]
    fn every_way_is_compared_directly_and_through_the_cache() {
        let cases = cases();
        assert_eq!(cases.len(), 4 * 2 * 3);
        assert!(cases.iter().any(|case| !case.direct && case.writes() && case.block == "4K"));
    }
}
