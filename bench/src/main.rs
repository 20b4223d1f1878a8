//! Measures holdall on data sets of its own making and prints one table.
//!
//! For each set a real server is started on loopback with an empty repository and a machine is
//! paired with it; then the set is backed up (first full), backed up again (unchanged), restored
//! and compared byte for byte, and backed up after 1 % of the files changed and 0.5 % were added.
//! Caches are warm throughout. Client, server and kernel share the computer's cores.

#![allow(clippy::print_stdout, reason = "a tool for a terminal")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Parser;

use dataset::Set;
use product::{Product, Run};
use report::{Measure, Row};
use workdir::WorkDir;

mod compare;
mod dataset;
mod generate;
mod mutate;
mod product;
mod random;
mod report;
mod text;
mod workdir;

/// Measures holdall: first full, unchanged, restore, changed.
#[derive(Parser)]
#[command(name = "cargo xtask bench", version)]
struct Args {
    /// Data sets to measure
    #[arg(value_enum, ignore_case = true, default_values = ["D1", "D2", "D4"])]
    sets: Vec<Set>,
    /// The binary to measure [default: the one built beside this program]
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Where data sets, repositories and restores go [default: a folder beside the build outputs]
    #[arg(long)]
    work: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<()> {
    let here = std::env::current_exe()?;
    let beside = here.parent().context("this program lies nowhere")?;
    let binary = args.binary.clone().unwrap_or_else(|| beside.join("holdall"));
    let binary = binary.canonicalize().with_context(|| format!("no binary at {binary:?}"))?;
    let work = args.work.clone().unwrap_or_else(|| beside.join("bench-work"));
    // The smoke test judges no figure, so it needs no file system of its own.
    let only_smoke = args.sets.iter().all(|set| *set == Set::T0);
    let work = if only_smoke { WorkDir::plain(&work)? } else { WorkDir::open(&work)? };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!("{cores} cores, {}, loopback, warm caches\n", work.file_system);
    let mut rows = Vec::new();
    let measured =
        args.sets.iter().try_for_each(|set| measure(*set, &binary, work.path(), &mut rows));
    println!("\n{}", report::table(&rows));
    work.close()?;
    measured
}

/// Measures one set and adds its rows; its folder is gone afterwards.
fn measure(set: Set, binary: &Path, work: &Path, rows: &mut Vec<Row>) -> Result<()> {
    let folder = work.join(set.name());
    if fs::exists(&folder)? {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {folder:?}"))?;
    }
    let measured = measure_in(set, binary, &folder, rows);
    let removed = fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {folder:?}"));
    measured.with_context(|| format!("{} was not measured to its end", set.name()))?;
    removed
}

fn measure_in(set: Set, binary: &Path, folder: &Path, rows: &mut Vec<Row>) -> Result<()> {
    let (source, restored) = (folder.join("source"), folder.join("restored"));
    let plan = set.plan();
    generate::generate(&source, &plan)?;
    let product = Product::start(binary, &folder.join("holdall"))?;
    // Reads everything once, so that the first measure is as warm as the others.
    compare::compare(&source, &source, &plan)?;

    let mut add = |measure: Measure, run: Run| -> Result<()> {
        let is_backup = measure != Measure::Restore;
        let stored_bytes = is_backup.then(|| product.stored_bytes()).transpose()?;
        let (files, bytes) = (plan.files.len() as u64, plan.total_bytes());
        let row = Row { set: set.name(), measure, files, bytes, run, stored_bytes };
        println!("{}", report::line(&row));
        rows.push(row);
        Ok(())
    };
    add(Measure::FirstFull, product.backup(&source)?)?;
    add(Measure::Unchanged, product.backup(&source)?)?;
    add(Measure::Restore, product.restore(&source, &restored)?)?;
    compare::compare(&source, &restored, &plan).context("the restore is not identical")?;
    fs::remove_dir_all(&restored)?;
    let changed_bytes = mutate::mutate(&source, &plan, plan.seed + 1000)?;
    ensure!(changed_bytes > 0, "nothing was changed");
    add(Measure::Changed, product.backup(&source)?)
}
