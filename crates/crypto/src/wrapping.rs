//! Wrapping the master secret: encrypted copies of it, one for each thing that may open it.
//!
//! Each is a small age file (age-encryption.org/v1) around
//!
//! ```text
//! | magic "HMst" | version u8 | master secret 32 |
//! ```
//!
//! so that age alone, and a few lines to derive keys, can read a repository when this program is
//! gone. The set of them is signed by the owner key, which only the master secret derives: after
//! unwrapping, owner and repository are compared, and a set that was swapped is refused. A set can
//! be rolled back to an older one of the same repository; who can open that one could before.

use age::scrypt;
use age::secrecy::SecretString;
use age::{DecryptError, Identity, Recipient};
use holdall_format::limits::{LABEL_MAX_BYTES, WRAPPING_MAX_BYTES, WRAPPINGS_MAX};
use holdall_format::wire::Reader;
use holdall_format::{FormatError, SignedContext, Wrapping, WrappingKind, WrappingSet};
use zeroize::{Zeroize, Zeroizing};

use crate::{
    CryptoError, MasterSecret, OwnPrivateKey, OwnPublicKey, RecoverySecret, RepositoryKeys,
};

const WHAT: &str = "wrapped master secret";
const MAGIC: &[u8; 4] = b"HMst";
const VERSION: u8 = 1;

/// The scrypt work factor of new passphrase wrappings: 2^17 rounds, 128 MiB, about half a second.
pub const WORK_FACTOR_LOG_N: u8 = 17;
/// The largest scrypt work factor that is accepted: 2^20 rounds, 1 GiB, a few seconds.
pub const WORK_FACTOR_MAX_LOG_N: u8 = 20;

/// What the master secret is to be unwrapped with.
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

    fn identities(&self) -> Vec<Box<dyn Identity>> {
        match self {
            Self::Passphrase(passphrase) => {
                let mut identity = scrypt::Identity::new(SecretString::from(*passphrase));
                identity.set_max_work_factor(WORK_FACTOR_MAX_LOG_N);
                vec![Box::new(identity)]
            }
            Self::Recovery(secret) => vec![Box::new(secret.age_identity())],
            Self::OwnKey(key) => key.identities(),
        }
    }
}

/// Wraps the master secret for a passphrase, with 2^`log_n` rounds of scrypt
/// ([`WORK_FACTOR_LOG_N`]; kept between 1 and [`WORK_FACTOR_MAX_LOG_N`]).
pub fn wrap_passphrase(master: &MasterSecret, passphrase: &str, log_n: u8) -> Wrapping {
    let mut recipient = scrypt::Recipient::new(SecretString::from(passphrase));
    recipient.set_work_factor(log_n.clamp(1, WORK_FACTOR_MAX_LOG_N));
    wrap(master, &recipient, WrappingKind::Passphrase, "passphrase")
}

/// Wraps the master secret for a recovery kit.
pub fn wrap_recovery(master: &MasterSecret, secret: &RecoverySecret) -> Wrapping {
    let recipient = secret.age_identity().to_public();
    let wrapping = wrap(master, &recipient, WrappingKind::Recovery, "recovery kit");
    Wrapping { recovery_identity: Some(secret.signing_key().public()), ..wrapping }
}

/// Wraps the master secret for an age or SSH key of somebody's own.
pub fn wrap_for_key(master: &MasterSecret, key: &OwnPublicKey) -> Wrapping {
    wrap(master, key.recipient(), WrappingKind::Recipient, key.label())
}

fn wrap(
    master: &MasterSecret,
    recipient: &dyn Recipient,
    kind: WrappingKind,
    label: &str,
) -> Wrapping {
    let plain = [&MAGIC[..], &[VERSION], master.expose()].concat();
    let plain = Zeroizing::new(plain);
    #[expect(clippy::expect_used, reason = "one recipient of a known kind, written to memory")]
    let sealed = encrypt(recipient, &plain).expect("age encrypts to memory");
    Wrapping { kind, label: label.to_owned(), recovery_identity: None, sealed }
}

fn encrypt(recipient: &dyn Recipient, plain: &[u8]) -> Result<Vec<u8>, age::EncryptError> {
    let encryptor = age::Encryptor::with_recipients(std::iter::once(recipient))?;
    let mut sealed = Vec::with_capacity(512);
    let mut writer = encryptor.wrap_output(&mut sealed)?;
    std::io::Write::write_all(&mut writer, plain)?;
    writer.finish()?;
    Ok(sealed)
}

/// Unwraps the master secret and checks that it is the one that signed the set.
///
/// Untrusted: the set may be any that a keeper hands out. Each passphrase wrapping that is tried
/// costs at most 1 GiB of memory for a few seconds.
///
/// # Errors
/// [`CryptoError::NoWrapping`] if the set has none of that kind; [`CryptoError::WrongKey`] if none
/// of them opens; [`CryptoError::BadWrapping`] if none opens and one can not be read;
/// [`CryptoError::SwappedWrappings`] if one opens to a secret that is not the set's.
pub fn unwrap(set: &WrappingSet, opening: &Opening<'_>) -> Result<MasterSecret, CryptoError> {
    let kind = opening.kind();
    let identities = opening.identities();
    let mut failure = CryptoError::NoWrapping { kind };
    for wrapping in set.wrappings.iter().filter(|wrapping| wrapping.kind == kind) {
        match unwrap_one(wrapping, &identities) {
            Ok(master) => return check_owner(set, master),
            Err(CryptoError::WrongKey) if matches!(failure, CryptoError::BadWrapping { .. }) => {}
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

fn check_owner(set: &WrappingSet, master: MasterSecret) -> Result<MasterSecret, CryptoError> {
    check_wrappings(set, &RepositoryKeys::derive(&master)).map(|()| master)
}

/// Checks that a set is that of the repository whose keys these are.
///
/// # Errors
/// [`CryptoError::SwappedWrappings`] if it is not.
pub fn check_wrappings(set: &WrappingSet, keys: &RepositoryKeys) -> Result<(), CryptoError> {
    if keys.owner().public() != set.owner || keys.repository() != set.repository {
        return Err(CryptoError::SwappedWrappings);
    }
    Ok(())
}

fn unwrap_one(
    wrapping: &Wrapping,
    identities: &[Box<dyn Identity>],
) -> Result<MasterSecret, CryptoError> {
    let bad = |reason: String| CryptoError::BadWrapping { label: wrapping.label.clone(), reason };
    if wrapping.sealed.len() > WRAPPING_MAX_BYTES {
        return Err(bad("longer than its limit".to_owned()));
    }
    let plain = decrypt(&wrapping.sealed, identities).map_err(|error| match error {
        DecryptError::DecryptionFailed
        | DecryptError::KeyDecryptionFailed
        | DecryptError::NoMatchingKeys => CryptoError::WrongKey,
        DecryptError::ExcessiveWork { required, .. } => bad(format!(
            "it asks for 2^{required} rounds of scrypt, the limit is 2^{WORK_FACTOR_MAX_LOG_N}"
        )),
        other => bad(other.to_string()),
    })?;
    decode(&plain).map_err(|error| bad(error.to_string()))
}

fn decrypt(
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

fn decode(plain: &[u8]) -> Result<MasterSecret, FormatError> {
    let mut reader = Reader::new(WHAT, plain);
    reader.magic(MAGIC, VERSION)?;
    let mut bytes: [u8; 32] = reader.array("secret")?;
    reader.finish()?;
    let master = MasterSecret::from_bytes(bytes);
    bytes.zeroize();
    Ok(master)
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
    let set = WrappingSet { repository, generation, owner, wrappings };
    Ok(set.encode(&keys.owner().sign(SignedContext::Wrappings, &set.signed_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const QUICK_LOG_N: u8 = 2;

    fn master(byte: u8) -> MasterSecret {
        MasterSecret::from_bytes([byte; 32])
    }

    fn recovery(byte: u8) -> RecoverySecret {
        RecoverySecret::from_bytes([byte; 32])
    }

    fn set(master: &MasterSecret, wrappings: Vec<Wrapping>) -> WrappingSet {
        let bytes = sign_wrappings(&RepositoryKeys::derive(master), 1, wrappings).unwrap();
        WrappingSet::decode_signed(&bytes).unwrap()
    }

    fn both() -> WrappingSet {
        let wrappings = vec![
            wrap_passphrase(&master(1), "correct horse", QUICK_LOG_N),
            wrap_recovery(&master(1), &recovery(9)),
        ];
        set(&master(1), wrappings)
    }

    fn failure(set: &WrappingSet, opening: Opening<'_>) -> CryptoError {
        unwrap(set, &opening).err().expect("must not open")
    }

    #[test]
    fn passphrase_and_recovery_secret_each_open_the_same_secret() {
        let secret = recovery(9);
        for opening in [Opening::Passphrase("correct horse"), Opening::Recovery(&secret)] {
            assert_eq!(unwrap(&both(), &opening).unwrap().expose(), &[1; 32]);
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
        let wrappings = ["one", "two"].map(|text| wrap_passphrase(&master(1), text, QUICK_LOG_N));
        let set = set(&master(1), wrappings.into());
        assert!(unwrap(&set, &Opening::Passphrase("two")).is_ok());
    }

    #[test]
    fn a_set_without_that_kind_says_so() {
        let set = set(&master(1), vec![wrap_passphrase(&master(1), "x", QUICK_LOG_N)]);
        let expected = CryptoError::NoWrapping { kind: WrappingKind::Recovery };
        assert_eq!(failure(&set, Opening::Recovery(&recovery(9))), expected);
    }

    #[test]
    fn a_set_signed_by_somebody_elses_key_is_recognised_as_swapped() {
        let swapped = set(&master(2), vec![wrap_passphrase(&master(1), "x", QUICK_LOG_N)]);
        let found = failure(&swapped, Opening::Passphrase("x"));
        assert_eq!(found, CryptoError::SwappedWrappings);
    }

    #[test]
    fn a_set_that_has_only_the_owner_or_only_the_repository_of_the_secret_is_swapped_too() {
        let keys = |byte| RepositoryKeys::derive(&master(byte));
        let own = set(&master(1), vec![wrap_passphrase(&master(1), "x", QUICK_LOG_N)]);
        let of_another_owner = WrappingSet { owner: keys(2).owner().public(), ..own.clone() };
        let of_another_repository = WrappingSet { repository: keys(2).repository(), ..own };
        for swapped in [of_another_owner, of_another_repository] {
            let found = failure(&swapped, Opening::Passphrase("x"));
            assert_eq!(found, CryptoError::SwappedWrappings);
        }
    }

    #[test]
    fn a_wrapping_that_asks_for_too_much_work_is_refused_before_it_is_done() {
        let mut set = both();
        let header = b" 2\n";
        let at = set.wrappings[0].sealed.windows(3).position(|w| w == header).unwrap();
        set.wrappings[0].sealed.splice(at..at + 3, *b" 40\n");
        let found = failure(&set, Opening::Passphrase("correct horse"));
        assert!(
            matches!(found, CryptoError::BadWrapping { ref reason, .. } if reason.contains("2^40"))
        );
    }

    #[test]
    fn more_wrappings_than_the_limit_are_not_signed() {
        let one = wrap_recovery(&master(1), &recovery(9));
        let many = vec![one; WRAPPINGS_MAX + 1];
        assert!(sign_wrappings(&RepositoryKeys::derive(&master(1)), 1, many).is_err());
    }

    proptest! {
        #[test]
        fn a_mutated_wrapping_opens_to_the_secret_or_not_at_all(at: usize, flip in 1u8..) {
            let secret = recovery(9);
            let mut wrapping = wrap_recovery(&master(1), &secret);
            let at = at % wrapping.sealed.len();
            wrapping.sealed[at] ^= flip;
            let set = set(&master(1), vec![wrapping]);
            if let Ok(master) = unwrap(&set, &Opening::Recovery(&secret)) {
                prop_assert_eq!(master.expose(), &[1; 32]);
            }
        }

        #[test]
        fn random_bytes_do_not_open(sealed: Vec<u8>) {
            let secret = recovery(9);
            let kind = WrappingKind::Recovery;
            let recovery_identity = Some(secret.signing_key().public());
            let wrapping = Wrapping { kind, label: String::new(), recovery_identity, sealed };
            let set = set(&master(1), vec![wrapping]);
            prop_assert!(unwrap(&set, &Opening::Recovery(&secret)).is_err());
        }

        #[test]
        fn random_plain_bytes_are_no_secret(plain: Vec<u8>) {
            prop_assert!(decode(&plain).is_err());
        }
    }
}
