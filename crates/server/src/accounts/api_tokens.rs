//! Tokens with which programs ask for what pages show: each with a name, what it may have done, and an end if it has one.
//! Only their hashes are kept.

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::web_code::random_letters;
use super::{Accounts, lives};
use crate::ServerError;
use crate::auth::scope::Scope;

const SETTING: &str = "web.tokens";
const PREFIX: &str = "holdall-api-";
/// Letters behind that, of 5 bits each: 160 bits.
const LETTERS: usize = 32;
/// Most tokens at once, and most characters of a name.
const MOST: usize = 100;
const NAME_MOST: usize = 64;
/// The longest life that a token may have that ends.
const LIFE_MOST_S: u64 = 10 * 366 * 24 * 3600;

/// What is remembered of a token, and what an administrator sees of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct ApiToken {
    /// What it is called.
    pub name: String,
    /// What may be done with it.
    pub scope: Scope,
    /// When it was made, in nanoseconds since 1970 UTC.
    pub made_ns: i64,
    /// For how many seconds it is accepted; `None` until it is revoked.
    pub valid_for_s: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct Row {
    hash: [u8; 32],
    #[serde(flatten)]
    token: ApiToken,
}

impl ApiToken {
    /// When it lapses, in nanoseconds since 1970 UTC; `None` if it does not.
    pub fn expires_ns(&self) -> Option<i64> {
        Some(self.made_ns.saturating_add(self.life_ns()?))
    }

    fn life_ns(&self) -> Option<i64> {
        i64::try_from(self.valid_for_s?).ok()?.checked_mul(1_000_000_000)
    }

    fn lives(&self, now_ns: i64) -> bool {
        self.life_ns().is_none_or(|life_ns| lives(self.made_ns, life_ns, now_ns))
    }
}

impl Accounts {
    /// Makes a token in the place of any of the same name. What has lapsed is forgotten.
    ///
    /// # Errors
    /// [`ServerError::Refused`] for a name that is none, and for too many tokens.
    pub(crate) fn make_api_token(
        &self,
        name: &str,
        scope: Scope,
        valid_for_s: Option<u64>,
    ) -> Result<Zeroizing<String>, ServerError> {
        if name.is_empty() || name.chars().count() > NAME_MOST || name.chars().any(char::is_control)
        {
            let reason = format!("a token's name has 1 to {NAME_MOST} characters");
            return Err(ServerError::refused(reason));
        }
        if valid_for_s.is_some_and(|valid_for_s| !(1..=LIFE_MOST_S).contains(&valid_for_s)) {
            return Err(ServerError::refused(
                "a token may be good for a second to ten years, or until it is revoked",
            ));
        }
        let text = Zeroizing::new(format!("{PREFIX}{}", *random_letters(LETTERS, LETTERS)?));
        let made_ns = self.now_ns();
        let token = ApiToken { name: name.to_owned(), scope, made_ns, valid_for_s };
        self.change_tokens(|rows| {
            rows.retain(|row| row.token.name != name && row.token.lives(made_ns));
            if rows.len() >= MOST {
                return Err(ServerError::refused(format!("there are {MOST} tokens; revoke one")));
            }
            rows.push(Row { hash: hash_of(&text), token });
            Ok(())
        })?;
        Ok(text)
    }

    /// All tokens that are accepted, by name.
    pub(crate) fn api_tokens(&self) -> Result<Vec<ApiToken>, ServerError> {
        let now_ns = self.now_ns();
        let tokens = self.token_rows()?.into_iter().map(|row| row.token);
        let mut tokens: Vec<_> = tokens.filter(|token| token.lives(now_ns)).collect();
        tokens.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(tokens)
    }

    /// Takes a token away.
    ///
    /// # Errors
    /// [`ServerError::Refused`] if there is none of that name.
    pub(crate) fn revoke_api_token(&self, name: &str) -> Result<ApiToken, ServerError> {
        self.change_tokens(|rows| match rows.iter().position(|row| row.token.name == name) {
            Some(at) => Ok(rows.remove(at).token),
            None => Err(ServerError::refused(format!("there is no token {name:?}"))),
        })
    }

    /// What somebody may who shows that token; nothing for what is none.
    #[cfg(feature = "web")]
    pub(crate) fn api_token(&self, text: &str) -> Result<Option<ApiToken>, ServerError> {
        let (hash, now_ns) = (hash_of(text), self.now_ns());
        let is_it = |row: &Row| {
            let is_same = aws_lc_rs::constant_time::verify_slices_are_equal(&row.hash, &hash);
            is_same.is_ok() && row.token.lives(now_ns)
        };
        Ok(self.token_rows()?.into_iter().find(is_it).map(|row| row.token))
    }

    fn token_rows(&self) -> Result<Vec<Row>, ServerError> {
        match self.database.setting(SETTING)? {
            None => Ok(Vec::new()),
            Some(rows) => serde_json::from_str(&rows).map_err(|error| failed(&error)),
        }
    }

    /// Changes the rows, one after the other.
    fn change_tokens<T>(
        &self,
        change: impl FnOnce(&mut Vec<Row>) -> Result<T, ServerError>,
    ) -> Result<T, ServerError> {
        let _state = self.state();
        let mut rows = self.token_rows()?;
        let changed = change(&mut rows)?;
        let rows = serde_json::to_string(&rows).map_err(|error| failed(&error))?;
        self.database.put_setting(SETTING, &rows)?;
        Ok(changed)
    }
}

fn failed(error: &serde_json::Error) -> ServerError {
    ServerError::Admin { reason: error.to_string() }
}

fn hash_of(token: &str) -> [u8; 32] {
    blake3::derive_key("holdall v1 api token", token.as_bytes())
}

#[cfg(feature = "web")]
#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use holdall_sys::Root;
    use holdall_testkit::FakeClock;

    use super::*;

    #[test]
    fn a_token_is_accepted_until_it_lapses_is_revoked_or_another_of_its_name_is_made() {
        let temp = tempfile::tempdir().unwrap();
        let clock = Arc::new(FakeClock::at(1_900_000_000));
        let path = Root::at(temp.path()).join("server.redb");
        let accounts = Accounts::open(&path, clock.clone()).unwrap();
        let scope = |text: &str| accounts.api_token(text).unwrap().map(|token| token.scope);
        let make = |name, scope, valid| accounts.make_api_token(name, scope, valid).unwrap();
        let first = make("grafana", Scope::Look, None);
        assert_eq!(scope(&first), Some(Scope::Look));
        assert_eq!((scope(""), scope(&first.replace("holdall", "Holdall"))), (None, None));
        let second = make("grafana", Scope::Read, None);
        assert_eq!((scope(&first), scope(&second)), (None, Some(Scope::Read)));
        let short = make("short", Scope::Operate, Some(3600));
        assert_eq!(scope(&short), Some(Scope::Operate));
        clock.advance(Duration::from_secs(3600));
        assert_eq!((scope(&short), scope(&second)), (None, Some(Scope::Read)));
        assert_eq!(accounts.api_tokens().unwrap().len(), 1, "what has lapsed is not listed");
        accounts.revoke_api_token("grafana").unwrap();
        assert_eq!(scope(&second), None);
        assert!(accounts.revoke_api_token("grafana").is_err());
        for name in ["", "a\nb", &"x".repeat(65)] {
            assert!(accounts.make_api_token(name, Scope::Read, None).is_err(), "{name:?}");
        }
    }
}
