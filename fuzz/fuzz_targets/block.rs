//! Whole blocks, as they come and with the right hash of their table.

#![no_main]

use holdall_format::Block;
use holdall_fuzz::put_table_hash;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut hashed = data.to_vec();
    put_table_hash(&mut hashed, 0);
    for bytes in [data, &hashed] {
        if let Ok(block) = Block::decode(bytes) {
            let (header, table) = (block.header(), block.table().encode(block.header().kind));
            let again = Block::join(header, &table, block.payload()).unwrap();
            assert_eq!(again.bytes(), bytes);
        }
    }
});
