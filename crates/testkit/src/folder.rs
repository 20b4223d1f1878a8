//! Folders as a whole: what files are in one, and a copy of one.

use std::path::{Path, PathBuf};
use std::process::Command;

/// All files below a folder, at any depth; none where it cannot be listed. Links are not followed.
#[must_use]
pub fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut waiting = vec![dir.to_owned()];
    let mut found = Vec::new();
    while let Some(dir) = waiting.pop() {
        let Ok(entries) = std::fs::read_dir(&dir) else { continue };
        for entry in entries.flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => waiting.push(entry.path()),
                Ok(kind) if kind.is_file() => found.push(entry.path()),
                _ => {}
            }
        }
    }
    found
}

/// Copies a folder, or a file, as it is: with times, modes, owners, links and holes. What is at `to` already gets it
/// within.
///
/// # Panics
///
/// If it cannot be copied as a whole.
pub fn copy_folder(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status();
    assert!(copied.is_ok_and(|status| status.success()), "{} is not copied", from.display());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_the_files_of_the_folder_at_any_depth() {
        let home = tempfile::tempdir().unwrap();
        let (from, to) = (home.path().join("from"), home.path().join("to"));
        std::fs::create_dir_all(from.join("a/b")).unwrap();
        std::fs::write(from.join("a/b/file"), "file").unwrap();
        std::os::unix::fs::symlink("a", from.join("link")).unwrap();
        copy_folder(&from, &to);
        assert_eq!(files_below(&to), [to.join("a/b/file")]);
        assert!(to.join("link").is_symlink());
        assert_eq!(files_below(&home.path().join("none")), Vec::<PathBuf>::new());
    }
}
