//! restic and rustic, which share a repository format, with rest-server.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::{Contender, REPOSITORY, first_line};
use crate::link::Side;
use crate::stage::Stage;
use crate::tls::Certificate;

pub(crate) struct Restic {
    binary: PathBuf,
    server: PathBuf,
    is_rustic: bool,
    over_tls: bool,
    /// What the client trusts, where it needs to be told.
    certificate: Option<PathBuf>,
    client: Vec<(&'static str, OsString)>,
}

impl Restic {
    pub(crate) fn plain(binary: PathBuf, server: PathBuf) -> Self {
        let (is_rustic, over_tls, certificate) = (false, false, None);
        Self { binary, server, is_rustic, over_tls, certificate, client: Vec::new() }
    }

    pub(crate) fn over_tls(binary: PathBuf, server: PathBuf) -> Self {
        Self { over_tls: true, ..Self::plain(binary, server) }
    }

    pub(crate) fn rustic(binary: PathBuf, server: PathBuf) -> Self {
        Self { is_rustic: true, ..Self::plain(binary, server) }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(words).envs(self.client.iter().cloned());
        if let Some(certificate) = &self.certificate {
            command.arg("--cacert").arg(certificate);
        }
        command
    }

    /// What both are told by their environment, each under its own names.
    fn environment(
        &self,
        stage: &Stage<'_>,
        scheme: &str,
    ) -> Result<Vec<(&'static str, OsString)>> {
        let url = format!("rest:{scheme}://{}:{}/", stage.host(), stage.port());
        let (cache, home) = (stage.folder("cache")?.into(), stage.folder("home")?.into());
        let password = OsString::from("bench");
        Ok(if self.is_rustic {
            vec![
                ("RUSTIC_REPOSITORY", url.into()),
                ("RUSTIC_PASSWORD", password),
                ("RUSTIC_CACHE_DIR", cache),
                ("RUSTIC_NO_PROGRESS", "true".into()),
                ("HOME", home),
            ]
        } else {
            vec![
                ("RESTIC_REPOSITORY", url.into()),
                ("RESTIC_PASSWORD", password),
                ("RESTIC_CACHE_DIR", cache),
                ("RESTIC_PROGRESS_FPS", "0.01".into()),
                ("HOME", home),
            ]
        })
    }
}

impl Contender for Restic {
    fn version(&self) -> Result<String> {
        let short = |line: String| {
            let line = line.split(" compiled").next().unwrap_or_default();
            line.replace("rest-server version", "rest-server")
        };
        let argument = if self.is_rustic { "--version" } else { "version" };
        let client = short(first_line(&self.binary, argument)?);
        Ok(format!("{client} + {}", short(first_line(&self.server, "--version")?)))
    }

    fn start(&mut self, stage: &mut Stage<'_>) -> Result<()> {
        let listen = format!("{}:{}", stage.host(), stage.listen_port());
        let mut serve = Command::new(&self.server);
        serve.args(["--listen", &listen, "--no-auth", "--path"]).arg(stage.folder(REPOSITORY)?);
        let certificate = self.over_tls.then(|| Certificate::make(stage)).transpose()?;
        if let Some(made) = &certificate {
            serve.arg("--tls").arg("--tls-cert").arg(&made.path).arg("--tls-key").arg(&made.key);
        }
        stage.serve(&serve)?;
        let scheme = if self.over_tls { "https" } else { "http" };
        self.client = self.environment(stage, scheme)?;
        self.certificate = certificate.map(|made| made.path);
        stage.text_at(Side::Client, &mut self.command(&["init"]))?;
        Ok(())
    }

    fn backup(&mut self, _stage: &Stage<'_>, source: &Path) -> Result<Command> {
        let mut command = self.command(&["backup", "."]);
        command.current_dir(source);
        Ok(command)
    }

    fn restore(&self, _stage: &Stage<'_>, _source: &Path, target: &Path) -> Result<Command> {
        let mut command = self.command(&["restore", "latest"]);
        if !self.is_rustic {
            command.arg("--target");
        }
        command.arg(target);
        Ok(command)
    }
}
