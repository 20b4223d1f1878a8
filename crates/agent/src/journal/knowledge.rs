//! What is known to have changed since a moment: some places, or, in doubt, everything.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::reason::Reason;

/// More are a sign that everything changed, and would take longer to look at one by one.
const PLACES_MAX: usize = 10_000;

/// Folders in which something may have changed, each with whether that may be anywhere below it.
pub(super) type Places = BTreeMap<PathBuf, bool>;

/// What may have changed since a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Knowledge {
    /// In these places, and nowhere else.
    Places(Places),
    /// Anything.
    Nothing(Reason),
}

impl Knowledge {
    /// At the moment itself.
    pub(super) fn none_changed() -> Self {
        Self::Places(Places::new())
    }

    /// Adds a place.
    pub(super) fn add(&mut self, place: &Path, is_deep: bool) {
        let Self::Places(places) = self else { return };
        if let Some(known) = places.get_mut(place) {
            *known |= is_deep;
        } else if places.len() < PLACES_MAX {
            places.insert(place.to_owned(), is_deep);
        } else {
            *self = Self::Nothing(Reason::TooManyPlaces);
        }
    }

    /// Gives everything up. The first reason stays.
    pub(super) fn give_up(&mut self, reason: Reason) {
        if let Self::Places(_) = self {
            *self = Self::Nothing(reason);
        }
    }

    /// What may have changed since an earlier moment, of which `earlier` tells up to the moment of this.
    pub(super) fn since(&mut self, earlier: Self) {
        match earlier {
            Self::Nothing(reason) => *self = Self::Nothing(reason),
            Self::Places(places) => {
                places.iter().for_each(|(place, is_deep)| self.add(place, *is_deep));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_stays_deep_and_what_was_given_up_stays_so() {
        let mut knowledge = Knowledge::none_changed();
        knowledge.add(Path::new("/a"), true);
        knowledge.add(Path::new("/a"), false);
        assert_eq!(knowledge, Knowledge::Places(Places::from([("/a".into(), true)])));
        knowledge.give_up(Reason::Overflow);
        knowledge.give_up(Reason::Daily);
        knowledge.add(Path::new("/b"), false);
        assert_eq!(knowledge, Knowledge::Nothing(Reason::Overflow));
    }

    #[test]
    fn too_many_places_are_everything() {
        let mut knowledge = Knowledge::none_changed();
        for number in 0..PLACES_MAX {
            knowledge.add(&Path::new("/a").join(number.to_string()), false);
        }
        knowledge.add(Path::new("/a/0"), true);
        assert!(matches!(&knowledge, Knowledge::Places(places) if places.len() == PLACES_MAX));
        knowledge.add(Path::new("/b"), false);
        assert_eq!(knowledge, Knowledge::Nothing(Reason::TooManyPlaces));
    }

    #[test]
    fn what_a_failed_run_was_told_comes_back() {
        let mut later = Knowledge::none_changed();
        later.add(Path::new("/late"), false);
        let mut earlier = Knowledge::none_changed();
        earlier.add(Path::new("/late"), true);
        earlier.add(Path::new("/early"), false);
        later.since(earlier);
        let both = Places::from([("/early".into(), false), ("/late".into(), true)]);
        assert_eq!(later, Knowledge::Places(both));
        later.since(Knowledge::Nothing(Reason::Daily));
        assert_eq!(later, Knowledge::Nothing(Reason::Daily));
    }
}
