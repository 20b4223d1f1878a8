//! Owner, attributes, mode and time of what was just made, in the order that keeps them all.
//!
//! The owner comes first, for changing it clears set-user-id bits and capabilities; attributes
//! before the mode, for a mode may end one's own right to set them; the mode last, for it says that
//! all else is done ([`unfinished`](super::unfinished)), and an access list, which changes it, right before.
//! Of a file, these two wait until its content is on the disk ([`settle`](super::settle)).

use std::io;
use std::os::fd::BorrowedFd;

use holdall_sys::xattr::{self, Xattr};
use holdall_sys::{Name, TargetDir, Timestamp, metadata, stat};
use holdall_tree::{Attributes, Content, Entry, EntryKind};

use super::context::Context;
use super::notes::Note;
use super::times::Held;

/// UnlockedRepository control lists, which a directory hands down to what is made in it.
pub(crate) const ACCESS_LIST: &[u8] = b"system.posix_acl_access";
pub(crate) const DEFAULT_LIST: &[u8] = b"system.posix_acl_default";

const SET_USER_ID: u32 = 0o4000;
const SET_GROUP_ID: u32 = 0o2000;

/// What is to be set, by descriptor or by name where it is never opened.
#[derive(Clone, Copy)]
pub(super) enum Subject<'a> {
    Open(BorrowedFd<'a>),
    Named(&'a TargetDir, Name<'a>),
}

impl Subject<'_> {
    fn set_owner(self, uid: Option<u32>, gid: Option<u32>) -> io::Result<()> {
        match self {
            Self::Open(fd) => metadata::set_owner(fd, uid, gid),
            Self::Named(dir, name) => metadata::set_owner_at(dir, name, uid, gid),
        }
    }

    fn set_attribute(self, attribute: &[u8], value: &[u8]) -> io::Result<()> {
        match self {
            Self::Open(fd) => xattr::set_fd(fd, attribute, value),
            Self::Named(dir, name) => xattr::set_at(dir, name, attribute, value),
        }
    }

    fn remove_attribute(self, attribute: &[u8]) -> io::Result<()> {
        match self {
            Self::Open(fd) => xattr::remove_fd(fd, attribute),
            Self::Named(dir, name) => xattr::remove_at(dir, name, attribute),
        }
    }

    fn set_mode(self, mode: u32) -> io::Result<()> {
        match self {
            Self::Open(fd) => metadata::set_mode(fd, mode),
            Self::Named(dir, name) => metadata::set_mode_at(dir, name, mode),
        }
    }

    fn set_mtime(self, mtime: Timestamp) -> io::Result<()> {
        match self {
            Self::Open(fd) => metadata::set_mtime(fd, mtime),
            Self::Named(dir, name) => metadata::set_mtime_at(dir, name, mtime),
        }
    }

    fn mtime(self) -> io::Result<Timestamp> {
        let stat = match self {
            Self::Open(fd) => stat::of_fd(fd),
            Self::Named(dir, name) => dir.as_dir().stat(name),
        };
        Ok(stat?.mtime)
    }
}

/// Sets an entry's metadata on one thing that was made.
pub(super) struct Finish<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) subject: Subject<'a>,
    pub(super) entry: &'a Entry,
    /// It belongs to this process's user and group, and inherited nothing.
    pub(super) pristine: bool,
    /// The device that it is on.
    pub(super) device: u64,
    pub(super) path: &'a dyn Fn() -> Vec<u8>,
}

/// The last that is set of what was made, and makes it finished.
pub(super) struct Last {
    access_list: Option<Box<[u8]>>,
    /// Symbolic links have none.
    mode: Option<u32>,
}

impl Last {
    /// Sets it; what fails is reported.
    pub(super) fn apply(
        &self,
        context: &Context<'_>,
        subject: Subject<'_>,
        path: &dyn Fn() -> Vec<u8>,
    ) {
        let setting = Setting { context, subject, path };
        setting.set_attributes(self.access_list.iter().map(|list| (ACCESS_LIST, &list[..])));
        let set = self.mode.is_none_or(|mode| setting.check("mode", subject.set_mode(mode)));
        if !set {
            context.leave_unfinished();
        }
    }
}

impl Finish<'_> {
    /// Sets everything; what fails is reported and the rest is set.
    pub(super) fn apply(&self) {
        self.apply_but_last().apply(self.context, self.subject, self.path);
    }

    /// The same without what is the last.
    pub(super) fn apply_but_last(&self) -> Last {
        let (uid_restored, gid_restored) = self.set_owner();
        let attributes = self.attributes();
        let (lists, others): (Vec<_>, Vec<_>) =
            attributes.iter().partition(|(name, _)| *name == ACCESS_LIST);
        self.setting().set_attributes(others);
        let mtime = Timestamp { secs: self.entry.mtime.secs, nanos: self.entry.mtime.nanos };
        if self.check("modification time", self.subject.set_mtime(mtime)) {
            self.tell_held(mtime);
        }
        let mode = (self.entry.kind != EntryKind::Symlink)
            .then(|| self.allowed_mode(uid_restored, gid_restored));
        Last { access_list: lists.first().map(|(_, list)| (*list).into()), mode }
    }

    /// Says where the file system keeps another time than the one that was set.
    fn tell_held(&self, mtime: Timestamp) {
        let context = self.context;
        match context.times.held(self.device, mtime, || self.subject.mtime().ok()) {
            Held::Kept => {}
            Held::Coarser => context.note_coarse(self.path),
            Held::Other => {
                let reason = "the target's file system cannot hold its modification time and keeps another: \
                              restore it to ext4 with inodes of 256 bytes, btrfs or XFS";
                context.problem(&(self.path)(), reason);
            }
        }
    }

    /// Says whether user and group are now the entry's.
    fn set_owner(&self) -> (bool, bool) {
        let (uid, gid) = self.context.owner(self.entry);
        let (own_uid, own_gid) = self.context.own_ids();
        if self.pristine && (uid, gid) == (own_uid, own_gid) {
            return (true, true);
        }
        if !self.context.ordinary() {
            let done = self.check("owner", self.subject.set_owner(Some(uid), Some(gid)));
            return (done, done);
        }
        if uid != own_uid {
            self.context.note(Note::Owner, self.path);
        }
        let grouped =
            (self.pristine && gid == own_gid) || self.subject.set_owner(None, Some(gid)).is_ok();
        if !grouped {
            self.context.note(Note::Group, self.path);
        }
        (uid == own_uid, grouped)
    }

    /// The entry's attributes, after others were taken away.
    fn attributes(&self) -> Attributes {
        let attributes = match &self.entry.attributes {
            Content::Inline(bytes) => Attributes::decode(bytes),
            Content::Chunks(_) | Content::List { .. } => Ok(Attributes::default()),
        };
        let attributes = match attributes {
            Ok(attributes) => attributes,
            Err(error) => {
                let reason = format!("its attributes cannot be read: {error}");
                self.context.run.damage(&(self.path)(), reason);
                return Attributes::default();
            }
        };
        // A directory may have been there: nothing is taken away for attributes that could not be read.
        let is_known = matches!(self.entry.attributes, Content::Inline(_));
        let may_lack = is_known || self.entry.kind != EntryKind::Directory;
        if may_lack && !self.pristine && self.entry.kind != EntryKind::Symlink {
            self.remove_inherited(&attributes);
        }
        attributes
    }

    /// Takes away what the entry has not: the lists that a directory handed down, and what users gave to one that
    /// was there before.
    fn remove_inherited(&self, attributes: &Attributes) {
        let has = |list: &[u8]| attributes.iter().any(|(name, _)| name == list);
        if let (EntryKind::Directory, Subject::Open(fd)) = (self.entry.kind, self.subject) {
            match xattr::read_fd(fd) {
                Ok(there) => self.remove_others(&there, has),
                Err(error) => drop(self.check("attributes", Err(error))),
            }
        }
        let default = (self.entry.kind == EntryKind::Directory).then_some(DEFAULT_LIST);
        for list in [Some(ACCESS_LIST), default].into_iter().flatten() {
            if !has(list) {
                // Most have none, and file systems without lists say so.
                let _ = self.subject.remove_attribute(list);
            }
        }
    }

    /// Takes away what users gave and the entry has not.
    fn remove_others(&self, there: &[Xattr], has: impl Fn(&[u8]) -> bool) {
        for other in there.iter().filter(|one| one.name.starts_with(b"user.") && !has(&one.name)) {
            let what = format!("attribute {}", other.name.escape_ascii());
            self.check(&what, self.subject.remove_attribute(&other.name));
        }
    }

    /// The mode that it is to get, without what is not given to another owner.
    fn allowed_mode(&self, uid_restored: bool, gid_restored: bool) -> u32 {
        let mut mode = self.entry.mode;
        if self.entry.kind != EntryKind::Directory {
            let not_ours = if uid_restored { 0 } else { SET_USER_ID }
                | if gid_restored { 0 } else { SET_GROUP_ID };
            if mode & not_ours != 0 {
                mode &= !not_ours;
                self.context.note(Note::SetIds, self.path);
            }
        }
        mode
    }

    fn setting(&self) -> Setting<'_> {
        Setting { context: self.context, subject: self.subject, path: self.path }
    }

    fn check(&self, what: &str, done: io::Result<()>) -> bool {
        self.setting().check(what, done)
    }
}

/// What is set on, and who is told what could not be.
struct Setting<'a> {
    context: &'a Context<'a>,
    subject: Subject<'a>,
    path: &'a dyn Fn() -> Vec<u8>,
}

impl Setting<'_> {
    fn set_attributes<'v>(&self, attributes: impl IntoIterator<Item = (&'v [u8], &'v [u8])>) {
        for (name, value) in attributes {
            match self.subject.set_attribute(name, value) {
                Err(error)
                    if error.kind() == io::ErrorKind::PermissionDenied
                        && self.context.ordinary() =>
                {
                    self.context.note(Note::Attribute, self.path);
                }
                done => {
                    self.check(&format!("attribute {}", name.escape_ascii()), done);
                }
            }
        }
    }

    fn check(&self, what: &str, done: io::Result<()>) -> bool {
        if let Err(error) = &done {
            let what = format!("its {what} could not be set");
            self.context.not_done(&(self.path)(), &what, error);
        }
        done.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use holdall_sys::metadata;

    use super::*;
    use crate::Run;
    use crate::restore::RestoreOptions;
    use crate::restore::unfinished;
    use crate::test_world::owned;

    /// Finishes a set-user-id file of somebody else as an ordinary user would; gives the notes, the
    /// number of problems, and the mode that it got.
    fn finished_as_an_ordinary_user(strict: bool) -> (Vec<String>, u64, u32) {
        let folder = tempfile::tempdir().unwrap();
        let run = Run::new();
        let options = RestoreOptions { strict, numeric_ids: true, ..RestoreOptions::default() };
        let mut context = Context::of_folder(folder.path(), &options, &run);
        let entry = owned(EntryKind::File, 0o4755);
        context.pretend_to_be(entry.uid + 1, entry.gid);
        let name = Name::new(b"file").unwrap();
        let file = context.root.create_file(name, unfinished::MODE).unwrap();
        let finish = Finish {
            context: &context,
            subject: Subject::Open(file.as_fd()),
            entry: &entry,
            pristine: true,
            device: 0,
            path: &|| b"/file".to_vec(),
        };
        finish.apply();
        let mode = context.root.as_dir().stat(name).unwrap().mode;
        (context.summary().notes, run.problem_count(), mode)
    }

    #[test]
    fn an_ordinary_user_gives_nothing_away_and_sets_no_set_user_id() {
        let (notes, problems, mode) = finished_as_an_ordinary_user(false);
        let line = "not restored, for only root may: 1 owner, 1 set-user-id or set-group-id bit";
        assert_eq!((notes, problems, mode), (vec![line.to_owned()], 0, 0o755));
        let (notes, problems, mode) = finished_as_an_ordinary_user(true);
        assert_eq!((notes.len(), problems, mode), (0, 2, 0o755));
    }

    #[test]
    fn mode_and_time_are_set_after_what_changes_them() {
        let folder = tempfile::tempdir().unwrap();
        let (run, options) = (Run::new(), RestoreOptions::default());
        let context = Context::of_folder(folder.path(), &options, &run);
        let entry = owned(EntryKind::File, 0o6711);
        let name = Name::new(b"file").unwrap();
        let file = context.root.create_file(name, unfinished::MODE).unwrap();
        metadata::set_mode(&file, 0o777).unwrap();
        let subject = Subject::Named(&context.root, name);
        let path = &|| b"/file".to_vec();
        Finish { context: &context, subject, entry: &entry, pristine: false, device: 0, path }
            .apply();
        let stat = context.root.as_dir().stat(name).unwrap();
        assert_eq!((stat.mode, stat.mtime.nanos, run.problem_count()), (0o6711, 7, 0));
    }
}
