//! Second factors: codes that an app on a telephone makes anew every 30 seconds (RFC 6238), and recovery codes for the day on
//! which the telephone is lost.
//!
//! The parameters are those of RFC 6238 that every app knows: HMAC-SHA-1, 6 digits, 30 seconds. A code counts once: the step of
//! the last one is kept, and only later ones are accepted. A clock may be one step off, either way.
//!
//! Whoever reads `server.redb` can make the codes, since the server has to know the secret. Of recovery codes it keeps hashes;
//! with 120 bits each they need no stretching.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac::{HMAC_SHA1_FOR_LEGACY_USE_ONLY, Key, sign};
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::Accounts;
use super::web_code::{as_made, random_letters};
use crate::ServerError;

/// Bytes of a secret: as long as what HMAC-SHA-1 gives, as RFC 4226 recommends.
pub(crate) const SECRET_LEN: usize = 20;
const STEP_NS: i64 = 30 * 1_000_000_000;
const DIGITS: usize = 6;
const MODULUS: u32 = 1_000_000;
/// Steps that a clock may be off.
const TOLERANCE: i64 = 1;
/// How many recovery codes there are, and their letters of 5 bits each: 120 bits.
const RECOVERY_CODES: usize = 10;
const LETTERS: usize = 24;
/// Letters between two hyphens.
const GROUP: usize = 4;

/// The second factor of an account.
///
/// Secret: no `Debug`.
#[derive(Clone, Serialize, Deserialize, Zeroize, ZeroizeOnDrop)]
pub(crate) struct SecondFactor {
    secret: [u8; SECRET_LEN],
    /// The step of the last code that was accepted.
    last_step: i64,
    /// Hashes of the recovery codes that are left.
    recovery: Vec<[u8; 32]>,
}

impl SecondFactor {
    /// Recovery codes that are left.
    pub(crate) fn recovery_left(&self) -> usize {
        self.recovery.len()
    }

    /// Uses a code up, of an app or for recovery. Says whether it was good.
    fn use_code(&mut self, typed: &str, now_ns: i64) -> bool {
        if let Some(step) = step_of(&self.secret, typed, now_ns) {
            let is_new = step > self.last_step;
            self.last_step = self.last_step.max(step);
            return is_new;
        }
        let hash = hash_of(&as_made(typed, LETTERS, GROUP));
        let is_it = |known: &[u8; 32]| verify_slices_are_equal(known, &hash).is_ok();
        let found = self.recovery.iter().position(is_it);
        found.map(|at| self.recovery.remove(at)).is_some()
    }
}

impl Accounts {
    /// Switches the second factor of an account on, if `typed` is a code of that secret now, and gives its recovery codes.
    /// `None` for a wrong code.
    ///
    /// # Errors
    /// [`ServerError::Refused`] if one is on already; if there is no such account, or it cannot be stored.
    pub(crate) fn switch_second_factor_on(
        &self,
        name: &str,
        secret: &[u8; SECRET_LEN],
        typed: &str,
    ) -> Result<Option<Vec<Zeroizing<String>>>, ServerError> {
        let Some(last_step) = step_of(secret, typed, self.now_ns()) else { return Ok(None) };
        let codes = (0..RECOVERY_CODES).map(|_| random_letters(LETTERS, GROUP));
        let codes = codes.collect::<Result<Vec<_>, _>>()?;
        let recovery = codes.iter().map(|code| hash_of(code)).collect();
        let second = SecondFactor { secret: *secret, last_step, recovery };
        self.change_web_account(name, |account| match account.second_factor {
            Some(_) => Err(ServerError::refused(
                "a second factor is switched on already; switch it off first",
            )),
            None => {
                account.second_factor = Some(second);
                Ok(())
            }
        })??;
        Ok(Some(codes))
    }

    /// Switches it off.
    ///
    /// # Errors
    /// If there is no such account, or it cannot be stored.
    pub(crate) fn switch_second_factor_off(&self, name: &str) -> Result<(), ServerError> {
        self.change_web_account(name, |account| account.second_factor = None)
    }

    /// Whether an account has no second factor, or `typed` is a code of it, which is used up then.
    ///
    /// # Errors
    /// If there is no such account, or it cannot be stored.
    pub(crate) fn use_second_factor(&self, name: &str, typed: &str) -> Result<bool, ServerError> {
        let now_ns = self.now_ns();
        self.change_web_account(name, |account| match &mut account.second_factor {
            None => true,
            Some(second) => second.use_code(typed, now_ns),
        })
    }
}

/// The step of which `typed` is the code, within the tolerance; the latest, where several are.
fn step_of(secret: &[u8; SECRET_LEN], typed: &str, now_ns: i64) -> Option<i64> {
    let digits = typed.chars().filter(|letter| !letter.is_whitespace());
    let digits: Zeroizing<String> = Zeroizing::new(digits.take(DIGITS + 1).collect());
    let now = now_ns.div_euclid(STEP_NS);
    let is_it = |step: &i64| {
        verify_slices_are_equal(code(secret, *step).as_bytes(), digits.as_bytes()).is_ok()
    };
    (now - TOLERANCE..=now + TOLERANCE).rev().find(is_it)
}

/// The code of a step, as RFC 4226 cuts it from an HMAC.
fn code(secret: &[u8; SECRET_LEN], step: i64) -> Zeroizing<String> {
    let key = Key::new(HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret);
    let tag = sign(&key, &step.to_be_bytes());
    let tag = tag.as_ref();
    let at = usize::from(tag[tag.len() - 1] & 0xf);
    let four = u32::from_be_bytes([tag[at], tag[at + 1], tag[at + 2], tag[at + 3]]);
    Zeroizing::new(format!("{:0DIGITS$}", (four & 0x7fff_ffff) % MODULUS))
}

fn hash_of(code: &str) -> [u8; 32] {
    blake3::derive_key("holdall v1 recovery code of a second factor", code.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use holdall_sys::Root;
    use holdall_testkit::FakeClock;

    use super::*;
    use crate::accounts::WebAccount;

    const SECRET: [u8; SECRET_LEN] = *b"12345678901234567890";
    const NOW_SECS: i64 = 1_900_000_000;

    fn accounts(temp: &tempfile::TempDir) -> (Accounts, Arc<FakeClock>) {
        let clock = Arc::new(FakeClock::at(NOW_SECS));
        let path = Root::at(temp.path()).join("server.redb");
        let accounts = Accounts::open(&path, clock.clone()).unwrap();
        let ann = WebAccount {
            name: "ann".into(),
            salt: [0; 16],
            hash: [0; 32],
            memory_kib: 8,
            passes: 1,
            made_ns: 0,
            second_factor: None,
            scope: crate::auth::scope::Scope::Administer,
            signed_in_ns: None,
        };
        accounts.put_web_account(ann).unwrap();
        (accounts, clock)
    }

    fn code_of(secret: &[u8; SECRET_LEN], seconds: i64) -> String {
        code(secret, (NOW_SECS + seconds) / 30).to_string()
    }

    fn code_in(seconds: i64) -> String {
        code_of(&SECRET, seconds)
    }

    #[test]
    fn codes_are_those_of_rfc_6238() {
        for (seconds, eight_digits) in [
            (59, "94287082"),
            (1_111_111_109, "07081804"),
            (1_111_111_111, "14050471"),
            (1_234_567_890, "89005924"),
            (2_000_000_000, "69279037"),
            (20_000_000_000, "65353130"),
        ] {
            assert_eq!(*code(&SECRET, seconds / 30), eight_digits[2..], "{seconds}");
        }
    }

    #[test]
    fn a_code_counts_once_and_within_one_step() {
        let temp = tempfile::tempdir().unwrap();
        let (accounts, clock) = accounts(&temp);
        assert!(accounts.use_second_factor("ann", "").unwrap(), "there is none yet");
        assert!(accounts.switch_second_factor_on("ann", &SECRET, "000000").unwrap().is_none());
        assert!(accounts.use_second_factor("ann", "").unwrap(), "a wrong code switches nothing on");
        accounts.switch_second_factor_on("ann", &SECRET, &code_in(0)).unwrap().unwrap();
        let used = |typed: &str| accounts.use_second_factor("ann", typed).unwrap();
        assert!(!used("") && !used(&code_in(0)), "it was used to switch it on");
        let again = accounts.switch_second_factor_on(
            "ann",
            &[1; SECRET_LEN],
            &code_of(&[1; SECRET_LEN], 0),
        );
        assert!(
            matches!(again, Err(ServerError::Refused { .. })),
            "not without the first one's code"
        );
        assert!(!used(&code_in(60)) && !used(&code_in(-30)));
        let spaced = format!(" {} {}", &code_in(30)[..3], &code_in(30)[3..]);
        assert!(used(&spaced) && !used(&code_in(30)) && !used(&code_in(0)));
        clock.advance(Duration::from_secs(90));
        assert!(!used(&code_in(30)), "two steps ago");
        assert!(used(&code_in(60)), "one step ago");
        assert!(used(&code_in(90)) && !used(&code_in(60)));
    }

    #[test]
    fn each_of_ten_recovery_codes_counts_once_and_is_kept_as_a_hash() {
        let temp = tempfile::tempdir().unwrap();
        let (accounts, _) = accounts(&temp);
        let codes = accounts.switch_second_factor_on("ann", &SECRET, &code_in(0)).unwrap().unwrap();
        assert_eq!((codes.len(), codes[0].len()), (10, 29));
        let rows = accounts.database.setting("web.accounts").unwrap().unwrap();
        assert!(codes.iter().all(|code| !rows.contains(code.as_str())));
        for (at, code) in codes.iter().enumerate() {
            let typed = code.to_lowercase().replace('-', " ");
            assert!(accounts.use_second_factor("ann", &typed).unwrap());
            assert!(!accounts.use_second_factor("ann", code).unwrap());
            let left = accounts.web_accounts().unwrap()[0].second_factor.clone().unwrap();
            assert_eq!(left.recovery_left(), 9 - at);
        }
        accounts.switch_second_factor_off("ann").unwrap();
        assert!(accounts.use_second_factor("ann", "").unwrap());
        assert!(accounts.use_second_factor("bob", "").is_err(), "there is no such account");
    }
}
