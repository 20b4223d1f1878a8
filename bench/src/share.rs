//! A share of a core for client and server each: a small computer on a large one, by cgroups.

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::link::Side;

const PERIOD_US: u64 = 100_000;
/// How long a group's last process may take to be gone.
const EMPTY_MAX: Duration = Duration::from_secs(5);

/// Two groups that hold what runs in them to a share; they go when this goes.
pub(crate) struct CpuShare {
    cores: f64,
    client: PathBuf,
    server: PathBuf,
}

/// The file that a quota goes into, and how it is written.
enum Quota {
    /// `cpu.max` of the unified hierarchy.
    V2,
    /// `cpu.cfs_quota_us` of the older one.
    V1,
}

impl CpuShare {
    /// Makes two groups of `cores` each.
    ///
    /// # Errors
    ///
    /// If neither hierarchy of cgroups lets this process do that.
    pub(crate) fn make(cores: f64) -> Result<Self> {
        ensure!(cores > 0.0 && cores <= 1024.0, "a share of {cores} cores makes no sense");
        let (parent, quota) = find_hierarchy()?;
        let group = |end| parent.join(format!("holdall-bench-{}-{end}", std::process::id()));
        let share = Self { cores, client: group("client"), server: group("server") };
        for group in [&share.client, &share.server] {
            let hold = || -> Result<()> {
                fs::create_dir(group)?;
                quota.set(group, (cores * PERIOD_US as f64) as u64)
            };
            hold().with_context(|| format!("cannot hold {group:?} to a share (needs root)"))?;
        }
        Ok(share)
    }

    /// What comes before a command that is to run at `side`.
    pub(crate) fn prefix(&self, side: Side) -> Vec<OsString> {
        let group = match side {
            Side::Client => &self.client,
            Side::Server => &self.server,
        };
        let join_group = "echo $$ > \"$0\" && exec \"$@\"";
        let mut prefix: Vec<OsString> = ["sh", "-c", join_group].map(Into::into).to_vec();
        prefix.push(group.join("cgroup.procs").into());
        prefix
    }

    /// For tables.
    pub(crate) fn words(&self) -> String {
        format!("{} of a core each", self.cores)
    }
}

impl Drop for CpuShare {
    fn drop(&mut self) {
        for group in [&self.client, &self.server] {
            if let Err(error) = remove(group) {
                println!("cannot remove {group:?}: {error}");
            }
        }
    }
}

/// Removes a group, which may take a moment to notice that its last process is gone.
fn remove(group: &Path) -> std::io::Result<()> {
    let start = Instant::now();
    loop {
        match fs::remove_dir(group) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error)
                if error.kind() == ErrorKind::ResourceBusy && start.elapsed() < EMPTY_MAX =>
            {
                std::thread::sleep(Duration::from_millis(50));
            }
            done => return done,
        }
    }
}

impl Quota {
    fn set(&self, group: &Path, quota_us: u64) -> Result<()> {
        match self {
            Self::V2 => fs::write(group.join("cpu.max"), format!("{quota_us} {PERIOD_US}"))?,
            Self::V1 => {
                fs::write(group.join("cpu.cfs_period_us"), PERIOD_US.to_string())?;
                fs::write(group.join("cpu.cfs_quota_us"), quota_us.to_string())?;
            }
        }
        Ok(())
    }
}

/// Where groups with a quota can be made.
fn find_hierarchy() -> Result<(PathBuf, Quota)> {
    let root = Path::new("/sys/fs/cgroup");
    let controllers = fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
    if controllers.split_whitespace().any(|name| name == "cpu") {
        let control = root.join("cgroup.subtree_control");
        fs::write(&control, "+cpu").with_context(|| format!("cannot write {control:?}"))?;
        return Ok((root.to_path_buf(), Quota::V2));
    }
    let older = root.join("cpu");
    if older.join("cpu.cfs_quota_us").exists() || older.join("cgroup.procs").exists() {
        return Ok((older, Quota::V1));
    }
    bail!("no cgroups with the cpu controller below {root:?}: a share of a core cannot be held")
}
