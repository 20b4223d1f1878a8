//! The leaf cache: how a snapshot's leaves are known again, kept in one file for each series on this
//! machine, so that a backup takes over whole leaves of files that did not change.
//!
//! ```text
//! | magic 8 | root id 32 | bytes of the list u32le | check of the root and the list 16 |
//! | per block: leaves u32le | leaves, in the order of the tree | check 16 |
//! | list: directories that need a look in every run, a key and a slash each |
//! a leaf: | half its id 16 | fingerprint 16 | directories u32le |
//! ```
//!
//! A leaf that cannot be known again has zeros behind its id. What has entries in it that need a look whatever
//! happens is in the list, so that a run that is told what changed finds them without reading the tree; with
//! more than fit, there is no list, and its length says so. The file is written as a run goes on and
//! takes its place when the snapshot is committed; one that is missing, cut short, of another snapshot, or
//! made while owners had other names is not
//! used. It may be lost, damaged or written by others without harm: which leaves there are, the
//! tree says, and nobody without the keys has checks that fit. A cache that cannot be
//! written is a slower next run, nothing more.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use holdall_format::{ObjectId, SeriesId};
use holdall_sys::guarded;
use holdall_tree::{CHECK_BYTES, Fingerprint, Fingerprints, KnownLeaf, PathKey};

use crate::cache::private_folder::{make_anew, put_in_place};

const MAGIC: [u8; 8] = *b"hldleaf2";
const HALF_BYTES: usize = 16;
const LEAF_BYTES: usize = 2 * HALF_BYTES + 4;
const HEADER_BYTES: usize = MAGIC.len() + ObjectId::LEN + 4 + CHECK_BYTES;
/// Leaves of a block.
const BLOCK_MAX_LEAVES: usize = 1024;
/// Longest list: where more directories need a look, a walk through everything is as good.
const LIST_MAX_BYTES: usize = 1 << 20;
/// As the length of a list: there are more directories than it may have.
const TOO_MANY: u32 = u32::MAX;
/// Ends each directory of the list: no key has it.
const SLASH: u8 = b'/';
/// Bytes read or written at once.
const BUFFER_BYTES: usize = 64 << 10;

fn path(folder: &Path, series: &SeriesId) -> PathBuf {
    folder.join(format!("leaves-{series}"))
}

/// How one snapshot's leaves are known again, read in the order of its tree.
pub(crate) struct KnownLeaves {
    file: BufReader<File>,
    fingerprints: Fingerprints,
    block: Vec<u8>,
    /// The first byte of the block that was not looked at.
    at: usize,
    list: Option<Vec<u8>>,
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
        let (_, behind_root) = header.split_at(MAGIC.len() + ObjectId::LEN);
        let list = match u32::from_le_bytes(*behind_root.first_chunk()?) {
            TOO_MANY => None,
            len_bytes => Some(read_list(&mut file, len_bytes)?),
        };
        let is_of_root = self::header(root, list.as_deref(), &fingerprints)? == header;
        is_of_root.then_some(Self { file, fingerprints, block: Vec::new(), at: 0, list })
    }

    /// The directories that have something in them which needs a look in every run; nothing if they are too
    /// many.
    pub(crate) fn need_a_look(&self) -> Option<Vec<PathKey>> {
        let keys = self.list.as_ref()?.split(|&byte| byte == SLASH).map(<[u8]>::to_vec);
        let mut keys: Vec<_> = keys.filter_map(|key| PathKey::from_bytes(key).ok()).collect();
        // Nothing is behind the last slash, which is not the root.
        keys.pop();
        Some(keys)
    }

    /// How a leaf is known again that comes after those that were asked for before.
    pub(crate) fn find(&mut self, leaf: &ObjectId) -> Option<KnownLeaf> {
        let wanted = half(leaf);
        loop {
            let Some(next) = self.block.get(self.at..).filter(|rest| !rest.is_empty()) else {
                self.next_block()?;
                continue;
            };
            let (id, rest) = next.split_first_chunk()?;
            self.at += LEAF_BYTES;
            if *id == wanted {
                let (fingerprint, rest) = rest.split_first_chunk()?;
                let dirs = u32::from_le_bytes(*rest.first_chunk()?);
                let is_known = *fingerprint != [0; HALF_BYTES];
                let fingerprint = Fingerprint::from_bytes(*fingerprint);
                return is_known.then_some(KnownLeaf { fingerprint, dirs });
            }
        }
    }

    /// Reads the next block. Where the file ends, cannot be read or is damaged, nothing more is known.
    fn next_block(&mut self) -> Option<()> {
        self.at = 0;
        self.block.clear();
        let mut leaves = [0; 4];
        self.file.read_exact(&mut leaves).ok()?;
        let leaves = u32::from_le_bytes(leaves) as usize;
        if leaves == 0 || leaves > BLOCK_MAX_LEAVES {
            return None;
        }
        self.block.resize(leaves * LEAF_BYTES, 0);
        let mut check = [0; CHECK_BYTES];
        let read =
            self.file.read_exact(&mut self.block).and_then(|()| self.file.read_exact(&mut check));
        if read.is_err() || self.fingerprints.check(&self.block) != check {
            self.block.clear();
            return None;
        }
        Some(())
    }
}

/// Reads the list at the end of a file, and stands behind the header again.
fn read_list(file: &mut BufReader<File>, len_bytes: u32) -> Option<Vec<u8>> {
    if len_bytes as usize > LIST_MAX_BYTES {
        return None;
    }
    let mut list = vec![0; len_bytes as usize];
    if len_bytes > 0 {
        file.seek(SeekFrom::End(-i64::from(len_bytes))).ok()?;
        file.read_exact(&mut list).ok()?;
        file.seek(SeekFrom::Start(HEADER_BYTES as u64)).ok()?;
    }
    Some(list)
}

/// How the leaves of a snapshot that is being made are known again.
pub(crate) struct NewLeaves {
    /// Nothing if it cannot be written, or was not to be.
    file: Option<(BufWriter<File>, Fingerprints)>,
    written_at: PathBuf,
    place: PathBuf,
    block: Vec<u8>,
    need_a_look: BTreeSet<PathKey>,
    list_bytes: usize,
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
        let (block, need_a_look) = (Vec::new(), BTreeSet::new());
        Self { file, written_at, place, block, need_a_look, list_bytes: 0 }
    }

    /// Adds the next leaf of the tree.
    pub(crate) fn add(&mut self, leaf: &ObjectId, known: Option<KnownLeaf>) {
        self.block.extend(half(leaf));
        let fingerprint = known.map(|known| *known.fingerprint.as_bytes());
        self.block.extend(fingerprint.unwrap_or_default());
        self.block.extend(known.map_or(0, |known| known.dirs).to_le_bytes());
        if self.block.len() == BLOCK_MAX_LEAVES * LEAF_BYTES {
            self.end_block();
        }
    }

    /// Notes a directory that has something in it which needs a look in every run.
    pub(crate) fn add_to_list(&mut self, directory: PathKey) {
        let len_bytes = directory.as_bytes().len() + 1;
        if self.list_bytes <= LIST_MAX_BYTES && self.need_a_look.insert(directory) {
            self.list_bytes += len_bytes;
        }
    }

    /// Takes the place of the file before: these are all leaves of the snapshot with that root.
    pub(crate) fn commit(mut self, root: &ObjectId) {
        self.end_block();
        let list = (self.list_bytes <= LIST_MAX_BYTES).then(|| self.list());
        self.attempt(|file, fingerprints| {
            let list = list.as_deref();
            let header = header(root, list, fingerprints).ok_or(io::ErrorKind::FileTooLarge)?;
            file.write_all(list.unwrap_or_default())?;
            file.rewind()?;
            file.write_all(&header)?;
            file.flush()
        });
        if self.file.is_some() {
            // If it cannot, the old file stays, which is another snapshot's.
            let _ = put_in_place(&self.written_at, &self.place);
        }
    }

    fn list(&self) -> Vec<u8> {
        let keys = self.need_a_look.iter().map(PathKey::as_bytes);
        keys.flat_map(|key| key.iter().copied().chain([SLASH])).collect()
    }

    fn end_block(&mut self) {
        let block = std::mem::take(&mut self.block);
        if block.is_empty() {
            return;
        }
        let leaves = (block.len() / LEAF_BYTES) as u32;
        self.attempt(|file, fingerprints| {
            file.write_all(&leaves.to_le_bytes())?;
            file.write_all(&block)?;
            file.write_all(&fingerprints.check(&block))
        });
        self.block = block;
        self.block.clear();
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

/// Nothing if the list is too long.
fn header(root: &ObjectId, list: Option<&[u8]>, fingerprints: &Fingerprints) -> Option<Vec<u8>> {
    let len_bytes = list.map_or(Some(TOO_MANY), |list| u32::try_from(list.len()).ok())?;
    let clear = [&MAGIC[..], root.as_bytes(), &len_bytes.to_le_bytes()].concat();
    let check = fingerprints.check(&[&clear, list.unwrap_or_default()].concat());
    Some([&clear[..], &check].concat())
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
}
