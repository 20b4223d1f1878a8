//! The lease: who may write.
//!
//! Where locks hold among all who reach the directory, the lease is a lock on the file `lock`, which
//! ends with its process. On a share a lock may hold on one computer only. There, whoever writes
//! also has the highest number in `lease`:
//!
//! ```text
//! lease/0000000000000007    who holds it, or that it was given back; the highest number counts
//! ```
//!
//! Taking, renewing and giving back each take the next number, by making a file that must be new:
//! which of two may have it, the share decides. A lease that was not renewed for five minutes by the
//! share's own clock is taken over, and so is at once that of a process of this computer which has
//! ended. A writer that slept through that finds its next number taken, or a higher one, and
//! publishes nothing any more.
//!
//! Where the lease is only a lock, its holder looks for the folder `lease` wherever another renews: it is there once
//! somebody came over a share, whom the lock does not keep out. From then on the holder publishes nothing any more.
//! Nothing is known of such a holder but this, so the first number of all takes over from one.
//!
//! A file that is dated ahead of the share's clock was made while that was wrong, and says nothing of when.
//! Whoever wants the lease dates it as if it were new: a holder that lives renews it before it is stale.
//! On a full disk the file of the next number may stay empty: its name is what counts.
//!
//! Whoever takes over has the files of one who may sleep to leave behind. Until that is done its
//! own lease says so: should it fail before, the next takes over as well, and at once.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use holdall_protocol::RepositoryError;
use holdall_sys::PathBeneath;
use holdall_sys::lock::{Held, holder};
use holdall_sys::{disk, host, process};

use crate::storage::layout::{Layout, number_of};
use crate::storage::publish::{
    FILE_MODE, NO_FILE, beside, damaged, failed, is_there, make_dir, names_in, read_limited, remove,
};

/// How often whoever writes takes the next number.
const RENEW_EVERY: Duration = Duration::from_secs(60);
/// So often a lock is tried of which the system names no holder.
const LOCK_TRIES: usize = 3;
/// A lease that was not renewed for so long is nobody's.
const STALE_AFTER: Duration = Duration::from_secs(300);
/// No lease file is longer.
const LEASE_MAX_BYTES: u64 = 4096;
const FRONT: &str = "holdall lease, version 1\n";
const RELEASED: &str = "holdall lease, version 1\nreleased\n";
/// By whoever took over and could not leave all files of the one before behind.
const UNSETTLED: &str = "holdall lease, version 1\nunsettled\n";

/// What a store may do to its directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Everything; nobody else has it open.
    Write,
    /// Nothing; others may read too.
    Read,
}

/// What is held while a repository is open. Dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Lease {
    hold: Hold,
    has_taken_over: bool,
    /// Declared last so that it drops last.
    _lock: Option<Held>,
}

/// What of the lease is held beside the lock.
#[derive(Debug)]
enum Hold {
    /// Nothing: others may write.
    ToRead,
    /// Nothing: the lock keeps out all who might write, while there is no folder `lease`.
    Local(Layout),
    /// The highest number.
    Numbered(Numbered),
}

impl Lease {
    /// Takes the lease: alone to write; to read together with other readers of this computer.
    pub(crate) fn take(layout: &Layout, access: Access) -> Result<Self, RepositoryError> {
        let lock = lock(layout, access)?;
        let is_sound = lock.as_ref().is_some_and(Held::is_locked) && !is_on_share(layout)?;
        let (hold, has_taken_over) = if access == Access::Read {
            (Hold::ToRead, false)
        } else if is_sound && !is_there(&layout.lease())? {
            (Hold::Local(layout.clone()), false)
        } else {
            let (numbered, has_taken_over) = Numbered::take(layout)?;
            (Hold::Numbered(numbered), has_taken_over)
        };
        Ok(Self { hold, has_taken_over, _lock: lock })
    }

    /// Whether somebody had it who did not give it back, and may yet write to files that are open.
    pub(crate) fn has_taken_over(&self) -> bool {
        self.has_taken_over
    }

    /// Whether it is a lock that keeps out all who might write or read.
    pub(crate) fn is_local(&self) -> bool {
        matches!(self.hold, Hold::Local(_))
    }

    /// Refuses once it is known that somebody else took the lease.
    pub(crate) fn check(&self) -> Result<(), RepositoryError> {
        match &self.hold {
            Hold::ToRead => Ok(()),
            Hold::Local(layout) => check_local(layout),
            Hold::Numbered(numbered) => numbered.shared.check(),
        }
    }

    /// Makes sure that the lease is held now.
    pub(crate) fn renew(&self) -> Result<(), RepositoryError> {
        match &self.hold {
            Hold::Numbered(numbered) => numbered.shared.renew(),
            Hold::ToRead | Hold::Local(_) => self.check(),
        }
    }

    /// Says that nothing is left which an earlier holder may write to: whoever takes the lease behind this one
    /// may go on with what is there.
    pub(crate) fn settle(&self) -> Result<(), RepositoryError> {
        match &self.hold {
            Hold::Numbered(numbered) => numbered.shared.settle(),
            Hold::ToRead | Hold::Local(_) => Ok(()),
        }
    }
}

/// Refuses once somebody came over a share: the folder `lease` is the first thing they make, and it stays.
fn check_local(layout: &Layout) -> Result<(), RepositoryError> {
    if !is_there(&layout.lease())? {
        return Ok(());
    }
    let holder = "another computer, which came over a share while this one had it open";
    Err(RepositoryError::InUse { place: layout.place(), holder: holder.into() })
}

/// Whether the directory is on a share, where locks may hold on this computer only.
fn is_on_share(layout: &Layout) -> Result<bool, RepositoryError> {
    let root = layout.root();
    let number = disk::file_system(root.path()).map_err(failed("looking at", root))?;
    Ok(disk::is_share(number))
}

/// Locks the file `lock`, if that is possible here at all. Who only reads does without where there is none: it may have
/// been lost, and reading makes nothing.
fn lock(layout: &Layout, access: Access) -> Result<Option<Held>, RepositoryError> {
    let path = layout.lock();
    let file = match access {
        Access::Write => path.open_or_create(FILE_MODE),
        Access::Read => path.open(),
    };
    let file = match file {
        Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
            return Err(damaged(&path, NO_FILE));
        }
        Err(error) if access == Access::Read && error.kind() == io::ErrorKind::NotFound => {
            return Ok(None);
        }
        file => file.map_err(failed("opening", &path))?,
    };
    for _ in 0..LOCK_TRIES {
        let file = file.try_clone().map_err(failed("locking", &path))?;
        let held = match access {
            Access::Write => Held::exclusive(file),
            Access::Read => Held::shared(file),
        };
        if let Some(held) = held.map_err(failed("locking", &path))? {
            return Ok(Some(held));
        }
        if let Some(holder) = path.open().ok().and_then(|file| holder(&file)) {
            return Err(RepositoryError::InUse { place: layout.place(), holder });
        }
        // Nobody is told to have it: it was given back since, or its holder is not to be seen from here.
    }
    Err(RepositoryError::in_use(layout.place()))
}

/// A lease that is the highest number, and the thread that renews it.
#[derive(Debug)]
struct Numbered {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    layout: Layout,
    state: Mutex<State>,
    changed: Condvar,
    is_lost: AtomicBool,
}

#[derive(Debug)]
struct State {
    /// The number that is ours.
    number: u64,
    /// When it was taken.
    since: SystemTime,
    /// Whether nothing is left that an earlier holder may write to.
    is_settled: bool,
    should_stop: bool,
}

impl State {
    /// What our files say.
    fn text(&self) -> String {
        let since = self.since.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        // Where a process cannot name itself, its lease goes stale and is not known to have ended.
        let process = process::own().unwrap_or_default();
        let unsettled = if self.is_settled { "" } else { "unsettled yes\n" };
        format!("{FRONT}host {}\nprocess {process}\nsince {since}\n{unsettled}", host::host_name())
    }
}

/// What is known of the highest number that somebody else took.
enum Standing {
    /// It was given back, or its holder has ended.
    Free,
    /// It was not renewed for too long, or its holder ended before it had left the files of the one before
    /// behind.
    Stale,
    /// Somebody holds it.
    Held(String),
}

impl Numbered {
    fn take(layout: &Layout) -> Result<(Self, bool), RepositoryError> {
        make_dir(&layout.lease())?;
        let now = share_time(layout)?;
        let newest = newest(layout)?;
        // Where there was no number, a writer may hold a lock that does not reach this computer, and nothing else.
        let standing =
            newest.map_or(Ok(Standing::Stale), |number| standing(layout, number, now))?;
        if let Standing::Held(holder) = standing {
            return Err(RepositoryError::InUse { place: layout.place(), holder });
        }
        let has_taken_over = matches!(standing, Standing::Stale);
        let number = newest.map_or(1, |number| number.saturating_add(1));
        let state = State { number, since: now, is_settled: !has_taken_over, should_stop: false };
        if !claim(layout, number, &state.text(), state.is_settled)? {
            return Err(RepositoryError::in_use(layout.place()));
        }
        let shared = Arc::new(Shared {
            layout: layout.clone(),
            state: Mutex::new(state),
            changed: Condvar::new(),
            is_lost: AtomicBool::new(false),
        });
        let renewing = shared.clone();
        let thread = std::thread::Builder::new().name("lease".into());
        let thread = thread.spawn(move || renewing.renew_till_stopped());
        // Without the thread it is renewed whenever a record is published.
        let numbered = Self { shared, thread: thread.ok() };
        Ok((numbered, has_taken_over))
    }
}

impl Drop for Numbered {
    fn drop(&mut self) {
        self.shared.lock().should_stop = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // It has nothing that could be lost by a panic.
            let _ = thread.join();
        }
        let state = self.shared.lock();
        if self.shared.check().is_ok() {
            let text = if state.is_settled { RELEASED } else { UNSETTLED };
            // What cannot be given back goes stale.
            let next = state.number.saturating_add(1);
            let _ = claim(&self.shared.layout, next, text, state.is_settled);
        }
    }
}

impl Shared {
    fn check(&self) -> Result<(), RepositoryError> {
        if self.is_lost.load(Ordering::Acquire) {
            let holder = "another process, which took over while this one slept".into();
            return Err(RepositoryError::InUse { place: self.layout.place(), holder });
        }
        Ok(())
    }

    fn renew(&self) -> Result<(), RepositoryError> {
        self.renew_holding(&mut self.lock())
    }

    fn settle(&self) -> Result<(), RepositoryError> {
        let mut state = self.lock();
        if state.is_settled {
            return Ok(());
        }
        state.is_settled = true;
        self.renew_holding(&mut state)
    }

    fn renew_holding(&self, state: &mut State) -> Result<(), RepositoryError> {
        self.check()?;
        let next = state.number.saturating_add(1);
        if claim(&self.layout, next, &state.text(), state.is_settled)? {
            state.number = next;
            return Ok(());
        }
        self.is_lost.store(true, Ordering::Release);
        self.check()
    }

    fn renew_till_stopped(&self) {
        let mut state = self.lock();
        while !state.should_stop {
            let waited = self.changed.wait_timeout(state, RENEW_EVERY);
            let (held, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = held;
            if timeout.timed_out() && !state.should_stop {
                // A share that fails now may answer in a minute; what is lost, others are told.
                let _ = self.renew_holding(&mut state);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes a number, and removes those below. `false` if it, or a higher one, is somebody else's. After an
/// error it is nobody's, and free again as far as the share lets its file be removed.
///
/// A full disk has room for a name, and that is all that counts: whoever made it has the number, whatever the
/// file says. An empty one says of nobody that he has ended or gave it back, and goes stale as any other. That of
/// who is not settled stays empty: half of what it says would look settled.
fn claim(
    layout: &Layout,
    number: u64,
    text: &str,
    is_settled: bool,
) -> Result<bool, RepositoryError> {
    match claim_saying(layout, number, text) {
        Err(RepositoryError::NoRoom { .. }) => {
            let is_ours = claim_saying(layout, number, "")?;
            if is_ours && is_settled {
                say_if_room(&layout.lease_file(number), text)?;
            }
            Ok(is_ours)
        }
        claimed => claimed,
    }
}

/// Has an empty lease file of our own say something, which the room of those below may be enough for.
///
/// # Errors
/// Only if it may say half of it now. Then nobody writes by it.
fn say_if_room(path: &PathBeneath, text: &str) -> Result<(), RepositoryError> {
    let Ok(mut file) = path.open_to_change() else { return Ok(()) };
    match file.write_all(text.as_bytes()).and_then(|()| file.sync_all()) {
        Err(_) => file.set_len(0).map_err(failed("emptying", path)),
        Ok(()) => Ok(()),
    }
}

/// As [`claim`], with a file that says exactly this.
fn claim_saying(layout: &Layout, number: u64, text: &str) -> Result<bool, RepositoryError> {
    let path = layout.lease_file(number);
    let mut file = match path.create_new(FILE_MODE) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
        made => made.map_err(failed("making", &path))?,
    };
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    match written.map_err(failed("writing", &path)).and_then(|()| numbers(layout)) {
        Ok(numbers) if numbers.last() == Some(&number) => {
            for below in numbers.into_iter().filter(|below| *below < number) {
                // It counts for nothing, and goes with the next that is taken.
                let _ = remove(&layout.lease_file(below));
            }
            Ok(true)
        }
        // Somebody who slept since looking may have made a number that was used up and removed. Left behind,
        // the file would be in the way of whoever takes the next, and that may be this process.
        higher_or_error => {
            let removed = remove(&path);
            higher_or_error.and(removed).map(|()| false)
        }
    }
}

/// All numbers that are there, ascending.
fn numbers(layout: &Layout) -> Result<Vec<u64>, RepositoryError> {
    let names = names_in(&layout.lease())?;
    Ok(names.iter().filter_map(|name| name.to_str().and_then(number_of)).collect())
}

fn newest(layout: &Layout) -> Result<Option<u64>, RepositoryError> {
    Ok(numbers(layout)?.pop())
}

/// The time by the clock that gives the lease's files theirs.
fn share_time(layout: &Layout) -> Result<SystemTime, RepositoryError> {
    make_dir(&layout.tmp())?;
    let path = beside(&layout.tmp())?;
    let file = path.create_new(FILE_MODE).map_err(failed("making", &path))?;
    let time = file.metadata().and_then(|metadata| metadata.modified());
    // A file that stays is swept at the next open.
    let _ = path.remove_file();
    time.map_err(failed("looking at", &path))
}

fn standing(layout: &Layout, number: u64, now: SystemTime) -> Result<Standing, RepositoryError> {
    let path = layout.lease_file(number);
    let Some(bytes) = read_limited(&path, LEASE_MAX_BYTES)? else {
        // It was there a moment ago: whoever holds it took the next.
        return Ok(Standing::Held("another process".into()));
    };
    if bytes == RELEASED.as_bytes() {
        return Ok(Standing::Free);
    }
    if bytes == UNSETTLED.as_bytes() {
        return Ok(Standing::Stale);
    }
    let renewed = path.open().and_then(|file| file.metadata()?.modified());
    let renewed = renewed.map_err(failed("looking at", &path))?;
    let text = String::from_utf8_lossy(&bytes);
    let has_ended = field(&text, "process").is_some_and(process::has_ended);
    // Who slept since it asked for the time must not take what was renewed meanwhile for ahead of it.
    let now = if is_ahead(renewed, now) { share_time(layout)? } else { now };
    if !has_ended && is_ahead(renewed, now) {
        return Ok(Standing::Held(date_anew(&path, &text, now)));
    }
    // A clock that went back makes nothing stale.
    let age = now.duration_since(renewed).unwrap_or_default();
    let is_settled = field(&text, "unsettled").is_none();
    Ok(match (has_ended, age > STALE_AFTER) {
        (true, _) if is_settled => Standing::Free,
        (true, _) | (false, true) => Standing::Stale,
        (false, false) => Standing::Held(named(&text, now, age)),
    })
}

/// Whether a file is dated so far ahead of the share's clock that the clock was wrong then.
fn is_ahead(renewed: SystemTime, now: SystemTime) -> bool {
    renewed.duration_since(now).is_ok_and(|ahead| ahead > STALE_AFTER)
}

/// Dates a lease as if it had been renewed now, and says whose it is. `now` is later than it was looked at, so it
/// looks no older than it is.
fn date_anew(path: &PathBeneath, text: &str, now: SystemTime) -> String {
    let dated = path.open_to_change().and_then(|file| file.set_modified(now));
    let (host, path) = (host_of(text), path.display());
    let told = match dated {
        Ok(()) => "was dated ahead of the clock; unless it is renewed, it is free".to_owned(),
        Err(error) => format!(
            "{path} is dated ahead of the clock, which cannot be changed ({error}); `touch` it, and unless it is \
             renewed, it is free"
        ),
    };
    format!("{host}, whose lease {told} in {} minutes", STALE_AFTER.as_secs() / 60)
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let lines = text.strip_prefix(FRONT)?.lines();
    let mut values = lines.filter_map(|line| line.split_once(' '));
    values.find(|(key, _)| *key == name).map(|(_, value)| value)
}

/// Names the holder for people. Untrusted: the file may say anything.
pub(crate) fn named(text: &str, now: SystemTime, age: Duration) -> String {
    let host = host_of(text);
    let since = field(text, "since").and_then(|since| since.parse().ok());
    let since =
        since.and_then(|since| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(since)));
    let held = since.and_then(|since| now.duration_since(since).ok()).unwrap_or(age);
    format!("{host}, for {} s, last heard of {} s ago", held.as_secs(), age.as_secs())
}

fn host_of(text: &str) -> String {
    let host = field(text, "host").unwrap_or("a computer that does not say its name");
    host.chars().filter(|c| !c.is_control()).take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File, OpenOptions};

    /// As on a share that somebody wrote to before.
    fn place() -> (tempfile::TempDir, Layout) {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        make_dir(&layout.lease()).unwrap();
        fs::write(layout.lease_file(0).path(), RELEASED).unwrap();
        (dir, layout)
    }

    /// A lease of a computer that is not this one, renewed so long ago.
    fn of_another(layout: &Layout, number: u64, age: Duration) {
        let path = layout.lease_file(number);
        let text = format!("{FRONT}host attic\nprocess x pid:[1] 7 7\nsince 100\n");
        fs::write(path.path(), text).unwrap();
        date(&path, share_time(layout).unwrap().checked_sub(age).unwrap());
    }

    fn date(path: &PathBeneath, time: SystemTime) {
        let file = OpenOptions::new().write(true).open(path.path()).unwrap();
        file.set_modified(time).unwrap();
    }

    fn in_use(answer: Result<(Numbered, bool), RepositoryError>) -> String {
        match answer {
            Err(RepositoryError::InUse { holder, .. }) => holder,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn one_holds_it_at_a_time_and_gives_it_back() {
        let (_dir, layout) = place();
        let (first, taken_over) = Numbered::take(&layout).unwrap();
        assert!(!taken_over);
        assert!(in_use(Numbered::take(&layout)).contains(&host::host_name()));
        first.shared.renew().unwrap();
        assert_eq!(numbers(&layout).unwrap(), [2]);
        drop(first);
        assert_eq!(numbers(&layout).unwrap(), [3]);
        assert!(!Numbered::take(&layout).unwrap().1);
        assert_eq!(names_in(&layout.lease()).unwrap().len(), 1);
    }

    #[test]
    fn a_lease_that_is_not_renewed_is_taken_over_and_its_holder_finds_out() {
        let (_dir, layout) = place();
        of_another(&layout, 6, STALE_AFTER - Duration::from_secs(5));
        assert!(in_use(Numbered::take(&layout)).starts_with("attic, for "));
        of_another(&layout, 6, STALE_AFTER + Duration::from_secs(5));
        let (sleeper, taken_over) = Numbered::take(&layout).unwrap();
        assert!(taken_over);
        // It sleeps, and another holds, renews and gives back: no number tells any more.
        of_another(&layout, 9, Duration::ZERO);
        remove(&layout.lease_file(7)).unwrap();
        assert!(sleeper.shared.renew().is_err());
        assert!(sleeper.shared.check().is_err());
        drop(sleeper);
        assert_eq!(numbers(&layout).unwrap(), [9]);
    }

    /// The first may not know of a writer on the computer whose disk the share is.
    #[test]
    fn the_first_number_of_all_takes_over_and_a_lock_counts_no_more() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        let local = Lease::take(&layout, Access::Write).unwrap();
        assert!(local.is_local() && !local.has_taken_over());
        local.renew().unwrap();
        remove(&layout.lock()).unwrap();
        make_dir(&layout.lease()).unwrap();
        let first = Lease::take(&layout, Access::Write).unwrap();
        assert!(!first.is_local() && first.has_taken_over());
        for lost in [local.check(), local.renew()] {
            assert!(matches!(lost, Err(RepositoryError::InUse { .. })), "{lost:?}");
        }
        first.renew().unwrap();
        first.settle().unwrap();
        drop((local, first));
        let second = Lease::take(&layout, Access::Write).unwrap();
        assert!(!second.is_local() && !second.has_taken_over());
        drop(second);
        let reader = Lease::take(&layout, Access::Read).unwrap();
        reader.check().and(reader.renew()).unwrap();
    }

    /// As where the share's clock was wrong until it was set back.
    #[test]
    fn a_lease_that_is_dated_ahead_goes_stale_as_any_other_unless_it_is_renewed() {
        let (_dir, layout) = place();
        of_another(&layout, 6, Duration::ZERO);
        let ahead = share_time(&layout).unwrap() + STALE_AFTER * 1000;
        date(&layout.lease_file(6), ahead);
        let holder = in_use(Numbered::take(&layout));
        assert!(holder.starts_with("attic, ") && holder.contains("free in 5 minutes"), "{holder}");
        let dated = fs::metadata(layout.lease_file(6).path()).unwrap().modified().unwrap();
        assert!(dated <= share_time(&layout).unwrap());
        assert!(in_use(Numbered::take(&layout)).contains("last heard of "));
        date(&layout.lease_file(6), dated - STALE_AFTER - Duration::from_secs(5));
        let (holder, taken_over) = Numbered::take(&layout).unwrap();
        assert!(taken_over);

        // One that is there notices nothing.
        date(&layout.lease_file(7), ahead);
        in_use(Numbered::take(&layout));
        holder.shared.renew().unwrap();
        assert_eq!(numbers(&layout).unwrap(), [8]);
    }

    /// It may have left some of the other's files as they are, and the other may write to them.
    #[test]
    fn whoever_fails_behind_a_take_over_leaves_one_to_the_next() {
        let (_dir, layout) = place();
        of_another(&layout, 6, STALE_AFTER * 2);
        let (failing, taken_over) = Numbered::take(&layout).unwrap();
        assert!(taken_over);
        failing.shared.renew().unwrap();
        let text = fs::read_to_string(layout.lease_file(8).path()).unwrap();
        drop(failing);
        let (killed, taken_over) = Numbered::take(&layout).unwrap();
        assert!(taken_over, "behind one that gave up");
        drop(killed);
        let own = process::own().unwrap();
        let ended = format!("{} 0", own.rsplit_once(' ').unwrap().0);
        fs::write(layout.lease_file(20).path(), text.replace(&own, &ended)).unwrap();
        let (next, taken_over) = Numbered::take(&layout).unwrap();
        assert!(taken_over, "behind one that was killed");
        next.shared.settle().unwrap();
        drop(next);
        assert!(!Numbered::take(&layout).unwrap().1);
    }

    #[test]
    fn a_number_below_that_can_not_be_removed_is_in_nobodys_way() {
        let (_dir, layout) = place();
        let (held, _) = Numbered::take(&layout).unwrap();
        remove(&layout.lease_file(1)).unwrap();
        fs::create_dir(layout.lease_file(1).path()).unwrap();
        held.shared.renew().unwrap();
        held.shared.renew().unwrap();
        assert_eq!(numbers(&layout).unwrap(), [1, 3]);
    }

    #[test]
    fn a_process_of_this_computer_that_has_ended_holds_nothing() {
        let (_dir, layout) = place();
        let ended = process::own().unwrap();
        let ended = ended.rsplit_once(' ').unwrap().0;
        let text = format!("{FRONT}host here\nprocess {ended} 0\nsince 1\n");
        fs::write(layout.lease_file(4).path(), text).unwrap();
        assert!(!Numbered::take(&layout).unwrap().1);
        assert_eq!(numbers(&layout).unwrap(), [6]);
    }

    #[test]
    fn an_empty_lease_is_somebodys_until_it_goes_stale() {
        let (_dir, layout) = place();
        let file = File::create(layout.lease_file(6).path()).unwrap();
        assert!(in_use(Numbered::take(&layout)).contains("does not say its name"));
        file.set_modified(share_time(&layout).unwrap() - STALE_AFTER * 2).unwrap();
        let (taker, taken_over) = Numbered::take(&layout).unwrap();
        assert!(taken_over);
        // Its own may be empty as well: who it is, its number tells.
        fs::write(layout.lease_file(7).path(), "").unwrap();
        taker.shared.renew().unwrap();
        fs::write(layout.lease_file(9).path(), "").unwrap();
        assert!(taker.shared.renew().is_err(), "this one is not its own");
    }

    #[test]
    fn what_a_lease_says_may_be_anything() {
        let (_dir, layout) = place();
        let odd = [&b""[..], b"\xff\xfe", b"holdall lease, version 1\nhost \x1b[2J\nsince -1\n"];
        for bytes in odd {
            fs::write(layout.lease_file(u64::MAX - 1).path(), bytes).unwrap();
            let holder = in_use(Numbered::take(&layout));
            assert!(!holder.contains('\x1b'), "{holder}");
        }
    }
}
