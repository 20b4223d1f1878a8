//! The two small things that nothing can make anew, as one file to keep elsewhere: who the server is, and whom it knows.

use std::path::Path;

use holdall_format::PublicKey;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::administration::Administration;
use super::owner;
use crate::ServerError;
use crate::accounts::CopiedAccounts;
use crate::auth::identity::ServerIdentity;
use crate::data_folder::DataFolder;

/// The version of the text.
const VERSION: u32 = 1;

/// Identity and accounts of a server, as text.
///
/// Secret: whoever has it can pretend to be the server. No `Debug`.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct IdentityCopy {
    /// JSON, to be kept as it is.
    #[cfg_attr(feature = "web", schema(value_type = String))]
    pub text: Zeroizing<String>,
    /// How many machines are in it.
    pub machines: usize,
    /// The server's fingerprint.
    pub fingerprint: String,
}

/// What every version of the text says.
#[derive(Deserialize)]
struct Kind {
    holdall_server: u32,
}

#[derive(Serialize, Deserialize)]
struct Copy {
    holdall_server: u32,
    fingerprint: String,
    /// What makes the identity.
    identity: Zeroizing<[u8; 32]>,
    accounts: CopiedAccounts,
}

impl Administration<'_> {
    /// What there is to keep elsewhere.
    pub(super) fn identity_copy(&self) -> Result<IdentityCopy, ServerError> {
        let fingerprint = holdall_protocol::fingerprint(&self.identity);
        let copy = Copy {
            holdall_server: VERSION,
            fingerprint: fingerprint.clone(),
            identity: self.stores.identity_seed()?,
            accounts: self.accounts.copied()?,
        };
        let text = serde_json::to_string_pretty(&copy);
        let text = Zeroizing::new(text.map_err(|error| ServerError::refused(error.to_string()))?);
        self.log("copied the identity and the accounts");
        Ok(IdentityCopy { text, machines: self.accounts.machines().len(), fingerprint })
    }
}

/// Makes the identity and the accounts of such a text those of a data folder that has none; what lies in its
/// `repositories` stays. Returns the identity.
///
/// # Errors
/// [`ServerError::Refused`] for a text of another kind, or a folder that has an identity or accounts; what is wrong
/// with the folder.
pub fn restore_identity(data_dir: &Path, text: &str) -> Result<PublicKey, ServerError> {
    let refused = |error: serde_json::Error| {
        ServerError::refused(format!(
            "it is no whole copy by `holdall admin backup-identity`: {error}"
        ))
    };
    let Kind { holdall_server } = serde_json::from_str(text).map_err(refused)?;
    if holdall_server != VERSION {
        return Err(ServerError::refused("a newer holdall made this copy: update this one"));
    }
    let copy: Copy = serde_json::from_str(text).map_err(refused)?;
    copy.accounts.check()?;
    owner::refuse_others(data_dir)?;
    owner::as_owner(data_dir, || {
        let folder = DataFolder::take(data_dir)?;
        ServerIdentity::refuse_known(&folder)?;
        copy.accounts.put_back(&folder.database())?;
        Ok(ServerIdentity::from_seed(&folder, &copy.identity)?.public())
    })
}
