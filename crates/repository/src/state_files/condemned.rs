//! Condemn marks: packs that hold nothing that is needed, and since when that is so.
//!
//! ```text
//! condemned/<pack name>: | magic "HCon" | version u8 | zero 3 | pack 32 | condemned i64 (ns since 1970)
//!                        | log position u64 | checksum 32 |
//! ```
//!
//! A mark is never taken back, and is written anew only where it cannot be read: from then on nothing in
//! its pack counts as there, and what is needed again is stored anew. So deleting the pack late, or twice,
//! or after a crash does no harm. The log position is that of the moment: a session that reads and was
//! opened before it may yet want something of the pack.

use std::collections::BTreeMap;

use holdall_format::wire::Reader;
use holdall_format::{FormatError, PackName};
use holdall_protocol::RepositoryError;

use crate::state_files::checksummed::{with_checksum, without_checksum};
use crate::state_files::high_water_mark;
use crate::storage::layout::Layout;

const WHAT: &str = "condemn mark";
const MAGIC: &[u8; 4] = b"HCon";
const VERSION: u8 = 1;
const MARK_MAX_BYTES: u64 = 4096;

/// When a pack was condemned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Condemned {
    /// Nanoseconds since 1970 UTC.
    pub(crate) since_ns: i64,
    /// The position that the log was at.
    pub(crate) log_position: u64,
}

impl Condemned {
    /// Since when, nobody knows: by it nothing is due for which there is a grace.
    const UNREADABLE: Self = Self { since_ns: i64::MAX, log_position: u64::MAX };

    /// Whether nobody knows since when.
    pub(crate) fn is_unreadable(&self) -> bool {
        *self == Self::UNREADABLE
    }

    pub(crate) fn encode(&self, pack: &PackName) -> Vec<u8> {
        let mut out = Vec::with_capacity(128);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&[VERSION, 0, 0, 0]);
        out.extend_from_slice(pack.as_bytes());
        out.extend_from_slice(&self.since_ns.to_le_bytes());
        out.extend_from_slice(&self.log_position.to_le_bytes());
        with_checksum(out)
    }

    pub(crate) fn decode(bytes: &[u8], pack: &PackName) -> Result<Self, FormatError> {
        let mut reader = Reader::new(WHAT, without_checksum(WHAT, bytes)?);
        reader.magic(MAGIC, VERSION)?;
        reader.bytes("zero", 3)?;
        if PackName::from_bytes(reader.array("pack")?) != *pack {
            return Err(reader.invalid("pack", "another one than its name says"));
        }
        let since_ns = i64::from_le_bytes(reader.array("condemned")?);
        let log_position = reader.u64("log position")?;
        reader.finish()?;
        Ok(Self { since_ns, log_position })
    }
}

/// Reads all marks. The name alone condemns its pack: a mark has it from when it is durable, and what was
/// needed of the pack lies elsewhere then. If a mark counted only where it can be read, a pack could count
/// at one time and be gone at the next, with what relied on it meanwhile.
pub(crate) fn read_all(layout: &Layout) -> Result<BTreeMap<PackName, Condemned>, RepositoryError> {
    let mut marks = BTreeMap::new();
    for name in layout.condemned().names()? {
        let Some(pack) = name.to_str().and_then(|name| name.parse::<PackName>().ok()) else {
            continue;
        };
        let bytes = layout.condemned_pack(&pack).read_limited(MARK_MAX_BYTES);
        let mark = bytes.ok().flatten().and_then(|bytes| Condemned::decode(&bytes, &pack).ok());
        marks.insert(pack, mark.unwrap_or(Condemned::UNREADABLE));
    }
    Ok(marks)
}

/// Writes a mark; it is durable when this returns. One that is there stays.
pub(crate) fn write(
    layout: &Layout,
    pack: &PackName,
    mark: &Condemned,
) -> Result<(), RepositoryError> {
    layout.condemned_pack(pack).put_new(&mark.encode(pack)).map(drop)
}

/// Condemns a pack where there is no room for a mark, by the name of one. It does not say since when.
pub(crate) fn write_name(layout: &Layout, pack: &PackName) -> Result<(), RepositoryError> {
    layout.condemned_pack(pack).put_name()
}

/// Writes marks that cannot be read anew, as if their packs were condemned now.
pub(crate) fn renew_unreadable(layout: &Layout, now: &Condemned) -> Result<(), RepositoryError> {
    let marks = read_all(layout)?.into_iter();
    for (pack, _) in marks.filter(|(_, mark)| mark.is_unreadable()) {
        layout.condemned_pack(&pack).replace(&now.encode(&pack))?;
    }
    Ok(())
}

/// The number of the last prune that let something go; 0 if there was none.
pub(crate) fn last_prune(layout: &Layout) -> Result<u64, RepositoryError> {
    high_water_mark::read(&layout.pruned())
}

/// Says that a prune of that number is about to let something go. From when it is durable on, nobody
/// believes what an index from before takes for closed.
pub(crate) fn begin_prune(layout: &Layout, number: u64) -> Result<(), RepositoryError> {
    high_water_mark::advance(&layout.pruned(), number, b"holdall prune, version 1\n")
}

/// Removes the marks of packs that are gone for good.
pub(crate) fn remove_marks<'a>(
    layout: &Layout,
    packs: impl Iterator<Item = &'a PackName>,
) -> Result<(), RepositoryError> {
    for pack in packs {
        layout.condemned_pack(pack).remove()?;
    }
    layout.condemned().sync()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::publish::make_dir;
    use proptest::prelude::*;

    const PACK: PackName = PackName::from_bytes([3; 32]);
    const MARK: Condemned = Condemned { since_ns: 5, log_position: 7 };

    #[test]
    fn a_mark_is_written_once_and_one_that_is_damaged_counts_but_nothing_is_due_by_it() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        layout.folders().iter().for_each(|folder| make_dir(folder).unwrap());
        write(&layout, &PACK, &MARK).unwrap();
        write(&layout, &PACK, &Condemned { since_ns: 9, ..MARK }).unwrap();
        assert_eq!(read_all(&layout).unwrap(), BTreeMap::from([(PACK, MARK)]));
        std::fs::write(layout.condemned_pack(&PACK).path(), b"torn").unwrap();
        assert!(read_all(&layout).unwrap()[&PACK].is_unreadable());
        write(&layout, &PACK, &MARK).unwrap();
        assert!(read_all(&layout).unwrap()[&PACK].is_unreadable());
        renew_unreadable(&layout, &MARK).unwrap();
        renew_unreadable(&layout, &Condemned { since_ns: 9, ..MARK }).unwrap();
        assert_eq!(read_all(&layout).unwrap(), BTreeMap::from([(PACK, MARK)]));
        write_name(&layout, &PACK).unwrap();
        assert_eq!(read_all(&layout).unwrap(), BTreeMap::from([(PACK, MARK)]));
        remove_marks(&layout, [PACK].iter()).unwrap();
        assert!(read_all(&layout).unwrap().is_empty());
        write_name(&layout, &PACK).unwrap();
        assert!(read_all(&layout).unwrap()[&PACK].is_unreadable());
    }

    proptest! {
        #[test]
        fn any_changed_bit_of_a_mark_is_noticed(at: usize, flip in 1u8..) {
            let mut bytes = MARK.encode(&PACK);
            prop_assert_eq!(Condemned::decode(&bytes, &PACK), Ok(MARK));
            prop_assert!(Condemned::decode(&bytes, &PackName::from_bytes([4; 32])).is_err());
            let at = at % bytes.len();
            bytes[at] ^= flip;
            prop_assert!(Condemned::decode(&bytes, &PACK).is_err());
        }
    }
}
