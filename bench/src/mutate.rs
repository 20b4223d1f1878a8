//! Changes 1 % of a data set's files and adds 0.5 % new ones.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{Context, Result};

use crate::dataset::Plan;
use crate::random::Random;

const CHANGED_SHARE: f64 = 0.01;
const NEW_SHARE: f64 = 0.005;
/// Files above this get scattered edits and an appended end; others get a new middle.
const LARGE_BYTES: u64 = 64 << 20;
const LARGE_EDITS: usize = 16;
const LARGE_EDIT_BYTES: u64 = 64 << 10;
const APPENDED_BYTES: u64 = 1 << 20;
const SMALL_EDIT_MAX_BYTES: u64 = 4096;
const NEW_MAX_BYTES: u64 = 64 << 10;

/// Changes the set of `plan` below `root`: at least one file is changed and one is new.
///
/// Returns how many bytes were overwritten, appended or new.
///
/// # Errors
///
/// The first file that cannot be changed; the set is then neither old nor new.
pub(crate) fn mutate(root: &Path, plan: &Plan, seed: u64) -> Result<u64> {
    let mut random = Random::new(seed);
    let share = |share: f64| ((plan.files.len() as f64 * share) as usize).max(1);
    let mut changed_bytes = 0;
    for at in pick(&mut random, plan.files.len(), share(CHANGED_SHARE)) {
        changed_bytes += edit(&root.join(&plan.files[at].path), &mut random)?;
    }
    for at in 0..share(NEW_SHARE) {
        let beside = &plan.files[random.index(plan.files.len())];
        let path = root.join(format!("{}.new{at}", beside.path));
        let mut bytes = vec![0; beside.size_bytes.clamp(200, NEW_MAX_BYTES) as usize];
        random.fill(&mut bytes);
        fs::write(&path, &bytes).with_context(|| format!("cannot write {path:?}"))?;
        changed_bytes += bytes.len() as u64;
    }
    Ok(changed_bytes)
}

fn edit(path: &Path, random: &mut Random) -> Result<u64> {
    let context = || format!("cannot change {path:?}");
    let file = OpenOptions::new().write(true).open(path).with_context(context)?;
    let size_bytes = file.metadata().with_context(context)?.len();
    let mut edits = Vec::new();
    if size_bytes > LARGE_BYTES {
        let room_bytes = size_bytes - LARGE_EDIT_BYTES;
        edits.extend((0..LARGE_EDITS).map(|_| (random.below(room_bytes), LARGE_EDIT_BYTES)));
        edits.push((size_bytes, APPENDED_BYTES));
    } else {
        let at = size_bytes / 3;
        edits.push((at, (size_bytes - at).clamp(1, SMALL_EDIT_MAX_BYTES)));
    }
    let mut changed_bytes = 0;
    for (at, len_bytes) in edits {
        let mut bytes = vec![0; len_bytes as usize];
        random.fill(&mut bytes);
        file.write_all_at(&bytes, at).with_context(context)?;
        changed_bytes += len_bytes;
    }
    Ok(changed_bytes)
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
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use super::*;
    use crate::dataset::{Content, File, Set};
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
    fn the_asked_shares_are_changed_and_new() {
        let plan = Set::T0.plan();
        let dir = tempfile::tempdir().unwrap();
        generate(dir.path(), &plan).unwrap();
        let before = contents(dir.path());
        assert!(mutate(dir.path(), &plan, 1).unwrap() > 0);
        let after = contents(dir.path());
        assert_eq!(after.len(), before.len() + 1);
        let changed = before.iter().filter(|(path, bytes)| after[*path] != **bytes).count();
        assert_eq!(changed, 3);
    }

    #[test]
    fn a_large_file_is_edited_all_over_and_grows() {
        let file = File { path: "big".into(), size_bytes: 65 << 20, content: Content::Binary };
        let plan = Plan { dirs: Vec::new(), files: vec![file], seed: 1 };
        let dir = tempfile::tempdir().unwrap();
        generate(dir.path(), &plan).unwrap();
        let before = fs::read(dir.path().join("big")).unwrap();
        mutate(dir.path(), &plan, 2).unwrap();
        let after = fs::read(dir.path().join("big")).unwrap();
        assert_eq!(after.len(), 66 << 20);
        let differs = |at: &usize| before[*at..*at + (1 << 20)] != after[*at..*at + (1 << 20)];
        let places = (0..65usize).map(|at| at << 20).filter(differs).count();
        assert!((8..=32).contains(&places), "{places} of 65 MiB differ");
    }
}
