//! Any bit of a small repository is turned, any of its files ends too early, has a sector of zeros or two
//! that changed places, is what it was before, or has the content of another: that is told, or nothing
//! comes of it. What can be read is never another than what was put.
//!
//! ```text
//! read     opened to read, with a cache that is made anew
//! written  opened to write, which puts in order what it finds, and only then to read
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use bytes::Bytes;
use holdall_format::ObjectId;
use holdall_protocol::{RecordQuery, Repository, RepositoryError, SessionPurpose};
use holdall_testkit::{Choice, Image, Slice, failing, has_strace, memory, setting};

use crate::machine::open;
use crate::oracle::Expected;
use crate::plan::{again, plan};
use crate::{assert_none, place, watching};

const ROUNDS: u32 = 2;
/// A change meets one rot in so many.
const SLICES: u64 = 17;
/// One in so many states is opened to write too.
const WRITTEN: usize = 8;

/// What a repository gives its reader.
#[derive(Debug, Default, PartialEq, Eq)]
struct Content {
    described: Option<(Bytes, Bytes)>,
    records: Vec<Bytes>,
    objects: BTreeMap<ObjectId, Bytes>,
}

/// What was found, and whether anything said that it is damaged.
struct Found {
    content: Content,
    told: Vec<String>,
}

/// Reads everything that there is.
fn read(disk: &Path, ids: &BTreeMap<ObjectId, Bytes>) -> Found {
    let repository = open(disk);
    let mut found = Found { content: Content::default(), told: Vec::new() };
    let outcome = read_all(&repository, ids, &mut found);
    found.told.extend(outcome.err().map(|error| error.to_string()));
    found
}

fn read_all(
    repository: &dyn Repository,
    ids: &BTreeMap<ObjectId, Bytes>,
    found: &mut Found,
) -> Result<(), RepositoryError> {
    let description = repository.describe()?;
    found.content.described = Some((description.config, description.wrappings));
    let query = RecordQuery { limit: 100, ..RecordQuery::default() };
    let listed = repository.records(&query);
    match listed {
        Ok(listed) => found.content.records = listed.into_iter().map(|one| one.stored).collect(),
        Err(error) => found.told.push(error.to_string()),
    }
    let session = repository.open_session(&SessionPurpose::Read)?.session;
    for (id, put) in ids {
        match repository.fetch_objects(&session, &[*id], 0) {
            Ok(fetched) => {
                // Which of two copies counts, a damaged mark may change.
                let is_other_copy = |one: &Bytes| one != put && *one == again(*id);
                let as_put = |one| if is_other_copy(&one) { put.clone() } else { one };
                let blocks = fetched.blocks.into_iter().map(as_put);
                found.content.objects.extend(blocks.map(|one| (*id, one)));
            }
            Err(error) => found.told.push(error.to_string()),
        }
    }
    let report = repository.scrub(&mut |_| {})?;
    found.told.extend(report.damaged.iter().map(|damage| format!("{damage:?}")));
    Ok(())
}

impl Found {
    /// Whether damage is told, where what was found is the same, or said to be damaged, and no object is
    /// another one.
    fn judge(self, sound: &Content) -> Result<bool, String> {
        for (id, block) in &self.content.objects {
            if sound.objects.get(id) != Some(block) {
                return Err(format!("{id} is another block: {:?}", self.told));
            }
        }
        if self.told.is_empty() && self.content != *sound {
            return Err("it differs and nothing is told".into());
        }
        Ok(!self.told.is_empty())
    }
}

/// Files are small, and so are the sectors here.
const SECTOR_BYTES: usize = 128;

/// One way in which a file is not what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Rot {
    Turned {
        byte: usize,
        bit: u8,
    },
    Ends {
        at: usize,
    },
    /// A sector has nothing but zeros.
    Zeroed {
        from: usize,
    },
    /// Two sectors changed places.
    Swapped {
        one: usize,
        other: usize,
    },
    /// It is what it was at an earlier moment.
    Older {
        bytes: Vec<u8>,
    },
    /// It and another file have each other's name.
    Exchanged {
        with: PathBuf,
    },
}

impl Rot {
    fn kind(&self) -> &'static str {
        match self {
            Self::Turned { .. } => "bits",
            Self::Ends { .. } => "ends",
            Self::Zeroed { .. } => "zeroed sectors",
            Self::Swapped { .. } => "swapped sectors",
            Self::Older { .. } => "older contents",
            Self::Exchanged { .. } => "exchanged names",
        }
    }

    /// The files that it happens to, where it is that of the file at `path`.
    fn files<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = &'a Path> {
        let other = match self {
            Self::Exchanged { with } => Some(with.as_path()),
            _ => None,
        };
        [path].into_iter().chain(other)
    }

    /// The files that differ for it in an image, where it is that of the file at `path`, and what they hold.
    fn of(&self, path: &Path, image: &Image) -> Vec<(PathBuf, Vec<u8>)> {
        let content = |path: &Path| image.file(path).unwrap().to_vec();
        let mut bytes = content(path);
        match self {
            Self::Turned { byte, bit } => bytes[*byte] ^= 1 << bit,
            Self::Ends { at } => bytes.truncate(*at),
            Self::Zeroed { from } => {
                let to = bytes.len().min(from + SECTOR_BYTES);
                bytes[*from..to].fill(0);
            }
            Self::Swapped { one, other } => {
                let (front, back) = bytes.split_at_mut(*other);
                front[*one..one + SECTOR_BYTES].swap_with_slice(&mut back[..SECTOR_BYTES]);
            }
            Self::Older { bytes: older } => bytes.clone_from(older),
            Self::Exchanged { with } => {
                return vec![(path.to_owned(), content(with)), (with.clone(), bytes)];
            }
        }
        vec![(path.to_owned(), bytes)]
    }

    /// All that may happen to a file alone, but what makes no difference.
    fn all_of(bytes: &[u8], earlier: &BTreeSet<Vec<u8>>) -> Vec<Self> {
        let mut all = Vec::new();
        for byte in 0..bytes.len() {
            all.extend((0..8).map(|bit| Self::Turned { byte, bit }));
            all.push(Self::Ends { at: byte });
        }
        let sectors: Vec<usize> = (0..bytes.len()).step_by(SECTOR_BYTES).collect();
        let sector = |at: usize| &bytes[at..bytes.len().min(at + SECTOR_BYTES)];
        let has_bits = |at: &&usize| sector(**at).iter().any(|byte| *byte != 0);
        all.extend(sectors.iter().filter(has_bits).map(|from| Self::Zeroed { from: *from }));
        let whole = sectors.iter().filter(|at| *at + SECTOR_BYTES <= bytes.len());
        for (one, other) in
            whole.clone().flat_map(|one| whole.clone().map(move |other| (*one, *other)))
        {
            if one < other && sector(one) != sector(other) {
                all.push(Self::Swapped { one, other });
            }
        }
        // What it began with is a file that ends early.
        let differing = earlier.iter().filter(|older| !bytes.starts_with(older));
        all.extend(differing.map(|older| Self::Older { bytes: older.clone() }));
        all
    }
}

/// A small repository, by what a script left of it, and the objects that its snapshots reach, with the
/// blocks that they were put in.
struct Small {
    image: Image,
    /// What its files held before.
    earlier: BTreeMap<PathBuf, BTreeSet<Vec<u8>>>,
    ids: BTreeMap<ObjectId, Bytes>,
    content: Content,
}

/// What a script left at its end, and while it pruned.
fn repositories(seed: u64) -> Vec<Small> {
    let folder = memory().unwrap();
    let (place, mut history) = place(folder.path(), &Image::default(), "");
    watching(&place, seed, ROUNDS, &mut history, None);
    let has = |image: &Image, name: &str| image.files().any(|path| path.starts_with(name));
    let moments: Vec<_> = history.moments().collect();
    let images: Vec<_> =
        moments.iter().map(|moment| history.image(*moment, &Choice::default())).collect();
    let pruning = images.iter().position(|image| has(image, "new/repository/condemned"));
    let said = std::fs::read_to_string(place.notes()).unwrap();
    // There is a seed now and then whose script finds nothing to prune.
    let pruning = pruning.map(|at| (at, images[at].clone(), moments[at].said.to_owned()));
    let all = [(images.len(), history.last(), said)].into_iter().chain(pruning);
    let small = all.map(|(until, image, said)| {
        let ids = Expected::after(&plan(seed, ROUNDS), &said).needed();
        let folder = memory().unwrap();
        image.lay_down(folder.path()).unwrap();
        let found = read(folder.path(), &ids);
        assert_eq!(found.told, Vec::<String>::new(), "nothing is damaged");
        assert_eq!(found.content.objects.len(), ids.len());
        let earlier = earlier(&image, &images[..until]);
        Small { image, earlier, ids, content: found.content }
    });
    small.collect()
}

/// What the files of an image held before.
fn earlier(image: &Image, images: &[Image]) -> BTreeMap<PathBuf, BTreeSet<Vec<u8>>> {
    let of = |path: &Path| {
        images.iter().filter_map(|image| image.file(path)).map(<[u8]>::to_vec).collect()
    };
    image.files().map(|path| (path.to_owned(), of(path))).collect()
}

/// All that may happen to the files of a repository that are not known.
fn rots(small: &Small, known: &BTreeSet<PathBuf>) -> Vec<(PathBuf, Rot)> {
    let image = &small.image;
    let mut rots = Vec::new();
    let of_repository = |path: &&Path| path.starts_with(REPOSITORY);
    let files = || image.files().filter(of_repository);
    for path in files().filter(|path| !known.contains(*path)) {
        let all = Rot::all_of(image.file(path).unwrap(), &small.earlier[path]);
        rots.extend(all.into_iter().map(|rot| (path.to_owned(), rot)));
        let others = files().filter(|other| path < *other && image.file(path) != image.file(other));
        let with = others.map(|other| Rot::Exchanged { with: other.to_owned() });
        rots.extend(with.map(|rot| (path.to_owned(), rot)));
    }
    rots
}

/// The folder of the repository on its disk.
const REPOSITORY: &str = "new/repository";

/// The part of the repository that a file belongs to.
fn part(path: &Path) -> String {
    let part = path.strip_prefix(REPOSITORY).unwrap().iter().next().unwrap();
    part.to_string_lossy().into_owned()
}

/// Whether nothing may come of what happened to this file.
fn may_be_harmless(path: &Path, image: &Image) -> bool {
    let condemned = || Path::new(REPOSITORY).join("condemned").join(path.file_name().unwrap());
    match part(path).as_str() {
        // It holds nothing.
        "lock" => true,
        // What they say is found anew, or is done later, or their names alone say it: which calls work there, how far
        // a prune came, which positions were given, what is to be deleted, and which of two copies counts.
        "probes" | "pruned" | "positions" | "condemned" | "superseded" => true,
        // One that cannot be read has lapsed: what was put in it is sent again, and no snapshot needs it.
        "sessions" => true,
        // Nothing of it is needed.
        "packs" => image.file(&condemned()).is_some(),
        // Its last entry may be what a crash left of one, as long as no snapshot needs that.
        "tails" => true,
        _ => false,
    }
}

/// How many of each kind were told, and of which nothing came, by what they happened to.
#[derive(Default)]
struct Tally(BTreeMap<(&'static str, String), [usize; 2]>);

impl Tally {
    fn add(&mut self, path: &Path, rot: &Rot, is_told: bool) {
        let of = self.0.entry((rot.kind(), part(path))).or_default();
        of[usize::from(is_told)] += 1;
    }
}

/// Checks what may happen to the repositories of a seed; says how much that was, and whether one pruned.
fn check_seed(seed: u64, slice: Slice, tally: &Mutex<Tally>) -> (usize, bool) {
    let mut known: BTreeSet<PathBuf> = BTreeSet::new();
    let mut checked = 0;
    let all = repositories(seed);
    for small in &all {
        let rots = rots(small, &known);
        known.extend(small.image.files().map(Path::to_owned));
        let rots = slice.pick(rots);
        let numbered: Vec<(usize, &(PathBuf, Rot))> = rots.iter().enumerate().collect();
        let failed = failing(&numbered, |(number, rotten), folder| {
            let is_told = check(small, rotten, number % WRITTEN == 0, folder)
                .map_err(|reason| format!("seed {seed}, {rotten:?}: {reason}"))?;
            if !is_told
                && !rotten.1.files(&rotten.0).all(|path| may_be_harmless(path, &small.image))
            {
                return Err(format!("seed {seed}, {rotten:?}: nothing is told"));
            }
            tally.lock().unwrap().add(&rotten.0, &rotten.1, is_told);
            Ok(())
        });
        assert_none(&failed, rots.len());
        checked += rots.len();
    }
    (checked, all.len() > 1)
}

#[test]
fn whatever_becomes_of_a_file_it_is_told_or_harmless() {
    if !has_strace() {
        return;
    }
    let slice = Slice::one_in(SLICES);
    let wanted = slice.share(setting("HOLDALL_ROTS", 1));
    let mut seed = setting("HOLDALL_POWER_SEED", 1);
    let (mut checked, mut pruned) = (0, false);
    let tally = Mutex::default();
    while checked < wanted as usize || !pruned {
        let (more, one_pruned) = check_seed(seed, slice, &tally);
        checked += more;
        pruned |= one_pruned;
        seed += 1;
    }
    let Tally(tally) = tally.into_inner().unwrap();
    for ((kind, part), [harmless, told]) in &tally {
        println!("{kind} of {part}: {told} told, {harmless} harmless");
    }
    let [harmless, told] = [0, 1].map(|at| tally.values().map(|of| of[at]).sum::<usize>());
    println!("{checked} in all: {told} told, {harmless} harmless");
}

/// Whether damage is told.
fn check(
    small: &Small,
    (path, rot): &(PathBuf, Rot),
    writes: bool,
    folder: &Path,
) -> Result<bool, String> {
    let disk = folder.join("read");
    if !disk.exists() {
        small.image.lay_down(&disk).unwrap();
    }
    // The cache is derived, and would hide what it knows better.
    let _ = std::fs::remove_dir_all(disk.join("cache"));
    let rotten = rot.of(path, &small.image);
    for (path, bytes) in &rotten {
        std::fs::write(disk.join(path), bytes).unwrap();
    }
    let is_told = read(&disk, &small.ids).judge(&small.content)?;
    // Nothing else was changed by reading.
    for (path, _) in &rotten {
        std::fs::write(disk.join(path), small.image.file(path).unwrap()).unwrap();
    }
    if !writes {
        return Ok(is_told);
    }
    let disk = folder.join("written");
    let image = rotten
        .into_iter()
        .fold(small.image.clone(), |image, (path, bytes)| image.with(&path, bytes));
    image.lay_down(&disk).unwrap();
    // What cannot be opened to write is told.
    let _ = open(&disk).open_session(&SessionPurpose::Backup { parents: vec![] });
    let judged = read(&disk, &small.ids).judge(&small.content);
    std::fs::remove_dir_all(&disk).unwrap();
    judged.map(|_| is_told).map_err(|reason| format!("written to: {reason}"))
}
