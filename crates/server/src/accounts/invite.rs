//! Handing out invites.

use holdall_format::{MachineId, PublicKey};
use holdall_protocol::Invite;
use holdall_protocol::wire::is_repository_name;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::machine::{INVITE_LIFE_NS, InviteRow};
use super::names::check_machine_name;
use super::{Accounts, State, lives};
use crate::ServerError;
use crate::auth::identity::random;
use crate::auth::rights::Right;

/// The longest that an invite may be accepted.
const LIFE_MAX_NS: i64 = 30 * 24 * 60 * 60 * 1_000_000_000;
/// How long a used or expired invite is remembered, so that its answer can be repeated.
const MEMORY_NS: i64 = 24 * 60 * 60 * 1_000_000_000;
/// Most invites that are remembered.
const MAX_INVITES: usize = 1000;

/// What an administrator says of the machine that is to come; all of it may be left open.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct InviteRequest {
    /// The machine's name.
    pub name: Option<String>,
    /// An existing machine, by name, id or the beginning of its id, that gets a new key; its old keys are revoked when the
    /// invite is used.
    pub for_machine: Option<String>,
    /// The repository's name; it must not belong to another machine.
    pub repository: Option<String>,
    /// Where the server can be reached, `HOST:PORT` each, or `HOST` with the port that it listens at; empty to find out.
    pub addresses: Vec<String>,
    /// For how many seconds it is accepted: at least one, at most 30 days; `None` for 10 minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_for_s: Option<u64>,
}

/// An invite that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct Invitation {
    /// The line to hand over.
    #[serde(with = "invite_text")]
    #[cfg_attr(feature = "web", schema(value_type = String))]
    pub invite: Invite,
    /// When it lapses, in nanoseconds since 1970 UTC.
    pub expires_ns: i64,
}

/// An invite that is open, as an administrator sees it. Times are in nanoseconds since 1970 UTC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct InviteEntry {
    /// What it is called: the beginning of its hash, which lets nobody in.
    pub id: String,
    /// What the new machine is to be called; `None` for what it calls itself.
    pub name: Option<String>,
    /// The machine that gets a new key, by its name.
    pub for_machine: Option<String>,
    /// The repository, where the administrator chose it.
    pub repository: Option<String>,
    /// What the machine may do then.
    pub right: Right,
    /// When it was made.
    pub made_ns: i64,
    /// When it lapses.
    pub expires_ns: i64,
}

/// An invite as the line to hand over.
mod invite_text {
    use super::{Invite, Zeroizing};
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(invite: &Invite, to: S) -> Result<S::Ok, S::Error> {
        invite.to_text().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Invite, D::Error> {
        let text = Zeroizing::<String>::deserialize(from)?;
        Invite::from_text(&text).map_err(D::Error::custom)
    }
}

impl Accounts {
    /// Makes an invite and remembers it.
    ///
    /// # Errors
    /// [`ServerError::Refused`] for names that are not valid, unknown or taken.
    pub(crate) fn invite(
        &self,
        request: &InviteRequest,
        identity: PublicKey,
        addresses: Vec<String>,
    ) -> Result<Invitation, ServerError> {
        let now = self.now_ns();
        let mut state = self.state();
        let row = state.invite_row(request, now)?;
        let mut secret = Zeroizing::new([0; 16]);
        random(&mut secret[..])?;
        let hash = secret_hash(&secret);
        let lapsed: Vec<_> = state.lapsed_invites(now).collect();
        self.database.change(|changes| {
            lapsed.iter().try_for_each(|old| changes.drop_invite(old))?;
            changes.put_invite(&hash, &row)
        })?;
        lapsed.iter().for_each(|old| drop(state.invites.remove(old)));
        let repository = row.repository.clone().unwrap_or_default();
        let expires_ns = now.saturating_add(row.valid_for_ns);
        state.invites.insert(hash, row);
        let invite = Invite { identity, secret, repository, addresses };
        Ok(Invitation { invite, expires_ns })
    }
}

impl Accounts {
    /// The invites that are open, the oldest first.
    pub(crate) fn open_invites(&self) -> Vec<InviteEntry> {
        let now = self.now_ns();
        let state = self.state();
        let mut open: Vec<_> =
            state.open_invites(now).map(|(hash, row)| state.invite_entry(hash, row)).collect();
        open.sort_by_key(|entry| entry.made_ns);
        open
    }

    /// Forgets an invite that is open, by what it is called.
    ///
    /// # Errors
    /// [`ServerError::Refused`] if there is none.
    pub(crate) fn withdraw_invite(&self, id: &str) -> Result<InviteEntry, ServerError> {
        let now = self.now_ns();
        let mut state = self.state();
        let found = state.open_invites(now).find(|(hash, _)| short(hash) == id);
        let found = found.map(|(hash, row)| (*hash, state.invite_entry(hash, row)));
        let (hash, entry) = found.ok_or_else(|| {
            ServerError::refused(format!(
                "no open invite is called {id:?}; `holdall admin invites` lists them"
            ))
        })?;
        self.database.change(|changes| changes.drop_invite(&hash))?;
        state.invites.remove(&hash);
        Ok(entry)
    }
}

impl Accounts {
    /// Forgets an invite that nobody used. One that was used stays known as such.
    ///
    /// # Errors
    /// If it cannot be written down.
    pub(crate) fn forget_invite(&self, secret: &[u8; 16]) -> Result<(), ServerError> {
        let hash = secret_hash(secret);
        let mut state = self.state();
        if state.invites.get(&hash).is_some_and(|row| row.used.is_none()) {
            self.database.change(|changes| changes.drop_invite(&hash))?;
            state.invites.remove(&hash);
        }
        Ok(())
    }
}

impl State {
    /// Those that nobody used, and that did not lapse.
    fn open_invites(&self, now: i64) -> impl Iterator<Item = (&[u8; 32], &InviteRow)> {
        let is_open = move |row: &InviteRow| {
            row.used.is_none() && lives(row.created_ns, row.valid_for_ns, now)
        };
        self.invites.iter().filter(move |(_, row)| is_open(row))
    }

    fn invite_entry(&self, hash: &[u8; 32], row: &InviteRow) -> InviteEntry {
        let machine = row.for_machine.and_then(|id| self.machines.get(&MachineId::from_bytes(id)));
        InviteEntry {
            id: short(hash),
            name: row.name.clone(),
            for_machine: machine.map(|machine| machine.name.clone()),
            repository: row.repository.clone(),
            right: machine.map(|machine| machine.right).unwrap_or_default(),
            made_ns: row.created_ns,
            expires_ns: row.created_ns.saturating_add(row.valid_for_ns),
        }
    }

    fn invite_row(&self, request: &InviteRequest, now: i64) -> Result<InviteRow, ServerError> {
        if let Some(name) = request.name.as_deref() {
            check_machine_name(name)?;
            self.check_no_machine_is_called(name)?;
        }
        let mut row = InviteRow {
            created_ns: now,
            valid_for_ns: valid_for_ns(request.valid_for_s)?,
            name: request.name.clone(),
            repository: request.repository.clone(),
            for_machine: None,
            used: None,
        };
        if let Some(wanted) = &request.for_machine {
            let (id, machine) = self.find_machine(wanted)?;
            let repository = machine.repository.clone();
            if request.repository.as_ref().is_some_and(|named| *named != repository) {
                let reason = format!("{wanted} has the repository {repository}");
                return Err(ServerError::refused(reason));
            }
            self.check_stays(&repository)?;
            row.for_machine = Some(*id.as_bytes());
            row.repository = Some(repository);
        } else if let Some(repository) = &request.repository {
            self.check_repository(repository)?;
        }
        let young = self.invites.len().saturating_sub(self.lapsed_invites(now).count());
        if young >= MAX_INVITES {
            return Err(ServerError::refused("too many invites were made today"));
        }
        Ok(row)
    }

    fn check_no_machine_is_called(&self, name: &str) -> Result<(), ServerError> {
        match self.is_called(name) {
            false => Ok(()),
            true => Err(ServerError::refused(format!(
                "a machine is called {name:?} already: choose another name, or give that machine a new computer with \
                 `holdall invite --for`"
            ))),
        }
    }

    /// Whether a machine has that name.
    pub(super) fn is_called(&self, name: &str) -> bool {
        self.machines.values().any(|machine| machine.name == name)
    }

    /// Checks that a new machine may get that repository.
    pub(super) fn check_repository(&self, name: &str) -> Result<(), ServerError> {
        if !is_repository_name(name) {
            return Err(ServerError::refused(format!(
                "{name:?} cannot be a repository's name: at most 64 of a-z, 0-9, '.', '_' and \
                 '-', and a letter or digit first"
            )));
        }
        if let Some(current) = self.former.get(name) {
            return Err(ServerError::refused(format!(
                "{name} is a former name of the repository {current}, and leads to it"
            )));
        }
        self.check_stays(name)?;
        match self.owner_of(name) {
            None => Ok(()),
            Some((_, machine)) => Err(ServerError::refused(format!(
                "the repository {name} belongs to the machine {}, and each machine has one of its own; `holdall \
                 invite --for` with that machine gives it to a new computer in its place",
                machine.name
            ))),
        }
    }

    fn lapsed_invites(&self, now: i64) -> impl Iterator<Item = [u8; 32]> {
        let lapsed = move |row: &InviteRow| {
            now.saturating_sub(row.created_ns) > row.valid_for_ns.max(MEMORY_NS)
        };
        self.invites.iter().filter(move |(_, row)| lapsed(row)).map(|(hash, _)| *hash)
    }
}

fn valid_for_ns(asked_s: Option<u64>) -> Result<i64, ServerError> {
    let Some(asked_s) = asked_s else { return Ok(INVITE_LIFE_NS) };
    let asked_ns = i64::try_from(asked_s).ok().and_then(|asked| asked.checked_mul(1_000_000_000));
    asked_ns.filter(|asked| (1..=LIFE_MAX_NS).contains(asked)).ok_or_else(|| {
        ServerError::refused("an invite may be valid for at least a second and at most 30 days")
    })
}

/// What an invite is called: 32 bits of its hash, in hexadecimal.
fn short(hash: &[u8; 32]) -> String {
    hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

/// Under what an invite's secret is remembered.
pub(super) fn secret_hash(secret: &[u8; 16]) -> [u8; 32] {
    blake3::derive_key("holdall v1 invite secret", secret)
}
