//! A quick look at whether compressing can pay, so that photographs, films and archives, which are
//! compressed already, go past zstd at the speed of the cipher, and do not lie among text, whose
//! statistics they would spoil.

/// Most bytes of a window that is looked at.
const WINDOW_BYTES: usize = 1024;
/// Nothing can be told from fewer bytes.
const LEAST_BYTES: usize = 64;
/// One window for each so many bytes, spread evenly.
const BYTES_PER_WINDOW: usize = 64 << 10;
/// Most windows.
const MAX_WINDOWS: usize = 64;

/// Whether zstd is worth trying: false only where each window that was looked at seems random.
///
/// A wrong answer costs size or time, nothing else.
pub fn worth_compressing(bytes: &[u8]) -> bool {
    if bytes.len() < LEAST_BYTES {
        return true;
    }
    let window_bytes = bytes.len().min(WINDOW_BYTES);
    let windows = bytes.len().div_ceil(BYTES_PER_WINDOW).min(MAX_WINDOWS);
    let room = bytes.len() - window_bytes;
    // In the middle of each part, as headers are at the front.
    (0..windows).any(|at| {
        let start = room * (2 * at + 1) / (2 * windows);
        !looks_random(&bytes[start..start + window_bytes])
    })
}

/// Whether each byte value is about as frequent as chance would have it: the sum of the squared
/// counts of n random bytes is n + n (n - 1) / 256 on average, with a variance of 2 n (n - 1) / 256.
/// Text is far above; counters and ramps, in which every byte is equally frequent, are below.
fn looks_random(window: &[u8]) -> bool {
    let mut counts = [0u32; 256];
    window.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    let found = counts.iter().map(|count| i64::from(count * count)).sum::<i64>();
    let pairs = (window.len() * (window.len() - 1) / 256) as i64;
    let off = found - window.len() as i64 - pairs;
    // Five standard deviations.
    off * off < 25 * 2 * pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(len_bytes: usize, seed: u64) -> Vec<u8> {
        holdall_testkit::Random::new(seed).bytes(len_bytes)
    }

    #[test]
    fn random_bytes_are_not_worth_compressing() {
        for seed in 1..=4 {
            for len_bytes in [1 << 20, 100_000, 4096, 1000, 200] {
                let bytes = random(len_bytes, seed);
                assert!(!worth_compressing(&bytes), "{len_bytes} bytes of {seed}");
            }
        }
    }

    #[test]
    fn text_ramps_zeros_and_a_mixture_are_worth_compressing() {
        let text = b"to be or not to be, that is the question; ".repeat(5000);
        let ramp: Vec<u8> = (0..100_000u32).map(|i| i as u8).collect();
        let mixture = [&random(200_000, 5)[..], &text[..100_000]].concat();
        for bytes in [&text[..], &text[..100], &ramp, &[0; 10_000], &mixture, b"short", b""] {
            assert!(worth_compressing(bytes), "{} bytes", bytes.len());
        }
    }
}
