//! Deciding about a thousand places of a content at once, where the processor encrypts two blocks of
//! AES with one instruction (VAES) and has vectors of 256 bits (AVX2).
//!
//! What is decided, and why, is the chunker's business: for each place, the hash of the 64 bytes before
//! it, through AES-128, against a bound. One byte after the other, with the hash in two registers, that
//! takes 9 to 12 cycles a place, most of it for rolling the hash and for putting it where the cipher
//! wants it. Here four stretches of the content are gone through side by side, a lane for each, and
//! hashes go from the lanes into the cipher without touching memory: 4 to 5 cycles, of which the
//! cipher's instructions are 2.5.
//!
//! The hash, 127 bits, is the sum of `table[byte] * 2^age` without carries over the 64 bytes before a
//! place. Its two halves are rolled apart, over the same looked-up entries: the low one forwards, where
//! what is too old leaves at the top; the high one backwards, where what is too young leaves at the bottom.
//!
//! ```text
//! low:  l(i) = l(i-1) * 2 ^ table[byte i]          of bytes up to the place
//! high: h(i) = h(i+1) / 2 ^ table[byte i]          of bytes from the oldest of the window on, halved
//! ```

#![allow(
    unsafe_code,
    reason = "vectors are loaded and stored, and the instructions were looked for"
)]

/// Bytes on which a decision depends.
pub const WINDOW_BYTES: usize = 64;
/// Places that are decided at once.
pub const PLACES: usize = LANES * LANE_PLACES;
/// The bytes that these places depend on.
#[cfg(any(test, target_arch = "x86_64"))]
const CONTEXT_BYTES: usize = WINDOW_BYTES + PLACES;

const LANES: usize = 4;
/// Places of a lane. The looked-up entries of all lanes, and half of their hashes, stay in the first cache.
const LANE_PLACES: usize = 256;

#[cfg(target_arch = "x86_64")]
pub use x86_64::WidePlaces;

#[cfg(not(target_arch = "x86_64"))]
pub use elsewhere::WidePlaces;

#[cfg(not(target_arch = "x86_64"))]
mod elsewhere {
    /// Not there on this kind of processor.
    #[derive(Clone)]
    pub enum WidePlaces {}

    impl WidePlaces {
        /// `None`: the caller decides place by place.
        #[must_use]
        pub fn new(_table: &[u64; 256], _key: &[u8; 16]) -> Option<Self> {
            None
        }

        /// Cannot be called.
        #[must_use]
        pub fn passed(&self, _data: &[u8], _below: u64) -> usize {
            match *self {}
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use std::arch::x86_64::{
        __m128i, __m256i, _mm_aeskeygenassist_si128, _mm_loadu_si128, _mm_setzero_si128,
        _mm_shuffle_epi32, _mm_slli_si128, _mm_xor_si128, _mm256_add_epi64, _mm256_aesenc_epi128,
        _mm256_aesenclast_epi128, _mm256_broadcastsi128_si256, _mm256_cmpgt_epi64,
        _mm256_loadu_si256, _mm256_or_si256, _mm256_set1_epi64x, _mm256_setzero_si256,
        _mm256_srli_epi64, _mm256_storeu_si256, _mm256_testz_si256, _mm256_unpackhi_epi64,
        _mm256_unpacklo_epi64, _mm256_xor_si256,
    };
    use std::is_x86_feature_detected;

    use super::{CONTEXT_BYTES, LANE_PLACES, LANES, PLACES, WINDOW_BYTES};

    const ROUNDS: usize = 10;
    /// Bytes of a lane, and so looked-up entries.
    const LANE_BYTES: usize = WINDOW_BYTES + LANE_PLACES;
    /// Places of a lane that are encrypted at once, in two vectors each. More need more registers than
    /// there are, and the processor itself goes on with the next ones meanwhile.
    const STEP: usize = 2;

    /// One value for each lane.
    type Row = [u64; LANES];

    /// A table and a key, with which places are decided.
    ///
    /// Secret: whoever has it can compute where a guessed content would be cut.
    #[derive(Clone)]
    pub struct WidePlaces {
        table: Box<[u64; 256]>,
        round_keys: [__m128i; ROUNDS + 1],
    }

    impl WidePlaces {
        /// `None` where the processor lacks an instruction.
        #[must_use]
        pub fn new(table: &[u64; 256], key: &[u8; 16]) -> Option<Self> {
            let is_there = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("aes")
                && is_x86_feature_detected!("vaes");
            if !is_there {
                return None;
            }
            // SAFETY: the processor has AES.
            let round_keys = unsafe { expand(key) };
            Some(Self { table: Box::new(*table), round_keys })
        }

        /// The first places behind the window that `data` begins with, a multiple of [`PLACES`](super::PLACES),
        /// at none of which the function is below `below`: before the first batch that has one, or is not
        /// whole. The function is AES of the hash, its first eight bytes as a number (little-endian).
        #[must_use]
        pub fn passed(&self, data: &[u8], below: u64) -> usize {
            // SAFETY: there is no value of this type where the processor lacks an instruction.
            unsafe { self.pass(data, below) }
        }

        #[target_feature(enable = "avx2,vaes")]
        fn pass(&self, data: &[u8], below: u64) -> usize {
            let keys = self.round_keys.map(|key| _mm256_broadcastsi128_si256(key));
            let mut entries = [[0; LANES]; LANE_BYTES];
            let mut high = [[0; LANES]; LANE_PLACES];
            let mut passed = 0;
            while let Some(context) = data[passed..].first_chunk() {
                self.look_up(context, &mut entries);
                put_high_halves(&entries, &mut high);
                if any_below(&keys, &entries, &high, below) {
                    break;
                }
                passed += PLACES;
            }
            passed
        }

        /// The entry of each byte, lanes side by side. Lanes overlap by a window.
        #[target_feature(enable = "avx2")]
        fn look_up(&self, context: &[u8; CONTEXT_BYTES], entries: &mut [Row; LANE_BYTES]) {
            for at in 0..LANE_BYTES {
                for lane in 0..LANES {
                    let byte = context[lane * LANE_PLACES + at];
                    entries[at][lane] = self.table[usize::from(byte)];
                }
            }
        }
    }

    /// Whether one of the places is below `below`, by the entries of its window and the high half of its hash.
    #[target_feature(enable = "avx2,vaes")]
    fn any_below(
        keys: &[__m256i; ROUNDS + 1],
        entries: &[Row; LANE_BYTES],
        high: &[Row; LANE_PLACES],
        below: u64,
    ) -> bool {
        // The comparison is of signed numbers.
        let sign = _mm256_set1_epi64x(i64::MIN);
        let bound = _mm256_xor_si256(_mm256_set1_epi64x(below.cast_signed()), sign);
        let mut low = _mm256_setzero_si256();
        for row in &entries[..WINDOW_BYTES] {
            low = doubled_with(low, row);
        }
        let mut any = _mm256_setzero_si256();
        for first in (0..LANE_PLACES).step_by(STEP) {
            let mut blocks = [_mm256_setzero_si256(); 2 * STEP];
            for at in 0..STEP {
                low = doubled_with(low, &entries[WINDOW_BYTES + first + at]);
                let [even, odd] = hashes(low, load(&high[first + at]));
                blocks[2 * at] = even;
                blocks[2 * at + 1] = odd;
            }
            encrypt(keys, &mut blocks);
            for at in 0..STEP {
                let pair = _mm256_unpacklo_epi64(blocks[2 * at], blocks[2 * at + 1]);
                let numbers = _mm256_xor_si256(pair, sign);
                any = _mm256_or_si256(any, _mm256_cmpgt_epi64(bound, numbers));
            }
        }
        _mm256_testz_si256(any, any) == 0
    }

    /// The high half of the hash at each place of a lane.
    #[target_feature(enable = "avx2")]
    fn put_high_halves(entries: &[Row; LANE_BYTES], halves: &mut [Row; LANE_PLACES]) {
        let mut high = _mm256_setzero_si256();
        // The last window has its oldest byte behind that of the first place.
        for at in (1 + LANE_PLACES..LANE_BYTES).rev() {
            high = halved_with(high, &entries[at]);
        }
        for at in (0..LANE_PLACES).rev() {
            high = halved_with(high, &entries[1 + at]);
            store(&mut halves[at], _mm256_srli_epi64::<1>(high));
        }
    }

    #[target_feature(enable = "avx2")]
    fn doubled_with(value: __m256i, row: &Row) -> __m256i {
        _mm256_xor_si256(_mm256_add_epi64(value, value), load(row))
    }

    #[target_feature(enable = "avx2")]
    fn halved_with(value: __m256i, row: &Row) -> __m256i {
        _mm256_xor_si256(_mm256_srli_epi64::<1>(value), load(row))
    }

    /// The hashes of four lanes as blocks, from their halves: those of lanes 0 and 2, and of 1 and 3.
    #[target_feature(enable = "avx2")]
    fn hashes(low: __m256i, high: __m256i) -> [__m256i; 2] {
        [_mm256_unpacklo_epi64(low, high), _mm256_unpackhi_epi64(low, high)]
    }

    #[target_feature(enable = "avx2,vaes")]
    fn encrypt(keys: &[__m256i; ROUNDS + 1], blocks: &mut [__m256i; 2 * STEP]) {
        let [first, middle @ .., last] = keys;
        for block in &mut *blocks {
            *block = _mm256_xor_si256(*block, *first);
        }
        for key in middle {
            for block in &mut *blocks {
                *block = _mm256_aesenc_epi128(*block, *key);
            }
        }
        for block in blocks {
            *block = _mm256_aesenclast_epi128(*block, *last);
        }
    }

    #[target_feature(enable = "avx2")]
    fn load(row: &Row) -> __m256i {
        // SAFETY: a row has 32 bytes, and the load asks for no alignment.
        unsafe { _mm256_loadu_si256(row.as_ptr().cast()) }
    }

    #[target_feature(enable = "avx2")]
    fn store(row: &mut Row, value: __m256i) {
        // SAFETY: a row has 32 bytes, and the store asks for no alignment.
        unsafe { _mm256_storeu_si256(row.as_mut_ptr().cast(), value) }
    }

    /// The key schedule of AES-128 (FIPS 197, section 5.2).
    #[target_feature(enable = "aes")]
    fn expand(key: &[u8; 16]) -> [__m128i; ROUNDS + 1] {
        let mut keys = [_mm_setzero_si128(); ROUNDS + 1];
        // SAFETY: a key has 16 bytes, and the load asks for no alignment.
        keys[0] = unsafe { _mm_loadu_si128(key.as_ptr().cast()) };
        keys[1] = next_key(keys[0], _mm_aeskeygenassist_si128::<0x01>(keys[0]));
        keys[2] = next_key(keys[1], _mm_aeskeygenassist_si128::<0x02>(keys[1]));
        keys[3] = next_key(keys[2], _mm_aeskeygenassist_si128::<0x04>(keys[2]));
        keys[4] = next_key(keys[3], _mm_aeskeygenassist_si128::<0x08>(keys[3]));
        keys[5] = next_key(keys[4], _mm_aeskeygenassist_si128::<0x10>(keys[4]));
        keys[6] = next_key(keys[5], _mm_aeskeygenassist_si128::<0x20>(keys[5]));
        keys[7] = next_key(keys[6], _mm_aeskeygenassist_si128::<0x40>(keys[6]));
        keys[8] = next_key(keys[7], _mm_aeskeygenassist_si128::<0x80>(keys[7]));
        keys[9] = next_key(keys[8], _mm_aeskeygenassist_si128::<0x1b>(keys[8]));
        keys[10] = next_key(keys[9], _mm_aeskeygenassist_si128::<0x36>(keys[9]));
        keys
    }

    /// The words of the key before it, each with the sum of those before it, and the new word.
    #[target_feature(enable = "aes")]
    fn next_key(key: __m128i, word: __m128i) -> __m128i {
        let mut sum = key;
        for _ in 1..4 {
            sum = _mm_xor_si128(key, _mm_slli_si128::<4>(sum));
        }
        _mm_xor_si128(sum, _mm_shuffle_epi32::<0xff>(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aes::Aes128;
    use aes::cipher::{BlockCipherEncrypt, KeyInit};

    const KEY: [u8; 16] = *b"0123456789abcdef";

    /// Numbers that look like chance (SplitMix64).
    fn numbers() -> impl Iterator<Item = u64> {
        (1u64..).map(|at| {
            let mixed = at.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            mixed ^ (mixed >> 31)
        })
    }

    /// What is decided on at each place, by the definition.
    fn decided_on(table: &[u64; 256], context: &[u8; CONTEXT_BYTES]) -> Vec<u64> {
        let cipher = Aes128::new(&KEY.into());
        let number = |window: &[u8]| {
            let add = |hash, &byte: &u8| (hash << 1) ^ u128::from(table[usize::from(byte)]);
            let mut block = window.iter().fold(0u128, add).to_le_bytes().into();
            cipher.encrypt_block(&mut block);
            u64::from_le_bytes(*block.first_chunk().unwrap())
        };
        context[1..].windows(WINDOW_BYTES).map(number).collect()
    }

    #[test]
    fn every_place_is_decided_on_by_the_hash_of_its_window_through_the_cipher() {
        let mut table = [0; 256];
        table.iter_mut().zip(numbers()).for_each(|(entry, number)| *entry = number);
        let Some(wide) = WidePlaces::new(&table, &KEY) else {
            println!("not looked at: this processor has no AES for vectors");
            return;
        };
        let mut context = [0; CONTEXT_BYTES];
        context.iter_mut().zip(numbers()).for_each(|(byte, number)| *byte = number as u8);
        // Each time the place with the least number is found by that number, and then goes away.
        for _ in 0..2 * PLACES {
            let least = decided_on(&table, &context).into_iter().enumerate();
            let (place, number) = least.min_by_key(|(_, number)| *number).unwrap();
            assert_eq!(wide.passed(&context, number), PLACES, "place {place} has the least number");
            assert_eq!(wide.passed(&context, number + 1), 0, "place {place} has {number}");
            context[WINDOW_BYTES + place] ^= 1;
        }
    }
}
