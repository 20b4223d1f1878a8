//! The record cache: the records of a repository that this machine has seen, as they lie there, so
//! that a backup asks only for those that came since, however many there are.
//!
//! ```text
//! | magic 8 | per record, in the order of the log: position u64, length u32, stored bytes |
//! ```
//!
//! Nothing is believed because it lies here. The repository is asked whether the records up to the
//! last one are those that it has, by a digest over all of them, and each is opened and checked as one
//! that was just sent, but for signatures that were checked before (`checked_records`). So a cache that
//! is missing, cut short, damaged, or lacks what another machine or process published in between, costs
//! one listing of everything and is written anew. One that cannot be written is a slower next run,
//! nothing more.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use bytes::{Buf, Bytes};
use holdall_protocol::ListedRecord;

use crate::cache::private_folder::{
    make_anew, make_private, open_to_append, put_in_place, read_whole,
};

const MAGIC: [u8; 8] = *b"hldrecs1";

/// The records that are kept in the cache of one repository.
pub(crate) struct RecordCache {
    place: PathBuf,
}

impl RecordCache {
    /// The one in a repository's folder of caches.
    pub(crate) fn within(folder: &Path) -> Self {
        Self { place: folder.join("records") }
    }

    /// What is kept, as far as it can be read: in the order of the log. One that is gone may have the position of another
    /// one, which comes first.
    pub(crate) fn load(&self) -> Vec<ListedRecord> {
        let read = read_whole(&self.place).ok().map(Bytes::from);
        let Some(mut bytes) = read.filter(|bytes| bytes.starts_with(&MAGIC)) else {
            return Vec::new();
        };
        bytes.advance(MAGIC.len());
        let mut records: Vec<ListedRecord> = Vec::new();
        while let Some(record) = next_record(&mut bytes) {
            if records.last().is_some_and(|last| last.position > record.position) {
                break;
            }
            records.push(record);
        }
        records
    }

    /// Keeps these records in place of those before.
    pub(crate) fn replace(&self, records: &[ListedRecord]) {
        let bytes: Vec<u8> = records.iter().flat_map(encode).collect();
        // The former ones stay, which were as good.
        let _ = replace_file(&self.place, &[&MAGIC[..], &bytes].concat());
    }

    /// Adds a record that was just published, if there is a cache.
    pub(crate) fn add(&self, record: &ListedRecord) {
        let write = || open_to_append(&self.place)?.write_all(&encode(record));
        // It is asked for next time.
        let _ = write();
    }
}

/// Puts a file in a folder of caches in the place of the one before, whole.
pub(crate) fn replace_file(place: &Path, bytes: &[u8]) -> io::Result<()> {
    place.parent().map_or(Ok(()), make_private)?;
    let written_at = place.with_extension("new");
    make_anew(&written_at)?.write_all(bytes)?;
    put_in_place(&written_at, place)
}

fn encode(record: &ListedRecord) -> Vec<u8> {
    let length = u32::try_from(record.stored.len()).unwrap_or(u32::MAX);
    let head = [&record.position.to_le_bytes()[..], &length.to_le_bytes()].concat();
    [&head[..], &record.stored].concat()
}

fn next_record(bytes: &mut Bytes) -> Option<ListedRecord> {
    let position = bytes.try_get_u64_le().ok()?;
    let length = usize::try_from(bytes.try_get_u32_le().ok()?).ok()?;
    let stored = (length <= bytes.len()).then(|| bytes.split_to(length))?;
    Some(ListedRecord { position, stored })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_world::World;
    use std::fs;

    fn record(position: u64, stored: &'static [u8]) -> ListedRecord {
        ListedRecord { position, stored: Bytes::from_static(stored) }
    }

    #[test]
    fn records_read_back_as_far_as_they_are_whole_and_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let cache = RecordCache::within(&folder.path().join("made when needed"));
        cache.add(&record(1, b"one"));
        assert!(cache.load().is_empty(), "what is before it is not known");
        let two = [record(1, b"one"), record(5, b"")];
        cache.replace(&two);
        assert_eq!(cache.load(), two);
        cache.add(&record(7, b"seven"));
        assert_eq!(cache.load()[..2], two);
        assert_eq!(cache.load()[2..], [record(7, b"seven")]);
        cache.add(&record(6, b"not in order"));
        assert_eq!(cache.load().len(), 3);
        let bytes = fs::read(&cache.place).unwrap();
        for length in 0..bytes.len() {
            fs::write(&cache.place, &bytes[..length]).unwrap();
            let cut = cache.load();
            assert!(cut.len() <= 3 && cut[..cut.len().min(2)] == two[..cut.len().min(2)]);
        }
    }

    /// A world with three snapshots, all of which are in the cache.
    fn backed_up() -> (World, tempfile::TempDir) {
        let (world, source) = (World::new(), tempfile::tempdir().unwrap());
        for _ in 0..3 {
            world.back_up_known(source.path());
        }
        assert_eq!(world.repository.records_given(), 0);
        (world, source)
    }

    #[test]
    fn what_this_machine_published_is_never_asked_for() {
        let (world, _source) = backed_up();
        let known = crate::records::snapshots::snapshots_by_cache(&world.access).unwrap();
        assert_eq!(known.snapshots.len(), 3);
        assert_eq!(world.repository.records_given(), 0);
        let ids = |listed: &[crate::Snapshot]| listed.iter().map(|one| one.id).collect::<Vec<_>>();
        assert_eq!(ids(&known.snapshots), ids(&world.snapshots()));
    }

    #[test]
    fn what_others_published_is_asked_for_once() {
        let (world, source) = backed_up();
        let cache = world.access.cache.join("records");
        let before = fs::read(&cache).unwrap();
        world.back_up_known(source.path());
        // As if another machine had published the last one.
        fs::write(&cache, before).unwrap();
        for _ in 0..2 {
            let listed = crate::records::snapshots::snapshots_by_cache(&world.access).unwrap();
            assert_eq!((listed.snapshots.len(), listed.damaged.len()), (4, 0));
            assert_eq!(world.repository.records_given(), 1);
        }
    }

    #[test]
    fn a_record_that_was_lost_or_damaged_is_noticed() {
        let (world, _source) = backed_up();
        world.repository.damage_record(1);
        let listed = crate::records::snapshots::snapshots_by_cache(&world.access).unwrap();
        let positions: Vec<_> = listed.damaged.iter().map(|one| one.position).collect();
        assert_eq!((listed.snapshots.len(), &positions[..]), (2, &[2][..]));
        world.repository.lose_record(2);
        // It stays known, and is told each time, by whoever looks.
        for look in [crate::records::snapshots::snapshots_by_cache, crate::snapshots] {
            let listed = look(&world.access).unwrap();
            assert_eq!((listed.snapshots.len(), listed.damaged.len()), (1, 1));
            let gone: Vec<_> =
                listed.gone.iter().map(|one| (one.position, one.is_followed)).collect();
            assert_eq!(gone, [(3, false)]);
        }
    }

    #[test]
    fn a_damaged_cache_is_no_harm() {
        let (world, _source) = backed_up();
        let cache = world.access.cache.join("records");
        let bytes = fs::read(&cache).unwrap();
        for at in (0..bytes.len()).step_by(97) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            fs::write(&cache, damaged).unwrap();
            let listed = crate::records::snapshots::snapshots_by_cache(&world.access).unwrap();
            let told = (listed.snapshots.len(), listed.damaged.len(), listed.gone.len());
            assert_eq!(told, (3, 0, 0), "{at}");
            assert_eq!(fs::read(&cache).unwrap(), bytes, "{at}");
        }
    }
}
