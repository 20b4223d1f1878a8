//! Any bit of a small repository is turned, and any of its files ends too early: that is told, or
//! nothing comes of it. What can be read is never another than what was put.
//!
//! ```text
//! read     opened to read, with a cache that is made anew
//! written  opened to write, which puts in order what it finds, and only then to read
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use holdall_format::ObjectId;
use holdall_protocol::{RecordQuery, Repository, RepositoryError, SessionPurpose};
use holdall_testkit::{Choice, Image, failing, has_strace, memory};

use crate::machine::open;
use crate::oracle::Expected;
use crate::plan::{again, plan};
use crate::{assert_none, place, setting, turn, watching};

const ROUNDS: u32 = 2;
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
                let as_put = |one| if one == again(*id) { put.clone() } else { one };
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
    /// Whether what was found is the same, or said to be damaged, and no object is another one.
    fn judge(self, sound: &Content) -> Result<(), String> {
        for (id, block) in &self.content.objects {
            if sound.objects.get(id) != Some(block) {
                return Err(format!("{id} is another block: {:?}", self.told));
            }
        }
        if self.told.is_empty() && self.content != *sound {
            return Err("it differs and nothing is told".into());
        }
        Ok(())
    }
}

/// One way in which a file is not what it was.
#[derive(Debug, Clone)]
enum Rot {
    Turned { byte: usize, bit: u8 },
    Ends { at: usize },
}

impl Rot {
    fn of(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        match self {
            Self::Turned { byte, bit } => bytes[*byte] ^= 1 << bit,
            Self::Ends { at } => bytes.truncate(*at),
        }
        bytes
    }
}

/// A small repository, by what a script left of it, and the objects that its snapshots reach, with the
/// blocks that they were put in.
struct Small {
    image: Image,
    ids: BTreeMap<ObjectId, Bytes>,
    content: Content,
}

/// What a script left at its end, and while it pruned.
fn repositories(seed: u64) -> Vec<Small> {
    let folder = memory().unwrap();
    let (place, mut history) = place(folder.path(), &Image::default(), "");
    watching(&place, seed, ROUNDS, &mut history, None);
    let has = |image: &Image, name: &str| image.files().any(|path| path.starts_with(name));
    let pruning = history.moments().find_map(|moment| {
        let image = history.image(moment, &Choice::default());
        has(&image, "new/repository/condemned").then(|| (image, moment.said.to_owned()))
    });
    let said = std::fs::read_to_string(place.notes()).unwrap();
    // There is a seed now and then whose script finds nothing to prune.
    let all = [(history.last(), said)].into_iter().chain(pruning);
    let small = all.map(|(image, said)| {
        let ids = Expected::after(&plan(seed, ROUNDS), &said).needed();
        let folder = memory().unwrap();
        image.lay_down(folder.path()).unwrap();
        let found = read(folder.path(), &ids);
        assert_eq!(found.told, Vec::<String>::new(), "nothing is damaged");
        assert_eq!(found.content.objects.len(), ids.len());
        Small { image, ids, content: found.content }
    });
    small.collect()
}

/// All that may happen to the files of a repository that are not known: each bit, each end.
fn rots(image: &Image, known: &BTreeSet<PathBuf>) -> Vec<(PathBuf, Rot)> {
    let mut rots = Vec::new();
    let files = image.files().filter(|path| path.starts_with("new/repository"));
    for path in files.filter(|path| !known.contains(*path)) {
        for byte in 0..image.file(path).unwrap().len() {
            rots.extend((0..8).map(|bit| (path.to_owned(), Rot::Turned { byte, bit })));
            rots.push((path.to_owned(), Rot::Ends { at: byte }));
        }
    }
    rots
}

/// Checks what may happen to the repositories of a seed; says how much that was, and whether one pruned.
fn check_seed(seed: u64) -> (usize, bool) {
    let mut known: BTreeSet<PathBuf> = BTreeSet::new();
    let mut checked = 0;
    let all = repositories(seed);
    for small in &all {
        let rots = rots(&small.image, &known);
        known.extend(small.image.files().map(Path::to_owned));
        let numbered: Vec<(usize, &(PathBuf, Rot))> = rots.iter().enumerate().collect();
        let failed = failing(&numbered, |(number, rotten), folder| {
            check(small, rotten, number % WRITTEN == 0, folder)
                .map_err(|reason| format!("seed {seed}, {rotten:?}: {reason}"))
        });
        assert_none(&failed, rots.len());
        checked += rots.len();
    }
    (checked, all.len() > 1)
}

#[test]
fn whatever_bit_rots_and_wherever_a_file_ends_it_is_told_or_harmless() {
    if !has_strace() {
        return;
    }
    let _turn = turn();
    let wanted = setting("HOLDALL_ROTS", 1);
    let mut seed = setting("HOLDALL_POWER_SEED", 1);
    let (mut checked, mut pruned) = (0, false);
    while checked < wanted as usize || !pruned {
        let (more, one_pruned) = check_seed(seed);
        checked += more;
        pruned |= one_pruned;
        seed += 1;
    }
    println!("{checked} bits and ends");
}

fn check(
    small: &Small,
    (path, rot): &(PathBuf, Rot),
    writes: bool,
    folder: &Path,
) -> Result<(), String> {
    let sound = small.image.file(path).unwrap();
    let disk = folder.join("read");
    if !disk.exists() {
        small.image.lay_down(&disk).unwrap();
    }
    // The cache is derived, and would hide what it knows better.
    let _ = std::fs::remove_dir_all(disk.join("cache"));
    std::fs::write(disk.join(path), rot.of(sound.to_vec())).unwrap();
    read(&disk, &small.ids).judge(&small.content)?;
    // Nothing else was changed by reading.
    std::fs::write(disk.join(path), sound).unwrap();
    if !writes {
        return Ok(());
    }
    let disk = folder.join("written");
    small.image.with(path, rot.of(sound.to_vec())).lay_down(&disk).unwrap();
    // What can not be opened to write is told.
    let _ = open(&disk).open_session(&SessionPurpose::Backup { parents: vec![] });
    let judged = read(&disk, &small.ids).judge(&small.content);
    std::fs::remove_dir_all(&disk).unwrap();
    judged.map_err(|reason| format!("written to: {reason}"))
}
