//! Makes blocks and records that look right to a keeper, with payloads that nobody could open.

use std::sync::atomic::{AtomicU64, Ordering};

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use bytes::Bytes;
use holdall_format::{
    Block, BlockHeader, BlockKind, ChunkerName, KeyEpoch, MachineId, ObjectId, PublicKey,
    ReceiptSigner, Record, RecordHash, RecordHead, RecordKind, RecoveryIdentity, RepositoryConfig,
    RepositoryId, SIGNATURE_BYTES, SeriesId, Signature, SignedContext, Suite, TAG_BYTES, Table,
    TableEntry, Wrapping, WrappingKind, WrappingSet,
};

use crate::NewRepository;

/// An Ed25519 key for tests.
pub struct TestKey(Ed25519KeyPair);

impl TestKey {
    /// The key of a seed.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self(Ed25519KeyPair::from_seed_unchecked(seed).expect("every 32 bytes are a seed"))
    }

    /// The public half.
    pub fn public(&self) -> PublicKey {
        let bytes = self.0.public_key().as_ref();
        PublicKey::from_bytes(bytes.try_into().expect("Ed25519 keys have 32 bytes"))
    }

    /// Signs in a context.
    pub fn sign(&self, context: SignedContext, message: &[u8]) -> Signature {
        let signature = self.0.sign(&context.message(message));
        Signature::from_bytes(signature.as_ref().try_into().expect("signatures have 64 bytes"))
    }
}

impl ReceiptSigner for TestKey {
    fn public(&self) -> PublicKey {
        self.public()
    }

    fn sign(&self, context: SignedContext, message: &[u8]) -> Signature {
        self.sign(context, message)
    }
}

/// Forges what a client of one repository would send.
pub struct Forge {
    /// The repository's id.
    pub repository: RepositoryId,
    /// The machine that signs records.
    pub machine: MachineId,
    /// Its key.
    pub key: TestKey,
    owner: TestKey,
    salt: AtomicU64,
}

impl Forge {
    /// A forge for a repository of that number and a machine.
    pub fn new(number: u8, machine: MachineId, machine_seed: &[u8; 32]) -> Self {
        Self {
            repository: RepositoryId::from_bytes([number; 16]),
            machine,
            key: TestKey::from_seed(machine_seed),
            owner: TestKey::from_seed(&[number; 32]),
            salt: AtomicU64::new(1),
        }
    }

    /// What is needed to make the repository.
    pub fn new_repository(&self) -> NewRepository {
        NewRepository { config: self.config(), wrappings: self.wrappings(1) }
    }

    /// A signed configuration.
    pub fn config(&self) -> Bytes {
        let config = RepositoryConfig {
            repository: self.repository,
            chunker: ChunkerName::ToeplitzAes,
            suite: Suite::Aes256Gcm,
            leaf_bits: 5,
            inline_limit_bytes: 512,
            owner: self.owner.public(),
        };
        config.encode(&self.owner.sign(SignedContext::Config, &config.signed_bytes())).into()
    }

    /// A signed set of one wrapping, for a passphrase.
    pub fn wrappings(&self, generation: u64) -> Bytes {
        self.wrappings_of(generation, vec![wrapping(WrappingKind::Passphrase, None)])
    }

    /// A signed set of wrappings for recovery kits with these keys, each with its proof.
    pub fn wrappings_for_kits(&self, generation: u64, kits: &[TestKey]) -> Bytes {
        let kits = kits.iter().map(|kit| {
            let (owner, key) = (self.owner.public(), kit.public());
            let signed = RecoveryIdentity::signed_bytes(self.repository, &owner, &key);
            let proof = Some(kit.sign(SignedContext::RecoveryIdentity, &signed));
            wrapping(WrappingKind::Recovery, Some(RecoveryIdentity { key, proof }))
        });
        self.wrappings_of(generation, kits.collect())
    }

    /// A signed set of one wrapping for a recovery kit, without a proof.
    pub fn wrappings_for_unproven(&self, generation: u64, kit: PublicKey) -> Bytes {
        let identity = RecoveryIdentity { key: kit, proof: None };
        self.wrappings_of(generation, vec![wrapping(WrappingKind::Recovery, Some(identity))])
    }

    /// The same as version 3 has it, in which there are no proofs.
    pub fn wrappings_of_version_3(&self, generation: u64, kit: PublicKey) -> Bytes {
        let mut signed = self.wrappings_for_unproven(generation, kit).to_vec();
        signed.truncate(signed.len() - SIGNATURE_BYTES);
        signed[4] = 3;
        let kit_at = signed.windows(32).position(|bytes| bytes == kit.as_bytes());
        signed.remove(kit_at.expect("the set names the kit") + 32);
        let signature = self.owner.sign(SignedContext::Wrappings, &signed);
        [&signed[..], signature.as_bytes()].concat().into()
    }

    /// A signed set of these wrappings.
    pub fn wrappings_of(&self, generation: u64, wrappings: Vec<Wrapping>) -> Bytes {
        self.signed(generation, wrappings, &[])
    }

    /// A signed set of one wrapping, in the newest of the epochs of these keys behind the first.
    pub fn wrappings_in_epoch(&self, generation: u64, later: &[TestKey]) -> Bytes {
        self.signed(generation, vec![wrapping(WrappingKind::Passphrase, None)], later)
    }

    fn signed(&self, generation: u64, wrappings: Vec<Wrapping>, later: &[TestKey]) -> Bytes {
        let (repository, mut newest) = (self.repository, &self.owner);
        let mut later_epochs = Vec::new();
        for (epoch, next) in (2..).zip(later) {
            let key = next.public();
            let signed = KeyEpoch::signed_bytes(repository, epoch, &key);
            later_epochs
                .push(KeyEpoch { key, signature: newest.sign(SignedContext::Epoch, &signed) });
            newest = next;
        }
        let owner = self.owner.public();
        let set = WrappingSet { repository, generation, owner, later_epochs, wrappings };
        set.encode(&newest.sign(SignedContext::Wrappings, &set.signed_bytes())).into()
    }

    /// A block of chunks with these ids. Two calls never give the same block.
    pub fn chunks(&self, ids: &[ObjectId]) -> Bytes {
        self.chunks_of_bytes(ids, 64)
    }

    /// A block of chunks whose payload is that long.
    pub fn chunks_of_bytes(&self, ids: &[ObjectId], payload_bytes: usize) -> Bytes {
        let entries = ids.iter().map(|&id| TableEntry { id, refs: vec![] }).collect();
        self.block(BlockKind::Chunks, entries, payload_bytes)
    }

    /// A block of nodes with these ids and references (in any order).
    pub fn nodes(&self, nodes: &[(ObjectId, &[ObjectId])]) -> Bytes {
        let entries = nodes.iter().map(|(id, refs)| {
            let mut refs = refs.to_vec();
            refs.sort_unstable();
            refs.dedup();
            TableEntry { id: *id, refs }
        });
        self.block(BlockKind::Nodes, entries.collect(), 64)
    }

    /// A block of any kind.
    pub fn block(&self, kind: BlockKind, entries: Vec<TableEntry>, payload_bytes: usize) -> Bytes {
        let salt = self.salt.fetch_add(1, Ordering::Relaxed);
        let salt = *blake3::hash(&salt.to_le_bytes()).as_bytes();
        let table = Table { entries }.encode(kind);
        let mut payload = vec![0; payload_bytes.max(TAG_BYTES)];
        blake3::Hasher::new().update(&salt).finalize_xof().fill(&mut payload);
        let header = BlockHeader {
            suite: Suite::Aes256Gcm,
            kind,
            repository: self.repository,
            epoch: 0,
            table_bytes: u32::try_from(table.len()).expect("tables are small"),
            payload_bytes: u32::try_from(payload.len()).expect("payloads are small"),
            salt,
            table_hash: *blake3::hash(&table).as_bytes(),
            commitment: *blake3::hash(&salt).as_bytes(),
        };
        Block::join(&header, &table, &payload).expect("the parts fit").into_bytes().into()
    }

    /// A signed record of this machine behind `previous`, which is its hash and sequence number.
    pub fn record(
        &self,
        kind: RecordKind,
        root: ObjectId,
        previous: Option<(RecordHash, u64)>,
    ) -> Bytes {
        self.sign(self.record_head(kind, root, previous))
    }

    /// A signed amendment of a snapshot, behind `previous`.
    pub fn amendment(
        &self,
        amended: RecordHash,
        root: ObjectId,
        previous: Option<(RecordHash, u64)>,
    ) -> Bytes {
        let head = self.record_head(RecordKind::Amendment, root, previous);
        self.sign(RecordHead { amends: Some(amended), pinned: true, ..head })
    }

    /// The clear half of such a record.
    pub fn record_head(
        &self,
        kind: RecordKind,
        root: ObjectId,
        previous: Option<(RecordHash, u64)>,
    ) -> RecordHead {
        RecordHead {
            kind,
            pinned: false,
            repository: self.repository,
            machine: self.machine,
            key: self.key.public(),
            series: SeriesId::from_bytes([3; 16]),
            sequence: previous.map_or(1, |(_, sequence)| sequence + 1),
            root,
            previous: previous.map_or(RecordHash::from_bytes([0; 32]), |(hash, _)| hash),
            sealed_hash: [0; 32],
            tags: vec![],
            amends: None,
            taken_ns: None,
        }
    }

    /// Signs a head with the machine's key and joins a sealed half to it.
    pub fn sign(&self, head: RecordHead) -> Bytes {
        Self::sign_with(&self.key, head)
    }

    /// Signs a head with any key.
    pub fn sign_with(key: &TestKey, mut head: RecordHead) -> Bytes {
        let sealed = vec![9; 100];
        head.sealed_hash = *blake3::hash(&sealed).as_bytes();
        let signature = key.sign(SignedContext::Record, &head.signed_bytes());
        Record::new(head, &signature, sealed).encode().into()
    }
}

fn wrapping(kind: WrappingKind, recovery_identity: Option<RecoveryIdentity>) -> Wrapping {
    Wrapping {
        kind,
        label: "contract".into(),
        recovery_identity,
        recipient: "age1contract".into(),
        locked: (kind == WrappingKind::Passphrase).then(|| vec![2; 64]),
        sealed: vec![1; 64],
    }
}

/// An object id that nobody else has.
pub(super) fn id(name: impl AsRef<[u8]>) -> ObjectId {
    ObjectId::from_bytes(*blake3::hash(name.as_ref()).as_bytes())
}

/// As many ids with numbers behind a common name.
pub(super) fn ids(name: &str, count: usize) -> Vec<ObjectId> {
    (0..count).map(|number| id(format!("{name} {number}"))).collect()
}
