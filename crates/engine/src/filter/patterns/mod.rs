//! gitignore patterns: which paths below a directory they leave out or take back in.
//!
//! Names are bytes, as the system has them, and so are patterns. What git's documentation says of
//! them holds; a random test holds it against git itself. One thing that git does and does not say is
//! not done: where letters stand before a `**` in one component (`foo**/bar`), git takes the rest as
//! if it began the pattern; here the stars are one `*`, as documented.

mod glob;

use std::sync::atomic::{AtomicBool, Ordering};

/// The longest pattern, in bytes.
const PATTERN_MAX_BYTES: usize = 4096;

/// A pattern that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("pattern {pattern:?}: {reason}")]
pub struct PatternError {
    /// As it was given.
    pub pattern: String,
    /// What is wrong with it.
    pub reason: String,
}

/// Which of some rules met something so far.
#[derive(Debug, Default)]
pub struct Met(Vec<AtomicBool>);

impl Met {
    /// None of so many.
    pub fn none_of(len: usize) -> Self {
        Self((0..len).map(|_| AtomicBool::new(false)).collect())
    }

    pub(crate) fn note(&self, at: usize) {
        self.0.get(at).into_iter().for_each(|met| met.store(true, Ordering::Relaxed));
    }

    pub(crate) fn has(&self, at: usize) -> bool {
        self.0.get(at).is_some_and(|met| met.load(Ordering::Relaxed))
    }
}

/// Patterns for the paths below one directory. Of those that match a path, the last one counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Patterns {
    /// Ends in `/`.
    base: Vec<u8>,
    patterns: Vec<Pattern>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Pattern {
    /// As it was given.
    text: Box<[u8]>,
    takes_back: bool,
    dirs_only: bool,
    any_case: bool,
    /// A single component without a `/` before it matches names at any depth.
    any_depth: bool,
    components: Vec<Component>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Component {
    /// `**`, or more stars: any number of names; at the end, at least one.
    AnyNumber,
    Literal(Box<[u8]>),
    /// A `*` before something literal.
    EndsWith(Box<[u8]>),
    Glob(Box<[u8]>),
}

/// What the pattern says that counts for a path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Decision<'a> {
    /// Whether the path is left out, and not taken back in.
    pub(crate) leaves_out: bool,
    text: &'a [u8],
}

impl Decision<'_> {
    /// The pattern as it was given.
    pub(crate) fn pattern(&self) -> String {
        String::from_utf8_lossy(self.text).into_owned()
    }
}

impl Patterns {
    /// None yet, for paths below the directory at absolute path `base`.
    pub fn below(base: &[u8]) -> Self {
        let slash: &[u8] = if base.ends_with(b"/") { b"" } else { b"/" };
        Self { base: [base, slash].concat(), patterns: Vec::new() }
    }

    /// Adds one pattern, as a line of a file has it: comments and empty lines add nothing.
    /// `any_case` takes upper and lower case of ASCII letters as equal.
    ///
    /// # Errors
    /// [`PatternError`]; then nothing was added.
    pub fn add(&mut self, line: &[u8], any_case: bool) -> Result<(), PatternError> {
        if line.starts_with(b"#") {
            return Ok(());
        }
        let text = without_trailing_blanks(line);
        let pattern = Pattern::read(text, any_case).map_err(|reason| PatternError {
            pattern: String::from_utf8_lossy(text).into_owned(),
            reason: reason.to_owned(),
        })?;
        let text = text.into();
        self.patterns.extend(pattern.map(|pattern| Pattern { text, ..pattern }));
        Ok(())
    }

    /// Adds all lines of a file, and returns those that cannot be read with their numbers, from 1.
    pub fn add_file(&mut self, text: &[u8], any_case: bool) -> Vec<(usize, PatternError)> {
        let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
        let lines = text.split(|&byte| byte == b'\n').enumerate();
        let lines = lines.map(|(at, line)| (at + 1, line.strip_suffix(b"\r").unwrap_or(line)));
        lines.filter_map(|(at, line)| Some((at, self.add(line, any_case).err()?))).collect()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.patterns.len()
    }

    /// The first one that can match nothing, as no path has such a name.
    pub fn idle(&self) -> Option<&[u8]> {
        let names: [&[u8]; 3] = [b"", b".", b".."];
        let is_none = |component: &Component| match component {
            Component::Literal(literal) => names.contains(&&literal[..]),
            _ => false,
        };
        let idle = self.patterns.iter().find(|pattern| pattern.components.iter().any(is_none));
        idle.map(|pattern| &pattern.text[..])
    }

    /// The pattern that means exactly this absolute path.
    pub fn literal(path: &str) -> String {
        let is_special = |letter| "*?[]!\\# ".contains(letter);
        let escape = |letter| is_special(letter).then_some('\\').into_iter().chain([letter]);
        path.chars().flat_map(escape).collect()
    }

    /// Those that leave something out and begin at the directory: each as it was given, and the absolute path with
    /// which all that it matches begins.
    pub fn anchored(&self) -> impl Iterator<Item = (&[u8], Vec<u8>)> {
        let anchored = self.patterns.iter().filter(|pattern| !pattern.any_depth);
        anchored.filter(|pattern| !pattern.takes_back).map(|pattern| {
            let literals = pattern.components.iter().map_while(|component| match component {
                Component::Literal(literal) => Some(&literal[..]),
                _ => None,
            });
            let below = literals.collect::<Vec<_>>().join(&b'/');
            (&pattern.text[..], [&self.base[..], &below].concat())
        })
    }

    /// As [`Self::says`], and notes in `met` which of them match the path, whichever of them counts.
    pub fn says_noting(&self, path: &[u8], is_dir: bool, met: &Met) -> Option<bool> {
        self.decide_noting(path, is_dir, met).map(|decision| decision.leaves_out)
    }

    /// The same with the pattern that counts.
    pub(crate) fn decide_noting(
        &self,
        path: &[u8],
        is_dir: bool,
        met: &Met,
    ) -> Option<Decision<'_>> {
        let below = path.strip_prefix(&self.base[..]).filter(|below| !below.is_empty())?;
        let names: Vec<&[u8]> = below.split(|&byte| byte == b'/').collect();
        let mut decision = None;
        for (pattern, met) in self.patterns.iter().zip(&met.0).rev() {
            let is_asked = decision.is_none() || !met.load(Ordering::Relaxed);
            if is_asked && pattern.matches(&names, is_dir) {
                met.store(true, Ordering::Relaxed);
                decision = decision.or(Some(pattern.decision()));
            }
        }
        decision
    }

    /// Those, as they were given, that leave something out and met nothing.
    pub fn unmet(&self, met: &Met) -> Vec<&[u8]> {
        let patterns = self.patterns.iter().enumerate();
        let unmet = patterns.filter(|(at, pattern)| !pattern.takes_back && !met.has(*at));
        unmet.map(|(_, pattern)| &pattern.text[..]).collect()
    }

    /// `Some(true)` if the last pattern that matches an absolute path leaves it out, `Some(false)` if
    /// it takes it back in, `None` if none matches it.
    pub fn says(&self, path: &[u8], is_dir: bool) -> Option<bool> {
        self.decide(path, is_dir).map(|decision| decision.leaves_out)
    }

    /// The same with the pattern that counts.
    pub(crate) fn decide(&self, path: &[u8], is_dir: bool) -> Option<Decision<'_>> {
        let below = path.strip_prefix(&self.base[..]).filter(|below| !below.is_empty())?;
        let names: Vec<&[u8]> = below.split(|&byte| byte == b'/').collect();
        self.patterns
            .iter()
            .rev()
            .find(|pattern| pattern.matches(&names, is_dir))
            .map(Pattern::decision)
    }

    /// The same for a path and, where nothing matches it, for the directories above it.
    pub fn says_with_parents(&self, path: &[u8], is_dir: bool) -> Option<bool> {
        with_parents(path, is_dir, |path, is_dir| self.says(path, is_dir))
    }

    /// The same, and notes in `met` which of them match, as [`Self::says_noting`].
    pub fn says_noting_with_parents(&self, path: &[u8], is_dir: bool, met: &Met) -> Option<bool> {
        with_parents(path, is_dir, |path, is_dir| self.says_noting(path, is_dir, met))
    }
}

/// What is said of a path or, where that is nothing, of the nearest directory above it.
fn with_parents(
    path: &[u8],
    is_dir: bool,
    says: impl Fn(&[u8], bool) -> Option<bool>,
) -> Option<bool> {
    let ends = path.iter().enumerate().rev().filter(|(_, byte)| **byte == b'/');
    let mut above = ends.filter_map(|(end, _)| path.get(..end));
    says(path, is_dir).or_else(|| above.find_map(|path| says(path, true)))
}

impl Pattern {
    /// Reads a pattern; nothing for an empty one.
    fn read(text: &[u8], any_case: bool) -> Result<Option<Self>, &'static str> {
        if text.len() > PATTERN_MAX_BYTES {
            return Err("it is longer than 4096 bytes");
        }
        if text.contains(&0) {
            return Err("it has a zero byte");
        }
        let (takes_back, text) = match text.strip_prefix(b"!") {
            Some(text) => (true, text),
            None => (false, text),
        };
        let (dirs_only, text) = match text.strip_suffix(b"/") {
            Some(text) => (true, text),
            None => (false, text),
        };
        if text.is_empty() {
            return Ok(None);
        }
        let any_depth = !text.contains(&b'/');
        let components = split(text.strip_prefix(b"/").unwrap_or(text))?;
        let components = components.into_iter().map(|text| Component::new(text, any_depth));
        let components = components.collect::<Result<_, _>>()?;
        let text = Box::default();
        Ok(Some(Self { text, takes_back, dirs_only, any_case, any_depth, components }))
    }

    fn decision(&self) -> Decision<'_> {
        Decision { leaves_out: !self.takes_back, text: &self.text }
    }

    fn matches(&self, names: &[&[u8]], is_dir: bool) -> bool {
        if self.dirs_only && !is_dir {
            return false;
        }
        match (self.any_depth, &self.components[..], names) {
            (true, [component], [.., name]) => component.matches(name, self.any_case),
            _ => self.matches_all(names),
        }
    }

    /// As for one name, only that components stand for letters and `**` for `*`.
    fn matches_all(&self, names: &[&[u8]]) -> bool {
        let (mut at, mut done) = (0, 0);
        let mut stars: Option<(usize, usize)> = None;
        loop {
            let matched = match (self.components.get(at), names.get(done)) {
                (None, None) => return true,
                (Some(Component::AnyNumber), name) => {
                    at += 1;
                    if at == self.components.len() {
                        return name.is_some();
                    }
                    stars = Some((at, done));
                    continue;
                }
                (Some(component), Some(name)) => component.matches(name, self.any_case),
                _ => false,
            };
            if matched {
                (at, done) = (at + 1, done + 1);
                continue;
            }
            match stars {
                Some((after, took)) if took < names.len() => {
                    (at, done) = (after, took + 1);
                    stars = Some((after, took + 1));
                }
                _ => return false,
            }
        }
    }
}

impl Component {
    fn new(text: Vec<u8>, alone: bool) -> Result<Self, &'static str> {
        glob::check(&text)?;
        let special = |text: &[u8]| text.iter().any(|byte| b"*?[\\".contains(byte));
        Ok(match text.strip_prefix(b"*") {
            // Without a `/` in the pattern it is one name, as `*` is.
            Some(more @ [b'*', ..]) if !alone && more.iter().all(|&b| b == b'*') => Self::AnyNumber,
            Some(end) if !special(end) => Self::EndsWith(end.into()),
            None if !special(&text) => Self::Literal(text.into()),
            _ => Self::Glob(text.into()),
        })
    }

    fn matches(&self, name: &[u8], any_case: bool) -> bool {
        let same = |left: &[u8], right: &[u8]| match any_case {
            true => left.eq_ignore_ascii_case(right),
            false => left == right,
        };
        match self {
            Self::AnyNumber => true,
            Self::Literal(literal) => same(literal, name),
            Self::EndsWith(end) => {
                let start = name.len().checked_sub(end.len());
                start.and_then(|start| name.get(start..)).is_some_and(|name| same(end, name))
            }
            Self::Glob(pattern) => glob::matches(pattern, name, any_case),
        }
    }
}

/// Splits at each `/`, escaped or not, that is in no class.
fn split(text: &[u8]) -> Result<Vec<Vec<u8>>, &'static str> {
    let mut components = vec![Vec::new()];
    let mut rest = text;
    while !rest.is_empty() {
        let (element, after) = rest.split_at(glob::element_len(rest)?.min(rest.len()));
        match (element, components.last_mut()) {
            (b"/" | b"\\/", _) => components.push(Vec::new()),
            (element, Some(last)) => last.extend_from_slice(element),
            (_, None) => {}
        }
        rest = after;
    }
    Ok(components)
}

/// Takes away blanks at the end, unless a `\` stands before them.
fn without_trailing_blanks(line: &[u8]) -> &[u8] {
    let mut end = 0;
    let mut at = 0;
    while let Some(byte) = line.get(at) {
        at += if *byte == b'\\' { 2 } else { 1 };
        if *byte != b' ' {
            end = at;
        }
    }
    line.get(..end).unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the patterns, one a line, say of a path below `/base`.
    fn says(patterns: &str, path: &str) -> Option<bool> {
        let mut read = Patterns::below(b"/base");
        assert_eq!(read.add_file(patterns.as_bytes(), false), []);
        let (path, is_dir) = path.strip_suffix('/').map_or((path, false), |path| (path, true));
        read.says(format!("/base/{path}").as_bytes(), is_dir)
    }

    #[test]
    fn a_literal_pattern_means_its_path_and_no_other() {
        let path = "/home/a b/[x]*!/holdall-try-1";
        let mut patterns = Patterns::below(b"/");
        patterns.add(Patterns::literal(path).as_bytes(), false).unwrap();
        let says = |path: &str| patterns.says(path.as_bytes(), true);
        assert_eq!(says(path), Some(true));
        assert_eq!(says("/home/a b/xy!/holdall-try-1"), None);
    }

    #[test]
    fn what_met_nothing_is_known_and_what_another_pattern_decided_met_something() {
        let mut patterns = Patterns::below(b"/");
        patterns.add_file(b"*.tmp\nx*\n/a/b/*.c\n!keep", false);
        let met = Met::none_of(patterns.len());
        assert_eq!(patterns.says_noting(b"/x.tmp", false, &met), Some(true));
        assert_eq!(patterns.unmet(&met), [&b"/a/b/*.c"[..]]);
        assert_eq!(patterns.anchored().collect::<Vec<_>>(), [(&b"/a/b/*.c"[..], b"/a/b".to_vec())]);
        assert_eq!(patterns.idle(), None);
        for idle in ["./a", "a/../b", "a//b", "/a/./"] {
            let mut patterns = Patterns::below(b"/");
            patterns.add(idle.as_bytes(), false).unwrap();
            assert_eq!(patterns.idle(), Some(idle.as_bytes()), "{idle}");
        }
    }

    #[test]
    fn patterns_are_read_as_git_reads_them() {
        assert_eq!(says("*.o\n!keep.o", "a/x.o"), Some(true));
        assert_eq!(says("*.o\n!keep.o", "a/keep.o"), Some(false));
        assert_eq!((says("/var", "var"), says("/var", "a/var")), (Some(true), None));
        assert_eq!((says("build/", "a/build/"), says("build/", "build")), (Some(true), None));
        assert_eq!((says("a/b", "a/b"), says("a/b", "x/a/b")), (Some(true), None));
        assert_eq!((says("a/**", "a/"), says("a/**", "a/b/c")), (None, Some(true)));
        assert_eq!((says("a/**/b", "a/b"), says("a/**/b", "a/x/y/b")), (Some(true), Some(true)));
        assert_eq!((says("/***/b", "b"), says("/***/b", "a/x/b")), (Some(true), Some(true)));
        assert_eq!((says("**/b", "b"), says("**/b/c", "a/b/c")), (Some(true), Some(true)));
        assert_eq!((says("{a,b}", "a"), says("{a,b}", "{a,b}")), (None, Some(true)));
        assert_eq!((says("a  ", "a"), says("a\\ ", "a "), says("# a", "# a")), {
            (Some(true), Some(true), None)
        });
        assert_eq!((says("\\#a\r\n", "#a"), says("\\!a", "!a")), (Some(true), Some(true)));
        assert_eq!((says("/\n!\n\n  \n", "a/"), says("a/*", "a/b/c")), (None, None));
    }

    #[test]
    fn stars_behind_letters_are_one_star() {
        // git matches the first two as well, against its own documentation.
        assert_eq!((says("foo**/bar", "foobar"), says("foo**/bar", "foo/x/bar")), (None, None));
        assert_eq!(says("foo**/bar", "foox/bar"), Some(true));
    }

    #[test]
    fn a_class_that_holds_a_slash_does_not_end_there() {
        assert_eq!((says("/a[b/]c", "abc"), says("/a[b/]c", "a/c")), (Some(true), None));
        assert_eq!(says("a\\/b", "a/b"), Some(true));
    }

    #[test]
    fn lines_that_can_not_be_read_are_named_and_the_others_count() {
        let mut patterns = Patterns::below(b"/");
        let text = [b"[z\n*.o\n", &[b'x'; 5000][..], b"\n\xff\n\\"].concat();
        let bad = patterns.add_file(&text, false);
        assert_eq!(bad.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 3, 5]);
        assert_eq!(bad[0].1.to_string(), "pattern \"[z\": a [ has no ]");
        assert_eq!(patterns.says(b"/x.o", false), Some(true));
        assert_eq!(patterns.says(b"/a/\xff", false), Some(true));
    }

    #[test]
    fn many_stars_take_little_time() {
        let mut patterns = Patterns::below(b"/");
        patterns.add(&[&b"**/a/".repeat(500)[..], b"b"].concat(), false).unwrap();
        assert_eq!(patterns.says(&b"/a".repeat(2000), false), None);
    }

    #[test]
    fn what_is_below_a_match_is_known_by_its_parents() {
        let mut patterns = Patterns::below(b"/");
        patterns.add(b"/home/ada", false).unwrap();
        assert_eq!(patterns.says_with_parents(b"/home/ada/x/y", false), Some(true));
        assert_eq!(patterns.says_with_parents(b"/home/bob", false), None);
    }
}
