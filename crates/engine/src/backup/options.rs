//! What to back up, and how.

use std::collections::BTreeSet;
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use super::changes::Changes;
use super::produced::Producer;
use crate::ExcludeRules;

/// One source: a path as it is recorded, and where it is read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// The absolute path that the snapshot records.
    pub path: Vec<u8>,
    /// The absolute path that is read: the same, or that of a file system snapshot. A link to a directory that
    /// ends with [`FOLLOWED`] stands for that directory. Empty for one whose content a program gives.
    pub read_at: Vec<u8>,
}

/// What has a link followed.
pub const FOLLOWED: &[u8] = b"/.";

/// What to back up, and how.
#[derive(Debug, Clone)]
pub struct BackupOptions {
    /// The sources, in any order; those within others are merged.
    pub sources: Vec<Source>,
    /// Those of the sources that are pipes, by where they are recorded: each is read to its end, once, and stored as
    /// a file. They are open so that reading never blocks.
    pub pipes: Vec<(Vec<u8>, Arc<File>)>,
    /// Those of the sources whose content a program gives, by where they are recorded: nothing is looked at there.
    pub producers: Vec<(Vec<u8>, Arc<dyn Producer>)>,
    /// Sources of which nothing may be in the snapshot, by where they are recorded.
    pub accept_empty: Vec<Vec<u8>>,
    /// Sources that had something in a run before: [`Run::take_filled`](crate::Run) gave them. If one has nothing now,
    /// that is told.
    pub filled_before: BTreeSet<Vec<u8>>,
    /// Tags of the snapshot.
    pub tags: Vec<String>,
    /// The host's name, part of the series.
    pub host: String,
    /// Who runs the backup, for display.
    pub user: String,
    /// What is left out.
    pub exclude: ExcludeRules,
    /// The patterns as they were given, for display.
    pub exclude_patterns: Vec<String>,
    /// Whether to stay on the file systems of the sources.
    pub one_file_system: bool,
    /// Whether to read files that seem unchanged.
    pub read_all: bool,
    /// What may have changed since the last snapshot; nothing if all is to be walked.
    pub changes: Option<Changes>,
    /// Whether to only count what would be done.
    pub dry_run: bool,
    /// Requests with blocks at the same time, from 1 to 8.
    pub streams: usize,
    /// Whether every block is opened, and its ids compared, before it leaves.
    pub self_check: bool,
    /// How often a checkpoint is written.
    pub checkpoint_every: Duration,
    /// Threads for reading, and for sealing: the computer's cores.
    pub cores: usize,
    /// A change this close to the moment of reading may be followed by one that shows the same time:
    /// what changed then is read again next time. Below zero, which only tests may want, nothing is.
    pub settling_seconds: i64,
    /// The time now by the client's clock, in nanoseconds since 1970 UTC, for display.
    pub client_time_ns: i64,
}

impl BackupOptions {
    /// Options for these sources, with everything else as most people want it.
    pub fn new(sources: Vec<Source>, host: String) -> Self {
        Self {
            sources,
            pipes: Vec::new(),
            producers: Vec::new(),
            accept_empty: Vec::new(),
            filled_before: BTreeSet::new(),
            tags: Vec::new(),
            host,
            user: String::new(),
            exclude: ExcludeRules::default(),
            exclude_patterns: Vec::new(),
            one_file_system: false,
            read_all: false,
            changes: None,
            dry_run: false,
            streams: 4,
            self_check: true,
            checkpoint_every: Duration::from_secs(300),
            cores: 2,
            settling_seconds: 2,
            client_time_ns: 0,
        }
    }
}
