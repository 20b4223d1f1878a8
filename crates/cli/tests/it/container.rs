//! The image of a server: built from its Dockerfile by podman and run, with its own check of health.
//!
//! Nothing is fetched: the system below it is the fresh Debian that `cargo xtask test` made, and in the place of the stage that
//! compiles is the binary under test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use holdall_testkit::is_there;

use crate::debian::FRESH;
use crate::house::{HOLDALL, Machine, small_tree, text};

/// Far more than a server takes to listen, on a computer that does much else.
const PATIENCE: Duration = Duration::from_secs(60);
const BASE: &str = "docker.io/library/debian:bookworm-slim";
const IMAGE: &str = "holdall-under-test";
const NAME: &str = "holdall";

/// A podman with images of its own.
struct Podman {
    machine: Machine,
}

impl Podman {
    fn new() -> Option<Self> {
        let has = |program: &str| Path::new(program).is_file();
        let can = holdall_sys::users::effective_uid() == 0 && Path::new(FRESH).is_dir();
        let can = can && has("/usr/bin/podman") && has("/usr/sbin/runc");
        is_there("root, podman, runc and a fresh Debian", can).then_some(())?;
        let podman = Self { machine: Machine::new() };
        // Where limits may not be raised, podman's usual ones keep a container from being started.
        fs::write(podman.path("containers.conf"), "[containers]\ndefault_ulimits = []\n").unwrap();
        Some(podman)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.machine.path(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("podman");
        command.arg("--root").arg(self.path("images")).arg("--runroot").arg(self.path("running"));
        command.args(["--runtime", "runc", "--cgroup-manager", "cgroupfs"]).args(args);
        command.env("CONTAINERS_CONF", self.path("containers.conf"));
        command
    }

    /// Runs podman to its end; what it said on both outputs.
    fn run(&self, args: &[&str]) -> Result<String, String> {
        let output = self.command(args).output().expect("podman starts");
        let said = String::from_utf8_lossy(&[output.stderr, output.stdout].concat()).into_owned();
        if output.status.success() { Ok(said) } else { Err(format!("{args:?}: {said}")) }
    }

    #[track_caller]
    fn ok(&self, args: &[&str]) -> String {
        self.run(args).unwrap_or_else(|said| panic!("{said}"))
    }

    /// Builds the image on the fresh Debian.
    fn build(&self) {
        let (system, stage) = (self.path("debian.tar"), self.path("stage"));
        let tar = ["-C", FRESH, "--exclude=./var/cache/apt", "--exclude=./var/lib/apt/lists"];
        let packed = Command::new("tar").args(tar).arg("-cf").arg(&system).arg(".").status();
        assert!(packed.unwrap().success());
        self.ok(&["import", text(&system), BASE]);
        let compiled = stage.join("holdall/target/dist");
        fs::create_dir_all(&compiled).unwrap();
        fs::copy(HOLDALL, compiled.join("holdall")).unwrap();
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/container/Dockerfile");
        let build = format!("build={}", text(&stage));
        let args = ["build", "--format", "docker", "--pull=never", "--build-context", &build];
        let more = ["--target", "server", "-f", text(&file), "-t", IMAGE, text(&stage)];
        self.ok(&[&args[..], &more].concat());
    }

    /// Waits until the server in the container listens, and gives its address.
    fn address(&self) -> String {
        let begun = Instant::now();
        loop {
            let log = self.ok(&["logs", NAME]);
            let address = log.lines().find_map(|line| line.split_once("listening on https://"));
            if let Some((_, address)) = address {
                return address.trim().to_owned();
            }
            assert!(begun.elapsed() < PATIENCE, "{log}");
            sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Podman {
    fn drop(&mut self) {
        let _ = self.run(&["rm", "--force", "--time", "0", NAME]);
        // Its layers are mounted.
        let _ = self.run(&["umount", "--all"]);
    }
}

#[test]
fn the_image_runs_without_rights_says_how_it_is_and_keeps_what_it_has() {
    let Some(podman) = Podman::new() else { return };
    podman.build();
    let run = ["run", "--detach", "--name", NAME, "--network", "host", "--read-only"];
    let rights = ["--cap-drop", "all", "--security-opt", "no-new-privileges"];
    let place = ["--env", "HOLDALL_LISTEN=127.0.0.1:0", "--volume", "holdall:/data", IMAGE];
    podman.ok(&[&run[..], &rights, &place].concat());
    let address = podman.address();
    let user = podman.ok(&["exec", NAME, "stat", "-c", "%u %a", "/proc/1", "/data"]);
    assert_eq!(user.split_whitespace().collect::<Vec<_>>(), ["7443", "555", "7443", "700"]);
    podman.ok(&["healthcheck", "run", NAME]);

    let machine = &podman.machine;
    let invite = podman.ok(&["exec", NAME, "holdall", "invite", "--address", &address]);
    machine.pair(invite.lines().last().expect("an invite"));
    let source = machine.path("source");
    small_tree(&source);
    machine.ok(["backup", text(&source)]);

    podman.ok(&["stop", NAME]);
    let unwell = podman.run(&["healthcheck", "run", NAME]).expect_err("it does not run");
    assert!(unwell.contains("not running"), "{unwell}");
    podman.ok(&["start", NAME]);
    let log = podman.ok(&["logs", NAME]);
    assert!(podman.address() == address || log.matches("listening on").count() == 2, "{log}");
    podman.ok(&["healthcheck", "run", NAME]);
    let machines = podman.ok(&["exec", NAME, "holdall", "admin", "machines"]);
    let rows: Vec<_> = machines.lines().skip(1).collect();
    assert!(rows.len() == 1 && rows[0].contains(" backup "), "{machines}");
}
