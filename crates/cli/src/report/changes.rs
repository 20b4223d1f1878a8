//! Changes of entries in words, alike wherever two snapshots are compared.

use holdall_engine::{Aspect, ChangeKind, EntryChange};

/// What changed, as programs are told.
pub(crate) fn aspects(change: &EntryChange) -> Vec<&'static str> {
    change.what.iter().copied().map(aspect).collect()
}

/// How an entry changed, as programs are told.
pub(crate) fn kind(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Added => "added",
        ChangeKind::Removed => "removed",
        ChangeKind::Type => "type",
        ChangeKind::Content => "content",
        ChangeKind::Metadata => "metadata",
    }
}

fn aspect(aspect: Aspect) -> &'static str {
    match aspect {
        Aspect::Type => "type",
        Aspect::Content => "content",
        Aspect::Device => "device",
        Aspect::Mode => "mode",
        Aspect::Owner => "owner",
        Aspect::Mtime => "mtime",
        Aspect::Attributes => "xattrs",
        Aspect::HardLink => "hardlink",
    }
}
