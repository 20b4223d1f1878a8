//! Which paths are left out: gitignore patterns, `.holdallignore` files, caches and marked
//! directories.

use std::cmp::Ordering;
use std::fs::File;
use std::io::{self, Read};

use holdall_sys::{Dir, FileKind, Listing, Name};

use crate::filter::patterns::Decision;
use crate::{Met, Patterns};

const IGNORE_FILE: &[u8] = b".holdallignore";
const CACHE_TAG_FILE: &[u8] = b"CACHEDIR.TAG";
const CACHE_TAG: &[u8] = b"Signature: 8a477f597d28d172789f06886806bc55";
const IGNORE_FILE_MAX_BYTES: u64 = 1 << 20;

/// What to leave out everywhere.
#[derive(Debug, Clone, Default)]
pub struct ExcludeRules {
    /// Of absolute paths as they are recorded; what they say counts more than any `.holdallignore`.
    pub patterns: Patterns,
    /// Whether to leave out the content of directories tagged as caches.
    pub caches: bool,
    /// Names of files whose presence leaves out the content of their directory.
    pub if_present: Vec<Vec<u8>>,
    /// Files with more bytes are left out, unless they are sources themselves.
    pub larger_than_bytes: Option<u64>,
}

impl ExcludeRules {
    /// The rule that leaves out the content of a directory, as it was given, if one does; the directory's own entry
    /// stays.
    pub(crate) fn excluding_content(&self, dir: &Dir, met: &RulesMet) -> Option<String> {
        let mut mark = None;
        for (at, name) in self.if_present.iter().enumerate() {
            if Name::new(name).is_ok_and(|name| dir.stat(name).is_ok()) {
                met.marks.note(at);
                mark = mark.or(Some(name));
            }
        }
        let is_cache = || (self.caches && is_cache(dir)).then(|| "--exclude-caches".to_owned());
        mark.map(|name| mark_as_given(name)).or_else(is_cache)
    }

    /// Those that met nothing, as they were given.
    pub(crate) fn unmet(&self, met: &RulesMet) -> Vec<String> {
        let patterns = self.patterns.unmet(&met.patterns).into_iter();
        let patterns = patterns.map(|text| String::from_utf8_lossy(text).into_owned());
        let marks = self.if_present.iter().enumerate().filter(|(at, _)| !met.marks.has(*at));
        patterns.chain(marks.map(|(_, name)| mark_as_given(name))).collect()
    }

    /// Whether a directory with these names may have rules or a mark of its own.
    pub(crate) fn may_be_ruled_within(&self, names: &Listing) -> bool {
        LocalRules::is_in(names)
            || (self.caches && has_name(names, CACHE_TAG_FILE))
            || self.if_present.iter().any(|name| has_name(names, name))
    }
}

/// The rule that leaves out the content of what holds that name.
fn mark_as_given(name: &[u8]) -> String {
    format!("--exclude-if-present {}", String::from_utf8_lossy(name))
}

/// Which of the rules met something.
pub(crate) struct RulesMet {
    pub(crate) patterns: Met,
    marks: Met,
}

impl RulesMet {
    pub(crate) fn none_of(rules: &ExcludeRules) -> Self {
        let [patterns, marks] = [rules.patterns.len(), rules.if_present.len()].map(Met::none_of);
        Self { patterns, marks }
    }
}

/// Whether one of these names, which are in order, is that.
pub(crate) fn has_name(names: &Listing, wanted: &[u8]) -> bool {
    let (mut low, mut high) = (0, names.len());
    while low < high {
        let middle = low + (high - low) / 2;
        let Some(entry) = names.get(middle) else { return false };
        match entry.name().as_bytes().cmp(wanted) {
            Ordering::Equal => return true,
            Ordering::Less => low = middle + 1,
            Ordering::Greater => high = middle,
        }
    }
    false
}

fn is_cache(dir: &Dir) -> bool {
    let Ok(name) = Name::new(CACHE_TAG_FILE) else { return false };
    let Ok((mut file, _)) = dir.open_file(name) else { return false };
    let mut start = [0; CACHE_TAG.len()];
    file.read_exact(&mut start).is_ok() && start == CACHE_TAG
}

/// The rules of one directory's `.holdallignore`.
#[derive(Debug)]
pub(crate) struct LocalRules(Patterns);

impl LocalRules {
    /// Whether a directory with these names has a `.holdallignore`.
    pub(crate) fn is_in(names: &Listing) -> bool {
        has_name(names, IGNORE_FILE)
    }

    /// Whether the `.holdallignore` in a directory looks like rules and is none, such as a link to a file of rules.
    pub(crate) fn is_no_file(dir: &Dir) -> bool {
        let found = Name::new(IGNORE_FILE).ok().and_then(|name| dir.stat(name).ok());
        found.is_some_and(|stat| !matches!(stat.kind, FileKind::File | FileKind::Dir))
    }

    /// Reads the `.holdallignore` in the directory at absolute `path`, if there is a file of that
    /// name. What cannot be read of it is given back, line by line; the rest counts.
    pub(crate) fn read(dir: &Dir, path: &[u8]) -> Option<(Self, Vec<String>)> {
        let mut patterns = Patterns::below(path);
        let name = Name::new(IGNORE_FILE).ok()?;
        let text = match dir.open_file(name) {
            Ok((file, _)) => read_text(file),
            Err(error) => {
                // It may have vanished, or be a link or a directory: those have no lines.
                dir.stat(name).ok().filter(|stat| stat.kind == FileKind::File)?;
                Err(error)
            }
        };
        let problems = match text {
            Ok(text) => {
                let bad = patterns.add_file(&text, false).into_iter();
                bad.map(|(line, error)| format!("line {line}: {error}")).collect()
            }
            Err(error) => vec![error.to_string()],
        };
        Some((Self(patterns), problems))
    }

    /// What they say of a path, if anything.
    pub(crate) fn decide(&self, path: &[u8], is_dir: bool) -> Option<Decision<'_>> {
        self.0.decide(path, is_dir)
    }

    /// The same of what lies below a directory that they leave out, too.
    pub(crate) fn says_with_parents(&self, path: &[u8], is_dir: bool) -> Option<bool> {
        self.0.says_with_parents(path, is_dir)
    }
}

fn read_text(file: File) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    if file.take(IGNORE_FILE_MAX_BYTES + 1).read_to_end(&mut text)? as u64 > IGNORE_FILE_MAX_BYTES {
        return Err(io::Error::other("it is longer than 1 MiB, so nothing in it counts"));
    }
    Ok(text)
}
