//! What a server must know of a repository before anybody uses it.
//!
//! A server that lost its accounts has only its repositories to learn from: who may read each with a
//! recovery kit, and which key a machine's chain of records goes on with. Both are read straight from
//! the directory, without its lease and without its index, so that a server with many repositories
//! starts at once.

use std::path::Path;

use bytes::Bytes;
use holdall_format::limits::WRAPPING_SET_MAX_BYTES;
use holdall_format::{MachineId, PublicKey, WrappingSet};
use holdall_protocol::{NewRepository, RepositoryError};

use crate::opening::clear_parts::{self, ClearParts};
use crate::opening::create::checked_wrappings;
use crate::records::files;
use crate::storage::layout::Layout;
use crate::storage::retry::split_process_errors;

/// The identities of the recovery kits of the repository in `dir`.
///
/// # Errors
/// [`RepositoryError::NoRepository`]; [`RepositoryError::Damaged`].
pub fn recovery_identities_in(dir: &Path) -> Result<Vec<PublicKey>, RepositoryError> {
    Ok(ClearParts::read(&Layout::new(dir))?.wrappings.set.recovery_identities())
}

/// The identities of the recovery kits of a repository that somebody wants to make, all of them proven.
///
/// # Errors
/// [`RepositoryError::Refused`] for parts that do not fit each other, or a kit without a proof.
pub fn recovery_identities_of_new(new: &NewRepository) -> Result<Vec<PublicKey>, RepositoryError> {
    Ok(checked_wrappings(new)?.set.recovery_identities())
}

/// The highest generation that a set of wrappings has a name of in `dir`, sound or not; 0 without any.
///
/// # Errors
/// [`RepositoryError::Io`].
pub fn newest_generation_in(dir: &Path) -> Result<u64, RepositoryError> {
    Ok(clear_parts::highest_generation(&Layout::new(dir))?.unwrap_or_default())
}

/// The set of wrappings of the highest generation in `dir`, as it was signed, if its own file is sound.
///
/// # Errors
/// Those that say nothing of any file.
pub fn newest_wrappings_in(dir: &Path) -> Result<Option<Bytes>, RepositoryError> {
    let layout = Layout::new(dir);
    let Some(generation) = clear_parts::highest_generation(&layout)? else { return Ok(None) };
    let path = layout.wrappings_of(generation);
    let read = split_process_errors(path.read_limited(WRAPPING_SET_MAX_BYTES as u64))?;
    let is_sound = |bytes: &Vec<u8>| {
        WrappingSet::decode_signed(bytes).is_ok_and(|set| set.generation == generation)
    };
    Ok(read.ok().flatten().filter(is_sound).map(Bytes::from))
}

/// The key that signed the newest record of `machine` in the repository in `dir`; `None` if it has no
/// record there. Records of others that are newer are read on the way.
///
/// # Errors
/// [`RepositoryError::NoRepository`]; [`RepositoryError::Damaged`] for a record that cannot be read,
/// since it may be the one.
pub fn newest_key_in(
    dir: &Path,
    machine: &MachineId,
) -> Result<Option<PublicKey>, RepositoryError> {
    let layout = Layout::new(dir);
    clear_parts::check_marker(&layout)?;
    for position in files::positions(&layout)?.into_iter().rev() {
        let head = files::read_head(&layout, position)?;
        if head.machine == *machine {
            return Ok(Some(head.key));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::entries::Records;
    use crate::records::entries::tests::stored;
    use holdall_protocol::contract::{Forge, TestKey};

    const ADA: MachineId = MachineId::from_bytes([1; 16]);
    const BOB: MachineId = MachineId::from_bytes([2; 16]);

    #[test]
    fn the_newest_key_of_a_machine_is_that_of_its_last_record() {
        let dir = tempfile::tempdir().unwrap();
        let forge = |machine, seed| Forge::new(1, machine, &[seed; 32]);
        let kits = [TestKey::from_seed(&[7; 32])];
        let wrappings = forge(ADA, 1).wrappings_for_kits(1, &kits);
        let new = NewRepository { wrappings, ..forge(ADA, 1).new_repository() };
        assert!(newest_key_in(dir.path(), &ADA).is_err(), "there is no repository");
        assert!(recovery_identities_in(dir.path()).is_err(), "there is no repository");
        crate::Store::create(dir.path(), &new).unwrap();
        assert_eq!(recovery_identities_in(dir.path()).unwrap(), [kits[0].public()]);

        let layout = Layout::new(dir.path());
        let records = Records::load(&layout).unwrap().records;
        for (position, machine, seed) in [(3, ADA, 1), (15, ADA, 2), (17, BOB, 3)] {
            let record = stored(&forge(machine, seed), position);
            records.publish(&record, || Ok(())).unwrap();
        }
        let newest = |machine| newest_key_in(dir.path(), &machine).unwrap();
        assert_eq!(newest(ADA), Some(forge(ADA, 2).key.public()));
        assert_eq!(newest(BOB), Some(forge(BOB, 3).key.public()));
        assert_eq!(newest(MachineId::from_bytes([9; 16])), None);

        std::fs::write(layout.record(17).path(), b"torn").unwrap();
        assert!(newest_key_in(dir.path(), &ADA).is_err(), "the torn one may be hers");
    }
}
