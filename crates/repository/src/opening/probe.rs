//! What the place of a repository can do, found out by trying when the repository is made.
//!
//! A promise rests on calls that some file systems lack, network shares first of all. What is lacking
//! is told, and lived with: each call has a weaker one in its place. The file `probes` keeps what was
//! found, so that whoever checks the repository hears of it without trying again:
//!
//! ```text
//! holdall probes, version 1
//! file-system 6969        number of the file system, as statfs(2) gives it, hexadecimal
//! fsync-file yes          or `no`, one line for each probe
//! ```

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use holdall_protocol::RepositoryError;
use holdall_sys::PathBeneath;
use holdall_sys::disk;
use holdall_sys::lock::Held;

use crate::storage::layout::Layout;
use crate::storage::publish::{FILE_MODE, beside, failed, read_limited, remove, replace};
use crate::storage::retry::says_lost;

const FRONT: &str = "holdall probes, version 1";
const FRONT_OF_ALL: &[u8] = b"holdall probes, ";
/// The file is never longer.
const PROBES_MAX_BYTES: u64 = 4096;

/// One thing that a place can do or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Probe {
    FsyncFile,
    FsyncDirectory,
    Link,
    RenameNew,
    CreateNew,
    Lock,
}

const PROBES: [(Probe, &str); 6] = [
    (Probe::FsyncFile, "fsync-file"),
    (Probe::FsyncDirectory, "fsync-directory"),
    (Probe::Link, "link"),
    (Probe::RenameNew, "rename-new"),
    (Probe::CreateNew, "create-new"),
    (Probe::Lock, "lock"),
];

/// What was found at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Probed {
    file_system: u64,
    lacking: Vec<Probe>,
}

/// What the place of the repository in `dir` lacks and what follows from it, a sentence each; empty
/// where nothing is lacking, or nothing is known.
///
/// # Errors
/// [`RepositoryError::Io`] if it cannot be read.
pub fn lacking(dir: &Path) -> Result<Vec<String>, RepositoryError> {
    let known = known(&Layout::new(dir))?;
    Ok(known.map(|known| known.sentences()).unwrap_or_default())
}

/// What was found before. What the disk has lost is not known, and can be found anew.
fn known(layout: &Layout) -> Result<Option<Probed>, RepositoryError> {
    match read_limited(&layout.probes(), PROBES_MAX_BYTES) {
        Err(error) if says_lost(&error) => Ok(None),
        read => Ok(Probed::decode(&String::from_utf8_lossy(&read?.unwrap_or_default()))),
    }
}

/// Whether a file says what a place can do, of whatever version.
pub(crate) fn says_probes(bytes: &[u8]) -> bool {
    bytes.starts_with(FRONT_OF_ALL)
}

/// Tries out the place and keeps what was found, unless that is known of its file system.
pub(crate) fn probe(layout: &Layout) -> Result<(), RepositoryError> {
    let (path, root) = (layout.probes(), layout.root());
    let file_system = disk::file_system(root.path()).map_err(failed("looking at", root))?;
    if known(layout)?.is_some_and(|known| known.file_system == file_system) {
        return Ok(());
    }
    let folder = layout.tmp();
    let (one, two) = (beside(&folder)?, beside(&folder)?);
    let lacking = try_all(&one, &two, &folder).map_err(failed("trying out", &folder));
    // In this order an error leaves nothing behind that is not swept.
    remove(&one).and_then(|()| remove(&two))?;
    replace(&folder, &path, Probed { file_system, lacking: lacking? }.encode().as_bytes())
}

/// Makes the file `one` and finds out what can be done with it and the name `two`.
fn try_all(one: &PathBeneath, two: &PathBeneath, folder: &PathBeneath) -> io::Result<Vec<Probe>> {
    let new = || one.create_new(FILE_MODE);
    let file = new()?;
    file.write_all_at(b"holdall", 0)?;
    let linked = one.hard_link(two);
    if linked.is_ok() {
        two.remove_file()?;
    }
    // Onto a name that is free: of one that is not, the system itself may know before it asks.
    let renamed = one.rename_new(two);
    if renamed.is_ok() {
        two.rename(one)?;
    }
    let again = new().map(drop).map_err(|error| error.kind());
    let found = [
        (Probe::FsyncFile, file.sync_all().is_ok()),
        (Probe::FsyncDirectory, folder.sync_dir().is_ok()),
        (Probe::Link, linked.is_ok()),
        (Probe::RenameNew, renamed.is_ok()),
        (Probe::CreateNew, again == Err(io::ErrorKind::AlreadyExists)),
        (Probe::Lock, can_lock(file)),
    ];
    Ok(found.into_iter().filter(|(_, can)| !can).map(|(probe, _)| probe).collect())
}

fn can_lock(file: File) -> bool {
    Held::exclusive(file).is_ok_and(|held| held.is_some_and(|held| held.is_locked()))
}

impl Probed {
    pub(crate) fn encode(&self) -> String {
        let mut text = format!("{FRONT}\nfile-system {:x}\n", self.file_system);
        for (probe, name) in PROBES {
            let answer = if self.lacks(probe) { "no" } else { "yes" };
            text.extend([name, " ", answer, "\n"]);
        }
        text
    }

    /// Reads what [`Probed::encode`] wrote; lines that are not known are passed over. Untrusted:
    /// anything else is nothing.
    pub(crate) fn decode(text: &str) -> Option<Self> {
        let lines = || text.lines().skip(1).filter_map(|line| line.split_once(' '));
        if text.lines().next() != Some(FRONT) {
            return None;
        }
        let number = lines().find(|(name, _)| *name == "file-system")?.1;
        let file_system = u64::from_str_radix(number, 16).ok()?;
        let is_lacking = |name: &str| lines().any(|line| line == (name, "no"));
        let lacking = PROBES.iter().filter(|(_, name)| is_lacking(name));
        Some(Self { file_system, lacking: lacking.map(|(probe, _)| *probe).collect() })
    }

    fn lacks(&self, probe: Probe) -> bool {
        self.lacking.contains(&probe)
    }

    fn sentences(&self) -> Vec<String> {
        let mut said = Vec::new();
        let mut say = |is_so: bool, sentence: &str| {
            if is_so {
                said.push(sentence.to_owned());
            }
        };
        say(
            self.lacks(Probe::FsyncFile),
            "it cannot make files durable (fsync): a power cut there may lose what was stored last",
        );
        say(
            self.lacks(Probe::FsyncDirectory),
            "it cannot make names durable (fsync of a directory): a power cut there may lose the \
             newest snapshot",
        );
        say(
            self.lacks(Probe::Link) && self.lacks(Probe::RenameNew),
            "it can neither link files nor rename them without replacing: that nothing is \
             overwritten rests on the lease alone",
        );
        say(
            self.lacks(Probe::CreateNew),
            "it cannot make a file only if it is new: let no two computers write to it",
        );
        say(
            self.lacks(Probe::Lock) || disk::is_share(self.file_system),
            "locks there hold on one computer at most: whoever writes keeps a lease file, renewed \
             every minute; after a crash, other computers wait for it for 5 minutes",
        );
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::publish::make_dir;
    use std::fs;

    #[test]
    fn a_local_file_system_lacks_nothing_and_is_tried_once() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        make_dir(&layout.tmp()).unwrap();
        probe(&layout).unwrap();
        assert_eq!(lacking(dir.path()).unwrap(), Vec::<String>::new());
        assert_eq!(fs::read_dir(layout.tmp().path()).unwrap().count(), 0);
        let kept = fs::read_to_string(layout.probes().path()).unwrap();
        fs::write(layout.probes().path(), kept.replace("link yes", "link no")).unwrap();
        probe(&layout).unwrap();
        assert!(fs::read_to_string(layout.probes().path()).unwrap().contains("link no"));
        // Copied from elsewhere: what was found there says nothing of here.
        fs::write(layout.probes().path(), format!("{FRONT}\nfile-system 6969\nlink no\n")).unwrap();
        probe(&layout).unwrap();
        assert_eq!(fs::read_to_string(layout.probes().path()).unwrap(), kept);
    }

    #[test]
    fn what_is_lacking_comes_back_from_the_file() {
        for lacking in [vec![], vec![Probe::Link], PROBES.map(|(probe, _)| probe).to_vec()] {
            let probed = Probed { file_system: 0x6573_5546, lacking };
            assert_eq!(Probed::decode(&probed.encode()), Some(probed.clone()));
            assert!(probed.sentences().last().unwrap().contains("lease file"));
        }
        for nonsense in ["", "holdall probes, version 2\nfile-system 1\n", FRONT] {
            assert_eq!(Probed::decode(nonsense), None);
        }
    }
}
