//! The key ring: the secrets that a repository's owner must not lose, one for each key epoch.
//!
//! The first is the *master secret*, from which every key of a new repository is derived. Who has to
//! fear that somebody read it, from a stolen computer for instance, begins a new epoch: a further
//! random secret, from which the sealing keys of all new blocks and the key that signs the wrappings
//! are derived from then on. What names things (ids, the chunker, series, tags) stays derived from the
//! master secret, or nothing new would be found to be there already.
//!
//! ```text
//! | magic "HMst" | version u8 | later epochs u8 | master secret 32 | secret 32 of each later epoch |
//! ```

use holdall_format::FormatError;
use holdall_format::limits::LATER_EPOCHS_MAX;
use holdall_format::wire::Reader;
use zeroize::{Zeroize, Zeroizing};

use crate::{CryptoError, Entropy};

const WHAT: &str = "key ring";
const MAGIC: &[u8; 4] = b"HMst";
const VERSION: u8 = 2;

/// 32 random bytes.
type Secret = Zeroizing<[u8; 32]>;

/// The secrets of a repository's key epochs, the master secret first.
///
/// Secret: leaves memory when dropped; not printed.
#[derive(Clone)]
pub struct KeyRing {
    master: Secret,
    later: Vec<Secret>,
}

impl KeyRing {
    /// Draws the ring of a new repository.
    pub fn generate(entropy: &mut dyn Entropy) -> Self {
        Self { master: draw(entropy), later: Vec::new() }
    }

    /// A ring of one epoch.
    pub fn from_master(master: [u8; 32]) -> Self {
        Self { master: Zeroizing::new(master), later: Vec::new() }
    }

    /// A ring of these secrets, the master secret first.
    pub(crate) fn from_secrets(master: Secret, later: Vec<Secret>) -> Self {
        Self { master, later }
    }

    /// The ring with a further epoch, whose secret is drawn.
    ///
    /// # Errors
    /// [`CryptoError::Format`] if it has 256 epochs.
    pub fn with_new_epoch(&self, entropy: &mut dyn Entropy) -> Result<Self, CryptoError> {
        let declared = self.later.len() as u64 + 1;
        if self.later.len() >= LATER_EPOCHS_MAX {
            let (field, limit) = ("later epochs", LATER_EPOCHS_MAX as u64);
            return Err(FormatError::OverLimit { what: WHAT, field, declared, limit }.into());
        }
        let mut next = self.clone();
        next.later.push(draw(entropy));
        Ok(next)
    }

    /// Whether it is `older`, or that with further epochs.
    pub fn continues(&self, older: &Self) -> bool {
        self.master == older.master && self.later.starts_with(&older.later)
    }

    /// The bytes that are wrapped, and kept on a paired computer.
    ///
    /// Secret: whoever has them reads and signs everything.
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let mut out = Zeroizing::new(Vec::with_capacity(6 + 32 * (1 + self.later.len())));
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&[VERSION, u8::try_from(self.later.len()).unwrap_or(u8::MAX)]);
        std::iter::once(&self.master)
            .chain(&self.later)
            .for_each(|secret| out.extend_from_slice(&secret[..]));
        out
    }

    /// Reads what [`KeyRing::encode`] wrote.
    ///
    /// # Errors
    /// [`FormatError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let mut reader = Reader::new(WHAT, bytes);
        reader.magic(MAGIC, VERSION)?;
        let later = reader.u8("later epochs")?;
        let master = read(&mut reader)?;
        let later = (0..later).map(|_| read(&mut reader)).collect::<Result<_, _>>()?;
        reader.finish()?;
        Ok(Self { master, later })
    }

    /// The master secret, and those of the later epochs in their order.
    pub(crate) fn secrets(&self) -> (&[u8; 32], impl Iterator<Item = &[u8; 32]>) {
        (&self.master, self.later.iter().map(|secret| &**secret))
    }

    /// Derives 32 bytes of the master secret for one purpose, which `context` names and nothing else
    /// uses.
    pub(crate) fn derive(&self, context: &'static str) -> Zeroizing<[u8; 32]> {
        derive(&self.master, context)
    }
}

/// Derives 32 bytes of a secret for one purpose.
pub(crate) fn derive(secret: &[u8; 32], context: &'static str) -> Zeroizing<[u8; 32]> {
    Zeroizing::new(blake3::derive_key(context, secret))
}

fn draw(entropy: &mut dyn Entropy) -> Secret {
    let mut bytes = Zeroizing::new([0; 32]);
    entropy.fill(&mut bytes[..]);
    bytes
}

fn read(reader: &mut Reader<'_>) -> Result<Secret, FormatError> {
    let mut bytes: [u8; 32] = reader.array("secret")?;
    let secret = Zeroizing::new(bytes);
    bytes.zeroize();
    Ok(secret)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SystemEntropy;
    use proptest::prelude::*;

    fn secrets(ring: &KeyRing) -> Vec<[u8; 32]> {
        let (master, later) = ring.secrets();
        std::iter::once(master).chain(later).copied().collect()
    }

    #[test]
    fn a_ring_reads_back_with_all_its_epochs() {
        let mut ring = KeyRing::from_master([1; 32]);
        for epochs in 1..=LATER_EPOCHS_MAX {
            let read = KeyRing::decode(&ring.encode()).unwrap();
            assert_eq!(secrets(&read), secrets(&ring));
            assert_eq!(secrets(&read).len(), epochs);
            ring = ring.with_new_epoch(&mut SystemEntropy).unwrap();
        }
        assert!(KeyRing::decode(&ring.encode()).is_ok());
        assert!(ring.with_new_epoch(&mut SystemEntropy).is_err());
    }

    #[test]
    fn a_new_epoch_has_a_secret_of_its_own_and_leaves_the_others() {
        let ring = KeyRing::from_master([1; 32]);
        let next = secrets(&ring.with_new_epoch(&mut SystemEntropy).unwrap());
        let other = secrets(&ring.with_new_epoch(&mut SystemEntropy).unwrap());
        assert_eq!(next[0], [1; 32]);
        assert_ne!(next[1], other[1]);
        assert_ne!(next[1], [1; 32]);
    }

    #[test]
    fn a_ring_continues_itself_and_what_it_came_of() {
        let first = KeyRing::from_master([1; 32]);
        let [second, fork] = [0; 2].map(|_| first.with_new_epoch(&mut SystemEntropy).unwrap());
        assert!(second.continues(&first) && second.continues(&second));
        let others =
            [(&first, &second), (&fork, &second), (&KeyRing::from_master([2; 32]), &first)];
        assert!(others.iter().all(|(ring, older)| !ring.continues(older)));
    }

    proptest! {
        #[test]
        fn random_bytes_are_no_ring(bytes: Vec<u8>) {
            prop_assert!(KeyRing::decode(&bytes).is_err());
        }

        #[test]
        fn a_ring_that_is_cut_or_longer_is_refused(at in 0_usize..200) {
            let ring = KeyRing::from_master([1; 32]).with_new_epoch(&mut SystemEntropy).unwrap();
            let bytes = ring.encode();
            let mut wrong = bytes.to_vec();
            wrong.resize(at, 0);
            prop_assert_eq!(KeyRing::decode(&wrong).is_ok(), at == bytes.len());
        }
    }
}
