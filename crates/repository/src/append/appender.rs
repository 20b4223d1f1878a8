//! Appending blocks to tails, and closing tails into packs.
//!
//! There is one open tail for nodes and one for chunks. Whoever appends holds that tail's slot while
//! the bytes go to the system, and lets it go before they are made durable, so that one fsync serves
//! all who wait. A full tail is taken out of its slot; the thread that filled it closes it while
//! others go on with the next tail.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdall_format::{Footer, FooterBlock, PackName, RepositoryId, Trailer};
use holdall_protocol::RepositoryError;

use crate::index::{Index, PackInfo, pack_info};
use crate::log::Log;
use crate::opening::lease::Lease;
use crate::opening::recovery::{discard, list_all, put_aside};
use crate::state_files::condemned;
use crate::storage::GrowingFile;
use crate::storage::layout::{Layout, TailName};
use crate::storage::publish::{Published, failed, random};
use crate::storage::retry::retry_read;
use crate::tails::checked_block::Checked;
use crate::tails::tail::{Salvaged, Tail, read_whole};

/// A full tail, and how far it is on its way to be a pack.
#[derive(Debug)]
struct Closing {
    tail: Arc<Tail>,
    /// Once footer and trailer are in the file, which is never written to again then: it may have
    /// its place among the packs already.
    finished: Option<PackInfo>,
    /// Whether the index has the pack in the tail's place.
    in_index: bool,
}

impl Closing {
    fn of(tail: Arc<Tail>) -> Self {
        Self { tail, finished: None, in_index: false }
    }
}

/// What a block is that cannot be read while its tail is written anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// Nothing is known of it: it is tried again later.
    Fails,
    /// Lost, as somebody decided who asked for a repair.
    IsLost,
}

/// A block that was read again, and the position that it has; nothing if it is lost.
type Again = Result<Option<(Checked, u64)>, RepositoryError>;

/// Blocks of one put that lie one behind the other in a tail.
struct Part<'a> {
    tail: Arc<Tail>,
    first: usize,
    blocks: &'a [Checked],
}

/// Everything that writes blocks.
#[derive(Debug)]
pub(crate) struct Appender {
    layout: Layout,
    repository: RepositoryId,
    index: Arc<Index>,
    log: Arc<Log>,
    lease: Arc<Lease>,
    nodes: Mutex<Option<Arc<Tail>>>,
    chunks: Mutex<Option<Arc<Tail>>>,
    closing: Mutex<Vec<Closing>>,
    /// Files that were found damaged, with the reason.
    damaged: Mutex<Vec<(PathBuf, String)>>,
}

impl Appender {
    /// An appender that goes on with `tails`, all of which the index knows.
    pub(crate) fn new(
        layout: &Layout,
        repository: RepositoryId,
        index: Arc<Index>,
        log: Arc<Log>,
        lease: Arc<Lease>,
        tails: Vec<Arc<Tail>>,
    ) -> Self {
        let appender = Self {
            layout: layout.clone(),
            repository,
            index,
            log,
            lease,
            nodes: Mutex::new(None),
            chunks: Mutex::new(None),
            closing: Mutex::new(Vec::new()),
            damaged: Mutex::new(Vec::new()),
        };
        for tail in tails {
            let mut slot = appender.slot(tail.name().nodes);
            // Of several tails of a kind only the newest was not full.
            if let Some(full) = slot.replace(tail) {
                lock(&appender.closing).push(Closing::of(full));
            }
        }
        appender
    }

    /// Stores blocks of one kind. They are durable, and found, when it returns.
    pub(crate) fn append(&self, nodes: bool, blocks: &[Checked]) -> Result<(), RepositoryError> {
        let parts = self.write(nodes, blocks)?;
        for part in &parts {
            if let Err(error) = part.tail.wait_durable(part.first + part.blocks.len()) {
                self.abandon(&part.tail)?;
                return Err(error);
            }
        }
        for part in &parts {
            for (checked, number) in part.blocks.iter().zip(part.first..) {
                let number = number as u32;
                if let Some(clear) = part.tail.clear(number) {
                    part.tail.list_objects(number, clear.arrival, checked.block.table());
                }
            }
        }
        self.close_full();
        Ok(())
    }

    /// Writes blocks to the open tail, and to more if it fills up.
    fn write<'a>(
        &self,
        nodes: bool,
        mut blocks: &'a [Checked],
    ) -> Result<Vec<Part<'a>>, RepositoryError> {
        let mut slot = self.slot(nodes);
        let mut parts = Vec::new();
        while !blocks.is_empty() {
            let tail = self.open_tail(&mut slot, nodes)?;
            let first = tail.block_count();
            let taken = tail.append(blocks, || self.log.take())?;
            let (taken, rest) = blocks.split_at(taken.min(blocks.len()));
            parts.push(Part { tail: tail.clone(), first, blocks: taken });
            blocks = rest;
            if tail.is_full() {
                *slot = None;
                lock(&self.closing).push(Closing::of(tail));
            }
        }
        Ok(parts)
    }

    /// The tail in a slot; a new one if there is none, or the one there is to be abandoned.
    fn open_tail(
        &self,
        slot: &mut Option<Arc<Tail>>,
        nodes: bool,
    ) -> Result<Arc<Tail>, RepositoryError> {
        if let Some(tail) = slot.as_ref().filter(|tail| !tail.has_failed() && !tail.is_full()) {
            return Ok(tail.clone());
        }
        if let Some(full) = slot.take().filter(|tail| !tail.has_failed()) {
            lock(&self.closing).push(Closing::of(full));
        }
        let tail = self.create_tail(nodes)?;
        self.index.add_tail(tail.clone());
        *slot = Some(tail.clone());
        Ok(tail)
    }

    /// Makes a tail, and lets nothing be written to it unless the lease was held once it was there: who takes
    /// over from somebody that slept finds all tails that are written to, and copies what counts of them.
    fn create_tail(&self, nodes: bool) -> Result<Arc<Tail>, RepositoryError> {
        let name = TailName { nodes, number: self.log.take() };
        let created = Tail::create(&self.layout, name, &self.repository)
            .and_then(|tail| self.lease.renew().map(|()| tail));
        if created.as_ref().is_err_and(|error| !is_taken(error)) {
            // Nothing is in them; they are swept at the next start if this fails too.
            let _ = self.layout.payload(name).remove();
            let _ = self.layout.journal(name).remove();
        }
        created.map(Arc::new)
    }

    /// Closes all full tails. What cannot be closed now stays readable and is tried again later,
    /// so the blocks in it are as safe as before.
    pub(crate) fn close_full(&self) {
        let full = std::mem::take(&mut *lock(&self.closing));
        for mut closing in full {
            if self.close(&mut closing).is_err() {
                let is_lost = closing.finished.is_none() && closing.tail.has_failed();
                if is_lost && self.abandon(&closing.tail).is_ok() {
                    continue;
                }
                lock(&self.closing).push(closing);
            }
        }
    }

    /// Publishes a full tail as a pack and puts the pack in its place in the index. After an error
    /// it goes on where it stopped.
    fn close(&self, closing: &mut Closing) -> Result<(), RepositoryError> {
        let tail = &closing.tail;
        if !closing.in_index {
            let info = match &closing.finished {
                Some(info) => info.clone(),
                None => closing.finished.insert(self.finish(tail)?).clone(),
            };
            self.place(tail, &info.name)?;
            self.index.tail_became_pack(tail, info)?;
            closing.in_index = true;
        }
        self.layout.journal(tail.name()).remove()
    }

    /// Makes a tail's payload file a whole pack.
    fn finish(&self, tail: &Arc<Tail>) -> Result<PackInfo, RepositoryError> {
        let blocks = tail.all_clear().iter().map(|block| FooterBlock::clone(block)).collect();
        let kind = tail.name().kind();
        let footer = Footer { kind, repository: self.repository, random: random()?, blocks };
        let mut end = footer.encode();
        let trailer = Trailer::of(&end);
        let mut info = pack_info(trailer.name, &footer, 0);
        drop(footer);
        end.extend_from_slice(&trailer.encode());
        info.file_bytes = tail.finish_pack(&end)?;
        Ok(info)
    }

    /// Gives a finished pack its place, durably, unless an earlier attempt came that far.
    fn place(&self, tail: &Tail, pack: &PackName) -> Result<(), RepositoryError> {
        let (payload, target) = (self.layout.payload(tail.name()), self.layout.pack(pack));
        target.make_parent()?;
        if target.is_there()? || target.put_file(&payload)? == Published::Existed {
            // The name is the hash of a footer with a random number, so it is the same file.
            target.sync_parent()?;
            payload.remove()?;
        }
        self.layout.tails().sync()
    }

    /// After a failed fsync: what was durable is written anew into another file, and the failed
    /// one is never synced again.
    fn abandon(&self, tail: &Arc<Tail>) -> Result<(), RepositoryError> {
        let lost = self.renew(tail, Unreadable::Fails)?;
        if lost > 0 {
            self.note_lost(tail.name(), lost);
        }
        Ok(())
    }

    fn note_lost(&self, tail: TailName, blocks: u64) {
        let reason =
            format!("{blocks} of its blocks cannot be read, or differ from what was stored");
        lock(&self.damaged).push((self.layout.payload(tail).path().to_owned(), reason));
    }

    /// Writes what is sound of a tail anew, and says how many blocks are not. Then its files are put
    /// aside, else they go.
    pub(crate) fn renew(
        &self,
        tail: &Arc<Tail>,
        unreadable: Unreadable,
    ) -> Result<u64, RepositoryError> {
        let mut slot = self.slot(tail.name().nodes);
        if slot.as_ref().is_some_and(|open| Arc::ptr_eq(open, tail)) {
            *slot = None;
        }
        if !self.index.state().tails.iter().any(|known| Arc::ptr_eq(known, tail)) {
            return Ok(0);
        }
        if !tail.has_failed() {
            // What others have written, and are about to wait for, goes with it. If this fails, they are told.
            let _ = tail.wait_durable(tail.block_count());
        }
        let path = self.layout.payload(tail.name());
        let durable = tail.all_clear().into_iter().take(tail.durable_blocks());
        let sound = durable.map(|block| {
            let read = || tail.read_block(&block).map_err(failed("reading", &path));
            let bytes = match unreadable {
                Unreadable::Fails => Some(read()?),
                Unreadable::IsLost => retry_read(read)?,
            };
            Ok(bytes.and_then(|bytes| self.as_named(bytes, &block)))
        });
        let (copy, lost) = self.copy(tail.name().nodes, sound)?;
        let marks = self.index.marks();
        carry_marks(tail, &copy);
        self.index.remove_tail(tail);
        self.index.add_tail(copy.clone());
        drop(marks);
        if lost > 0 {
            // What reached the lost blocks is no longer closed.
            self.index.forget_closed();
        }
        self.adopt(&mut slot, copy);
        if lost > 0 {
            self.put_lost_aside(tail.name())?;
        } else {
            discard(&self.layout, tail.name())?;
        }
        Ok(lost)
    }

    /// Writes blocks of a kind into a new tail of their own under the positions that they have, and says how
    /// many differ from what was stored. The lease is held still when it returns: whoever took over meanwhile may
    /// have left the copy behind, and count on what was copied. After an error nothing of the copy is left:
    /// each attempt would add one.
    fn copy(
        &self,
        nodes: bool,
        blocks: impl Iterator<Item = Again>,
    ) -> Result<(Arc<Tail>, u64), RepositoryError> {
        let copy = self.create_tail(nodes)?;
        let copied = append_all(&copy, blocks).and_then(|lost| {
            list_all(&copy)?;
            self.lease.renew().map(|()| lost)
        });
        if copied.is_err() {
            // It is swept, or copied once more, at the next start if this fails too.
            let _ = discard(&self.layout, copy.name());
        }
        copied.map(|lost| (copy, lost))
    }

    /// Appends to a tail from now on, unless there is one of its kind: then it is closed.
    fn adopt(&self, slot: &mut Option<Arc<Tail>>, tail: Arc<Tail>) {
        if slot.is_none() {
            *slot = Some(tail);
        } else {
            lock(&self.closing).push(Closing::of(tail));
        }
    }

    /// A block that was read again, and its position, if it is what was stored.
    fn as_named(&self, bytes: bytes::Bytes, block: &FooterBlock) -> Option<(Checked, u64)> {
        let checked = Checked::new(bytes, &self.repository).ok()?;
        (checked.name == block.name).then_some((checked, block.arrival))
    }

    /// Files that were found damaged since the start, with the reason.
    pub(crate) fn damaged(&self) -> Vec<(PathBuf, String)> {
        lock(&self.damaged).clone()
    }

    /// Stores blocks of one kind again under the arrival positions that they have, so that their
    /// copies elsewhere can go. They are durable, and found, when it returns.
    pub(crate) fn append_moved(
        &self,
        nodes: bool,
        blocks: &[(Checked, u64)],
    ) -> Result<(), RepositoryError> {
        let mut places = Vec::with_capacity(blocks.len());
        for (checked, arrival) in blocks {
            let mut slot = self.slot(nodes);
            let tail = self.open_tail(&mut slot, nodes)?;
            places.push((tail.clone(), tail.block_count()));
            tail.append(std::slice::from_ref(checked), || *arrival)?;
        }
        for ((tail, number), (checked, arrival)) in places.iter().zip(blocks) {
            if let Err(error) = tail.wait_durable(number + 1) {
                self.abandon(tail)?;
                return Err(error);
            }
            tail.list_objects(*number as u32, *arrival, checked.block.table());
        }
        self.close_full();
        Ok(())
    }

    /// Closes the open tail of a kind into a pack, however short it is.
    pub(crate) fn close_open_tail(&self, nodes: bool) {
        if let Some(tail) = self.slot(nodes).take() {
            lock(&self.closing).push(Closing::of(tail));
        }
        self.close_full();
    }

    /// Stores what was saved of a tail, whose files are not written to any more, in another.
    pub(crate) fn append_salvaged(&self, salvaged: &Salvaged) -> Result<(), RepositoryError> {
        let Salvaged { name, payload, blocks, is_whole } = salvaged;
        let lost =
            if blocks.is_empty() { 0 } else { self.copy_salvaged(*name, &**payload, blocks)? };
        if lost > 0 {
            self.note_lost(*name, lost);
        }
        if lost > 0 || !is_whole {
            return self.put_lost_aside(*name);
        }
        discard(&self.layout, *name)
    }

    /// Puts a tail aside of which blocks are lost. What was closed until now was forgotten before.
    pub(crate) fn put_lost_aside(&self, name: TailName) -> Result<(), RepositoryError> {
        self.invalidate_saved_indexes()?;
        put_aside(&self.layout, name)
    }

    /// Bumps the prune generation, so that no saved index, in this cache or another, is trusted about reachability:
    /// one of its nodes may refer to what is lost or deleted from now on. The marks in memory stay.
    pub(crate) fn invalidate_saved_indexes(&self) -> Result<(), RepositoryError> {
        let number = self.log.take();
        self.lease.renew()?;
        condemned::begin_prune(&self.layout, number)?;
        self.index.set_pruned(number);
        Ok(())
    }

    fn copy_salvaged(
        &self,
        name: TailName,
        payload: &dyn GrowingFile,
        blocks: &[FooterBlock],
    ) -> Result<u64, RepositoryError> {
        let mut slot = self.slot(name.nodes);
        let path = self.layout.payload(name);
        let sound = blocks.iter().map(|block| {
            let read = || read_whole(payload, block).map_err(failed("reading", &path));
            // What is lost, or differs from what was stored, stays in the file put aside.
            Ok(retry_read(read)?.and_then(|bytes| self.as_named(bytes, block)))
        });
        let (copy, lost) = self.copy(name.nodes, sound)?;
        self.index.add_tail(copy.clone());
        self.adopt(&mut slot, copy);
        Ok(lost)
    }

    fn slot(&self, nodes: bool) -> MutexGuard<'_, Option<Arc<Tail>>> {
        lock(if nodes { &self.nodes } else { &self.chunks })
    }
}

/// Appends blocks to a tail, durably, and says how many there were none for.
fn append_all(tail: &Tail, blocks: impl Iterator<Item = Again>) -> Result<u64, RepositoryError> {
    let mut lost = 0;
    for block in blocks {
        let Some((checked, arrival)) = block? else {
            lost += 1;
            continue;
        };
        if tail.append(std::slice::from_ref(&checked), || arrival)? == 0 {
            let reason = "a tail holds more than one may".into();
            return Err(RepositoryError::Refused { reason });
        }
    }
    tail.wait_durable(tail.block_count())?;
    Ok(lost)
}

/// Carries what is marked in a tail into its copy, as far as that has the objects.
fn carry_marks(tail: &Tail, copy: &Tail) {
    let old = tail.objects();
    let mut objects = copy.objects();
    for (id, object) in old.iter() {
        if let Some(kept) = objects.get_mut(id, object.arrival) {
            (kept.closed, kept.tentative) = (object.closed, object.tentative);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a tail's files are somebody else's, who took the lease over and goes on from there.
fn is_taken(error: &RepositoryError) -> bool {
    matches!(error, RepositoryError::Io { source, .. } if source.kind() == io::ErrorKind::AlreadyExists)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Listing;
    use crate::opening::lease::Access;
    use crate::storage::layout::number_of;
    use crate::storage::publish::{make_dir, names_in};
    use holdall_format::{BlockKind, MachineId, ObjectId};
    use holdall_protocol::contract::Forge;
    use holdall_sys::Root;
    use std::os::unix::fs::FileExt;
    use std::sync::atomic::Ordering;

    struct Place {
        _dir: tempfile::TempDir,
        layout: Layout,
        forge: Forge,
        index: Arc<Index>,
        appender: Appender,
    }

    fn place() -> Place {
        place_where(|_| {})
    }

    fn place_where(prepare: impl FnOnce(&Layout)) -> Place {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(&dir.path().join("repository"));
        std::fs::create_dir(layout.root().path()).unwrap();
        prepare(&layout);
        layout.folders().iter().for_each(|folder| make_dir(folder).unwrap());
        let forge = Forge::new(1, MachineId::from_bytes([1; 16]), &[1; 32]);
        let mut listing = Listing::default();
        let cache = Root::at(&dir.path().join("cache"));
        std::fs::create_dir(cache.path()).unwrap();
        let (index, _) = Index::open(&cache, &forge.repository, &layout, &mut listing).unwrap();
        let (index, log) = (Arc::new(index), Arc::new(Log::going_on_at(1)));
        let lease = Arc::new(Lease::take(&layout, Access::Write).unwrap());
        let appender = Appender::new(&layout, forge.repository, index.clone(), log, lease, vec![]);
        Place { _dir: dir, layout, forge, index, appender }
    }

    impl Place {
        fn append(&self, ids: &[ObjectId], bytes: usize) -> Result<(), RepositoryError> {
            let block = self.forge.chunks_of_bytes(ids, bytes);
            self.appender.append(false, &[Checked::new(block, &self.forge.repository).unwrap()])
        }

        fn open_tail(&self) -> Arc<Tail> {
            lock(&self.appender.chunks).clone().unwrap()
        }

        fn copies(&self, id: ObjectId) -> usize {
            self.index.lookup(vec![id]).unwrap().copies.len()
        }
    }

    fn id(byte: u8) -> ObjectId {
        ObjectId::from_bytes([byte; 32])
    }

    #[test]
    fn nothing_is_left_of_a_copy_that_failed() {
        let place = place();
        place.append(&[id(1)], 1000).unwrap();
        let names = || place.layout.tails().names().unwrap();
        let before = names();
        let block = place.forge.chunks_of_bytes(&[id(1)], 1000);
        let checked = Checked::new(block, &place.forge.repository).unwrap();
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let blocks = [Ok(Some((checked, 1))), Err(RepositoryError::io("writing", full))];
        assert!(place.appender.copy(false, blocks.into_iter()).is_err());
        assert_eq!(names(), before);
    }

    #[test]
    fn the_files_of_whoever_took_over_are_left_alone() {
        let place = place();
        let name = TailName { nodes: false, number: place.appender.log.next() };
        std::fs::write(place.layout.payload(name).path(), b"theirs").unwrap();
        std::fs::write(place.layout.journal(name).path(), b"theirs").unwrap();
        assert!(place.append(&[id(1)], 100).is_err());
        for path in [place.layout.payload(name), place.layout.journal(name)] {
            assert_eq!(std::fs::read(path.path()).unwrap(), b"theirs", "{}", path.display());
        }
    }

    /// Who slept while another took the lease and gave it back may have all that it stored go to files that are
    /// gone, or that whoever opens the repository next writes to as well.
    #[test]
    fn whoever_lost_the_lease_begins_no_tail() {
        let place = place_where(|layout| make_dir(&layout.lease()).unwrap());
        place.append(&[id(1)], 100).unwrap();
        let newest = names_in(&place.layout.lease()).unwrap().pop().unwrap();
        let newest = number_of(newest.to_str().unwrap()).unwrap();
        std::fs::write(place.layout.lease_file(newest + 2).path(), b"theirs").unwrap();
        place.appender.close_open_tail(false);
        let refused = place.append(&[id(2)], 100);
        assert!(matches!(refused, Err(RepositoryError::InUse { .. })), "{refused:?}");
        assert_eq!(place.layout.tails().names().unwrap().len(), 0);
        assert_eq!([1, 2].map(|byte| place.copies(id(byte))), [1, 0]);
    }

    /// Whoever took over may have published the file, which is a pack then.
    #[test]
    fn nothing_is_written_to_a_file_whose_sync_failed() {
        let place = place();
        place.append(&[id(1)], 100).unwrap();
        let failing = place.open_tail();
        let file = std::fs::File::open(place.layout.payload(failing.name()).path()).unwrap();
        failing.fails.store(true, Ordering::Release);
        assert!(place.append(&[id(2)], 100).is_err());
        failing.fails.store(false, Ordering::Release);
        let bytes = file.metadata().unwrap().len();
        assert!(failing.finish_pack(b"footer and trailer").is_err());
        assert_eq!(file.metadata().unwrap().len(), bytes);
    }

    #[test]
    fn after_a_failed_sync_what_was_durable_is_written_anew_and_the_file_goes() {
        let place = place();
        place.append(&[id(1)], 100).unwrap();
        place.append(&[id(2)], 100).unwrap();
        let failing = place.open_tail();
        let lookup = place.index.lookup(vec![id(1)]).unwrap();
        lookup.put_tentative(&lookup.copies[0], true);
        failing.fails.store(true, Ordering::Release);
        assert!(place.append(&[id(3)], 100).is_err());

        assert_eq!([1, 2, 3].map(|byte| place.copies(id(byte))), [1, 1, 0]);
        assert!(!place.layout.journal(failing.name()).exists());
        let lookup = place.index.lookup(vec![id(1)]).unwrap();
        assert!(lookup.is_tentative(&lookup.copies[0]), "marks are carried");
        place.append(&[id(3)], 100).unwrap();
        assert_eq!(place.copies(id(3)), 1);
        assert!(!Arc::ptr_eq(&failing, &place.open_tail()));
        let footer = place.open_tail().all_clear();
        let arrivals: Vec<u64> = footer.iter().map(|block| block.arrival).collect();
        assert_eq!(arrivals, [2, 3, 6], "arrival positions are kept and never repeated");
    }

    #[test]
    fn the_journal_of_what_was_written_anew_goes_before_its_payloads() {
        let place = place();
        place.append(&[id(1)], 100).unwrap();
        let failing = place.open_tail();
        let payload = place.layout.payload(failing.name());
        // What cannot be removed, as when it stops there.
        std::fs::remove_file(payload.path()).unwrap();
        std::fs::create_dir(payload.path()).unwrap();
        failing.fails.store(true, Ordering::Release);
        assert!(place.append(&[id(2)], 100).is_err());
        assert!(!place.layout.journal(failing.name()).exists());
        assert_eq!(place.copies(id(1)), 1);
    }

    #[test]
    fn a_full_tail_whose_last_sync_fails_is_written_anew_too() {
        let place = place();
        for byte in 0..10 {
            place.append(&[id(byte)], 5 << 20).unwrap();
        }
        // The tail that is open now was begun after the first pack closed.
        assert_eq!(place.index.state().packs.len(), 1);
        place.append(&[id(50)], 100).unwrap();
        place.open_tail().fails.store(true, Ordering::Release);
        for byte in 60..70 {
            let _ = place.append(&[id(byte)], 5 << 20);
        }
        assert_eq!(place.copies(id(50)), 1);
        assert_eq!(place.copies(id(60)), 0, "it was not acknowledged");
        assert_eq!(place.copies(id(69)), 1);
        assert_eq!(place.open_tail().name().kind(), BlockKind::Chunks);
    }

    #[test]
    fn a_published_pack_is_never_written_to_again_when_its_journal_stays() {
        let place = place();
        place.append(&[id(0)], 5 << 20).unwrap();
        let name = place.open_tail().name();
        let journal = place.layout.journal(name);
        std::fs::remove_file(journal.path()).unwrap();
        std::fs::create_dir(journal.path()).unwrap();
        for byte in 1..11 {
            place.append(&[id(byte)], 5 << 20).unwrap();
        }
        let packs = || place.index.state().packs.clone();
        let path = place.layout.pack(&packs()[0].name);
        let published = std::fs::read(path.path()).unwrap();
        place.append(&[id(20)], 100).unwrap();
        assert!(std::fs::read(path.path()).unwrap() == published, "the pack is as it was");
        std::fs::remove_dir(journal.path()).unwrap();
        place.append(&[id(21)], 100).unwrap();
        assert_eq!(lock(&place.appender.closing).len(), 0);
        assert_eq!(packs().len(), 1);
        assert!((0..11).all(|byte| place.copies(id(byte)) == 1));
    }

    #[test]
    fn a_pack_that_has_its_place_already_is_taken_over() {
        let place = place();
        place.append(&[id(1)], 100).unwrap();
        let tail = place.open_tail();
        let info = place.appender.finish(&tail).unwrap();
        place.appender.place(&tail, &info.name).unwrap();
        place.appender.place(&tail, &info.name).unwrap();
        assert!(place.layout.pack(&info.name).exists());
        assert!(!place.layout.payload(tail.name()).exists());
    }

    #[test]
    fn a_block_that_is_not_what_was_stored_is_not_written_anew() {
        let place = place();
        for byte in 1..4 {
            place.append(&[id(byte)], 5000).unwrap();
        }
        let failing = place.open_tail();
        let first = failing.clear(0).unwrap();
        let path = place.layout.payload(failing.name());
        let payload = std::fs::OpenOptions::new().write(true).open(path.path()).unwrap();
        payload.write_all_at(b"rot", first.offset + 100).unwrap();
        let lookup = place.index.lookup(vec![id(3)]).unwrap();
        lookup.put_tentative(&lookup.copies[0], true);
        place.index.close_tentative(9);
        failing.fails.store(true, Ordering::Release);
        assert!(place.append(&[id(4)], 100).is_err());

        assert_eq!([1, 2, 3].map(|byte| place.copies(id(byte))), [0, 1, 1]);
        assert_eq!(place.appender.damaged().len(), 1);
        assert!(!path.exists() && path.path().with_extension("payload.damaged").exists());
        let lookup = place.index.lookup(vec![id(3)]).unwrap();
        assert!(!lookup.is_closed(&lookup.copies[0]), "what reached the lost block is found again");
        let block = place.open_tail().clear(lookup.copies[0].block).unwrap();
        assert_eq!(block.table().unwrap().entries[0].id, id(3));
        assert_eq!(place.index.closed_position(), 0);
    }

    #[test]
    fn a_pack_that_can_not_be_published_stays_readable_and_is_published_later() {
        let place = place();
        std::fs::remove_dir(place.layout.packs().path()).unwrap();
        std::fs::write(place.layout.packs().path(), b"in the way").unwrap();
        for byte in 0..11 {
            place.append(&[id(byte)], 5 << 20).unwrap();
        }
        assert_eq!(place.index.state().packs.len(), 0);
        assert!((0..11).all(|byte| place.copies(id(byte)) == 1));
        place.layout.packs().remove().unwrap();
        make_dir(&place.layout.packs().file().unwrap()).unwrap();
        place.append(&[id(20)], 100).unwrap();
        assert_eq!(place.index.state().packs.len(), 1);
        assert!((0..11).all(|byte| place.copies(id(byte)) == 1));
    }
}
