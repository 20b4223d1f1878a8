//! Which browser measures the way here now, and what it is sent.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

use crate::ServerError;
use crate::auth::identity::random;

/// Bytes of an answer.
pub(super) const PIECE_BYTES: usize = 1 << 20;
/// How long a browser has its turn.
const TURN_NS: i64 = 40 * 1_000_000_000;

/// Whose turn it is.
pub(super) struct Turn {
    /// The cookie of who measures, and until when, by the clock that only runs.
    of: Mutex<Option<(String, i64)>>,
    /// What is sent: bytes that do not compress.
    pub(super) piece: Bytes,
}

impl Turn {
    pub(super) fn new() -> Result<Self, ServerError> {
        let mut piece = vec![0; PIECE_BYTES];
        random(&mut piece)?;
        Ok(Self { of: Mutex::default(), piece: piece.into() })
    }

    /// Gives the turn to whoever has that cookie, unless another has it.
    pub(super) fn take(&self, cookie: &str, now_ns: i64) -> bool {
        let mut of = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        let is_anothers = of.as_ref().is_some_and(|(has, until)| has != cookie && *until > now_ns);
        if !is_anothers {
            *of = Some((cookie.to_owned(), now_ns.saturating_add(TURN_NS)));
        }
        !is_anothers
    }

    pub(super) fn has(&self, cookie: &str, now_ns: i64) -> bool {
        let of = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        of.as_ref().is_some_and(|(has, until)| has == cookie && *until > now_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_browser_has_the_turn_until_it_is_over() {
        let turn = Turn::new().unwrap();
        assert!(!turn.has("ann", 0));
        assert!(turn.take("ann", 0) && turn.take("ann", 1) && turn.has("ann", 1));
        assert!(!turn.take("bob", 2) && !turn.has("bob", 2));
        assert!(turn.take("bob", 2 + TURN_NS) && !turn.has("ann", 2 + TURN_NS));
    }
}
