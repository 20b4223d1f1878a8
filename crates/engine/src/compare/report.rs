//! What a comparison is asked and what it found.

use holdall_sys::Timestamp;

/// Lists of a report keep this many paths; what is beyond is counted.
const KEPT: usize = 1000;

/// How to compare.
#[derive(Clone, Copy)]
pub struct CompareOptions<'a> {
    /// When the backup began: what changed since, or up to two seconds before, is named apart.
    pub since: Timestamp,
    /// Says which absolute paths of the source the backup left out.
    pub left_out: &'a (dyn Fn(&[u8]) -> bool + Sync),
}

/// One difference between the source and the restored tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The path below the compared directories, any bytes; empty for the directories themselves.
    pub path: Vec<u8>,
    /// What differs.
    pub what: String,
}

/// What a comparison found. Lists keep the first thousand paths, counts know them all.
#[derive(Debug, Clone, Default)]
pub struct CompareReport {
    /// Whether there is no difference, other than in what changed meanwhile or cannot be read.
    pub identical: bool,
    /// Differences.
    pub differences: Vec<Difference>,
    /// How many differences there are.
    pub difference_count: u64,
    /// Paths that differ because they changed or vanished since the backup began.
    pub changed_meanwhile: Vec<Vec<u8>>,
    /// How many of those there are.
    pub changed_count: u64,
    /// Paths of the source that this user cannot read, and that a backup therefore lacks.
    pub unreadable: Vec<Vec<u8>>,
    /// How many of those there are.
    pub unreadable_count: u64,
    /// Entries compared.
    pub items: u64,
    /// Bytes of content compared, without holes.
    pub bytes: u64,
}

impl CompareReport {
    pub(super) fn differs(&mut self, path: Vec<u8>, what: String) {
        self.difference_count += 1;
        if self.differences.len() < KEPT {
            self.differences.push(Difference { path, what });
        }
    }

    pub(super) fn changed(&mut self, path: Vec<u8>) {
        self.changed_count += 1;
        if self.changed_meanwhile.len() < KEPT {
            self.changed_meanwhile.push(path);
        }
    }

    pub(super) fn not_readable(&mut self, path: Vec<u8>) {
        self.unreadable_count += 1;
        if self.unreadable.len() < KEPT {
            self.unreadable.push(path);
        }
    }
}
