//! Making a repository: its key ring, the wrappings of it, and the recovery kit.

use std::path::Path;

use anyhow::Result;
use bytes::Bytes;
use holdall_crypto::{
    KeyRing, RecoveryKit, RecoverySecret, RepositoryKeys, SystemEntropy, WORK_FACTOR_LOG_N,
    sign_wrappings, suite_for_this_cpu, wrap_passphrase, wrap_recovery,
};
use holdall_engine::Place;
use holdall_format::{PublicKey, Suite};
use holdall_protocol::NewRepository;
use holdall_state::private_file;
use serde::Serialize;

use crate::app::App;
use crate::exit::{Exit, Refusal, is_certain};
use crate::terminal::output::plain;

/// Leaves of 2^3 entries on average: `docs/decisions/0002-leaves-of-eight-inline-512.md`.
const LEAF_BITS: u8 = 3;
/// Contents up to this length live in their entry.
const INLINE_LIMIT_BYTES: u16 = 512;

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
    /// The suite that was asked for, or else the one that is fastest on this computer.
    fn suite(asked: Option<Self>) -> Suite {
        match asked {
            None => suite_for_this_cpu(),
            Some(Self::Aes256Gcm) => Suite::Aes256Gcm,
            Some(Self::ChaCha20Poly1305) => Suite::ChaCha20Poly1305,
        }
    }
}

/// The keys of a repository that is about to be made.
pub(crate) struct NewKeys {
    /// The one thing that must not be lost.
    pub(crate) ring: KeyRing,
    /// What is derived from it.
    pub(crate) keys: RepositoryKeys,
    recovery: RecoverySecret,
    kit_is_out: bool,
    suite: Suite,
}

impl NewKeys {
    /// Draws them, for blocks with that cipher.
    pub(crate) fn draw(cipher: Option<Cipher>) -> Self {
        let ring = KeyRing::generate(&mut SystemEntropy);
        let keys = RepositoryKeys::derive(&ring);
        let recovery = RecoverySecret::generate(&mut SystemEntropy);
        Self { ring, keys, recovery, kit_is_out: false, suite: Cipher::suite(cipher) }
    }

    /// Those that were drawn before, for a repository that may not have been made then: the kit is in
    /// its file.
    pub(crate) fn again(ring: &KeyRing, kit: &RecoveryKit, cipher: Option<Cipher>) -> Self {
        let (ring, keys) = (ring.clone(), RepositoryKeys::derive(ring));
        let recovery = RecoverySecret::from_bytes(*kit.secret.expose());
        Self { ring, keys, recovery, kit_is_out: true, suite: Cipher::suite(cipher) }
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
        place: &Place,
        password: Option<&str>,
        server: Option<(&[String], PublicKey)>,
        name: &str,
        kit_file: Option<&Path>,
    ) -> Result<()> {
        let kit = recovery_kit((&self.ring, &self.keys), &self.recovery, server, name).to_text();
        let request = self.request(password)?;
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

    fn request(&self, password: Option<&str>) -> Result<NewRepository> {
        let mut wrappings = vec![wrap_recovery(&self.ring, &self.recovery)];
        if let Some(password) = password {
            wrappings.push(wrap_passphrase(&self.ring, password, WORK_FACTOR_LOG_N));
        }
        Ok(NewRepository {
            config: config(&self.keys, self.suite)?,
            wrappings: Bytes::from(sign_wrappings(&self.keys, 1, wrappings)?),
        })
    }
}

/// The configuration of a repository that is made on this computer.
///
/// # Errors
/// None that is known.
pub(crate) fn usual_config(keys: &RepositoryKeys) -> Result<Bytes> {
    config(keys, Cipher::suite(None))
}

fn config(keys: &RepositoryKeys, suite: Suite) -> Result<Bytes> {
    Ok(keys.new_config(suite, LEAF_BITS, INLINE_LIMIT_BYTES)?.into())
}

/// The page with which `secret` opens a repository; `name` is its name on the server, or where its
/// directory is.
pub(crate) fn recovery_kit(
    (ring, keys): (&KeyRing, &RepositoryKeys),
    secret: &RecoverySecret,
    server: Option<(&[String], PublicKey)>,
    name: &str,
) -> RecoveryKit {
    RecoveryKit {
        server_addresses: server.map(|(hosts, _)| hosts.to_vec()).unwrap_or_default(),
        server_identity: server.map(|(_, identity)| identity),
        repository_name: name.to_owned(),
        repository: keys.repository(),
        fingerprint: keys.fingerprint(),
        secret: RecoverySecret::from_bytes(*secret.expose()),
        ring: Some(ring.clone()),
    }
}

/// Refuses a kit file that is there already, before anything is done.
///
/// # Errors
/// [`Refusal`].
pub(crate) fn check_kit_file(file: Option<&Path>) -> Result<(), Refusal> {
    match file {
        Some(file) if file.symlink_metadata().is_ok() => {
            let message = format!("{} is there already", file.display());
            Err(Refusal::new(Exit::Failed, message).hint("name a new file for the recovery kit"))
        }
        _ => Ok(()),
    }
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
