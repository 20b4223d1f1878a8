//! Who is signed in to the pages, in memory alone: a server that starts again has everybody sign in again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use zeroize::Zeroizing;

use crate::ServerError;
use crate::accounts::{ApiToken, SECRET_LEN};
use crate::auth::identity::random;
use crate::auth::scope::Scope;

/// How long a session lives in which nothing is asked for.
const IDLE_NS: i64 = 30 * MINUTE_NS;
/// How long any lives.
const LONGEST_NS: i64 = 12 * 60 * MINUTE_NS;
/// How long somebody looks who may only look.
const LOOK_NS: i64 = 30 * 24 * 60 * MINUTE_NS;
const MINUTE_NS: i64 = 60 * 1_000_000_000;
/// Most sessions of a kind at once; of more, the one that was idle for longest ends.
const MOST: usize = 100;
/// And of one person, so that nobody signs all others out.
const MOST_OF_ACCOUNT: usize = 10;

/// What the cookie of who came by a link ends with, so that they are told to open it again once the session is over.
pub(crate) const LINK_SUFFIX: &str = "-link";

/// All sessions of a server. Times are those of a clock that only runs.
#[derive(Default)]
pub(crate) struct WebSessions {
    open: Mutex<HashMap<[u8; 32], Session>>,
}

struct Session {
    who: Who,
    begun_ns: i64,
    seen_ns: i64,
    /// Of a second factor that is not switched on yet: it was shown, and its first code was not typed in.
    shown_secret: Option<Zeroizing<[u8; SECRET_LEN]>>,
}

/// Somebody who signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Person {
    pub(crate) account: String,
    /// What they may have done.
    pub(crate) scope: Scope,
}

/// Whose session it is.
#[derive(Clone)]
enum Who {
    Person(Person),
    /// Who came by a link with that token.
    Onlooker(ApiToken),
}

impl Who {
    fn account(&self) -> Option<&str> {
        match self {
            Self::Person(person) => Some(&person.account),
            Self::Onlooker(_) => None,
        }
    }
}

impl Session {
    fn lives(&self, now_ns: i64) -> bool {
        let (idle_ns, longest_ns) = match self.who {
            Who::Person(_) => (IDLE_NS, LONGEST_NS),
            Who::Onlooker(_) => (LOOK_NS, LOOK_NS),
        };
        now_ns.saturating_sub(self.seen_ns) < idle_ns
            && now_ns.saturating_sub(self.begun_ns) < longest_ns
    }
}

impl WebSessions {
    /// What a new cookie has: 256 random bits in hexadecimal.
    pub(crate) fn new_cookie() -> Result<String, ServerError> {
        let mut bytes = Zeroizing::new([0; 32]);
        random(&mut bytes[..])?;
        Ok(blake3::Hash::from_bytes(*bytes).to_hex().to_string())
    }

    /// Begins the session of somebody who signed in, and gives its cookie.
    pub(crate) fn begin(&self, person: Person, now_ns: i64) -> Result<String, ServerError> {
        self.begin_as(Who::Person(person), now_ns)
    }

    /// Begins the session of somebody who may only look, as long as that token counts.
    pub(crate) fn begin_to_look(
        &self,
        token: ApiToken,
        now_ns: i64,
    ) -> Result<String, ServerError> {
        self.begin_as(Who::Onlooker(token), now_ns)
    }

    fn begin_as(&self, who: Who, now_ns: i64) -> Result<String, ServerError> {
        let mut cookie = Self::new_cookie()?;
        if matches!(who, Who::Onlooker(_)) {
            cookie.push_str(LINK_SUFFIX);
        }
        let mut open = self.open();
        open.retain(|_, session| session.lives(now_ns));
        let kind = std::mem::discriminant(&who);
        let of_kind = || open.iter().filter(|(_, one)| std::mem::discriminant(&one.who) == kind);
        let of_account = || open.iter().filter(|(_, one)| one.who.account() == who.account());
        if who.account().is_some() && of_account().count() >= MOST_OF_ACCOUNT {
            let idlest = of_account().min_by_key(|(_, session)| session.seen_ns).map(|(id, _)| *id);
            idlest.map(|id| open.remove(&id));
        } else if of_kind().count() >= MOST {
            let idlest = of_kind().min_by_key(|(_, session)| session.seen_ns).map(|(id, _)| *id);
            idlest.map(|id| open.remove(&id));
        }
        let session = Session { who, begun_ns: now_ns, seen_ns: now_ns, shown_secret: None };
        open.insert(id_of(&cookie), session);
        Ok(cookie)
    }

    /// Whose session it is, which goes on.
    pub(crate) fn person(&self, cookie: &str, now_ns: i64) -> Option<Person> {
        match self.who(cookie, now_ns)? {
            Who::Person(person) => Some(person),
            Who::Onlooker(_) => None,
        }
    }

    /// The token of who may only look.
    pub(crate) fn onlooker(&self, cookie: &str, now_ns: i64) -> Option<ApiToken> {
        match self.who(cookie, now_ns)? {
            Who::Person(_) => None,
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
    pub(crate) fn end(&self, cookie: &str) {
        self.open().remove(&id_of(cookie));
    }

    /// Makes the secret of a second factor, to be shown in a session, in the place of any that was shown there.
    pub(crate) fn new_secret(
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
    pub(crate) fn shown_secret(&self, cookie: &str) -> Option<Zeroizing<[u8; SECRET_LEN]>> {
        self.open().get(&id_of(cookie))?.shown_secret.clone()
    }

    /// Ends all sessions of an account but that one, in which nothing is shown any more.
    pub(crate) fn end_others_of(&self, account: &str, cookie: &str) {
        let (own, mut open) = (id_of(cookie), self.open());
        let is_of = |who: &Who| matches!(who, Who::Person(of) if of.account == account);
        open.retain(|id, session| *id == own || !is_of(&session.who));
        if let Some(session) = open.get_mut(&own) {
            session.shown_secret = None;
        }
    }

    /// How many sessions are open of somebody, by the name of an account, or of the token of who may only look.
    pub(crate) fn count(&self, name: &str, may_only_look: bool, now_ns: i64) -> usize {
        let is_of = |who: &Who| match who {
            Who::Person(person) => !may_only_look && person.account == name,
            Who::Onlooker(token) => may_only_look && token.name == name,
        };
        self.open().values().filter(|one| one.lives(now_ns) && is_of(&one.who)).count()
    }

    /// Ends all sessions of an account.
    pub(crate) fn end_all_of(&self, account: &str) {
        let is_of = |who: &Who| matches!(who, Who::Person(of) if of.account == account);
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

    fn begin(sessions: &WebSessions, account: &str, now_ns: i64) -> String {
        let person = Person { account: account.to_owned(), scope: Scope::Administer };
        sessions.begin(person, now_ns).unwrap()
    }

    fn account(sessions: &WebSessions, cookie: &str, now_ns: i64) -> Option<String> {
        sessions.person(cookie, now_ns).map(|person| person.account)
    }

    #[test]
    fn a_session_ends_when_idle_and_after_half_a_day_at_the_latest() {
        let sessions = WebSessions::default();
        let cookie = begin(&sessions, "ann", 0);
        let seen = |minutes: i64| account(&sessions, &cookie, minutes * MINUTE_NS);
        assert_eq!(seen(29).as_deref(), Some("ann"));
        assert_eq!(seen(58).as_deref(), Some("ann"));
        assert_eq!(seen(88), None, "idle");
        let cookie = begin(&sessions, "ann", 0);
        for minutes in (0..720).step_by(20) {
            assert!(account(&sessions, &cookie, minutes * MINUTE_NS).is_some(), "{minutes}");
        }
        assert_eq!(account(&sessions, &cookie, 720 * MINUTE_NS), None, "after half a day");
    }

    #[test]
    fn sessions_end_one_by_one_and_all_of_an_account() {
        let sessions = WebSessions::default();
        let [ann, again, bob] = ["ann", "ann", "bob"].map(|name| begin(&sessions, name, 0));
        sessions.end(&ann);
        assert_eq!(account(&sessions, &ann, 1), None);
        assert!(account(&sessions, &again, 1).is_some());
        sessions.end_all_of("ann");
        assert_eq!(account(&sessions, &again, 1), None);
        assert_eq!(account(&sessions, &bob, 1).as_deref(), Some("bob"));
    }

    #[test]
    fn there_are_only_so_many_sessions_and_those_that_live_are_counted() {
        let sessions = WebSessions::default();
        let first = begin(&sessions, "ann", 0);
        let second = begin(&sessions, "ann", 1);
        assert_eq!((sessions.count("ann", false, 1), sessions.count("ann", true, 1)), (2, 0));
        for at in 2..50 {
            begin(&sessions, "bob", at);
        }
        let of_bob = sessions.count("bob", false, 50);
        assert_eq!((of_bob, sessions.count("ann", false, 50)), (MOST_OF_ACCOUNT, 2), "his alone");
        assert!(account(&sessions, &first, 50).is_some());
        for at in 0..MOST {
            begin(&sessions, &format!("one of many {}", at / 5), 100 + at as i64);
        }
        assert_eq!(account(&sessions, &second, 200), None, "it was idle for longest");
        assert_eq!(sessions.count("ann", false, 200 + IDLE_NS), 0);
    }
}
