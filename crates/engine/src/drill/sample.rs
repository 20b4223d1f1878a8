//! Choosing what a drill restores.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use holdall_format::SessionId;
use holdall_protocol::SessionPurpose;
use holdall_tree::{Cursor, Entry, EntryKind, PathKey};

use crate::error::is_damaged;
use crate::restore::{ChunkSource, Reader};
use crate::verify::stored_nodes;
use crate::{DamagedPath, EngineError, Run, Selected, Selection, Snapshot, UnlockedRepository};

/// A file of so many bytes is a large one.
const LARGE_BYTES: u64 = 1 << 20;
/// Large files that have together less than this part of the limit are timed with the small ones: too few to say how
/// long a byte takes.
const FEW: u64 = 64;

/// So many leaves that follow each other are chosen together: what lies beside each other is in one block, as in a restore of
/// everything. Of files far apart each would cost a block, and take several times as long.
const RUN: usize = 8;

/// How much a drill restores at most.
#[derive(Debug, Clone, Copy)]
pub struct DrillLimits {
    /// Entries that are looked at.
    pub items: u64,
    /// Bytes of files, without holes; three quarters of them for large files.
    pub bytes: u64,
}

impl Default for DrillLimits {
    fn default() -> Self {
        Self { items: 10_000, bytes: 1 << 30 }
    }
}

/// A part of a sample that is restored and timed by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrillPart {
    /// All but large files.
    Small,
    /// Large files.
    Large,
}

/// What a drill restores of a snapshot.
pub struct DrillSample {
    small: Part,
    large: Part,
    /// Bytes that it takes on a disk, without holes.
    pub stored_bytes: u64,
    /// Files that would have gone beyond the limits.
    pub left_out: u64,
    /// What of the snapshot could not be read while choosing.
    pub damaged: Vec<DamagedPath>,
}

#[derive(Default)]
pub(super) struct Part {
    /// By absolute path.
    pub(super) entries: Arc<BTreeMap<Vec<u8>, Entry>>,
    /// The directories that they lie in.
    above: Arc<HashSet<Vec<u8>>>,
}

impl DrillSample {
    /// Chooses, by a seed, of a snapshot. Attributes and extents of what is chosen are read.
    ///
    /// # Errors
    /// What keeps the repository from being read; [`EngineError::Interrupted`]. Damage is in the sample.
    pub fn choose(
        access: &UnlockedRepository,
        snapshot: &Snapshot,
        seed: &[u8; 32],
        limits: DrillLimits,
        run: &Run,
    ) -> Result<Self, EngineError> {
        let session = access.repository.open_session(&SessionPurpose::Read)?.session;
        let chosen = choose_in(access, session, snapshot, seed, limits, run);
        // What was read is read: a session that is not closed lapses.
        let _ = access.repository.close_session(&session);
        chosen
    }

    /// How many items and bytes of files a part has.
    pub fn amount(&self, part: DrillPart) -> (u64, u64) {
        let entries = &self.part(part).entries;
        (entries.len() as u64, entries.values().map(Entry::counted_bytes).sum())
    }

    /// What a restore is to select that restores a part.
    pub fn selection(&self, part: DrillPart) -> Selection {
        let Part { entries, above } = self.part(part);
        let (entries, above) = (Arc::clone(entries), Arc::clone(above));
        Box::new(move |path, _| match () {
            () if entries.contains_key(path) => Selected::Yes,
            () if above.contains(path) => Selected::Below,
            () => Selected::No,
        })
    }

    pub(super) fn part(&self, part: DrillPart) -> &Part {
        match part {
            DrillPart::Small => &self.small,
            DrillPart::Large => &self.large,
        }
    }
}

impl Part {
    fn of(entries: BTreeMap<Vec<u8>, Entry>) -> Self {
        let mut above = HashSet::new();
        for path in entries.keys() {
            let slashes = path.iter().enumerate().rev().filter(|(_, byte)| **byte == b'/');
            for (at, _) in slashes {
                if !above.insert(path[..at].to_vec()) {
                    break;
                }
            }
        }
        above.insert(b"/".to_vec());
        Self { entries: Arc::new(entries), above: Arc::new(above) }
    }
}

fn choose_in(
    access: &UnlockedRepository,
    session: SessionId,
    snapshot: &Snapshot,
    seed: &[u8; 32],
    limits: DrillLimits,
    run: &Run,
) -> Result<DrillSample, EngineError> {
    let chunks = ChunkSource::new(access, session);
    let large_bytes = limits.bytes / 4 * 3;
    let mut choice = Choice {
        reader: Reader::new(access, session, &chunks)?,
        snapshot,
        looked_at: 0,
        room: (limits.bytes - large_bytes, large_bytes),
        small: BTreeMap::new(),
        large: BTreeMap::new(),
        left_out: 0,
        damaged: Vec::new(),
    };
    let cursor = || Cursor::new(stored_nodes(access, session), snapshot.root);
    let mut leaves = Vec::new();
    let mut walk = cursor();
    loop {
        run.check()?;
        match walk.next_leaf().map_err(EngineError::from) {
            Ok(Some(first)) => leaves.push(first),
            Ok(None) => break,
            Err(error) => {
                choice.damaged(leaves.last().unwrap_or(&PathKey::root()), error)?;
                walk.skip_unreadable();
            }
        }
    }
    let runs: Vec<&PathKey> = leaves.iter().step_by(RUN).collect();
    let mut order: Vec<usize> = (0..runs.len()).collect();
    order.sort_by_cached_key(|&at| *blake3::keyed_hash(seed, runs[at].as_bytes()).as_bytes());
    for at in order {
        run.check()?;
        if choice.looked_at >= limits.items {
            break;
        }
        choice.run_of_leaves(cursor(), runs[at], runs.get(at + 1).copied(), limits.items)?;
    }
    Ok(choice.sample(limits))
}

struct Choice<'a> {
    reader: Reader<'a>,
    snapshot: &'a Snapshot,
    looked_at: u64,
    /// Bytes that small and large files may have yet.
    room: (u64, u64),
    small: BTreeMap<Vec<u8>, Entry>,
    large: BTreeMap<Vec<u8>, Entry>,
    left_out: u64,
    damaged: Vec<DamagedPath>,
}

impl Choice<'_> {
    /// Takes what is in the leaves from the one that begins with `first` on, up to `after`.
    fn run_of_leaves<S>(
        &mut self,
        mut cursor: Cursor<S>,
        first: &PathKey,
        after: Option<&PathKey>,
        most_items: u64,
    ) -> Result<(), EngineError>
    where
        S: holdall_tree::NodeSource<Error = EngineError>,
    {
        let mut last = first.clone();
        if let Err(error) = cursor.seek(first) {
            return self.damaged(first, error.into());
        }
        while self.looked_at < most_items {
            match cursor.next().map_err(EngineError::from) {
                Ok(Some((path, _))) if after.is_some_and(|after| path >= *after) => break,
                Ok(Some((path, entry))) => {
                    self.entry(&path, entry)?;
                    last = path;
                }
                Ok(None) => break,
                Err(error) => return self.damaged(&last, error),
            }
        }
        Ok(())
    }

    fn entry(&mut self, path: &PathKey, mut entry: Entry) -> Result<(), EngineError> {
        self.looked_at += 1;
        if path.is_root() {
            return Ok(());
        }
        let is_large = entry.kind == EntryKind::File && entry.size >= LARGE_BYTES;
        let bytes = entry.content.len_bytes();
        let room = if is_large { &mut self.room.1 } else { &mut self.room.0 };
        let Some(left) = room.checked_sub(bytes) else {
            self.left_out += 1;
            return Ok(());
        };
        *room = left;
        let attributes = self.reader.bring_in_attributes(&mut entry);
        if let Err(error) = attributes.and_then(|()| self.reader.bring_in_extents(&mut entry)) {
            return self.damaged(path, error);
        }
        let part = if is_large { &mut self.large } else { &mut self.small };
        part.insert(path.to_absolute(), entry);
        Ok(())
    }

    /// Notes damage, and gives back what is none.
    fn damaged(&mut self, path: &PathKey, error: EngineError) -> Result<(), EngineError> {
        if !is_damaged(&error) {
            return Err(error);
        }
        let (snapshot, path) = (self.snapshot.id.to_string(), path.to_absolute());
        self.damaged.push(DamagedPath { snapshot, path, reason: error.to_string() });
        Ok(())
    }

    fn sample(mut self, limits: DrillLimits) -> DrillSample {
        let of = |entries: &BTreeMap<_, Entry>| -> u64 {
            entries.values().map(|entry| entry.content.len_bytes()).sum()
        };
        let stored_bytes = of(&self.small) + of(&self.large);
        if of(&self.large) < limits.bytes / FEW {
            self.small.append(&mut self.large);
        }
        let (small, large) = (Part::of(self.small), Part::of(self.large));
        let (left_out, damaged) = (self.left_out, self.damaged);
        DrillSample { small, large, stored_bytes, left_out, damaged }
    }
}
