//! Cutting content into chunks where the content itself says, so that an insertion moves only the
//! cuts beside it.
//!
//! Where the cuts lie says something of the content, and a table of random numbers keeps nobody from
//! learning it: each cut of a known content is an equation in the table ("Breaking and Fixing
//! Content-Defined Chunking", ePrint 2025/558; "Chunking Attacks", ePrint 2025/532; `attack` repeats
//! it). So a rolling hash only makes the 64 bytes before a place into a number that differs wherever
//! they differ, and a pseudorandom function of that number alone decides. There is no cheaper test
//! before it: every cut would pass that test, too, and tell of it.
//!
//! Each chunk begins with bytes that are not looked at, which is most of what is cut: that is the
//! speed. There is no preference for some normal size beyond that: after an insertion, chunks of the
//! same average find the old cuts again sooner without one (`docs/decisions/0003-chunker.md`).

#[cfg(test)]
mod attack;

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Block};
use holdall_sys::wide_places::{self, WidePlaces};

/// Least bytes of a chunk, but for the last of a content.
pub const CHUNK_MIN_BYTES: usize = 320 << 10;
/// Average bytes of a chunk of random content.
pub const CHUNK_AVERAGE_BYTES: usize = 512 << 10;
/// Most bytes of a chunk.
pub const CHUNK_MAX_BYTES: usize = holdall_format::limits::CHUNK_MAX_BYTES;

/// Bytes on which a cut depends.
const WINDOW_BYTES: usize = wide_places::WINDOW_BYTES;
/// A cut is where the function's first eight bytes are a number below this: once in as many places
/// as an average chunk has behind its minimum.
const CUT_BELOW: u64 = u64::MAX / (CHUNK_AVERAGE_BYTES - CHUNK_MIN_BYTES) as u64;
/// Places that are decided at once: enough to keep the cipher's units busy.
const BATCH: usize = 256;

/// Cuts content into chunks.
///
/// Secret: whoever has it can compute where a guessed content would be cut.
#[derive(Clone)]
pub struct Chunker {
    hash: Toeplitz,
    function: Aes128,
    /// Both, for many places at once; `None` where the processor cannot.
    wide: Option<WidePlaces>,
}

impl Chunker {
    /// Derives hash and function from the chunker's key.
    pub fn new(chunker_key: &[u8; 32]) -> Self {
        let derive = |label: &[u8], out: &mut [u8]| {
            blake3::Hasher::new_keyed(chunker_key).update(label).finalize_xof().fill(out);
        };
        let mut bytes = [0; 2048];
        derive(b"holdall v1 chunker table", &mut bytes);
        let mut table = Box::new([0; 256]);
        for (value, bytes) in table.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *value = u64::from_le_bytes(*bytes);
        }
        let mut key = [0; 16];
        derive(b"holdall v1 chunker function", &mut key);
        let wide = WidePlaces::new(&table, &key);
        Self { hash: Toeplitz { table }, function: Aes128::new(&key.into()), wide }
    }

    /// The length of the first chunk of `data`, which must be at least [`CHUNK_MAX_BYTES`] or reach
    /// to the end of the content; zero only without data.
    ///
    /// It depends on nothing but the chunk's own bytes and those up to the maximum, so it does not
    /// matter in which portions a content is read.
    pub fn cut(&self, data: &[u8]) -> usize {
        self.first_cut(data).unwrap_or(data.len())
    }

    /// The length of the first chunk of a content that begins with `data`, if `data` shows where it ends,
    /// however the content goes on: at the first cut, or the maximum.
    pub fn first_cut(&self, data: &[u8]) -> Option<usize> {
        let within = data.get(..CHUNK_MAX_BYTES).unwrap_or(data);
        within
            .get(CHUNK_MIN_BYTES.saturating_sub(WINDOW_BYTES)..)
            .and_then(|data| self.first_place(data, CUT_BELOW))
            .map(|place| CHUNK_MIN_BYTES.saturating_add(place))
            .or((within.len() == CHUNK_MAX_BYTES).then_some(CHUNK_MAX_BYTES))
    }

    /// The first place behind the window that `data` begins with where the function is below
    /// `below`: the number of bytes between the two.
    fn first_place(&self, data: &[u8], below: u64) -> Option<usize> {
        let passed = self.wide.as_ref().map_or(0, |wide| wide.passed(data, below));
        self.first_place_narrow(data.get(passed..)?, below)
            .map(|place| passed.saturating_add(place))
    }

    /// The same, place by place.
    fn first_place_narrow(&self, data: &[u8], below: u64) -> Option<usize> {
        let (window, entering) = data.split_at_checked(WINDOW_BYTES)?;
        let mut hash = self.hash.of(window);
        let mut places = [Block::default(); BATCH];
        let batches = entering.chunks(BATCH).zip(data.chunks(BATCH)).enumerate();
        for (batch, (entering, leaving)) in batches {
            let places = places.get_mut(..entering.len())?;
            for ((place, &entering), &leaving) in places.iter_mut().zip(entering).zip(leaving) {
                hash = self.hash.roll(hash, entering, leaving);
                *place = hash.to_le_bytes().into();
            }
            self.function.encrypt_blocks(places);
            let is_cut = |place: &Block| number(place) < below;
            // Counting takes no branch for each of them.
            if places.iter().filter(|place| is_cut(place)).count() > 0 {
                let at = places.iter().position(is_cut)?;
                return Some(batch.saturating_mul(BATCH).saturating_add(at).saturating_add(1));
            }
        }
        None
    }
}

fn number(place: &Block) -> u64 {
    let first = place.first_chunk().copied().unwrap_or_default();
    u64::from_le_bytes(first)
}

/// A hash of the last 64 bytes: the sum of `table[byte] * x^age` over polynomials with coefficients 0
/// and 1.
///
/// Two windows that differ have the same hash for at most one in 2^64 tables: their difference is a
/// sum of table entries times polynomials that are not all zero, and of the one entry that such a
/// polynomial belongs to, only one value makes it zero. So no modulus is needed, and a window of 64
/// bytes makes 127 bits, which is what the function takes.
#[derive(Clone)]
struct Toeplitz {
    table: Box<[u64; 256]>,
}

impl Toeplitz {
    fn of(&self, window: &[u8]) -> u128 {
        window.iter().fold(0, |hash, &byte| (hash << 1) ^ self.entry(byte))
    }

    /// The hash one byte on, where `leaving` is the byte 64 before `entering`.
    #[inline(always)]
    fn roll(&self, hash: u128, entering: u8, leaving: u8) -> u128 {
        (hash << 1) ^ self.entry(entering) ^ (self.entry(leaving) << WINDOW_BYTES)
    }

    #[inline(always)]
    fn entry(&self, byte: u8) -> u128 {
        #[expect(clippy::indexing_slicing, reason = "a byte is below 256")]
        u128::from(self.table[usize::from(byte)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_places_at_once_find_the_same_first_place_as_one_by_one() {
        let chunker = Chunker::new(&[7; 32]);
        let mut data = vec![0; 12 * wide_places::PLACES];
        blake3::Hasher::new().finalize_xof().fill(&mut data);
        let bounds = [0, 1 << 50, 1 << 52, 1 << 53, 1 << 54, 1 << 58, u64::MAX];
        for begin in (0..data.len() / 2).step_by(97) {
            let data = &data[begin..data.len() - begin / 3];
            for below in bounds {
                let found = chunker.first_place(data, below);
                assert_eq!(found, chunker.first_place_narrow(data, below), "{begin} {below}");
            }
        }
        if chunker.wide.is_none() {
            println!("one by one twice: this processor has no AES for vectors");
        }
    }

    #[test]
    fn one_by_one_finds_the_first_place_by_the_definition() {
        let chunker = Chunker::new(&[7; 32]);
        let mut data = vec![0; WINDOW_BYTES + 3 * BATCH + 5];
        blake3::Hasher::new().finalize_xof().fill(&mut data);
        let number_of = |window: &[u8]| {
            let mut block = chunker.hash.of(window).to_le_bytes().into();
            chunker.function.encrypt_block(&mut block);
            number(&block)
        };
        let numbers: Vec<u64> = data[1..].windows(WINDOW_BYTES).map(number_of).collect();
        for &bound in &numbers {
            for below in [bound, bound.saturating_add(1)] {
                let first = numbers.iter().position(|number| *number < below).map(|at| at + 1);
                assert_eq!(chunker.first_place_narrow(&data, below), first, "below {below}");
            }
        }
    }
}
