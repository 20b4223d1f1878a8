//! The table of mistakes: what users, disks and networks do wrong, and what must come of it.
//!
//! Each row says how the command ends, what its message names, and what its hint says to do. What
//! lies in the folders before and after is compared, so that no mistake leaves anything behind or
//! overwrites anything that it need not.

mod cache;
mod clock;
mod repository;
mod rights;
mod room;
mod server;
mod state;
mod usage;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use holdall_format::limits::PACK_TARGET_BYTES;
use holdall_testkit::Random;

use crate::house::{Machine, Outcome, folder, small_tree};

/// One mistake.
struct Row {
    /// What is wrong.
    name: &'static str,
    /// Makes it wrong.
    set_up: fn(&mut Scene),
    /// The command, whose words may hold `{repo}`, `{source}`, `{taken}` (the source of the snapshot
    /// that is there), `{kit}`, `{snapshot}`, `{target}` and `{here}`.
    command: &'static str,
    /// The exit code.
    code: i32,
    /// What the message names.
    names: &'static str,
    /// What the hint, or the message, says to do.
    advises: &'static str,
    /// What may be made or changed, by the beginning of its path.
    leaves: &'static [&'static str],
}

/// What a backup, or an amendment, makes or changes.
const BACKED_UP: &[&str] = &[
    "repo/records",
    "repo/tails",
    "repo/positions",
    "config/state/receipts",
    "config/state/filled",
];

/// A repository with one snapshot, which every scene gets a copy of.
struct Template {
    machine: Machine,
    snapshot: String,
}

impl Template {
    fn make() -> Self {
        Self::of(|_| ())
    }

    /// The same with a file that more than fills a pack.
    fn with_a_closed_pack() -> Self {
        let bytes = PACK_TARGET_BYTES as usize + (4 << 20);
        Self::of(|source| fs::write(source.join("huge.bin"), Random::new(5).bytes(bytes)).unwrap())
    }

    fn of(more: impl FnOnce(&Path)) -> Self {
        let machine = Machine::new();
        let [repo, source, kit] = ["repo", "source", "kit.txt"].map(|name| text(&machine, name));
        small_tree(source.as_ref());
        more(source.as_ref());
        machine.init(&["-r", &repo, "--recovery-kit", &kit]);
        let done = machine.summary(["backup", "-r", &repo, &source]);
        // The key is kept from now on.
        machine.ok(["pair", "-r", &repo, "--recovery-kit", &kit]);
        let snapshot = done["snapshot_id"].as_str().unwrap().to_owned();
        Self { machine, snapshot }
    }
}

/// A computer with a repository that something is about to go wrong with.
struct Scene {
    machine: Machine,
    /// More variables of the environment.
    env: Vec<(&'static str, String)>,
    /// The command that runs holdall, if any.
    by: &'static [&'static str],
    taken: String,
    snapshot: String,
}

impl Scene {
    fn of(template: &Template) -> Self {
        let machine = Machine::new().with_password(None);
        let all = ["repo", "source", "kit.txt", "config", "cache"];
        let from = all.map(|name| template.machine.path(name));
        copy(&from, &machine.path(""));
        fs::create_dir(machine.path("tmp")).unwrap();
        let taken = text(&template.machine, "source");
        Self { machine, env: Vec::new(), by: &[], taken, snapshot: template.snapshot.clone() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.machine.path(name)
    }

    /// A word of a command with its places filled in.
    fn fill(&self, word: &str) -> String {
        let mut word = word.to_owned();
        for (name, place) in [
            ("{repo}", "repo"),
            ("{source}", "source"),
            ("{kit}", "kit.txt"),
            ("{target}", "target"),
            ("{here}", ""),
        ] {
            word = word.replace(name, text(&self.machine, place).trim_end_matches('/'));
        }
        word.replace("{taken}", &self.taken).replace("{snapshot}", &self.snapshot)
    }

    fn run(&self, command: &str) -> Outcome {
        let args: Vec<_> = command.split_whitespace().map(|word| self.fill(word)).collect();
        let mut outer = self.machine.command_by(self.by, &args);
        outer.env("TMPDIR", self.path("tmp")).envs(self.env.iter().map(|(name, set)| (name, set)));
        Outcome::of(&mut outer)
    }
}

impl Row {
    /// What is wrong with how holdall takes the mistake; empty if nothing is.
    fn wrong(&self, template: &Template) -> String {
        let mut scene = Scene::of(template);
        (self.set_up)(&mut scene);
        let before = listing(&scene.path(""));
        let outcome = scene.run(self.command);
        let mut wrong = wrong_words(&outcome, self.code, &scene.fill(self.names), self.advises);
        let may = |path: &str| self.leaves.iter().any(|left| path.starts_with(left));
        for path in changes(&before, &listing(&scene.path(""))) {
            if !may(&path) {
                wrong.push(format!("{path} was made, changed or removed"));
            }
        }
        if wrong.is_empty() {
            return String::new();
        }
        let Outcome { stdout, stderr, .. } = &outcome;
        format!("{}: {}\n{stdout}{stderr}", self.name, wrong.join("; "))
    }
}

/// Holds every row of a table; names those that do not hold.
#[track_caller]
fn hold(rows: &[Row]) {
    hold_with(&Template::make(), rows);
}

/// The same with a repository of the caller's.
#[track_caller]
fn hold_with(template: &Template, rows: &[Row]) {
    let wrong: Vec<_> = rows.iter().map(|row| row.wrong(template)).collect();
    let wrong: Vec<_> = wrong.into_iter().filter(|wrong| !wrong.is_empty()).collect();
    assert!(wrong.is_empty(), "{} of {}:\n\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

/// Checks what a command said of one mistake.
#[track_caller]
fn tells(outcome: &Outcome, code: i32, names: &str, advises: &str) {
    let wrong = wrong_words(outcome, code, names, advises);
    assert!(wrong.is_empty(), "{}\n{}{}", wrong.join("; "), outcome.stdout, outcome.stderr);
}

fn wrong_words(outcome: &Outcome, code: i32, names: &str, advises: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if outcome.code != Some(code) {
        wrong.push(format!("ended with {:?}, not {code}", outcome.code));
    }
    let said = format!("{}{}", outcome.stdout, outcome.stderr);
    if code != 0 && !outcome.stderr.contains("error: ") && !said.contains("damaged ") {
        wrong.push("tells no error".to_owned());
    }
    for expected in [names, advises] {
        if !said.contains(expected) {
            wrong.push(format!("does not say {expected:?}"));
        }
    }
    wrong
}

/// Everything below a folder with what it holds, by path; what may be deleted at any time is left
/// out, and so is which repository was opened in which directory, how fast runs were, and what they came to.
fn listing(dir: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![dir.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder).unwrap().flatten() {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            let name = path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned();
            let left_out = [
                "cache",
                "config/state/directories",
                "config/state/runs",
                "config/state/speed-history.jsonl",
                // Of the configuration's folder alone.
                "state/runs",
            ];
            if left_out.contains(&name.as_str()) {
                continue;
            }
            let what = if kind.is_dir() {
                waiting.push(path);
                "folder".to_owned()
            } else if kind.is_file() {
                blake3::hash(&fs::read(&path).unwrap()).to_string()
            } else {
                format!("{kind:?}")
            };
            found.insert(name, what);
        }
    }
    found
}

/// The paths that are not in both listings with the same content.
fn changes(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Vec<String> {
    let paths = before.keys().chain(after.keys());
    let mut changed: Vec<_> =
        paths.filter(|path| before.get(*path) != after.get(*path)).cloned().collect();
    changed.sort_unstable();
    changed.dedup();
    changed
}

fn text(machine: &Machine, name: &str) -> String {
    machine.path(name).to_str().unwrap().to_owned()
}

/// Copies files and folders into a folder, as they are.
fn copy(from: &[PathBuf], to: &Path) {
    let status = Command::new("cp").arg("-a").args(from).arg(to).status().unwrap();
    assert!(status.success());
}

/// Changes the bytes of a file, whatever its mode is.
fn edit(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    use std::os::unix::fs::PermissionsExt;
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Flips a bit in the middle of a file.
fn flip(path: &Path) {
    edit(path, |bytes| {
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
    });
}

/// The only file in a folder, at any depth.
fn only_file(dir: &Path) -> PathBuf {
    let found = crate::house::files_below(dir);
    assert_eq!(found.len(), 1, "{found:?}");
    found.into_iter().next().unwrap()
}

fn nothing(_: &mut Scene) {}

#[test]
fn a_listing_sees_what_was_made_changed_or_removed() {
    let dir = folder();
    for name in ["kept", "changed", "removed"] {
        fs::write(dir.path().join(name), name).unwrap();
    }
    let before = listing(dir.path());
    fs::write(dir.path().join("changed"), "other").unwrap();
    fs::remove_file(dir.path().join("removed")).unwrap();
    fs::create_dir_all(dir.path().join("made/inside")).unwrap();
    fs::create_dir_all(dir.path().join("cache/inside")).unwrap();
    let changed = changes(&before, &listing(dir.path()));
    assert_eq!(changed, ["changed", "made", "made/inside", "removed"]);
}

#[test]
fn a_row_that_does_not_hold_is_named() {
    let row = Row {
        name: "everything else",
        set_up: nothing,
        command: "init -r {here}/new --recovery-kit {here}/new-kit",
        code: 7,
        names: "nobody",
        advises: "nothing",
        leaves: &[],
    };
    let wrong = row.wrong(&Template::make());
    for expected in ["everything else", "not 7", "\"nobody\"", "\"nothing\""] {
        assert!(wrong.contains(expected), "{expected:?} is not in {wrong}");
    }
}
