//! What a refusal says to do: the one command that helps against its cause, and no other.

use std::fs;

use crate::house::{Machine, Outcome, Server, folder, small_tree, text};

/// What the hint of a refusal says, which is its last line.
fn hint(told: Outcome) -> String {
    let told = told.expect(13).stderr;
    told.split_once("hint: ").unwrap_or_else(|| panic!("no hint: {told}")).1.replace('\n', " ")
}

#[test]
fn each_refusal_by_a_server_names_the_one_command_that_helps() {
    let folder = folder();
    let (data, tree) = (folder.path().join("data"), folder.path().join("tree"));
    fs::create_dir(&tree).unwrap();
    small_tree(&tree);
    let server = Server::start(&data);
    let (machine, other) = (Machine::new(), Machine::new());
    let invite = server.invite_with(&["--name", "laptop"]);
    machine.pair(&invite);
    let backup = || machine.run(["backup", text(&tree)]);
    backup().expect(0);
    let known = machine.administer(&data, &["machines"]).expect(0).objects().remove(0);
    let id = known["id"].as_str().unwrap().get(..12).unwrap().to_owned();

    let used = hint(other.run(["pair", &invite]));
    assert!(used.contains("holdall invite") && !used.contains("admin"), "{used}");
    let deletion = hint(machine.run(["forget", "latest"]));
    assert!(deletion.contains("holdall admin forget laptop ID"), "{deletion}");
    assert!(!deletion.contains("invite"), "{deletion}");
    let reader = Machine::new().with_password(None);
    reader.ok(["pair", "--recovery-kit", text(&machine.path("kit.txt"))]);
    let kit = hint(reader.run(["backup", text(&tree)]));
    assert!(kit.contains("holdall invite --for NAME") && !kit.contains("admin"), "{kit}");

    machine.administer(&data, &["quota", "laptop", "1"]).expect(0);
    fs::write(tree.join("more"), "more").unwrap();
    let quota = hint(backup());
    assert!(quota.contains("holdall admin quota laptop SIZE"), "{quota}");
    assert!(!quota.contains("invite") && !quota.contains("--again"), "{quota}");
    machine.administer(&data, &["quota", "laptop", "none"]).expect(0);

    machine.administer(&data, &["rights", "laptop", "read"]).expect(0);
    let rights = hint(backup());
    assert!(rights.contains(&format!("holdall admin rights {id} backup")), "{rights}");
    assert!(!rights.contains("invite"), "{rights}");

    machine.administer(&data, &["revoke", "laptop"]).expect(0);
    let revoked = hint(backup());
    assert!(revoked.contains(&format!("holdall invite --for {id}")), "{revoked}");
    assert!(!revoked.contains("admin"), "{revoked}");
}

/// Seen: the hint said `holdall pair` pairs it, though the server had moved and was known.
#[test]
fn status_of_a_place_that_is_not_known_says_what_asks_it() {
    let machine = Machine::new().with_password(None);
    let server = Server::start(&machine.path("data"));
    machine.pair(&server.invite_with(&["--name", "laptop"]));
    let told = machine.run(["status", "-r", "https://127.0.0.1:1/other"]).expect(2).stderr;
    let told = told.replace('\n', " ");
    for words in [
        "knows no repository at https://127.0.0.1:1/other",
        &format!("leave -r out for https://{}/laptop, where backups go", server.address()),
        "`holdall snapshots -r https://127.0.0.1:1/other` finds it",
    ] {
        assert!(told.contains(words), "{words} is not in {told}");
    }
}

/// Seen: `pair --again` said to leave --again out, and `pair` asked whether --again was meant.
#[test]
fn a_server_that_is_empty_is_begun_anew_by_what_its_refusal_says() {
    let machine = Machine::new().with_password(None);
    let (data, tree) = (machine.path("data"), machine.path("tree"));
    fs::create_dir(&tree).unwrap();
    small_tree(&tree);
    let mut server = Server::start(&data);
    machine.pair(&server.invite_with(&["--name", "laptop"]));
    machine.ok(["backup", text(&tree)]);
    server.process().terminate().unwrap();
    server.process().wait().unwrap();
    fs::remove_dir_all(&data).unwrap();
    let address = server.address().to_owned();
    let server = Server::start_by(&mut Server::command_at(&address, &data), &data);
    let invite = server.invite();
    let told = machine.run(["pair", &invite, "--again"]).expect(13).stderr.replace('\n', " ");
    assert!(told.contains("--new instead of --again"), "{told}");
    machine.ok(["pair", &invite, "--new", "--default"]);
    machine.ok(["backup", text(&tree)]);
}

/// Seen: the hint named the machine that has the former name by now, and so did an invite by it.
#[test]
fn a_hint_names_the_machine_that_asks_though_another_one_has_its_former_name() {
    let machine = Machine::new().with_password(None);
    let (data, tree) = (machine.path("data"), machine.path("tree"));
    small_tree(&tree);
    let server = Server::start(&data);
    machine.pair(&server.invite_with(&["--name", "laptop"]));
    machine.ok(["backup", text(&tree)]);
    machine.administer(&data, &["rename", "laptop", "attic"]).expect(0);
    let other = Machine::new().with_password(None);
    other.pair(&server.invite_with(&["--name", "laptop"]));
    machine.administer(&data, &["revoke", "attic"]).expect(0);
    let told = hint(machine.run(["backup", text(&tree)]));
    let named = told.split_once("--for ").expect("a command").1.split_once('`').unwrap().0;
    machine.ok(["pair", &server.invite_with(&["--for", named])]);
    machine.ok(["backup", text(&tree)]);
    other.ok(["snapshots"]);
}
