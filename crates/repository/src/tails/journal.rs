//! Journals: what a pack's footer will say of the blocks that lie in a tail.
//!
//! ```text
//! | magic "HJnl" | version u8 | kind u8 | zero u16 | repository 16 | key 32
//!        | checksum 32 (BLAKE3 of the front before it) | entry ...
//! entry: | length u32 of the whole entry | durable u64 | arrival u64 | offset u64 | name 32
//!        | header 136 | table | checksum 32 (BLAKE3 of the entry before it, with the key) |
//! ```
//!
//! The key is a random number that never leaves the repository. Tables are what clients sent, so one may be
//! made to look like an entry; without the key it has no right checksum, and where the entry around it is
//! broken it is not taken for one.
//!
//! `durable` is up to where this journal was known to be durable when the entry was written. After
//! a crash it tells the torn end, which nobody was promised, from damage to what was.

use holdall_format::limits::{FOOTER_MAX_BYTES, TABLE_MAX_BYTES};
use holdall_format::wire::{Reader, put_length};
use holdall_format::{
    BLOCK_HEADER_BYTES, BlockHeader, BlockKind, BlockName, FooterBlock, FormatError, RepositoryId,
};
use holdall_protocol::RepositoryError;

use crate::storage::publish::random;

const WHAT: &str = "journal";
const MAGIC: &[u8; 4] = b"HJnl";
const VERSION: u8 = 2;

/// Length of a journal's front.
pub(crate) const JOURNAL_HEADER_BYTES: usize = 24 + 2 * 32;
/// Length of an entry without its table.
pub(crate) const ENTRY_BYTES: usize = 4 + 3 * 8 + 32 + BLOCK_HEADER_BYTES + 32;
/// Where the block's header lies in an entry.
const HEADER_AT: usize = 4 + 3 * 8 + 32;
/// No journal is longer: its tables fit into a footer, and an entry adds little to each.
pub(crate) const JOURNAL_MAX_BYTES: u64 = 2 * FOOTER_MAX_BYTES as u64;

/// What the checksums of a journal's entries are made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct JournalKey([u8; 32]);

impl JournalKey {
    /// The key of a new journal.
    pub(crate) fn draw() -> Result<Self, RepositoryError> {
        random().map(Self)
    }
}

/// The front of a journal.
pub(crate) fn encode_header(
    repository: &RepositoryId,
    kind: BlockKind,
    key: &JournalKey,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(JOURNAL_HEADER_BYTES);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&[VERSION, kind.code(), 0, 0]);
    out.extend_from_slice(repository.as_bytes());
    out.extend_from_slice(&key.0);
    let checksum = blake3::hash(&out);
    out.extend_from_slice(checksum.as_bytes());
    out
}

/// Appends one entry.
pub(crate) fn encode_entry(out: &mut Vec<u8>, key: &JournalKey, block: &FooterBlock, durable: u64) {
    let start = out.len();
    put_length(out, ENTRY_BYTES + block.table_bytes.len());
    for number in [durable, block.arrival, block.offset] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.extend_from_slice(block.name.as_bytes());
    out.extend_from_slice(&block.header.encode());
    out.extend_from_slice(&block.table_bytes);
    let checksum = blake3::keyed_hash(&key.0, out.get(start..).unwrap_or_default());
    out.extend_from_slice(checksum.as_bytes());
}

/// One entry as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReadEntry {
    /// What it says; `None` if it does not keep its checksum or the format.
    pub(crate) block: Option<FooterBlock>,
    /// Where it ends in the journal.
    pub(crate) end: u64,
}

/// What a journal's bytes give.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Scan {
    /// What more entries are to be written with.
    pub(crate) key: JournalKey,
    /// The entries one behind the other, up to where no next one can be told.
    pub(crate) entries: Vec<ReadEntry>,
    /// Up to here the journal was durable at some time, says an entry that is sound.
    pub(crate) durable: u64,
}

/// Reads a journal.
///
/// Untrusted: allocates at most in proportion to `bytes`. What is broken is passed over up to the next
/// entry that is whole; where there is none, by the length that it declares.
///
/// # Errors
/// [`FormatError`] if the front is not that of a journal of this kind and repository.
pub(crate) fn scan(
    bytes: &[u8],
    repository: &RepositoryId,
    kind: BlockKind,
) -> Result<Scan, FormatError> {
    let mut reader = Reader::new(WHAT, bytes);
    reader.magic(MAGIC, VERSION)?;
    let kind_found = reader.u8("kind")?;
    let zero = reader.u16("zero")?;
    let repository_found = RepositoryId::from_bytes(reader.array("repository")?);
    let key = JournalKey(reader.array("key")?);
    // Without its key no entry counts, and what was acknowledged would pass for torn.
    if blake3::Hash::from_bytes(reader.array("checksum")?) != front_checksum(bytes) {
        return Err(FormatError::HashMismatch { what: WHAT, field: "front's checksum" });
    }
    if kind_found != kind.code() || zero != 0 || repository_found != *repository {
        return Err(reader.invalid("front", "of another kind or repository"));
    }
    Ok(scan_entries(reader.remaining(), repository, kind, key))
}

fn front_checksum(bytes: &[u8]) -> blake3::Hash {
    blake3::hash(bytes.get(..JOURNAL_HEADER_BYTES - blake3::OUT_LEN).unwrap_or_default())
}

fn scan_entries(
    mut rest: &[u8],
    repository: &RepositoryId,
    kind: BlockKind,
    key: JournalKey,
) -> Scan {
    let mut scan = Scan { key, ..Scan::default() };
    let mut end = JOURNAL_HEADER_BYTES as u64;
    let left_bytes = rest.len().saturating_mul(4);
    let mut search = Search { repository, kind, key, left_bytes, is_over: false };
    while !rest.is_empty() {
        let found = search.sound_entry(rest);
        let length = match &found {
            Some((length, ..)) => Some(*length),
            // The length of a broken entry may be what is broken.
            None => search.next_sound(rest).or_else(|| declared_length(rest)),
        };
        let Some(length) = length else { break };
        rest = rest.split_at_checked(length).unwrap_or_default().1;
        end += length as u64;
        let block = found.map(|(_, block, durable)| {
            scan.durable = scan.durable.max(durable);
            block
        });
        scan.entries.push(ReadEntry { block, end });
    }
    scan
}

/// Looks for entries that are whole. Tables are what clients sent, so they may be made to look like
/// entries: it gives up once it has hashed several times what there is.
struct Search<'a> {
    repository: &'a RepositoryId,
    kind: BlockKind,
    key: JournalKey,
    left_bytes: usize,
    /// Once nothing whole was found behind a broken entry, nothing is behind the next one either.
    is_over: bool,
}

impl Search<'_> {
    /// The entry that `bytes` begin with, if it is whole: its length, what it says, and up to where
    /// the journal was durable before it.
    fn sound_entry(&mut self, bytes: &[u8]) -> Option<(usize, FooterBlock, u64)> {
        let length = declared_length(bytes)?;
        self.left_bytes = self.left_bytes.checked_sub(length)?;
        let (block, durable) = decode_entry(bytes.get(..length)?, &self.key).ok()?;
        of(&block, self.repository, self.kind).then_some((length, block, durable))
    }

    /// Where the next whole entry begins behind the one that `bytes` begin with.
    fn next_sound(&mut self, bytes: &[u8]) -> Option<usize> {
        let last = bytes.len().checked_sub(ENTRY_BYTES).filter(|_| !self.is_over)?;
        let found = (1..=last).find(|&at| {
            let candidate = bytes.get(at..).unwrap_or_default();
            let header = candidate.get(HEADER_AT..HEADER_AT + BLOCK_HEADER_BYTES);
            let header = header.and_then(|header| BlockHeader::decode(header).ok());
            header.is_some_and(|header| header.repository == *self.repository)
                && self.sound_entry(candidate).is_some()
        });
        self.is_over = found.is_none();
        found
    }
}

fn of(block: &FooterBlock, repository: &RepositoryId, kind: BlockKind) -> bool {
    block.header.kind == kind && block.header.repository == *repository
}

/// How long the entry is that `bytes` begin with, as far as what it says can be true.
fn declared_length(bytes: &[u8]) -> Option<usize> {
    let length =
        Reader::new(WHAT, bytes).length("entry length", ENTRY_BYTES + TABLE_MAX_BYTES).ok()?;
    (ENTRY_BYTES..=bytes.len()).contains(&length).then_some(length)
}

fn decode_entry(bytes: &[u8], key: &JournalKey) -> Result<(FooterBlock, u64), FormatError> {
    let mismatch = FormatError::HashMismatch { what: WHAT, field: "checksum" };
    let (entry, checksum) = bytes.split_last_chunk::<32>().ok_or(mismatch.clone())?;
    if blake3::keyed_hash(&key.0, entry) != *checksum {
        return Err(mismatch);
    }
    let mut reader = Reader::new(WHAT, entry);
    reader.u32("entry length")?;
    let durable = reader.u64("durable")?;
    let arrival = reader.u64("arrival")?;
    let offset = reader.u64("offset")?;
    let name = BlockName::from_bytes(reader.array("name")?);
    let header = BlockHeader::decode(reader.bytes("header", BLOCK_HEADER_BYTES)?)?;
    let table_bytes = reader.bytes("table", header.table_bytes as usize)?.to_vec();
    reader.finish()?;
    if blake3::hash(&table_bytes).as_bytes() != &header.table_hash {
        return Err(FormatError::HashMismatch { what: WHAT, field: "table hash" });
    }
    Ok((FooterBlock { offset, arrival, name, header, table_bytes }, durable))
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdall_format::{ObjectId, Suite, Table, TableEntry};
    use proptest::prelude::*;

    fn repository() -> RepositoryId {
        RepositoryId::from_bytes([1; 16])
    }

    const KEY: JournalKey = JournalKey([0x5b; 32]);

    fn block(seed: u8) -> FooterBlock {
        let entry = TableEntry { id: ObjectId::from_bytes([seed; 32]), refs: vec![] };
        let table_bytes = Table { entries: vec![entry] }.encode(BlockKind::Chunks);
        let header = BlockHeader {
            suite: Suite::Aes256Gcm,
            kind: BlockKind::Chunks,
            repository: repository(),
            epoch: 0,
            table_bytes: table_bytes.len() as u32,
            payload_bytes: 100,
            salt: [seed; 32],
            table_hash: *blake3::hash(&table_bytes).as_bytes(),
            commitment: [0; 32],
        };
        let name = BlockName::from_bytes([seed; 32]);
        FooterBlock { offset: u64::from(seed), arrival: 7, name, header, table_bytes }
    }

    fn sample() -> Vec<u8> {
        let mut bytes = encode_header(&repository(), BlockKind::Chunks, &KEY);
        for seed in 0..3 {
            let durable = bytes.len() as u64;
            encode_entry(&mut bytes, &KEY, &block(seed), durable);
        }
        bytes
    }

    fn blocks(bytes: &[u8]) -> Vec<Option<FooterBlock>> {
        let scan = scan(bytes, &repository(), BlockKind::Chunks).unwrap();
        scan.entries.into_iter().map(|found| found.block).collect()
    }

    #[test]
    fn entries_read_back_and_say_what_was_durable_before_them() {
        let bytes = sample();
        let scan = scan(&bytes, &repository(), BlockKind::Chunks).unwrap();
        assert_eq!(scan.entries.last().unwrap().end, bytes.len() as u64);
        assert_eq!(scan.durable, scan.entries[1].end);
        assert_eq!(blocks(&bytes), [Some(block(0)), Some(block(1)), Some(block(2))]);
    }

    #[test]
    fn whichever_byte_of_an_entry_is_broken_the_others_are_still_found() {
        let whole = sample();
        let entry = (whole.len() - JOURNAL_HEADER_BYTES) / 3;
        for at in JOURNAL_HEADER_BYTES..whole.len() {
            for flip in [1, 0x80, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] ^= flip;
                let broken = (at - JOURNAL_HEADER_BYTES) / entry;
                let found: Vec<_> = blocks(&bytes).into_iter().flatten().collect();
                let others = (0..3).filter(|seed| *seed != broken).map(|seed| block(seed as u8));
                assert_eq!(found, others.collect::<Vec<_>>(), "byte {at} changed by {flip}");
            }
        }
    }

    #[test]
    fn whichever_byte_of_the_front_is_broken_it_is_refused() {
        for at in 0..JOURNAL_HEADER_BYTES {
            let mut bytes = sample();
            bytes[at] ^= 1;
            assert!(scan(&bytes, &repository(), BlockKind::Chunks).is_err(), "byte {at}");
        }
    }

    /// Whoever sends a table chooses its bytes, and knows the journal's checksums but for the key.
    #[test]
    fn an_entry_in_the_table_of_a_broken_one_is_none() {
        for (key, is_taken) in [(JournalKey::default(), false), (KEY, true)] {
            let mut planted = Vec::new();
            encode_entry(&mut planted, &key, &block(9), 0);
            let around = FooterBlock { table_bytes: planted, ..block(1) };
            let mut bytes = encode_header(&repository(), BlockKind::Chunks, &KEY);
            encode_entry(&mut bytes, &KEY, &around, 0);
            // A byte of the entry around it, which is a hole then.
            bytes[JOURNAL_HEADER_BYTES + 20] ^= 1;
            assert_eq!(blocks(&bytes).contains(&Some(block(9))), is_taken);
        }
    }

    #[test]
    fn a_journal_that_looks_like_entries_everywhere_is_given_up() {
        let mut bytes = sample();
        let entry = bytes.split_off(JOURNAL_HEADER_BYTES);
        let mut broken = entry.clone();
        // Each says that it reaches nearly to the end, and has no right checksum.
        for number in 0..2000usize {
            let mut fake = entry.get(..ENTRY_BYTES).unwrap().to_vec();
            let length = (2000 - number) * ENTRY_BYTES;
            fake[..4].copy_from_slice(&u32::try_from(length).unwrap().to_le_bytes());
            broken.extend_from_slice(&fake);
        }
        let mut search = Search {
            repository: &repository(),
            kind: BlockKind::Chunks,
            key: KEY,
            left_bytes: 1 << 20,
            is_over: false,
        };
        assert_eq!(search.next_sound(&broken[entry.len() + 1..]), None);
        assert!(search.left_bytes < 1 << 20 && search.is_over, "it looked, and does not again");
    }

    proptest! {
        #[test]
        fn a_journal_cut_anywhere_gives_the_entries_before_the_cut(cut in JOURNAL_HEADER_BYTES..1000) {
            let bytes = sample();
            let cut = cut.min(bytes.len());
            let whole = (cut - JOURNAL_HEADER_BYTES) / (ENTRY_BYTES + block(0).table_bytes.len());
            let found = blocks(&bytes[..cut]);
            prop_assert_eq!(found.iter().flatten().count(), whole);
        }

        #[test]
        fn mutated_journals_give_only_entries_that_were_written(at: usize, flip in 1u8..) {
            let mut bytes = sample();
            let at = at % bytes.len();
            bytes[at] ^= flip;
            if let Ok(scan) = scan(&bytes, &repository(), BlockKind::Chunks) {
                for found in scan.entries.into_iter().filter_map(|found| found.block) {
                    prop_assert!((0..3).any(|seed| block(seed) == found));
                }
            }
        }

        #[test]
        fn random_bytes_give_no_entry(bytes: Vec<u8>) {
            let journal = [encode_header(&repository(), BlockKind::Chunks, &KEY), bytes].concat();
            let scan = scan(&journal, &repository(), BlockKind::Chunks).unwrap();
            prop_assert!(scan.entries.iter().all(|found| found.block.is_none()));
        }
    }
}
