//! The journal of one set: which places changed since its last good run began to walk. Pure.
//!
//! ```text
//!            begin: handed to the run            ended with a snapshot: forgotten
//!   since ───────────────────────────> under way ───────────────────────────────>
//!     ^                                    │
//!     └────────────────────────────────────┘  ended without one: comes back
//! ```

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;

use super::knowledge::Knowledge;
use super::reason::Reason;

/// So often everything is walked, whatever the journal says.
const FULL_WALK_EVERY: Duration = Duration::from_hours(24);
/// A file of this name says what of its folder is backed up, and so may one that says that the folder is a cache.
const RULES: [&[u8]; 2] = [b".holdallignore", b"CACHEDIR.TAG"];

/// A source of a set that is watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedSource {
    /// The absolute path that the snapshot has, in its plain form.
    pub path: PathBuf,
    /// Whether a link at that path is followed.
    pub is_followed: bool,
}

/// A set that is watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedSet {
    /// Its name.
    pub name: String,
    /// Its sources.
    pub sources: Vec<WatchedSource>,
    /// Names of files whose presence leaves out the content of their folder.
    pub marks: Vec<Vec<u8>>,
    /// Whether what is mounted below a source is left out.
    pub one_file_system: bool,
    /// Whatever else says what is backed up; if it changes, everything is walked.
    pub settings: String,
    /// Why there is no journal of it, if there is none.
    pub unsuitable: Option<&'static str>,
}

/// What a run that begins is to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Walk {
    /// These places; all else is as a snapshot has it.
    Changes {
        /// The snapshot.
        since: String,
        /// In ascending order; each with whether something may have changed anywhere below it.
        places: Vec<(PathBuf, bool)>,
    },
    /// Everything.
    Full(Reason),
}

/// What became of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Committed {
    /// A snapshot with everything in it.
    Whole(String),
    /// One that lacks what could not be read.
    InPart,
    /// None.
    Nothing,
}

/// A mount at or below a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) mount: u64,
    pub(super) device: u64,
    pub(super) root: Vec<u8>,
    pub(super) point: PathBuf,
    /// Why changes there are not told, if they are not.
    pub(super) unwatched: Option<String>,
    /// Whether they were not told up to now.
    pub(super) is_new: bool,
}

/// The journal of a set.
#[derive(Debug)]
pub(super) struct SetJournal {
    pub(super) set: WatchedSet,
    /// Where each source really lies, without links in its path.
    real: Vec<PathBuf>,
    spots: Vec<Spot>,
    /// The last snapshot of all that could be read.
    snapshot: Option<String>,
    since: Knowledge,
    under_way: Option<UnderWay>,
    last_full: Option<Timestamp>,
}

/// What a run was told.
#[derive(Debug)]
struct UnderWay {
    knowledge: Knowledge,
    at: Timestamp,
}

impl SetJournal {
    pub(super) fn new(set: WatchedSet, reason: Reason) -> Self {
        let since = Knowledge::Nothing(reason);
        let (real, spots, under_way) = (Vec::new(), Vec::new(), None);
        Self { set, real, spots, snapshot: None, since, under_way, last_full: None }
    }

    /// Where the sources lie now, in the order of the set's.
    pub(super) fn sources_lie_at(&mut self, real: Vec<PathBuf>) {
        if real != self.real {
            self.since.give_up(Reason::SourceMoved);
            self.real = real;
        }
    }

    pub(super) fn real_sources(&self) -> &[PathBuf] {
        &self.real
    }

    /// Something changed in a directory, by where that really lies: what is called so in it, or anything below that place.
    pub(super) fn changed(&mut self, directory: &Path, name: &[u8], is_deep: bool) {
        let is_rule = RULES.contains(&name) || self.set.marks.iter().any(|mark| mark == name);
        let sources = self.set.sources.iter().map(|source| &source.path);
        for (real, source) in self.real.iter().zip(sources) {
            if let Ok(below) = directory.strip_prefix(real) {
                // Joining nothing would end the path with a slash.
                let place =
                    if below.as_os_str().is_empty() { source.clone() } else { source.join(below) };
                self.since.add(&place, is_deep || is_rule);
            } else if is_deep && real.starts_with(directory) {
                self.since.give_up(Reason::SourceMoved);
            } else if real.parent() == Some(directory)
                && real.file_name().is_some_and(|own| own.as_bytes() == name)
                && let Some(parent) = source.parent()
            {
                self.since.add(parent, false);
            }
        }
    }

    /// These mounts are at or below the sources now. Whatever lies on one that came or went may have changed.
    pub(super) fn mounts_are(&mut self, spots: Vec<Spot>) {
        let same = |one: &Spot, other: &Spot| {
            (one.mount, one.device, &one.root, &one.point)
                == (other.mount, other.device, &other.root, &other.point)
        };
        let gone = self.spots.iter().filter(|before| !spots.iter().any(|now| same(before, now)));
        let come = spots
            .iter()
            .filter(|now| now.is_new || !self.spots.iter().any(|before| same(before, now)));
        let changed: Vec<_> = gone.chain(come).map(|spot| spot.point.clone()).collect();
        for spot in spots.iter().filter(|spot| spot.unwatched.is_some()) {
            match self.source_on(&spot.point) {
                Some(source) => {
                    let why = spot.unwatched.clone().unwrap_or_default();
                    self.since.give_up(Reason::Unwatched { source, why });
                }
                None => self.changed(&spot.point, b"", true),
            }
        }
        for point in changed {
            match self.source_on(&point) {
                Some(_) => self.since.give_up(Reason::Mounts),
                None => self.changed(&point, b"", true),
            }
        }
        self.spots = spots;
    }

    /// The first source at or below that place.
    fn source_on(&self, point: &Path) -> Option<PathBuf> {
        let mut all = self.real.iter().zip(&self.set.sources);
        all.find(|(real, _)| real.starts_with(point)).map(|(_, source)| source.path.clone())
    }

    /// Whether a source, or a mount below one, lies on that device.
    pub(super) fn lies_on(&self, device: u64) -> bool {
        self.spots.iter().any(|spot| spot.device == device)
    }

    pub(super) fn give_up(&mut self, reason: Reason) {
        self.since.give_up(reason);
    }

    /// A run is about to walk. What happens from now on is for the next one.
    pub(super) fn begin(&mut self, now: Timestamp) -> Walk {
        // The one before never told how it ended.
        if let Some(lost) = self.under_way.take() {
            self.since.since(lost.knowledge);
        }
        let is_due = |last: Timestamp| {
            let age = now.duration_since(last);
            age.is_negative() || age.unsigned_abs() >= FULL_WALK_EVERY
        };
        if self.last_full.is_some_and(is_due) {
            self.since.give_up(Reason::Daily);
        }
        if self.snapshot.is_none() {
            self.since.give_up(Reason::NoCompleteRun);
        }
        // A snapshot has the folders above its sources, too, and they may lie on another file system.
        let above = self.set.sources.iter().flat_map(|source| source.path.ancestors().skip(1));
        above.for_each(|folder| self.since.add(folder, false));
        let knowledge = std::mem::replace(&mut self.since, Knowledge::none_changed());
        self.under_way = Some(UnderWay { knowledge: knowledge.clone(), at: now });
        match (knowledge, &self.snapshot) {
            (Knowledge::Places(places), Some(snapshot)) => {
                Walk::Changes { since: snapshot.clone(), places: places.into_iter().collect() }
            }
            (Knowledge::Nothing(reason), _) => Walk::Full(reason),
            (Knowledge::Places(_), None) => Walk::Full(Reason::NoCompleteRun),
        }
    }

    /// The run has ended.
    pub(super) fn ended(&mut self, committed: Committed) {
        match (self.under_way.take(), committed) {
            (Some(UnderWay { knowledge, at }), Committed::Whole(snapshot)) => {
                if let Knowledge::Nothing(_) = knowledge {
                    self.last_full = Some(at);
                }
                self.snapshot = Some(snapshot);
            }
            (Some(UnderWay { knowledge, .. }), Committed::Nothing) => self.since.since(knowledge),
            (_, Committed::InPart) => self.since.give_up(Reason::NoCompleteRun),
            // It did not ask, so when it walked is not known.
            (None, Committed::Whole(_)) => self.since.give_up(Reason::BeganLater),
            (None, Committed::Nothing) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn source(path: &str) -> WatchedSource {
        WatchedSource { path: path.into(), is_followed: true }
    }

    fn at(hours: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + hours * 3600).unwrap()
    }

    fn whole(snapshot: &str) -> Committed {
        Committed::Whole(snapshot.to_owned())
    }

    /// A set whose first run was good.
    fn journal() -> SetJournal {
        let set = WatchedSet {
            name: "home".to_owned(),
            sources: ["/home", "/etc/file"].map(source).into(),
            marks: vec![b".nobackup".to_vec()],
            one_file_system: false,
            settings: String::new(),
            unsuitable: None,
        };
        let mut journal = SetJournal::new(set, Reason::BeganLater);
        journal.sources_lie_at(vec!["/data/home".into(), "/etc/file".into()]);
        assert_eq!(journal.begin(at(0)), Walk::Full(Reason::BeganLater));
        journal.ended(whole("1"));
        journal
    }

    /// With the folders above the sources, which are named in any case.
    fn changes(since: &str, places: &[(&str, bool)]) -> Walk {
        let places = places.iter().chain(&[("/", false), ("/etc", false)]);
        let places: BTreeMap<_, _> =
            places.map(|(place, is_deep)| (PathBuf::from(place), *is_deep)).collect();
        Walk::Changes { since: since.to_owned(), places: places.into_iter().collect() }
    }

    #[test]
    fn places_are_told_as_the_sources_are_named() {
        let mut journal = journal();
        journal.changed(Path::new("/data/home/ada"), b"x", false);
        journal.changed(Path::new("/data/home"), b".", false);
        journal.changed(Path::new("/data/homes"), b"x", false);
        journal.changed(Path::new("/data/home/moved"), b"", true);
        journal.changed(Path::new("/data/home/a"), b".nobackup", false);
        journal.changed(Path::new("/data/home/b"), b".holdallignore", false);
        journal.changed(Path::new("/etc"), b"file", false);
        let places = [
            ("/home", false),
            ("/home/a", true),
            ("/home/ada", false),
            ("/home/b", true),
            ("/home/moved", true),
        ];
        assert_eq!(journal.begin(at(1)), changes("1", &places));
    }

    #[test]
    fn what_a_run_was_told_is_forgotten_once_it_made_a_snapshot_and_comes_back_otherwise() {
        let mut journal = journal();
        journal.changed(Path::new("/data/home/a"), b"x", false);
        assert_eq!(journal.begin(at(1)), changes("1", &[("/home/a", false)]));
        journal.changed(Path::new("/data/home/b"), b"x", false);
        journal.ended(Committed::Nothing);
        assert_eq!(journal.begin(at(2)), changes("1", &[("/home/a", false), ("/home/b", false)]));
        journal.changed(Path::new("/data/home/c"), b"x", false);
        journal.ended(whole("2"));
        assert_eq!(journal.begin(at(3)), changes("2", &[("/home/c", false)]));
        // It was killed, and its end was never told.
        assert_eq!(journal.begin(at(4)), changes("2", &[("/home/c", false)]));
    }

    #[test]
    fn everything_is_walked_once_a_day_and_after_the_clock_was_set_back() {
        let mut journal = journal();
        assert_eq!(journal.begin(at(23)), changes("1", &[]));
        journal.ended(whole("2"));
        assert_eq!(journal.begin(at(24)), Walk::Full(Reason::Daily));
        journal.ended(Committed::Nothing);
        assert_eq!(journal.begin(at(25)), Walk::Full(Reason::Daily));
        journal.ended(whole("3"));
        assert_eq!(journal.begin(at(26)), changes("3", &[]));
        journal.ended(whole("4"));
        assert_eq!(journal.begin(at(20)), Walk::Full(Reason::Daily));
    }

    #[test]
    fn a_source_that_lies_elsewhere_is_walked() {
        let moved = |act: fn(&mut SetJournal)| {
            let mut journal = journal();
            act(&mut journal);
            journal.begin(at(1)) == Walk::Full(Reason::SourceMoved)
        };
        assert!(moved(|journal| journal.changed(Path::new("/data"), b"", true)));
        assert!(moved(|journal| journal.sources_lie_at(vec!["/x".into(), "/etc/file".into()])));
        assert!(!moved(|journal| journal.changed(Path::new("/srv"), b"", true)));
    }

    #[test]
    fn a_run_that_did_not_ask_is_no_beginning() {
        let mut journal = journal();
        journal.ended(whole("2"));
        assert_eq!(journal.begin(at(1)), Walk::Full(Reason::BeganLater));
    }

    #[test]
    fn a_snapshot_that_lacks_something_is_nothing_to_begin_from() {
        let mut journal = journal();
        journal.begin(at(1));
        journal.ended(Committed::InPart);
        assert_eq!(journal.begin(at(2)), Walk::Full(Reason::NoCompleteRun));
    }

    #[test]
    fn what_is_mounted_or_unmounted_below_a_source_is_looked_at_and_at_a_source_everything() {
        let spot = |mount: u64, point: &str| Spot {
            mount,
            device: mount,
            root: b"/".to_vec(),
            point: point.into(),
            unwatched: None,
            is_new: false,
        };
        let root = spot(1, "/");
        let begun = |spots: [&[Spot]; 2]| {
            let mut journal = journal();
            journal.mounts_are(spots[0].to_vec());
            journal.begin(at(1));
            journal.ended(whole("2"));
            journal.mounts_are(spots[1].to_vec());
            journal.begin(at(2))
        };
        let below = [root.clone(), spot(2, "/data/home/usb")];
        let usb = changes("2", &[("/home/usb", true)]);
        assert_eq!(begun([&below, &below]), changes("2", &[]));
        assert_eq!(begun([&below, &below[..1]]), usb);
        assert_eq!(begun([&below[..1], &below]), usb);
        assert_eq!(begun([&below, &[root.clone(), spot(3, "/data/home/usb")]]), usb);
        let untold = Spot { unwatched: Some("FUSE".to_owned()), ..below[1].clone() };
        assert_eq!(begun([&[root.clone(), untold.clone()], &[root.clone(), untold]]), usb);
        let marked_again = Spot { is_new: true, ..below[1].clone() };
        assert_eq!(begun([&below, &[root.clone(), marked_again]]), usb);
        assert_eq!(begun([&below, &[spot(4, "/"), below[1].clone()]]), Walk::Full(Reason::Mounts));
        let untold = Spot { unwatched: Some("btrfs".to_owned()), ..root };
        let why = Reason::Unwatched { source: "/home".into(), why: "btrfs".to_owned() };
        assert_eq!(begun([&[], &[untold]]), Walk::Full(why));
    }
}
