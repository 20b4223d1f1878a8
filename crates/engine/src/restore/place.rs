//! Making a name where something may be already.
//!
//! What is to be replaced stays until what replaces it is whole: that is made beside it, under a
//! temporary name in the same directory, and moved over it at the end. Where nothing is in the way,
//! the name itself is made, which is one call less for each of a million files.

use std::fs::File;
use std::io;
use std::sync::Arc;

use holdall_sys::{Dir, FileKind, Name, Stat, TargetDir, Timestamp};
use holdall_tree::{Entry, EntryKind, Time};

use super::Overwrite;
use super::beside;
use super::context::{Context, add};
use super::directory::OpenDirectory;
use super::twins::taken_for;

/// What came of making a name.
pub(super) enum Made<T> {
    /// It was made there, and is to be settled with [`Place::keep`] or [`Place::discard`].
    New(T, Place),
    /// What was there is kept. Of a name that others share, whether it is what the snapshot has.
    Kept { is_stored: bool },
}

/// Where something was made.
pub(super) enum Place {
    /// At its own name.
    Own,
    /// Beside what it replaces, under this name.
    Beside(String),
}

impl Place {
    fn beside() -> Self {
        Self::Beside(beside::name())
    }

    /// The name that it has until it is settled.
    #[expect(clippy::expect_used, reason = "letters, digits, dots and a hyphen are a name")]
    pub(super) fn name<'n>(&'n self, own: Name<'n>) -> Name<'n> {
        match self {
            Self::Own => own,
            Self::Beside(name) => Name::new(name.as_bytes()).expect("a name"),
        }
    }

    /// Moves what was made, and is whole, to its own name; an empty directory makes room.
    ///
    /// # Errors
    /// The system's; what was made is gone, and what was there before is not, but perhaps for an
    /// empty directory.
    pub(super) fn keep(&self, dir: &TargetDir, own: Name<'_>) -> io::Result<()> {
        if matches!(self, Self::Own) {
            return Ok(());
        }
        let name = self.name(own);
        let moved = match dir.rename(name, dir, own) {
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
                dir.remove_dir(own).and_then(|()| dir.rename(name, dir, own))
            }
            moved => moved,
        };
        // It is still there if that failed, or if both were names of one file already.
        let _ = dir.unlink(name);
        moved
    }

    /// Removes a file that was made and is not whole: half a file is worse than none, and worse than
    /// the one that was there. What comes after it may need its room, so nothing holds it open. If it
    /// stays all the same, what went wrong is reported already.
    pub(super) fn discard(
        &self,
        context: &Context<'_>,
        file: &Arc<File>,
        dir: &TargetDir,
        own: Name<'_>,
    ) {
        context.let_go(file);
        self.remove(dir, own);
    }

    /// The same of a file that nothing holds open.
    pub(super) fn remove(&self, dir: &TargetDir, own: Name<'_>) {
        let _ = dir.unlink(self.name(own));
    }
}

/// What becomes of what is there.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Keep,
    Replace,
    /// It is kept if its content is the entry's.
    Compare,
}

impl Overwrite {
    pub(super) fn replaces(self, there: &Stat, entry: &Entry) -> bool {
        self.verdict(there, entry) == Verdict::Replace
    }

    fn verdict(self, there: &Stat, entry: &Entry) -> Verdict {
        let of_files = (there.kind, entry.kind) == (FileKind::File, EntryKind::File);
        let replaced_if = |is| if is { Verdict::Replace } else { Verdict::Keep };
        match self {
            Self::Never => Verdict::Keep,
            Self::Always => Verdict::Replace,
            Self::IfNewer if there.mtime != timestamp(entry.mtime) => {
                replaced_if(there.mtime < timestamp(entry.mtime))
            }
            // As after a power cut: the same file, and not all of it; or all of it, and nothing inside. What a file
            // system compresses is as short.
            Self::IfNewer if of_files && there.size != entry.size => Verdict::Replace,
            Self::IfNewer
                if of_files && there.blocks.saturating_mul(512) < entry.content.len_bytes() =>
            {
                Verdict::Compare
            }
            Self::IfNewer => Verdict::Keep,
        }
    }
}

/// Whether what is at `name` stays: what no restore finished never does.
pub(super) fn is_kept(
    context: &Context<'_>,
    dir: &Dir,
    name: Name<'_>,
    there: &Stat,
    entry: &Entry,
) -> bool {
    let Some(overwrite) = context.options.overwrite else { return false };
    if there.kind != FileKind::Dir && context.earlier.made(there) {
        return false;
    }
    match overwrite.verdict(there, entry) {
        Verdict::Keep => true,
        Verdict::Replace => false,
        Verdict::Compare => {
            context.stored.is_some_and(|stored| stored.is_content_of(dir, name, entry))
        }
    }
}

/// Whether what is there is the entry, as far as `if-newer` tells, so that other names may be linked to it.
fn is_stored(
    context: &Context<'_>,
    dir: &Dir,
    name: Name<'_>,
    there: &Stat,
    entry: &Entry,
) -> bool {
    const PERMISSIONS: u32 = 0o777;
    (there.kind, entry.kind) == (FileKind::File, EntryKind::File)
        && there.mtime == timestamp(entry.mtime)
        && there.mode & PERMISSIONS == entry.mode & PERMISSIONS
        && (context.ordinary() || (there.uid, there.gid) == context.owner(entry))
        && match Overwrite::IfNewer.verdict(there, entry) {
            Verdict::Keep => true,
            Verdict::Replace => false,
            Verdict::Compare => {
                context.stored.is_some_and(|stored| stored.is_content_of(dir, name, entry))
            }
        }
}

/// Makes `name` with `create`, which must fail where anything is there; what is there is then kept
/// or is to be replaced, as the options say. What no restore finished is replaced always, and never what is there
/// for another entry.
pub(super) fn make<T>(
    context: &Context<'_>,
    open: &OpenDirectory<'_>,
    name: Name<'_>,
    entry: &Entry,
    create: impl Fn(Name<'_>) -> io::Result<T>,
) -> io::Result<Made<T>> {
    match open.allowing(|| create(name)) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let dir = open.dir.as_dir();
            let there = dir.stat(name)?;
            if let Some(other) = open.twin_of(name, &there)? {
                return Err(taken_for(&other));
            }
            if context.options.overwrite.is_none() {
                return Err(error);
            }
            if is_kept(context, dir, name, &there, entry) {
                let is_stored =
                    entry.hardlink.is_some() && is_stored(context, dir, name, &there, entry);
                add(&context.tally.kept, 1);
                return Ok(Made::Kept { is_stored });
            }
            let place = Place::beside();
            let made = open.allowing(|| create(place.name(name)))?;
            Ok(Made::New(made, place))
        }
        made => made.map(|made| Made::New(made, Place::Own)),
    }
}

/// The same time in the system's words.
pub(super) fn timestamp(time: Time) -> Timestamp {
    Timestamp { secs: time.secs, nanos: time.nanos }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Run;
    use crate::restore::RestoreOptions;
    use crate::restore::beside::remove_left;
    use crate::restore::unfinished;

    #[test]
    fn what_a_killed_restore_left_beside_goes_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let dir = TargetDir::open_root(folder.path()).unwrap();
        let make = |name: &str, mode| dir.create_file(Name::new(name.as_bytes()).unwrap(), mode);
        let (own, beside) = (Name::new(b"file").unwrap(), Place::beside());
        drop(make("file", 0o644).unwrap());
        drop(dir.create_file(beside.name(own), unfinished::MODE).unwrap());
        dir.link_from(&dir, own, Place::beside().name(own)).unwrap();
        // Of the same mode or of such a name, and not of both.
        let users = [
            (".holdall-0123456789abcdef.partial", 0o644),
            (".holdall-0123456789abcde.partial", unfinished::MODE),
            (".holdall-0123456789ABCDEF.partial", unfinished::MODE),
            ("mine", unfinished::MODE),
        ];
        users.iter().for_each(|(name, mode)| drop(make(name, *mode).unwrap()));
        remove_left(&dir);
        let mut left: Vec<_> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        let mut expected: Vec<_> = users.iter().map(|(name, _)| *name).chain(["file"]).collect();
        expected.sort_unstable();
        assert_eq!(left, expected);
    }

    #[test]
    fn what_is_not_whole_goes_and_nothing_holds_its_room() {
        let folder = tempfile::tempdir().unwrap();
        let dir = TargetDir::open_root(folder.path()).unwrap();
        let own = Name::new(b"file").unwrap();
        std::fs::write(folder.path().join("file"), b"kept").unwrap();
        let (run, options) = (Run::new(), RestoreOptions::default());
        let context = Context::of_folder(folder.path(), &options, &run);
        let place = Place::beside();
        let file = Arc::new(dir.create_file(place.name(own), unfinished::MODE).unwrap());
        context.write_behind.wrote(&file, 0..1 << 20);
        assert_eq!(Arc::strong_count(&file), 2);
        place.discard(&context, &file, &dir, own);
        assert_eq!(Arc::strong_count(&file), 1);
        let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(names.len(), 1);
        assert_eq!(std::fs::read(folder.path().join("file")).unwrap(), b"kept");
    }
}
