//! The chunker: bounds, average, and cuts that do not depend on what comes before.

use holdall_tree::{CHUNK_AVERAGE_BYTES, CHUNK_MAX_BYTES, CHUNK_MIN_BYTES, Chunker};
use std::collections::HashSet;

pub(crate) fn random(len_bytes: usize, seed: u8) -> Vec<u8> {
    let mut bytes = vec![0; len_bytes];
    blake3::Hasher::new_keyed(&[seed; 32]).finalize_xof().fill(&mut bytes);
    bytes
}

/// Lengths of all chunks, cut with at most `window_bytes` in sight.
pub(crate) fn cuts(chunker: &Chunker, data: &[u8], window_bytes: usize) -> Vec<usize> {
    let mut lens = Vec::new();
    let mut at = 0;
    while at < data.len() {
        let end = data.len().min(at + window_bytes);
        lens.push(chunker.cut(&data[at..end]));
        at += lens[lens.len() - 1];
    }
    assert_eq!(at, data.len());
    lens
}

#[test]
fn chunks_keep_their_bounds_and_their_average() {
    let lens = cuts(&Chunker::new(&[1; 32]), &random(24 << 20, 1), usize::MAX >> 1);
    let (_, whole) = lens.split_last().unwrap();
    assert!(whole.iter().all(|len| (CHUNK_MIN_BYTES..=CHUNK_MAX_BYTES).contains(len)));
    let average = (24 << 20) / lens.len();
    assert!((CHUNK_AVERAGE_BYTES * 3 / 4..CHUNK_AVERAGE_BYTES * 4 / 3).contains(&average));
}

#[test]
fn cuts_do_not_depend_on_how_much_is_in_sight() {
    let chunker = Chunker::new(&[1; 32]);
    let data = random(6 << 20, 2);
    let all = cuts(&chunker, &data, usize::MAX >> 1);
    for window in [CHUNK_MAX_BYTES, CHUNK_MAX_BYTES + 1, 3 << 20] {
        assert_eq!(cuts(&chunker, &data, window), all);
    }
}

#[test]
fn a_cut_is_known_as_soon_as_its_chunk_is_in_sight() {
    let chunker = Chunker::new(&[1; 32]);
    for data in [random(3 << 20, 6), vec![0; 3 << 20]] {
        let cut = chunker.cut(&data);
        for sight in [0, 1, CHUNK_MIN_BYTES, cut - 1] {
            assert_eq!(chunker.first_cut(&data[..sight]), None, "{sight}");
        }
        for sight in [cut, cut + 1, CHUNK_MAX_BYTES, CHUNK_MAX_BYTES + 1] {
            assert_eq!(chunker.first_cut(&data[..sight]), Some(cut), "{sight}");
        }
    }
}

#[test]
fn a_byte_in_front_moves_only_the_cuts_beside_it() {
    let chunker = Chunker::new(&[1; 32]);
    let data = random(12 << 20, 3);
    let pieces = |data: &[u8]| {
        let mut rest = data;
        cuts(&chunker, data, usize::MAX >> 1)
            .into_iter()
            .map(|len| {
                let (piece, after) = rest.split_at(len);
                rest = after;
                blake3::hash(piece)
            })
            .collect::<HashSet<_>>()
    };
    let (before, after) = (pieces(&data), pieces(&[b"x", &data[..]].concat()));
    let new = after.difference(&before).count();
    assert!(new <= 3, "{new} of {} chunks are new", after.len());
}

#[test]
fn another_key_cuts_elsewhere() {
    let data = random(6 << 20, 4);
    let lens = |key: u8| cuts(&Chunker::new(&[key; 32]), &data, usize::MAX >> 1);
    assert_ne!(lens(1), lens(2));
}

#[test]
fn what_is_below_the_minimum_is_one_chunk_and_what_never_cuts_is_cut_at_the_maximum() {
    let chunker = Chunker::new(&[1; 32]);
    for len in [0, 1, CHUNK_MIN_BYTES - 1, CHUNK_MIN_BYTES] {
        assert_eq!(chunker.cut(&random(len, 5)), len);
    }
    assert_eq!(chunker.cut(&vec![0; 3 << 20]), CHUNK_MAX_BYTES);
}
