//! rsync: a plain copy to rsyncd, the floor under everything that encrypts and keeps history.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::{Contender, REPOSITORY, first_line};
use crate::stage::Stage;

pub(crate) struct Rsync {
    binary: PathBuf,
    url: String,
}

impl Rsync {
    pub(crate) fn new(binary: PathBuf) -> Self {
        Self { binary, url: String::new() }
    }
}

/// `path` as rsync wants it to mean what is in the folder.
fn content_of(path: &Path) -> String {
    format!("{}/", path.display())
}

impl Contender for Rsync {
    fn version(&self) -> Result<String> {
        let line = first_line(&self.binary, "--version")?;
        let words: Vec<&str> = line.split_whitespace().filter(|word| *word != "version").collect();
        Ok(words.into_iter().take(2).collect::<Vec<_>>().join(" "))
    }

    fn start(&mut self, stage: &mut Stage<'_>) -> Result<()> {
        let config = stage.file("rsyncd.conf");
        let repository = stage.folder(REPOSITORY)?;
        let module = format!("[m]\npath={}\nread only=no\n", repository.display());
        let global = if rustix::process::geteuid().is_root() { "uid=root\ngid=root\n" } else { "" };
        fs::write(&config, format!("{global}use chroot=no\n{module}"))?;
        let port = stage.listen_port().to_string();
        let mut serve = Command::new(&self.binary);
        serve.args(["--daemon", "--no-detach", "--address", stage.host(), "--port", &port]);
        stage.serve(serve.arg("--config").arg(&config))?;
        self.url = format!("rsync://{}:{}/m/", stage.host(), stage.port());
        Ok(())
    }

    fn backup(&mut self, _stage: &Stage<'_>, source: &Path) -> Result<Command> {
        let mut command = Command::new(&self.binary);
        command.args(["-a", "--delete", &content_of(source), &self.url]);
        Ok(command)
    }

    fn restore(&self, _stage: &Stage<'_>, _source: &Path, target: &Path) -> Result<Command> {
        let mut command = Command::new(&self.binary);
        command.args(["-a", &self.url, &content_of(target)]);
        Ok(command)
    }
}
