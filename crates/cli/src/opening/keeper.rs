//! Who keeps a repository, and what may be asked there beside what is asked of every repository.

use std::sync::Arc;

use holdall_format::RecordHash;
use holdall_protocol::wire::RunReport;
use holdall_protocol::{
    AdminToken, Announced, AskedPrune, Compacting, Denial, OwnedRepository, Repository,
    RepositoryError, ServedRepository, WaitingDeletion,
};

/// Why a machine may not delete.
const DELETING: &str = "a server lets no machine delete without an administrator's token";
/// Why a directory takes no token.
const NO_TOKEN: &str = "only a server takes an administrator's token; in a directory, whoever may \
                        write there deletes without one";
/// Why a machine may not repair.
const REPAIRING: &str = "a server lets no machine change what is stored; its administrator repairs \
                         (`holdall admin scrub --repair`)";

/// Who keeps a repository.
#[derive(Clone)]
pub(crate) enum Keeper {
    /// This machine, in a directory.
    Directory(Arc<dyn OwnedRepository>),
    /// A server.
    Server(Arc<dyn ServedRepository>),
}

impl Keeper {
    /// What may be asked of every repository.
    pub(crate) fn repository(&self) -> Arc<dyn Repository> {
        match self {
            Self::Directory(owned) => Arc::clone(owned) as _,
            Self::Server(served) => Arc::clone(served) as _,
        }
    }

    /// The repository as its owner has it.
    ///
    /// # Errors
    /// [`RepositoryError::NotAllowed`] on a server.
    pub(crate) fn to_repair(&self) -> Result<&dyn OwnedRepository, RepositoryError> {
        match self {
            Self::Directory(owned) => Ok(owned.as_ref()),
            Self::Server(_) => Err(explained(REPAIRING)),
        }
    }

    /// The same, to give up a record that is gone.
    ///
    /// # Errors
    /// [`RepositoryError::NotAllowed`] on a server.
    pub(crate) fn to_give_up(&self) -> Result<&dyn OwnedRepository, RepositoryError> {
        match self {
            Self::Directory(owned) => Ok(owned.as_ref()),
            Self::Server(_) => Err(RepositoryError::denied(Denial::Deletion, DELETING)),
        }
    }

    /// Forgets snapshots, or asks a server to: then says what waits.
    ///
    /// # Errors
    /// As for [`OwnedRepository::forget`] and [`ServedRepository::ask_forget`].
    pub(crate) fn forget(
        &self,
        token: Option<&AdminToken>,
        snapshots: &[RecordHash],
    ) -> Result<Option<WaitingDeletion>, RepositoryError> {
        match self.deleting(token)? {
            Deleting::Owned(owned) => owned.forget(snapshots).map(|()| None),
            Deleting::Served(served, token) => served.ask_forget(token, snapshots).map(Some),
        }
    }

    /// Prunes, or has a server prune.
    ///
    /// # Errors
    /// As for [`OwnedRepository::prune`] and [`ServedRepository::ask_prune`].
    pub(crate) fn prune(
        &self,
        token: Option<&AdminToken>,
        dry_run: bool,
    ) -> Result<AskedPrune, RepositoryError> {
        match self.deleting(token)? {
            Deleting::Owned(owned) => {
                Ok(AskedPrune { report: owned.prune(dry_run)?, ..AskedPrune::default() })
            }
            Deleting::Served(served, token) => served.ask_prune(token, dry_run),
        }
    }

    /// Does what compacts.
    ///
    /// # Errors
    /// [`RepositoryError::NotAllowed`] without a token on a server, and with one in a directory.
    pub(crate) fn compact<T>(
        &self,
        token: Option<&AdminToken>,
        work: impl FnOnce(&dyn Compacting) -> T,
    ) -> Result<T, RepositoryError> {
        Ok(match self.deleting(token)? {
            Deleting::Owned(owned) => work(owned),
            Deleting::Served(served, token) => work(served.compacting(token).as_ref()),
        })
    }

    /// What is announced; nothing in a directory.
    ///
    /// # Errors
    /// As for [`ServedRepository::announced`].
    pub(crate) fn announced(&self) -> Result<Announced, RepositoryError> {
        match self {
            Self::Directory(_) => Ok(Announced::default()),
            Self::Server(served) => served.announced(),
        }
    }

    /// Tells a server how a run went; nobody in a directory.
    ///
    /// # Errors
    /// As for [`ServedRepository::report_run`].
    pub(crate) fn report_run(&self, report: &RunReport) -> Result<(), RepositoryError> {
        match self {
            Self::Directory(_) => Ok(()),
            Self::Server(served) => served.report_run(report),
        }
    }

    fn deleting<'a>(
        &'a self,
        token: Option<&'a AdminToken>,
    ) -> Result<Deleting<'a>, RepositoryError> {
        match (self, token) {
            (Self::Directory(owned), None) => Ok(Deleting::Owned(owned.as_ref())),
            (Self::Server(served), Some(token)) => Ok(Deleting::Served(served.as_ref(), token)),
            (Self::Directory(_), Some(_)) => Err(explained(NO_TOKEN)),
            (Self::Server(_), None) => Err(RepositoryError::denied(Denial::Deletion, DELETING)),
        }
    }
}

/// Who may delete.
enum Deleting<'a> {
    Owned(&'a dyn OwnedRepository),
    Served(&'a dyn ServedRepository, &'a AdminToken),
}

fn explained(reason: &str) -> RepositoryError {
    RepositoryError::denied(Denial::Explained, reason)
}
