//! What the keeper does, as switches: each is right unless a planted bug turns it.

/// The rules that a keeper follows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// A commit is checked before its record is written. Who does not do that is held to more elsewhere: see
    /// what `actions` makes of it.
    pub(crate) commit_checks: bool,
    /// A descent goes on through what is stored and not closed.
    pub(crate) descends_through_stored: bool,
    /// An object's first copy says what it refers to, and others may not say anything else.
    pub(crate) first_copy_counts: bool,
    /// What parents of live sessions reach is closed by a mark.
    pub(crate) marks_parents: bool,
    /// A parent of which something is missing closes nothing.
    pub(crate) parents_are_whole: bool,
    /// A pack stays of which a live session was told.
    pub(crate) keeps_relied_on: bool,
    /// What came since the oldest live session began is needed.
    pub(crate) keeps_recent: bool,
    /// What is needed of a pack is found when it is condemned, not in an older index.
    pub(crate) looks_again: bool,
    /// A copy is needed although there was another one when the plan was made.
    pub(crate) keeps_one_of_many: bool,
    /// Commits wait for marks and condemning.
    pub(crate) prune_locks: bool,
    /// A saved set is not believed once a pack was condemned or deleted since.
    pub(crate) doubts_old_saves: bool,
    /// A session that lapsed is refused.
    pub(crate) refuses_lapsed: bool,
    /// All entries of a tail come into the index when it becomes a pack.
    pub(crate) index_is_complete: bool,
    /// What gave way stays for as long as it is needed all the same.
    pub(crate) keeps_superseded: bool,
    /// A condemned pack stays until its grace is over and nobody reads who began before it.
    pub(crate) delete_waits: bool,
}

impl Rules {
    /// As docs/concurrency.md has them.
    pub(crate) const RIGHT: Self = Self {
        commit_checks: true,
        descends_through_stored: true,
        first_copy_counts: true,
        marks_parents: true,
        parents_are_whole: true,
        keeps_relied_on: true,
        keeps_recent: true,
        looks_again: true,
        keeps_one_of_many: true,
        prune_locks: true,
        doubts_old_saves: true,
        refuses_lapsed: true,
        index_is_complete: true,
        keeps_superseded: true,
        delete_waits: true,
    };
}
