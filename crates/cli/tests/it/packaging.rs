//! What `packaging/install` puts where, and that systemd understands the units.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::house::{HOLDALL, Machine, Outcome, files_below, folder, text};

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
        "holdall-agent.service",
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
    assert!(complaints(user.path(), &units[3..4]).contains("OnCalender"), "a mistake is noticed");
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
    let most = [
        ("holdall-server.service", 2.0),
        ("holdall-backup.service", 4.0),
        ("holdall-agent.service", 4.0),
    ];
    for (unit, most) in most {
        let exposure = exposure(root.path(), unit);
        assert!(exposure < most, "{unit}: {exposure}");
    }
    for unit in [
        "holdall-server.service",
        "holdall-agent.service",
        "holdall-backup.service",
        "user/holdall-agent.service",
        "user/holdall-backup.service",
    ] {
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

/// A program in the place of `systemctl`, which keeps what it was asked; these timers are on.
fn service_manager(machine: &Machine, is_on: &[&str]) -> PathBuf {
    let folder = machine.path("bin");
    fs::create_dir_all(&folder).unwrap();
    let on = is_on.join("|");
    let script = format!(
        "#!/bin/sh\necho \"$*\" >> {}\ncase \"$*\" in *is-enabled*) case \"$*\" in {on}) exit 0;; *) exit 1;; esac;; esac\n",
        text(&machine.path("asked"))
    );
    let program = folder.join("systemctl");
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

fn asked(machine: &Machine) -> Vec<String> {
    let asked = fs::read_to_string(machine.path("asked")).unwrap();
    let orders = asked.lines().filter(|line| !line.contains("is-enabled"));
    orders.map(str::to_owned).collect()
}

#[test]
fn the_agent_is_installed_in_the_place_of_the_timer_and_removed_again() {
    let machine = Machine::new();
    let bin = service_manager(&machine, &["*holdall-backup.timer"]);
    let agent = |args: &[&str]| {
        let mut command = machine.command([&["agent", "install", "--json"], args].concat());
        let path = format!("{}:/usr/bin:/bin", text(&bin));
        Outcome::of(command.env("PATH", path)).expect(0).objects().remove(0)
    };
    let unit = machine.path("home/.config/systemd/user/holdall-agent.service");
    let refused = machine.run(["agent", "install"]).expect(2);
    assert!(refused.stderr.contains("would back nothing up"), "{}", refused.stderr);
    fs::create_dir_all(machine.path("config")).unwrap();
    fs::write(machine.path("config/config.toml"), "[sets.home]\npaths = [\"/home\"]\n").unwrap();
    let printed = agent(&["--print"]);
    assert!(!unit.exists() && !machine.path("asked").exists(), "it is only shown");

    let installed = agent(&[]);
    assert_eq!(installed["disabled"], serde_json::json!(["holdall-backup.timer"]));
    let written = fs::read_to_string(&unit).unwrap();
    assert_eq!(printed["text"].as_str(), Some(&*written));
    assert!(written.contains(&format!("ExecStart={HOLDALL} agent\n")), "{written}");
    let config = format!("Environment=HOLDALL_CONFIG_DIR={}\n", text(&machine.path("config")));
    assert!(written.contains(&config), "{written}");
    let expected = [
        "--user daemon-reload",
        "--user disable --now holdall-backup.timer",
        "--user enable holdall-agent.service",
        "--user restart holdall-agent.service",
    ];
    assert_eq!(asked(&machine), expected);

    agent(&["--remove"]);
    assert!(!unit.exists());
    assert_eq!(asked(&machine)[4], "--user disable --now holdall-agent.service");
}

#[test]
fn the_unit_of_the_system_lets_the_agent_write_to_repositories_in_directories() {
    let machine = Machine::new();
    fs::create_dir_all(machine.path("config")).unwrap();
    let settings = "[repositories.disk]\nrepository = \"/mnt/my disk\"\n[sets.home]\npaths = [\"/home\"]\n\
         repository = \"disk\"\n[sets.etc]\npaths = [\"/etc\"]\nrepository = \"https://attic\"\n";
    fs::write(machine.path("config/config.toml"), settings).unwrap();
    let unit = machine.ok(["agent", "install", "--system", "--print"]).stdout;
    let writable: Vec<_> =
        unit.lines().filter(|line| line.starts_with("ReadWritePaths=-")).collect();
    let own =
        ["config", "cache"].map(|name| format!("ReadWritePaths=-{}", text(&machine.path(name))));
    assert_eq!(writable[..2], own, "the folders that the environment names");
    assert_eq!(writable[2..], ["ReadWritePaths=-\"/mnt/my disk\""]);
    let root = folder();
    install(root.path(), &[]);
    // What is there under the name of the program, systemd looks for.
    let unit = unit.replace(HOLDALL, "/usr/local/bin/holdall");
    fs::write(root.path().join("etc/systemd/system/holdall-agent.service"), unit).unwrap();
    assert_eq!(complaints(root.path(), &["holdall-agent.service"]), "");
}
