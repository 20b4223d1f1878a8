//! What a parity file says of its pack: so many shards, with the hash of each.
//!
//! ```text
//! parity/<xx>/<pack name>: | head | parity shards | head again | head length u32 |
//! head: | magic "HPar" | version u8 | zero 3 | pack 32 | pack length u64 | parity shards u32
//!       | hash 32 of each data shard ... | hash 32 of each parity shard ... | checksum 32 |
//! ```
//!
//! The pack is cut into data shards of 64 KiB, the last filled up with zeros. The hashes tell which
//! shards are damaged, on either side, so that as many can be restored as there is parity. The head is
//! there twice, as far apart as the file is long.

use holdall_format::wire::Reader;
use holdall_format::{FormatError, PackName};

use crate::state_files::checksummed::{with_checksum, without_checksum};

const WHAT: &str = "parity head";
const MAGIC: &[u8; 4] = b"HPar";
const VERSION: u8 = 1;
/// Bytes of a shard.
pub(crate) const SHARD_BYTES: usize = 64 << 10;
/// Bytes before the hashes.
pub(crate) const FRONT_BYTES: usize = 52;
const HASH_BYTES: usize = 32;
/// Packs are far shorter; nothing is allocated for what says more.
const PACK_MAX_BYTES: u64 = 1 << 30;
/// As many shards as there can be of either kind.
const SHARDS_MAX: usize = 1 << 15;

/// What is known of a pack and its parity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    /// Length of the pack's file.
    pub(crate) pack_bytes: u64,
    /// BLAKE3 of each data shard.
    pub(crate) data: Vec<[u8; HASH_BYTES]>,
    /// BLAKE3 of each parity shard.
    pub(crate) parity: Vec<[u8; HASH_BYTES]>,
}

impl Head {
    /// How many data shards a pack of that length has.
    pub(crate) fn data_shards(pack_bytes: u64) -> usize {
        usize::try_from(pack_bytes.div_ceil(SHARD_BYTES as u64)).unwrap_or(usize::MAX)
    }

    /// Length of a head over so many shards of both kinds.
    pub(crate) fn len_bytes(shards: usize) -> usize {
        FRONT_BYTES + (shards + 1) * HASH_BYTES
    }

    /// Length of the head whose first [`FRONT_BYTES`] these are.
    ///
    /// Untrusted: has a limit.
    pub(crate) fn len_of_front(front: &[u8]) -> Result<usize, FormatError> {
        let mut reader = Reader::new(WHAT, front);
        let (_, pack_bytes, parity) = read_front(&mut reader)?;
        Ok(Self::len_bytes(Self::data_shards(pack_bytes) + parity))
    }

    /// The head of `pack`'s parity as it is stored.
    pub(crate) fn encode(&self, pack: &PackName) -> Vec<u8> {
        let mut out = Vec::with_capacity(Self::len_bytes(self.data.len() + self.parity.len()));
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&[VERSION, 0, 0, 0]);
        out.extend_from_slice(pack.as_bytes());
        out.extend_from_slice(&self.pack_bytes.to_le_bytes());
        let parity = u32::try_from(self.parity.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&parity.to_le_bytes());
        self.data.iter().chain(&self.parity).for_each(|hash| out.extend_from_slice(hash));
        with_checksum(out)
    }

    /// Reads the head of `pack`'s parity.
    ///
    /// Untrusted: allocates no more than `bytes` has.
    pub(crate) fn decode(bytes: &[u8], pack: &PackName) -> Result<Self, FormatError> {
        let mut reader = Reader::new(WHAT, without_checksum(WHAT, bytes)?);
        let (found, pack_bytes, parity) = read_front(&mut reader)?;
        if found != *pack {
            return Err(reader.invalid("pack", "another one than its name says"));
        }
        let mut hashes =
            |count: usize| (0..count).map(|_| reader.array("hash")).collect::<Result<Vec<_>, _>>();
        let (data, parity) = (hashes(Self::data_shards(pack_bytes))?, hashes(parity)?);
        reader.finish()?;
        Ok(Self { pack_bytes, data, parity })
    }
}

/// The pack, its length, and how many parity shards it has.
fn read_front(reader: &mut Reader<'_>) -> Result<(PackName, u64, usize), FormatError> {
    reader.magic(MAGIC, VERSION)?;
    reader.bytes("zero", 3)?;
    let pack = PackName::from_bytes(reader.array("pack")?);
    let pack_bytes = reader.u64("pack length")?;
    let parity = reader.u32("parity shards")? as usize;
    if pack_bytes > PACK_MAX_BYTES || parity > SHARDS_MAX {
        return Err(reader.invalid("length", "longer than any pack"));
    }
    Ok((pack, pack_bytes, parity))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PACK: PackName = PackName::from_bytes([3; 32]);

    fn head() -> Head {
        Head {
            pack_bytes: 2 * 65536 + 1,
            data: vec![[1; 32], [2; 32], [3; 32]],
            parity: vec![[4; 32]],
        }
    }

    #[test]
    fn a_head_says_how_long_it_is() {
        let bytes = head().encode(&PACK);
        assert_eq!(bytes.len(), Head::len_bytes(4));
        assert_eq!(Head::len_of_front(bytes.get(..FRONT_BYTES).unwrap()), Ok(bytes.len()));
        assert_eq!(Head::decode(&bytes, &PACK), Ok(head()));
        assert!(Head::decode(&bytes, &PackName::from_bytes([4; 32])).is_err());
        let mut huge = bytes;
        huge[40..48].fill(0xff);
        assert!(Head::len_of_front(&huge).is_err());
    }

    proptest! {
        #[test]
        fn any_changed_bit_of_a_head_is_noticed(at: usize, flip in 1u8..) {
            let mut bytes = head().encode(&PACK);
            let at = at % bytes.len();
            bytes[at] ^= flip;
            prop_assert!(Head::decode(&bytes, &PACK).is_err());
        }

        #[test]
        fn no_bytes_are_trusted(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(Head::decode(&bytes, &PACK).is_err());
            let _ = Head::len_of_front(&bytes);
        }
    }
}
