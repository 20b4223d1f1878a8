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
use holdall_sys::own_mounts::OwnMounts;
use holdall_testkit::{Disturber, Slice, is_there, setting};
use tempfile::TempDir;

/// A file system of its own, so that nothing else happens on it, with what is backed up and a folder beside that.
pub(crate) struct Place {
    pub(crate) folder: TempDir,
    mounted: Vec<PathBuf>,
    /// What other tests mount would be told here, too.
    _own: OwnMounts,
}

impl Place {
    /// `None` for who may not mount.
    fn new(kind: &str) -> Option<Self> {
        let own = OwnMounts::enter();
        is_there("the right to mount (root)", own.is_ok()).then_some(())?;
        let (folder, mounted) = (tempfile::tempdir().unwrap(), Vec::new());
        let mut place = Self { folder, mounted, _own: own.unwrap() };
        place.mount(kind, "")?;
        for folder in [place.source(), place.outside()] {
            fs::create_dir(folder).unwrap();
        }
        Some(place)
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("disk")
    }

    pub(crate) fn source(&self) -> PathBuf {
        self.root().join("source")
    }

    pub(crate) fn outside(&self) -> PathBuf {
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
            command.args(["-t", kind, "-o", "size=128m,nr_inodes=0", "holdall-test"]);
        } else {
            let image = self.folder.path().join(format!("image{}", self.mounted.len()));
            fs::File::create(&image).and_then(|file| file.set_len(128 << 20)).unwrap();
            let make = format!("/usr/sbin/mkfs.{kind}");
            let force = if kind == "btrfs" { "-f" } else { "-F" };
            let made = Command::new(&make).args(["-q", force]).arg(&image).status();
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

pub(crate) fn unmount(point: &Path, how: &[&str]) {
    assert!(Command::new("umount").args(how).arg(point).status().unwrap().success());
}

/// The journal with one set, and its runs.
pub(crate) struct Runs {
    journal: Journal,
    snapshots: u64,
}

impl Runs {
    pub(crate) fn new(source: &Path, queue: Queue) -> Self {
        let runs = Self { journal: Journal::start(queue).unwrap(), snapshots: 0 };
        runs.follow(source, "");
        runs
    }

    fn follow(&self, source: &Path, settings: &str) {
        let set = WatchedSet {
            name: "home".to_owned(),
            sources: vec![WatchedSource { path: source.to_owned(), is_followed: false }],
            marks: vec![b".nobackup".to_vec()],
            one_file_system: false,
            settings: settings.to_owned(),
            unsuitable: None,
        };
        self.journal.follow(vec![set]);
    }

    /// What a run would be told now.
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
    pub(crate) fn run(&mut self) -> Walk {
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
    assert!(
        by_journal > steps / STEPS_BETWEEN / 4,
        "{by_journal}, {failed} failed, others: {reasons:?}"
    );
}

#[test]
fn on_ext4_every_difference_lies_in_a_place() {
    every_difference_lies_in_a_place("ext4");
}

#[test]
fn on_tmpfs_every_difference_lies_in_a_place() {
    every_difference_lies_in_a_place("tmpfs");
}

/// A set whose first run was good, on a file system of its own.
pub(crate) fn begun(kind: &str, queue: Queue) -> Option<(Place, Runs)> {
    let place = Place::new(kind)?;
    fs::create_dir_all(place.source().join("a/b")).unwrap();
    fs::write(place.source().join("a/file"), "x").unwrap();
    let mut runs = Runs::new(&place.source(), queue);
    assert_eq!(runs.run(), Walk::Full(Reason::BeganLater));
    Some((place, runs))
}

/// The places that a run is told, relative to the source; `+` marks deep ones.
pub(crate) fn told(walk: Walk, source: &Path) -> Vec<String> {
    let Walk::Changes { places, .. } = walk else { panic!("{walk:?}") };
    let below = |(place, is_deep): &(PathBuf, bool)| {
        // The folders above are named in any case.
        let below = place.strip_prefix(source).ok()?.to_str().unwrap().to_owned();
        Some(below + if *is_deep { "+" } else { "" })
    };
    places.iter().filter_map(below).collect()
}

#[test]
fn a_folder_is_named_once_and_not_again() {
    let Some((place, mut runs)) = begun("tmpfs", Queue::Unbounded) else { return };
    let source = place.source();
    assert_eq!(told(runs.run(), &source), [""; 0]);
    for number in 0..50 {
        fs::write(source.join("a/b").join(number.to_string()), "x").unwrap();
    }
    fs::write(place.outside().join("file"), "x").unwrap();
    assert_eq!(told(runs.run(), &source), ["a/b"]);
    assert_eq!(told(runs.run(), &source), [""; 0]);
    fs::write(source.join("a/b/.nobackup"), "").unwrap();
    fs::write(source.join("a/.holdallignore"), "").unwrap();
    assert_eq!(told(runs.run(), &source), ["a+", "a/b+"]);
    fs::rename(source.join("a/b"), source.join("c")).unwrap();
    assert_eq!(told(runs.run(), &source), ["", "a", "c+"]);
}

#[test]
fn a_file_that_is_open_is_named_in_each_run_also_if_it_is_only_mapped_elsewhere() {
    let Some((place, mut runs)) = begun("ext4", Queue::Unbounded) else { return };
    let (source, file) = (place.source(), place.source().join("a/file"));
    let open = fs::OpenOptions::new().append(true).open(&file).unwrap();
    for _ in 0..2 {
        assert_eq!(told(runs.run(), &source), ["a"]);
    }
    drop(open);
    assert_eq!(told(runs.run(), &source), ["a"], "it was closed");
    assert_eq!(told(runs.run(), &source), [""; 0]);
    // By a process that sees the disk somewhere else.
    let script = "mkdir \"$1\" && mount --move \"$0\" \"$1\" && exec python3 -c 'import mmap, os, sys\n\
                  file = os.open(sys.argv[1] + \"/source/a/file\", os.O_RDWR)\n\
                  map = mmap.mmap(file, 1)\nos.close(file)\nprint(flush=True)\nsys.stdin.read()' \"$1\"";
    let mut command = Command::new("unshare");
    command
        .args(["-m", "sh", "-c", script])
        .arg(place.root())
        .arg(place.folder.path().join("moved"));
    let mut other = command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    other.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
    for _ in 0..2 {
        assert_eq!(told(runs.run(), &source), ["a"], "it is mapped");
    }
    drop(other.stdin.take());
    other.wait().unwrap();
    assert_eq!(told(runs.run(), &source), ["a"], "the mapping is gone");
    assert_eq!(told(runs.run(), &source), [""; 0]);
}

#[test]
fn what_is_lost_is_walked_once() {
    let Some((place, mut runs)) = begun("tmpfs", Queue::Bounded) else { return };
    let bound = fs::read_to_string("/proc/sys/fs/fanotify/max_queued_events").unwrap();
    let bound: u64 = bound.trim().parse().unwrap();
    // Faster than anybody reads them: the thread is held up by what it asks of each.
    let mut told_all = 0;
    let walk = loop {
        for number in 0..2 * bound {
            fs::write(place.outside().join(number.to_string()), "").unwrap();
        }
        told_all += 1;
        match runs.run() {
            Walk::Changes { .. } if told_all < 20 => {}
            walk => break walk,
        }
    };
    assert_eq!(walk, Walk::Full(Reason::Overflow));
    assert_eq!(told(runs.run(), &place.source()), [""; 0]);
}

#[test]
fn what_is_mounted_unmounted_or_mounted_again_is_looked_at() {
    let Some((mut place, mut runs)) = begun("ext4", Queue::Unbounded) else { return };
    let source = place.source();
    let disk = place.mount("tmpfs", "source/a/b").unwrap();
    assert_eq!(told(runs.run(), &source), ["a/b+"]);
    fs::create_dir(disk.join("deep")).unwrap();
    fs::write(disk.join("deep/file"), "x").unwrap();
    assert_eq!(told(runs.run(), &source), ["a/b", "a/b/deep+"]);
    place.unmount();
    assert_eq!(told(runs.run(), &source), ["a/b+"]);
    assert_eq!(told(runs.run(), &source), [""; 0]);
    // The same disk again, between two runs: what happened meanwhile was not watched.
    place.mount("ext4", "source/a/b").unwrap();
    assert_eq!(told(runs.run(), &source), ["a/b+"]);
    let image = place.folder.path().join("image1");
    unmount(&disk, &[]);
    assert!(
        Command::new("mount")
            .args(["-o", "loop"])
            .arg(image)
            .arg(&disk)
            .status()
            .unwrap()
            .success()
    );
    let walk = runs.run();
    let is_seen = walk == Walk::Full(Reason::Mounts) || told(walk.clone(), &source) == ["a/b+"];
    assert!(is_seen, "{walk:?}");
}

#[test]
fn what_happens_by_another_mount_of_the_same_disk_is_named() {
    let Some((place, mut runs)) = begun("ext4", Queue::Unbounded) else { return };
    let [other, part] = ["other", "part"].map(|name| place.folder.path().join(name));
    for (from, to) in [(place.root(), &other), (place.source().join("a"), &part)] {
        fs::create_dir(to).unwrap();
        assert!(Command::new("mount").arg("--bind").arg(from).arg(to).status().unwrap().success());
    }
    runs.run();
    fs::write(other.join("source/file"), "x").unwrap();
    fs::write(part.join("b/file"), "x").unwrap();
    let told = told(runs.run(), &place.source());
    [part, other].iter().for_each(|point| unmount(point, &[]));
    assert_eq!(told, ["", "a/b"]);
}

#[test]
fn another_name_outside_of_the_source_has_everything_walked() {
    let Some((place, mut runs)) = begun("tmpfs", Queue::Unbounded) else { return };
    let other = place.outside().join("name");
    fs::hard_link(place.source().join("a/file"), &other).unwrap();
    assert_eq!(runs.run(), Walk::Full(Reason::SeveralNames));
    fs::remove_file(&other).unwrap();
    assert_eq!(told(runs.run(), &place.source()), ["a"], "it has one name again");
}

#[test]
fn a_set_that_changed_is_walked_and_a_run_that_never_asks_is_no_beginning() {
    let Some((place, mut runs)) = begun("tmpfs", Queue::Unbounded) else { return };
    runs.follow(&place.source(), "other");
    assert_eq!(runs.run(), Walk::Full(Reason::Settings));
    let (asks, asked) = UnixStream::pair().unwrap();
    runs.journal.run_started("home", asked, Box::new(|_| panic!("nobody asked")));
    drop(asks);
    runs.end();
    assert_eq!(runs.run(), Walk::Full(Reason::BeganLater));
}

#[test]
fn a_run_that_began_before_its_set_changed_is_told_nothing_and_is_no_beginning() {
    let Some((place, mut runs)) = begun("tmpfs", Queue::Unbounded) else { return };
    let (mut asks, asked) = UnixStream::pair().unwrap();
    runs.journal.run_started("home", asked, Box::new(|_| panic!("it is told something")));
    runs.follow(&place.source(), "other");
    // It may have been closed already.
    let _ = asks.write_all(b"?");
    assert_eq!(asks.read(&mut [0]).unwrap_or_default(), 0);
    runs.end();
    assert_eq!(runs.run(), Walk::Full(Reason::Settings));
}

#[test]
fn where_changes_are_not_told_everything_is_walked() {
    let Some(place) = Place::new("btrfs") else { return };
    let mut runs = Runs::new(&place.source(), Queue::Unbounded);
    runs.run();
    let walk = runs.run();
    assert!(matches!(walk, Walk::Full(Reason::Unwatched { .. })), "{walk:?}");
    // A disk that is watched is not kept from being unmounted.
    let Some((mut place, runs)) = begun("ext4", Queue::Unbounded) else { return };
    place.unmount();
    drop(runs);
}
