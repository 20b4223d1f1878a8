//! The keys of a repository, open to be changed: its wrappings, and the secret that is in them.

use anyhow::Result;
use bytes::Bytes;
use holdall_crypto::{
    MasterSecret, RecoveryKit, RecoverySecret, RepositoryKeys, check_wrappings, sign_wrappings,
};
use holdall_format::{Wrapping, WrappingSet};

use crate::app::App;
use crate::create::recovery_kit;
use crate::exit::{Exit, Refusal};
use crate::open::{self, Opened, Patience};

/// The keys of a repository.
pub(crate) struct KeySet {
    opened: Opened,
    /// As the repository has them.
    pub(crate) set: WrappingSet,
    /// What is wrapped.
    pub(crate) secret: MasterSecret,
    keys: RepositoryKeys,
}

impl KeySet {
    /// Opens the repository that was named, or the paired one, as every command does.
    ///
    /// # Errors
    /// What keeps it from being opened; [`holdall_crypto::CryptoError::SwappedWrappings`].
    pub(crate) fn open(app: &App) -> Result<Self> {
        let opened = open::place(app, Patience::default())?;
        let (set, secret) = opened.unlock(app)?;
        let keys = RepositoryKeys::derive(&secret);
        check_wrappings(&set, &keys)?;
        Ok(Self { opened, set, secret, keys })
    }

    /// How people write where it is.
    pub(crate) fn name(&self) -> &str {
        &self.opened.name
    }

    /// The page with which `secret` opens the repository.
    pub(crate) fn kit(&self, secret: &RecoverySecret) -> RecoveryKit {
        let server = self.opened.server.as_ref();
        let server = server.map(|(hosts, identity)| (&hosts[..], *identity));
        recovery_kit(&self.keys, secret, server, &self.opened.repository_name)
    }

    /// Finds a key by its number, from 1, or its label.
    ///
    /// # Errors
    /// [`Refusal`] for none or several.
    pub(crate) fn find(&self, wanted: &str) -> Result<usize, Refusal> {
        let count = self.set.wrappings.len();
        if let Some(number) =
            wanted.parse::<usize>().ok().filter(|number| (1..=count).contains(number))
        {
            return Ok(number - 1);
        }
        let fits = |(at, one): (usize, &Wrapping)| (one.label == wanted).then_some(at);
        let found: Vec<_> = self.set.wrappings.iter().enumerate().filter_map(fits).collect();
        let none = |message: String| {
            Refusal::new(Exit::Failed, message).hint("`holdall key list` numbers them")
        };
        match found[..] {
            [one] => Ok(one),
            [] => Err(none(format!("no key is called {wanted:?}, nor has that number"))),
            _ => Err(none(format!("several keys are called {wanted:?}; say which by its number"))),
        }
    }

    /// A label that no key has: `label` as the user wants it, or else made of a `usual` one.
    ///
    /// # Errors
    /// [`Refusal`] for a wanted one that a key has, or that could be a number.
    pub(crate) fn free_label(&self, label: Option<&str>, usual: &str) -> Result<String, Refusal> {
        let is_taken = |label: &str| self.set.wrappings.iter().any(|one| one.label == label);
        let refused = |message| Refusal::new(Exit::Usage, message);
        match label {
            Some(label) if is_taken(label) => {
                Err(refused(format!("there is a key called {label:?} already")))
            }
            Some(label) if label.is_empty() || label.parse::<usize>().is_ok() => {
                Err(refused("a label is a word, not a number".to_owned()))
            }
            Some(label) => Ok(label.to_owned()),
            None if is_taken(usual) => {
                let mut others = (2usize..).map(|number| format!("{usual} {number}"));
                Ok(others.find(|other| !is_taken(other)).unwrap_or_default())
            }
            None => Ok(usual.to_owned()),
        }
    }

    /// Has the repository take `wrappings` in place of those that it has.
    ///
    /// # Errors
    /// If there are too many; if the repository refuses, as it does when the keys were changed
    /// meanwhile.
    pub(crate) fn replace(&mut self, wrappings: Vec<Wrapping>) -> Result<()> {
        let generation = self.set.generation.saturating_add(1);
        let bytes = Bytes::from(sign_wrappings(&self.keys, generation, wrappings)?);
        self.opened.place.repository.put_wrappings(&bytes)?;
        self.set = WrappingSet::decode_signed(&bytes)?;
        Ok(())
    }
}
