//! A tree in the words of a golden manifest; `golden/maker/manifest.py` says which they are.
//!
//! Who is not root restores neither owners nor the rights of others, so these are left out then.

use std::collections::HashMap;
use std::fs::File;
use std::io::Seek;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use holdall_sys::{Dir, FileKind, Name, Stat, sparse, users, xattr};

/// Every bit of a mode but setuid and setgid, in octal digits.
const ORDINARY_MODE: u32 = 0o1777;

/// Compares the tree at `root` with a manifest, line by line.
#[track_caller]
pub(crate) fn check(root: &Path, manifest: &str) {
    let is_root = users::effective_uid() == 0;
    let reduced = |line: &str| if is_root { line.to_owned() } else { ordinary(line) };
    let expected: Vec<_> = manifest.lines().map(reduced).collect();
    let found: Vec<_> = lines(root).iter().map(|line| reduced(line)).collect();
    for (expected, found) in expected.iter().zip(&found) {
        assert_eq!(found, expected, "found, and expected by the manifest");
    }
    assert_eq!(found.len(), expected.len(), "found, and expected by the manifest");
}

/// A line without what an ordinary user cannot restore.
fn ordinary(line: &str) -> String {
    let mut words: Vec<_> = line.split(' ').map(str::to_owned).collect();
    if words[0] != "same" {
        if let Ok(mode) = u32::from_str_radix(&words[1], 8) {
            words[1] = format!("{:04o}", mode & ORDINARY_MODE);
        }
        words[2].clear();
    }
    words.join(" ")
}

/// The manifest of everything at and below `root`.
fn lines(root: &Path) -> Vec<String> {
    let mut listing = Listing { paths: Vec::new() };
    let (parent, name) = (root.parent().expect("not /"), root.file_name().expect("a name"));
    let parent = Dir::open_absolute(parent.as_os_str().as_bytes()).expect("it is there");
    listing.enter(&parent, Name::new(name.as_bytes()).expect("a name"), b".");
    listing.paths.sort_by(|left, right| left.path.cmp(&right.path));
    let mut first_names = HashMap::new();
    let mut line = |found: &Found| {
        let first = first_names.entry(found.inode).or_insert_with(|| found.path.clone());
        if *first == found.path {
            return found.line.clone();
        }
        format!("same {} {}", found.path.escape_ascii(), first.escape_ascii())
    };
    listing.paths.iter().map(&mut line).collect()
}

/// A path from the root, and what a manifest says of it.
struct Found {
    path: Vec<u8>,
    inode: u64,
    line: String,
}

struct Listing {
    paths: Vec<Found>,
}

impl Listing {
    fn enter(&mut self, dir: &Dir, name: Name<'_>, path: &[u8]) {
        let stat = dir.stat(name).expect("it can be looked at");
        let line = line(dir, name, &stat, path);
        self.paths.push(Found { path: path.to_owned(), inode: stat.inode, line });
        if stat.kind == FileKind::Dir {
            let inner = dir.open_child(name).expect("it can be opened");
            for name in inner.entries().expect("it can be listed").iter() {
                let start = if path == b"." { Vec::new() } else { [path, b"/"].concat() };
                let below = [&start, name.name().as_bytes()].concat();
                self.enter(&inner, name.name(), &below);
            }
        }
    }
}

fn line(dir: &Dir, name: Name<'_>, stat: &Stat, path: &[u8]) -> String {
    let mut mode = format!("{:04o}", stat.mode);
    let (kind, content) = match stat.kind {
        FileKind::Dir => ("directory", String::new()),
        FileKind::Symlink => {
            // The mode of a link means nothing.
            mode = "-".to_owned();
            let target = dir.read_link(name).expect("it can be read");
            ("link", format!("{} ", target.escape_ascii()))
        }
        FileKind::File => {
            let (file, _) = dir.open_file(name).expect("it can be opened");
            let kind = if has_holes(&file, stat.size) { "sparse" } else { "file" };
            (kind, format!("{} {} ", stat.size, sha256(file)))
        }
        FileKind::Fifo => ("fifo", String::new()),
        kind => panic!("{kind:?} is not in any manifest"),
    };
    let (uid, gid, mtime) = (stat.uid, stat.gid, stat.mtime);
    let path = path.escape_ascii();
    let mut line =
        format!("{kind} {mode} {uid}:{gid} {}.{:09} {content}{path}", mtime.secs, mtime.nanos);
    for attribute in xattr::read_at(dir, name).expect("they can be read") {
        if attribute.name.starts_with(b"user.") {
            let digits: String = attribute.value.iter().map(|byte| format!("{byte:02x}")).collect();
            line.push_str(&format!(" {}={digits}", attribute.name.escape_ascii()));
        }
    }
    line
}

fn has_holes(file: &File, size: u64) -> bool {
    let extents = sparse::data_extents(file, size).expect("they can be asked for");
    extents.iter().map(|extent| extent.len_bytes).sum::<u64>() < size
}

/// By the program that everybody has, since no crate of the workspace needs this hash.
fn sha256(mut file: File) -> String {
    // Looking for holes has moved it.
    file.rewind().expect("it is a regular file");
    let output = Command::new("sha256sum").stdin(file).output().expect("it is there");
    let said = String::from_utf8(output.stdout).expect("digits");
    said.split(' ').next().unwrap_or_default().to_owned()
}
