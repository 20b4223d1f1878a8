//! What an ordinary user may not restore, counted: one line, however many entries and kinds.

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
            Self::SetIds => "set-user-id or set-group-id bit",
            Self::Attribute => "privileged attribute",
            Self::Device => "device",
        }
    }

    fn counted(self, count: u64) -> String {
        let plural = if count == 1 { "" } else { "s" };
        format!("{count} {}{plural}", self.what())
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

    /// How many of each kind there were; nothing if there were none.
    pub(super) fn line(&self) -> Option<String> {
        let counted = Note::ALL.into_iter().zip(&self.counts);
        let counted = counted.map(|(note, count)| (note, count.load(Ordering::Relaxed)));
        let counted: Vec<_> = counted
            .filter(|(_, count)| *count > 0)
            .map(|(note, count)| note.counted(count))
            .collect();
        let counted = (!counted.is_empty()).then(|| counted.join(", "))?;
        Some(format!("not restored, for only root may: {counted}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_of_all_kinds_are_one_line() {
        let notes = Notes::default();
        assert_eq!(notes.line(), None);
        (0..3).for_each(|_| notes.count(Note::Device));
        notes.count(Note::Owner);
        let line = "not restored, for only root may: 1 owner, 3 devices";
        assert_eq!(notes.line().as_deref(), Some(line));
    }
}
