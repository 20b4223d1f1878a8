//! Bodies of frames and of ids.

#![no_main]

use bytes::Bytes;
use holdall_format::limits::BLOCK_MAX_BYTES;
use holdall_protocol::wire::{
    Frames, decode_bitmap, decode_block_page, decode_commit_answer, decode_description,
    decode_fetched, decode_frames, decode_ids, decode_new_repository, decode_records,
    decode_whole_frames, encode_bitmap, encode_commit_answer, encode_description, encode_ids,
    encode_new_repository, encode_records,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let body = Bytes::copy_from_slice(data);
    if let Ok(frames) = decode_frames(&body, BLOCK_MAX_BYTES) {
        assert_eq!(Frames::framed(&frames).concat(), body);
    }
    if let Ok(frames) = decode_whole_frames(&body, BLOCK_MAX_BYTES) {
        assert!(body.starts_with(&Frames::framed(&frames).concat()));
    }
    if let Ok(new) = decode_new_repository(&body) {
        assert_eq!(encode_new_repository(&new).concat(), body);
    }
    if let Ok(description) = decode_description(&body) {
        assert_eq!(encode_description(&description).concat(), body);
    }
    if let Ok(answer) = decode_commit_answer(&body, b"record") {
        assert_eq!(encode_commit_answer(&answer).concat(), body);
    }
    if let Ok((records, next)) = decode_records(&body) {
        assert_eq!(encode_records(&records, next).concat(), body);
    }
    if let Ok(ids) = decode_ids(data) {
        assert_eq!(encode_ids(&ids), body);
    }
    if let Some((&count, bits)) = data.split_first()
        && let Ok(answers) = decode_bitmap(bits, usize::from(count))
    {
        assert_eq!(encode_bitmap(&answers), bits);
    }
    if let Ok(fetched) = decode_fetched(&body) {
        assert!(fetched.blocks.iter().all(|block| block.len() <= BLOCK_MAX_BYTES));
    }
    let _ = decode_block_page(&body);
});
