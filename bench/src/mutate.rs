//! Changes 1 % of a data set's files and adds 0.5 % new ones, all over it or near each other, and can undo it.
//!
//! Every tool of a run then sees the same two trees, and the next tool the first of them again.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result};

use crate::dataset::{File, Plan};
use crate::random::Random;

const CHANGED_SHARE: f64 = 0.01;
const NEW_SHARE: f64 = 0.005;
/// Of the directories that have files, those in which all changes lie that lie near each other.
const NEAR_SHARE: f64 = 0.01;
/// Files above this get scattered edits and an appended end; others get a new middle.
const LARGE_BYTES: u64 = 64 << 20;
const LARGE_EDITS: usize = 16;
const LARGE_EDIT_BYTES: u64 = 64 << 10;
const APPENDED_BYTES: u64 = 1 << 20;
const SMALL_EDIT_MAX_BYTES: u64 = 4096;
const NEW_MAX_BYTES: u64 = 64 << 10;

/// What was changed, with what it takes to undo it.
#[derive(Debug, Default)]
#[must_use = "the next tool is to see the old tree"]
pub(crate) struct Mutation {
    /// Overwritten, appended or new.
    pub(crate) changed_bytes: u64,
    edited: Vec<Edited>,
    new: Vec<PathBuf>,
}

/// Where changes lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spread {
    /// In any directory.
    AllOver,
    /// In one of a hundred of them.
    Near,
}

/// A file as it was.
#[derive(Debug)]
struct Edited {
    path: PathBuf,
    size_bytes: u64,
    modified: SystemTime,
    /// Where bytes were overwritten, and with them what was there; later ones may overlap.
    old: Vec<(u64, Vec<u8>)>,
}

impl Mutation {
    /// Makes the set what it was, times of files included; those of folders are new.
    ///
    /// # Errors
    ///
    /// The first file that cannot be changed back; the set is then neither old nor new.
    pub(crate) fn undo(self) -> Result<()> {
        for path in self.new {
            fs::remove_file(&path).with_context(|| format!("cannot remove {path:?}"))?;
        }
        let undo = |edited: &Edited| {
            edited.undo().with_context(|| format!("cannot change {:?} back", edited.path))
        };
        self.edited.iter().rev().try_for_each(undo)
    }
}

impl Edited {
    fn undo(&self) -> std::io::Result<()> {
        let file = OpenOptions::new().write(true).open(&self.path)?;
        for (at, bytes) in self.old.iter().rev() {
            file.write_all_at(bytes, *at)?;
        }
        file.set_len(self.size_bytes)?;
        file.set_modified(self.modified)
    }
}

/// Changes the set of `plan` below `root`: at least one file is changed and one is new.
///
/// # Errors
///
/// The first file that cannot be changed; the set is then neither old nor new.
pub(crate) fn mutate(root: &Path, plan: &Plan, spread: Spread, seed: u64) -> Result<Mutation> {
    let mut random = Random::new(seed);
    let share = |share: f64| ((plan.files.len() as f64 * share) as usize).max(1);
    let files = within(plan, spread, &mut random);
    let mut mutation = Mutation::default();
    for at in pick(&mut random, files.len(), share(CHANGED_SHARE)) {
        let (edited, changed_bytes) = edit(root.join(&files[at].path), &mut random)?;
        mutation.changed_bytes += changed_bytes;
        mutation.edited.push(edited);
    }
    for at in 0..share(NEW_SHARE) {
        let beside = files[random.index(files.len())];
        let path = root.join(format!("{}.new{at}", beside.path));
        let mut bytes = vec![0; beside.size_bytes.clamp(200, NEW_MAX_BYTES) as usize];
        random.fill(&mut bytes);
        fs::write(&path, &bytes).with_context(|| format!("cannot write {path:?}"))?;
        mutation.changed_bytes += bytes.len() as u64;
        mutation.new.push(path);
    }
    Ok(mutation)
}

/// The files among which changes may lie.
fn within<'a>(plan: &'a Plan, spread: Spread, random: &mut Random) -> Vec<&'a File> {
    match spread {
        Spread::AllOver => plan.files.iter().collect(),
        Spread::Near => {
            let mut dirs: BTreeMap<&str, Vec<&File>> = BTreeMap::new();
            for file in &plan.files {
                dirs.entry(file.dir()).or_default().push(file);
            }
            let dirs: Vec<Vec<&File>> = dirs.into_values().collect();
            let count = ((dirs.len() as f64 * NEAR_SHARE) as usize).max(1);
            pick(random, dirs.len(), count).into_iter().flat_map(|at| dirs[at].clone()).collect()
        }
    }
}

/// Changes one file; what it was, and how many bytes are not.
fn edit(path: PathBuf, random: &mut Random) -> Result<(Edited, u64)> {
    let context = || format!("cannot change {path:?}");
    let file = OpenOptions::new().read(true).write(true).open(&path).with_context(context)?;
    let metadata = file.metadata().with_context(context)?;
    let size_bytes = metadata.len();
    let mut edits = Vec::new();
    if size_bytes > LARGE_BYTES {
        let room_bytes = size_bytes - LARGE_EDIT_BYTES;
        edits.extend((0..LARGE_EDITS).map(|_| (random.below(room_bytes), LARGE_EDIT_BYTES)));
        edits.push((size_bytes, APPENDED_BYTES));
    } else {
        let at = size_bytes / 3;
        edits.push((at, (size_bytes - at).clamp(1, SMALL_EDIT_MAX_BYTES)));
    }
    let (mut changed_bytes, mut old) = (0, Vec::new());
    for (at, len_bytes) in edits {
        let mut bytes = vec![0; len_bytes.min(size_bytes - at) as usize];
        file.read_exact_at(&mut bytes, at).with_context(context)?;
        old.push((at, bytes));
        let mut bytes = vec![0; len_bytes as usize];
        random.fill(&mut bytes);
        file.write_all_at(&bytes, at).with_context(context)?;
        changed_bytes += len_bytes;
    }
    let modified = metadata.modified().with_context(context)?;
    Ok((Edited { path, size_bytes, modified, old }, changed_bytes))
}

/// `count` different numbers in `[0, len)`, sorted.
fn pick(random: &mut Random, len: usize, count: usize) -> Vec<usize> {
    let mut all: Vec<usize> = (0..len).collect();
    for at in 0..count.min(len) {
        all.swap(at, at + random.index(len - at));
    }
    all.truncate(count);
    all.sort_unstable();
    all
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::dataset::{Content, Set};
    use crate::generate::generate;

    fn contents(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        for path in fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                found.extend(contents(&path));
            } else {
                found.insert(path.clone(), fs::read(path).unwrap());
            }
        }
        found
    }

    #[test]
    fn the_asked_shares_are_changed_and_new_and_go_again() {
        let plan = Set::T0.plan();
        let dir = tempfile::tempdir().unwrap();
        generate(dir.path(), &plan).unwrap();
        let before = contents(dir.path());
        let modified = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
        let times: Vec<_> = before.keys().map(|path| modified(path)).collect();
        let mutation = mutate(dir.path(), &plan, Spread::AllOver, 1).unwrap();
        assert!(mutation.changed_bytes > 0);
        let after = contents(dir.path());
        assert_eq!(after.len(), before.len() + 1);
        let changed = before.iter().filter(|(path, bytes)| after[*path] != **bytes).count();
        assert_eq!(changed, 3);
        mutation.undo().unwrap();
        assert!(contents(dir.path()) == before);
        assert_eq!(before.keys().map(|path| modified(path)).collect::<Vec<_>>(), times);
    }

    #[test]
    fn changes_that_lie_near_each_other_lie_in_one_of_a_hundred_directories() {
        let plan = Set::S1.plan();
        let dirs = |files: &[&File]| -> BTreeSet<String> {
            files.iter().map(|file| file.dir().to_owned()).collect()
        };
        let all: Vec<&File> = plan.files.iter().collect();
        let near = within(&plan, Spread::Near, &mut Random::new(3));
        let meant = dirs(&near);
        assert_eq!(meant.len(), dirs(&all).len() / 100);
        assert!(all.iter().all(|file| near.contains(file) == meant.contains(file.dir())));
        assert_eq!(within(&plan, Spread::AllOver, &mut Random::new(3)), all);
    }

    #[test]
    fn a_large_file_is_edited_all_over_and_grows() {
        let file = File { path: "big".into(), size_bytes: 65 << 20, content: Content::Binary };
        let plan = Plan { dirs: Vec::new(), files: vec![file], seed: 1 };
        let dir = tempfile::tempdir().unwrap();
        generate(dir.path(), &plan).unwrap();
        let before = fs::read(dir.path().join("big")).unwrap();
        let mutation = mutate(dir.path(), &plan, Spread::AllOver, 2).unwrap();
        let after = fs::read(dir.path().join("big")).unwrap();
        assert_eq!(after.len(), 66 << 20);
        let differs = |at: &usize| before[*at..*at + (1 << 20)] != after[*at..*at + (1 << 20)];
        let places = (0..65usize).map(|at| at << 20).filter(differs).count();
        assert!((8..=32).contains(&places), "{places} of 65 MiB differ");
        mutation.undo().unwrap();
        assert!(fs::read(dir.path().join("big")).unwrap() == before);
    }
}
