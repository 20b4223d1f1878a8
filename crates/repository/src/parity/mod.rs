//! Parity: what rots in a pack, or cannot be read any more, is computed again from the rest.
//!
//! Disks lose sectors long before they fail, and a single copy has nothing to take them from. So a
//! repository may keep so many per cent of each closed pack beside it, made when the pack closes and
//! outside any request that waits. Parity knows nothing of blocks: whether a pack was restored as it
//! was, its names tell.

pub(crate) mod head;
mod shards;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use holdall_format::PackName;
use holdall_protocol::RepositoryError;
use holdall_sys::PathBeneath;

use crate::storage::layout::Layout;
use crate::storage::publish::{
    self, FILE_MODE, damaged, failed, is_there, make_dir, names_in, read_limited, remove, replace,
    replace_by_file,
};
use crate::storage::retry::split_process_errors;
use head::{FRONT_BYTES, Head, SHARD_BYTES};
use shards::Shards;

/// What the file with the share begins with.
const SHARE_FRONT: &str = "holdall parity, version 1: ";
/// The last bytes of a parity file: the length of its second head.
const END_BYTES: usize = 4;
/// Fewer shards than this for a short pack would repair hardly anything.
const SHARDS_MIN: usize = 2;

/// How many per cent of each pack are kept as parity; 0 for none.
///
/// # Errors
/// [`RepositoryError::Damaged`] if the file says something else.
pub(crate) fn percent(layout: &Layout) -> Result<u8, RepositoryError> {
    let path = layout.parity_share();
    let Some(text) = read_limited(&path, 4096)? else { return Ok(0) };
    let text = String::from_utf8_lossy(&text);
    let percent = text.trim_end().strip_prefix(SHARE_FRONT).and_then(|share| share.parse().ok());
    percent
        .filter(|percent| *percent <= 100)
        .ok_or_else(|| damaged(&path, "it says no share of parity from 0 to 100"))
}

/// Changes how much parity is kept from now on.
pub(crate) fn set_percent(layout: &Layout, percent: u8) -> Result<(), RepositoryError> {
    let text = format!("{SHARE_FRONT}{percent}\n");
    replace(&layout.tmp(), &layout.parity_share(), text.as_bytes())
}

/// The packs of which parity is there.
pub(crate) fn packs(layout: &Layout) -> Result<Vec<PackName>, RepositoryError> {
    let mut packs = Vec::new();
    for folder in names_in(&layout.parity())? {
        let folder = layout.parity().join(folder);
        if !folder.is_dir() {
            continue;
        }
        let names = names_in(&folder)?;
        packs.extend(names.iter().filter_map(|name| name.to_str()?.parse::<PackName>().ok()));
    }
    Ok(packs)
}

/// Whether there is as much parity of a pack as that share of it. Where what is there cannot be read, there
/// is: that is for a repair.
///
/// # Errors
/// Those that say nothing of its file.
pub(crate) fn is_enough(
    layout: &Layout,
    pack: &PackName,
    percent: u8,
) -> Result<bool, RepositoryError> {
    let bytes = |path: &PathBeneath| path.stat().map_or(0, |found| found.size);
    let pack_bytes = bytes(&layout.pack_file(pack)?);
    let parity_bytes = bytes(&layout.pack_parity(pack));
    let wanted = Shares::of(pack_bytes, percent);
    if parity_bytes >= wanted.file_bytes() {
        return Ok(true);
    }
    let found = split_process_errors(PackParity::open(layout, pack))?;
    Ok(found.map_or(true, |found| {
        found.is_some_and(|parity| parity.head.parity.len() >= wanted.parity)
    }))
}

/// Makes parity of a pack that is closed, durable and sound, in the place of what there is; says how many bytes.
pub(crate) fn make(layout: &Layout, pack: &PackName, percent: u8) -> Result<u64, RepositoryError> {
    let (path, data) = (layout.pack_parity(pack), layout.pack_file(pack)?);
    path.parent().map_or(Ok(()), |folder| make_dir(&folder))?;
    let beside = publish::beside(&layout.tmp())?;
    let made = write(&beside, &data, pack, percent);
    let made = made.map_err(failed("making", &path)).and_then(|bytes| {
        replace_by_file(&beside, &path)?;
        Ok(bytes)
    });
    if is_there(&data).is_ok_and(|is_there| !is_there) {
        // A prune deleted the pack meanwhile, and then what parity there was.
        remove(&path)?;
    }
    // Gone where it was published, and swept at the next start where it cannot be removed now.
    let _ = beside.remove_file();
    made
}

/// How many shards a pack has, and its parity.
struct Shares {
    data: usize,
    parity: usize,
}

impl Shares {
    fn of(pack_bytes: u64, percent: u8) -> Self {
        let data = Head::data_shards(pack_bytes);
        Self { data, parity: (data * usize::from(percent)).div_ceil(100).max(SHARDS_MIN) }
    }

    /// Length of a head, of which a file has two.
    fn head_bytes(&self) -> u64 {
        Head::len_bytes(self.data + self.parity) as u64
    }

    /// Where the second head begins.
    fn end(&self) -> u64 {
        self.head_bytes() + (self.parity * SHARD_BYTES) as u64
    }

    fn file_bytes(&self) -> u64 {
        self.end() + self.head_bytes() + END_BYTES as u64
    }
}

fn write(
    beside: &PathBeneath,
    path: &PathBeneath,
    pack: &PackName,
    percent: u8,
) -> io::Result<u64> {
    let file = path.open()?;
    let pack_bytes = file.metadata()?.len();
    let shares = Shares::of(pack_bytes, percent);
    let (at, end) = (shares.head_bytes(), shares.end());

    let out = beside.create_new(FILE_MODE)?;
    let data = Shards { file: &file, at: 0, end: pack_bytes };
    let parity = Shards { file: &out, at, end };
    shards::encode(data, shares.data, parity, shares.parity)?;

    let mut buffer = Box::new([0; SHARD_BYTES]);
    let mut hashes = |shards: Shards<'_>, count: usize| {
        (0..count).map(|shard| shards.hash(shard, &mut buffer)).collect::<io::Result<Vec<_>>>()
    };
    let (data, parity) = (hashes(data, shares.data)?, hashes(parity, shares.parity)?);
    let mut head = Head { pack_bytes, data, parity }.encode(pack);
    out.write_all_at(&head, 0)?;
    let head_bytes = head.len() as u32;
    head.extend_from_slice(&head_bytes.to_le_bytes());
    out.write_all_at(&head, end)?;
    out.sync_all()?;
    Ok(end + head.len() as u64)
}

/// The parity of a pack, open.
#[derive(Debug)]
pub(crate) struct PackParity {
    file: File,
    head: Head,
}

/// How a pack and its parity are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Soundness {
    data: Vec<bool>,
    parity: Vec<bool>,
}

impl Soundness {
    /// How many shards of the pack are damaged.
    pub(crate) fn damaged_data(&self) -> usize {
        self.data.iter().filter(|sound| !**sound).count()
    }

    /// How many shards of the parity are damaged.
    pub(crate) fn damaged_parity(&self) -> usize {
        self.parity.iter().filter(|sound| !**sound).count()
    }

    /// Whether what is left suffices to restore the pack.
    pub(crate) fn suffices(&self) -> bool {
        self.damaged_data() + self.damaged_parity() <= self.parity.len()
    }
}

/// Reads the parity of a pack again, and says whether it is as it was made, if there is any.
///
/// # Errors
/// Those that say nothing of its file.
pub(crate) fn is_sound(layout: &Layout, pack: &PackName) -> Result<bool, RepositoryError> {
    let found = split_process_errors(PackParity::open(layout, pack))?;
    Ok(found.is_ok_and(|found| found.is_none_or(|parity| parity.is_sound(pack))))
}

impl PackParity {
    /// Opens the parity of a pack; `None` if there is none.
    ///
    /// # Errors
    /// [`RepositoryError::Damaged`] if both heads are.
    pub(crate) fn open(layout: &Layout, pack: &PackName) -> Result<Option<Self>, RepositoryError> {
        let path = layout.pack_parity(pack);
        let file = match path.open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(failed("opening", &path))?,
        };
        let head = read_first(&file, pack).or_else(|_| read_second(&file, pack));
        let head = head.map_err(|error| damaged(&path, error))?;
        Ok(Some(Self { file, head }))
    }

    fn shards(&self) -> Shards<'_> {
        let (data, parity) = (self.head.data.len(), self.head.parity.len());
        let at = Head::len_bytes(data + parity) as u64;
        Shards { file: &self.file, at, end: at + (parity * SHARD_BYTES) as u64 }
    }

    /// Reads its own shards again, and says whether all are as they were, and both heads.
    fn is_sound(&self, pack: &PackName) -> bool {
        self.shards().sound(&self.head.parity).iter().all(|sound| *sound)
            && read_first(&self.file, pack).is_ok()
            && read_second(&self.file, pack).is_ok()
    }

    /// Reads the pack's file and the parity again. One that cannot be opened has no sound shard.
    ///
    /// # Errors
    /// Those that say nothing of the file.
    pub(crate) fn compare(&self, path: &PathBeneath) -> Result<Soundness, RepositoryError> {
        let opened = split_process_errors(path.open().map_err(failed("opening", path)))?;
        let data = opened.map_or_else(
            |_| vec![false; self.head.data.len()],
            |file| Shards { file: &file, at: 0, end: self.head.pack_bytes }.sound(&self.head.data),
        );
        Ok(Soundness { data, parity: self.shards().sound(&self.head.parity) })
    }

    /// Makes in `tmp`, durably, what the pack's file was.
    ///
    /// # Errors
    /// [`RepositoryError::Io`]; nothing is left in `tmp` then.
    pub(crate) fn restore(
        &self,
        path: &PathBeneath,
        soundness: &Soundness,
        tmp: &PathBeneath,
    ) -> Result<PathBeneath, RepositoryError> {
        let beside = publish::beside(tmp)?;
        let restored = self.write(path, soundness, &beside);
        restored.map_err(|error| {
            let _ = beside.remove_file();
            failed("restoring", path)(error)
        })?;
        Ok(beside)
    }

    fn write(
        &self,
        path: &PathBeneath,
        soundness: &Soundness,
        beside: &PathBeneath,
    ) -> io::Result<()> {
        let out = beside.create_new(FILE_MODE)?;
        out.set_len(self.head.pack_bytes)?;
        let (at, end) = (0, self.head.pack_bytes);
        let restored = Shards { file: &out, at, end };
        if let Ok(file) = path.open() {
            Shards { file: &file, at, end }.copy_sound(&soundness.data, &restored)?;
        }
        shards::restore(restored, &soundness.data, self.shards(), &soundness.parity)?;
        out.sync_all()
    }
}

fn read_first(file: &File, pack: &PackName) -> io::Result<Head> {
    let mut front = [0; FRONT_BYTES];
    file.read_exact_at(&mut front, 0)?;
    let mut head = vec![0; Head::len_of_front(&front).map_err(io::Error::other)?];
    file.read_exact_at(&mut head, 0)?;
    Head::decode(&head, pack).map_err(io::Error::other)
}

fn read_second(file: &File, pack: &PackName) -> io::Result<Head> {
    let short = || io::Error::other("it is shorter than a head");
    let end = file.metadata()?.len().checked_sub(END_BYTES as u64).ok_or_else(short)?;
    let mut length = [0; END_BYTES];
    file.read_exact_at(&mut length, end)?;
    let length = u32::from_le_bytes(length);
    let at = end.checked_sub(u64::from(length)).ok_or_else(short)?;
    let mut front = [0; FRONT_BYTES];
    file.read_exact_at(&mut front, at)?;
    let mut head = vec![0; Head::len_of_front(&front).map_err(io::Error::other)?];
    file.read_exact_at(&mut head, at)?;
    Head::decode(&head, pack).map_err(io::Error::other)
}

/// Removes the parity of packs that are gone for good.
pub(crate) fn remove_of<'a>(
    layout: &Layout,
    packs: impl Iterator<Item = &'a PackName>,
) -> Result<(), RepositoryError> {
    for pack in packs {
        remove(&layout.pack_parity(pack))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
