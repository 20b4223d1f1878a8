//! Restores against hostile snapshots, hostile targets and damaged repositories.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

use holdall_testkit::{FidelitySizes, compare_trees, fidelity_tree};
use holdall_tree::{Attributes, Content, Entry, EntryKind, Extents};

use super::*;
use crate::test_world::{World, directory, owned, small_file, symlink};

/// A folder with a target in it, and something beside the target that must stay as it is.
struct Target {
    folder: tempfile::TempDir,
}

impl Target {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("outside")).unwrap();
        fs::write(folder.path().join("outside/file"), b"mine").unwrap();
        Self { folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("target")
    }

    fn outside(&self) -> String {
        self.folder.path().join("outside").to_str().unwrap().to_owned()
    }

    fn read(&self, path: &str) -> Vec<u8> {
        fs::read(self.path().join(path)).unwrap()
    }

    fn assert_outside_is_untouched(&self) {
        let names = |path: PathBuf| {
            let entries = fs::read_dir(path).unwrap();
            entries
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(self.outside().into()), ["file"]);
        assert_eq!(fs::read(self.folder.path().join("outside/file")).unwrap(), b"mine");
        let mut beside = names(self.folder.path().into());
        beside.sort();
        assert_eq!(beside, ["outside", "target"]);
    }
}

/// Restores everything and gives the summary with the paths that had problems.
fn restored(
    world: &World,
    snapshot: &Snapshot,
    target: &Target,
    options: &RestoreOptions,
) -> (RestoreSummary, Vec<String>) {
    let run = Run::new();
    let summary = restore(&world.access, snapshot, None, &target.path(), options, &run).unwrap();
    let problems = run.take_problems().into_iter();
    let place = target.path().to_str().unwrap().to_owned();
    let mut paths: Vec<_> = problems
        .map(|problem| String::from_utf8(problem.path).unwrap())
        .map(|path| path.strip_prefix(&place).unwrap_or(&path).to_owned())
        .collect();
    paths.sort();
    (summary, paths)
}

fn overwrite(overwrite: Overwrite) -> RestoreOptions {
    RestoreOptions { overwrite: Some(overwrite), ..RestoreOptions::default() }
}

#[test]
fn entries_come_back_with_content_mode_and_time() {
    let (world, target) = (World::new(), Target::new());
    let chunks = world.chunks(&[b"hello ", b"world"]);
    let snapshot = world.snapshot(&[
        ("/", directory()),
        ("/a", owned(EntryKind::Directory, 0o500)),
        ("/a/big", world.file(&chunks)),
        ("/a/small", small_file(b"inline")),
        ("/a/empty", small_file(b"")),
        ("/empty", directory()),
        ("/link", symlink("a/big")),
        ("/pipe", owned(EntryKind::Fifo, 0o640)),
    ]);
    let options = RestoreOptions { verify: true, ..RestoreOptions::default() };
    let (summary, problems) = restored(&world, &snapshot, &target, &options);
    assert_eq!(problems, [""; 0]);
    assert_eq!((summary.files, summary.dirs, summary.bytes), (5, 2, 17));
    assert_eq!(target.read("link"), b"hello world");
    assert_eq!(target.read("a/small"), b"inline");
    assert_eq!(target.read("a/empty"), b"");
    for (path, mode) in [("a", 0o500), ("a/big", 0o644), ("empty", 0o755), ("pipe", 0o640)] {
        let metadata = fs::symlink_metadata(target.path().join(path)).unwrap();
        assert_eq!(metadata.mode() & 0o7777, mode, "{path}");
        assert_eq!((metadata.mtime(), metadata.mtime_nsec()), (1_000_000_000, 7), "{path}");
    }
    assert_eq!(fs::symlink_metadata(target.path().join("link")).unwrap().mtime_nsec(), 7);
    fs::set_permissions(target.path().join("a"), fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_path_is_restored_into_the_target_itself() {
    let world = World::new();
    let snapshot = world.snapshot(&[
        ("/", directory()),
        ("/a", directory()),
        ("/a/b", owned(EntryKind::Directory, 0o750)),
        ("/a/b/file", small_file(b"x")),
        ("/a/b.txt", small_file(b"y")),
    ]);
    let run = Run::new();
    let restore = |path: &str, target: &Target| {
        let options = RestoreOptions::default();
        let path = Some(path.as_bytes());
        restore(&world.access, &snapshot, path, &target.path(), &options, &run)
    };
    let (whole, one) = (Target::new(), Target::new());
    restore("/a/b/", &whole).unwrap();
    assert_eq!(whole.read("file"), b"x");
    assert_eq!(fs::metadata(whole.path()).unwrap().mode() & 0o7777, 0o750);
    assert_eq!(fs::read_dir(whole.path()).unwrap().count(), 1);
    restore("/a/b.txt", &one).unwrap();
    assert_eq!(one.read("b.txt"), b"y");
    assert_eq!(fs::read_dir(one.path()).unwrap().count(), 1);
    assert!(matches!(restore("/a/c", &Target::new()), Err(EngineError::NoPath { .. })));
    assert!(matches!(restore("/a/b/file/x", &Target::new()), Err(EngineError::NoPath { .. })));
    assert_eq!(run.problem_count(), 0);
}

#[test]
fn a_target_that_holds_something_is_refused_unless_told_what_to_overwrite() {
    let world = World::new();
    let snapshot = world.snapshot(&[
        ("/", directory()),
        ("/d", directory()),
        ("/d/file", small_file(b"new")),
        ("/in_the_way", small_file(b"new")),
    ]);
    let target = Target::new();
    let fill = |time: i64| {
        let _ = fs::remove_dir_all(target.path());
        fs::create_dir_all(target.path().join("d")).unwrap();
        fs::create_dir(target.path().join("in_the_way")).unwrap();
        fs::write(target.path().join("d/file"), b"old").unwrap();
        let time = holdall_sys::Timestamp { secs: time, nanos: 0 };
        let file = fs::File::open(target.path().join("d/file")).unwrap();
        holdall_sys::metadata::set_mtime(file, time).unwrap();
    };
    fill(0);
    let refused = RestoreOptions::default();
    let refused = restore(&world.access, &snapshot, None, &target.path(), &refused, &Run::new());
    assert!(matches!(refused, Err(EngineError::Path { .. })));
    for (option, time, content) in [
        (Overwrite::Never, 0, b"old"),
        (Overwrite::IfNewer, 0, b"new"),
        (Overwrite::IfNewer, 2_000_000_000, b"old"),
        (Overwrite::Always, 2_000_000_000, b"new"),
    ] {
        fill(time);
        let dry = RestoreOptions { dry_run: true, ..overwrite(option) };
        let (foreseen, _) = restored(&world, &snapshot, &target, &dry);
        let (summary, problems) = restored(&world, &snapshot, &target, &overwrite(option));
        let counts = |of: &RestoreSummary| (of.files, of.skipped);
        assert_eq!(counts(&foreseen), counts(&summary), "{option:?}");
        assert_eq!(target.read("d/file"), content, "{option:?}");
        assert_eq!(problems, [""; 0]);
        let kept = target.path().join("in_the_way").is_dir();
        assert_eq!(kept, option != Overwrite::Always, "an empty directory makes room, {option:?}");
        assert_eq!(summary.skipped, u64::from(kept) + u64::from(content == b"old"));
    }
}

#[test]
fn what_a_killed_restore_left_is_finished_whatever_becomes_of_what_is_there() {
    let world = World::new();
    let whole = world.file(&world.chunks(&[b"whole"]));
    let entries = [
        ("/", directory()),
        ("/d", directory()),
        ("/d/half", whole),
        ("/d/mine", small_file(b"s")),
    ];
    let snapshot = world.snapshot(&entries);
    for option in [Overwrite::Never, Overwrite::IfNewer] {
        let target = Target::new();
        let (top, half) = (target.path().join("d"), target.path().join("d/half"));
        fs::create_dir_all(&top).unwrap();
        mark::make(&holdall_sys::TargetDir::open_root(&target.path()).unwrap()).unwrap();
        fs::write(&half, b"wh").unwrap();
        fs::write(top.join("mine"), b"mine").unwrap();
        fs::set_permissions(&half, fs::Permissions::from_mode(unfinished::MODE)).unwrap();
        fs::set_permissions(&top, fs::Permissions::from_mode(unfinished::DIRECTORY_MODE)).unwrap();
        let (summary, problems) = restored(&world, &snapshot, &target, &overwrite(option));
        assert_eq!(problems, [""; 0]);
        assert_eq!((summary.files, summary.skipped), (1, 1), "{option:?}");
        assert_eq!(
            (target.read("d/half"), target.read("d/mine")),
            (b"whole".into(), b"mine".into())
        );
        for (path, mode) in [(&top, 0o755), (&half, 0o644)] {
            let is = fs::metadata(path).unwrap();
            assert_eq!((is.mode() & 0o7777, is.mtime_nsec()), (mode, 7), "{option:?} {path:?}");
        }
    }
}

#[test]
fn a_file_of_the_same_time_and_another_size_is_not_newer() {
    let world = World::new();
    let snapshot = world.snapshot(&[("/", directory()), ("/file", small_file(b"whole"))]);
    for (there, kept) in [(&b"wh"[..], false), (b"other", true)] {
        let target = Target::new();
        fs::create_dir(target.path()).unwrap();
        let path = target.path().join("file");
        fs::write(&path, there).unwrap();
        let time = holdall_sys::Timestamp { secs: 1_000_000_000, nanos: 7 };
        holdall_sys::metadata::set_mtime(fs::File::open(&path).unwrap(), time).unwrap();
        let (summary, _) = restored(&world, &snapshot, &target, &overwrite(Overwrite::IfNewer));
        assert_eq!(summary.skipped, u64::from(kept));
        assert_eq!(target.read("file"), if kept { there } else { b"whole" });
    }
}

#[test]
fn a_file_of_the_same_time_and_size_whose_content_the_disk_never_got_is_not_kept() {
    let world = World::new();
    let [content, zeros] = [&[7; 100_000][..], &[0; 100_000]];
    let chunked =
        |bytes: &[u8]| world.file(&world.chunks(&bytes.chunks(40_000).collect::<Vec<_>>()));
    let entries = [
        ("/", directory()),
        ("/data", chunked(content)),
        ("/hollow", chunked(content)),
        ("/large", world.file(&[0; 2].map(|_| world.chunks(&[content; 23])).concat())),
        ("/small", small_file(b"small")),
        ("/zeros", chunked(zeros)),
    ];
    let snapshot = world.snapshot(&entries);
    let target = Target::new();
    fs::create_dir(target.path()).unwrap();
    for (path, entry) in &entries[1..] {
        let file = fs::File::create(target.path().join(&path[1..])).unwrap();
        match *path {
            // What lies there is not asked for where the disk has it.
            "/data" => std::io::Write::write_all(&mut &file, &[1; 100_000]).unwrap(),
            _ => file.set_len(entry.size).unwrap(),
        }
        let time = holdall_sys::Timestamp { secs: 1_000_000_000, nanos: 7 };
        holdall_sys::metadata::set_mtime(&file, time).unwrap();
    }
    let dry = RestoreOptions { dry_run: true, ..overwrite(Overwrite::IfNewer) };
    let (foreseen, _) = restored(&world, &snapshot, &target, &dry);
    let (summary, problems) = restored(&world, &snapshot, &target, &overwrite(Overwrite::IfNewer));
    assert_eq!(problems, [""; 0]);
    assert_eq!((summary.files, summary.skipped), (3, 2));
    assert_eq!((foreseen.files, foreseen.skipped), (3, 2));
    assert!(target.read("hollow") == content && target.read("large") == [content; 46].concat());
    assert_eq!(target.read("small"), b"small");
    let blocks = |path: &str| fs::metadata(target.path().join(path)).unwrap().blocks();
    assert_eq!(blocks("zeros"), 0, "it is what it is to be, and was kept");
}

#[test]
fn what_is_newer_stays_where_the_snapshot_has_a_directory() {
    let (world, target) = (World::new(), Target::new());
    let entries = [("/", directory()), ("/d", directory()), ("/d/file", small_file(b"new"))];
    let snapshot = world.snapshot(&entries);
    for (option, secs, stays) in [
        (Overwrite::Never, 0, true),
        (Overwrite::IfNewer, 0, false),
        (Overwrite::IfNewer, 2_000_000_000, true),
        (Overwrite::Always, 2_000_000_000, false),
    ] {
        let _ = fs::remove_dir_all(target.path());
        fs::create_dir_all(target.path()).unwrap();
        let mine = target.path().join("d");
        fs::write(&mine, b"mine").unwrap();
        let file = fs::File::open(&mine).unwrap();
        let time = holdall_sys::Timestamp { secs, nanos: 0 };
        holdall_sys::metadata::set_mtime(file, time).unwrap();
        let (_, problems) = restored(&world, &snapshot, &target, &overwrite(option));
        assert_eq!(mine.is_file(), stays, "{option:?}");
        assert_eq!(problems, if stays { vec!["/d"] } else { vec![] }, "{option:?}");
    }
}

#[test]
fn a_directory_that_was_there_has_the_attributes_of_the_snapshot_alone() {
    let (world, target) = (World::new(), Target::new());
    let snapshot = world.snapshot(&[("/", directory()), ("/d", directory())]);
    for (option, stays) in [(Overwrite::Never, true), (Overwrite::Always, false)] {
        let _ = fs::remove_dir_all(target.path());
        fs::create_dir_all(target.path().join("d")).unwrap();
        let there = fs::File::open(target.path().join("d")).unwrap();
        holdall_sys::xattr::set_fd(&there, b"user.mine", b"1").unwrap();
        let (_, problems) = restored(&world, &snapshot, &target, &overwrite(option));
        assert_eq!(problems, [""; 0]);
        let left = holdall_sys::xattr::read_fd(&there).unwrap();
        assert_eq!(left.iter().any(|one| one.name == b"user.mine"), stays, "{option:?}");
    }
}

#[test]
fn nothing_is_written_through_links_that_are_in_the_way() {
    let (world, target) = (World::new(), Target::new());
    let outside = target.outside();
    let snapshot = world.snapshot(&[
        ("/", directory()),
        // The tree's own link, with something below it.
        ("/link", symlink(&outside)),
        ("/link/file", small_file(b"evil")),
        ("/link/new", directory()),
        ("/link/new/file", small_file(b"evil")),
        // Links that were in the target before.
        ("/d", directory()),
        ("/d/file", small_file(b"evil")),
        ("/file", small_file(b"fine")),
        // A file with something below it, and a name that no file system takes.
        ("/plain", small_file(b"fine")),
        ("/plain/below", small_file(b"evil")),
        (&format!("/{}", "x".repeat(300)), small_file(b"long")),
        ("/last", small_file(b"fine")),
    ]);
    for option in [Overwrite::Never, Overwrite::IfNewer, Overwrite::Always] {
        let _ = fs::remove_dir_all(target.path());
        fs::create_dir_all(target.path()).unwrap();
        std::os::unix::fs::symlink(&outside, target.path().join("d")).unwrap();
        std::os::unix::fs::symlink(format!("{outside}/file"), target.path().join("file")).unwrap();
        let (_, problems) = restored(&world, &snapshot, &target, &overwrite(option));
        assert!(!problems.is_empty());
        assert_eq!(target.read("last"), b"fine");
        target.assert_outside_is_untouched();
    }
    let _ = fs::remove_dir_all(target.path());
    let (_, problems) = restored(&world, &snapshot, &target, &RestoreOptions::default());
    assert!(problems.contains(&"/link".to_owned()), "{problems:?}");
    assert_eq!(target.read("plain"), b"fine");
    target.assert_outside_is_untouched();
}

#[test]
fn hard_links_join_the_same_names_however_far_apart() {
    let (world, target) = (World::new(), Target::new());
    let chunks = world.chunks(&[b"shared"]);
    let group = Some([7; 16]);
    let member = || Entry { hardlink: group, ..world.file(&chunks) };
    let link = || Entry { hardlink: Some([8; 16]), ..symlink("nowhere") };
    let mut entries = vec![
        ("/".to_owned(), directory()),
        ("/a".to_owned(), directory()),
        ("/a/first".to_owned(), member()),
        ("/a/link".to_owned(), link()),
        ("/z".to_owned(), owned(EntryKind::Directory, 0o555)),
        ("/z/last".to_owned(), member()),
        ("/z/link".to_owned(), link()),
        ("/z/second".to_owned(), member()),
        // Another file that got the first one's inode while the backup ran.
        (
            "/z/third".to_owned(),
            Entry { hardlink: group, ..world.file(&world.chunks(&[b"other"])) },
        ),
    ];
    entries.extend((0..5000).map(|at| (format!("/m{at}"), small_file(b"between"))));
    let entries: Vec<_> = entries.iter().map(|(path, entry)| (&path[..], entry.clone())).collect();
    let snapshot = world.snapshot(&entries);
    let (_, problems) = restored(&world, &snapshot, &target, &RestoreOptions::default());
    assert_eq!(problems, [""; 0]);
    let inode = |path: &str| fs::symlink_metadata(target.path().join(path)).unwrap().ino();
    assert_eq!(inode("a/first"), inode("z/last"));
    assert_eq!(inode("a/first"), inode("z/second"));
    assert_eq!(inode("a/link"), inode("z/link"));
    assert_eq!(target.read("z/last"), b"shared");
    assert_eq!(target.read("z/third"), b"other");
    assert_eq!(fs::metadata(target.path().join("z")).unwrap().mtime_nsec(), 7);
}

#[test]
fn hard_links_join_the_same_names_over_what_is_there() {
    let (world, target) = (World::new(), Target::new());
    let chunks = world.chunks(&[b"shared"]);
    let member = || Entry { hardlink: Some([7; 16]), ..world.file(&chunks) };
    let mut entries = vec![("/".to_owned(), directory()), ("/d".to_owned(), directory())];
    let names = ["a", "d/b", "y", "z"];
    entries.extend(names.iter().map(|name| (format!("/{name}"), member())));
    // More than one batch: later names come before and after the first one is at its own.
    entries.extend((0..9000).map(|at| (format!("/m{at}"), small_file(b"between"))));
    entries.sort_by(|(one, _), (other, _)| one.cmp(other));
    let entries: Vec<_> = entries.iter().map(|(path, entry)| (&path[..], entry.clone())).collect();
    let snapshot = world.snapshot(&entries);
    for round in 0..2 {
        fs::create_dir_all(target.path().join("d")).unwrap();
        let older = |name: &&str| fs::write(target.path().join(name), b"older").unwrap();
        names.iter().take(3).for_each(older);
        let (summary, problems) =
            restored(&world, &snapshot, &target, &overwrite(Overwrite::Always));
        assert_eq!((problems, summary.files, summary.notes), (vec![], 9004, vec![]), "{round}");
        let inode = |name: &str| fs::metadata(target.path().join(name)).unwrap().ino();
        for name in names {
            assert_eq!((target.read(name), inode(name)), (b"shared".into(), inode("a")), "{name}");
            let mode = fs::metadata(target.path().join(name)).unwrap().mode();
            assert_eq!(mode & 0o7777, 0o644, "{name}");
        }
        assert_eq!(fs::read_dir(target.path()).unwrap().count(), 9004, "{round}");
    }
}

#[test]
fn a_member_whose_first_can_not_be_made_is_a_file_of_its_own() {
    let (world, target) = (World::new(), Target::new());
    let chunks = world.chunks(&[b"shared"]);
    let member = || Entry { hardlink: Some([7; 16]), ..world.file(&chunks) };
    let snapshot = world.snapshot(&[("/", directory()), ("/a", member()), ("/b", member())]);
    fs::create_dir_all(target.path().join("a")).unwrap();
    let (summary, _) = restored(&world, &snapshot, &target, &overwrite(Overwrite::Never));
    assert_eq!(target.read("b"), b"shared");
    assert_eq!((summary.files, summary.skipped), (1, 1));
    assert_eq!(summary.notes.len(), 1);
    let strict = RestoreOptions { strict: true, ..overwrite(Overwrite::Never) };
    fs::remove_file(target.path().join("b")).unwrap();
    let (summary, problems) = restored(&world, &snapshot, &target, &strict);
    assert_eq!((summary.notes, problems), (vec![], vec!["/b".to_owned()]));
    let (summary, problems) = restored(&world, &snapshot, &target, &strict);
    assert_eq!((summary.skipped, problems), (2, vec![]));
}

#[test]
fn attributes_that_are_damaged_cost_no_content_and_take_none_away() {
    let (world, target) = (World::new(), Target::new());
    let lost = world.chunks(&[b"attributes"]);
    let without = |entry: Entry| Entry { attributes: Content::Chunks(lost.clone()), ..entry };
    let snapshot = world.snapshot(&[
        ("/", directory()),
        ("/d", without(directory())),
        ("/d/file", without(small_file(b"content"))),
    ]);
    world.repository.lose(&lost[0].id);
    fs::create_dir_all(target.path().join("d")).unwrap();
    let there = fs::File::open(target.path().join("d")).unwrap();
    holdall_sys::xattr::set_fd(&there, b"user.mine", b"1").unwrap();
    let options = overwrite(Overwrite::Always);
    let (summary, problems) = restored(&world, &snapshot, &target, &options);
    assert_eq!((problems, summary.damaged), (vec!["/d".to_owned(), "/d/file".to_owned()], 2));
    assert_eq!(target.read("d/file"), b"content");
    let left = holdall_sys::xattr::read_fd(&there).unwrap();
    assert!(left.iter().any(|one| one.name == b"user.mine"));
}

#[test]
fn a_damaged_chunk_costs_its_files_and_no_other() {
    let (world, target) = (World::new(), Target::new());
    let (good, bad, lost) =
        (world.chunks(&[b"good"]), world.chunks(&[b"bad"]), world.chunks(&[b"lost"]));
    let mut long = good.clone();
    long.extend(&bad);
    let snapshot = world.snapshot(&[
        ("/", directory()),
        ("/1", world.file(&good)),
        ("/2", world.file(&bad)),
        ("/3", world.file(&long)),
        ("/4", world.file(&lost)),
        ("/5", world.file(&good)),
    ]);
    world.repository.damage(&bad[0].id);
    world.repository.lose(&lost[0].id);
    let (summary, problems) = restored(&world, &snapshot, &target, &RestoreOptions::default());
    assert_eq!(problems, ["/2", "/3", "/4"]);
    assert_eq!((summary.files, summary.problems, summary.damaged), (2, 3, 3));
    assert_eq!((target.read("1"), target.read("5")), (b"good".to_vec(), b"good".to_vec()));
    assert_eq!(fs::read_dir(target.path()).unwrap().count(), 2);
}

#[test]
fn another_copy_serves_where_the_first_is_damaged_or_a_lie() {
    let (world, target) = (World::new(), Target::new());
    let ids = world.access.keys.ids();
    let lied = ids.chunk_id(b"truth");
    world.false_chunk(lied, b"a lie");
    world.false_chunk(lied, b"another lie");
    let truth = world.chunks(&[b"truth"]);
    let whole = world.chunks(&[b"whole"]);
    world.repository.damage(&whole[0].id);
    let again = world.chunks(&[b"whole"]);
    let snapshot = world.snapshot(&[
        ("/", directory()),
        ("/lied", world.file(&truth)),
        ("/whole", world.file(&again)),
    ]);
    let (_, problems) = restored(&world, &snapshot, &target, &RestoreOptions::default());
    assert_eq!(problems, [""; 0]);
    assert_eq!((target.read("lied"), target.read("whole")), (b"truth".to_vec(), b"whole".to_vec()));
}

#[test]
fn a_file_larger_than_any_window_is_written_in_pieces_or_not_at_all() {
    let (world, target) = (World::new(), Target::new());
    let plain: Vec<Vec<u8>> = (0..20u8).map(|at| vec![at; (1 << 20) - usize::from(at)]).collect();
    let chunks: Vec<_> = plain.iter().flat_map(|plain| world.chunks(&[plain])).collect();
    let broken = world.chunks(&[&[99; 1000]]);
    let mut bad = chunks.clone();
    bad.insert(10, broken[0]);
    let sparse_size = 1 << 40;
    let half: u64 = plain[..10].iter().map(|plain| plain.len() as u64).sum();
    let rest: u64 = plain[10..].iter().map(|plain| plain.len() as u64).sum();
    let extents = Extents::new(vec![(4096, half - 5), (1 << 39, rest + 5)], sparse_size).unwrap();
    let sparse = Entry {
        size: sparse_size,
        extents: Some(Content::Inline(extents.encode())),
        ..world.file(&chunks)
    };
    let snapshot = world.snapshot(&[
        ("/", directory()),
        ("/bad", world.file(&bad)),
        ("/big", Entry { hardlink: Some([1; 16]), ..world.file(&chunks) }),
        ("/linked", Entry { hardlink: Some([1; 16]), ..world.file(&chunks) }),
        ("/sparse", sparse),
    ]);
    world.repository.damage(&broken[0].id);
    let options = RestoreOptions { verify: true, ..RestoreOptions::default() };
    let (summary, problems) = restored(&world, &snapshot, &target, &options);
    assert_eq!((problems, summary.files), (vec!["/bad".to_owned()], 3));
    assert!(target.read("big") == plain.concat());
    let inode = |path: &str| fs::metadata(target.path().join(path)).unwrap().ino();
    assert_eq!(inode("big"), inode("linked"));
    let found = fs::metadata(target.path().join("sparse")).unwrap();
    assert_eq!((found.len(), found.mtime_nsec()), (sparse_size, 7));
    assert!(found.blocks() * 512 < 64 << 20, "holes stay holes");
    let file = fs::File::open(target.path().join("sparse")).unwrap();
    let mut end = vec![0; rest as usize];
    std::os::unix::fs::FileExt::read_exact_at(&file, &mut end, (1 << 39) + 5).unwrap();
    assert!(end == plain[10..].concat());
    assert!(world.repository.fetches() < 100, "blocks are not fetched for each chunk");
}

#[test]
fn what_is_overwritten_stays_until_what_replaces_it_is_whole() {
    let (world, target) = (World::new(), Target::new());
    let plain: Vec<Vec<u8>> = (0..20u8).map(|at| vec![at; 1 << 20]).collect();
    let chunks: Vec<_> = plain.iter().flat_map(|plain| world.chunks(&[plain])).collect();
    let broken = world.chunks(&[&[99; 1000]]);
    let mut bad = chunks.clone();
    bad.insert(15, broken[0]);
    let linked = Some([1; 16]);
    let snapshot = world.snapshot(&[
        ("/", directory()),
        ("/bad", world.file(&bad)),
        ("/big", Entry { hardlink: linked, ..world.file(&chunks) }),
        ("/full", world.file(&chunks)),
        ("/linked", Entry { hardlink: linked, ..world.file(&chunks) }),
        ("/pipe", owned(EntryKind::Fifo, 0o640)),
        ("/room", world.file(&chunks)),
        ("/symlink", symlink("big")),
    ]);
    world.repository.damage(&broken[0].id);
    fs::create_dir_all(target.path().join("full/inner")).unwrap();
    fs::create_dir(target.path().join("room")).unwrap();
    for name in ["bad", "big", "linked", "pipe", "symlink"] {
        fs::write(target.path().join(name), name).unwrap();
    }
    // The second time, what the first made is in the way.
    for _ in 0..2 {
        let (_, problems) = restored(&world, &snapshot, &target, &overwrite(Overwrite::Always));
        assert_eq!(problems, ["/bad", "/full"]);
        assert_eq!(target.read("bad"), b"bad");
        assert!(target.path().join("full/inner").is_dir());
        for name in ["big", "linked", "room", "symlink"] {
            assert!(target.read(name) == plain.concat(), "{name}");
        }
        let found = |name: &str| fs::symlink_metadata(target.path().join(name)).unwrap();
        assert_eq!(found("big").ino(), found("linked").ino());
        assert_eq!((found("big").mtime_nsec(), found("pipe").mode() & 0o7777), (7, 0o640));
        assert_eq!((found("pipe").mtime_nsec(), found("symlink").mtime_nsec()), (7, 7));
        assert_eq!(fs::read_dir(target.path()).unwrap().count(), 7, "nothing is left beside them");
    }
}

#[test]
fn a_chain_of_three_thousand_directories_is_restored() {
    let (world, target) = (World::new(), Target::new());
    let mut entries = vec![("/".to_owned(), directory())];
    let mut path = String::new();
    for _ in 0..3000 {
        path.push_str("/d");
        entries.push((path.clone(), owned(EntryKind::Directory, 0o750)));
    }
    entries.push((format!("{path}/file"), small_file(b"deep")));
    let entries: Vec<_> = entries.iter().map(|(path, entry)| (&path[..], entry.clone())).collect();
    let snapshot = world.snapshot(&entries);
    let (summary, problems) = restored(&world, &snapshot, &target, &RestoreOptions::default());
    assert_eq!(problems, [""; 0]);
    assert_eq!((summary.files, summary.dirs), (1, 3000));
    let mut dir = holdall_sys::TargetDir::open_root(&target.path()).unwrap();
    for _ in 0..3000 {
        dir = dir.open_dir(holdall_sys::Name::new(b"d").unwrap()).unwrap();
        let stat = dir.as_dir().stat_self().unwrap();
        assert_eq!((stat.mode, stat.mtime.nanos), (0o750, 7));
    }
}

#[test]
fn what_a_damaged_node_held_is_reported_and_the_rest_is_restored() {
    let world = World::new();
    let mut entries = vec![("/".to_owned(), directory()), ("/d".to_owned(), directory())];
    entries.extend((0..400).map(|at| (format!("/d/{at:03}"), small_file(b"x"))));
    let entries: Vec<_> = entries.iter().map(|(path, entry)| (&path[..], entry.clone())).collect();
    let snapshot = world.snapshot(&entries);
    let nodes = world.repository.ids();
    for node in nodes.iter().filter(|id| **id != snapshot.root).take(10) {
        world.repository.lose(node);
    }
    let target = Target::new();
    let (summary, problems) = restored(&world, &snapshot, &target, &RestoreOptions::default());
    assert!(!problems.is_empty() && summary.files > 0, "{summary:?}");
    assert!(summary.files < 400);
}

#[test]
fn a_selection_makes_only_the_directories_that_it_needs() {
    let (world, target) = (World::new(), Target::new());
    let snapshot = world.snapshot(&[
        ("/", directory()),
        ("/a", directory()),
        ("/a/keep.txt", small_file(b"x")),
        ("/a/other", small_file(b"x")),
        ("/b", directory()),
        ("/b/other", small_file(b"x")),
        ("/no", directory()),
        ("/no/keep.txt", small_file(b"x")),
    ]);
    let select: Selection = Box::new(|path, is_directory| match path {
        b"/no" => Selected::No,
        _ if is_directory => Selected::Below,
        _ if path.ends_with(b"/keep.txt") => Selected::Yes,
        _ => Selected::No,
    });
    let options = RestoreOptions { select: Some(select), ..RestoreOptions::default() };
    let (summary, _) = restored(&world, &snapshot, &target, &options);
    assert_eq!((summary.files, summary.dirs), (1, 1));
    assert_eq!(target.read("a/keep.txt"), b"x");
    assert_eq!(fs::read_dir(target.path()).unwrap().count(), 1);
}

#[test]
fn directories_on_the_way_to_what_is_wanted_keep_what_they_had() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let snapshot = world.snapshot(&[
        ("/", directory()),
        ("/top", directory()),
        ("/top/a", directory()),
        ("/top/a/b", directory()),
        ("/top/a/b/keep.txt", small_file(b"x")),
    ]);
    let set = |path: std::path::PathBuf, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let [whole, below, file] = ["/top", "/top/a", "/top/a/b/keep.txt"];
    for (wanted, modes) in
        [(whole, [0o755, 0o755]), (below, [0o711, 0o755]), (file, [0o711, 0o711])]
    {
        let target = Target::new();
        fs::create_dir_all(target.path().join("a")).unwrap();
        for path in [target.path().to_owned(), target.path().join("a")] {
            set(path, 0o711);
        }
        let select: Selection =
            Box::new(move |path, _| match path.starts_with(wanted.as_bytes()) {
                true => Selected::Yes,
                false => Selected::Below,
            });
        let select = Some(select);
        let overwrite = Some(Overwrite::Always);
        let options = RestoreOptions { select, overwrite, ..RestoreOptions::default() };
        let top = Some(&b"/top"[..]);
        restore(&world.access, &snapshot, top, &target.path(), &options, &Run::new()).unwrap();
        assert_eq!(target.read("a/b/keep.txt"), b"x");
        let mode =
            |path: std::path::PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let found = [mode(target.path().to_owned()), mode(target.path().join("a"))];
        assert_eq!(found, modes, "{wanted}");
        assert_eq!(mode(target.path().join("a/b")), 0o755, "what is made is as it was");
    }
}

#[test]
fn a_dry_run_counts_and_makes_nothing() {
    let (world, target) = (World::new(), Target::new());
    let chunks = world.chunks(&[b"hello"]);
    let snapshot =
        world.snapshot(&[("/", directory()), ("/d", directory()), ("/d/f", world.file(&chunks))]);
    let options = RestoreOptions { dry_run: true, ..RestoreOptions::default() };
    let (summary, _) = restored(&world, &snapshot, &target, &options);
    assert_eq!((summary.files, summary.dirs, summary.bytes), (1, 1, 5));
    assert!(!target.path().exists());
}

#[test]
fn attributes_in_chunks_and_lists_that_were_handed_down_are_set_right() {
    let (world, target) = (World::new(), Target::new());
    fs::create_dir(target.path()).unwrap();
    // A default list: user::rwx, user:65534:r-x, group::r-x, mask::r-x, other::r-x.
    let entry = |tag: u16, rights: u16, id: u32| {
        [&tag.to_le_bytes()[..], &rights.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    let none = u32::MAX;
    let list = [
        2u32.to_le_bytes().to_vec(),
        entry(1, 7, none),
        entry(2, 5, 65534),
        entry(4, 5, none),
        entry(16, 5, none),
        entry(32, 5, none),
    ];
    let top = fs::File::open(target.path()).unwrap();
    if holdall_sys::xattr::set_fd(&top, attributes::DEFAULT_LIST, &list.concat()).is_err() {
        return; // A file system without access control lists hands nothing down.
    }
    let value = vec![b'v'; 3000];
    let stored = Attributes::new(vec![(b"user.long".to_vec(), value.clone())]).unwrap().encode();
    let attributes = Content::Chunks(world.chunks(&[&stored]));
    let snapshot = world.snapshot(&[
        ("/", directory()),
        ("/d", directory()),
        ("/d/f", small_file(b"x")),
        ("/f", Entry { attributes, ..small_file(b"x") }),
    ]);
    let (_, problems) = restored(&world, &snapshot, &target, &overwrite(Overwrite::Always));
    assert_eq!(problems, [""; 0]);
    let read = |path: &str| {
        let file = fs::File::open(target.path().join(path)).unwrap();
        let found = holdall_sys::xattr::read_fd(file).unwrap();
        found.into_iter().map(|found| (found.name, found.value)).collect::<Vec<_>>()
    };
    assert_eq!(read("d"), []);
    assert_eq!(read("d/f"), []);
    assert_eq!(read("f"), [(b"user.long".to_vec(), value)]);
}

#[test]
fn everything_that_a_file_system_can_hold_comes_back_from_a_backup() {
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    fs::create_dir(&source).unwrap();
    fidelity_tree(&source, &FidelitySizes::small()).unwrap();
    let path = source.to_str().unwrap().as_bytes().to_vec();
    let snapshot = world.back_up(&source);
    let run = Run::new();
    let target = folder.path().join("target");
    let options = RestoreOptions::default();
    let summary = restore(&world.access, &snapshot, Some(&path), &target, &options, &run).unwrap();
    assert_eq!((run.take_problems(), summary.problems), (Vec::new(), 0));
    let found = compare_trees(&source, &target, &holdall_testkit::CompareOptions::default());
    assert!(found.is_empty(), "{found:#?}");
    let since = holdall_sys::Timestamp { secs: i64::MAX, nanos: 0 };
    let options = crate::CompareOptions { since, left_out: &|_| false };
    let report = crate::compare(&source, &target, &options, &run).unwrap();
    assert!(report.identical && report.items > 100, "{:#?}", report.differences);
}
