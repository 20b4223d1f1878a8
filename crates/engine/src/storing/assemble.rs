//! Assembling: results are taken in order; entries become the new tree, and everything that is to
//! be stored goes on.

use std::time::{Duration, Instant};

use bytes::Bytes;
use crossbeam_channel::Receiver;
use holdall_crypto::{RecordSecret, Sealer};
use holdall_format::{RecordHash, RecordKind, SeriesId, SessionId};
use holdall_tree::{BuildError, BuiltNode, Entry, EntryKind, NodeKind, PathKey, Root, TreeBuilder};

use super::ask::{Gather, Wish};
use super::meters::StoringMeters;
use super::piece::{AdoptedLeaf, LeftOut, Piece, Settled};
use super::shared::Shared;
use crate::cache::leaf_cache::NewLeaves;
use crate::item_fate::ItemFate;
use crate::records::record::{ChainEnd, NewRecord, publish};
use crate::run::Amount;
use crate::{EngineError, UnlockedRepository};

/// A number that counts from 0, and the pieces that come under it, a few at a time.
pub(crate) type Results = (u64, Receiver<Vec<Piece>>);

/// A snapshot that was made.
pub(crate) struct Assembled {
    /// The new snapshot; `None` if it was only counted.
    pub(crate) snapshot_id: Option<RecordHash>,
    /// The record as the repository stored it, with its receipt.
    pub(crate) stored_record: Bytes,
    /// What is in it.
    pub(crate) counts: Counts,
}

/// Entries, by how they compare with the parent snapshot's.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) files_new: u64,
    pub(crate) files_changed: u64,
    pub(crate) files_unmodified: u64,
    pub(crate) dirs_new: u64,
    pub(crate) dirs_changed: u64,
    pub(crate) dirs_unmodified: u64,
    pub(crate) items: u64,
    /// Bytes of all files, with holes.
    pub(crate) bytes: u64,
    /// The same of those that are new or changed.
    pub(crate) bytes_not_kept: u64,
    /// Leaves of the parent that were taken over whole.
    pub(crate) leaves_adopted: u64,
    /// Paths that rules leave out; what lies below them is not counted.
    pub(crate) items_left_out: u64,
    /// Of these, files that are too large.
    pub(crate) files_too_large: u64,
    /// Their bytes.
    pub(crate) bytes_too_large: u64,
}

/// The assembling thread.
pub(super) struct Assembler<'a> {
    pub(super) access: &'a UnlockedRepository,
    pub(super) shared: &'a Shared<'a>,
    pub(super) meters: &'a StoringMeters,
    pub(super) gather: Gather<'a>,
    pub(super) builder: TreeBuilder,
    pub(super) leaves: NewLeaves,
    pub(super) counts: Counts,
    pub(super) records: Records,
    /// Whether to only count.
    pub(super) dry_run: bool,
    /// How often everything was flushed.
    pub(super) flushes: u64,
    pub(super) uncounted: Uncounted,
}

/// What was assembled and is not done yet: it is when the repository has it.
#[derive(Default)]
pub(super) struct Uncounted {
    /// Entries, and content that lies in them; the next object that is wanted stands for them, since it goes
    /// with what they lie in or just before.
    entries: Amount,
    /// Bytes of the next entry's content that chunks before it stand for.
    in_chunks: u64,
}

impl Uncounted {
    /// What a chunk of so many bytes stands for.
    fn chunk(&mut self, bytes: u64) -> Amount {
        self.in_chunks += bytes;
        let mut stands_for = std::mem::take(&mut self.entries);
        stands_for.bytes = stands_for.bytes.saturating_add(bytes);
        stands_for
    }

    /// An entry, without what its chunks stand for.
    fn entry(&mut self, entry: &Entry) -> Amount {
        let in_chunks = std::mem::take(&mut self.in_chunks);
        Amount { items: 1, bytes: entry.counted_bytes().saturating_sub(in_chunks) }
    }
}

/// Everything that a record needs but its tree.
pub(super) struct Records {
    pub(super) session: SessionId,
    pub(super) chain: ChainEnd,
    pub(super) series: SeriesId,
    pub(super) secret: RecordSecret,
    pub(super) pinned: bool,
    pub(super) sealer: Sealer,
    pub(super) checkpoint_every: Duration,
    pub(super) last_checkpoint: Instant,
}

impl Assembler<'_> {
    /// Takes all results in order and commits the snapshot: the body of the assembling thread.
    ///
    /// # Errors
    /// The first failure of any stage; then nothing was committed after the last checkpoint.
    pub(super) fn run(mut self, results: &Receiver<Results>) -> Result<Assembled, EngineError> {
        while let Ok((number, pieces)) = self.meters.assemble.waiting_in(|| results.recv()) {
            self.shared.budget.turn(number);
            while let Ok(pieces) = self.meters.assemble.waiting_in(|| pieces.recv()) {
                for piece in pieces {
                    self.piece(piece)?;
                }
            }
            let due = self.records.last_checkpoint.elapsed() >= self.records.checkpoint_every;
            if due && !self.dry_run {
                self.checkpoint()?;
            }
        }
        self.shared.check()?;
        match self.dry_run {
            true => Ok(self.assembled(Bytes::new())),
            false => self.commit(),
        }
    }

    fn piece(&mut self, piece: Piece) -> Result<(), EngineError> {
        match piece {
            Piece::Chunk(chunk) => {
                let stands_for = self.uncounted.chunk(chunk.bytes.len() as u64);
                self.gather.want(Wish::Chunk(chunk), stands_for)
            }
            Piece::Node(node) => {
                let stands_for = std::mem::take(&mut self.uncounted.entries);
                self.gather.want(Wish::Node(node), stands_for)
            }
            Piece::Entry { path, entry, change } => {
                if self.dry_run || self.push(&path, &entry)? {
                    self.leaves.list(&path, &entry);
                    let change = change.settle(&entry);
                    self.tell(&path, change.fate());
                    self.count(&entry, change);
                }
                Ok(())
            }
            Piece::Leaf(leaf) => self.adopt(*leaf),
            Piece::LeftOut(left_out) => {
                self.leave_out(&left_out);
                Ok(())
            }
        }
    }

    /// Adds an entry to the new tree, and says whether it is there: one that a tree cannot have is a
    /// problem of its path, and not of all others.
    fn push(&mut self, path: &PathKey, entry: &Entry) -> Result<bool, EngineError> {
        let (builder, leaves) = (&mut self.builder, Some(&mut self.leaves));
        let mut sink = node_sink(self.shared, &mut self.gather, &mut self.uncounted, leaves);
        let reason = match builder.push(path, entry, &mut sink) {
            Err(BuildError::InvalidEntry { reason }) => reason,
            Err(BuildError::OutOfOrder) => "it came twice, or out of order",
            pushed => return Ok(pushed.map(|()| true)?),
        };
        drop(sink);
        self.uncounted.in_chunks = 0;
        self.shared.run.problem(&path.to_absolute(), format!("not stored: {reason}"));
        Ok(false)
    }

    fn adopt(&mut self, adopted: AdoptedLeaf) -> Result<(), EngineError> {
        let AdoptedLeaf { leaf, known } = adopted;
        let (id, items, bytes) = (leaf.id, leaf.items, leaf.bytes);
        let dirs = u64::from(known.dirs);
        let counts = &mut self.counts;
        counts.dirs_unmodified += dirs;
        counts.files_unmodified += items.saturating_sub(dirs);
        counts.items += items;
        counts.leaves_adopted += 1;
        counts.bytes = counts.bytes.saturating_add(bytes);
        self.shared.run.advance(items, bytes);
        if self.dry_run {
            return Ok(());
        }
        let (builder, leaves) = (&mut self.builder, Some(&mut self.leaves));
        let mut sink = node_sink(self.shared, &mut self.gather, &mut self.uncounted, leaves);
        builder.push_leaf(leaf, &mut sink)?;
        drop(sink);
        self.leaves.add(&id, Some(known));
        Ok(())
    }

    fn leave_out(&mut self, LeftOut { path, rule, too_large_bytes }: &LeftOut) {
        let counts = &mut self.counts;
        counts.items_left_out += 1;
        counts.files_too_large += u64::from(too_large_bytes.is_some());
        counts.bytes_too_large =
            counts.bytes_too_large.saturating_add(too_large_bytes.unwrap_or(0));
        self.tell(path, ItemFate::LeftOut(rule));
    }

    /// Tells what became of a path, if anybody wants to know.
    fn tell(&self, path: &PathKey, fate: ItemFate<'_>) {
        if let Some(watcher) = self.shared.run.items_watcher() {
            watcher.tell(&path.to_absolute(), fate);
        }
    }

    fn count(&mut self, entry: &Entry, change: Settled) {
        let counts = &mut self.counts;
        let counter = match (entry.kind == EntryKind::Directory, change) {
            (true, Settled::New) => &mut counts.dirs_new,
            (true, Settled::Changed) => &mut counts.dirs_changed,
            (true, Settled::Unmodified) => &mut counts.dirs_unmodified,
            (false, Settled::New) => &mut counts.files_new,
            (false, Settled::Changed) => &mut counts.files_changed,
            (false, Settled::Unmodified) => &mut counts.files_unmodified,
        };
        *counter += 1;
        counts.items += 1;
        counts.bytes = counts.bytes.saturating_add(entry.counted_bytes());
        if change != Settled::Unmodified {
            counts.bytes_not_kept = counts.bytes_not_kept.saturating_add(entry.counted_bytes());
        }
        let amount = self.uncounted.entry(entry);
        match self.dry_run || change == Settled::Unmodified {
            true => self.shared.run.done(amount),
            false => self.uncounted.entries += amount,
        }
    }

    /// Publishes what there is so far, so that a run that is cut goes on from here.
    fn checkpoint(&mut self) -> Result<(), EngineError> {
        let so_far = self.builder.clone();
        let mut sink = node_sink(self.shared, &mut self.gather, &mut self.uncounted, None);
        let root = so_far.finish(&mut sink)?;
        drop(sink);
        self.flush()?;
        self.publish(RecordKind::Checkpoint, &root)?;
        self.records.last_checkpoint = Instant::now();
        Ok(())
    }

    fn commit(mut self) -> Result<Assembled, EngineError> {
        let (keys, config) = (&self.access.keys, &self.access.config);
        let empty = TreeBuilder::new(keys.ids().clone(), *keys.boundary_key(), config.leaf_bits);
        let builder = std::mem::replace(&mut self.builder, empty);
        let leaves = Some(&mut self.leaves);
        let mut sink = node_sink(self.shared, &mut self.gather, &mut self.uncounted, leaves);
        let root = builder.finish(&mut sink)?;
        drop(sink);
        self.flush()?;
        let stored_record = self.publish(RecordKind::Snapshot, &root)?;
        let snapshot_id = self.records.chain.head;
        let assembled = self.assembled(stored_record);
        self.leaves.commit(&root.id);
        Ok(Assembled { snapshot_id, ..assembled })
    }

    fn assembled(&self, stored_record: Bytes) -> Assembled {
        Assembled { snapshot_id: None, stored_record, counts: self.counts }
    }

    /// Waits until everything that was wanted is durable.
    fn flush(&mut self) -> Result<(), EngineError> {
        self.gather.flush()?;
        self.flushes += 1;
        self.meters.assemble.waiting_out(|| self.shared.wait_landed(self.flushes))?;
        self.shared.run.done(std::mem::take(&mut self.uncounted.entries));
        Ok(())
    }

    fn publish(&mut self, kind: RecordKind, root: &Root) -> Result<Bytes, EngineError> {
        let records = &mut self.records;
        let secret = RecordSecret {
            items: root.items,
            bytes: root.bytes,
            unreadable: records.secret.unreadable + self.shared.run.problem_count(),
            ..records.secret.clone()
        };
        // A checkpoint that nobody needs any more must not stay.
        let pinned = records.pinned && kind == RecordKind::Snapshot;
        let (series, root) = (records.series, root.id);
        let new = NewRecord { kind, series, root, secret: &secret, pinned, amends: None };
        let Records { sealer, session, chain, .. } = records;
        self.meters.talk.during(|| publish(self.access, sealer, session, chain, &new))
    }
}

/// Takes new nodes, notes the leaves in `leaves`, and leaves out what the parents have.
fn node_sink<'a>(
    shared: &'a Shared<'_>,
    gather: &'a mut Gather<'_>,
    uncounted: &'a mut Uncounted,
    mut leaves: Option<&'a mut NewLeaves>,
) -> impl FnMut(BuiltNode) -> Result<(), EngineError> {
    move |node| {
        if let (NodeKind::Leaf, Some(leaves)) = (node.kind, &mut leaves) {
            leaves.add(&node.id, node.known);
        }
        if shared.is_parents(&node.id) {
            return Ok(());
        }
        gather.want(Wish::Node(node), std::mem::take(&mut uncounted.entries))
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use holdall_protocol::{Repository, SessionPurpose};
    use holdall_tree::{Cursor, Time};

    use super::super::{self as storing, Change, NewSnapshot, Storing};
    use super::*;
    use crate::Run;
    use crate::blocks::{Nodes, open_node_cache};
    use crate::pipeline::budget::Budget;
    use crate::test_world::{World, small_file};

    /// Stores these entries as a snapshot; says what was counted, and which paths it has.
    fn stored(run: &Run, entries: Vec<(&str, Entry)>) -> (Counts, Vec<String>) {
        let world = World::new();
        let grant = world.repository.open_session(&SessionPurpose::Read).unwrap();
        let shared = Shared::new(run, Budget::new(1 << 20, 1 << 20));
        let (meters, cache) = (StoringMeters::new(1, 1), open_node_cache(&world.access));
        let stages = storing::Stages {
            sealers: 1,
            streams: 1,
            self_check: false,
            checkpoint_every: Duration::MAX,
        };
        let storing = Storing::new(&world.access, &grant, &shared, &meters, &cache, stages);
        let new = NewSnapshot {
            series: SeriesId::from_bytes([2; 16]),
            secret: RecordSecret::default(),
            pinned: false,
            dry_run: false,
            keeps_leaves: None,
        };
        let (to_assembler, results) = crossbeam_channel::unbounded();
        let (to_result, pieces) = crossbeam_channel::unbounded();
        let piece = |(path, entry): (&str, Entry)| {
            let path = PathKey::from_absolute(path.as_bytes()).unwrap();
            Piece::Entry { path, entry: Box::new(entry), change: Change::New }
        };
        to_result.send(entries.into_iter().map(piece).collect()).unwrap();
        to_assembler.send((0, pieces)).unwrap();
        drop((to_result, to_assembler));
        let assembled = thread::scope(|scope| {
            let gather = storing.start(scope, || ());
            storing.run(gather, new, results)
        });
        shared.result().unwrap();
        let root = world.snapshots()[0].root;
        let mut cursor = Cursor::new(Nodes::open(&world.access, grant.session), root);
        let mut paths = Vec::new();
        while let Some((path, _)) = cursor.next().unwrap() {
            paths.push(String::from_utf8(path.to_absolute()).unwrap());
        }
        (assembled.unwrap().counts, paths)
    }

    #[test]
    fn an_entry_that_a_tree_can_not_have_is_a_problem_of_its_path_and_of_no_other() {
        let no_time = Time { secs: 1, nanos: 2_000_000_000 };
        let entries = vec![
            ("/a", small_file(b"one")),
            ("/b", small_file(b"first")),
            ("/b", small_file(b"again")),
            ("/c", Entry { mtime: no_time, ..small_file(b"two") }),
            ("/d", small_file(b"three")),
        ];
        let run = Run::new();
        let (counts, paths) = stored(&run, entries);
        assert_eq!(paths, ["/a", "/b", "/d"]);
        assert_eq!((counts.items, counts.files_new, counts.bytes), (3, 3, 13));
        let problems = run.take_problems();
        let told: Vec<_> = problems.iter().map(|problem| &problem.path[..]).collect();
        assert_eq!(told, [b"/b", b"/c"]);
        assert!(problems[1].reason.contains("nanoseconds"), "{}", problems[1].reason);
    }
}
