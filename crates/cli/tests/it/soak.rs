//! Eight clients and a server for a long time, with everything that goes wrong in one: clients and the
//! server are killed, connections break, and the administrator prunes and scrubs beside all of it. Between a
//! server's end and its coming back more than a week goes by for it, and its rules keep few snapshots, so that a
//! prune condemns, and deletes, while clients back up and restore.
//!
//! `HOLDALL_SOAK_SECONDS` says for how long all slices together go on. In the second half the server
//! is not killed any more, its rules keep everything, since it would apply them by itself too, and its memory has
//! to stay as it is.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use holdall_testkit::{Random, Slice, setting};

use crate::clocks::can_let_days_pass;
use crate::house::{Machine, Outcome};
use crate::kill::{Phoenix, Running, UNREACHABLE, summary_in};

const SECONDS: u64 = 180;
/// A change takes one in so many of those seconds.
const SLICES: u64 = 5;
/// More than a session lives, and than what is condemned waits, and rules that keep less than before.
const DAYS: u64 = 8;
/// So many snapshots of each client do the server's rules keep.
const LAST: usize = 4;
const CLIENTS: u64 = 8;
/// Acknowledged snapshots of each client whose content is kept beside, to be compared in the end.
const KEPT: usize = 4;
/// How a restore may end whose server went away.
const CUT_SHORT: [i32; 3] = [1, 3, UNREACHABLE];
/// What no server may take, however many clients it has.
const SERVER_BYTES: u64 = 256 << 20;
/// So much more than before may a server take in the last quarter.
const GROWTH_BYTES: u64 = 24 << 20;

/// One computer that backs up.
struct Client {
    machine: Machine,
    random: Random,
    /// Snapshots that were acknowledged.
    acknowledged: Vec<String>,
    /// The last of them, and a copy of what they hold.
    kept: Vec<(String, PathBuf)>,
    /// Snapshots of all clients that the server's rules let go.
    let_go: Arc<LetGo>,
}

/// The ids of snapshots that were let go, while prunes are under way perhaps too few.
type LetGo = RwLock<BTreeSet<String>>;

impl Client {
    fn new(seed: u64, server: &Phoenix, let_go: &Arc<LetGo>) -> Self {
        let machine = Machine::new().with_password(None);
        machine.pair(&server.invite());
        fs::create_dir_all(machine.path("source")).expect("a folder");
        let (acknowledged, kept, let_go) = (Vec::new(), Vec::new(), let_go.clone());
        Self { machine, random: Random::new(seed), acknowledged, kept, let_go }
    }

    /// Waits for a prune to end that is under way.
    fn was_let_go(&self, id: &str) -> bool {
        self.let_go.read().expect("no panic inside").contains(id)
    }

    fn source(&self) -> PathBuf {
        self.machine.path("source")
    }

    /// Backs up again and again until the end.
    fn work(&mut self, end: Instant) {
        while Instant::now() < end {
            self.change();
            let mut running = Running::start(&self.machine, &self.source());
            let dies_after = Duration::from_millis(self.random.below(2500));
            let is_to_die = self.random.one_in(4);
            let ended = match is_to_die.then(|| running.outlives(dies_after)) {
                Some(None) => {
                    running.kill();
                    continue;
                }
                Some(Some(ended)) => ended,
                None => running.finish(),
            };
            let (status, said) = ended;
            if status.code() == Some(UNREACHABLE) {
                continue;
            }
            assert!(status.success(), "{status}\n{said}");
            let id = summary_in(&said)["snapshot_id"].as_str().expect("an id").to_owned();
            self.keep(id);
        }
    }

    /// Some files are new, some others, and some go.
    fn change(&mut self) {
        for _ in 0..1 + self.random.below(8) {
            let file = self.source().join(format!("file {}", self.random.below(40)));
            let bytes = match self.random.below(6) {
                0 => 1 << 20,
                1 => 0,
                _ => 20_000,
            };
            let bytes = self.random.index(bytes + 1);
            fs::write(file, self.random.bytes(bytes)).expect("room");
        }
        let _ = fs::remove_file(self.source().join(format!("file {}", self.random.below(40))));
    }

    fn keep(&mut self, id: String) {
        let copy = self.machine.path(&format!("copy of {id}"));
        fs::create_dir_all(&copy).expect("a folder");
        for file in fs::read_dir(self.source()).expect("a folder") {
            let file = file.expect("a file");
            fs::copy(file.path(), copy.join(file.file_name())).expect("room");
        }
        self.acknowledged.push(id.clone());
        self.kept.push((id, copy));
        if self.kept.len() > KEPT {
            // Not always the oldest, so that old ones are compared in the end, too.
            let (_, gone) = self.kept.remove(self.random.index(2));
            fs::remove_dir_all(gone).expect("it can be removed");
        }
        if self.random.one_in(3) {
            let (id, copy) = &self.kept[self.random.index(self.kept.len())];
            let _ = self.compare(id, copy);
        }
    }

    /// Restores a snapshot and compares it with what it holds. While things go wrong that may fail, and
    /// says so.
    fn compare(&self, id: &str, copy: &Path) -> Option<i32> {
        let target = self.machine.path("target");
        let from = format!("{id}:{}", self.source().to_str().expect("UTF-8"));
        let to = target.to_str().expect("UTF-8");
        let outcome = self.machine.run(["restore", &from, "--target", to]);
        if outcome.code != Some(0) {
            let is_told =
                self.was_let_go(id) || outcome.code.is_some_and(|code| CUT_SHORT.contains(&code));
            assert!(is_told, "{id}: {:?}\n{}{}", outcome.code, outcome.stdout, outcome.stderr);
            let _ = fs::remove_dir_all(&target);
            return outcome.code;
        }
        // The copy has times of its own.
        let names = |dir: &Path| -> Vec<_> {
            let entries = fs::read_dir(dir).expect("a folder");
            let mut names: Vec<_> = entries.map(|one| one.expect("a file").file_name()).collect();
            names.sort_unstable();
            names
        };
        assert_eq!(names(&target), names(copy), "{id}");
        for name in names(copy) {
            let (is, was) = (fs::read(target.join(&name)), fs::read(copy.join(&name)));
            assert!(is.expect("a file") == was.expect("a file"), "{id}: {}", name.display());
        }
        fs::remove_dir_all(&target).expect("it can be removed");
        Some(0)
    }

    /// Everything that was acknowledged is there, but for what the rules let go, which keep so many.
    fn assert_whole(&self) {
        assert!(!self.acknowledged.is_empty(), "it was never acknowledged anything");
        let checked = self.machine.summary(["check", "--scrub", "--verify", "all"]);
        assert_eq!(checked["damaged"], serde_json::json!([]));
        let listed = self.machine.ok(["snapshots", "--json"]).of_type("snapshot");
        let least = self.acknowledged.len().min(LAST);
        assert!(listed.len() >= least, "{} snapshots are left of at least {least}", listed.len());
        for id in self.acknowledged.iter().filter(|id| !self.was_let_go(id)) {
            assert!(listed.iter().any(|one| one["id"] == *id.as_str()), "{id} is gone");
        }
        for (id, copy) in self.kept.iter().filter(|(id, _)| !self.was_let_go(id)) {
            assert_eq!(self.compare(id, copy), Some(0), "{id}");
        }
    }
}

/// The server, and its administrator, at whose end things go wrong.
struct Trouble {
    server: Phoenix,
    administrator: Machine,
    /// How many days go by when the server is killed.
    days: u64,
    let_go: Arc<LetGo>,
    /// Packs that prunes deleted.
    deleted_packs: u64,
    /// What the server took of memory, by time.
    sizes: Vec<(Duration, u64)>,
}

impl Trouble {
    fn new() -> Self {
        let administrator = Machine::new();
        let server = Phoenix::new(&administrator.path("data"));
        let days = if can_let_days_pass() { DAYS } else { 0 };
        let (let_go, sizes) = (Arc::default(), Vec::new());
        Self { server, administrator, days, let_go, deleted_packs: 0, sizes }
    }

    fn administer(&self, args: &[&str]) -> Outcome {
        self.administrator.administer(self.server.data(), args).expect(0)
    }

    /// Has so many of the last snapshots be kept, or all.
    fn keep_last(&self, count: &str) {
        for repository in self.administer(&["repositories"]).of_type("repository") {
            let name = repository["name"].as_str().expect("a name");
            self.administer(&["retention", name, "--keep-last", count, "--lock", "0d"]);
        }
    }

    fn prune(&mut self) {
        let mut let_go = self.let_go.write().expect("no panic inside");
        for pruned in self.administer(&["prune"]).of_type("prune") {
            let forgotten = pruned["snapshots_forgotten"].as_array().expect("a list").iter();
            let_go.extend(forgotten.map(|one| one.as_str().expect("an id").to_owned()));
            self.deleted_packs += pruned["deleted_packs"].as_u64().expect("a number");
        }
    }

    /// What goes wrong until the end.
    fn make(&mut self, took: Duration, mut random: Random) {
        let began = Instant::now();
        let mut is_calm = false;
        while began.elapsed() < took {
            std::thread::sleep(Duration::from_millis(200 + random.below(800)));
            self.sizes.push((began.elapsed(), self.server.rss_bytes()));
            if !is_calm && began.elapsed() > took / 2 {
                is_calm = true;
                // However the dice fell, days go by once, and then the rules let something go.
                self.server.kill_for(self.days);
                self.prune();
                self.keep_last("all");
            }
            match random.below(12) {
                0 if !is_calm => {
                    self.server.kill_for(self.days);
                    self.prune();
                }
                1 | 2 => self.server.cut(),
                3 => self.prune(),
                4 => drop(self.administer(&["scrub"])),
                _ => {}
            }
        }
    }

    /// Days after all of that, what was condemned is deleted.
    fn settle(&mut self) {
        self.server.kill_for(self.days);
        self.prune();
    }
}

fn assert_flat(sizes: &[(Duration, u64)], took: Duration) {
    let most = |from: Duration, to: Duration| {
        let of = sizes.iter().filter(|(at, _)| (from..to).contains(at)).map(|(_, bytes)| *bytes);
        of.max().expect("it was looked at")
    };
    let (third, last) = (most(took / 2, took * 3 / 4), most(took * 3 / 4, took * 2));
    let ever = most(Duration::ZERO, took * 2);
    println!("server: at most {ever} bytes, {third} in the third quarter, {last} in the last");
    assert!(ever < SERVER_BYTES, "{ever} bytes");
    assert!(last < third + GROWTH_BYTES, "{third} bytes, and then {last}");
}

#[test]
fn eight_clients_lose_nothing_whatever_goes_wrong_for_how_long() {
    let slice = Slice::one_in(SLICES);
    let took = Duration::from_secs(slice.share(setting("HOLDALL_SOAK_SECONDS", SECONDS)));
    let mut trouble = Trouble::new();
    let client = |number| Client::new(slice.seed(100 + number), &trouble.server, &trouble.let_go);
    let mut clients: Vec<Client> = (0..CLIENTS).map(client).collect();
    trouble.keep_last(&LAST.to_string());
    let end = Instant::now() + took;
    std::thread::scope(|scope| {
        for client in &mut clients {
            scope.spawn(move || client.work(end));
        }
        trouble.make(took, Random::new(slice.seed(9)));
    });
    let acknowledged: usize = clients.iter().map(|client| client.acknowledged.len()).sum();
    trouble.settle();
    let (let_go, deleted) = (trouble.let_go.read().expect("no panic").len(), trouble.deleted_packs);
    println!(
        "{acknowledged} snapshots were acknowledged, {let_go} let go, {deleted} packs deleted"
    );
    assert!(trouble.days == 0 || deleted > 0, "no prune deleted anything");
    clients.iter().for_each(Client::assert_whole);
    assert_flat(&trouble.sizes, took);
}
