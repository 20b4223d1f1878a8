//! One of each clear structure, made from fixed bytes and fixed keys.

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use holdall_format::{
    Block, BlockHeader, BlockKind, ChunkerName, Footer, FooterBlock, KeyEpoch, MachineId, ObjectId,
    PublicKey, Receipt, Record, RecordHash, RecordHead, RecordKind, RecoveryIdentity,
    RepositoryConfig, RepositoryId, SeriesId, Signature, SignedContext, StoredRecord, Suite, Table,
    TableEntry, TagToken, Tombstone, TombstoneReason, Wrapping, WrappingKind, WrappingSet,
};

/// An Ed25519 key of a fixed seed.
pub(crate) struct Key(Ed25519KeyPair);

impl Key {
    /// The key whose seed is this byte, 32 times.
    pub(crate) fn new(byte: u8) -> Self {
        Self(Ed25519KeyPair::from_seed_unchecked(&[byte; 32]).unwrap())
    }

    pub(crate) fn public(&self) -> PublicKey {
        PublicKey::from_bytes(self.0.public_key().as_ref().try_into().unwrap())
    }

    pub(crate) fn sign(&self, context: SignedContext, message: &[u8]) -> Signature {
        let signature = self.0.sign(&context.message(message));
        Signature::from_bytes(signature.as_ref().try_into().unwrap())
    }
}

/// Signs records.
pub(crate) fn machine_key() -> Key {
    Key::new(0x11)
}

/// Signs receipts and tombstones.
pub(crate) fn server_key() -> Key {
    Key::new(0x22)
}

/// Signs the configuration, and the key of the second epoch.
pub(crate) fn owner_key() -> Key {
    Key::new(0x33)
}

/// The second epoch's; signs the wrappings.
pub(crate) fn epoch_key() -> Key {
    Key::new(0x44)
}

pub(crate) fn repository() -> RepositoryId {
    RepositoryId::from_bytes([0xaa; 16])
}

fn id(byte: u8) -> ObjectId {
    ObjectId::from_bytes([byte; 32])
}

/// Two nodes, of which the first refers to three objects and the second to none.
pub(crate) fn node_table() -> Table {
    let entry = |id, refs| TableEntry { id, refs };
    Table {
        entries: vec![entry(id(0xb1), vec![id(1), id(2), id(0xb2)]), entry(id(0xb2), Vec::new())],
    }
}

/// Three chunks.
pub(crate) fn chunk_table() -> Table {
    let entry = |byte| TableEntry { id: id(byte), refs: Vec::new() };
    Table { entries: vec![entry(0xc3), entry(0xc1), entry(0xc2)] }
}

/// A block of these objects with a payload that nobody sealed: so many bytes, counting up.
pub(crate) fn block(kind: BlockKind, suite: Suite, table: &Table, payload_bytes: u8) -> Vec<u8> {
    let table = table.encode(kind);
    let payload: Vec<u8> = (0..payload_bytes).collect();
    let header = BlockHeader {
        suite,
        kind,
        repository: repository(),
        epoch: 1,
        table_bytes: u32::try_from(table.len()).unwrap(),
        payload_bytes: u32::from(payload_bytes),
        salt: [0x5a; 32],
        table_hash: *blake3::hash(&table).as_bytes(),
        commitment: [0xcc; 32],
    };
    Block::join(&header, &table, &payload).unwrap().into_bytes()
}

pub(crate) fn node_block() -> Vec<u8> {
    block(BlockKind::Nodes, Suite::Aes256Gcm, &node_table(), 40)
}

pub(crate) fn chunk_block() -> Vec<u8> {
    block(BlockKind::Chunks, Suite::ChaCha20Poly1305, &chunk_table(), 16)
}

/// The footer of a pack of two blocks of nodes, and the payloads before it.
pub(crate) fn pack() -> (Vec<u8>, Footer) {
    let empty = Table::default();
    let blocks = [node_block(), block(BlockKind::Nodes, Suite::ChaCha20Poly1305, &empty, 17)];
    let mut payloads = Vec::new();
    let mut footer = Footer {
        kind: BlockKind::Nodes,
        repository: repository(),
        random: [0x77; 32],
        blocks: Vec::new(),
    };
    for (arrival, bytes) in (1000..).zip(blocks) {
        let block = Block::decode(&bytes[..]).unwrap();
        footer.blocks.push(FooterBlock {
            offset: payloads.len() as u64,
            arrival,
            name: block.name(),
            header: block.header().clone(),
            table_bytes: block.clear_bytes()[holdall_format::BLOCK_HEADER_BYTES..].to_vec(),
        });
        payloads.extend_from_slice(block.payload());
    }
    (payloads, footer)
}

/// A record of that kind with a sealed half that nobody sealed.
pub(crate) fn record(kind: RecordKind, pinned: bool, tags: &[u8]) -> Record {
    let sealed = block(BlockKind::Record, Suite::Aes256Gcm, &Table::default(), 20);
    let head = RecordHead {
        kind,
        pinned,
        repository: repository(),
        machine: MachineId::from_bytes([0x44; 16]),
        key: machine_key().public(),
        series: SeriesId::from_bytes([0x55; 16]),
        sequence: 0x0102_0304_0506_0708,
        root: id(0xb1),
        previous: RecordHash::from_bytes([0x66; 32]),
        sealed_hash: *blake3::hash(&sealed).as_bytes(),
        tags: tags.iter().map(|byte| TagToken::from_bytes([*byte; 16])).collect(),
        amends: (kind == RecordKind::Amendment).then(|| RecordHash::from_bytes([0x88; 32])),
        taken_ns: None,
    };
    let signature = machine_key().sign(SignedContext::Record, &head.signed_bytes());
    Record::new(head, &signature, sealed)
}

/// A snapshot that is a copy.
pub(crate) fn copy() -> Record {
    let Record { head, sealed, .. } = record(RecordKind::Snapshot, false, &[1]);
    let head = RecordHead { taken_ns: Some(0x0102_0304_0506_0708), ..head };
    let signature = machine_key().sign(SignedContext::Record, &head.signed_bytes());
    Record::new(head, &signature, sealed)
}

/// A pinned snapshot with two tags, and the server's answer.
pub(crate) fn stored_record() -> StoredRecord {
    let record = record(RecordKind::Snapshot, true, &[1, 2]);
    let receipt = Receipt {
        clock_sure: true,
        repository: repository(),
        record: record.hash(),
        log_position: 1002,
        received_ns: 1_700_000_000_000_000_001,
        signer: server_key().public(),
    };
    let signature = server_key().sign(SignedContext::Receipt, &receipt.signed_bytes());
    StoredRecord::new(record, receipt, &signature)
}

pub(crate) fn tombstone() -> Tombstone {
    let record = record(RecordKind::Snapshot, false, &[]);
    Tombstone {
        reason: TombstoneReason::Request,
        record: record.hash(),
        log_position: 1003,
        forgotten_ns: -2,
        signer: server_key().public(),
        head_bytes: record.head_bytes,
    }
}

pub(crate) fn config() -> RepositoryConfig {
    RepositoryConfig {
        repository: repository(),
        chunker: ChunkerName::ToeplitzAes,
        suite: Suite::ChaCha20Poly1305,
        leaf_bits: 5,
        inline_limit_bytes: 512,
        owner: owner_key().public(),
    }
}

/// The same set as [`wrapping_set`], as it was before there were proofs.
pub(crate) fn wrapping_set_of_version_3() -> WrappingSet {
    let mut set = wrapping_set();
    let identities = set.wrappings.iter_mut().filter_map(|one| one.recovery_identity.as_mut());
    identities.for_each(|identity| identity.proof = None);
    set
}

/// The server's key in the place of a kit's.
fn recovery_identity() -> RecoveryIdentity {
    let key = server_key().public();
    let signed = RecoveryIdentity::signed_bytes(repository(), &owner_key().public(), &key);
    let proof = Some(server_key().sign(SignedContext::RecoveryIdentity, &signed));
    RecoveryIdentity { key, proof }
}

pub(crate) fn wrapping_set() -> WrappingSet {
    let wrapping = |kind, label: &str, sealed: &[u8]| Wrapping {
        kind,
        label: label.to_owned(),
        recovery_identity: (kind == WrappingKind::Recovery).then(recovery_identity),
        recipient: "age1recipient".to_owned(),
        locked: (kind == WrappingKind::Passphrase).then(|| b"a locked key".to_vec()),
        sealed: sealed.to_vec(),
    };
    let key = epoch_key().public();
    let signed = KeyEpoch::signed_bytes(repository(), 2, &key);
    let signature = owner_key().sign(SignedContext::Epoch, &signed);
    WrappingSet {
        repository: repository(),
        generation: 3,
        owner: owner_key().public(),
        later_epochs: vec![KeyEpoch { key, signature }],
        wrappings: vec![
            wrapping(WrappingKind::Passphrase, "passphrase", b"an age file"),
            wrapping(WrappingKind::Recovery, "recovery kit", b"another"),
            wrapping(WrappingKind::Recipient, "Schlüssel", b""),
        ],
    }
}
