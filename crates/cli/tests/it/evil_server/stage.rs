//! What the lies are told about: a real server with two machines, one of which backed up three times.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use holdall_crypto::SigningKey;
use holdall_protocol::ListedRecord;
use holdall_protocol::wire::decode_records;

use super::proxy::{Answer, EvilServer, Lie, honest};
use crate::house::{Machine, Outcome, Server, files_below, text};

/// Lists everything, as a client without a cache does.
const LIST: &str = "/api/v1/repositories/~/records?after=0&limit=512";
/// Where a computer keeps who it is, by its configuration folder.
const IDENTITY: &str = "config/state/identity.json";
/// Longer than any command here takes, and shorter than anybody waits.
const PATIENCE_SECONDS: &str = "120";

pub(super) struct Stage {
    _server: Server,
    pub(super) evil: EvilServer,
    pub(super) desk: Machine,
    pub(super) other: Machine,
    pub(super) data: PathBuf,
    /// What the list of records was after each backup.
    pub(super) lists: Vec<Answer>,
    /// The snapshots that there are, oldest first.
    pub(super) ids: Vec<String>,
}

/// A computer without a password.
fn computer() -> Machine {
    Machine::new().with_password(None)
}

impl Stage {
    pub(super) fn new() -> Self {
        let (desk, other) = (computer(), computer());
        let data = desk.path("data");
        let server = Server::start(&data);
        let seed = fs::read(data.join("identity.key")).unwrap().try_into().unwrap();
        let identities = [&desk, &other].map(|machine| machine.path(IDENTITY)).to_vec();
        let upstream = server.address().parse().unwrap();
        let evil = EvilServer::start(upstream, &seed, identities);
        let address = evil.address().to_string();
        for (machine, name) in [(&desk, "desk"), (&other, "other")] {
            machine.pair(&server.invite_with(&["--address", &address, "--name", name]));
        }
        let mut stage =
            Self { _server: server, evil, desk, other, data, lists: vec![], ids: vec![] };
        stage.back_up();
        stage
    }

    /// Three snapshots of the desk, each of another tree, and one of the other machine.
    fn back_up(&mut self) {
        let source = self.desk.path("source");
        fs::create_dir(&source).unwrap();
        for round in 0u8..3 {
            fs::write(source.join("constant"), [7; 5000]).unwrap();
            fs::write(source.join("changing"), vec![round; 40_000 + usize::from(round)]).unwrap();
            fs::write(source.join(format!("new-{round}")), [round; 3000]).unwrap();
            let summary = self.desk.summary(["backup", text(&source), "--host", "desk"]);
            self.ids.push(summary["snapshot_id"].as_str().unwrap().to_owned());
            self.lists.push(self.list());
        }
        let theirs = self.other.path("source");
        fs::create_dir(&theirs).unwrap();
        fs::write(theirs.join("secret"), "of somebody else".repeat(500)).unwrap();
        self.other.summary(["backup", text(&theirs), "--host", "other"]);
    }

    /// The true list of records.
    pub(super) fn list(&self) -> Answer {
        self.evil.ask(&self.desk.path(IDENTITY), "GET", LIST)
    }

    /// The true records.
    pub(super) fn records(&self) -> Vec<ListedRecord> {
        records_in(&self.list())
    }

    /// The other machine's records.
    pub(super) fn records_of_other(&self) -> Vec<ListedRecord> {
        records_in(&self.evil.ask(&self.other.path(IDENTITY), "GET", LIST))
    }

    /// What a repository says of itself.
    pub(super) fn description(&self, machine: &Machine) -> Answer {
        self.evil.ask(&machine.path(IDENTITY), "GET", "/api/v1/repositories/~")
    }

    /// The server's own key.
    pub(super) fn server_key(&self) -> SigningKey {
        SigningKey::from_seed(
            &fs::read(self.data.join("identity.key")).unwrap().try_into().unwrap(),
        )
    }

    /// Runs a command of the desk; `{source}` and `{target}` stand for these.
    pub(super) fn run(&self, command: &str) -> Outcome {
        let words = command.split(' ').map(|word| {
            let word = word.replace("{source}", text(&self.desk.path("source")));
            word.replace("{target}", text(&self.target()))
        });
        self.desk.run_by(&["timeout", PATIENCE_SECONDS], words.collect::<Vec<_>>())
    }

    /// The same while the server lies.
    pub(super) fn run_under(&self, lie: Lie, command: &str) -> Outcome {
        self.evil.lie(lie);
        let outcome = self.run(command);
        self.evil.lie(honest());
        outcome
    }

    pub(super) fn target(&self) -> PathBuf {
        self.desk.path("target")
    }

    /// Everything that the desk keeps for good.
    pub(super) fn state(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let files = files_below(&self.desk.path("config")).into_iter();
        // How fast runs were and what they came to is no promise: each run notes that.
        let is_of_runs = |file: &PathBuf| {
            file.ends_with("speed-history.jsonl")
                || file.components().any(|part| part.as_os_str() == "runs")
        };
        let files = files.filter(|file| !is_of_runs(file));
        files.map(|file| (file.clone(), fs::read(file).unwrap())).collect()
    }

    /// Forgets what may be asked for again.
    pub(super) fn drop_cache(&self) {
        let _ = fs::remove_dir_all(self.desk.path("cache"));
    }

    /// Checks that every file at the target is one of the source's, and removes them. Gives how many
    /// there were.
    #[track_caller]
    pub(super) fn assert_nothing_false(&self, name: &str) -> usize {
        let (target, source) = (self.target(), self.desk.path("source"));
        let restored = files_below(&target);
        for file in &restored {
            let inside = file.strip_prefix(&target).unwrap();
            let original = Path::new("/").join(inside);
            assert!(
                original.starts_with(&source),
                "{name}: {} came from nowhere",
                inside.display()
            );
            let same = fs::read(file).unwrap() == fs::read(&original).unwrap();
            assert!(same, "{name}: {} is false", inside.display());
        }
        let _ = fs::remove_dir_all(&target);
        restored.len()
    }

    /// Checks that an honest server is as good as ever to this machine, with the cache that it has.
    #[track_caller]
    pub(super) fn assert_unharmed(&self, name: &str) {
        let listed = self.run("snapshots --json");
        assert_eq!(listed.code, Some(0), "{name}: {}", listed.stderr);
        let listed = listed.of_type("snapshot");
        let ids: Vec<_> = listed.iter().map(|one| one["id"].as_str().unwrap()).collect();
        assert_eq!(ids, self.ids, "{name}");
        let restored = self.run("restore latest --target {target}");
        assert_eq!(restored.code, Some(0), "{name}: {}", restored.stderr);
        let files = files_below(&self.desk.path("source")).len();
        assert_eq!(self.assert_nothing_false(name), files, "{name}");
    }
}

pub(super) fn records_in(answer: &Answer) -> Vec<ListedRecord> {
    decode_records(&answer.body.clone().into()).unwrap().0
}
