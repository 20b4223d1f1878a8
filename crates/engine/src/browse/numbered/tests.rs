//! Directories in parts, and names that are one file.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdall_tree::Entry;

use super::*;
use crate::test_world::{World, directory, small_file};

/// Entries by their paths, and a viewer of a snapshot of them.
fn viewed(entries: &[(&str, Entry)]) -> (Viewer, ObjectId, BTreeMap<Vec<u8>, u64>) {
    let world = World::new();
    let snapshot = world.snapshot(entries);
    let viewer = Viewer::open(Arc::new(world.access)).unwrap();
    let mut keys: Vec<_> =
        entries.iter().map(|(path, _)| PathKey::from_absolute(path.as_bytes()).unwrap()).collect();
    keys.sort();
    let numbers = keys.iter().zip(1..).map(|(key, number)| (key.to_absolute(), number)).collect();
    (viewer, snapshot.root, numbers)
}

fn many() -> Vec<(String, Entry)> {
    let mut entries = vec![("/".to_owned(), directory()), ("/b".to_owned(), directory())];
    for number in 0..60 {
        entries.push((format!("/b/{number:03}"), directory()));
        entries.push((format!("/b/{number:03}/deep"), directory()));
        entries.extend((0..5).map(|file| (format!("/b/{number:03}/deep/{file}"), small_file(b""))));
    }
    entries.push(("/b.txt".to_owned(), small_file(b"")));
    entries
}

#[test]
fn a_directory_in_parts_is_the_same_as_whole_and_every_number_leads_back() {
    let entries = many();
    let entries: Vec<_> = entries.iter().map(|(path, entry)| (&path[..], entry.clone())).collect();
    let (viewer, root, numbers) = viewed(&entries);
    let listed = |most: usize| {
        let (mut found, mut from) = (Vec::new(), None);
        loop {
            let part = viewer.children(root, b"/b", from, most).unwrap();
            assert!(part.damage.is_none() && part.entries.len() <= most);
            found.extend(part.entries.into_iter().map(|entry| (entry.path, entry.number)));
            match part.next {
                Some(next) => from = Some(next),
                None => return found,
            }
        }
    };
    let whole = listed(1000);
    assert_eq!(whole.len(), 60);
    for most in [1, 7, 59, 60] {
        assert_eq!(listed(most), whole, "{most}");
    }
    for (path, number) in &whole {
        assert_eq!(numbers[path], *number);
        assert_eq!(viewer.numbered(root, *number).unwrap().path, *path);
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap();
        assert_eq!(viewer.child(root, b"/b", name).unwrap().unwrap().number, *number);
    }
    let top = viewer.children(root, b"/", None, 10).unwrap();
    let names: Vec<_> = top.entries.iter().map(NumberedEntry::name).collect();
    assert_eq!(names, [&b"b"[..], b"b.txt"]);
}

#[test]
fn what_is_not_there_has_no_number_and_the_root_always_has() {
    let (viewer, root, _) = viewed(&[("/a", directory()), ("/a/b", small_file(b""))]);
    for name in [&b"c"[..], b"", b".", b"..", b"b/c", &[b'x'; 5000]] {
        assert!(viewer.child(root, b"/a", name).unwrap().is_none());
    }
    let top = viewer.numbered(root, ROOT_NUMBER).unwrap();
    assert_eq!((&top.path[..], top.entry.kind), (&b"/"[..], EntryKind::Directory));
    assert!(viewer.numbered(root, 3).unwrap_err().is_damage());
}

#[test]
fn what_is_damaged_of_a_directory_is_left_out_and_said() {
    let entries = many();
    let world = World::new();
    let entries: Vec<_> = entries.iter().map(|(path, entry)| (&path[..], entry.clone())).collect();
    let snapshot = world.snapshot(&entries);
    // Some leaf that is not the root.
    let hit = world.repository.ids().into_iter().filter(|id| *id != snapshot.root).min().unwrap();
    world.repository.damage(&hit);
    let viewer = Viewer::open(Arc::new(world.access)).unwrap();
    let mut seen = 0;
    for directory in [&b"/b"[..], b"/"] {
        let listed = viewer.children(snapshot.root, directory, None, 1000).unwrap();
        seen += usize::from(listed.damage.is_some());
        for found in listed.entries {
            let parent = PathKey::from_absolute(&found.path).unwrap().parent().unwrap();
            assert_eq!(parent.to_absolute(), directory);
        }
    }
    assert!(seen > 0);
}

#[test]
fn names_of_one_file_are_counted_wherever_they_are() {
    let linked =
        |group: u8, content: &[u8]| Entry { hardlink: Some([group; 16]), ..small_file(content) };
    let (viewer, root, numbers) = viewed(&[
        ("/", directory()),
        ("/a", linked(1, b"one")),
        ("/b", linked(2, b"two")),
        ("/c", directory()),
        ("/c/a", linked(1, b"one")),
        ("/c/b", linked(1, b"another inode since")),
        ("/z", linked(1, b"one")),
        ("/y", small_file(b"alone")),
    ]);
    let links = viewer.hard_links(root).unwrap();
    let of = |path: &str| {
        let found = viewer.numbered(root, numbers[path.as_bytes()]).unwrap();
        links.of(&found.entry).map(|link| (link.first, link.names))
    };
    let first = numbers[&b"/a"[..]];
    for path in ["/a", "/c/a", "/z"] {
        assert_eq!(of(path), Some((first, 3)), "{path}");
    }
    assert_eq!(of("/b"), Some((numbers[&b"/b"[..]], 1)));
    assert_eq!(of("/c/b"), Some((numbers[&b"/c/b"[..]], 1)));
    assert_eq!(of("/y"), None);
}
