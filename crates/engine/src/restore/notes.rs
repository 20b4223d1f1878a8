//! What is not restored as it was and is no problem, counted: one line for what an ordinary user may not
//! restore, however many entries and kinds, and one each for links that became copies, or were kept apart.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use holdall_meter::counted;

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
        counted(count, self.what())
    }
}

/// Counts of each kind.
#[derive(Default)]
pub(super) struct Notes {
    counts: [AtomicU64; Note::ALL.len()],
    copies: AtomicU64,
    apart: AtomicU64,
    has_coarse: AtomicBool,
}

impl Notes {
    pub(super) fn count(&self, note: Note) {
        if let Some(count) = self.counts.get(note as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn count_copy(&self) {
        self.copies.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_apart(&self) {
        self.apart.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn say_coarse(&self) {
        self.has_coarse.store(true, Ordering::Relaxed);
    }

    /// How many there were; nothing if there were none.
    pub(super) fn lines(&self) -> Vec<String> {
        [self.not_allowed(), self.copied(), self.kept_apart(), self.coarse()]
            .into_iter()
            .flatten()
            .collect()
    }

    fn copied(&self) -> Option<String> {
        match self.copies.load(Ordering::Relaxed) {
            0 => None,
            1 => Some("1 link was restored as a copy of its file".to_owned()),
            count => Some(format!("{count} links were restored as copies of their files")),
        }
    }

    fn kept_apart(&self) -> Option<String> {
        let counted = match self.apart.load(Ordering::Relaxed) {
            0 => return None,
            1 => "1 link was kept, apart from its file that was restored".to_owned(),
            count => format!("{count} links were kept, apart from their files that were restored"),
        };
        Some(format!("{counted}: --overwrite always links them again"))
    }

    fn coarse(&self) -> Option<String> {
        let line = "the target's file system keeps times less exactly than the snapshot: --overwrite if-newer \
                    takes the files for older";
        self.has_coarse.load(Ordering::Relaxed).then(|| line.to_owned())
    }

    fn not_allowed(&self) -> Option<String> {
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
        assert_eq!(notes.lines(), [""; 0]);
        (0..3).for_each(|_| notes.count(Note::Device));
        notes.count(Note::Owner);
        let line = "not restored, for only root may: 1 owner, 3 devices";
        notes.count_copy();
        let copy = "1 link was restored as a copy of its file";
        notes.count_apart();
        let apart = "1 link was kept, apart from its file that was restored: --overwrite always links them again";
        assert_eq!(notes.lines(), [line, copy, apart]);
    }
}
