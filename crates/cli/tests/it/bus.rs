//! A D-Bus of the test's own, in the place of the system's and of the session's.

use std::process::Command;

use holdall_testkit::{Process, is_there};

pub(crate) struct Bus {
    address: String,
    _daemon: Process,
}

impl Bus {
    /// `None` where there is no program for it.
    pub(crate) fn start() -> Option<Self> {
        let has_bus = Command::new("dbus-daemon").arg("--version").output().is_ok();
        if !is_there("dbus-daemon", has_bus) {
            return None;
        }
        let mut daemon = Command::new("dbus-daemon");
        daemon.args(["--session", "--nofork", "--print-address"]);
        let mut daemon = Process::spawn(&mut daemon).unwrap();
        let address = daemon.wait_for_line("unix:").unwrap().trim().to_owned();
        Some(Self { address, _daemon: daemon })
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }
}
