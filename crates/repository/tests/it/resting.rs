//! Who reads for long, and lets others write meanwhile.

use holdall_protocol::{Repository, RepositoryError, SessionPurpose};
use holdall_repository::Store;

use crate::house::House;
use crate::world::signer;

#[test]
fn who_rests_lets_others_write_unless_something_is_still_read() {
    let house = House::new();
    let reader = house.repository();
    // It was made by this process, which may write for as long as it has it open.
    let write = || {
        let (dir, cache) = (house.world.dir(), house.world.cache_dir());
        Store::open(&dir, &cache, signer(), house.world.clock.clone()).map(drop)
    };
    let read = || reader.open_session(&SessionPurpose::Read).unwrap().session;
    let (first, second) = (read(), read());
    let is_in_use = || matches!(write(), Err(RepositoryError::InUse { .. }));
    assert!(is_in_use());
    reader.close_session(&first).unwrap();
    reader.rest();
    assert!(is_in_use(), "the second session is open");
    reader.close_session(&second).unwrap();
    assert!(is_in_use(), "it does not rest yet");
    reader.rest();
    write().unwrap();
    let again = read();
    assert!(is_in_use());
    reader.close_session(&again).unwrap();
}
