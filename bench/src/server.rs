//! A server under test: started, waited for until it listens, and ended with all its children.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal};

use crate::command::end_of;
use crate::processes::tree;

const START_MAX: Duration = Duration::from_secs(15);
const STOP_MAX: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How `/proc/net/tcp` writes the state LISTEN.
const LISTENING: &str = "0A";

/// A running server.
pub(crate) struct Server(Child);

impl Server {
    /// Starts `command`, and returns when it listens on `port`; what it says goes to `log`.
    ///
    /// # Errors
    ///
    /// If it ends or does not listen in time, with what it said.
    pub(crate) fn start(mut command: Command, port: u16, log: &Path) -> Result<Self> {
        let file = fs::File::create(log).with_context(|| format!("cannot make {log:?}"))?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        let mut server = Self(child);
        let start = Instant::now();
        while !server.listens_on(port) {
            let status = server.0.try_wait()?;
            if status.is_some() || start.elapsed() > START_MAX {
                let status = status.map_or("does not listen".into(), |status| status.to_string());
                bail!("{command:?}: {status}: {}", end_of(&fs::read(log)?));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(server)
    }

    /// The first process of the server.
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    fn listens_on(&self, port: u16) -> bool {
        let read = |name: &str| fs::read_to_string(format!("/proc/{}/net/{name}", self.id()));
        ["tcp", "tcp6"].iter().flat_map(|name| read(name)).any(|table| has_listener(&table, port))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let processes = tree(self.id());
        signal(self.id(), Signal::TERM);
        let start = Instant::now();
        while matches!(self.0.try_wait(), Ok(None)) {
            if start.elapsed() > STOP_MAX {
                println!("a server does not end when asked to, and is killed");
                drop(self.0.kill());
                break;
            }
            std::thread::sleep(LOOK_EVERY);
        }
        drop(self.0.wait());
        processes.into_iter().skip(1).for_each(|pid| signal(pid, Signal::TERM));
    }
}

fn signal(pid: u32, signal: Signal) {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return };
    // One that has ended by itself is as good.
    let _ = rustix::process::kill_process(pid, signal);
}

/// Whether a table as of `/proc/net/tcp` has a socket that listens on `port`.
fn has_listener(table: &str, port: u16) -> bool {
    let port = format!(":{port:04X}");
    table.lines().skip(1).any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields.len() > 3 && fields[1].ends_with(&port) && fields[3] == LISTENING
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_socket_that_listens_counts() {
        let table = "  sl  local_address rem_address   st\n   \
                     0: 0100007F:1F90 00000000:0000 0A 0\n   \
                     1: 0100007F:1F91 0100007F:AAAA 01 0\n";
        assert!(has_listener(table, 8080));
        assert!(!has_listener(table, 8081));
        assert!(!has_listener(table, 43690));
    }

    #[test]
    fn a_server_that_ends_is_quoted() {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "echo out of luck; exit 3"]);
        let error = Server::start(command, 1, &dir.path().join("log")).err().unwrap();
        assert!(error.to_string().contains("out of luck"), "{error}");
    }
}
