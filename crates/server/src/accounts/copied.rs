//! What of the accounts cannot be made anew, as one text to keep elsewhere.
//!
//! Left out is what must not come back from an older copy: deletions that wait, since one may have been cancelled
//! meanwhile; invites and tokens, which live for a short time; and what was noted of the clock. So are runs, which are only shown.

use std::collections::BTreeMap;

use holdall_format::{MachineId, PublicKey};
use holdall_protocol::wire::is_repository_name;
use holdall_sys::PathBeneath;
use serde::{Deserialize, Serialize};

use super::database::Database;
use super::keeping::{DEFAULT, KeepingRow};
use super::machine::Machine;
use super::names::check_machine_name;
use super::{Accounts, retention_alarm};
use crate::ServerError;

/// The accounts in a copy.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct CopiedAccounts {
    /// By their ids.
    machines: Vec<([u8; 16], Machine)>,
    /// Keys of recovery kits, and the repositories that they read.
    readers: Vec<([u8; 32], String)>,
    quotas: BTreeMap<String, u64>,
    keeping: BTreeMap<String, KeepingRow>,
    former_names: BTreeMap<String, String>,
    /// What was seen of repositories.
    settings: BTreeMap<String, String>,
}

impl Accounts {
    /// All that cannot be made anew.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn copied(&self) -> Result<CopiedAccounts, ServerError> {
        let settings = self.database.settings()?.into_iter();
        let state = self.state();
        let machines = state.machines.iter().map(|(id, row)| (*id.as_bytes(), row.clone()));
        let readers = state.readers.iter().map(|(key, name)| (*key.as_bytes(), name.clone()));
        Ok(CopiedAccounts {
            machines: machines.collect(),
            readers: readers.collect(),
            quotas: state.quotas.clone().into_iter().collect(),
            keeping: state.keeping.clone().into_iter().collect(),
            former_names: state.former.clone(),
            settings: settings.filter(|(name, _)| is_of_repositories(name)).collect(),
        })
    }
}

impl CopiedAccounts {
    /// Checks the names, which the server takes for good: people may have changed the text.
    ///
    /// # Errors
    /// [`ServerError::Refused`] with the first that is none.
    pub(crate) fn check(&self) -> Result<(), ServerError> {
        for (_, machine) in &self.machines {
            check_machine_name(&machine.name).map_err(|error| {
                ServerError::refused(format!("it has a machine {:?}: {error}", machine.name))
            })?;
        }
        let of_machines = self.machines.iter().map(|(_, machine)| &machine.repository);
        let read = self.readers.iter().map(|(_, name)| name);
        let former = self.former_names.iter().flat_map(|(old, new)| [old, new]);
        let ruled = self.quotas.keys().chain(self.keeping.keys().filter(|name| *name != DEFAULT));
        match of_machines
            .chain(read)
            .chain(former)
            .chain(ruled)
            .find(|name| !is_repository_name(name))
        {
            None => Ok(()),
            Some(bad) => Err(ServerError::refused(format!(
                "it has a repository {bad:?}, which cannot be a repository's name"
            ))),
        }
    }

    /// Makes a database of them where there is none.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn put_back(&self, path: &PathBeneath) -> Result<(), ServerError> {
        Database::open(path)?.change(|changes| {
            for (id, row) in &self.machines {
                changes.put_machine(&MachineId::from_bytes(*id), row)?;
            }
            for (key, name) in &self.readers {
                changes.put_reader(&PublicKey::from_bytes(*key), name)?;
            }
            self.quotas.iter().try_for_each(|(name, most)| changes.put_quota(name, Some(*most)))?;
            self.keeping.iter().try_for_each(|(name, row)| changes.put_keeping(name, row))?;
            self.former_names.iter().try_for_each(|(old, new)| changes.put_former(old, new))?;
            let settings = self.settings.iter().filter(|(name, _)| is_of_repositories(name));
            let mut settings = settings;
            settings.try_for_each(|(name, row)| changes.put_setting(name, row))
        })
    }
}

fn is_of_repositories(setting: &str) -> bool {
    setting.starts_with(retention_alarm::SETTING) || setting.starts_with(super::newest::SETTING)
}
