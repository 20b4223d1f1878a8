//! Server, invite, pairing, and what is kept afterwards.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use holdall_testkit::{CompareOptions, compare_trees};
use serde_json::Value;

use crate::house::{HOLDALL, Machine, Outcome, Server, files_below, small_tree, text};

#[test]
fn a_paired_machine_needs_neither_password_nor_repository() {
    let machine = Machine::new().with_password(None);
    let data = machine.path("data");
    let mut server = Server::start(&data);
    machine.pair_with(&server);
    let source = machine.path("source");
    small_tree(&source);
    let source = source.to_str().unwrap();

    let first = machine.summary(["backup", source]);
    assert!(first["bytes_sent"].as_u64().unwrap() > 3_000_000);
    tells_how_long_requests_took(&first);
    let again = machine.summary(["backup", source]);
    assert!(again["bytes_sent"].as_u64().unwrap() < 100_000, "{again}");
    let target = machine.path("target");
    let from = format!("latest:{source}");
    machine.ok(["restore", &from, "--target", target.to_str().unwrap(), "--verify"]);
    assert_eq!(compare_trees(source.as_ref(), &target, &CompareOptions::default()), []);
    let checked = machine.summary(["check", "--scrub", "--verify", "50"]);
    assert_eq!(checked["damaged"], serde_json::json!([]));

    server.process().terminate().unwrap();
    let (status, lines) = server.process().wait().unwrap();
    assert!(status.success(), "{status}");
    assert!(lines[1].contains("identity"), "{lines:?}");
}

#[test]
fn a_server_on_the_same_computer_is_left_out_of_what_it_lies_in() {
    let machine = Machine::new().with_password(None);
    let (source, data) = (machine.path("srv"), machine.path("srv/backups"));
    small_tree(&source);
    let server = Server::start(&data);
    machine.pair_with(&server);
    let name = machine.administer(&data, &["repositories"]).objects()[0]["name"].clone();
    let name = name.as_str().unwrap();
    let backed_up = || machine.run(["backup", source.to_str().unwrap()]).expect(0);
    let said = backed_up().stderr;
    for folder in [format!("repositories/{name}"), format!("cache/{name}")] {
        let note =
            format!("{} is of the repository itself and is left out", data.join(folder).display());
        assert!(said.contains(&note), "{said}");
    }
    let all = machine.ok(["ls", "latest", data.to_str().unwrap(), "--recursive"]).stdout;
    assert!(all.contains("server.redb") && all.contains("repositories"), "{all}");
    assert!(!all.contains("packs") && !all.contains("tails"), "{all}");
    let again = machine.summary(["backup", source.to_str().unwrap()]);
    assert_eq!((&again["files_new"], &again["errors"]), (&0.into(), &0.into()), "{again}");
    assert!(again["data_added"].as_u64().unwrap() < 2_000_000, "{again}");
}

#[test]
fn what_names_another_default_repository_is_told_and_does_not_redirect_a_kit() {
    let machine = Machine::new().with_password(None);
    let server = Server::start(&machine.path("data"));
    let [kit, elsewhere] = ["kit.txt", "elsewhere"].map(|name| machine.path(name));
    let kit = kit.to_str().unwrap();
    let pair = |args: &[&str], variable: &str| {
        let mut command = machine.command([&["pair", "--recovery-kit", kit], args].concat());
        Outcome::of(command.env("HOLDALL_REPOSITORY", variable)).expect(0)
    };
    let elsewhere = elsewhere.to_str().unwrap();
    let paired = pair(&[&server.invite(), "--json"], elsewhere).summary();
    assert_eq!(paired["overruled_by"], "HOLDALL_REPOSITORY");
    let said = pair(&[], elsewhere);
    assert!(said.stdout.starts_with("paired with https://"), "{}", said.stdout);
    assert!(said.stderr.contains(&format!("stays {elsewhere}, which HOLDALL_REPOSITORY")));

    let config = machine.path("config/config.toml");
    fs::write(&config, format!("repository = {elsewhere:?}\n")).unwrap();
    let paired = pair(&["--json"], "").summary();
    assert_eq!(paired["overruled_by"], config.to_str().unwrap());
    // What the environment names comes first, and is the same.
    let said = pair(&[], &format!("https://{}", server.address())).stdout;
    assert!(said.starts_with("the default repository is now"), "{said}");
}

#[test]
fn an_invite_makes_no_server_and_does_not_let_into_another() {
    let machine = Machine::new();
    let server = Server::start(&machine.path("data"));
    let elsewhere = machine.path("elsewhere");
    let refused = machine.run(["invite", "--data", text(&elsewhere)]).expect(1);
    assert!(refused.stderr.contains(text(&elsewhere)), "{}", refused.stderr);
    assert!(refused.stderr.contains("holdall serve --data DIR"), "{}", refused.stderr);
    assert!(!elsewhere.exists() && refused.stdout.is_empty());
    let invite = Server::start(&elsewhere).invite_with(&["--address", server.address()]);
    let refused = machine.run(["pair", &invite]).expect(13).stderr;
    assert!(refused.contains("not the one that made this invite"), "{refused}");
    assert!(refused.contains("--data"), "{refused}");
    let right = server.invite_with(&["--address", server.address()]);
    machine.pair(&right);
}

/// Of each layer that requests lean on, the server's disk among them.
fn tells_how_long_requests_took(summary: &Value) {
    let stages = summary["verdict"]["stages"].as_array().expect("stages");
    let parts: Vec<_> = stages.iter().filter(|stage| stage["name"] == "send").collect();
    assert!(parts.iter().any(|part| part["layer"] == "server-disk"), "{parts:#?}");
    for part in parts {
        assert!(part["requests"].as_u64() > Some(0), "{part}");
        assert!(part["latency_ns"]["p99"].is_u64(), "{part}");
    }
}

#[test]
fn secrets_are_for_their_owner_alone_and_the_kit_is_not_overwritten() {
    let machine = Machine::new().with_password(None);
    let data = machine.path("data");
    let server = Server::start(&data);
    machine.pair_with(&server);
    for file in files_below(&machine.path("config")) {
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}", file.display());
    }
    let kit = machine.path("kit.txt");
    assert_eq!(fs::metadata(&kit).unwrap().permissions().mode() & 0o777, 0o600);
    let other = Machine::new().with_password(None);
    let invite = server.invite();
    other.run(["pair", &invite, "--recovery-kit", kit.to_str().unwrap()]).expect(1);
    // The failure did not use the invite up.
    let printed = other.ok(["pair", &invite, "--name", "other"]).stdout;
    assert!(printed.contains("RECOVERY KIT"), "the kit is printed once:\n{printed}");
    assert!(!fs::read_to_string(&kit).unwrap().is_empty());
}

#[test]
fn a_port_alone_is_listened_to_by_both_kinds_of_addresses() {
    let machine = Machine::new();
    let data = machine.path("data");
    let server = Server::start_by(&mut Server::command_at(":0", &data), &data);
    let port = server.address().rsplit_once(':').unwrap().1;
    let has_ipv6 = std::net::TcpListener::bind("[::1]:0").is_ok();
    for host in ["127.0.0.1", "[::1]"].iter().filter(|host| has_ipv6 || **host != "[::1]") {
        let invite = server.invite_with(&["--address", &format!("{host}:{port}")]);
        Machine::new().pair(&invite);
    }
}

#[test]
fn an_invite_is_good_for_as_long_as_was_said() {
    let machine = Machine::new().with_password(None);
    let data = machine.path("data");
    let server = Server::start(&data);
    let made = ["invite", "--json", "--data", text(&data), "--valid-for"];
    let expires = |valid_for| {
        let made = machine.ok([&made[..], &[valid_for]].concat()).of_type("invite");
        made[0]["expires"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap()
    };
    let days = (expires("7d") - expires("1d")).total(jiff::Unit::Hour).unwrap() / 24.0;
    assert!((days - 6.0).abs() < 0.1, "{days}");
    let month = ["invite", "--data", text(&data), "--valid-for", "31d"];
    let refused = machine.run(month).expect(1).stderr;
    assert!(refused.contains("at most 30 days"), "{refused}");
    machine.pair(&server.invite_with(&["--valid-for", "2h"]));
}

#[test]
fn an_invite_lets_one_machine_in_and_no_other() {
    let machine = Machine::new().with_password(None);
    let data = machine.path("data");
    let server = Server::start(&data);
    let invite = server.invite();
    machine.pair(&invite);
    Machine::new().with_password(None).run(["pair", &invite]).expect(13);
    let mut mangled = invite.clone();
    mangled.pop();
    Machine::new().run(["pair", &mangled]).expect(2);
}

#[test]
fn with_a_password_the_repository_opens_for_a_machine_that_lost_its_keys() {
    let machine = Machine::new();
    let data = machine.path("data");
    let server = Server::start(&data);
    machine.pair_with_password(&server);
    let source = machine.path("source");
    small_tree(&source);
    machine.ok(["backup", source.to_str().unwrap()]);
    fs::remove_dir_all(machine.path("config/state/keys")).unwrap();
    machine.ok(["ls", "latest"]);
    machine.with_password(Some("wrong")).run(["ls", "latest"]).expect(12);
}

#[test]
fn with_the_recovery_kit_alone_a_new_computer_restores_and_may_not_write() {
    let machine = Machine::new().with_password(None);
    let data = machine.path("data");
    let server = Server::start(&data);
    machine.pair_with(&server);
    let source = machine.path("source");
    small_tree(&source);
    let source = source.to_str().unwrap();
    machine.ok(["backup", source]);

    let other = Machine::new().with_password(None);
    let kit = machine.path("kit.txt");
    other.ok(["pair", "--recovery-kit", kit.to_str().unwrap()]);
    let target = other.path("target");
    let from = format!("latest:{source}");
    other.ok(["restore", &from, "--target", target.to_str().unwrap()]);
    assert_eq!(compare_trees(source.as_ref(), &target, &CompareOptions::default()), []);
    other.run(["backup", source]).expect(13);
}

#[test]
fn a_kit_to_be_written_is_never_read_and_one_to_be_read_is_never_written() {
    let machine = Machine::new().with_password(None);
    let server = Server::start(&machine.path("data"));
    let (kit, none) = (machine.path("kit.txt"), machine.path("none.txt"));
    let invite = server.invite_with(&["--name", "desk"]);
    // As if a script had lost the invite.
    let asked = machine.run(["pair", "--write-kit", text(&kit)]).expect(2).stderr;
    assert!(asked.contains("invite") && !asked.contains("is not there"), "{asked}");
    let refused = machine.run(["pair", &invite, "--kit", text(&none)]).expect(1).stderr;
    assert!(refused.contains("none.txt is not there"), "{refused}");
    assert!(!none.exists() && !kit.exists());
    machine.ok(["pair", &invite, "--write-kit", text(&kit)]);
    let drawn = fs::read(&kit).unwrap();

    let new = Machine::new().with_password(None);
    let invite = server.invite_with(&["--for", "desk"]);
    let refused = new.run(["pair", &invite, "--write-kit", text(&kit)]).expect(1).stderr;
    assert!(refused.contains("is there already"), "{refused}");
    let refused = new.run(["pair", &invite, "--write-kit", text(&none)]).expect(1).stderr;
    assert!(refused.contains("exists already") && refused.contains("--kit"), "{refused}");
    new.ok(["pair", &invite, "--kit", text(&kit)]);
    let wrong = Machine::new().with_password(None);
    let refused = wrong.run(["pair", &server.invite(), "--kit", text(&kit)]).expect(1).stderr;
    assert!(refused.contains("--write-kit"), "{refused}");
    Machine::new().with_password(None).ok(["pair", "--kit", text(&kit)]);
    assert!(fs::read(&kit).unwrap() == drawn && !none.exists());
    new.run(["pair", "--kit", text(&kit), "--recovery-kit", text(&kit)]).expect(2);
}

#[test]
fn a_computer_that_lost_the_answer_ends_with_the_kit_that_it_drew() {
    let machine = Machine::new().with_password(None);
    let server = Server::start(&machine.path("data"));
    let invite = server.invite();
    let kit = machine.path("kit.txt");
    let pair = ["pair", &invite, "--recovery-kit", kit.to_str().unwrap()];
    machine.ok(pair);
    let drawn = fs::read(&kit).unwrap();
    machine.run(pair).expect(1);
    // As if the answer had not come: the key is kept, and the pairing is not.
    fs::remove_file(machine.path("config/state/pairings.json")).unwrap();
    machine.ok(pair);
    assert_eq!(fs::read(&kit).unwrap(), drawn);
}

#[test]
fn a_kit_takes_no_right_to_write_away() {
    let machine = Machine::new().with_password(None);
    let server = Server::start(&machine.path("data"));
    machine.pair_with(&server);
    let kit = machine.path("kit.txt");
    let kept = machine.ok(["pair", "--recovery-kit", kit.to_str().unwrap()]).stderr;
    assert!(kept.contains("stays as it was"), "{kept}");
    machine.ok(["backup", "/etc/hostname"]);
}

#[test]
fn pairing_again_without_a_proof_leaves_the_invite_alone() {
    let machine = Machine::new().with_password(None);
    let server = Server::start(&machine.path("data"));
    machine.pair(&server.invite_with(&["--name", "desk"]));
    let invite = server.invite();
    let refused = machine.run(["pair", &invite, "--again"]).expect(13).stderr;
    assert!(refused.contains("holdall invite --repository desk"), "{refused}");
    Machine::new().with_password(None).ok(["pair", &invite]);
    // One that only reads is not what an invite brings back.
    let reader = Machine::new().with_password(None);
    let kit = machine.path("kit.txt");
    reader.ok(["pair", "--recovery-kit", kit.to_str().unwrap()]);
    reader.run(["pair", &server.invite(), "--again"]).expect(2);
}

/// Runs a command with something on its standard input.
fn with_input(command: &mut Command, input: impl AsRef<[u8]>) -> Outcome {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    // One that refuses to read has ended.
    let _ = process.stdin.take().unwrap().write_all(input.as_ref());
    let output = process.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    Outcome { code: output.status.code(), stdout, stderr }
}

#[test]
fn an_invite_is_read_from_standard_input_where_no_other_user_sees_it() {
    let machine = Machine::new().with_password(None);
    let data = machine.path("data");
    let server = Server::start(&data);
    let data = data.to_str().unwrap();
    let made = ["invite", "--data", data, "--address", server.address()];
    // All that the command prints, as it comes through a pipe.
    let printed = machine.ok(made).stdout;
    let kit = machine.path("kit.txt");
    let mut pair = machine.command(["pair", "-", "--name", "desk", "--recovery-kit"]);
    let paired = with_input(pair.arg(&kit), &printed).expect(0).stdout;
    assert!(paired.contains("this machine is desk"), "{paired}");
    assert!(fs::read_to_string(kit).unwrap().contains("Secret"));
    for input in ["", " \n\n"] {
        let refused = with_input(&mut machine.command(["pair", "-"]), input).expect(2).stderr;
        assert!(refused.contains("no invite came"), "{refused}");
    }
    let refused = with_input(&mut machine.command(["pair", "-"]), b"\xff\n").expect(2).stderr;
    assert!(refused.contains("it is no text"), "{refused}");
}

#[test]
fn without_an_invite_it_is_asked_for_at_the_terminal() {
    let machine = Machine::new().with_password(None);
    let server = Server::start(&machine.path("data"));
    // `script` runs a command on a terminal of its own.
    for command in ["\"$HOLDALL\" pair --name desk", "\"$HOLDALL\" pair - --name desk"] {
        let mut terminal = Command::new("script");
        terminal.args(["-qec", command, "/dev/null"]).env("HOLDALL", HOLDALL);
        terminal.env("HOLDALL_CONFIG_DIR", machine.path("config"));
        terminal.env("HOLDALL_CACHE_DIR", machine.path("cache")).env_remove("HOLDALL_PASSWORD");
        let shown = with_input(&mut terminal, format!("{}\n", server.invite())).expect(0).stdout;
        assert!(shown.contains("invite: ") && shown.contains("this machine is desk"), "{shown}");
    }
    let refused = machine.run_by(&["setsid", "--wait"], ["pair"]).expect(2).stderr;
    assert!(refused.contains("no terminal") && refused.contains("`holdall pair -`"), "{refused}");
    let refused = machine.run(["pair", "--recovery-kit", "none", "--name", "x"]).expect(2).stderr;
    assert!(refused.contains("--name"), "{refused}");
}
