//! What commands do, with and without a running server.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use holdall_format::PublicKey;
use holdall_protocol::{INVITE_MAX_ADDRESSES, RepositoryError};

use super::command::{Command, Quota, Reply, RepositoryEntry};
use super::keep::SCRUB_ROUND_NS;
use crate::accounts::{Accounts, InviteRequest};
use crate::addresses::{is_host_and_port, reachable_at};
use crate::rights::Right;
use crate::stores::Stores;
use crate::{LogSink, ServerError};

/// What commands work on.
pub(crate) struct Administration<'a> {
    pub(crate) accounts: &'a Accounts,
    pub(crate) stores: &'a Stores,
    /// Whom invites lead to.
    pub(crate) identity: PublicKey,
    /// Where the server listens, or did last.
    pub(crate) listen: SocketAddr,
    pub(crate) log: &'a LogSink,
    /// Set when what takes long is to end.
    pub(crate) should_stop: &'a AtomicBool,
}

impl Administration<'_> {
    /// Does what was asked. What it changed is durable when it returns, and counts for the next
    /// request of every open connection.
    pub(super) fn carry_out(&self, command: Command) -> Result<Reply, ServerError> {
        match command {
            Command::Invite(request) => self.invite(&request),
            Command::Machines => Ok(Reply::Machines { machines: self.accounts.machines() }),
            Command::Rights { machine, right } => self.rights(&machine, right),
            Command::Revoke { machine } => self.revoke(&machine),
            Command::Quota { repository, quota } => self.quota(&repository, quota),
            Command::Repositories => self.repositories(),
            Command::Keeping { repository, wanted } => self.keeping(&repository, wanted),
            Command::Forget { repository, snapshots } => self.forget(&repository, &snapshots),
            Command::Pending => Ok(Reply::Deletions { deletions: self.accounts.deletions() }),
            Command::Cancel { number } => self.cancel(number),
            Command::Token { repository } => self.token(&repository),
            Command::Prune { repository, dry_run } => self.prune(repository.as_deref(), dry_run),
            Command::Thin { repository, confirmed } => self.thin(&repository, confirmed),
            Command::Resume { repository } => self.resume(&repository),
            Command::Scrub { repository, also } => self.scrub(repository.as_deref(), also),
        }
    }

    /// Makes an invite with the addresses that were asked for, or those that are found.
    fn invite(&self, request: &InviteRequest) -> Result<Reply, ServerError> {
        if let Some(bad) = request.addresses.iter().find(|address| !is_host_and_port(address)) {
            return Err(ServerError::refused(format!("{bad:?} is not HOST:PORT")));
        }
        if request.addresses.len() > INVITE_MAX_ADDRESSES {
            let reason = format!("an invite has at most {INVITE_MAX_ADDRESSES} addresses");
            return Err(ServerError::refused(reason));
        }
        let addresses = match request.addresses.is_empty() {
            true => reachable_at(self.listen),
            false => request.addresses.clone(),
        };
        let made = self.accounts.invite(request, self.identity, addresses)?;
        self.log("made an invite");
        Ok(Reply::Invite { invite: made.invite.to_text(), expires_ns: made.expires_ns })
    }

    fn rights(&self, machine: &str, right: Option<Right>) -> Result<Reply, ServerError> {
        let Some(right) = right else {
            return Ok(Reply::Machine(self.accounts.machine_entry(machine)?));
        };
        let entry = self.accounts.set_right(machine, right)?;
        self.log(&format!("machine {} has the right to {right} from now on", entry.id));
        Ok(Reply::Machine(entry))
    }

    fn revoke(&self, machine: &str) -> Result<Reply, ServerError> {
        let entry = self.accounts.revoke(machine)?;
        self.log(&format!("revoked machine {}", entry.id));
        Ok(Reply::Machine(entry))
    }

    fn quota(&self, repository: &str, quota: Option<Quota>) -> Result<Reply, ServerError> {
        self.check_name(repository)?;
        if let Some(quota) = quota {
            self.accounts.set_quota(repository, quota.bytes())?;
            self.log(&format!("changed the quota of repository {repository}"));
        }
        Ok(Reply::Repository(self.entry(repository)))
    }

    /// Checks that there is such a repository, or is to be.
    pub(super) fn check_name(&self, repository: &str) -> Result<(), ServerError> {
        if self.names()?.contains(repository) {
            return Ok(());
        }
        Err(ServerError::refused(format!(
            "there is no repository {repository:?}; `holdall admin repositories` lists them"
        )))
    }

    fn repositories(&self) -> Result<Reply, ServerError> {
        let repositories = self.names()?.iter().map(|name| self.entry(name)).collect();
        Ok(Reply::Repositories { repositories })
    }

    /// Repositories that are stored, and those of machines that did not make theirs yet.
    fn names(&self) -> Result<BTreeSet<String>, ServerError> {
        let mut names: BTreeSet<_> = self.stores.stored_names()?.into_iter().collect();
        names.extend(self.accounts.machines().into_iter().map(|machine| machine.repository));
        Ok(names)
    }

    fn entry(&self, name: &str) -> RepositoryEntry {
        let (machine, machine_name) = self.accounts.owner(name).unzip();
        let quota_bytes = self.accounts.quota(name);
        let name = name.to_owned();
        let known =
            RepositoryEntry { name, machine, machine_name, quota_bytes, ..Default::default() };
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
        let words = |(what, reason): (&String, &String)| format!("{what}: {reason}");
        RepositoryEntry {
            read_by_ns: Some(round.begun_ns.saturating_add(SCRUB_ROUND_NS)),
            read_since_ns: round.before_ns,
            damaged: round.damaged.iter().map(words).collect(),
            ..entry
        }
    }

    pub(super) fn log(&self, line: &str) {
        (self.log)(line);
    }
}
