//! Numbers of bytes and of seconds as people write them.
//!
//! Limits and rooms are in powers of 1000, as disks and links are sold. Blocks are in powers of 1024,
//! as fio, CrystalDiskMark and every file system have them.

use std::time::Duration;

/// The shortest and the longest time that is taken: 30 years are still added to any clock.
const SECONDS: std::ops::RangeInclusive<f64> = 1e-9..=1e9;

/// Reads `1000`, `500k`, `20M`, `1G` or `2T`: bytes, the units in powers of 1000, or by their full names as `20MB`; by
/// those of powers of 1024, as `20MiB`, too.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    read(text, 1000).map_err(|why| why.in_words("it is a number with k, M, G or T"))
}

/// Reads `4096`, `4K`, `1M` or `2G`: bytes, the units in powers of 1024, or by their full names as `4KiB`.
pub(crate) fn block_bytes(text: &str) -> Result<u64, String> {
    read(text, 1024).map_err(|why| why.in_words("it is a number with K, M, G or T"))
}

/// Reads a rate in bytes a second, as `500k`, `20M` or `20MB/s`, or in bits, as links are sold: `100Mbit`, `100Mb/s`,
/// `1Gb`, `1000Mbps`. It is more than none.
pub(crate) fn rate(text: &str) -> Result<u64, String> {
    let a_second = ["/s", "ps"].iter().find_map(|end| text.strip_suffix(end));
    let each = a_second.unwrap_or(text);
    let of_bits = each.strip_suffix("bit").or_else(|| each.strip_suffix('b'));
    let read = match of_bits {
        Some(number) if !number.ends_with('B') => read(number, 1000).map(|bits| bits / 8),
        Some(_) => Err(Bad::NoNumber),
        None if text.ends_with("ps") && !each.ends_with('B') => Err(Bad::NoNumber),
        None => read(each, 1000),
    };
    let rate = read.map_err(|why| {
        why.in_words(
            "a rate is a number with k, M, G or T for bytes a second (12M, 12MB/s), and with kbit, Mbit or Gbit for \
             bits (100Mbit, 100Mb/s)",
        )
    })?;
    if rate > 0 { Ok(rate) } else { Err("a rate of nothing would never end".into()) }
}

/// Reads `1000`, `500k` or `2M`: how many of something.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    let why = |why: Bad| why.in_words("it is a number with k, M or G");
    if text.ends_with('B') { Err(why(Bad::NoNumber)) } else { read(text, 1000).map_err(why) }
}

/// Reads `10` or `0.5`: seconds, and more than none.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.parse::<f64>().ok().filter(|number| SECONDS.contains(number));
    let time = number.map(Duration::from_secs_f64);
    time.ok_or_else(|| "it is a number of seconds, more than 0 and at most 1000000000".into())
}

/// Why a text is no quantity.
enum Bad {
    NoNumber,
    TooMuch,
}

impl Bad {
    fn in_words(self, what_it_is: &str) -> String {
        match self {
            Self::NoNumber => what_it_is.to_owned(),
            Self::TooMuch => "too much".to_owned(),
        }
    }
}

/// A number and its unit, of which a short one, as `M`, is in powers of `kilo`.
fn read(text: &str, kilo: u64) -> Result<u64, Bad> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: u64 = match number.parse() {
        Ok(number) => number,
        // It has nothing but digits.
        Err(_) if !number.is_empty() => return Err(Bad::TooMuch),
        Err(_) => return Err(Bad::NoNumber),
    };
    number.checked_mul(factor(unit, kilo).ok_or(Bad::NoNumber)?).ok_or(Bad::TooMuch)
}

/// What a unit stands for; `None` for what is none. Whether `KB` of a block is 1000 or 1024 bytes depends on who says
/// it, so that it is none.
fn factor(unit: &str, kilo: u64) -> Option<u64> {
    let mut letters = unit.chars();
    let power = match letters.next() {
        None => return Some(1),
        Some(letter) => "kmgt".find(letter.to_ascii_lowercase())? + 1,
    };
    let base: u64 = match letters.as_str() {
        "" => kilo,
        "iB" => 1024,
        "B" if kilo == 1000 => 1000,
        _ => return None,
    };
    base.checked_pow(u32::try_from(power).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_powers_of_a_thousand() {
        let read = ["0", "1000", "500k", "20M", "1g", "2T"].map(|text| bytes(text).unwrap());
        assert_eq!(read, [0, 1000, 500_000, 20_000_000, 1_000_000_000, 2_000_000_000_000]);
        assert_eq!(["500kB", "20MB", "1GB"].map(bytes), ["500k", "20M", "1G"].map(bytes));
        assert_eq!(["4KiB", "20MiB"].map(bytes), [4096, 20 << 20].map(Ok));
        assert_eq!(bytes("99999999999999999999"), Err("too much".into()));
        for bad in
            ["", "k", "-1", "5 M", "5x", "1.5G", "99999999999999T", "5B", "B", "4KiBB", "5MBB"]
        {
            assert!(bytes(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_rate_is_in_bytes_or_in_bits_as_people_write_them() {
        let megabytes = [
            "12M", "12MB", "12MB/s", "12MBps", "12m", "96Mbit", "96Mb/s", "96Mbit/s", "96Mbps",
            "96Mb",
        ];
        megabytes.iter().for_each(|text| assert_eq!(rate(text), Ok(12_000_000), "{text}"));
        assert_eq!(
            ["1Gb", "1000Mbit/s", "10Mbit", "8bit"].map(rate),
            [125_000_000, 125_000_000, 1_250_000, 1].map(Ok)
        );
        for bad in
            ["", "0", "0bit", "bit", "xbit", "-1M", "50 MB", "50MBbit", "50Mps", "1bit", "b", "/s"]
        {
            assert!(rate(bad).is_err(), "{bad}");
        }
        let told = rate("50 MB").unwrap_err();
        assert!(told.contains("100Mbit") && told.contains("12MB/s"), "{told}");
    }

    #[test]
    fn how_many_may_be_said_in_thousands() {
        assert_eq!(
            ["7", "500k", "1m", "2M"].map(count),
            [7, 500_000, 1_000_000, 2_000_000].map(Ok)
        );
        assert!(["", "1MB", "1b", "-1"].into_iter().all(|bad| count(bad).is_err()));
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
