//! holdall: a client that is paired with the server over its own TLS.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Contender, REPOSITORY, first_line};
use crate::link::Side;
use crate::stage::Stage;

/// The product under test.
pub(crate) struct Holdall {
    binary: PathBuf,
    /// That of the repository; `None` is the one that holdall chooses.
    cipher: Option<&'static str>,
    client: Vec<(&'static str, OsString)>,
}

impl Holdall {
    pub(crate) fn new(binary: PathBuf, cipher: Option<&'static str>) -> Self {
        Self { binary, cipher, client: Vec::new() }
    }

    fn command(&self, verb: &str) -> Command {
        let mut command = Command::new(&self.binary);
        command.arg(verb).envs(self.client.iter().cloned());
        command
    }
}

impl Contender for Holdall {
    fn version(&self) -> Result<String> {
        first_line(&self.binary, "version")
    }

    fn start(&mut self, stage: &mut Stage<'_>) -> Result<()> {
        let data = stage.folder(REPOSITORY)?;
        let listen = format!("{}:{}", stage.host(), stage.listen_port());
        let mut serve = Command::new(&self.binary);
        serve.args(["serve", "--listen", &listen, "--data"]).arg(&data);
        serve.env("HOLDALL_CONFIG_DIR", stage.folder("server-config")?);
        stage.serve(serve.env("HOLDALL_CACHE_DIR", stage.folder("server-cache")?))?;

        self.client = vec![
            ("HOLDALL_CONFIG_DIR", stage.folder("config")?.into()),
            ("HOLDALL_CACHE_DIR", stage.folder("cache")?.into()),
            ("HOLDALL_PASSWORD", "bench".into()),
        ];
        let address = format!("{}:{}", stage.host(), stage.port());
        let mut invite = Command::new(&self.binary);
        invite.args(["invite", "--address", &address, "--data"]).arg(&data);
        let invite = stage.text_at(Side::Server, &mut invite)?;
        let invite = invite.lines().last().context("invite printed nothing")?;
        let mut pair = self.command("pair");
        pair.args([invite, "--name", "bench"]);
        pair.args(self.cipher.iter().flat_map(|cipher| ["--cipher", cipher]));
        stage.text_at(Side::Client, &mut pair)?;
        Ok(())
    }

    fn backup(&mut self, stage: &Stage<'_>, source: &Path) -> Result<Command> {
        let mut command = self.command("backup");
        command.arg(source).arg("--json").args(stage.site().link.holdall_options());
        Ok(command)
    }

    fn restore(&self, _stage: &Stage<'_>, source: &Path, target: &Path) -> Result<Command> {
        let mut from = OsString::from("latest:");
        from.push(source);
        let mut command = self.command("restore");
        command.arg(from).arg("--target").arg(target).arg("--json");
        Ok(command)
    }

    /// The last `summary` object of the command's JSON Lines.
    fn summary(&self, output: &str) -> Option<Value> {
        let objects = output.lines().rev().flat_map(serde_json::from_str::<Value>);
        objects.into_iter().find(|object| object["message_type"] == "summary")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_is_the_last_object_of_that_type() {
        let output = "{\"message_type\":\"status\"}\n\
                      {\"message_type\":\"summary\",\"bytes_sent\":7}\nnot json\n";
        let holdall = Holdall::new(PathBuf::new(), None);
        assert_eq!(holdall.summary(output).unwrap()["bytes_sent"], 7);
        assert_eq!(holdall.summary("{}\n"), None);
    }
}
