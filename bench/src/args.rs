//! The command line, and the command line that repeats a session on another computer.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::dataset::Set;
use crate::growth::Size;
use crate::link::LinkKind;
use crate::measure::Measure;
use crate::peers::Tool;

/// Measures holdall, alone or against its peers: first full, unchanged, restore, changed.
#[derive(Parser)]
#[command(name = "cargo xtask bench", version, args_conflicts_with_subcommands = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,
    #[command(flatten)]
    pub(crate) compare: CompareArgs,
}

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Makes RESULTS.md and its charts from what --save kept
    Report(ReportArgs),
    /// Measures how time and memory grow with the number of files
    Growth(GrowthArgs),
    /// Puts the lab's figures beside those of fio and iperf3
    Lab(LabArgs),
}

#[derive(Args)]
pub(crate) struct CompareArgs {
    /// Data sets to measure
    #[arg(value_enum, ignore_case = true, default_values = ["D1", "D2", "D4"])]
    pub(crate) sets: Vec<Set>,
    /// Measures these tools too, in turns
    #[arg(long, value_enum, value_delimiter = ',', value_name = "TOOLS")]
    pub(crate) against: Vec<Tool>,
    /// Runs of each tool, each with an empty repository
    #[arg(long, default_value_t = 1)]
    pub(crate) runs: u32,
    /// What to measure [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "MEASURES")]
    pub(crate) measure: Vec<Measure>,
    /// Measures beside each restore what two threads reach that only create, write and set times
    #[arg(long)]
    pub(crate) writers: bool,
    /// What lies between: loopback, 1gbit, 2x1gbit (any RATE), 100ms (any round trip), 10mbit+100ms
    #[arg(long, default_value = "loopback")]
    pub(crate) link: LinkKind,
    /// Holds client and server to this share of a core each
    #[arg(long, value_name = "SHARE")]
    pub(crate) cpu: Option<f64>,
    /// Where peers are looked for before PATH
    #[arg(long, value_delimiter = ':', value_name = "DIRS")]
    pub(crate) peers_bin: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Args)]
pub(crate) struct GrowthArgs {
    /// The largest number of files
    #[arg(long, value_enum, default_value = "1M", value_name = "FILES")]
    pub(crate) up_to: Size,
    /// Runs of each size, each with an empty repository
    #[arg(long, default_value_t = 1)]
    pub(crate) runs: u32,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Args)]
pub(crate) struct Place {
    /// Appends every row to this file, as JSON Lines
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// The binary to measure [default: the one built beside this program]
    #[arg(long)]
    pub(crate) binary: Option<PathBuf>,
    /// Where data sets, repositories and restores go [default: a folder beside the build outputs]
    #[arg(long)]
    pub(crate) work: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct LabArgs {
    /// The directory to measure, on a real disk
    pub(crate) dir: PathBuf,
    /// Runs of each, in turns
    #[arg(long, default_value_t = 5)]
    pub(crate) runs: u32,
    /// The binary to measure [default: the one built beside this program]
    #[arg(long)]
    pub(crate) binary: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct ReportArgs {
    /// What --save kept
    pub(crate) file: PathBuf,
    /// The folder for RESULTS.md and the charts [default: that of the benchmark's source]
    #[arg(long)]
    pub(crate) out: Option<PathBuf>,
}

impl CompareArgs {
    /// What was asked for, in the order of a run.
    pub(crate) fn measures(&self) -> Vec<Measure> {
        let is_asked =
            |measure: &Measure| self.measure.is_empty() || self.measure.contains(measure);
        Measure::ALL.into_iter().filter(is_asked).collect()
    }

    /// holdall and those that it is measured against.
    pub(crate) fn tools(&self) -> Vec<Tool> {
        let peers = self.against.iter().copied().filter(|tool| *tool != Tool::Holdall);
        [Tool::Holdall].into_iter().chain(peers).collect()
    }

    /// The command that repeats this session, without what is particular to this computer.
    pub(crate) fn command(&self) -> String {
        let mut words = vec!["cargo xtask bench".to_owned()];
        words.extend(self.sets.iter().map(|set| set.name().to_owned()));
        let tools: Vec<String> = self.against.iter().map(|tool| tool.name()).collect();
        if !tools.is_empty() {
            words.push(format!("--against {}", tools.join(",")));
        }
        words.push(format!("--runs {}", self.runs));
        if !self.measure.is_empty() {
            let names: Vec<&str> = self.measures().iter().map(|measure| measure.name()).collect();
            words.push(format!("--measure {}", names.join(",")));
        }
        if self.writers {
            words.push("--writers".to_owned());
        }
        if self.link != LinkKind::Loopback {
            words.push(format!("--link {}", self.link));
        }
        words.extend(self.cpu.map(|share| format!("--cpu {share}")));
        words.extend(self.place.saving());
        words.join(" ")
    }
}

impl GrowthArgs {
    /// The command that repeats this session, without what is particular to this computer.
    pub(crate) fn command(&self) -> String {
        let sizes = format!("--up-to {} --runs {}", self.up_to.name(), self.runs);
        let words = ["cargo xtask bench growth".to_owned(), sizes];
        words.into_iter().chain(self.place.saving()).collect::<Vec<_>>().join(" ")
    }
}

impl Place {
    fn saving(&self) -> Option<String> {
        let name = self.save.as_ref()?.file_name()?;
        Some(format!("--save {}", name.to_string_lossy()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(words: &str) -> CompareArgs {
        Cli::parse_from(words.split_whitespace()).compare
    }

    #[test]
    fn a_command_repeats_itself_without_folders() {
        let typed = "bench d1 D4 --against bupstash,restic-tls --runs 3 --measure restore,first \
                     --writers --link 2x1gbit --cpu 0.5 --peers-bin /a:/b --save /c/rows.jsonl --work /d";
        let repeated = "cargo xtask bench D1 D4 --against bupstash,restic-tls --runs 3 \
                        --measure first,restore --writers --link 2x1gbit --cpu 0.5 --save rows.jsonl";
        assert_eq!(compare(typed).command(), repeated);
        assert_eq!(compare(typed).peers_bin.len(), 2);
    }

    #[test]
    fn alone_and_with_everything_is_the_default() {
        let args = compare("bench T0");
        assert_eq!(args.tools(), [Tool::Holdall]);
        assert_eq!(args.measures(), Measure::ALL);
        assert_eq!(compare("bench").sets, [Set::D1, Set::D2, Set::D4]);
        assert!(matches!(Cli::parse_from(["bench", "report", "f"]).verb, Some(Verb::Report(_))));
    }
}
