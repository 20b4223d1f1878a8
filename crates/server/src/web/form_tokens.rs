//! The tokens of forms: each is good for the cookie to which it was shown, until the server ends.

use zeroize::Zeroizing;

use crate::ServerError;
use crate::auth::identity::random;

/// Makes the tokens of forms.
pub(super) struct FormTokens {
    secret: Zeroizing<[u8; 32]>,
}

impl FormTokens {
    pub(super) fn new() -> Result<Self, ServerError> {
        let mut secret = Zeroizing::new([0; 32]);
        random(&mut secret[..])?;
        Ok(Self { secret })
    }

    /// What a form carries that is shown to whoever has that cookie.
    pub(super) fn token(&self, cookie: &str) -> String {
        blake3::keyed_hash(&self.secret, cookie.as_bytes()).to_hex().to_string()
    }

    /// Whether a form was shown to whoever has that cookie.
    pub(super) fn is_token(&self, cookie: &str, token: &str) -> bool {
        let expected = self.token(cookie);
        let (expected, token) = (expected.as_bytes(), token.as_bytes());
        aws_lc_rs::constant_time::verify_slices_are_equal(expected, token).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_good_for_one_cookie_and_one_server() {
        let forms = FormTokens::new().unwrap();
        let token = forms.token("first");
        assert!(forms.is_token("first", &token) && !forms.is_token("second", &token));
        assert!(
            !forms.is_token("first", "") && !FormTokens::new().unwrap().is_token("first", &token)
        );
    }
}
