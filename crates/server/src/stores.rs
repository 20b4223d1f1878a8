//! The repositories of this server, opened when first asked for and kept open.
//!
//! One of which the disk did not give all is opened again once it does. The store there is has to be
//! closed before: only one may write, and opening cuts and moves files that another would go on with. So
//! opening may fail with nothing open, as at a start; whoever asks next tries again. Only the sessions are
//! kept for that, since some have no file: a restore that began while the disk was full goes on, and nothing
//! is deleted that it may yet read.

mod moving;
mod settling;

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use holdall_format::{PublicKey, ReceiptSigner, RepositoryId, Signatures, StoredRecord};
use holdall_protocol::wire::is_repository_name;
use holdall_protocol::{CommitAnswer, FormerAccount, NewRepository, RepositoryError};
use holdall_repository::{
    Census, EmbeddedRepository, Sessions, Store, newest_key_in, recovery_identities_in,
    recovery_identities_of_new,
};

use holdall_sys::Clock;
use zeroize::Zeroizing;

use crate::accounts::Accounts;
use crate::auth::identity::ServerIdentity;
use crate::auth::rights::Permit;
use crate::data_folder::DataFolder;
use crate::{LogSink, ServerError};

/// One repository; the lock of its slot is held while it is opened or made.
#[derive(Default)]
struct Slot {
    /// Once it was opened.
    store: Option<Arc<Store>>,
    /// The sessions of the store that was closed to be opened again, until one is open.
    sessions: Option<Arc<Sessions>>,
}

/// All repositories of a server. Every method blocks.
pub(crate) struct Stores {
    folder: Arc<DataFolder>,
    signer: Arc<dyn ReceiptSigner + Send + Sync>,
    clock: Arc<dyn Clock>,
    accounts: Arc<Accounts>,
    log: LogSink,
    /// A lock for each name, so that opening one holds up nobody else's.
    open: Mutex<HashMap<String, Arc<Mutex<Slot>>>>,
    /// What keeps packs from being moved to their places, by repository.
    waiting: Mutex<BTreeMap<String, String>>,
}

impl Stores {
    pub(crate) fn new(
        folder: Arc<DataFolder>,
        signer: Arc<dyn ReceiptSigner + Send + Sync>,
        accounts: Arc<Accounts>,
        log: LogSink,
    ) -> Self {
        let clock = accounts.clock();
        Self {
            folder,
            signer,
            clock,
            accounts,
            log,
            open: Mutex::default(),
            waiting: Mutex::default(),
        }
    }

    /// Lets in exactly those recovery kits that the wrappings of all repositories name: the accounts
    /// may have been lost, and an administrator may have gone back to older wrappings. What hinders
    /// one is told, and is no reason to keep a server from starting.
    ///
    /// # Errors
    /// If the repositories cannot be listed.
    pub(crate) fn let_readers_in(&self) -> Result<(), ServerError> {
        self.finish_moves()?;
        let stored = self.stored_names()?;
        // A kit reads one repository: that of a folder's former name would be in the way.
        for gone in self.accounts.read_by_kits().iter().filter(|name| !stored.contains(name)) {
            self.set_readers(gone, &[]);
        }
        for name in stored {
            match recovery_identities_in(&self.folder.repository(&name)) {
                Ok(readers) => self.set_readers(&name, &readers),
                // Without a marker, its making was cut short.
                Err(RepositoryError::NoRepository { .. }) => {}
                Err(error) => (self.log)(&format!("the recovery kits of {name}: {error}")),
            }
        }
        Ok(())
    }

    /// The names of what may be repositories, in order.
    pub(crate) fn stored_names(&self) -> Result<Vec<String>, ServerError> {
        let path = self.folder.repositories();
        let failed = |source| ServerError::io("listing", &path, source);
        let entries = match fs::read_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(failed)?.file_name().into_string();
            names.extend(name.ok().filter(|name| is_repository_name(name)));
        }
        names.sort_unstable();
        Ok(names)
    }

    /// The repository of a permit, as its machine sees it.
    ///
    /// # Errors
    /// [`RepositoryError::NoRepository`], and what keeps it from being opened.
    pub(crate) fn repository(
        &self,
        permit: &Permit,
    ) -> Result<EmbeddedRepository, RepositoryError> {
        let store = self.with_slot(permit.repository(), |open, name| {
            let store = self.opened(open, name)?;
            store.limit_to(self.accounts.quota(name));
            Ok::<_, RepositoryError>(store)
        })?;
        self.check_again(permit)?;
        self.note(permit);
        Ok(Store::for_machine(&store, permit.machine(), permit.key()))
    }

    /// Checks that who has a permit may still do what it is for.
    fn check_again(&self, permit: &Permit) -> Result<(), RepositoryError> {
        let name = self.accounts.current_name(permit.repository());
        permit.check_again(&self.accounts.role(&permit.key()), &name)
    }

    /// Makes the repository of a permit. Its recovery kits are let in before it exists, so that no
    /// crash leaves a repository that they cannot read; they are let out again only if there is
    /// certainly no repository of theirs.
    ///
    /// # Errors
    /// [`RepositoryError::AlreadyExists`]; [`RepositoryError::Refused`] for parts that do not fit.
    pub(crate) fn create(
        &self,
        permit: &Permit,
        new: &NewRepository,
    ) -> Result<(), RepositoryError> {
        self.with_slot(permit.repository(), |open, name| {
            self.check_again(permit)?;
            self.note(permit);
            let before = self.accounts.readers(name);
            let readers = recovery_identities_of_new(new)?;
            self.accounts.set_readers(name, &[&before[..], &readers].concat())?;
            let made = self.make(name, new);
            if made.is_ok() {
                // They were of one whose folder is gone.
                open.sessions = None;
                self.begin_rules(name);
            } else {
                match self.opened(open, name) {
                    Ok(store) => self.accounts.set_readers(name, &store.recovery_identities())?,
                    Err(RepositoryError::NoRepository { .. }) => {
                        self.accounts.set_readers(name, &before)?
                    }
                    Err(_) => false,
                };
            }
            made
        })
    }

    /// Changes the wrappings of a permit's repository. New recovery kits are let in before the set
    /// counts, and those that it lacks are let out when it does.
    ///
    /// # Errors
    /// As for [`holdall_protocol::Repository::put_wrappings`].
    pub(crate) fn put_wrappings(
        &self,
        permit: &Permit,
        wrappings: &Bytes,
    ) -> Result<(), RepositoryError> {
        self.with_slot(permit.repository(), |open, name| {
            self.note(permit);
            let store = self.opened(open, name)?;
            store.limit_to(self.accounts.quota(name));
            self.check_again(permit)?;
            let readers = store.recovery_identities_of(wrappings)?;
            let before = self.accounts.readers(name);
            self.accounts.set_readers(name, &[&before[..], &readers].concat())?;
            let put = store.put_wrappings(wrappings);
            self.accounts.set_readers(name, &store.recovery_identities())?;
            put
        })
    }

    /// What a repository holds. One that nobody has open is not kept open for this.
    ///
    /// # Errors
    /// As [`Stores::repository`].
    pub(crate) fn census(&self, name: &str) -> Result<(RepositoryId, Census), RepositoryError> {
        self.with_slot(name, |open, name| {
            let store = match &open.store {
                Some(store) => Arc::clone(store),
                None => {
                    self.folder.refuse_links(name)?;
                    let (path, cache) = (self.folder.repository(name), self.folder.cache(name));
                    let signer = Arc::clone(&self.signer);
                    Store::open_to_read(&path, &cache, signer as _, Arc::clone(&self.clock))?
                }
            };
            Ok((store.repository(), store.census()))
        })
    }

    /// A stored repository itself, for whoever keeps it. Where the disk did not give all of it when it was opened
    /// and does now, it is opened again first, if nobody else is at it: a disk that was gone for a moment needs no
    /// restart of the server.
    ///
    /// # Errors
    /// As [`Stores::repository`].
    pub(crate) fn store(&self, name: &str) -> Result<Arc<Store>, RepositoryError> {
        self.with_slot(name, |open, name| {
            let is_due = |store: &mut Arc<Store>| {
                Arc::strong_count(store) == 1 && store.reopen_would_recover()
            };
            if let Some(closed) = open.store.take_if(is_due) {
                open.sessions = Some(closed.shared_sessions());
            }
            self.opened(open, name)
        })
    }

    /// What time it is, in nanoseconds since 1970 UTC.
    pub(crate) fn now_ns(&self) -> i64 {
        self.clock.now_ns()
    }

    /// Notes a record that was committed as the newest of its repository. That it cannot be noted is no reason to take the
    /// acknowledgement back.
    pub(crate) fn note_newest(&self, answer: &CommitAnswer) {
        let CommitAnswer::Committed(stored) = answer else { return };
        let Ok(stored) = StoredRecord::decode_with(stored, Signatures::CheckedBefore) else {
            return;
        };
        let (repository, record) = (stored.receipt.repository, stored.receipt.record);
        if let Err(error) = self.accounts.note_newest(repository, &record) {
            (self.log)(&format!("that record {record} is the newest of {repository}: {error}"));
        }
    }

    /// Notes that a machine was here. That it cannot be noted is no reason to send it away.
    fn note(&self, permit: &Permit) {
        if let Err(error) = self.accounts.saw(permit.machine()) {
            (self.log)(&format!("when machine {} was here: {error}", permit.machine()));
        }
    }

    /// Puts back what the repository of a permit says of itself in clear, where it is not open: what is open is sound.
    ///
    /// # Errors
    /// As for [`holdall_protocol::Repository::put_back`].
    pub(crate) fn put_back(
        &self,
        permit: &Permit,
        known: &NewRepository,
    ) -> Result<(), RepositoryError> {
        self.with_slot(permit.repository(), |open, name| {
            self.check_again(permit)?;
            if open.store.is_some() {
                return Ok(());
            }
            self.folder.refuse_links(name)?;
            // Kits from before there were proofs go on reading, and no other is let in without one.
            let readers = self.accounts.readers(name);
            if Store::put_back(&self.folder.repository(name), known, &readers)? {
                (self.log)(&format!("a machine put back the configuration and keys of {name}"));
            }
            Ok(())
        })
    }

    fn make(&self, name: &str, new: &NewRepository) -> Result<(), RepositoryError> {
        self.folder.refuse_links(name)?;
        Store::create(&self.folder.repository(name), new)
    }

    /// Checks that the newest record of a machine in a stored repository was signed by that key.
    ///
    /// # Errors
    /// [`ServerError::Refused`] with what else to do if it was not, or nothing tells.
    pub(crate) fn prove(&self, former: &FormerAccount, key: PublicKey) -> Result<(), ServerError> {
        let name = &former.repository;
        let why_not = match is_repository_name(name) && self.is_stored(name) {
            false => "it is not stored".to_owned(),
            true => match newest_key_in(&self.folder.repository(name), &former.machine) {
                Ok(Some(newest)) if newest == key => return Ok(()),
                Ok(Some(_)) => "the machine's newest record was signed by another key".into(),
                Ok(None) => "the machine has no record there".into(),
                Err(error) => format!("its records cannot be read: {error}"),
            },
        };
        (self.log)(&format!("nothing proves to whom {name:?} belongs: {why_not}"));
        // Whatever the reason, the same is said: what is stored here is told to nobody.
        Err(ServerError::refused(format!(
            "nothing on this server proves that {name:?} is this computer's; its administrator is \
             told why. Say --new instead of --again to begin another one, or ask for an invite made with \
             `--repository NAME`, which gives it to this computer as a new machine"
        )))
    }

    /// What makes the server's identity.
    ///
    /// Secret.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn identity_seed(&self) -> Result<Zeroizing<[u8; 32]>, ServerError> {
        Ok(ServerIdentity::stored_in(&self.folder)?.seed())
    }

    /// The server's folder.
    pub(crate) fn folder(&self) -> &DataFolder {
        &self.folder
    }

    /// Where the repositories' folders lie.
    pub(crate) fn folder_of_all(&self) -> std::path::PathBuf {
        self.folder.repositories()
    }

    /// Whether a folder of that name lies among the repositories.
    pub(crate) fn is_stored(&self, name: &str) -> bool {
        let found = fs::symlink_metadata(self.folder.repository(name));
        !matches!(found, Err(error) if error.kind() == io::ErrorKind::NotFound)
    }

    /// The store in a slot whose lock is held; opens it if it is not open yet.
    fn opened(&self, open: &mut Slot, name: &str) -> Result<Arc<Store>, RepositoryError> {
        if let Some(store) = &open.store {
            return Ok(Arc::clone(store));
        }
        let store = self.open_store(name)?;
        if let Some(sessions) = open.sessions.take() {
            store.adopt_sessions(&sessions);
        }
        open.store = Some(Arc::clone(&store));
        Ok(store)
    }

    /// Opens a repository, and lets its recovery kits in: its folder may have been put there since
    /// the server started.
    fn open_store(&self, name: &str) -> Result<Arc<Store>, RepositoryError> {
        self.folder.refuse_links(name)?;
        let (path, cache) = (self.folder.repository(name), self.folder.cache(name));
        let (signer, clock) = (Arc::clone(&self.signer), Arc::clone(&self.clock));
        let store = Store::open(&path, &cache, signer as _, clock)?;
        for repaired in store.take_repaired() {
            (self.log)(&format!("the repository {name}: {}", repaired.sentence(false)));
        }
        self.set_readers(name, &store.recovery_identities());
        self.tell_places(&store, name);
        Ok(store)
    }

    /// Notes that a repository was made here, so that the rules of its name are its own. Where that cannot be
    /// noted, rules let nothing go until an administrator says that it is all right.
    fn begin_rules(&self, name: &str) {
        if let Err(error) = self.accounts.watch_anew(name) {
            (self.log)(&format!("that {name} was made here: {error}"));
        }
    }

    /// What hinders it is no reason to keep a machine from its repository.
    fn set_readers(&self, name: &str, readers: &[PublicKey]) {
        match self.accounts.set_readers(name, readers) {
            Ok(true) => (self.log)(&format!(
                "the recovery kits of {name} are those that its wrappings name"
            )),
            Ok(false) => {}
            Err(error) => (self.log)(&format!("a recovery kit of {name} cannot read: {error}")),
        }
    }

    /// Does something with a repository while nobody else opens, makes or renames it. It is told the name that the
    /// repository has by then.
    fn with_slot<T>(&self, name: &str, work: impl FnOnce(&mut Slot, &str) -> T) -> T {
        loop {
            let name = self.accounts.current_name(name);
            let slot = self.slot(&name);
            let mut open = slot.lock().unwrap_or_else(PoisonError::into_inner);
            if self.accounts.current_name(&name) == name {
                return work(&mut open, &name);
            }
        }
    }

    fn slot(&self, name: &str) -> Arc<Mutex<Slot>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(open.entry(name.to_owned()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InviteRequest;
    use crate::auth::rights::{self, Right, Role};
    use holdall_format::{MachineId, ObjectId};
    use holdall_protocol::contract::{Forge, TestKey};
    use holdall_protocol::wire::RepositoryVerb;
    use holdall_protocol::{Repository, SessionPurpose};
    use holdall_testkit::FakeClock;
    use std::path::{Path, PathBuf};

    const MACHINE: MachineId = MachineId::from_bytes([3; 16]);
    const KEY: PublicKey = PublicKey::from_bytes([2; 32]);
    /// Seeds of what recovery kits sign in with.
    const KIT: [u8; 32] = [7; 32];
    const OTHER_KIT: [u8; 32] = [8; 32];

    struct World {
        stores: Stores,
        accounts: Arc<Accounts>,
        folder: tempfile::TempDir,
    }

    impl World {
        fn new() -> Self {
            let temp = tempfile::tempdir().unwrap();
            let folder = Arc::new(DataFolder::take(temp.path()).unwrap());
            let accounts = Arc::new(
                Accounts::open(&folder.database(), Arc::new(FakeClock::at(1_700_000_000))).unwrap(),
            );
            Self::on(temp, folder, accounts)
        }

        fn on(temp: tempfile::TempDir, folder: Arc<DataFolder>, accounts: Arc<Accounts>) -> Self {
            let signer = Arc::new(ServerIdentity::of(&folder).unwrap());
            let log: LogSink = Arc::new(|_| {});
            if accounts.role(&KEY) == Role::Unknown {
                let invited = accounts.invite(&InviteRequest::default(), KEY, vec![]).unwrap();
                accounts.pair(&invited.invite.secret, KEY, "desk", None, |_| false).unwrap();
            }
            let stores = Stores::new(folder, signer, accounts.clone(), log);
            Self { stores, accounts, folder: temp }
        }

        /// Leaves a repository as a create does whose answer is an error after all.
        fn half_create(&self, new: &NewRepository) {
            self.stores.make("desk", new).unwrap();
        }

        fn reads(&self, kit: [u8; 32]) -> bool {
            self.accounts.role(&identity_of(kit)) == Role::Reader { repository: "desk".into() }
        }
    }

    fn identity_of(kit: [u8; 32]) -> PublicKey {
        TestKey::from_seed(&kit).public()
    }

    fn permit() -> Permit {
        let right = Right::Backup;
        let role = Role::Machine { machine: MACHINE, repository: "desk".into(), right };
        rights::check(&role, KEY, "desk", RepositoryVerb::Create.verb()).unwrap()
    }

    fn new_repository(kit: [u8; 32]) -> NewRepository {
        let new = Forge::new(1, MACHINE, &[1; 32]).new_repository();
        NewRepository { wrappings: kits(1, &[kit]), ..new }
    }

    fn kits(generation: u64, kits: &[[u8; 32]]) -> Bytes {
        let kits: Vec<_> = kits.iter().map(TestKey::from_seed).collect();
        Forge::new(1, MACHINE, &[1; 32]).wrappings_for_kits(generation, &kits)
    }

    #[test]
    fn a_create_that_fails_after_the_repository_is_there_keeps_its_recovery_kit() {
        let world = World::new();
        world.half_create(&new_repository(KIT));
        for _ in 0..2 {
            let again = world.stores.create(&permit(), &new_repository(KIT));
            assert!(matches!(again, Err(RepositoryError::AlreadyExists { .. })), "{again:?}");
            assert!(world.reads(KIT));
        }
    }

    #[test]
    fn a_create_that_lost_to_another_takes_nobody_s_recovery_kit() {
        let world = World::new();
        let made = std::thread::scope(|scope| {
            let create = || world.stores.create(&permit(), &new_repository(KIT)).is_ok();
            let both = [scope.spawn(create), scope.spawn(create)];
            both.map(|one| one.join().unwrap()).into_iter().filter(|made| *made).count()
        });
        assert_eq!(made, 1);
        assert!(world.reads(KIT));
    }

    #[test]
    fn a_recovery_kit_of_a_repository_that_was_not_made_may_read_nothing() {
        let world = World::new();
        let mut broken = new_repository(KIT);
        broken.config = b"no configuration".to_vec().into();
        world.stores.create(&permit(), &broken).unwrap_err();
        assert!(!world.reads(KIT));

        world.half_create(&new_repository(KIT));
        world.stores.create(&permit(), &new_repository(OTHER_KIT)).unwrap_err();
        assert!(world.reads(KIT) && !world.reads(OTHER_KIT));
    }

    #[test]
    fn opening_a_repository_lets_its_recovery_kit_in() {
        let world = World::new();
        world.half_create(&new_repository(KIT));
        assert!(!world.reads(KIT));
        world.stores.repository(&permit()).unwrap();
        assert!(world.reads(KIT));
    }

    #[test]
    fn recovery_kits_are_let_in_without_opening_their_repositories() {
        let world = World::new();
        world.stores.let_readers_in().unwrap();
        world.half_create(&new_repository(KIT));
        let repositories = world.stores.folder.repositories();
        fs::create_dir(repositories.join("begun")).unwrap();
        fs::create_dir(repositories.join("Not A Name")).unwrap();
        let torn = repositories.join("damaged");
        Store::create(&torn, &new_repository(OTHER_KIT)).unwrap();
        fs::write(torn.join("wrappings/0000000000000001"), b"torn").unwrap();
        for _ in 0..2 {
            world.stores.let_readers_in().unwrap();
            assert!(world.reads(KIT));
        }
        assert!(world.stores.open.lock().unwrap().is_empty(), "a repository was opened");
    }

    #[test]
    fn a_recovery_kit_reads_its_repository_under_the_new_name_of_its_folder() {
        let world = World::new();
        world.stores.create(&permit(), &new_repository(KIT)).unwrap();
        let repositories = world.stores.folder.repositories();
        fs::rename(repositories.join("desk"), repositories.join("table")).unwrap();
        world.stores.let_readers_in().unwrap();
        assert_eq!(
            world.accounts.role(&identity_of(KIT)),
            Role::Reader { repository: "table".into() }
        );
    }

    #[test]
    fn a_recovery_kit_that_is_something_else_keeps_no_machine_from_its_repository() {
        let world = World::new();
        world.half_create(&new_repository(KIT));
        world.accounts.set_readers("another", &[identity_of(KIT)]).unwrap();
        world.stores.repository(&permit()).unwrap();
        assert!(!world.reads(KIT));
    }

    #[test]
    fn those_recovery_kits_read_that_the_newest_wrappings_name() {
        let world = World::new();
        world.stores.create(&permit(), &new_repository(KIT)).unwrap();
        world.stores.put_wrappings(&permit(), &kits(2, &[KIT, OTHER_KIT])).unwrap();
        assert!(world.reads(KIT) && world.reads(OTHER_KIT));
        world.stores.put_wrappings(&permit(), &kits(3, &[OTHER_KIT])).unwrap();
        assert!(!world.reads(KIT) && world.reads(OTHER_KIT));
        // The current set is told to have been put; any other of its generation is not taken.
        world.stores.put_wrappings(&permit(), &kits(3, &[OTHER_KIT])).unwrap();
        world.stores.put_wrappings(&permit(), &kits(3, &[KIT])).unwrap_err();
        assert!(!world.reads(KIT) && world.reads(OTHER_KIT));
    }

    /// Stops the server, does something to a repository's folder, and starts it again.
    fn restarted(world: World, meanwhile: impl FnOnce(&Path)) -> World {
        let World { stores, accounts, folder: temp } = world;
        let repository = stores.folder.repository("desk");
        drop(stores);
        meanwhile(&repository);
        let folder = Arc::new(DataFolder::take(temp.path()).unwrap());
        World::on(temp, folder, accounts)
    }

    /// Puts a chunk, which stays in a tail.
    fn put(world: &World, id: ObjectId) {
        let repository = world.stores.repository(&permit()).unwrap();
        let purpose = SessionPurpose::Backup { parents: vec![] };
        let session = repository.open_session(&purpose).unwrap().session;
        let block = Forge::new(1, MACHINE, &[1; 32]).chunks(&[id]);
        repository.put_blocks(&session, &[block]).unwrap();
    }

    fn payload_in(repository: &Path) -> PathBuf {
        holdall_testkit::only_file(&repository.join("tails"), "chunks.", ".payload")
    }

    #[test]
    fn a_restore_goes_on_over_a_store_that_is_opened_again_though_the_first_try_fails() {
        let world = World::new();
        world.stores.create(&permit(), &new_repository(KIT)).unwrap();
        let id = ObjectId::from_bytes([4; 32]);
        put(&world, id);
        let world = restarted(world, |repository| {
            let payload = payload_in(repository);
            fs::rename(&payload, repository.join("aside")).unwrap();
            fs::create_dir(payload).unwrap(); // The disk does not give it.
        });

        let repository = world.stores.repository(&permit()).unwrap();
        let session = repository.open_session(&SessionPurpose::Read).unwrap().session;
        repository.fetch_objects(&session, &[id], 0).unwrap_err();
        drop(repository);
        let dir = world.stores.folder.repository("desk");
        // As on a disk that was full when it began.
        fs::remove_file(dir.join("sessions").join(session.to_string())).unwrap();
        let payload = payload_in(&dir);
        fs::remove_dir(&payload).unwrap();
        fs::rename(dir.join("aside"), payload).unwrap();

        fs::rename(dir.join("config"), dir.join("aside")).unwrap();
        fs::remove_dir_all(dir.join("spare")).unwrap();
        assert!(world.stores.store("desk").is_err(), "it was opened without a configuration");
        fs::rename(dir.join("aside"), dir.join("config")).unwrap();
        world.stores.store("desk").unwrap();
        let repository = world.stores.repository(&permit()).unwrap();
        assert_eq!(repository.fetch_objects(&session, &[id], 0).unwrap().blocks.len(), 1);
        // The session began behind positions that were left out. What comes now is behind it, or a prune
        // would take it for one that began later than what it deletes.
        put(&world, ObjectId::from_bytes([5; 32]));
        assert_eq!(repository.read_blocks(&session, 1 << 32).unwrap().blocks.len(), 1);
    }

    #[test]
    fn wrappings_of_somebody_else_let_nobody_in() {
        let world = World::new();
        world.stores.create(&permit(), &new_repository(KIT)).unwrap();
        let other = [TestKey::from_seed(&OTHER_KIT)];
        let foreign = Forge::new(2, MACHINE, &[1; 32]).wrappings_for_kits(2, &other);
        world.stores.put_wrappings(&permit(), &foreign).unwrap_err();
        assert!(world.reads(KIT) && !world.reads(OTHER_KIT));
    }

    #[test]
    fn going_back_to_older_wrappings_goes_back_to_their_recovery_kits() {
        let world = World::new();
        world.stores.create(&permit(), &new_repository(KIT)).unwrap();
        world.stores.put_wrappings(&permit(), &kits(2, &[OTHER_KIT])).unwrap();
        let world = restarted(world, |repository| {
            fs::remove_file(repository.join("wrappings/0000000000000002")).unwrap();
            fs::remove_dir_all(repository.join("spare")).unwrap();
        });
        world.stores.let_readers_in().unwrap();
        assert!(world.reads(KIT) && !world.reads(OTHER_KIT));
    }
}
