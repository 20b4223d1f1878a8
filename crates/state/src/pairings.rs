//! The servers that this machine was paired with.

use std::path::{Path, PathBuf};

use holdall_format::PublicKey;
use holdall_protocol::{INVITE_MAX_ADDRESSES, Invite};
use serde::{Deserialize, Serialize};

use crate::error::{StateError, StateFile};
use crate::hex;
use crate::private_file;

const LIMIT_BYTES: u64 = 1 << 20;
/// Most addresses that are kept of a server: those of an invite, and as many that were learned.
const MAX_ADDRESSES: usize = 2 * INVITE_MAX_ADDRESSES;
/// One repository on one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pairing {
    /// Where the server may be reached, `HOST:PORT` each, the most likely first.
    pub addresses: Vec<String>,
    /// The server's identity key, in hexadecimal digits: whoever has another is not the server.
    pub identity: String,
    /// The repository's name there.
    pub name: String,
    /// The repository's id.
    pub repository: String,
    /// Whether this machine only reads there, signed in with a recovery kit's key.
    #[serde(default)]
    pub reads_only: bool,
    /// What a server's commands find this machine by whatever it is called: the beginning of its id there. Pairings of before that was kept
    /// have the name of then, or lack it, as those by a kit do.
    #[serde(default, alias = "machine_name")]
    pub machine: Option<String>,
}

impl Pairing {
    /// The pinned identity.
    ///
    /// # Errors
    /// If the state says nonsense.
    pub fn identity(&self) -> Result<PublicKey, StateError> {
        let bytes = hex::decode(&self.identity).ok_or(StateError::PinnedIdentity)?;
        Ok(PublicKey::from_bytes(*bytes))
    }

    /// Whether it is with the same server, or with another one at its address, and for another repository of the same name:
    /// then the other one is to be had there no more.
    pub fn takes_place_of(&self, other: &Self) -> bool {
        let is_there = self.identity == other.identity
            || self.addresses.iter().any(|address| other.is_at(address));
        is_there && self.name == other.name && self.repository != other.repository
    }

    /// Whether that is one of its server's known addresses.
    pub fn is_at(&self, address: &str) -> bool {
        self.addresses.iter().any(|of| of == address)
    }

    /// The known addresses of its server, the one that was `named` first.
    pub fn addresses_from(&self, named: Option<&str>) -> Vec<String> {
        let known = self.addresses.iter().map(String::as_str);
        let others = known.filter(|other| Some(*other) != named);
        named.into_iter().chain(others).map(str::to_owned).collect()
    }

    /// Where its server is looked for. At an address that was `named` and is not known, only there:
    /// somebody may mean another server.
    pub fn hosts(&self, named: Option<&str>) -> Vec<String> {
        match named {
            Some(address) if !self.is_at(address) => vec![address.to_owned()],
            _ => self.addresses_from(named),
        }
    }
}

/// All of them; the last one is the default repository.
#[derive(Debug)]
pub struct Pairings {
    state: PathBuf,
    all: Vec<Pairing>,
}

impl Pairings {
    /// Reads them from a state folder.
    ///
    /// # Errors
    /// If the file cannot be read or understood.
    pub fn read(state: &Path) -> Result<Self, StateError> {
        let path = Self::path(state);
        let all = match private_file::read(&path, LIMIT_BYTES)? {
            Some(bytes) => serde_json::from_slice(&bytes)
                .map_err(|error| StateError::damaged(StateFile::Pairings, &path, error))?,
            None => Vec::new(),
        };
        Ok(Self { state: state.to_owned(), all })
    }

    /// The pairing with that repository.
    pub fn of(&self, repository: &str) -> Option<&Pairing> {
        self.all.iter().find(|pairing| pairing.repository == repository)
    }

    /// The default repository, if this machine was paired.
    pub fn default(&self) -> Option<&Pairing> {
        self.all.last()
    }

    /// The names of the repositories that it may use on the server at an address, the newest pairing's first.
    pub fn names_at(&self, address: &str) -> Vec<&str> {
        let there = self.all.iter().rev().filter(|pairing| pairing.is_at(address));
        there.map(|pairing| &*pairing.name).collect()
    }

    /// The newest pairing with a server at `address`; without one there, the only one of that name,
    /// since servers move, and the pinned identity tells whether it is the same. `name` may be empty.
    pub fn find(&self, address: &str, name: &str) -> Option<&Pairing> {
        let named = |pairing: &&Pairing| name.is_empty() || pairing.name == name;
        let there = |pairing: &&Pairing| pairing.is_at(address);
        let found = self.all.iter().rev().filter(there).find(named);
        if found.is_some() || self.all.iter().any(|pairing| there(&pairing)) {
            return found;
        }
        let mut all = self.all.iter().filter(named);
        all.next().filter(|_| all.next().is_none())
    }

    /// The newest pairing by an invite.
    pub fn newest_by_invite(&self) -> Option<&Pairing> {
        self.all.iter().rev().find(|pairing| !pairing.reads_only)
    }

    /// Keeps the address at which the pinned server of a repository was found, as the most likely
    /// one. The default repository stays the same.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn learn(&mut self, repository: &str, address: &str) -> Result<(), StateError> {
        let mut all = self.all.iter_mut();
        let Some(pairing) = all.find(|pairing| pairing.repository == repository) else {
            return Ok(());
        };
        if pairing.addresses.first().is_some_and(|first| first == address) {
            return Ok(());
        }
        pairing.addresses.retain(|other| other != address);
        pairing.addresses.insert(0, address.to_owned());
        pairing.addresses.truncate(MAX_ADDRESSES);
        self.write()
    }

    /// Makes a repository that is paired the default one.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn prefer(&mut self, repository: &str) -> Result<(), StateError> {
        match self.of(repository).cloned() {
            Some(pairing) => self.keep(pairing, true),
            None => Ok(()),
        }
    }

    /// Keeps a pairing, in place of an older one with the same repository. It becomes the default one if that is wanted,
    /// or if there is no other.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep(&mut self, pairing: Pairing, as_default: bool) -> Result<(), StateError> {
        let as_default = as_default || self.default_beside(&pairing).is_none();
        self.all.retain(|other| other.repository != pairing.repository);
        let at = if as_default { self.all.len() } else { self.all.len().saturating_sub(1) };
        self.all.insert(at, pairing);
        self.write()
    }

    /// The default repository, if it is another one than that.
    pub fn default_besides(&self, repository: &str) -> Option<&Pairing> {
        self.default().filter(|default| default.repository != repository)
    }

    /// The default repository, if it is another one than that and goes on beside it.
    pub fn default_beside(&self, pairing: &Pairing) -> Option<&Pairing> {
        let default = self.default_besides(&pairing.repository);
        default.filter(|default| !pairing.takes_place_of(default))
    }

    /// The pairing by an invite with a server that this invite's takes the place of: it is at one of the addresses, and has
    /// another identity.
    pub fn replaced_by(&self, invite: &Invite) -> Option<&Pairing> {
        let identity = invite.identity.to_string();
        let mut writing = self.all.iter().rev().filter(|pairing| !pairing.reads_only);
        if writing.clone().any(|pairing| pairing.identity == identity) {
            return None;
        }
        writing.find(|pairing| invite.addresses.iter().any(|address| pairing.is_at(address)))
    }

    /// The pairings by an invite of the server that made this one, or that it takes the place of, the newest first.
    pub fn at_inviting(&self, invite: &Invite) -> impl Iterator<Item = &Pairing> {
        let (identity, addresses) = (invite.identity.to_string(), invite.addresses.clone());
        let is_there = move |pairing: &&Pairing| {
            pairing.identity == identity || addresses.iter().any(|address| pairing.is_at(address))
        };
        self.all.iter().rev().filter(|pairing| !pairing.reads_only).filter(is_there)
    }

    /// Forgets the pairings by an invite with the server of that one but for its own: a machine has one repository of a
    /// server.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep_alone(&mut self, pairing: &Pairing) -> Result<(), StateError> {
        self.all.retain(|other| {
            let is_there = other.identity == pairing.identity && !other.reads_only;
            other.repository == pairing.repository || !is_there
        });
        self.write()
    }

    fn write(&self) -> Result<(), StateError> {
        private_file::replace(&Self::path(&self.state), &serde_json::to_vec_pretty(&self.all)?)
    }

    fn path(state: &Path) -> PathBuf {
        state.join("pairings.json")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairing(address: &str, name: &str) -> Pairing {
        Pairing {
            addresses: vec![address.into()],
            identity: "07".repeat(32),
            name: name.into(),
            repository: format!("{name}@{address}"),
            reads_only: false,
            machine: None,
        }
    }

    #[test]
    fn who_takes_a_server_s_place_under_its_name_is_found_and_the_default_at_once() {
        let state = tempfile::tempdir().unwrap();
        let mut pairings = Pairings::read(state.path()).unwrap();
        pairings.keep(pairing("a:1", "laptop"), true).unwrap();
        let anew = Pairing {
            identity: "08".repeat(32),
            repository: "anew".into(),
            ..pairing("a:1", "laptop")
        };
        pairings.keep(anew.clone(), false).unwrap();
        assert_eq!(pairings.default(), Some(&anew));
        assert_eq!(pairings.find("a:1", "laptop"), Some(&anew));
        pairings.keep(pairing("b:1", "laptop"), false).unwrap();
        assert_eq!(
            pairings.default(),
            Some(&anew),
            "another server at another address takes no place"
        );
        let begun_anew = Pairing { repository: "begun anew".into(), ..anew };
        pairings.keep(begun_anew.clone(), false).unwrap();
        assert_eq!(pairings.default(), Some(&begun_anew));
        assert_eq!(pairings.find("a:1", "laptop"), Some(&begun_anew));
    }

    #[test]
    fn the_last_pairing_is_the_default_and_all_are_found_by_address_and_name() {
        let state = tempfile::tempdir().unwrap();
        let mut pairings = Pairings::read(state.path()).unwrap();
        assert_eq!(pairings.default(), None);
        pairings.keep(pairing("a:1", "laptop"), false).unwrap();
        assert_eq!(pairings.find("elsewhere:1", "").unwrap().name, "laptop");
        assert_eq!(pairings.find("elsewhere:1", "other"), None);
        pairings.keep(pairing("a:1", "other"), true).unwrap();
        pairings.keep(pairing("b:1", "laptop"), true).unwrap();

        let again = Pairings::read(state.path()).unwrap();
        assert_eq!(again.default(), Some(&pairing("b:1", "laptop")));
        assert_eq!(again.find("a:1", "laptop"), Some(&pairing("a:1", "laptop")));
        assert_eq!(again.find("a:1", ""), Some(&pairing("a:1", "other")));
        assert_eq!(again.find("c:1", ""), None);
        assert_eq!(again.find("c:1", "laptop"), None, "either may have moved");
        assert_eq!(again.find("c:1", "other"), Some(&pairing("a:1", "other")));
        assert_eq!(again.default().unwrap().identity().unwrap().as_bytes(), &[7; 32]);
    }

    #[test]
    fn the_default_changes_only_where_that_is_wanted() {
        let state = tempfile::tempdir().unwrap();
        let mut pairings = Pairings::read(state.path()).unwrap();
        let default = |pairings: &Pairings| pairings.default().unwrap().name.clone();
        pairings.keep(pairing("a:1", "first"), false).unwrap();
        pairings.keep(pairing("b:1", "second"), false).unwrap();
        pairings.keep(pairing("c:1", "third"), false).unwrap();
        assert_eq!(default(&pairings), "first");
        pairings.keep(pairing("a:1", "first"), false).unwrap();
        assert_eq!(default(&Pairings::read(state.path()).unwrap()), "first");
        pairings.keep(pairing("b:1", "second"), true).unwrap();
        assert_eq!(default(&Pairings::read(state.path()).unwrap()), "second");
        pairings.prefer("third@c:1").unwrap();
        assert_eq!(default(&pairings), "third");
    }

    #[test]
    fn an_address_where_a_server_was_found_comes_first_and_the_default_stays() {
        let state = tempfile::tempdir().unwrap();
        let mut pairings = Pairings::read(state.path()).unwrap();
        pairings.keep(pairing("a:1", "laptop"), true).unwrap();
        pairings.keep(pairing("b:1", "other"), true).unwrap();
        for at in (0..20).map(|port| format!("c:{port}")).chain(["a:1".to_owned()]) {
            pairings.learn("laptop@a:1", &at).unwrap();
        }
        pairings.learn("unknown", "d:1").unwrap();
        let again = Pairings::read(state.path()).unwrap();
        assert_eq!(again.default().unwrap().name, "other");
        let addresses = &again.find("a:1", "laptop").unwrap().addresses;
        assert_eq!((&addresses[0][..], &addresses[1][..]), ("a:1", "c:19"));
        assert_eq!(addresses.len(), MAX_ADDRESSES);
    }

    #[test]
    fn a_server_is_looked_for_where_it_was_named_and_elsewhere_only_if_it_is_known_there() {
        let pairing = Pairing { addresses: vec!["a:1".into(), "b:1".into()], ..pairing("", "x") };
        assert_eq!(pairing.hosts(None), ["a:1", "b:1"]);
        assert_eq!(pairing.hosts(Some("b:1")), ["b:1", "a:1"]);
        assert_eq!(pairing.hosts(Some("c:1")), ["c:1"]);
        assert_eq!(pairing.addresses_from(Some("c:1")), ["c:1", "a:1", "b:1"]);
    }
}
