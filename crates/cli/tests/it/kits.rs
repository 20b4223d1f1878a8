//! Recovery kits on the day that they are needed, and before: printed, tried, and opened where the server is by then.

use std::fs;
use std::process::Command;

use holdall_testkit::{CompareOptions, compare_trees};
use serde_json::{Value, json};

use crate::house::{HOLDALL, Machine, Outcome, Server, small_tree, text};

/// A machine that backed a small tree up to a server, with its kit in a file of that name.
fn backed_up(kit: &str) -> (Machine, Server) {
    let machine = Machine::new().with_password(None);
    let server = Server::start(&machine.path("data"));
    let invite = server.invite_with(&["--name", "desk"]);
    machine.ok(["pair", &invite, "--write-kit", text(&machine.path(kit))]);
    small_tree(&machine.path("source"));
    machine.ok(["backup", text(&machine.path("source"))]);
    (machine, server)
}

fn restores(machine: &Machine, of: &Machine) {
    let (source, target) = (of.path("source"), machine.path("target"));
    let from = format!("latest:{}", text(&source));
    machine.ok(["restore", &from, "--target", text(&target)]);
    assert_eq!(compare_trees(&source, &target, &CompareOptions::default()), []);
}

#[test]
fn a_kit_says_when_and_where_it_was_made_and_a_page_of_it_has_a_code_and_is_read() {
    let (machine, server) = backed_up("kit.html");
    let page = fs::read_to_string(machine.path("kit.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("<svg "), "{page}");
    assert!(!page.contains("src=") && !page.contains("href="), "it loads nothing: {page}");
    let host = holdall_sys::host::host_name();
    let made = page.lines().find(|line| line.starts_with("Made on 20")).expect("a date");
    assert!(made.ends_with(&format!("on the computer {host}.")), "{made}");
    let other = Machine::new().with_password(None);
    other.ok(["pair", "--kit", text(&machine.path("kit.html"))]);
    restores(&other, &machine);

    let second = machine.path("second.txt");
    machine.ok(["key", "add", "--recovery-kit", text(&second)]);
    let kit = fs::read_to_string(&second).unwrap();
    assert!(
        kit.contains("    holdall pair --kit FILE\n") && !kit.contains("--recovery-kit"),
        "{kit}"
    );
    assert!(kit.contains("\nMade on 20") && !kit.contains("<svg"), "{kit}");
    drop(server);
}

#[test]
fn a_kit_opens_what_it_is_for_where_the_server_is_by_now() {
    let (machine, server) = backed_up("kit.txt");
    let kit = machine.path("kit.txt");
    let kit = text(&kit);
    drop(server);
    let other = Machine::new().with_password(None);
    let refused = other.run(["pair", "--kit", kit]).expect(14).stderr;
    let hint = refused.split_once("hint: ").expect("a hint").1.replace('\n', " ");
    assert!(hint.contains("-r https://NEW-ADDRESS:7443/NAME"), "{hint}");
    let refused = machine.run(["snapshots"]).expect(14).stderr;
    assert!(refused.contains("-r https://NEW-ADDRESS:7443/NAME"), "{refused}");

    // On another port.
    let server = Server::start(&machine.path("data"));
    let place = format!("https://{}/desk", server.address());
    other.ok(["pair", "--kit", kit, "-r", &place]);
    // It is remembered.
    restores(&other, &machine);
    machine.ok(["snapshots", "-r", &place]);
    machine.ok(["snapshots"]);
    machine.ok(["key", "try-kit", kit, "-r", &place]);
}

fn tried(machine: &Machine) -> Value {
    machine.summary(["status"])["kit_tried"].clone()
}

/// A backup at a terminal, which shows standard output and standard error as one.
fn back_up_at_terminal(machine: &Machine) -> String {
    let mut terminal = Command::new("script");
    terminal.args(["-qec", "\"$HOLDALL\" backup \"$SOURCE\"", "/dev/null"]).env("HOLDALL", HOLDALL);
    terminal.env("SOURCE", machine.path("source"));
    terminal.env("HOLDALL_CONFIG_DIR", machine.path("config"));
    terminal.env("HOLDALL_CACHE_DIR", machine.path("cache")).env_remove("HOLDALL_PASSWORD");
    Outcome::of(&mut terminal).expect(0).stdout
}

#[test]
fn a_kit_is_tried_without_pairing_and_until_then_people_are_reminded() {
    let (machine, _server) = backed_up("kit.txt");
    let kit = machine.path("kit.txt");
    let kit = text(&kit);
    assert_eq!(tried(&machine), Value::Null);
    assert!(machine.ok(["status"]).stdout.contains("recovery kit     never tried"));
    assert!(back_up_at_terminal(&machine).contains("key try-kit"));
    // Nobody reads what a timer's backup says every hour.
    let quiet = machine.ok(["backup", text(&machine.path("source"))]);
    assert!(!quiet.stderr.contains("try-kit"), "{}", quiet.stderr);

    let said = machine.summary(["key", "try-kit", kit]);
    assert_eq!((&said["snapshots"], &said["has_all_keys"]), (&json!(3), &json!(true)));
    assert!(tried(&machine).is_string());
    assert!(machine.ok(["status"]).stdout.contains("recovery kit     tried 20"));
    assert!(!back_up_at_terminal(&machine).contains("try-kit"));

    // Another computer is not paired by that.
    let other = Machine::new().with_password(None);
    let said = other.ok(["key", "try-kit", kit]).stdout;
    assert!(said.contains("this kit opens https://") && said.contains("4 snapshots"), "{said}");
    other.run(["snapshots"]).expect(2);

    // A kit from before the keys were rotated opens them only as long as the repository has its keys.
    machine.ok(["key", "rotate"]);
    let said = machine.ok(["key", "try-kit", kit]);
    assert!(said.stderr.contains("key add --recovery-kit"), "{}", said.stderr);
    machine.ok(["key", "add", "--recovery-kit", text(&machine.path("new.html"))]);
    machine.ok(["key", "remove", "1"]);
    machine.run(["key", "try-kit", kit]).expect(13);
}

#[test]
fn a_kit_of_a_directory_is_tried_there_and_one_of_another_is_refused() {
    let machine = Machine::new();
    let [repo, other] = ["repo", "other"].map(|name| text(&machine.path(name)).to_owned());
    let [kit, others_kit] =
        ["kit.txt", "other.txt"].map(|name| text(&machine.path(name)).to_owned());
    machine.init(&["-r", &repo, "--recovery-kit", &kit]);
    machine.init(&["-r", &other, "--recovery-kit", &others_kit]);
    machine.run(["key", "try-kit", &kit]).expect(2);
    machine.run(["key", "try-kit", &others_kit, "-r", &repo]).expect(12);
    let status = |repo: &str| machine.summary(["status", "-r", repo])["kit_tried"].clone();
    assert_eq!(status(&repo), Value::Null);
    let said = machine.ok(["key", "try-kit", &kit, "-r", &repo]).stdout;
    assert!(said.contains("0 snapshots"), "{said}");
    assert!(status(&repo).is_string() && status(&other).is_null());
    let damaged =
        fs::read_to_string(&kit).unwrap().replacen("Secret:       hold", "Secret:       hald", 1);
    fs::write(&others_kit, damaged).unwrap();
    let said = machine.run(["key", "try-kit", &others_kit, "-r", &repo]).expect(2).stderr;
    assert!(said.contains("Secret"), "{said}");
}

/// Seen: it was told to pair this machine anew, which needs an invite and opens nothing that the kit is for.
#[test]
fn a_kit_that_the_server_does_not_know_any_more_opens_a_copy_of_what_it_is_for() {
    let machine = Machine::new().with_password(None);
    let (data, file) = (machine.path("data"), machine.path("identity.json"));
    let mut server = Server::start(&data);
    machine.administer(&data, &["backup-identity", text(&file)]).expect(0);
    let kit = machine.path("kit.txt");
    let invite = server.invite_with(&["--name", "desk"]);
    machine.ok(["pair", &invite, "--write-kit", text(&kit)]);
    small_tree(&machine.path("source"));
    machine.ok(["backup", text(&machine.path("source"))]);
    server.process().terminate().unwrap();
    server.process().wait().unwrap();
    let copy = machine.path("copy");
    fs::rename(data.join("repositories/desk"), &copy).unwrap();
    for lost in ["identity.key", "server.redb"] {
        fs::remove_file(data.join(lost)).unwrap();
    }
    machine.administer(&data, &["restore-identity", text(&file)]).expect(0);
    let address = server.address().to_owned();
    let _server = Server::start_by(&mut Server::command_at(&address, &data), &data);
    let other = Machine::new().with_password(None);
    for command in [&["pair", "--kit"][..], &["key", "try-kit"]] {
        let told =
            other.run([command, &[text(&kit)]].concat()).expect(13).stderr.replace('\n', " ");
        assert!(told.contains("does not know this kit") && !told.contains("anew"), "{told}");
        assert!(told.contains("`holdall pair --kit FILE -r DIRECTORY`"), "{told}");
    }
    let copy = text(&copy);
    other.ok(["pair", "--kit", text(&kit), "-r", copy]);
    let (source, target) = (machine.path("source"), other.path("target"));
    let from = format!("latest:{}", text(&source));
    other.ok(["restore", "-r", copy, &from, "--target", text(&target)]);
    assert_eq!(compare_trees(&source, &target, &CompareOptions::default()), []);
}
