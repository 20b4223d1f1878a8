//! Opening tails at start: what was acknowledged is there again, what was torn goes.
//!
//! ```text
//! payload    journal    what happened                         what is done
//! whole pack entries    the pack was not published yet        published, journal removed
//! gone       entries    the pack was published                journal removed, if a pack has them
//! unreadable either     the disk fails                        told, left; a new tail goes on
//! blocks     entries    nothing, or torn at the end           cut to the last whole block; where a record came
//!                                                             behind that, what is closed is found anew
//! one torn   entries    a crash, or damage to what counts     good blocks copied, if one behind it is older than a
//!                                                             record, or than the tail
//! blocks     hole       a hole where all was durable before   good blocks copied, files kept aside; read in
//!                                                             place where nothing may be changed
//! blocks     front      a crash before the first block        both removed; where a record came behind it, what
//!                                                             is closed is found anew
//! there      gone       a crash while it was made or removed  removed; the same, if it has blocks
//! ```
//!
//! Blocks that were durable when a later entry was written are taken at the journal's word; those
//! behind are hashed, since a crash may have kept an entry and lost its payload. Nothing tells that from a disk
//! that lost what was acknowledged, so where a record came later, no index is believed that has it reached.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use holdall_format::{BlockName, Footer, FooterBlock, RepositoryId};
use holdall_protocol::RepositoryError;
use rustix::io::Errno;

use crate::index::Listing;
use crate::opening::lease::{Access, Lease};
use crate::pack_file::read_footer;
use crate::state_files::condemned;
use crate::state_files::high_water_mark;
use crate::state_files::superseded;
use crate::storage::layout::{Layout, TailName};
use crate::storage::publish::{Published, failed};
use crate::storage::{GrowingFile, Landed, OpenTo, ReadAt};
use crate::tails::journal::{self, JOURNAL_HEADER_BYTES, JOURNAL_MAX_BYTES, JournalKey, Scan};
use crate::tails::tail::{Salvaged, Tail, read_whole};

/// Bytes of a file that are in memory at once where all are read.
const READ_BYTES: usize = 128 << 10;

/// What was found in the folder of tails.
#[derive(Debug, Default)]
pub(crate) struct Recovered {
    /// Tails that can go on, by name.
    pub(crate) tails: Vec<Tail>,
    /// Blocks of tails with holes, to be appended to a new tail; then the files are put aside.
    pub(crate) salvaged: Vec<Salvaged>,
    /// Tails of which the payloads are gone, to be put aside.
    pub(crate) lost: Vec<TailName>,
    /// Files that are damaged, with the reason.
    pub(crate) damaged: Vec<(PathBuf, String)>,
    /// Those of the tails that the disk did not give: it may the next time.
    pub(crate) unopened: Vec<TailName>,
    /// Whether others may write to these files: who had the lease and slept, or a copy of the repository that was made
    /// of hard links.
    are_held_open: bool,
    /// Where the newest record is in the log; 0 without one.
    newest_record: u64,
    /// More than any position that a tail which is there was begun at, or that was given to one of its blocks
    /// which could be read.
    pub(crate) next_arrival: u64,
}

impl Recovered {
    /// Has a tail go on, with all that is in it.
    fn add(&mut self, tail: Tail) -> Result<(), RepositoryError> {
        list_all(&tail)?;
        self.tails.push(tail);
        Ok(())
    }

    /// Has no index be believed that is from before something behind an arrival is let go, if there is something
    /// and a record came later: that may count on it.
    fn doubt(
        &self,
        layout: &Layout,
        arrival: u64,
        is_something: bool,
    ) -> Result<(), RepositoryError> {
        if is_something && self.newest_record > arrival {
            invalidate_saved_indexes(layout)
        } else {
            Ok(())
        }
    }

    /// Has all tails copied to new ones: what is still written to the files of these reaches nobody then.
    fn leave_files(&mut self) {
        self.salvaged.extend(self.tails.drain(..).map(Tail::into_salvaged));
    }
}

/// Opens all tails of a repository; `access` says whether they may be changed.
pub(crate) fn recover(
    layout: &Layout,
    repository: &RepositoryId,
    access: Access,
    lease: &Lease,
) -> Result<Recovered, RepositoryError> {
    let repair = access == Access::Write;
    let files = layout.tails().names()?;
    let are_held_open = lease.has_taken_over() || (repair && have_other_names(layout, &files)?);
    let newest_record = high_water_mark::read(&layout.records())?;
    let mut recovered = Recovered { are_held_open, newest_record, ..Recovered::default() };
    if repair {
        // Were it lost by now, some of these could be tails that whoever took it is writing to.
        lease.renew()?;
    }
    for file in &files {
        let Some(name) = file.to_str().and_then(TailName::of_journal) else { continue };
        recovered.next_arrival = recovered.next_arrival.max(name.number.saturating_add(1));
        let outcome = recover_one(layout, repository, name, repair, &mut recovered);
        // Its files stay as they are: they may be readable again the next time.
        if let Err(error) = outcome {
            recovered.damaged.push((layout.journal(name).path().to_owned(), unreadable(error)?));
            recovered.unopened.push(name);
        }
    }
    recovered.tails.sort_unstable_by_key(Tail::name);
    if repair {
        remove_lone_payloads(layout, &files, &recovered)?;
    }
    if recovered.are_held_open {
        recovered.leave_files();
    }
    Ok(recovered)
}

/// Whether a file of a tail has another name somewhere.
fn have_other_names(layout: &Layout, files: &[OsString]) -> Result<bool, RepositoryError> {
    for file in files {
        let path = layout.tails().join(file);
        let found = path.stat().map_err(failed("looking at", &path))?;
        if found.is_some_and(|found| found.has_other_names) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the disk gives all bytes of a tail.
pub(crate) fn is_readable(layout: &Layout, name: TailName) -> bool {
    [layout.journal(name), layout.payload(name)].iter().all(|path| match path.open() {
        Err(error) => error.kind() == io::ErrorKind::NotFound,
        Ok(file) => read_through(&file).is_ok(),
    })
}

/// Reads all bytes of a file, and keeps none.
fn read_through(file: &impl ReadAt) -> io::Result<()> {
    let end = file.len_bytes()?;
    let mut bytes = vec![0; READ_BYTES];
    for at in (0..end).step_by(READ_BYTES) {
        let length = READ_BYTES.min((end - at) as usize);
        file.fill_at(bytes.get_mut(..length).unwrap_or_default(), at)?;
    }
    Ok(())
}

fn recover_one(
    layout: &Layout,
    repository: &RepositoryId,
    name: TailName,
    repair: bool,
    recovered: &mut Recovered,
) -> Result<(), RepositoryError> {
    let path = layout.journal(name);
    let bytes = match path.read_limited(JOURNAL_MAX_BYTES) {
        Ok(bytes) => bytes.unwrap_or_default(),
        Err(RepositoryError::Damaged { reason, .. }) => {
            recovered.damaged.push((path.path().to_owned(), reason));
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let listed = listed_blocks(&journal::scan(&bytes, repository, name.kind()).unwrap_or_default());
    if let Some(payload) =
        open(&layout.payload(name), to_change(repair && !recovered.are_held_open))?
    {
        if repair && publish_if_whole(layout, repository, name, &*payload, listed.as_deref())? {
            return Ok(());
        }
        return recover_blocks(layout, repository, name, &bytes, payload, repair, recovered);
    }
    let blocks = listed.unwrap_or_default();
    recovered.next_arrival = next_after(recovered.next_arrival, &blocks);
    if !path.is_there()? {
        // Whoever lost the lease was about to remove both, since all of it is elsewhere.
        return Ok(());
    }
    if !packs_have(layout, repository, &blocks)? {
        let reason = "its payloads are gone, and no pack has them".into();
        recovered.damaged.push((path.path().to_owned(), reason));
        recovered.lost.push(name);
        return Ok(());
    }
    if repair { path.remove() } else { Ok(()) }
}

/// Why a tail cannot be read, if that is of its files alone: others may be opened all the same.
fn unreadable(error: RepositoryError) -> Result<String, RepositoryError> {
    let of_file = [Errno::IO, Errno::UCLEAN, Errno::BADMSG, Errno::ISDIR, Errno::LOOP, Errno::NXIO];
    match &error {
        RepositoryError::Io { source, .. }
            if of_file.iter().any(|one| source.raw_os_error() == Some(one.raw_os_error())) =>
        {
            Ok(format!("its tail cannot be opened: {error}"))
        }
        _ => Err(error),
    }
}

/// The blocks that a journal lists; `None` if it has a hole.
fn listed_blocks(scan: &Scan) -> Option<Vec<FooterBlock>> {
    scan.entries.iter().map(|found| found.block.clone()).collect()
}

fn next_after(next: u64, blocks: &[FooterBlock]) -> u64 {
    blocks.iter().fold(next, |next, block| next.max(block.arrival.saturating_add(1)))
}

fn to_change(is_changed: bool) -> OpenTo {
    if is_changed { OpenTo::Change } else { OpenTo::Read }
}

fn open(path: &Landed, to: OpenTo) -> Result<Option<Box<dyn GrowingFile>>, RepositoryError> {
    match path.open_growing(to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some).map_err(failed("opening", path)),
    }
}

/// A payload file that ends in a footer is a pack that only lacks its place, if the footer has exactly the
/// blocks of the journal. What the journal may have lost, nobody was promised.
///
/// A payload is whatever a client sent, so it may end in bytes that look like a footer: taking those
/// at their word would lose the blocks that they leave out, and give those that they add a place before others.
fn publish_if_whole(
    layout: &Layout,
    repository: &RepositoryId,
    name: TailName,
    payload: &dyn GrowingFile,
    listed: Option<&[FooterBlock]>,
) -> Result<bool, RepositoryError> {
    let path = layout.payload(name);
    let Ok((trailer, footer)) = read_footer(&path, payload, repository) else { return Ok(false) };
    if footer.kind != name.kind() || listed != Some(&footer.blocks[..]) {
        return Ok(false);
    }
    payload.sync_all().map_err(failed("syncing", &path))?;
    let target = layout.pack(&trailer.name);
    target.make_parent()?;
    if target.put_file(&path)? == Published::Existed {
        path.remove()?;
    }
    layout.tails().sync()?;
    layout.journal(name).remove()?;
    Ok(true)
}

/// Whether packs hold all of these blocks, at the same arrival positions.
fn packs_have(
    layout: &Layout,
    repository: &RepositoryId,
    blocks: &[FooterBlock],
) -> Result<bool, RepositoryError> {
    let mut wanted: BTreeSet<(u64, BlockName)> =
        blocks.iter().map(|block| (block.arrival, block.name)).collect();
    if wanted.is_empty() {
        return Ok(true);
    }
    for name in Listing::read(layout)?.packs.keys() {
        let path = layout.pack(name);
        let file = match path.open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            opened => opened.map_err(failed("opening", &path))?,
        };
        let (trailer, blocks) = match read_footer(&path, &file, repository) {
            Ok((trailer, Footer { blocks, .. })) => (trailer, blocks),
            Err(error @ RepositoryError::Io { .. }) => return Err(error),
            Err(_) => continue,
        };
        if trailer.name != *name {
            continue;
        }
        for block in blocks {
            wanted.remove(&(block.arrival, block.name));
        }
        if wanted.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn recover_blocks(
    layout: &Layout,
    repository: &RepositoryId,
    name: TailName,
    journal_bytes: &[u8],
    payload: Box<dyn GrowingFile>,
    repair: bool,
    recovered: &mut Recovered,
) -> Result<(), RepositoryError> {
    let has_entries = journal_bytes.len() > JOURNAL_HEADER_BYTES;
    let of_payload = layout.payload(name);
    let scan = match journal::scan(journal_bytes, repository, name.kind()) {
        Ok(scan) => scan,
        Err(error) if has_entries => {
            recovered.damaged.push((layout.journal(name).path().to_owned(), error.to_string()));
            return Ok(());
        }
        // Torn while it was made: nothing was acknowledged from it.
        Err(_) if repair => {
            let is_empty = payload.len_bytes().map_err(failed("reading", &of_payload))? == 0;
            recovered.doubt(layout, name.number, !is_empty)?;
            return discard(layout, name);
        }
        Err(_) => return Ok(()),
    };
    let (sound, prefix) = sound_blocks(&*payload, &scan).map_err(failed("reading", &of_payload))?;
    let whole: Vec<FooterBlock> =
        scan.entries.iter().filter_map(|found| found.block.clone()).collect();
    recovered.next_arrival = next_after(recovered.next_arrival, &whole);
    let last = prefix.checked_sub(1).and_then(|last| scan.entries.get(last));
    let journal_end = last.map_or(JOURNAL_HEADER_BYTES as u64, |found| found.end);
    let has_hole = scan.durable > journal_end;
    if has_hole {
        let reason = "it has a hole where everything was durable".into();
        recovered.damaged.push((layout.journal(name).path().to_owned(), reason));
    }
    let may_count = may_count(name, &scan, prefix, recovered.newest_record);
    if repair && may_count {
        let kept_end = end_of(sound.get(..prefix).unwrap_or_default());
        let is_longer = journal_bytes.len() as u64 > journal_end
            || payload.len_bytes().map_err(failed("reading", &of_payload))? > kept_end;
        if is_longer {
            invalidate_saved_indexes(layout)?;
        }
    }
    let is_needed = |block: &FooterBlock| is_older(block, name, recovered.newest_record);
    if has_hole || sound.iter().skip(prefix).any(is_needed) {
        let scattered = Scattered { name, payload, blocks: sound, journal_key: scan.key, has_hole };
        return keep_sound(layout, scattered, repair, recovered);
    }
    let blocks = sound.into_iter().take(prefix).collect();
    let front = Front { name, payload, blocks, journal_key: scan.key, journal_end };
    keep_front(layout, front, repair, recovered)
}

/// Whether anything may count on what is behind the front of a tail: a record that came later, or whoever moved
/// older blocks there and let go of where they lay. Of a crash nobody waited for the end of either.
fn may_count(name: TailName, scan: &Scan, prefix: usize, newest_record: u64) -> bool {
    let mut behind = scan.entries.iter().skip(prefix).filter_map(|found| found.block.as_ref());
    let last = prefix.checked_sub(1).and_then(|last| scan.entries.get(last)?.block.as_ref());
    let last_arrival = last.map_or(name.number, |last| last.arrival);
    newest_record > last_arrival || behind.any(|block| is_older(block, name, newest_record))
}

/// Whether a block came before the newest record, or before its tail, so that it was moved there.
fn is_older(block: &FooterBlock, name: TailName, newest_record: u64) -> bool {
    block.arrival < newest_record || block.arrival < name.number
}

/// Has no index from before be believed about what is closed, as the appender does while a store is open. The log
/// goes on behind the number.
fn invalidate_saved_indexes(layout: &Layout) -> Result<(), RepositoryError> {
    let last = condemned::last_prune(layout)?.max(superseded::read_all(layout)?.newest);
    condemned::begin_prune(layout, last.saturating_add(1))
}

/// What is sound of a tail that has something else before it or between.
struct Scattered {
    name: TailName,
    payload: Box<dyn GrowingFile>,
    blocks: Vec<FooterBlock>,
    journal_key: JournalKey,
    /// Whether what is between was durable, so that the journal's word does not count for much.
    has_hole: bool,
}

/// Has all that is sound of a tail be copied to a new one, or, for who only reads, found where it lies.
fn keep_sound(
    layout: &Layout,
    scattered: Scattered,
    repair: bool,
    recovered: &mut Recovered,
) -> Result<(), RepositoryError> {
    let Scattered { name, payload, mut blocks, journal_key, has_hole } = scattered;
    if has_hole {
        blocks.retain(|block| has_its_name(&*payload, block).unwrap_or(false));
    }
    if repair {
        recovered.salvaged.push(Salvaged { name, payload, blocks, is_whole: !has_hole });
        return Ok(());
    }
    let Some(journal) = open(&layout.journal(name), OpenTo::Read)? else { return Ok(()) };
    recovered.add(Tail::of_files(layout, name, payload, journal, journal_key, blocks))
}

/// The front of a tail that is as it was written.
struct Front {
    name: TailName,
    payload: Box<dyn GrowingFile>,
    blocks: Vec<FooterBlock>,
    journal_key: JournalKey,
    /// Where the journal's entry of the last block ends.
    journal_end: u64,
}

/// Cuts off what is behind the front of a tail, which can go on then; one without blocks goes.
fn keep_front(
    layout: &Layout,
    front: Front,
    repair: bool,
    recovered: &mut Recovered,
) -> Result<(), RepositoryError> {
    let Front { name, payload, blocks, journal_key, journal_end } = front;
    if repair && blocks.is_empty() {
        // Whoever made it may have lost the lease meanwhile, and take it away when it finds out.
        return discard(layout, name);
    }
    let to = to_change(repair && !recovered.are_held_open);
    let Some(journal) = open(&layout.journal(name), to)? else { return Ok(()) };
    // What is held open may be made a pack yet, and have its place.
    if repair && !recovered.are_held_open {
        cut(layout, name, &*payload, &*journal, &blocks, journal_end)?;
    }
    recovered.add(Tail::of_files(layout, name, payload, journal, journal_key, blocks))
}

/// The blocks that are as they were written, and how many of them lie one behind the other from
/// the start.
///
/// # Errors
/// What the disk says when a block cannot be read, which may be sound all the same: it must not be
/// taken for torn and cut off.
fn sound_blocks(payload: &dyn GrowingFile, scan: &Scan) -> io::Result<(Vec<FooterBlock>, usize)> {
    let mut sound = Vec::new();
    let mut prefix = 0;
    let mut end = 0u64;
    for (number, found) in scan.entries.iter().enumerate() {
        let Some(block) = &found.block else { continue };
        // What is behind the last durable place is hashed, and so is everything after a hole.
        let is_promised = found.end <= scan.durable && prefix == number;
        if is_promised || has_its_name(payload, block)? {
            if prefix == number && block.offset == end {
                prefix += 1;
                end += u64::from(block.header.payload_bytes);
            }
            sound.push(block.clone());
        }
    }
    Ok((sound, prefix))
}

/// Whether the bytes of a block are there and are those of its name.
fn has_its_name(payload: &dyn GrowingFile, block: &FooterBlock) -> io::Result<bool> {
    match read_whole(payload, block) {
        Ok(bytes) => Ok(BlockName::from_bytes(*blake3::hash(&bytes).as_bytes()) == block.name),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// Cuts what is torn off both files and makes the rest durable.
fn cut(
    layout: &Layout,
    name: TailName,
    payload: &dyn GrowingFile,
    journal: &dyn GrowingFile,
    blocks: &[FooterBlock],
    journal_end: u64,
) -> Result<(), RepositoryError> {
    let payload_end = end_of(blocks);
    let cut_one = |file: &dyn GrowingFile, end: u64| {
        if file.len_bytes()? != end {
            file.set_len(end)?;
        }
        file.sync_all()
    };
    cut_one(payload, payload_end).map_err(failed("cutting", &layout.payload(name)))?;
    cut_one(journal, journal_end).map_err(failed("cutting", &layout.journal(name)))?;
    layout.tails().sync()
}

/// Where the payload of the last block ends.
fn end_of(blocks: &[FooterBlock]) -> u64 {
    blocks.last().map_or(0, |last| last.offset + u64::from(last.header.payload_bytes))
}

/// Makes all objects of a tail known.
pub(crate) fn list_all(tail: &Tail) -> Result<(), RepositoryError> {
    for (block, number) in tail.all_clear().iter().zip(0..) {
        tail.list_objects(number, block.arrival, &block.table()?);
    }
    Ok(())
}

/// Removes both files of a tail in which nothing is that is needed, in an order that is kept: payloads
/// alone are swept, a journal alone would be taken for a loss.
pub(crate) fn discard(layout: &Layout, name: TailName) -> Result<(), RepositoryError> {
    layout.journal(name).remove()?;
    layout.tails().sync()?;
    layout.payload(name).remove()
}

/// Puts those of a damaged tail's files that are there aside, under names that are no tails.
pub(crate) fn put_aside(layout: &Layout, name: TailName) -> Result<(), RepositoryError> {
    for path in [layout.payload(name), layout.journal(name)] {
        match path.put_aside(".damaged") {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            renamed => renamed.map_err(failed("putting aside", &path))?,
        }
    }
    layout.tails().sync()
}

/// Removes payloads without a journal, of which nothing can be read: it was never written to, and its tail torn while
/// it was made; or a crash came while both were removed; or the journal is lost.
fn remove_lone_payloads(
    layout: &Layout,
    files: &[OsString],
    recovered: &Recovered,
) -> Result<(), RepositoryError> {
    for file in files {
        let Some(name) = file.to_str().and_then(TailName::of_payload) else { continue };
        let path = layout.payload(name);
        let is_kept = recovered.salvaged.iter().any(|tail| tail.name == name);
        if !is_kept && path.is_there()? && !layout.journal(name).is_there()? {
            let found = path.stat().map_err(failed("reading", &path))?;
            let is_empty = found.is_none_or(|found| found.len_bytes == 0);
            recovered.doubt(layout, name.number, !is_empty)?;
            path.remove()?;
        }
    }
    Ok(())
}
