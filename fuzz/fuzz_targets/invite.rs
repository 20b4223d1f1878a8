//! Invites as they are pasted, and with a checksum that holds.

#![no_main]

use holdall_protocol::Invite;
use libfuzzer_sys::fuzz_target;

const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

fuzz_target!(|data: &[u8]| {
    let sum = blake3::hash(data);
    let framed = [data, &sum.as_bytes()[..4]].concat();
    let texts =
        [String::from_utf8_lossy(data).into_owned(), format!("holdall1-{}", base32(&framed))];
    for text in texts {
        if let Ok(invite) = Invite::from_text(&text) {
            assert_eq!(Invite::from_text(&invite.to_text()), Ok(invite));
        }
    }
});

/// RFC 4648 in lower case without padding.
fn base32(bytes: &[u8]) -> String {
    let bit = |at: usize| bytes.get(at / 8).is_some_and(|byte| byte & (0x80 >> (at % 8)) != 0);
    (0..(bytes.len() * 8).div_ceil(5))
        .map(|letter| (0..5).fold(0, |value, at| value << 1 | usize::from(bit(5 * letter + at))))
        .map(|value| char::from(ALPHABET[value]))
        .collect()
}
