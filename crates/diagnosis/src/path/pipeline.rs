//! Real backups and restores, into a temporary repository that is gone afterwards.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use holdall_engine::{
    BackupOptions, ExcludeRules, Patterns, RestoreOptions, Run, Source, UnlockedRepository,
    find_snapshot,
};
use holdall_lab::path::{SCRATCH_PREFIX, Tree};
use holdall_lab::report::Moment;
use holdall_lab::{LabError, Scratch};
use holdall_sys::memory;

use super::PathError;
use super::client::Client;
use super::looks::Looks;
use super::ran::Ran;
use super::target::Target;
use super::wire::{Through, Wire};
use crate::{UsageCounters, judge};

/// Where a file system in memory usually is.
pub const MEMORY_DIR: &str = "/dev/shm";
/// No more than this part of the computer's memory is taken for a repository.
const MEMORY_SHARE: u64 = 8;
/// A file system in memory that leaves less room holds no repository: that of a container usually has 64 MB,
/// half of which may be taken, and what many tiny files need beside their content may be more.
const LEAST_MEMORY_BYTES: u64 = 192 << 20;
/// Room for this many bytes of a source is needed: a copy, its repository, what is restored.
const ROOM_SHARE: u64 = 4;
/// A slow wire is not kept busy for longer than this by one backup, more or less.
const WIRE_SECONDS: f64 = 12.0;
/// Less than this says nothing.
const LEAST_BYTES: u64 = 4 << 20;
/// How often it is looked how far a run is.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Items of a backup take about so much in a repository beside their content.
const ITEM_BYTES: u64 = 1024;
/// A repository and a client's state without any take less.
const EMPTY_BYTES: u64 = 8 << 20;

/// What is backed up.
pub(super) struct Subject<'a> {
    /// What a table says behind `first backup`.
    pub(super) name: String,
    /// Where it begins.
    pub(super) starts: &'a [PathBuf],
    /// The tree and its folder, if it was made to be measured.
    pub(super) made: Option<(&'a Tree, &'a Path)>,
}

/// How backups are made here.
pub(super) struct Pipeline<'a, C> {
    client: &'a C,
    scratch: &'a Scratch,
    wire: Option<(Arc<Wire>, f64)>,
    /// Where repositories lie, if not on the disk that is measured.
    memory: Option<Scratch>,
}

impl<'a, C: Client> Pipeline<'a, C> {
    /// Tries the wire, if there is one.
    ///
    /// # Errors
    /// What the server says.
    pub(super) fn new(
        client: &'a C,
        scratch: &'a Scratch,
        target: &Target,
    ) -> Result<Self, PathError> {
        let Some(far) = target.server() else {
            return Ok(Self { client, scratch, wire: None, memory: None });
        };
        let (wire, rate) = Wire::tried(far.measured())?;
        let in_memory = memory::is_ram_disk(Path::new(MEMORY_DIR)).is_ok_and(|is_ram| is_ram);
        let made = in_memory.then(|| Scratch::make(Path::new(MEMORY_DIR)).ok()).flatten();
        // Every run sweeps that folder at its beginning, and tells of it.
        let memory = made.map(|(scratch, _)| scratch);
        let memory = memory.filter(|scratch| scratch.room_bytes() >= LEAST_MEMORY_BYTES);
        Ok(Self { client, scratch, wire: Some((Arc::new(wire), rate)), memory })
    }

    /// The wire, if there is one.
    pub(super) fn wire(&self) -> Option<&Arc<Wire>> {
        self.wire.as_ref().map(|(wire, _)| wire)
    }

    /// Whether the temporary repository lies in memory.
    pub(super) fn is_in_memory(&self) -> bool {
        self.memory.is_some()
    }

    /// How much of a source may be measured: what was wished, unless room or wire have less.
    ///
    /// # Errors
    /// `NoRoom` where that is next to nothing.
    pub(super) fn most_bytes(&self, wished: u64) -> Result<u64, PathError> {
        let room = self.scratch.room_bytes() / ROOM_SHARE;
        let memory = self.memory.as_ref().map(|scratch| {
            let total = memory::total_bytes().unwrap_or_default() / MEMORY_SHARE;
            (scratch.room_bytes() / 2).min(total)
        });
        let wire = self.wire.as_ref().map(|(_, rate)| (rate * WIRE_SECONDS) as u64);
        let wire = wire.map(|bytes| bytes.max(LEAST_BYTES));
        let most = [Some(room), memory, wire].into_iter().flatten().fold(wished, u64::min);
        // A wish may be as small as it likes.
        if most < LEAST_BYTES.min(wished) {
            self.scratch.claim(LEAST_BYTES * ROOM_SHARE)?;
        }
        Ok(most)
    }

    /// Makes a repository for a series of backups of so much.
    ///
    /// # Errors
    /// `NoRoom`, or what keeps it from being made.
    pub(super) fn begin(&self, items: u64, bytes: u64) -> Result<Series<'_, C>, PathError> {
        let repository_room = EMPTY_BYTES + bytes + bytes / 16 + items * ITEM_BYTES;
        let restore_room = bytes + items * 4096;
        let scratch = self.memory.as_ref().unwrap_or(self.scratch);
        scratch.claim(repository_room)?;
        self.scratch.claim(restore_room)?;
        let folder = scratch.path().join("backup");
        let access = self.repository(&folder)?;
        Ok(Series { pipeline: self, scratch, access, folder, repository_room, restore_room })
    }

    fn repository(&self, folder: &Path) -> Result<UnlockedRepository, PathError> {
        std::fs::create_dir(folder)?;
        let through = |repository| match self.wire() {
            Some(wire) => Arc::new(Through::new(repository, Arc::clone(wire))),
            None => repository,
        };
        self.client.repository(folder, &through).map_err(PathError::Client)
    }
}

/// Backups into one repository.
pub(super) struct Series<'a, C> {
    pipeline: &'a Pipeline<'a, C>,
    scratch: &'a Scratch,
    access: UnlockedRepository,
    folder: PathBuf,
    repository_room: u64,
    restore_room: u64,
}

impl<C: Client> Series<'_, C> {
    /// Where the repository lies.
    pub(super) fn repository(&self) -> PathBuf {
        self.folder.join("repository")
    }

    /// Backs it up.
    ///
    /// # Errors
    /// What fails a backup.
    pub(super) fn backup(&mut self, subject: &Subject<'_>) -> Result<Ran, PathError> {
        let client = self.pipeline.client;
        let options = client.in_environment(options(subject)?);
        let run = client.run();
        let before = UsageCounters::now(&run);
        let work = || holdall_engine::backup(&self.access, &options, &run);
        let (done, timeline) = self.watch(&run, work);
        let usage = UsageCounters::now(&run).since(&before);
        let summary = done?;
        let verdict = judge(summary.items, summary.bytes, summary.seconds, summary.stages, &usage);
        Ok(Ran {
            seconds: summary.seconds,
            items: summary.items,
            bytes: summary.bytes,
            stored_bytes: summary.data_stored,
            sent_bytes: summary.bytes_sent,
            problems: summary.problems,
            verdict,
            timeline,
            cache: None,
        })
    }

    /// Restores the last backup into a folder, which is removed.
    ///
    /// # Errors
    /// What fails a restore.
    pub(super) fn restore(&mut self) -> Result<Ran, PathError> {
        let target = self.pipeline.scratch.path().join("restore");
        let listed = holdall_engine::snapshots(&self.access)?.snapshots;
        let snapshot = find_snapshot(&listed, self.access.machine(), "latest", None)?;
        let (run, options) = (self.pipeline.client.run(), RestoreOptions::default());
        let before = UsageCounters::now(&run);
        let work =
            || holdall_engine::restore(&self.access, snapshot, None, &target, &options, &run);
        let (done, timeline) = self.watch(&run, work);
        let usage = UsageCounters::now(&run).since(&before);
        let summary = done?;
        holdall_sys::removal::remove_tree(&target)?;
        let (items, seconds) = (summary.files + summary.dirs, summary.duration_seconds);
        let verdict = judge(items, summary.bytes, seconds, summary.stages, &usage);
        Ok(Ran {
            seconds,
            items,
            bytes: summary.bytes,
            stored_bytes: 0,
            sent_bytes: 0,
            problems: summary.problems,
            verdict,
            timeline,
            cache: None,
        })
    }

    /// Removes the repository.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn end(self) -> Result<(), PathError> {
        let Self { pipeline, scratch, access, folder, repository_room, restore_room } = self;
        drop(access);
        let what = || format!("removing {}", folder.display());
        holdall_sys::removal::remove_tree(&folder)
            .map_err(|source| LabError::Io { what: what(), source })?;
        scratch.release(repository_room);
        pipeline.scratch.release(restore_room);
        Ok(())
    }

    /// Runs something, and looks at it from time to time.
    fn watch<R>(&self, run: &Run, work: impl FnOnce() -> R) -> (R, Vec<Moment>) {
        let (done, ending) = channel::<()>();
        let wire = self.pipeline.wire().map(Arc::as_ref);
        std::thread::scope(|scope| {
            let looking = scope.spawn(move || {
                let mut looks = Looks::begin(run, wire);
                while ending.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
                    looks.look();
                }
                looks.moments
            });
            let result = self.pipeline.client.watched(run, work);
            drop(done);
            (result, looking.join().unwrap_or_default())
        })
    }
}

fn options(subject: &Subject<'_>) -> Result<BackupOptions, PathError> {
    let source = |path: &PathBuf| {
        let path = path.as_os_str().as_bytes().to_vec();
        Source { path: path.clone(), read_at: path }
    };
    let sources = subject.starts.iter().map(source).collect();
    let mut options = BackupOptions::new(sources, holdall_sys::host::host_name());
    options.one_file_system = true;
    if subject.made.is_some() {
        // Nobody else writes there: what was made a moment ago is not read again for that.
        options.settling_seconds = -1;
    } else {
        let mut patterns = Patterns::below(b"/");
        patterns.add(format!("{SCRATCH_PREFIX}*/").as_bytes(), false)?;
        options.exclude = ExcludeRules { patterns, ..ExcludeRules::default() };
    }
    Ok(options)
}
