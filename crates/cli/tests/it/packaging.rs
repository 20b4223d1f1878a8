//! What `packaging/install` puts where, and that systemd understands the units.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::house::{HOLDALL, Machine, files_below, folder, text};

fn packaging(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(name)
}

fn install(root: &Path, args: &[&str]) {
    let mut command = Command::new(packaging("install"));
    command.args(args).env("DESTDIR", root).env("HOLDALL", HOLDALL);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn installed(root: &Path) -> Vec<String> {
    let within = |file: PathBuf| file.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
    let mut found: Vec<_> = files_below(root).into_iter().map(within).collect();
    found.sort();
    found
}

/// What systemd has to say of the units in a root folder.
fn complaints(root: &Path, units: &[&str]) -> String {
    // Units of its own, which ours wait for.
    let own = root.join("lib/systemd");
    fs::create_dir_all(&own).unwrap();
    let copied = Command::new("cp").args(["-a", "/lib/systemd/system"]).arg(&own).status().unwrap();
    assert!(copied.success());
    // And what they call of the system.
    fs::create_dir_all(root.join("bin")).unwrap();
    for program in ["mkdir", "sh"] {
        fs::copy(Path::new("/bin").join(program), root.join("bin").join(program)).unwrap();
    }
    let mut command = Command::new("systemd-analyze");
    command.args(["verify", "--man=no", "--root"]).arg(root).args(units);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { said } else { format!("{}: {said}", output.status) }
}

#[test]
fn everything_is_installed_and_removed_again_but_for_what_the_owner_wrote() {
    let root = folder();
    install(root.path(), &[]);
    let found = installed(root.path());
    for wanted in [
        "usr/local/bin/holdall",
        "usr/local/share/man/man1/holdall.1",
        "usr/local/share/man/man1/holdall-backup.1",
        "usr/local/share/bash-completion/completions/holdall",
        "etc/systemd/system/holdall-server.service",
        "etc/sysusers.d/holdall.conf",
    ] {
        assert!(found.iter().any(|file| file == wanted), "{wanted} is not among {found:#?}");
    }
    let settings = root.path().join("etc/holdall/backup.env");
    fs::write(&settings, "BACKUP_PATHS=/mine\n").unwrap();
    install(root.path(), &[]);
    assert_eq!(fs::read_to_string(&settings).unwrap(), "BACKUP_PATHS=/mine\n");
    install(root.path(), &["--remove"]);
    assert_eq!(installed(root.path()), ["etc/holdall/backup.env"]);
}

#[test]
fn systemd_understands_the_units() {
    let root = folder();
    install(root.path(), &[]);
    let units = [
        "holdall-server.service",
        "holdall-backup.service",
        "holdall-backup.timer",
        "holdall-overdue.service",
        "holdall-overdue.timer",
        "holdall-failed@holdall-backup.service.service",
    ];
    assert_eq!(complaints(root.path(), &units), "");

    // A user's units are understood alike; they are looked at in the place of the system's.
    let user = folder();
    let place = user.path().join("etc/systemd/system");
    fs::create_dir_all(&place).unwrap();
    fs::create_dir_all(user.path().join("usr/local/bin")).unwrap();
    fs::copy(HOLDALL, user.path().join("usr/local/bin/holdall")).unwrap();
    for unit in fs::read_dir(packaging("systemd/user")).unwrap() {
        let unit = unit.unwrap();
        fs::copy(unit.path(), place.join(unit.file_name())).unwrap();
    }
    assert_eq!(complaints(user.path(), &units[1..]), "");
    fs::write(place.join("holdall-backup.timer"), "[Timer]\nOnCalender=daily\n").unwrap();
    assert!(complaints(user.path(), &units[2..3]).contains("OnCalender"), "a mistake is noticed");
}

/// What the units are fenced in by, as systemd judges it without a manager: of 10, where less is better.
fn exposure(root: &Path, unit: &str) -> f64 {
    let mut command = Command::new("systemd-analyze");
    command.args(["security", "--offline=true", "--no-pager", "--root"]).arg(root).arg(unit);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let judged = said.lines().find(|line| line.contains("exposure level")).expect("a judgement");
    let words = judged.split_whitespace();
    words.filter_map(|word| word.parse().ok()).next().expect("a number")
}

#[test]
fn services_are_fenced_in_and_leave_no_core_dumps() {
    let root = folder();
    install(root.path(), &[]);
    for (unit, most) in [("holdall-server.service", 2.0), ("holdall-backup.service", 4.0)] {
        let exposure = exposure(root.path(), unit);
        assert!(exposure < most, "{unit}: {exposure}");
    }
    for unit in ["holdall-server.service", "holdall-backup.service", "user/holdall-backup.service"]
    {
        let text = fs::read_to_string(packaging("systemd").join(unit)).unwrap();
        assert!(text.lines().any(|line| line == "LimitCORE=0"), "{unit}");
        // It would hide /usr/lib/modules from a backup.
        let hides = text.lines().any(|line| line.starts_with("ProtectKernelModules="));
        assert!(!hides || unit == "holdall-server.service", "{unit}");
    }
}

/// The options of a backup as a unit or its file of settings has them, for that home folder.
fn shipped_options(file: &str, home: &str) -> Vec<String> {
    let settings = fs::read_to_string(packaging(file)).unwrap().replace("\\\n", " ");
    let (_, options) = settings.split_once("BACKUP_OPTIONS=").expect("it has options");
    let options = options.split(['"', '\n']).next().unwrap().replace("%h", home);
    options.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn what_is_shipped_leaves_out_caches_and_trash_and_nothing_else_of_a_home() {
    for file in ["backup.env", "systemd/user/holdall-backup.service"] {
        let machine = Machine::new();
        let (repo, home) = (machine.path("repo"), machine.path("anna"));
        let kept = ["letter", ".config/caches", ".local/share/mail", "src/.cache/x"];
        let left_out = [".cache/x", ".local/share/Trash/files/x"];
        for name in kept.iter().chain(&left_out) {
            let path = home.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }
        machine.init(&["-r", text(&repo)]);
        let mut command = machine.command(["backup", "-r", text(&repo), text(&home)]);
        command.arg("--as").arg(format!("{}=/home/anna", text(&home)));
        let made = command.args(shipped_options(file, "/home/anna")).output().unwrap();
        assert!(made.status.success(), "{file}: {made:?}");
        for name in kept {
            machine.ok(["ls", "-r", text(&repo), "latest", &format!("/home/anna/{name}")]);
        }
        for name in left_out {
            let path = format!("/home/anna/{name}");
            let told = machine.run(["ls", "-r", text(&repo), "latest", &path]);
            assert_ne!(told.code, Some(0), "{file} takes {name}");
        }
    }
}
