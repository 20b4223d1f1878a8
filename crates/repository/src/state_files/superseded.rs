//! Marks of superseded blocks: what is needed of them lies in later blocks too, which count first.
//!
//! ```text
//! superseded/<log position>.held  | magic "HSup" | version u8 | zero 3 | log position u64 | count u32
//! superseded/<log position>       | arrival u64, ascending (count times) | checksum 32 |
//! ```
//!
//! A client with keys stored again what is needed of a block that is mostly dead, and says so. From then
//! on the block's copies count as if they had come at the mark's position: behind those that came before
//! it, and before whatever somebody puts later. While the mark is held, the block
//! itself stays all the same, so that one can go back; the same mark without its ending lets a prune
//! take it. A mark is removed when none of its blocks is stored any more.

use std::collections::{BTreeMap, BTreeSet};

use holdall_format::FormatError;
use holdall_format::wire::Reader;
use holdall_protocol::{MAX_IDS, RepositoryError};

use crate::state_files::checksummed::{with_checksum, without_checksum};
use crate::storage::Stored;
use crate::storage::layout::{Layout, number_of};

const WHAT: &str = "mark of superseded blocks";
const MAGIC: &[u8; 4] = b"HSup";
const VERSION: u8 = 1;
/// What the file of a mark ends with while its blocks are to stay.
const HELD: &str = ".held";
const MARK_MAX_BYTES: u64 = 1024 + 8 * MAX_IDS as u64;

/// Blocks that are superseded, by arrival position.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Superseded {
    /// All of them, and the position that each counts as having come at.
    pub(crate) arrivals: BTreeMap<u64, u64>,
    /// Those that stay all the same.
    held: BTreeSet<u64>,
    /// A mark that holds nobody knows which blocks: nothing may go while it is there.
    pub(crate) unreadable: Option<u64>,
    /// The log position of the newest mark, 0 without one.
    pub(crate) newest: u64,
}

impl Superseded {
    /// The position that a block counts as having come at.
    pub(crate) fn counts_at(&self, arrival: u64) -> u64 {
        self.arrivals.get(&arrival).copied().unwrap_or(arrival)
    }

    /// Whether a block stays, superseded or not: every one may be held by a mark that cannot be read.
    pub(crate) fn holds(&self, arrival: u64) -> bool {
        self.unreadable.is_some() || self.held.contains(&arrival)
    }
}

/// One mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The log position that it was made at, which names it.
    pub(crate) number: u64,
    /// Whether its blocks are to stay.
    pub(crate) is_held: bool,
    /// The arrival positions of its blocks, at most [`MAX_IDS`].
    pub(crate) arrivals: BTreeSet<u64>,
}

impl Mark {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + 8 * self.arrivals.len());
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&[VERSION, 0, 0, 0]);
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(&(self.arrivals.len() as u32).to_le_bytes());
        self.arrivals.iter().for_each(|arrival| out.extend_from_slice(&arrival.to_le_bytes()));
        with_checksum(out)
    }

    pub(crate) fn decode(bytes: &[u8], number: u64, is_held: bool) -> Result<Self, FormatError> {
        let mut reader = Reader::new(WHAT, without_checksum(WHAT, bytes)?);
        reader.magic(MAGIC, VERSION)?;
        reader.bytes("zero", 3)?;
        if reader.u64("log position")? != number {
            return Err(reader.invalid("log position", "another one than its name says"));
        }
        let count = reader.length("arrivals", MAX_IDS)?;
        let arrivals = (0..count).map(|_| reader.u64("arrival")).collect::<Result<_, _>>()?;
        reader.finish()?;
        Ok(Self { number, is_held, arrivals })
    }
}

/// The marks that there are.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// Those that can be read, in no order.
    pub(crate) readable: Vec<Mark>,
    /// The numbers of those that hold nobody knows which blocks. One that cannot be read and holds
    /// nothing counts for nothing: its blocks are there as any others.
    pub(crate) unreadable: Vec<u64>,
}

/// Reads all marks.
pub(crate) fn read_marks(layout: &Layout) -> Result<Marks, RepositoryError> {
    let mut marks = Marks::default();
    for name in layout.superseded().names()? {
        let name = name.to_str().unwrap_or_default();
        let (digits, is_held) = match name.strip_suffix(HELD) {
            Some(digits) => (digits, true),
            None => (name, false),
        };
        let Some(number) = number_of(digits) else { continue };
        let bytes = layout.superseded().join(name).read_limited(MARK_MAX_BYTES);
        let mark = bytes.ok().flatten();
        match mark.and_then(|bytes| Mark::decode(&bytes, number, is_held).ok()) {
            Some(mark) => marks.readable.push(mark),
            None if is_held => marks.unreadable.push(number),
            None => {}
        }
    }
    // A crash may have left what held a mark that is let go.
    let free = marks.readable.iter().filter(|mark| !mark.is_held).map(|mark| mark.number);
    let free: BTreeSet<u64> = free.collect();
    marks.readable.retain(|mark| !mark.is_held || !free.contains(&mark.number));
    marks.unreadable.retain(|number| !free.contains(number));
    Ok(marks)
}

/// All marks together.
pub(crate) fn read_all(layout: &Layout) -> Result<Superseded, RepositoryError> {
    let Marks { readable, unreadable } = read_marks(layout)?;
    let numbers = readable.iter().map(|mark| mark.number).chain(unreadable.iter().copied());
    let mut all = Superseded {
        unreadable: unreadable.first().copied(),
        newest: numbers.max().unwrap_or_default(),
        ..Superseded::default()
    };
    for mark in readable {
        all.held.extend(mark.arrivals.iter().filter(|_| mark.is_held));
        for arrival in mark.arrivals {
            let behind = all.arrivals.entry(arrival).or_insert(mark.number);
            *behind = mark.number.max(*behind);
        }
    }
    Ok(all)
}

/// Writes a mark; it is durable when this returns.
pub(crate) fn write(layout: &Layout, mark: &Mark) -> Result<(), RepositoryError> {
    let path = layout.superseded_at(mark.number, ending(mark.is_held));
    let there = path.read_limited(MARK_MAX_BYTES).ok().flatten();
    if there.is_some_and(|bytes| Mark::decode(&bytes, mark.number, mark.is_held).is_err()) {
        path.remove()?;
    }
    path.put_new(&mark.encode()).map(drop)
}

/// Removes a mark, held or not. Whether it was there does not matter.
pub(crate) fn remove_mark(layout: &Layout, number: u64) -> Result<(), RepositoryError> {
    // What holds goes last: without it, what is left would let its blocks go.
    layout.superseded_at(number, ending(false)).remove()?;
    layout.superseded().sync()?;
    layout.superseded_at(number, ending(true)).remove()?;
    layout.superseded().sync()
}

/// Has the blocks of a held mark be let go.
pub(crate) fn let_go(layout: &Layout, mark: &Mark) -> Result<(), RepositoryError> {
    write(layout, &Mark { is_held: false, ..mark.clone() })?;
    layout.superseded_at(mark.number, ending(true)).remove()?;
    layout.superseded().sync()
}

/// Where a held mark lies.
pub(crate) fn held_file(layout: &Layout, number: u64) -> Stored {
    layout.superseded_at(number, HELD)
}

fn ending(is_held: bool) -> &'static str {
    if is_held { HELD } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::publish::make_dir;
    use proptest::prelude::*;

    fn mark(number: u64, is_held: bool, arrivals: &[u64]) -> Mark {
        Mark { number, is_held, arrivals: arrivals.iter().copied().collect() }
    }

    fn place() -> (tempfile::TempDir, Layout) {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        layout.folders().iter().for_each(|folder| make_dir(folder).unwrap());
        (dir, layout)
    }

    #[test]
    fn what_is_let_go_is_held_no_more_and_what_is_taken_back_is_as_any_other() {
        let (_dir, layout) = place();
        let (first, second) = (mark(5, true, &[1, 3]), mark(9, true, &[4]));
        write(&layout, &first).unwrap();
        write(&layout, &second).unwrap();
        let all = read_all(&layout).unwrap();
        assert_eq!(all.arrivals, BTreeMap::from([(1, 5), (3, 5), (4, 9)]));
        assert_eq!((all.counts_at(3), all.counts_at(2), all.newest), (5, 2, 9));
        assert_eq!(all.held, BTreeSet::from([1, 3, 4]));
        let_go(&layout, &first).unwrap();
        let all = read_all(&layout).unwrap();
        assert_eq!((all.arrivals.len(), all.held), (3, BTreeSet::from([4])));
        // As after a crash in the middle of it.
        write(&layout, &first).unwrap();
        assert_eq!(read_all(&layout).unwrap().held, BTreeSet::from([4]));
        remove_mark(&layout, 9).unwrap();
        remove_mark(&layout, 9).unwrap();
        assert_eq!(read_marks(&layout).unwrap().readable, [mark(5, false, &[1, 3])]);
        std::fs::write(layout.superseded().join("00000000000000ff").path(), b"torn").unwrap();
        let all = read_all(&layout).unwrap();
        assert_eq!((all.newest, all.unreadable), (5, None), "it counts for nothing");
        std::fs::write(layout.superseded().join("00000000000000fe.held").path(), b"torn").unwrap();
        let all = read_all(&layout).unwrap();
        assert_eq!((all.newest, all.unreadable), (0xfe, Some(0xfe)), "it may hold anything");
    }

    proptest! {
        #[test]
        fn any_changed_bit_of_a_mark_is_noticed(
            arrivals: BTreeSet<u64>,
            at: usize,
            flip in 1u8..,
        ) {
            let mark = Mark { number: 7, is_held: true, arrivals };
            let mut bytes = mark.encode();
            prop_assert_eq!(Mark::decode(&bytes, 7, true), Ok(mark));
            prop_assert!(Mark::decode(&bytes, 8, true).is_err());
            let at = at % bytes.len();
            bytes[at] ^= flip;
            prop_assert!(Mark::decode(&bytes, 7, true).is_err());
        }
    }
}
