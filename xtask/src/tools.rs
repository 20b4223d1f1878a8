//! Cargo's subcommands that the project's verbs call: taken as ready binaries, because compiling each takes
//! minutes.
//!
//! They come from PyPI into `target/tools`, by the system's own `pip`. Where that does not work, `cargo
//! install` compiles them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::{check, components, root};

/// A subcommand of cargo, and its version.
pub(crate) struct Tool {
    /// `cargo-NAME` is its program.
    name: &'static str,
    version: &'static str,
}

pub(crate) const NEXTEST: Tool = Tool { name: "nextest", version: "0.9.148" };
pub(crate) const DENY: Tool = Tool { name: "deny", version: "0.20.2" };
pub(crate) const FUZZ: Tool = Tool { name: "fuzz", version: "0.13.2" };

impl Tool {
    /// The command with `args`, to be run in the workspace's root. Installs the tool where it is missing.
    pub(crate) fn command(&self, args: &[&str]) -> Result<Command> {
        let mut command = Command::new(self.program()?);
        command.arg(self.name).args(args).current_dir(root());
        Ok(command)
    }

    /// Where the program is: in `target/tools`, or where the system finds the same version.
    pub(crate) fn program(&self) -> Result<PathBuf> {
        let name = format!("cargo-{}", self.name);
        let folder = root().join("target/tools").join(self.name);
        let ours = folder.join("bin").join(&name);
        if self.is_there(&ours) {
            return Ok(ours);
        }
        if self.is_there(Path::new(&name)) {
            return Ok(name.into());
        }
        if self.download(&folder) && self.is_there(&ours) {
            return Ok(ours);
        }
        let mut install = Command::new("cargo");
        install.args(["install", "--locked", &name, "--version", self.version, "--root"]);
        check(install.arg(folder))?;
        Ok(ours)
    }

    /// Fetches the ready binary; says whether that went well.
    fn download(&self, folder: &Path) -> bool {
        components::ensure_pip();
        let package = format!("astral-dev-toolchain-cargo-{}=={}", self.name, self.version);
        let mut pip = Command::new("/usr/bin/python3");
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        pip.args(["--root-user-action=ignore", "--no-deps", "--upgrade", "--target"]);
        pip.arg(folder).arg(package);
        println!("{pip:?}");
        pip.status().is_ok_and(|status| status.success())
    }

    /// Whether there is such a program, runs here, and is of this version.
    fn is_there(&self, program: &Path) -> bool {
        let said = Command::new(program).args([self.name, "--version"]).output();
        let is_right = |said: Vec<u8>| String::from_utf8_lossy(&said).contains(self.version);
        said.is_ok_and(|said| said.status.success() && is_right(said.stdout))
    }
}
