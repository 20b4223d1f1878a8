//! A storage in memory for tests, one call of which meets with a fate, and which loses what is not durable.
//!
//! Of a file only the bytes of its last sync are durable, and of a folder only the names of its last sync and what was
//! published whole. Power that is cut loses all the rest; a process that is killed loses nothing that it wrote. What
//! may be between the two, the power cuts of `tests/faults` try on a directory.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdall_protocol::RepositoryError;
use holdall_sys::PathBeneath;
use rustix::io::Errno;

use super::{GrowingFile, IsHeld, Key, Landed, Landing, OpenTo, ReadAt, Stat, Storage};
use crate::storage::publish::{Published, failed};

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is not made, and answers this.
    Refused(Errno),
    /// It is made, and its effect is not durable; it answers this.
    NotDurable(Errno),
    /// It is made, and answers this.
    ReplyLost(Errno),
    /// Neither it nor any behind it is made.
    Ends,
}

/// The bytes of a file, and those that are durable.
#[derive(Debug, Clone, Default)]
struct Content {
    now: Vec<u8>,
    durable: Vec<u8>,
}

type Node = Arc<Mutex<Content>>;
type Names = BTreeMap<PathBuf, Node>;

#[derive(Debug, Default)]
struct State {
    names: Names,
    durable: Names,
    folders: BTreeSet<PathBuf>,
    calls: u64,
    fault: Option<(u64, Fate)>,
    late_lists: Option<LateLists>,
}

/// Lists that are late: of these folders they show what was there at a moment, whatever was put or removed since.
#[derive(Debug, Clone)]
struct LateLists {
    folders: Vec<PathBuf>,
    shown: BTreeSet<PathBuf>,
}

/// A storage and landing in memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct MemoryStorage {
    state: Arc<Mutex<State>>,
}

/// How a call ends whose effect is there.
struct Done {
    is_durable: bool,
    answer: io::Result<()>,
}

impl MemoryStorage {
    /// What a process finds that is started after this one was killed.
    pub(crate) fn after_kill(&self) -> Self {
        let state = self.lock();
        let there = Self::holding(&state.names, &state.folders, |content| content.now.clone());
        there.lock().late_lists = state.late_lists.clone();
        there
    }

    /// What is found after the power was cut.
    pub(crate) fn after_power_cut(&self) -> Self {
        let state = self.lock();
        Self::holding(&state.durable, &state.folders, |content| content.durable.clone())
    }

    fn holding(
        names: &Names,
        folders: &BTreeSet<PathBuf>,
        bytes: impl Fn(&Content) -> Vec<u8>,
    ) -> Self {
        let mut copies: BTreeMap<*const Mutex<Content>, Node> = BTreeMap::new();
        let mut copy = |node: &Node| {
            let made = || {
                let now = bytes(&content(node));
                Arc::new(Mutex::new(Content { durable: now.clone(), now }))
            };
            copies.entry(Arc::as_ptr(node)).or_insert_with(made).clone()
        };
        let names: Names = names.iter().map(|(name, node)| (name.clone(), copy(node))).collect();
        let (durable, folders) = (names.clone(), folders.clone());
        let state = State { names, durable, folders, ..State::default() };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Turns a bit near the start of the longest file below a folder.
    pub(crate) fn damage_largest_in(&self, folder: &Path) {
        let state = self.lock();
        let below = state.names.iter().filter(|(name, _)| name.starts_with(folder));
        let (_, longest) = below.max_by_key(|(_, node)| content(node).now.len()).expect("a file");
        let mut content = content(longest);
        content.now[100] ^= 1;
        content.durable = content.now.clone();
    }

    /// Has lists of these folders show what is there now, until [`MemoryStorage::catch_up`].
    pub(crate) fn have_lists_be_late(&self, folders: &[&str]) {
        let mut state = self.lock();
        let shown = state.names.keys().chain(&state.folders).cloned().collect();
        let folders = folders.iter().map(PathBuf::from).collect();
        state.late_lists = Some(LateLists { folders, shown });
    }

    /// Has lists show what is there.
    pub(crate) fn catch_up(&self) {
        self.lock().late_lists = None;
    }

    /// Files that were removed and would be there again if the power were cut now.
    pub(crate) fn not_durably_removed(&self) -> Vec<PathBuf> {
        let state = self.lock();
        let removed = state.durable.keys().filter(|name| !state.names.contains_key(*name));
        removed.cloned().collect()
    }

    /// Has the call behind so many more meet with this.
    pub(crate) fn plan(&self, calls: u64, fate: Fate) {
        let mut state = self.lock();
        state.fault = Some((state.calls + calls, fate));
    }

    /// How many calls there were.
    pub(crate) fn calls(&self) -> u64 {
        self.lock().calls
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call; an error if it is not made.
    fn begin(&self) -> io::Result<(MutexGuard<'_, State>, Done)> {
        let mut state = self.lock();
        let number = state.calls;
        state.calls += 1;
        let fate = match state.fault {
            Some((at, fate)) if number == at || (number > at && fate == Fate::Ends) => Some(fate),
            _ => None,
        };
        let done = |is_durable, answer| Done { is_durable, answer };
        match fate {
            None => Ok((state, done(true, Ok(())))),
            Some(Fate::Ends) => Err(Errno::IO.into()),
            Some(Fate::Refused(errno)) => Err(errno.into()),
            Some(Fate::NotDurable(errno)) => Ok((state, done(false, Err(errno.into())))),
            Some(Fate::ReplyLost(errno)) => Ok((state, done(true, Err(errno.into())))),
        }
    }
}

impl State {
    fn put(&mut self, below: &Path, node: Node, is_durable: bool) {
        self.folders.extend(below.ancestors().skip(1).map(Path::to_owned));
        if is_durable {
            self.durable.insert(below.to_owned(), node.clone());
        }
        self.names.insert(below.to_owned(), node);
    }

    /// The names in a folder, in ascending order.
    fn names_in(&self, folder: &Path) -> BTreeSet<OsString> {
        let is_late = |late: &&LateLists| late.folders.iter().any(|late| folder.starts_with(late));
        let late = self.late_lists.as_ref().filter(is_late);
        let there = self.names.keys().chain(&self.folders).filter(|_| late.is_none());
        let all = there.chain(late.iter().flat_map(|late| &late.shown));
        let below = all.filter_map(|path| path.strip_prefix(folder).ok());
        below.filter_map(|path| Some(path.iter().next()?.to_owned())).collect()
    }

    fn stat(&self, below: &Path) -> Option<Stat> {
        let is_folder = self.folders.contains(below);
        let node = self.names.get(below);
        let len_bytes = node.map_or(0, |node| content(node).now.len() as u64);
        let stat = Stat { is_file: node.is_some(), is_folder, len_bytes, has_other_names: false };
        (stat.is_file || is_folder).then_some(stat)
    }
}

fn content(node: &Node) -> MutexGuard<'_, Content> {
    node.lock().unwrap_or_else(PoisonError::into_inner)
}

fn durable_node(bytes: &[u8]) -> Node {
    Arc::new(Mutex::new(Content { now: bytes.to_vec(), durable: bytes.to_vec() }))
}

impl Storage for MemoryStorage {
    fn put_new(
        &self,
        key: &Key,
        bytes: &[u8],
        is_held: IsHeld<'_>,
    ) -> Result<Published, RepositoryError> {
        is_held()?;
        let (mut state, done) = self.begin().map_err(failed("publishing", key))?;
        if state.names.contains_key(key.below()) {
            done.answer.map_err(failed("publishing", key))?;
            return Ok(Published::Existed);
        }
        state.put(key.below(), durable_node(bytes), done.is_durable);
        done.answer.map(|()| Published::New).map_err(failed("publishing", key))
    }

    fn put_file(&self, from: &Landed, key: &Key) -> Result<Published, RepositoryError> {
        let (mut state, done) = self.begin().map_err(failed("publishing", key))?;
        if state.names.contains_key(key.below()) {
            done.answer.map_err(failed("publishing", key))?;
            return Ok(Published::Existed);
        }
        let node = state.names.remove(from.key.below()).ok_or(Errno::NOENT.into());
        state.put(key.below(), node.map_err(failed("publishing", key))?, done.is_durable);
        done.answer.map(|()| Published::New).map_err(failed("publishing", key))
    }

    fn put_name(&self, key: &Key) -> Result<(), RepositoryError> {
        self.put_new(key, b"", &mut || Ok(())).map(drop)
    }

    fn replace(&self, key: &Key, bytes: &[u8]) -> Result<(), RepositoryError> {
        let (mut state, done) = self.begin().map_err(failed("renaming to", key))?;
        state.put(key.below(), durable_node(bytes), done.is_durable);
        done.answer.map_err(failed("renaming to", key))
    }

    fn keep_as(&self, key: &Key, aside: &Key) -> Result<(), RepositoryError> {
        let (mut state, done) = self.begin().map_err(failed("linking", aside))?;
        let node = state.names.get(key.below()).cloned().ok_or(Errno::NOENT.into());
        let node = node.map_err(failed("linking", aside))?;
        state.put(aside.below(), node, done.is_durable);
        done.answer.map_err(failed("linking", aside))
    }

    fn rename(&self, key: &Key, to: &Key) -> Result<(), RepositoryError> {
        self.put_aside(key, to).map_err(failed("renaming to", to))?;
        let folders = [to, key].map(|key| Key {
            path: key.path.parent().unwrap_or(Path::new("")).to_owned(),
            below: key.below.parent().unwrap_or(Path::new("")).to_owned(),
        });
        folders.iter().try_for_each(|folder| self.sync(folder))
    }

    fn open(&self, key: &Key) -> io::Result<Box<dyn ReadAt>> {
        Ok(Box::new(self.open_at(key)?))
    }

    fn stat(&self, key: &Key) -> io::Result<Option<Stat>> {
        let (state, done) = self.begin()?;
        done.answer.map(|()| state.stat(key.below()))
    }

    fn names(&self, folder: &Key) -> Result<Vec<OsString>, RepositoryError> {
        let (state, done) = self.begin().map_err(failed("listing", folder))?;
        done.answer.map_err(failed("listing", folder))?;
        Ok(state.names_in(folder.below()).into_iter().collect())
    }

    fn list(&self, folder: &Key) -> Result<Vec<(OsString, io::Result<Stat>)>, RepositoryError> {
        let (state, done) = self.begin().map_err(failed("listing", folder))?;
        done.answer.map_err(failed("listing", folder))?;
        let stat = |name: &OsStr| {
            state.stat(&folder.below().join(name)).ok_or_else(|| Errno::NOENT.into())
        };
        let names = state.names_in(folder.below()).into_iter();
        Ok(names.map(|name| (name.clone(), stat(&name))).collect())
    }

    fn remove(&self, key: &Key) -> Result<(), RepositoryError> {
        let (mut state, done) = self.begin().map_err(failed("removing", key))?;
        state.names.remove(key.below());
        done.answer.map_err(failed("removing", key))
    }

    fn sync(&self, folder: &Key) -> Result<(), RepositoryError> {
        let (mut state, done) = self.begin().map_err(failed("syncing", folder))?;
        if done.is_durable {
            let is_in = |path: &Path| path.parent() == Some(folder.below());
            let State { names, durable, .. } = &mut *state;
            durable.retain(|name, _| !is_in(name));
            let there = names.iter().filter(|(name, _)| is_in(name));
            durable.extend(there.map(|(name, node)| (name.clone(), node.clone())));
        }
        done.answer.map_err(failed("syncing", folder))
    }

    fn make_folder(&self, folder: &Key) -> Result<(), RepositoryError> {
        let (mut state, done) = self.begin().map_err(failed("making", folder))?;
        state.folders.insert(folder.below().to_owned());
        done.answer.map_err(failed("making", folder))
    }

    fn file(&self, _: &Key) -> Option<PathBeneath> {
        None
    }
}

impl Landing for MemoryStorage {
    fn create_new(&self, key: &Key) -> io::Result<Box<dyn GrowingFile>> {
        let (mut state, done) = self.begin()?;
        if state.names.contains_key(key.below()) {
            return Err(Errno::EXIST.into());
        }
        let node = Node::default();
        state.put(key.below(), node.clone(), false);
        done.answer.map(|()| Box::new(MemoryFile::new(self, node)) as _)
    }

    fn open_growing(&self, key: &Key, _: OpenTo) -> io::Result<Box<dyn GrowingFile>> {
        Ok(Box::new(self.open_at(key)?))
    }

    fn put_aside(&self, key: &Key, aside: &Key) -> io::Result<()> {
        let (mut state, done) = self.begin()?;
        let node = state.names.remove(key.below()).ok_or(Errno::NOENT)?;
        state.put(aside.below(), node, false);
        done.answer
    }
}

impl MemoryStorage {
    fn open_at(&self, key: &Key) -> io::Result<MemoryFile> {
        let (state, done) = self.begin()?;
        done.answer?;
        let node = state.names.get(key.below()).cloned().ok_or(Errno::NOENT)?;
        Ok(MemoryFile::new(self, node))
    }
}

/// An open file, which stays readable when its name goes.
#[derive(Debug)]
struct MemoryFile {
    storage: MemoryStorage,
    node: Node,
    /// Set by a sync that failed, behind which there is none.
    is_given_up: AtomicBool,
}

impl MemoryFile {
    fn new(storage: &MemoryStorage, node: Node) -> Self {
        Self { storage: storage.clone(), node, is_given_up: AtomicBool::new(false) }
    }
}

impl ReadAt for MemoryFile {
    fn len_bytes(&self) -> io::Result<u64> {
        let (_state, done) = self.storage.begin()?;
        done.answer.map(|()| content(&self.node).now.len() as u64)
    }

    fn append_at(&self, out: &mut Vec<u8>, length: usize, offset: u64) -> io::Result<()> {
        let (_state, done) = self.storage.begin()?;
        done.answer?;
        let content = content(&self.node);
        let range = offset as usize..offset as usize + length;
        out.extend_from_slice(content.now.get(range).ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn bytes_at_once(&self) -> usize {
        64 << 10
    }
}

impl GrowingFile for MemoryFile {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let (_state, done) = self.storage.begin()?;
        // A write that fails half-way.
        let written = if done.is_durable { bytes.len() } else { bytes.len() / 2 };
        let now = &mut content(&self.node).now;
        let (start, end) = (offset as usize, offset as usize + written);
        now.resize(now.len().max(end), 0);
        now[start..end].copy_from_slice(&bytes[..written]);
        done.answer
    }

    fn set_len(&self, len_bytes: u64) -> io::Result<()> {
        let (_state, done) = self.storage.begin()?;
        content(&self.node).now.resize(len_bytes as usize, 0);
        done.answer
    }

    fn sync_data(&self) -> io::Result<()> {
        assert!(!self.is_given_up.load(Ordering::Acquire), "synced again after a failed sync");
        let begun = self.storage.begin();
        let is_done = begun.as_ref().is_ok_and(|(_, done)| done.answer.is_ok());
        self.is_given_up.store(!is_done, Ordering::Release);
        let (_state, done) = begun?;
        if done.is_durable {
            let mut content = content(&self.node);
            content.durable = content.now.clone();
        }
        done.answer
    }

    fn sync_all(&self) -> io::Result<()> {
        self.sync_data()
    }
}
