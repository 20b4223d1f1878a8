//! Items: each path of the source, in order, compared with the parent: one by one, or a leaf at a
//! time.
//!
//! Where the parent's cursor stands before a leaf that begins with the path at hand, and the leaf's
//! fingerprint is known, as many paths as it has entries are held back. If theirs is the same
//! fingerprint, and the path behind them begins a leaf too, the leaf is adopted: it is neither
//! fetched nor built again. Else they are compared one by one, as they would have been.
//!
//! The new tree is the same either way. A fingerprint goes with the names that owners have, so that no
//! leaf with other names is taken over. A leaf begins where a path's hash says or where the one
//! before was full; only leaves that begin and end by the hash are adopted, as those do so whatever
//! lies beside them.

mod kept;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use holdall_crypto::RepositoryKeys;
use holdall_sys::{FileKind, Stat};
use holdall_tree::{
    Entry, EntryKind, Facts, Fingerprints, KnownLeaf, LeafAhead, LeafRecord, PathKey, WholeLeaf,
};

use self::kept::check_links;
use super::describe::{Lasting, Mounts, OwnerNames, Owners, kind_of, time};
use super::job::{JobSender, Planned, Work};
use super::meters::Meters;
use super::options::BackupOptions;
use super::parents::Parents;
use super::plan::ItemSink;
use crate::EngineError;
use crate::storing::{AdoptedLeaf, Change};

/// Leaves with more entries are not adopted: their paths would be held in memory.
const ADOPTED_MAX_ITEMS: u64 = 4096;

/// Compares items with the parents and hands them on as jobs.
pub(super) struct Items<'a> {
    options: &'a BackupOptions,
    keys: &'a RepositoryKeys,
    mounts: &'a Mounts,
    owners: &'a Owners,
    meters: &'a Meters,
    parents: Parents<'a>,
    out: JobSender,
    /// Nothing if no leaf is known.
    fingerprints: Option<Fingerprints>,
    candidate: Option<Candidate>,
    /// The candidate's items that were seen so far, in a memory that is used again and again.
    held: VecDeque<Item>,
    record: LeafRecord,
    /// Items to be dealt with before any other.
    next: VecDeque<Item>,
    is_first: bool,
    /// Whether the walk was told where to look.
    goes_by_places: bool,
    /// The mount that was looked up last.
    last_mount: Option<(Option<u64>, Lasting)>,
}

/// A path, what it is now, and what is to be done if it changed.
struct Item {
    path: PathKey,
    stat: Stat,
    work: Work,
}

/// A leaf of the parent that may be adopted.
struct Candidate {
    ahead: LeafAhead,
    known: KnownLeaf,
    /// All of its items are there, and their fingerprint is the leaf's.
    is_same: bool,
}

impl<'a> Items<'a> {
    pub(super) fn new(
        options: &'a BackupOptions,
        keys: &'a RepositoryKeys,
        (mounts, owners): (&'a Mounts, &'a Owners),
        meters: &'a Meters,
        (parents, fingerprints): (Parents<'a>, Fingerprints),
        out: JobSender,
        (tells_taken, goes_by_places): (bool, bool),
    ) -> Self {
        let adopts = parents.knows_leaves() && !options.read_all && !tells_taken;
        Self {
            options,
            keys,
            mounts,
            owners,
            meters,
            parents,
            out,
            fingerprints: adopts.then_some(fingerprints),
            candidate: None,
            held: VecDeque::new(),
            record: LeafRecord::default(),
            next: VecDeque::new(),
            is_first: true,
            goes_by_places,
            last_mount: None,
        }
    }

    fn go_on(&mut self) -> Result<(), EngineError> {
        while let Some(item) = self.next.pop_front() {
            self.take(item)?;
        }
        Ok(())
    }

    fn take(&mut self, item: Item) -> Result<(), EngineError> {
        let fits = match &self.candidate {
            None => return self.begin(item),
            Some(Candidate { is_same: true, .. }) => {
                if self.starts_leaf(&item.path) {
                    self.adopt()?;
                    return self.begin_leaf(item);
                }
                false
            }
            Some(_) => self.may_be_adopted(&item.stat),
        };
        if fits {
            return self.hold(item);
        }
        self.next.push_front(item);
        self.refuse()
    }

    /// Ends what is held back: `next` follows, or nothing.
    fn decide(&mut self, next: Option<&PathKey>) -> Result<(), EngineError> {
        while let Some(candidate) = &self.candidate {
            if candidate.is_same && next.is_none_or(|next| self.starts_leaf(next)) {
                return self.adopt();
            }
            self.refuse()?;
            self.go_on()?;
        }
        Ok(())
    }

    /// Takes an item while none is held back.
    fn begin(&mut self, item: Item) -> Result<(), EngineError> {
        let is_first = std::mem::take(&mut self.is_first);
        if self.fingerprints.is_some() && (is_first || self.starts_leaf(&item.path)) {
            return self.begin_leaf(item);
        }
        self.compare(item)
    }

    /// Takes an item that begins a leaf.
    fn begin_leaf(&mut self, item: Item) -> Result<(), EngineError> {
        if !self.may_be_adopted(&item.stat) {
            return self.compare(item);
        }
        match self.parents.leaf_at(&item.path)? {
            Some((ahead, known)) if ahead.items <= ADOPTED_MAX_ITEMS => {
                self.candidate = Some(Candidate { ahead, known, is_same: false });
                self.hold(item)
            }
            _ => self.compare(item),
        }
    }

    /// Compares what is held back one by one: something comes next that is not of the walk.
    fn refuse_all(&mut self) -> Result<(), EngineError> {
        while self.candidate.is_some() {
            self.refuse()?;
            self.go_on()?;
        }
        Ok(())
    }

    /// Whether a path can be known again by its metadata: hard links belong to groups that are
    /// computed anew, and some file systems give other inodes after every mount.
    fn may_be_adopted(&mut self, stat: &Stat) -> bool {
        let lasting = self.lasting(stat);
        lasting.inodes && lasting.sizes && (stat.nlink == 1 || stat.kind == FileKind::Dir)
    }

    /// As [`Mounts::lasting`], which looks a mount up once for all paths in a row that lie on it.
    fn lasting(&mut self, stat: &Stat) -> Lasting {
        let lasting = match self.last_mount {
            Some((mount, lasting)) if mount == stat.mount_id => lasting,
            _ => self.mounts.lasting(stat),
        };
        self.last_mount = Some((stat.mount_id, lasting));
        lasting
    }

    fn starts_leaf(&self, path: &PathKey) -> bool {
        self.fingerprints.as_ref().is_some_and(|known| known.starts_leaf(path))
    }

    fn hold(&mut self, item: Item) -> Result<(), EngineError> {
        let (Some(candidate), Some(fingerprints)) = (&mut self.candidate, &self.fingerprints)
        else {
            return self.compare(item);
        };
        self.record.add(&item.path, &facts(&item.stat));
        self.held.push_back(item);
        let Candidate { ahead, known, .. } = candidate;
        if (self.held.len() as u64) < ahead.items {
            return Ok(());
        }
        candidate.is_same = self.record.take(fingerprints, &ahead.id) == Some(*known);
        if candidate.is_same { Ok(()) } else { self.refuse() }
    }

    /// Takes the parent's leaf over for the items that are held back.
    fn adopt(&mut self) -> Result<(), EngineError> {
        let Some(Candidate { ahead, known, .. }) = self.candidate.take() else { return Ok(()) };
        let last = self.held.pop_back().map(|item| item.path).unwrap_or_default();
        let first = self.held.pop_front().map_or_else(|| last.clone(), |item| item.path);
        self.held.clear();
        self.parents.skip_leaf();
        let LeafAhead { id, items, bytes } = ahead;
        let leaf = WholeLeaf { id, first, last: Some(last), items, bytes };
        self.out.adopt(AdoptedLeaf { leaf, known }, self.meters)
    }

    /// Compares the first of the items that are held back, which enters the leaf, so that it is no
    /// candidate any more, and puts the others before whatever comes next.
    fn refuse(&mut self) -> Result<(), EngineError> {
        self.candidate = None;
        self.record.clear();
        let first = self.held.pop_front();
        while let Some(item) = self.held.pop_back() {
            self.next.push_front(item);
        }
        first.map_or(Ok(()), |first| self.compare(first))
    }

    /// Compares one path with the parents and adds it to the job.
    fn compare(&mut self, item: Item) -> Result<(), EngineError> {
        let Item { path, stat, work } = item;
        let lasting = self.lasting(&stat);
        let before = self.parents.find(&path)?;
        if self.goes_by_places {
            check_links(before, &stat)?;
        }
        // A dry run reads nothing: of what a backup reads again to be sure, it does not say that it changed.
        let is_sure = |before: &Entry| !before.unsettled || self.options.dry_run;
        let is_kept = |before: &&Entry| is_sure(before) && seems_unchanged(before, &stat, lasting);
        let kept = before.filter(|before| !self.options.read_all && is_kept(before));
        if let Some(before) = kept {
            let hardlink = self.mounts.hardlink_group(self.keys, &stat);
            let names = self.owners.present_names(&stat);
            let work = Work::Keep(Box::new(kept_entry(before, hardlink, names)));
            return self.out.push(Planned { path, change: Change::Unmodified, work }, self.meters);
        }
        let change = before.map_or(Change::New, |found| Change::Maybe(Box::new(found.clone())));
        if matches!(work, Work::Directory { is_empty: true, .. })
            && matches!(change, Change::Maybe(_))
            && lasting.change_times
            && self.parents.are_younger_than(stat.ctime)
        {
            // What goes from a directory changes it: this one was empty then, beneath what was mounted on it.
            self.parents.tell_emptied(&path)?;
        }
        let work = match work {
            _ if self.options.dry_run => {
                let mut counted = Entry::empty(kind_of(&stat));
                counted.size = stat.size;
                Work::Keep(Box::new(counted))
            }
            work => work,
        };
        self.out.push(Planned { path, change, work }, self.meters)
    }
}

impl ItemSink for Items<'_> {
    fn add(&mut self, path: PathKey, stat: Stat, work: Work) -> Result<(), EngineError> {
        self.take(Item { path, stat, work })?;
        self.go_on()
    }

    fn left_out(
        &mut self,
        path: PathKey,
        rule: String,
        too_large_bytes: Option<u64>,
    ) -> Result<(), EngineError> {
        let work = Work::LeaveOut { rule, too_large_bytes };
        self.out.push(Planned { path, change: Change::Unmodified, work }, self.meters)
    }

    fn made_up(&mut self, path: PathKey) -> Result<(), EngineError> {
        self.decide(Some(&path))?;
        self.is_first = false;
        let mut entry = Entry::empty(EntryKind::Directory);
        entry.mode = 0o755;
        let before = self.parents.find(&path)?;
        let change = before.map_or(Change::New, |before| Change::Maybe(Box::new(before.clone())));
        let work = Work::Keep(Box::new(entry));
        self.out.push(Planned { path, change, work }, self.meters)
    }

    fn count_before(&mut self, path: &PathKey) -> Result<u64, EngineError> {
        self.refuse_all()?;
        self.parents.count_below(path)
    }

    fn directory_before(&mut self, path: &PathKey) -> Result<Option<u64>, EngineError> {
        self.inode_before(path)
    }

    fn keep(&mut self, from: &[u8], until: Option<&[u8]>) -> Result<u64, EngineError> {
        self.take_over(from, until)
    }

    fn finish(&mut self) -> Result<(), EngineError> {
        self.decide(None)?;
        self.out.flush(self.meters)
    }
}

fn facts(stat: &Stat) -> Facts {
    Facts {
        kind: kind_of(stat),
        mode: stat.mode,
        uid: stat.uid,
        gid: stat.gid,
        mtime: time(stat.mtime),
        ctime: time(stat.ctime),
        size: stat.size,
        inode: stat.inode,
    }
}

/// Whether nothing shows that a path changed since `before` was recorded. Change times cannot be
/// put back, so an edit shows even if its author hides it, unless the entry is unsettled. Where there are
/// none, another file of the same length and time may have been moved there: what has content is read. So is what
/// may have some although it is said to be empty.
fn seems_unchanged(before: &Entry, stat: &Stat, lasting: Lasting) -> bool {
    let has_content = match stat.kind {
        FileKind::File => stat.size > 0,
        FileKind::Symlink => true,
        _ => false,
    };
    (lasting.change_times || !has_content)
        && (lasting.sizes || has_content || stat.kind != FileKind::File)
        && before.kind == kind_of(stat)
        && (before.mtime, before.ctime) == (time(stat.mtime), time(stat.ctime))
        && (stat.kind != FileKind::File || before.size == stat.size)
        && (before.mode, before.uid, before.gid) == (stat.mode, stat.uid, stat.gid)
        && before.hardlink.is_some() == (stat.nlink > 1 && stat.kind != FileKind::Dir)
        && (!lasting.inodes || before.inode == stat.inode)
}

/// An entry as it is kept from a parent. Its hard-link group is that of now: the parent may have been
/// read elsewhere, or come from another repository, and other names of the file are read anew. So are
/// the names of user and group: no file's change time says that they have others.
fn kept_entry(before: &Entry, hardlink: Option<[u8; 16]>, names: Option<OwnerNames>) -> Entry {
    let (user, group) = names.unwrap_or_else(|| (before.user.clone(), before.group.clone()));
    Entry { hardlink, user, group, ..before.clone() }
}
