//! What becomes of each path of a backup, for whoever wants to see it: taken as new, changed or unchanged, or left
//! out by a rule.
//!
//! Nobody is told unless a run is watched for it. What is left out is always told then; what is taken only if that
//! is wanted, since the backup then compares every path by itself and takes no leaf of its parent over whole.

/// What became of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemFate<'a> {
    /// Taken; the previous snapshot does not have it.
    New,
    /// Taken; it differs from the previous snapshot's.
    Changed,
    /// Taken; it is as in the previous snapshot.
    Unchanged,
    /// Left out, with all that lies below it, by this rule.
    LeftOut(&'a str),
}

type Tell = Box<dyn Fn(&[u8], ItemFate<'_>) + Send + Sync>;

/// Who wants to know.
pub(crate) struct ItemWatcher {
    wants_taken: bool,
    tell: Tell,
}

impl ItemWatcher {
    pub(crate) fn new(wants_taken: bool, tell: Tell) -> Self {
        Self { wants_taken, tell }
    }

    pub(crate) fn wants_taken(&self) -> bool {
        self.wants_taken
    }

    /// Tells what became of an absolute path, if that is wanted.
    pub(crate) fn tell(&self, path: &[u8], fate: ItemFate<'_>) {
        if self.wants_taken || matches!(fate, ItemFate::LeftOut(_)) {
            (self.tell)(path, fate);
        }
    }
}
