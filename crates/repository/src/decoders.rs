//! The decoders of the files that a repository keeps for itself, for tests and fuzz targets that feed
//! them hostile bytes without building a repository around each of them.
//!
//! Only there with the feature `decoders`, so that nothing of it is in a program. Where a decoder is
//! told beforehand what its file is about, it is told the constants that stand here.

use std::path::Path;
use std::time::{Duration, SystemTime};

use holdall_format::{BlockKind, ObjectId, PackName, RepositoryId};
use holdall_sys::Root;

use crate::index::manifest::Manifest;
use crate::index::page_cache::PageCache;
use crate::index::run::{self, Run};
use crate::opening::lease;
use crate::opening::probe::Probed;
use crate::opening::session::Session;
use crate::parity::head::Head;
use crate::state_files::condemned::Condemned;
use crate::state_files::scrub_round::ScrubRound;
use crate::state_files::superseded::Mark;
use crate::tails::journal;

/// The repository of every file.
pub const REPOSITORY: RepositoryId = RepositoryId::from_bytes([1; 16]);
/// The pack that a mark or a parity head is about.
pub const PACK: PackName = PackName::from_bytes([3; 32]);
/// The number that a file has for its name.
pub const NUMBER: u64 = 7;

/// What a journal of the decoders here is of.
const JOURNAL_KIND: BlockKind = BlockKind::Chunks;

/// A kind of file that is read as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredFile {
    /// `condemned/<pack name>`, of [`PACK`].
    CondemnMark,
    /// The manifest of the index.
    IndexManifest,
    /// The front of a run of the index, which has [`NUMBER`].
    IndexRunFront,
    /// `tails/chunks.<n>.journal`.
    Journal,
    /// A head in `parity/<xx>/<pack name>`, of [`PACK`].
    ParityHead,
    /// `probes`.
    Probes,
    /// `scrubbed`.
    ScrubRound,
    /// `sessions/<session>`.
    Session,
    /// `superseded/<log position>.held`, with [`NUMBER`] for its position.
    SupersededMark,
}

impl StoredFile {
    /// Reads a file, and gives what is written of what was read; `None` if it is refused.
    ///
    /// Of a journal, entries that are not whole are left out.
    pub fn rewritten(self, bytes: &[u8]) -> Option<Vec<u8>> {
        let text = || String::from_utf8_lossy(bytes);
        Some(match self {
            Self::CondemnMark => Condemned::decode(bytes, &PACK).ok()?.encode(&PACK),
            Self::IndexManifest => Manifest::decode(bytes, &REPOSITORY).ok()?.encode(&REPOSITORY),
            Self::IndexRunFront => run_front(bytes)?,
            Self::Journal => sound_journal(bytes)?,
            Self::ParityHead => Head::decode(bytes, &PACK).ok()?.encode(&PACK),
            Self::Probes => Probed::decode(&text())?.encode().into_bytes(),
            Self::ScrubRound => ScrubRound::decode(&text())?.encode().into_bytes(),
            Self::Session => Session::decode(bytes).ok()?.encode(),
            Self::SupersededMark => Mark::decode(bytes, NUMBER, true).ok()?.encode(),
        })
    }
}

fn run_front(bytes: &[u8]) -> Option<Vec<u8>> {
    let entries = run::decode_front(bytes, NUMBER, &REPOSITORY).ok()?;
    let mut front = run::encode_front(NUMBER, &REPOSITORY, entries);
    // The rest of its page is zeros, which nobody reads.
    front.truncate(run::FRONT_BYTES);
    Some(front)
}

fn sound_journal(bytes: &[u8]) -> Option<Vec<u8>> {
    let scan = journal::scan(bytes, &REPOSITORY, JOURNAL_KIND).ok()?;
    let mut out = journal::encode_header(&REPOSITORY, JOURNAL_KIND, &scan.key);
    for block in scan.entries.iter().filter_map(|found| found.block.as_ref()) {
        let durable = out.len() as u64;
        journal::encode_entry(&mut out, &scan.key, block, durable);
    }
    Some(out)
}

/// How many bytes are made room for by what a parity head begins with; `None` if it is refused.
pub fn parity_head_bytes(front: &[u8]) -> Option<usize> {
    Head::len_of_front(front).ok()
}

/// How whoever holds the repository is named by a lease file, for people.
pub fn lease_holder(bytes: &[u8]) -> String {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 31);
    lease::named(&String::from_utf8_lossy(bytes), now, Duration::ZERO)
}

/// Puts a run of the index with [`NUMBER`] into `folder`, opens it and looks for `ids`, which ascend:
/// how many entries are found. `None` if it is refused, or cannot be written.
pub fn found_in_run(folder: &Path, bytes: &[u8], ids: &[ObjectId]) -> Option<usize> {
    let folder = Root::at(folder);
    std::fs::write(run::run_path(&folder, NUMBER).path(), bytes).ok()?;
    let run = Run::open(&folder, NUMBER, &REPOSITORY).ok()?;
    let mut found = 0;
    run.find(&PageCache::default(), ids, &mut |_, _, _| found += 1).ok()?;
    Some(found)
}
