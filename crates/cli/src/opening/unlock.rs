//! From a repository's wrappings to its key ring: with the ring that is kept on this machine, a key of
//! somebody's own, or the password.

use anyhow::{Context, Result};
use holdall_crypto::{KeyRing, Opening, is_rotated_since, stretching_bytes, unwrap};
use holdall_format::{RepositoryId, WrappingSet};
use holdall_state::KeptKeys;

use crate::app::App;
use crate::opening::known;
use crate::secrets::own_key;
use crate::secrets::password::explained;
use crate::terminal::little_memory::fits_memory;

/// The key ring that is wrapped in `set`: the one that is kept on this machine, or unwrapped with the
/// key that was named or the password, and then kept again where the one that was kept is older.
/// `name` is the repository's, for people; `known` is the one that a key of somebody's own may open
/// unless its fingerprint was given.
///
/// # Errors
/// What keeps it from being unwrapped; damage if the keys were set back to an older epoch than the
/// kept one's; as for [`known::check_opened`].
pub(crate) fn key_ring(
    app: &App,
    set: &WrappingSet,
    name: &str,
    known: Option<RepositoryId>,
) -> Result<KeyRing> {
    let open = |opening: &Opening<'_>| unwrap(set, opening).with_context(|| name.to_owned());
    let kept = kept_key(app, set.repository)?;
    let is_rotated = kept.as_ref().map_or(Ok(false), |kept| is_rotated_since(set, kept));
    let is_rotated = is_rotated.with_context(|| name.to_owned())?;
    if is_rotated {
        app.output.note(
            "the keys were rotated since this computer kept them: its password is needed once, or \
             `holdall pair --kit FILE`",
        );
    }
    let (ring, known) = if let Some(kept) = kept.filter(|_| !is_rotated) {
        (kept, Some(set.repository))
    } else if let Some(file) = &app.own_key {
        (open(&Opening::OwnKey(&own_key::read(file, &app.passwords)?))?, known)
    } else {
        fits_memory(stretching_bytes(set))?;
        let password = app.passwords.existing(name)?;
        let ring = open(&Opening::Passphrase(&password));
        (ring.map_err(|error| explained(error, &password))?, Some(set.repository))
    };
    known::check_opened(app, &ring, known, name)?;
    if is_rotated {
        KeptKeys::in_state(&app.folders.state).keep(set.repository, &ring)?;
    }
    Ok(ring)
}

/// The key ring of a repository, if it is kept on this machine.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn kept_key(app: &App, repository: RepositoryId) -> Result<Option<KeyRing>> {
    Ok(KeptKeys::in_state(&app.folders.state).get(repository)?)
}
