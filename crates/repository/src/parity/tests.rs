//! Files stand for packs here: parity knows nothing of what is in one.

use super::*;
use proptest::prelude::*;

const PACK: PackName = PackName::from_bytes([7; 32]);

struct Place {
    _dir: tempfile::TempDir,
    layout: Layout,
    bytes: Vec<u8>,
}

fn place(length: usize, percent: u8) -> Place {
    let dir = tempfile::tempdir().unwrap();
    let layout = Layout::new(dir.path());
    layout.folders().iter().for_each(|folder| make_dir(folder).unwrap());
    let mut bytes = vec![0; length];
    blake3::Hasher::new().update(b"a pack").finalize_xof().fill(&mut bytes);
    make_dir(&layout.pack_file(&PACK).unwrap().parent().unwrap()).unwrap();
    std::fs::write(layout.pack_file(&PACK).unwrap().path(), &bytes).unwrap();
    assert!(!is_enough(&layout, &PACK, percent).unwrap());
    assert!(make(&layout, &PACK, percent).unwrap() > 0);
    assert!(is_enough(&layout, &PACK, percent).unwrap());
    assert!(names_in(&layout.tmp()).unwrap().is_empty());
    Place { _dir: dir, layout, bytes }
}

impl Place {
    fn restored(&self) -> Option<Vec<u8>> {
        let parity = PackParity::open(&self.layout, &PACK).unwrap().unwrap();
        let path = self.layout.pack_file(&PACK).unwrap();
        let soundness = parity.compare(&path).unwrap();
        soundness.suffices().then(|| {
            let restored = parity.restore(&path, &soundness, &self.layout.tmp()).unwrap();
            std::fs::read(restored.path()).unwrap()
        })
    }

    fn change(&self, path: &PathBeneath, change: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = std::fs::read(path.path()).unwrap();
        change(&mut bytes);
        std::fs::write(path.path(), bytes).unwrap();
    }
}

#[test]
fn as_many_shards_as_there_is_parity_are_restored_and_no_more() {
    // 21 shards, the last of one byte; three of parity.
    let place = place(20 * SHARD_BYTES + 1, 10);
    let path = place.layout.pack_file(&PACK).unwrap();
    assert!(place.restored().unwrap() == place.bytes, "nothing is damaged");
    for (damaged, can) in [(vec![0], true), (vec![3, 4, 20], true), (vec![3, 4, 5, 20], false)] {
        place.change(&path, |bytes| damaged.iter().for_each(|at| bytes[at * SHARD_BYTES] ^= 1));
        assert!(place.restored() == can.then(|| place.bytes.clone()), "{damaged:?}");
        std::fs::write(path.path(), &place.bytes).unwrap();
    }
    // A file that is cut short has lost its end, and one that is gone, all.
    place.change(&path, |bytes| bytes.truncate(19 * SHARD_BYTES + 5));
    assert!(place.restored().unwrap() == place.bytes);
    std::fs::remove_file(path.path()).unwrap();
    assert!(place.restored().is_none());
}

#[test]
fn with_as_much_parity_as_data_a_pack_that_is_gone_comes_back() {
    let place = place(3 * SHARD_BYTES + 77, 100);
    std::fs::remove_file(place.layout.pack_file(&PACK).unwrap().path()).unwrap();
    assert!(place.restored().unwrap() == place.bytes);
}

#[test]
fn damage_to_the_parity_itself_is_noticed_and_either_head_serves() {
    let place = place(10 * SHARD_BYTES, 20);
    let path = place.layout.pack_parity(&PACK);
    let whole = std::fs::read(path.path()).unwrap();
    let head_bytes = Head::len_bytes(12);
    assert_eq!(whole.len(), 2 * head_bytes + 2 * SHARD_BYTES + END_BYTES);
    let second = head_bytes + 2 * SHARD_BYTES;
    for at in [0, 41, head_bytes - 1, head_bytes, second - 1, second, whole.len() - 1] {
        place.change(&path, |bytes| bytes[at] ^= 1);
        let parity = PackParity::open(&place.layout, &PACK).unwrap().unwrap();
        assert!(!parity.is_sound(&PACK), "{at}");
        place.change(&place.layout.pack_file(&PACK).unwrap(), |bytes| bytes[5] ^= 1);
        assert!(place.restored().unwrap() == place.bytes, "{at}");
        std::fs::write(path.path(), &whole).unwrap();
        std::fs::write(place.layout.pack_file(&PACK).unwrap().path(), &place.bytes).unwrap();
    }
    place.change(&path, |bytes| (bytes[0], bytes[second]) = (0, 0));
    assert!(PackParity::open(&place.layout, &PACK).is_err());
    std::fs::write(path.path(), &whole).unwrap();
    assert!(PackParity::open(&place.layout, &PACK).unwrap().unwrap().is_sound(&PACK));
}

/// The code is part of the format: parity that was made once restores for ever.
#[test]
fn the_parity_of_known_bytes_is_known() {
    let place = place(5 * SHARD_BYTES + 100, 40);
    let parity = std::fs::read(place.layout.pack_parity(&PACK).path()).unwrap();
    let hash = blake3::hash(&parity).to_hex();
    assert_eq!(hash.as_str(), "72ca91e6485759ee0ef38695a569fc972dc4697da0d9ae769caeccead9994e0c");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn whatever_is_damaged_is_restored_or_refused(
        length in 1usize..600_000,
        percent in 1u8..=100,
        damage in prop::collection::vec((any::<prop::sample::Index>(), 1u8..), 0..12),
    ) {
        let place = place(length, percent);
        let mut shards = std::collections::BTreeSet::new();
        place.change(&place.layout.pack_file(&PACK).unwrap(), |bytes| {
            for (at, flip) in &damage {
                let at = at.index(bytes.len());
                bytes[at] = place.bytes[at] ^ flip;
                shards.insert(at / SHARD_BYTES);
            }
        });
        let data = length.div_ceil(SHARD_BYTES);
        let parity = (data * usize::from(percent)).div_ceil(100).max(SHARDS_MIN);
        let restored = place.restored();
        prop_assert_eq!(restored.is_some(), shards.len() <= parity);
        if let Some(restored) = restored {
            prop_assert!(restored == place.bytes);
        }
    }
}
