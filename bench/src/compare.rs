//! Whether a restored data set is the one that was backed up, byte for byte.

use std::fs;
use std::io::{BufRead, BufReader, Read, sink};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use crate::dataset::Plan;
use crate::generate::in_parallel;

const BATCH_FILES: usize = 1000;

/// Compares every file of `plan` below `source` with the one below `restored`.
///
/// # Errors
///
/// The first file that is missing or differs, or how many are there that should not be.
pub(crate) fn compare(source: &Path, restored: &Path, plan: &Plan) -> Result<()> {
    let batches: Vec<_> = plan.files.chunks(BATCH_FILES).collect();
    in_parallel(batches.len(), |at| {
        let same = |path: &String| compare_file(&source.join(path), &restored.join(path));
        batches[at].iter().map(|file| &file.path).try_for_each(same)
    })?;
    let found = count_files(restored)?;
    let planned = plan.files.len() as u64;
    ensure!(found == planned, "{found} files were restored, {planned} are in the source");
    Ok(())
}

/// Reads every file of `plan` below `root`, so that whoever comes next finds warm caches.
///
/// # Errors
///
/// The first file that cannot be read.
pub(crate) fn warm(root: &Path, plan: &Plan) -> Result<()> {
    let batches: Vec<_> = plan.files.chunks(BATCH_FILES).collect();
    in_parallel(batches.len(), |at| {
        batches[at].iter().try_for_each(|file| {
            let path = root.join(&file.path);
            let read = || std::io::copy(&mut fs::File::open(&path)?.take(u64::MAX), &mut sink());
            read().map(drop).with_context(|| format!("cannot read {path:?}"))
        })
    })
}

fn compare_file(source: &Path, restored: &Path) -> Result<()> {
    let open = |path: &Path| {
        let file = fs::File::open(path).with_context(|| format!("cannot open {path:?}"))?;
        anyhow::Ok(BufReader::with_capacity(64 << 10, file))
    };
    let (mut a, mut b) = (open(source)?, open(restored)?);
    loop {
        let (left, right) = (a.fill_buf()?, b.fill_buf()?);
        let len_bytes = left.len().min(right.len());
        if left.is_empty() && right.is_empty() {
            return Ok(());
        }
        if len_bytes == 0 || left[..len_bytes] != right[..len_bytes] {
            bail!("{restored:?} differs from {source:?}");
        }
        a.consume(len_bytes);
        b.consume(len_bytes);
    }
}

fn count_files(folder: &Path) -> Result<u64> {
    let mut count = 0;
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {folder:?}"))? {
        let entry = entry?;
        count += if entry.file_type()?.is_dir() { count_files(&entry.path())? } else { 1 };
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::Set;
    use crate::generate::generate;

    #[test]
    fn a_missing_a_changed_and_an_extra_file_are_found() {
        let plan = Set::T0.plan();
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        generate(one.path(), &plan).unwrap();
        generate(two.path(), &plan).unwrap();
        compare(one.path(), two.path(), &plan).unwrap();

        fs::write(two.path().join("extra"), "x").unwrap();
        assert!(compare(one.path(), two.path(), &plan).is_err());
        fs::remove_file(two.path().join("extra")).unwrap();

        let victim = two.path().join(&plan.files[7].path);
        let mut bytes = fs::read(&victim).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(&victim, &bytes).unwrap();
        assert!(compare(one.path(), two.path(), &plan).is_err());
        bytes.pop();
        fs::write(&victim, bytes).unwrap();
        assert!(compare(one.path(), two.path(), &plan).is_err());
        fs::remove_file(victim).unwrap();
        assert!(compare(one.path(), two.path(), &plan).is_err());
    }
}
