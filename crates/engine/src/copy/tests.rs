//! What is copied is what was there, only what differs is fetched, and damage stays where it is.

use std::fs;

use holdall_crypto::RecordSecret;
use holdall_testkit::{CompareOptions, Random, compare_trees};

use super::*;
use crate::test_world::World;
use crate::verify::{Verify, verify};
use crate::{BackupOptions, RestoreOptions, Source, backup, restore, snapshots};

/// Two repositories with keys of their own, and a folder.
struct Pair {
    source: World,
    destination: World,
    folder: tempfile::TempDir,
}

impl Pair {
    fn new() -> Self {
        let (source, destination) = (World::with_secret([1; 32]), World::with_secret([2; 32]));
        Self { source, destination, folder: tempfile::tempdir().expect("a folder") }
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().expect("the folder")).expect("a folder");
        fs::write(path, bytes).expect("a file");
    }

    fn back_up(&self) -> Snapshot {
        self.source.back_up(self.folder.path())
    }

    fn copy(&self, snapshot: &Snapshot) -> Result<Copied, EngineError> {
        copy(&self.source, snapshot, &self.destination)
    }

    #[track_caller]
    fn copied(&self, snapshot: &Snapshot) -> CopySummary {
        match self.copy(snapshot).expect("nothing fails") {
            Copied::Now(summary) => summary,
            Copied::Before(id) => panic!("it was copied before, as {id}"),
        }
    }

    /// The snapshot that a copy made.
    fn copy_of(&self, summary: &CopySummary) -> Snapshot {
        let mut all = self.destination.snapshots();
        all.retain(|snapshot| snapshot.id == summary.snapshot_id);
        all.pop().expect("it is there")
    }

    /// Both give the same files, and the destination is whole.
    #[track_caller]
    fn check(&self, of: &Snapshot, summary: &CopySummary) {
        let copy = self.copy_of(summary);
        let targets = tempfile::tempdir().expect("a folder");
        let restored = |world: &World, snapshot: &Snapshot, name: &str| {
            let target = targets.path().join(name);
            let path = self.folder.path().to_str().expect("UTF-8").as_bytes();
            let options = RestoreOptions::default();
            restore(&world.access, snapshot, Some(path), &target, &options, &Run::new())
                .expect("it can be restored");
            target
        };
        let before = restored(&self.source, of, "source");
        let after = restored(&self.destination, &copy, "destination");
        assert_eq!(compare_trees(&before, &after, &CompareOptions::default()), []);
        let access = &self.destination.access;
        let all = snapshots(access).expect("they are listed").snapshots;
        let report = verify(access, &all, Verify::All, &Run::new(), &mut |_| {}).expect("it runs");
        assert!(report.is_clean(), "{report:?}");
        assert_eq!((copy.secret.items, copy.secret.bytes), (of.secret.items, of.secret.bytes));
    }
}

fn copy(from: &World, snapshot: &Snapshot, to: &World) -> Result<Copied, EngineError> {
    let options = CopyOptions { checkpoint_every: Duration::ZERO, ..CopyOptions::default() };
    let listed = snapshots(&from.access)?.snapshots;
    let mut copier = Copier::new(&from.access, &listed, &to.access, options)?;
    copier.copy(snapshot, &Arc::new(Run::new()))
}

#[test]
fn a_copy_has_all_that_its_source_has_and_says_what_it_is_a_copy_of() {
    let pair = Pair::new();
    let mut random = Random::new(1);
    // Inline, a chunk, chunks in the entry, and a list of chunks.
    for (name, len) in [("a/inline", 9), ("a/chunk", 9_000), ("many", 5 << 20), ("list", 40 << 20)]
    {
        pair.write(name, &random.bytes(len));
    }
    fs::hard_link(pair.folder.path().join("many"), pair.folder.path().join("same")).unwrap();
    let of = pair.back_up();
    let summary = pair.copied(&of);
    pair.check(&of, &summary);
    let copy = pair.copy_of(&summary);
    assert_eq!(copy.secret.copied_from.map(|from| from.record), Some(of.id));
    assert_eq!(copy.taken_ns(), of.received_ns);
    assert_eq!((&copy.secret.paths, &copy.secret.host), (&of.secret.paths, &of.secret.host));
    assert_ne!((copy.root, copy.series), (of.root, of.series));
    let ids = pair.destination.repository.ids();
    assert!(pair.source.repository.ids().iter().all(|id| !ids.contains(id)), "an id is the same");
    assert!(matches!(pair.copy(&of), Ok(Copied::Before(id)) if id == copy.id));
}

#[test]
fn only_what_differs_from_a_copy_is_fetched_and_stored() {
    let pair = Pair::new();
    let mut random = Random::new(2);
    (0..300).for_each(|at| pair.write(&format!("d{}/{at}", at % 7), &random.bytes(20_000)));
    let first = pair.back_up();
    pair.copied(&first);
    pair.write("d3/new", &random.bytes(10_000));
    fs::remove_file(pair.folder.path().join("d0/0")).unwrap();
    fs::rename(pair.folder.path().join("d1/1"), pair.folder.path().join("d1/moved")).unwrap();
    pair.write("d2/2", &random.bytes(10_000));
    let second = pair.back_up();
    let fetches = pair.source.repository.fetches();
    let summary = pair.copied(&second);
    assert!(summary.data_added < 200_000, "{summary:?}");
    let fetches = pair.source.repository.fetches() - fetches;
    assert!(fetches < 20, "{fetches} fetches");
    pair.check(&second, &summary);
}

#[test]
fn what_is_damaged_is_not_copied_and_what_was_until_then_is_not_fetched_again() {
    let pair = Pair::new();
    let mut random = Random::new(3);
    (0..12).for_each(|at| pair.write(&format!("{at:02}"), &random.bytes(4 << 20)));
    let last = random.bytes(10_000);
    pair.write("zz", &last);
    let of = Snapshot { pinned: true, ..pair.back_up() };
    let broken = pair.source.access.keys.ids().chunk_id(&last);
    pair.source.repository.damage(&broken);
    let error = pair.copy(&of).expect_err("it cannot be read");
    // The file before it may share its block.
    let below = pair.folder.path().to_str().unwrap();
    let names_it = matches!(&error, EngineError::Damaged { what, .. } if what.starts_with(below));
    assert!(names_it, "{error}");
    assert!(pair.destination.snapshots().is_empty());
    let checkpoints = snapshots(&pair.destination.access).unwrap().checkpoints;
    assert!(!checkpoints.is_empty(), "there is no checkpoint");
    assert!(!checkpoints.iter().any(|checkpoint| checkpoint.pinned), "a checkpoint would stay");

    // It flips the same bit again.
    pair.source.repository.damage(&broken);
    let fetches = pair.source.repository.fetches();
    let summary = pair.copied(&of);
    let fetches = pair.source.repository.fetches() - fetches;
    assert!(summary.data_added < 40 << 20, "{summary:?}");
    assert!(fetches < 12, "{fetches} fetches");
    assert!(pair.copy_of(&summary).pinned);
    pair.check(&of, &summary);
}

#[test]
fn what_did_not_change_since_an_earlier_copy_is_not_asked_for() {
    let pair = Pair::new();
    let mut random = Random::new(5);
    let stays = random.bytes(20_000);
    pair.write("stays", &stays);
    pair.copied(&pair.back_up());
    pair.source.repository.damage(&pair.source.access.keys.ids().chunk_id(&stays));
    pair.write("new", &random.bytes(20_000));
    pair.copied(&pair.back_up());
}

#[test]
fn content_that_a_run_copied_is_not_asked_for_again_under_another_name() {
    let pair = Pair::new();
    let moves = Random::new(6).bytes(20_000);
    pair.write("name", &moves);
    let first = pair.back_up();
    fs::rename(pair.folder.path().join("name"), pair.folder.path().join("other")).unwrap();
    let second = pair.back_up();
    let (from, to) = (&pair.source, &pair.destination);
    let listed = from.snapshots();
    let options = CopyOptions::default();
    let mut copier = Copier::new(&from.access, &listed, &to.access, options).unwrap();
    let run = Arc::new(Run::new());
    copier.copy(&first, &run).unwrap();
    from.repository.damage(&from.access.keys.ids().chunk_id(&moves));
    assert!(matches!(copier.copy(&second, &run), Ok(Copied::Now(_))));
}

#[test]
fn a_damaged_neighbour_does_not_keep_a_snapshot_from_being_copied() {
    let pair = Pair::new();
    pair.write("old", b"old");
    let first = pair.back_up();
    pair.copied(&first);
    pair.write("new", &Random::new(4).bytes(10_000));
    let second = pair.back_up();
    pair.source.repository.lose(&first.root);
    fs::remove_dir_all(&pair.source.access.cache).unwrap();
    let summary = pair.copied(&second);
    pair.check(&second, &summary);
}

#[test]
fn the_next_backup_goes_on_from_the_newest_state_whether_copied_or_not() {
    let pair = Pair::new();
    (0..20).for_each(|at| pair.write(&format!("{at}"), &[at; 3000]));
    let old = pair.back_up();
    pair.write("20", b"added");
    let new = pair.back_up();
    pair.copied(&new);
    // Older, although it arrives later.
    pair.copied(&old);
    let path = pair.folder.path().to_str().unwrap().as_bytes().to_vec();
    let source = Source { path: path.clone(), read_at: path };
    let options = BackupOptions::new(vec![source], "host".to_owned());
    let summary = backup(&pair.destination.access, &options, &Arc::new(Run::new())).unwrap();
    assert!(summary.has_parent);
    assert_eq!((summary.files_new, summary.files_changed), (0, 0));
}

#[test]
fn a_snapshot_that_comes_back_is_not_copied_and_keeps_its_original_s_name() {
    let pair = Pair::new();
    let third = World::with_secret([6; 32]);
    pair.write("file", b"content");
    let of = pair.back_up();
    let copied = pair.copy_of(&pair.copied(&of));
    assert!(matches!(copy(&pair.destination, &copied, &third), Ok(Copied::Now(_))));
    let last = third.snapshots().pop().unwrap();
    let from = last.secret.copied_from.unwrap();
    assert_eq!((from.record, from.received_ns), (of.id, of.received_ns));
    assert_eq!(from.direct(), copied.id);

    let came_back = [
        (copy(&pair.destination, &copied, &pair.source), of.id),
        (copy(&third, &last, &pair.source), of.id),
        (copy(&third, &last, &pair.destination), copied.id),
        (copy(&pair.source, &of, &third), last.id),
    ];
    for (done, there) in came_back {
        assert!(matches!(done, Ok(Copied::Before(id)) if id == there));
    }
}

#[test]
fn what_only_says_to_be_a_copy_of_a_snapshot_is_not_taken_for_that_one() {
    let pair = Pair::new();
    let other = World::with_secret([6; 32]);
    pair.write("file", b"false");
    let lie = other.back_up(pair.folder.path());
    pair.write("file", b"truth");
    let first = pair.back_up();
    pair.write("new", b"new");
    let second = pair.back_up();
    let from = CopiedFrom { record: first.id, received_ns: first.received_ns, through: None };
    let secret = RecordSecret { copied_from: Some(from), ..lie.secret.clone() };
    let lie = Snapshot { secret, ..lie };
    assert!(matches!(copy(&other, &lie, &pair.destination), Ok(Copied::Now(_))));
    let summary = pair.copied(&second);
    pair.check(&second, &summary);
}
