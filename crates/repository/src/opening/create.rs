//! Making a repository.

use holdall_format::{ERASED_FILE, RepositoryConfig};
use holdall_protocol::{NewRepository, RepositoryError};
use holdall_sys::{PathBeneath, Stat};

use crate::opening::clear_parts::holds_records;
use crate::opening::lease::{Access, Lease};
use crate::opening::open::make_folders;
use crate::opening::probe::{probe, says_probes};
use crate::opening::wrappings::{SignedSet, put_spare};
use crate::state_files::erased::read_erased;
use crate::storage::layout::{Layout, MARKER_TEXT, generations_in, since};
use crate::storage::own_names::{below, each_in, is_own};
use crate::storage::publish::{Published, damaged, make_private_dirs, read_limited};

/// No file that is looked at is longer.
const FILE_MAX_BYTES: u64 = 4 << 10;

/// Makes a repository. The marker comes last: without it there is none, and what an earlier attempt
/// left is replaced.
pub(crate) fn create(layout: &Layout, new: &NewRepository) -> Result<(), RepositoryError> {
    let wrappings = checked_wrappings(new)?;
    make_private_dirs(layout.root().path())?;
    refuse_if_used(layout)?;
    refuse_other_content(layout)?;
    let lease = Lease::take(layout, Access::Write)?;
    // Somebody may have made one, and used it, before the lease was taken.
    refuse_if_used(layout)?;
    make_folders(layout)?;
    probe(layout)?;
    lease.renew()?;
    layout.config().replace(&new.config)?;
    layout.wrappings_of(wrappings.set.generation).replace(&new.wrappings)?;
    // No tail is there that anybody could write to.
    lease.settle()?;
    match layout.marker().put_new(MARKER_TEXT.as_bytes())? {
        Published::New => {
            // Behind the marker, since a spare says that there is a repository too. Where it cannot be made now,
            // whoever opens the repository first makes it.
            let _ = put_spare(layout, &new.config, &wrappings);
            Ok(())
        }
        Published::Existed => Err(RepositoryError::AlreadyExists { place: layout.place() }),
    }
}

/// The set of wrappings of a repository that somebody wants to make.
///
/// # Errors
/// [`RepositoryError::Refused`] for one that does not fit the configuration, or names a recovery kit without a proof.
pub(crate) fn checked_wrappings(new: &NewRepository) -> Result<SignedSet, RepositoryError> {
    let config = RepositoryConfig::decode_signed(&new.config)?;
    SignedSet::check(&new.wrappings, &config, &[])
}

/// Why no repository is made where records lie.
const BACKUPS_THERE: &str =
    "it is missing, and there are backups beside it; `holdall check --repair` puts it back";

/// A repository is not made where there is one.
fn refuse_if_used(layout: &Layout) -> Result<(), RepositoryError> {
    if let Some(erased) = read_erased(layout)? {
        let reason = format!(
            "the repository at {} was erased{}, and none begins anew there: name another folder, or remove that one",
            layout.place(),
            since(Some(erased))
        );
        return Err(RepositoryError::Refused { reason });
    }
    if layout.marker().is_there()? || !generations_in(&layout.spares())?.is_empty() {
        return Err(RepositoryError::AlreadyExists { place: layout.place() });
    }
    if holds_records(layout)? {
        // Another configuration and other keys in place of theirs would lose them.
        return Err(damaged(&layout.marker(), BACKUPS_THERE));
    }
    Ok(())
}

/// A repository is not made among files of somebody else.
fn refuse_other_content(layout: &Layout) -> Result<(), RepositoryError> {
    each_in(layout, &mut |path, there| {
        let below = below(layout, path);
        if is_own(below, there.kind) && is_left(layout, path, there)? {
            return Ok(());
        }
        let reason = format!(
            "{} is neither empty nor a repository: it has {}; name a folder of its own",
            layout.place(),
            below.display()
        );
        Err(RepositoryError::Refused { reason })
    })
}

/// Whether what has the name of a file that is written anew is what an earlier attempt left, or empty.
fn is_left(layout: &Layout, path: &PathBeneath, there: &Stat) -> Result<bool, RepositoryError> {
    let is_known: fn(&[u8]) -> bool = match () {
        () if Some(path) == layout.config().file().as_ref() => {
            |bytes| RepositoryConfig::decode_signed(bytes).is_ok()
        }
        () if *path == layout.probes() => says_probes,
        () => return Ok(*path != layout.root().join(ERASED_FILE)),
    };
    if there.size > FILE_MAX_BYTES {
        return Ok(false);
    }
    let bytes = read_limited(path, FILE_MAX_BYTES)?;
    Ok(bytes.is_none_or(|bytes| bytes.is_empty() || is_known(&bytes)))
}
