//! Directories of a restore: made when the first thing in them is, finished after the last.
//!
//! A directory's time and mode can be set only when nothing will be made in it any more. Whoever
//! still has something to make in it holds a [`Directory`]; when the last one is dropped, the
//! directory gets its metadata, and lets go of the one above. So children come before parents
//! whatever the order in which writers finish, and only directories in use are open.

use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, OnceLock};

use holdall_sys::{FileKind, Name, Stat, TargetDir, metadata, stat, xattr};
use holdall_tree::Entry;

use super::Overwrite;
use super::attributes::{ACCESS_LIST, DEFAULT_LIST, Finish, Subject};
use super::beside::remove_left;
use super::context::{Context, add};
use super::mark;
use super::twins::{Names, taken_for};
use super::unfinished::DIRECTORY_MODE;

/// The mode of a directory of which nothing is known.
const PRIVATE_MODE: u32 = 0o700;

/// All that its owner may do in a directory.
const OWNER_ALL: u32 = 0o700;

/// A share in a directory that is being restored.
#[derive(Clone)]
pub(super) struct Directory<'a> {
    /// Taken only by `drop`.
    node: Option<Arc<Node<'a>>>,
}

struct Node<'a> {
    context: &'a Context<'a>,
    parent: Option<Arc<Node<'a>>>,
    name: Box<[u8]>,
    /// What it shall be like; nothing for a target that only stands for the root.
    entry: Option<Entry>,
    /// Something below it is wanted, it itself is not: one that was there before keeps its metadata.
    is_on_the_way: bool,
    opened: OnceLock<Option<Opened>>,
}

struct Opened {
    dir: TargetDir,
    /// The device that it is on.
    device: u64,
    /// Made here, with nothing inherited: what is made in it is pristine.
    pristine: bool,
    /// It was there before and keeps its metadata.
    kept: bool,
    /// It is empty but for what this restore puts there.
    is_new: bool,
    names: Names,
    /// The mode of one that was closed to its owner and is open for now; nothing inside if it was not.
    closed: OnceLock<Option<u32>>,
}

impl Opened {
    fn new(dir: TargetDir, device: u64) -> Self {
        let (names, closed) = (Names::default(), OnceLock::new());
        Self { dir, device, pristine: false, kept: false, is_new: false, names, closed }
    }

    /// Does something in it. One that its owner closed to itself is opened until it is finished.
    fn allowing<T>(&self, context: &Context<'_>, act: impl Fn() -> io::Result<T>) -> io::Result<T> {
        match act() {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let open_up = || {
                    opened_up(context, &stat::of_fd(&self.dir).ok()?, |mode| {
                        metadata::set_mode(&self.dir, mode)
                    })
                };
                let was_closed = self.closed.get_or_init(open_up).is_some();
                if was_closed { act() } else { Err(error) }
            }
            done => done,
        }
    }
}

/// Gives this user all rights in a directory of its own that lacks some; `None` if it is not so. Its mode was that.
fn opened_up(
    context: &Context<'_>,
    there: &Stat,
    set_mode: impl FnOnce(u32) -> io::Result<()>,
) -> Option<u32> {
    let is_closed = there.mode & OWNER_ALL != OWNER_ALL;
    let is_own = there.uid == context.own_ids().0;
    (is_closed && is_own && set_mode(there.mode | OWNER_ALL).is_ok()).then_some(there.mode)
}

/// A directory in which names can be made.
pub(super) struct OpenDirectory<'d> {
    node: &'d Node<'d>,
    pub(super) dir: &'d TargetDir,
    /// The device that it is on.
    pub(super) device: u64,
    /// What is made in it belongs to this process's user and inherits nothing.
    pub(super) pristine: bool,
}

impl<'a> Directory<'a> {
    /// The target itself, open already. `kept` leaves its metadata alone.
    pub(super) fn target(
        context: &'a Context<'a>,
        dir: TargetDir,
        entry: Option<Entry>,
        kept: bool,
        is_new: bool,
    ) -> Self {
        let device = stat::of_fd(&dir).map_or(0, |there| there.device);
        let opened = Opened { kept, is_new, ..Opened::new(dir, device) };
        if !context.options.dry_run {
            if opened.allowing(context, || mark::make(&opened.dir)).is_err() {
                context.earlier.tell_nothing();
            }
            if context.options.overwrite.is_some() {
                remove_left(&opened.dir);
            }
        }
        let opened = OnceLock::from(Some(opened));
        let (parent, name, is_on_the_way) = (None, Box::default(), false);
        let node = Node { context, parent, name, entry, is_on_the_way, opened };
        Self { node: Some(Arc::new(node)) }
    }

    /// A directory in this one, which is wanted or only on the way to what is; nothing is made yet.
    pub(super) fn child(&self, name: &[u8], entry: Option<Entry>, is_on_the_way: bool) -> Self {
        let node = self.node.as_ref().map(|parent| {
            Arc::new(Node {
                context: parent.context,
                parent: Some(Arc::clone(parent)),
                name: name.into(),
                entry,
                is_on_the_way,
                opened: OnceLock::new(),
            })
        });
        Self { node }
    }

    /// Opens it, making it and whatever is missing above it; `None` if one cannot be made, which
    /// was reported once.
    pub(super) fn open(&self) -> Option<OpenDirectory<'_>> {
        let node = self.node.as_deref()?;
        if node.opened.get().is_none() {
            node.open_from_above();
        }
        let opened = node.opened.get()?.as_ref()?;
        let (dir, device) = (&opened.dir, opened.device);
        Some(OpenDirectory { node, dir, device, pristine: opened.pristine })
    }

    /// The path of `name` in it, below the target.
    pub(super) fn path_below_target(&self, name: &[u8]) -> Vec<u8> {
        self.node.as_ref().map(|node| node.path_of(name)).unwrap_or_default()
    }

    /// The absolute path of `name` in it, in the snapshot.
    pub(super) fn path(&self, name: &[u8]) -> Vec<u8> {
        self.node.as_ref().map(|node| node.snapshot_path(name)).unwrap_or_default()
    }
}

impl OpenDirectory<'_> {
    /// Makes something in it, also where its owner closed it to itself.
    pub(super) fn allowing<T>(&self, make: impl Fn() -> io::Result<T>) -> io::Result<T> {
        match self.node.opened.get().and_then(Option::as_ref) {
            Some(opened) => opened.allowing(self.node.context, make),
            None => make(),
        }
    }

    /// The name of another entry of the snapshot that the target takes `name` for, where that is found.
    pub(super) fn twin_of(&self, name: Name<'_>, there: &Stat) -> io::Result<Option<Box<[u8]>>> {
        self.node
            .opened
            .get()
            .and_then(Option::as_ref)
            .map_or(Ok(None), |opened| self.node.twin_in(opened, name, there))
    }
}

impl Drop for Directory<'_> {
    fn drop(&mut self) {
        // A loop and not a recursion: a chain of directories may be thousands long.
        let mut next = self.node.take();
        while let Some(node) = next.and_then(Arc::into_inner) {
            next = node.finish();
        }
    }
}

impl<'a> Node<'a> {
    fn open_from_above(&self) {
        let mut chain = vec![self];
        let mut above = self.parent.as_deref();
        while let Some(node) = above.filter(|node| node.opened.get().is_none()) {
            chain.push(node);
            above = node.parent.as_deref();
        }
        for node in chain.into_iter().rev() {
            node.opened.get_or_init(|| node.make());
        }
    }

    fn make(&self) -> Option<Opened> {
        let parent = self.parent.as_ref()?.opened.get()?.as_ref()?;
        let made = Name::new(&self.name)
            .map_err(io::Error::from)
            .and_then(|name| self.make_in(parent, name));
        match made {
            Ok(opened) => {
                add(&self.context.tally.dirs, 1);
                add(&self.context.tally.kept_dirs, u64::from(opened.kept));
                Some(opened)
            }
            Err(error) => {
                let what = "the directory cannot be made, and nothing below it";
                self.context.write_failed(self.snapshot_path(b""), what, &error);
                None
            }
        }
    }

    fn make_in(&self, parent: &Opened, name: Name<'_>) -> io::Result<Opened> {
        let dir = &parent.dir;
        let create = || dir.create_dir(name, DIRECTORY_MODE);
        let in_the_way = match parent.allowing(self.context, create) {
            Ok(made) => return Ok(self.newly_made(made, parent)),
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Err(error) => error,
        };
        let there = dir.as_dir().stat(name)?;
        let twin = self.parent.as_ref().map(|node| node.twin_in(parent, name, &there));
        if let Some(other) = twin.transpose()?.flatten() {
            return Err(taken_for(&other));
        }
        if self.context.options.overwrite.is_none() {
            return Err(in_the_way);
        }
        let replaces = |overwrite: Overwrite| match &self.entry {
            Some(entry) => overwrite.replaces(&there, entry),
            None => overwrite == Overwrite::Always,
        };
        let overwrite = self.context.options.overwrite;
        if there.kind == FileKind::Dir {
            // Whatever is made in it makes it newer, so that its time says nothing.
            let stays = self.is_on_the_way || overwrite == Some(Overwrite::Never);
            let kept = !self.context.earlier.made(&there) && (stays || self.entry.is_none());
            let (dir, closed) = self.open_there(dir, name, &there)?;
            remove_left(&dir);
            let opened = Opened { kept, ..Opened::new(dir, there.device) };
            return Ok(match closed {
                Some(mode) => Opened { closed: OnceLock::from(Some(mode)), ..opened },
                None => opened,
            });
        }
        if !self.context.earlier.made(&there) && !overwrite.is_some_and(replaces) {
            return Err(io::Error::other("something that is no directory is in the way"));
        }
        parent.allowing(self.context, || dir.unlink(name))?;
        Ok(self.newly_made(create()?, parent))
    }

    /// Opens a directory that was there, and gives the mode that it is to have again where it was closed.
    fn open_there(
        &self,
        parent: &TargetDir,
        name: Name<'_>,
        there: &Stat,
    ) -> io::Result<(TargetDir, Option<u32>)> {
        match parent.open_dir(name) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let set_mode = |mode| metadata::set_mode_at(parent, name, mode);
                let closed = opened_up(self.context, there, set_mode).ok_or(error)?;
                Ok((parent.open_dir(name)?, Some(closed)))
            }
            opened => Ok((opened?, None)),
        }
    }

    /// Rids a new directory of what one that was there before handed down to it.
    fn newly_made(&self, dir: TargetDir, parent: &Opened) -> Opened {
        let pristine = parent.pristine || {
            // File systems without lists say so; there is then nothing to rid it of.
            let _ = xattr::remove_fd(&dir, DEFAULT_LIST);
            let _ = xattr::remove_fd(&dir, ACCESS_LIST);
            let (_, gid) = self.context.own_ids();
            metadata::set_owner(&dir, None, Some(gid))
                .and_then(|()| metadata::set_mode(&dir, DIRECTORY_MODE))
                .is_ok()
        };
        let device = parent.device;
        Opened { pristine, is_new: true, ..Opened::new(dir, device) }
    }

    /// Which other entry of the snapshot has its place at `name` of this directory.
    fn twin_in(
        &self,
        opened: &Opened,
        name: Name<'_>,
        there: &Stat,
    ) -> io::Result<Option<Box<[u8]>>> {
        let other = opened.names.other_than(name, opened.dir.as_dir(), opened.is_new, there)?;
        let is_stored = |other: &[u8]| {
            let stored = self.context.stored;
            stored.is_some_and(|stored| stored.has(&self.snapshot_path(other)))
        };
        Ok(other.and_then(|other| match opened.is_new || is_stored(&other) {
            true => Some(other),
            // The snapshot may have two names that are both one with a third here.
            false => opened.names.claim(other, name),
        }))
    }

    /// Sets its metadata, and gives up its share in the directory above.
    fn finish(mut self) -> Option<Arc<Node<'a>>> {
        let opened = self.opened.take().flatten();
        if let Some(opened) = &opened
            && let Some(Some(mode)) = opened.closed.get()
            && (opened.kept || self.entry.is_none())
            && let Err(error) = metadata::set_mode(&opened.dir, *mode)
        {
            let reason = format!("its mode could not be set back to {mode:o}: {error}");
            self.context.problem(&self.snapshot_path(b""), reason);
        }
        match (opened.filter(|opened| !opened.kept), &self.entry) {
            (Some(opened), Some(entry)) => Finish {
                context: self.context,
                subject: Subject::Open(opened.dir.as_fd()),
                entry,
                pristine: opened.pristine,
                device: opened.device,
                path: &|| self.snapshot_path(b""),
            }
            .apply(),
            // That it has neither owner nor mode nor time was reported.
            (Some(opened), None) if self.parent.is_some() => {
                let _ = metadata::set_mode(&opened.dir, PRIVATE_MODE);
            }
            _ => {}
        }
        self.parent
    }

    /// Names from the target downwards, joined by `/`.
    fn path_of(&self, name: &[u8]) -> Vec<u8> {
        let mut names = vec![name];
        let mut at = Some(self);
        while let Some(node) = at {
            names.push(&node.name);
            at = node.parent.as_deref();
        }
        names.retain(|name| !name.is_empty());
        names.reverse();
        names.join(&b'/')
    }

    fn snapshot_path(&self, name: &[u8]) -> Vec<u8> {
        let base = &self.context.base_path;
        let below = self.path_of(name);
        if below.is_empty() {
            return base.clone();
        }
        let base = base.strip_suffix(b"/").unwrap_or(base);
        [base, b"/", &below].concat()
    }
}
