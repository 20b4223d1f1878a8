//! What an ordinary user may not restore, counted: one line for each kind, however many entries.

use std::sync::atomic::{AtomicU64, Ordering};

/// A kind of thing that only root may restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Note {
    Owner,
    Group,
    SetIds,
    Attribute,
    Device,
}

impl Note {
    const ALL: [Self; 5] = [Self::Owner, Self::Group, Self::SetIds, Self::Attribute, Self::Device];

    pub(super) fn what(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Group => "group",
            Self::SetIds => "set-user-id or set-group-id",
            Self::Attribute => "privileged attribute",
            Self::Device => "device",
        }
    }

    fn line(self, count: u64) -> String {
        let what = match self {
            Self::Owner => "owners not restored",
            Self::Group => "groups not restored",
            Self::SetIds => "set-user-id or set-group-id bits dropped, for the owner is another",
            Self::Attribute => "privileged attributes not restored",
            Self::Device => "devices not made",
        };
        format!("{count} {what}: only root may")
    }
}

/// Counts of each kind.
#[derive(Default)]
pub(super) struct Notes {
    counts: [AtomicU64; Note::ALL.len()],
}

impl Notes {
    pub(super) fn count(&self, note: Note) {
        if let Some(count) = self.counts.get(note as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// One line for each kind that there was.
    pub(super) fn lines(&self) -> Vec<String> {
        let counted = Note::ALL.into_iter().zip(&self.counts);
        let counted = counted.map(|(note, count)| (note, count.load(Ordering::Relaxed)));
        counted.filter(|(_, count)| *count > 0).map(|(note, count)| note.line(count)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_of_a_kind_are_one_line() {
        let notes = Notes::default();
        assert_eq!(notes.lines(), [""; 0]);
        (0..3).for_each(|_| notes.count(Note::Device));
        notes.count(Note::Owner);
        assert_eq!(
            notes.lines(),
            ["1 owners not restored: only root may", "3 devices not made: only root may"]
        );
    }
}
