//! Tokens: what an administrator hands to somebody who may ask for deletions in one repository.

use holdall_protocol::AdminToken;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::{Accounts, lives};
use crate::ServerError;
use crate::auth::identity::random;

/// How long a token is accepted.
const LIFE_NS: i64 = 24 * 3600 * 1_000_000_000;

/// What is remembered of a token, under its hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TokenRow {
    pub(super) repository: String,
    /// In nanoseconds since 1970 UTC.
    pub(super) expires_ns: i64,
}

impl Accounts {
    /// Makes a token for a repository, and says until when it is accepted. What has lapsed is
    /// forgotten.
    pub(crate) fn make_token(&self, repository: &str) -> Result<(AdminToken, i64), ServerError> {
        let mut bytes = Zeroizing::new([0; AdminToken::LEN]);
        random(&mut bytes[..])?;
        let token = AdminToken::new(bytes);
        let now_ns = self.now_ns();
        let expires_ns = now_ns.saturating_add(LIFE_NS);
        let row = TokenRow { repository: repository.to_owned(), expires_ns };
        let mut state = self.state();
        let lapsed = state.tokens.iter().filter(|(_, row)| row.expires_ns <= now_ns);
        let lapsed: Vec<_> = lapsed.map(|(hash, _)| *hash).collect();
        let hash = token_hash(&token);
        self.database.change(|changes| {
            lapsed.iter().try_for_each(|old| changes.drop_token(old))?;
            changes.put_token(&hash, &row)
        })?;
        lapsed.iter().for_each(|old| drop(state.tokens.remove(old)));
        state.tokens.insert(hash, row);
        Ok((token, expires_ns))
    }

    /// Checks that a token is for that repository and has not lapsed.
    ///
    /// # Errors
    /// [`ServerError::Refused`].
    pub(crate) fn check_token(
        &self,
        token: &AdminToken,
        repository: &str,
    ) -> Result<(), ServerError> {
        let now_ns = self.now_ns();
        let lives = |row: &TokenRow| lives(row.expires_ns - LIFE_NS, LIFE_NS, now_ns);
        let is_good = |row: &TokenRow| row.repository == repository && lives(row);
        if self.state().tokens.get(&token_hash(token)).is_some_and(is_good) {
            return Ok(());
        }
        Err(ServerError::refused(
            "this administrator's token is for another repository, lapsed, or none of this server; \
             `holdall admin token` makes one for a day",
        ))
    }
}

/// Under what a token is remembered.
fn token_hash(token: &AdminToken) -> [u8; 32] {
    blake3::derive_key("holdall v1 admin token", token.as_bytes())
}
