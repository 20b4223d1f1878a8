//! The messages of the lab's listener, as they come and proved with its token, and the token's text.

#![no_main]

use holdall_lab::net::Token;
use holdall_lab::net::decoders::{Message, NONCE, TOKEN};
use libfuzzer_sys::fuzz_target;

/// Bytes of what a caller asks, and of the proof before it.
const ASK_BYTES: usize = 64;
const PROOF_BYTES: usize = 32;

fuzz_target!(|data: &[u8]| {
    let proved = proved(data).unwrap_or_default();
    for bytes in [data, &proved] {
        for message in Message::ALL {
            if let Some(once) = message.rewritten(bytes) {
                assert_eq!(message.rewritten(&once), Some(once));
            }
        }
    }
    if let Ok(text) = str::from_utf8(data)
        && let Ok(token) = text.parse::<Token>()
    {
        assert_eq!(token.to_string().parse(), Ok(token));
    }
});

/// Puts a proof that holds before what is asked, as `docs/lab.md` says.
fn proved(data: &[u8]) -> Option<Vec<u8>> {
    let mut ask = *data.first_chunk::<ASK_BYTES>()?;
    let (proof, asked) = ask.split_at_mut(PROOF_BYTES);
    let key = blake3::derive_key("holdall v1 lab listener token", &TOKEN);
    let hash = blake3::Hasher::new_keyed(&key).update(&NONCE).update(asked).finalize();
    proof.copy_from_slice(hash.as_bytes());
    Some(ask.to_vec())
}
