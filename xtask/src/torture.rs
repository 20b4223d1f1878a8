//! `cargo xtask torture [PART]`: what takes far longer than `test`, and wants a computer of its own.

use anyhow::{Context, Result};

use crate::{bench, cargo, check, components, root};

/// Tests that are told by variables how long to go on.
struct Part {
    name: &'static str,
    package: &'static str,
    /// Which of its tests, as cargo is told.
    target: &'static [&'static str],
    /// What the names of its tests contain.
    tests: &'static str,
    settings: &'static [(&'static str, &'static str)],
}

const IT: &[&str] = &["--test", "it"];

const PARTS: [Part; 15] = [
    // 250 MB are killed each time, which takes 40 GB of disk in all; `cargo xtask test` takes far less.
    Part {
        name: "kill",
        package: "holdall",
        target: IT,
        tests: "kill",
        settings: &[("HOLDALL_KILLS", "50"), ("HOLDALL_KILL_BYTES", "250000000")],
    },
    // Each kill leaves 1.2 snapshots behind, those of the runs between them too: 60 GB of disk in all.
    Part {
        name: "kill-often",
        package: "holdall",
        target: IT,
        tests: "kill",
        settings: &[("HOLDALL_KILLS", "2000"), ("HOLDALL_KILL_BYTES", "25000000")],
    },
    Part {
        name: "power",
        package: "holdall-repository",
        target: &["--test", "faults"],
        tests: "power::",
        settings: &[("HOLDALL_POWER_STATES", "100000")],
    },
    Part {
        name: "rot",
        package: "holdall-repository",
        target: &["--test", "faults"],
        tests: "rot::",
        settings: &[("HOLDALL_ROTS", "4000000")],
    },
    Part {
        name: "calls",
        package: "holdall",
        target: IT,
        tests: "nth_call",
        settings: &[("HOLDALL_FAULTS", "all")],
    },
    Part {
        name: "sleepers",
        package: "holdall",
        target: IT,
        tests: "sleepers",
        settings: &[("HOLDALL_SLEEPS", "1")],
    },
    Part {
        name: "soak",
        package: "holdall",
        target: IT,
        tests: "soak",
        settings: &[("HOLDALL_SOAK_SECONDS", "3600")],
    },
    Part {
        name: "year",
        package: "holdall-engine",
        target: IT,
        tests: "year",
        settings: &[("HOLDALL_YEAR_DAYS", "365"), ("HOLDALL_YEAR_HOURS", "1")],
    },
    // What limits a run is another thing while other tests take the processor.
    Part {
        name: "verdicts",
        package: "holdall",
        target: &["--features", "verdicts", "--test", "it"],
        tests: "verdicts",
        settings: &[],
    },
    Part {
        name: "random-cuts",
        package: "holdall",
        target: IT,
        tests: "cuts::large",
        settings: &[("HOLDALL_RANDOM_CUTS", "5000")],
    },
    Part {
        name: "drips",
        package: "holdall",
        target: IT,
        tests: "drips",
        settings: &[("HOLDALL_DRIPS", "10000")],
    },
    Part {
        name: "hostile",
        package: "holdall-engine",
        target: &["--lib"],
        tests: "restore::hostile",
        settings: &[("HOLDALL_HOSTILE_SWAPS", "1000000")],
    },
    Part {
        name: "stuck",
        package: "holdall-crypto",
        target: IT,
        tests: "stuck",
        settings: &[("HOLDALL_STUCK_BLOCKS", "10000000")],
    },
    Part {
        name: "mutated",
        package: "holdall-server",
        target: IT,
        tests: "mutated",
        settings: &[("HOLDALL_MUTATED_REQUESTS", "100000")],
    },
    Part {
        name: "inputs",
        package: "holdall-engine",
        target: &["--test", "hostile_input"],
        tests: "changed_vectors",
        settings: &[("HOLDALL_HOSTILE_INPUTS", "1000000")],
    },
];

/// Runs one part on a release build, or all, or the comparison of the lab in a folder.
pub(crate) fn run(args: &[String]) -> Result<()> {
    match args {
        [] => {
            components::ensure()?;
            PARTS.iter().try_for_each(run_part)
        }
        [what, rest @ ..] if what == "lab" && rest.len() < 2 => {
            components::ensure()?;
            let own = root().join("target").display().to_string();
            bench::run(&[what.clone(), rest.first().cloned().unwrap_or(own)])
        }
        [name, ..] => {
            components::ensure()?;
            let names = PARTS.map(|part| part.name).join(", ");
            let part = PARTS.iter().find(|part| part.name == name);
            run_part(part.with_context(|| format!("no part {name:?}: there are lab, {names}"))?)
        }
    }
}

fn run_part(part: &Part) -> Result<()> {
    let Part { package, target, tests, settings, .. } = part;
    let mut command = cargo(&["test", "--release", "--locked", "--package", package]);
    command.args(*target).args([tests, "--", "--nocapture"]).envs(settings.iter().copied());
    // What this computer can not do is a failure: nothing would be shown by leaving it out.
    command.env("CI", "true");
    check(&mut command)
}
