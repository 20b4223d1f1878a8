//! What each file of a repository and of a server's data is worth: it is removed, or a byte of it is changed, one file
//! at a time, and the table of what comes of it is that of `docs/reliability.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::foreign::{ServedPlace, copy};
use crate::house::{Machine, files_below, folder, small_tree, text};

/// Where the tables stand.
const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reliability.md");

/// What is done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Harm {
    Removed,
    Changed,
}

impl Harm {
    /// Whether it could be done: of an empty file nothing can be changed.
    fn befalls(self, file: &Path) -> bool {
        match self {
            Self::Removed => fs::remove_file(file).is_ok(),
            Self::Changed => {
                let mut bytes = fs::read(file).unwrap();
                // What was written last, so that it is of the newest snapshot.
                let Some(byte) = bytes.last_mut() else { return false };
                *byte ^= 4;
                fs::write(file, bytes).is_ok()
            }
        }
    }
}

/// The kind of a file, as `docs/format.md` names it, by its path in the repository's folder.
fn kind(path: &Path, packs: &BTreeMap<String, &'static str>) -> String {
    let names: Vec<_> = path.iter().map(|name| name.to_str().unwrap()).collect();
    match names[..] {
        ["packs", _, name] => format!("`packs/XX/NAME` of {}", packs[name]),
        ["parity", _, name] => format!("`parity/XX/NAME` of {}", packs[name]),
        ["tails", name] => {
            let mut parts = name.split('.');
            let (kind, end) = (parts.next().unwrap(), parts.next_back().unwrap());
            format!("`tails/N.{end}` of {kind}")
        }
        ["records", _] => "`records/POSITION`".into(),
        [
            folder @ ("wrappings" | "spare" | "sessions" | "pruned" | "positions" | "tombstones"),
            _,
        ] => format!("`{folder}/NAME`"),
        _ => format!("`{}`", path.display()),
    }
}

/// A repository in a directory, with packs, parity, tails, a tag and two snapshots, and the machine that made it.
struct Place {
    home: TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { home: folder() };
        let tree = place.path("tree");
        small_tree(&tree);
        fs::create_dir(place.path("owner-sound")).unwrap();
        let owner = Machine::in_folder(place.path("owner-sound"));
        let repo = place.path("sound");
        owner.init(&["-r", text(&repo)]);
        owner.ok(["check", "-q", "-r", text(&repo), "--parity", "5"]);
        owner.ok(["backup", "-q", "-r", text(&repo), text(&tree)]);
        // Whatever is deleted has the rest of its pack moved to a new one.
        fs::write(tree.join("large.bin"), holdall_testkit::Random::new(7).bytes(2_000_000))
            .unwrap();
        owner.ok(["backup", "-q", "-r", text(&repo), text(&tree)]);
        owner.ok(["forget", "-q", "-r", text(&repo), "--keep-last", "1", "--prune"]);
        fs::write(tree.join("more.bin"), holdall_testkit::Random::new(6).bytes(300_000)).unwrap();
        owner.ok(["backup", "-q", "-r", text(&repo), text(&tree)]);
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// What comes of it for a stranger who restores and checks, and then for the machine that made the repository,
    /// which repairs it and backs up again.
    fn outcome(&self, file: &Path, harm: Harm) -> String {
        let [repo, owner, target] = ["repo", "owner", "restored"].map(|name| self.path(name));
        copy(&self.path("sound"), &repo);
        copy(&self.path("owner-sound"), &owner);
        if !harm.befalls(&repo.join(file)) {
            return "is empty".into();
        }
        let run = |machine: &Machine, args: &[&str]| {
            machine.run([&["-r", text(&repo)], args].concat()).code.unwrap()
        };
        let (stranger, owner) = (Machine::new(), Machine::in_folder(owner));
        let (tree, verify) = (self.path("tree"), ["check", "-q", "--scrub", "--verify", "all"]);
        let restores = |who: &Machine| {
            let _ = fs::remove_dir_all(&target);
            let code = run(who, &["restore", "latest", "-q", "--target", text(&target)]);
            (same(&tree, &target), code)
        };
        let (is_whole, code) = restores(&stranger);
        let told = [&stranger, &owner].map(|who| run(who, &verify));
        let repaired = run(&owner, &["check", "-q", "--repair"]);
        run(&owner, &["backup", "-q", text(&tree)]);
        let afterwards = run(&Machine::new(), &verify);
        // Never silent, and whatever is lost, the next backup is whole.
        assert!(is_whole || code == 20 || told[1] == 20, "{} {harm:?}: silent", file.display());
        assert!(restores(&owner).0, "{} {harm:?}: the next backup", file.display());
        let restores = match (is_whole, code) {
            (true, _) => "restores",
            (false, 0) => "an older snapshot is taken for the latest",
            _ => "the latest snapshot is lost, or some of it",
        };
        let told = match told {
            [20, _] => ", told",
            [_, 20] => ", told on the computer that made it",
            _ => "",
        };
        let repaired = match (told, repaired, afterwards) {
            ("", _, 0) => "",
            (_, 0, 0) => ", repaired by `--repair`",
            (_, _, 0) => ", repaired by `--repair` and the next backup",
            _ => ", told from then on",
        };
        format!("{restores}{told}{repaired}")
    }
}

/// Whether a restored tree has the files of the source.
fn same(tree: &Path, target: &Path) -> bool {
    let restored = target.join(tree.strip_prefix("/").unwrap());
    files_below(tree).iter().all(|file| {
        let there = restored.join(file.strip_prefix(tree).unwrap());
        fs::read(there).is_ok_and(|there| fs::read(file).unwrap() == there)
    })
}

/// Whether a pack has nodes or chunks, by its name.
fn packs_of(repo: &Path) -> BTreeMap<String, &'static str> {
    const TRAILER_BYTES: usize = 48;
    const KIND_AT: usize = 5;
    let packs = files_below(&repo.join("packs")).into_iter().map(|path| {
        let bytes = fs::read(&path).unwrap();
        let trailer = &bytes[bytes.len() - TRAILER_BYTES..];
        let footer_bytes = u32::from_le_bytes(trailer[..4].try_into().unwrap()) as usize;
        let footer = &bytes[bytes.len() - TRAILER_BYTES - footer_bytes..];
        let kind = if footer[KIND_AT] == 1 { "nodes" } else { "chunks" };
        (path.file_name().unwrap().to_str().unwrap().to_owned(), kind)
    });
    packs.collect()
}

/// Rows of a table: a kind of file, what comes of the removal of one, and of a change.
type Rows = BTreeMap<String, [BTreeSet<String>; 2]>;

fn add(rows: &mut Rows, kind: String, outcomes: [String; 2]) {
    let cells = rows.entry(kind).or_default();
    for (cell, outcome) in cells.iter_mut().zip(outcomes) {
        cell.insert(outcome);
    }
}

fn table(rows: &Rows) -> String {
    let mut table = String::from("| file | removed | a byte changed |\n| --- | --- | --- |\n");
    for (file, cells) in rows {
        let [removed, changed] = cells
            .each_ref()
            .map(|cell| cell.iter().map(String::as_str).collect::<Vec<_>>().join("; or "));
        writeln!(table, "| {file} | {removed} | {changed} |").unwrap();
    }
    table
}

#[track_caller]
fn stands_in_the_document(table: &str) {
    let document = fs::read_to_string(DOCUMENT).unwrap();
    assert!(document.contains(table), "docs/reliability.md should have:\n{table}");
}

#[test]
fn what_each_file_of_a_repository_is_worth() {
    let place = Place::new();
    let sound = place.path("sound");
    let packs = packs_of(&sound);
    let mut rows = Rows::new();
    for file in files_below(&sound) {
        let file = file.strip_prefix(&sound).unwrap();
        let outcomes = [Harm::Removed, Harm::Changed].map(|harm| place.outcome(file, harm));
        add(&mut rows, kind(file, &packs), outcomes);
    }
    stands_in_the_document(&table(&rows));
}

/// What comes of it when a server starts without that file, or with it changed, and its machine backs up.
fn served_outcome(place: &ServedPlace, file: &Path, harm: Harm) -> String {
    let (data, machine) = place.copies();
    if !harm.befalls(&data.join(file)) {
        return "is empty".into();
    }
    let mut server = place.serve(&data);
    if server.wait_for_line("listening on https://").is_err() {
        return "the server does not start, and says why".into();
    }
    let outcome = machine.run(["backup", "-q", text(&place.path("tree"))]);
    match outcome.code {
        Some(0) => "goes on".into(),
        Some(13) => "machines are unknown, and say so".into(),
        code => panic!("{} {harm:?}: {code:?} {}", file.display(), outcome.stderr),
    }
}

#[test]
fn what_each_file_of_a_server_s_data_is_worth() {
    let place = ServedPlace::new();
    let sound = place.path("sound");
    let mut rows = Rows::new();
    for file in files_below(&sound) {
        let file = file.strip_prefix(&sound).unwrap();
        if !file.starts_with("repositories") && !file.starts_with("cache") {
            let outcomes = [Harm::Removed, Harm::Changed];
            let outcomes = outcomes.map(|harm| served_outcome(&place, file, harm));
            add(&mut rows, format!("`{}`", file.display()), outcomes);
        }
    }
    stands_in_the_document(&table(&rows));
}
