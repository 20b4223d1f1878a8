//! Numbers of bytes as people write them.

/// Reads `1000`, `500k`, `20M`, `1G` or `2T`: bytes, the units in powers of 1000.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = match text.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (&text[..at], 1_000),
        Some((at, 'm' | 'M')) => (&text[..at], 1_000_000),
        Some((at, 'g' | 'G')) => (&text[..at], 1_000_000_000),
        Some((at, 't' | 'T')) => (&text[..at], 1_000_000_000_000),
        _ => (text, 1),
    };
    let number: u64 = number.parse().map_err(|_| "it is a number with k, M, G or T")?;
    number.checked_mul(unit).ok_or_else(|| "too much".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_powers_of_a_thousand() {
        let read = ["0", "1000", "500k", "20M", "1g", "2T"].map(|text| bytes(text).unwrap());
        assert_eq!(read, [0, 1000, 500_000, 20_000_000, 1_000_000_000, 2_000_000_000_000]);
        for bad in ["", "k", "-1", "5 M", "5x", "1.5G", "99999999999999T"] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
    }
}
