//! Where backups go does not change by itself: not by pairing with a second server, and not by pairing anew with one that
//! lost its identity.

use std::process::{Command, Stdio};

use crate::house::{HOLDALL, Machine, Outcome, Server, small_tree, text};
use crate::lost::{Attic, computer, snapshots};

/// Where a backup of the machine goes if nothing else is said.
fn goes_to(machine: &Machine) -> String {
    let source = machine.path("source");
    if !source.exists() {
        small_tree(&source);
    }
    machine.summary(["backup", text(&source)])["place"].as_str().expect("a place").to_owned()
}

fn is_at(place: &str, server: &Server) -> bool {
    place.starts_with(&format!("https://{}/", server.address()))
}

/// Pairs on a terminal, and types what answers its question.
fn pair_on_terminal(machine: &Machine, args: &str, answer: &str) -> Outcome {
    let mut terminal = Command::new("script");
    let command = format!("\"$HOLDALL\" pair {args}");
    terminal.args(["-qec", &command, "/dev/null"]).env("HOLDALL", HOLDALL);
    terminal.env("HOLDALL_CONFIG_DIR", machine.path("config"));
    terminal.env("HOLDALL_CACHE_DIR", machine.path("cache")).env_remove("HOLDALL_PASSWORD");
    terminal.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = terminal.spawn().unwrap();
    std::io::Write::write_all(&mut process.stdin.take().unwrap(), answer.as_bytes()).unwrap();
    let output = process.wait_with_output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    Outcome { code: output.status.code(), stdout, stderr: String::new() }
}

#[test]
fn pairing_with_a_second_server_leaves_the_backups_with_the_first_one() {
    let machine = computer();
    let [first, second] = ["first", "second"].map(|name| Server::start(&machine.path(name)));
    machine.pair_with(&first);
    assert!(is_at(&goes_to(&machine), &first));
    let kit = machine.path("second-kit.txt");
    let said = machine.ok(["pair", &second.invite(), "--recovery-kit", text(&kit)]);
    assert!(said.stdout.contains("\npaired with https://"), "{}", said.stdout);
    assert!(said.stderr.contains("the default repository stays"), "{}", said.stderr);
    assert!(is_at(&goes_to(&machine), &first));

    // What the note names makes it the default one.
    let place = format!("https://{}", second.address());
    let said = machine.ok(["pair", "--default", "-r", &place]).stdout;
    assert!(said.contains("the default repository is now"), "{said}");
    assert!(is_at(&goes_to(&machine), &second));
    let words = machine.ok(["backup", text(&machine.path("source"))]).stdout;
    assert!(words.contains(&format!("\nto {place}/")), "{words}");
    machine.run(["pair", "--default", "-r", "https://127.0.0.1:1"]).expect(2);
    let said = machine.run(["pair", "--default", "-r", text(&kit)]).expect(2).stderr;
    assert!(said.contains("HOLDALL_REPOSITORY") && said.contains("config.toml"), "{said}");
    assert!(!said.contains("pair with its server"), "{said}");

    let third = Server::start(&machine.path("third"));
    let kit = machine.path("third-kit.txt");
    let paired = ["pair", &third.invite(), "--default", "--recovery-kit", text(&kit), "--json"];
    assert_eq!(machine.ok(paired).summary()["is_default"], true);
    assert!(is_at(&goes_to(&machine), &third));
}

#[test]
fn a_kit_does_not_take_the_backups_either() {
    let (machine, other) = (computer(), computer());
    let [first, second] = ["first", "second"].map(|name| Server::start(&machine.path(name)));
    machine.pair_with(&first);
    other.pair_with(&second);
    machine.ok(["pair", "--recovery-kit", text(&other.path("kit.txt"))]);
    assert!(is_at(&goes_to(&machine), &first));
}

#[test]
fn at_a_terminal_it_is_asked_where_backups_go() {
    let machine = computer();
    let first = Server::start(&machine.path("first"));
    machine.pair_with(&first);
    for (name, answer, is_new) in [("no", "\n", false), ("yes", "y\n", true)] {
        let server = Server::start(&machine.path(name));
        let shown = pair_on_terminal(&machine, &server.invite(), answer).expect(0).stdout;
        assert!(shown.contains("Shall they go here from now on? [y/N]"), "{shown}");
        assert_eq!(is_at(&goes_to(&machine), &server), is_new, "{shown}");
    }
}

#[test]
fn a_server_that_lost_its_identity_is_not_taken_for_another_one_unasked() {
    let desk = computer();
    let mut attic = Attic::with_desk(desk.path("data"), &desk);
    attic.lose(&["identity.key", "server.redb"]);
    let invite = attic.invite(&[]);
    let refused = desk.run(["pair", &invite]).expect(2).stderr;
    assert!(refused.contains("did you mean `holdall pair --again`"), "{refused}");
    // It was not used.
    let shown = pair_on_terminal(&desk, &invite, "\n").expect(0).stdout;
    assert!(shown.contains("Go on with that repository, as with --again? [Y/n]"), "{shown}");
    assert!(goes_to(&desk).ends_with("/desk"), "{shown}");
    assert_eq!(snapshots(&desk).len(), 2);
}

/// Seen: `--again` said that this computer never backed up to the second repository, and an invite for the first one that
/// it was paired already.
#[test]
fn who_began_a_new_repository_by_mistake_can_go_back() {
    let desk = computer();
    let mut attic = Attic::with_desk(desk.path("data"), &desk);
    attic.lose(&["identity.key", "server.redb"]);
    let kit = desk.path("other-kit.txt");
    desk.ok(["pair", &attic.invite(&["--name", "desk"]), "--new", "--recovery-kit", text(&kit)]);
    desk.ok(["pair", "--default", "-r", &format!("https://{}/desk-2", attic.address())]);
    assert!(goes_to(&desk).ends_with("/desk-2"));

    desk.ok(["pair", &attic.invite(&[]), "--again"]);
    assert!(goes_to(&desk).ends_with("/desk"));
    assert_eq!(snapshots(&desk).len(), 2, "the history goes on");
    let machines = desk.administer(&attic.data, &["machines"]).objects();
    let revoked = |repository: &str| {
        let of = machines.iter().find(|machine| machine["repository"] == repository);
        of.unwrap_or_else(|| panic!("{machines:?}"))["revoked"].clone()
    };
    assert_eq!((revoked("desk"), revoked("desk-2")), (false.into(), true.into()));
}
