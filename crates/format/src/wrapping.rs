//! Wrappings: a repository's key ring, encrypted to whatever may open it.
//!
//! ```text
//! | magic "HWrp" | version u8 | count u8 | later epochs u8 | zero u8 | repository 16
//! | generation u64 | owner key 32 | per later epoch: as in `key_epoch.rs`
//! | per wrapping: kind u8 | label length u8 | label (UTF-8)
//! |   recovery identity, of a recovery kit only: as in `recovery_identity.rs` | recipient length u8 | recipient (UTF-8)
//! |   of a passphrase only: length u32 | age file of the recipient's private key
//! |   length u32 | age file of the key ring | signature 64 by the newest epoch's key |
//! ```
//!
//! Each is for a public key, its *recipient*, so that whoever has the ring can wrap a new one for
//! everybody without asking anybody. A passphrase opens the private key of a recipient of its own.
//!
//! The set is signed by the newest epoch's key, which is derived from the ring: a keeper that swaps
//! it for another cannot sign it, and whoever unwraps the ring checks. A higher generation replaces a
//! lower one. With a recovery kit stands the identity that it signs in with, so that a keeper lets in
//! exactly the kits of the newest set. Version 3, which is read and not written, has no proofs of them.

use crate::key_epoch::newest_key;
use crate::limits::{LABEL_MAX_BYTES, RECIPIENT_MAX_BYTES, WRAPPING_MAX_BYTES, WRAPPINGS_MAX};
use crate::signature::split_signed;
use crate::wire::{Reader, put_length};
use crate::{
    FormatError, KeyEpoch, PublicKey, RecoveryIdentity, RepositoryId, Signature, SignedContext,
};

const WHAT: &str = "wrapping set";
const MAGIC: &[u8; 4] = b"HWrp";
const VERSION: u8 = 4;
/// Of a set without proofs of its recovery identities.
const VERSION_WITHOUT_PROOFS: u8 = 3;

/// What opens a wrapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WrappingKind {
    /// A passphrase.
    Passphrase,
    /// The secret in a recovery kit.
    Recovery,
    /// An age or SSH key of somebody's own.
    Recipient,
}

impl WrappingKind {
    fn code(self) -> u8 {
        match self {
            Self::Passphrase => 1,
            Self::Recovery => 2,
            Self::Recipient => 3,
        }
    }

    fn from_code(code: u8) -> Option<Self> {
        [Self::Passphrase, Self::Recovery, Self::Recipient]
            .into_iter()
            .find(|kind| kind.code() == code)
    }
}

/// One encrypted copy of the key ring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrapping {
    /// What opens it.
    pub kind: WrappingKind,
    /// A name for people, at most 255 bytes.
    pub label: String,
    /// The identity that a recovery kit signs in with. A wrapping for a kit has it and nothing else
    /// has: any other does not read back.
    pub recovery_identity: Option<RecoveryIdentity>,
    /// The public key that the ring is wrapped for, as age writes it, at most 255 bytes.
    pub recipient: String,
    /// An age file that a passphrase opens: the recipient's private key. A wrapping for a passphrase
    /// has it and nothing else has.
    pub locked: Option<Vec<u8>>,
    /// An age file for the recipient: the key ring.
    pub sealed: Vec<u8>,
}

/// All encrypted copies of a repository's key ring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrappingSet {
    /// The repository.
    pub repository: RepositoryId,
    /// Rises with every change.
    pub generation: u64,
    /// The owner's public key: that of the first epoch.
    pub owner: PublicKey,
    /// The epochs behind the first, at most 255.
    pub later_epochs: Vec<KeyEpoch>,
    /// At most 64.
    pub wrappings: Vec<Wrapping>,
}

impl WrappingSet {
    /// The bytes to be signed in [`SignedContext::Wrappings`].
    pub fn signed_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(1024);
        out.extend_from_slice(MAGIC);
        let count = |items: usize| u8::try_from(items).unwrap_or(u8::MAX);
        let epochs = count(self.later_epochs.len());
        out.extend_from_slice(&[VERSION, count(self.wrappings.len()), epochs, 0]);
        out.extend_from_slice(self.repository.as_bytes());
        out.extend_from_slice(&self.generation.to_le_bytes());
        out.extend_from_slice(self.owner.as_bytes());
        self.later_epochs.iter().for_each(|epoch| epoch.put(&mut out));
        for wrapping in &self.wrappings {
            out.extend_from_slice(&[wrapping.kind.code(), count(wrapping.label.len())]);
            out.extend_from_slice(wrapping.label.as_bytes());
            wrapping.recovery_identity.iter().for_each(|identity| identity.put(&mut out));
            out.push(count(wrapping.recipient.len()));
            out.extend_from_slice(wrapping.recipient.as_bytes());
            for file in wrapping.locked.iter().chain([&wrapping.sealed]) {
                put_length(&mut out, file.len());
                out.extend_from_slice(file);
            }
        }
        out
    }

    /// The identities of all recovery kits.
    pub fn recovery_identities(&self) -> Vec<PublicKey> {
        self.identities().map(|identity| identity.key).collect()
    }

    /// The first identity of a recovery kit that is neither proven nor one of `known`.
    pub fn unproven_identity(&self, known: &[PublicKey]) -> Option<PublicKey> {
        let is_unproven =
            |one: &&RecoveryIdentity| one.proof.is_none() && !known.contains(&one.key);
        self.identities().find(is_unproven).map(|identity| identity.key)
    }

    fn identities(&self) -> impl Iterator<Item = &RecoveryIdentity> {
        self.wrappings.iter().filter_map(|wrapping| wrapping.recovery_identity.as_ref())
    }

    /// The stored bytes.
    pub fn encode(&self, signature: &Signature) -> Vec<u8> {
        [&self.signed_bytes()[..], signature.as_bytes()].concat()
    }

    /// Reads a set and checks that the newest epoch's key signed it, each epoch's the next one, and each recovery
    /// identity its proof, if it has one.
    ///
    /// # Errors
    /// [`FormatError`].
    pub fn decode_signed(bytes: &[u8]) -> Result<Self, FormatError> {
        let (signed, signature) = split_signed(WHAT, bytes)?;
        let mut reader = Reader::new(WHAT, signed);
        let version = reader.magic_within(MAGIC, VERSION_WITHOUT_PROOFS..=VERSION)?;
        let [count, epochs, 0] = reader.array("count")? else {
            return Err(reader.invalid("reserved fields", "not zero"));
        };
        if usize::from(count) > WRAPPINGS_MAX {
            return Err(reader.invalid("count", "over its limit"));
        }
        let repository = RepositoryId::from_bytes(reader.array("repository")?);
        let generation = reader.u64("generation")?;
        let owner = PublicKey::from_bytes(reader.array("owner")?);
        let later_epochs =
            (0..epochs).map(|_| KeyEpoch::read(&mut reader)).collect::<Result<Vec<_>, _>>()?;
        let has_proofs = version == VERSION;
        let wrappings = (0..count)
            .map(|_| decode_wrapping(&mut reader, has_proofs))
            .collect::<Result<_, _>>()?;
        reader.finish()?;
        let signer = newest_key(repository, owner, &later_epochs)?;
        signer.verify(SignedContext::Wrappings, signed, &signature)?;
        let set = Self { repository, generation, owner, later_epochs, wrappings };
        set.identities().try_for_each(|identity| identity.verify(repository, &owner))?;
        Ok(set)
    }
}

fn decode_wrapping(reader: &mut Reader<'_>, has_proofs: bool) -> Result<Wrapping, FormatError> {
    let kind = WrappingKind::from_code(reader.u8("kind")?)
        .ok_or_else(|| reader.invalid("kind", "unknown"))?;
    let label = short_text(reader, "label", LABEL_MAX_BYTES)?;
    let recovery_identity = match kind {
        WrappingKind::Recovery => Some(RecoveryIdentity::read(reader, has_proofs)?),
        WrappingKind::Passphrase | WrappingKind::Recipient => None,
    };
    let recipient = short_text(reader, "recipient", RECIPIENT_MAX_BYTES)?;
    let locked = match kind {
        WrappingKind::Passphrase => Some(age_file(reader)?),
        WrappingKind::Recovery | WrappingKind::Recipient => None,
    };
    let sealed = age_file(reader)?;
    Ok(Wrapping { kind, label, recovery_identity, recipient, locked, sealed })
}

fn short_text(
    reader: &mut Reader<'_>,
    field: &'static str,
    limit_bytes: usize,
) -> Result<String, FormatError> {
    let len = usize::from(reader.u8(field)?).min(limit_bytes);
    let text = std::str::from_utf8(reader.bytes(field, len)?);
    text.map(str::to_owned).map_err(|_| reader.invalid(field, "not UTF-8"))
}

fn age_file(reader: &mut Reader<'_>) -> Result<Vec<u8>, FormatError> {
    let len = reader.length("wrapping length", WRAPPING_MAX_BYTES)?;
    Ok(reader.bytes("wrapping", len)?.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::tests::TestKey;
    use proptest::prelude::*;

    fn wrapping(kind: WrappingKind, label: &str) -> Wrapping {
        Wrapping {
            kind,
            label: label.into(),
            recovery_identity: (kind == WrappingKind::Recovery).then(|| proven(&TestKey::of(7))),
            recipient: "age1".into(),
            locked: (kind == WrappingKind::Passphrase).then(|| vec![9; 20]),
            sealed: vec![8; 30],
        }
    }

    const REPOSITORY: RepositoryId = RepositoryId::from_bytes([1; 16]);

    /// The identity of a kit with that key, for the owner whose key is the first of [`keys`].
    fn proven(kit: &TestKey) -> RecoveryIdentity {
        let key = kit.public();
        let signed = RecoveryIdentity::signed_bytes(REPOSITORY, &keys()[0].public(), &key);
        RecoveryIdentity { key, proof: Some(kit.sign(SignedContext::RecoveryIdentity, &signed)) }
    }

    /// A set with epochs of these keys behind the owner's, signed by the key at `signer`.
    fn set_of(keys: &[TestKey], signer: usize) -> (WrappingSet, Vec<u8>) {
        let repository = REPOSITORY;
        let epoch = |(epoch, pair): (u32, &[TestKey])| {
            let key = pair[1].public();
            let signed = KeyEpoch::signed_bytes(repository, epoch, &key);
            KeyEpoch { key, signature: pair[0].sign(SignedContext::Epoch, &signed) }
        };
        let set = WrappingSet {
            repository,
            generation: 2,
            owner: keys[0].public(),
            later_epochs: (2..).zip(keys.windows(2)).map(epoch).collect(),
            wrappings: vec![
                wrapping(WrappingKind::Passphrase, "passphrase"),
                wrapping(WrappingKind::Recovery, ""),
            ],
        };
        let signature = keys[signer].sign(SignedContext::Wrappings, &set.signed_bytes());
        let bytes = set.encode(&signature);
        (set, bytes)
    }

    fn keys() -> [TestKey; 3] {
        [1, 2, 3].map(TestKey::of)
    }

    #[test]
    fn a_wrapping_set_reads_back() {
        for count in 1..=3 {
            let (set, bytes) = set_of(&keys()[..count], count - 1);
            assert_eq!(WrappingSet::decode_signed(&bytes), Ok(set));
        }
    }

    /// How a set with that identity of its kit reads back.
    fn read_with(identity: RecoveryIdentity) -> Result<WrappingSet, FormatError> {
        let (mut set, _) = set_of(&keys(), 2);
        set.wrappings[1].recovery_identity = Some(identity);
        let signature = keys()[2].sign(SignedContext::Wrappings, &set.signed_bytes());
        WrappingSet::decode_signed(&set.encode(&signature))
    }

    #[test]
    fn a_proof_by_another_key_or_for_another_repository_or_owner_is_refused() {
        let kit = TestKey::of(7);
        let key = kit.public();
        let by = |signer: &TestKey, repository: u8, owner: &TestKey| {
            let repository = RepositoryId::from_bytes([repository; 16]);
            let signed = RecoveryIdentity::signed_bytes(repository, &owner.public(), &key);
            let proof = Some(signer.sign(SignedContext::RecoveryIdentity, &signed));
            read_with(RecoveryIdentity { key, proof })
        };
        let [owner, other, _] = keys();
        assert!(by(&kit, 1, &owner).is_ok());
        for refused in [by(&other, 1, &owner), by(&kit, 2, &owner), by(&kit, 1, &other)] {
            assert_eq!(refused, Err(FormatError::BadSignature { what: "recovery identity" }));
        }
    }

    #[test]
    fn an_identity_without_a_proof_reads_back_and_is_unproven_unless_it_is_known() {
        let [kit, other] = [7, 8].map(|seed| TestKey::of(seed).public());
        let unproven = read_with(RecoveryIdentity { key: kit, proof: None }).unwrap();
        assert_eq!(unproven.unproven_identity(&[]), Some(kit));
        assert_eq!(unproven.unproven_identity(&[other]), Some(kit));
        assert_eq!(unproven.unproven_identity(&[other, kit]), None);
        assert_eq!(set_of(&keys(), 2).0.unproven_identity(&[]), None);
    }

    #[test]
    fn a_set_that_an_earlier_epoch_s_key_signed_is_refused() {
        for signer in 0..2 {
            let (_, bytes) = set_of(&keys(), signer);
            let refused = WrappingSet::decode_signed(&bytes).unwrap_err();
            assert_eq!(refused, FormatError::BadSignature { what: "wrapping set" });
        }
    }

    #[test]
    fn an_epoch_that_another_than_the_one_before_signed_is_refused() {
        let (set, _) = set_of(&keys(), 2);
        let [first, second] = &set.later_epochs[..] else { panic!() };
        let of_another_number = KeyEpoch { key: second.key, ..first.clone() };
        let chains = [
            vec![second.clone()],
            vec![second.clone(), first.clone()],
            vec![first.clone(), of_another_number],
        ];
        for later_epochs in chains {
            let set = WrappingSet { later_epochs, ..set.clone() };
            let signature = keys()[2].sign(SignedContext::Wrappings, &set.signed_bytes());
            let refused = WrappingSet::decode_signed(&set.encode(&signature)).unwrap_err();
            assert_eq!(refused, FormatError::BadSignature { what: "key epoch" });
        }
    }

    proptest! {
        #[test]
        fn any_changed_bit_of_a_wrapping_set_is_refused(at: usize, flip in 1u8..) {
            let mut bytes = set_of(&keys(), 2).1;
            let at = at % bytes.len();
            bytes[at] ^= flip;
            prop_assert!(WrappingSet::decode_signed(&bytes).is_err());
        }
    }
}
