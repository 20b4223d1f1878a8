//! Pack footers, as they come and with the right hashes of their tables.

#![no_main]

use holdall_format::{BlockHeader, Footer};
use holdall_fuzz::put_table_hash;
use libfuzzer_sys::fuzz_target;

/// Bytes of a footer before its first block, and of a block before its header.
const FRONT_BYTES: usize = 60;
const BLOCK_FRONT_BYTES: usize = 48;

fuzz_target!(|data: &[u8]| {
    let mut hashed = data.to_vec();
    let mut header_at = FRONT_BYTES + BLOCK_FRONT_BYTES;
    let mut payload_bytes = 0;
    while let Some(end) = put_table_hash(&mut hashed, header_at) {
        let header = BlockHeader::decode(&hashed[header_at..]).unwrap();
        payload_bytes += u64::from(header.payload_bytes);
        header_at = end + BLOCK_FRONT_BYTES;
    }
    for bytes in [data, &hashed] {
        if let Ok(footer) = Footer::decode(bytes, payload_bytes) {
            assert_eq!(footer.encode(), bytes);
            footer.blocks.iter().for_each(|block| drop(block.table()));
        }
    }
});
