//! The leaf cache: how a snapshot's leaves are known again, kept in one file for each series on this
//! machine, so that a backup takes over whole leaves of files that did not change.
//!
//! ```text
//! | magic 8 | root id 32 | check 12 |
//! | per leaf, in the order of the tree: half its id 16, fingerprint 16, directories u32le, check 12 |
//! ```
//!
//! A leaf that cannot be known again has zeros behind its id. The file is written as a run goes on and
//! takes its place when the snapshot is committed; one that is missing, cut short, of another snapshot, or
//! made while owners had other names is not
//! used. It may be lost, damaged or written by others without harm: which leaves there are, the
//! tree says, and nobody without the keys has checks that fit. A cache that cannot be
//! written is a slower next run, nothing more.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

use holdall_format::{ObjectId, SeriesId};
use holdall_sys::guarded;
use holdall_tree::{CHECK_BYTES, Fingerprint, Fingerprints, KnownLeaf};

use crate::cache::private_folder::{make_anew, put_in_place};

const MAGIC: [u8; 8] = *b"hldleaf2";
const HALF_BYTES: usize = 16;
const DIRS_BYTES: usize = 4;
const RECORD_BYTES: usize = 2 * HALF_BYTES + DIRS_BYTES + CHECK_BYTES;
const HEADER_BYTES: usize = MAGIC.len() + ObjectId::LEN + CHECK_BYTES;
/// Bytes read or written at once.
const BUFFER_BYTES: usize = 64 << 10;

fn path(folder: &Path, series: &SeriesId) -> PathBuf {
    folder.join(format!("leaves-{series}"))
}

/// How one snapshot's leaves are known again, read in the order of its tree.
pub(crate) struct KnownLeaves {
    file: BufReader<File>,
    fingerprints: Fingerprints,
}

impl KnownLeaves {
    /// Those of the snapshot with that root, if they are here and were made with these fingerprints.
    pub(crate) fn open(
        folder: &Path,
        series: &SeriesId,
        root: &ObjectId,
        fingerprints: Fingerprints,
    ) -> Option<Self> {
        let file = guarded::open_regular(&path(folder, series)).ok()?;
        let mut file = BufReader::with_capacity(BUFFER_BYTES, file);
        let mut header = [0; HEADER_BYTES];
        file.read_exact(&mut header).ok()?;
        (self::header(root, &fingerprints) == header).then_some(Self { file, fingerprints })
    }

    /// How a leaf is known again that comes after those that were asked for before.
    pub(crate) fn find(&mut self, leaf: &ObjectId) -> Option<KnownLeaf> {
        let wanted = half(leaf);
        let mut record = [0; RECORD_BYTES];
        loop {
            // Where the file ends or cannot be read, nothing more is known.
            self.file.read_exact(&mut record).ok()?;
            if record.starts_with(&wanted) {
                let (fingerprint, rest) = record[HALF_BYTES..].split_first_chunk()?;
                let (dirs, check) = rest.split_first_chunk()?;
                let fingerprint = Fingerprint::from_bytes(*fingerprint);
                let known = KnownLeaf { fingerprint, dirs: u32::from_le_bytes(*dirs) };
                let fits = check == self.fingerprints.check(leaf, Some(known));
                return fits.then_some(known);
            }
        }
    }
}

/// How the leaves of a snapshot that is being made are known again.
pub(crate) struct NewLeaves {
    /// Nothing if it cannot be written, or was not to be.
    file: Option<(BufWriter<File>, Fingerprints)>,
    written_at: PathBuf,
    place: PathBuf,
}

impl NewLeaves {
    /// Begins a file, unless nothing is to be known again.
    pub(crate) fn begin(
        folder: &Path,
        series: &SeriesId,
        fingerprints: Option<Fingerprints>,
    ) -> Self {
        let place = path(folder, series);
        let written_at = folder.join("leaves.new");
        let begun = || {
            let mut file = make_anew(&written_at)?;
            // The root is not known yet: until then it is nobody's.
            file.write_all(&[0; HEADER_BYTES])?;
            Ok::<_, io::Error>(BufWriter::with_capacity(BUFFER_BYTES, file))
        };
        let file = fingerprints.and_then(|fingerprints| Some((begun().ok()?, fingerprints)));
        Self { file, written_at, place }
    }

    /// Adds the next leaf of the tree.
    pub(crate) fn add(&mut self, leaf: &ObjectId, known: Option<KnownLeaf>) {
        self.attempt(|file, fingerprints| file.write_all(&record(leaf, known, fingerprints)));
    }

    /// Takes the place of the file before: these are all leaves of the snapshot with that root.
    pub(crate) fn commit(mut self, root: &ObjectId) {
        self.attempt(|file, fingerprints| {
            file.rewind()?;
            file.write_all(&header(root, fingerprints))?;
            file.flush()
        });
        if self.file.is_some() {
            // If it cannot, the old file stays, which is another snapshot's.
            let _ = put_in_place(&self.written_at, &self.place);
        }
    }

    fn attempt(
        &mut self,
        write: impl FnOnce(&mut BufWriter<File>, &Fingerprints) -> io::Result<()>,
    ) {
        if let Some((file, fingerprints)) = &mut self.file
            && write(file, fingerprints).is_err()
        {
            self.file = None;
        }
    }
}

fn header(root: &ObjectId, fingerprints: &Fingerprints) -> Vec<u8> {
    [&MAGIC[..], root.as_bytes(), &fingerprints.check(root, None)].concat()
}

fn record(leaf: &ObjectId, known: Option<KnownLeaf>, fingerprints: &Fingerprints) -> Vec<u8> {
    let mut record = Vec::with_capacity(RECORD_BYTES);
    record.extend(half(leaf));
    if let Some(KnownLeaf { fingerprint, dirs }) = known {
        record.extend(fingerprint.as_bytes());
        record.extend(dirs.to_le_bytes());
        record.extend(fingerprints.check(leaf, known));
    }
    record.resize(RECORD_BYTES, 0);
    record
}

/// Half of an id: enough to tell leaves of one tree apart.
fn half(id: &ObjectId) -> [u8; HALF_BYTES] {
    let mut half = [0; HALF_BYTES];
    half.iter_mut().zip(id.as_bytes()).for_each(|(to, from)| *to = *from);
    half
}

#[cfg(test)]
mod tests {
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

    fn open(folder: &Path, series: &SeriesId, root: u8) -> Option<KnownLeaves> {
        KnownLeaves::open(folder, series, &id(root), fingerprints())
    }

    fn write(folder: &Path, root: u8) {
        let mut leaves = NewLeaves::begin(folder, &SERIES, Some(fingerprints()));
        for leaf in 1..5 {
            leaves.add(&id(leaf), (leaf != 3).then(|| known(leaf)));
        }
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
    fn nothing_of_a_record_can_be_another_without_the_key() {
        let folder = tempfile::tempdir().unwrap();
        for bit in 0..RECORD_BYTES * 8 {
            write(folder.path(), 9);
            let path = path(folder.path(), &SERIES);
            let mut bytes = std::fs::read(&path).unwrap();
            // The leaf that cannot be known again, and the one before it.
            for leaf in 1..3 {
                bytes[HEADER_BYTES + leaf * RECORD_BYTES + bit / 8] ^= 1 << (bit % 8);
            }
            std::fs::write(&path, bytes).unwrap();
            let mut leaves = open(folder.path(), &SERIES, 9).unwrap();
            assert_eq!((leaves.find(&id(2)), leaves.find(&id(3))), (None, None), "bit {bit}");
        }
    }

    proptest! {
        #[test]
        fn a_damaged_file_gives_what_was_written_or_nothing(
            flips in proptest::collection::vec((any::<usize>(), 1u8..), 0..4), cut in 0usize..210
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
                let whole = 4usize.saturating_sub(cut.div_ceil(RECORD_BYTES));
                prop_assert_eq!(found.get(..whole).unwrap_or_default(), &expected[..found.len().min(whole)]);
            }
        }
    }
}
