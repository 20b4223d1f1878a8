//! What one may ask of a repository, the HTTP client, and pairing.
//!
//! A backup client must not care whether its repository is a directory beside it or a server across
//! the country. [`Repository`] is everything that it may ask; the `repository` crate answers
//! in-process, [`HttpRepository`] asks a server over TLS. One contract suite (feature `contract`)
//! runs against both. What only the owner of a directory may do is [`OwnedRepository`], what only a server is asked
//! for [`ServedRepository`].
//!
//! The trait is blocking: its callers are plain threads, whose waiting is their own back-pressure.
//! Where waiting meets tokio is this crate's `client` module alone.
//!
//! ```no_run
//! use holdall_protocol::{
//!     ClientOptions, HttpRepository, Invite, MachineIdentity, Repository, pair,
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let identity = MachineIdentity::from_seed(&[7; 32])?;
//! let invite = Invite::from_text("holdall1-...")?;
//! let paired = pair(&invite, "laptop", &identity, ClientOptions::default())?;
//! let repository = HttpRepository::connect(paired.address, &identity, ClientOptions::default())?;
//! println!("receipts are signed by {}", repository.describe()?.signer);
//! # Ok(())
//! # }
//! ```

mod admin_token;
mod base32;
mod client;
#[cfg(feature = "contract")]
pub mod contract;
mod error;
mod identity;
mod invite;
mod known_records;
mod pairing;
mod read_sessions;
mod repository;
mod short_code;
pub mod tls;
mod types;
pub mod wire;

pub use admin_token::AdminToken;
pub use client::{
    ClientOptions, HttpRepository, LimitWaits, MeasuredServer, RateLimit, ServerAddress,
    ServerLimit, WireMeter, shown_identity,
};
pub use error::{Denial, RepositoryError};
pub use identity::{MachineIdentity, fingerprint};
pub use invite::{INVITE_MAX_ADDRESSES, Invite, InviteError};
pub use known_records::{ListedRecord, RecordQuery, RecordsDigest, RecordsDigesting};
pub use pairing::{Paired, pair, pair_again};
pub use read_sessions::ReadSessions;
pub use repository::{Compacting, OwnedRepository, Repository, ServedRepository};
pub use short_code::{Agreed, MachineExchange, ShortCode, answer_exchange, invite_by_code};
pub use types::{
    Announced, AskedPrune, BlockPage, BlockProbe, Buried, CommitAnswer, Description, Fetched,
    FormerAccount, NewRepository, PruneReport, Repair, RepairReport, RequestTimes, ScrubDamage,
    ScrubProgress, ScrubReport, SessionGrant, SessionPurpose, SparseBlock, Superseding, Traffic,
    Usage, WaitingDeletion,
};

/// Most ids in one question or one fetch.
pub const MAX_IDS: usize = 16_384;
/// Most bytes of blocks in one put.
pub const MAX_PUT_BYTES: usize = 16 << 20;
/// A fetch answers with blocks until their bytes pass this; the caller asks again for the rest.
pub const FETCH_TARGET_BYTES: usize = 8 << 20;
/// Most blocks in one question for proofs.
pub const MAX_PROBES: usize = 32;
/// Most records in one answer.
pub const MAX_RECORDS: usize = 512;
