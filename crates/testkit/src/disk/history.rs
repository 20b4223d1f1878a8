//! What was done to a folder, in order, and when each part of it became durable.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::image::{Image, Metadata};
use super::trace::{Base, Call};

/// A file or a folder, whatever its name is.
pub(super) type Inode = usize;

/// The folder that is watched.
pub(super) const ROOT: Inode = 0;

/// A place for a name.
pub(super) type Place = (Inode, OsString);

/// Something that was done, and that a crash may undo.
#[derive(Debug, Clone)]
pub(super) enum Op {
    Write {
        file: Inode,
        at: u64,
        bytes: Arc<[u8]>,
    },
    Truncate {
        file: Inode,
        length: u64,
    },
    /// A name that is new, or was moved from another place.
    Name {
        place: Place,
        inode: Inode,
        from: Option<Place>,
    },
    Unname {
        place: Place,
    },
    /// Its mode or its time, whichever is named.
    Metadata {
        inode: Inode,
        metadata: Metadata,
    },
}

impl Op {
    /// Whether a sync of `inode` makes it durable.
    fn is_of(&self, inode: Inode) -> bool {
        match self {
            Self::Write { file, .. } | Self::Truncate { file, .. } => *file == inode,
            Self::Metadata { inode: other, .. } => *other == inode,
            Self::Unname { place } => place.0 == inode,
            Self::Name { place, from, .. } => {
                place.0 == inode || from.as_ref().is_some_and(|from| from.0 == inode)
            }
        }
    }

    /// Whether it is about a name, a mode or a time, not about bytes: what a journal keeps.
    pub(super) fn is_of_names(&self) -> bool {
        !matches!(self, Self::Write { .. } | Self::Truncate { .. })
    }
}

/// One thing done, and from when on it cannot be lost.
#[derive(Debug, Clone)]
pub(super) struct Done {
    pub(super) op: Op,
    /// The line of the trace at which it was over.
    at: usize,
    /// The line of the trace from which on it is durable.
    durable: Option<usize>,
}

/// A moment at which the power may be cut.
#[derive(Debug, Clone, Copy)]
pub struct Moment<'a> {
    /// What the process had said until then, in the file that is not on the disk.
    pub said: &'a str,
    /// How many things had been done.
    pub(super) done: usize,
    /// The line of the trace.
    pub(super) line: usize,
}

#[derive(Debug, Clone)]
struct Handle {
    inode: Option<Inode>,
    at: u64,
    appends: bool,
    says: bool,
}

/// All that was done to a folder.
#[derive(Debug)]
pub struct History {
    root: PathBuf,
    /// A file outside, in which the process says what it was promised.
    notes: PathBuf,
    pub(super) done: Vec<Done>,
    /// Whether each inode is a folder.
    pub(super) is_dir: Vec<bool>,
    /// What each inode's mode and time were when it was made.
    pub(super) born: Vec<Metadata>,
    /// Whether modes and times are a part of it.
    has_metadata: bool,
    /// The names as they are now.
    names: HashMap<Place, Inode>,
    lengths: HashMap<Inode, u64>,
    handles: HashMap<i32, Arc<Mutex<Handle>>>,
    /// Open folders that the root lies below, by their absolute paths.
    above: HashMap<i32, PathBuf>,
    said: String,
    /// After which lines the power may be cut, with what was done and said by then.
    moments: Vec<(usize, usize, usize)>,
    lines: usize,
}

impl History {
    /// A history of the folder `root`, which holds `image` durably. What is written to `notes` is
    /// what the process says.
    #[must_use]
    pub fn new(root: &Path, notes: &Path, image: &Image, said: &str) -> Self {
        let mut history = Self {
            root: root.to_owned(),
            notes: notes.to_owned(),
            done: Vec::new(),
            is_dir: vec![true],
            born: vec![Metadata::default()],
            has_metadata: false,
            names: HashMap::new(),
            lengths: HashMap::new(),
            handles: HashMap::new(),
            above: HashMap::new(),
            said: said.to_owned(),
            moments: Vec::new(),
            lines: 0,
        };
        for (path, content) in &image.entries {
            // Folders come before what is in them.
            let Some(place) = history.place(&root.join(path)) else { continue };
            let metadata = image.metadata.get(path).copied().unwrap_or_default();
            let inode = history.make(place, content.is_none(), metadata);
            if let Some(bytes) = content {
                history.write(inode, 0, bytes);
            }
        }
        history.done.iter_mut().for_each(|done| done.durable = Some(0));
        history
    }

    /// Has modes and times be a part of it: each inode's survive in the order in which they were set, and not
    /// without an earlier move of its name, as every file system in use has it.
    #[must_use]
    pub fn with_metadata(self) -> Self {
        Self { has_metadata: true, ..self }
    }

    /// All moments at which something had just been done, made durable or said.
    pub fn moments(&self) -> impl Iterator<Item = Moment<'_>> {
        self.moments.iter().map(|&(line, done, said)| Moment {
            said: &self.said[..said],
            done,
            line,
        })
    }

    /// What was done by then and is not durable, by number.
    pub(super) fn pending(&self, moment: Moment<'_>) -> Vec<usize> {
        let done = self.done.iter().enumerate().take(moment.done);
        let pending = done.filter(|(_, done)| done.durable.is_none_or(|line| line > moment.line));
        pending.map(|(number, _)| number).collect()
    }

    /// Adds the calls of one more process, which has ended.
    pub(super) fn add(&mut self, calls: Vec<(usize, Call)>) -> Result<(), String> {
        self.handles.clear();
        self.above.clear();
        let base = self.lines + 1;
        for (line, call) in calls {
            let before = (self.done.len(), self.said.len());
            self.lines = base + line;
            let synced = self.apply(call, base)?;
            if synced || before != (self.done.len(), self.said.len()) {
                self.moments.push((self.lines, self.done.len(), self.said.len()));
            }
        }
        Ok(())
    }

    /// Applies a call; whether it made something durable.
    fn apply(&mut self, call: Call, base: usize) -> Result<bool, String> {
        match call {
            Call::Open { base, path, creates, truncates, appends, mode, fd } => {
                let born = creates.then(|| self.born_with(mode));
                self.open((base, path), born, truncates, appends, fd);
            }
            Call::Close { fd } => {
                self.handles.remove(&fd);
                self.above.remove(&fd);
            }
            Call::Duplicate { from, to } => {
                if let Some(handle) = self.handles.get(&from).cloned() {
                    self.handles.insert(to, handle);
                }
                if let Some(path) = self.above.get(&from).cloned() {
                    self.above.insert(to, path);
                }
            }
            Call::Seek { fd, to } => self.moved(fd, |_| to),
            Call::Read { fd, length } => self.moved(fd, |at| at + length),
            Call::Write { fd, at, bytes } => self.write_through(fd, at, &bytes)?,
            Call::Truncate { fd, length } => {
                if let Some(file) = self.inode_of(fd) {
                    self.truncate(file, length);
                }
            }
            Call::Rename { from, to } => self.rename(from, to),
            Call::Link { from, to } => {
                if let Some((inode, place)) = self.found(from).zip(self.resolve(to)) {
                    self.name(place, inode, None);
                }
            }
            Call::Unlink { base, path } => {
                if let Some(place) = self.resolve((base, path)) {
                    self.names.remove(&place);
                    self.push(Op::Unname { place });
                }
            }
            Call::MakeDir { base, path, mode } => {
                if let Some(place) = self.resolve((base, path)) {
                    self.make(place, true, self.born_with(mode));
                }
            }
            Call::SetMode { fd, mode } => self.set(fd, self.born_with(mode)),
            Call::SetTime { fd, time } => {
                self.set(fd, Metadata { time: Some(time), ..Metadata::default() });
            }
            Call::Sync { fd, begun } => {
                let inode = self.inode_of(fd);
                return Ok(inode.is_some_and(|of| self.sync(base + begun, |op| op.is_of(of))));
            }
            Call::SyncAll { fd, begun } => {
                return Ok(self.inode_of(fd).is_some() && self.sync(base + begun, |_| true));
            }
            Call::Unknown { line } => return Err(format!("a call that is not known: {line}")),
        }
        Ok(false)
    }

    fn open(
        &mut self,
        (base, path): (Base, PathBuf),
        creates: Option<Metadata>,
        truncates: bool,
        appends: bool,
        fd: i32,
    ) {
        let (base, path) = self.seen_from_above((base, path));
        match base.is_none() && self.root != path && self.root.starts_with(&path) {
            true => self.above.insert(fd, path.clone()),
            false => self.above.remove(&fd),
        };
        let says = base.is_none() && path == self.notes;
        let found = self.resolve((base, path.clone()));
        let mut inode = self.found((base, path));
        if let (None, Some(born), Some(place)) = (inode, creates, found) {
            inode = Some(self.make(place, false, born));
        }
        if let Some(file) = inode.filter(|file| truncates && self.length(*file) > 0) {
            self.truncate(file, 0);
        }
        let handle = Handle { inode, at: 0, appends, says };
        self.handles.insert(fd, Arc::new(Mutex::new(handle)));
    }

    fn write_through(&mut self, fd: i32, at: Option<u64>, bytes: &[u8]) -> Result<(), String> {
        let Some(handle) = self.handles.get(&fd).cloned() else { return Ok(()) };
        let mut handle = handle.lock().map_err(|error| error.to_string())?;
        if handle.says {
            self.said.push_str(&String::from_utf8_lossy(bytes));
        }
        let Some(file) = handle.inode else { return Ok(()) };
        if handle.appends {
            handle.at = self.length(file);
        }
        let place = at.unwrap_or(handle.at);
        if at.is_none() {
            handle.at += bytes.len() as u64;
        }
        self.write(file, place, bytes);
        Ok(())
    }

    fn rename(&mut self, from: (Base, PathBuf), to: (Base, PathBuf)) {
        let (Some(from), Some(to)) = (self.resolve(from), self.resolve(to)) else { return };
        let Some(inode) = self.names.remove(&from) else { return };
        self.name(to, inode, Some(from));
    }

    /// Whatever of this was done before that line is durable now.
    fn sync(&mut self, begun: usize, is_synced: impl Fn(&Op) -> bool) -> bool {
        let line = self.lines;
        let covered = |done: &&mut Done| done.durable.is_none() && done.at < begun;
        let done = self.done.iter_mut().filter(covered);
        done.filter(|done| is_synced(&done.op)).for_each(|done| done.durable = Some(line));
        true
    }

    fn born_with(&self, mode: u32) -> Metadata {
        Metadata { mode: self.has_metadata.then_some(mode), time: None }
    }

    fn set(&mut self, fd: i32, metadata: Metadata) {
        if let (true, Some(inode)) = (self.has_metadata, self.inode_of(fd)) {
            self.push(Op::Metadata { inode, metadata });
        }
    }

    fn make(&mut self, place: Place, is_dir: bool, born: Metadata) -> Inode {
        let inode = self.is_dir.len();
        self.is_dir.push(is_dir);
        self.born.push(born);
        self.name(place, inode, None);
        inode
    }

    fn name(&mut self, place: Place, inode: Inode, from: Option<Place>) {
        self.names.insert(place.clone(), inode);
        self.push(Op::Name { place, inode, from });
    }

    fn write(&mut self, file: Inode, at: u64, bytes: &[u8]) {
        let end = self.length(file).max(at + bytes.len() as u64);
        self.lengths.insert(file, end);
        self.push(Op::Write { file, at, bytes: bytes.into() });
    }

    fn truncate(&mut self, file: Inode, length: u64) {
        self.lengths.insert(file, length);
        self.push(Op::Truncate { file, length });
    }

    fn push(&mut self, op: Op) {
        self.done.push(Done { op, at: self.lines, durable: None });
    }

    fn length(&self, file: Inode) -> u64 {
        self.lengths.get(&file).copied().unwrap_or_default()
    }

    fn inode_of(&self, fd: i32) -> Option<Inode> {
        self.handles.get(&fd)?.lock().ok()?.inode
    }

    fn moved(&mut self, fd: i32, to: impl FnOnce(u64) -> u64) {
        if let Some(mut handle) = self.handles.get(&fd).and_then(|handle| handle.lock().ok()) {
            handle.at = to(handle.at);
        }
    }

    /// The absolute path, if it is said from a folder above the root.
    fn seen_from_above(&self, (base, path): (Base, PathBuf)) -> (Base, PathBuf) {
        match base.and_then(|fd| self.above.get(&fd)) {
            Some(above) => (None, above.join(path)),
            None if path.is_absolute() => (None, path),
            None => (base, path),
        }
    }

    /// Which file or folder is there now.
    fn found(&self, place: (Base, PathBuf)) -> Option<Inode> {
        let (base, path) = self.seen_from_above(place);
        if base.is_none() && path == self.root {
            return Some(ROOT);
        }
        if let (Some(fd), true) = (base, path == Path::new(".")) {
            return self.inode_of(fd);
        }
        self.names.get(&self.resolve((base, path))?).copied()
    }

    /// The place that a path names, if it is below the root and its folder is there.
    fn resolve(&self, place: (Base, PathBuf)) -> Option<Place> {
        let (base, path) = self.seen_from_above(place);
        match base {
            Some(fd) => self.below(self.inode_of(fd)?, &path),
            _ => self.place(&path),
        }
    }

    fn place(&self, path: &Path) -> Option<Place> {
        self.below(ROOT, path.strip_prefix(&self.root).ok()?)
    }

    fn below(&self, mut dir: Inode, path: &Path) -> Option<Place> {
        let mut names = path.components().filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_owned()),
            _ => None,
        });
        let mut name = names.next()?;
        for next in names {
            dir = *self.names.get(&(dir, name))?;
            name = next;
        }
        Some((dir, name))
    }
}
