//! Closed packs: reading blocks and tables out of them.
//!
//! Of an open pack only offsets and names are kept in memory; tables are read again when they are
//! needed, and a few packs stay open at a time.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use holdall_format::limits::FOOTER_MAX_BYTES;
use holdall_format::wire::Reader;
use holdall_format::{
    BLOCK_HEADER_BYTES, BlockHeader, BlockName, Footer, FormatError, PACK_TRAILER_BYTES, PackName,
    RepositoryId, Table, Trailer,
};
use holdall_protocol::RepositoryError;

use crate::storage::layout::Layout;
use crate::storage::publish::{Shown, damaged, failed};
use crate::storage::{ReadAt, Stored};

/// Footer bytes before its first block.
const FOOTER_FRONT_BYTES: usize = 60;
/// Footer bytes of a block before its header.
const FOOTER_BLOCK_FRONT_BYTES: usize = 48;
/// Packs that stay open.
const OPEN_PACKS: usize = 48;
/// Blocks whose places stay in memory, over all open packs.
const OPEN_BLOCKS: usize = 65_536;

/// Says why the bytes of a file were refused.
pub(crate) fn unreadable(path: &impl Shown, error: &FormatError) -> RepositoryError {
    RepositoryError::unreadable(path.shown().to_string(), error)
}

/// What a pack ends with.
struct End {
    trailer: Trailer,
    /// The footer as it was stored, by the hash in the trailer.
    footer: Vec<u8>,
    /// Where it starts in the file.
    footer_at: u64,
}

impl End {
    /// Reads trailer and footer, by one range where a request costs more than what it brings.
    ///
    /// Untrusted: needs as much memory as the footer, which has a limit.
    fn read(path: &impl Shown, file: &(impl ReadAt + ?Sized)) -> Result<Self, RepositoryError> {
        let file_bytes = file.len_bytes().map_err(failed("looking at", path))?;
        let trailer_at = file_bytes
            .checked_sub(PACK_TRAILER_BYTES as u64)
            .ok_or_else(|| damaged(path, "it is shorter than a trailer"))?;
        let at_once = file.bytes_at_once().clamp(PACK_TRAILER_BYTES, FOOTER_MAX_BYTES) as u64;
        let at = file_bytes.saturating_sub(at_once);
        let read = |from: u64, to: u64| {
            let mut bytes = vec![0; (to - from) as usize];
            file.fill_at(&mut bytes, from).map_err(failed("reading", path)).map(|()| bytes)
        };
        let mut footer = read(at, file_bytes)?;
        let trailer = footer.split_off((trailer_at - at) as usize);
        let trailer = Trailer::decode(&trailer).map_err(|error| damaged(path, error))?;
        let footer_at = trailer_at
            .checked_sub(u64::from(trailer.footer_bytes))
            .ok_or_else(|| damaged(path, "it is shorter than its footer"))?;
        if footer_at >= at {
            footer.drain(..(footer_at - at) as usize);
        } else {
            let length = u64::from(trailer.footer_bytes).min(FOOTER_MAX_BYTES as u64);
            footer = read(footer_at, footer_at + length)?;
        }
        if Trailer::of(&footer).name != trailer.name {
            return Err(damaged(path, "its footer does not have the hash in its trailer"));
        }
        Ok(Self { trailer, footer, footer_at })
    }
}

/// Reads and checks a pack's footer; the pack's name is in the trailer.
///
/// Untrusted: needs as much memory as the footer, which has a limit, twice.
pub(crate) fn read_footer(
    path: &impl Shown,
    file: &(impl ReadAt + ?Sized),
    repository: &RepositoryId,
) -> Result<(Trailer, Footer), RepositoryError> {
    let End { trailer, footer, footer_at } = End::read(path, file)?;
    let footer = Footer::decode(&footer, footer_at).map_err(|error| damaged(path, error))?;
    if footer.repository != *repository {
        return Err(damaged(path, "it is of another repository"));
    }
    Ok((trailer, footer))
}

/// Whether the disk gives all names in a folder of packs, or the footer of a pack.
pub(crate) fn is_readable(path: &Stored, repository: &RepositoryId) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()?.parse::<PackName>().ok());
    let Some(name) = name else { return path.is_folder() && path.names().is_ok() };
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
    file: Box<dyn ReadAt>,
    path: Stored,
    blocks: Vec<BlockPlace>,
}

impl PackFile {
    /// Opens the pack of that name.
    ///
    /// The index knows it, so its footer was decoded and checked before; that it is the same
    /// footer, its hash tells.
    pub(crate) fn open(layout: &Layout, name: &PackName) -> Result<Self, RepositoryError> {
        let path = layout.pack(name);
        let file = path.open().map_err(failed("opening", &path))?;
        let End { trailer, footer, footer_at } = End::read(&path, &file)?;
        if trailer.name != *name {
            return Err(damaged(&path, "its footer does not have the hash in its name"));
        }
        let blocks = places(&footer, footer_at).map_err(|error| damaged(&path, error))?;
        Ok(Self { file, path, blocks })
    }

    /// Where it lies.
    pub(crate) fn path(&self) -> &Stored {
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
        self.file.fill_at(&mut bytes, place.clear_at)?;
        self.file.append_at(&mut bytes, payload, place.payload_at)?;
        Ok(bytes.into())
    }

    /// Reads a block's table.
    pub(crate) fn read_table(&self, place: &BlockPlace) -> Result<Table, RepositoryError> {
        let length = BLOCK_HEADER_BYTES + place.table_bytes as usize;
        let mut clear = vec![0; length];
        let read = self.file.fill_at(&mut clear, place.clear_at);
        read.map_err(failed("reading", &self.path))?;
        let (header, table) = clear.split_at(BLOCK_HEADER_BYTES);
        let header = BlockHeader::decode(header).map_err(|error| damaged(&self.path, error))?;
        if blake3::hash(table).as_bytes() != &header.table_hash {
            return Err(damaged(&self.path, "a table does not have the hash in its header"));
        }
        Table::decode(table, header.kind).map_err(|error| damaged(&self.path, error))
    }
}

/// Goes through the blocks of a footer that starts at `footer_at` in its file.
fn places(footer: &[u8], footer_at: u64) -> Result<Vec<BlockPlace>, FormatError> {
    let mut places = Vec::new();
    let mut at = FOOTER_FRONT_BYTES;
    while let Some(rest) = footer.get(at..).filter(|rest| !rest.is_empty()) {
        let place = decode_place(rest, footer_at + at as u64)?;
        at += FOOTER_BLOCK_FRONT_BYTES + BLOCK_HEADER_BYTES + place.table_bytes as usize;
        places.push(place);
    }
    Ok(places)
}

fn decode_place(block: &[u8], at: u64) -> Result<BlockPlace, FormatError> {
    let mut reader = Reader::new("pack footer", block);
    let payload_at = reader.u64("offset")?;
    let arrival = reader.u64("arrival")?;
    let name = BlockName::from_bytes(reader.array("name")?);
    let header = BlockHeader::decode(reader.bytes("header", BLOCK_HEADER_BYTES)?)?;
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
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A pack in a storage that is asked by requests.
    #[derive(Debug)]
    struct Far {
        bytes: Vec<u8>,
        at_once: usize,
        requests: AtomicUsize,
    }

    impl ReadAt for Far {
        fn len_bytes(&self) -> io::Result<u64> {
            Ok(self.bytes.len() as u64)
        }

        fn append_at(&self, out: &mut Vec<u8>, length: usize, offset: u64) -> io::Result<()> {
            self.requests.fetch_add(1, Ordering::SeqCst);
            let range = offset as usize..offset as usize + length;
            out.extend_from_slice(self.bytes.get(range).ok_or(io::ErrorKind::UnexpectedEof)?);
            Ok(())
        }

        fn bytes_at_once(&self) -> usize {
            self.at_once
        }
    }

    #[test]
    fn a_pack_has_what_its_footer_says_and_near_or_far_few_requests_read_it() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        let forge = Forge::new(1, MachineId::from_bytes([1; 16]), &[1; 32]);
        let (mut pack, mut blocks, mut whole) = (Vec::new(), Vec::new(), Vec::new());
        for number in 1..6u8 {
            let ids = vec![ObjectId::from_bytes([number; 32]); number.into()];
            let bytes = forge.chunks_of_bytes(&ids, 100 * usize::from(number));
            let checked =
                crate::tails::checked_block::Checked::new(bytes, &forge.repository).unwrap();
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
        for (at_once, requests) in [(1 << 20, 1), (pack.len() - 1, 1), (0, 2)] {
            let far = Far { bytes: pack.clone(), at_once, requests: AtomicUsize::new(0) };
            assert_eq!(read_footer(&path, &far, &repository).unwrap().1, footer);
            assert_eq!(far.requests.into_inner(), requests, "{at_once} bytes at once");
        }
        let last = pack.len() - PACK_TRAILER_BYTES - 1;
        pack[last] ^= 1;
        std::fs::write(path.path(), &pack).unwrap();
        assert!(PackFile::open(&layout, &trailer.name).is_err());
    }
}
