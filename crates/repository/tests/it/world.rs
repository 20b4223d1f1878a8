//! A repository in a temporary directory, with a clock and keys of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdall_format::MachineId;
use holdall_protocol::Repository;
use holdall_protocol::contract::{ContractWorld, TestKey};
use holdall_repository::{EmbeddedRepository, Store};
use holdall_testkit::FakeClock;

pub(crate) const MACHINE: MachineId = MachineId::from_bytes([7; 16]);
pub(crate) const MACHINE_SEED: [u8; 32] = [8; 32];

/// A place for a repository and its index.
pub(crate) struct World {
    folder: tempfile::TempDir,
    pub(crate) clock: Arc<FakeClock>,
    repository: Arc<EmbeddedRepository>,
}

impl World {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(FakeClock::at(1));
        let repository = open(&folder, &clock);
        Self { folder, clock, repository }
    }

    /// What the repository and its cache lie in.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn dir(&self) -> PathBuf {
        self.folder.path().join("repository")
    }

    /// The file of the one tail of that kind.
    pub(crate) fn tail_file(&self, kind: &str, ends: &str) -> PathBuf {
        holdall_testkit::only_file(&self.dir().join("tails"), kind, ends)
    }

    pub(crate) fn cache_dir(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    /// What the cache holds, by path; of a closed one.
    pub(crate) fn cached(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let paths = fs::read_dir(self.cache_dir()).unwrap().map(|entry| entry.unwrap().path());
        paths.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
    }

    /// Closes it, and has the cache be what it was: as where it is another computer's, or this one was
    /// stopped before it saved its own.
    pub(crate) fn close_with_cache(&mut self, cached: &[(PathBuf, Vec<u8>)]) {
        self.close();
        fs::remove_dir_all(self.cache_dir()).unwrap();
        fs::create_dir(self.cache_dir()).unwrap();
        cached.iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
    }

    /// Gives the lease back and stops everything, until the next restart.
    pub(crate) fn close(&mut self) {
        let nothing = tempfile::tempdir().unwrap();
        self.repository = open(&nothing, &self.clock);
    }

    pub(crate) fn handle(&self) -> Arc<EmbeddedRepository> {
        self.repository.clone()
    }
}

fn open(folder: &tempfile::TempDir, clock: &Arc<FakeClock>) -> Arc<EmbeddedRepository> {
    let (dir, cache) = (folder.path().join("repository"), folder.path().join("cache"));
    Arc::new(EmbeddedRepository::at(
        &dir,
        &cache,
        MACHINE,
        TestKey::from_seed(&MACHINE_SEED).public(),
        signer(),
        clock.clone(),
    ))
}

pub(crate) fn signer() -> Arc<TestKey> {
    Arc::new(TestKey::from_seed(&[9; 32]))
}

impl ContractWorld for World {
    fn repository(&self) -> Arc<dyn Repository> {
        self.repository.clone()
    }

    fn machine(&self) -> MachineId {
        MACHINE
    }

    fn machine_seed(&self) -> [u8; 32] {
        MACHINE_SEED
    }

    fn restart(&mut self) {
        // The old handle goes first: it holds the lease.
        self.close();
        self.repository = open(&self.folder, &self.clock);
    }
}

/// A store that its owner shares, as a server does.
pub(crate) struct SharedWorld {
    world: World,
    store: std::sync::Mutex<Option<Arc<Store>>>,
}

impl SharedWorld {
    pub(crate) fn new() -> Self {
        Self { world: World::new(), store: std::sync::Mutex::new(None) }
    }

    pub(crate) fn handle(&self) -> Arc<EmbeddedRepository> {
        let mut store = self.store.lock().unwrap();
        if store.is_none() {
            let (dir, cache) = (self.world.dir(), self.world.cache_dir());
            match Store::open(&dir, &cache, signer(), self.world.clock.clone()) {
                Ok(opened) => *store = Some(opened),
                // Not made yet: the embedded repository makes it.
                Err(_) => return self.world.handle(),
            }
        }
        let key = TestKey::from_seed(&MACHINE_SEED).public();
        Arc::new(store.as_ref().unwrap().for_machine(MACHINE, key))
    }
}

impl ContractWorld for SharedWorld {
    fn repository(&self) -> Arc<dyn Repository> {
        self.handle()
    }

    fn machine(&self) -> MachineId {
        MACHINE
    }

    fn machine_seed(&self) -> [u8; 32] {
        MACHINE_SEED
    }

    fn restart(&mut self) {
        *self.store.lock().unwrap() = None;
        self.world.restart();
    }
}
