//! This computer's key in the system's keyring: a real one, of GNOME, on a bus of the test's own.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use holdall_testkit::{Process, is_there};

use crate::bus::Bus;
use crate::house::{Machine, Outcome, Server, text};

const SERVICE: [&str; 2] = ["org.freedesktop.secrets", "/org/freedesktop/secrets"];
const BUS: [&str; 3] = ["org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus"];
const LOGIN: &str = "/org/freedesktop/secrets/collection/login";

/// A machine that is paired, with a keyring that its user has just unlocked by logging in.
struct Desk {
    machine: Machine,
    _server: Server,
    bus: Bus,
    keyring: Process,
}

impl Desk {
    fn new() -> Option<Self> {
        let programs = ["gnome-keyring-daemon", "secret-tool", "busctl"];
        let has = |program: &&str| Command::new(program).arg("--version").output().is_ok();
        if !is_there("gnome-keyring and libsecret-tools", programs.iter().all(has)) {
            return None;
        }
        let bus = Bus::start()?;
        let machine = Machine::new().with_password(None);
        let server = Server::start(&machine.path("data"));
        machine.pair_with(&server);
        fs::create_dir(machine.path("source")).unwrap();
        fs::write(machine.path("source/a"), "a").unwrap();
        let keyring = log_in(&machine, &bus);
        Some(Self { machine, _server: server, bus, keyring })
    }

    fn run(&self, args: &[&str]) -> Outcome {
        let mut command = self.machine.command(args);
        Outcome::of(command.env("DBUS_SESSION_BUS_ADDRESS", self.bus.address()))
    }

    fn backup(&self) -> Outcome {
        self.run(&["backup", text(&self.machine.path("source"))])
    }

    /// The one file in which a key was kept.
    fn kept(&self) -> PathBuf {
        let folder = self.machine.path("config/state/keys");
        let mut files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let file = files.next().unwrap();
        assert!(files.next().is_none());
        file
    }

    fn lock(&self) {
        let mut command = Command::new("busctl");
        command.arg(format!("--address={}", self.bus.address())).arg("call").args(SERVICE);
        command.args(["org.freedesktop.Secret.Service", "Lock", "ao", "1", LOGIN]);
        assert!(command.output().unwrap().status.success());
    }

    /// What the keyring has of holdall, as anybody who is logged in can ask it.
    fn in_keyring(&self) -> String {
        let mut command = Command::new("secret-tool");
        command.args(["lookup", "application", "holdall"]);
        let output = command.env("DBUS_SESSION_BUS_ADDRESS", self.bus.address()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }
}

/// Starts the keyring as a login does, with the login's password.
fn log_in(machine: &Machine, bus: &Bus) -> Process {
    let password = machine.path("login");
    fs::write(&password, "login").unwrap();
    let mut command = Command::new("sh");
    let program = "exec gnome-keyring-daemon --foreground --unlock --components=secrets < \"$0\"";
    command.args(["-c", program, text(&password)]);
    command.env("DBUS_SESSION_BUS_ADDRESS", bus.address()).env("HOME", machine.path("home"));
    command.env("XDG_DATA_HOME", machine.path("data-home"));
    command.env("XDG_RUNTIME_DIR", machine.path("runtime"));
    let daemon = Process::spawn(command.stderr(Stdio::null())).unwrap();
    let mut look = Command::new("busctl");
    look.arg(format!("--address={}", bus.address())).arg("call").args(BUS);
    look.args(["NameHasOwner", "s", SERVICE[0]]);
    while look.output().unwrap().stdout != b"b true\n" {}
    daemon
}

#[test]
fn a_key_in_the_keyring_is_in_no_file_and_is_had_while_its_user_is_logged_in() {
    let Some(mut desk) = Desk::new() else { return };
    let kept = desk.kept();
    let ring = fs::read(&kept).unwrap();
    desk.run(&["key", "keep", "keyring"]).expect(0);
    assert_eq!(fs::read(&kept).unwrap(), b"in the keyring\n");
    let digits: String = ring.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(desk.in_keyring(), digits);
    desk.backup().expect(0);

    // A rotated key follows it there.
    desk.run(&["key", "rotate"]).expect(0);
    assert!(desk.in_keyring().len() > digits.len());
    assert_eq!(fs::read(&kept).unwrap(), b"in the keyring\n");
    desk.backup().expect(0);

    desk.lock();
    let locked = desk.backup().expect(1);
    assert!(
        locked.stderr.contains("the system's keyring: the keyring does not give it"),
        "{}",
        locked.stderr
    );
    assert!(locked.stderr.contains("log in, or unlock the keyring"), "{}", locked.stderr);
    let refused = desk.run(&["key", "keep", "file"]).expect(1);
    assert!(refused.stderr.contains("the keyring does not give it"), "{}", refused.stderr);

    // Without a desktop there is no bus.
    let away = desk.machine.run(["backup", text(&desk.machine.path("source"))]).expect(1);
    assert!(away.stderr.contains("D-Bus"), "{}", away.stderr);

    // The next login.
    desk.keyring.kill().unwrap();
    desk.keyring = log_in(&desk.machine, &desk.bus);
    desk.backup().expect(0);
    desk.run(&["key", "keep", "file"]).expect(0);
    assert_eq!(desk.in_keyring(), "");
    assert!(fs::read(&kept).unwrap().starts_with(&ring[..4]));
    desk.machine.ok(["backup", text(&desk.machine.path("source"))]);
}

#[test]
fn without_the_program_for_it_a_key_stays_where_it_is() {
    let Some(desk) = Desk::new() else { return };
    let ring = fs::read(desk.kept()).unwrap();
    let mut command = desk.machine.command(["key", "keep", "keyring"]);
    let refused = Outcome::of(command.env("PATH", "/nowhere")).expect(1);
    assert!(refused.stderr.contains("Debian has it in libsecret-tools"), "{}", refused.stderr);
    assert_eq!(fs::read(desk.kept()).unwrap(), ring);
}
