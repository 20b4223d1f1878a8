//! The repositories of this server, opened when first asked for and kept open.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use holdall_protocol::{NewRepository, RepositoryError};
use holdall_repository::{Clock, EmbeddedRepository, ReceiptSigner, Store};

use crate::data_folder::DataFolder;
use crate::rights::Permit;

/// A repository, once it was opened; the lock is held while it is opened or made.
type Slot = Arc<Mutex<Option<Arc<Store>>>>;

/// All repositories of a server. Every method blocks.
pub(crate) struct Stores {
    folder: Arc<DataFolder>,
    signer: Arc<dyn ReceiptSigner + Send + Sync>,
    clock: Arc<dyn Clock>,
    /// A lock for each name, so that opening one holds up nobody else's.
    open: Mutex<HashMap<String, Slot>>,
}

impl Stores {
    pub(crate) fn new(
        folder: Arc<DataFolder>,
        signer: Arc<dyn ReceiptSigner + Send + Sync>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { folder, signer, clock, open: Mutex::default() }
    }

    /// The repository of a permit, as its machine sees it.
    ///
    /// # Errors
    /// [`RepositoryError::NoRepository`], and what keeps it from being opened.
    pub(crate) fn repository(
        &self,
        permit: &Permit,
    ) -> Result<EmbeddedRepository, RepositoryError> {
        let slot = self.slot(permit.repository());
        let mut open = slot.lock().unwrap_or_else(PoisonError::into_inner);
        let store = match &*open {
            Some(store) => Arc::clone(store),
            None => {
                let store = self.open_store(permit.repository())?;
                *open = Some(Arc::clone(&store));
                store
            }
        };
        Ok(Store::for_machine(&store, permit.machine(), permit.key()))
    }

    /// Makes the repository of a permit.
    ///
    /// # Errors
    /// [`RepositoryError::AlreadyExists`]; [`RepositoryError::Refused`] for parts that do not fit.
    pub(crate) fn create(
        &self,
        permit: &Permit,
        new: &NewRepository,
    ) -> Result<(), RepositoryError> {
        let slot = self.slot(permit.repository());
        let _creating = slot.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.folder.repository(permit.repository());
        let parent = path.parent().unwrap_or(&path);
        fs::create_dir_all(parent)
            .map_err(|source| RepositoryError::io("making the folder of repositories", source))?;
        Store::create(&path, new)
    }

    /// Whether a folder of that name lies among the repositories.
    pub(crate) fn is_stored(&self, name: &str) -> bool {
        let found = fs::symlink_metadata(self.folder.repository(name));
        !matches!(found, Err(error) if error.kind() == io::ErrorKind::NotFound)
    }

    fn open_store(&self, name: &str) -> Result<Arc<Store>, RepositoryError> {
        let (path, cache) = (self.folder.repository(name), self.folder.cache(name));
        Store::open(&path, &cache, Arc::clone(&self.signer) as _, Arc::clone(&self.clock))
    }

    fn slot(&self, name: &str) -> Slot {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(open.entry(name.to_owned()).or_default())
    }
}
