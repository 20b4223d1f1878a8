//! Sealing blocks: compress, pad, encrypt.

use std::ops::AddAssign;
use std::sync::Arc;

use holdall_format::limits::{BLOCK_MAX_OBJECTS, BLOCK_MAX_PLAIN_BYTES};
use holdall_format::{
    BLOCK_HEADER_BYTES, Block, BlockHeader, BlockKind, FormatError, ObjectId, Suite, TAG_BYTES,
    Table, TableEntry,
};
use zstd::bulk::Compressor;
use zstd::zstd_safe::{self, CParameter, compress_bound};

use crate::compressible::worth_compressing;
use crate::payload::{
    Compression, directory_bytes, padding_bytes, payload_bytes, put_directory, put_prefix,
};
use crate::sealing::Draw;
use crate::{CryptoError, Entropy, SealingKeys};

const WHAT: &str = "block to seal";

/// The level of zstd that compresses fastest without losing a third of what it saves.
const FASTEST_LEVEL: i32 = 1;
/// Its table has 2^15 places in place of 2^14: text becomes 5 % smaller, and takes as much longer.
const FASTEST_HASH_LOG: u32 = 15;
/// What zstd takes for its own choice.
const OWN_HASH_LOG: u32 = 0;

/// One object that is to be sealed; its bytes lie behind those of the object before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainObject {
    /// Its id.
    pub id: ObjectId,
    /// For a node, the ids that it refers to, ascending and distinct; empty for a chunk.
    pub refs: Vec<ObjectId>,
    /// Length of its plain bytes.
    pub len: usize,
}

/// Seals blocks of one repository. Each thread has one, for it keeps its buffers and its zstd
/// context (about three times the largest block that it sealed, and a few MiB for the level).
pub struct Sealer {
    keys: Arc<SealingKeys>,
    suite: Suite,
    entropy: Box<dyn Entropy>,
    counter: u64,
    level: i32,
    zstd: Compressor<'static>,
    unpacked: Vec<u8>,
    packed: Vec<u8>,
    shuffled: Shuffled,
    overhead: Overhead,
}

/// Has a context compress at that level from now on.
fn tune(zstd: &mut Compressor<'_>, level: i32) {
    #[expect(
        clippy::expect_used,
        reason = "zstd clamps levels, and takes any table of 2^6 to 2^30"
    )]
    zstd.set_parameter(CParameter::CompressionLevel(level))
        .and_then(|()| {
            zstd.set_parameter(CParameter::HashLog(hash_log(level).unwrap_or(OWN_HASH_LOG)))
        })
        .expect("zstd takes the level");
}

/// The logarithm of the places in a level's table, where that is not zstd's own choice.
fn hash_log(level: i32) -> Option<u32> {
    (level == FASTEST_LEVEL).then_some(FASTEST_HASH_LOG)
}

/// Bytes of blocks that are no content of files, or not only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Overhead {
    /// Headers, and tables with the ids of objects and what they refer to.
    pub clear_bytes: u64,
    /// What hides the exact length.
    pub padding_bytes: u64,
    /// Blocks of nodes as a whole, with what they have of the two above, and with contents that are
    /// small enough to lie in them.
    pub node_block_bytes: u64,
}

impl AddAssign for Overhead {
    fn add_assign(&mut self, other: Self) {
        self.clear_bytes += other.clear_bytes;
        self.padding_bytes += other.padding_bytes;
        self.node_block_bytes += other.node_block_bytes;
    }
}

impl Sealer {
    /// A sealer with that cipher and zstd level (1 is fast, 3 usual, 19 slow), which seals in the
    /// newest epoch of the keys.
    pub fn new(
        keys: Arc<SealingKeys>,
        suite: Suite,
        level: i32,
        entropy: Box<dyn Entropy>,
    ) -> Self {
        #[expect(clippy::expect_used, reason = "a fresh context takes any level: zstd clamps it")]
        let mut zstd = Compressor::new(level).expect("zstd takes the level");
        tune(&mut zstd, level);
        #[expect(clippy::expect_used, reason = "a fresh context takes both flags")]
        zstd.include_checksum(false)
            .and_then(|()| zstd.include_contentsize(false))
            .expect("zstd takes the flags");
        Self {
            keys,
            suite,
            entropy,
            counter: 0,
            level,
            zstd,
            unpacked: Vec::new(),
            packed: Vec::new(),
            shuffled: Shuffled::default(),
            overhead: Overhead::default(),
        }
    }

    /// What the blocks sealed since the last call have that is no content.
    pub fn take_overhead(&mut self) -> Overhead {
        std::mem::take(&mut self.overhead)
    }

    /// Compresses from now on at that level of zstd.
    pub fn set_level(&mut self, level: i32) {
        if level != self.level {
            self.level = level;
            tune(&mut self.zstd, level);
        }
    }

    /// Seals objects, whose bytes lie one behind the other in `plain`, into a block.
    ///
    /// For [`BlockKind::Record`], `objects` is empty and `plain` is free.
    ///
    /// # Errors
    /// [`CryptoError::Format`] if lengths do not add up, references are not ascending or a limit is
    /// passed; [`CryptoError::Compression`] if zstd fails. The sealer can be used again.
    pub fn seal(
        &mut self,
        kind: BlockKind,
        objects: &[PlainObject],
        plain: &[u8],
    ) -> Result<Block<Vec<u8>>, CryptoError> {
        check_input(kind, objects, plain)?;
        let draw = self.draw();
        self.shuffled.shuffle(&self.keys, &draw, objects);
        let table = self.shuffled.table(objects).encode(kind);
        let mut block = self.pack(&table, objects, plain)?;
        let salt = self.salt(&draw, kind, objects, plain);
        let payload_at = BLOCK_HEADER_BYTES + table.len();
        let (clear, payload) = block.split_at_mut(payload_at);
        let mut header = BlockHeader {
            suite: self.suite,
            kind,
            repository: self.keys.repository(),
            epoch: self.keys.newest().epoch(),
            table_bytes: field_u32("table", table.len())?,
            payload_bytes: field_u32("payload", payload.len() + TAG_BYTES)?,
            salt,
            table_hash: *blake3::hash(&table).as_bytes(),
            commitment: [0; 32],
        };
        let key = self.keys.newest().block(&header)?;
        header.commitment = key.commitment;
        let header = header.encode();
        let tag = key.seal(&header, payload)?;
        clear[..BLOCK_HEADER_BYTES].copy_from_slice(&header);
        block.extend_from_slice(tag.as_ref());
        if kind == BlockKind::Nodes {
            self.overhead.node_block_bytes += block.len() as u64;
        }
        Ok(Block::decode(block)?)
    }

    /// The block's salt. Should the random source repeat itself, then what else decides the payload
    /// keeps salts apart: the ids, which stand for the content and cost less to hash, in their order,
    /// and how it is compressed. A record has no ids, so its content itself goes in.
    fn salt(
        &self,
        draw: &Draw,
        kind: BlockKind,
        objects: &[PlainObject],
        plain: &[u8],
    ) -> [u8; 32] {
        let mut hasher = self.keys.hedged(b"salt", draw);
        hasher.update(&[kind.code()]).update(&self.level.to_le_bytes());
        hash_log(self.level).into_iter().for_each(|log| {
            hasher.update(&log.to_le_bytes());
        });
        hasher.update(&zstd_safe::version_number().to_le_bytes());
        for object in objects {
            hasher.update(object.id.as_bytes());
        }
        if kind == BlockKind::Record {
            hasher.update(plain);
        }
        *hasher.finalize().as_bytes()
    }

    fn draw(&mut self) -> Draw {
        let mut draw = Draw { random: [0; 32], counter: self.counter };
        self.counter += 1;
        self.entropy.fill(&mut draw.random);
        draw
    }

    /// The block's bytes without the tag: room for the header, the table, the plain payload.
    fn pack(
        &mut self,
        table: &[u8],
        objects: &[PlainObject],
        plain: &[u8],
    ) -> Result<Vec<u8>, CryptoError> {
        let unpacked_bytes = directory_bytes(objects.len()) + plain.len();
        let compressed = self.compress(objects, plain)?;
        let body_bytes = if compressed { self.packed.len() } else { unpacked_bytes };
        let end = BLOCK_HEADER_BYTES + table.len() + payload_bytes(body_bytes);
        self.overhead.clear_bytes += (BLOCK_HEADER_BYTES + table.len()) as u64;
        self.overhead.padding_bytes += padding_bytes(body_bytes) as u64;
        let mut out = Vec::with_capacity(end + TAG_BYTES);
        out.resize(BLOCK_HEADER_BYTES, 0);
        out.extend_from_slice(table);
        if compressed {
            put_prefix(&mut out, Compression::Zstd, body_bytes, unpacked_bytes);
            out.extend_from_slice(&self.packed);
        } else {
            put_prefix(&mut out, Compression::Raw, body_bytes, unpacked_bytes);
            put_directory(&mut out, self.shuffled.directory(objects));
            out.extend_from_slice(plain);
        }
        out.resize(end, 0);
        Ok(out)
    }

    /// Fills `packed` with a zstd frame of directory and plain bytes. False where that does not
    /// pay: it saves less than 1/32, or nothing that padding does not take back.
    fn compress(&mut self, objects: &[PlainObject], plain: &[u8]) -> Result<bool, CryptoError> {
        let unpacked_bytes = directory_bytes(objects.len()) + plain.len();
        let padded_bytes = payload_bytes(unpacked_bytes);
        if padded_bytes == payload_bytes(0) || !worth_compressing(plain) {
            return Ok(false);
        }
        self.unpacked.clear();
        put_directory(&mut self.unpacked, self.shuffled.directory(objects));
        self.unpacked.extend_from_slice(plain);
        self.packed.clear();
        self.packed.reserve(compress_bound(unpacked_bytes));
        self.zstd
            .compress_to_buffer(&self.unpacked, &mut self.packed)
            .map_err(|error| CryptoError::Compression { reason: error.to_string() })?;
        let packed_bytes = self.packed.len();
        Ok(packed_bytes <= unpacked_bytes - unpacked_bytes / 32
            && payload_bytes(packed_bytes) < padded_bytes)
    }
}

/// A random order of a block's table, so that it says nothing of the order inside the seal.
#[derive(Default)]
struct Shuffled {
    /// For each table position, which object stands there.
    order: Vec<u32>,
    /// For each object, its table position.
    position: Vec<u32>,
    random: Vec<u8>,
}

impl Shuffled {
    /// Draws an order. It is hedged as salts are, here with the ids, so that a stuck random source
    /// does not shuffle every block alike.
    fn shuffle(&mut self, keys: &SealingKeys, draw: &Draw, objects: &[PlainObject]) {
        let mut hasher = keys.hedged(b"shuf", draw);
        objects.iter().for_each(|object| {
            hasher.update(object.id.as_bytes());
        });
        self.random.resize(8 * objects.len(), 0);
        hasher.finalize_xof().fill(&mut self.random);
        self.order.clear();
        self.order.extend((0u32..).take(objects.len()));
        // Fisher and Yates, from the back. Scaling 64 random bits to at most 16,384 places favours
        // none of them by more than 2^-50.
        for (last, random) in self.random.as_chunks::<8>().0.iter().enumerate().rev() {
            let scaled = u128::from(u64::from_le_bytes(*random)) * (last as u128 + 1);
            self.order.swap(last, (scaled >> 64) as usize);
        }
        self.position.resize(objects.len(), 0);
        for (position, object) in (0u32..).zip(&self.order) {
            self.position[*object as usize] = position;
        }
    }

    fn table(&self, objects: &[PlainObject]) -> Table {
        let entry = |at: &u32| {
            let object = &objects[*at as usize];
            TableEntry { id: object.id, refs: object.refs.clone() }
        };
        Table { entries: self.order.iter().map(entry).collect() }
    }

    fn directory(&self, objects: &[PlainObject]) -> impl ExactSizeIterator<Item = (u32, usize)> {
        self.position.iter().zip(objects).map(|(position, object)| (*position, object.len))
    }
}

fn check_input(kind: BlockKind, objects: &[PlainObject], plain: &[u8]) -> Result<(), CryptoError> {
    within("objects", objects.len(), BLOCK_MAX_OBJECTS)?;
    within("plain bytes", plain.len(), BLOCK_MAX_PLAIN_BYTES)?;
    let declared = objects.iter().try_fold(0usize, |sum, object| sum.checked_add(object.len));
    let fits = match kind {
        BlockKind::Nodes => declared == Some(plain.len()),
        BlockKind::Chunks => {
            declared == Some(plain.len()) && objects.iter().all(|object| object.refs.is_empty())
        }
        BlockKind::Record => objects.is_empty(),
    };
    if fits {
        return Ok(());
    }
    let reason = "their lengths, references or number do not fit the kind and the plain bytes";
    Err(FormatError::Invalid { what: WHAT, field: "objects", reason }.into())
}

fn within(field: &'static str, declared: usize, limit: usize) -> Result<(), CryptoError> {
    if declared <= limit {
        return Ok(());
    }
    let (declared, limit) = (declared as u64, limit as u64);
    Err(FormatError::OverLimit { what: WHAT, field, declared, limit }.into())
}

fn field_u32(field: &'static str, length: usize) -> Result<u32, CryptoError> {
    u32::try_from(length)
        .map_err(|_| FormatError::Invalid { what: WHAT, field, reason: "over 32 bits" }.into())
}
