//! What everything of a repository is called, and where it lies: what is published whole by names in its
//! [`Storage`](crate::storage::Storage), the rest by paths in a directory of this computer. In a directory the two are
//! one:
//!
//! ```text
//! DIR/holdall-repository        marker and version; written last when a repository is made
//!     config                    the signed configuration
//!     wrappings/<generation>    signed sets of wrappings, the highest counts
//!     spare/<generation>        the configuration and the newest set once more
//!     lock                      the lease: held shared by readers, alone by a writer
//!     lease/<number>            who writes, where locks hold on one computer only
//!     probes                    what the place can do, as it was found
//!     packs/<xx>/<pack name>    closed packs
//!     placed/<xx>/<pack name>.<place>.<length>  that a pack lies in a place beside the directory
//!     places                    which places there are
//!     parity/percent            how much parity is kept, where any is
//!     parity/<xx>/<pack name>   what a pack can be restored from
//!     quarantine/               files that a repair took out of the way
//!     tails/<kind>.<n>.payload  payloads of blocks whose pack is not closed
//!     tails/<kind>.<n>.journal  what the footer will say of them
//!     records/<log position>    records with their receipts
//!     tombstones/<log position> what stays of records that were forgotten
//!     condemned/<pack name>     packs that are to go, and since when
//!     superseded/<log position> blocks of which what is needed lies in later ones too
//!     given-up/<record hash>    records that are lost and that nobody waits for any more
//!     pruned/<log position>     the last prune that let something go, by the position it was at
//!     positions/<log position>  up to where positions were set aside for writers
//!     scrubbed                  how far the keeper has read everything again
//!     sessions/<session>        sessions that have not lapsed
//!     tmp/                      files that are not published yet
//!     erased                    beside marker and lock alone: what stays of a repository that was erased
//! ```

use std::path::Path;
use std::sync::Arc;

use holdall_format::{
    BlockKind, CONFIG_FILE, Erased, PackName, REPOSITORY_MARKER, RecordHash, SessionId, record_file,
};
use holdall_protocol::RepositoryError;
use holdall_sys::{PathBeneath, Root};
use jiff::Timestamp;

#[cfg(test)]
use crate::storage::memory::MemoryStorage;
use crate::storage::placed::PlacedPacks;
use crate::storage::publish::is_hexadecimal;
use crate::storage::{DirStorage, Landed, Stored};

/// What the marker file begins with, whatever the version.
pub(crate) const MARKER_FRONT: &str = "holdall repository, version ";
/// What the marker file says.
pub(crate) const MARKER_TEXT: &str = "holdall repository, version 1\n";
/// What it says of a repository that was erased: a version that no client goes on with.
pub(crate) const ERASED_MARKER: &str = "holdall repository, version 2\n";

const QUARANTINE: &str = "quarantine";

/// A repository's directory.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    /// For what is no one's but this computer's, or lies beside packs that are files.
    root: PathBeneath,
    /// Where everything is that grows, or that is this writer's own.
    landing: Landed,
    /// Where everything is that is published whole.
    published: Stored,
    /// Where packs are, in a directory: there, and in other places.
    placed: Option<Arc<PlacedPacks>>,
}

impl Layout {
    pub(crate) fn new(root: &Path) -> Self {
        let root = Root::at(root);
        let storage = Arc::new(DirStorage::new(&root, root.join("tmp")));
        let placed = Arc::new(PlacedPacks::new(storage.clone(), &root, root.join("tmp")));
        let landing = Landed::root(storage, root.path());
        Self { root, published: landing.stored().clone(), landing, placed: Some(placed) }
    }

    /// A repository in memory, but for its lease and parity, which lie in the folder `root`.
    #[cfg(test)]
    pub(crate) fn in_memory(root: &Path, storage: &MemoryStorage) -> Self {
        let landing = Landed::root(Arc::new(storage.clone()), Path::new("/memory"));
        let published = landing.stored().clone();
        Self { root: Root::at(root), published, landing, placed: None }
    }

    pub(crate) fn root(&self) -> &PathBeneath {
        &self.root
    }

    pub(crate) fn marker(&self) -> Stored {
        self.published.join(REPOSITORY_MARKER)
    }

    pub(crate) fn config(&self) -> Stored {
        self.published.join(CONFIG_FILE)
    }

    pub(crate) fn wrappings(&self) -> Stored {
        self.published.join("wrappings")
    }

    pub(crate) fn wrappings_of(&self, generation: u64) -> Stored {
        self.wrappings().join(format!("{generation:016x}"))
    }

    pub(crate) fn spares(&self) -> Stored {
        self.published.join("spare")
    }

    pub(crate) fn spare_of(&self, generation: u64) -> Stored {
        self.spares().join(format!("{generation:016x}"))
    }

    pub(crate) fn lock(&self) -> PathBeneath {
        self.root.join("lock")
    }

    pub(crate) fn lease(&self) -> PathBeneath {
        self.root.join("lease")
    }

    pub(crate) fn lease_file(&self, number: u64) -> PathBeneath {
        self.lease().join(format!("{number:016x}"))
    }

    pub(crate) fn probes(&self) -> PathBeneath {
        self.root.join("probes")
    }

    pub(crate) fn packs(&self) -> Stored {
        let placed = self.placed.clone();
        let placed = placed.map(|placed| Stored::root(placed, self.root.path()));
        placed.as_ref().unwrap_or(&self.published).join("packs")
    }

    /// The packs as they lie in places; `None` where none can.
    pub(crate) fn placed(&self) -> Option<&PlacedPacks> {
        self.placed.as_deref()
    }

    pub(crate) fn parity(&self) -> PathBeneath {
        self.root.join("parity")
    }

    pub(crate) fn parity_share(&self) -> PathBeneath {
        self.parity().join("percent")
    }

    pub(crate) fn quarantine(&self) -> Stored {
        self.published.join(QUARANTINE)
    }

    pub(crate) fn tails(&self) -> Landed {
        self.landing.join("tails")
    }

    pub(crate) fn records(&self) -> Stored {
        self.published.join("records")
    }

    pub(crate) fn tombstones(&self) -> Stored {
        self.published.join("tombstones")
    }

    pub(crate) fn all_given_up(&self) -> Stored {
        self.published.join("given-up")
    }

    pub(crate) fn pruned(&self) -> Stored {
        self.published.join("pruned")
    }

    pub(crate) fn positions(&self) -> Stored {
        self.published.join("positions")
    }

    pub(crate) fn scrubbed(&self) -> Stored {
        self.landing.stored().join("scrubbed")
    }

    pub(crate) fn condemned(&self) -> Stored {
        self.published.join("condemned")
    }

    pub(crate) fn superseded(&self) -> Stored {
        self.published.join("superseded")
    }

    pub(crate) fn sessions(&self) -> Stored {
        self.landing.stored().join("sessions")
    }

    pub(crate) fn tmp(&self) -> PathBeneath {
        self.root.join("tmp")
    }

    /// All folders on this computer that a repository has, besides those of single packs.
    pub(crate) fn folders(&self) -> Vec<PathBeneath> {
        let folders = [
            self.wrappings().file(),
            self.spares().file(),
            self.packs().file(),
            Some(self.parity()),
            self.quarantine().file(),
            self.tails().file(),
            self.records().file(),
            self.tombstones().file(),
            self.all_given_up().file(),
            self.condemned().file(),
            self.superseded().file(),
            self.pruned().file(),
            self.positions().file(),
            self.sessions().file(),
            Some(self.tmp()),
        ];
        folders.into_iter().flatten().collect()
    }

    pub(crate) fn pack(&self, name: &PackName) -> Stored {
        let [folder, name] = below(name);
        self.packs().join(folder).join(name)
    }

    /// Where a pack lies on this computer.
    ///
    /// # Errors
    /// [`RepositoryError::Refused`] if packs lie elsewhere.
    pub(crate) fn pack_file(&self, name: &PackName) -> Result<PathBeneath, RepositoryError> {
        let reason = "parity is kept only of packs that are files of this computer";
        let elsewhere = || RepositoryError::Refused { reason: reason.to_owned() };
        self.pack(name).file().ok_or_else(elsewhere)
    }

    /// Where parity is put aside: with its pack.
    pub(crate) fn quarantined_parity(&self, name: impl AsRef<Path>) -> PathBeneath {
        self.root.join(QUARANTINE).join(name)
    }

    pub(crate) fn pack_parity(&self, name: &PackName) -> PathBeneath {
        let [folder, name] = below(name);
        self.parity().join(folder).join(name)
    }

    pub(crate) fn payload(&self, tail: TailName) -> Landed {
        self.tails().join(format!("{}.{}.payload", tail.kind_word(), tail.number))
    }

    pub(crate) fn journal(&self, tail: TailName) -> Landed {
        self.tails().join(format!("{}.{}.journal", tail.kind_word(), tail.number))
    }

    pub(crate) fn record(&self, position: u64) -> Stored {
        self.records().join(record_file(position))
    }

    pub(crate) fn tombstone(&self, position: u64) -> Stored {
        self.tombstones().join(record_file(position))
    }

    pub(crate) fn given_up(&self, record: &RecordHash) -> Stored {
        self.all_given_up().join(record.to_string())
    }

    pub(crate) fn superseded_at(&self, position: u64, ending: &str) -> Stored {
        self.superseded().join(record_file(position) + ending)
    }

    pub(crate) fn condemned_pack(&self, pack: &PackName) -> Stored {
        self.condemned().join(pack.to_string())
    }

    pub(crate) fn session(&self, session: &SessionId) -> Stored {
        self.sessions().join(session.to_string())
    }

    /// How errors name this repository.
    pub(crate) fn place(&self) -> String {
        self.root.path().display().to_string()
    }

    pub(crate) fn no_repository(&self) -> RepositoryError {
        RepositoryError::NoRepository { place: self.place() }
    }

    /// The same of one that was erased then, if that is known.
    pub(crate) fn no_repository_since(&self, erased: Option<Erased>) -> RepositoryError {
        let place = format!("{}, which was erased{}", self.place(), since(erased));
        RepositoryError::NoRepository { place }
    }
}

/// When a repository was erased, in words.
pub(crate) fn since(erased: Option<Erased>) -> String {
    let time = erased.and_then(|erased| i64::try_from(erased.erased_s).ok());
    let time = time.and_then(|seconds| Timestamp::from_second(seconds).ok());
    time.map(|time| format!(" on {}", time.strftime("%Y-%m-%d"))).unwrap_or_default()
}

/// How something of a pack is found in a folder with one folder for each first byte.
fn below(name: &PackName) -> [String; 2] {
    let name = name.to_string();
    [name.get(..2).unwrap_or_default().to_owned(), name]
}

/// Whether a name is that of a folder of packs: two hexadecimal digits.
pub(crate) fn is_pack_folder(name: &str) -> bool {
    name.len() == 2 && is_hexadecimal(name)
}

/// Reads the name of a file that is named by a number: 16 hexadecimal digits.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    let is_number = name.len() == 16 && is_hexadecimal(name);
    is_number.then(|| u64::from_str_radix(name, 16).ok()).flatten()
}

/// The generations that files of a folder are named by, in ascending order.
pub(crate) fn generations_in(folder: &Stored) -> Result<Vec<u64>, RepositoryError> {
    let mut generations = Vec::new();
    for name in folder.names()? {
        let generation = name.to_str().and_then(number_of);
        // A folder is somebody else's.
        generations.extend(generation.filter(|_| !folder.join(&name).is_folder()));
    }
    Ok(generations)
}

/// Names one tail: what it holds, and the log position at which it was begun. No two tails of a repository ever
/// have one name, so that a writer who slept while another took over cannot touch the other's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TailName {
    /// Whether it holds nodes; else chunks.
    pub(crate) nodes: bool,
    /// A log position of its own, behind all that were given before.
    pub(crate) number: u64,
}

impl TailName {
    pub(crate) fn kind(self) -> BlockKind {
        if self.nodes { BlockKind::Nodes } else { BlockKind::Chunks }
    }

    fn kind_word(self) -> &'static str {
        if self.nodes { "nodes" } else { "chunks" }
    }

    /// Reads the name of a journal's file.
    pub(crate) fn of_journal(file: &str) -> Option<Self> {
        Self::of_front(file.strip_suffix(".journal")?)
    }

    /// Reads the name of a payload file.
    pub(crate) fn of_payload(file: &str) -> Option<Self> {
        Self::of_front(file.strip_suffix(".payload")?)
    }

    fn of_front(front: &str) -> Option<Self> {
        let (kind, number) = front.split_once('.')?;
        let nodes = match kind {
            "nodes" => true,
            "chunks" => false,
            _ => return None,
        };
        Some(Self { nodes, number: number.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_is_known_by_its_journal() {
        let layout = Layout::new(Path::new("/r"));
        for tail in [TailName { nodes: true, number: 0 }, TailName { nodes: false, number: 17 }] {
            let journal = layout.journal(tail);
            let name = journal.file_name().unwrap().to_str().unwrap();
            assert_eq!(TailName::of_journal(name), Some(tail));
        }
        for name in ["nodes.1.payload", "nodes.journal", "x.1.journal", "chunks.-1.journal", ""] {
            assert_eq!(TailName::of_journal(name), None, "{name}");
        }
    }
}
