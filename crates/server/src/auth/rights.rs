//! Who may do what. Every request passes here, and nothing reaches a repository without the
//! [`Permit`] that only this module makes.
//!
//! | a verb that needs | unknown key | revoked key | machine, own repository | machine, another's | reader |
//! | --- | --- | --- | --- | --- | --- |
//! | to back up | | | with the right to back up | | |
//! | to read | | | yes | | own |
//! | a token | | | with an administrator's token | | |
//! | to measure | | | yes | yes | |
//! | to measure the disk | | | with the right to back up | the same | |
//!
//! Which verb needs what stands in the table of verbs in `protocol`. A session to back up is opened with the right to
//! back up only, which shows in the body.
//!
//! Pairing is not among them: what it allows is in the invite, and is checked where that is taken. An
//! administrator's token is in the body, and is checked where that is read. A reader is the identity of a recovery kit. Whether another's
//! repository exists is not told.

use std::fmt;

use holdall_format::{MachineId, PublicKey};
use holdall_protocol::wire::{Needs, OWN_REPOSITORY, Verb, WireError};
use holdall_protocol::{Denial, RepositoryError, SessionPurpose};
use serde::{Deserialize, Serialize};

/// What a machine may do in its own repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
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

/// What stands for the machine of a recovery kit.
const KIT_MACHINE: MachineId = MachineId::from_bytes([0; MachineId::LEN]);

/// The right to do the one thing that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Permit {
    repository: String,
    machine: MachineId,
    key: PublicKey,
    may_write: bool,
    verb: &'static Verb,
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

    /// Most bytes of the request's body.
    pub(crate) fn max_body_bytes(&self) -> usize {
        self.verb.max_body_bytes
    }

    /// Checks that the key, of that role by now, may still do it in the repository, which is called `repository` by now:
    /// a request may take long to come.
    ///
    /// # Errors
    /// [`RepositoryError::NotAllowed`].
    pub(crate) fn check_again(&self, role: &Role, repository: &str) -> Result<(), RepositoryError> {
        match check(role, self.key, repository, self.verb) {
            Ok(_) => Ok(()),
            Err(WireError::Repository(error)) => Err(error),
            Err(_) => {
                Err(RepositoryError::denied(Denial::UnknownMachine, "its key is no machine's"))
            }
        }
    }

    fn only_restores(&self) -> WireError {
        match self.machine == KIT_MACHINE {
            true => kit_only_restores(),
            false => only_restores(),
        }
    }

    /// Checks what only the body of the request tells.
    pub(crate) fn check_purpose(&self, purpose: &SessionPurpose) -> Result<(), WireError> {
        match purpose {
            SessionPurpose::Backup { .. } if !self.may_write => Err(self.only_restores()),
            SessionPurpose::Backup { .. } | SessionPurpose::Read => Ok(()),
        }
    }
}

/// Whether a key of that role may ask that of the repository `name`.
pub(crate) fn check(
    role: &Role,
    key: PublicKey,
    name: &str,
    verb: &'static Verb,
) -> Result<Permit, WireError> {
    let (machine, repository, may_write) = match role {
        Role::Unknown => return Err(WireError::UnknownMachine),
        Role::Revoked => return Err(key_was_revoked()),
        Role::Machine { machine, repository, right } => {
            (*machine, repository, *right == Right::Backup)
        }
        Role::Reader { .. } if verb.needs == Needs::Token => {
            return Err(kit_only_restores());
        }
        Role::Reader { repository } => (KIT_MACHINE, repository, false),
    };
    if name != OWN_REPOSITORY && name != repository {
        return Err(denied(Denial::Other, "a machine may use its own repository only"));
    }
    let permit = Permit { repository: repository.clone(), machine, key, may_write, verb };
    if verb.needs == Needs::Backup && !may_write {
        return Err(permit.only_restores());
    }
    Ok(permit)
}

/// Whether a key of that role may measure the path to this server, which no repository is part of.
/// Who may only read has nothing written for it.
pub(crate) fn check_measuring(role: &Role, verb: &Verb) -> Result<(), WireError> {
    match role {
        Role::Machine { right: Right::Read, .. } if verb.needs == Needs::MeasureDisk => {
            Err(only_restores())
        }
        Role::Machine { .. } => Ok(()),
        Role::Unknown => Err(WireError::UnknownMachine),
        Role::Revoked => Err(key_was_revoked()),
        Role::Reader { .. } => Err(denied(Denial::RecoveryKit, "a recovery kit measures nothing")),
    }
}

fn key_was_revoked() -> WireError {
    denied(Denial::RevokedKey, "this machine's key was revoked")
}

fn only_restores() -> WireError {
    denied(Denial::ReadOnly, "this computer may only restore, not back up")
}

fn kit_only_restores() -> WireError {
    denied(Denial::RecoveryKit, "a recovery kit may only restore, not back up")
}

fn denied(cause: Denial, reason: &str) -> WireError {
    RepositoryError::denied(cause, reason).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdall_protocol::wire::RepositoryVerb;

    #[test]
    fn every_role_may_do_exactly_what_the_table_says() {
        let key = PublicKey::from_bytes([2; 32]);
        let own = || "own".to_owned();
        let machine = |right| {
            let machine = MachineId::from_bytes([3; 16]);
            Role::Machine { machine, repository: own(), right }
        };
        let roles: [(Role, &[Needs]); 5] = [
            (Role::Unknown, &[]),
            (Role::Revoked, &[]),
            (machine(Right::Backup), &[Needs::Read, Needs::Backup, Needs::Token]),
            (machine(Right::Read), &[Needs::Read, Needs::Token]),
            (Role::Reader { repository: own() }, &[Needs::Read]),
        ];
        for (role, allowed) in roles {
            for verb in RepositoryVerb::ALL {
                for name in ["own", OWN_REPOSITORY] {
                    let may = check(&role, key, name, verb).is_ok();
                    assert_eq!(may, allowed.contains(&verb.needs), "{role:?} {verb:?} {name}");
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
            let permit = check(&role, key, "own", RepositoryVerb::OpenSession.verb()).unwrap();
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
            let permit = check(&before, key, name, RepositoryVerb::PutWrappings.verb()).unwrap();
            assert!(permit.check_again(&before, "own").is_ok());
            let renamed = of(Right::Backup, "renamed");
            assert!(permit.check_again(&renamed, "renamed").is_ok());
            for role in
                [Role::Unknown, Role::Revoked, of(Right::Read, "own"), of(Right::Backup, "another")]
            {
                let refused = permit.check_again(&role, "own");
                assert!(matches!(refused, Err(RepositoryError::NotAllowed { .. })), "{role:?}");
            }
        }
    }

    #[test]
    fn an_unknown_key_is_told_from_one_that_may_not() {
        let key = PublicKey::from_bytes([2; 32]);
        let ask = |role| check(&role, key, "own", RepositoryVerb::Describe.verb());
        assert!(matches!(ask(Role::Unknown), Err(WireError::UnknownMachine)));
        assert!(matches!(
            ask(Role::Revoked),
            Err(WireError::Repository(RepositoryError::NotAllowed { .. }))
        ));
    }
}
