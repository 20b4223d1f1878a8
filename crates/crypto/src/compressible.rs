//! A quick look at whether compressing can pay, so that photographs, films and archives, which are
//! compressed already, go past zstd at the speed of the cipher.

/// Bytes of a window that is looked at.
const WINDOW_BYTES: usize = 4096;
/// Windows that are looked at, spread over the whole.
const WINDOWS: usize = 16;
/// The sum of squared byte counts of 4096 random bytes is 69,616 on average with a standard
/// deviation of about 360: a window between these bounds looks random. Text is above a million;
/// counters and ramps, in which every byte is equally frequent, are below.
const RANDOM_LOOKING: std::ops::Range<u32> = 68_000..71_500;

/// Whether zstd is worth trying: false only where each window that was looked at seems random.
///
/// A wrong answer costs size or time, nothing else.
pub(crate) fn worth_trying(bytes: &[u8]) -> bool {
    let Some(last) = bytes.len().checked_sub(WINDOW_BYTES) else { return true };
    (0..WINDOWS).any(|at| {
        let start = last * at / (WINDOWS - 1);
        !looks_random(&bytes[start..start + WINDOW_BYTES])
    })
}

fn looks_random(window: &[u8]) -> bool {
    let mut counts = [0u32; 256];
    window.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    RANDOM_LOOKING.contains(&counts.iter().map(|count| count * count).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(len_bytes: usize, seed: &str) -> Vec<u8> {
        let mut bytes = vec![0; len_bytes];
        blake3::Hasher::new_derive_key(seed).finalize_xof().fill(&mut bytes);
        bytes
    }

    #[test]
    fn random_bytes_are_not_worth_trying() {
        for seed in ["one", "two", "three", "four"] {
            assert!(!worth_trying(&random(1 << 20, seed)), "{seed}");
        }
    }

    #[test]
    fn text_ramps_zeros_and_a_mixture_are_worth_trying() {
        let text = b"to be or not to be, that is the question; ".repeat(5000);
        let ramp: Vec<u8> = (0..100_000u32).map(|i| i as u8).collect();
        let mixture = [&random(200_000, "a")[..], &text[..100_000]].concat();
        for bytes in [&text[..], &ramp, &[0; 10_000], &mixture, b"short", b""] {
            assert!(worth_trying(bytes), "{} bytes", bytes.len());
        }
    }
}
