//! A random source that is stuck gives away nothing: no two blocks get the same key, but for those that
//! are the same.
//!
//! `HOLDALL_STUCK_BLOCKS` changes how many blocks are sealed.

use holdall_crypto::Sealer;
use holdall_format::{BlockKind, Suite};
use holdall_testkit::setting;

use crate::support::{Stuck, keys, objects};

const BLOCKS: u64 = 200_000;
/// As a client that runs every hour has a new sealer each time, which counts anew.
const BLOCKS_OF_RUN: u64 = 1_000;
/// Each has sealers of its own, as a run's threads have, with the same stuck source.
const THREADS: u64 = 2;

#[test]
fn a_stuck_random_source_repeats_no_key() {
    let wanted = setting("HOLDALL_STUCK_BLOCKS", BLOCKS);
    let sealed = |thread: u64| seal_many(thread, wanted / THREADS);
    let all: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..THREADS).map(|thread| scope.spawn(move || sealed(thread))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    for (what, of) in [("salt", 0), ("key commitment", 1)] {
        let mut values: Vec<u128> = all.iter().map(|pair| pair[of]).collect();
        values.sort_unstable();
        assert!(values.windows(2).all(|two| two[0] != two[1]), "a {what} came twice");
    }
    assert_eq!(all.len() as u64, wanted / THREADS * THREADS);
}

/// Seals blocks whose contents differ by a number alone, or by their kind. Gives the front of the salt
/// and of the key commitment of each, which follow from nothing but salt, header and key.
fn seal_many(thread: u64, count: u64) -> Vec<[u128; 2]> {
    let keys = keys(1);
    let fresh = || Sealer::new(keys.sealing(), Suite::Aes256Gcm, 1, Box::new(Stuck(5)));
    let mut sealer = fresh();
    let mut found = Vec::with_capacity(count as usize);
    for number in 0..count {
        if number % BLOCKS_OF_RUN == 0 {
            sealer = fresh();
        }
        let kind = if number % 2 == 0 { BlockKind::Chunks } else { BlockKind::Nodes };
        let content = ((thread << 32) | (number / 2)).to_le_bytes();
        let (objects, plain) = objects(&keys, kind, &[&content]);
        let block = sealer.seal(kind, &objects, &plain).unwrap();
        let front = |bytes: &[u8; 32]| u128::from_le_bytes(bytes[..16].try_into().unwrap());
        found.push([front(&block.header().salt), front(&block.header().commitment)]);
    }
    found
}
