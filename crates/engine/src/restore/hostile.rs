//! Trees that no honest client makes, restored while somebody swaps the target's directories for links
//! to a folder beside it. Whatever comes of the restore, that folder stays as it is.
//!
//! `HOLDALL_HOSTILE_SWAPS` changes how many swaps there are in all.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdall_testkit::{Random, Slice, Swapper, setting};
use holdall_tree::{Attributes, Content, Entry, EntryKind, Extents};

use super::*;
use crate::test_world::{World, directory, owned, small_file, symlink};

const TREES: u64 = 500;
const SWAPS: u64 = 100_000;
/// A change restores one tree in so many.
const SLICES: u64 = 5;
/// Trees of one repository, which is in memory.
const TREES_OF_WORLD: u64 = 50;
/// Directories of a target that are swapped; deeper ones would lead the swaps themselves through a link.
const VICTIMS: [&str; 6] = ["sub", "deep", "a", "z", "link", "file"];
/// Names that lie in the folder beside the target too, so that an escape hits something.
const NAMES: [&str; 6] = ["file", "sub", "deep", "link", "a", "z"];

/// A target, and beside it what must stay.
struct Scene {
    folder: tempfile::TempDir,
    before: BTreeMap<PathBuf, (Vec<u8>, [i64; 6])>,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let outside = folder.path().join("outside");
        for dir in ["", "sub", "sub/deep", "a"] {
            fs::create_dir(outside.join(dir)).unwrap();
        }
        for file in ["file", "sub/file", "sub/deep/file", "a/z", "link"] {
            fs::write(outside.join(file), format!("mine: {file}")).unwrap();
            fs::set_permissions(outside.join(file), fs::Permissions::from_mode(0o600)).unwrap();
        }
        let mut scene = Self { folder, before: BTreeMap::new() };
        scene.before = scene.outside();
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Everything outside, with all that a restore could have set: mode, owner, times, links.
    fn outside(&self) -> BTreeMap<PathBuf, (Vec<u8>, [i64; 6])> {
        let (mut found, mut waiting) = (BTreeMap::new(), vec![self.path("outside")]);
        while let Some(path) = waiting.pop() {
            let meta = fs::symlink_metadata(&path).unwrap();
            let content = match meta.is_dir() {
                true => Vec::new(),
                false => fs::read(&path).unwrap(),
            };
            if meta.is_dir() {
                let entries = fs::read_dir(&path).unwrap();
                waiting.extend(entries.map(|entry| entry.unwrap().path()));
            }
            let owner = i64::from(meta.uid()) << 32 | i64::from(meta.gid());
            let times = [meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()];
            let [secs, nanos, csecs, cnanos] = times;
            let all = [i64::from(meta.mode()), owner, secs, nanos, csecs, cnanos];
            found.insert(path, (content, all));
        }
        found
    }
}

#[test]
fn no_hostile_tree_and_no_swapped_directory_leads_out_of_the_target() {
    Swapper::serve(&VICTIMS);
    let slice = Slice::one_in(SLICES);
    let wanted = slice.share(setting("HOLDALL_HOSTILE_SWAPS", SWAPS));
    let (scene, mut swaps, mut restores) = (Scene::new(), 0, 0);
    let swapper = Swapper::start(scene.folder.path()).unwrap();
    let mut world = World::new();
    // Few swaps happen while a small tree is restored, so there are more restores than trees.
    while restores < slice.share(TREES) || swaps < wanted {
        if restores.is_multiple_of(TREES_OF_WORLD) {
            world = World::new();
        }
        let mut random = Random::new(slice.seed(restores));
        let snapshot = hostile(&world, &scene, &mut random);
        swaps += restored_beside_swaps(&world, &snapshot, &scene, &swapper);
        restores += 1;
        assert!(scene.outside() == scene.before, "tree {restores} led out of its target");
    }
    eprintln!("{restores} hostile trees, {swaps} swaps");
}

/// Restores it twice, and gives the number of swaps meanwhile.
fn restored_beside_swaps(
    world: &World,
    snapshot: &Snapshot,
    scene: &Scene,
    swapper: &Swapper,
) -> u64 {
    let target = swapper.target();
    let restores = || {
        for round in 0..2 {
            let overwrite = [None, Some(Overwrite::Always)][round];
            let options =
                RestoreOptions { overwrite, verify: round == 1, ..RestoreOptions::default() };
            let run = Arc::new(Run::new());
            // It may well fail: the tree is damaged, and its directories go away.
            let _ = restore(&world.access, snapshot, None, &target, &options, &run);
        }
    };
    let swaps = swapper.beside(&VICTIMS, &scene.path("outside"), restores).unwrap();
    remove(&target);
    swaps
}

/// Removes a tree without going through its links.
fn remove(path: &Path) {
    if path.symlink_metadata().is_ok() {
        fs::remove_dir_all(path).unwrap();
    }
}

/// A tree of some hostile kind.
fn hostile(world: &World, scene: &Scene, random: &mut Random) -> Snapshot {
    if random.below(5) == 0 {
        return climbing(world, random);
    }
    let outside = scene.path("outside").to_str().unwrap().to_owned();
    let mut entries = BTreeMap::from([("/".to_owned(), directory())]);
    for _ in 0..5 + random.below(40) {
        let path = path(random);
        entries.insert(path, entry(world, &outside, random));
    }
    // What lies below a name needs the name; what it is, nobody checks.
    for path in entries.keys().cloned().collect::<Vec<_>>() {
        for (end, _) in path.match_indices('/').skip(1) {
            let above = entries.entry(path[..end].to_owned());
            above.or_insert_with(|| match random.below(4) {
                0 => symlink(&outside),
                _ => directory(),
            });
        }
    }
    let entries: Vec<_> = entries.iter().map(|(path, entry)| (&path[..], entry.clone())).collect();
    world.snapshot(&entries)
}

fn path(random: &mut Random) -> String {
    let mut path = String::new();
    for _ in 0..=random.below(4) {
        let name = match random.below(12) {
            0 => "x".repeat(300),
            1 => "\u{1b}[2J\n".to_owned(),
            2 => "...".to_owned(),
            3 => "\u{202e}gpj.exe".to_owned(),
            _ => NAMES[random.below(NAMES.len() as u64) as usize].to_owned(),
        };
        path = format!("{path}/{name}");
    }
    path
}

fn entry(world: &World, outside: &str, random: &mut Random) -> Entry {
    let hardlink = (random.below(3) == 0).then(|| [random.below(3) as u8; 16]);
    let mode = [0o644, 0o4755, 0o7777, 0, 0o222][random.below(5) as usize];
    let special = |kind| Entry { mode, ..owned(kind, 0o600) };
    let made = match random.below(14) {
        0..=2 => directory(),
        3 => symlink(outside),
        4 => symlink(&format!("{outside}/file")),
        5 => symlink(&format!("{}outside", "../".repeat(random.below(5) as usize + 1))),
        6 => symlink("sub"),
        7 => special(EntryKind::Fifo),
        8 => special(EntryKind::Socket),
        9 => special(EntryKind::CharDevice { major: 1, minor: 3 }),
        10 => huge(world),
        11 => Entry { attributes: attributes(), ..small_file(b"evil") },
        12 => Entry { mode, ..world.file(&world.chunks(&[b"evil in a chunk"])) },
        _ => Entry { mode, ..small_file(b"evil") },
    };
    Entry { hardlink, ..made }
}

/// A file of a pebibyte, nearly all of it hole.
fn huge(world: &World) -> Entry {
    let size = 1 << 50;
    let extents = Extents::new(vec![(size - 4, 4)], size).unwrap();
    let extents = Some(Content::Inline(extents.encode()));
    Entry { size, extents, content: Content::Inline(b"evil".to_vec()), ..world.file(&[]) }
}

fn attributes() -> Content {
    let attributes = vec![
        (b"user.evil".to_vec(), vec![1; 20]),
        (b"security.capability".to_vec(), vec![7; 24]),
        (b"trusted.overlay.opaque".to_vec(), b"y".to_vec()),
    ];
    Content::Inline(Attributes::new(attributes).unwrap().encode())
}

/// A path that climbs out, which no builder makes: another name is overwritten in the sealed bytes.
fn climbing(world: &World, random: &mut Random) -> Snapshot {
    let below = ["/??/outside/file", "/??", "/?/??", "/??/??/outside", "/sub/??/??/outside/file"];
    let chosen = below[random.below(below.len() as u64) as usize];
    let mut entries = vec![("/", directory())];
    for (end, _) in chosen.match_indices('/').skip(1) {
        entries.push((&chosen[..end], directory()));
    }
    entries.push((chosen, small_file(b"evil")));
    world.snapshot_of(&entries, |body| {
        body.iter().map(|byte| if *byte == b'?' { b'.' } else { *byte }).collect()
    })
}
