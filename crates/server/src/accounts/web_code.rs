//! The code that makes somebody an administrator in a browser: typed in once, and gone in an hour.
//!
//! Whoever can write the data folder may make one, as with every command of an administrator. It is never part of an
//! address, so that no log, history or referrer has it.

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::Accounts;
use crate::ServerError;
use crate::auth::identity::random;
use crate::auth::scope::Scope;

const SETTING: &str = "web.code";
/// How long a code is accepted.
const LIFE_NS: i64 = 3600 * 1_000_000_000;
/// Letters of a code, of 5 bits each: 80 bits.
const LETTERS: usize = 16;
/// Letters between two hyphens.
const GROUP: usize = 4;
/// Crockford's digits, of which none is taken for another.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// What is remembered of a code.
#[derive(Debug, Serialize, Deserialize)]
struct CodeRow {
    hash: [u8; 32],
    made_ns: i64,
    /// Whom it is for; `None` for whoever types it in.
    #[serde(default)]
    name: Option<String>,
    /// What they may have done then.
    scope: Scope,
}

impl Accounts {
    /// Makes a code in the place of any before it, and says until when it is accepted.
    pub(crate) fn make_web_code(
        &self,
        name: Option<&str>,
        scope: Scope,
    ) -> Result<(Zeroizing<String>, i64), ServerError> {
        let code = random_letters(LETTERS, GROUP)?;
        let made_ns = self.now_ns();
        let row = CodeRow { hash: hash_of(&code), made_ns, name: name.map(str::to_owned), scope };
        let row = serde_json::to_string(&row)
            .map_err(|error| ServerError::Admin { reason: error.to_string() })?;
        self.database.put_setting(SETTING, &row)?;
        Ok((code, made_ns.saturating_add(LIFE_NS)))
    }

    /// Uses a code up that is good for that name, and says what they may have done then.
    #[cfg(feature = "web")]
    pub(crate) fn use_web_code(
        &self,
        typed: &str,
        name: &str,
    ) -> Result<Option<Scope>, ServerError> {
        // One after the other, so that nobody uses a code that another is using.
        let _state = self.state();
        let Some(row) = self.database.setting(SETTING)? else { return Ok(None) };
        let Ok(row) = serde_json::from_str::<CodeRow>(&row) else { return Ok(None) };
        let hash = hash_of(&as_made(typed, LETTERS, GROUP));
        let is_same = aws_lc_rs::constant_time::verify_slices_are_equal(&hash, &row.hash).is_ok();
        let is_for_them = row.name.is_none_or(|of| of == name);
        let is_good = is_same && is_for_them && super::lives(row.made_ns, LIFE_NS, self.now_ns());
        if is_good {
            self.database.put_setting(SETTING, "")?;
        }
        Ok(is_good.then_some(row.scope))
    }
}

fn hash_of(code: &str) -> [u8; 32] {
    blake3::derive_key("holdall v1 web code", code.as_bytes())
}

/// So many random letters, 5 bits each, with a hyphen between groups of so many.
pub(super) fn random_letters(count: usize, group: usize) -> Result<Zeroizing<String>, ServerError> {
    let mut bytes = Zeroizing::new(vec![0; count]);
    random(&mut bytes[..])?;
    let mut letters = Zeroizing::new(String::with_capacity(count + count / group));
    for (at, byte) in bytes.iter().enumerate() {
        if at > 0 && at.is_multiple_of(group) {
            letters.push('-');
        }
        letters.push(char::from(ALPHABET[usize::from(byte % 32)]));
    }
    Ok(letters)
}

/// A code of so many letters as it was made, from what somebody typed: small letters, blanks and letters that look like digits
/// do no harm. What is too long stays so.
#[cfg(feature = "web")]
pub(super) fn as_made(typed: &str, count: usize, group: usize) -> Zeroizing<String> {
    let mut made = Zeroizing::new(String::with_capacity(count + count / group + 1));
    let letters = typed.chars().filter(char::is_ascii_alphanumeric).take(count + 1);
    for (at, letter) in letters.enumerate() {
        if at > 0 && at.is_multiple_of(group) {
            made.push('-');
        }
        made.push(match letter.to_ascii_uppercase() {
            'O' => '0',
            'I' | 'L' => '1',
            other => other,
        });
    }
    made
}

#[cfg(feature = "web")]
#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use holdall_sys::Root;
    use holdall_testkit::FakeClock;

    use super::*;

    const NOW_SECS: i64 = 1_900_000_000;

    fn accounts(temp: &tempfile::TempDir) -> (Accounts, Arc<FakeClock>) {
        let clock = Arc::new(FakeClock::at(NOW_SECS));
        let path = Root::at(temp.path()).join("server.redb");
        (Accounts::open(&path, clock.clone()).unwrap(), clock)
    }

    fn is_good(accounts: &Accounts, typed: &str) -> bool {
        accounts.use_web_code(typed, "ann").unwrap().is_some()
    }

    #[test]
    fn a_code_is_good_once_and_however_it_is_typed() {
        let temp = tempfile::tempdir().unwrap();
        let (accounts, _) = accounts(&temp);
        assert!(!is_good(&accounts, ""));
        let (code, _) = accounts.make_web_code(None, Scope::Administer).unwrap();
        assert_eq!(code.len(), 19, "{}", *code);
        assert!(!is_good(&accounts, &format!("{}0", *code)));
        let typed = code.to_lowercase().replace('-', " ").replace('0', "o").replace('1', "l");
        assert!(is_good(&accounts, &typed));
        assert!(!is_good(&accounts, &code) && !is_good(&accounts, ""));
    }

    #[test]
    fn a_code_lapses_after_an_hour_and_when_another_is_made() {
        let temp = tempfile::tempdir().unwrap();
        let (accounts, clock) = accounts(&temp);
        let (first, _) = accounts.make_web_code(None, Scope::Administer).unwrap();
        let (second, _) = accounts.make_web_code(None, Scope::Administer).unwrap();
        assert!(!is_good(&accounts, &first));
        clock.advance(std::time::Duration::from_secs(3600));
        assert!(!is_good(&accounts, &second));
    }

    #[test]
    fn a_code_for_somebody_is_good_for_them_alone_and_says_what_they_may() {
        let temp = tempfile::tempdir().unwrap();
        let (accounts, _) = accounts(&temp);
        let (code, _) = accounts.make_web_code(Some("bob"), Scope::Operate).unwrap();
        assert!(!is_good(&accounts, &code));
        assert_eq!(accounts.use_web_code(&code, "bob").unwrap(), Some(Scope::Operate));
        assert_eq!(accounts.use_web_code(&code, "bob").unwrap(), None);
    }
}
