//! Pack trailers.

#![no_main]

use holdall_format::Trailer;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(trailer) = Trailer::decode(data) {
        assert_eq!(trailer.encode()[..], *data);
    }
});
