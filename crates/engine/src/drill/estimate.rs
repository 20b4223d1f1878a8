//! From what a drill measured to how long a restore of everything takes.

/// A restore that was timed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Measured {
    /// Items that were restored.
    pub items: u64,
    /// Bytes of their files.
    pub bytes: u64,
    /// How long it took.
    pub seconds: f64,
}

/// How many seconds it takes to restore so many items and bytes, where the small files of a sample and its large ones
/// took so long. Nothing if neither was restored.
///
/// A byte costs what it costs in large files. What small files take beyond their bytes is what an item costs.
pub fn estimate(items: u64, bytes: u64, small: Measured, large: Measured) -> Option<f64> {
    let (items, bytes) = (items as f64, bytes as f64);
    let by_bytes = |measured: Measured| bytes * measured.seconds / measured.bytes as f64;
    let by_items = |measured: Measured| items * measured.seconds / measured.items as f64;
    match (small.items, large.bytes) {
        (0, 0) => None,
        (0, _) => Some(by_bytes(large)),
        (_, 0) => Some(by_items(small)),
        _ => {
            let byte_seconds = large.seconds / large.bytes as f64;
            let rest = (small.seconds - small.bytes as f64 * byte_seconds).max(0.0);
            Some(by_bytes(large) + by_items(Measured { seconds: rest, ..small }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a restore takes where an item costs a millisecond and a byte ten nanoseconds.
    fn took(items: u64, bytes: u64) -> Measured {
        Measured { items, bytes, seconds: items as f64 * 1e-3 + bytes as f64 * 1e-8 }
    }

    #[test]
    fn items_and_bytes_count_by_what_each_of_them_costs() {
        let (small, large) = (took(1000, 4_000_000), took(4, 400_000_000));
        for (items, bytes) in [(1_000_000, 1_000_000_000), (10, 1_000_000_000_000), (5000, 5000)] {
            let real = took(items, bytes).seconds;
            let ratio = estimate(items, bytes, small, large).unwrap() / real;
            assert!((0.95..1.05).contains(&ratio), "{items} items, {bytes} bytes: {ratio}");
        }
    }

    #[test]
    fn one_kind_of_files_is_enough_and_none_is_not() {
        let none = Measured::default();
        assert_eq!(estimate(2000, 0, took(1000, 0), none), Some(2.0));
        let large = Measured { items: 1, bytes: 100, seconds: 1.0 };
        assert_eq!(estimate(7, 700, none, large), Some(7.0));
        assert_eq!(estimate(7, 700, none, none), None);
    }
}
