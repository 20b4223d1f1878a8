//! Methods, paths and queries.

#![no_main]

use holdall_protocol::wire::{Route, is_repository_name};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &str| {
    let _ = is_repository_name(data);
    for method in ["GET", "POST", "PUT", "DELETE"] {
        if let Some(route) = Route::parse(method, data) {
            assert_eq!(Route::parse(route.method().name(), &route.path()), Some(route));
        }
    }
});
