//! The caches of a client: nodes, leaves, records, and blocks that it remembers.

#![no_main]

use holdall_engine::caches::{CacheHits, SERIES};
use holdall_fuzz::{id, put_table_hash};
use libfuzzer_sys::fuzz_target;

/// Bytes before each block in the cache of nodes.
const FRAME_BYTES: usize = 4;

fuzz_target!(|data: &[u8]| {
    let hashed = hashed(data);
    for bytes in [data, &hashed] {
        let folder = tempfile::tempdir().unwrap();
        let name = match bytes.first_chunk::<8>() {
            Some(b"hldleaf2") => format!("leaves-{SERIES}"),
            Some(b"hldrecs1") => "records".to_owned(),
            Some(b"hldblks1") => "blocks".to_owned(),
            _ => "nodes".to_owned(),
        };
        std::fs::write(folder.path().join(name), bytes).unwrap();
        let found = CacheHits::within(folder.path(), &[0xb1, 0xb2, 0xc1, 0x11].map(id));
        assert!(found.records + found.blocks <= bytes.len());
    }
});

/// Makes the hashes of the tables of all blocks hold.
fn hashed(data: &[u8]) -> Vec<u8> {
    let mut hashed = data.to_vec();
    let mut header_at = FRAME_BYTES;
    while let Some(table_end) = put_table_hash(&mut hashed, header_at) {
        let payload = hashed.get(header_at + 32..).and_then(|rest| rest.first_chunk());
        let payload_bytes = payload.map_or(0, |bytes| u32::from_le_bytes(*bytes)) as usize;
        header_at = table_end + payload_bytes + FRAME_BYTES;
    }
    hashed
}
