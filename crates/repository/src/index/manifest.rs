//! The manifest: which packs the index knows, which runs it has, and what in them is closed.
//!
//! ```text
//! | magic "HIdx" | version u8 | zero 3 | repository 16 | closed position u64
//! | pack count u32 | pack: name 32, kind u8, first and last arrival u64, file length u64,
//!                    blocks u64 | ...
//! | run count u32  | run: number u64, entries u64, closed bits u64 ...                  | ...
//! | tail block count u32 | arrival u64, length u32, closed bits                         | ...
//! | pruned u64                                                                          |
//! | checksum 32 |
//! ```
//!
//! What is closed in tails is kept by arrival position, one bit for each distinct id of the block
//! in ascending order: by the time it is read, the block may lie in a pack. All of it is derived.
//! `pruned` is the number of the last prune before the bits were written: where there was another
//! since, what is closed has to be found again from records.

use std::collections::{BTreeMap, BTreeSet};

use holdall_format::wire::{Reader, put_length};
use holdall_format::{BlockKind, FormatError, PackName, RepositoryId};

use crate::state_files::checksummed::{with_checksum, without_checksum};

const WHAT: &str = "index manifest";
const MAGIC: &[u8; 4] = b"HIdx";
const VERSION: u8 = 3;

/// What is kept in memory of a closed pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PackInfo {
    /// Its name.
    pub(crate) name: PackName,
    /// What its blocks hold.
    pub(crate) kind: BlockKind,
    /// The least arrival position of its blocks.
    pub(crate) first_arrival: u64,
    /// The greatest.
    pub(crate) last_arrival: u64,
    /// Length of its file.
    pub(crate) file_bytes: u64,
    /// How many blocks it has.
    pub(crate) blocks: u64,
}

/// A run as the manifest knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KnownRun {
    /// Its number.
    pub(crate) number: u64,
    /// How many entries it has.
    pub(crate) entries: u64,
    /// A bit for each entry, set if it is closed.
    pub(crate) closed: Vec<u64>,
}

/// Closed objects of blocks in tails: by arrival, a bit for each id in ascending order.
pub(crate) type ClosedByArrival = BTreeMap<u64, Vec<u8>>;

/// What was closed in tails when the manifest was written, for whoever finds their blocks again.
#[derive(Debug, Default)]
pub(crate) struct ClosedInTails {
    by_arrival: ClosedByArrival,
    /// The blocks that were not met yet.
    sought: BTreeSet<u64>,
}

impl ClosedInTails {
    /// The bits of a block that is there, if anything was closed in it.
    pub(crate) fn meet(&mut self, arrival: u64) -> Option<&[u8]> {
        let bits = self.by_arrival.get(&arrival)?;
        self.sought.remove(&arrival);
        Some(bits)
    }

    /// Whether every block was met. Else one is lost, and what refers to it is no longer closed.
    pub(crate) fn are_all_there(&self) -> bool {
        self.sought.is_empty()
    }
}

impl From<ClosedByArrival> for ClosedInTails {
    fn from(by_arrival: ClosedByArrival) -> Self {
        Self { sought: by_arrival.keys().copied().collect(), by_arrival }
    }
}

/// All that is needed to use the runs again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// Up to which log position records are in the closed bits.
    pub(crate) closed_position: u64,
    /// The catalogue: an entry's pack is a place in it.
    pub(crate) packs: Vec<PackInfo>,
    /// The runs.
    pub(crate) runs: Vec<KnownRun>,
    /// What is closed in tails.
    pub(crate) closed_in_tails: ClosedByArrival,
    /// The number of the last prune before.
    pub(crate) pruned: u64,
}

impl Manifest {
    pub(crate) fn encode(&self, repository: &RepositoryId) -> Vec<u8> {
        let mut out = Vec::with_capacity(256 + self.packs.len() * 64);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&[VERSION, 0, 0, 0]);
        out.extend_from_slice(repository.as_bytes());
        out.extend_from_slice(&self.closed_position.to_le_bytes());
        put_length(&mut out, self.packs.len());
        for pack in &self.packs {
            out.extend_from_slice(pack.name.as_bytes());
            out.push(pack.kind.code());
            let PackInfo { first_arrival, last_arrival, file_bytes, blocks, .. } = *pack;
            for number in [first_arrival, last_arrival, file_bytes, blocks] {
                out.extend_from_slice(&number.to_le_bytes());
            }
        }
        put_length(&mut out, self.runs.len());
        for run in &self.runs {
            out.extend_from_slice(&run.number.to_le_bytes());
            out.extend_from_slice(&run.entries.to_le_bytes());
            run.closed.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
        }
        put_length(&mut out, self.closed_in_tails.len());
        for (arrival, bits) in &self.closed_in_tails {
            out.extend_from_slice(&arrival.to_le_bytes());
            put_length(&mut out, bits.len());
            out.extend_from_slice(bits);
        }
        out.extend_from_slice(&self.pruned.to_le_bytes());
        with_checksum(out)
    }

    /// Reads a manifest; allocates at most in proportion to `bytes`.
    ///
    /// # Errors
    /// [`FormatError`] if it is damaged or of another repository.
    pub(crate) fn decode(bytes: &[u8], repository: &RepositoryId) -> Result<Self, FormatError> {
        let mut reader = Reader::new(WHAT, without_checksum(WHAT, bytes)?);
        reader.magic(MAGIC, VERSION)?;
        reader.bytes("zero", 3)?;
        if RepositoryId::from_bytes(reader.array("repository")?) != *repository {
            return Err(reader.invalid("repository", "another one"));
        }
        let closed_position = reader.u64("closed position")?;
        let packs = list(&mut reader, decode_pack)?;
        let runs = list(&mut reader, decode_run)?;
        let closed_in_tails = list(&mut reader, decode_tail_block)?.into_iter().collect();
        let pruned = reader.u64("pruned")?;
        reader.finish()?;
        Ok(Self { closed_position, packs, runs, closed_in_tails, pruned })
    }
}

/// Reads a counted list, growing it only as its elements are found.
fn list<T>(
    reader: &mut Reader<'_>,
    element: impl Fn(&mut Reader<'_>) -> Result<T, FormatError>,
) -> Result<Vec<T>, FormatError> {
    let count = reader.u32("count")?;
    (0..count).map(|_| element(reader)).collect()
}

fn decode_pack(reader: &mut Reader<'_>) -> Result<PackInfo, FormatError> {
    Ok(PackInfo {
        name: PackName::from_bytes(reader.array("pack name")?),
        kind: BlockKind::from_code(reader.u8("pack kind")?)
            .ok_or_else(|| reader.invalid("pack kind", "unknown"))?,
        first_arrival: reader.u64("first arrival")?,
        last_arrival: reader.u64("last arrival")?,
        file_bytes: reader.u64("pack length")?,
        blocks: reader.u64("pack blocks")?,
    })
}

fn decode_run(reader: &mut Reader<'_>) -> Result<KnownRun, FormatError> {
    let number = reader.u64("run number")?;
    let entries = reader.u64("run entries")?;
    let words = usize::try_from(entries.div_ceil(64)).unwrap_or(usize::MAX);
    let bits = reader.bytes("closed bits", words.saturating_mul(8))?;
    let closed = bits.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    Ok(KnownRun { number, entries, closed })
}

fn decode_tail_block(reader: &mut Reader<'_>) -> Result<(u64, Vec<u8>), FormatError> {
    let arrival = reader.u64("arrival")?;
    let length = reader.length("closed bits", holdall_format::limits::BLOCK_MAX_OBJECTS)?;
    Ok((arrival, reader.bytes("closed bits", length)?.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REPOSITORY: RepositoryId = RepositoryId::from_bytes([1; 16]);

    fn sample() -> Manifest {
        let pack = PackInfo {
            name: PackName::from_bytes([1; 32]),
            kind: BlockKind::Nodes,
            first_arrival: 2,
            last_arrival: 9,
            file_bytes: 1000,
            blocks: 3,
        };
        Manifest {
            closed_position: 7,
            packs: vec![pack.clone(), pack],
            runs: vec![KnownRun { number: 5, entries: 65, closed: vec![u64::MAX, 1] }],
            closed_in_tails: BTreeMap::from([(12, vec![3]), (13, vec![])]),
            pruned: 3,
        }
    }

    #[test]
    fn a_manifest_reads_back_in_its_own_repository() {
        let bytes = sample().encode(&REPOSITORY);
        assert_eq!(Manifest::decode(&bytes, &REPOSITORY), Ok(sample()));
        assert!(Manifest::decode(&bytes, &RepositoryId::from_bytes([2; 16])).is_err());
    }

    proptest! {
        #[test]
        fn any_changed_bit_is_noticed(at: usize, flip in 1u8..) {
            let mut bytes = sample().encode(&REPOSITORY);
            let at = at % bytes.len();
            bytes[at] ^= flip;
            prop_assert!(Manifest::decode(&bytes, &REPOSITORY).is_err());
        }

        #[test]
        fn bytes_with_a_right_checksum_are_read_or_refused(bytes: Vec<u8>, cut in 0usize..200) {
            let good = sample().encode(&REPOSITORY);
            let mut bytes = [&good[..cut.min(good.len() - 32)], &bytes].concat();
            let checksum = blake3::hash(&bytes);
            bytes.extend_from_slice(checksum.as_bytes());
            if let Ok(manifest) = Manifest::decode(&bytes, &REPOSITORY) {
                prop_assert!(manifest.packs.len() + manifest.runs.len() <= bytes.len());
            }
        }
    }
}
