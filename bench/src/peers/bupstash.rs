//! bupstash: `bupstash serve` behind a socat pair, which stands where ssh would.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Contender, REPOSITORY, first_line};
use crate::link::Side;
use crate::stage::Stage;

pub(crate) struct Bupstash {
    binary: PathBuf,
    socat: PathBuf,
    client: Vec<(&'static str, OsString)>,
}

impl Bupstash {
    pub(crate) fn new(binary: PathBuf, socat: PathBuf) -> Self {
        Self { binary, socat, client: Vec::new() }
    }

    fn command(&self, verb: &str) -> Command {
        let mut command = Command::new(&self.binary);
        command.arg(verb).envs(self.client.iter().cloned());
        command
    }
}

impl Contender for Bupstash {
    fn version(&self) -> Result<String> {
        first_line(&self.binary, "--version")
    }

    fn start(&mut self, stage: &mut Stage<'_>) -> Result<()> {
        let repository = stage.folder(REPOSITORY)?.join("r");
        let mut init = Command::new(&self.binary);
        stage.text_at(Side::Server, init.args(["init", "-r"]).arg(&repository))?;
        let (host, port) = (stage.host(), stage.listen_port());
        let mut serve = Command::new(&self.socat);
        serve.arg(format!("TCP-LISTEN:{port},bind={host},fork,reuseaddr,nodelay"));
        serve.arg(format!("EXEC:{} serve {}", self.binary.display(), repository.display()));
        stage.serve(&serve)?;

        let key = stage.file("key");
        let (host, port) = (stage.host(), stage.port());
        let socat = self.socat.display();
        let connect = format!("{socat} -b 262144 STDIO TCP:{host}:{port},nodelay");
        self.client = vec![
            ("BUPSTASH_REPOSITORY_COMMAND", connect.into()),
            ("BUPSTASH_KEY", key.clone().into()),
            ("BUPSTASH_SEND_LOG", stage.file("send.log").into()),
            ("BUPSTASH_QUERY_CACHE", stage.file("query.cache").into()),
            ("HOME", stage.folder("home")?.into()),
        ];
        stage.text_at(Side::Client, self.command("new-key").arg("-o").arg(&key))?;
        Ok(())
    }

    fn backup(&mut self, _stage: &Stage<'_>, source: &Path) -> Result<Command> {
        let mut command = self.command("put");
        command.args(["--no-progress", "-q", "name=bench"]).arg(source);
        Ok(command)
    }

    fn restore(&self, stage: &Stage<'_>, _source: &Path, target: &Path) -> Result<Command> {
        let mut list = self.command("list");
        list.args(["--format", "jsonl1", "name=bench"]);
        let items = stage.text_at(Side::Client, &mut list)?;
        let items = items.lines().rev().flat_map(serde_json::from_str::<Value>);
        let last = items.into_iter().find(|item| item["id"].is_string());
        let last = last.context("bupstash lists nothing")?;
        let id = last["id"].as_str().unwrap_or_default();
        let mut command = self.command("restore");
        command.args(["-q", "--into"]).arg(target).arg(format!("id={id}"));
        Ok(command)
    }
}
