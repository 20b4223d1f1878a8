//! Passwords, stretched by Argon2id with what OWASP asks for: 19 MiB, two passes, one lane.

use argon2::{Algorithm, Argon2, Params, Version};

use super::guessable::is_guessable;
use crate::ServerError;
use crate::accounts::WebAccount;
use crate::auth::identity::random;
use crate::auth::scope::Scope;

/// Fewest characters of a password.
pub(super) const LEAST: usize = 12;
const MEMORY_KIB: u32 = 19_456;
const PASSES: u32 = 2;

/// Most characters.
pub(super) const MOST: usize = 1000;

/// What is left of a password.
pub(super) struct Stretched {
    salt: [u8; 16],
    hash: [u8; 32],
}

impl Stretched {
    /// Takes the place of an account's password.
    pub(super) fn put_into(self, account: &mut WebAccount) {
        let Self { salt, hash } = self;
        (account.salt, account.hash) = (salt, hash);
        (account.memory_kib, account.passes) = (MEMORY_KIB, PASSES);
    }
}

/// Checks a password that somebody chose and typed twice, and says what is wrong with it. `names` are those that a guesser
/// knows.
pub(super) fn check_new(password: &str, again: &str, names: &[&str]) -> Result<(), String> {
    if !(LEAST..=MOST).contains(&password.chars().count()) {
        return Err(format!("Choose a password of {LEAST} to {MOST} characters."));
    }
    if password != again {
        return Err("The two passwords differ.".to_owned());
    }
    if is_guessable(password, names) {
        return Err(
            "That password is one of those that are tried first. Choose some words of your own."
                .to_owned(),
        );
    }
    Ok(())
}

/// Stretches a new password.
pub(super) fn stretch_new(password: &str) -> Result<Stretched, ServerError> {
    let mut salt = [0; 16];
    random(&mut salt)?;
    Ok(Stretched { hash: stretched(password, &salt, MEMORY_KIB, PASSES)?, salt })
}

/// An account with that password.
pub(super) fn account(
    name: &str,
    password: &str,
    scope: Scope,
    made_ns: i64,
) -> Result<WebAccount, ServerError> {
    let Stretched { salt, hash } = stretch_new(password)?;
    Ok(WebAccount {
        name: name.to_owned(),
        salt,
        hash,
        memory_kib: MEMORY_KIB,
        passes: PASSES,
        made_ns,
        second_factor: None,
        scope,
        signed_in_ns: None,
    })
}

/// Whether it is the password of that account; for no account it takes as long.
pub(super) fn is_of(account: Option<&WebAccount>, password: &str) -> Result<bool, ServerError> {
    let Some(account) = account else {
        return stretched(password, &[0; 16], MEMORY_KIB, PASSES).map(|_| false);
    };
    let hash = stretched(password, &account.salt, account.memory_kib, account.passes)?;
    Ok(aws_lc_rs::constant_time::verify_slices_are_equal(&hash, &account.hash).is_ok())
}

fn stretched(
    password: &str,
    salt: &[u8],
    memory_kib: u32,
    passes: u32,
) -> Result<[u8; 32], ServerError> {
    let failed = |error: argon2::Error| ServerError::refused(format!("the password: {error}"));
    let params = Params::new(memory_kib, passes, 1, Some(32)).map_err(failed)?;
    let mut hash = [0; 32];
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into(password.as_bytes(), salt, &mut hash)
        .map_err(failed)?;
    Ok(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_that_of_its_account_alone_and_two_accounts_differ() {
        let [ann, bob] =
            ["ann", "bob"].map(|name| account(name, "the same words", Scope::Read, 1).unwrap());
        assert!(ann.hash != bob.hash && ann.salt != bob.salt);
        assert!(is_of(Some(&ann), "the same words").unwrap());
        assert!(!is_of(Some(&ann), "the same word").unwrap());
        assert!(!is_of(None, "the same words").unwrap());
    }
}
