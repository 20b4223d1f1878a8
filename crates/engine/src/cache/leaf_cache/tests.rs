//! What is written is read again, and whatever else is there is not taken for it.

use proptest::prelude::*;

use super::*;

const SERIES: SeriesId = SeriesId::from_bytes([3; 16]);

fn id(byte: u8) -> ObjectId {
    ObjectId::from_bytes([byte; 32])
}

fn fingerprints() -> Fingerprints {
    Fingerprints::new([5; 32], [6; 32], 3)
}

fn known(byte: u8) -> KnownLeaf {
    KnownLeaf { fingerprint: Fingerprint::from_bytes([byte; 16]), dirs: byte.into() }
}

fn look_again() -> Vec<PathKey> {
    ["/", "/a/b", "/a.txt"]
        .map(|path| PathKey::from_absolute(path.as_bytes()).unwrap_or_default())
        .into()
}

fn open(folder: &Path, series: &SeriesId, root: u8) -> Option<KnownLeaves> {
    KnownLeaves::open(folder, series, &id(root), fingerprints())
}

fn write(folder: &Path, root: u8) {
    let mut leaves = NewLeaves::begin(folder, &SERIES, Some(fingerprints()));
    for leaf in 1..5 {
        leaves.add(&id(leaf), (leaf != 3).then(|| known(leaf)));
    }
    look_again().into_iter().for_each(|directory| leaves.add_to_list(directory));
    leaves.commit(&id(root));
}

#[test]
fn leaves_are_found_in_order_and_those_between_are_passed() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 9);
    let mut leaves = open(folder.path(), &SERIES, 9).unwrap();
    assert_eq!(leaves.find(&id(2)), Some(known(2)));
    assert_eq!(leaves.find(&id(3)), None, "it has none");
    assert_eq!(leaves.find(&id(4)), Some(known(4)));
    assert_eq!(leaves.find(&id(1)), None, "it is passed");
}

#[test]
fn what_another_snapshot_or_series_left_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    assert!(open(folder.path(), &SERIES, 9).is_none());
    write(folder.path(), 9);
    assert!(open(folder.path(), &SERIES, 8).is_none());
    let other = SeriesId::from_bytes([4; 16]);
    assert!(open(folder.path(), &other, 9).is_none());
    write(folder.path(), 8);
    assert!(open(folder.path(), &SERIES, 9).is_none());
    assert!(open(folder.path(), &SERIES, 8).is_some());
}

#[test]
fn a_run_that_did_not_commit_leaves_the_file_of_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 9);
    let mut leaves = NewLeaves::begin(folder.path(), &SERIES, Some(fingerprints()));
    leaves.add(&id(7), Some(known(7)));
    drop(leaves);
    let mut leaves = open(folder.path(), &SERIES, 9).unwrap();
    assert_eq!(leaves.find(&id(1)), Some(known(1)));
    assert!(open(folder.path(), &SERIES, 0).is_none());
}

#[test]
fn what_was_made_while_owners_had_other_names_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 9);
    let others = Fingerprints::new([7; 32], [6; 32], 3);
    assert!(KnownLeaves::open(folder.path(), &SERIES, &id(9), others).is_none());
}

#[test]
fn nothing_can_be_another_without_the_key() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 9);
    let path = path(folder.path(), &SERIES);
    let whole = std::fs::read(&path).unwrap();
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&path, bytes).unwrap();
        let mut leaves = open(folder.path(), &SERIES, 9);
        let found = leaves.as_mut().and_then(|leaves| leaves.find(&id(2)));
        let listed = leaves.as_ref().and_then(KnownLeaves::need_a_look);
        assert_eq!(found, None, "bit {bit}");
        assert!(listed.is_none_or(|listed| listed == look_again()), "bit {bit}");
    }
}

#[test]
fn what_needs_a_look_is_listed_unless_it_is_too_much() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 9);
    let leaves = open(folder.path(), &SERIES, 9).unwrap();
    assert_eq!(leaves.need_a_look().unwrap(), look_again());
    let mut leaves = NewLeaves::begin(folder.path(), &SERIES, Some(fingerprints()));
    for number in 0..=LIST_MAX_BYTES / 4000 {
        let name = format!("/{number}/{}", "long".repeat(1000));
        leaves.add_to_list(PathKey::from_absolute(name.as_bytes()).unwrap());
    }
    leaves.add(&id(7), Some(known(7)));
    leaves.commit(&id(9));
    let mut leaves = open(folder.path(), &SERIES, 9).unwrap();
    assert_eq!((leaves.need_a_look(), leaves.find(&id(7))), (None, Some(known(7))));
}

#[test]
fn leaves_of_several_blocks_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let numbered = |number: u32| {
        let bytes: Vec<u8> = number.to_le_bytes().into_iter().cycle().take(32).collect();
        ObjectId::from_bytes(bytes.try_into().unwrap())
    };
    let mut leaves = NewLeaves::begin(folder.path(), &SERIES, Some(fingerprints()));
    (0..5000).for_each(|number| leaves.add(&numbered(number), Some(known(7))));
    leaves.commit(&id(9));
    let mut leaves = open(folder.path(), &SERIES, 9).unwrap();
    for number in (0..5000).step_by(700) {
        assert_eq!(leaves.find(&numbered(number)), Some(known(7)), "{number}");
    }
}

proptest! {
    #[test]
    fn a_damaged_file_gives_what_was_written_or_nothing(
        flips in proptest::collection::vec((any::<usize>(), 1u8..), 0..4), cut in 0usize..260
    ) {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), 9);
        let path = path(folder.path(), &SERIES);
        let mut bytes = std::fs::read(&path).unwrap();
        for (at, flip) in &flips {
            let at = at % bytes.len();
            bytes[at] ^= flip;
        }
        bytes.truncate(bytes.len().saturating_sub(cut));
        std::fs::write(&path, bytes).unwrap();
        let leaves = open(folder.path(), &SERIES, 9);
        let found = leaves.map(|mut leaves| (1..5).map(|leaf| leaves.find(&id(leaf))).collect());
        let found: Vec<Option<KnownLeaf>> = found.unwrap_or_default();
        for (leaf, found) in (1..).zip(&found) {
            prop_assert!(found.is_none_or(|found| leaf != 3 && found == known(leaf)));
        }
        if flips.is_empty() {
            let expected = [Some(known(1)), Some(known(2)), None, Some(known(4))];
            // The list is at the end: a file that is cut has another one.
            prop_assert!(found.is_empty() == (cut > 0));
            prop_assert!(cut > 0 || found == expected);
        }
    }
}
