//! What a repository has in its directory, by kinds and names: nothing else there is its own, whatever folder it lies in.
//!
//! A repository that is erased, and one that is made, destroys what is there. The names of its folders are words that others
//! use, too, so that what lies in them is looked at, down to the last file.

use std::path::Path;

use holdall_format::{
    CONFIG_FILE, ERASED_FILE, PackName, REPOSITORY_MARKER, RecordHash, SessionId,
};
use holdall_protocol::RepositoryError;
use holdall_sys::{FileKind, PathBeneath, Stat};

use crate::storage::layout::{Layout, TailName, is_pack_folder, number_of};
use crate::storage::placed::is_entry;
use crate::storage::publish::{failed, is_beside, is_hexadecimal};

/// What a file system puts into its top folder.
pub(crate) const LOST_AND_FOUND: &str = "lost+found";
const FILES: [&str; 7] =
    [CONFIG_FILE, ERASED_FILE, REPOSITORY_MARKER, "lock", "places", "probes", "scrubbed"];
const FOLDERS: [&str; 17] = [
    "wrappings",
    "spare",
    "lease",
    "packs",
    "placed",
    "parity",
    "quarantine",
    "tails",
    "records",
    "tombstones",
    "given-up",
    "condemned",
    "superseded",
    "pruned",
    "positions",
    "sessions",
    "tmp",
];
/// Where an index is made that has no other place, in `tmp`.
const INDEX: &str = "index";

/// Whether a repository makes something of that kind at a path below its directory.
pub(crate) fn is_own(below: &Path, kind: FileKind) -> bool {
    let names: Option<Vec<&str>> = below.iter().map(|name| name.to_str()).collect();
    let Some(names) = names else { return false };
    match (kind, &names[..]) {
        (FileKind::Dir, [name]) => FOLDERS.contains(name),
        (FileKind::Dir, ["packs" | "parity" | "placed", name]) => is_pack_folder(name),
        (FileKind::Dir, ["tmp", name]) => *name == INDEX,
        (FileKind::File, [name]) => FILES.contains(name),
        (FileKind::File, [folder, name]) => is_file_of(folder, name),
        (FileKind::File, ["packs" | "parity", folder, name]) => {
            is_name_of::<PackName>(name) && name.starts_with(folder)
        }
        (FileKind::File, ["placed", folder, name]) => is_entry(name, folder),
        (FileKind::File, ["tmp", INDEX, name]) => is_of_index(name),
        _ => false,
    }
}

fn is_file_of(folder: &str, name: &str) -> bool {
    match folder {
        "wrappings" | "spare" | "lease" | "records" | "tombstones" | "pruned" | "positions" => {
            number_of(name).is_some()
        }
        "superseded" => number_of(name.strip_suffix(".held").unwrap_or(name)).is_some(),
        "condemned" => is_name_of::<PackName>(name),
        "given-up" => is_name_of::<RecordHash>(name),
        "sessions" => is_name_of::<SessionId>(name),
        "parity" => name == "percent",
        "tails" => TailName::of_journal(name).or(TailName::of_payload(name)).is_some(),
        "tmp" => is_beside(name),
        "quarantine" => is_quarantined(name),
        _ => false,
    }
}

/// A name of a file with a number that chance gave, and what was put aside with it.
fn is_quarantined(name: &str) -> bool {
    let name = name.strip_suffix(".parity").unwrap_or(name);
    let Some((name, number)) = name.rsplit_once('.') else { return false };
    let is_number = number.len() == 8 && is_hexadecimal(number);
    let of_generation = ["wrappings-", "spare-", "tombstones-"];
    let generation = of_generation.iter().find_map(|front| name.strip_prefix(front));
    let is_known = name == CONFIG_FILE || is_name_of::<PackName>(name);
    is_number && (is_known || generation.is_some_and(|digits| number_of(digits).is_some()))
}

fn is_of_index(name: &str) -> bool {
    let run = name.strip_prefix("run-");
    name == "manifest" || is_beside(name) || run.is_some_and(|run| number_of(run).is_some())
}

/// Whether a name is an identifier of that type, as it is written here.
fn is_name_of<T: std::str::FromStr>(name: &str) -> bool {
    is_hexadecimal(name) && name.parse::<T>().is_ok()
}

/// Shows everything in a repository's directory to `see`, a folder before what is in it. What a file system has in its top
/// folder is left out.
///
/// # Errors
/// The first of `see`; [`RepositoryError::Io`].
pub(crate) fn each_in(
    layout: &Layout,
    see: &mut dyn FnMut(&PathBeneath, &Stat) -> Result<(), RepositoryError>,
) -> Result<(), RepositoryError> {
    let names = layout.root().names().map_err(failed("listing", layout.root()))?;
    let shown = names.iter().filter(|name| *name != LOST_AND_FOUND);
    shown.map(|name| layout.root().join(name)).try_for_each(|path| each_at(&path, see))
}

fn each_at(
    path: &PathBeneath,
    see: &mut dyn FnMut(&PathBeneath, &Stat) -> Result<(), RepositoryError>,
) -> Result<(), RepositoryError> {
    let there = match path.stat() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        there => there.map_err(failed("looking at", path))?,
    };
    see(path, &there)?;
    if there.kind != FileKind::Dir {
        return Ok(());
    }
    let names = path.names().map_err(failed("listing", path))?;
    names.iter().try_for_each(|name| each_at(&path.join(name), see))
}

/// Where something of the repository lies below its directory.
pub(crate) fn below<'p>(layout: &Layout, path: &'p PathBeneath) -> &'p Path {
    path.path().strip_prefix(layout.root().path()).unwrap_or(path.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_repository_makes_is_its_own_and_nothing_else_is() {
        let layout = Layout::new(Path::new("/r"));
        let pack = PackName::from_bytes([0xab; 32]);
        let tail = TailName { nodes: true, number: 7 };
        let files = [
            layout.config().file(),
            layout.marker().file(),
            layout.scrubbed().file(),
            layout.pack(&pack).file(),
            layout.condemned_pack(&pack).file(),
            layout.record(1).file(),
            layout.tombstone(1).file(),
            layout.wrappings_of(0).file(),
            layout.spare_of(0).file(),
            layout.superseded_at(3, ".held").file(),
            layout.given_up(&RecordHash::from_bytes([1; 32])).file(),
            layout.session(&SessionId::from_bytes([1; 16])).file(),
            layout.quarantine().join(format!("{pack}.0123abcd")).file(),
            layout.quarantine().join("config.0123abcd").file(),
            layout.quarantine().join("spare-0000000000000001.0123abcd").file(),
            Some(layout.quarantined_parity(format!("{pack}.0123abcd.parity"))),
            Some(layout.pack_parity(&pack)),
            Some(layout.parity_share()),
            Some(layout.lock()),
            Some(layout.probes()),
            Some(layout.lease_file(3)),
            Some(layout.root().join(ERASED_FILE)),
            Some(layout.tmp().join(INDEX).join("run-0000000000000001")),
            Some(layout.root().join("tails/nodes.7.payload")),
            Some(layout.root().join("places")),
            Some(layout.root().join(format!("placed/ab/{pack}.0123456789abcdef.1f"))),
        ];
        assert!(layout.payload(tail).file_name().is_some_and(|name| name == "nodes.7.payload"));
        for file in files.iter().flatten() {
            let below = below(&layout, file);
            assert!(is_own(below, FileKind::File), "{}", below.display());
            assert!(!is_own(below, FileKind::Dir) && !is_own(below, FileKind::Symlink));
        }
        for folder in layout.folders().iter().chain([&layout.lease(), &layout.tmp().join(INDEX)]) {
            let below = below(&layout, folder);
            assert!(is_own(below, FileKind::Dir), "{}", below.display());
            assert!(!is_own(below, FileKind::File));
            assert!(!is_own(&below.join("photo.jpg"), FileKind::File));
            assert!(!is_own(&below.join("photos"), FileKind::Dir));
        }
        let elsewhere = ["packs/00/", "placed/ab/"].map(|folder| format!("{folder}{pack}"));
        let elsewhere = elsewhere.iter().map(|path| &**path);
        for other in elsewhere.chain(["photo.jpg", "quarantine/inner/config", "quarantine/config"])
        {
            assert!(!is_own(Path::new(other), FileKind::File), "{other}");
        }
    }
}
