//! What changed between two entries of one path, in words that people use.
//!
//! Content is the same where chunks and holes are the same, whatever the times say. Change time and
//! inode are how a backup sees that something changed; of themselves they are no change.

use holdall_tree::{Entry, EntryKind};

/// How an entry differs from the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// There was none.
    Added,
    /// There is none any more.
    Removed,
    /// It is of another type: a file became a directory.
    Type,
    /// A file's bytes or holes, a link's target or a device's numbers are others.
    Content,
    /// All that is the same.
    Metadata,
}

/// One thing in which two entries differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aspect {
    /// File, directory, link, ...
    Type,
    /// A file's bytes or holes, or a link's target.
    Content,
    /// Which device it stands for.
    Device,
    /// Permissions.
    Mode,
    /// User or group, by number or by name.
    Owner,
    /// Modification time.
    Mtime,
    /// Extended attributes, with access control lists and capabilities.
    Attributes,
    /// Whether it has more names than one.
    HardLink,
}

/// How an entry differs from the one before it, and in what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryChange {
    /// What weighs most.
    pub kind: ChangeKind,
    /// Everything in which the two differ; empty for what was added or removed.
    pub what: Vec<Aspect>,
}

impl EntryChange {
    /// How `after` differs from `before`; nothing if nobody would call them different.
    pub(crate) fn between(before: Option<&Entry>, after: Option<&Entry>) -> Option<Self> {
        let (before, after) = match (before, after) {
            (None, None) => return None,
            (None, Some(_)) => return Some(Self { kind: ChangeKind::Added, what: Vec::new() }),
            (Some(_), None) => return Some(Self { kind: ChangeKind::Removed, what: Vec::new() }),
            (Some(before), Some(after)) => (before, after),
        };
        let what = aspects(before, after);
        let kind = match what.first()? {
            Aspect::Type => ChangeKind::Type,
            Aspect::Content | Aspect::Device => ChangeKind::Content,
            _ => ChangeKind::Metadata,
        };
        Some(Self { kind, what })
    }
}

/// Everything in which two entries differ; what weighs most comes first.
fn aspects(before: &Entry, after: &Entry) -> Vec<Aspect> {
    let of_one_type = std::mem::discriminant(&before.kind) == std::mem::discriminant(&after.kind);
    let holds_bytes = matches!(after.kind, EntryKind::File | EntryKind::Symlink);
    let bytes = (before.size, &before.content, &before.extents)
        != (after.size, &after.content, &after.extents);
    let owner = (before.uid, before.gid, &before.user, &before.group)
        != (after.uid, after.gid, &after.user, &after.group);
    let differs = [
        (Aspect::Type, !of_one_type),
        (Aspect::Content, of_one_type && holds_bytes && bytes),
        (Aspect::Device, of_one_type && before.kind != after.kind),
        (Aspect::Mode, before.mode != after.mode),
        (Aspect::Owner, owner),
        (Aspect::Mtime, before.mtime != after.mtime),
        (Aspect::Attributes, before.attributes != after.attributes),
        (Aspect::HardLink, before.hardlink.is_some() != after.hardlink.is_some()),
    ];
    differs.into_iter().filter(|(_, differs)| *differs).map(|(aspect, _)| aspect).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_world::{directory, small_file, symlink};
    use holdall_tree::{Content, Time};

    fn between(before: &Entry, after: &Entry) -> Option<(ChangeKind, Vec<Aspect>)> {
        EntryChange::between(Some(before), Some(after)).map(|change| (change.kind, change.what))
    }

    #[test]
    fn times_alone_are_metadata_and_what_only_a_backup_looks_at_is_nothing() {
        let file = small_file(b"content");
        let touched = Entry { mtime: Time { secs: 5, nanos: 0 }, ..file.clone() };
        let metadata = Some((ChangeKind::Metadata, vec![Aspect::Mtime]));
        assert_eq!(between(&file, &touched), metadata);
        let moved = Entry { inode: 77, ctime: Time { secs: 5, nanos: 0 }, ..file.clone() };
        assert_eq!(between(&file, &Entry { unsettled: true, ..moved }), None);
        assert_eq!(EntryChange::between(None, None), None);
    }

    #[test]
    fn other_bytes_are_content_even_if_size_and_time_are_the_same() {
        let (before, after) = (small_file(b"one"), small_file(b"two"));
        assert_eq!(between(&before, &after), Some((ChangeKind::Content, vec![Aspect::Content])));
        let (before, after) = (symlink("one"), symlink("two"));
        assert_eq!(between(&before, &after), Some((ChangeKind::Content, vec![Aspect::Content])));
        let holey = Entry { extents: Some(Content::empty()), ..small_file(b"") };
        let dense = small_file(b"");
        assert_eq!(between(&holey, &dense), Some((ChangeKind::Content, vec![Aspect::Content])));
        let large = Entry { size: 8192, ..directory() };
        assert_eq!(between(&directory(), &large), None);
    }

    #[test]
    fn every_aspect_is_named_and_the_weightiest_decides() {
        let before = Entry { mode: 0o600, ..small_file(b"") };
        let after = Entry { mode: 0o755, uid: before.uid + 1, ..directory() };
        let what = vec![Aspect::Type, Aspect::Mode, Aspect::Owner];
        assert_eq!(between(&before, &after), Some((ChangeKind::Type, what)));
        let device = |minor| Entry::empty(EntryKind::CharDevice { major: 1, minor });
        let what = Some((ChangeKind::Content, vec![Aspect::Device]));
        assert_eq!(between(&device(3), &device(5)), what);
        let listed = Content::Inline(vec![1]);
        let listed = Entry { attributes: listed, hardlink: Some([1; 16]), ..before.clone() };
        let what = vec![Aspect::Attributes, Aspect::HardLink];
        assert_eq!(between(&before, &listed), Some((ChangeKind::Metadata, what)));
        let relinked = Entry { hardlink: Some([2; 16]), ..listed.clone() };
        assert_eq!(between(&listed, &relinked), None);
    }
}
