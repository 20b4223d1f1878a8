//! Paths, as keys and as the system writes them.

#![no_main]

use holdall_tree::PathKey;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(path) = PathKey::from_bytes(data.to_vec()) {
        assert_eq!(PathKey::from_absolute(&path.to_absolute()), Ok(path));
    }
    if let Ok(path) = PathKey::from_absolute(data) {
        assert_eq!(path.to_absolute(), data);
        let parent = path.parent();
        assert!(parent.is_none_or(|parent| parent.child(path.name()) == Ok(path)));
    }
});
