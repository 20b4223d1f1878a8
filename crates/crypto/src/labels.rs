//! What people call the wrappings of a key ring: each label is a word that no other of the set has.

use holdall_format::Wrapping;
use holdall_format::limits::{LABEL_MAX_BYTES, WRAPPINGS_MAX};

/// What a number behind a label takes, in bytes.
const NUMBER_MAX_BYTES: usize = 3;

/// Why a wrapping is not called or found so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LabelError {
    /// Another wrapping of the set has the label.
    #[error("there is a key called {0:?} already")]
    Taken(String),
    /// It is blank, or could be the number of a wrapping.
    #[error("a label is a word, not a number")]
    NoWord,
    /// It is longer than a label may be.
    #[error("a label of {len_bytes} bytes; {LABEL_MAX_BYTES} are allowed")]
    TooLong {
        /// How long it is.
        len_bytes: usize,
    },
    /// No wrapping has this label or number.
    #[error("no key is called {0:?}, nor has that number")]
    Unknown(String),
    /// Several wrappings have this label.
    #[error("several keys are called {0:?}; say which by its number")]
    Ambiguous(String),
}

/// Finds a wrapping by its number, from 1, or its label; gives its index.
///
/// # Errors
/// [`LabelError::Unknown`] and [`LabelError::Ambiguous`].
pub fn find_wrapping(wrappings: &[Wrapping], wanted: &str) -> Result<usize, LabelError> {
    let number = wanted.parse::<usize>().ok();
    if let Some(number) = number.filter(|number| (1..=wrappings.len()).contains(number)) {
        return Ok(number - 1);
    }
    let fits = |(at, one): (usize, &Wrapping)| (one.label == wanted).then_some(at);
    let mut found = wrappings.iter().enumerate().filter_map(fits);
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (None, _) => Err(LabelError::Unknown(wanted.to_owned())),
        _ => Err(LabelError::Ambiguous(wanted.to_owned())),
    }
}

/// A label that none of `wrappings` has: `label` as it is wanted, or else one made of a `usual` one, which may be anybody's
/// comment.
///
/// # Errors
/// [`LabelError::Taken`], [`LabelError::NoWord`] and [`LabelError::TooLong`] for a wanted one.
pub fn free_label(
    wrappings: &[Wrapping],
    label: Option<&str>,
    usual: &str,
) -> Result<String, LabelError> {
    let taken: Vec<_> = wrappings.iter().map(|one| &one.label[..]).collect();
    match label {
        Some(label) => wanted_label(&taken, label),
        None => Ok(usual_label(&taken, usual)),
    }
}

fn wanted_label(taken: &[&str], label: &str) -> Result<String, LabelError> {
    if taken.contains(&label) {
        return Err(LabelError::Taken(label.to_owned()));
    }
    if is_no_word(label) {
        return Err(LabelError::NoWord);
    }
    if label.len() > LABEL_MAX_BYTES {
        return Err(LabelError::TooLong { len_bytes: label.len() });
    }
    Ok(label.to_owned())
}

/// The usual label, or one like it, by the same rules.
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
    use crate::{KeyRing, RecoverySecret, wrap_recovery};

    fn called(label: &str) -> Wrapping {
        let ring = KeyRing::from_master([1; 32]);
        Wrapping {
            label: label.into(),
            ..wrap_recovery(&ring, &RecoverySecret::from_bytes([2; 32]))
        }
    }

    #[test]
    fn a_wrapping_is_found_by_its_number_or_its_label() {
        let wrappings = ["laptop", "phone", "phone", "9"].map(called);
        assert_eq!(find_wrapping(&wrappings, "3"), Ok(2));
        assert_eq!(find_wrapping(&wrappings, "laptop"), Ok(0));
        assert_eq!(find_wrapping(&wrappings, "9"), Ok(3), "no number of one");
        assert_eq!(find_wrapping(&wrappings, "phone"), Err(LabelError::Ambiguous("phone".into())));
        for unknown in ["0", "5", "", "desk"] {
            assert_eq!(
                find_wrapping(&wrappings, unknown),
                Err(LabelError::Unknown(unknown.into()))
            );
        }
    }

    #[test]
    fn a_wanted_label_is_a_new_word_within_its_limit() {
        let refused = |label: &str| wanted_label(&["laptop"], label).unwrap_err();
        assert_eq!(wanted_label(&["laptop"], "phone").unwrap(), "phone");
        assert_eq!(refused("laptop"), LabelError::Taken("laptop".into()));
        assert_eq!([refused("3"), refused("")], [LabelError::NoWord, LabelError::NoWord]);
        let len_bytes = LABEL_MAX_BYTES + 1;
        assert_eq!(refused(&"x".repeat(len_bytes)), LabelError::TooLong { len_bytes });
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
