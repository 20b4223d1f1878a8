//! Which packs are to go: plain data, made under the commit lock and carried out pack by pack.

use holdall_format::limits::PACK_TARGET_TABLE_BYTES;
use holdall_format::{BlockKind, PackName};
use holdall_protocol::RepositoryError;

use super::PruneOptions;
use super::marking::Marked;
use crate::index::{Holder, NeededBlocks, PackInfo};
use crate::store::{CommitGuard, Store};
use crate::tails::objects::Mark;

/// Packs below this are merged, if there are several of a kind. None that is full is, of tables neither: what
/// it is merged into would be full of the same, and merged again.
const SMALL_BYTES: u64 = PACK_TARGET_TABLE_BYTES as u64 / 2;

/// A pack that is to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    /// Which.
    pub(super) name: PackName,
    /// Length of its file.
    pub(super) file_bytes: u64,
    /// What of that nothing needs.
    pub(super) unneeded_bytes: u64,
    /// Whether each of its blocks is needed.
    pub(super) needed: Vec<bool>,
}

impl Store {
    /// Packs that are to go, and what of them is needed is to be copied; none if marks were thrown away.
    pub(super) fn plan(
        &self,
        _commit: &CommitGuard<'_>,
        options: &PruneOptions,
        marked: Marked,
    ) -> Result<Vec<Candidate>, RepositoryError> {
        let relied_on = self.sessions().relied_on(self.clock());
        let state = self.index().state();
        let mut needed = self.index().needed_blocks(marked.mark, self.kept_arrivals())?;
        if self.index().state().generation != marked.generation {
            return Ok(Vec::new());
        }
        self.keep_spares(&mut needed);
        let (mut candidates, mut small) = (Vec::new(), Vec::new());
        for (pack, place) in state.packs.iter().zip(0..) {
            if state.is_condemned(Holder::Pack(place)) || relied_on.has(pack) {
                continue;
            }
            let candidate = self.candidate(pack, needed.of_pack(place));
            if candidate.unneeded_bytes >= options.sparse_bytes(candidate.file_bytes) {
                candidates.push(candidate);
            } else if candidate.file_bytes < SMALL_BYTES {
                small.push((pack.kind, candidate));
            }
        }
        for kind in [BlockKind::Nodes, BlockKind::Chunks] {
            let of_kind: Vec<_> = small.iter().filter(|(of, _)| *of == kind).collect();
            if of_kind.len() > 1 {
                candidates.extend(of_kind.into_iter().map(|(_, candidate)| candidate.clone()));
            }
        }
        // What needs no room goes first, and makes some.
        candidates.sort_by_key(|candidate| candidate.file_bytes - candidate.unneeded_bytes);
        Ok(candidates)
    }

    /// Which blocks stay whatever the mark found, by arrival position: those that came since the oldest
    /// live session began, and those that are superseded and held.
    pub(super) fn kept_arrivals(&self) -> impl Fn(u64) -> bool + use<> {
        let since = self.sessions().lowest_watermark(self.clock());
        let superseded = self.index().state().superseded.clone();
        move |arrival| since.is_some_and(|since| arrival >= since) || superseded.holds(arrival)
    }

    /// Where the first copy of an object cannot be read, the others are needed.
    fn keep_spares(&self, needed: &mut NeededBlocks) {
        for ((holder, block), others) in std::mem::take(&mut needed.spare) {
            if self.blocks().read_block(&needed.state, holder, block).is_err() {
                others.into_iter().for_each(|other| needed.need(other));
            }
        }
    }

    fn candidate(&self, pack: &PackInfo, needed: &[bool]) -> Candidate {
        let (name, file_bytes) = (pack.name, pack.file_bytes);
        let unneeded_bytes = match needed.iter().filter(|needed| **needed).count() {
            0 => file_bytes,
            all if all == needed.len() => 0,
            // One that cannot be read is for a scrub to tell, and stays.
            _ => self.unneeded_bytes(&name, needed).unwrap_or_default(),
        };
        Candidate { name, file_bytes, unneeded_bytes, needed: needed.to_vec() }
    }

    fn unneeded_bytes(&self, name: &PackName, needed: &[bool]) -> Result<u64, RepositoryError> {
        let pack = self.packs().get(name)?;
        let unneeded = pack.blocks().iter().zip(needed).filter(|(_, needed)| !**needed);
        Ok(unneeded.map(|(place, _)| place.stored_bytes()).sum())
    }

    /// Closes open tails that hold much that nothing needs, so that they can be treated as packs.
    pub(super) fn close_sparse_tails(&self, options: &PruneOptions) {
        for (is_nodes, _) in self.sparse_tails(options, Mark::Closed) {
            if let Ok(appender) = self.appender() {
                appender.close_open_tail(is_nodes);
            }
        }
    }

    /// Tails that hold much that nothing needs: whether of nodes, and how many bytes.
    pub(super) fn sparse_tails(&self, options: &PruneOptions, mark: Mark) -> Vec<(bool, u64)> {
        let relied_on = self.sessions().relied_on(self.clock()).arrivals;
        let kept = self.kept_arrivals();
        let is_kept = |arrival: u64| kept(arrival) || relied_on.contains(&arrival);
        let state = self.index().state();
        let unneeded = state.tails.iter().map(|tail| {
            let unneeded_bytes = tail.unneeded_bytes(mark, is_kept);
            let is_sparse = unneeded_bytes >= options.sparse_bytes(tail.payload_bytes());
            is_sparse.then_some((tail.name().nodes, unneeded_bytes))
        });
        unneeded.flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use holdall_sys::PathBeneath;
    use std::sync::atomic::AtomicBool;
    use std::time::{Duration, Instant};

    use crate::index::{HALTED, WRITES_FAIL};
    use holdall_format::{ObjectId, RecordHash, SessionId, TombstoneReason};
    use holdall_protocol::{PruneReport, Repository, SessionPurpose};
    use holdall_testkit::is_alone;
    use rustix::process::{Resource, Rlimit, setrlimit};

    use super::*;
    use crate::place::{Place, id};
    use crate::prune::move_blocks::IfDamaged;
    use crate::reachability::closure::Descend;
    use crate::storage::retry::is_of_this_process;

    const GRACE: Duration = Duration::from_secs(24 * 3600);
    /// A test waits for no longer.
    const PATIENCE: Duration = Duration::from_secs(10);
    const OPTIONS: PruneOptions = PruneOptions { grace: GRACE, sparse_part: 4 };

    impl Place {
        /// Commits a snapshot of chunks that were put, each of which lies in a small pack of its own.
        pub(crate) fn back_up_in_small_packs(&self, chunks: &[ObjectId]) {
            let session = self.session();
            for chunk in chunks {
                let block = self.forge.chunks_of_bytes(&[*chunk], 1000);
                self.machine().put_blocks(&session, &[block]).unwrap();
                self.store.appender().unwrap().close_open_tail(false);
            }
            let node = self.forge.nodes(&[(id(0), chunks)]);
            self.machine().put_blocks(&session, &[node]).unwrap();
            self.commit(&session);
        }

        /// Commits a snapshot whose root is the object of number 0.
        fn commit(&self, session: &SessionId) {
            self.commit_root(session, id(0));
        }

        pub(crate) fn prune(&self) -> PruneReport {
            self.store.prune(&OPTIONS, &AtomicBool::new(false)).unwrap()
        }

        fn foresee(&self, forgotten: &[RecordHash]) -> PruneReport {
            self.store.foresee_prune(&OPTIONS, forgotten).unwrap()
        }

        /// The ids of all snapshots.
        pub(crate) fn snapshots(&self) -> Vec<RecordHash> {
            self.store.records().after(0).iter().map(|entry| entry.hash).collect()
        }

        /// For each pack, which of its blocks are closed.
        fn closed_blocks(&self) -> Vec<Vec<bool>> {
            let needed = self.store.index().needed_blocks(Mark::Closed, |_| false).unwrap();
            let places = 0..self.blocks_of_packs().len();
            places.map(|place| needed.of_pack(u32::try_from(place).unwrap()).to_vec()).collect()
        }

        pub(crate) fn pass_grace(&self) {
            let grace_ns = i64::try_from(GRACE.as_nanos()).unwrap();
            self.clock.advance_ns(grace_ns);
        }

        /// How many blocks there are in each pack.
        pub(crate) fn blocks_of_packs(&self) -> Vec<u64> {
            self.store.index().state().packs.iter().map(|pack| pack.blocks).collect()
        }
    }

    #[test]
    fn small_packs_are_merged_and_go_when_their_grace_is_over() {
        let place = Place::new();
        let chunks: Vec<ObjectId> = (1..=5).map(id).collect();
        place.back_up_in_small_packs(&chunks);
        assert_eq!(place.blocks_of_packs(), [1; 5]);

        let merged = place.prune();
        assert_eq!((merged.condemned_packs, merged.deleted_packs), (5, 0), "{merged:?}");
        place.store.appender().unwrap().close_open_tail(false);
        assert_eq!(
            place.blocks_of_packs(),
            [1, 1, 1, 1, 1, 5],
            "they wait beside what they became"
        );
        place.pass_grace();
        let left = place.prune();
        assert_eq!((left.condemned_packs, left.deleted_packs), (0, 5), "one alone is not merged");
        assert_eq!(place.blocks_of_packs(), [5]);

        assert_eq!(place.machine().scrub(&mut |_| {}).unwrap().damaged, []);
        let session = place.machine().open_session(&SessionPurpose::Read).unwrap().session;
        for chunk in chunks {
            let fetched = place.machine().fetch_objects(&session, &[chunk], 0).unwrap();
            assert_eq!(fetched.blocks.len(), 1);
        }
    }

    #[test]
    fn what_can_not_be_opened_for_want_of_files_is_not_missing() {
        // What may be opened is shared by all threads of a process.
        if !is_alone() {
            return;
        }
        let place = Place::new();
        place.back_up_in_small_packs(&[id(1)]);
        place.store.appender().unwrap().close_open_tail(true);
        assert_eq!(place.blocks_of_packs(), [1, 1]);
        let commit = place.store.lock_commit();
        place.store.packs().forget(|_| true);
        setrlimit(Resource::Nofile, Rlimit { current: Some(0), maximum: Some(0) }).unwrap();
        let error = place.store.descend(&commit, id(0), Descend::Everything).unwrap_err();
        assert!(is_of_this_process(&error), "{error}");
    }

    #[test]
    fn a_pack_that_can_be_read_again_keeps_nothing_from_being_deleted() {
        let place = Place::new();
        place.back_up_in_small_packs(&[id(1)]);
        let name = place.store.index().state().packs[0].name;
        let (pack, aside) =
            (place.store.layout().pack(&name), place.store.layout().root().join("aside"));
        let rebuild = || {
            let generation = place.store.index().state().generation;
            place.store.rebuild_index(&place.store.lock_commit(), generation).unwrap();
        };
        std::fs::rename(pack.path(), aside.path()).unwrap();
        std::fs::create_dir(pack.path()).unwrap();
        rebuild();
        assert!(place.store.check_needed().is_err());
        std::fs::remove_dir(pack.path()).unwrap();
        std::fs::rename(aside.path(), pack.path()).unwrap();
        rebuild();
        place.store.check_needed().unwrap();
    }

    /// A session that put these chunks, each of which lies in a small pack of its own.
    fn put_in_small_packs(place: &Place, chunks: &[ObjectId]) -> SessionId {
        let session = place.session();
        for chunk in chunks {
            put_each(place, &session, &[*chunk]);
            place.store.appender().unwrap().close_open_tail(false);
        }
        session
    }

    /// Has the index made anew, and asks before any of its packs was read. Then one of them is gone.
    fn asked_while_made_anew(
        place: &Place,
        ask: impl FnOnce() -> Vec<bool> + Send,
    ) -> Option<Vec<bool>> {
        let state = place.store.index().state();
        let last = state.packs.iter().map(|pack| pack.name).max().unwrap();
        let halted = HALTED.lock().unwrap();
        let (answers, answer) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let rebuilding = scope.spawn(|| {
                place.store.rebuild_index(&place.store.lock_commit(), state.generation).unwrap();
            });
            let began = Instant::now();
            let has_begun = || place.store.index().state().generation > state.generation;
            while !has_begun() && !rebuilding.is_finished() && began.elapsed() < PATIENCE {
                std::thread::yield_now();
            }
            scope.spawn(move || drop(answers.send(ask())));
            let meanwhile = answer.recv_timeout(PATIENCE).ok();
            std::fs::remove_file(place.store.layout().pack(&last).path()).unwrap();
            drop(halted);
            meanwhile
        })
    }

    #[test]
    fn whoever_asks_while_the_index_is_made_anew_is_told_what_was_known() {
        let (place, chunks) = (Place::new(), [1, 2, 3].map(id));
        let session = put_in_small_packs(&place, &chunks);
        let missing = || place.machine().missing(&session, &chunks).unwrap();
        assert_eq!(asked_while_made_anew(&place, missing), Some(vec![false; 3]));
        assert_eq!(missing().iter().filter(|missing| **missing).count(), 1);
    }

    #[test]
    fn an_index_that_can_not_be_made_anew_answers_as_before_unless_a_pack_is_gone() {
        let (place, chunks) = (Place::new(), [1, 2, 3].map(id));
        let session = put_in_small_packs(&place, &chunks);
        let rebuild = || {
            let generation = place.store.index().state().generation;
            place.store.rebuild_index(&place.store.lock_commit(), generation)
        };
        let missing = || place.machine().missing(&session, &chunks).unwrap();
        let state = place.store.index().state();
        let obstacle = state.runs[0].path().with_file_name(WRITES_FAIL);
        std::fs::write(obstacle.path(), "").unwrap();
        assert!(rebuild().is_err());
        assert_eq!(missing(), [false; 3]);

        std::fs::remove_file(place.store.layout().pack(&state.packs[0].name).path()).unwrap();
        assert!(rebuild().is_err());
        assert_ne!(missing(), [false; 3]);
        std::fs::remove_file(obstacle.path()).unwrap();
        rebuild().unwrap();
        assert_eq!(missing().iter().filter(|missing| **missing).count(), 1);
    }

    #[test]
    fn what_was_committed_is_there_while_the_index_is_made_anew_and_then_what_is_left_of_it() {
        let (place, objects) = (Place::new(), [0, 1, 2, 3].map(id));
        place.back_up_in_small_packs(&objects[1..]);
        let session = place.session();
        let missing = || place.machine().missing(&session, &objects).unwrap();
        assert_eq!(asked_while_made_anew(&place, missing), Some(vec![false; 4]));
        let afterwards = missing();
        assert!(afterwards[0], "what reached the lost chunk is no longer closed");
        assert_eq!(afterwards.iter().filter(|missing| **missing).count(), 2);
    }

    #[test]
    fn an_index_that_can_not_be_made_anew_keeps_what_is_closed_unless_a_pack_is_damaged() {
        let (place, objects) = (Place::new(), [0, 1, 2, 3].map(id));
        place.back_up_in_small_packs(&objects[1..]);
        let session = place.session();
        let rebuild = || {
            let generation = place.store.index().state().generation;
            place.store.rebuild_index(&place.store.lock_commit(), generation)
        };
        let missing = || place.machine().missing(&session, &objects).unwrap();
        let state = place.store.index().state();
        std::fs::write(state.runs[0].path().with_file_name(WRITES_FAIL).path(), "").unwrap();
        assert!(rebuild().is_err());
        assert_eq!(missing(), [false; 4]);

        let first = state.packs.iter().map(|pack| pack.name).min().unwrap();
        let path = place.store.layout().pack(&first);
        let mut bytes = std::fs::read(path.path()).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(path.path(), bytes).unwrap();
        assert!(rebuild().is_err());
        assert_eq!(missing(), [true; 4]);
    }

    #[test]
    fn packs_that_are_full_of_tables_are_not_merged() {
        let place = Place::new();
        let session = place.session();
        let chunks: Vec<ObjectId> = (1000..1000 + 4096).map(id).collect();
        place.machine().put_blocks(&session, &[place.forge.chunks(&chunks)]).unwrap();
        let nodes: Vec<ObjectId> = (1..=130).map(id).collect();
        for node in &nodes {
            let block = place.forge.nodes(&[(*node, &chunks)]);
            place.machine().put_blocks(&session, &[block]).unwrap();
        }
        place.machine().put_blocks(&session, &[place.forge.nodes(&[(id(0), &nodes)])]).unwrap();
        place.commit(&session);
        assert_eq!(place.blocks_of_packs().len(), 2);
        assert_eq!(place.prune().condemned_packs, 0);
    }

    /// Puts chunks, each in a block of its own.
    fn put_each(place: &Place, session: &SessionId, chunks: &[ObjectId]) {
        for chunk in chunks {
            let block = place.forge.chunks_of_bytes(&[*chunk], 1000);
            place.machine().put_blocks(session, &[block]).unwrap();
        }
    }

    /// Copies the first blocks of the first pack as a prune does, and goes no further.
    fn begin_to_condemn(place: &Place, blocks: usize) {
        let pack = place.store.index().state().packs.first().unwrap().clone();
        let file = place.store.packs().get(&pack.name).unwrap();
        let needed = file.blocks().iter().take(blocks);
        place.store.move_blocks(pack.kind, &file, needed, IfDamaged::Fail).unwrap();
    }

    #[test]
    fn what_a_killed_prune_copied_is_not_copied_twice_by_the_next() {
        let place = Place::new();
        let session = place.session();
        let chunks: Vec<ObjectId> = (1..=20).map(id).collect();
        put_each(&place, &session, &chunks[..10]);
        place.store.appender().unwrap().close_open_tail(false);
        begin_to_condemn(&place, 5);
        put_each(&place, &session, &chunks[10..]);
        // Half of the first pack is needed, and two thirds of what lies behind those copies.
        let needed = [&chunks[..5], &chunks[10..]].concat();
        let node = place.forge.nodes(&[(id(0), &needed)]);
        place.machine().put_blocks(&session, &[node]).unwrap();
        place.commit(&session);
        let pruned = place.prune();
        assert_eq!(pruned.condemned_packs, 2, "{pruned:?}");
        assert!((15_000..20_000).contains(&pruned.moved_bytes), "{pruned:?}");
        place.pass_grace();
        assert_eq!(place.prune().condemned_packs, 0);
        assert_eq!(place.machine().scrub(&mut |_| {}).unwrap().damaged, []);
    }

    #[test]
    fn of_what_was_copied_twice_into_a_pack_one_copy_is_needed() {
        let place = Place::new();
        place.back_up_in_small_packs(&[id(1)]);
        begin_to_condemn(&place, 1);
        begin_to_condemn(&place, 1);
        place.store.appender().unwrap().close_open_tail(false);
        assert_eq!(place.blocks_of_packs(), [1, 2]);
        let needed = place.store.index().needed_blocks(Mark::Closed, |_| false).unwrap();
        assert_eq!(needed.of_pack(1), [true, false]);
    }

    #[test]
    fn a_prune_is_foreseen_without_changing_what_one_that_runs_goes_by() {
        let place = Place::new();
        place.back_up_in_small_packs(&[id(1), id(2), id(3)]);
        let session = place.session();
        put_each(&place, &session, &[id(4)]);
        let node = place.forge.nodes(&[(id(10), &[id(3), id(4)])]);
        place.machine().put_blocks(&session, &[node]).unwrap();
        place.commit_root(&session, id(10));
        place.store.appender().unwrap().close_open_tail(false);
        let (snapshots, closed) = (place.snapshots(), place.closed_blocks());
        assert_eq!(closed, vec![[true]; 4]);

        let foreseen = place.foresee(&snapshots[..1]);
        let freed = foreseen.stored_before_bytes - foreseen.stored_after_bytes;
        assert_eq!((foreseen.condemned_packs, place.closed_blocks()), (4, closed), "all are small");
        place.store.forget(&snapshots[..1], TombstoneReason::Retention).unwrap();
        place.prune();
        place.pass_grace();
        let left = place.prune().stored_after_bytes;
        let of_foreseen = foreseen.stored_before_bytes - left;
        assert!(freed > 2000 && freed.abs_diff(of_foreseen) < 1000, "{freed} of {of_foreseen}");
        assert_eq!(place.machine().scrub(&mut |_| {}).unwrap().damaged, []);
    }

    #[test]
    fn nothing_goes_by_marks_that_were_thrown_away() {
        let place = Place::new();
        place.back_up_in_small_packs(&[id(1)]);
        let commit = place.store.lock_commit();
        let marked = place.store.mark_needed(&commit).unwrap();
        let generation = place.store.index().state().generation;
        place.store.index().forget_closed();
        assert_eq!(place.closed_blocks(), [[false]]);
        assert_eq!(place.store.plan(&commit, &OPTIONS, marked).unwrap(), []);
        assert!(!place.store.index().close_only_tentative(0, generation));
    }

    /// Two snapshots, and the two runs of the index that have the chunk of each; `None` if they became one already.
    fn with_two_runs() -> Option<(Place, [PathBeneath; 2])> {
        let place = Place::new();
        for (chunk, root) in [(1, 10), (2, 20)] {
            let session = place.session();
            put_each(&place, &session, &[id(chunk)]);
            let node = place.forge.nodes(&[(id(root), &[id(chunk)])]);
            place.machine().put_blocks(&session, &[node]).unwrap();
            place.commit_root(&session, id(root));
            place.store.appender().unwrap().close_open_tail(false);
        }
        let state = place.store.index().state();
        let runs: Vec<_> = state.runs.iter().map(|run| run.path().to_owned()).collect();
        Some((place, runs.try_into().ok()?))
    }

    #[test]
    fn an_index_that_is_made_anew_between_two_snapshots_has_all_be_marked_anew() {
        let (place, [_, second]) = std::iter::repeat_with(with_two_runs).flatten().next().unwrap();
        let mut bytes = std::fs::read(second.path()).unwrap();
        bytes[4096] ^= 1;
        std::fs::write(second.path(), bytes).unwrap();
        let commit = place.store.lock_commit();
        let before = place.store.index().state().generation;
        let marked = place.store.mark_needed(&commit).unwrap();
        assert!(marked.generation > before, "the damage was met");
        assert_eq!(place.closed_blocks(), [[true], [true]]);
    }

    #[test]
    fn a_block_of_which_something_was_closed_since_the_plan_is_kept_though_it_was_copied_before() {
        let place = Place::new();
        let session = place.session();
        let (known, new) = (id(1), id(2));
        let block = place.forge.chunks_of_bytes(&[known, new], 1000);
        place.machine().put_blocks(&session, &[block]).unwrap();
        place.store.appender().unwrap().close_open_tail(false);
        place.machine().put_blocks(&session, &[place.forge.nodes(&[(id(0), &[known])])]).unwrap();
        place.commit(&session);
        // One of the block's two objects is closed, in both copies.
        begin_to_condemn(&place, 1);
        let pack = place.store.index().state().packs.first().unwrap().clone();
        let session = place.session();
        let node = place.forge.nodes(&[(id(3), &[new])]);
        place.machine().put_blocks(&session, &[node]).unwrap();
        place.commit_root(&session, id(3));
        let (file_bytes, needed) = (pack.file_bytes, vec![false]);
        let plan = Candidate { name: pack.name, file_bytes, unneeded_bytes: file_bytes, needed };
        let mut report = PruneReport::default();
        place.store.condemn(&plan, &OPTIONS, &mut report).unwrap();
        assert_eq!(report.condemned_packs, 1);
        assert!(report.moved_bytes > 0, "{report:?}");
    }

    #[test]
    fn a_second_copy_stays_where_the_first_was_moved_to_a_tail_and_can_not_be_read() {
        let place = Place::new();
        place.back_up_in_small_packs(&[id(1)]);
        let session = put_in_small_packs(&place, &[id(1)]);
        place.machine().put_blocks(&session, &[place.forge.nodes(&[(id(10), &[id(1)])])]).unwrap();
        place.commit_root(&session, id(10));
        assert_eq!(place.closed_blocks(), [[true], [false]]);
        let pack = place.store.index().state().packs.first().unwrap().clone();
        let (name, file_bytes) = (pack.name, pack.file_bytes);
        let plan = Candidate { name, file_bytes, unneeded_bytes: 0, needed: vec![true] };
        place.store.condemn(&plan, &OPTIONS, &mut PruneReport::default()).unwrap();

        let state = place.store.index().state();
        let tail = state.tails.iter().find(|tail| !tail.name().nodes).unwrap();
        let payload = place.store.layout().payload(tail.name());
        let file = std::fs::OpenOptions::new().write(true).open(payload.path()).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, b"rot", 500).unwrap();
        for _ in 0..2 {
            let pruned = place.prune();
            assert_eq!(pruned.condemned_packs, 0, "{pruned:?}");
            place.pass_grace();
        }
        let session = place.machine().open_session(&SessionPurpose::Read).unwrap().session;
        let fetched = place.machine().fetch_objects(&session, &[id(1)], 0).unwrap();
        assert_eq!(fetched.blocks.len(), 1, "its second copy stands in");
    }
}
