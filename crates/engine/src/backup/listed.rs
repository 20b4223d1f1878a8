//! A directory that was listed, and which of the directories in it are worth listing ahead.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex};

use holdall_sys::mounts::MountPoints;
use holdall_sys::{Dir, FileKind, Listing, Stat};

use super::own_repository;
use crate::ExcludeRules;

/// Directories larger than this are listed without metadata, which the plan then reads itself, so
/// that memory does not grow with them.
const MAX_STATS_AHEAD: usize = 8 * 1024;
/// Subdirectories of one directory that are handed to the walkers at a time.
pub(super) const AHEAD: usize = 32;

/// A directory, open and listed.
pub(super) struct Listed {
    pub(super) dir: Arc<Dir>,
    pub(super) names: Listing,
    /// For each name, in order; empty for a huge directory. Nothing for what something is mounted on: the plan asks
    /// the rules first, and says whom it waits for.
    pub(super) stats: Vec<Option<io::Result<Stat>>>,
    /// Subdirectories that are being listed ahead, by index, nearest first.
    pub(super) below: VecDeque<(usize, Arc<Task>)>,
    /// Up to where subdirectories were looked for.
    pub(super) looked: usize,
}

/// What tells whether the plan will go on below a directory.
#[derive(Clone)]
pub(super) struct Deeper {
    pub(super) exclude: Arc<ExcludeRules>,
    /// The absolute path of what it lies in; left empty if there are no patterns.
    pub(super) above: Arc<[u8]>,
    /// The file system that it lies on.
    pub(super) device: u64,
}

/// One directory to be listed ahead.
pub(super) struct Task {
    pub(super) state: Mutex<State>,
    pub(super) done: Condvar,
}

/// Where a directory is, and what is needed to go on from it.
pub(super) struct Begin {
    pub(super) parent: Arc<Dir>,
    pub(super) name: Box<[u8]>,
    pub(super) deeper: Option<Deeper>,
}

/// How far a task is.
pub(super) enum State {
    Waiting(Begin),
    Running {
        /// Whether the plan waits for it.
        awaited: bool,
    },
    Done(io::Result<Listed>),
    /// Taken by the plan, or not wanted any more.
    Gone,
}

impl Task {
    pub(super) fn new(begin: Begin) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(State::Waiting(begin)), done: Condvar::new() })
    }
}

impl Listed {
    /// Lists an open directory, which may hold some of those mount points.
    pub(super) fn read(dir: Dir, points: &MountPoints) -> io::Result<Self> {
        let names = dir.entries()?;
        let stats = if names.len() > MAX_STATS_AHEAD {
            Vec::new()
        } else {
            let stat = |name| (!points.has(&dir, name)).then(|| dir.stat(name));
            names.iter().map(|entry| stat(entry.name())).collect()
        };
        Ok(Self { stats, ..Self::of_names(dir, names) })
    }

    /// Lists an open directory, and looks at nothing in it.
    pub(super) fn names_of(dir: Dir) -> io::Result<Self> {
        let names = dir.entries()?;
        Ok(Self::of_names(dir, names))
    }

    fn of_names(dir: Dir, names: Listing) -> Self {
        let (dir, stats, below) = (Arc::new(dir), Vec::new(), VecDeque::new());
        Self { dir, names, stats, below, looked: 0 }
    }

    /// The metadata of the name at `index`, to be asked for once; nothing behind the last.
    pub(super) fn stat(&mut self, index: usize) -> Option<io::Result<Stat>> {
        let name = self.names.get(index)?;
        Some(match self.stats.get_mut(index) {
            Some(stat) => stat.take().unwrap_or_else(|| self.dir.stat(name.name())),
            None => self.dir.stat(name.name()),
        })
    }

    /// What the listing says that a name is.
    pub(super) fn kind(&self, index: usize) -> Option<FileKind> {
        self.names.get(index)?.kind()
    }

    /// The next subdirectories that were not looked for yet, by index. `deeper` says how to go on
    /// below those that lie on the same file system.
    pub(super) fn look_ahead(&mut self, deeper: Option<&Deeper>) -> Vec<(usize, Begin)> {
        let mut found = Vec::new();
        while found.len() < AHEAD
            && let Some(entry) = self.names.get(self.looked)
        {
            let is_mounted = matches!(self.stats.get(self.looked), Some(None));
            if entry.kind() == Some(FileKind::Dir) && !is_mounted {
                let (parent, name) = (Arc::clone(&self.dir), entry.name().as_bytes().into());
                let stat =
                    self.stats.get(self.looked).and_then(|stat| stat.as_ref()?.as_ref().ok());
                let stays = |deeper: &&Deeper| stat.is_some_and(|s| s.device == deeper.device);
                let deeper = deeper.filter(stays).cloned();
                found.push((self.looked, Begin { parent, name, deeper }));
            }
            self.looked += 1;
        }
        found
    }
}

impl Deeper {
    /// The first subdirectories of a directory of that name that the plan will go on to. Where rules
    /// lie in the directory itself, the plan reads them first.
    pub(super) fn find(&self, listed: &mut Listed, name: &[u8]) -> Vec<(usize, Begin)> {
        if self.exclude.may_be_ruled_within(&listed.names) || own_repository::may_be(&listed.names)
        {
            return Vec::new();
        }
        let patterns = &self.exclude.patterns;
        let mut below = self.clone();
        if !patterns.is_empty() {
            below.above = [&self.above[..], b"/", name].concat().into();
        }
        let mut found = listed.look_ahead(Some(&below));
        found.retain(|(_, begin)| {
            begin.deeper.is_some()
                && (patterns.is_empty()
                    || patterns.says(&[&below.above[..], b"/", &begin.name[..]].concat(), true)
                        != Some(true))
        });
        found
    }
}
