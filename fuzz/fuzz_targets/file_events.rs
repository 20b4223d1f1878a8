//! What the kernel writes of changes on file systems.

#![no_main]

use holdall_sys::fanotify_events::events;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    for event in events(data) {
        let Ok(event) = event else { return };
        let named = [event.at, event.from, event.to].into_iter().flatten();
        for named in named {
            assert!(!named.name.contains(&0) && named.directory.bytes.len() < data.len());
        }
    }
});
