//! A set of `config.toml`: what is backed up together, when, and by which options of `holdall backup`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::folders::below_home;
use super::time_span::TimeSpan;
use crate::exit::Refusal;

/// A set, as `[sets.NAME]` describes it. Options are those of `holdall backup`, by their own names with `_` for `-`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Set {
    /// What to back up: absolute paths, or such that begin with `~/`.
    pub(crate) paths: Vec<PathBuf>,
    /// In place of paths: a command and its arguments, whose output is backed up as one file, as `--stdin-from-command`.
    pub(crate) command: Vec<String>,
    /// What that file is called.
    pub(crate) name: Option<String>,
    /// A name of `[repositories]`, or as `-r` [default: the default repository].
    pub(crate) repository: Option<String>,
    /// When the agent runs it, as `OnCalendar=` of systemd, or `never` [default: `hourly`].
    pub(crate) schedule: Option<String>,
    /// Commands that run around the backup.
    pub(crate) hooks: Hooks,
    /// As `--exclude`.
    pub(crate) exclude: Vec<String>,
    /// As `--iexclude`.
    pub(crate) iexclude: Vec<String>,
    /// As `--exclude-file`.
    pub(crate) exclude_file: Vec<PathBuf>,
    /// As `--exclude-caches`.
    pub(crate) exclude_caches: bool,
    /// As `--exclude-if-present`.
    pub(crate) exclude_if_present: Vec<String>,
    /// As `--exclude-larger-than`.
    pub(crate) exclude_larger_than: Option<String>,
    /// As `--one-file-system`.
    pub(crate) one_file_system: bool,
    /// As `--use-fs-snapshot`.
    pub(crate) use_fs_snapshot: bool,
    /// As `--files-from`.
    pub(crate) files_from: Vec<PathBuf>,
    /// As `--tag`.
    pub(crate) tag: Vec<String>,
    /// As `--host`.
    pub(crate) host: Option<String>,
    /// As `--as`, each `OLD=NEW`.
    pub(crate) r#as: Vec<String>,
    /// As `--accept-empty`.
    pub(crate) accept_empty: Vec<PathBuf>,
    /// As `--read-all`.
    pub(crate) read_all: bool,
    /// As `--no-self-check`.
    pub(crate) no_self_check: bool,
    /// As `--retry-for`.
    pub(crate) retry_for: Option<String>,
    /// As `--limit-upload`.
    pub(crate) limit_upload: Option<String>,
    /// As `--bind`.
    pub(crate) bind: Vec<String>,
    /// As `--streams`.
    pub(crate) streams: Option<u8>,
}

/// Commands of `/bin/sh -c` that run around the backup of a set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Hooks {
    /// Before the backup. If it fails, there is none.
    pub(crate) before: Option<String>,
    /// After a backup that made a snapshot.
    pub(crate) after: Option<String>,
    /// After one that failed, or a hook before it that did.
    pub(crate) failed: Option<String>,
    /// In any case, last.
    pub(crate) finally: Option<String>,
    /// A hook that takes longer is ended and counts as failed [default: no limit].
    pub(crate) timeout: Option<TimeSpan>,
}

/// What a set backs up.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Source<'a> {
    /// Paths, and lists of paths.
    Paths(&'a [PathBuf]),
    /// The output of a command, as a file of that name.
    Command { name: &'a str, command: &'a [String] },
}

impl Set {
    /// What it backs up.
    ///
    /// # Errors
    /// The key that is wrong, and what is wrong with it.
    pub(crate) fn source(&self) -> Result<Source<'_>, (&'static str, String)> {
        match (&self.command[..], &self.name) {
            ([], Some(_)) => Err(("name", "it is what the output of a `command` is called".into())),
            ([], None) if self.paths.is_empty() && self.files_from.is_empty() => Err((
                "",
                "it says neither `paths` nor a `command`, so that it backs nothing up".into(),
            )),
            ([], None) => Ok(Source::Paths(&self.paths)),
            ([program, ..], _) if program.is_empty() => {
                Err(("command", "its first word is the program, and is empty".into()))
            }
            (_, _) if !self.paths.is_empty() || !self.files_from.is_empty() => {
                Err(("command", "it is in place of paths: make a set of its own for it".into()))
            }
            (_, None) => Err((
                "command",
                "say with `name` what its output is called, such as \"shop.dump\"".into(),
            )),
            (command, Some(name)) => Ok(Source::Command { name, command }),
        }
    }

    /// A length of time by which it cannot be meant, by its key, and why.
    pub(crate) fn bad_length(&self) -> Option<(&'static str, String)> {
        let has_no_unit = |text: &&str| text.ends_with(|end: char| end.is_ascii_digit());
        if let Some(text) = self.retry_for.as_deref().filter(has_no_unit) {
            let reason = format!("it has no unit: {text}s is seconds, {text}m minutes");
            return Some(("retry_for", reason));
        }
        let is_zero = self.hooks.timeout.is_some_and(|limit| limit.0.is_zero());
        let reason = "each hook would be ended at once: without a timeout, there is no limit";
        is_zero.then(|| ("hooks.timeout", reason.to_owned()))
    }

    /// The first of its paths that is not absolute, by its key.
    pub(crate) fn relative_path(&self) -> Option<(&'static str, &Path)> {
        let all = [
            ("paths", &self.paths),
            ("exclude_file", &self.exclude_file),
            ("files_from", &self.files_from),
            ("accept_empty", &self.accept_empty),
        ];
        let mut all =
            all.into_iter().flat_map(|(key, paths)| paths.iter().map(move |path| (key, &**path)));
        all.find(|(_, path)| !path.is_absolute())
    }

    /// With the home folder in the place of each `~`.
    ///
    /// # Errors
    /// As for [`below_home`].
    pub(super) fn below_home(mut self) -> Result<Self, Refusal> {
        let lists =
            [&mut self.paths, &mut self.exclude_file, &mut self.files_from, &mut self.accept_empty];
        for path in lists.into_iter().flatten() {
            *path = below_home(path)?;
        }
        for pattern in self.exclude.iter_mut().chain(&mut self.iexclude) {
            if let Ok(below) = below_home(Path::new(&*pattern))?.into_os_string().into_string() {
                *pattern = below;
            }
        }
        Ok(self)
    }

    /// What would be typed behind `holdall backup` for it. A set that is wrong backs up nothing.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let mut line = Line::default();
        line.each("exclude", &self.exclude);
        line.each("iexclude", &self.iexclude);
        line.each("exclude-file", &self.exclude_file);
        line.flag("exclude-caches", self.exclude_caches);
        line.each("exclude-if-present", &self.exclude_if_present);
        line.each("exclude-larger-than", &self.exclude_larger_than);
        line.flag("one-file-system", self.one_file_system);
        line.flag("use-fs-snapshot", self.use_fs_snapshot);
        line.each("files-from", &self.files_from);
        line.each("tag", &self.tag);
        line.each("host", &self.host);
        line.each("as", &self.r#as);
        line.each("accept-empty", &self.accept_empty);
        line.flag("read-all", self.read_all);
        line.flag("no-self-check", self.no_self_check);
        line.each("retry-for", &self.retry_for);
        line.each("limit-upload", &self.limit_upload);
        line.each("bind", &self.bind);
        line.each("streams", self.streams.map(|streams| streams.to_string()));
        match self.source() {
            Ok(Source::Paths(paths)) => line.last(paths),
            Ok(Source::Command { name, command }) => {
                line.each("stdin-from-command", [name]);
                line.last(command);
            }
            Err(_) => {}
        }
        line.0
    }
}

/// A command line that is being written.
#[derive(Default)]
struct Line(Vec<OsString>);

impl Line {
    fn flag(&mut self, option: &str, is_set: bool) {
        if is_set {
            self.0.push(format!("--{option}").into());
        }
    }

    /// An option once for each of its values.
    fn each(&mut self, option: &str, values: impl IntoIterator<Item = impl Into<OsString>>) {
        for value in values {
            let mut word = OsString::from(format!("--{option}="));
            word.push(value.into());
            self.0.push(word);
        }
    }

    /// What is no option, though it may look like one.
    fn last(&mut self, words: &[impl Into<OsString> + Clone]) {
        self.0.push("--".into());
        self.0.extend(words.iter().cloned().map(Into::into));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_what_would_be_typed_for_it() {
        let words = |text: &str| {
            let set: Set = toml::from_str(text).unwrap();
            let words = set.arguments().into_iter().map(|word| word.into_string().unwrap());
            words.collect::<Vec<_>>().join(" ")
        };
        let paths = "paths = [\"/a\", \"-b\"]\nexclude = [\"*.o\", \"-x\"]\nexclude_caches = true\nstreams = 2";
        assert_eq!(
            words(paths),
            "--exclude=*.o --exclude=-x --exclude-caches --streams=2 -- /a -b"
        );
        let command =
            "name = \"shop.dump\"\ncommand = [\"pg_dump\", \"-Fc\", \"shop\"]\ntag = [\"db\"]";
        assert_eq!(words(command), "--tag=db --stdin-from-command=shop.dump -- pg_dump -Fc shop");
    }

    #[test]
    fn home_is_put_where_no_shell_does() {
        let set: Set =
            toml::from_str("paths = [\"~/a\", \"/b\"]\nexclude = [\"~/c\", \"*~\"]").unwrap();
        let home = below_home(Path::new("~")).unwrap();
        let set = set.below_home().unwrap();
        assert_eq!(set.paths, [home.join("a"), "/b".into()]);
        assert_eq!(set.exclude, [home.join("c").to_str().unwrap(), "*~"]);
    }
}
