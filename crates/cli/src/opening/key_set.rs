//! The keys of a repository, open to be changed: its wrappings, and the key ring that is in them.

use anyhow::Result;
use bytes::Bytes;
use holdall_crypto::{
    KeyRing, RecoveryKit, RecoverySecret, RepositoryKeys, SystemEntropy, sign_wrappings, wrap_again,
};
use holdall_format::limits::{LABEL_MAX_BYTES, WRAPPINGS_MAX};
use holdall_format::{Spare, Wrapping, WrappingSet};
use holdall_state::{KeptKeys, KeptParts, Known};

use crate::app::App;
use crate::exit::{Exit, Refusal};
use crate::opening::create::recovery_kit;
use crate::opening::open::{self, Opened, Patience};
use crate::opening::unlock::kept_key;

/// What a number behind a label takes.
const NUMBER_MAX_BYTES: usize = 3;

/// The keys of a repository.
pub(crate) struct KeySet {
    opened: Opened,
    /// As the repository has them.
    pub(crate) set: WrappingSet,
    /// What is wrapped.
    pub(crate) ring: KeyRing,
    keys: RepositoryKeys,
}

impl KeySet {
    /// Opens the repository that was named, or the paired one, as every command does.
    ///
    /// # Errors
    /// What keeps it from being opened.
    pub(crate) fn open(app: &App) -> Result<Self> {
        let opened = open::place(app, Patience::default())?;
        let (set, ring) = opened.unlock(app)?;
        let keys = RepositoryKeys::derive(&ring);
        Ok(Self { opened, set, ring, keys })
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
        recovery_kit((&self.ring, &self.keys), secret, server, &self.opened.repository_name)
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
    /// [`Refusal`] for a wanted one that a key has, that could be a number, or that is too long.
    pub(crate) fn free_label(&self, label: Option<&str>, usual: &str) -> Result<String, Refusal> {
        let taken: Vec<_> = self.set.wrappings.iter().map(|one| &one.label[..]).collect();
        match label {
            Some(label) => wanted_label(&taken, label),
            None => Ok(usual_label(&taken, usual)),
        }
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
        let generation = self.set.generation.saturating_add(1);
        let bytes = Bytes::from(sign_wrappings(&self.keys, generation, wrappings)?);
        self.opened.place.repository.put_wrappings(&bytes)?;
        let changed = Spare::of(&self.opened.place.spare()?.config_bytes, &bytes)?;
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
        self.keys = RepositoryKeys::derive(&ring);
        self.ring = ring;
        self.replace(app, wrappings)?;
        self.opened.remember(app, Known::of(&self.set));
        if kept_key(app, self.set.repository)?.is_some() {
            KeptKeys::in_state(&app.folders.state).keep(self.set.repository, &self.ring)?;
        }
        Ok(())
    }
}

fn wanted_label(taken: &[&str], label: &str) -> Result<String, Refusal> {
    let refused = |message| Err(Refusal::new(Exit::Usage, message));
    if taken.contains(&label) {
        return refused(format!("there is a key called {label:?} already"));
    }
    if is_no_word(label) {
        return refused("a label is a word, not a number".to_owned());
    }
    if label.len() > LABEL_MAX_BYTES {
        let len = label.len();
        return refused(format!("a label of {len} bytes; {LABEL_MAX_BYTES} are allowed"));
    }
    Ok(label.to_owned())
}

/// The usual label, or one like it, by the same rules: it may be anybody's comment.
fn usual_label(taken: &[&str], usual: &str) -> String {
    let mut label = if is_no_word(usual) { format!("key {usual}") } else { usual.to_owned() };
    // A number may have to follow.
    label.truncate(label.floor_char_boundary(LABEL_MAX_BYTES - NUMBER_MAX_BYTES));
    let numbered = (2..=WRAPPINGS_MAX + 1).map(|number| format!("{label} {number}"));
    let mut labels = std::iter::once(label.clone()).chain(numbered);
    labels.find(|label| !taken.contains(&&label[..])).unwrap_or_default()
}

/// Whether people could not tell a label from a number.
fn is_no_word(label: &str) -> bool {
    label.trim().is_empty() || label.trim().parse::<usize>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wanted_label_is_a_new_word_within_its_limit() {
        let exit = |label: &str| wanted_label(&["laptop"], label).unwrap_err().exit;
        assert_eq!(wanted_label(&["laptop"], "phone").unwrap(), "phone");
        for wrong in ["laptop", "3", "", &"x".repeat(LABEL_MAX_BYTES + 1)] {
            assert_eq!(exit(wrong), Exit::Usage, "{wrong}");
        }
        assert!(wanted_label(&[], &"x".repeat(LABEL_MAX_BYTES)).is_ok());
    }

    #[test]
    fn a_usual_label_obeys_the_same_rules() {
        let long = "\u{e9}".repeat(LABEL_MAX_BYTES);
        for usual in ["ada@desk", "7", "", " ", &long] {
            let first = usual_label(&[], usual);
            assert!(wanted_label(&[], &first).is_ok(), "{usual:?}: {first:?}");
            let second = usual_label(&[&first], usual);
            assert!(wanted_label(&[&first], &second).is_ok(), "{usual:?}: {second:?}");
        }
        assert_eq!(usual_label(&["ada", "ada 2"], "ada"), "ada 3");
        assert_eq!(usual_label(&[], "7"), "key 7");
    }
}
