//! A mark beside the record cache: as far as it goes, this machine has checked the signatures.
//!
//! ```text
//! | magic 8 | records u64 | digest of the records, keyed 32 |
//! ```
//!
//! Two signatures for each record are most of what a listing costs: more than half of what a backup takes
//! that finds nothing changed, beside 1,700 of them. The mark is over the bytes of the first so
//! many records, and only who has the repository's keys can make it: neither a keeper nor whoever else
//! can write to the cache has records taken for checked that were not. Where it does not fit what is
//! there, everything is checked. What else makes a record a good one is looked at every time.

use std::path::{Path, PathBuf};

use holdall_crypto::RepositoryKeys;
use holdall_protocol::{ListedRecord, RecordsDigest};

use crate::cache::private_folder::read_whole;
use crate::cache::record_cache::replace_file;

const MAGIC: [u8; 8] = *b"hldchkd1";
/// So many records are worth another mark.
pub(crate) const MARKED_AFTER: usize = 64;

/// The mark of one repository.
pub(crate) struct CheckedRecords {
    place: PathBuf,
}

impl CheckedRecords {
    /// The one in a repository's folder of caches.
    pub(crate) fn within(folder: &Path) -> Self {
        Self { place: folder.join("checked-records") }
    }

    /// How many of these records it is for, from the first one.
    pub(crate) fn count_in(&self, records: &[ListedRecord], keys: &RepositoryKeys) -> usize {
        let Ok(bytes) = read_whole(&self.place) else { return 0 };
        let count = bytes.get(MAGIC.len()..).and_then(<[u8]>::first_chunk);
        let count = count.and_then(|count| usize::try_from(u64::from_le_bytes(*count)).ok());
        let marked = count.and_then(|count| records.get(..count));
        marked.filter(|marked| encode(marked, keys)[..] == bytes).map_or(0, <[_]>::len)
    }

    /// Marks these, all of whose signatures were checked.
    pub(crate) fn mark(&self, records: &[ListedRecord], keys: &RepositoryKeys) {
        // They are checked again next time.
        let _ = replace_file(&self.place, &encode(records, keys));
    }
}

fn encode(records: &[ListedRecord], keys: &RepositoryKeys) -> Vec<u8> {
    let digest = RecordsDigest::of(records);
    let mark = keys.checked_mark(digest.as_bytes());
    [&MAGIC[..], &(records.len() as u64).to_le_bytes(), &mark].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::record_list::list_by_cache;
    use crate::records::snapshots::{snapshots, snapshots_by_cache};
    use crate::test_world::World;
    use std::fs;

    /// A repository of so many snapshots, and what is marked of it.
    fn backed_up(times: usize) -> (World, CheckedRecords) {
        let (world, source) = (World::new(), tempfile::tempdir().unwrap());
        for _ in 0..times {
            world.back_up_known(source.path());
        }
        let marks = CheckedRecords::within(&world.access.cache);
        (world, marks)
    }

    fn damaged(world: &World) -> Vec<u64> {
        let listed = snapshots_by_cache(&world.access).unwrap();
        listed.damaged.iter().map(|damaged| damaged.position).collect()
    }

    #[test]
    fn signatures_are_checked_unless_this_machine_has_checked_them() {
        let (world, marks) = backed_up(4);
        world.repository.damage_record(1);
        assert_eq!(damaged(&world), [2]);
        let records = list_by_cache(&world.access).unwrap().records;
        marks.mark(&records, &world.access.keys);
        assert!(damaged(&world).is_empty(), "they are taken for checked");
        let asked = snapshots(&world.access).unwrap();
        assert_eq!(asked.damaged.len(), 1, "a whole listing takes nothing for checked");
        world.repository.damage_record(2);
        assert_eq!(damaged(&world), [2, 3], "they are not the same any more");
    }

    #[test]
    fn a_mark_is_for_the_records_that_it_was_made_of_and_by_who_has_the_keys() {
        let (world, marks) = backed_up(4);
        let mut records = list_by_cache(&world.access).unwrap().records;
        let keys = &world.access.keys;
        marks.mark(&records[..3], keys);
        assert_eq!(marks.count_in(&records, keys), 3);
        assert_eq!(marks.count_in(&records[..2], keys), 0);
        assert_eq!(marks.count_in(&records, &World::with_secret([9; 32]).access.keys), 0);
        records.swap(0, 1);
        assert_eq!(marks.count_in(&records, keys), 0);
        records.swap(0, 1);

        let whole = fs::read(&marks.place).unwrap();
        for bit in 0..whole.len() * 8 {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            fs::write(&marks.place, &damaged).unwrap();
            assert_eq!(marks.count_in(&records, keys), 0, "bit {bit}");
        }
        for length in 0..whole.len() {
            fs::write(&marks.place, &whole[..length]).unwrap();
            assert_eq!(marks.count_in(&records, keys), 0, "cut at {length}");
        }
    }

    #[test]
    fn what_listings_check_is_marked_now_and_then_up_to_the_first_that_is_damaged() {
        let (world, marks) = backed_up(MARKED_AFTER);
        assert!(!marks.place.exists(), "the last one was not listed yet");
        let marked = || {
            assert!(damaged(&world).len() < 2);
            marks.count_in(&list_by_cache(&world.access).unwrap().records, &world.access.keys)
        };
        assert_eq!(marked(), MARKED_AFTER);
        fs::remove_file(&marks.place).unwrap();
        world.repository.damage_record(MARKED_AFTER - 1);
        assert_eq!(marked(), 0, "one is lacking");
        let source = tempfile::tempdir().unwrap();
        world.back_up_known(source.path());
        assert_eq!(marked(), 0, "what lies behind it is not counted");
    }
}
