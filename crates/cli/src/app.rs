//! What every command has at hand.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use clap::Args;
use holdall_engine::Run;
use holdall_protocol::WireMeter;
use holdall_state::{Identity, Pairings};
use tempfile::TempDir;

use crate::config::{FILE, Folders, Settings, below_home, repository_below_home};
use crate::exit::{Exit, KnownNames, Refusal, hint_of, is_forbidden};
use crate::secrets::password::{PASSWORD, Passwords};
use crate::terminal::interrupt::Interrupt;
use crate::terminal::output::{Output, sentence};

const SIGNALS: &str = "cannot take over signals";

/// How helps call them.
pub(crate) const EVERY_COMMAND: &str = "Options of every command";

/// Options of every command.
#[derive(Debug, Clone, Args)]
pub(crate) struct GlobalArgs {
    /// The repository: a directory, https://HOST:PORT/NAME, or a name of `config.toml` [default: the paired one]
    #[arg(
        short,
        // Commands have a `repository` of their own.
        id = "default-repository",
        long = "repo",
        value_name = "REPO",
        env = "HOLDALL_REPOSITORY",
        global = true,
        help_heading = EVERY_COMMAND
    )]
    repository: Option<String>,
    /// Whether it was named with `-r`, and not by the environment
    #[arg(skip)]
    pub(crate) is_repository_typed: bool,
    /// Reads the password from this file
    #[arg(long, value_name = "FILE", global = true, help_heading = EVERY_COMMAND)]
    password_file: Option<PathBuf>,
    /// Opens the repository with this age identity file or SSH private key, not with a password
    /// [or HOLDALL_IDENTITY_FILE]
    #[arg(long, value_name = "FILE", global = true, help_heading = EVERY_COMMAND)]
    identity: Option<PathBuf>,
    /// Refuses a repository of another fingerprint
    #[arg(long, value_name = "TEXT", global = true, help_heading = EVERY_COMMAND)]
    fingerprint: Option<String>,
    /// Prints JSON Lines instead of words
    #[arg(long, global = true, help_heading = EVERY_COMMAND)]
    json: bool,
    /// Prints only results and errors
    #[arg(
        short,
        long,
        global = true,
        help_heading = EVERY_COMMAND,
        conflicts_with = "verbose"
    )]
    quiet: bool,
    /// Says more
    #[arg(short, long, global = true, help_heading = EVERY_COMMAND, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Uses no colours (as NO_COLOR does)
    #[arg(long, global = true, help_heading = EVERY_COMMAND)]
    no_color: bool,
}

impl GlobalArgs {
    /// How to speak.
    pub(crate) fn output(&self) -> Output {
        Output::new(self.json, self.quiet, self.verbose, self.no_color)
    }

    /// The file that `--password-file` names, which is not the repository's then.
    pub(crate) fn take_password_file(&mut self) -> Option<PathBuf> {
        self.password_file.take()
    }
}

/// Says where a machine can be kept whose user may not write where it would be.
fn elsewhere(error: anyhow::Error) -> anyhow::Error {
    if !is_forbidden(&error) {
        return error;
    }
    let hint = "see who owns it, or set HOLDALL_CONFIG_DIR and HOLDALL_CACHE_DIR to folders that this \
                user may write to";
    Refusal::new(Exit::Failed, format!("{error:#}")).hint(hint).into()
}

/// Refuses a file that was named and is not there.
fn there(file: &Path) -> Result<()> {
    match file.metadata() {
        _ if file == Path::new("-") => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound && !file.as_os_str().is_empty() => {
            Err(error).with_context(|| file.display().to_string())
        }
        _ => Ok(()),
    }
}

/// The repository that the environment or `config.toml` names, which comes before the paired one.
#[derive(Clone)]
pub(crate) struct Preset {
    /// Where it is.
    pub(crate) repository: String,
    /// The variable, or the file.
    pub(crate) named_by: String,
}

impl Preset {
    /// What the environment says comes first.
    fn of(settings: &Settings, folders: &Folders) -> Result<Option<Self>, Refusal> {
        let variable = "HOLDALL_REPOSITORY";
        match std::env::var(variable) {
            Ok(repository) if !repository.is_empty() => {
                let repository = repository_below_home(repository)?;
                Ok(Some(Self { repository, named_by: variable.to_owned() }))
            }
            _ => Ok(settings.repository.clone().map(|repository| Self {
                repository,
                named_by: folders.config.join(FILE).display().to_string(),
            })),
        }
    }

    /// With the place of a repository that is called by a name.
    fn in_place(self, settings: &Settings) -> Self {
        Self { repository: settings.place_of(&self.repository), ..self }
    }
}

/// What every command has at hand.
#[derive(Clone)]
pub(crate) struct App {
    /// How to speak.
    pub(crate) output: Output,
    /// Where things are.
    pub(crate) folders: Folders,
    /// Where the password comes from.
    pub(crate) passwords: Passwords,
    /// An age identity file or SSH private key that opens the repository in place of a password.
    pub(crate) own_key: Option<PathBuf>,
    /// The fingerprint of the only repository that is opened.
    pub(crate) fingerprint: Option<String>,
    /// Ctrl-C.
    pub(crate) interrupt: Interrupt,
    /// The repository that was named for this command alone.
    typed: Option<String>,
    /// What is used where nothing is typed, if something says so.
    preset: Option<Preset>,
    /// What `config.toml` says.
    settings: Arc<Settings>,
    /// The worst exit code of what was met and did not keep the command from going on.
    met: Arc<AtomicU8>,
    /// What the connections count that its runs use.
    pub(crate) wire: WireMeter,
    /// The first of it, in words.
    met_first: Arc<Mutex<Option<String>>>,
    /// Why `config.toml` was left out, of a command that goes on without it.
    damaged_settings: Option<String>,
    /// The cache of this run alone, where none can be kept. It goes with the last view.
    temporary_cache: Option<Arc<TempDir>>,
}

impl App {
    /// Reads environment and settings, and takes over the signals.
    ///
    /// # Errors
    /// If one of them cannot be read or understood.
    pub(crate) fn new(args: GlobalArgs, output: Output) -> Result<Self> {
        let folders = Folders::from_environment()?;
        let settings = Settings::read(&folders.config)?;
        Self::with_settings(args, output, folders, settings)
    }

    /// The same for a command that goes on without settings that cannot be read.
    ///
    /// # Errors
    /// If the environment cannot be read or understood.
    pub(crate) fn in_any_case(args: GlobalArgs, output: Output) -> Result<Self> {
        let folders = Folders::from_environment()?;
        let read = Settings::read(&folders.config);
        let damaged_settings = read.as_ref().err().map(ToString::to_string);
        let settings = read.unwrap_or_default();
        Ok(Self { damaged_settings, ..Self::with_settings(args, output, folders, settings)? })
    }

    fn with_settings(
        args: GlobalArgs,
        output: Output,
        mut folders: Folders,
        settings: Settings,
    ) -> Result<Self> {
        folders.refuse_links_of_others()?;
        let place_of_cache = folders.cache.clone();
        let temporary_cache = folders.replace_unusable_cache().map(Arc::new);
        if temporary_cache.is_some() {
            output.note(format_args!(
                "no folder is at {}, so that this run keeps no cache: remove what is there, or set HOLDALL_CACHE_DIR",
                place_of_cache.display()
            ));
        }
        // What is named is meant, also where a kept key makes it needless.
        [&args.identity, &args.password_file]
            .into_iter()
            .flatten()
            .try_for_each(|file| there(file))?;
        let interrupt = Interrupt::install().context(SIGNALS)?;
        let preset = Preset::of(&settings, &folders)?;
        let typed = args.repository.filter(|_| args.is_repository_typed);
        let named = typed.as_deref().or(preset.as_ref().map(|preset| &*preset.repository));
        let by_settings = settings.password_of(named);
        let password_file = args.password_file.as_deref();
        let passwords = Passwords::new(PASSWORD, password_file, &by_settings, &interrupt)?;
        if typed.as_deref() == Some("") {
            return Err(Refusal::new(Exit::Usage, "the repository that -r names is empty")
                .hint("leave -r out if the default repository is meant")
                .into());
        }
        // A flag comes before the environment: a password's, too.
        let named =
            std::env::var_os("HOLDALL_IDENTITY_FILE").filter(|_| args.password_file.is_none());
        let from_environment = named.map(|file| below_home(Path::new(&file))).transpose()?;
        let own_key = args.identity.or(from_environment);
        let own_key = own_key.filter(|file| !file.as_os_str().is_empty());
        let fingerprint = args.fingerprint;
        Ok(Self {
            output,
            folders,
            passwords,
            own_key,
            fingerprint,
            interrupt,
            typed: typed.map(|name| settings.place_of(&name)),
            preset: preset.map(|preset| preset.in_place(&settings)),
            settings: Arc::new(settings),
            met: Arc::default(),
            met_first: Arc::default(),
            damaged_settings: None,
            wire: WireMeter::default(),
            temporary_cache,
        })
    }

    /// For commands that use nothing of the user who runs them: what is set of that is not looked at.
    ///
    /// # Errors
    /// If the signals cannot be taken over.
    pub(crate) fn without_profile(output: Output) -> Result<Self> {
        let interrupt = Interrupt::install().context(SIGNALS)?;
        Ok(Self {
            output,
            folders: Folders::default(),
            passwords: Passwords::none(&interrupt),
            own_key: None,
            fingerprint: None,
            interrupt,
            typed: None,
            preset: None,
            settings: Arc::default(),
            met: Arc::default(),
            wire: WireMeter::default(),
            met_first: Arc::default(),
            damaged_settings: None,
            temporary_cache: None,
        })
    }

    /// Another user's view, as it were: everything kept below `folder`, nothing named or given,
    /// and nothing said but problems.
    pub(crate) fn within(&self, folder: &Path) -> Self {
        let [config, state, cache] = ["config", "state", "cache"].map(|name| folder.join(name));
        Self {
            output: self.output.silent(),
            folders: Folders { config, state, cache },
            passwords: Passwords::none(&self.interrupt),
            own_key: None,
            fingerprint: None,
            interrupt: self.interrupt.clone(),
            typed: None,
            preset: None,
            settings: Arc::default(),
            met: Arc::clone(&self.met),
            wire: self.wire.clone(),
            met_first: Arc::clone(&self.met_first),
            damaged_settings: None,
            temporary_cache: None,
        }
    }

    /// The same, saying nothing but problems.
    pub(crate) fn silent(&self) -> Self {
        Self { output: self.output.silent(), ..self.clone() }
    }

    /// The same, telling what `other` would.
    pub(crate) fn telling_as(self, other: &Self) -> Self {
        Self { output: other.output.clone(), ..self }
    }

    /// The same with the repository that a set names, unless one was typed.
    pub(crate) fn with_repository(&self, name: &str) -> Self {
        if self.typed.is_some() {
            return self.clone();
        }
        let passwords = self.passwords.or_by(&self.settings.password_of(Some(name)));
        Self { typed: Some(self.settings.place_of(name)), passwords, ..self.clone() }
    }

    /// The same with another repository and what opens that.
    pub(crate) fn at(
        &self,
        repository: &str,
        passwords: Passwords,
        own_key: Option<PathBuf>,
    ) -> Self {
        Self {
            output: self.output.clone(),
            folders: self.folders.clone(),
            passwords,
            own_key,
            fingerprint: None,
            interrupt: self.interrupt.clone(),
            typed: Some(repository.to_owned()),
            preset: None,
            settings: Arc::clone(&self.settings),
            met: Arc::clone(&self.met),
            wire: self.wire.clone(),
            met_first: Arc::clone(&self.met_first),
            damaged_settings: None,
            temporary_cache: self.temporary_cache.clone(),
        }
    }

    /// Tells damage that does not keep the command from going on. Whatever comes of it, it does not
    /// end as if all were well.
    pub(crate) fn damage(&self, error: &anyhow::Error) {
        self.meet(error, Exit::Damage);
    }

    /// The same of what could not be looked at.
    pub(crate) fn unseen(&self, error: &anyhow::Error) {
        self.meet(error, Exit::Incomplete);
    }

    fn meet(&self, error: &anyhow::Error, exit: Exit) {
        self.met.fetch_max(exit.code(), Ordering::AcqRel);
        let mut first = self.met_first.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert_with(|| sentence(error));
        self.output.failure(error, exit.code(), hint_of(error, &KnownNames::default()).as_deref());
    }

    /// The first of what was met and did not keep the command from going on, in words.
    pub(crate) fn met_first(&self) -> Option<String> {
        self.met_first.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How a command ends that did what it could.
    pub(crate) fn ended(&self, exit: Exit) -> Exit {
        let met = self.met.load(Ordering::Acquire);
        match exit {
            Exit::Done | Exit::Incomplete if met == Exit::Damage.code() => Exit::Damage,
            Exit::Done if met == Exit::Incomplete.code() => Exit::Incomplete,
            exit => exit,
        }
    }

    /// The repository that was named, if one was.
    pub(crate) fn named_repository(&self) -> Option<&str> {
        let preset = || self.preset.as_ref().map(|preset| &preset.repository[..]);
        self.typed_repository().or_else(preset)
    }

    /// The repository that was named for this command alone.
    pub(crate) fn typed_repository(&self) -> Option<&str> {
        self.typed.as_deref()
    }

    /// What is used where nothing is typed, if environment or `config.toml` say so.
    pub(crate) fn preset(&self) -> Option<&Preset> {
        self.preset.as_ref()
    }

    /// The files that may open the repository: of its key, and of its password.
    pub(crate) fn files_that_open(&self) -> impl Iterator<Item = &Path> {
        self.own_key.as_deref().into_iter().chain(self.passwords.file())
    }

    /// Who this machine is; made when first asked for.
    ///
    /// # Errors
    /// If the state folder cannot be used.
    pub(crate) fn identity(&self) -> Result<Identity> {
        Identity::load_or_make(&self.folders.state).map_err(|error| elsewhere(error.into()))
    }

    /// The servers that this machine was paired with.
    ///
    /// # Errors
    /// If the state cannot be read.
    pub(crate) fn pairings(&self) -> Result<Pairings> {
        Ok(Pairings::read(&self.folders.state)?)
    }

    /// What `config.toml` says.
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Why `config.toml` was left out, if it was.
    pub(crate) fn damaged_settings(&self) -> Option<&str> {
        self.damaged_settings.as_deref()
    }

    /// A new run, which Ctrl-C stops.
    pub(crate) fn run(&self) -> Arc<Run> {
        self.interrupt.run(&self.wire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_not_write_there_is_told_how_to_be_a_machine_elsewhere() {
        let hint = |kind| {
            let error = anyhow::Error::from(std::io::Error::from(kind)).context("cannot make /x");
            hint_of(&elsewhere(error), &KnownNames::default()).unwrap()
        };
        assert!(hint(ErrorKind::ReadOnlyFilesystem).contains("HOLDALL_CONFIG_DIR"));
        assert!(hint(ErrorKind::PermissionDenied).contains("HOLDALL_CONFIG_DIR"));
        assert!(!hint(ErrorKind::StorageFull).contains("HOLDALL_CONFIG_DIR"));
    }
}
