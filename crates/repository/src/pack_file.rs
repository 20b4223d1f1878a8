//! Closed packs: reading blocks and tables out of them.
//!
//! Of an open pack only offsets and names are kept in memory; tables are read again when they are
//! needed, and a few packs stay open at a time.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use holdall_format::limits::FOOTER_MAX_BYTES;
use holdall_format::wire::Reader;
use holdall_format::{
    BLOCK_HEADER_BYTES, BlockHeader, BlockName, Footer, FormatError, PACK_TRAILER_BYTES, PackName,
    RepositoryId, Table, Trailer,
};
use holdall_protocol::RepositoryError;
use holdall_sys::PathBeneath;
use holdall_sys::reading::append_exact_at;

use crate::layout::Layout;
use crate::publish::{damaged, failed, names_in};

/// Footer bytes before its first block.
const FOOTER_FRONT_BYTES: u64 = 60;
/// Footer bytes of a block before its header.
const FOOTER_BLOCK_FRONT_BYTES: usize = 48;
/// Bytes of a footer that are hashed at once.
const HASH_BYTES: usize = 128 << 10;
/// Packs that stay open.
const OPEN_PACKS: usize = 48;
/// Blocks whose places stay in memory, over all open packs.
const OPEN_BLOCKS: usize = 65_536;

/// Says why the bytes of a file were refused.
pub(crate) fn unreadable(path: &PathBeneath, error: &FormatError) -> RepositoryError {
    RepositoryError::unreadable(path.display().to_string(), error)
}

/// A pack's trailer, and where its footer starts.
fn read_trailer(path: &PathBeneath, file: &File) -> Result<(Trailer, u64), RepositoryError> {
    let file_bytes = file.metadata().map_err(failed("looking at", path))?.len();
    let trailer_at = file_bytes
        .checked_sub(PACK_TRAILER_BYTES as u64)
        .ok_or_else(|| damaged(path, "it is shorter than a trailer"))?;
    let mut trailer = [0; PACK_TRAILER_BYTES];
    file.read_exact_at(&mut trailer, trailer_at).map_err(failed("reading", path))?;
    let trailer = Trailer::decode(&trailer).map_err(|error| damaged(path, error))?;
    let footer_at = trailer_at
        .checked_sub(u64::from(trailer.footer_bytes))
        .ok_or_else(|| damaged(path, "it is shorter than its footer"))?;
    Ok((trailer, footer_at))
}

/// Reads and checks a pack's footer; the pack's name is in the trailer.
///
/// Untrusted: needs as much memory as the footer, which has a limit, twice.
pub(crate) fn read_footer(
    path: &PathBeneath,
    file: &File,
    repository: &RepositoryId,
) -> Result<(Trailer, Footer), RepositoryError> {
    let (trailer, footer_at) = read_trailer(path, file)?;
    let mut footer = vec![0; (trailer.footer_bytes as usize).min(FOOTER_MAX_BYTES)];
    file.read_exact_at(&mut footer, footer_at).map_err(failed("reading", path))?;
    if Trailer::of(&footer).name != trailer.name {
        return Err(damaged(path, "its footer does not have the hash in its trailer"));
    }
    let footer = Footer::decode(&footer, footer_at).map_err(|error| damaged(path, error))?;
    if footer.repository != *repository {
        return Err(damaged(path, "it is of another repository"));
    }
    Ok((trailer, footer))
}

/// Whether the disk gives all names in a folder of packs, or the footer of a pack.
pub(crate) fn is_given(path: &PathBeneath, repository: &RepositoryId) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()?.parse::<PackName>().ok());
    let Some(name) = name else { return path.is_dir() && names_in(path).is_ok() };
    let footer = path.open().ok().and_then(|file| read_footer(path, &file, repository).ok());
    footer.is_some_and(|(trailer, _)| trailer.name == name)
}

/// Where a block lies in its pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlockPlace {
    /// Its name.
    pub(crate) name: BlockName,
    /// Its arrival position.
    pub(crate) arrival: u64,
    /// Where its header and table start in the file.
    clear_at: u64,
    /// Where its payload starts in the file.
    payload_at: u64,
    table_bytes: u32,
    payload_bytes: u32,
}

impl BlockPlace {
    /// Length of the block, and of what the footer says of it.
    pub(crate) fn stored_bytes(&self) -> u64 {
        let clear_bytes = (FOOTER_BLOCK_FRONT_BYTES + BLOCK_HEADER_BYTES) as u64;
        clear_bytes + u64::from(self.table_bytes) + u64::from(self.payload_bytes)
    }
}

/// An open pack.
#[derive(Debug)]
pub(crate) struct PackFile {
    file: File,
    path: PathBeneath,
    blocks: Vec<BlockPlace>,
}

impl PackFile {
    /// Opens the pack of that name.
    ///
    /// The index knows it, so its footer was decoded and checked before; that it is the same
    /// footer, its hash tells. It is gone through without being in memory.
    pub(crate) fn open(layout: &Layout, name: &PackName) -> Result<Self, RepositoryError> {
        let path = layout.pack(name);
        let file = path.open().map_err(failed("opening", &path))?;
        let (trailer, footer_at) = read_trailer(&path, &file)?;
        let footer_end = footer_at + u64::from(trailer.footer_bytes);
        let hash = hash_range(&file, footer_at, footer_end).map_err(failed("reading", &path))?;
        if trailer.name != *name || hash.as_bytes() != name.as_bytes() {
            return Err(damaged(&path, "its footer does not have the hash in its name"));
        }
        let blocks = places(&path, &file, footer_at + FOOTER_FRONT_BYTES, footer_end)?;
        Ok(Self { file, path, blocks })
    }

    /// Where it lies.
    pub(crate) fn path(&self) -> &PathBeneath {
        &self.path
    }

    /// Its blocks in order.
    pub(crate) fn blocks(&self) -> &[BlockPlace] {
        &self.blocks
    }

    /// Reads a whole block; whether it is sound, its name tells.
    pub(crate) fn read_block(&self, place: &BlockPlace) -> io::Result<Bytes> {
        let clear = BLOCK_HEADER_BYTES + place.table_bytes as usize;
        let payload = place.payload_bytes as usize;
        let mut bytes = Vec::with_capacity(clear + payload);
        bytes.resize(clear, 0);
        self.file.read_exact_at(&mut bytes, place.clear_at)?;
        append_exact_at(&self.file, &mut bytes, payload, place.payload_at)?;
        Ok(bytes.into())
    }

    /// Reads a block's table.
    pub(crate) fn read_table(&self, place: &BlockPlace) -> Result<Table, RepositoryError> {
        let mut clear = vec![0; BLOCK_HEADER_BYTES + place.table_bytes as usize];
        self.file
            .read_exact_at(&mut clear, place.clear_at)
            .map_err(failed("reading", &self.path))?;
        let (header, table) = clear.split_at(BLOCK_HEADER_BYTES);
        let header = BlockHeader::decode(header).map_err(|error| damaged(&self.path, error))?;
        if blake3::hash(table).as_bytes() != &header.table_hash {
            return Err(damaged(&self.path, "a table does not have the hash in its header"));
        }
        Table::decode(table, header.kind).map_err(|error| damaged(&self.path, error))
    }
}

/// BLAKE3 of the bytes of a file from `start` to `end`.
fn hash_range(file: &File, start: u64, end: u64) -> io::Result<blake3::Hash> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; HASH_BYTES];
    let mut at = start;
    while at < end {
        let length = usize::try_from(end - at).unwrap_or(HASH_BYTES).min(HASH_BYTES);
        let part = buffer.get_mut(..length).unwrap_or_default();
        file.read_exact_at(part, at)?;
        hasher.update(part);
        at += length as u64;
    }
    Ok(hasher.finalize())
}

/// Goes through the blocks of a footer from its first block on.
fn places(
    path: &PathBeneath,
    file: &File,
    mut at: u64,
    end: u64,
) -> Result<Vec<BlockPlace>, RepositoryError> {
    let mut places = Vec::new();
    let mut front = [0; FOOTER_BLOCK_FRONT_BYTES + BLOCK_HEADER_BYTES];
    while at < end {
        file.read_exact_at(&mut front, at).map_err(failed("reading", path))?;
        let place = decode_place(&front, at).map_err(|error| damaged(path, error))?;
        at = place.clear_at + BLOCK_HEADER_BYTES as u64 + u64::from(place.table_bytes);
        places.push(place);
    }
    Ok(places)
}

fn decode_place(front: &[u8], at: u64) -> Result<BlockPlace, FormatError> {
    let mut reader = Reader::new("pack footer", front);
    let payload_at = reader.u64("offset")?;
    let arrival = reader.u64("arrival")?;
    let name = BlockName::from_bytes(reader.array("name")?);
    let header = BlockHeader::decode(reader.remaining())?;
    let (table_bytes, payload_bytes) = (header.table_bytes, header.payload_bytes);
    let clear_at = at + FOOTER_BLOCK_FRONT_BYTES as u64;
    Ok(BlockPlace { name, arrival, clear_at, payload_at, table_bytes, payload_bytes })
}

/// The packs that were used last, open.
#[derive(Debug)]
pub(crate) struct OpenPacks {
    layout: Layout,
    /// The most recently used one last.
    open: Mutex<Vec<(PackName, Arc<PackFile>)>>,
}

impl OpenPacks {
    pub(crate) fn new(layout: &Layout) -> Self {
        Self { layout: layout.clone(), open: Mutex::new(Vec::new()) }
    }

    /// The pack of that name, opened now if it is not open yet.
    pub(crate) fn get(&self, name: &PackName) -> Result<Arc<PackFile>, RepositoryError> {
        if let Some(pack) = self.use_again(name) {
            return Ok(pack);
        }
        let pack = Arc::new(PackFile::open(&self.layout, name)?);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.push((*name, pack.clone()));
        let mut blocks: usize = open.iter().map(|(_, pack)| pack.blocks.len()).sum();
        while open.len() > 1 && (open.len() > OPEN_PACKS || blocks > OPEN_BLOCKS) {
            blocks -= open.remove(0).1.blocks.len();
        }
        Ok(pack)
    }

    /// Lets go of packs whose files are to be removed.
    pub(crate) fn forget(&self, is_gone: impl Fn(&PackName) -> bool) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|(name, _)| !is_gone(name));
    }

    fn use_again(&self, name: &PackName) -> Option<Arc<PackFile>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let at = open.iter().position(|(open, _)| open == name)?;
        let found = open.remove(at);
        let pack = found.1.clone();
        open.push(found);
        Some(pack)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdall_format::{BlockKind, FooterBlock, MachineId, ObjectId};
    use holdall_protocol::contract::Forge;

    #[test]
    fn a_pack_that_is_gone_through_piece_by_piece_has_what_its_footer_says() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        let forge = Forge::new(1, MachineId::from_bytes([1; 16]), &[1; 32]);
        let (mut pack, mut blocks, mut whole) = (Vec::new(), Vec::new(), Vec::new());
        for number in 1..6u8 {
            let ids = vec![ObjectId::from_bytes([number; 32]); number.into()];
            let bytes = forge.chunks_of_bytes(&ids, 100 * usize::from(number));
            let checked = crate::checked::Checked::new(bytes, &forge.repository).unwrap();
            blocks.push(checked.footer_block(pack.len() as u64, number.into()));
            pack.extend_from_slice(checked.block.payload());
            whole.push(checked);
        }
        let repository = forge.repository;
        let footer = Footer { kind: BlockKind::Chunks, repository, random: [3; 32], blocks };
        let encoded = footer.encode();
        let trailer = Trailer::of(&encoded);
        pack.extend_from_slice(&encoded);
        pack.extend_from_slice(&trailer.encode());
        let path = layout.pack(&trailer.name);
        std::fs::create_dir_all(path.parent().unwrap().path()).unwrap();
        std::fs::write(path.path(), &pack).unwrap();

        let open = OpenPacks::new(&layout).get(&trailer.name).unwrap();
        let says = |block: &FooterBlock| (block.name, block.arrival);
        let found: Vec<_> = open.blocks.iter().map(|place| (place.name, place.arrival)).collect();
        assert_eq!(found, footer.blocks.iter().map(says).collect::<Vec<_>>());
        for (place, checked) in open.blocks().iter().zip(&whole) {
            assert_eq!(open.read_block(place).unwrap(), *checked.block.bytes());
            assert_eq!(open.read_table(place).unwrap(), *checked.block.table());
        }
        let last = pack.len() - PACK_TRAILER_BYTES - 1;
        pack[last] ^= 1;
        std::fs::write(path.path(), &pack).unwrap();
        assert!(PackFile::open(&layout, &trailer.name).is_err());
    }
}
