//! The real components that tests use: found, installed where that is allowed, else named.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::{fresh_debian, packages, pebble};

/// A program that tests call, and the Debian package that has it.
struct Component {
    program: &'static str,
    package: &'static str,
}

const COMPONENTS: [Component; 39] = [
    Component { program: "setfattr", package: "attr" },
    Component { program: "setfacl", package: "acl" },
    Component { program: "setcap", package: "libcap2-bin" },
    Component { program: "mkfs.ext4", package: "e2fsprogs" },
    Component { program: "podman", package: "podman" },
    Component { program: "runc", package: "runc" },
    Component { program: "mkfs.btrfs", package: "btrfs-progs" },
    Component { program: "mkfs.xfs", package: "xfsprogs" },
    Component { program: "sfdisk", package: "fdisk" },
    Component { program: "time", package: "time" },
    Component { program: "git", package: "git" },
    Component { program: "faketime", package: "faketime" },
    Component { program: "groff", package: "groff-base" },
    Component { program: "sshfs", package: "sshfs" },
    Component { program: "fusermount3", package: "fuse3" },
    Component { program: "sshd", package: "openssh-server" },
    Component { program: "systemd-analyze", package: "systemd" },
    Component { program: "dbus-daemon", package: "dbus-daemon" },
    Component { program: "gnome-keyring-daemon", package: "gnome-keyring" },
    Component { program: "secret-tool", package: "libsecret-tools" },
    Component { program: "wakeonlan", package: "wakeonlan" },
    Component { program: "avahi-daemon", package: "avahi-daemon" },
    Component { program: "strace", package: "strace" },
    Component { program: "fio", package: "fio" },
    Component { program: "chromium", package: "chromium" },
    Component { program: "rclone", package: "rclone" },
    Component { program: "cadaver", package: "cadaver" },
    Component { program: "promtool", package: "prometheus" },
    Component { program: "node", package: "nodejs" },
    Component { program: "npm", package: "npm" },
    Component { program: "ip", package: "iproute2" },
    Component { program: "cc", package: "gcc" },
    Component { program: "iperf3", package: "iperf3" },
    Component { program: "dpkg-deb", package: "dpkg" },
    Component { program: "debootstrap", package: "debootstrap" },
    Component { program: "pg_ctlcluster", package: "postgresql" },
    Component { program: "mariadbd", package: "mariadb-server" },
    Component { program: "sqlite3", package: "sqlite3" },
    Component { program: "restic", package: "restic" },
];

/// A module of the system's Python that tests import, and the Debian package that has it.
struct Module {
    name: &'static str,
    package: &'static str,
}

/// Brings the tools of `tools.rs`.
const PIP: Module = Module { name: "pip", package: "python3-pip" };

const MODULES: [Module; 5] = [
    PIP,
    Module { name: "cryptography", package: "python3-cryptography" },
    Module { name: "zstandard", package: "python3-zstandard" },
    Module { name: "gi", package: "python3-gi" },
    Module { name: "dbusmock", package: "python3-dbusmock" },
];

/// Installs `pip` alone, as root and where it is missing.
pub(crate) fn ensure_pip() {
    if !can_import(PIP.name) && is_root() && find("apt-get") {
        install(&[PIP.package]);
    }
}

/// Installs what is missing as root, or names it; in CI what is still missing is a failure.
pub(crate) fn ensure() -> Result<()> {
    let mut missing = missing();
    if !missing.is_empty() && is_root() && find("apt-get") {
        install(&missing);
        missing = self::missing();
    }
    let mut lacking = Vec::new();
    if !missing.is_empty() {
        lacking.push(format!("apt-get install {}", missing.join(" ")));
    }
    lacking.extend(packages::ensure());
    if !pebble::ensure() {
        lacking.push(format!("go install {}", pebble::MODULE));
    }
    if !fresh_debian::ensure() {
        lacking.push("debootstrap, as root".to_owned());
    }
    if lacking.is_empty() {
        return Ok(());
    }
    let what = format!("missing for the tests: {}", lacking.join("; "));
    if in_ci() {
        bail!("{what}");
    }
    println!("{what}");
    Ok(())
}

/// The packages of the programs and modules that are not there.
fn missing() -> Vec<&'static str> {
    let programs = COMPONENTS.iter().filter(|c| !find(c.program)).map(|c| c.package);
    let modules = MODULES.iter().filter(|m| !can_import(m.name)).map(|m| m.package);
    programs.chain(modules).collect()
}

/// Whether the system's Python has a module.
fn can_import(module: &str) -> bool {
    let imported =
        Command::new("/usr/bin/python3").arg("-c").arg(format!("import {module}")).output();
    imported.is_ok_and(|output| output.status.success())
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

    #[test]
    fn whoever_contributes_is_told_of_every_package() {
        let told = include_str!("../../CONTRIBUTING.md");
        let packages = COMPONENTS.iter().map(|one| one.package);
        for package in packages.chain(MODULES.iter().map(|one| one.package)) {
            assert!(told.contains(&format!("`{package}`")), "{package}");
        }
    }

    #[test]
    fn a_module_that_nobody_has_can_not_be_imported() {
        assert!(!can_import("holdall_no_such_module"));
    }
}
