//! `cargo xtask torture`: the whole of the tests of which a change meets a slice, on a release build. It takes hours
//! and wants a computer of its own.
//!
//! With a budget of time it does what fits into it, piece by piece, and the next budget goes on from there: the
//! part that had the least time so far has its next piece.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::tools::NEXTEST;
use crate::{bench, check, components, root};

/// Where it is noted how far the parts came: for each a line of its name, its next piece and its seconds so far.
const PROGRESS: &str = "target/torture.tsv";

/// Tests that are told by variables how long to go on.
struct Part {
    name: &'static str,
    package: &'static str,
    /// In which of its binaries, as cargo is told.
    target: &'static [&'static str],
    /// What the names of its tests begin with, as a regular expression.
    tests: &'static str,
    settings: &'static [(&'static str, &'static str)],
    /// What it is cut into for a budget, each of some minutes.
    pieces: u64,
}

const IT: &[&str] = &["--test", "it"];

const PARTS: [Part; 24] = [
    // 250 MB are killed each time, which takes 40 GB of disk in all; `cargo xtask test` takes far less.
    Part {
        name: "kill",
        package: "holdall",
        target: IT,
        tests: "kill::",
        settings: &[("HOLDALL_KILLS", "50"), ("HOLDALL_KILL_BYTES", "250000000")],
        pieces: 5,
    },
    // Each kill leaves 1.2 snapshots behind, those of the runs between them too: 60 GB of disk in all.
    Part {
        name: "kill-often",
        package: "holdall",
        target: IT,
        tests: "kill::whatever|kill::a_prune",
        settings: &[("HOLDALL_KILLS", "2000"), ("HOLDALL_KILL_BYTES", "25000000")],
        pieces: 40,
    },
    // Fifty machines with twenty thousand snapshots; every page below 50 ms.
    Part {
        name: "pages",
        package: "holdall-server",
        target: &["--test", "it", "--features", "web"],
        tests: "pages_speed::",
        settings: &[("HOLDALL_PAGES_MACHINES", "50"), ("HOLDALL_PAGES_SNAPSHOTS", "400")],
        pieces: 1,
    },
    Part {
        name: "power",
        package: "holdall-repository",
        target: &["--test", "faults"],
        tests: "power::",
        settings: &[("HOLDALL_POWER_STATES", "100000")],
        pieces: 5,
    },
    Part {
        name: "restore-cuts",
        package: "holdall",
        target: IT,
        tests: "restore_cuts::",
        settings: &[],
        pieces: 1,
    },
    Part {
        name: "rot",
        package: "holdall-repository",
        target: &["--test", "faults"],
        tests: "rot::",
        settings: &[("HOLDALL_ROTS", "4000000")],
        pieces: 30,
    },
    Part {
        name: "calls",
        package: "holdall",
        target: IT,
        tests: "(nth_call|nth_call_served)::whichever",
        settings: &[("HOLDALL_FAULTS", "all")],
        pieces: 40,
    },
    Part {
        name: "storage-calls",
        package: "holdall-repository",
        target: &["--lib"],
        tests: "failing_calls::",
        settings: &[],
        pieces: 4,
    },
    Part {
        name: "foreign",
        package: "holdall",
        target: IT,
        tests: "foreign::",
        settings: &[],
        pieces: 1,
    },
    Part {
        name: "sleepers",
        package: "holdall",
        target: IT,
        tests: "sleepers::",
        settings: &[],
        pieces: 2,
    },
    Part {
        name: "soak",
        package: "holdall",
        target: IT,
        tests: "soak::",
        settings: &[("HOLDALL_SOAK_SECONDS", "3600")],
        pieces: 12,
    },
    // Five times ten thousand steps of somebody who works, with a run after each twenty.
    Part {
        name: "journal",
        package: "holdall-engine",
        target: IT,
        tests: "journal::",
        settings: &[("HOLDALL_JOURNAL_STEPS", "50000")],
        pieces: 5,
    },
    Part {
        name: "year",
        package: "holdall-engine",
        target: IT,
        tests: "year::",
        settings: &[("HOLDALL_YEAR_DAYS", "365"), ("HOLDALL_YEAR_HOURS", "1")],
        pieces: 1,
    },
    // What limits a run is another thing while other tests take the processor.
    Part {
        name: "verdicts",
        package: "holdall",
        target: &["--features", "verdicts", "--test", "it"],
        tests: "verdicts::",
        settings: &[],
        pieces: 1,
    },
    Part {
        name: "random-cuts",
        package: "holdall",
        target: IT,
        tests: "cuts::large",
        settings: &[("HOLDALL_RANDOM_CUTS", "5000")],
        pieces: 8,
    },
    Part {
        name: "drips",
        package: "holdall",
        target: IT,
        tests: "drips::",
        settings: &[("HOLDALL_DRIPS", "10000")],
        pieces: 1,
    },
    Part {
        name: "hostile",
        package: "holdall-engine",
        target: &["--lib"],
        tests: "restore::hostile::",
        settings: &[("HOLDALL_HOSTILE_SWAPS", "1000000")],
        pieces: 5,
    },
    Part {
        name: "stuck",
        package: "holdall-crypto",
        target: IT,
        tests: "stuck::",
        settings: &[("HOLDALL_STUCK_BLOCKS", "10000000")],
        pieces: 1,
    },
    Part {
        name: "mutated",
        package: "holdall-server",
        target: IT,
        tests: "evil_client::mutated::",
        settings: &[("HOLDALL_MUTATED_REQUESTS", "100000")],
        pieces: 1,
    },
    Part {
        name: "inputs",
        package: "holdall-engine",
        target: &["--test", "hostile_input"],
        tests: "no_decoder_panics",
        settings: &[("HOLDALL_HOSTILE_INPUTS", "1000000")],
        pieces: 30,
    },
    Part {
        name: "cuts",
        package: "holdall",
        target: IT,
        tests: "cuts::a_small",
        settings: &[],
        pieces: 2,
    },
    // The waits of a real client, which `cargo xtask test` shortens.
    Part {
        name: "stalled",
        package: "holdall",
        target: IT,
        tests: "stalled::",
        settings: &[],
        pieces: 1,
    },
    Part {
        name: "trees",
        package: "holdall",
        target: IT,
        tests: "(try_it|fidelity)::.*comes_back",
        settings: &[],
        pieces: 1,
    },
    Part {
        name: "accounts",
        package: "holdall-server",
        target: &["--lib"],
        tests: "accounts::power::",
        settings: &[],
        pieces: 1,
    },
];

/// Runs the parts that are named, or all, whole or within a budget; or the comparison of the lab in a folder.
pub(crate) fn run(args: &[String]) -> Result<()> {
    components::ensure()?;
    if let [what, rest @ ..] = args
        && what == "lab"
        && rest.len() < 2
    {
        let own = root().join("target").display().to_string();
        return bench::run(&[what.clone(), rest.first().cloned().unwrap_or(own)]);
    }
    let (parts, budget) = parse(args)?;
    match budget {
        None => {
            let failed = parts.into_iter().filter(|part| !is_passed(part, 0, 1));
            report(failed.map(|part| part.name.to_owned()).collect())
        }
        Some(budget) => run_within(&parts, budget),
    }
}

fn parse(args: &[String]) -> Result<(Vec<&'static Part>, Option<Duration>)> {
    let (mut parts, mut budget) = (Vec::new(), None);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if arg == "--budget" {
            let text = args.next().context("--budget takes a time, such as 60m")?;
            budget =
                Some(time(text).with_context(|| format!("not a time, such as 60m: {text:?}"))?);
            continue;
        }
        let names = PARTS.map(|part| part.name).join(", ");
        let part = PARTS.iter().find(|part| part.name == arg);
        parts.push(part.with_context(|| format!("no part {arg:?}: there are lab, {names}"))?);
    }
    if parts.is_empty() {
        parts = PARTS.iter().collect();
    }
    Ok((parts, budget))
}

/// A time such as `90s`, `60m` or `2h`.
fn time(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return None,
    };
    Some(Duration::from_secs(number.parse::<u64>().ok()?.checked_mul(seconds)?))
}

/// Whether one piece of a part passes; says why not.
fn is_passed(part: &Part, piece: u64, pieces: u64) -> bool {
    let outcome = run_part(part, piece, pieces);
    if let Err(error) = &outcome {
        println!("torture: {}: {error:#}", part.name);
    }
    outcome.is_ok()
}

/// Fails if anything did.
fn report(failed: Vec<String>) -> Result<()> {
    if failed.is_empty() { Ok(()) } else { bail!("torture found something: {}", failed.join(", ")) }
}

/// Runs pieces until the time is over; the last one is run to its end. A piece that fails is the next one of its part
/// again, but the others have their time too.
fn run_within(parts: &[&Part], budget: Duration) -> Result<()> {
    let began = Instant::now();
    let (mut progress, mut failed) = (Progress::read()?, Vec::new());
    while began.elapsed() < budget {
        let part = progress.next(parts).context("there is no part")?;
        let (piece, piece_began) = (progress.of(part).next_piece, Instant::now());
        let passed = is_passed(part, piece, part.pieces);
        if !passed {
            failed.push(format!("{}, piece {}", part.name, piece % part.pieces));
        }
        progress.add(part, piece_began.elapsed(), passed);
        progress.write()?;
    }
    for part in parts {
        let Done { next_piece, seconds } = progress.of(part);
        let (rounds, piece) = (next_piece / part.pieces, next_piece % part.pieces);
        println!(
            "{:12} {rounds} times whole, then {piece} of {}; {seconds} s in all",
            part.name, part.pieces
        );
    }
    report(failed)
}

/// Runs one piece of a part.
fn run_part(part: &Part, piece: u64, pieces: u64) -> Result<()> {
    let Part { name, package, target, tests, settings, .. } = part;
    println!("torture: {name}, piece {} of {pieces}", piece % pieces);
    let args = ["run", "--profile", "torture", "--cargo-profile", "release", "--locked"];
    let mut command = NEXTEST.command(&args)?;
    command.args(["--no-capture", "--package", package]).args(*target);
    command.arg("-E").arg(format!("test(/^({tests})/)"));
    command.env("HOLDALL_SLICE", format!("{piece}/{pieces}")).envs(settings.iter().copied());
    // What this computer cannot do is a failure: nothing would be shown by leaving it out.
    command.env("CI", "true");
    check(&mut command)
}

/// What was done of a part.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Done {
    /// Behind the last piece are the pieces once more, what is drawn at random by other seeds.
    next_piece: u64,
    seconds: u64,
}

/// How far the parts came, by their names.
#[derive(Debug, Default, PartialEq, Eq)]
struct Progress(BTreeMap<String, Done>);

impl Progress {
    fn file() -> PathBuf {
        root().join(PROGRESS)
    }

    fn read() -> Result<Self> {
        let file = Self::file();
        match fs::read_to_string(&file) {
            Ok(text) => {
                Self::parse(&text).with_context(|| format!("{file:?} is damaged: remove it"))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => bail!("cannot read {file:?}: {error}"),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let line = |line: &str| {
            let mut words = line.split('\t');
            let name = words.next()?.to_owned();
            let done = Done {
                next_piece: words.next()?.parse().ok()?,
                seconds: words.next()?.parse().ok()?,
            };
            Some((name, done))
        };
        text.lines().map(line).collect::<Option<_>>().map(Self)
    }

    fn text(&self) -> String {
        let line = |(name, done): (&String, &Done)| {
            format!("{name}\t{}\t{}\n", done.next_piece, done.seconds)
        };
        self.0.iter().map(line).collect()
    }

    fn write(&self) -> Result<()> {
        let file = Self::file();
        fs::create_dir_all(root().join("target")).context("cannot make target")?;
        fs::write(&file, self.text()).with_context(|| format!("cannot write {file:?}"))
    }

    fn of(&self, part: &Part) -> Done {
        self.0.get(part.name).copied().unwrap_or_default()
    }

    /// The part that had the least time so far.
    fn next<'a>(&self, parts: &[&'a Part]) -> Option<&'a Part> {
        parts.iter().copied().min_by_key(|part| self.of(part).seconds)
    }

    fn add(&mut self, part: &Part, took: Duration, passed: bool) {
        let done = self.0.entry(part.name.to_owned()).or_default();
        done.next_piece += u64::from(passed);
        // A part that takes no time would be next for ever.
        done.seconds += took.as_secs().max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn parts_and_a_budget_are_named_in_any_order() {
        let (parts, budget) = parse(&words("--budget 60m kill rot")).unwrap();
        assert_eq!(parts.iter().map(|part| part.name).collect::<Vec<_>>(), ["kill", "rot"]);
        assert_eq!(budget, Some(Duration::from_secs(3600)));
        let (all, none) = parse(&[]).unwrap();
        assert_eq!((all.len(), none), (PARTS.len(), None));
        for wrong in ["no-part", "--budget", "--budget 60", "--budget m", "--budget 1d"] {
            assert!(parse(&words(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_budget_goes_on_where_the_last_one_stopped_and_gives_each_part_its_time() {
        let (parts, _) = parse(&words("kill rot")).unwrap();
        let mut progress = Progress::default();
        let run = |progress: &mut Progress, seconds| {
            let part = progress.next(&parts).unwrap();
            progress.add(part, Duration::from_secs(seconds), true);
            part.name
        };
        assert_eq!(
            [100, 30, 30, 50].map(|took| run(&mut progress, took)),
            ["kill", "rot", "rot", "rot"]
        );
        let mut again = Progress::parse(&progress.text()).unwrap();
        assert_eq!(again, progress);
        assert_eq!(run(&mut again, 1), "kill");
        assert_eq!(again.of(parts[0]), Done { next_piece: 2, seconds: 101 });
        again.add(parts[1], Duration::from_secs(5), false);
        assert_eq!(again.of(parts[1]), Done { next_piece: 3, seconds: 115 }, "the piece failed");
        assert_eq!(Progress::parse("kill\t1\n"), None);
    }
}
