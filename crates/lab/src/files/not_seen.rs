//! What was not looked into, in words.

use holdall_meter::count;

/// What a count or a walk does not have, in sentences.
pub fn not_seen(unreadable_directories: u64, mount_points: u64) -> impl Iterator<Item = String> {
    let said = |number: u64, one: &str, several: &str| match number {
        0 => None,
        1 => Some(one.to_owned()),
        number => Some(format!("{} {several}", count(number))),
    };
    let unreadable = said(
        unreadable_directories,
        "1 directory could not be read, or not wholly: what lies in it is missing here.",
        "directories could not be read, or not wholly: what lies in them is missing here.",
    );
    let mounted = said(
        mount_points,
        "1 directory has another file system mounted, which is not looked into.",
        "directories have other file systems mounted, which are not looked into.",
    );
    unreadable.into_iter().chain(mounted)
}
