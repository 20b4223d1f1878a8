//! Who may do what. Every request passes here, and nothing reaches a repository without the
//! [`Permit`] that only this module makes.
//!
//! | verb | unknown key | revoked key | machine, own repository | machine, another's | reader |
//! | --- | --- | --- | --- | --- | --- |
//! | create, put wrappings, put blocks, commit | | | with the right to back up | | |
//! | describe, records, fetch, read blocks, prove blocks, missing, usage, sessions to read, scrub | | | yes | | own |
//! | sessions to back up | | | with the right to back up | | |
//! | deletions | | | yes | | own |
//! | forget, prune | | | with an administrator's token | | |
//! | measure the path | | | yes | yes | |
//! | measure the disk behind it | | | with the right to back up | the same | |
//!
//! Pairing is not among them: what it allows is in the invite, and is checked where that is taken. An
//! administrator's token is in the body, and is checked where that is read. A reader is the identity of a recovery kit. Whether another's
//! repository exists is not told.

use std::fmt;

use holdall_format::{MachineId, PublicKey};
use holdall_protocol::wire::{LabVerb, OWN_REPOSITORY, RepositoryVerb, WireError};
use holdall_protocol::{RepositoryError, SessionPurpose};
use serde::{Deserialize, Serialize};

/// What a machine may do in its own repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Right {
    /// It puts, commits and reads.
    #[default]
    Backup,
    /// It reads.
    Read,
}

impl fmt::Display for Right {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Backup => "backup",
            Self::Read => "read",
        })
    }
}

/// What a key is to this server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Role {
    /// No machine's.
    Unknown,
    /// A machine's that was replaced, or whose machine was revoked.
    Revoked,
    /// A machine's key in use.
    Machine { machine: MachineId, repository: String, right: Right },
    /// A recovery kit's.
    Reader { repository: String },
}

/// The right to do the one thing that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Permit {
    repository: String,
    machine: MachineId,
    key: PublicKey,
    may_write: bool,
    verb: RepositoryVerb,
}

impl Permit {
    /// The repository that it is for.
    pub(crate) fn repository(&self) -> &str {
        &self.repository
    }

    /// The machine that asks; all zero for a recovery kit.
    pub(crate) fn machine(&self) -> MachineId {
        self.machine
    }

    /// The key that signed in.
    pub(crate) fn key(&self) -> PublicKey {
        self.key
    }

    /// Checks that the key, of that role by now, may still do it: a request may take long to come.
    ///
    /// # Errors
    /// [`RepositoryError::NotAllowed`].
    pub(crate) fn check_again(&self, role: &Role) -> Result<(), RepositoryError> {
        match check(role, self.key, &self.repository, &self.verb) {
            Ok(_) => Ok(()),
            Err(WireError::Repository(error)) => Err(error),
            Err(_) => Err(RepositoryError::NotAllowed { reason: "its key is no machine's".into() }),
        }
    }

    /// Checks what only the body of the request tells.
    pub(crate) fn check_purpose(&self, purpose: &SessionPurpose) -> Result<(), WireError> {
        match purpose {
            SessionPurpose::Backup { .. } if !self.may_write => Err(denied("it may only read")),
            SessionPurpose::Backup { .. } | SessionPurpose::Read => Ok(()),
        }
    }
}

/// Whether a key of that role may ask that of the repository `name`.
pub(crate) fn check(
    role: &Role,
    key: PublicKey,
    name: &str,
    verb: &RepositoryVerb,
) -> Result<Permit, WireError> {
    let (machine, repository, may_write) = match role {
        Role::Unknown => return Err(WireError::UnknownMachine),
        Role::Revoked => return Err(denied("this machine's key was revoked")),
        Role::Machine { machine, repository, right } => {
            (*machine, repository, *right == Right::Backup)
        }
        Role::Reader { .. } if is_for_administrators(verb) => {
            return Err(denied("a recovery kit reads only"));
        }
        Role::Reader { repository } => {
            (MachineId::from_bytes([0; MachineId::LEN]), repository, false)
        }
    };
    if name != OWN_REPOSITORY && name != repository {
        return Err(denied("a machine may use its own repository only"));
    }
    if writes(verb) && !may_write {
        return Err(denied("it may only read"));
    }
    let repository = repository.clone();
    Ok(Permit { repository, machine, key, may_write, verb: verb.clone() })
}

/// Whether a key of that role may measure the path to this server, which no repository is part of.
/// Who may only read has nothing written for it.
pub(crate) fn check_measuring(role: &Role, verb: LabVerb) -> Result<(), WireError> {
    match role {
        Role::Machine { right: Right::Read, .. } if writes_to_measure(verb) => {
            Err(denied("it may only read"))
        }
        Role::Machine { .. } => Ok(()),
        Role::Unknown => Err(WireError::UnknownMachine),
        Role::Revoked => Err(denied("this machine's key was revoked")),
        Role::Reader { .. } => Err(denied("a recovery kit measures nothing")),
    }
}

/// Whether it has the server write to its disk: what is read to measure was written before.
fn writes_to_measure(verb: LabVerb) -> bool {
    match verb {
        LabVerb::Write | LabVerb::Read(_) => true,
        LabVerb::Take | LabVerb::Give(_) => false,
    }
}

fn writes(verb: &RepositoryVerb) -> bool {
    match verb {
        RepositoryVerb::Create
        | RepositoryVerb::PutWrappings
        | RepositoryVerb::PutBack
        | RepositoryVerb::PutBackRecord
        | RepositoryVerb::PutBlocks(_)
        | RepositoryVerb::Commit(_) => true,
        RepositoryVerb::Describe
        | RepositoryVerb::OpenSession
        | RepositoryVerb::Missing(_)
        | RepositoryVerb::CloseSession(_)
        | RepositoryVerb::Records(_)
        | RepositoryVerb::Fetch(..)
        | RepositoryVerb::ReadBlocks(..)
        | RepositoryVerb::ProveBlocks(_)
        | RepositoryVerb::Scrub
        | RepositoryVerb::Usage
        | RepositoryVerb::Deletions
        | RepositoryVerb::Forget
        | RepositoryVerb::Prune(_)
        | RepositoryVerb::SparseBlocks(_)
        | RepositoryVerb::Supersede(_) => false,
    }
}

/// Whether a verb needs an administrator's token.
fn is_for_administrators(verb: &RepositoryVerb) -> bool {
    matches!(
        verb,
        RepositoryVerb::Forget
            | RepositoryVerb::Prune(_)
            | RepositoryVerb::SparseBlocks(_)
            | RepositoryVerb::Supersede(_)
    )
}

fn denied(reason: &str) -> WireError {
    WireError::Repository(RepositoryError::NotAllowed { reason: reason.into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdall_format::SessionId;
    use holdall_protocol::RecordQuery;

    fn verbs() -> Vec<RepositoryVerb> {
        let session = SessionId::from_bytes([1; 16]);
        vec![
            RepositoryVerb::Create,
            RepositoryVerb::PutWrappings,
            RepositoryVerb::PutBack,
            RepositoryVerb::PutBackRecord,
            RepositoryVerb::PutBlocks(session),
            RepositoryVerb::Commit(session),
            RepositoryVerb::Describe,
            RepositoryVerb::OpenSession,
            RepositoryVerb::Missing(session),
            RepositoryVerb::CloseSession(session),
            RepositoryVerb::Records(RecordQuery::default()),
            RepositoryVerb::Fetch(session, 0),
            RepositoryVerb::ReadBlocks(session, 0),
            RepositoryVerb::ProveBlocks(session),
            RepositoryVerb::Scrub,
            RepositoryVerb::Usage,
            RepositoryVerb::Deletions,
            RepositoryVerb::Forget,
            RepositoryVerb::Prune(true),
            RepositoryVerb::SparseBlocks(0),
            RepositoryVerb::Supersede(session),
        ]
    }

    /// How many of [`verbs`] write; these come first.
    const WRITING: usize = 6;
    /// How many want a token; these come last.
    const FOR_ADMINISTRATORS: usize = 4;

    #[test]
    fn every_role_may_do_exactly_what_the_table_says() {
        let key = PublicKey::from_bytes([2; 32]);
        let own = || "own".to_owned();
        let machine = |right| {
            let machine = MachineId::from_bytes([3; 16]);
            Role::Machine { machine, repository: own(), right }
        };
        let roles = [
            (Role::Unknown, 0..0),
            (Role::Revoked, 0..0),
            (machine(Right::Backup), 0..verbs().len()),
            (machine(Right::Read), WRITING..verbs().len()),
            (Role::Reader { repository: own() }, WRITING..verbs().len() - FOR_ADMINISTRATORS),
        ];
        for (role, allowed) in roles {
            for (at, verb) in verbs().iter().enumerate() {
                for name in ["own", OWN_REPOSITORY] {
                    let may = check(&role, key, name, verb).is_ok();
                    assert_eq!(may, allowed.contains(&at), "{role:?} {verb:?} {name}");
                }
                assert!(check(&role, key, "another", verb).is_err(), "{role:?} {verb:?}");
            }
        }
    }

    #[test]
    fn who_may_only_read_opens_sessions_to_read_only() {
        let key = PublicKey::from_bytes([2; 32]);
        let machine = MachineId::from_bytes([3; 16]);
        let kit = Role::Reader { repository: "own".into() };
        let reading = Role::Machine { machine, repository: "own".into(), right: Right::Read };
        for role in [kit, reading] {
            let permit = check(&role, key, "own", &RepositoryVerb::OpenSession).unwrap();
            assert!(permit.check_purpose(&SessionPurpose::Read).is_ok());
            let backup = SessionPurpose::Backup { parents: vec![] };
            assert!(permit.check_purpose(&backup).is_err());
        }
    }

    #[test]
    fn a_permit_holds_no_longer_than_the_right() {
        let key = PublicKey::from_bytes([2; 32]);
        let of = |right, repository: &str| Role::Machine {
            machine: MachineId::from_bytes([3; 16]),
            repository: repository.into(),
            right,
        };
        let before = of(Right::Backup, "own");
        for name in ["own", OWN_REPOSITORY] {
            let permit = check(&before, key, name, &RepositoryVerb::PutWrappings).unwrap();
            assert!(permit.check_again(&before).is_ok());
            for role in
                [Role::Unknown, Role::Revoked, of(Right::Read, "own"), of(Right::Backup, "another")]
            {
                let refused = permit.check_again(&role);
                assert!(matches!(refused, Err(RepositoryError::NotAllowed { .. })), "{role:?}");
            }
        }
    }

    #[test]
    fn an_unknown_key_is_told_from_one_that_may_not() {
        let key = PublicKey::from_bytes([2; 32]);
        let ask = |role| check(&role, key, "own", &RepositoryVerb::Describe);
        assert!(matches!(ask(Role::Unknown), Err(WireError::UnknownMachine)));
        assert!(matches!(
            ask(Role::Revoked),
            Err(WireError::Repository(RepositoryError::NotAllowed { .. }))
        ));
    }
}
