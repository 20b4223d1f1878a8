//! What a server says of the bytes that a measurement sent.

#![no_main]

use holdall_protocol::wire::{
    decode_lab_taken, decode_lab_written, encode_lab_taken, encode_lab_written,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(taken) = decode_lab_taken(data) {
        assert_eq!(decode_lab_taken(&encode_lab_taken(&taken)), Ok(taken));
    }
    if let Ok(written) = decode_lab_written(data) {
        // The last digit of a time may be another one.
        let again = decode_lab_written(&encode_lab_written(&written));
        assert_eq!(again.map(|again| again.bytes), Ok(written.bytes));
    }
});
