//! What the targets share: fixed keys, and hostile bytes put behind the hashes, signatures and seals
//! that a fuzzer cannot guess, so that it reaches the code behind these checks.

mod served;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use holdall_crypto::{KeyRing, RepositoryKeys, SigningKey};
use holdall_format::{
    BLOCK_HEADER_BYTES, Block, BlockHeader, BlockKind, ObjectId, SIGNATURE_BYTES, SignedContext,
    Suite, TAG_BYTES, Table, TableEntry,
};
use holdall_repository::decoders::StoredFile;
use holdall_tree::{Node, NodeSource};

pub use served::Served;

/// The master secret of every target.
pub const MASTER: [u8; 32] = [7; 32];

/// All keys of [`MASTER`].
pub fn keys() -> &'static RepositoryKeys {
    static KEYS: LazyLock<RepositoryKeys> =
        LazyLock::new(|| RepositoryKeys::derive(&KeyRing::from_master(MASTER)));
    &KEYS
}

/// An id that says which one it is.
pub fn id(byte: u8) -> ObjectId {
    ObjectId::from_bytes([byte; 32])
}

/// Good bytes of which some are others, or that are cut: of each four a place (u16), a byte, and whether they
/// end there. At most so many of four: of what is changed all over little is taken for what it was.
pub fn edited(good: &[u8], edits: &[u8], most: u8) -> Vec<u8> {
    let mut bytes = good.to_vec();
    let (edits, _) = edits.as_chunks::<4>();
    let edits = edits.iter().take(most.into());
    for [low, high, byte, ends] in edits {
        let at = usize::from(u16::from_le_bytes([*low, *high])) % (bytes.len() + 1);
        match bytes.get_mut(at) {
            Some(place) if *ends < 0xF0 => *place = *byte,
            _ => bytes.truncate(at),
        }
    }
    bytes
}

/// Puts a fixed key where the signer stands, and its signature in the place of the one at the end.
pub fn signed(context: SignedContext, bytes: &[u8], signer_at: usize) -> Vec<u8> {
    static KEY: LazyLock<SigningKey> = LazyLock::new(|| SigningKey::from_seed(&[9; 32]));
    let mut out = bytes.to_vec();
    out.truncate(bytes.len().saturating_sub(SIGNATURE_BYTES));
    if let Some(place) = out.get_mut(signer_at..).and_then(|rest| rest.first_chunk_mut::<32>()) {
        *place = *KEY.public().as_bytes();
    }
    let signature = KEY.sign(context, &out);
    out.extend_from_slice(signature.as_bytes());
    out
}

/// Puts the hash of all before it in the place of the last 32 bytes.
pub fn checked(bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    out.truncate(bytes.len().saturating_sub(32));
    let checksum = blake3::hash(&out);
    out.extend_from_slice(checksum.as_bytes());
    out
}

/// Has a file of a repository read and written; what was written reads back as what it is.
pub fn read_again(file: StoredFile, bytes: &[u8]) {
    if let Some(once) = file.rewritten(bytes) {
        let again = file.rewritten(&once);
        assert!(again.as_ref() == Some(&once), "{file:?} is another when it is read again");
    }
}

/// Puts the hash of the table behind it into the header at `at`; says where the table ends, if both
/// are there.
pub fn put_table_hash(bytes: &mut [u8], at: usize) -> Option<usize> {
    let header = BlockHeader::decode(bytes.get(at..)?).ok()?;
    let table_at = at.checked_add(BLOCK_HEADER_BYTES)?;
    let end = table_at.checked_add(header.table_bytes as usize)?;
    let hash = blake3::hash(bytes.get(table_at..end)?);
    bytes.get_mut(at + 72..at + 104)?.copy_from_slice(hash.as_bytes());
    Some(end)
}

/// Seals any bytes, as `docs/format.md` says, into a block with a table of so many objects.
pub fn sealed(kind: BlockKind, objects: u8, payload: &[u8]) -> Block<Vec<u8>> {
    let entry = |n| TableEntry { id: id(n), refs: Vec::new() };
    let table = Table { entries: (0..objects).map(entry).collect() }.encode(kind);
    let mut header = BlockHeader {
        suite: Suite::Aes256Gcm,
        kind,
        repository: keys().repository(),
        epoch: 1,
        table_bytes: table.len() as u32,
        payload_bytes: (payload.len() + TAG_BYTES) as u32,
        salt: [3; 32],
        table_hash: *blake3::hash(&table).as_bytes(),
        commitment: [0; 32],
    };
    let sealing_key = blake3::derive_key("holdall v1 sealing key", &MASTER);
    let epoch_key = blake3::keyed_hash(&sealing_key, &1u32.to_le_bytes());
    let mut derived = [0; 64];
    blake3::Hasher::new_keyed(epoch_key.as_bytes())
        .update(&header.derivation_input())
        .finalize_xof()
        .fill(&mut derived);
    let (key, commitment) = derived.split_at(32);
    header.commitment.copy_from_slice(commitment);
    let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key).unwrap());
    let nonce = Nonce::assume_unique_for_key([0; 12]);
    let mut sealed = payload.to_vec();
    key.seal_in_place_append_tag(nonce, Aad::from(header.encode()), &mut sealed).unwrap();
    Block::join(&header, &table, &sealed).unwrap()
}

/// A node that nothing has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing;

/// Nodes in memory; counts how many were fetched.
#[derive(Clone, Default)]
pub struct Nodes {
    /// The nodes.
    pub by_id: HashMap<ObjectId, Arc<Node>>,
    /// How often one was asked for.
    pub fetched: usize,
}

impl NodeSource for Nodes {
    type Error = Missing;

    fn node(&mut self, id: &ObjectId) -> Result<Arc<Node>, Missing> {
        self.fetched += 1;
        self.by_id.get(id).cloned().ok_or(Missing)
    }
}
