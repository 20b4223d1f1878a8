//! The checksum of a run's pages, against accidents.
//!
//! What it guards is derived and can be made anew, so it need not withstand anybody; but it is
//! checked for every page that is read, and a cryptographic hash of a page takes four times as long
//! as reading it. Four lanes each take every fourth word: `lane = (lane ^ word) * odd, rotated`.
//! Every step can be undone, so a change inside one word is always noticed, any other but for one
//! chance in 2^64. The run's and the page's number go in first: a page in a wrong place is noticed
//! too.

const ODD: [u64; 4] =
    [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f, 0x1656_67b1_9e37_79f9, 0xd6e8_feb8_6659_fd93];

/// The checksum of a page's entries.
pub(crate) fn page_checksum(run: u64, page: u64, entries: &[u8]) -> [u8; 16] {
    let mut lanes = [run, page, ODD[0], entries.len() as u64];
    for (lane, odd) in lanes.iter_mut().zip(ODD) {
        *lane = step(*lane, 0, odd);
    }
    let (parts, rest) = entries.as_chunks::<32>();
    for part in parts {
        take(&mut lanes, part);
    }
    let mut last = [0; 32];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    take(&mut lanes, &last);
    let [a, b, c, d] = lanes;
    let low = step(a, b.rotate_left(23), ODD[2]) ^ step(c, d.rotate_left(41), ODD[3]);
    let high = step(b, c.rotate_left(11), ODD[0]) ^ step(d, a.rotate_left(7), ODD[1]);
    (u128::from(high) << 64 | u128::from(low)).to_le_bytes()
}

fn take(lanes: &mut [u64; 4], part: &[u8; 32]) {
    let (words, _) = part.as_chunks::<8>();
    for ((lane, odd), word) in lanes.iter_mut().zip(ODD).zip(words) {
        *lane = step(*lane, u64::from_le_bytes(*word), odd);
    }
}

fn step(lane: u64, word: u64, odd: u64) -> u64 {
    (lane ^ word).wrapping_mul(odd).rotate_left(29)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_change_is_noticed(
            entries in proptest::collection::vec(any::<u8>(), 4080), at in 0usize..4080, flip in 1u8..
        ) {
            let good = page_checksum(1, 2, &entries);
            let mut other = entries.clone();
            other[at] ^= flip;
            prop_assert_ne!(good, page_checksum(1, 2, &other));
            prop_assert_ne!(good, page_checksum(2, 1, &entries));
            other.copy_from_slice(&entries);
            other.rotate_left(48);
            prop_assert!(other == entries || good != page_checksum(1, 2, &other));
        }
    }

    #[test]
    fn zeros_have_a_checksum_of_their_page() {
        let zeros = [0; 4080];
        assert_ne!(page_checksum(1, 0, &zeros), [0; 16]);
        assert_ne!(page_checksum(1, 0, &zeros), page_checksum(1, 1, &zeros));
    }
}
