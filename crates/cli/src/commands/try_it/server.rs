//! A real server for one attempt: the same program, in a process of its own.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

/// What a server that did not start said last is told, up to this length.
const LAST_WORDS_BYTES: u64 = 4096;

/// A server that listens on loopback; dropping it ends it.
pub(crate) struct Server {
    child: Child,
    data: PathBuf,
}

impl Server {
    /// Starts a server with everything below `folder`, and waits until it listens.
    ///
    /// # Errors
    /// If it does not start, with what it said.
    pub(crate) fn start(folder: &Path) -> Result<Self> {
        let data = folder.join("data");
        std::fs::create_dir_all(&data)?;
        let log = folder.join("server.log");
        let program = std::env::current_exe().context("cannot find this program's own file")?;
        let mut command = Command::new(program);
        command
            .args(["serve", "--until-input-ends", "--listen", "127.0.0.1:0", "--data"])
            .arg(&data)
            .env("HOLDALL_CONFIG_DIR", folder.join("config"))
            .env("HOLDALL_CACHE_DIR", folder.join("cache"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&log)?)
            // Ctrl-C is for the client, which ends the server in good order.
            .process_group(0);
        let mut child = command.spawn().context("cannot start a server")?;
        let output = child.stdout.take();
        let server = Self { child, data };
        server.wait_until_listening(output.context("the server has no output")?, &log)?;
        Ok(server)
    }

    fn wait_until_listening(&self, output: impl Read + Send + 'static, log: &Path) -> Result<()> {
        let mut lines = BufReader::new(output).lines();
        for line in lines.by_ref() {
            if line?.starts_with("listening on https://") {
                // It must never wait for somebody who reads what it says.
                holdall_sys::thread::start_alone(move || lines.for_each(drop))?;
                return Ok(());
            }
        }
        let mut said = String::new();
        // What it said is only a help for people.
        let _ =
            File::open(log).and_then(|log| log.take(LAST_WORDS_BYTES).read_to_string(&mut said));
        anyhow::bail!("the server did not start: {}", said.trim())
    }

    /// Its data folder.
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// The number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // It ends by itself now; that it ended otherwise before makes no difference.
        let _ = self.child.wait();
    }
}
