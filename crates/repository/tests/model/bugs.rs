//! Bugs that other tools had or that this one could have, each as what it breaks of rules under which
//! nothing is lost.
//!
//! A tool that checks no commit believes its client: what went wrong there does not go wrong with a
//! keeper that checks, whatever else it does. Those bugs begin with rules that do not check, and are
//! held to more elsewhere, so that it is the bug which is found and not that.

use crate::rules::Rules;
use crate::scene::{ALONE, COMPACTING, Scene, TWO};

/// A bug, and what it breaks.
pub(crate) struct Bug {
    pub(crate) name: &'static str,
    /// Rules that are right without it.
    pub(crate) base: Rules,
    pub(crate) breaks: fn(&mut Rules),
    /// Where it is looked for.
    pub(crate) scene: Scene,
}

impl Bug {
    /// The rules with the bug in them.
    pub(crate) fn rules(&self) -> Rules {
        let mut rules = self.base;
        (self.breaks)(&mut rules);
        rules
    }
}

const RIGHT: Rules = Rules::RIGHT;
/// What checks no commit, and yet loses nothing: it refuses parents that were forgotten, has clients ask for
/// each object, and wait while a pack is moved.
pub(crate) const UNCHECKED: Rules = Rules { commit_checks: false, ..RIGHT };
pub(crate) const PARENTS: Scene = Scene { restarts: false, reads: false, deaths: false, ..ALONE };
const READS: Scene = Scene { parents: false, restarts: false, deaths: false, ..ALONE };
const RESTARTS: Scene = Scene { parents: false, reads: false, deaths: false, ..ALONE };
pub(crate) const PLAIN: Scene = Scene { restarts: false, ..RESTARTS };

pub(crate) const BUGS: &[Bug] = &[
    // PSA-2025-00019-1: garbage was collected while snapshot 0 was pruned and snapshot 1 was being
    // made on top of it, and chunks were deleted that snapshot 1 refers to.
    Bug {
        name: "Proxmox S0/S1",
        base: UNCHECKED,
        breaks: |rules| rules.marks_parents = false,
        scene: PARENTS,
    },
    // #5982: where the file system does not keep access times, touching what a backup uses again
    // protects nothing.
    Bug {
        name: "Proxmox atime",
        base: UNCHECKED,
        breaks: |rules| rules.keeps_relied_on = false,
        scene: PLAIN,
    },
    // #392: a blob that was needed and lay in several packs was lost with all of them.
    Bug {
        name: "rustic 392",
        base: RIGHT,
        breaks: |rules| rules.keeps_one_of_many = false,
        scene: PLAIN,
    },
    // #1242: garbage was judged by an index of two hours ago, and a fresh blob was deleted.
    Bug {
        name: "kopia 1242",
        base: RIGHT,
        breaks: |rules| {
            rules.looks_again = false;
            rules.keeps_recent = false;
        },
        scene: PLAIN,
    },
    // #5371: compaction may drop index entries, and what they told of is lost.
    Bug {
        name: "kopia 5371",
        base: RIGHT,
        breaks: |rules| rules.index_is_complete = false,
        scene: PLAIN,
    },
    // #4199, #4274: a lock expires while its holder is in standby, and the holder goes on.
    Bug {
        name: "restic lock expiry",
        base: UNCHECKED,
        breaks: |rules| rules.refuses_lapsed = false,
        scene: PLAIN,
    },
    // A node is taken for whole because it is stored, though nothing below it ever came.
    Bug {
        name: "commit stops at stored",
        base: RIGHT,
        breaks: |rules| rules.descends_through_stored = false,
        scene: TWO,
    },
    // A node is put again with no references, and the keeper goes by that.
    Bug {
        name: "a later copy counts",
        base: RIGHT,
        breaks: |rules| rules.first_copy_counts = false,
        scene: PLAIN,
    },
    // A prune marks and condemns between a commit's check and its record.
    Bug {
        name: "no commit lock",
        base: RIGHT,
        breaks: |rules| rules.prune_locks = false,
        scene: PLAIN,
    },
    // After a crash that is taken for closed which was before packs were condemned.
    Bug {
        name: "an older cache is believed",
        base: RIGHT,
        breaks: |rules| rules.doubts_old_saves = false,
        scene: RESTARTS,
    },
    // A pack is deleted as soon as it is condemned, while a restore wants it.
    Bug {
        name: "deletion waits for nobody",
        base: RIGHT,
        breaks: |rules| rules.delete_waits = false,
        scene: READS,
    },
    // A client names a parent that was forgotten and half deleted; a mark closes what is left of it,
    // and a commit stops there.
    Bug {
        name: "a broken parent is closed",
        base: RIGHT,
        breaks: |rules| rules.parents_are_whole = false,
        scene: PARENTS,
    },
    // A block goes because it gave way, though nothing else has what is needed of it.
    Bug {
        name: "a block gives way to nothing",
        base: RIGHT,
        breaks: |rules| rules.keeps_superseded = false,
        scene: COMPACTING,
    },
];
