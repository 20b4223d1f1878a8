//! The real components that tests use: found, installed where that is allowed, else named.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

/// A program that tests call, and the Debian package that has it.
struct Component {
    program: &'static str,
    package: &'static str,
}

const COMPONENTS: [Component; 11] = [
    Component { program: "setfattr", package: "attr" },
    Component { program: "setfacl", package: "acl" },
    Component { program: "setcap", package: "libcap2-bin" },
    Component { program: "mkfs.ext4", package: "e2fsprogs" },
    Component { program: "time", package: "time" },
    Component { program: "git", package: "git" },
    Component { program: "faketime", package: "faketime" },
    Component { program: "groff", package: "groff-base" },
    Component { program: "sshfs", package: "sshfs" },
    Component { program: "sshd", package: "openssh-server" },
    Component { program: "systemd-analyze", package: "systemd" },
];

/// Installs what is missing as root, or names it; in CI what is still missing is a failure.
pub(crate) fn ensure() -> Result<()> {
    let mut missing = missing();
    if !missing.is_empty() && is_root() && find("apt-get") {
        install(&missing);
        missing = self::missing();
    }
    if missing.is_empty() {
        return Ok(());
    }
    let what = format!("missing for the tests: apt-get install {}", missing.join(" "));
    if in_ci() {
        bail!("{what}");
    }
    println!("{what}");
    Ok(())
}

/// The packages of the programs that are not there.
fn missing() -> Vec<&'static str> {
    COMPONENTS.iter().filter(|c| !find(c.program)).map(|c| c.package).collect()
}

/// Whether `program` is in a folder where programs are.
fn find(program: &str) -> bool {
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]
        .iter()
        .any(|folder| Path::new(folder).join(program).is_file())
}

/// Installs `packages`; what goes wrong shows in what is still missing afterwards.
fn install(packages: &[&str]) {
    let apt = |args: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(args).env("DEBIAN_FRONTEND", "noninteractive");
        println!("{command:?}");
        command.status().is_ok_and(|status| status.success())
    };
    let args = [&["install", "-y", "--no-install-recommends"], packages].concat();
    // A fresh machine has no package lists yet.
    if !apt(&args) && apt(&["update"]) {
        apt(&args);
    }
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

#[expect(clippy::disallowed_methods, reason = "a build tool is told by the environment")]
fn in_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| !matches!(value.as_str(), "" | "0" | "false"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_and_nonsense_is_not() {
        assert!(find("sh"));
        assert!(!find("holdall-no-such-program"));
    }
}
