//! Finding a file of which a test knows the kind, and not the number.

use std::path::{Path, PathBuf};

/// The one file in `dir` whose name begins and ends so.
///
/// # Panics
///
/// If there is none, or another one.
#[must_use]
#[expect(clippy::panic, reason = "a test that looks for a file needs it")]
pub fn only_file(dir: &Path, begins: &str, ends: &str) -> PathBuf {
    let names = std::fs::read_dir(dir).map(|entries| entries.flatten().map(|entry| entry.path()));
    let mut found: Vec<_> = names.into_iter().flatten().collect();
    found.retain(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with(begins) && name.ends_with(ends)
    });
    match &found[..] {
        [one] => one.clone(),
        _ => panic!("{begins}*{ends} in {}: {found:?}", dir.display()),
    }
}
