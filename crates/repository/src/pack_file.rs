//! Closed packs: reading blocks and tables out of them.
//!
//! Of an open pack only offsets and names are kept in memory; tables are read again when they are
//! needed, and a few packs stay open at a time.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use holdall_format::limits::FOOTER_MAX_BYTES;
use holdall_format::{
    BLOCK_HEADER_BYTES, BlockHeader, BlockName, Footer, FooterBlock, PACK_TRAILER_BYTES, PackName,
    RepositoryId, Table, Trailer,
};
use holdall_protocol::RepositoryError;

use crate::layout::Layout;
use crate::publish::failed;

/// Footer bytes before its first block.
const FOOTER_FRONT_BYTES: u64 = 60;
/// Footer bytes of a block before its header.
const FOOTER_BLOCK_FRONT_BYTES: u64 = 48;
/// Packs that stay open.
const OPEN_PACKS: usize = 48;
/// Blocks whose places stay in memory, over all open packs.
const OPEN_BLOCKS: usize = 65_536;

/// Says that a pack is damaged, and how.
pub(crate) fn damaged(path: &Path, reason: impl ToString) -> RepositoryError {
    RepositoryError::Damaged { what: path.display().to_string(), reason: reason.to_string() }
}

/// Reads and checks a pack's footer; the pack's name is in the trailer.
///
/// Untrusted: needs as much memory as the footer, which has a limit, twice.
pub(crate) fn read_footer(
    path: &Path,
    file: &File,
    repository: &RepositoryId,
) -> Result<(Trailer, Footer), RepositoryError> {
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

/// An open pack.
#[derive(Debug)]
pub(crate) struct PackFile {
    file: File,
    path: std::path::PathBuf,
    blocks: Vec<BlockPlace>,
}

impl PackFile {
    /// Opens the pack of that name.
    pub(crate) fn open(
        layout: &Layout,
        name: &PackName,
        repository: &RepositoryId,
    ) -> Result<Self, RepositoryError> {
        let path = layout.pack(name);
        let file = File::open(&path).map_err(failed("opening", &path))?;
        let (trailer, footer) = read_footer(&path, &file, repository)?;
        if trailer.name != *name {
            return Err(damaged(&path, format!("it is the pack {}", trailer.name)));
        }
        let file_bytes = file.metadata().map_err(failed("looking at", &path))?.len();
        let footer_at = file_bytes - PACK_TRAILER_BYTES as u64 - u64::from(trailer.footer_bytes);
        let blocks = places(&footer.blocks, footer_at + FOOTER_FRONT_BYTES);
        Ok(Self { file, path, blocks })
    }

    /// Its blocks in order.
    pub(crate) fn blocks(&self) -> &[BlockPlace] {
        &self.blocks
    }

    /// Reads a whole block; whether it is sound, its name tells.
    pub(crate) fn read_block(&self, place: &BlockPlace) -> io::Result<Bytes> {
        let clear = BLOCK_HEADER_BYTES + place.table_bytes as usize;
        let mut bytes = vec![0; clear + place.payload_bytes as usize];
        let (front, payload) = bytes.split_at_mut(clear);
        self.file.read_exact_at(front, place.clear_at)?;
        self.file.read_exact_at(payload, place.payload_at)?;
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

fn places(blocks: &[FooterBlock], mut at: u64) -> Vec<BlockPlace> {
    let place = |block: &FooterBlock| {
        let clear_at = at + FOOTER_BLOCK_FRONT_BYTES;
        at = clear_at + BLOCK_HEADER_BYTES as u64 + block.table_bytes.len() as u64;
        BlockPlace {
            name: block.name,
            arrival: block.arrival,
            clear_at,
            payload_at: block.offset,
            table_bytes: block.header.table_bytes,
            payload_bytes: block.header.payload_bytes,
        }
    };
    blocks.iter().map(place).collect()
}

/// The packs that were used last, open.
#[derive(Debug)]
pub(crate) struct OpenPacks {
    layout: Layout,
    repository: RepositoryId,
    /// The most recently used one last.
    open: Mutex<Vec<(PackName, Arc<PackFile>)>>,
}

impl OpenPacks {
    pub(crate) fn new(layout: &Layout, repository: RepositoryId) -> Self {
        Self { layout: layout.clone(), repository, open: Mutex::new(Vec::new()) }
    }

    /// The pack of that name, opened now if it is not open yet.
    pub(crate) fn get(&self, name: &PackName) -> Result<Arc<PackFile>, RepositoryError> {
        if let Some(pack) = self.use_again(name) {
            return Ok(pack);
        }
        let pack = Arc::new(PackFile::open(&self.layout, name, &self.repository)?);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.push((*name, pack.clone()));
        let mut blocks: usize = open.iter().map(|(_, pack)| pack.blocks.len()).sum();
        while open.len() > 1 && (open.len() > OPEN_PACKS || blocks > OPEN_BLOCKS) {
            blocks -= open.remove(0).1.blocks.len();
        }
        Ok(pack)
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
