//! Making a repository, and handing its recovery kit out.

use std::io;
use std::path::Path;

use anyhow::{Context, Result};
use holdall_crypto::{KeyRing, RecoveryKit, RecoverySecret, SystemEntropy};
use holdall_engine::{LockedRepository, new_repository};
use holdall_format::{PublicKey, Suite};
use holdall_state::private_file;
use holdall_sys::{Clock, SystemClock, host};
use rustix::fs::{Access, access};
use serde::Serialize;
use zeroize::Zeroizing;

use crate::app::App;
use crate::exit::{Exit, Refusal, is_certain};
use crate::terminal::output::{local_date, plain};

/// The cipher of a repository's blocks, as it is typed: AES for processors with instructions for it, the
/// other one for all others, such as that of a Raspberry Pi 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Cipher {
    #[value(name = "aes-256-gcm")]
    Aes256Gcm,
    #[value(name = "chacha20-poly1305")]
    ChaCha20Poly1305,
}

impl Cipher {
    fn suite(self) -> Suite {
        match self {
            Self::Aes256Gcm => Suite::Aes256Gcm,
            Self::ChaCha20Poly1305 => Suite::ChaCha20Poly1305,
        }
    }
}

/// The keys of a repository that is about to be made.
pub(crate) struct NewKeys {
    /// The one thing that must not be lost.
    pub(crate) ring: KeyRing,
    recovery: RecoverySecret,
    kit_is_out: bool,
    cipher: Option<Cipher>,
}

impl NewKeys {
    /// Draws them, for blocks with that cipher.
    pub(crate) fn draw(cipher: Option<Cipher>) -> Self {
        let ring = KeyRing::generate(&mut SystemEntropy);
        let recovery = RecoverySecret::generate(&mut SystemEntropy);
        Self { ring, recovery, kit_is_out: false, cipher }
    }

    /// Those that were drawn before, for a repository that may not have been made then: the kit is in
    /// its file.
    pub(crate) fn again(ring: &KeyRing, kit: &RecoveryKit, cipher: Option<Cipher>) -> Self {
        let recovery = RecoverySecret::from_bytes(*kit.secret.expose());
        Self { ring: ring.clone(), recovery, kit_is_out: true, cipher }
    }

    /// Makes the repository. The kit is handed out first: a repository without one could be lost
    /// with this machine.
    ///
    /// # Errors
    /// If there is one already, or something cannot be written. A kit's file that was written is then
    /// gone again, unless the repository may have been made all the same.
    pub(crate) fn create(
        &self,
        app: &App,
        place: &LockedRepository,
        password: Option<&str>,
        server: Option<(&[String], PublicKey)>,
        name: &str,
        kit_file: Option<&Path>,
    ) -> Result<()> {
        let kit = RecoveryKit::new(&self.ring, &self.recovery, server, name);
        let kit = kit_text(&kit, kit_file)?;
        let suite = self.cipher.map(Cipher::suite);
        let request = new_repository(&self.ring, &self.recovery, password, suite)?;
        let new_file = kit_file.filter(|_| !self.kit_is_out);
        if let Some(file) = new_file {
            private_file::hand_out(file, &kit)?;
        }
        let Err(error) = place.create(&request).map_err(anyhow::Error::from) else {
            return tell_kit(app, &kit, kit_file).map_err(|error| lost_kit(&error).into());
        };
        if !is_certain(&error) {
            tell_kit(app, &kit, kit_file)?;
            app.output.note("the repository may have been made: the kit is for it, keep it");
        } else if let Some(file) = new_file {
            // It opens nothing; should it stay, that does no harm.
            let _ = std::fs::remove_file(file);
        }
        Err(error)
    }
}

/// A kit as it is written to that file, or printed without one: a page if the name ends in `.html`.
///
/// # Errors
/// If the kit is too long for a page.
pub(crate) fn kit_text(kit: &RecoveryKit, file: Option<&Path>) -> Result<Zeroizing<String>> {
    let (day, host) = (local_date(SystemClock.now_ns()), host::host_name());
    let made = format!("Made on {day} on the computer {host}.");
    let ending = file.and_then(Path::extension).unwrap_or_default();
    match ending.eq_ignore_ascii_case("html") || ending.eq_ignore_ascii_case("htm") {
        true => {
            kit.to_page(&made).context("the kit is too long for a QR code: name a file of text")
        }
        false => Ok(kit.to_text(&made)),
    }
}

/// Refuses a kit file that is there already, or cannot be written, before anything is done.
///
/// # Errors
/// [`Refusal`].
pub(crate) fn check_kit_file(file: Option<&Path>) -> Result<(), Refusal> {
    match file {
        Some(file) if file.symlink_metadata().is_ok() => {
            let message = format!("{} is there already", file.display());
            Err(Refusal::new(Exit::Failed, message).hint("name a new file for the recovery kit"))
        }
        Some(file) => check_folder_of(file),
        None => Ok(()),
    }
}

fn check_folder_of(file: &Path) -> Result<(), Refusal> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    access(folder.unwrap_or(Path::new(".")), Access::WRITE_OK | Access::EXEC_OK).map_err(|errno| {
        let error = io::Error::from(errno);
        Refusal::new(Exit::Failed, format!("cannot write {}: {error}", file.display()))
            .hint("name a file in a folder that is there and may be written to")
    })
}

/// Says what to do where a kit was to be printed and could not be: the repository is there.
fn lost_kit(error: &anyhow::Error) -> Refusal {
    let message =
        format!("the repository was made, and its recovery kit could not be shown: {error}");
    Refusal::new(Exit::Failed, message)
        .hint("make another kit, in a file: `holdall key add --recovery-kit FILE`")
}

/// Says where the kit is, or prints it where no file was named.
///
/// # Errors
/// If it is to be printed, and standard output cannot be written.
pub(crate) fn tell_kit(app: &App, kit: &str, file: Option<&Path>) -> Result<()> {
    #[derive(Serialize)]
    struct Kit<'a> {
        text: &'a str,
    }
    if let Some(file) = file {
        let written = format!("recovery kit written to {}", file.display());
        let said =
            app.output.say(format_args!("{written}: keep it on paper or on another computer"));
        said.unwrap_or_else(|error| app.output.warn_unreported(written, &error.into()));
        return Ok(());
    }
    app.output.object("recovery_kit", &Kit { text: kit })?;
    if !app.output.json {
        plain(kit)?;
        app.output.note("this recovery kit is shown only once: print it, or write it down");
    }
    Ok(())
}
