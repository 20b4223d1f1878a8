//! Hostile age files in the place of a wrapped secret.

#![no_main]

use holdall_crypto::{Opening, RecoverySecret, unwrap};
use holdall_format::{RecoveryIdentity, Wrapping, WrappingKind, WrappingSet};
use holdall_fuzz::keys;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let secret = RecoverySecret::from_bytes([0x22; 32]);
    let wrapping = Wrapping {
        kind: WrappingKind::Recovery,
        label: "kit".into(),
        recovery_identity: Some(RecoveryIdentity {
            key: secret.signing_key().public(),
            proof: None,
        }),
        recipient: String::new(),
        locked: None,
        sealed: data.to_vec(),
    };
    let set = WrappingSet {
        repository: keys().repository(),
        generation: 1,
        owner: keys().owner().public(),
        later_epochs: Vec::new(),
        wrappings: vec![wrapping],
    };
    assert!(unwrap(&set, &Opening::Recovery(&secret)).is_err(), "nobody wrapped this secret");
});
