//! Recovery kits and recovery secrets as people type them.

#![no_main]

use holdall_crypto::{RecoveryKit, RecoverySecret};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &str| {
    if let Ok(secret) = RecoverySecret::from_text(data) {
        let again = RecoverySecret::from_text(&secret.to_text()).unwrap();
        assert_eq!(again.expose(), secret.expose());
    }
    // Instructions are added to what was read, and a kit has at most 16 KiB.
    if data.len() < 8 << 10
        && let Ok(kit) = RecoveryKit::from_text(data)
    {
        let again = RecoveryKit::from_text(&kit.to_text(""));
        assert!(again.is_ok_and(|again| again.secret.expose() == kit.secret.expose()));
    }
});
