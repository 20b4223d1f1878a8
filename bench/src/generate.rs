//! Writes a planned data set to disk: a batch of files at a time, on every core.
//!
//! Each batch has a seed of its own, so that the bytes do not depend on how many threads write.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, anyhow};

use crate::dataset::{Content, File, Plan};
use crate::random::Random;
use crate::text::Text;

const BATCH_FILES: usize = 5000;
/// Small files are cut from this much text; each has a head of its own.
const POOL_BYTES: usize = 64 << 20;
/// Files above this are written a slice at a time, not cut from the pool.
const LARGE_BYTES: u64 = 16 << 20;
const SLICE_BYTES: usize = 4 << 20;

/// Writes `plan` below `root`, which is made.
///
/// # Errors
///
/// The first file that cannot be written; what was written before stays.
pub(crate) fn generate(root: &Path, plan: &Plan) -> Result<()> {
    fs::create_dir_all(root).with_context(|| format!("cannot make {root:?}"))?;
    for dir in &plan.dirs {
        let path = root.join(dir);
        fs::create_dir_all(&path).with_context(|| format!("cannot make {path:?}"))?;
    }
    let writer = Writer::new(root, plan);
    let batch = if plan.files.len() < 100 { 1 } else { BATCH_FILES };
    let batches: Vec<&[File]> = plan.files.chunks(batch).collect();
    in_parallel(batches.len(), |at| {
        let mut random = Random::new(plan.seed + 1 + at as u64);
        let mut buffer = Vec::new();
        batches[at].iter().try_for_each(|file| writer.write(file, &mut random, &mut buffer))
    })
}

/// Calls `work` for every number in `[0, count)` on all cores; stops at the first error.
pub(crate) fn in_parallel(count: usize, work: impl Fn(usize) -> Result<()> + Sync) -> Result<()> {
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    on_threads(threads, count, work)
}

/// The same on so many threads.
pub(crate) fn on_threads(
    threads: usize,
    count: usize,
    work: impl Fn(usize) -> Result<()> + Sync,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let run = || -> Result<()> {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count {
                return Ok(());
            }
            work(at).inspect_err(|_| next.store(count, Ordering::Relaxed))?;
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, Result<()>>| {
            thread.join().map_err(|_| anyhow!("a thread panicked"))?
        };
        threads.into_iter().map(join).fold(Ok(()), Result::and)
    })
}

/// What all batches share.
struct Writer<'a> {
    root: &'a Path,
    text: Text,
    pool: Vec<u8>,
}

impl<'a> Writer<'a> {
    fn new(root: &'a Path, plan: &Plan) -> Self {
        let is_small_text = |file: &&File| file.content == Content::Text && !is_large(file);
        let text_bytes: u64 =
            plan.files.iter().filter(is_small_text).map(|file| file.size_bytes).sum();
        let text = Text::new();
        let mut pool = Vec::new();
        if text_bytes > 0 {
            // At least as long as the longest small file, however small the set is.
            let wanted = (text_bytes as usize).clamp(LARGE_BYTES as usize + 1, POOL_BYTES);
            text.extend(&mut Random::new(plan.seed), &mut pool, wanted);
        }
        Self { root, text, pool }
    }

    fn write(&self, file: &File, random: &mut Random, buffer: &mut Vec<u8>) -> Result<()> {
        let path = self.root.join(&file.path);
        let context = || format!("cannot write {path:?}");
        let mut out = fs::File::create(&path).with_context(context)?;
        if !is_large(file) {
            self.small(file, random, buffer);
            return out.write_all(buffer).with_context(context);
        }
        let mut left_bytes = file.size_bytes;
        while left_bytes > 0 {
            let len_bytes = left_bytes.min(SLICE_BYTES as u64) as usize;
            buffer.clear();
            match file.content {
                Content::Text => self.text.extend(random, buffer, len_bytes),
                Content::Binary => {
                    buffer.resize(len_bytes, 0);
                    random.fill(buffer);
                }
            }
            out.write_all(buffer).with_context(context)?;
            left_bytes -= len_bytes as u64;
        }
        Ok(())
    }

    /// Puts the content of a small file into `buffer`.
    fn small(&self, file: &File, random: &mut Random, buffer: &mut Vec<u8>) {
        let len_bytes = file.size_bytes as usize;
        buffer.clear();
        match file.content {
            Content::Binary => {
                buffer.resize(len_bytes, 0);
                random.fill(buffer);
            }
            Content::Text => {
                let at = random.index(self.pool.len() - len_bytes);
                buffer.extend_from_slice(format!("// {} {at}\n", file.path).as_bytes());
                buffer.extend_from_slice(&self.pool[at..at + len_bytes]);
                buffer.truncate(len_bytes);
            }
        }
    }
}

fn is_large(file: &File) -> bool {
    file.size_bytes > LARGE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::Set;

    #[test]
    fn a_small_set_is_written_as_planned_and_twice_the_same() {
        let plan = Set::T0.plan();
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        generate(one.path(), &plan).unwrap();
        generate(two.path(), &plan).unwrap();
        for file in &plan.files {
            let bytes = fs::read(one.path().join(&file.path)).unwrap();
            assert_eq!(bytes.len() as u64, file.size_bytes, "{}", file.path);
            assert!(bytes == fs::read(two.path().join(&file.path)).unwrap(), "{}", file.path);
        }
    }

    #[test]
    fn a_large_file_is_written_in_slices() {
        let file = |path: &str, content| File { path: path.into(), size_bytes: 17 << 20, content };
        let files = vec![file("a", Content::Text), file("b", Content::Binary)];
        let plan = Plan { dirs: Vec::new(), files, seed: 3 };
        let dir = tempfile::tempdir().unwrap();
        generate(dir.path(), &plan).unwrap();
        let text = fs::read(dir.path().join("a")).unwrap();
        assert!(text.len() == 17 << 20 && text.is_ascii());
        assert_ne!(text[..4096], text[SLICE_BYTES..SLICE_BYTES + 4096], "slices differ");
        assert_eq!(fs::metadata(dir.path().join("b")).unwrap().len(), 17 << 20);
    }

    #[test]
    fn the_first_error_ends_the_work() {
        let error = in_parallel(1000, |at| if at == 5 { Err(anyhow!("five")) } else { Ok(()) });
        assert_eq!(error.unwrap_err().to_string(), "five");
    }
}
