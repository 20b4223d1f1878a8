//! The tools that are measured, each behind one trait; a new one is a file here and a line below.
//!
//! All run with their defaults, over the network, against a server of their own kind. What a tool
//! starts, it starts through the [`Stage`].

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use clap::ValueEnum;
use serde_json::Value;

use crate::command::text;
use crate::stage::Stage;

mod borg;
mod bupstash;
mod holdall;
mod kopia;
mod restic;
mod rsync;

/// A tool by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Tool {
    /// This project's own
    Holdall,
    /// The same with the cipher of processors without instructions for AES
    HoldallChacha,
    /// Over a socat pair in place of ssh
    Bupstash,
    /// With rest-server
    Restic,
    /// With rest-server over TLS
    ResticTls,
    /// With rest-server
    Rustic,
    /// Over a socat pair in place of ssh
    Borg,
    /// With its repository server; its default is no compression
    Kopia,
    /// The same with compression zstd-fastest
    KopiaZstd,
    /// To rsyncd: the floor, without encryption, history or deduplication
    Rsync,
}

/// What one tool does in one run.
pub(crate) trait Contender {
    /// What the tool calls itself.
    ///
    /// # Errors
    ///
    /// If it cannot be run.
    fn version(&self) -> Result<String>;

    /// Starts a server over an empty repository and makes a client ready; not measured.
    ///
    /// # Errors
    ///
    /// If anything of that fails.
    fn start(&mut self, stage: &mut Stage<'_>) -> Result<()>;

    /// The command that backs `source` up.
    ///
    /// # Errors
    ///
    /// If what it needs cannot be found out.
    fn backup(&mut self, stage: &Stage<'_>, source: &Path) -> Result<Command>;

    /// The command that restores the newest backup, of `source`, into the empty folder `target`.
    ///
    /// # Errors
    ///
    /// If what it needs cannot be found out.
    fn restore(&self, stage: &Stage<'_>, source: &Path, target: &Path) -> Result<Command>;

    /// What a measured command says of itself, if the tool does that.
    fn summary(&self, _output: &str) -> Option<Value> {
        None
    }
}

/// Where a server keeps what it gets, in each run's folder.
const REPOSITORY: &str = "repository";

/// What the repository of `stage` takes on disk.
///
/// # Errors
///
/// If `du` fails.
pub(crate) fn stored_bytes(stage: &Stage<'_>) -> Result<u64> {
    let out = text(Command::new("du").args(["-s", "-B1"]).arg(stage.folder(REPOSITORY)?))?;
    let figure = out.split_whitespace().next().context("du printed nothing")?;
    figure.parse().with_context(|| format!("du printed {figure:?}"))
}

impl Tool {
    /// As it is typed and shown.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// The tool, ready for one run; none if it is not installed.
    ///
    /// # Errors
    ///
    /// If what is needed cannot be looked for.
    pub(crate) fn contender(self, binaries: &Binaries) -> Option<Box<dyn Contender>> {
        let find = |name: &str| binaries.find(name);
        Some(match self {
            Self::Holdall => Box::new(holdall::Holdall::new(binaries.holdall.clone(), None)),
            Self::HoldallChacha => {
                let cipher = Some("chacha20-poly1305");
                Box::new(holdall::Holdall::new(binaries.holdall.clone(), cipher))
            }
            Self::Bupstash => Box::new(bupstash::Bupstash::new(find("bupstash")?, find("socat")?)),
            Self::Restic => Box::new(restic::Restic::plain(find("restic")?, find("rest-server")?)),
            Self::ResticTls => {
                Box::new(restic::Restic::over_tls(find("restic")?, find("rest-server")?))
            }
            Self::Rustic => Box::new(restic::Restic::rustic(find("rustic")?, find("rest-server")?)),
            Self::Borg => Box::new(borg::Borg::new(find("borg")?, find("socat")?)),
            Self::Kopia => Box::new(kopia::Kopia::new(find("kopia")?, None)),
            Self::KopiaZstd => Box::new(kopia::Kopia::new(find("kopia")?, Some("zstd-fastest"))),
            Self::Rsync => Box::new(rsync::Rsync::new(find("rsync")?)),
        })
    }
}

/// Where binaries are.
pub(crate) struct Binaries {
    /// This project's own.
    pub(crate) holdall: PathBuf,
    /// Looked in before PATH.
    pub(crate) folders: Vec<PathBuf>,
}

impl Binaries {
    fn find(&self, name: &str) -> Option<PathBuf> {
        let given = self.folders.iter().map(|folder| folder.join(name));
        given.into_iter().find(|path| path.is_file()).or_else(|| on_path(name))
    }
}

fn on_path(name: &str) -> Option<PathBuf> {
    let found = text(Command::new("sh").args(["-c", "command -v \"$0\"", name])).ok()?;
    Some(PathBuf::from(found.trim()))
}

/// The first line of what `binary` says with `argument`.
fn first_line(binary: &Path, argument: &str) -> Result<String> {
    let said = text(Command::new(binary).arg(argument))?;
    Ok(said.lines().next().unwrap_or_default().trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_given_folder_comes_before_path() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("sh"), "").unwrap();
        let folders = vec![dir.path().to_path_buf()];
        let binaries = Binaries { holdall: PathBuf::new(), folders };
        assert_eq!(binaries.find("sh"), Some(dir.path().join("sh")));
        assert!(binaries.find("cat").is_some_and(|path| path.is_absolute()));
        assert_eq!(binaries.find("no-such-tool-here"), None);
    }

    #[test]
    fn names_are_as_they_are_typed() {
        assert_eq!(Tool::ResticTls.name(), "restic-tls");
    }
}
