//! Machines and repositories: what there is, and what of it is changed.

use holdall_protocol::RepositoryError;

use super::administration::Administration;
use super::entries::{Quota, RepositoryEntry};
use crate::ServerError;
use crate::accounts::MachineEntry;
use crate::activity::SessionEntry;
use crate::auth::rights::Right;

impl Administration<'_> {
    pub(super) fn rights(
        &self,
        machine: &str,
        right: Option<Right>,
    ) -> Result<MachineEntry, ServerError> {
        let Some(right) = right else { return self.accounts.machine_entry(machine) };
        let entry = self.accounts.set_right(machine, right)?;
        self.log(&format!(
            "machine {} ({:.12}) has the right to {right} from now on",
            entry.name, entry.id
        ));
        Ok(entry)
    }

    pub(super) fn revoke(&self, machine: &str) -> Result<MachineEntry, ServerError> {
        let entry = self.accounts.revoke(machine)?;
        self.log(&format!("revoked machine {} ({:.12})", entry.name, entry.id));
        Ok(entry)
    }

    pub(super) fn quota(
        &self,
        repository: &str,
        quota: Option<Quota>,
    ) -> Result<RepositoryEntry, ServerError> {
        self.check_name(repository)?;
        if let Some(quota) = quota {
            self.accounts.set_quota(repository, quota.bytes())?;
            self.log(&format!("changed the quota of repository {repository}"));
        }
        Ok(self.entry(repository))
    }

    /// Has what a machine does here end.
    pub(super) fn end_session(&self, number: u64) -> Result<SessionEntry, ServerError> {
        let Some(activities) = self.activities else {
            return Err(ServerError::refused(
                "no server is running, so that no machine does anything here",
            ));
        };
        let ended = activities.end(number)?;
        self.log(&format!("{}: its run was ended by an administrator", ended.who));
        Ok(ended)
    }

    pub(super) fn repositories(&self) -> Result<Vec<RepositoryEntry>, ServerError> {
        Ok(self.names()?.iter().map(|name| self.entry(name)).collect())
    }

    pub(super) fn entry(&self, name: &str) -> RepositoryEntry {
        let (machine, machine_name) = self.accounts.owner(name).unzip();
        let quota_bytes = self.accounts.quota(name);
        let name = name.to_owned();
        let going = self.accounts.removal_of_repository(&name);
        let known = RepositoryEntry {
            name,
            machine,
            machine_name,
            quota_bytes,
            going,
            ..Default::default()
        };
        match self.stores.census(&known.name) {
            Ok((id, census)) => self.with_scrub(RepositoryEntry {
                id: Some(id.to_string()),
                alarm: self.known_alarm(&known.name, &id),
                stored_bytes: census.usage.stored_bytes,
                packs: census.usage.packs,
                snapshots: census.snapshots,
                newest_ns: census.newest_ns,
                ..known
            }),
            Err(RepositoryError::NoRepository { .. }) => known,
            Err(error) => RepositoryEntry { problem: Some(error.to_string()), ..known },
        }
    }

    /// The same with what is known from reading it again.
    fn with_scrub(&self, entry: RepositoryEntry) -> RepositoryEntry {
        let round = self.stores.store(&entry.name).and_then(|store| store.scrub_round());
        let round = match round {
            Ok(Some(round)) => round,
            Ok(None) => return entry,
            Err(error) => return RepositoryEntry { problem: Some(error.to_string()), ..entry },
        };
        let round_ns = self.accounts.upkeep().unwrap_or_default().scrub_round_ns();
        let words = |(what, reason): (&String, &String)| format!("{what}: {reason}");
        RepositoryEntry {
            read_by_ns: Some(round.begun_ns.saturating_add(round_ns)),
            read_since_ns: round.before_ns,
            damaged: round.damaged.iter().map(words).collect(),
            ..entry
        }
    }
}
