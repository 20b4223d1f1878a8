//! Checks that a repository is the one that is meant: the paired one, the one that was opened there before, or the one of a
//! fingerprint.
//!
//! A password, a kit and a kept key show whose repository they open. A public key does not: anybody can wrap a secret for
//! it, so a keeper could put a repository of its own in the place of somebody's and read all that is backed up there. What
//! a key of one's own opens is therefore believed only where it is known by other means: by the pairing with a server, by
//! what the state folder keeps, or by the fingerprint that a person gives.

use anyhow::Result;
use holdall_crypto::KeyRing;
use holdall_format::{RepositoryId, WrappingSet};
use holdall_state::{Directories, Known};

use crate::app::App;
use crate::exit::{Exit, Refusal, is_forbidden};

/// The repository that was opened last in the directory of that `name`. A file that is damaged, or what else lies there,
/// is moved away, and a note says so: what it said is learned again when the repository is opened.
///
/// # Errors
/// If this user may not read it, or it cannot be moved.
pub(crate) fn in_directory(app: &App, name: &str) -> Result<Option<Known>> {
    let directories = Directories::in_state(&app.folders.state);
    let error = match directories.get(name).map_err(anyhow::Error::from) {
        Err(error) if !is_forbidden(&error) => error,
        got => return got,
    };
    let aside = directories.put_aside(name)?;
    app.output.note(format_args!(
        "{error:#}. It is kept as {}. It said which repository lies in that directory, and since which rotation of its \
         keys: what is there now is taken for that repository",
        aside.display()
    ));
    Ok(None)
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
         and run `holdall pair INVITE --default`",
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
    let (fingerprint, repository) = (ring.fingerprint(), ring.repository());
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
    fn a_fingerprint_is_the_same_however_it_is_typed() {
        assert_eq!(letters_of("abcd-EF gh"), letters_of("ABCD EFGH"));
        assert_ne!(letters_of("ABCD"), letters_of("ABCE"));
    }
}
