//! The token with which `/metrics` is read. There is one at a time, and only its hash is kept.

use zeroize::Zeroizing;

use super::Accounts;
use super::web_code::random_letters;
use crate::ServerError;

const SETTING: &str = "web.metrics";
const PREFIX: &str = "holdall-metrics-";
/// Letters behind that, of 5 bits each: 160 bits.
const LETTERS: usize = 32;

impl Accounts {
    /// Makes a token in the place of any before it.
    pub(crate) fn make_metrics_token(&self) -> Result<Zeroizing<String>, ServerError> {
        let token = Zeroizing::new(format!("{PREFIX}{}", *random_letters(LETTERS, LETTERS)?));
        self.database.put_setting(SETTING, &hash_of(&token))?;
        Ok(token)
    }

    /// Whether that is the token.
    #[cfg(feature = "web")]
    pub(crate) fn is_metrics_token(&self, token: &str) -> Result<bool, ServerError> {
        let Some(known) = self.database.setting(SETTING)? else { return Ok(false) };
        let (known, given) = (known.as_bytes(), hash_of(token));
        Ok(aws_lc_rs::constant_time::verify_slices_are_equal(known, given.as_bytes()).is_ok())
    }
}

fn hash_of(token: &str) -> String {
    blake3::Hash::from(blake3::derive_key("holdall v1 metrics token", token.as_bytes()))
        .to_hex()
        .to_string()
}
