//! Encoded extents of a sparse file.

#![no_main]

use holdall_tree::Extents;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    for size_bytes in [0, 1 << 10, 1 << 45, u64::MAX] {
        if let Ok(extents) = Extents::decode(data, size_bytes) {
            assert_eq!(extents.encode(), data);
            assert!(extents.data_bytes() <= size_bytes);
        }
    }
});
