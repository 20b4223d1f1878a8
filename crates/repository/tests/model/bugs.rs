//! Bugs that other tools had or that this one could have, each as the rules that it breaks.
//!
//! A tool that checks no commit believes its client: what went wrong there does not go wrong with a
//! keeper that checks, whatever else it does, so those rows turn the check off too.

use crate::rules::Rules;
use crate::scene::{ALONE, COMPACTING, Scene, TWO};

/// A bug, and what it breaks.
pub(crate) struct Bug {
    pub(crate) name: &'static str,
    pub(crate) rules: Rules,
    /// Where it is looked for.
    pub(crate) scene: Scene,
}

const RIGHT: Rules = Rules::RIGHT;
const UNCHECKED: Rules = Rules { commit_checks: false, ..RIGHT };
const PARENTS: Scene = Scene { restarts: false, reads: false, deaths: false, ..ALONE };
const READS: Scene = Scene { parents: false, restarts: false, deaths: false, ..ALONE };
const RESTARTS: Scene = Scene { parents: false, reads: false, deaths: false, ..ALONE };
const PLAIN: Scene = Scene { restarts: false, ..RESTARTS };

pub(crate) const BUGS: &[Bug] = &[
    // PSA-2025-00019-1: garbage was collected while snapshot 0 was pruned and snapshot 1 was being
    // made on top of it, and chunks were deleted that snapshot 1 refers to.
    Bug {
        name: "Proxmox S0/S1",
        rules: Rules { marks_parents: false, ..UNCHECKED },
        scene: PARENTS,
    },
    // #5982: where the file system does not keep access times, touching what a backup uses again
    // protects nothing.
    Bug {
        name: "Proxmox atime",
        rules: Rules { keeps_relied_on: false, ..UNCHECKED },
        scene: PLAIN,
    },
    // #392: a blob that was needed and lay in several packs was lost with all of them.
    Bug { name: "rustic 392", rules: Rules { keeps_one_of_many: false, ..RIGHT }, scene: PLAIN },
    // #1242: garbage was judged by an index of two hours ago, and a fresh blob was deleted.
    Bug {
        name: "kopia 1242",
        rules: Rules { looks_again: false, keeps_recent: false, ..RIGHT },
        scene: PLAIN,
    },
    // #5371: compaction may drop index entries, and what they told of is lost.
    Bug { name: "kopia 5371", rules: Rules { index_is_complete: false, ..RIGHT }, scene: PLAIN },
    // #4199, #4274: a lock expires while its holder is in standby, and the holder goes on.
    Bug {
        name: "restic lock expiry",
        rules: Rules { refuses_lapsed: false, ..UNCHECKED },
        scene: PLAIN,
    },
    // A node is taken for whole because it is stored, though nothing below it ever came.
    Bug {
        name: "commit stops at stored",
        rules: Rules { descends_through_stored: false, ..RIGHT },
        scene: TWO,
    },
    // A node is put again with no references, and the keeper goes by that.
    Bug {
        name: "a later copy counts",
        rules: Rules { first_copy_counts: false, ..RIGHT },
        scene: PLAIN,
    },
    // A prune marks and condemns between a commit's check and its record.
    Bug { name: "no commit lock", rules: Rules { prune_locks: false, ..RIGHT }, scene: PLAIN },
    // After a crash that is taken for closed which was before packs were condemned.
    Bug {
        name: "an older cache is believed",
        rules: Rules { doubts_old_saves: false, ..RIGHT },
        scene: RESTARTS,
    },
    // A pack is deleted as soon as it is condemned, while a restore wants it.
    Bug {
        name: "deletion waits for nobody",
        rules: Rules { delete_waits: false, ..RIGHT },
        scene: READS,
    },
    // A client names a parent that was forgotten and half deleted; a mark closes what is left of it,
    // and a commit stops there.
    Bug {
        name: "a broken parent is closed",
        rules: Rules { parents_are_whole: false, ..RIGHT },
        scene: PARENTS,
    },
    // A block goes because it gave way, though nothing else has what is needed of it.
    Bug {
        name: "a block gives way to nothing",
        rules: Rules { keeps_superseded: false, ..RIGHT },
        scene: COMPACTING,
    },
];
