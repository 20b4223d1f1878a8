//! Those who are signed in, in memory alone: a server that starts again has everybody sign in again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use zeroize::Zeroizing;

use crate::ServerError;
use crate::accounts::SECRET_LEN;
use crate::admin::ApiToken;
use crate::auth::identity::random;

/// How long a session lives in which nothing is asked for.
const IDLE_NS: i64 = 30 * MINUTE_NS;
/// How long any lives.
const LONGEST_NS: i64 = 12 * 60 * MINUTE_NS;
/// How long somebody looks who may only look.
const LOOK_NS: i64 = 30 * 24 * 60 * MINUTE_NS;
const MINUTE_NS: i64 = 60 * 1_000_000_000;
/// Most sessions of a kind at once; of more, the one that was idle for longest ends.
const MOST: usize = 100;

/// All sessions of a server. Times are those of a clock that only runs.
pub(super) struct Sessions {
    open: Mutex<HashMap<[u8; 32], Session>>,
    /// Makes the tokens of forms.
    secret: Zeroizing<[u8; 32]>,
}

struct Session {
    who: Who,
    begun_ns: i64,
    seen_ns: i64,
    /// Of a second factor that is not switched on yet: it was shown, and its first code was not typed in.
    shown_secret: Option<Zeroizing<[u8; SECRET_LEN]>>,
}

/// Whose session it is.
#[derive(Clone)]
enum Who {
    Administrator(String),
    /// Who came by a link with that token.
    Onlooker(ApiToken),
}

impl Session {
    fn lives(&self, now_ns: i64) -> bool {
        let (idle_ns, longest_ns) = match self.who {
            Who::Administrator(_) => (IDLE_NS, LONGEST_NS),
            Who::Onlooker(_) => (LOOK_NS, LOOK_NS),
        };
        now_ns.saturating_sub(self.seen_ns) < idle_ns
            && now_ns.saturating_sub(self.begun_ns) < longest_ns
    }
}

impl Sessions {
    pub(super) fn new() -> Result<Self, ServerError> {
        let mut secret = Zeroizing::new([0; 32]);
        random(&mut secret[..])?;
        Ok(Self { open: Mutex::default(), secret })
    }

    /// What a new cookie has: 256 random bits in hexadecimal.
    pub(super) fn new_cookie() -> Result<String, ServerError> {
        let mut bytes = Zeroizing::new([0; 32]);
        random(&mut bytes[..])?;
        Ok(blake3::Hash::from_bytes(*bytes).to_hex().to_string())
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

    /// Begins an administrator's session, and gives its cookie.
    pub(super) fn begin(&self, account: &str, now_ns: i64) -> Result<String, ServerError> {
        self.begin_as(Who::Administrator(account.to_owned()), now_ns)
    }

    /// Begins the session of somebody who may only look, as long as that token counts.
    pub(super) fn begin_to_look(
        &self,
        token: ApiToken,
        now_ns: i64,
    ) -> Result<String, ServerError> {
        self.begin_as(Who::Onlooker(token), now_ns)
    }

    fn begin_as(&self, who: Who, now_ns: i64) -> Result<String, ServerError> {
        let cookie = Self::new_cookie()?;
        let mut open = self.open();
        open.retain(|_, session| session.lives(now_ns));
        let kind = std::mem::discriminant(&who);
        let of_kind = || open.iter().filter(|(_, one)| std::mem::discriminant(&one.who) == kind);
        if of_kind().count() >= MOST {
            let idlest = of_kind().min_by_key(|(_, session)| session.seen_ns).map(|(id, _)| *id);
            idlest.map(|id| open.remove(&id));
        }
        let session = Session { who, begun_ns: now_ns, seen_ns: now_ns, shown_secret: None };
        open.insert(id_of(&cookie), session);
        Ok(cookie)
    }

    /// The administrator whose session it is, which goes on.
    pub(super) fn account(&self, cookie: &str, now_ns: i64) -> Option<String> {
        match self.who(cookie, now_ns)? {
            Who::Administrator(account) => Some(account),
            Who::Onlooker(_) => None,
        }
    }

    /// The token of who may only look.
    pub(super) fn onlooker(&self, cookie: &str, now_ns: i64) -> Option<ApiToken> {
        match self.who(cookie, now_ns)? {
            Who::Administrator(_) => None,
            Who::Onlooker(token) => Some(token),
        }
    }

    fn who(&self, cookie: &str, now_ns: i64) -> Option<Who> {
        let mut open = self.open();
        let session = open.get_mut(&id_of(cookie)).filter(|session| session.lives(now_ns))?;
        session.seen_ns = now_ns;
        Some(session.who.clone())
    }

    /// Ends a session.
    pub(super) fn end(&self, cookie: &str) {
        self.open().remove(&id_of(cookie));
    }

    /// Makes the secret of a second factor, to be shown in a session, in the place of any that was shown there.
    pub(super) fn new_secret(
        &self,
        cookie: &str,
    ) -> Result<Zeroizing<[u8; SECRET_LEN]>, ServerError> {
        let mut secret = Zeroizing::new([0; SECRET_LEN]);
        random(&mut secret[..])?;
        if let Some(session) = self.open().get_mut(&id_of(cookie)) {
            session.shown_secret = Some(secret.clone());
        }
        Ok(secret)
    }

    /// The secret that was shown in a session.
    pub(super) fn shown_secret(&self, cookie: &str) -> Option<Zeroizing<[u8; SECRET_LEN]>> {
        self.open().get(&id_of(cookie))?.shown_secret.clone()
    }

    /// Ends all sessions of an account but that one, in which nothing is shown any more.
    pub(super) fn end_others_of(&self, account: &str, cookie: &str) {
        let (own, mut open) = (id_of(cookie), self.open());
        let is_of = |who: &Who| matches!(who, Who::Administrator(of) if of == account);
        open.retain(|id, session| *id == own || !is_of(&session.who));
        if let Some(session) = open.get_mut(&own) {
            session.shown_secret = None;
        }
    }

    /// Ends all sessions of an account.
    pub(super) fn end_all_of(&self, account: &str) {
        let is_of = |who: &Who| matches!(who, Who::Administrator(of) if of == account);
        self.open().retain(|_, session| !is_of(&session.who));
    }

    fn open(&self) -> MutexGuard<'_, HashMap<[u8; 32], Session>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sessions are found by a hash, so that how long that takes tells nothing of a cookie.
fn id_of(cookie: &str) -> [u8; 32] {
    blake3::derive_key("holdall v1 web session", cookie.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_ends_when_idle_and_after_half_a_day_at_the_latest() {
        let sessions = Sessions::new().unwrap();
        let cookie = sessions.begin("ann", 0).unwrap();
        let account = |minutes: i64| sessions.account(&cookie, minutes * MINUTE_NS);
        assert_eq!(account(29).as_deref(), Some("ann"));
        assert_eq!(account(58).as_deref(), Some("ann"));
        assert_eq!(account(88), None, "idle");
        let cookie = sessions.begin("ann", 0).unwrap();
        for minutes in (0..720).step_by(20) {
            assert!(sessions.account(&cookie, minutes * MINUTE_NS).is_some(), "{minutes}");
        }
        assert_eq!(sessions.account(&cookie, 720 * MINUTE_NS), None, "after half a day");
    }

    #[test]
    fn sessions_end_one_by_one_and_all_of_an_account() {
        let sessions = Sessions::new().unwrap();
        let [ann, again, bob] = ["ann", "ann", "bob"].map(|name| sessions.begin(name, 0).unwrap());
        sessions.end(&ann);
        assert_eq!(sessions.account(&ann, 1), None);
        assert!(sessions.account(&again, 1).is_some());
        sessions.end_all_of("ann");
        assert_eq!(sessions.account(&again, 1), None);
        assert_eq!(sessions.account(&bob, 1).as_deref(), Some("bob"));
    }

    #[test]
    fn a_form_is_good_for_one_cookie_and_there_are_only_so_many_sessions() {
        let sessions = Sessions::new().unwrap();
        let first = sessions.begin("ann", 0).unwrap();
        let second = sessions.begin("ann", 1).unwrap();
        let token = sessions.token(&first);
        assert!(sessions.is_token(&first, &token) && !sessions.is_token(&second, &token));
        assert!(
            !sessions.is_token(&first, "") && !Sessions::new().unwrap().is_token(&first, &token)
        );
        for at in 2..=MOST as i64 {
            sessions.begin("bob", at).unwrap();
        }
        assert_eq!(sessions.account(&first, 200), None);
        assert!(sessions.account(&second, 200).is_some());
    }
}
