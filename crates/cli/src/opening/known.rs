//! Which repository lies in which directory, as this computer knows it.
//!
//! A password, a kit and a kept key tell whose repository they open. A public key tells nothing:
//! anybody can wrap a secret for it, so a keeper could put a repository of its own in the place of
//! somebody's and read all that is backed up there. What a key of one's own opens is therefore
//! believed only where it is known by other means: by the pairing with a server, by what is kept here,
//! or by the fingerprint that a person gives.
//!
//! With the repository stands the newest key epoch that was seen there, so that nobody who had the keys
//! before a rotation sets it back unseen; a kept key ring tells that by itself.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use holdall_crypto::{CryptoError, KeyRing, RepositoryKeys};
use holdall_format::{PublicKey, RepositoryId, WrappingSet};

use crate::app::App;
use crate::exit::{Exit, Refusal};
use crate::state::hex;
use crate::state::private_file;

/// More than the ids of a repository and of an epoch's key have.
const LIMIT_BYTES: u64 = 256;

/// What is known of a repository before it is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Known {
    /// Its id.
    pub(crate) repository: RepositoryId,
    /// The key of its newest epoch behind the first, if it had one.
    pub(crate) epoch: Option<PublicKey>,
}

impl Known {
    /// What a set tells that was opened.
    pub(crate) fn of(set: &WrappingSet) -> Self {
        let epoch = set.later_epochs.last().map(|epoch| epoch.key);
        Self { repository: set.repository, epoch }
    }

    /// Checks that a set of that repository has the epoch that is known. Without it, what is sealed
    /// from now on would be for whoever had the keys before they were rotated.
    ///
    /// # Errors
    /// [`CryptoError::SetBack`].
    pub(crate) fn check_epoch(&self, set: &WrappingSet) -> Result<(), CryptoError> {
        let has = |key| set.later_epochs.iter().any(|epoch| epoch.key == key);
        match self.epoch {
            Some(key) if set.repository == self.repository && !has(key) => {
                Err(CryptoError::SetBack)
            }
            _ => Ok(()),
        }
    }
}

/// The repositories that were opened in directories, a file each.
pub(crate) struct Directories {
    folder: PathBuf,
}

impl Directories {
    /// Those in a state folder.
    pub(crate) fn in_state(state: &Path) -> Self {
        Self { folder: state.join("directories") }
    }

    /// The repository that was opened last in the directory of that `name`.
    ///
    /// # Errors
    /// If the file cannot be read or understood.
    pub(crate) fn get(&self, name: &str) -> Result<Option<Known>> {
        let path = self.folder.join(name);
        let Some(bytes) = private_file::read(&path, LIMIT_BYTES)? else { return Ok(None) };
        let known = std::str::from_utf8(&bytes).ok().and_then(known_in);
        let known = known.with_context(|| format!("{} is no repository's id", path.display()))?;
        Ok(Some(known))
    }

    /// Keeps which repository was opened in the directory of that `name`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn keep(&self, name: &str, known: &Known) -> Result<()> {
        let epoch = known.epoch.map(|key| format!(" {key}")).unwrap_or_default();
        let text = format!("{}{epoch}", known.repository);
        private_file::replace(&self.folder.join(name), text.as_bytes())
    }
}

/// Reads `REPOSITORY` or `REPOSITORY EPOCHKEY`.
fn known_in(text: &str) -> Option<Known> {
    let mut words = text.split_whitespace();
    let repository = words.next()?.parse().ok()?;
    let epoch = match words.next() {
        Some(key) => Some(PublicKey::from_bytes(*hex::decode(key)?)),
        None => None,
    };
    words.next().is_none().then_some(Known { repository, epoch })
}

/// Checks that a server shows the repository that this machine was paired with.
///
/// # Errors
/// [`Refusal`], damage, if it does not.
pub(crate) fn check_paired(
    set: &WrappingSet,
    paired: RepositoryId,
    name: &str,
) -> Result<(), Refusal> {
    if set.repository == paired {
        return Ok(());
    }
    let message = format!(
        "another repository lies under that name: {name} is {}, and this machine was paired with \
         {paired}",
        set.repository
    );
    Err(Refusal::new(Exit::Damage, message).hint(
        "ask the server's administrator where the former one is; if it is gone, ask for an invite \
         and run `holdall pair`",
    ))
}

/// Where a person finds a fingerprint.
const FINGERPRINT_PLACES: &str =
    "`holdall init` and `holdall pair` printed the fingerprint, the kit has it too";

/// Checks that a repository is the one of the fingerprint that was given. Without one, a key of
/// somebody's own opens only what is `known` to be there.
///
/// # Errors
/// [`Refusal`]: damage for another repository, usage for what is no fingerprint, not allowed for one that nothing confirms.
pub(crate) fn check_opened(
    app: &App,
    ring: &KeyRing,
    known: Option<RepositoryId>,
    name: &str,
) -> Result<(), Refusal> {
    let keys = RepositoryKeys::derive(ring);
    let (fingerprint, repository) = (keys.fingerprint(), keys.repository());
    if let Some(wanted) = &app.fingerprint {
        if letters_of(wanted) == letters_of(&fingerprint) {
            return Ok(());
        }
        if letters_of(wanted).len() != letters_of(&fingerprint).len() {
            let message = format!("{wanted:?} is no fingerprint");
            return Err(Refusal::new(Exit::Usage, message).hint(FINGERPRINT_PLACES));
        }
        let message = format!("another repository lies at {name}: {fingerprint}, not {wanted}");
        return Err(Refusal::new(Exit::Damage, message).hint(FINGERPRINT_PLACES));
    }
    let confirm = format!(
        "compare {fingerprint} with what `holdall init` or `holdall pair` printed, or with the \
         recovery kit; if it is the same, run this again with `--fingerprint {fingerprint}`"
    );
    match known {
        Some(known) if known == repository => Ok(()),
        Some(known) => {
            let message = format!("another repository lies at {name}: {repository}, not {known}");
            Err(Refusal::new(Exit::Damage, message).hint(confirm))
        }
        None => {
            let message = format!(
                "the key opens {name}, but nothing tells whose repository that is: anybody can make \
                 one for a public key"
            );
            Err(Refusal::new(Exit::NotAllowed, message).hint(confirm))
        }
    }
}

fn letters_of(fingerprint: &str) -> String {
    let letters = fingerprint.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|letter| letter.to_ascii_uppercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_opened_in_a_directory_reads_back() {
        let state = tempfile::tempdir().unwrap();
        let directories = Directories::in_state(state.path());
        assert_eq!(directories.get("one").unwrap(), None);
        let repository = RepositoryId::from_bytes([3; 16]);
        for epoch in [None, Some(PublicKey::from_bytes([4; 32]))] {
            let known = Known { repository, epoch };
            directories.keep("one", &known).unwrap();
            assert_eq!(directories.get("one").unwrap(), Some(known));
        }
        assert_eq!(directories.get("two").unwrap(), None);
        let written = std::fs::read_to_string(state.path().join("directories/one")).unwrap();
        for damaged in ["x", "", &format!("{repository} x"), &format!("{written} x")] {
            std::fs::write(state.path().join("directories/one"), damaged).unwrap();
            assert!(directories.get("one").is_err(), "{damaged}");
        }
    }

    #[test]
    fn a_fingerprint_is_the_same_however_it_is_typed() {
        assert_eq!(letters_of("abcd-EF gh"), letters_of("ABCD EFGH"));
        assert_ne!(letters_of("ABCD"), letters_of("ABCE"));
    }
}
