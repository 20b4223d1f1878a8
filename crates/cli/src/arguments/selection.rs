//! Gitignore patterns over paths in a snapshot: what a restore takes, and what is looked for.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use holdall_engine::{Met, Selected};

use crate::exit::{Exit, Refusal};
use crate::terminal::output::Shown;

/// What to do about a pattern that cannot be read.
pub(crate) const PATTERN_HINT: &str =
    "patterns are those of .gitignore; a \\ before a letter takes it as it is";

/// Which paths are wanted, and which of the patterns met something.
#[derive(Debug)]
pub(crate) struct Patterns {
    includes: holdall_engine::Patterns,
    excludes: holdall_engine::Patterns,
    included: Met,
    excluded: Met,
}

impl Patterns {
    /// What matches an exclude is not wanted; where there are includes, only what matches one, or
    /// lies below it, is.
    ///
    /// # Errors
    /// [`Refusal`] names a pattern that cannot be read, or can match nothing.
    pub(crate) fn new(includes: &[OsString], excludes: &[OsString]) -> Result<Self, Refusal> {
        if !includes.is_empty() && includes.iter().all(|one| one.as_bytes().starts_with(b"!")) {
            let message = "--include takes nothing where all of them begin with !";
            return Err(Refusal::new(Exit::Usage, message).hint(
                "to leave something out, say --exclude; a name that begins with ! is \\!...",
            ));
        }
        let includes = build(includes, false, "--include")?;
        let excludes = build(excludes, false, "--exclude")?;
        let [included, excluded] = [includes.len(), excludes.len()].map(Met::none_of);
        Ok(Self { includes, excludes, included, excluded })
    }

    /// Whether an entry is wanted.
    pub(crate) fn select(&self, path: &[u8], is_dir: bool) -> Selected {
        if self.excludes.says_noting(path, is_dir, &self.excluded) == Some(true) {
            return Selected::No;
        }
        let includes =
            || self.includes.says_noting_with_parents(path, is_dir, &self.included) == Some(true);
        if self.includes.is_empty() || includes() {
            return Selected::Yes;
        }
        if is_dir { Selected::Below } else { Selected::No }
    }

    /// Whether everything is wanted.
    pub(crate) fn is_empty(&self) -> bool {
        self.includes.is_empty() && self.excludes.is_empty()
    }

    /// Whether something is left out that includes may name.
    pub(crate) fn has_excludes(&self) -> bool {
        !self.excludes.is_empty()
    }

    /// Whether only what includes name is wanted.
    pub(crate) fn has_includes(&self) -> bool {
        !self.includes.is_empty()
    }

    /// Includes that met nothing.
    pub(crate) fn unmet_includes(&self) -> Vec<&[u8]> {
        self.includes.unmet(&self.included)
    }

    /// Excludes that met nothing.
    pub(crate) fn unmet_excludes(&self) -> Vec<String> {
        let unmet = self.excludes.unmet(&self.excluded).into_iter();
        unmet.map(|text| String::from_utf8_lossy(text).into_owned()).collect()
    }
}

/// Which paths are looked for.
#[derive(Debug)]
pub(crate) struct Names(holdall_engine::Patterns);

impl Names {
    /// What matches one of the patterns; where `any_case` is set, upper and lower case of ASCII
    /// letters are equal.
    ///
    /// # Errors
    /// [`Refusal`] names a pattern that cannot be read.
    pub(crate) fn new(patterns: &[OsString], any_case: bool) -> Result<Self, Refusal> {
        Ok(Self(build(patterns, any_case, "PATTERN")?))
    }

    /// Whether an entry itself matches; what lies below a match is none of itself.
    pub(crate) fn matches(&self, path: &[u8], is_dir: bool) -> bool {
        self.0.says(path, is_dir) == Some(true)
    }
}

fn build(
    patterns: &[impl AsRef<OsStr>],
    any_case: bool,
    option: &str,
) -> Result<holdall_engine::Patterns, Refusal> {
    let mut built = holdall_engine::Patterns::below(b"/");
    for pattern in patterns {
        let before = built.len();
        built
            .add(pattern.as_ref().as_bytes(), any_case)
            .map_err(|error| Refusal::new(Exit::Usage, error.to_string()).hint(PATTERN_HINT))?;
        check_added(&built, before, option)?;
    }
    check_idle(&built)?;
    Ok(built)
}

/// Refuses text that was typed as a pattern and has none in it, as that of a script's variable that is not set.
pub(crate) fn check_added(
    patterns: &holdall_engine::Patterns,
    before: usize,
    option: &str,
) -> Result<(), Refusal> {
    if patterns.len() > before {
        return Ok(());
    }
    let refusal = Refusal::new(Exit::Usage, format!("{option}: there is no pattern in it"));
    Err(refusal.hint("leave it out if nothing is meant by it"))
}

/// Refuses a pattern that can match nothing.
pub(crate) fn check_idle(patterns: &holdall_engine::Patterns) -> Result<(), Refusal> {
    let Some(idle) = patterns.idle() else { return Ok(()) };
    let message =
        format!("{} can match nothing: no path has a name that is empty, . or ..", Shown(idle));
    Err(Refusal::new(Exit::Usage, message)
        .hint("name it from / on, or leave out what stands before its first name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(includes: &[&str], excludes: &[&str]) -> Patterns {
        let owned = |list: &[&str]| list.iter().map(OsString::from).collect::<Vec<_>>();
        Patterns::new(&owned(includes), &owned(excludes)).unwrap()
    }

    #[test]
    fn without_patterns_everything_is_wanted() {
        assert!(patterns(&[], &[]).is_empty());
        assert_eq!(patterns(&[], &[]).select(b"/", true), Selected::Yes);
    }

    #[test]
    fn an_include_takes_what_it_matches_and_all_below_it() {
        let only = patterns(&["/home/ada/docs"], &["*.tmp"]);
        assert_eq!(only.select(b"/home", true), Selected::Below);
        assert_eq!(only.select(b"/home/ada/docs", true), Selected::Yes);
        assert_eq!(only.select(b"/home/ada/docs/deep/x", false), Selected::Yes);
        assert_eq!(only.select(b"/home/ada/docs/x.tmp", false), Selected::No);
        assert_eq!(only.select(b"/home/ada/other", false), Selected::No);
        let exact = [OsStr::from_bytes(b"*.\xff").to_owned()];
        let only = Patterns::new(&exact, &[]).unwrap();
        assert_eq!(only.select(b"/a.\xff", false), Selected::Yes);
        assert_eq!(only.select(b"/a.x", false), Selected::No);
    }

    #[test]
    fn a_name_is_found_by_itself_and_not_by_the_folder_it_is_in() {
        let names = |patterns: &[&str], any_case| {
            let patterns: Vec<_> = patterns.iter().map(OsString::from).collect();
            Names::new(&patterns, any_case).unwrap()
        };
        let docs = names(&["docs"], false);
        assert!(docs.matches(b"/home/docs", true) && !docs.matches(b"/home/docs/x", false));
        assert!(!docs.matches(b"/home/Docs", true));
        let any = names(&["DOCS", "/home/**/*.t?t", "!keep.txt"], true);
        assert!(any.matches(b"/home/docs", true) && any.matches(b"/home/a/b/X.TXT", false));
        assert!(!any.matches(b"/etc/x.txt", false) && !any.matches(b"/home/keep.txt", false));
        let exact = OsStr::from_bytes(b"*.\xff").to_owned();
        assert!(Names::new(&[exact], false).unwrap().matches(b"/a.\xff", false));
    }

    #[test]
    fn a_pattern_that_can_not_be_read_is_a_usage_error() {
        assert_eq!(Patterns::new(&[], &["[z-a]".into()]).unwrap_err().exit, Exit::Usage);
    }
}
