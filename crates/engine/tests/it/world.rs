//! A repository in a folder, a source and a target.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdall_crypto::{KeyRing, RecoverySecret, SigningKey, SystemEntropy};
use holdall_engine::{
    BackupOptions, BackupSummary, LockedRepository, RestoreOptions, Run, Snapshot, Source,
    UnlockedRepository, Verify, VerifyReport, backup, find_snapshot, new_repository, restore,
    snapshots, verify,
};
use holdall_format::{MachineId, ReceiptSigner};
use holdall_protocol::Repository;
use holdall_repository::EmbeddedRepository;
use holdall_sys::SystemClock;
use holdall_testkit::{CompareOptions, Difference, compare_trees};
use tempfile::TempDir;

pub(crate) struct World {
    folder: TempDir,
    secret: KeyRing,
}

impl World {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("source")).unwrap();
        let world = Self { folder, secret: KeyRing::from_master([7; 32]) };
        let recovery = RecoverySecret::generate(&mut SystemEntropy);
        let new = new_repository(&world.secret, &recovery, None, None).unwrap();
        world.place().create(&new).unwrap();
        world
    }

    pub(crate) fn source(&self) -> PathBuf {
        self.folder.path().join("source")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The machine that backs up.
    pub(crate) fn machine(&self) -> MachineId {
        MachineId::from_bytes([1; 16])
    }

    /// Its key.
    pub(crate) fn signing(&self) -> Arc<SigningKey> {
        Arc::new(SigningKey::from_seed(&[5; 32]))
    }

    /// What signs receipts: the machine itself.
    pub(crate) fn signer(&self) -> Arc<dyn ReceiptSigner> {
        self.signing()
    }

    /// What opens the repository.
    pub(crate) fn secret(&self) -> &KeyRing {
        &self.secret
    }

    fn repository(&self) -> Arc<EmbeddedRepository> {
        Arc::new(EmbeddedRepository::at(
            &self.path("repository"),
            &self.path("index"),
            self.machine(),
            self.signing().public(),
            self.signer(),
            Arc::new(SystemClock),
        ))
    }

    fn place(&self) -> LockedRepository {
        LockedRepository::new(self.repository(), self.signing(), self.path("cache"))
    }

    /// The repository, opened anew as a new process would, and as its owner has it.
    pub(crate) fn owned(&self) -> (UnlockedRepository, Arc<EmbeddedRepository>) {
        let repository = self.repository();
        let place = LockedRepository::new(repository.clone(), self.signing(), self.path("cache"));
        (place.open(&self.secret).unwrap(), repository)
    }

    /// The repository, opened anew as a new process would.
    pub(crate) fn access(&self) -> UnlockedRepository {
        self.place().open(&self.secret).unwrap()
    }

    /// The same through a repository of the test's own around the real one.
    pub(crate) fn access_through<R: Repository + 'static>(
        &self,
        around: impl FnOnce(Arc<dyn Repository>) -> Arc<R>,
    ) -> UnlockedRepository {
        let place = self.place();
        let repository = around(Arc::clone(&place.repository));
        LockedRepository::new(repository, place.signing, place.cache).open(&self.secret).unwrap()
    }

    pub(crate) fn options(&self) -> BackupOptions {
        let path = self.source().as_os_str().as_bytes().to_vec();
        BackupOptions::new(vec![Source { path: path.clone(), read_at: path }], "host".to_owned())
    }

    pub(crate) fn backup(&self) -> BackupSummary {
        self.backup_with(&self.options())
    }

    pub(crate) fn backup_with(&self, options: &BackupOptions) -> BackupSummary {
        let run = Arc::new(Run::new());
        let summary = backup(&self.access(), options, &run).unwrap();
        assert_eq!(run.take_problems(), []);
        summary
    }

    /// Restores what the newest snapshot has of the source into a new folder.
    pub(crate) fn restore(&self, name: &str) -> PathBuf {
        let (access, target, source) = (self.access(), self.path(name), self.source());
        let run = Arc::new(Run::new());
        let snapshot = newest(&access, None);
        let path = Some(source.as_os_str().as_bytes());
        restore(&access, &snapshot, path, &target, &RestoreOptions::default(), &run).unwrap();
        assert_eq!(run.take_problems(), []);
        target
    }

    /// What differs between the source and its restored newest snapshot.
    pub(crate) fn differences(&self, name: &str) -> Vec<Difference> {
        self.compare(&self.restore(name))
    }

    /// What differs between the source and a restored folder.
    pub(crate) fn compare(&self, target: &Path) -> Vec<Difference> {
        compare_trees(&self.source(), target, &CompareOptions::default())
    }
}

/// Opens everything that is stored, and walks all snapshots.
pub(crate) fn verified(access: &UnlockedRepository) -> VerifyReport {
    let all = snapshots(access).unwrap().snapshots;
    verify(access, &all, Verify::All, &Run::new(), &mut |_| {}).unwrap()
}

/// This machine's newest snapshot, of `path` where one is given.
pub(crate) fn newest(access: &UnlockedRepository, path: Option<&[u8]>) -> Snapshot {
    let listed = snapshots(access).unwrap().snapshots;
    find_snapshot(&listed, access.machine(), "latest", path).unwrap().clone()
}

pub(crate) fn write(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap();
}
