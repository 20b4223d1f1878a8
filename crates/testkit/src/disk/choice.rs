//! What survives a crash: a fate for everything that was not durable.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::Random;

use super::history::{History, Inode, Moment, Op, Place, ROOT};
use super::image::{Image, Metadata};

/// What a disk writes whole or not at all.
const SECTOR_BYTES: usize = 512;
/// So many of the last things done are lost alone, and kept alone.
const LAST: usize = 4;

/// What became of one thing that was done and not made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Kept,
    Lost,
    /// Of a write some sectors are kept, by this seed; of a name that was moved, both are there.
    Torn(u64),
    /// A write made its file longer, and what is there is anything, by this seed.
    Garbled(u64),
}

/// One way in which a crash may end: the fate of all that was not durable.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// By the number of what was done; what is not here is durable.
    fates: BTreeMap<usize, Fate>,
}

impl Choice {
    fn of(pending: &[usize], fate: impl Fn(usize) -> Fate) -> Self {
        Self { fates: pending.iter().map(|&number| (number, fate(number))).collect() }
    }

    fn but(&self, number: usize, fate: Fate) -> Self {
        let mut other = self.clone();
        other.fates.insert(number, fate);
        other
    }
}

/// Ways in which a crash at that moment may end: the regular ones, and `more` that are drawn.
#[must_use]
pub fn choices(
    history: &History,
    moment: Moment<'_>,
    random: &mut Random,
    more: usize,
) -> Vec<Choice> {
    let pending = history.pending(moment);
    let is_name = |number: usize| history.done[number].op.is_of_names();
    let seed = random.next_u64();
    let all = |fate: Fate| Choice::of(&pending, |_| fate);
    let by_kind = |name: Fate, bytes: Fate| {
        Choice::of(&pending, |number| if is_name(number) { name } else { bytes })
    };
    let mut choices = vec![all(Fate::Lost), all(Fate::Kept)];
    if pending.is_empty() {
        return vec![all(Fate::Kept)];
    }
    choices.push(by_kind(Fate::Kept, Fate::Lost));
    choices.push(by_kind(Fate::Lost, Fate::Kept));
    choices.push(by_kind(Fate::Kept, Fate::Garbled(seed)));
    choices.push(by_kind(Fate::Torn(seed), Fate::Kept));
    for &number in pending.iter().rev().take(LAST) {
        choices.push(all(Fate::Kept).but(number, Fate::Lost));
        choices.push(all(Fate::Lost).but(number, Fate::Kept));
        choices.push(all(Fate::Kept).but(number, Fate::Torn(random.next_u64())));
        choices.push(all(Fate::Kept).but(number, Fate::Garbled(random.next_u64())));
    }
    choices.extend((0..more).map(|number| drawn(&pending, is_name, number % 3 == 0, random)));
    choices
}

/// A choice that is drawn; `in_order` for names that a journal keeps in the order in which they came.
fn drawn(
    pending: &[usize],
    is_name: impl Fn(usize) -> bool,
    in_order: bool,
    random: &mut Random,
) -> Choice {
    let cut = pending.get(random.index(pending.len())).copied().unwrap_or_default();
    let mut fates = BTreeMap::new();
    for &number in pending {
        let drawn = match random.below(8) {
            0 => Fate::Torn(random.next_u64()),
            1 => Fate::Garbled(random.next_u64()),
            2..5 => Fate::Lost,
            _ => Fate::Kept,
        };
        let by_journal = if number < cut { Fate::Kept } else { Fate::Lost };
        fates.insert(number, if in_order && is_name(number) { by_journal } else { drawn });
    }
    Choice { fates }
}

impl History {
    /// What the folder holds after a crash at that moment that ended so.
    #[must_use]
    pub fn image(&self, moment: Moment<'_>, choice: &Choice) -> Image {
        let born = self.born.iter().copied().enumerate().collect();
        let mut disk = Disk { metadata: born, ..Disk::default() };
        for (number, done) in self.done.iter().enumerate().take(moment.done) {
            disk.apply(&done.op, choice.fates.get(&number).copied().unwrap_or(Fate::Kept));
        }
        let mut image = Image::default();
        disk.collect(self, ROOT, Path::new(""), &mut image);
        image
    }

    /// What the folder holds if there is no crash.
    #[must_use]
    pub fn last(&self) -> Image {
        let said = "";
        self.image(Moment { said, done: self.done.len(), line: usize::MAX }, &Choice::default())
    }
}

/// The names and bytes that are there.
#[derive(Default)]
struct Disk {
    bytes: HashMap<Inode, Vec<u8>>,
    names: BTreeMap<Place, Inode>,
    metadata: HashMap<Inode, Metadata>,
    /// Of these a mode, a time or a move was lost, and all modes and times that came after it.
    stale: HashSet<Inode>,
}

impl Disk {
    fn apply(&mut self, op: &Op, fate: Fate) {
        match op {
            Op::Name { inode, from: Some(_), .. } if fate != Fate::Kept => {
                self.stale.insert(*inode);
            }
            _ => {}
        }
        match op {
            Op::Metadata { inode, .. } if fate == Fate::Lost => drop(self.stale.insert(*inode)),
            _ if fate == Fate::Lost => {}
            Op::Metadata { inode, .. } if self.stale.contains(inode) => {}
            Op::Metadata { inode, metadata: Metadata { mode, time } } => {
                let known = self.metadata.entry(*inode).or_default();
                (known.mode, known.time) = (mode.or(known.mode), time.or(known.time));
            }
            Op::Write { file, at, bytes } => self.write(*file, *at as usize, bytes, fate),
            Op::Truncate { file, length } => {
                self.bytes.entry(*file).or_default().resize(*length as usize, 0);
            }
            Op::Name { place, inode, from } => {
                if let Some(from) = from.as_ref().filter(|_| fate == Fate::Kept) {
                    self.unname(from, *inode);
                }
                self.names.insert(place.clone(), *inode);
            }
            Op::Unname { place } => {
                self.names.remove(place);
            }
        }
    }

    /// Takes a name away, if it is still that file's.
    fn unname(&mut self, place: &Place, inode: Inode) {
        if self.names.get(place) == Some(&inode) {
            self.names.remove(place);
        }
    }

    fn write(&mut self, file: Inode, at: usize, bytes: &[u8], fate: Fate) {
        let content = self.bytes.entry(file).or_default();
        let (length, end) = (content.len(), at + bytes.len());
        match fate {
            Fate::Torn(seed) => return tear(content, at, bytes, &mut Random::new(seed)),
            Fate::Garbled(seed) => {
                content.resize(length.max(end), 0);
                let mut random = Random::new(seed);
                // Zeros are what most file systems leave there.
                if end > length && !random.one_in(2) {
                    random.fill(&mut content[length..end]);
                }
                return;
            }
            Fate::Kept | Fate::Lost => {}
        }
        content.resize(length.max(end), 0);
        content[at..end].copy_from_slice(bytes);
    }

    fn collect(&self, history: &History, dir: Inode, below: &Path, image: &mut Image) {
        let names = self.names.range((dir, std::ffi::OsString::new())..);
        for ((_, name), &inode) in names.take_while(|((of, _), _)| *of == dir) {
            let path: PathBuf = below.join(name);
            let known = self.metadata.get(&inode).copied().unwrap_or_default();
            if known != Metadata::default() {
                image.metadata.insert(path.clone(), known);
            }
            if history.is_dir[inode] {
                image.entries.insert(path.clone(), None);
                self.collect(history, inode, &path, image);
            } else {
                let bytes = self.bytes.get(&inode).cloned().unwrap_or_default();
                image.entries.insert(path, Some(bytes));
            }
        }
    }
}

/// Writes some of the sectors that a write touches.
fn tear(content: &mut Vec<u8>, at: usize, bytes: &[u8], random: &mut Random) {
    let end = at + bytes.len();
    let is_cut = random.one_in(2);
    let cut = at + random.index(bytes.len());
    let mut start = at;
    while start < end {
        let next = ((start / SECTOR_BYTES + 1) * SECTOR_BYTES).min(end);
        let is_kept = if is_cut { next <= cut } else { random.one_in(2) };
        if is_kept {
            content.resize(content.len().max(next), 0);
            content[start..next].copy_from_slice(&bytes[start - at..next - at]);
        }
        start = next;
    }
}
