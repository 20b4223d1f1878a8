//! Which paths are left out: gitignore patterns, `.holdallignore` files, caches and marked
//! directories.

use std::cmp::Ordering;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use holdall_sys::{Dir, Listing, Name};
use ignore::gitignore::{Gitignore, GitignoreBuilder};

const IGNORE_FILE: &[u8] = b".holdallignore";
const CACHE_TAG_FILE: &[u8] = b"CACHEDIR.TAG";
const CACHE_TAG: &[u8] = b"Signature: 8a477f597d28d172789f06886806bc55";
const IGNORE_FILE_MAX_BYTES: u64 = 1 << 20;

/// A pattern that can not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("pattern {pattern:?}: {reason}")]
pub struct PatternError {
    /// As it was given.
    pub pattern: String,
    /// What is wrong with it.
    pub reason: String,
}

/// What to leave out everywhere.
#[derive(Debug, Clone)]
pub struct ExcludeRules {
    patterns: Gitignore,
    patterns_any_case: Gitignore,
    caches: bool,
    if_present: Vec<Vec<u8>>,
}

impl Default for ExcludeRules {
    fn default() -> Self {
        let none = Gitignore::empty();
        Self { patterns: none.clone(), patterns_any_case: none, caches: false, if_present: vec![] }
    }
}

impl ExcludeRules {
    /// Rules from gitignore patterns (`excludes`; `iexcludes` without regard to case), whether to
    /// leave out the content of directories tagged as caches, and names of files whose presence
    /// leaves out the content of their directory.
    ///
    /// # Errors
    /// [`PatternError`] names the first pattern that can not be read.
    pub fn new(
        excludes: &[String],
        iexcludes: &[String],
        caches: bool,
        if_present: &[String],
    ) -> Result<Self, PatternError> {
        Ok(Self {
            patterns: build(excludes, false)?,
            patterns_any_case: build(iexcludes, true)?,
            caches,
            if_present: if_present.iter().map(|name| name.as_bytes().to_vec()).collect(),
        })
    }

    /// Whether no pattern was given.
    pub(crate) fn is_empty(&self) -> bool {
        self.patterns.is_empty() && self.patterns_any_case.is_empty()
    }

    /// Whether an absolute path is left out by a pattern given by the user.
    pub(crate) fn excludes(&self, path: &[u8], is_dir: bool) -> bool {
        let path = Path::new(OsStr::from_bytes(path));
        let matched =
            |rules: &Gitignore| !rules.is_empty() && rules.matched(path, is_dir).is_ignore();
        matched(&self.patterns) || matched(&self.patterns_any_case)
    }

    /// Whether the content of a directory is left out; its own entry stays.
    pub(crate) fn excludes_content(&self, dir: &Dir) -> bool {
        (self.caches && is_cache(dir))
            || self
                .if_present
                .iter()
                .any(|name| Name::new(name).is_ok_and(|name| dir.stat(name).is_ok()))
    }
}

fn build(patterns: &[String], any_case: bool) -> Result<Gitignore, PatternError> {
    let mut builder = GitignoreBuilder::new("/");
    let refuse = |pattern: &str, error: ignore::Error| PatternError {
        pattern: pattern.to_owned(),
        reason: error.to_string(),
    };
    builder.case_insensitive(any_case).map_err(|error| refuse("", error))?;
    for pattern in patterns {
        builder.add_line(None, pattern).map_err(|error| refuse(pattern, error))?;
    }
    builder.build().map_err(|error| refuse("", error))
}

fn is_cache(dir: &Dir) -> bool {
    let Ok(name) = Name::new(CACHE_TAG_FILE) else { return false };
    let Ok((mut file, _)) = dir.open_file(name) else { return false };
    let mut start = [0; CACHE_TAG.len()];
    file.read_exact(&mut start).is_ok() && start == CACHE_TAG
}

/// The rules of one directory's `.holdallignore`.
#[derive(Debug)]
pub(crate) struct LocalRules(Gitignore);

impl LocalRules {
    /// Whether a directory with these names has a `.holdallignore`.
    pub(crate) fn is_in(names: &Listing) -> bool {
        let (mut low, mut high) = (0, names.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let Some(entry) = names.get(middle) else { return false };
            match entry.name().as_bytes().cmp(IGNORE_FILE) {
                Ordering::Equal => return true,
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
            }
        }
        false
    }

    /// Reads the `.holdallignore` in the directory at absolute `path`, if there is one. Lines that
    /// can not be read are given back.
    pub(crate) fn read(dir: &Dir, path: &[u8]) -> Option<(Self, Option<String>)> {
        let (file, _) = dir.open_file(Name::new(IGNORE_FILE).ok()?).ok()?;
        let (text, mut problem) = match read_text(file) {
            Ok(text) => (text, None),
            Err(error) => (String::new(), Some(error.to_string())),
        };
        let mut builder = GitignoreBuilder::new(OsStr::from_bytes(path));
        for line in text.lines() {
            if let Err(error) = builder.add_line(None, line) {
                problem = Some(error.to_string());
            }
        }
        Some((Self(builder.build().unwrap_or_else(|_| Gitignore::empty())), problem))
    }

    /// `Some(true)` leaves the path out, `Some(false)` takes it back in, `None` says nothing.
    pub(crate) fn says(&self, path: &[u8], is_dir: bool) -> Option<bool> {
        let matched = self.0.matched(Path::new(OsStr::from_bytes(path)), is_dir);
        (!matched.is_none()).then(|| matched.is_ignore())
    }
}

fn read_text(file: File) -> std::io::Result<String> {
    let mut text = String::new();
    file.take(IGNORE_FILE_MAX_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(patterns: &[&str]) -> ExcludeRules {
        let patterns: Vec<String> = patterns.iter().map(|text| (*text).to_owned()).collect();
        ExcludeRules::new(&patterns, &[], false, &[]).unwrap()
    }

    #[test]
    fn patterns_are_read_as_git_reads_them() {
        let rules = rules(&["*.o", "!keep.o", "/var/cache", "build/"]);
        assert!(rules.excludes(b"/home/a/x.o", false));
        assert!(!rules.excludes(b"/home/a/keep.o", false));
        assert!(rules.excludes(b"/var/cache", true));
        assert!(!rules.excludes(b"/home/var/cache", true));
        assert!(rules.excludes(b"/home/build", true) && !rules.excludes(b"/home/build", false));
    }

    #[test]
    fn a_pattern_that_can_not_be_read_is_named() {
        let error = ExcludeRules::new(&["[z-a]".to_owned()], &[], false, &[]).unwrap_err();
        assert_eq!(error.pattern, "[z-a]");
    }
}
