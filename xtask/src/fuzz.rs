//! `cargo xtask fuzz`: hostile input for every decoder, for as long as one likes.
//!
//! The targets are in `fuzz/`, one for each decoder, and need a nightly compiler. They start from
//! the golden vectors and from what `fuzz/corpus` has for them. What reaches new code stays in
//! `target/fuzz/found`, and what breaks a target in `fuzz/artifacts`: whoever repairs that puts it into
//! the corpus, whose inputs are all tried by the tests of every change.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::tools::FUZZ;
use crate::{check, root};

/// Seconds for each target.
const SECONDS: u32 = 60;

/// Fuzzes the target named in `args`, or each in turn, for the seconds behind `--seconds`.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let (target, seconds) = parse(args)?;
    let targets = targets()?;
    if let Some(target) = &target
        && !targets.contains(target)
    {
        bail!("no fuzz target {target:?}; there are: {}", targets.join(", "));
    }
    let fuzz = FUZZ.program()?;
    let seeds = write_seeds()?;
    for name in target.as_ref().map_or(&targets[..], std::slice::from_ref) {
        let found = root().join("target/fuzz/found").join(name);
        fs::create_dir_all(&found).with_context(|| format!("cannot make {found:?}"))?;
        let mut command = nightly(&fuzz, &["fuzz", "run", "--target-dir", "target/fuzz", name]);
        // The first folder takes what is found, the others are only read.
        command.args([&found, &root().join("fuzz/corpus").join(name), &seeds]);
        command.arg("--").arg(format!("-max_total_time={seconds}"));
        println!("fuzz: {name}, {seconds} seconds");
        check(&mut command)?;
    }
    Ok(())
}

fn parse(args: &[String]) -> Result<(Option<String>, u32)> {
    let (mut target, mut seconds) = (None, SECONDS);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--seconds" => {
                let value = args.next().context("--seconds takes a number")?;
                seconds = value.parse().with_context(|| format!("not a number: {value:?}"))?;
            }
            _ if target.is_none() && !arg.starts_with('-') => target = Some(arg.clone()),
            _ => bail!("usage: cargo xtask fuzz [TARGET] [--seconds N]"),
        }
    }
    Ok((target, seconds))
}

/// The names of all targets, sorted.
fn targets() -> Result<Vec<String>> {
    let folder = root().join("fuzz/fuzz_targets");
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("cannot list {folder:?}"))? {
        let path = entry?.path();
        names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}

/// A nightly cargo with a subcommand's program, in the workspace's root; the toolchain of this process would win
/// otherwise.
#[expect(clippy::disallowed_methods, reason = "cargo finds its subcommands by the environment")]
fn nightly(program: &Path, args: &[&str]) -> Command {
    let mut places: Vec<PathBuf> = program.parent().map(Path::to_owned).into_iter().collect();
    places.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo"]).args(args).current_dir(root());
    command.envs(std::env::join_paths(places).ok().map(|places| ("PATH", places)));
    command
}

/// Writes every golden vector as a file of its own and gives their folder.
fn write_seeds() -> Result<PathBuf> {
    let seeds = root().join("target/fuzz/seeds");
    fs::create_dir_all(&seeds).with_context(|| format!("cannot make {seeds:?}"))?;
    for entry in fs::read_dir(root().join("golden")).context("cannot list golden")? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "txt") {
            continue;
        }
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path:?}"))?;
        for (number, vector) in vectors(&text).into_iter().enumerate() {
            fs::write(seeds.join(seed_name(&path, number)), vector)?;
        }
    }
    Ok(seeds)
}

fn seed_name(path: &Path, number: usize) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    format!("{stem}-{number}")
}

/// The vectors of a golden file: what is hexadecimal at the end of each line.
fn vectors(text: &str) -> Vec<Vec<u8>> {
    let last_words = text.lines().filter_map(|line| line.split_whitespace().next_back());
    last_words.filter_map(from_hex).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_has_its_place_in_the_manifest() {
        let manifest = fs::read_to_string(root().join("fuzz/Cargo.toml")).unwrap();
        let listed: Vec<&str> = manifest
            .lines()
            .filter_map(|line| line.strip_prefix("path = \"fuzz_targets/")?.strip_suffix(".rs\""))
            .collect();
        assert_eq!(listed, targets().unwrap());
    }

    #[test]
    fn seeds_are_the_vectors_of_golden_files() {
        assert_eq!(vectors("# words\nname = 00ff\n  body 0a\n"), [vec![0, 255], vec![10]]);
    }

    #[test]
    fn arguments_are_a_target_and_seconds() {
        let parse = |line: &str| parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(parse("table --seconds 5").unwrap(), (Some("table".into()), 5));
        assert_eq!(parse("--seconds 5").unwrap(), (None, 5));
        assert!(parse("--seconds x").is_err() && parse("a b").is_err());
    }
}
