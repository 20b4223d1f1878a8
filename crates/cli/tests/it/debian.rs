//! The Debian package, installed, upgraded and removed in a system that has nothing yet.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use holdall_testkit::is_there;

use crate::house::{HOLDALL, folder};

/// `cargo xtask test` makes it.
pub(crate) const FRESH: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tools/debian/root");

/// A fresh Debian that nothing runs in.
struct Debian {
    root: PathBuf,
    _folder: tempfile::TempDir,
}

impl Debian {
    fn new() -> Option<Self> {
        let can = holdall_sys::users::effective_uid() == 0 && Path::new(FRESH).is_dir();
        is_there("root and a fresh Debian", can).then_some(())?;
        let folder = folder();
        let root = folder.path().join("root");
        let copied = Command::new("cp").args(["-a", FRESH]).arg(&root).status().unwrap();
        assert!(copied.success());
        Some(Self { root, _folder: folder })
    }

    /// Makes a package of that version, and gives its path in the system.
    fn package(&self, version: &str) -> String {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/deb");
        let out = self.root.join("packages");
        fs::create_dir_all(&out).unwrap();
        let mut command = Command::new(script);
        command.arg(&out).env("HOLDALL", HOLDALL).env("VERSION", version);
        // Packing well takes long, and is dpkg's own business.
        let made = command.env("DPKG_DEB_COMPRESSOR_TYPE", "none").output().unwrap();
        assert!(made.status.success(), "{made:?}");
        let name = String::from_utf8(made.stdout).unwrap();
        let name = Path::new(name.trim()).file_name().unwrap().to_str().unwrap().to_owned();
        format!("/packages/{name}")
    }

    /// Runs a command in it, which must end well, and gives what it said.
    #[track_caller]
    fn run(&self, args: &[&str]) -> String {
        let mut command = Command::new("chroot");
        command.arg(&self.root).args(args).env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        let output = command.env("LC_ALL", "C.UTF-8").output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!(output.status.success(), "{args:?}: {}: {said}", output.status);
        said
    }

    fn has(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }
}

#[test]
fn the_package_is_installed_upgraded_and_removed_and_leaves_what_is_the_owners() {
    let Some(debian) = Debian::new() else { return };
    let (first, second) = (debian.package("0.0.1"), debian.package("0.0.2"));
    debian.run(&["dpkg", "--install", &first]);
    assert!(debian.run(&["holdall", "version"]).starts_with("holdall 0."));
    let user = debian.run(&["getent", "passwd", "holdall"]);
    assert!(user.contains("/var/lib/holdall") && user.trim().ends_with("/nologin"), "{user}");
    for file in [
        "usr/share/man/man1/holdall-backup.1.gz",
        "usr/share/bash-completion/completions/holdall",
        "usr/lib/systemd/system/holdall-server.service",
        "usr/share/doc/holdall/copyright",
    ] {
        assert!(debian.has(file), "{file}");
    }
    let unit =
        fs::read_to_string(debian.root.join("usr/lib/systemd/system/holdall-server.service"));
    assert!(unit.unwrap().contains("ExecStart=/usr/bin/holdall serve"));
    assert!(debian.run(&["dpkg", "--verify", "holdall"]).is_empty());

    // What its owner wrote and stored stays, whatever comes.
    let settings = debian.root.join("etc/holdall/backup.env");
    fs::write(&settings, "BACKUP_PATHS=/mine\n").unwrap();
    debian.run(&["install", "-d", "-o", "holdall", "-m", "700", "/var/lib/holdall/repositories"]);
    debian.run(&["dpkg", "--install", &second]);
    assert_eq!(fs::read_to_string(&settings).unwrap(), "BACKUP_PATHS=/mine\n");
    assert!(debian.run(&["dpkg-query", "--show", "holdall"]).contains("0.0.2"));
    debian.run(&["dpkg", "--remove", "holdall"]);
    assert!(!debian.has("usr/bin/holdall") && !debian.has("usr/share/doc/holdall"));
    assert!(settings.exists() && debian.has("var/lib/holdall/repositories"));
    let said = debian.run(&["dpkg", "--purge", "holdall"]);
    assert!(said.contains("the backups in /var/lib/holdall stay"), "{said}");
    assert!(!settings.exists() && debian.has("var/lib/holdall/repositories"));
}
