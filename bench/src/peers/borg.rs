//! borg: its own remote protocol, with a socat pair where ssh would stand.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::{Contender, REPOSITORY, first_line};
use crate::link::Side;
use crate::stage::Stage;

pub(crate) struct Borg {
    binary: PathBuf,
    socat: PathBuf,
    backups: u32,
    client: Vec<(&'static str, OsString)>,
}

impl Borg {
    pub(crate) fn new(binary: PathBuf, socat: PathBuf) -> Self {
        Self { binary, socat, backups: 0, client: Vec::new() }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(words).envs(self.client.iter().cloned());
        command
    }

    /// What borg calls in place of ssh; whatever host and command it gives are left aside.
    fn write_connector(&self, stage: &Stage<'_>) -> Result<PathBuf> {
        let path = stage.file("connect");
        let (socat, host, port) = (self.socat.display(), stage.host(), stage.port());
        let script = format!("#!/bin/sh\nexec {socat} -b 262144 STDIO TCP:{host}:{port},nodelay\n");
        fs::write(&path, script)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        Ok(path)
    }
}

impl Contender for Borg {
    fn version(&self) -> Result<String> {
        first_line(&self.binary, "--version")
    }

    fn start(&mut self, stage: &mut Stage<'_>) -> Result<()> {
        let (host, port) = (stage.host(), stage.listen_port());
        let mut serve = Command::new(&self.socat);
        serve.arg(format!("TCP-LISTEN:{port},bind={host},fork,reuseaddr,nodelay"));
        serve.arg(format!("EXEC:{} serve", self.binary.display()));
        stage.serve(serve.env("BORG_BASE_DIR", stage.folder("server")?))?;

        let repository = stage.folder(REPOSITORY)?.join("r");
        self.client = vec![
            ("BORG_RSH", self.write_connector(stage)?.into()),
            ("BORG_PASSPHRASE", "bench".into()),
            ("BORG_BASE_DIR", stage.folder("client")?.into()),
            ("BORG_REPO", format!("ssh://x{}", repository.display()).into()),
        ];
        stage.text_at(Side::Client, &mut self.command(&["init", "-e", "repokey"]))?;
        Ok(())
    }

    fn backup(&mut self, _stage: &Stage<'_>, source: &Path) -> Result<Command> {
        self.backups += 1;
        let mut command = self.command(&["create", &format!("::a{}", self.backups), "."]);
        command.current_dir(source);
        Ok(command)
    }

    fn restore(&self, _stage: &Stage<'_>, _source: &Path, target: &Path) -> Result<Command> {
        let mut command = self.command(&["extract", &format!("::a{}", self.backups)]);
        command.current_dir(target);
        Ok(command)
    }
}
