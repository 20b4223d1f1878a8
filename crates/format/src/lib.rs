//! The clear bytes of a holdall repository: what a server may see, and must check.
//!
//! A repository is kept by somebody who is not trusted with its content. Everything that this
//! keeper needs for its work (names, reference lists, lengths, signatures) is defined here, byte by
//! byte, and nothing else is: this crate has no keys, does no I/O, reads no clock and spawns
//! nothing, which is why the server may link it.
//!
//! All integers are little-endian. Every decoder treats its input as hostile: a declared length is
//! compared with its limit and with what is left before anything is allocated for it, and bytes
//! after the end are refused. `docs/format.md` describes the same bytes in words.
//!
//! ```
//! use holdall_format::{ObjectId, Table, TableEntry, BlockKind};
//!
//! let child = ObjectId::from_bytes([1; 32]);
//! let node = TableEntry { id: ObjectId::from_bytes([2; 32]), refs: vec![child] };
//! let table = Table { entries: vec![node] };
//! let bytes = table.encode(BlockKind::Nodes);
//! assert_eq!(Table::decode(&bytes, BlockKind::Nodes).unwrap(), table);
//! ```

mod block;
mod block_kind;
mod config;
mod erased;
mod error;
mod id;
mod key_epoch;
pub mod limits;
mod pack;
mod padding;
mod portable_name;
mod receipt;
mod record;
mod recovery_identity;
mod shown;
mod signature;
mod slice;
mod spare;
mod table;
mod tombstone;
pub mod wire;
mod wrapping;

pub use block::{Block, BlockHeader, Suite, TAG_BYTES};
pub use block_kind::BlockKind;
pub use config::{CONFIG_FILE, ChunkerName, REPOSITORY_MARKER, RepositoryConfig};
pub use erased::{ERASED_FILE, ERASED_FRONT, ERASED_MAX_BYTES, Erased};
pub use error::FormatError;
pub use id::{
    BlockName, MachineId, ObjectId, PackName, RecordHash, RepositoryId, SeriesId, SessionId,
    TagToken,
};
pub use key_epoch::KeyEpoch;
pub use limits::BLOCK_HEADER_BYTES;
pub use pack::{Footer, FooterBlock, PACK_TRAILER_BYTES, Trailer};
pub use padding::padded_len;
pub use portable_name::portable_name;
pub use receipt::{RECEIPT_BYTES, Receipt, StoredRecord};
pub use record::{Record, RecordHead, RecordKind, record_file};
pub use recovery_identity::RecoveryIdentity;
pub use shown::{OneLine, Shown, is_unseen};
pub use signature::{
    PublicKey, ReceiptSigner, SIGNATURE_BYTES, Signature, Signatures, SignedContext,
};
pub use slice::{SLICE_BYTES, SLICE_PROOF_MAX_BYTES, prove_slice, proves_slice, slices_in};
pub use spare::{SPARE_MAX_BYTES, Spare};
pub use table::{Table, TableEntry};
pub use tombstone::{Tombstone, TombstoneReason};
pub use wrapping::{Wrapping, WrappingKind, WrappingSet};
