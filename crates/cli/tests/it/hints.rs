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

    let used = hint(other.run(["pair", &invite]));
    assert!(used.contains("holdall invite") && !used.contains("admin"), "{used}");
    let deletion = hint(machine.run(["forget", "latest"]));
    assert!(deletion.contains("holdall admin forget NAME ID"), "{deletion}");
    assert!(!deletion.contains("invite"), "{deletion}");
    let reader = Machine::new().with_password(None);
    reader.ok(["pair", "--recovery-kit", text(&machine.path("kit.txt"))]);
    let kit = hint(reader.run(["backup", text(&tree)]));
    assert!(kit.contains("holdall invite --for NAME") && !kit.contains("admin"), "{kit}");

    machine.administer(&data, &["quota", "laptop", "1"]).expect(0);
    fs::write(tree.join("more"), "more").unwrap();
    let quota = hint(backup());
    assert!(quota.contains("holdall admin quota NAME SIZE"), "{quota}");
    assert!(!quota.contains("invite") && !quota.contains("--again"), "{quota}");
    machine.administer(&data, &["quota", "laptop", "none"]).expect(0);

    machine.administer(&data, &["rights", "laptop", "read"]).expect(0);
    let rights = hint(backup());
    assert!(rights.contains("holdall admin rights NAME backup"), "{rights}");
    assert!(!rights.contains("invite"), "{rights}");

    machine.administer(&data, &["revoke", "laptop"]).expect(0);
    let revoked = hint(backup());
    assert!(revoked.contains("holdall invite --for NAME"), "{revoked}");
    assert!(!revoked.contains("admin"), "{revoked}");
}
