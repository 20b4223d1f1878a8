//! Where a repository's files lie, whatever that is: the seam behind which another kind of store comes.
//!
//! What is published whole goes through [`Storage`]: it is there with all its bytes and for good, or not at all, and
//! is read by ranges. [`Layout`](crate::storage::layout::Layout) names it by [`Stored`]: a name in a storage, which is no path
//! that anybody could open. What grows while it is there, a tail, goes through [`Landing`], which stays on this
//! computer whatever the storage is, and is named by [`Landed`].
//!
//! ```text
//! Stored ──> Storage ──> DirStorage      a directory: `publish`, with its system calls in its order
//! Landed ──> Landing ──> DirStorage      the same one, so that a tail becomes a pack by a new name
//! packs  ──> Storage ──> PlacedPacks     the same one, and places on other disks
//!                └──> MemoryStorage   in tests: a call of it fails, and what is not durable is lost
//! ```
//!
//! A storage knows names, lengths and bytes. What they mean, it does not know.

mod dir;
pub(crate) mod layout;
#[cfg(test)]
pub(crate) mod memory;
pub(crate) mod own_names;
pub(crate) mod place_away;
pub(crate) mod placed;
pub(crate) mod publish;
pub(crate) mod retry;
pub(crate) mod set_aside;

use std::ffi::{OsStr, OsString};
use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdall_protocol::RepositoryError;
use holdall_sys::PathBeneath;
use holdall_sys::reading::append_exact_at;

pub(crate) use self::dir::DirStorage;
use crate::storage::publish::{NO_FILE, Published, Shown, damaged, failed};

/// The name of a file or folder in a storage.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// As it is shown to people.
    path: PathBuf,
    /// From the storage's own folder on.
    below: PathBuf,
}

impl Key {
    /// As it is shown to people, and compared with what they name.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// From the storage's own folder on.
    pub(crate) fn below(&self) -> &Path {
        &self.below
    }
}

impl Shown for Key {
    fn shown(&self) -> std::path::Display<'_> {
        self.path.display()
    }
}

/// What is known of a file without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    /// Whether it is a regular file.
    pub(crate) is_file: bool,
    /// Whether it is a folder.
    pub(crate) is_folder: bool,
    /// Length of its content.
    pub(crate) len_bytes: u64,
    /// Whether a change of it would show under another name too.
    pub(crate) has_other_names: bool,
}

/// Bytes that are read by ranges.
pub(crate) trait ReadAt: Debug + Send + Sync {
    /// How many there are.
    ///
    /// # Errors
    /// What the storage says.
    fn len_bytes(&self) -> io::Result<u64>;

    /// Appends exactly `length` bytes from `offset` on to `out`.
    ///
    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] if there are fewer; what the storage says. `out` has some of them then.
    fn append_at(&self, out: &mut Vec<u8>, length: usize, offset: u64) -> io::Result<()>;

    /// Fills `into` with the bytes from `offset` on; for what is short.
    ///
    /// # Errors
    /// As for [`ReadAt::append_at`].
    fn fill_at(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        let mut bytes = Vec::new();
        self.append_at(&mut bytes, into.len(), offset)?;
        into.copy_from_slice(&bytes);
        Ok(())
    }

    /// So many bytes are worth reading at once, where some of them are wanted for sure: as many as come in the time
    /// of a request. A disk that has lost bytes nobody asked for is not asked for them.
    fn bytes_at_once(&self) -> usize {
        0
    }
}

impl ReadAt for File {
    fn len_bytes(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn append_at(&self, out: &mut Vec<u8>, length: usize, offset: u64) -> io::Result<()> {
        append_exact_at(self, out, length, offset)
    }

    fn fill_at(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        self.read_exact_at(into, offset)
    }
}

impl<T: ReadAt + ?Sized> ReadAt for Box<T> {
    fn len_bytes(&self) -> io::Result<u64> {
        (**self).len_bytes()
    }

    fn append_at(&self, out: &mut Vec<u8>, length: usize, offset: u64) -> io::Result<()> {
        (**self).append_at(out, length, offset)
    }

    fn fill_at(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        (**self).fill_at(into, offset)
    }

    fn bytes_at_once(&self) -> usize {
        (**self).bytes_at_once()
    }
}

/// A file that grows, of which only what was synced is durable.
pub(crate) trait GrowingFile: ReadAt {
    /// Writes all of these bytes at `offset`.
    ///
    /// # Errors
    /// What the landing says; some of them may be there then.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Cuts it off there.
    ///
    /// # Errors
    /// What the landing says.
    fn set_len(&self, len_bytes: u64) -> io::Result<()>;

    /// Makes its bytes durable. Whoever is told of an error never calls this again: the next answer may lie.
    ///
    /// # Errors
    /// What the landing says.
    fn sync_data(&self) -> io::Result<()>;

    /// The same with all that is known of it.
    ///
    /// # Errors
    /// As for [`GrowingFile::sync_data`].
    fn sync_all(&self) -> io::Result<()>;
}

impl GrowingFile for File {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn set_len(&self, len_bytes: u64) -> io::Result<()> {
        Self::set_len(self, len_bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        Self::sync_data(self)
    }

    fn sync_all(&self) -> io::Result<()> {
        Self::sync_all(self)
    }
}

/// Whether a file may be changed that is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenTo {
    Read,
    Change,
}

/// What is asked whether the lease is held, just before a file gets its name.
pub(crate) type IsHeld<'a> = &'a mut dyn FnMut() -> Result<(), RepositoryError>;

/// Where files are published whole. What is there has all its bytes, and stays until it is removed.
///
/// After an error of a call that changes something it is not known whether that was done: who must know looks.
/// Errors name the file.
///
/// What was put is read and listed, and what was removed is not, by every call that begins once that one returned, of
/// any process. Directories do this, and so does S3, whose lists have been consistent since December 2020; older
/// stores, and proxies that keep lists for a while, do not. Where a repository is opened, what is not listed counts as
/// not there. A late list would have a machine's chain fork, and a prune condemn all copies of a block, which only the
/// next one takes back. A process that has it open needs no list for what it did itself.
pub(crate) trait Storage: Debug + Send + Sync {
    /// Publishes `bytes` under a name that nothing has, if `is_held` says that the lease is held once only the name is
    /// missing. Durable when it returns [`Published::New`].
    fn put_new(
        &self,
        key: &Key,
        bytes: &[u8],
        is_held: IsHeld<'_>,
    ) -> Result<Published, RepositoryError>;

    /// The same with a durable file that has landed, which is gone from there then.
    fn put_file(&self, from: &Landed, key: &Key) -> Result<Published, RepositoryError>;

    /// Makes an empty file durably, for what its name alone says, where there is no room for more. One that is there
    /// stays as it is.
    fn put_name(&self, key: &Key) -> Result<(), RepositoryError>;

    /// Puts `bytes`, durably, in the place of what is there, whatever it is.
    fn replace(&self, key: &Key, bytes: &[u8]) -> Result<(), RepositoryError>;

    /// Keeps what can be read of a file under another name too, durably.
    fn keep_as(&self, key: &Key, aside: &Key) -> Result<(), RepositoryError>;

    /// Gives a file another name, durably, which nothing has.
    fn rename(&self, key: &Key, to: &Key) -> Result<(), RepositoryError>;

    /// Opens a file to read it, also when it is removed meanwhile.
    fn open(&self, key: &Key) -> io::Result<Box<dyn ReadAt>>;

    /// What is known of a file; `None` if nothing is there.
    fn stat(&self, key: &Key) -> io::Result<Option<Stat>>;

    /// The names in a folder, in ascending order; none if there is no such folder.
    fn names(&self, folder: &Key) -> Result<Vec<OsString>, RepositoryError>;

    /// The same of a folder that is there, with what is known of each.
    fn list(&self, folder: &Key) -> Result<Vec<(OsString, io::Result<Stat>)>, RepositoryError>;

    /// Removes a file; one that is not there is no error. Durable after [`Storage::sync`].
    fn remove(&self, key: &Key) -> Result<(), RepositoryError>;

    /// Makes durable which names are in a folder.
    fn sync(&self, folder: &Key) -> Result<(), RepositoryError>;

    /// Makes a folder durably if it is not there, where there are folders.
    fn make_folder(&self, folder: &Key) -> Result<(), RepositoryError>;

    /// Where a file lies on this computer, if files of this storage do: parity is kept of those alone.
    fn file(&self, key: &Key) -> Option<PathBeneath>;
}

/// Where files grow until they are published.
pub(crate) trait Landing: Storage {
    /// Makes an empty file under a name that nothing has. Its name is durable after [`Storage::sync`].
    fn create_new(&self, key: &Key) -> io::Result<Box<dyn GrowingFile>>;

    /// Opens a file; to change it only if that shows under no other name.
    fn open_growing(&self, key: &Key, to: OpenTo) -> io::Result<Box<dyn GrowingFile>>;

    /// Gives a file another name, durable after [`Storage::sync`].
    fn put_aside(&self, key: &Key, aside: &Key) -> io::Result<()>;
}

/// A file or folder in a storage.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    storage: Arc<dyn Storage>,
    key: Key,
}

impl PartialEq for Stored {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Stored {}

impl Shown for Stored {
    fn shown(&self) -> std::path::Display<'_> {
        self.key.shown()
    }
}

impl Stored {
    /// The storage's own folder, shown as `shown`.
    pub(crate) fn root(storage: Arc<dyn Storage>, shown: &Path) -> Self {
        Self { storage, key: Key { path: shown.to_owned(), below: PathBuf::new() } }
    }

    /// What `name` is in this folder.
    pub(crate) fn join(&self, name: impl AsRef<Path>) -> Self {
        let name = name.as_ref();
        let key = Key { path: self.key.path.join(name), below: self.key.below.join(name) };
        Self { storage: self.storage.clone(), key }
    }

    /// The folder that it lies in; `None` of the storage's own.
    pub(crate) fn parent(&self) -> Option<Self> {
        let below = self.key.below.parent()?.to_owned();
        let key = Key { path: self.key.path.parent()?.to_owned(), below };
        Some(Self { storage: self.storage.clone(), key })
    }

    /// Its last component.
    pub(crate) fn file_name(&self) -> Option<&OsStr> {
        self.key.below.file_name()
    }

    /// As it is shown to people, and compared with what they name.
    pub(crate) fn path(&self) -> &Path {
        self.key.path()
    }

    /// The same for a message.
    pub(crate) fn display(&self) -> std::path::Display<'_> {
        self.shown()
    }

    /// Publishes `bytes` as a new file, durably.
    pub(crate) fn put_new(&self, bytes: &[u8]) -> Result<Published, RepositoryError> {
        self.put_new_while(|| Ok(()), bytes)
    }

    /// The same if only the name is missing and `is_held` says that the lease is held still.
    pub(crate) fn put_new_while(
        &self,
        is_held: impl FnOnce() -> Result<(), RepositoryError>,
        bytes: &[u8],
    ) -> Result<Published, RepositoryError> {
        let mut is_held = Some(is_held);
        let mut ask = || is_held.take().map_or(Ok(()), |is_held| is_held());
        self.storage.put_new(&self.key, bytes, &mut ask)
    }

    /// Publishes a durable file that has landed, which is gone from there then.
    pub(crate) fn put_file(&self, from: &Landed) -> Result<Published, RepositoryError> {
        self.storage.put_file(from, &self.key)
    }

    /// Makes an empty file durably, unless one is there.
    pub(crate) fn put_name(&self) -> Result<(), RepositoryError> {
        self.storage.put_name(&self.key)
    }

    /// Puts `bytes`, durably, in the place of what is there.
    pub(crate) fn replace(&self, bytes: &[u8]) -> Result<(), RepositoryError> {
        self.storage.replace(&self.key, bytes)
    }

    /// Keeps what can be read of it under another name of its storage too, durably.
    pub(crate) fn keep_as(&self, aside: &Self) -> Result<(), RepositoryError> {
        self.storage.keep_as(&self.key, &aside.key)
    }

    /// Gives it another name of its storage, durably, which nothing has.
    pub(crate) fn rename(&self, to: &Self) -> Result<(), RepositoryError> {
        self.storage.rename(&self.key, &to.key)
    }

    /// Opens it to read.
    pub(crate) fn open(&self) -> io::Result<Box<dyn ReadAt>> {
        self.storage.open(&self.key)
    }

    /// Reads a file of at most `limit_bytes` bytes; `None` if there is none.
    pub(crate) fn read_limited(
        &self,
        limit_bytes: u64,
    ) -> Result<Option<Vec<u8>>, RepositoryError> {
        let file = match self.open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
                return Err(RepositoryError::io(
                    format!("opening {} ({NO_FILE})", self.shown()),
                    error,
                ));
            }
            opened => opened.map_err(failed("opening", self))?,
        };
        let length = file.len_bytes().map_err(failed("looking at", self))?;
        if length > limit_bytes {
            let reason = format!("it has {length} bytes, at most {limit_bytes} are allowed");
            return Err(damaged(self, reason));
        }
        let mut bytes = vec![0; length as usize];
        match file.fill_at(&mut bytes, 0) {
            // It was cut meanwhile, as a tail is at the start, and is read as far as it goes.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                let there = file.len_bytes().map_err(failed("looking at", self))?.min(length);
                bytes.truncate(there as usize);
                file.fill_at(&mut bytes, 0).map_err(failed("reading", self))?;
            }
            read => read.map_err(failed("reading", self))?,
        }
        Ok(Some(bytes))
    }

    /// What is known of it; `None` if nothing is there.
    pub(crate) fn stat(&self) -> io::Result<Option<Stat>> {
        self.storage.stat(&self.key)
    }

    /// Whether something is there. That this cannot be told is an error: it is not the same as no.
    pub(crate) fn is_there(&self) -> Result<bool, RepositoryError> {
        Ok(self.stat().map_err(failed("looking at", self))?.is_some())
    }

    /// Whether something is known to be there.
    pub(crate) fn exists(&self) -> bool {
        self.stat().is_ok_and(|found| found.is_some())
    }

    /// Whether a folder is known to be there.
    pub(crate) fn is_folder(&self) -> bool {
        self.stat().is_ok_and(|found| found.is_some_and(|found| found.is_folder))
    }

    /// The names in this folder, in ascending order; none if there is no such folder.
    pub(crate) fn names(&self) -> Result<Vec<OsString>, RepositoryError> {
        self.storage.names(&self.key)
    }

    /// The same of a folder that is there, with what is known of each.
    pub(crate) fn list(&self) -> Result<Vec<(OsString, io::Result<Stat>)>, RepositoryError> {
        self.storage.list(&self.key)
    }

    /// Removes it; that it is not there is no error.
    pub(crate) fn remove(&self) -> Result<(), RepositoryError> {
        self.storage.remove(&self.key)
    }

    /// Makes durable which names are in this folder.
    pub(crate) fn sync(&self) -> Result<(), RepositoryError> {
        self.storage.sync(&self.key)
    }

    /// Makes its own name durable, or that it is gone.
    pub(crate) fn sync_parent(&self) -> Result<(), RepositoryError> {
        self.parent().map_or(Ok(()), |folder| folder.sync())
    }

    /// Makes the folder that it lies in durably, if it is not there.
    pub(crate) fn make_parent(&self) -> Result<(), RepositoryError> {
        self.parent().map_or(Ok(()), |folder| folder.storage.make_folder(&folder.key))
    }

    /// Where it lies on this computer, if it does.
    pub(crate) fn file(&self) -> Option<PathBeneath> {
        self.storage.file(&self.key)
    }
}

/// A file or folder in a landing, which is a storage of small files too.
#[derive(Debug, Clone)]
pub(crate) struct Landed {
    landing: Arc<dyn Landing>,
    stored: Stored,
}

impl Deref for Landed {
    type Target = Stored;

    fn deref(&self) -> &Stored {
        &self.stored
    }
}

impl Shown for Landed {
    fn shown(&self) -> std::path::Display<'_> {
        self.stored.shown()
    }
}

impl Landed {
    /// The landing's own folder, shown as `shown`.
    pub(crate) fn root(landing: Arc<dyn Landing>, shown: &Path) -> Self {
        Self { stored: Stored::root(landing.clone(), shown), landing }
    }

    /// What `name` is in this folder.
    pub(crate) fn join(&self, name: impl AsRef<Path>) -> Self {
        Self { landing: self.landing.clone(), stored: self.stored.join(name) }
    }

    /// The same as a file that is published whole.
    pub(crate) fn stored(&self) -> &Stored {
        &self.stored
    }

    /// Makes an empty file, whose name is not durable yet.
    pub(crate) fn create_new(&self) -> io::Result<Box<dyn GrowingFile>> {
        self.landing.create_new(&self.key)
    }

    /// Opens the file as one that grows.
    pub(crate) fn open_growing(&self, to: OpenTo) -> io::Result<Box<dyn GrowingFile>> {
        self.landing.open_growing(&self.key, to)
    }

    /// Has its name end with `ending` from now on; durable once its folder is synced.
    pub(crate) fn put_aside(&self, ending: &str) -> io::Result<()> {
        let with_ending = |path: &Path| {
            let mut name = path.as_os_str().to_owned();
            name.push(ending);
            PathBuf::from(name)
        };
        let Key { path, below } = &self.key;
        let aside = Key { path: with_ending(path), below: with_ending(below) };
        self.landing.put_aside(&self.key, &aside)
    }
}
