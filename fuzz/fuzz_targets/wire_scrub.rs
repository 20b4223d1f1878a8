//! A scrub's answer, in pieces.

#![no_main]

use holdall_protocol::wire::ScrubGathering;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&piece_bytes, data)) = data.split_first() else { return };
    let mut gathering = ScrubGathering::default();
    for piece in data.chunks(usize::from(piece_bytes).max(1)) {
        if gathering.push(piece, &mut |_| ()).is_err() {
            return;
        }
    }
    let _ = gathering.finish();
});
