//! A clock that stands, for tests to which time does not matter.

use holdall_repository::Clock;

pub(crate) struct Standing;

impl Clock for Standing {
    fn now_ns(&self) -> i64 {
        1_900_000_000_000_000_000
    }
}
