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

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use holdall_format::{ObjectId, SeriesId};
use holdall_sys::guarded;
use holdall_tree::{CHECK_BYTES, Entry, Fingerprint, Fingerprints, KnownLeaf, PathKey};

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

    /// Notes the directory of an entry that needs a look in every run: one that is not settled, or may be changed by
    /// way of another name.
    pub(crate) fn list(&mut self, path: &PathKey, entry: &Entry) {
        if (entry.unsettled || entry.hardlink.is_some())
            && let Some(directory) = path.parent()
        {
            self.add_to_list(directory);
        }
    }

    fn add_to_list(&mut self, directory: PathKey) {
        let len_bytes = directory.as_bytes().len() + 1;
        if self.list_bytes <= LIST_MAX_BYTES && self.need_a_look.insert(directory) {
            self.list_bytes += len_bytes;
        }
    }

    /// Takes the place of the file before: these are all leaves of the snapshot with that root.
    pub(crate) fn commit(mut self, root: &ObjectId) {
        self.end_block();
        let list = (self.list_bytes <= LIST_MAX_BYTES).then(|| self.listed());
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

    fn listed(&self) -> Vec<u8> {
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
