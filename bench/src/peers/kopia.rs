//! kopia: through its repository server, which speaks gRPC over TLS.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Contender, REPOSITORY, first_line};
use crate::link::Side;
use crate::stage::Stage;
use crate::tls::Certificate;

pub(crate) struct Kopia {
    binary: PathBuf,
    /// Of the global policy; kopia's default is none.
    compression: Option<&'static str>,
    client: Vec<(&'static str, OsString)>,
}

impl Kopia {
    pub(crate) fn new(binary: PathBuf, compression: Option<&'static str>) -> Self {
        Self { binary, compression, client: Vec::new() }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(words).envs(self.client.iter().cloned());
        command
    }

    /// Makes the repository and the account, before the server runs.
    fn make_repository(
        &self,
        stage: &Stage<'_>,
        environment: &[(&'static str, OsString)],
    ) -> Result<()> {
        let call = |words: &[&str]| {
            let mut command = Command::new(&self.binary);
            stage.text_at(Side::Server, command.args(words).envs(environment.iter().cloned()))
        };
        let repository = stage.folder(REPOSITORY)?;
        let repository = repository.to_str().context("the work folder's name is not UTF-8")?;
        call(&["repository", "create", "filesystem", "--path", repository])?;
        if let Some(compression) = self.compression {
            call(&["policy", "set", "--global", "--compression", compression])?;
        }
        call(&["server", "user", "add", "bench@bench", "--user-password", "bench"])?;
        Ok(())
    }
}

fn environment(stage: &Stage<'_>, side: &str) -> Result<Vec<(&'static str, OsString)>> {
    let folder = |name: &str| stage.folder(&format!("{side}/{name}"));
    Ok(vec![
        ("KOPIA_PASSWORD", "bench".into()),
        ("KOPIA_CHECK_FOR_UPDATES", "false".into()),
        ("KOPIA_USE_KEYRING", "false".into()),
        ("KOPIA_CONFIG_PATH", folder("config")?.join("repo.config").into()),
        ("KOPIA_CACHE_DIRECTORY", folder("cache")?.into()),
        ("KOPIA_LOG_DIR", folder("log")?.into()),
        ("HOME", folder("home")?.into()),
    ])
}

impl Contender for Kopia {
    fn version(&self) -> Result<String> {
        Ok(format!("kopia {}", first_line(&self.binary, "--version")?))
    }

    fn start(&mut self, stage: &mut Stage<'_>) -> Result<()> {
        let at_server = environment(stage, "server")?;
        self.make_repository(stage, &at_server)?;
        let certificate = Certificate::make(stage)?;
        let listen = format!("https://{}:{}", stage.host(), stage.listen_port());
        let mut serve = Command::new(&self.binary);
        serve.args(["server", "start", "--no-ui", "--address", &listen]);
        serve.args(["--server-username", "bench@bench", "--server-password", "bench"]);
        serve.arg("--tls-cert-file").arg(&certificate.path);
        serve.arg("--tls-key-file").arg(&certificate.key);
        stage.serve(serve.envs(at_server))?;

        self.client = environment(stage, "client")?;
        let url = format!("https://{}:{}", stage.host(), stage.port());
        let fingerprint = certificate.fingerprint()?;
        let mut connect = self.command(&["repository", "connect", "server", "--url", &url]);
        connect.args(["--server-cert-fingerprint", &fingerprint, "--password", "bench"]);
        connect.args(["--override-username", "bench", "--override-hostname", "bench"]);
        stage.text_at(Side::Client, &mut connect)?;
        Ok(())
    }

    fn backup(&mut self, _stage: &Stage<'_>, source: &Path) -> Result<Command> {
        let mut command = self.command(&["snapshot", "create", "--no-progress"]);
        command.arg(source);
        Ok(command)
    }

    fn restore(&self, stage: &Stage<'_>, source: &Path, target: &Path) -> Result<Command> {
        let mut list = self.command(&["snapshot", "list", "--json"]);
        let snapshots = stage.text_at(Side::Client, list.arg(source))?;
        let snapshots: Vec<Value> = serde_json::from_str(&snapshots)?;
        let newest = snapshots.last().and_then(|snapshot| snapshot["id"].as_str());
        let newest = newest.context("kopia lists no snapshot")?;
        let mut command = self.command(&["snapshot", "restore", "--no-progress", newest]);
        command.arg(target);
        Ok(command)
    }
}
