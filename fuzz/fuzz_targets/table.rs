//! Tables of both kinds.

#![no_main]

use holdall_format::{BlockKind, Table};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    for kind in [BlockKind::Nodes, BlockKind::Chunks, BlockKind::Record] {
        if let Ok(table) = Table::decode(data, kind) {
            assert_eq!(table.encode(kind), data);
        }
    }
});
