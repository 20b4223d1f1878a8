//! The other repository of a command that has two: how it is named, opened, and told about.

use std::path::PathBuf;

use anyhow::Result;
use holdall_engine::UnlockedRepository;

use crate::app::App;
use crate::config::{below_home, repository_below_home};
use crate::exit::{self, Exit, Refusal};
use crate::opening::open::{self, Patience};
use crate::secrets::password::{FROM_PASSWORD, Passwords};

/// What opens the repository that is named with `--from`.
#[derive(Debug, clap::Args)]
pub(crate) struct SecondKey {
    /// Reads the password of that repository from this file
    #[arg(long, value_name = "FILE", requires = "from")]
    from_password_file: Option<PathBuf>,
    /// Opens it with this age identity file or SSH private key, not with a password
    #[arg(long, value_name = "FILE", env = "HOLDALL_FROM_IDENTITY_FILE")]
    from_identity: Option<PathBuf>,
}

/// A second repository, open.
pub(crate) struct Second {
    /// What there is of the command for that repository.
    pub(crate) app: App,
    pub(crate) access: UnlockedRepository,
    /// As it was named.
    pub(crate) name: String,
}

impl SecondKey {
    /// Opens the repository that was named.
    ///
    /// # Errors
    /// As for [`open::access`], said of that repository.
    pub(crate) fn open(&self, app: &App, name: &str, patience: Patience) -> Result<Second> {
        let (settings, passwords) = (app.settings(), self.from_password_file.as_deref());
        let passwords = Passwords::new(
            FROM_PASSWORD,
            passwords,
            &settings.own_password_of(name),
            &app.interrupt,
        )?;
        let own_key = self.from_identity.as_ref().filter(|file| !file.as_os_str().is_empty());
        let own_key = own_key.map(|file| below_home(file)).transpose()?;
        let name = &repository_below_home(settings.place_of(name))?;
        let app = app.at(name, passwords, own_key);
        let access = open::access_with(&app, patience).map_err(|error| about(error, name))?;
        Ok(Second { app, access, name: name.to_owned() })
    }
}

/// Says that an error is about the second repository, and what to do about that one.
pub(crate) fn about(error: anyhow::Error, name: &str) -> anyhow::Error {
    let what = format!("the repository named with --from, {name}");
    let exit = exit::exit_of(&error);
    let hint = match exit {
        Exit::NoRepository => "name another with --from".to_owned(),
        Exit::WrongKey => {
            "check its password (--from-password-file, HOLDALL_FROM_PASSWORD), or its key \
             (--from-identity)"
                .to_owned()
        }
        Exit::Damage => find_damage_in(name),
        _ => return error.context(what),
    };
    Refusal::new(exit, format!("{what}: {error:#}")).hint(hint).into()
}

/// How to find out what is damaged there.
pub(crate) fn find_damage_in(name: &str) -> String {
    format!("`holdall check --verify all -r {name}` finds out what is affected there")
}
