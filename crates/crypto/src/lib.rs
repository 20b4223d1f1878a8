//! Keys, sealing and opening: everything that a keeper of a repository must not be able to do.
//!
//! A key ring stands for a repository: one random secret, and a further one for each time that the
//! keys were rotated. Every key is derived from it, each for one purpose; blocks are sealed with keys
//! of their own; the ring itself is stored only wrapped (for a passphrase, a recovery kit or somebody's
//! own key). Clients link this crate. Nothing that a server links can reach it, and that is how "the
//! server cannot read" is kept.
//!
//! It does no I/O, reads no clock and spawns nothing. Randomness is a parameter ([`Entropy`]);
//! only `age` draws its own from the system. Which bytes lie where is written in `docs/format.md`,
//! what is promised against whom in `docs/threat-model.md`.
//!
//! ```
//! use holdall_crypto::{KeyRing, Opener, PlainObject, RepositoryKeys, Sealer, SystemEntropy};
//! use holdall_format::{BlockKind, Suite};
//!
//! let keys = RepositoryKeys::derive(&KeyRing::generate(&mut SystemEntropy));
//! let content = b"a small file";
//! let id = keys.ids().chunk_id(content);
//! let object = PlainObject { id, refs: Vec::new(), len: content.len() };
//!
//! let entropy = Box::new(SystemEntropy);
//! let mut sealer = Sealer::new(keys.sealing(), Suite::Aes256Gcm, 3, entropy);
//! let block = sealer.seal(BlockKind::Chunks, &[object], content)?;
//!
//! let mut opener = Opener::new(keys.sealing(), keys.repository());
//! let opened = opener.open(&block, BlockKind::Chunks)?;
//! assert_eq!(opened.find(&id), Some(&content[..]));
//! # Ok::<(), holdall_crypto::CryptoError>(())
//! ```

mod compressible;
mod entropy;
mod error;
mod key_ring;
mod keys;
mod labels;
mod letters;
mod opened;
mod opener;
mod own_key;
mod payload;
mod record_secret;
mod recovery;
mod recovery_kit;
mod sealer;
mod sealing;
mod secret_text;
mod signing;
mod wrapping;

pub use compressible::worth_compressing;
pub use entropy::{Entropy, SystemEntropy};
pub use error::CryptoError;
pub use key_ring::KeyRing;
pub use keys::{IdKeys, RepositoryKeys, fingerprint};
pub use labels::{LabelError, find_wrapping, free_label};
pub use opened::{OpenedBlock, OpenedObject};
pub use opener::Opener;
pub use own_key::{OwnPrivateKey, OwnPublicKey};
pub use record_secret::{CopiedFrom, RecordSecret};
pub use recovery::RecoverySecret;
pub use recovery_kit::RecoveryKit;
pub use sealer::{Overhead, PlainObject, Sealer};
pub use sealing::{SealingKeys, suite_for_this_cpu};
pub use signing::SigningKey;
pub use wrapping::{
    Opening, WORK_FACTOR_LOG_N, WORK_FACTOR_MAX_LOG_N, check_wrappings, is_rotated_since,
    sign_wrappings, stretching_bytes, unwrap, wrap_again, wrap_for_key, wrap_passphrase,
    wrap_recovery,
};
