//! Pairing by a short code where the server is named, and what must not cost its one try.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::house::{Machine, Outcome, Server, small_tree, text};

fn address(server: &Server) -> String {
    format!("https://{}", server.address())
}

/// A new computer that pairs by that code.
fn pair(machine: &Machine, server: &Server, code: &str, more: &[&str]) -> Outcome {
    let address = address(server);
    machine.run([&["pair", code, "-r", &address], more].concat())
}

fn machines(machine: &Machine, server_data: &str) -> usize {
    machine.administer(machine.path(server_data).as_ref(), &["machines"]).objects().len()
}

/// The server has given the repository to the new computer by the time that its password or kit is looked for.
#[test]
fn a_code_whose_password_or_kit_is_missing_is_good_once_more_on_that_computer() {
    let old = Machine::new().with_password(None);
    let server = Server::start(&old.path("data"));
    let [kit, other_kit] = ["kit.txt", "other.txt"].map(|name| text(&old.path(name)).to_owned());
    old.ok(["pair", &server.invite_with(&["--name", "desk"]), "--write-kit", &kit]);
    let other = Machine::new().with_password(None);
    other.ok(["pair", &server.invite(), "--write-kit", &other_kit]);

    let new = Machine::new().with_password(None);
    let code = server.invite_with(&["--short", "--for", "desk"]);
    // A kit that is not there is noticed before anything is done.
    pair(&new, &server, &code, &["--kit", text(&new.path("none"))]).expect(1);
    small_tree(&old.path("source"));
    old.ok(["backup", text(&old.path("source"))]);

    let refused = pair(&new, &server, &code, &[]).expect(2).stderr;
    assert!(refused.contains("give the same code again"), "{refused}");
    let json = pair(&new, &server, &code, &["--json", "--kit", &other_kit]).expect(12).stdout;
    assert!(json.contains("give the same code again"), "{json}");
    assert!(!refused.contains("holdall1-") && !json.contains("holdall1-"), "{refused}{json}");
    let kept = new.path("config/state/traded-invite");
    assert_eq!(fs::metadata(&kept).expect("it is kept").permissions().mode() & 0o777, 0o600);
    // For the computer that has it; elsewhere the code is spent.
    pair(&other, &server, &code, &["--kit", &kit]).expect(13);
    pair(&new, &server, &code, &["--kit", &kit]).expect(0);
    assert!(!kept.exists(), "it is kept still");
    new.ok(["backup", text(&old.path("source"))]);
    pair(&new, &server, &code, &["--kit", &kit]).expect(13);
}

#[test]
fn a_kit_that_cannot_be_written_costs_no_code() {
    let machine = Machine::new().with_password(None);
    let server = Server::start(&machine.path("data"));
    let code = server.invite_with(&["--short"]);
    let missing = machine.path("missing/kit.txt");
    for option in ["--write-kit", "--recovery-kit"] {
        let refused = pair(&machine, &server, &code, &[option, text(&missing)]).expect(1).stderr;
        assert!(refused.contains("cannot write") && refused.contains("a folder"), "{refused}");
    }
    assert_eq!(machines(&machine, "data"), 0, "the code was traded");
    pair(&machine, &server, &code, &["--write-kit", text(&machine.path("kit.txt"))]).expect(0);
    // With an invite it is the same.
    let other = Machine::new().with_password(None);
    other.run(["pair", &server.invite(), "--write-kit", text(&missing)]).expect(1);
    assert_eq!(machines(&machine, "data"), 1);
}

#[test]
fn a_host_alone_names_the_server_of_a_code_and_a_directory_is_refused() {
    let machine = Machine::new().with_password(None);
    let server = Server::start(&machine.path("data"));
    let code = server.invite_with(&["--short"]);
    let folder = machine.path("folder");
    fs::create_dir(&folder).expect("a folder");
    for place in [text(&folder), "/no/such/path", "./attic"] {
        let refused = machine.run(["pair", &code, "-r", place]).expect(2).stderr;
        assert!(refused.contains("a short code is for a server"), "{refused}");
        assert!(refused.contains("-r https://HOST"), "{refused}");
    }
    let kit = machine.path("kit.txt");
    machine.ok(["pair", &code, "-r", server.address(), "--write-kit", text(&kit)]);
}
