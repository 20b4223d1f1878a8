//! Tags and pins of snapshots that are there, in a directory and on a server.

use serde_json::{Value, json};

use crate::house::{Machine, Server};

/// A machine with two snapshots, in a directory or, where it is paired, on its server.
struct Tagged {
    machine: Machine,
    repo: Vec<String>,
    _server: Option<Server>,
}

impl Tagged {
    fn in_directory() -> Self {
        let machine = Machine::new();
        let repo = machine.path("repo").to_str().unwrap().to_owned();
        let kit = machine.path("kit.txt").to_str().unwrap().to_owned();
        machine.init(&["-r", &repo, "--recovery-kit", &kit]);
        let repo = vec!["-r".to_owned(), repo];
        Self { machine, repo, _server: None }.backed_up()
    }

    fn on_server() -> Self {
        let machine = Machine::new().with_password(None);
        let server = Server::start(&machine.path("data"));
        machine.pair_with(&server);
        Self { machine, repo: Vec::new(), _server: Some(server) }.backed_up()
    }

    fn backed_up(self) -> Self {
        let source = self.machine.path("source");
        std::fs::create_dir(&source).unwrap();
        for tag in ["first", "second"] {
            self.machine.ok(self.args(&["backup", source.to_str().unwrap(), "--tag", tag]));
        }
        self
    }

    fn args(&self, args: &[&str]) -> Vec<String> {
        args.iter().map(|arg| (*arg).to_owned()).chain(self.repo.iter().cloned()).collect()
    }

    fn listed(&self, more: &[&str]) -> Vec<Value> {
        let args = [&["snapshots", "--json"], more].concat();
        self.machine.ok(self.args(&args)).of_type("snapshot")
    }
}

fn tags_are_changed(tagged: &Tagged) {
    let before = tagged.listed(&[]);
    let ids: Vec<_> = before.iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(before[0]["pinned"], false);

    let told =
        tagged
            .machine
            .ok(tagged
                .args(&["tag", ids[0], "latest", "--add", "kept", "--remove", "first", "--json"]));
    assert_eq!(told.of_type("snapshot")[0]["tags"], json!(["kept"]));
    assert_eq!(told.summary()["snapshots_changed"], 2);
    tagged.machine.ok(tagged.args(&["tag", &ids[0][..12], "--pin"]));

    let after = tagged.listed(&[]);
    assert_eq!(after.len(), 2);
    assert_eq!((&after[0]["tags"], &after[0]["pinned"]), (&json!(["kept"]), &json!(true)));
    assert_eq!(after[1]["tags"], json!(["second", "kept"]));
    for (before, after) in before.iter().zip(&after) {
        for field in ["id", "received", "paths", "host", "items", "bytes", "sequence"] {
            assert_eq!(before[field], after[field], "{field}");
        }
    }
    assert_eq!(tagged.listed(&["--tag", "second"]), [after[1].clone()]);
    assert_eq!(tagged.listed(&["--tag", "kept", "--tag", "second"]), [after[1].clone()]);
    assert!(tagged.listed(&["--tag", "first"]).is_empty());
    let words = tagged.machine.ok(tagged.args(&["snapshots"])).stdout;
    assert!(words.contains("[kept] (pinned)"), "{words}");

    let args = ["tag", ids[0], ids[1], "--set", "", "--unpin"];
    tagged.machine.ok(tagged.args(&args));
    let again = tagged.machine.summary(tagged.args(&args));
    assert_eq!(
        (&again["snapshots_changed"], &again["snapshots_unchanged"]),
        (&json!(0), &json!(2))
    );
    assert!(
        tagged.listed(&[]).iter().all(|one| one["tags"] == json!([]) && one["pinned"] == false)
    );
    // The chain of records goes on behind amendments, and what they refer to is whole.
    let source = tagged.machine.path("source");
    tagged.machine.ok(tagged.args(&["backup", source.to_str().unwrap()]));
    let checked = tagged.machine.summary(tagged.args(&["check"]));
    assert_eq!((&checked["snapshots"], &checked["damaged"]), (&json!(3), &json!([])));
}

#[test]
fn tags_and_pins_of_snapshots_in_a_directory_are_changed() {
    tags_are_changed(&Tagged::in_directory());
}

#[test]
fn tags_and_pins_of_snapshots_on_a_server_are_changed() {
    tags_are_changed(&Tagged::on_server());
}

#[test]
fn what_makes_no_sense_is_refused_and_nothing_is_changed() {
    let tagged = Tagged::in_directory();
    let before = tagged.listed(&[]);
    tagged.machine.run(tagged.args(&["tag", "latest"])).expect(2);
    tagged.machine.run(tagged.args(&["tag", "--add", "x"])).expect(2);
    tagged.machine.run(tagged.args(&["tag", "latest", "--set", "x", "--add", "y"])).expect(2);
    tagged.machine.run(tagged.args(&["tag", "latest", "--pin", "--unpin"])).expect(2);
    let long = "x".repeat(1025);
    tagged.machine.run(tagged.args(&["tag", "latest", "--add", &long])).expect(2);
    for unseen in ["", "two\nlines"] {
        tagged.machine.run(tagged.args(&["tag", "latest", "--add", unseen])).expect(2);
    }
    // One unknown name, and the other snapshots are left as they are.
    tagged.machine.run(tagged.args(&["tag", "latest", "ffffffffffff", "--add", "x"])).expect(1);
    assert_eq!(tagged.listed(&[]), before);
}

#[test]
fn a_recovery_kit_can_not_tag() {
    let tagged = Tagged::on_server();
    let kit = tagged.machine.path("kit.txt");
    let other = Machine::new().with_password(None);
    other.ok(["pair", "--recovery-kit", kit.to_str().unwrap()]);
    other.run(["tag", "latest", "--pin"]).expect(13);
    assert!(tagged.listed(&[]).iter().all(|one| one["pinned"] == false));
}
