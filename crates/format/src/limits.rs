//! The limits of the format, in one place. Decoders refuse what is over them; builders stay below.

/// Plain bytes at which an open block is closed.
pub const BLOCK_TARGET_PLAIN_BYTES: usize = 1 << 20;
/// Most plain bytes of a block (object bytes together).
pub const BLOCK_MAX_PLAIN_BYTES: usize = 4 << 20;
/// Most bytes of a sealed payload: plain, directory, padding and tag.
pub const BLOCK_MAX_PAYLOAD_BYTES: usize = 5 << 20;
/// Table bytes at which an open block is closed.
pub const TABLE_TARGET_BYTES: usize = 256 << 10;
/// Most bytes of a table.
pub const TABLE_MAX_BYTES: usize = 1 << 20;
/// Most objects in a block.
pub const BLOCK_MAX_OBJECTS: usize = 16_384;
/// Length of a block's header.
pub const BLOCK_HEADER_BYTES: usize = 136;
/// Most bytes of a whole block: header, table and payload.
pub const BLOCK_MAX_BYTES: usize = BLOCK_HEADER_BYTES + TABLE_MAX_BYTES + BLOCK_MAX_PAYLOAD_BYTES;
/// Most plain bytes of one chunk.
pub const CHUNK_MAX_BYTES: usize = 2 << 20;
/// Most bytes of a node's body. A leaf is cut at 64 KiB, but one entry may have a path of 64 KiB
/// and 8 KiB of its own beside it.
pub const NODE_MAX_BODY_BYTES: usize = 256 << 10;
/// Most references of one node.
pub const NODE_MAX_REFS: usize = 4096;
/// Payload bytes at which a pack is closed.
pub const PACK_TARGET_BYTES: u64 = 48 << 20;
/// Gathered table bytes at which a pack is closed.
pub const PACK_TARGET_TABLE_BYTES: usize = 8 << 20;
/// Most bytes of a footer.
pub const FOOTER_MAX_BYTES: usize = 16 << 20;
/// Most blocks in a pack.
pub const PACK_MAX_BLOCKS: usize = 65_536;
/// Most bytes of a record, clear and sealed half together.
pub const RECORD_MAX_BYTES: usize = 4 << 20;
/// Most tag tokens of a record.
pub const RECORD_MAX_TAGS: usize = 256;
/// Most source paths of a record.
pub const RECORD_MAX_PATHS: usize = 4096;
/// Most exclude patterns of a record.
pub const RECORD_MAX_EXCLUDES: usize = 4096;
/// Most bytes of a path or a pattern in a record.
pub const RECORD_PATH_MAX_BYTES: usize = 64 << 10;
/// Most bytes of a host, a user, a program or a tag in a record.
pub const RECORD_NAME_MAX_BYTES: usize = 1024;
/// Most wrappings of a key ring.
pub const WRAPPINGS_MAX: usize = 64;
/// Most bytes of one age file in a wrapping.
pub const WRAPPING_MAX_BYTES: usize = 16 << 10;
/// Most bytes of a public key that a wrapping is for.
pub const RECIPIENT_MAX_BYTES: usize = 255;
/// Most key epochs behind the first: what they take fits into a wrapping.
pub const LATER_EPOCHS_MAX: usize = 255;
/// Most bytes of a set of wrappings: what each of them, and each later epoch, takes at most.
pub const WRAPPING_SET_MAX_BYTES: usize = WRAPPINGS_MAX * (2 * WRAPPING_MAX_BYTES + 1024)
    + LATER_EPOCHS_MAX * crate::KeyEpoch::BYTES
    + 1024;
/// Most bytes of a wrapping's label.
pub const LABEL_MAX_BYTES: usize = 255;
