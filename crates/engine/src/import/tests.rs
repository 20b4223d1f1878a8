//! What is handed over is what is stored, what is as it was is not read, and what cannot be read is left out.

use std::fs;
use std::io::{self, Cursor, Read};

use holdall_tree::{EntryKind, PathKey};

use super::*;
use crate::test_world::{World, directory, owned};
use crate::{RestoreOptions, restore};

/// What a walk does.
#[derive(Clone)]
enum Step {
    Folder(&'static str),
    File(&'static str, Vec<u8>),
    /// A file whose content is as before, and fails if it is read.
    Same(&'static str),
    Keep(&'static str),
    Unreadable(&'static str),
}

struct Walk(Vec<Step>);

/// Fails when it is read.
struct Broken;

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("it is broken"))
    }
}

impl ForeignTree for Walk {
    fn walk(&mut self, entries: &mut Entries<'_>) -> Result<(), EngineError> {
        for step in &self.0 {
            let (path, entry, content) = match step.clone() {
                Step::Keep(path) => {
                    assert!(entries.keep(&key(path))?, "{path} is there");
                    continue;
                }
                Step::Folder(path) => (path, directory(), None),
                Step::File(path, bytes) => {
                    (path, file(bytes.len()), Some(content(Cursor::new(bytes))))
                }
                Step::Same(path) => {
                    let content = FoundContent { is_as_before: true, ..content(Broken) };
                    (path, file(1), Some(content))
                }
                Step::Unreadable(path) => (path, file(1), Some(content(Broken))),
            };
            let (attributes, linked) = (vec![(b"user.k".to_vec(), b"v".to_vec())], None);
            entries.put(key(path), Found { entry, attributes, linked, content })?;
        }
        Ok(())
    }
}

fn key(path: &str) -> PathKey {
    PathKey::from_absolute(path.as_bytes()).unwrap()
}

fn file(bytes: usize) -> holdall_tree::Entry {
    holdall_tree::Entry { size: bytes as u64, ..owned(EntryKind::File, 0o644) }
}

fn content(bytes: impl Read + Send + 'static) -> FoundContent {
    FoundContent { bytes: Box::new(bytes), is_as_before: false }
}

fn foreign(id: u8) -> ForeignSnapshot {
    ForeignSnapshot {
        id: [id; 32],
        taken_ns: i64::from(id) * 1_000_000_000,
        host: "attic".to_owned(),
        user: String::new(),
        paths: vec![b"/a".to_vec()],
        tags: vec!["red".to_owned()],
    }
}

fn import(world: &World, id: u8, base: Option<u8>, steps: Vec<Step>) -> (Copied, u64) {
    let mut importer = Importer::new(&world.access, CopyOptions::default()).unwrap();
    let run = Arc::new(Run::new());
    let walk = |_| Walk(steps.clone());
    let base = base.map(|id| [id; 32]);
    let imported = importer.import(&foreign(id), base, walk, &run).expect("nothing fails");
    (imported, run.problem_count())
}

/// The content of a file of the newest snapshot; none, if that has no such file.
fn stored(world: &World, path: &str) -> Option<Vec<u8>> {
    let snapshot = world.snapshots().pop().expect("one");
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("target");
    let options = RestoreOptions::default();
    restore(&world.access, &snapshot, None, &target, &options, &Run::new())
        .expect("it can be restored");
    fs::read(target.join(path.trim_start_matches('/'))).ok()
}

#[test]
fn what_is_as_before_is_taken_from_the_import_before_and_not_read() {
    let world = World::new();
    let large = holdall_testkit::Random::new(1).bytes(3_000_000);
    let first = vec![
        Step::Folder("/a"),
        Step::File("/a/large", large.clone()),
        Step::Folder("/a/sub"),
        Step::File("/a/sub/small", b"small".to_vec()),
        Step::File("/a/tiny", vec![]),
    ];
    import(&world, 1, None, first);
    let second = vec![
        Step::Folder("/a"),
        Step::File("/a/added", b"new".to_vec()),
        Step::Same("/a/large"),
        Step::Keep("/a/sub"),
    ];
    let (_, problems) = import(&world, 2, Some(1), second);
    assert_eq!(problems, 0);
    assert_eq!(stored(&world, "/a/large").as_deref(), Some(&large[..]));
    assert_eq!(stored(&world, "/a/sub/small").as_deref(), Some(&b"small"[..]));
    assert_eq!(stored(&world, "/a/added").as_deref(), Some(&b"new"[..]));
    assert_eq!(stored(&world, "/a/tiny"), None);
}

#[test]
fn what_cannot_be_read_is_left_out_and_that_snapshot_is_no_base() {
    let world = World::new();
    let steps =
        vec![Step::Folder("/a"), Step::Unreadable("/a/bad"), Step::File("/a/good", vec![7])];
    let (_, problems) = import(&world, 1, None, steps);
    assert_eq!(problems, 1);
    assert_eq!((stored(&world, "/a/bad"), stored(&world, "/a/good")), (None, Some(vec![7])));
    assert_eq!(world.snapshots()[0].secret.unreadable, 1);
    let importer = Importer::new(&world.access, CopyOptions::default()).unwrap();
    assert!(!importer.is_base(&[1; 32]));
    let imported = Imported { id: world.snapshots()[0].id, unreadable: 1 };
    assert_eq!(importer.imported(&[1; 32]), Some(imported));
}

#[test]
fn it_keeps_its_date_and_is_not_imported_again() {
    let world = World::new();
    let steps = vec![Step::Folder("/a")];
    assert!(matches!(import(&world, 3, None, steps.clone()).0, Copied::Now(_)));
    assert!(matches!(import(&world, 3, None, steps).0, Copied::Before(_)));
    let all = world.snapshots();
    assert_eq!((all.len(), all[0].taken_ns()), (1, 3_000_000_000));
    assert_eq!((&*all[0].secret.host, &all[0].secret.tags), ("attic", &vec!["red".to_owned()]));
}

#[test]
fn what_no_record_takes_is_known_before() {
    assert_eq!(foreign(1).unrecordable(), None);
    let most = ForeignSnapshot {
        host: "h".repeat(1024),
        tags: (0..256).map(|at| at.to_string()).collect(),
        paths: vec![b"/".to_vec(); 4096],
        ..foreign(1)
    };
    assert_eq!(most.unrecordable(), None);
    let odd = [
        ForeignSnapshot { user: "u".repeat(1025), ..foreign(1) },
        ForeignSnapshot { tags: vec!["t".to_owned(); 257], ..foreign(1) },
        ForeignSnapshot { paths: vec![b"/a/../b".to_vec()], ..foreign(1) },
        ForeignSnapshot { paths: vec![[b'/'; 65537].to_vec()], ..foreign(1) },
        ForeignSnapshot { paths: vec![b"/".to_vec(); 4097], ..foreign(1) },
    ];
    for one in odd {
        assert!(one.unrecordable().is_some(), "{one:?}");
    }
}

#[test]
fn a_base_that_is_damaged_here_is_done_without() {
    let world = World::new();
    let steps = || {
        vec![Step::Folder("/a"), Step::File("/a/x", holdall_testkit::Random::new(2).bytes(2000))]
    };
    import(&world, 1, None, steps());
    let changed = [steps(), vec![Step::File("/a/y", vec![1])]].concat();
    let root = world.snapshots()[0].root;
    world.repository.damage(&root);
    // Not from the cache of this computer.
    fs::remove_dir_all(&world.access.cache).unwrap();
    let (_, problems) = import(&world, 2, Some(1), changed);
    assert_eq!((problems, stored(&world, "/a/y")), (0, Some(vec![1])));
}
