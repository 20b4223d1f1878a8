//! The keys of a repository, open to be changed: its wrappings, and the key ring that is in them.

use anyhow::Result;
use holdall_crypto::{
    KeyRing, LabelError, RecoveryKit, RecoverySecret, SystemEntropy, find_wrapping, free_label,
    wrap_again,
};
use holdall_format::limits::WRAPPINGS_MAX;
use holdall_format::{Wrapping, WrappingSet};
use holdall_state::{KeptKeys, KeptParts, Known};

use crate::app::App;
use crate::exit::{Exit, Refusal};
use crate::opening::open::{self, Opened, Patience};
use crate::opening::unlock::kept_key;

/// The keys of a repository.
pub(crate) struct KeySet {
    opened: Opened,
    /// As the repository has them.
    pub(crate) set: WrappingSet,
    /// What is wrapped.
    pub(crate) ring: KeyRing,
}

impl KeySet {
    /// Opens the repository that was named, or the paired one, as every command does.
    ///
    /// # Errors
    /// What keeps it from being opened.
    pub(crate) fn open(app: &App) -> Result<Self> {
        let opened = open::place(app, Patience::default())?;
        let (set, ring) = opened.unlock(app)?;
        Ok(Self { opened, set, ring })
    }

    /// How people write where it is.
    pub(crate) fn name(&self) -> &str {
        &self.opened.name
    }

    /// Its key epoch, counted from 1.
    pub(crate) fn epoch(&self) -> usize {
        self.set.later_epochs.len() + 1
    }

    /// The page with which `secret` opens the repository.
    pub(crate) fn kit(&self, secret: &RecoverySecret) -> RecoveryKit {
        let server = self.opened.server.as_ref();
        let server = server.map(|(hosts, identity)| (&hosts[..], *identity));
        RecoveryKit::new(&self.ring, secret, server, &self.opened.repository_name)
    }

    /// Finds a key by its number, from 1, or its label.
    ///
    /// # Errors
    /// [`Refusal`] for none or several.
    pub(crate) fn find(&self, wanted: &str) -> Result<usize, Refusal> {
        find_wrapping(&self.set.wrappings, wanted).map_err(refused)
    }

    /// A label that no key has: `label` as the user wants it, or else made of a `usual` one.
    ///
    /// # Errors
    /// [`Refusal`] for a wanted one that a key has, that could be a number, or that is too long.
    pub(crate) fn free_label(&self, label: Option<&str>, usual: &str) -> Result<String, Refusal> {
        free_label(&self.set.wrappings, label, usual).map_err(refused)
    }

    /// Checks that one more key can be added.
    ///
    /// # Errors
    /// [`Refusal`] if there are as many as a repository may have.
    pub(crate) fn check_room(&self) -> Result<(), Refusal> {
        if self.set.wrappings.len() < WRAPPINGS_MAX {
            return Ok(());
        }
        let message = format!("the repository has {WRAPPINGS_MAX} keys, and may not have more");
        Err(Refusal::new(Exit::Usage, message)
            .hint("take one away first: `holdall key remove KEY`"))
    }

    /// Has the repository take `wrappings` in place of those that it has.
    ///
    /// # Errors
    /// If there are too many; if the repository refuses, as it does when the keys were changed
    /// meanwhile.
    pub(crate) fn replace(&mut self, app: &App, wrappings: Vec<Wrapping>) -> Result<()> {
        let place = &self.opened.place;
        let changed = place.replace_wrappings(&self.ring, self.set.generation, wrappings)?;
        // Should it not be kept, the repository has two copies of its own.
        let _ = KeptParts::in_state(&app.folders.state).keep(&changed);
        self.set = changed.wrappings;
        Ok(())
    }

    /// Begins a key epoch: what is sealed from now on opens with a new secret, which everything that
    /// opens the repository opens, and nothing that was taken away before. Where this computer keeps
    /// the key, it keeps the new one.
    ///
    /// # Errors
    /// As for [`KeySet::replace`]; if the new key cannot be kept.
    pub(crate) fn rotate(&mut self, app: &App) -> Result<()> {
        let ring = self.ring.with_new_epoch(&mut SystemEntropy)?;
        let again = self.set.wrappings.iter().map(|wrapping| wrap_again(&ring, wrapping));
        let wrappings = again.collect::<Result<_, _>>()?;
        self.ring = ring;
        self.replace(app, wrappings)?;
        self.opened.remember(app, Known::of(&self.set));
        if kept_key(app, self.set.repository)?.is_some() {
            KeptKeys::in_state(&app.folders.state).keep(self.set.repository, &self.ring)?;
        }
        Ok(())
    }
}

/// A label that cannot be used, or a key that is not found by one.
fn refused(error: LabelError) -> Refusal {
    let message = error.to_string();
    match error {
        LabelError::Unknown(_) | LabelError::Ambiguous(_) => {
            Refusal::new(Exit::Failed, message).hint("`holdall key list` numbers them")
        }
        _ => Refusal::new(Exit::Usage, message),
    }
}
