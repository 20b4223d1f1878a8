//! Where the configuration, the state and the cache are.

use std::env;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use holdall_engine::make_private;
use holdall_sys::{guarded, users};
use tempfile::TempDir;

use crate::exit::{Exit, Refusal};

/// What is in a folder of a cache, so that backups may leave it out: <https://bford.info/cachedir/>.
const CACHE_TAG: &str = "\
Signature: 8a477f597d28d172789f06886806bc55
# This folder is holdall's cache: it may be deleted at any time, and need not be backed up.
";

/// The folders of this user's holdall.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Folders {
    /// `config.toml`.
    pub(crate) config: PathBuf,
    /// Identity, pairings and last receipts: losing it loses access.
    pub(crate) state: PathBuf,
    /// May be deleted at any time.
    pub(crate) cache: PathBuf,
}

impl Folders {
    /// The folders that the environment names.
    ///
    /// # Errors
    /// [`Refusal`] if neither they nor a home folder are named.
    pub(crate) fn from_environment() -> Result<Self, Refusal> {
        Self::resolve(&variable)
    }

    fn resolve(variable: &dyn Fn(&str) -> Option<OsString>) -> Result<Self, Refusal> {
        let under = |xdg: &str, below_home: &str| match (
            absolute(variable(xdg)),
            absolute(variable("HOME")),
        ) {
            (Some(folder), _) => Ok(folder.join("holdall")),
            (None, Some(home)) => Ok(home.join(below_home).join("holdall")),
            (None, None) => Err(Refusal::new(
                Exit::Usage,
                "neither HOME nor XDG folders are set to absolute paths",
            )
            .hint("set HOLDALL_CONFIG_DIR and HOLDALL_CACHE_DIR")),
        };
        let own_folder =
            |name: &str| variable(name).map(|folder| below_home(Path::new(&folder))).transpose();
        let own = own_folder("HOLDALL_CONFIG_DIR")?;
        let config = own.clone().map_or_else(|| under("XDG_CONFIG_HOME", ".config"), Ok)?;
        let state = match own {
            Some(own) => own.join("state"),
            None => under("XDG_STATE_HOME", ".local/state")?,
        };
        let cache = match own_folder("HOLDALL_CACHE_DIR")? {
            Some(own) => own,
            None => under("XDG_CACHE_HOME", ".cache")?,
        };
        Ok(Self { config, state, cache })
    }

    /// Refuses to work as root where another user's link would lead what is kept to another place. A link that is put
    /// there later is not followed either ([`guarded`]); this one is named before anything is done.
    ///
    /// # Errors
    /// [`Refusal`] names the link.
    pub(crate) fn refuse_links_of_others(&self) -> Result<(), Refusal> {
        if users::effective_uid() != 0 {
            return Ok(());
        }
        let link = [&self.state, &self.cache].into_iter().find_map(|folder| {
            let above = folder.ancestors().filter(|one| guarded::is_refused_link(one)).last();
            above.map(Path::to_owned).or_else(|| guarded::refused_link_in(folder, LEVELS))
        });
        link.map_or(Ok(()), |link| {
            let message =
                format!("root does not follow {}, a link that another user can change", link.display());
            Err(Refusal::new(Exit::Failed, message)
                .hint("remove it, or set HOLDALL_CONFIG_DIR and HOLDALL_CACHE_DIR to folders of root's own"))
        })
    }

    /// Takes a temporary folder for the cache, where something else than a folder is in its place. It is gone when what is
    /// returned is dropped.
    pub(crate) fn replace_unusable_cache(&mut self) -> Option<TempDir> {
        let there = self.cache.ancestors().find(|folder| folder.exists())?;
        let temporary = (!there.is_dir()).then(TempDir::new)?.ok()?;
        self.cache = temporary.path().to_owned();
        Some(temporary)
    }

    /// Makes the cache's folder, for this user alone, and tags it as one that backups may leave out, unless
    /// something that must not be left out lies there too. Who needs the cache meets what keeps it from being made.
    pub(crate) fn prepare_cache(&self) {
        // The user may have named a folder that others use too. Only what is made in it is closed to them.
        if !self.cache.exists() || self.cache.ends_with("holdall") {
            let _ = make_private(&self.cache);
        }
        let place = |folder: &PathBuf| folder.canonicalize().unwrap_or_else(|_| folder.clone());
        let cache = place(&self.cache);
        if [&self.config, &self.state].iter().any(|folder| place(folder).starts_with(&cache)) {
            return;
        }
        let tag = self.cache.join("CACHEDIR.TAG");
        let tag = guarded::place(&tag);
        let Ok(mut file) = tag.create_new(0o600) else { return };
        if file.write_all(CACHE_TAG.as_bytes()).is_err() {
            // The next run makes a whole one.
            let _ = tag.remove_file();
        }
    }

    /// The cache's folder as one to work in by its path. Root has none where another user can put a link meanwhile.
    pub(crate) fn cache_to_work_in(&self) -> Option<PathBuf> {
        let is_of_root = |folder: &Path| folder.metadata().is_ok_and(|found| found.uid() == 0);
        let is_safe = || {
            let mut above = self.cache.ancestors();
            let made = above.find_map(|folder| folder.canonicalize().ok());
            made.is_some_and(|made| made.ancestors().all(is_of_root))
        };
        (users::effective_uid() != 0 || is_safe()).then(|| self.cache.clone())
    }
}

/// The levels of folders in a cache that links are looked for in.
const LEVELS: u8 = 3;

/// A folder that an `XDG_*` variable names. One that is not absolute counts as none:
/// <https://specifications.freedesktop.org/basedir-spec/latest/>.
fn absolute(variable: Option<OsString>) -> Option<PathBuf> {
    variable.map(PathBuf::from).filter(|folder| folder.is_absolute())
}

/// The value of a variable, unless it is empty.
fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// This user's home folder, if the environment names one.
pub(crate) fn home() -> Option<PathBuf> {
    absolute(variable("HOME"))
}

/// A path with the home folder in the place of a `~` at its beginning, as a shell would have put it where there was none.
///
/// # Errors
/// [`Refusal`] if there is no home folder.
pub(crate) fn below_home(path: &Path) -> Result<PathBuf, Refusal> {
    match (path.strip_prefix("~"), home()) {
        (Ok(rest), Some(home)) => Ok(home.join(rest)),
        (Ok(_), None) => {
            let message = format!("{}: ~ is the home folder, and HOME names none", path.display());
            Err(Refusal::new(Exit::Usage, message).hint("set HOME, or write the whole path"))
        }
        (Err(_), _) => Ok(path.to_owned()),
    }
}

/// A repository's name with the home folder in the place of a `~` at its beginning.
///
/// # Errors
/// As for [`below_home`].
pub(crate) fn repository_below_home(name: String) -> Result<String, Refusal> {
    Ok(below_home(Path::new(&name))?.into_os_string().into_string().unwrap_or(name))
}

/// Where a server keeps its data if nothing else is said.
///
/// # Errors
/// [`Refusal`] if an ordinary user has no home folder.
pub(crate) fn default_data() -> Result<PathBuf, Refusal> {
    if users::effective_uid() == 0 {
        return Ok(PathBuf::from("/var/lib/holdall"));
    }
    absolute(variable("XDG_DATA_HOME"))
        .or_else(|| home().map(|home| home.join(".local/share")))
        .map(|folder| folder.join("holdall"))
        .ok_or_else(|| Refusal::new(Exit::Usage, "no home folder is set").hint("give --data DIR"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders(set: &[(&str, &str)]) -> Result<Folders, Refusal> {
        Folders::resolve(&|name| {
            set.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn own_variables_come_before_the_common_ones_and_those_before_home() {
        let all = [
            ("HOME", "/h"),
            ("XDG_CONFIG_HOME", "/c"),
            ("XDG_STATE_HOME", "/s"),
            ("HOLDALL_CONFIG_DIR", "/own"),
        ];
        let found = folders(&all).unwrap();
        assert_eq!(found.config, Path::new("/own"));
        assert_eq!(found.state, Path::new("/own/state"));
        assert_eq!(found.cache, Path::new("/h/.cache/holdall"));
        let found = folders(&all[..3]).unwrap();
        assert_eq!(found.config, Path::new("/c/holdall"));
        assert_eq!(found.state, Path::new("/s/holdall"));
        assert_eq!(folders(&all[..1]).unwrap().state, Path::new("/h/.local/state/holdall"));
        let relative = folders(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "c")]).unwrap();
        assert_eq!(relative.config, Path::new("/h/.config/holdall"));
        folders(&[]).unwrap_err();
        folders(&[("HOME", "h")]).unwrap_err();
    }
}
