//! A backup that fails is noticed: by the units of systemd, and by `holdall status`, which tells what this computer knows
//! when the server is away, when a run was killed and when its notes are damaged.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use holdall_testkit::Process;
use rustix::process::Signal;
use serde_json::Value;

use crate::house::{Machine, Outcome, Server, files_below, send_signal, small_tree, text};

/// Far less than anybody waits on a bad day.
const SECONDS: Duration = Duration::from_secs(20);

fn source_of(machine: &Machine) -> PathBuf {
    let source = machine.path("source");
    small_tree(&source);
    source
}

/// A machine with a repository in a directory, which it backed up to once.
fn backed_up() -> (Machine, PathBuf, PathBuf) {
    let machine = Machine::new();
    let (source, repo) = (source_of(&machine), machine.path("repo"));
    machine.init(&["-r", text(&repo)]);
    machine.ok(["backup", "-r", text(&repo), text(&source)]);
    (machine, source, repo)
}

fn status(machine: &Machine, repo: &Path) -> Value {
    machine.summary(["status", "-r", text(repo)])
}

fn notes(machine: &Machine) -> Vec<PathBuf> {
    files_below(&machine.path("config/state/runs"))
}

#[test]
fn status_tells_the_last_good_backup_what_failed_since_and_how_much_room_there_is() {
    let (machine, source, repo) = backed_up();
    let told = status(&machine, &repo);
    assert_eq!(told["place"], text(&repo));
    assert_eq!(told["last_good"]["result"], "done");
    assert_eq!(told["last_good"]["sources"], serde_json::json!([text(&source)]));
    assert!(told["age_seconds"].as_u64().unwrap() < 60 && told["reachable"] == true, "{told}");
    assert!(told["free_bytes"].as_u64().unwrap() > 0 && told["stored_bytes"].as_u64().unwrap() > 0);
    assert_eq!((&told["last_failure"], &told["last_check"]), (&Value::Null, &Value::Null));

    machine.ok(["check", "-r", text(&repo)]);
    let gone = machine.path("gone");
    machine.run(["backup", "-r", text(&repo), text(&gone)]).expect(1);
    let told = status(&machine, &repo);
    assert_eq!(told["last_check"]["result"], "done");
    assert_eq!(told["last_good"]["sources"], serde_json::json!([text(&source)]));
    for run in [&told["last_attempt"], &told["last_failure"]] {
        assert_eq!((&run["result"], &run["exit_code"]), (&"failed".into(), &1.into()));
        assert!(run["cause"].as_str().unwrap().contains(text(&gone)), "{run}");
    }
    let words = machine.ok(["status", "-r", text(&repo)]).stdout;
    for part in
        ["last good backup", "just now", "failed (1): nothing to back up", "room for", "last check"]
    {
        assert!(words.contains(part), "{part} is not in\n{words}");
    }
}

/// Seen: what stood before the program was taken for it, and noted.
#[test]
fn no_note_of_a_run_has_what_may_be_a_secret_in_the_command_for_the_password() {
    let (machine, source, repo) = backed_up();
    for secret in
        ["PIN=hunter2 false", "PIN='x hunter2' false", "false hunter2", "\"$(echo hunter2)\""]
    {
        let mut command = machine.command(["backup", "-r", text(&repo), text(&source)]);
        command.env_remove("HOLDALL_PASSWORD").env("HOLDALL_PASSWORD_COMMAND", secret);
        // The shell's own words are not holdall's.
        let failed = Outcome::of(&mut command).expect(1).stderr;
        let error = failed.lines().find(|line| line.starts_with("error: ")).expect("an error");
        assert!(error.contains("command") && !error.contains("hunter2"), "{error}");
    }
    let told = status(&machine, &repo)["last_failure"]["cause"].as_str().unwrap().to_owned();
    assert!(told.contains("command"), "{told}");
    let notes = notes(&machine);
    assert_eq!(notes.len(), 5);
    for note in notes {
        assert!(!fs::read_to_string(&note).unwrap().contains("hunter2"), "{}", note.display());
    }
}

#[test]
fn a_source_that_was_not_read_is_told_with_the_good_backup() {
    let (machine, source, repo) = backed_up();
    let gone = machine.path("gone");
    machine.run(["backup", "-r", text(&repo), text(&source), text(&gone)]).expect(3);
    let told = status(&machine, &repo);
    assert_eq!(told["last_good"]["result"], "incomplete", "{told}");
    let words = machine.ok(["status", "-r", text(&repo)]).stdout;
    assert!(words.contains("not backed up") && words.contains(text(&gone)), "{words}");
    // There is a snapshot, and it is young.
    machine.run(["status", "-r", text(&repo), "--fail-if-older", "1h"]).expect(0);
}

#[test]
fn a_backup_that_is_too_old_is_4() {
    let (machine, source, repo) = backed_up();
    let asks = |most: &str| machine.run(["status", "-r", text(&repo), "--fail-if-older", most]);
    asks("3d").expect(0);
    // Whole seconds count.
    std::thread::sleep(Duration::from_millis(1100));
    let old = asks("0s").expect(4);
    assert!(old.stdout.contains("(too old)"), "{}", old.stdout);
    assert_eq!(
        machine.run(["status", "-r", text(&repo), "--json", "--fail-if-older", "0s"]).summary()["too_old"],
        true
    );
    machine.run(["backup", "-r", text(&repo), "-n", text(&source)]).expect(0);
    asks("0s").expect(4);
    asks("soon").expect(2);
    // Nobody means three seconds.
    let bare = asks("3").expect(2).stderr;
    assert!(bare.contains("3d"), "{bare}");

    let other = Machine::new();
    let elsewhere = other.path("repo");
    other.init(&["-r", text(&elsewhere)]);
    other.run(["status", "-r", text(&elsewhere), "--fail-if-older", "3d"]).expect(4);
    assert!(other.ok(["status", "-r", text(&elsewhere)]).stdout.contains("none, as far as"));
    other.run(["status"]).expect(2);
}

#[test]
fn what_is_known_here_is_told_while_the_server_is_away_and_within_seconds() {
    let machine = Machine::new().with_password(None);
    let source = source_of(&machine);
    let server = Server::start(&machine.path("data"));
    machine.pair_with(&server);
    machine.ok(["backup", text(&source)]);
    let address = server.address().to_owned();
    let told = machine.summary(["status"]);
    assert_eq!(
        (&told["reachable"], &told["waiting_deletions"]),
        (&true.into(), &serde_json::json!([]))
    );
    drop(server);
    machine.run(["backup", text(&source)]).expect(14);
    let begun = Instant::now();
    let told = machine.summary(["status"]);
    assert!(begun.elapsed() < SECONDS, "{:?}", begun.elapsed());
    assert_eq!((&told["reachable"], &told["waiting_deletions"]), (&false.into(), &Value::Null));
    assert_eq!(
        (&told["last_good"]["result"], &told["last_failure"]["exit_code"]),
        (&"done".into(), &14.into())
    );
    let words = machine.ok(["status"]).stdout;
    assert!(words.contains(&format!("repository       https://{address}/")), "{words}");
    assert!(words.contains("failed (14)") && words.contains("not known: "), "{words}");
}

/// A server that takes connections and never answers.
#[test]
fn a_server_that_never_answers_is_given_up_within_seconds() {
    let machine = Machine::new().with_password(None);
    let source = source_of(&machine);
    let mut server = Server::start(&machine.path("data"));
    machine.pair_with(&server);
    machine.ok(["backup", text(&source)]);
    send_signal(server.process(), Signal::STOP);
    let begun = Instant::now();
    let told = machine.summary(["status", "--fail-if-older", "1d"]);
    send_signal(server.process(), Signal::CONT);
    assert!(begun.elapsed() < SECONDS, "{:?}", begun.elapsed());
    assert_eq!((&told["reachable"], &told["last_good"]["result"]), (&false.into(), &"done".into()));
}

#[test]
fn a_run_goes_on_until_it_ends_and_one_that_was_killed_did_not_end() {
    let (machine, source, repo) = backed_up();
    // The backup waits for what opens the repository.
    let mut command = machine.command(["backup", "-r", text(&repo), text(&source)]);
    command.env_remove("HOLDALL_PASSWORD").env("HOLDALL_PASSWORD_COMMAND", "sleep 60");
    let mut process = Process::spawn(command.stderr(Stdio::null())).unwrap();
    let begun = Instant::now();
    while notes(&machine).len() < 2 {
        assert!(begun.elapsed() < SECONDS, "no note is written");
        std::thread::sleep(Duration::from_millis(20));
    }
    let result = || status(&machine, &repo)["last_attempt"]["result"].clone();
    while result() != "running" {
        assert!(begun.elapsed() < SECONDS, "{}", result());
    }
    process.kill().unwrap();
    process.wait().unwrap();
    assert_eq!(result(), "killed");
    let told = status(&machine, &repo);
    assert_eq!(
        (&told["last_good"]["result"], &told["last_failure"]["result"]),
        (&"done".into(), &"killed".into())
    );
    assert!(machine.ok(["status", "-r", text(&repo)]).stdout.contains("did not end"));
}

#[test]
fn what_fails_is_told_though_something_else_is_backed_up() {
    let (machine, source, repo) = backed_up();
    let own = source.parent().unwrap().join("own");
    fs::rename(&source, &own).unwrap();
    machine.run(["backup", "-r", text(&repo), text(&source)]).expect(1);
    machine.ok(["backup", "-r", text(&repo), text(&own)]);
    let told = status(&machine, &repo);
    assert_eq!(told["last_good"]["sources"], serde_json::json!([text(&own)]));
    let [failing] = &told["failing"].as_array().unwrap()[..] else { panic!("{told}") };
    assert_eq!(failing["last_attempt"]["exit_code"], 1);
    assert_eq!(failing["last_good"]["sources"], serde_json::json!([text(&source)]));
    let words = machine.ok(["status", "-r", text(&repo)]).stdout;
    assert!(words.contains(&format!("failing          {}: last good", text(&source))), "{words}");
    fs::rename(&own, &source).unwrap();
    machine.ok(["backup", "-r", text(&repo), text(&source)]);
    assert_eq!(status(&machine, &repo)["failing"], serde_json::json!([]));
}

#[test]
fn damaged_notes_keep_nothing_from_being_told() {
    let (machine, source, repo) = backed_up();
    let first = notes(&machine).pop().unwrap();
    assert_eq!(fs::metadata(&first).unwrap().permissions().mode() & 0o077, 0);
    fs::write(&first, "{").unwrap();
    let told = status(&machine, &repo);
    // The receipt tells when the snapshot was made.
    assert!(told["last_good"].is_null() && told["age_seconds"].as_u64().unwrap() < 300, "{told}");
    assert!(told["unreadable"][0].as_str().unwrap().contains("1 notes"), "{told}");
    machine.run(["status", "-r", text(&repo), "--fail-if-older", "1d"]).expect(0);
    for receipt in files_below(&machine.path("config/state/receipts")) {
        fs::write(receipt, "x").unwrap();
    }
    let told = status(&machine, &repo);
    assert!(
        told["last_good_time"].is_null() && told["unreadable"].as_array().unwrap().len() == 2,
        "{told}"
    );
    // Nor do settings that cannot be read.
    let config = machine.path("config/config.toml");
    fs::write(&config, "repo = 1\n").unwrap();
    machine.run(["snapshots", "-r", text(&repo)]).expect(2);
    let told = status(&machine, &repo);
    assert!(told["unreadable"][0].as_str().unwrap().contains("config.toml"), "{told}");
    fs::remove_file(config).unwrap();
    // Where there cannot be notes, there are backups.
    fs::remove_dir_all(machine.path("config/state/runs")).unwrap();
    fs::remove_dir_all(machine.path("config/state/receipts")).unwrap();
    fs::write(machine.path("config/state/runs"), "").unwrap();
    machine.ok(["backup", "-r", text(&repo), text(&source)]);
    let told = status(&machine, &repo);
    assert!(told["age_seconds"].as_u64().unwrap() < 300);
    assert!(told["unreadable"][0].as_str().unwrap().contains("state/runs"), "{told}");
}

#[test]
fn a_damaged_state_keeps_nothing_from_being_told_either() {
    let machine = Machine::new().with_password(None);
    let source = source_of(&machine);
    let server = Server::start(&machine.path("data"));
    machine.pair_with(&server);
    machine.ok(["backup", text(&source)]);
    let place = machine.summary(["status"])["place"].clone();
    machine.run(["status", "-r", "https://127.0.0.1:1/other"]).expect(2);
    machine.run(["status", "-r", "s3://bucket/other"]).expect(2);
    for damaged in ["identity.json", "pairings.json"] {
        fs::write(machine.path("config/state").join(damaged), "{").unwrap();
        machine.run(["snapshots"]).expect(1);
        let told = machine.summary(["status", "--fail-if-older", "1d"]);
        assert_eq!(
            (&told["place"], &told["reachable"]),
            (&place, &false.into()),
            "{damaged}: {told}"
        );
        assert_eq!(told["last_good"]["result"], "done", "{damaged}: {told}");
    }
}

#[test]
fn notes_are_not_kept_for_ever() {
    let (machine, _, repo) = backed_up();
    let gone = machine.path("gone");
    let good = notes(&machine).pop().unwrap();
    let folder = good.parent().unwrap();
    let failed = machine.run(["backup", "-r", text(&repo), text(&gone)]).expect(1);
    assert!(failed.stderr.contains("nothing to back up"));
    let note = fs::read(notes(&machine).into_iter().find(|note| *note != good).unwrap()).unwrap();
    for number in 0..300 {
        fs::write(folder.join(format!("{number:020}-00000000")), &note).unwrap();
    }
    machine.run(["backup", "-r", text(&repo), text(&gone)]).expect(1);
    assert!(notes(&machine).len() <= 210, "{}", notes(&machine).len());
    assert!(good.exists());
    assert_eq!(status(&machine, &repo)["last_good"]["result"], "done");
}

#[test]
fn a_server_that_comes_later_is_waited_for_where_a_time_is_given() {
    let machine = Machine::new().with_password(None);
    let (source, data) = (source_of(&machine), machine.path("data"));
    let server = Server::start(&data);
    machine.pair_with(&server);
    let address = server.address().to_owned();
    drop(server);
    let begun = Instant::now();
    machine.run(["backup", text(&source)]).expect(14);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    // Given up once the time is over.
    let given_up = machine.run(["backup", text(&source), "--retry-for", "1s"]).expect(14);
    assert!(given_up.stderr.contains("trying again for 1"), "{}", given_up.stderr);
    machine.run(["backup", text(&source), "--retry-for", "0"]).expect(14);

    let with = |variable: Option<&str>, args: &[&str]| {
        let mut command = machine.command([&["backup", text(&source)], args].concat());
        command.envs(variable.map(|value| ("HOLDALL_RETRY_FOR", value)));
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let mut waiting = [with(Some("5m"), &[]), with(None, &["--retry-for", "5m"])];
    std::thread::sleep(Duration::from_secs(1));
    for process in &mut waiting {
        assert!(process.try_wait().unwrap().is_none(), "it waits for the server");
    }
    let _server = Server::start_by(&mut Server::command_at(&address, &data), &data);
    for mut process in waiting {
        assert!(process.wait().unwrap().success());
    }
}

/// The unit's file, a line each.
fn unit(name: &str) -> Vec<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/systemd").join(name);
    fs::read_to_string(file).unwrap().lines().map(str::to_owned).collect()
}

fn values(unit: &[String], key: &str) -> Vec<String> {
    let value = |line: &String| Some(line.strip_prefix(key)?.strip_prefix('=')?.to_owned());
    unit.iter().filter_map(value).collect()
}

/// As the manager would: 3 is a failure, 14 is tried again, any other failure runs the hook.
#[test]
fn the_units_call_a_failure_a_failure_and_try_again_where_that_helps() {
    for folder in ["", "user/"] {
        let service = unit(&format!("{folder}holdall-backup.service"));
        assert_eq!(values(&service, "SuccessExitStatus"), ["130"]);
        assert_eq!(values(&service, "RestartForceExitStatus"), ["14"]);
        assert_eq!(values(&service, "Restart"), [""; 0], "no other failure");
        assert_eq!(values(&service, "OnFailure"), ["holdall-failed@%n.service"]);
        assert!(values(&service, "Environment").iter().any(|set| set == "HOLDALL_RETRY_FOR=5m"));
        let timer = unit(&format!("{folder}holdall-backup.timer"));
        assert_eq!(values(&timer, "OnCalendar"), ["hourly"]);
        assert_eq!(values(&timer, "Wants"), ["holdall-overdue.timer"]);
        for (timer, hours) in [("holdall-backup.timer", 1), ("holdall-overdue.timer", 24)] {
            let calendar = values(&unit(&format!("{folder}{timer}")), "OnCalendar").remove(0);
            let mut analyze = Command::new("systemd-analyze");
            analyze.args(["calendar", "--iterations=2", &calendar]).env("TZ", "UTC");
            let said = String::from_utf8(analyze.output().unwrap().stdout).unwrap();
            let hour =
                |line: &str| line.split_whitespace().rev().nth(1)?.get(..2)?.parse::<i32>().ok();
            let is_next = |line: &&str| line.contains("Next elapse") || line.contains("Iter. #2");
            let hours_of: Vec<_> = said.lines().filter(is_next).filter_map(hour).collect();
            assert_eq!((hours_of[1] - hours_of[0]).rem_euclid(24), hours % 24, "{said}");
        }
    }
}

/// What the service runs, with its environment and a file of settings, as far as that is possible without a manager.
#[test]
fn what_the_units_run_backs_up_fails_loudly_and_calls_the_hook() {
    let machine = Machine::new();
    let (source, repo) = (source_of(&machine), machine.path("repo"));
    machine.init(&["-r", text(&repo)]);
    let run = |unit_name: &str, settings: &[(&str, &str)]| {
        let service = unit(unit_name);
        let mut words: Vec<String> = Vec::new();
        let start = values(&service, "ExecStart").pop().unwrap();
        let split = ["$BACKUP_OPTIONS", "$BACKUP_PATHS"];
        for word in start.split_whitespace() {
            let value = |name: &str| {
                let found = settings.iter().find(|(key, _)| *key == name);
                found.map_or("", |(_, value)| *value).to_owned()
            };
            match word.strip_prefix('$').map(|name| name.trim_matches(['{', '}'])) {
                Some(name) if split.contains(&word) => {
                    words.extend(value(name).split_whitespace().map(str::to_owned));
                }
                Some(name) => words.push(value(name)),
                None => words.push(word.replace("%i", "holdall-backup.service")),
            }
        }
        let program = words.remove(0);
        let mut command = machine.command(words);
        if program == "/bin/sh" {
            let args: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
            command = Command::new(program);
            command.args(args);
        }
        for set in values(&service, "Environment") {
            let (name, value) = set.split_once('=').unwrap();
            if name.starts_with("HOLDALL_") {
                command.env(name, value);
            }
        }
        Outcome::of(command.env("HOLDALL_REPOSITORY", &repo))
    };
    let paths = text(&source).to_owned();
    let service = "holdall-backup.service";
    run(service, &[("BACKUP_PATHS", &paths), ("BACKUP_OPTIONS", "--exclude-caches")]).expect(0);
    let gone = format!("{paths} {}", text(&machine.path("gone")));
    run(service, &[("BACKUP_PATHS", &gone)]).expect(3);
    run("holdall-overdue.service", &[("BACKUP_MAX_AGE", "3d")]).expect(0);
    // Whole seconds count.
    std::thread::sleep(Duration::from_millis(1100));
    run("holdall-overdue.service", &[("BACKUP_MAX_AGE", "0")]).expect(4);
    let told = machine.path("told");
    let hook = format!("echo \"$1 failed\" > '{}'", text(&told));
    run("holdall-failed@.service", &[("BACKUP_ON_FAILURE", &hook)]).expect(0);
    assert_eq!(fs::read_to_string(told).unwrap(), "holdall-backup.service failed\n");
    run("holdall-failed@.service", &[]).expect(0);
}

/// Seen: nothing was noted of it, and status only said that it knows no such repository.
#[test]
fn a_backup_that_did_not_get_as_far_as_a_repository_is_told() {
    let machine = Machine::new().with_password(None);
    let (source, place) = (source_of(&machine), "https://127.0.0.1:1/nowhere");
    machine.run(["status", "-r", place]).expect(2);
    machine.run(["backup", "-r", place, text(&source)]).expect(14);
    let told = machine.summary(["status", "-r", place]);
    assert_eq!((&told["place"], &told["last_good"]), (&place.into(), &Value::Null));
    assert_eq!(told["last_failure"]["exit_code"], 14, "{told}");

    let server = Server::start(&machine.path("data"));
    machine.pair(&server.invite_with(&["--name", "desk"]));
    machine.ok(["backup", text(&source)]);
    fs::write(machine.path("config/state/pairings.json"), "garbage").unwrap();
    machine.run(["backup", text(&source)]).expect(1);
    let told = machine.summary(["status"]);
    assert!(told["place"].as_str().unwrap().ends_with("/desk"), "{told}");
    assert_eq!(told["last_good"]["result"], "done");
    assert!(told["last_failure"]["cause"].as_str().unwrap().contains("pairings.json"), "{told}");
}
