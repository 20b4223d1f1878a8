//! Machines, their keys, and invites: the server's small state.
//!
//! All of it is kept in memory, because every request asks for a key's role; every change is durable
//! in redb before it is seen. A machine keeps its id, its name and its repository while its keys
//! change; a key that was replaced stays known as revoked.
//!
//! `database` is what lies on the disk, `machine` its rows. `invite`, `pairing` and `restored` let machines in,
//! `administration` changes what they may, `renaming` their names, `removal` takes them away, `keeping` has rules and deletions that wait, `tokens` who may ask for these,
//! and `retention_alarm` why rules stand still. `api_tokens` are for programs, `channels` say how people are told, `second_factor` is what some sign in with beside a password, `audit` is who had what changed, `runs` what machines tell of theirs, on the disk alone, `room` how full it was, `bandwidth` what passes in a second, `upkeep` when the server keeps house, `hours` are those of a week, `certificate` how that for browsers is. `copied` is what to keep of all that elsewhere. `entries` is what of all that an administrator sees.

mod administration;
mod api_tokens;
mod audit;
mod bandwidth;
mod certificate;
pub(crate) mod channels;
mod clock;
mod copied;
mod database;
mod entries;
mod hours;
mod invite;
mod keeping;
mod keeping_words;
mod machine;
mod names;
mod newest;
mod pairing;
mod places;
mod removal;
mod renaming;
mod restored;
mod retention_alarm;
mod room;
mod runs;
#[cfg(feature = "web")]
mod second_factor;
mod seen;
mod tag_tokens;
mod tokens;
mod upkeep;
#[cfg(feature = "web")]
mod web_accounts;
mod web_code;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdall_format::{MachineId, PublicKey};
use holdall_repository::EARLIEST_NS;
use holdall_sys::Clock;
use holdall_sys::PathBeneath;

use crate::ServerError;
use crate::auth::rights::Role;
use crate::clock_trust::Noted;
use clock::WatchedClock;
use database::Database;
use keeping::{Asking, KeepingRow};
use machine::{InviteRow, Machine};
use seen::Seen;
use tokens::TokenRow;

pub(crate) use copied::CopiedAccounts;
#[cfg(feature = "web")]
pub(crate) use second_factor::SECRET_LEN;
#[cfg(feature = "web")]
pub(crate) use web_accounts::{WebAccount, no_person};

pub use api_tokens::ApiToken;
pub use audit::AuditEntry;
pub use bandwidth::BandwidthRule;
pub(crate) use bandwidth::in_force as bandwidth_in_force;
pub use certificate::CertificateStatus;
pub use channels::{Channel, ChannelEntry};
pub use entries::{Deletion, Going, Keeping, KeepingEntry, MachineEntry, Removal, RunEntry};
pub(crate) use hours::local;
pub use hours::{Day, Hours};
pub use invite::{Invitation, InviteEntry, InviteRequest};
#[cfg(test)]
use pairing::Account;
pub(crate) use places::StoragePlace;
pub(crate) use retention_alarm::RetentionWatch;
pub(crate) use room::{Room, bytes_per_day};
pub use upkeep::Upkeep;

/// The accounts of one server.
pub(crate) struct Accounts {
    database: Arc<Database>,
    state: Mutex<State>,
    seen: Seen,
    clock: Arc<WatchedClock>,
    /// By repository.
    asking: Mutex<HashMap<String, Arc<Asking>>>,
    noted: audit::Noted,
}

/// By so much a clock may have been set back since something was made that it lives on.
const SET_BACK_NS: i64 = 60 * 1_000_000_000;

/// Whether what was made then, to live so long, lives now. Made by a clock that was ahead, it does not: it
/// would live for as long as that was besides.
fn lives(made_ns: i64, life_ns: i64, now_ns: i64) -> bool {
    (-SET_BACK_NS..life_ns).contains(&now_ns.saturating_sub(made_ns))
}

/// What redb holds, in memory.
#[derive(Default)]
struct State {
    machines: HashMap<MachineId, Machine>,
    /// Keys of recovery kits and the repositories that they read.
    readers: HashMap<PublicKey, String>,
    /// By the hash of their secret.
    invites: HashMap<[u8; 32], InviteRow>,
    /// Most bytes of those repositories for which there is a most.
    quotas: HashMap<String, u64>,
    /// What is kept of those repositories for which somebody said it.
    keeping: HashMap<String, KeepingRow>,
    /// Deletions that wait, by number.
    deletions: BTreeMap<u64, Deletion>,
    /// Former names of repositories, each with the present one.
    former: BTreeMap<String, String>,
    /// By their hash.
    tokens: HashMap<[u8; 32], TokenRow>,
    /// Every key and what it is now; follows from the above.
    roles: HashMap<PublicKey, Role>,
}

impl Accounts {
    /// Opens the database, or makes one.
    pub(crate) fn open(path: &PathBeneath, clock: Arc<dyn Clock>) -> Result<Self, ServerError> {
        let database = Arc::new(Database::open(path)?);
        let mut state = database.load()?;
        state.derive_roles();
        let seen = Seen::of_noted(database.seen()?.into_iter());
        let clock = Arc::new(WatchedClock::new(clock, Arc::clone(&database)));
        Ok(Self {
            database,
            state: Mutex::new(state),
            seen,
            clock,
            asking: Mutex::default(),
            noted: audit::Noted::default(),
        })
    }

    /// What a key is.
    pub(crate) fn role(&self, key: &PublicKey) -> Role {
        self.state().roles.get(key).cloned().unwrap_or(Role::Unknown)
    }

    /// Whose key it is, for the log: the machine's name, or the beginning of a key that is no machine's.
    pub(crate) fn shown(&self, key: &PublicKey) -> String {
        let state = self.state();
        match state.roles.get(key) {
            Some(Role::Machine { machine, .. }) => {
                let known = state.machines.get(machine);
                known.map_or_else(|| machine.to_string(), |known| known.name.clone())
            }
            Some(Role::Reader { repository }) => format!("a recovery kit of {repository}"),
            Some(Role::Revoked) => state.machine_with(key).map_or_else(
                || "a revoked key".to_owned(),
                |(_, known)| format!("{} (revoked)", known.name),
            ),
            _ => format!("key {:.16}", key.to_string()),
        }
    }

    /// The identities of recovery kits that read a repository.
    pub(crate) fn readers(&self, repository: &str) -> Vec<PublicKey> {
        self.state().readers_of(repository).collect()
    }

    /// The names of all repositories that a recovery kit reads, in order.
    pub(crate) fn read_by_kits(&self) -> BTreeSet<String> {
        self.state().readers.values().cloned().collect()
    }

    /// Lets exactly these identities of recovery kits read a repository, and tells whether that
    /// changes anything.
    ///
    /// # Errors
    /// [`ServerError::Refused`] if one of the keys is something else already; then nothing changes.
    pub(crate) fn set_readers(
        &self,
        repository: &str,
        keys: &[PublicKey],
    ) -> Result<bool, ServerError> {
        let mut state = self.state();
        let is_other = |key| match state.roles.get(key) {
            None => false,
            Some(Role::Reader { repository: known }) => known != repository,
            Some(_) => true,
        };
        if keys.iter().any(is_other) {
            return Err(ServerError::refused("the recovery identity is known already"));
        }
        let gone: Vec<_> =
            state.readers_of(repository).filter(|reader| !keys.contains(reader)).collect();
        let new: Vec<_> =
            keys.iter().filter(|key| !state.readers.contains_key(key)).copied().collect();
        if gone.is_empty() && new.is_empty() {
            return Ok(false);
        }
        self.database.change(|changes| {
            gone.iter().try_for_each(|key| changes.drop_reader(key))?;
            new.iter().try_for_each(|key| changes.put_reader(key, repository))
        })?;
        state.readers.retain(|reader, _| !gone.contains(reader));
        state.readers.extend(new.into_iter().map(|key| (key, repository.to_owned())));
        state.derive_roles();
        Ok(true)
    }

    /// Remembers where the server listens, for invites that are made while it does not run.
    pub(crate) fn set_listen(&self, address: &str) -> Result<(), ServerError> {
        self.database.put_setting("listen", address)
    }

    /// Where the server listened last.
    pub(crate) fn listen(&self) -> Result<Option<String>, ServerError> {
        self.database.setting("listen")
    }

    /// The clock, for everything else that has a time by it.
    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock) as _
    }

    /// Looks at the clock and notes what it shows; tells whether it can be believed.
    ///
    /// # Errors
    /// If it cannot be noted.
    pub(crate) fn watch_clock(&self) -> Result<Noted, ServerError> {
        self.clock.look()
    }

    /// Whether so much time has certainly passed since the clock showed that.
    pub(crate) fn has_passed(&self, since_ns: i64, time_ns: i64) -> bool {
        self.clock.passed_ns(since_ns) >= time_ns
    }

    fn now_ns(&self) -> i64 {
        self.clock.now_ns()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = self.database.load_after_error() {
            *state = loaded;
            state.derive_roles();
        }
        state
    }

    /// The time by a clock that somebody has set: what is asked for goes by its age.
    fn set_now_ns(&self) -> Result<i64, ServerError> {
        match self.now_ns() {
            now_ns if now_ns < EARLIEST_NS => Err(ServerError::refused(
                "this computer's clock shows a time before 2023; set it, and ask again",
            )),
            now_ns => Ok(now_ns),
        }
    }
}

impl State {
    fn derive_roles(&mut self) {
        let readers = self
            .readers
            .iter()
            .map(|(key, repository)| (*key, Role::Reader { repository: repository.clone() }));
        let machines = self.machines.iter().flat_map(|(id, machine)| {
            machine.keys.iter().map(|key| (key.public(), machine.role_of(*id, key)))
        });
        self.roles = readers.chain(machines).collect();
    }

    fn readers_of<'a>(&'a self, repository: &'a str) -> impl Iterator<Item = PublicKey> + 'a {
        let of = move |(key, name): (&PublicKey, &String)| (name == repository).then_some(*key);
        self.readers.iter().filter_map(of)
    }

    /// The machine whose repository that is.
    fn owner_of(&self, repository: &str) -> Option<(&MachineId, &Machine)> {
        self.machines.iter().find(|(_, machine)| machine.repository == repository)
    }
}

#[cfg(test)]
mod power;
#[cfg(test)]
mod tests;
