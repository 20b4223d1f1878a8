//! The blocks that are remembered: of each eight that this machine put one after the other, one, so that
//! of every pack that the keeper fills there are several.
//!
//! ```text
//! | magic 8 | asked until i64 | next u64 | cut off u64 |
//! | per block: an object in it 32, its name 32, its bytes u32 |
//! ```
//!
//! `asked until` is the moment, in nanoseconds since 1970 UTC, up to which the round has asked, `next`
//! the block at which it goes on, and `cut off` how often in a row it was asked without an end. Which of
//! eight is remembered is chosen at random, and nobody else knows. The file may be lost: then what was
//! put before is not asked for.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use bytes::Bytes;
use holdall_crypto::{Entropy, SystemEntropy};
use holdall_format::{BLOCK_HEADER_BYTES, Block, BlockHeader, BlockKind, BlockName, ObjectId};

use crate::cache::private_folder::{
    make_anew, make_private, open_or_make, open_to_change, put_in_place, read_whole,
};
use crate::run::lock;

const MAGIC: [u8; 8] = *b"hldblks1";
const HEADER_BYTES: usize = MAGIC.len() + 8 + 8 + 8;
const ENTRY_BYTES: usize = ObjectId::LEN + BlockName::LEN + 4;
/// Of so many blocks that follow each other one is remembered.
const RUN: u8 = 8;
/// In so long every remembered block is asked for once. A day less than a week: a backup a day asks for what
/// came due since the one before it.
pub(super) const ROUND_NS: i128 = 6 * 24 * 3600 * 1_000_000_000;

fn place(folder: &Path) -> PathBuf {
    folder.join("blocks")
}

/// A block that was put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Remembered {
    /// An object in it.
    pub(super) object: ObjectId,
    pub(super) name: BlockName,
    pub(super) bytes: u32,
}

impl Remembered {
    fn of(block: &Bytes) -> Option<Self> {
        let bytes = u32::try_from(block.len()).ok()?;
        let block = Block::decode(block.clone()).ok()?;
        let object = block.table().entries.first()?.id;
        Some(Self { object, name: block.name(), bytes })
    }

    fn encode(&self) -> [u8; ENTRY_BYTES] {
        let mut entry = [0; ENTRY_BYTES];
        let (ids, bytes) = entry.split_at_mut(ENTRY_BYTES - 4);
        let (object, name) = ids.split_at_mut(ObjectId::LEN);
        object.copy_from_slice(self.object.as_bytes());
        name.copy_from_slice(self.name.as_bytes());
        bytes.copy_from_slice(&self.bytes.to_le_bytes());
        entry
    }

    fn decode(entry: &[u8; ENTRY_BYTES]) -> Option<Self> {
        let (object, rest) = entry.split_first_chunk()?;
        let (name, bytes) = rest.split_first_chunk()?;
        Some(Self {
            object: ObjectId::from_bytes(*object),
            name: BlockName::from_bytes(*name),
            bytes: u32::from_le_bytes(*bytes.first_chunk()?),
        })
    }
}

/// Chooses what is remembered while a run puts blocks.
pub(crate) struct Remembering {
    folder: PathBuf,
    runs: Mutex<[Eight; 2]>,
}

/// Eight blocks of one kind that follow each other; keepers keep kinds apart.
#[derive(Default)]
struct Eight {
    at: u8,
    chosen: u8,
}

impl Eight {
    /// Whether the next one is remembered: the very first is.
    fn choose(&mut self) -> bool {
        let chosen = self.at == self.chosen;
        self.at += 1;
        if self.at == RUN {
            let mut random = [0];
            SystemEntropy.fill(&mut random);
            *self = Self { at: 0, chosen: random[0] % RUN };
        }
        chosen
    }
}

impl Remembering {
    /// In a repository's folder of caches.
    pub(crate) fn within(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), runs: Mutex::default() }
    }

    /// Takes note of blocks that the repository acknowledged.
    pub(crate) fn remember(&self, put: &[Bytes]) {
        let mut runs = lock(&self.runs);
        let chosen = put.iter().filter(|block| {
            let header = block.get(..BLOCK_HEADER_BYTES).map(BlockHeader::decode);
            let kind = header.and_then(Result::ok).map(|header| header.kind);
            let [nodes, chunks] = &mut *runs;
            if kind == Some(BlockKind::Nodes) { nodes.choose() } else { chunks.choose() }
        });
        let entries: Vec<u8> =
            chosen.filter_map(Remembered::of).flat_map(|block| block.encode()).collect();
        if !entries.is_empty() {
            // What cannot be written is not asked for.
            let _ = self.append(&entries);
        }
    }

    fn append(&self, entries: &[u8]) -> io::Result<()> {
        make_private(&self.folder)?;
        let mut file = open_or_make(&place(&self.folder))?;
        // What a crash left of an entry is cut off.
        let len = file.metadata()?.len();
        let behind_header = len.checked_sub(HEADER_BYTES as u64);
        let whole = behind_header.map_or(0, |bytes| len - bytes % ENTRY_BYTES as u64);
        file.seek(SeekFrom::Start(whole))?;
        if whole < len {
            file.set_len(whole)?;
        }
        if whole == 0 {
            file.write_all(&[&MAGIC[..], &[0; HEADER_BYTES - MAGIC.len()]].concat())?;
        }
        file.write_all(entries)
    }
}

/// How many blocks a folder of caches remembers that are due by then and can be read.
pub(crate) fn count_remembered(folder: &Path, now_ns: i64) -> usize {
    let round = Round::open(folder, now_ns);
    round.map_or(0, |mut round| round.take(round.due(now_ns)).len())
}

/// What is remembered, and how far the round is.
pub(super) struct Round {
    folder: PathBuf,
    file: File,
    count: u64,
    asked_until_ns: i64,
    next: u64,
    cut_off: u64,
}

impl Round {
    /// Goes on with the round in a repository's folder of caches; `None` if nothing is remembered.
    pub(super) fn open(folder: &Path, now_ns: i64) -> Option<Self> {
        let file = open_to_change(&place(folder)).ok()?;
        let mut header = [0; HEADER_BYTES];
        file.read_exact_at(&mut header, 0).ok()?;
        let (magic, rest) = header.split_first_chunk()?;
        let (asked_until, rest) = rest.split_first_chunk()?;
        let (next, cut_off) = rest.split_first_chunk()?;
        let entries_bytes = file.metadata().ok()?.len().checked_sub(HEADER_BYTES as u64)?;
        let count = entries_bytes / ENTRY_BYTES as u64;
        if *magic != MAGIC || count == 0 {
            return None;
        }
        let next = u64::from_le_bytes(*next) % count;
        let cut_off = u64::from_le_bytes(*cut_off.first_chunk()?);
        let (folder, asked_until_ns) = (folder.to_owned(), i64::from_le_bytes(*asked_until));
        let mut round = Self { folder, file, count, asked_until_ns, next, cut_off };
        if asked_until_ns == 0 || asked_until_ns > now_ns {
            // The first round begins, or the clock was set back.
            round.asked_until_ns = now_ns;
            round.keep();
        }
        Some(round)
    }

    /// In how long what is due by now came due.
    pub(super) fn lag_ns(&self, now_ns: i64) -> i128 {
        (i128::from(now_ns) - i128::from(self.asked_until_ns)).max(0)
    }

    /// How many blocks are to be asked for by now.
    pub(super) fn due(&self, now_ns: i64) -> u64 {
        let due = self.lag_ns(now_ns) * i128::from(self.count) / ROUND_NS;
        u64::try_from(due).unwrap_or(u64::MAX).min(self.count)
    }

    /// Begins to ask, and says how often in a row that was cut off before.
    pub(super) fn begin(&mut self) -> u64 {
        let before = self.cut_off;
        self.cut_off = before.saturating_add(1);
        self.keep();
        before
    }

    /// The next `count` blocks, as far as they can be read.
    pub(super) fn take(&mut self, count: u64) -> Vec<Remembered> {
        let mut taken = Vec::new();
        for _ in 0..count {
            let mut entry = [0; ENTRY_BYTES];
            let at = HEADER_BYTES as u64 + self.next * ENTRY_BYTES as u64;
            if self.file.read_exact_at(&mut entry, at).is_ok() {
                taken.extend(Remembered::decode(&entry));
            }
            self.next = (self.next + 1) % self.count;
        }
        taken
    }

    /// Notes that so many were asked for, and what came of it is known; what more was due by now stays
    /// due, and nothing does once all were asked for, however long nobody had asked.
    pub(super) fn asked(&mut self, count: u64, now_ns: i64) {
        let passed = i128::from(count) * ROUND_NS / i128::from(self.count.max(1));
        let until = i128::from(self.asked_until_ns) + passed;
        let is_all = count >= self.count;
        self.asked_until_ns = if is_all { now_ns } else { i64::try_from(until).unwrap_or(now_ns) };
        self.cut_off = 0;
        self.keep();
    }

    /// Forgets blocks that the repository has no more and nobody needs.
    pub(super) fn forget(&mut self, gone: &[Remembered]) {
        // What cannot be written is asked for once more.
        let _ = self.rewrite_without(gone);
    }

    fn rewrite_without(&mut self, gone: &[Remembered]) -> io::Result<()> {
        let place = place(&self.folder);
        let bytes = read_whole(&place)?;
        let (header, entries) = bytes.split_at_checked(HEADER_BYTES).unwrap_or_default();
        let (entries, _) = entries.as_chunks::<ENTRY_BYTES>();
        let gone: HashSet<_> = gone.iter().map(Remembered::encode).collect();
        let kept: Vec<u8> =
            entries.iter().filter(|entry| !gone.contains(*entry)).flatten().copied().collect();
        let written_at = place.with_extension("new");
        let mut file = make_anew(&written_at)?;
        file.write_all(&[header, &kept].concat())?;
        put_in_place(&written_at, &place)?;
        self.file = file;
        Ok(())
    }

    fn keep(&self) {
        let (next, cut_off) = (self.next.to_le_bytes(), self.cut_off.to_le_bytes());
        let header = [self.asked_until_ns.to_le_bytes(), next, cut_off].concat();
        // It is begun again where it was.
        let _ = self.file.write_all_at(&header, MAGIC.len() as u64);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::fs;

    use holdall_testkit::Random;

    use super::*;

    const DAY_NS: i64 = 24 * 3600 * 1_000_000_000;
    const NOW_NS: i64 = 1_700_000_000 * 1_000_000_000;

    fn remembered(number: u32) -> Remembered {
        let [object, name] = [b"object", b"name__"]
            .map(|of| *blake3::hash(&[&of[..], &number.to_le_bytes()].concat()).as_bytes());
        let (object, name) = (ObjectId::from_bytes(object), BlockName::from_bytes(name));
        Remembered { object, name, bytes: number }
    }

    fn with_remembered(count: u32) -> (tempfile::TempDir, Round) {
        let folder = tempfile::tempdir().expect("a folder");
        let entries: Vec<u8> = (0..count).flat_map(|number| remembered(number).encode()).collect();
        Remembering::within(folder.path()).append(&entries).expect("room");
        let round = Round::open(folder.path(), NOW_NS).expect("some are remembered");
        (folder, round)
    }

    #[test]
    fn a_round_asks_for_every_block_once_within_six_days_however_it_is_divided() {
        for hours in [1, 5, 24, 100, 144] {
            let (folder, first) = with_remembered(100);
            assert_eq!(first.due(NOW_NS), 0, "a round begins with nothing due");
            let mut asked = Vec::new();
            let mut now = NOW_NS;
            while now < NOW_NS + 6 * DAY_NS {
                now = (now + hours * 3_600_000_000_000).min(NOW_NS + 6 * DAY_NS);
                // Each time in a process of its own.
                let mut round = Round::open(folder.path(), now).expect("some are remembered");
                let due = round.due(now);
                asked.extend(round.take(due));
                round.asked(due, now);
            }
            let all: Vec<_> = (0..100).map(remembered).collect();
            assert_eq!(asked, all, "every {hours} hours");
        }
    }

    #[test]
    fn every_block_is_asked_for_again_within_seven_days_through_ninety_days_of_backups_at_any_hour()
    {
        const PACK_BLOCKS: u32 = 32;
        let folder = tempfile::tempdir().expect("a folder");
        let (remembering, mut eight) = (Remembering::within(folder.path()), Eight::default());
        let (mut random, mut put, mut seen_on) = (Random::new(3), 0, HashMap::new());
        for day in 0..90 {
            let fresh = if day == 0 { 600 * PACK_BLOCKS } else { 5 * PACK_BLOCKS };
            let chosen: Vec<_> = (put..put + fresh).filter(|_| eight.choose()).collect();
            let entries = chosen.iter().flat_map(|number| remembered(*number).encode());
            remembering.append(&entries.collect::<Vec<u8>>()).expect("room");
            seen_on.extend(chosen.into_iter().map(|number| (number, day)));
            put += fresh;
            let now = NOW_NS + day * DAY_NS + random.below(24) as i64 * DAY_NS / 24;
            let mut round = Round::open(folder.path(), now).expect("some are remembered");
            let due = round.due(now);
            for block in round.take(due) {
                let last = seen_on.insert(block.bytes, day).expect("it was put");
                assert!(day - last <= 7, "not from day {last} to {day}");
            }
            round.asked(due, now);
        }
        assert!(seen_on.values().all(|last| 89 - last <= 7), "{seen_on:?}");
    }

    #[test]
    fn a_clock_that_was_set_asks_for_nothing_twice_and_never_for_more_than_all() {
        let (folder, round) = with_remembered(10);
        assert_eq!(round.due(NOW_NS + 900 * DAY_NS), 10);
        let round = Round::open(folder.path(), NOW_NS - DAY_NS).expect("some are remembered");
        assert_eq!(round.due(NOW_NS - DAY_NS), 0, "set back");
        assert_eq!(round.due(NOW_NS + 6 * DAY_NS), 10);
    }

    #[test]
    fn what_there_was_no_time_for_stays_due_and_nothing_does_once_all_were_asked_for() {
        let (_folder, mut round) = with_remembered(12);
        let now = NOW_NS + 30 * DAY_NS;
        assert_eq!(round.due(now), 12);
        round.asked(4, now);
        assert_eq!((round.lag_ns(now), round.due(now)), (i128::from(28 * DAY_NS), 12));
        round.asked(12, now);
        assert_eq!((round.lag_ns(now), round.due(now)), (0, 0));
        assert_eq!(round.due(now + DAY_NS), 2, "as if it had been asked every day");
    }

    #[test]
    fn what_is_forgotten_is_not_asked_for_and_the_rest_is() {
        let (folder, mut round) = with_remembered(5);
        round.forget(&[remembered(0), remembered(3)]);
        let mut round = Round::open(folder.path(), NOW_NS).expect("some are remembered");
        assert_eq!(round.take(3), [1, 2, 4].map(remembered));
        round.forget(&[1, 2, 4].map(remembered));
        assert!(Round::open(folder.path(), NOW_NS).is_none());
    }

    #[test]
    fn of_any_sixteen_blocks_that_follow_each_other_one_is_chosen() {
        let mut eight = Eight::default();
        let chosen: Vec<bool> = (0..10_000).map(|_| eight.choose()).collect();
        assert!(chosen[0] && chosen.windows(16).all(|window| window.contains(&true)));
        assert_eq!(chosen.iter().filter(|chosen| **chosen).count(), 10_000 / 8);
    }

    #[test]
    fn a_file_of_others_or_cut_short_is_nothing_remembered_or_less() {
        let (folder, _) = with_remembered(3);
        let place = place(folder.path());
        let bytes = fs::read(&place).expect("the file");
        for len in 0..bytes.len() {
            fs::write(&place, &bytes[..len]).expect("room");
            let count = Round::open(folder.path(), NOW_NS).map_or(0, |round| round.count);
            assert_eq!(count, (len.saturating_sub(HEADER_BYTES) / ENTRY_BYTES) as u64, "{len}");
        }
        fs::write(&place, [b'x'; 300]).expect("room");
        assert!(Round::open(folder.path(), NOW_NS).is_none());
    }

    #[test]
    fn what_is_remembered_behind_a_torn_entry_can_be_read() {
        for torn in [1, HEADER_BYTES - 1, HEADER_BYTES + 1, HEADER_BYTES + 2 * ENTRY_BYTES - 1] {
            let (folder, _) = with_remembered(2);
            let bytes = fs::read(place(folder.path())).expect("the file");
            fs::write(place(folder.path()), &bytes[..torn]).expect("room");
            let entry = remembered(7).encode();
            Remembering::within(folder.path()).append(&entry).expect("room");
            let mut round = Round::open(folder.path(), NOW_NS).expect("some are remembered");
            assert_eq!(round.take(round.count).last(), Some(&remembered(7)), "{torn}");
        }
    }
}
