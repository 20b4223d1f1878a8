//! Small trees that look random, and changes to them: input for property tests, made from a seed.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};

use holdall_sys::{DeviceNumber, Dir, FileKind, Name, TargetDir, Timestamp, metadata, xattr};

use crate::Random;

/// How large a random tree gets.
#[derive(Debug, Clone, Copy)]
pub struct RandomTreeSizes {
    /// How many entries it has in all.
    pub entries: usize,
    /// How long the longest file is, in bytes; most are far shorter.
    pub max_file_bytes: u64,
}

/// One change that [`mutate_tree`] made, at a path from the tree's root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A new entry.
    Added(PathBuf),
    /// An entry that is gone, with all that was in it.
    Removed(PathBuf),
    /// An entry that now has another name, which comes second.
    Moved(PathBuf, PathBuf),
    /// A file with other content.
    Edited(PathBuf),
    /// A file with other content of the same length, whose modification time was put back.
    EditedSecretly(PathBuf),
    /// An entry whose mode, time or attributes changed.
    Touched(PathBuf),
}

impl Default for RandomTreeSizes {
    /// A hundred entries, and files of up to 100,000 bytes.
    fn default() -> Self {
        Self { entries: 100, max_file_bytes: 100_000 }
    }
}

/// Fills `dir`, which must exist and should be empty, with the tree of `seed`: files, directories,
/// links of both sorts, pipes; odd names, modes, times and attributes among them.
///
/// # Errors
///
/// What the file system says; what was made stays.
pub fn random_tree(dir: &Path, seed: u64, sizes: &RandomTreeSizes) -> io::Result<()> {
    let mut random = Random::new(seed);
    let mut dirs = vec![dir.to_path_buf()];
    let mut files = Vec::new();
    for number in 0..sizes.entries {
        let parent = dirs[random.index(dirs.len())].clone();
        let path = parent.join(random_name(number, &mut random));
        match random.below(16) {
            0..3 => {
                fs::create_dir(&path)?;
                dirs.push(path);
            }
            3 => {
                symlink(random_name(number, &mut random), &path)?;
                set_random_time(&path, &mut random)?;
            }
            4 => {
                make_pipe(&path)?;
                set_random_time(&path, &mut random)?;
            }
            5 if !files.is_empty() => fs::hard_link(&files[random.index(files.len())], &path)?,
            _ => {
                make_file(&path, sizes.max_file_bytes, &mut random)?;
                files.push(path);
            }
        }
    }
    // Deepest last in the list, so that no time is moved by what is made after it.
    for made in files.iter().chain(dirs.iter().rev()) {
        decorate(made, &mut random)?;
    }
    Ok(())
}

/// Makes `changes` changes of all sorts to the tree in `dir` and says which. They follow from
/// `seed` and the tree; one entry may be changed more than once.
///
/// # Errors
///
/// What the file system says; changes made before stay.
pub fn mutate_tree(dir: &Path, seed: u64, changes: usize) -> io::Result<Vec<Change>> {
    let mut random = Random::new(seed);
    let mut made = Vec::new();
    for number in 0..changes {
        let mut entries = Vec::new();
        list(dir, Path::new(""), &mut entries)?;
        let chosen = (!entries.is_empty()).then(|| entries[random.index(entries.len())].clone());
        made.push(match chosen {
            Some((path, kind)) if !random.one_in(5) => change(dir, path, kind, &mut random)?,
            chosen => add(dir, chosen, number, &mut random)?,
        });
    }
    Ok(made)
}

/// Adds a file beside the chosen entry, or in it if it is a directory.
fn add(
    root: &Path,
    chosen: Option<(PathBuf, FileKind)>,
    number: usize,
    random: &mut Random,
) -> io::Result<Change> {
    let parent = match chosen {
        Some((path, FileKind::Dir)) => path,
        Some((path, _)) => path.parent().map(Path::to_path_buf).unwrap_or_default(),
        None => PathBuf::new(),
    };
    let path = parent.join(format!("added-{number}-{}", random.next_u64()));
    make_file(&root.join(&path), 10_000, random)?;
    Ok(Change::Added(path))
}

fn change(root: &Path, path: PathBuf, kind: FileKind, random: &mut Random) -> io::Result<Change> {
    let full = root.join(&path);
    match (kind, random.below(8)) {
        (FileKind::Dir, 0) => fs::remove_dir_all(full).map(|()| Change::Removed(path)),
        (_, 0) => fs::remove_file(full).map(|()| Change::Removed(path)),
        (_, 1) => {
            let new = path.with_file_name(format!("moved-{}", random.next_u64()));
            fs::rename(full, root.join(&new))?;
            Ok(Change::Moved(path, new))
        }
        (FileKind::File, 2..6) => edit(&full, path, random),
        _ => {
            set_random_time(&full, random)?;
            Ok(Change::Touched(path))
        }
    }
}

/// Edits a file: a byte with the time put back, a new end, a shorter one, or all of it.
fn edit(full: &Path, path: PathBuf, random: &mut Random) -> io::Result<Change> {
    let (parent, name) = parent_of(full)?;
    let before = parent.as_dir().stat(Name::new(name)?)?;
    // Its mode may keep even its owner from writing; what was meant is put back at the end.
    metadata::set_mode_at(&parent, Name::new(name)?, 0o600)?;
    let file = fs::OpenOptions::new().read(true).write(true).open(full)?;
    let offset = random.below(before.size);
    let change = match random.below(4) {
        0 | 1 if before.size > 0 => {
            let mut byte = [0];
            file.read_exact_at(&mut byte, offset)?;
            file.write_all_at(&[!byte[0]], offset)?;
            metadata::set_mtime(&file, before.mtime)?;
            Change::EditedSecretly(path)
        }
        2 if before.size > 0 => {
            file.set_len(offset)?;
            Change::Edited(path)
        }
        _ => {
            file.write_all_at(&random.bytes(500), before.size)?;
            Change::Edited(path)
        }
    };
    metadata::set_mode(&file, before.mode)?;
    Ok(change)
}

/// Lists all entries below `from`, in the order of names, as paths from the root.
fn list(root: &Path, from: &Path, entries: &mut Vec<(PathBuf, FileKind)>) -> io::Result<()> {
    let full = root.join(from);
    let dir = Dir::open_absolute(full.as_os_str().as_bytes())?;
    for entry in dir.entries()?.iter() {
        let kind = dir.stat(entry.name())?.kind;
        let path = from.join(std::ffi::OsStr::from_bytes(entry.name().as_bytes()));
        entries.push((path.clone(), kind));
        if kind == FileKind::Dir {
            list(root, &path, entries)?;
        }
    }
    Ok(())
}

/// A name that no other entry has, thanks to its number; some are not UTF-8, some are long.
fn random_name(number: usize, random: &mut Random) -> PathBuf {
    let mut name = match random.below(8) {
        0 => b"\xff\n ".to_vec(),
        1 => vec![b'n'; 200],
        2 => b"-".to_vec(),
        _ => vec![b'a' + random.below(26) as u8],
    };
    name.extend_from_slice(number.to_string().as_bytes());
    PathBuf::from(std::ffi::OsString::from(std::ffi::OsStr::from_bytes(&name)))
}

/// Makes a file: empty, short or long, compressible or not, at times with a hole.
fn make_file(path: &Path, max_bytes: u64, random: &mut Random) -> io::Result<()> {
    let limit = max_bytes >> random.below(12);
    let len_bytes = random.below(limit.saturating_add(1));
    let file = fs::File::create_new(path)?;
    if random.one_in(10) {
        return file.set_len(len_bytes);
    }
    let content = match random.one_in(3) {
        true => vec![random.next_u64() as u8; len_bytes as usize],
        false => random.bytes(len_bytes as usize),
    };
    file.write_all_at(&content, 0)
}

fn make_pipe(path: &Path) -> io::Result<()> {
    let (parent, name) = parent_of(path)?;
    parent.create_special(Name::new(name)?, FileKind::Fifo, DeviceNumber::default(), 0o600)
}

/// Gives a file or directory a mode, a time and perhaps an attribute. Its owner can still read it.
fn decorate(path: &Path, random: &mut Random) -> io::Result<()> {
    let file = fs::File::open(path)?;
    if random.one_in(5) {
        let len_bytes = random.index(1_000);
        xattr::set_fd(&file, b"user.random", &random.bytes(len_bytes))?;
    }
    let readable = if file.metadata()?.is_dir() { 0o700 } else { 0o400 };
    metadata::set_mode(&file, random.below(0o10000) as u32 | readable)?;
    metadata::set_mtime(&file, random_time(random))
}

/// Sets the time of what is at a path, of the link itself if it is one.
fn set_random_time(path: &Path, random: &mut Random) -> io::Result<()> {
    let (parent, name) = parent_of(path)?;
    metadata::set_mtime_at(&parent, Name::new(name)?, random_time(random))
}

fn random_time(random: &mut Random) -> Timestamp {
    Timestamp {
        secs: random.below(8_000_000_000) as i64 - 2_000_000_000,
        nanos: random.below(1_000_000_000) as u32,
    }
}

fn parent_of(path: &Path) -> io::Result<(TargetDir, &[u8])> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    Ok((TargetDir::open_root(parent)?, name.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CompareOptions, compare_trees};

    fn tree(seed: u64) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a temporary folder");
        random_tree(folder.path(), seed, &RandomTreeSizes::default()).expect("room");
        folder
    }

    fn options() -> CompareOptions {
        // The root's own time is when the test ran, after a change.
        CompareOptions { roots: false, ..CompareOptions::default() }
    }

    #[test]
    fn one_seed_is_one_tree_and_two_are_two() {
        let (left, right, other) = (tree(1), tree(1), tree(2));
        assert_eq!(compare_trees(left.path(), right.path(), &CompareOptions::default()), []);
        assert_ne!(compare_trees(left.path(), other.path(), &options()), []);
    }

    #[test]
    fn a_tree_has_every_kind_that_any_user_can_make() {
        let folder = tree(3);
        let mut entries = Vec::new();
        list(folder.path(), Path::new(""), &mut entries).expect("readable");
        assert_eq!(entries.len(), 100);
        for kind in [FileKind::File, FileKind::Dir, FileKind::Symlink, FileKind::Fifo] {
            assert!(entries.iter().any(|(_, found)| *found == kind), "no {kind:?}");
        }
    }

    #[test]
    fn one_seed_makes_the_same_changes_and_each_shows() {
        for seed in 0..20 {
            let (left, right, before) = (tree(seed), tree(seed), tree(seed));
            let made = mutate_tree(left.path(), seed, 1).expect("changed");
            assert_eq!(mutate_tree(right.path(), seed, 1).expect("changed"), made);
            let differences = compare_trees(before.path(), left.path(), &options());
            assert_ne!(differences, [], "seed {seed}: {made:?}");
        }
    }

    #[test]
    fn many_changes_of_all_sorts_are_made() {
        let folder = tree(4);
        let made = mutate_tree(folder.path(), 4, 200).expect("changed");
        assert_eq!(made.len(), 200);
        let has = |wanted: fn(&Change) -> bool| made.iter().any(wanted);
        assert!(has(|change| matches!(change, Change::Added(_))));
        assert!(has(|change| matches!(change, Change::Removed(_))));
        assert!(has(|change| matches!(change, Change::Moved(..))));
        assert!(has(|change| matches!(change, Change::Edited(_))));
        assert!(has(|change| matches!(change, Change::EditedSecretly(_))));
        assert!(has(|change| matches!(change, Change::Touched(_))));
    }
}
