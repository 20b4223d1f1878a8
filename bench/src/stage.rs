//! Where one run of one tool happens: a folder, a server, and client commands that are measured.
//!
//! A tool starts nothing by other means, so that the same tool works over loopback and between
//! network namespaces, and with a share of a core.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use holdall_testkit::DelayProxy;
use serde::{Deserialize, Serialize};

use crate::command::{end_of, prefixed, text};
use crate::link::{Side, Site};
use crate::machine::Busy;
use crate::processes::Watch;
use crate::server::Server;

/// So that a server does not outlive a benchmark that is killed, and keep its work folder busy.
const DIES_WITH_ITS_PARENT: [&str; 3] = ["setpriv", "--pdeathsig", "TERM"];

/// What a measured client command took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figures {
    pub(crate) wall_seconds: f64,
    pub(crate) client_cpu_seconds: f64,
    pub(crate) client_peak_bytes: u64,
    pub(crate) server_cpu_seconds: f64,
    pub(crate) server_peak_bytes: u64,
    /// CPU of everything that is neither client nor server: how much the run was disturbed.
    pub(crate) other_cpu_seconds: f64,
    pub(crate) steal_seconds: f64,
    /// Where the link counts, which loopback does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) wire: Option<Wire>,
    /// What the command printed.
    #[serde(skip)]
    pub(crate) output: String,
}

/// Bytes that went over the client's interfaces, headers included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Wire {
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
}

/// One run of one tool; its server ends with it.
pub(crate) struct Stage<'a> {
    folder: PathBuf,
    site: &'a Site,
    port: u16,
    proxy: Option<DelayProxy>,
    server: Option<Server>,
}

impl<'a> Stage<'a> {
    /// Makes `folder`, and picks where a server can listen.
    ///
    /// # Errors
    ///
    /// If the folder cannot be made or no port is free.
    pub(crate) fn new(folder: &Path, site: &'a Site) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {folder:?}"))?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let proxy = site.link.proxy(port)?;
        Ok(Self { folder: folder.to_path_buf(), site, port, proxy, server: None })
    }

    /// A folder of this run, made if it is not there.
    pub(crate) fn folder(&self, name: &str) -> Result<PathBuf> {
        let path = self.folder.join(name);
        fs::create_dir_all(&path).with_context(|| format!("cannot make {path:?}"))?;
        Ok(path)
    }

    /// A file of this run, made or not.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Where this run happens.
    pub(crate) fn site(&self) -> &Site {
        self.site
    }

    /// The port that a server is to listen on.
    pub(crate) fn listen_port(&self) -> u16 {
        self.port
    }

    /// The address that a server is to listen on, and a client to connect to.
    pub(crate) fn host(&self) -> &str {
        self.site.link.host()
    }

    /// The port that a client is to connect to.
    pub(crate) fn port(&self) -> u16 {
        self.proxy.as_ref().map_or(self.port, |proxy| proxy.address().port())
    }

    /// Starts the server, and returns when it listens.
    ///
    /// # Errors
    ///
    /// If it ends or does not listen in time, with what it said.
    pub(crate) fn serve(&mut self, command: &Command) -> Result<()> {
        let mut prefix = self.site.prefix(Side::Server);
        prefix.extend(DIES_WITH_ITS_PARENT.map(Into::into));
        let command = prefixed(&prefix, command);
        let log = self.folder.join("server.log");
        self.server = Some(Server::start(command, self.port, &log)?);
        Ok(())
    }

    /// Runs a command that is not measured at the server's side; its standard output.
    ///
    /// # Errors
    ///
    /// If it fails.
    pub(crate) fn text_at(&self, side: Side, command: &mut Command) -> Result<String> {
        text(prefixed(&self.site.prefix(side), command).stdin(Stdio::null()))
    }

    /// Runs a client command, measured.
    ///
    /// # Errors
    ///
    /// If it fails, with the end of what it said.
    pub(crate) fn measure(&self, command: &Command) -> Result<Figures> {
        let server = self.server.as_ref().context("no server was started")?;
        let report = self.folder.join("client.time");
        let mut command = self.timed(command, &report);
        let (stdout, stderr) = (self.folder.join("client.out"), self.folder.join("client.err"));
        command.stdin(Stdio::null()).stdout(fs::File::create(&stdout)?);
        command.stderr(fs::File::create(&stderr)?);
        // What earlier commands left to be written is not this one's.
        rustix::fs::sync();
        let wire_before = self.site.link.wire(self.proxy.as_ref())?;
        let watch = Watch::start(server.id());
        let busy_before = Busy::now()?;
        let start = Instant::now();
        let status = command.status().context("cannot run /usr/bin/time (Debian package time)")?;
        let wall_seconds = start.elapsed().as_secs_f64();
        let busy = Busy::since(busy_before)?;
        let usage = watch.finish();
        if !status.success() {
            let said = [fs::read(&stdout)?, fs::read(&stderr)?].concat();
            bail!("{command:?} failed: {status}: {}", end_of(&said));
        }
        let usage = usage?;
        let (client_cpu_seconds, client_peak_bytes) = parse_time(&fs::read_to_string(&report)?)?;
        let both_seconds = client_cpu_seconds + usage.cpu_seconds;
        Ok(Figures {
            wall_seconds,
            client_cpu_seconds,
            client_peak_bytes,
            server_cpu_seconds: usage.cpu_seconds,
            server_peak_bytes: usage.resident_bytes,
            other_cpu_seconds: (busy.cpu_seconds - both_seconds).max(0.0),
            steal_seconds: busy.steal_seconds,
            wire: wire_between(wire_before, self.site.link.wire(self.proxy.as_ref())?),
            output: fs::read_to_string(&stdout).unwrap_or_default(),
        })
    }

    /// `command` under GNU time, which is small: a child of this process would start with this
    /// one's peak of memory.
    fn timed(&self, command: &Command, report: &Path) -> Command {
        let mut prefix = self.site.prefix(Side::Client);
        prefix.extend(["/usr/bin/time", "-q", "-f", "%U %S %M", "-o"].map(Into::into));
        prefix.push(report.into());
        prefixed(&prefix, command)
    }
}

fn wire_between(before: Option<Wire>, after: Option<Wire>) -> Option<Wire> {
    let (before, after) = (before?, after?);
    Some(Wire {
        sent_bytes: after.sent_bytes - before.sent_bytes,
        received_bytes: after.received_bytes - before.received_bytes,
    })
}

/// CPU seconds and peak bytes from what GNU time wrote for `%U %S %M`.
fn parse_time(report: &str) -> Result<(f64, u64)> {
    let line = report.lines().last().context("/usr/bin/time wrote nothing")?;
    let figures: Vec<&str> = line.split(' ').collect();
    let [user, system, kib] = figures[..] else { bail!("/usr/bin/time wrote {line:?}") };
    Ok((user.parse::<f64>()? + system.parse::<f64>()?, kib.parse::<u64>()? << 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_of_time_is_read_from_its_last_line() {
        assert_eq!(parse_time("odd line\n1.25 0.75 2048\n").unwrap(), (2.0, 2 << 20));
        assert!(parse_time("").is_err());
    }
}
