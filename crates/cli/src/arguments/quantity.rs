//! Numbers of bytes and of seconds as people write them.
//!
//! Limits and rooms are in powers of 1000, as disks and links are sold. Blocks are in powers of 1024,
//! as fio, CrystalDiskMark and every file system have them.

use std::time::Duration;

/// The shortest and the longest time that is taken: 30 years are still added to any clock.
const SECONDS: std::ops::RangeInclusive<f64> = 1e-9..=1e9;

/// Reads `1000`, `500k`, `20M`, `1G` or `2T`: bytes, the units in powers of 1000, or by their full names as `20MB`.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    read(text, 1000, "B")
}

/// Reads `4096`, `4K`, `1M` or `2G`: bytes, the units in powers of 1024, or by their full names as `4KiB`.
pub(crate) fn block_bytes(text: &str) -> Result<u64, String> {
    read(text, 1024, "iB")
}

/// Reads `10` or `0.5`: seconds, and more than none.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.parse::<f64>().ok().filter(|number| SECONDS.contains(number));
    let time = number.map(Duration::from_secs_f64);
    time.ok_or_else(|| "it is a number of seconds, more than 0 and at most 1000000000".into())
}

/// `byte` is what the full names of these units end with.
fn read(text: &str, kilo: u64, byte: &str) -> Result<u64, String> {
    let short = text.strip_suffix(byte).unwrap_or(text);
    let (number, power) = match short.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (&short[..at], 1),
        Some((at, 'm' | 'M')) => (&short[..at], 2),
        Some((at, 'g' | 'G')) => (&short[..at], 3),
        Some((at, 't' | 'T')) => (&short[..at], 4),
        _ => (text, 0),
    };
    let number: u64 = number.parse().map_err(|_| "it is a number with k, M, G or T")?;
    number.checked_mul(kilo.pow(power)).ok_or_else(|| "too much".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_powers_of_a_thousand() {
        let read = ["0", "1000", "500k", "20M", "1g", "2T"].map(|text| bytes(text).unwrap());
        assert_eq!(read, [0, 1000, 500_000, 20_000_000, 1_000_000_000, 2_000_000_000_000]);
        assert_eq!(["500kB", "20MB", "1GB"].map(bytes), ["500k", "20M", "1G"].map(bytes));
        for bad in
            ["", "k", "-1", "5 M", "5x", "1.5G", "99999999999999T", "5B", "B", "4KiB", "5MBB"]
        {
            assert!(bytes(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn units_of_blocks_are_powers_of_1024() {
        let read = ["512", "4K", "1m", "1G"].map(|text| block_bytes(text).unwrap());
        assert_eq!(read, [512, 4096, 1 << 20, 1 << 30]);
        assert_eq!(["4KiB", "1MiB"].map(block_bytes), ["4K", "1M"].map(block_bytes));
        // Which of the two it means depends on who says it.
        assert!(block_bytes("4KB").is_err());
    }

    #[test]
    fn seconds_are_more_than_none_and_finite() {
        let read = ["10", "0.5", "1e-9"].map(|text| seconds(text).unwrap().as_nanos());
        assert_eq!(read, [10_000_000_000, 500_000_000, 1]);
        for bad in ["", "0", "-0", "-1", "1e-10", "1e10", "NaN", "inf", "-inf", "5s"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}
