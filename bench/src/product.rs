//! The product under test: a real server, a machine paired with it, and measured client commands.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal};
use serde_json::Value;

/// What the kernel counts `utime` and `stime` in; fixed for user space.
const TICKS_PER_SECOND: f64 = 100.0;

/// One measured client command.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) wall_seconds: f64,
    pub(crate) client_cpu_seconds: f64,
    pub(crate) client_peak_bytes: u64,
    pub(crate) server_cpu_seconds: f64,
    pub(crate) server_peak_bytes: u64,
    /// The command's own `summary` object.
    pub(crate) summary: Value,
}

/// A server with a fresh repository and a machine that is paired with it.
pub(crate) struct Product {
    binary: PathBuf,
    folder: PathBuf,
    server: Child,
}

impl Product {
    /// Starts a server with everything below `folder`, and pairs a machine with it.
    ///
    /// # Errors
    ///
    /// If server, invite or pairing fails, with what they said.
    pub(crate) fn start(binary: &Path, folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let log = fs::File::create(folder.join("server.log"))?;
        let data = folder.join("data");
        let mut server = Command::new(binary)
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(&data)
            .env("HOLDALL_CONFIG_DIR", folder.join("server-config"))
            .env("HOLDALL_CACHE_DIR", folder.join("server-cache"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {binary:?}"))?;
        let output = server.stdout.take().context("the server has no output")?;
        let product = Self { binary: binary.to_path_buf(), folder: folder.to_path_buf(), server };
        product.wait_until_listening(BufReader::new(output))?;
        let mut invite = Command::new(binary);
        let invite = text(invite.args(["invite", "--data"]).arg(&data))?;
        let invite = invite.lines().last().context("invite printed nothing")?;
        text(product.client(Command::new(binary)).args(["pair", invite, "--name", "bench"]))?;
        Ok(product)
    }

    /// Returns when the server has said that it listens; what it says later is thrown away.
    fn wait_until_listening(&self, mut output: impl BufRead + Send + 'static) -> Result<()> {
        let mut line = String::new();
        while !line.starts_with("listening on https://") {
            line.clear();
            if output.read_line(&mut line)? == 0 {
                let log = fs::read_to_string(self.folder.join("server.log"))?;
                bail!("the server ended: {}", log.trim());
            }
        }
        std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        Ok(())
    }

    /// Backs `source` up, measured.
    ///
    /// # Errors
    ///
    /// If the command fails or prints no summary.
    pub(crate) fn backup(&self, source: &Path) -> Result<Run> {
        self.measure(&[Path::new("backup"), source])
    }

    /// Restores what the newest snapshot has of `source` into `target`, measured.
    ///
    /// # Errors
    ///
    /// If the command fails or prints no summary.
    pub(crate) fn restore(&self, source: &Path, target: &Path) -> Result<Run> {
        let mut from = std::ffi::OsString::from("latest:");
        from.push(source);
        self.measure(&[Path::new("restore"), Path::new(&from), Path::new("--target"), target])
    }

    /// What the server's data take on disk.
    ///
    /// # Errors
    ///
    /// If `du` fails.
    pub(crate) fn stored_bytes(&self) -> Result<u64> {
        let out = text(Command::new("du").args(["-s", "-B1"]).arg(self.folder.join("data")))?;
        let figure = out.split_whitespace().next().context("du printed nothing")?;
        figure.parse().with_context(|| format!("du printed {figure:?}"))
    }

    /// Adds the paired machine's folders and password to `command`.
    fn client(&self, mut command: Command) -> Command {
        command
            .env("HOLDALL_CONFIG_DIR", self.folder.join("config"))
            .env("HOLDALL_CACHE_DIR", self.folder.join("cache"))
            .env("HOLDALL_PASSWORD", "bench")
            .stdin(Stdio::null());
        command
    }

    fn measure(&self, args: &[&Path]) -> Result<Run> {
        // What earlier commands left to be written is not this one's.
        rustix::fs::sync();
        self.forget_server_peak();
        let server_before = self.server_cpu_seconds()?;
        let report = self.folder.join("client.time");
        // GNU time is small; a child of this process would start with this one's peak of memory.
        let mut command = self.client(Command::new("/usr/bin/time"));
        command.args(["-q", "-f", "%U %S %M", "-o"]).arg(&report);
        command.arg(&self.binary).args(args).arg("--json");
        let start = Instant::now();
        let output = command.output().context("cannot run /usr/bin/time (Debian package time)")?;
        let wall_seconds = start.elapsed().as_secs_f64();
        if !output.status.success() {
            bail!("{command:?} failed: {}", said(&output));
        }
        let (client_cpu_seconds, client_peak_bytes) = parse_time(&fs::read_to_string(&report)?)?;
        Ok(Run {
            wall_seconds,
            client_cpu_seconds,
            client_peak_bytes,
            server_cpu_seconds: self.server_cpu_seconds()? - server_before,
            server_peak_bytes: self.server_peak_bytes()?,
            summary: summary(&String::from_utf8_lossy(&output.stdout))?,
        })
    }

    fn server_file(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{name}", self.server.id()))
    }

    /// Starts the server's peak of memory anew; where that is not allowed, the old one stays.
    fn forget_server_peak(&self) {
        drop(fs::write(self.server_file("clear_refs"), "5"));
    }

    fn server_peak_bytes(&self) -> Result<u64> {
        let status = fs::read_to_string(self.server_file("status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let line = line.context("the server has ended")?;
        let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kib << 10)
    }

    fn server_cpu_seconds(&self) -> Result<f64> {
        let stat = fs::read_to_string(self.server_file("stat"))?;
        // The second field is the name in brackets, which may hold anything.
        let after_name = stat.rsplit_once(") ").context("an odd /proc/PID/stat")?.1;
        let ticks: f64 = after_name.split(' ').skip(11).take(2).flat_map(str::parse::<f64>).sum();
        Ok(ticks / TICKS_PER_SECOND)
    }
}

impl Drop for Product {
    fn drop(&mut self) {
        let pid = i32::try_from(self.server.id()).ok().and_then(Pid::from_raw);
        let stopped = pid.map(|pid| rustix::process::kill_process(pid, Signal::TERM));
        if let Some(Err(error)) = stopped {
            println!("cannot stop the server: {error}");
            return;
        }
        drop(self.server.wait());
    }
}

/// CPU seconds and peak bytes from what GNU time wrote for `%U %S %M`.
fn parse_time(report: &str) -> Result<(f64, u64)> {
    let line = report.lines().last().context("/usr/bin/time wrote nothing")?;
    let figures: Vec<&str> = line.split(' ').collect();
    let [user, system, kib] = figures[..] else { bail!("/usr/bin/time wrote {line:?}") };
    Ok((user.parse::<f64>()? + system.parse::<f64>()?, kib.parse::<u64>()? << 10))
}

/// The last `summary` object of a command's JSON Lines.
fn summary(output: &str) -> Result<Value> {
    let objects = output.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let is_summary = |object: &Value| object["message_type"] == "summary";
    objects.into_iter().find(is_summary).context("the command printed no summary")
}

/// Runs `command` and returns its standard output.
fn text(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} failed: {}", said(&output));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What a command that failed said, its end if it said a lot.
fn said(output: &std::process::Output) -> String {
    let all = [output.stdout.as_slice(), b"\n", output.stderr.as_slice()].concat();
    let from = all.len().saturating_sub(2000);
    format!("{}: {}", output.status, String::from_utf8_lossy(&all[from..]).trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_is_the_last_object_of_that_type() {
        let output = "{\"message_type\":\"status\"}\n\
                      {\"message_type\":\"summary\",\"bytes_sent\":7}\nnot json\n";
        assert_eq!(summary(output).unwrap()["bytes_sent"], 7);
        assert!(summary("{}\n").is_err());
    }

    #[test]
    fn the_report_of_time_is_read_from_its_last_line() {
        assert_eq!(parse_time("odd line\n1.25 0.75 2048\n").unwrap(), (2.0, 2 << 20));
        assert!(parse_time("").is_err());
    }
}
