//! Wrapping the key ring: encrypted copies of it, one for each thing that may open it.
//!
//! Each is a small age file (age-encryption.org/v1) around what [`KeyRing::encode`] writes, so that age
//! alone, and a few lines to derive keys, can read a repository when this program is gone. It is for a
//! public key, its recipient, which stands beside it: so the ring can be wrapped again for everybody
//! when it gets a new epoch. A passphrase opens a second age file, with the private key of a recipient
//! that was drawn for it.
//!
//! The set of them is signed by the newest epoch's key, which only the ring derives: after unwrapping,
//! owner, repository and epochs are compared, and a set that was swapped is refused. A set can be
//! rolled back to an older one of the same epoch; who can open that one could before.

use std::cmp::Ordering;
use std::iter::zip;

use age::secrecy::{ExposeSecret, SecretString};
use age::{DecryptError, Identity, Recipient, scrypt, x25519};
use holdall_format::limits::{LABEL_MAX_BYTES, WRAPPING_MAX_BYTES, WRAPPINGS_MAX};
use holdall_format::{
    FormatError, KeyEpoch, RecoveryIdentity, SignedContext, Wrapping, WrappingKind, WrappingSet,
};
use zeroize::Zeroizing;

use crate::{
    CryptoError, KeyRing, OwnPrivateKey, OwnPublicKey, RecoverySecret, RepositoryKeys, SigningKey,
};

/// The scrypt work factor of new passphrase wrappings: 2^17 rounds, 128 MiB, about half a second.
pub const WORK_FACTOR_LOG_N: u8 = 17;
/// The largest scrypt work factor that is accepted: 2^20 rounds, 1 GiB, a few seconds.
pub const WORK_FACTOR_MAX_LOG_N: u8 = 20;

/// The most rounds of scrypt that are done to try one passphrase on a whole set: as many as 64 new
/// wrappings have, or 8 of the largest; half a minute.
const ROUNDS_MAX: u64 = (WRAPPINGS_MAX as u64) << WORK_FACTOR_LOG_N;

/// What the key ring is to be unwrapped with.
///
/// Secret: not printed.
#[derive(Clone, Copy)]
pub enum Opening<'a> {
    /// A passphrase.
    Passphrase(&'a str),
    /// The secret of a recovery kit.
    Recovery(&'a RecoverySecret),
    /// An age or SSH key of somebody's own, unlocked.
    OwnKey(&'a OwnPrivateKey),
}

impl Opening<'_> {
    fn kind(&self) -> WrappingKind {
        match self {
            Self::Passphrase(_) => WrappingKind::Passphrase,
            Self::Recovery(_) => WrappingKind::Recovery,
            Self::OwnKey(_) => WrappingKind::Recipient,
        }
    }

    /// What decrypts the ring in a wrapping.
    fn identities(&self, wrapping: &Wrapping) -> Result<Vec<Box<dyn Identity>>, CryptoError> {
        match self {
            Self::Passphrase(passphrase) => Ok(vec![Box::new(unlock(wrapping, passphrase)?)]),
            Self::Recovery(secret) => Ok(vec![Box::new(secret.age_identity())]),
            Self::OwnKey(key) => Ok(key.identities()),
        }
    }
}

/// Wraps the key ring for a passphrase, with 2^`log_n` rounds of scrypt
/// ([`WORK_FACTOR_LOG_N`]; kept between 1 and [`WORK_FACTOR_MAX_LOG_N`]).
pub fn wrap_passphrase(ring: &KeyRing, passphrase: &str, log_n: u8) -> Wrapping {
    let mut lock = scrypt::Recipient::new(SecretString::from(passphrase));
    lock.set_work_factor(log_n.clamp(1, WORK_FACTOR_MAX_LOG_N));
    let identity = x25519::Identity::generate();
    let locked = encrypt(&lock, identity.to_string().expose_secret().as_bytes());
    let recipient = identity.to_public();
    Wrapping {
        kind: WrappingKind::Passphrase,
        label: "passphrase".to_owned(),
        recovery_identity: None,
        recipient: recipient.to_string(),
        locked: Some(locked),
        sealed: encrypt(&recipient, &ring.encode()),
    }
}

/// Wraps the key ring for a recovery kit, with a proof that whoever did it has the kit's secret.
pub fn wrap_recovery(ring: &KeyRing, secret: &RecoverySecret) -> Wrapping {
    let recipient = secret.age_identity().to_public();
    Wrapping {
        kind: WrappingKind::Recovery,
        label: "recovery kit".to_owned(),
        recovery_identity: Some(proven_identity(&RepositoryKeys::derive(ring), secret)),
        recipient: recipient.to_string(),
        locked: None,
        sealed: encrypt(&recipient, &ring.encode()),
    }
}

/// What a kit signs in with, and the proof that it is the repository's.
fn proven_identity(keys: &RepositoryKeys, secret: &RecoverySecret) -> RecoveryIdentity {
    let signer = secret.signing_key();
    let (owner, key) = (keys.owner().public(), signer.public());
    let signed = RecoveryIdentity::signed_bytes(keys.repository(), &owner, &key);
    RecoveryIdentity { key, proof: Some(signer.sign(SignedContext::RecoveryIdentity, &signed)) }
}

/// Wraps the key ring for an age or SSH key of somebody's own.
pub fn wrap_for_key(ring: &KeyRing, key: &OwnPublicKey) -> Wrapping {
    Wrapping {
        kind: WrappingKind::Recipient,
        label: key.label().to_owned(),
        recovery_identity: None,
        recipient: key.to_text(),
        locked: None,
        sealed: encrypt(key.recipient(), &ring.encode()),
    }
}

/// Wraps another ring for what a wrapping is for; whatever opened the wrapping opens the new one, and a recovery
/// kit's proof stays.
///
/// # Errors
/// [`CryptoError::BadWrapping`] if its recipient is none that is taken.
pub fn wrap_again(ring: &KeyRing, wrapping: &Wrapping) -> Result<Wrapping, CryptoError> {
    let recipient = OwnPublicKey::from_text(&wrapping.recipient).map_err(|reason| {
        let reason = format!("its recipient: {reason}");
        CryptoError::BadWrapping { label: wrapping.label.clone(), reason }
    })?;
    Ok(Wrapping { sealed: encrypt(recipient.recipient(), &ring.encode()), ..wrapping.clone() })
}

fn encrypt(recipient: &dyn Recipient, plain: &[u8]) -> Vec<u8> {
    #[expect(clippy::expect_used, reason = "one recipient of a known kind, written to memory")]
    try_encrypt(recipient, plain).expect("age encrypts to memory")
}

fn try_encrypt(recipient: &dyn Recipient, plain: &[u8]) -> Result<Vec<u8>, age::EncryptError> {
    let encryptor = age::Encryptor::with_recipients(std::iter::once(recipient))?;
    let mut sealed = Vec::with_capacity(512);
    let mut writer = encryptor.wrap_output(&mut sealed)?;
    std::io::Write::write_all(&mut writer, plain)?;
    writer.finish()?;
    Ok(sealed)
}

/// Unwraps the key ring and checks that it is the one that signed the set.
///
/// Untrusted: the set may be any that a keeper hands out. Each passphrase wrapping that is tried
/// costs at most 1 GiB of memory for a few seconds, and all of them together 2^23 rounds of scrypt;
/// those over that are as ones that cannot be read.
///
/// # Errors
/// [`CryptoError::NoWrapping`] if the set has none of that kind; [`CryptoError::WrongKey`] if none
/// of them opens; [`CryptoError::BadWrapping`] if none opens and one cannot be read;
/// as [`check_wrappings`] if one opens to a ring that is not the set's.
pub fn unwrap(set: &WrappingSet, opening: &Opening<'_>) -> Result<KeyRing, CryptoError> {
    unwrap_within(set, opening, ROUNDS_MAX)
}

fn unwrap_within(
    set: &WrappingSet,
    opening: &Opening<'_>,
    mut rounds_left: u64,
) -> Result<KeyRing, CryptoError> {
    let kind = opening.kind();
    let mut failure = CryptoError::NoWrapping { kind };
    for wrapping in set.wrappings.iter().filter(|wrapping| wrapping.kind == kind) {
        let Some(left) = rounds_left.checked_sub(rounds(wrapping)) else {
            failure = bad(wrapping, "the set asks for too many rounds of scrypt".to_owned());
            continue;
        };
        rounds_left = left;
        match unwrap_one(wrapping, opening) {
            Ok(ring) => {
                return check_wrappings(set, &RepositoryKeys::derive(&ring)).map(|()| ring);
            }
            Err(CryptoError::WrongKey) if matches!(failure, CryptoError::BadWrapping { .. }) => {}
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// Checks that a set is that of the repository whose keys these are, in the same epoch.
///
/// # Errors
/// [`CryptoError::SwappedWrappings`] if it is another one's; [`CryptoError::Rotated`] if it has epochs
/// behind those of the keys, [`CryptoError::SetBack`] if the keys have epochs behind the set's.
pub fn check_wrappings(set: &WrappingSet, keys: &RepositoryKeys) -> Result<(), CryptoError> {
    let is_same = keys.owner().public() == set.owner && keys.repository() == set.repository;
    let (known, there) = (keys.later_epochs(), &set.later_epochs);
    if !is_same || zip(known, there).any(|(known, there)| known.public() != there.key) {
        return Err(CryptoError::SwappedWrappings);
    }
    match there.len().cmp(&known.len()) {
        Ordering::Equal => Ok(()),
        Ordering::Greater => Err(CryptoError::Rotated),
        Ordering::Less => Err(CryptoError::SetBack),
    }
}

/// Whether the keys were rotated since `ring` was kept.
///
/// # Errors
/// As for [`check_wrappings`], but for [`CryptoError::Rotated`].
pub fn is_rotated_since(set: &WrappingSet, ring: &KeyRing) -> Result<bool, CryptoError> {
    match check_wrappings(set, &RepositoryKeys::derive(ring)) {
        Ok(()) => Ok(false),
        Err(CryptoError::Rotated) => Ok(true),
        Err(error) => Err(error),
    }
}

fn unwrap_one(wrapping: &Wrapping, opening: &Opening<'_>) -> Result<KeyRing, CryptoError> {
    let identities = opening.identities(wrapping)?;
    let plain = decrypt(wrapping, &wrapping.sealed, &identities)?;
    KeyRing::decode(&plain).map_err(|error| bad(wrapping, error.to_string()))
}

/// The memory that trying a passphrase on a set takes at least, in bytes: 1 KiB for each round of scrypt. 0 where
/// no passphrase opens it.
pub fn stretching_bytes(set: &WrappingSet) -> u64 {
    let rounds = set.wrappings.iter().map(rounds).filter(|rounds| *rounds > 0);
    rounds.min().unwrap_or(0).saturating_mul(1024)
}

/// How many rounds of scrypt a wrapping costs who tries a passphrase on it; found out without doing any.
fn rounds(wrapping: &Wrapping) -> u64 {
    let Some(locked) = &wrapping.locked else { return 0 };
    let mut identity = scrypt::Identity::new(SecretString::from(""));
    identity.set_max_work_factor(0);
    match try_decrypt(locked, &[Box::new(identity)]) {
        Err(DecryptError::ExcessiveWork { required, .. }) if required <= WORK_FACTOR_MAX_LOG_N => {
            1 << required
        }
        // It is refused before any work is done.
        _ => 0,
    }
}

/// The private key that a passphrase opens.
fn unlock(wrapping: &Wrapping, passphrase: &str) -> Result<x25519::Identity, CryptoError> {
    let mut identity = scrypt::Identity::new(SecretString::from(passphrase));
    identity.set_max_work_factor(WORK_FACTOR_MAX_LOG_N);
    let locked = wrapping.locked.as_deref().unwrap_or_default();
    let text = decrypt(wrapping, locked, &[Box::new(identity)])?;
    let text = str::from_utf8(&text).unwrap_or_default();
    text.parse().map_err(|reason: &str| bad(wrapping, reason.to_owned()))
}

fn bad(wrapping: &Wrapping, reason: String) -> CryptoError {
    CryptoError::BadWrapping { label: wrapping.label.clone(), reason }
}

/// Opens one of a wrapping's age files.
fn decrypt(
    wrapping: &Wrapping,
    sealed: &[u8],
    identities: &[Box<dyn Identity>],
) -> Result<Zeroizing<Vec<u8>>, CryptoError> {
    if sealed.len() > WRAPPING_MAX_BYTES {
        return Err(bad(wrapping, "longer than its limit".to_owned()));
    }
    try_decrypt(sealed, identities).map_err(|error| match error {
        DecryptError::DecryptionFailed
        | DecryptError::KeyDecryptionFailed
        | DecryptError::NoMatchingKeys => CryptoError::WrongKey,
        DecryptError::ExcessiveWork { required, .. } => bad(
            wrapping,
            format!(
                "it asks for 2^{required} rounds of scrypt, the limit is 2^{WORK_FACTOR_MAX_LOG_N}"
            ),
        ),
        other => bad(wrapping, other.to_string()),
    })
}

fn try_decrypt(
    sealed: &[u8],
    identities: &[Box<dyn Identity>],
) -> Result<Zeroizing<Vec<u8>>, DecryptError> {
    let decryptor = age::Decryptor::new_buffered(sealed)?;
    let mut reader = decryptor.decrypt(identities.iter().map(|identity| &**identity))?;
    // Grows at most to the length of `sealed`; large enough from the start, so that no copy of the
    // secret stays behind in memory that was given back.
    let mut plain = Zeroizing::new(Vec::with_capacity(sealed.len()));
    std::io::Read::read_to_end(&mut reader, &mut plain)?;
    Ok(plain)
}

/// The signed bytes of a set of wrappings; a higher `generation` replaces a lower one.
///
/// # Errors
/// [`CryptoError::Format`] for more than 64 wrappings, a label over 255 bytes or a wrapping over
/// 16 KiB.
pub fn sign_wrappings(
    keys: &RepositoryKeys,
    generation: u64,
    wrappings: Vec<Wrapping>,
) -> Result<Vec<u8>, CryptoError> {
    let within = |field, declared: usize, limit: usize| match declared <= limit {
        true => Ok(()),
        false => {
            let (declared, limit) = (declared as u64, limit as u64);
            Err(FormatError::OverLimit { what: "wrapping set", field, declared, limit })
        }
    };
    within("count", wrappings.len(), WRAPPINGS_MAX)?;
    for wrapping in &wrappings {
        within("label", wrapping.label.len(), LABEL_MAX_BYTES)?;
        within("wrapping", wrapping.sealed.len(), WRAPPING_MAX_BYTES)?;
    }
    let (repository, owner) = (keys.repository(), keys.owner().public());
    let later_epochs = signed_epochs(keys);
    let set = WrappingSet { repository, generation, owner, later_epochs, wrappings };
    Ok(set.encode(&keys.newest_epoch().sign(SignedContext::Wrappings, &set.signed_bytes())))
}

/// The epochs behind the first, each signed by the one before.
fn signed_epochs(keys: &RepositoryKeys) -> Vec<KeyEpoch> {
    let later = keys.later_epochs();
    let signers = std::iter::once(keys.owner()).chain(later);
    let sign = |(epoch, (signer, next)): (u32, (&SigningKey, &SigningKey))| {
        let key = next.public();
        let signed = KeyEpoch::signed_bytes(keys.repository(), epoch, &key);
        KeyEpoch { key, signature: signer.sign(SignedContext::Epoch, &signed) }
    };
    (2..).zip(zip(signers, later)).map(sign).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SystemEntropy;
    use proptest::prelude::*;

    const QUICK_LOG_N: u8 = 2;

    fn ring(byte: u8) -> KeyRing {
        KeyRing::from_master([byte; 32])
    }

    fn recovery(byte: u8) -> RecoverySecret {
        RecoverySecret::from_bytes([byte; 32])
    }

    fn set(ring: &KeyRing, wrappings: Vec<Wrapping>) -> WrappingSet {
        let bytes = sign_wrappings(&RepositoryKeys::derive(ring), 1, wrappings).unwrap();
        WrappingSet::decode_signed(&bytes).unwrap()
    }

    fn both() -> WrappingSet {
        let wrappings = vec![
            wrap_passphrase(&ring(1), "correct horse", QUICK_LOG_N),
            wrap_recovery(&ring(1), &recovery(9)),
        ];
        set(&ring(1), wrappings)
    }

    fn failure(set: &WrappingSet, opening: Opening<'_>) -> CryptoError {
        unwrap(set, &opening).err().expect("must not open")
    }

    #[test]
    fn passphrase_and_recovery_secret_each_open_the_same_secret() {
        let secret = recovery(9);
        for opening in [Opening::Passphrase("correct horse"), Opening::Recovery(&secret)] {
            assert_eq!(unwrap(&both(), &opening).unwrap().encode(), ring(1).encode());
        }
    }

    #[test]
    fn a_wrong_passphrase_or_recovery_secret_is_a_wrong_key() {
        let secret = recovery(8);
        for opening in [Opening::Passphrase("battery staple"), Opening::Recovery(&secret)] {
            assert_eq!(failure(&both(), opening), CryptoError::WrongKey);
        }
    }

    #[test]
    fn the_second_of_two_passphrases_opens_too() {
        let wrappings = ["one", "two"].map(|text| wrap_passphrase(&ring(1), text, QUICK_LOG_N));
        let set = set(&ring(1), wrappings.into());
        assert!(unwrap(&set, &Opening::Passphrase("two")).is_ok());
    }

    #[test]
    fn a_set_without_that_kind_says_so() {
        let set = set(&ring(1), vec![wrap_passphrase(&ring(1), "x", QUICK_LOG_N)]);
        let expected = CryptoError::NoWrapping { kind: WrappingKind::Recovery };
        assert_eq!(failure(&set, Opening::Recovery(&recovery(9))), expected);
    }

    #[test]
    fn a_set_signed_by_somebody_elses_key_is_recognised_as_swapped() {
        let swapped = set(&ring(2), vec![wrap_passphrase(&ring(1), "x", QUICK_LOG_N)]);
        let found = failure(&swapped, Opening::Passphrase("x"));
        assert_eq!(found, CryptoError::SwappedWrappings);
    }

    #[test]
    fn a_set_that_has_only_the_owner_or_only_the_repository_of_the_secret_is_swapped_too() {
        let keys = |byte| RepositoryKeys::derive(&ring(byte));
        let own = set(&ring(1), vec![wrap_passphrase(&ring(1), "x", QUICK_LOG_N)]);
        let of_another_owner = WrappingSet { owner: keys(2).owner().public(), ..own.clone() };
        let of_another_repository = WrappingSet { repository: keys(2).repository(), ..own };
        for swapped in [of_another_owner, of_another_repository] {
            let found = failure(&swapped, Opening::Passphrase("x"));
            assert_eq!(found, CryptoError::SwappedWrappings);
        }
    }

    /// A set for a passphrase, a kit and an age key, and the same wrapped again in a new epoch.
    fn rotated() -> (WrappingSet, WrappingSet, KeyRing) {
        let own = OwnPublicKey::from_text(&recovery(5).age_identity().to_public().to_string());
        let mut wrappings = both().wrappings;
        wrappings.push(wrap_for_key(&ring(1), &own.unwrap()));
        let before = set(&ring(1), wrappings);
        let next = ring(1).with_new_epoch(&mut SystemEntropy).unwrap();
        let again = before.wrappings.iter().map(|one| wrap_again(&next, one).unwrap()).collect();
        let after = set(&next, again);
        (before, after, next)
    }

    #[test]
    fn what_opened_a_set_opens_it_after_a_rotation_too() {
        let (_, after, next) = rotated();
        let kit = recovery(9);
        let own = recovery(5).age_identity().to_string();
        let own = OwnPrivateKey::from_text(own.expose_secret()).unwrap();
        let ways =
            [Opening::Passphrase("correct horse"), Opening::Recovery(&kit), Opening::OwnKey(&own)];
        for opening in ways {
            assert_eq!(unwrap(&after, &opening).unwrap().encode(), next.encode());
        }
        assert_eq!(failure(&after, Opening::Passphrase("battery staple")), CryptoError::WrongKey);
    }

    #[test]
    fn the_proof_of_a_kit_holds_after_a_rotation_too() {
        let (before, after, _) = rotated();
        for set in [before, after] {
            assert_eq!(set.recovery_identities(), [recovery(9).signing_key().public()]);
            assert_eq!(set.unproven_identity(&[]), None);
        }
    }

    #[test]
    fn a_ring_is_told_that_it_is_older_or_newer_than_a_set_or_of_another_rotation() {
        let (before, after, next) = rotated();
        let check = |set, ring: &KeyRing| check_wrappings(set, &RepositoryKeys::derive(ring));
        assert_eq!(check(&after, &next), Ok(()));
        assert_eq!(check(&after, &ring(1)), Err(CryptoError::Rotated));
        assert_eq!(check(&before, &next), Err(CryptoError::SetBack));
        let other = ring(1).with_new_epoch(&mut SystemEntropy).unwrap();
        assert_eq!(check(&after, &other), Err(CryptoError::SwappedWrappings));
    }

    #[test]
    fn an_older_wrapping_in_a_rotated_set_is_not_taken() {
        let (before, after, _) = rotated();
        let mixed = WrappingSet { wrappings: before.wrappings, ..after };
        let found = failure(&mixed, Opening::Passphrase("correct horse"));
        assert_eq!(found, CryptoError::Rotated);
    }

    #[test]
    fn a_wrapping_that_asks_for_too_much_work_is_refused_before_it_is_done() {
        let mut set = both();
        let header = b" 2\n";
        let locked = set.wrappings[0].locked.as_mut().unwrap();
        let at = locked.windows(3).position(|w| w == header).unwrap();
        locked.splice(at..at + 3, *b" 40\n");
        let found = failure(&set, Opening::Passphrase("correct horse"));
        assert!(
            matches!(found, CryptoError::BadWrapping { ref reason, .. } if reason.contains("2^40"))
        );
    }

    #[test]
    fn a_set_that_asks_for_too_much_work_in_all_is_given_up_before_it_is_done() {
        let wrappings = ["one", "two", "three"];
        let wrappings = wrappings.map(|text| wrap_passphrase(&ring(1), text, QUICK_LOG_N));
        let set = set(&ring(1), wrappings.into());
        let opening = Opening::Passphrase("three");
        let rounds = |wrappings: u64| wrappings << QUICK_LOG_N;
        assert!(unwrap_within(&set, &opening, rounds(3)).is_ok());
        let found = unwrap_within(&set, &opening, rounds(3) - 1).err().unwrap();
        assert!(
            matches!(found, CryptoError::BadWrapping { ref reason, .. } if reason.contains("rounds"))
        );
    }

    #[test]
    fn more_wrappings_than_the_limit_are_not_signed() {
        let one = wrap_recovery(&ring(1), &recovery(9));
        let many = vec![one; WRAPPINGS_MAX + 1];
        assert!(sign_wrappings(&RepositoryKeys::derive(&ring(1)), 1, many).is_err());
    }

    proptest! {
        #[test]
        fn a_mutated_wrapping_opens_to_the_secret_or_not_at_all(at: usize, flip in 1u8..) {
            let secret = recovery(9);
            let mut wrapping = wrap_recovery(&ring(1), &secret);
            let at = at % wrapping.sealed.len();
            wrapping.sealed[at] ^= flip;
            let set = set(&ring(1), vec![wrapping]);
            if let Ok(opened) = unwrap(&set, &Opening::Recovery(&secret)) {
                prop_assert_eq!(opened.encode(), ring(1).encode());
            }
        }

        #[test]
        fn random_bytes_do_not_open(sealed: Vec<u8>) {
            let secret = recovery(9);
            let kind = WrappingKind::Recovery;
            let recovery_identity =
                Some(RecoveryIdentity { key: secret.signing_key().public(), proof: None });
            let (label, recipient) = (String::new(), String::new());
            let wrapping =
                Wrapping { kind, label, recovery_identity, recipient, locked: None, sealed };
            let set = set(&ring(1), vec![wrapping]);
            prop_assert!(unwrap(&set, &Opening::Recovery(&secret)).is_err());
        }
    }
}
