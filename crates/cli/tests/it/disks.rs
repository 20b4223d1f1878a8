//! `holdall disk` on loop devices: a person makes the disk ready that was meant, and no other. Mount points and units are
//! those of a mount namespace.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{FileExt, symlink};
use std::process::{Command, Stdio};

use holdall_testkit::{LoopDisk, is_there};

use crate::house::{HOLDALL, Machine, Outcome, is_root, text};
use crate::mounts::namespace;

const MIB: u64 = 1 << 20;
/// Places that a command may write to, for itself alone.
const OWN_PLACES: &str = "mount -t tmpfs none /srv; mount -t tmpfs none /etc/systemd";

/// A machine and a disk with `old` at its beginning, and another of zeros.
struct Desk {
    machine: Machine,
    disk: LoopDisk,
}

impl Desk {
    fn new(bytes: u64, old: &[u8]) -> Option<Self> {
        is_root("make loop devices").then_some(())?;
        let machine = Machine::new();
        fs::create_dir_all(machine.path("")).unwrap();
        let disk = LoopDisk::new(&machine.path("disk"), bytes, &[]).unwrap()?;
        disk.image().unwrap().write_all_at(old, 0).unwrap();
        Some(Self { machine, disk })
    }

    fn device(&self) -> &str {
        text(self.disk.device())
    }

    /// Runs a command after a script, in a namespace.
    fn run_after(&self, script: &str, args: &[&str]) -> Outcome {
        Outcome::of(&mut namespace(&self.machine, &format!("{OWN_PLACES}; {script}"), args))
    }

    fn run(&self, args: &[&str]) -> Outcome {
        self.run_after("true", args)
    }

    fn prepare<'a>(&'a self, more: &[&'a str]) -> Outcome {
        self.run(&[&["disk", "prepare", self.device()], more].concat())
    }

    /// Whether `old` is still where it was.
    fn has(&self, old: &[u8]) -> bool {
        let mut begins = vec![0; old.len()];
        self.disk.image().unwrap().read_exact_at(&mut begins, 0).unwrap();
        begins == old
    }
}

/// A label that no other test uses at the same time.
fn label() -> String {
    format!("l{}", std::process::id())
}

/// Has the loop device write out what it has in its cache.
fn flushed(desk: &Desk) {
    let done = Command::new("blockdev").args(["--flushbufs", desk.device()]).status().unwrap();
    assert!(done.success());
}

#[test]
fn a_new_disk_is_made_ready_by_one_command_and_backed_up_to() {
    for file_system in ["ext4", "btrfs", "xfs"] {
        let Some(desk) = Desk::new(400 * MIB, b"") else { return };
        let source = desk.machine.path("source");
        crate::house::small_tree(&source);
        // The disk before may still be there for a moment, with its label.
        let label = format!("{}{}", label(), &file_system[..1]);
        let (data, repo) = (format!("/srv/{label}/holdall"), format!("/srv/{label}/holdall/repo"));
        let script = format!(
            "{HOLDALL} disk prepare {} --label {label} --filesystem {file_system} --json > {}; \
             {HOLDALL} init -r {repo}; {HOLDALL} backup -r {repo} {}",
            desk.device(),
            text(&desk.machine.path("told")),
            text(&source)
        );
        let check = ["check", "-r", &repo, "--verify", "all"];
        desk.run_after(&script, &check).expect(0);
        let stdout = fs::read_to_string(desk.machine.path("told")).unwrap();
        let told = Outcome { code: Some(0), stdout, stderr: String::new() }.summary();
        let partition = format!("{}p1", desk.device());
        assert_eq!(
            (&told["partition"], &told["file_system"]),
            (&partition.into(), &file_system.into())
        );
        assert_eq!((&told["data"], &told["is_permanent"]), (&data.into(), &false.into()));
        // It has gone with the namespace, and is found again with all that was written.
        let mount = format!("mkdir /srv/again; mount {}p1 /srv/again", desk.device());
        desk.run_after(&mount, &["check", "-r", "/srv/again/holdall/repo"]).expect(0);
    }
}

#[test]
fn the_next_step_is_printed_as_it_can_be_typed() {
    let Some(desk) = Desk::new(64 * MIB, b"") else { return };
    let label = format!("my-{}", label());
    let said = desk.prepare(&["--label", &label]).expect(0);
    let lines: Vec<_> = said.stdout.lines().collect();
    assert!(lines[0].contains(&format!("{}, loop device on", desk.disk.name())), "{lines:?}");
    assert!(lines[0].ends_with("on it: nothing"), "{lines:?}");
    let next = format!("next: sudo holdall serve --data /srv/{label}/holdall");
    assert_eq!(*lines.last().unwrap(), next);
    let fstab = lines.iter().find(|line| line.starts_with("UUID=")).unwrap();
    assert!(
        fstab.ends_with(&format!(" /srv/{label} ext4 nofail,noatime,nodev,nosuid,noexec 0 2")),
        "{fstab}"
    );
    assert!(said.stderr.contains("writing the partition table"), "{}", said.stderr);
}

#[test]
fn the_unit_is_one_that_systemd_takes_and_starts_with_the_disk() {
    let Some(desk) = Desk::new(64 * MIB, b"") else { return };
    let label = label();
    let told = desk.prepare(&["--label", &format!("u-{label}"), "--json"]).expect(0).summary();
    let (name, unit) = (told["unit"].as_str().unwrap(), told["unit_text"].as_str().unwrap());
    assert_eq!(name, format!("srv-u\\x2d{label}.mount"));
    let root = desk.machine.path("root");
    let units = root.join("etc/systemd/system");
    fs::create_dir_all(&units).unwrap();
    fs::write(units.join(name), unit).unwrap();
    let systemd = |program: &str, args: &[&str]| {
        let output = Command::new(program).args(args).output();
        let Ok(output) = output else { return is_there(program, false) };
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program}: {said}");
        assert!(program == "systemctl" || !said.contains(name), "{program}: {said}");
        true
    };
    if !systemd("systemd-analyze", &["verify", text(&units.join(name))]) {
        return;
    }
    systemd("systemctl", &["--root", text(&root), "enable", name]);
    let uuid = told["uuid"].as_str().unwrap().replace('-', "\\x2d");
    let wanted = units.join(format!("dev-disk-by\\x2duuid-{uuid}.device.wants"));
    assert!(wanted.join(name).is_symlink(), "{wanted:?}");
}

#[test]
fn nothing_is_written_to_a_disk_with_something_on_it_until_its_name_is_typed() {
    const OLD: &[u8] = b"holiday photos";
    let Some(desk) = Desk::new(64 * MIB, OLD) else { return };
    let (name, label) = (desk.disk.name(), label());
    let asked = desk.prepare(&["--label", &label]).expect(2);
    assert!(asked.stdout.contains("on it: something that is not known"), "{}", asked.stdout);
    assert!(asked.stderr.contains(&format!("--confirm {name}")), "{}", asked.stderr);
    for other in ["", "/dev/", "sda", "loop", "yes", "backup"] {
        let said = desk.prepare(&["--label", &label, "--confirm", other]).expect(2).stderr;
        assert!(said.contains(&format!("that is not its name, which is {name}")), "{said}");
    }
    flushed(&desk);
    assert!(desk.has(OLD), "nothing was written");

    let link = desk.machine.path("usb-Maker_Disk-0:0");
    symlink(desk.disk.device(), &link).unwrap();
    for (device, confirmed) in
        [(desk.device(), &*name), (desk.device(), desk.device()), (text(&link), text(&link))]
    {
        let args = ["disk", "prepare", device, "--label", &label, "--confirm", confirmed];
        desk.run(&args).expect(0);
    }
    flushed(&desk);
    assert!(!desk.has(OLD));
}

#[test]
fn the_name_is_asked_for_at_a_terminal() {
    let Some(desk) = Desk::new(64 * MIB, b"photos") else { return };
    let at_terminal = |answer: &str| {
        let args = format!("disk prepare {} --label {}", desk.device(), label());
        let script = format!("{OWN_PLACES}; exec script -qec '{HOLDALL} {args}' /dev/null");
        let mut terminal = namespace(&desk.machine, &script, &[]);
        let mut process = terminal.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        process.stdin.take().unwrap().write_all(format!("{answer}\n").as_bytes()).unwrap();
        let output = process.wait_with_output().unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        Outcome { code: output.status.code(), stdout, stderr: String::new() }
    };
    for wrong in ["", "y", "sda"] {
        let said = at_terminal(wrong).expect(2).stdout;
        assert!(said.contains(&format!("Type {} to go on", desk.disk.name())), "{said}");
    }
    flushed(&desk);
    assert!(desk.has(b"photos"), "nothing was written");
    at_terminal(&desk.disk.name()).expect(0);
    flushed(&desk);
    assert!(!desk.has(b"photos"));
}

#[test]
fn a_disk_that_is_mounted_and_a_partition_are_refused_whatever_is_confirmed() {
    let Some(desk) = Desk::new(64 * MIB, b"") else { return };
    desk.prepare(&["--label", &label()]).expect(0);
    let (name, device) = (desk.disk.name(), desk.device());
    let mount = format!("mkdir /srv/photos; mount {device}p1 /srv/photos");
    for verb in [&["prepare", device, "--label", "x"][..], &["erase", device]] {
        let args = [&["disk"], verb, &["--confirm", &name]].concat();
        let said = desk.run_after(&mount, &args).expect(1).stderr;
        assert!(said.contains(&format!("{name}p1 is mounted at /srv/photos")), "{said}");
    }
    let part = format!("{device}p1");
    let args = ["disk", "erase", &part, "--confirm", &part];
    let said = desk.run(&args).expect(1).stderr;
    assert!(said.contains(&format!("it is a partition of {name}")), "{said}");
    assert!(said.contains(&format!("/dev/{name}")), "{said}");
    desk.run_after(&mount, &["version"]).expect(0);
}

#[test]
fn a_label_that_cannot_be_had_or_that_something_else_has_is_refused() {
    let Some(desk) = Desk::new(64 * MIB, b"") else { return };
    for bad in ["", "a b", "../x", "seventeen-letters", "ä"] {
        let said = desk.prepare(&[&format!("--label={bad}")]).expect(2).stderr;
        assert!(said.contains("cannot be had") && said.contains("--label"), "{said}");
    }
    let other = LoopDisk::new(&desk.machine.path("other"), 64 * MIB, &[]).unwrap().unwrap();
    let other = text(other.device());
    let label = label();
    desk.run(&["disk", "prepare", other, "--label", &label]).expect(0);
    let said = desk.prepare(&["--label", &label]).expect(2).stderr;
    assert!(said.contains("has it"), "{said}");

    let own = format!("own{label}");
    let prepare = ["disk", "prepare", desk.device(), "--label", &own];
    for (script, expected) in [
        ("mkdir /srv/photos; touch /srv/photos/mine", "/srv/photos is not empty"),
        ("touch /srv/photos", "/srv/photos cannot be used"),
        (
            "mkdir /srv/photos; mount -t tmpfs none /srv/photos",
            "something is mounted at /srv/photos",
        ),
        (
            "mkdir /etc/systemd/system; echo > /etc/systemd/system/srv-photos.mount",
            "and not of holdall",
        ),
    ] {
        let script = script.replace("photos", &own);
        let said = desk.run_after(&script, &prepare).expect(2).stderr;
        assert!(said.contains(&expected.replace("photos", &own)), "{said}");
    }
    // What an earlier try made is no hindrance.
    desk.run_after(&format!("mkdir -m 0 /srv/{own}"), &prepare).expect(0);
}

#[test]
fn a_disk_is_erased_once_its_name_is_typed_also_if_nothing_seems_to_be_on_it() {
    let Some(desk) = Desk::new(32 * MIB, b"photos") else { return };
    desk.run(&["disk", "erase", desk.device()]).expect(2);
    flushed(&desk);
    assert!(desk.has(b"photos"), "nothing was written");
    let args = ["disk", "erase", desk.device(), "--passes", "2", "--confirm", desk.device()];
    let said = desk.run(&args).expect(0).stdout;
    assert!(
        said.contains("overwritten 2 times") && said.contains("33.6 MB of it read back"),
        "{said}"
    );
    flushed(&desk);
    assert!(!desk.has(b"photos"));
    desk.run(&["disk", "erase", desk.device()]).expect(2);
    let told = desk.run(&[&args[..], &["--json"]].concat()).expect(0).summary();
    assert_eq!((&told["refused_bytes"], &told["compared_bytes"]), (&0.into(), &(32 * MIB).into()));
    desk.run(&[&args[..4], &["0"]].concat()).expect(2);
}

#[test]
fn disks_are_listed_for_people_and_for_programs_with_what_is_in_the_way() {
    let Some(desk) = Desk::new(64 * MIB, b"") else { return };
    let label = label();
    desk.prepare(&["--label", &label]).expect(0);
    let own = |listed: Vec<serde_json::Value>| {
        listed.into_iter().find(|disk| disk["device"] == desk.device()).unwrap()
    };
    let free = own(desk.run(&["disk", "list", "--json"]).expect(0).of_type("listed_disk"));
    assert_eq!(free["refused"], serde_json::json!([]));
    assert_eq!(
        (&free["parts"][0]["content"], &free["parts"][0]["label"]),
        (&"ext4".into(), &(&*label).into())
    );
    let mount = format!("mkdir /srv/a; mount {}p1 /srv/a", desk.device());
    let said = desk.run_after(&mount, &["disk", "list"]).expect(0).stdout;
    let name = desk.disk.name();
    let expected =
        format!("  {name}p1: 65.0 MB, ext4 \"{label}\", mounted at /srv/a\n  not free: ");
    assert!(said.contains(&expected), "{said}");
    assert!(
        own(desk.run_after(&mount, &["disk", "list", "--json"]).of_type("listed_disk"))["refused"]
            [0]
        .as_str()
        .unwrap()
        .ends_with("is mounted at /srv/a")
    );
}

#[test]
fn an_ordinary_user_lists_disks_and_writes_to_none() {
    let Some(desk) = Desk::new(32 * MIB, b"photos") else { return };
    let user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let machine = &desk.machine;
    for verb in [&["prepare", desk.device(), "--label", "x"][..], &["erase", desk.device()]] {
        let name = desk.disk.name();
        let args = [&["disk"], verb, &["--confirm", &name]].concat();
        let said = machine.run_by(&user, args).expect(13).stderr;
        assert!(said.contains("only root") && said.contains("sudo holdall disk"), "{said}");
    }
    let said = machine.run_by(&user, ["disk", "list"]).expect(0).stdout;
    assert!(said.contains(desk.device()), "{said}");
    assert!(desk.has(b"photos"));
}
