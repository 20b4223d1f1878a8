//! Measures holdall, alone or against its peers, on data sets of its own making.
//!
//! For each set, run and tool a real server is started with an empty repository; then the set is
//! backed up (first full), backed up again (unchanged), restored and compared byte for byte, and
//! backed up after 1 % of the files changed and 0.5 % were added. Caches are warm throughout.
//! Client, server and kernel share the computer's cores.

#![allow(clippy::print_stdout, reason = "a tool for a terminal")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Parser;

use args::{Cli, CompareArgs, GrowthArgs, LabArgs, Place, ReportArgs, Verb};
use dataset::Set;
use link::{Link, LinkKind, Site};
use machine::Machine;
use measure::Measure;
use peers::{Binaries, Tool};
use record::{Record, Row, Session, Sink};
use session::Bench;
use share::CpuShare;
use workdir::{Room, WorkDir};

mod args;
mod command;
mod compare;
mod dataset;
mod generate;
mod growth;
mod lab;
mod link;
mod machine;
mod measure;
mod mutate;
mod peers;
mod processes;
mod random;
mod record;
mod report;
mod server;
mod session;
mod share;
mod stage;
mod text;
mod tls;
mod workdir;
mod writers;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match &cli.verb {
        None => compare_tools(&cli.compare),
        Some(Verb::Report(args)) => write_report(args),
        Some(Verb::Growth(args)) => measure_growth(args),
        Some(Verb::Lab(args)) => compare_lab(args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn compare_tools(args: &CompareArgs) -> Result<()> {
    let binaries = Binaries {
        holdall: binary(args.place.binary.as_deref())?,
        folders: args.peers_bin.clone(),
    };
    let site = open_site(args.link, args.cpu)?;
    let tools = usable(args.tools(), &binaries, &site)?;
    // The smoke test judges no figure, so it needs no file system of its own.
    let only_smoke = args.sets.iter().all(|set| *set == Set::T0);
    let folder = work_folder(&args.place)?;
    let work =
        if only_smoke { WorkDir::plain(&folder)? } else { WorkDir::open(&folder, Room::USUAL)? };
    let sink = begin(&args.place, args.command(), &work, &site)?;
    let ceiling = site.link.ceiling()?;
    if let Some(ceiling) = &ceiling {
        let (up, down) = (ceiling.up_bytes_per_second, ceiling.down_bytes_per_second);
        println!("iperf3: {:.4} MB/s up, {:.4} MB/s down\n", up / 1e6, down / 1e6);
        sink.add(&Record::Link(ceiling.clone()))?;
    }
    let (measures, runs) = (possible(args.measures(), &site), args.runs);
    let bench = Bench {
        work: work.path(),
        site: &site,
        ceiling,
        binaries,
        tools,
        writers: args.writers,
        measures,
        runs,
        sink,
    };
    let mut rows = Vec::new();
    let measure = |set: &Set| bench.measure(set.name(), &set.plan(), &mut rows);
    let measured = args.sets.iter().try_for_each(measure);
    finish(&rows, measured, work)
}

fn measure_growth(args: &GrowthArgs) -> Result<()> {
    let binaries = Binaries { holdall: binary(args.place.binary.as_deref())?, folders: Vec::new() };
    let site = open_site(LinkKind::Loopback, None)?;
    let folder = work_folder(&args.place)?;
    let room = args.up_to.room();
    growth::ensure_room(&folder, room)?;
    let work = WorkDir::open(&folder, room)?;
    let sink = begin(&args.place, args.command(), &work, &site)?;
    let bench = Bench {
        work: work.path(),
        site: &site,
        ceiling: None,
        binaries,
        tools: vec![Tool::Holdall],
        writers: false,
        measures: growth::MEASURES.to_vec(),
        runs: args.runs,
        sink,
    };
    let mut rows = Vec::new();
    let measured = growth::measure(&bench, args.up_to, &mut rows);
    finish(&rows, measured, work)
}

fn compare_lab(args: &LabArgs) -> Result<()> {
    lab::compare(&binary(args.binary.as_deref())?, &args.dir, args.runs)
}

fn write_report(args: &ReportArgs) -> Result<()> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    report::write(&args.file, args.out.as_deref().unwrap_or(own))
}

fn open_site(link: LinkKind, cpu: Option<f64>) -> Result<Site> {
    Ok(Site { link: Link::open(link)?, share: cpu.map(CpuShare::make).transpose()? })
}

/// Those of `tools` that are installed and can use the link.
fn usable(tools: Vec<Tool>, binaries: &Binaries, site: &Site) -> Result<Vec<Tool>> {
    ensure!(
        tools.len() == 1 || !site.link.is_for_holdall_only(),
        "only holdall can use several links: leave --against out"
    );
    let is_there = |tool: &Tool| {
        let is_there = tool.contender(binaries).is_some();
        if !is_there {
            println!("{} is not installed (or what it needs), and skipped", tool.name());
        }
        is_there
    };
    Ok(tools.into_iter().filter(is_there).collect())
}

/// Those of `measures` that use all of the link: a restore takes the first of several.
fn possible(mut measures: Vec<Measure>, site: &Site) -> Vec<Measure> {
    if site.link.is_for_holdall_only() && measures.contains(&Measure::Restore) {
        println!("a restore uses one link only, and is skipped");
        measures.retain(|measure| *measure != Measure::Restore);
    }
    measures
}

/// Says and records where and how this session measures.
fn begin(place: &Place, command: String, work: &WorkDir, site: &Site) -> Result<Sink> {
    let machine = Machine::here(&work.file_system);
    println!("{}, {}, warm caches\n", machine.words(), site.name());
    let sink = Sink::new(place.save.clone());
    let date = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
    sink.add(&Record::Session(Session { date, command, machine }))?;
    Ok(sink)
}

fn finish(rows: &[Row], measured: Result<()>, work: WorkDir) -> Result<()> {
    println!("\n{}", report::console::table(rows));
    work.close()?;
    measured
}

fn beside() -> Result<PathBuf> {
    let here = std::env::current_exe()?;
    Ok(here.parent().context("this program lies nowhere")?.to_path_buf())
}

fn binary(asked: Option<&Path>) -> Result<PathBuf> {
    let binary = match asked {
        Some(binary) => binary.to_owned(),
        None => beside()?.join("holdall"),
    };
    binary.canonicalize().with_context(|| format!("no binary at {binary:?}"))
}

fn work_folder(place: &Place) -> Result<PathBuf> {
    Ok(match &place.work {
        Some(work) => work.clone(),
        None => beside()?.join("bench-work"),
    })
}
