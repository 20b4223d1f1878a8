//! How the certificate for browsers is that an authority gives.

use serde::{Deserialize, Serialize};

use super::Accounts;
use crate::ServerError;

const SETTING: &str = "web.certificate";

/// How a certificate of an authority is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct CertificateStatus {
    /// For which names; none if no authority was ever asked.
    pub names: Vec<String>,
    /// Until when it is good, in nanoseconds since 1970 UTC; `None` while there is none.
    pub until_ns: Option<i64>,
    /// Why it could not be got or renewed, if that is so.
    pub problem: Option<String>,
}

impl Accounts {
    /// How it was when it was looked last.
    pub(crate) fn certificate(&self) -> Result<CertificateStatus, ServerError> {
        self.read_json(SETTING)
    }

    /// Notes how it is.
    pub(crate) fn note_certificate(&self, now: &CertificateStatus) -> Result<(), ServerError> {
        match self.certificate()? == *now {
            true => Ok(()),
            false => self.put_json(SETTING, now),
        }
    }
}
