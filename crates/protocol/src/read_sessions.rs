//! Sessions to read in that outlive their lapse: a computer sleeps, and whoever reads goes on after it.
//!
//! A session that reads holds back what is deleted, and nothing depends on which one it is. So where the
//! repository does not know one any more, another takes its place, once for each question. What was deleted
//! meanwhile is missing then, which is told as ever. A session that writes is not renewed: what was put in
//! it may be gone, and whoever writes has to look.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use holdall_format::SessionId;

use crate::{RepositoryError, SessionGrant, SessionPurpose};

/// The sessions to read in that were opened, and what took their place.
#[derive(Debug, Default)]
pub struct ReadSessions {
    /// By the id that was given out, the one that is open now.
    current: Mutex<HashMap<SessionId, SessionId>>,
    /// Held while another is opened, so that those who ask at once do not all open one.
    renewing: Mutex<()>,
}

impl ReadSessions {
    /// Notes a session that was opened, if it is to read in.
    pub fn opened(&self, purpose: &SessionPurpose, grant: &SessionGrant) {
        if matches!(purpose, SessionPurpose::Read) {
            self.lock().insert(grant.session, grant.session);
        }
    }

    /// Forgets a session; the one to close in its place.
    pub fn closed(&self, session: &SessionId) -> SessionId {
        self.lock().remove(session).unwrap_or(*session)
    }

    /// Whether none is open.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Asks in a session, and once more in another that `open` gives if it has lapsed.
    ///
    /// # Errors
    /// What `ask` and `open` answer.
    pub fn ask<T>(
        &self,
        session: &SessionId,
        open: impl Fn() -> Result<SessionGrant, RepositoryError>,
        ask: impl Fn(&SessionId) -> Result<T, RepositoryError>,
    ) -> Result<T, RepositoryError> {
        let used = self.lock().get(session).copied();
        let answer = ask(&used.unwrap_or(*session));
        let (Some(used), Err(RepositoryError::NoSession { .. })) = (used, &answer) else {
            return answer;
        };
        let renewing = self.renewing.lock().unwrap_or_else(PoisonError::into_inner);
        // Somebody else may have found out first.
        let known = self.lock().get(session).copied().filter(|other| *other != used);
        let renewed = match known {
            Some(other) => other,
            None => open()?.session,
        };
        {
            let mut current = self.lock();
            // It was noted by its own id, by which nobody knows it.
            current.remove(&renewed);
            current.insert(*session, renewed);
        }
        drop(renewing);
        ask(&renewed)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, SessionId>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};

    fn id(byte: u8) -> SessionId {
        SessionId::from_bytes([byte; 16])
    }

    fn grant(byte: u8) -> SessionGrant {
        SessionGrant { session: id(byte), head: None, sequence: 0 }
    }

    #[test]
    fn a_session_that_lapsed_is_renewed_once_for_all_later_questions() {
        let sessions = ReadSessions::default();
        sessions.opened(&SessionPurpose::Read, &grant(1));
        let (opened, asked) = (Cell::new(1), RefCell::new(Vec::new()));
        let open = || {
            opened.set(opened.get() + 1);
            // As a repository does that opens any session.
            sessions.opened(&SessionPurpose::Read, &grant(opened.get()));
            Ok(grant(opened.get()))
        };
        let ask = |session: &SessionId| {
            asked.borrow_mut().push(*session);
            let has_lapsed = *session == id(1);
            if has_lapsed { Err(RepositoryError::NoSession { session: *session }) } else { Ok(()) }
        };
        sessions.ask(&id(1), open, ask).unwrap();
        sessions.ask(&id(1), open, ask).unwrap();
        assert_eq!((opened.get(), asked.into_inner()), (2, vec![id(1), id(2), id(2)]));
        assert_eq!(sessions.closed(&id(1)), id(2));
    }

    #[test]
    fn one_that_writes_or_is_never_known_is_not_renewed() {
        let sessions = ReadSessions::default();
        sessions.opened(&SessionPurpose::Backup { parents: Vec::new() }, &grant(1));
        sessions.opened(&SessionPurpose::Read, &grant(2));
        let lapsed = |session: &SessionId| -> Result<(), _> {
            Err(RepositoryError::NoSession { session: *session })
        };
        for session in [id(1), id(2)] {
            let answer = sessions.ask(&session, || Ok(grant(3)), lapsed);
            assert!(matches!(answer, Err(RepositoryError::NoSession { .. })));
        }
    }
}
