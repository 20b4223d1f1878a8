//! Cutting content into chunks where the content itself says, so that an insertion moves only the
//! cuts beside it.
//!
//! FastCDC with a gear table derived from the repository's key, normalised: before the normal size
//! a cut is 16 times less likely than after it, which keeps sizes near their average. The hash at a
//! byte depends on the 64 bytes up to it and on nothing before, and it is not computed over the
//! minimum size but for its last 64 bytes. Two bytes are rolled at a step, with one table shifted,
//! as in "The Design of Fast Content-Defined Chunking for Data Deduplication Based Storage Systems"
//! (Xia et al., TPDS 2020).

/// Least bytes of a chunk, but for the last of a content.
pub const CHUNK_MIN_BYTES: usize = 128 << 10;
/// Average bytes of a chunk of random content.
pub const CHUNK_AVERAGE_BYTES: usize = 512 << 10;
/// Most bytes of a chunk.
pub const CHUNK_MAX_BYTES: usize = holdall_format::limits::CHUNK_MAX_BYTES;

/// Where cuts get likely. Chosen so that the average is [`CHUNK_AVERAGE_BYTES`]: about one chunk in
/// seven is cut before, the others on average 128 KiB after it.
const NORMAL_BYTES: usize = 416 << 10;
/// Bytes on which the hash depends.
const WINDOW_BYTES: usize = 64;
/// Odds of 2^-21 for each byte before the normal size. The highest bits of the hash depend on the
/// whole window; the very highest is left free for the shifted table.
const MASK_BEFORE: u64 = ((1 << 21) - 1) << 42;
/// Odds of 2^-17 for each byte after it.
const MASK_AFTER: u64 = ((1 << 17) - 1) << 46;

/// Cuts content into chunks.
///
/// Secret: with its table, chunk sizes say something of content.
#[derive(Clone)]
pub struct Chunker {
    gear: Box<[u64; 256]>,
    gear_shifted: Box<[u64; 256]>,
}

impl Chunker {
    /// Derives the table from the chunker's key.
    pub fn new(chunker_key: &[u8; 32]) -> Self {
        let mut bytes = [0; 2048];
        let mut hasher = blake3::Hasher::new_keyed(chunker_key);
        hasher.update(b"holdall v1 gear table").finalize_xof().fill(&mut bytes);
        let mut gear = Box::new([0; 256]);
        for (value, bytes) in gear.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *value = u64::from_le_bytes(*bytes);
        }
        let gear_shifted = Box::new(gear.map(|value| value << 1));
        Self { gear, gear_shifted }
    }

    /// The length of the first chunk of `data`, which must be at least [`CHUNK_MAX_BYTES`] or reach
    /// to the end of the content; zero only without data.
    ///
    /// It depends on nothing but the chunk's own bytes and those up to the maximum, so it does not
    /// matter in which portions a content is read.
    pub fn cut(&self, data: &[u8]) -> usize {
        let data = data.get(..CHUNK_MAX_BYTES).unwrap_or(data);
        let Some((skipped, rest)) = data.split_at_checked(CHUNK_MIN_BYTES) else {
            return data.len();
        };
        let window = skipped.last_chunk::<WINDOW_BYTES>().map_or(skipped, |window| window);
        let mut hash = window
            .iter()
            .fold(0u64, |hash, &byte| (hash << 1).wrapping_add(at_byte(&self.gear, byte)));
        let split = rest.len().min(NORMAL_BYTES.saturating_sub(CHUNK_MIN_BYTES));
        let (before, after) = rest.split_at_checked(split).unwrap_or((rest, &[]));
        if let Some(len) = self.roll(&mut hash, before, MASK_BEFORE) {
            return CHUNK_MIN_BYTES.saturating_add(len);
        }
        let start = CHUNK_MIN_BYTES.saturating_add(split);
        self.roll(&mut hash, after, MASK_AFTER).map_or(data.len(), |len| start.saturating_add(len))
    }

    /// Rolls the hash over `data` up to the first byte where all bits of `mask` are zero; gives the
    /// number of bytes up to and with it.
    fn roll(&self, hash: &mut u64, data: &[u8], mask: u64) -> Option<usize> {
        let (pairs, last) = data.as_chunks::<2>();
        let mut rolled = *hash;
        for (at, &[first, second]) in pairs.iter().enumerate() {
            rolled = (rolled << 2).wrapping_add(at_byte(&self.gear_shifted, first));
            if rolled & (mask << 1) == 0 {
                return Some(at.saturating_mul(2).saturating_add(1));
            }
            rolled = rolled.wrapping_add(at_byte(&self.gear, second));
            if rolled & mask == 0 {
                return Some(at.saturating_mul(2).saturating_add(2));
            }
        }
        if let Some(&byte) = last.first() {
            rolled = (rolled << 1).wrapping_add(at_byte(&self.gear, byte));
            if rolled & mask == 0 {
                return Some(data.len());
            }
        }
        *hash = rolled;
        None
    }
}

#[inline(always)]
fn at_byte(table: &[u64; 256], byte: u8) -> u64 {
    #[expect(clippy::indexing_slicing, reason = "a byte is below 256")]
    table[usize::from(byte)]
}
