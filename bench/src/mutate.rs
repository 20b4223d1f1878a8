//! Changes 1 % of a data set's files and adds 0.5 % new ones, and takes that back.

use std::fs::{self, FileTimes, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result};

use crate::dataset::Plan;
use crate::random::Random;

const CHANGED_SHARE: f64 = 0.01;
const NEW_SHARE: f64 = 0.005;
/// Files above this get scattered edits and an appended end; others get a new middle.
const LARGE_BYTES: u64 = 64 << 20;
const NEW_MAX_BYTES: u64 = 64 << 10;

/// A file that was overwritten in place, with what takes it back.
struct Edited {
    path: PathBuf,
    size_bytes: u64,
    modified: SystemTime,
    old: Vec<(u64, Vec<u8>)>,
}

/// A changed data set; [`undo`](Self::undo) makes it what it was, but for change times.
pub(crate) struct Mutation {
    edited: Vec<Edited>,
    new: Vec<PathBuf>,
    /// Bytes overwritten, appended or new.
    pub(crate) changed_bytes: u64,
}

impl Mutation {
    /// Changes the set of `plan` below `root`; at least one file is changed and one is new.
    ///
    /// # Errors
    ///
    /// The first file that cannot be changed; the set is then neither old nor new.
    pub(crate) fn apply(root: &Path, plan: &Plan, seed: u64) -> Result<Self> {
        let mut random = Random::new(seed);
        let mut mutation = Self { edited: Vec::new(), new: Vec::new(), changed_bytes: 0 };
        let share = |share: f64| ((plan.files.len() as f64 * share) as usize).max(1);
        for at in pick(&mut random, plan.files.len(), share(CHANGED_SHARE)) {
            mutation.edit(root.join(&plan.files[at].path), &mut random)?;
        }
        for at in 0..share(NEW_SHARE) {
            let beside = &plan.files[random.index(plan.files.len())];
            let path = root.join(format!("{}.new{at}", beside.path));
            let mut bytes = vec![0; beside.size_bytes.clamp(200, NEW_MAX_BYTES) as usize];
            random.fill(&mut bytes);
            fs::write(&path, &bytes).with_context(|| format!("cannot write {path:?}"))?;
            mutation.changed_bytes += bytes.len() as u64;
            mutation.new.push(path);
        }
        Ok(mutation)
    }

    fn edit(&mut self, path: PathBuf, random: &mut Random) -> Result<()> {
        let context = || format!("cannot change {path:?}");
        let file = OpenOptions::new().read(true).write(true).open(&path).with_context(context)?;
        let metadata = file.metadata().with_context(context)?;
        let size_bytes = metadata.len();
        let edits: Vec<(u64, u64)> = if size_bytes > LARGE_BYTES {
            (0..16).map(|_| (random.below(size_bytes - (64 << 10)), 64 << 10)).collect()
        } else {
            let at = size_bytes / 3;
            vec![(at, (size_bytes - at).clamp(1, 4096))]
        };
        let mut old = Vec::new();
        for (at, len_bytes) in edits {
            let mut before = vec![0; len_bytes.min(size_bytes - at) as usize];
            file.read_exact_at(&mut before, at).with_context(context)?;
            old.push((at, before));
            self.changed_bytes += write_random(&file, random, at, len_bytes).with_context(context)?;
        }
        if size_bytes > LARGE_BYTES {
            self.changed_bytes +=
                write_random(&file, random, size_bytes, 1 << 20).with_context(context)?;
        }
        let modified = metadata.modified().with_context(context)?;
        self.edited.push(Edited { path, size_bytes, modified, old });
        Ok(())
    }

    /// Takes everything back.
    ///
    /// # Errors
    ///
    /// The first file that cannot be put right.
    pub(crate) fn undo(self) -> Result<()> {
        for path in &self.new {
            fs::remove_file(path).with_context(|| format!("cannot remove {path:?}"))?;
        }
        for edited in &self.edited {
            edited.undo().with_context(|| format!("cannot put {:?} right", edited.path))?;
        }
        Ok(())
    }
}

impl Edited {
    fn undo(&self) -> std::io::Result<()> {
        let file = OpenOptions::new().write(true).open(&self.path)?;
        // Backwards: edits of a large file may overlap, and the first one saw the original.
        for (at, bytes) in self.old.iter().rev() {
            file.write_all_at(bytes, *at)?;
        }
        file.set_len(self.size_bytes)?;
        file.set_times(FileTimes::new().set_modified(self.modified))
    }
}

fn write_random(
    file: &fs::File,
    random: &mut Random,
    at: u64,
    len_bytes: u64,
) -> std::io::Result<u64> {
    let mut bytes = vec![0; len_bytes as usize];
    random.fill(&mut bytes);
    file.write_all_at(&bytes, at)?;
    Ok(len_bytes)
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

    use super::*;
    use crate::dataset::{Content, File, Set};
    use crate::generate::generate;

    fn contents(root: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
        let mut found = BTreeMap::new();
        for entry in fs::read_dir(root).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                found.extend(contents(&path));
            } else {
                let modified = entry.metadata().unwrap().modified().unwrap();
                found.insert(path.clone(), (fs::read(path).unwrap(), modified));
            }
        }
        found
    }

    #[test]
    fn a_changed_set_has_the_asked_shares_and_goes_back_to_what_it_was() {
        let plan = Set::T0.plan();
        let dir = tempfile::tempdir().unwrap();
        generate(dir.path(), &plan).unwrap();
        let before = contents(dir.path());
        let mutation = Mutation::apply(dir.path(), &plan, 1).unwrap();
        let after = contents(dir.path());
        assert_eq!(after.len(), before.len() + 1);
        let changed = before.iter().filter(|(path, (bytes, _))| after[*path].0 != *bytes).count();
        assert_eq!(changed, 3);
        assert!(mutation.changed_bytes > 0);
        mutation.undo().unwrap();
        assert!(contents(dir.path()) == before);
    }

    #[test]
    fn a_large_file_is_edited_all_over_and_grows() {
        let file = File { path: "big".into(), size_bytes: 65 << 20, content: Content::Binary };
        let plan = Plan { dirs: Vec::new(), files: vec![file], seed: 1 };
        let dir = tempfile::tempdir().unwrap();
        generate(dir.path(), &plan).unwrap();
        let before = contents(dir.path());
        let mutation = Mutation::apply(dir.path(), &plan, 2).unwrap();
        assert_eq!(fs::metadata(dir.path().join("big")).unwrap().len(), 66 << 20);
        mutation.undo().unwrap();
        assert!(contents(dir.path()) == before);
    }
}
