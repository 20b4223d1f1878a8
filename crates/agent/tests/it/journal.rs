//! The journal on real file systems: whatever differs from one run to the next lies in a place that it named.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::channel;

use holdall_agent::journal::{Committed, Journal, Queue, Reason, Walk, WatchedSet, WatchedSource};
use holdall_testkit::{Disturber, Slice, is_there, setting};
use tempfile::TempDir;

/// A file system of its own, so that nothing else happens on it, with what is backed up and a folder beside that.
struct Place {
    folder: TempDir,
    mounted: Vec<PathBuf>,
}

impl Place {
    /// `None` for who may not mount.
    fn new(kind: &str) -> Option<Self> {
        let mut place = Self { folder: tempfile::tempdir().unwrap(), mounted: Vec::new() };
        place.mount(kind, "")?;
        for folder in [place.source(), place.outside()] {
            fs::create_dir(folder).unwrap();
        }
        Some(place)
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("disk")
    }

    fn source(&self) -> PathBuf {
        self.root().join("source")
    }

    fn outside(&self) -> PathBuf {
        self.root().join("outside")
    }

    /// Mounts another one, below the first.
    fn mount(&mut self, kind: &str, below: &str) -> Option<PathBuf> {
        let point = match below {
            "" => self.root(),
            below => self.root().join(below),
        };
        fs::create_dir_all(&point).unwrap();
        let mut command = Command::new("mount");
        if kind == "tmpfs" {
            command.args(["-t", kind, "-o", "size=64m", "holdall-test"]);
        } else {
            let image = self.folder.path().join(format!("image{}", self.mounted.len()));
            fs::File::create(&image).and_then(|file| file.set_len(64 << 20)).unwrap();
            let make = format!("/usr/sbin/mkfs.{kind}");
            let made = Command::new(&make).args(["-q", "-F"]).arg(&image).status();
            is_there(&make, made.is_ok_and(|made| made.success())).then_some(())?;
            command.args(["-o", "loop"]).arg(image);
        }
        let mounted = command.arg(&point).output().unwrap().status.success();
        is_there("the right to mount (root)", mounted).then_some(())?;
        self.mounted.push(point.clone());
        Some(point)
    }

    fn unmount(&mut self) {
        unmount(&self.mounted.pop().unwrap(), &[]);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.mounted.iter().rev().for_each(|point| unmount(point, &["-l"]));
    }
}

fn unmount(point: &Path, how: &[&str]) {
    assert!(Command::new("umount").args(how).arg(point).status().unwrap().success());
}

/// The journal with one set, and its runs.
struct Runs {
    journal: Journal,
    snapshots: u64,
}

impl Runs {
    fn new(source: &Path, queue: Queue) -> Self {
        let runs = Self { journal: Journal::start(queue).unwrap(), snapshots: 0 };
        runs.follow(source, "");
        runs
    }

    fn follow(&self, source: &Path, settings: &str) {
        let set = WatchedSet {
            name: "home".to_owned(),
            sources: vec![WatchedSource { path: source.to_owned(), is_followed: false }],
            marks: vec![b".nobackup".to_vec()],
            settings: settings.to_owned(),
            unsuitable: None,
        };
        self.journal.follow(vec![set]);
    }

    /// What a run is told that walks now.
    fn begin(&self) -> Walk {
        let (mut asks, asked) = UnixStream::pair().unwrap();
        let (tell, told) = channel();
        let answer = move |walk: &Walk| {
            tell.send(walk.clone()).unwrap();
            Ok("answer".to_owned())
        };
        self.journal.run_started("home", asked, Box::new(answer));
        asks.write_all(b"?").unwrap();
        let mut answer = String::new();
        asks.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "answer");
        told.recv().unwrap()
    }

    fn end(&mut self) {
        self.snapshots += 1;
        self.journal.run_ended("home", Committed::Whole(self.snapshots.to_string()));
    }

    /// A whole run.
    fn run(&mut self) -> Walk {
        let walk = self.begin();
        self.end();
        walk
    }
}

/// What a backup sees of a path.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    about: [i64; 11],
    content: Vec<u8>,
}

impl Seen {
    /// The type of the file, and its number.
    fn identity(&self) -> (i64, i64) {
        (self.about[0] & 0o170_000, self.about[7])
    }
}

/// What a backup sees of everything at and below a folder.
fn seen(folder: &Path) -> Tree {
    let mut all = BTreeMap::new();
    let mut paths = vec![folder.to_owned()];
    while let Some(path) = paths.pop() {
        let stat = path.symlink_metadata().unwrap();
        let content = if stat.is_dir() {
            paths.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            Vec::new()
        } else if stat.is_symlink() {
            fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
        } else {
            fs::read(&path).unwrap()
        };
        let about = [
            stat.mode().into(),
            stat.uid().into(),
            stat.gid().into(),
            stat.mtime(),
            stat.mtime_nsec(),
            stat.ctime(),
            stat.ctime_nsec(),
            stat.ino() as i64,
            stat.nlink() as i64,
            if stat.is_dir() { 0 } else { stat.len() as i64 },
            stat.dev() as i64,
        ];
        all.insert(path, Seen { about, content });
    }
    all
}

type Tree = BTreeMap<PathBuf, Seen>;

/// Whether who looks at these places finds out that a path is another one: the path lies in one, or a folder above does, which is
/// gone, new or another one.
fn is_found(path: &Path, places: &[(PathBuf, bool)], before: &Tree, now: &Tree) -> bool {
    let is_in = |path: &Path| {
        places.iter().any(|(place, is_deep)| {
            path == place || path.parent() == Some(place) || *is_deep && path.starts_with(place)
        })
    };
    let is_same = |path: &Path| {
        let [before, now] = [before, now].map(|tree| tree.get(path).map(Seen::identity));
        before == now
    };
    // A backup looks at files with several names in any case.
    let has_names = before.get(path).is_some_and(|seen| seen.about[8] > 1);
    has_names
        || is_in(path)
        || path.ancestors().skip(1).any(|above| !is_same(above) && is_in(above))
}

/// Of a run, as many steps apart as the seed says.
const STEPS_BETWEEN: u64 = 20;

fn every_difference_lies_in_a_place(kind: &str) {
    let Some(place) = Place::new(kind) else { return };
    let slice = Slice::one_in(10);
    let steps = slice.share(setting("HOLDALL_JOURNAL_STEPS", 10_000));
    let (source, outside) = (place.source(), place.outside());
    let mut disturber = Disturber::new(vec![source.clone(), outside], slice.seed(1)).unwrap();
    let mut runs = Runs::new(&source, Queue::Unbounded);
    assert_eq!(runs.run(), Walk::Full(Reason::BeganLater));
    let mut before = seen(&source);
    let (mut by_journal, mut failed, mut reasons) = (0, 0, BTreeMap::new());
    let mut done = Vec::new();
    for step in 1..=steps {
        done.push(disturber.step().unwrap());
        if step % STEPS_BETWEEN != 0 {
            continue;
        }
        let walk = runs.begin();
        // One run in four fails, and its places come back with the next one's.
        if step % (4 * STEPS_BETWEEN) == 0 {
            runs.journal.run_ended("home", Committed::Nothing);
            failed += 1;
            continue;
        }
        let now = seen(&source);
        match walk {
            Walk::Changes { since, places } => {
                assert_eq!(since, runs.snapshots.to_string());
                by_journal += 1;
                let paths = before.keys().chain(now.keys());
                for path in paths.filter(|path| before.get(*path) != now.get(*path)) {
                    let done = done.join("\n");
                    assert!(
                        is_found(path, &places, &before, &now),
                        "{path:?} is in none of {places:?}\n{done}"
                    );
                }
            }
            Walk::Full(reason) => *reasons.entry(reason.to_string()).or_insert(0) += 1,
        }
        runs.end();
        before = now;
        done.clear();
    }
    eprintln!(
        "{steps} steps: {by_journal} runs by the journal, {failed} failed, others: {reasons:?}"
    );
    assert!(by_journal > steps / STEPS_BETWEEN / 4, "{by_journal}: {reasons:?}");
}

#[test]
fn on_ext4_every_difference_lies_in_a_place() {
    every_difference_lies_in_a_place("ext4");
}

#[test]
fn on_tmpfs_every_difference_lies_in_a_place() {
    every_difference_lies_in_a_place("tmpfs");
}
