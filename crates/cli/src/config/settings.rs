//! `config.toml`: what is used where neither flags nor the environment say anything, and the sets that are backed up
//! by themselves.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use holdall_agent::Schedule;
use serde::Deserialize;

use super::agent::AgentSettings;
use super::document::Document;
use super::folders::{below_home, repository_below_home};
use super::set::Set;
use super::wrong::{Wrong, nearest};
use crate::exit::{Exit, Refusal};

/// What the file is called, in the folder of the configuration.
pub(crate) const FILE: &str = "config.toml";
/// The most that it may have.
const MAX_BYTES: u64 = 1 << 20;
/// The longest name of a repository or set.
const NAME_MAX_BYTES: usize = 64;
const HINT: &str = "correct the file, or move it away: everything in it can be given otherwise";

/// What `config.toml` may say. Flags and environment come before it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Settings {
    /// As `-r`, or a name of `[repositories]`.
    pub(crate) repository: Option<String>,
    /// As `--password-file`.
    pub(crate) password_file: Option<PathBuf>,
    /// As `HOLDALL_PASSWORD_COMMAND`.
    pub(crate) password_command: Option<String>,
    /// Repositories by the names that `-r` and sets may call them.
    pub(crate) repositories: BTreeMap<String, NamedRepository>,
    /// What `holdall agent` backs up, by name.
    pub(crate) sets: BTreeMap<String, Set>,
    /// When the agent holds back.
    pub(crate) agent: AgentSettings,
}

/// A repository, as `[repositories.NAME]` describes it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NamedRepository {
    /// As `-r`.
    pub(crate) repository: String,
    /// As `--password-file` [default: what is said outside of `[repositories]`].
    pub(crate) password_file: Option<PathBuf>,
    /// As `HOLDALL_PASSWORD_COMMAND` [default: what is said outside of `[repositories]`].
    pub(crate) password_command: Option<String>,
}

/// What gives a password, as far as `config.toml` says: the file comes before the command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PasswordSettings {
    pub(crate) file: Option<PathBuf>,
    pub(crate) command: Option<String>,
    /// What stands before their keys: `repositories.NAME.`, or nothing.
    pub(crate) table: String,
}

impl Settings {
    /// Reads `config.toml` in the folder `config`; without one, nothing is set.
    ///
    /// # Errors
    /// [`Refusal`] if it cannot be read, or says something that is unknown or makes no sense.
    pub(crate) fn read(config: &Path) -> Result<Self, Refusal> {
        let file = &config.join(FILE);
        Self::text(file)?.map_or_else(|| Ok(Self::default()), |text| Self::of_text(file, &text))
    }

    /// The same of what was read of `file`.
    ///
    /// # Errors
    /// [`Refusal`] if it says something that is unknown or makes no sense.
    pub(crate) fn of_text(file: &Path, text: &str) -> Result<Self, Refusal> {
        let settings = Self::parse(text).map_err(|wrong| refusal(file, &wrong))?.below_home()?;
        match settings.problems(text).first() {
            Some(wrong) => Err(refusal(file, wrong)),
            None => Ok(settings),
        }
    }

    /// What is in a `config.toml`, if it is there.
    ///
    /// # Errors
    /// [`Refusal`] if it cannot be read.
    pub(crate) fn text(file: &Path) -> Result<Option<String>, Refusal> {
        match read(file) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => {
                let message = format!("{}: {error}", file.display());
                Err(Refusal::new(Exit::Failed, message).hint(HINT))
            }
        }
    }

    /// Understands the text of a `config.toml`, as it is written there.
    ///
    /// # Errors
    /// The first thing that is not TOML, unknown, or of another type.
    pub(crate) fn parse(text: &str) -> Result<Self, Wrong> {
        toml::from_str::<Self>(text).map_err(|error| Document::explain(text, &error))
    }

    /// With the home folder in the place of each `~`: no shell reads that file.
    ///
    /// # Errors
    /// [`Refusal`] if there is none.
    pub(crate) fn below_home(self) -> Result<Self, Refusal> {
        let repository = self.repository.map(repository_below_home).transpose()?;
        let password_file = self.password_file.map(|file| below_home(&file)).transpose()?;
        let repositories = self.repositories.into_iter();
        let repositories = repositories.map(|(name, named)| Ok((name, named.below_home()?)));
        let repositories = repositories.collect::<Result<_, Refusal>>()?;
        let sets = self.sets.into_iter().map(|(name, set)| {
            let repository = set.repository.clone().map(repository_below_home).transpose()?;
            Ok((name, Set { repository, ..set.below_home()? }))
        });
        let sets = sets.collect::<Result<_, Refusal>>()?;
        Ok(Self { repository, password_file, repositories, sets, ..self })
    }

    /// Where a repository is that is named as after `-r`: by a name of `[repositories]`, or by its place.
    pub(crate) fn place_of(&self, name: &str) -> String {
        self.repositories.get(name).map_or(name, |named| &named.repository).to_owned()
    }

    /// What gives the password of a repository that is named so; of the default one, if none is named.
    pub(crate) fn password_of(&self, name: Option<&str>) -> PasswordSettings {
        let own = name.map(|name| self.own_password_of(name));
        let is_said = |own: &PasswordSettings| own.file.is_some() || own.command.is_some();
        own.filter(is_said).unwrap_or_else(|| PasswordSettings {
            file: self.password_file.clone(),
            command: self.password_command.clone(),
            table: String::new(),
        })
    }

    /// The same, without what is said outside of `[repositories]`.
    pub(crate) fn own_password_of(&self, name: &str) -> PasswordSettings {
        let named = self.repositories.get(name);
        PasswordSettings {
            file: named.and_then(|named| named.password_file.clone()),
            command: named.and_then(|named| named.password_command.clone()),
            table: format!("repositories.{name}."),
        }
    }

    /// What makes no sense although each key is known; `text` is where they were read, for the lines.
    pub(crate) fn problems(&self, text: &str) -> Vec<Wrong> {
        let Ok(document) = Document::parse(text) else { return Vec::new() };
        let mut all = Vec::new();
        let mut wrong = |key: String, reason: String| {
            all.push(Wrong { line: document.line_of(&key), key, reason });
        };
        for (name, named) in &self.repositories {
            let key = format!("repositories.{name}");
            if let Some(reason) = refused_name(name) {
                wrong(key.clone(), reason);
            }
            if !is_absolute(&named.repository) {
                let reason =
                    format!("{} is no absolute path, nor https://HOST:PORT/NAME", named.repository);
                wrong(format!("{key}.repository"), reason);
            }
        }
        for (name, set) in &self.sets {
            let key = |of: &str| match of {
                "" => format!("sets.{name}"),
                of => format!("sets.{name}.{of}"),
            };
            if let Some(reason) = refused_name(name) {
                wrong(key(""), reason);
            }
            if let Err((of, reason)) = set.source() {
                wrong(key(of), reason);
            }
            if let Some(Err(error)) = set.schedule.as_deref().map(str::parse::<Schedule>) {
                wrong(key("schedule"), error.to_string());
            }
            if let Some((of, reason)) = set.bad_length() {
                wrong(key(of), reason);
            }
            if let Some((of, path)) = set.relative_path() {
                let reason = format!("{} is not absolute: begin it with / or ~/", path.display());
                wrong(key(of), reason);
            }
            if let Some(place) = &set.repository
                && !self.repositories.contains_key(place)
                && !is_absolute(place)
            {
                let near = nearest(place, self.repositories.keys().map(String::as_str));
                let near = near.map(|near| format!(": did you mean {near}?")).unwrap_or_default();
                wrong(key("repository"), format!("[repositories] has no {place}{near}"));
            }
        }
        all
    }
}

impl NamedRepository {
    fn below_home(self) -> Result<Self, Refusal> {
        let repository = repository_below_home(self.repository)?;
        let password_file = self.password_file.map(|file| below_home(&file)).transpose()?;
        Ok(Self { repository, password_file, ..self })
    }
}

/// The refusal of a file in which something is wrong.
fn refusal(file: &Path, wrong: &Wrong) -> Refusal {
    let message = format!("{}: {wrong}", file.display());
    Refusal::new(Exit::Usage, message).hint(HINT)
}

fn read(file: &Path) -> io::Result<String> {
    let mut text = String::new();
    let file = holdall_sys::raw_file::open_regular(file)?;
    file.take(MAX_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// Whether a place means the same wherever it is named: the agent has a current folder of its own.
fn is_absolute(place: &str) -> bool {
    place.contains("://") || Path::new(place).is_absolute()
}

/// Why a repository or set cannot be called so: names are words of a command line, and parts of files' names.
fn refused_name(name: &str) -> Option<String> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let is_good = name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.chars().all(is_plain)
        && name.len() <= NAME_MAX_BYTES;
    (!is_good).then(|| {
        format!("a name has letters, digits, -, _ and . only, begins with a letter or digit, and has at most {NAME_MAX_BYTES}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is wrong with a text, one a line.
    fn wrong(text: &str) -> String {
        match Settings::parse(text) {
            Err(wrong) => wrong.to_string(),
            Ok(settings) => {
                let all = settings.problems(text);
                all.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
            }
        }
    }

    #[test]
    fn a_file_that_is_not_there_says_nothing_and_one_that_is_comes_with_its_lines() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Settings::read(folder.path()).unwrap(), Settings::default());
        let file = folder.path().join(FILE);
        std::fs::write(&file, "repository = \"/backup\"\n").unwrap();
        assert_eq!(Settings::read(folder.path()).unwrap().repository.as_deref(), Some("/backup"));
        std::fs::write(&file, "\nrepo = \"/backup\"\n").unwrap();
        let refused = Settings::read(folder.path()).unwrap_err().message;
        assert!(refused.ends_with(
            "config.toml: line 2: repo: there is no such key: did you mean repository?"
        ));
    }

    #[test]
    fn a_misspelt_key_is_told_with_its_table_and_what_may_be_meant() {
        for (text, expected) in [
            (
                "[sets.home]\npaths = [\"/\"]\ntga = [\"x\"]",
                "line 3: sets.home.tga: there is no such key: did you mean tag?",
            ),
            (
                "[sets.home.hooks]\nbefor = \"x\"",
                "line 2: sets.home.hooks.befor: there is no such key: did you mean before?",
            ),
            (
                "[repositories.a]\nrepository = \"/a\"\npasword_file = \"x\"",
                "line 3: repositories.a.pasword_file: there is no such key: did you mean password_file?",
            ),
            (
                "[agent]\non_batery = \"skip\"",
                "line 2: agent.on_batery: there is no such key: did you mean on_battery?",
            ),
        ] {
            assert_eq!(wrong(text), expected);
        }
        let unlike = wrong("[agent]\nxyz = 1");
        assert!(unlike.contains("there are random_delay, on_battery"), "{unlike}");
    }

    #[test]
    fn a_value_of_another_kind_is_told_with_its_key() {
        for (text, key) in [
            ("repository = 1", "line 1: repository: "),
            ("[sets.home]\npaths = \"/\"", "line 2: sets.home.paths: "),
            ("[agent]\non_battery = \"stop\"", "line 2: agent.on_battery: unknown variant `stop`"),
            (
                "[agent]\n\nwarn_after = \"3\"",
                "line 3: agent.warn_after: \"3\" is no length of time",
            ),
            (
                "[repositories.x]\npassword_file = \"/p\"",
                "line 1: repositories.x: missing field `repository`",
            ),
            ("[sets.home]\npaths = [\"/\"", "line 2: "),
        ] {
            let told = wrong(text);
            assert!(told.starts_with(key), "{text}: {told}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_told_all_at_once() {
        let text = "\
[repositories.usb]
repository = \"backup\"
[sets.nothing]
[sets.both]
paths = [\"/a\"]
command = [\"true\"]
[sets.nameless]
command = [\"true\"]
[sets.relative]
paths = [\"docs\"]
[sets.elsewhere]
paths = [\"/\"]
repository = \"ubs\"
[sets.\"a b\"]
paths = [\"/\"]
";
        let told = wrong(text);
        let lines: Vec<_> = told
            .lines()
            .map(|line| line.split(": ").take(2).collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(
            lines,
            [
                "line 2 repositories.usb.repository",
                "line 14 sets.a b",
                "line 6 sets.both.command",
                "line 13 sets.elsewhere.repository",
                "line 8 sets.nameless.command",
                "line 3 sets.nothing",
                "line 10 sets.relative.paths",
            ],
            "{told}"
        );
        assert!(told.contains("did you mean usb?"), "{told}");
    }

    #[test]
    fn what_a_run_would_not_take_is_told_before_it() {
        for (text, told) in [
            ("command = [\"\"]\nname = \"x\"", "line 2: sets.a.command: its first word"),
            ("paths = [\"/\"]\nretry_for = \"1\"", "line 3: sets.a.retry_for: it has no unit"),
            ("paths = [\"/\"]\nhooks.timeout = \"0s\"", "line 3: sets.a.hooks.timeout: each hook"),
        ] {
            let wrong = wrong(&format!("[sets.a]\n{text}"));
            assert!(wrong.starts_with(told), "{text}: {wrong}");
        }
    }

    #[test]
    fn a_name_stands_for_its_place_and_what_opens_it() {
        let text = "\
password_file = \"/general\"
[repositories.usb]
repository = \"/mnt/usb\"
[repositories.nas]
repository = \"https://nas\"
password_command = \"pass nas\"
";
        let settings = Settings::parse(text).unwrap();
        assert_eq!([settings.place_of("usb"), settings.place_of("./usb")], ["/mnt/usb", "./usb"]);
        let general =
            PasswordSettings { file: Some("/general".into()), ..PasswordSettings::default() };
        for name in [None, Some("usb"), Some("/mnt/usb")] {
            assert_eq!(settings.password_of(name), general, "{name:?}");
        }
        let of_nas = settings.password_of(Some("nas"));
        assert_eq!(
            (of_nas.command.as_deref(), &*of_nas.table),
            (Some("pass nas"), "repositories.nas.")
        );
        assert_eq!((of_nas.file, settings.own_password_of("usb").file), (None, None));
    }
}
