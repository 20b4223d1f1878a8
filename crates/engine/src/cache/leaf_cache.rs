//! The leaf cache: the fingerprints of a snapshot's leaves, kept in one file for each series on this
//! machine, so that a backup takes over whole leaves of files that did not change.
//!
//! ```text
//! | magic 8 | root id 32 | per leaf, in the order of the tree: half its id 16, fingerprint 16 |
//! ```
//!
//! A leaf without a fingerprint has zeros. The file is written as a run goes on and takes its place
//! when the snapshot is committed; one that is missing, cut short or of another snapshot is not
//! used. It may be lost, damaged or written by others without harm: which leaves there are, the
//! tree says, and nobody without the keys has a fingerprint that fits. A cache that cannot be
//! written is a slower next run, nothing more.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

use holdall_format::{ObjectId, SeriesId};
use holdall_tree::Fingerprint;

use holdall_sys::guarded;

use crate::cache::private_folder::{make_anew, put_in_place};

const MAGIC: [u8; 8] = *b"hldleaf1";
const HALF_BYTES: usize = 16;
const RECORD_BYTES: usize = 2 * HALF_BYTES;
const HEADER_BYTES: usize = MAGIC.len() + ObjectId::LEN;
/// Bytes read or written at once.
const BUFFER_BYTES: usize = 64 << 10;
const NONE: [u8; HALF_BYTES] = [0; HALF_BYTES];

fn path(folder: &Path, series: &SeriesId) -> PathBuf {
    folder.join(format!("leaves-{series}"))
}

/// The fingerprints of one snapshot's leaves, read in the order of its tree.
#[derive(Debug)]
pub(crate) struct KnownLeaves {
    file: BufReader<File>,
}

impl KnownLeaves {
    /// Those of the snapshot with that root, if they are here.
    pub(crate) fn open(folder: &Path, series: &SeriesId, root: &ObjectId) -> Option<Self> {
        let file = guarded::open_regular(&path(folder, series)).ok()?;
        let mut file = BufReader::with_capacity(BUFFER_BYTES, file);
        let mut header = [0; HEADER_BYTES];
        file.read_exact(&mut header).ok()?;
        (header == self::header(root)).then_some(Self { file })
    }

    /// The fingerprint of a leaf that comes after those that were asked for before.
    pub(crate) fn find(&mut self, leaf: &ObjectId) -> Option<Fingerprint> {
        let wanted = half(leaf);
        let mut record = [0; RECORD_BYTES];
        loop {
            // Where the file ends or cannot be read, nothing more is known.
            self.file.read_exact(&mut record).ok()?;
            let (halves, _) = record.as_chunks::<HALF_BYTES>();
            match halves {
                [id, NONE] if *id == wanted => return None,
                [id, fingerprint] if *id == wanted => {
                    return Some(Fingerprint::from_bytes(*fingerprint));
                }
                _ => {}
            }
        }
    }
}

/// The fingerprints of a snapshot that is being made.
#[derive(Debug)]
pub(crate) struct NewLeaves {
    /// Nothing if it cannot be written, or was to be.
    file: Option<BufWriter<File>>,
    written_at: PathBuf,
    place: PathBuf,
}

impl NewLeaves {
    /// Begins a file, unless it is not `wanted`.
    pub(crate) fn begin(folder: &Path, series: &SeriesId, wanted: bool) -> Self {
        let place = path(folder, series);
        let written_at = folder.join("leaves.new");
        let begun = || {
            let mut file = make_anew(&written_at)?;
            // The root is not known yet: until then it is nobody's.
            file.write_all(&[0; HEADER_BYTES])?;
            Ok::<_, io::Error>(BufWriter::with_capacity(BUFFER_BYTES, file))
        };
        let file = if wanted { begun().ok() } else { None };
        Self { file, written_at, place }
    }

    /// Adds the next leaf of the tree.
    pub(crate) fn add(&mut self, leaf: &ObjectId, fingerprint: Option<Fingerprint>) {
        let fingerprint = fingerprint.map_or(NONE, |fingerprint| *fingerprint.as_bytes());
        let record = [half(leaf), fingerprint];
        self.attempt(|file| file.write_all(record.as_flattened()));
    }

    /// Takes the place of the file before: these are all leaves of the snapshot with that root.
    pub(crate) fn commit(mut self, root: &ObjectId) {
        self.attempt(|file| {
            file.rewind()?;
            file.write_all(&header(root))?;
            file.flush()
        });
        if self.file.is_some() {
            // If it cannot, the old file stays, which is another snapshot's.
            let _ = put_in_place(&self.written_at, &self.place);
        }
    }

    fn attempt(&mut self, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) {
        if let Some(file) = &mut self.file
            && write(file).is_err()
        {
            self.file = None;
        }
    }
}

fn header(root: &ObjectId) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    let (magic, id) = header.split_at_mut(MAGIC.len());
    magic.copy_from_slice(&MAGIC);
    id.copy_from_slice(root.as_bytes());
    header
}

/// Half of an id: enough to tell leaves of one tree apart.
fn half(id: &ObjectId) -> [u8; HALF_BYTES] {
    let mut half = NONE;
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

    fn fingerprint(byte: u8) -> Fingerprint {
        Fingerprint::from_bytes([byte; 16])
    }

    fn write(folder: &Path, root: u8) {
        let mut leaves = NewLeaves::begin(folder, &SERIES, true);
        for leaf in 1..5 {
            leaves.add(&id(leaf), (leaf != 3).then(|| fingerprint(leaf)));
        }
        leaves.commit(&id(root));
    }

    #[test]
    fn leaves_are_found_in_order_and_those_between_are_passed() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), 9);
        let mut known = KnownLeaves::open(folder.path(), &SERIES, &id(9)).unwrap();
        assert_eq!(known.find(&id(2)), Some(fingerprint(2)));
        assert_eq!(known.find(&id(3)), None, "it has none");
        assert_eq!(known.find(&id(4)), Some(fingerprint(4)));
        assert_eq!(known.find(&id(1)), None, "it is passed");
    }

    #[test]
    fn what_another_snapshot_or_series_left_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        assert!(KnownLeaves::open(folder.path(), &SERIES, &id(9)).is_none());
        write(folder.path(), 9);
        assert!(KnownLeaves::open(folder.path(), &SERIES, &id(8)).is_none());
        let other = SeriesId::from_bytes([4; 16]);
        assert!(KnownLeaves::open(folder.path(), &other, &id(9)).is_none());
        write(folder.path(), 8);
        assert!(KnownLeaves::open(folder.path(), &SERIES, &id(9)).is_none());
        assert!(KnownLeaves::open(folder.path(), &SERIES, &id(8)).is_some());
    }

    #[test]
    fn a_run_that_did_not_commit_leaves_the_file_of_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), 9);
        let mut leaves = NewLeaves::begin(folder.path(), &SERIES, true);
        leaves.add(&id(7), Some(fingerprint(7)));
        drop(leaves);
        let mut known = KnownLeaves::open(folder.path(), &SERIES, &id(9)).unwrap();
        assert_eq!(known.find(&id(1)), Some(fingerprint(1)));
        assert!(
            KnownLeaves::open(folder.path(), &SERIES, &ObjectId::from_bytes([0; 32])).is_none()
        );
    }

    proptest! {
        #[test]
        fn a_damaged_file_gives_what_was_written_or_what_fits_nothing(
            flips in proptest::collection::vec((any::<usize>(), 1u8..), 0..4), cut in 0usize..170
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
            let known = KnownLeaves::open(folder.path(), &SERIES, &id(9));
            let found = known.map(|mut known| (1..5).map(|leaf| known.find(&id(leaf))).collect());
            let found: Vec<_> = found.unwrap_or_default();
            if flips.is_empty() {
                let expected = [Some(fingerprint(1)), Some(fingerprint(2)), None, Some(fingerprint(4))];
                let whole = 4usize.saturating_sub(cut.div_ceil(RECORD_BYTES));
                prop_assert_eq!(found.get(..whole).unwrap_or_default(), &expected[..found.len().min(whole)]);
            }
        }
    }
}
