//! What stays of a repository that its owner erases: who has its keys signs that.

use holdall_format::Erased;

use crate::UnlockedRepository;

/// The signed text that stays, for the function `erase` of the repository. `erased_s` is now, in seconds since 1970.
pub fn erased_text(access: &UnlockedRepository, erased_s: u64) -> String {
    let (repository, owner) = (access.config().repository, access.keys().owner());
    let erased = Erased { repository, owner: owner.public(), erased_s };
    erased.encode(|context, message| owner.sign(context, message))
}
