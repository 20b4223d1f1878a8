//! Sessions: what a machine put lately counts as there, even before a commit reached it.
//!
//! ```text
//! sessions/<id>: | magic "HSes" | version u8 | backup u8 | open u8 | zero u8 | session 16
//!                | machine 16 | start arrival u64 | last use i64 (ns since 1970) | parent count u16
//!                | parent 32 ... | checksum 32 |
//! ```
//!
//! The rule is a watermark: an object is there for a machine if it came at or after the start of the
//! machine's oldest backup session that has not lapsed. That takes in what the machine's other
//! sessions put since, and is exact as long as one machine alone writes to a repository. A session
//! that was closed without a commit, or never closed because its client died, counts until it lapses,
//! 7 days after its last use; the commit of a snapshot ends it at once. A session to read keeps
//! nothing, so it lapses after a day.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
#[cfg(test)]
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use holdall_format::wire::Reader;
use holdall_format::{FormatError, MachineId, PackName, RecordHash, SessionId};
use holdall_protocol::{RepositoryError, SessionPurpose};
use holdall_sys::Clock;

use crate::index::PackInfo;
use crate::state_files::checksummed::{with_checksum, without_checksum};
use crate::storage::layout::Layout;
use crate::storage::publish::random;

const WHAT: &str = "session";
const MAGIC: &[u8; 4] = b"HSes";
const VERSION: u8 = 1;
/// A session to back up lapses this long after its last use.
const LAPSE_NS: i64 = 7 * READ_LAPSE_NS;
/// A session to read lapses this long after its last use.
const READ_LAPSE_NS: i64 = 24 * 3600 * 1_000_000_000;
/// The last use is written down again after this long, not at every use.
const NOTE_NS: i64 = 3600 * 1_000_000_000;
/// Most parents that a session may name.
const MAX_PARENTS: usize = 1024;
/// Most sessions of one machine that have not lapsed; all recovery kits are one machine here.
const MAX_SESSIONS: usize = 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Session {
    id: SessionId,
    machine: MachineId,
    is_backup: bool,
    is_open: bool,
    start_arrival: u64,
    last_use_ns: i64,
    parents: Vec<RecordHash>,
}

impl Session {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(128);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&[VERSION, u8::from(self.is_backup), u8::from(self.is_open), 0]);
        out.extend_from_slice(self.id.as_bytes());
        out.extend_from_slice(self.machine.as_bytes());
        out.extend_from_slice(&self.start_arrival.to_le_bytes());
        out.extend_from_slice(&self.last_use_ns.to_le_bytes());
        let count = u16::try_from(self.parents.len()).unwrap_or(u16::MAX);
        out.extend_from_slice(&count.to_le_bytes());
        self.parents.iter().for_each(|parent| out.extend_from_slice(parent.as_bytes()));
        with_checksum(out)
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let mut reader = Reader::new(WHAT, without_checksum(WHAT, bytes)?);
        reader.magic(MAGIC, VERSION)?;
        let [backup, open, _] = reader.array("flags")?;
        let id = SessionId::from_bytes(reader.array("session")?);
        let machine = MachineId::from_bytes(reader.array("machine")?);
        let start_arrival = reader.u64("start arrival")?;
        let last_use_ns = i64::from_le_bytes(reader.array("last use")?);
        let count = reader.u16("parent count")?;
        let parents = (0..count)
            .map(|_| reader.array("parent").map(RecordHash::from_bytes))
            .collect::<Result<_, _>>()?;
        reader.finish()?;
        let (is_backup, is_open) = (backup != 0, open != 0);
        Ok(Self { id, machine, is_backup, is_open, start_arrival, last_use_ns, parents })
    }

    /// By time that has truly passed: a clock that is set ahead ends nobody's session.
    fn has_lapsed(&self, clock: &dyn Clock) -> bool {
        let lapse_ns = if self.is_backup { LAPSE_NS } else { READ_LAPSE_NS };
        clock.passed_ns(self.last_use_ns) > lapse_ns
    }
}

#[derive(Debug)]
struct Known {
    session: Session,
    /// The last use that is in the file.
    noted_ns: i64,
    /// Not kept in the file: after a restart a commit finds what is gone, and what it lacks is sent.
    relied_on: ReliedOn,
}

/// What holds objects that somebody was told are there.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReliedOn {
    /// Closed packs.
    pub(crate) packs: BTreeSet<PackName>,
    /// Arrival positions of blocks that lay in tails.
    pub(crate) arrivals: BTreeSet<u64>,
}

impl ReliedOn {
    fn add(&mut self, other: Self) {
        self.packs.extend(other.packs);
        self.arrivals.extend(other.arrivals);
    }

    /// Whether that pack is relied on, or the tail that it was.
    pub(crate) fn has(&self, pack: &PackInfo) -> bool {
        self.packs.contains(&pack.name)
            || self.arrivals.range(pack.first_arrival..=pack.last_arrival).next().is_some()
    }
}

impl Known {
    fn of(session: Session) -> Self {
        let noted_ns = session.last_use_ns;
        Self { session, noted_ns, relied_on: ReliedOn::default() }
    }

    /// Learns what this process knew of the session before. The file may be newer: others may have written it
    /// meanwhile.
    fn learn(&mut self, earlier: Self) {
        let Session { is_open, last_use_ns, .. } = earlier.session;
        self.session.is_open &= is_open;
        self.session.last_use_ns = self.session.last_use_ns.max(last_use_ns);
        self.relied_on.add(earlier.relied_on);
    }
}

/// All sessions of a repository that have not lapsed.
#[derive(Debug)]
pub struct Sessions {
    layout: Layout,
    /// Whether files may be written, so that what is opened outlives this process.
    can_write: bool,
    known: Mutex<HashMap<SessionId, Known>>,
    /// Held by who changes the file of a session that others may know: what is written is how it is then.
    noting: Mutex<()>,
    /// Has nothing be written, as on a full disk.
    #[cfg(test)]
    is_full: AtomicBool,
}

impl Sessions {
    /// Reads the stored sessions. One that cannot be read is as good as lapsed: what it put is
    /// sent again.
    pub(crate) fn open(layout: &Layout, can_write: bool) -> Result<Self, RepositoryError> {
        let mut known = HashMap::new();
        for name in layout.sessions().names()? {
            // Other names are somebody else's.
            let id = name.to_str().and_then(|name| name.parse::<SessionId>().ok());
            let Some(path) = id.map(|id| layout.session(&id)) else { continue };
            // It may be readable again next time.
            let Ok(bytes) = path.read_limited(64 << 10) else { continue };
            let bytes = bytes.unwrap_or_default();
            match Session::decode(&bytes) {
                Ok(session) => {
                    known.insert(session.id, Known::of(session));
                }
                Err(_) if can_write => path.remove()?,
                Err(_) => {}
            }
        }
        Ok(Self {
            layout: layout.clone(),
            can_write,
            known: Mutex::new(known),
            noting: Mutex::default(),
            #[cfg(test)]
            is_full: AtomicBool::new(false),
        })
    }

    /// Opens a session.
    pub(crate) fn start(
        &self,
        machine: MachineId,
        purpose: &SessionPurpose,
        start_arrival: u64,
        clock: &dyn Clock,
    ) -> Result<SessionId, RepositoryError> {
        let (is_backup, parents) = match purpose {
            SessionPurpose::Backup { parents } => (true, parents.clone()),
            SessionPurpose::Read => (false, Vec::new()),
        };
        self.sweep(clock)?;
        if parents.len() > MAX_PARENTS || self.count_of(&machine) >= MAX_SESSIONS {
            let reason = "too many parents or sessions".to_owned();
            return Err(RepositoryError::Refused { reason });
        }
        let id = SessionId::from_bytes(random()?);
        let last_use_ns = clock.now_ns();
        let session =
            Session { id, machine, is_backup, is_open: true, start_arrival, last_use_ns, parents };
        self.write_if_needed(&session)?;
        self.lock().insert(id, Known::of(session));
        Ok(id)
    }

    /// Uses an open session of that machine to write.
    pub(crate) fn check_backup(
        &self,
        id: &SessionId,
        machine: &MachineId,
        clock: &dyn Clock,
    ) -> Result<(), RepositoryError> {
        self.check(id, machine, clock)?;
        if self.lock().get(id).is_some_and(|known| known.session.is_backup) {
            return Ok(());
        }
        Err(RepositoryError::Refused { reason: "the session was opened to read".into() })
    }

    /// Uses an open session of that machine.
    pub(crate) fn check(
        &self,
        id: &SessionId,
        machine: &MachineId,
        clock: &dyn Clock,
    ) -> Result<(), RepositoryError> {
        let mut known = self.lock();
        let open = known.get_mut(id).filter(|known| {
            let session = &known.session;
            session.is_open && session.machine == *machine && !session.has_lapsed(clock)
        });
        let found = open.ok_or(RepositoryError::NoSession { session: *id })?;
        // A clock that goes back must not make a session older than it is.
        found.session.last_use_ns = found.session.last_use_ns.max(clock.now_ns());
        if found.session.last_use_ns.saturating_sub(found.noted_ns) <= NOTE_NS {
            return Ok(());
        }
        found.noted_ns = found.session.last_use_ns;
        drop(known);
        self.note(id)
    }

    /// Closes a session without a commit; what it put counts until it lapses.
    pub(crate) fn close(&self, id: &SessionId, machine: &MachineId) -> Result<(), RepositoryError> {
        let mut known = self.lock();
        let Some(found) = known.get_mut(id).filter(|known| known.session.machine == *machine)
        else {
            return Ok(());
        };
        if !found.session.is_backup {
            known.remove(id);
            drop(known);
            return self.forget(id);
        }
        found.session.is_open = false;
        drop(known);
        self.note(id)
    }

    /// Ends a session of that machine of which nothing is left to be done; none is no error.
    pub(crate) fn end_own(
        &self,
        id: &SessionId,
        machine: &MachineId,
    ) -> Result<(), RepositoryError> {
        let is_own = |known: &Known| known.session.machine == *machine;
        if self.lock().get(id).is_some_and(is_own) { self.end(id) } else { Ok(()) }
    }

    /// Ends a session whose snapshot was committed.
    pub(crate) fn end(&self, id: &SessionId) -> Result<(), RepositoryError> {
        self.lock().remove(id);
        self.forget(id)
    }

    /// Takes over the sessions of a store that was open in this process before, which knew more of them than
    /// their files say.
    pub(crate) fn adopt(&self, earlier: &Self) {
        let mut known = self.lock();
        for (id, earlier) in earlier.lock().drain() {
            match known.entry(id) {
                Entry::Occupied(mut found) => found.get_mut().learn(earlier),
                Entry::Vacant(place) => {
                    place.insert(earlier);
                }
            }
        }
    }

    /// From which arrival position on objects are there for the machine; `None` for none.
    pub(crate) fn watermark(&self, machine: &MachineId, clock: &dyn Clock) -> Option<u64> {
        self.watermark_of(clock, |session| session.machine == *machine)
    }

    /// From which arrival position on objects are there for any machine; `None` for none.
    pub(crate) fn lowest_watermark(&self, clock: &dyn Clock) -> Option<u64> {
        self.watermark_of(clock, |_| true)
    }

    fn watermark_of(&self, clock: &dyn Clock, counts: impl Fn(&Session) -> bool) -> Option<u64> {
        let known = self.lock();
        let live = known
            .values()
            .map(|known| &known.session)
            .filter(|session| session.is_backup && counts(session) && !session.has_lapsed(clock));
        live.map(|session| session.start_arrival).min()
    }

    /// The records that sessions build on which have not lapsed.
    pub(crate) fn live_parents(&self, clock: &dyn Clock) -> BTreeSet<RecordHash> {
        let known = self.lock();
        let live = known.values().map(|known| &known.session);
        let live = live.filter(|session| session.is_open && !session.has_lapsed(clock));
        live.flat_map(|session| session.parents.iter().copied()).collect()
    }

    /// Whether somebody reads who began when the log was at that position, or before.
    pub(crate) fn reads_since(&self, log_position: u64, clock: &dyn Clock) -> bool {
        self.lock().values().map(|known| &known.session).any(|session| {
            let began_before = session.start_arrival <= log_position;
            !session.is_backup && session.is_open && began_before && !session.has_lapsed(clock)
        })
    }

    /// Notes what holds that which a session was told is there.
    pub(crate) fn rely_on(&self, id: &SessionId, relied_on: ReliedOn) {
        if let Some(known) = self.lock().get_mut(id) {
            known.relied_on.add(relied_on);
        }
    }

    /// What open sessions of this process were told is there.
    pub(crate) fn relied_on(&self, clock: &dyn Clock) -> ReliedOn {
        let known = self.lock();
        let live = known.values().filter(|known| !known.session.has_lapsed(clock));
        let live = live.filter(|known| known.session.is_open);
        let mut relied_on = ReliedOn::default();
        live.for_each(|known| relied_on.add(known.relied_on.clone()));
        relied_on
    }

    /// The latest start of any session: positions before it are taken.
    pub(crate) fn latest_start(&self) -> u64 {
        self.lock().values().map(|known| known.session.start_arrival).max().unwrap_or_default()
    }

    fn count_of(&self, machine: &MachineId) -> usize {
        self.lock().values().filter(|known| known.session.machine == *machine).count()
    }

    fn sweep(&self, clock: &dyn Clock) -> Result<(), RepositoryError> {
        let mut lapsed = Vec::new();
        self.lock().retain(|id, known| {
            let keep = !known.session.has_lapsed(clock);
            if !keep {
                lapsed.push(*id);
            }
            keep
        });
        lapsed.iter().try_for_each(|id| self.forget(id))
    }

    /// Writes a session down as it is by now. One that ended meanwhile has no file any more, and gets none.
    fn note(&self, id: &SessionId) -> Result<(), RepositoryError> {
        let _turn = self.noting.lock().unwrap_or_else(PoisonError::into_inner);
        let known = self.lock().get(id).map(|known| known.session.clone());
        known.map_or(Ok(()), |session| self.write_if_needed(&session))
    }

    /// Writes down a session that is used. On a full disk one can read all the same; what is not written of
    /// the session ends with this process then.
    fn write_if_needed(&self, session: &Session) -> Result<(), RepositoryError> {
        match self.write(session) {
            Err(RepositoryError::NoRoom { .. }) if !session.is_backup => Ok(()),
            written => written,
        }
    }

    fn write(&self, session: &Session) -> Result<(), RepositoryError> {
        if !self.can_write {
            return Ok(());
        }
        #[cfg(test)]
        if self.is_full.load(Ordering::Acquire) {
            return Err(RepositoryError::NoRoom { place: "the sessions".into() });
        }
        self.layout.session(&session.id).replace(&session.encode())
    }

    fn forget(&self, id: &SessionId) -> Result<(), RepositoryError> {
        let _turn = self.noting.lock().unwrap_or_else(PoisonError::into_inner);
        if self.can_write { self.layout.session(id).remove() } else { Ok(()) }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::storage::publish::make_dir;
    use holdall_testkit::FakeClock;
    use proptest::prelude::*;

    const MACHINE: MachineId = MachineId::from_bytes([1; 16]);
    const BACKUP: SessionPurpose = SessionPurpose::Backup { parents: Vec::new() };

    fn at(now_ns: i64) -> FakeClock {
        let clock = FakeClock::default();
        clock.set_ns(now_ns);
        clock
    }

    fn place() -> (tempfile::TempDir, Layout) {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        layout.folders().iter().for_each(|folder| make_dir(folder).unwrap());
        (dir, layout)
    }

    /// Cause: the hourly note of its last use was written after the session had ended, or been closed, and after the
    /// next start it was there again.
    #[test]
    fn a_note_that_is_late_brings_no_session_back() {
        let (_dir, layout) = place();
        let sessions = Sessions::open(&layout, true).unwrap();
        for round in 0..100 {
            let id = sessions.start(MACHINE, &BACKUP, 1, &at(0)).unwrap();
            let is_ended = round % 2 == 0;
            std::thread::scope(|scope| {
                scope.spawn(|| drop(sessions.check(&id, &MACHINE, &at(NOTE_NS + 1))));
                scope.spawn(|| match is_ended {
                    true => sessions.end(&id).unwrap(),
                    false => sessions.close(&id, &MACHINE).unwrap(),
                });
            });
            let stored = layout.session(&id).read_limited(64 << 10).unwrap();
            let stored = stored.map(|bytes| Session::decode(&bytes).unwrap());
            assert!(stored.is_none_or(|stored| !is_ended && !stored.is_open), "round {round}");
            sessions.end(&id).unwrap();
        }
    }

    #[test]
    fn the_oldest_session_that_has_not_lapsed_sets_the_watermark() {
        let (_dir, layout) = place();
        let sessions = Sessions::open(&layout, true).unwrap();
        let first = sessions.start(MACHINE, &BACKUP, 10, &at(0)).unwrap();
        sessions.start(MACHINE, &BACKUP, 20, &at(LAPSE_NS)).unwrap();
        sessions.start(MACHINE, &SessionPurpose::Read, 5, &at(LAPSE_NS)).unwrap();
        assert_eq!(sessions.watermark(&MACHINE, &at(LAPSE_NS)), Some(10));
        assert_eq!(sessions.watermark(&MACHINE, &at(LAPSE_NS + 1)), Some(20));
        assert_eq!(sessions.watermark(&MachineId::from_bytes([2; 16]), &at(0)), None);
        assert!(sessions.check(&first, &MACHINE, &at(LAPSE_NS + 1)).is_err());
        assert_eq!(sessions.watermark(&MACHINE, &at(i64::MAX)), None);
    }

    #[test]
    fn using_a_session_keeps_it_alive_also_over_a_restart() {
        let (_dir, layout) = place();
        let sessions = Sessions::open(&layout, true).unwrap();
        let id = sessions.start(MACHINE, &BACKUP, 10, &at(0)).unwrap();
        sessions.check(&id, &MACHINE, &at(LAPSE_NS)).unwrap();
        sessions.check(&id, &MACHINE, &at(5)).unwrap();
        let sessions = Sessions::open(&layout, true).unwrap();
        sessions.check(&id, &MACHINE, &at(2 * LAPSE_NS)).unwrap();
        sessions.close(&id, &MACHINE).unwrap();
        let sessions = Sessions::open(&layout, true).unwrap();
        assert_eq!(sessions.watermark(&MACHINE, &at(2 * LAPSE_NS)), Some(10));
        assert_eq!(sessions.latest_start(), 10);
        sessions.end(&id).unwrap();
        assert_eq!(Sessions::open(&layout, true).unwrap().watermark(&MACHINE, &at(0)), None);
    }

    #[test]
    fn whoever_reads_for_hours_reads_on_while_the_disk_is_full() {
        let (_dir, layout) = place();
        let sessions = Sessions::open(&layout, true).unwrap();
        let start = |purpose| sessions.start(MACHINE, purpose, 10, &at(0)).unwrap();
        let (reads, backs_up) = (start(&SessionPurpose::Read), start(&BACKUP));
        sessions.is_full.store(true, Ordering::Release);
        for hour in 1..30 {
            sessions.check(&reads, &MACHINE, &at(hour * (NOTE_NS + 1))).unwrap();
        }
        let refused = sessions.check(&backs_up, &MACHINE, &at(2 * NOTE_NS));
        assert!(matches!(refused, Err(RepositoryError::NoRoom { .. })), "{refused:?}");
    }

    #[test]
    fn a_store_that_is_opened_again_knows_what_sessions_with_a_file_and_without_were_told() {
        let (_dir, layout) = place();
        let earlier = Sessions::open(&layout, true).unwrap();
        let with_file = earlier.start(MACHINE, &BACKUP, 10, &at(0)).unwrap();
        let without = earlier.start(MACHINE, &SessionPurpose::Read, 20, &at(0)).unwrap();
        std::fs::remove_file(layout.session(&without).path()).unwrap();
        let relied_on = |arrival| ReliedOn { arrivals: [arrival].into(), ..ReliedOn::default() };
        earlier.rely_on(&with_file, relied_on(1));
        earlier.rely_on(&without, relied_on(2));

        let sessions = Sessions::open(&layout, true).unwrap();
        sessions.adopt(&earlier);
        assert_eq!(sessions.relied_on(&at(0)).arrivals, BTreeSet::from([1, 2]));
    }

    #[test]
    fn what_others_wrote_of_a_session_since_it_was_read_is_not_taken_back() {
        let (_dir, layout) = place();
        let writer = Sessions::open(&layout, true).unwrap();
        let [used, closed] =
            [10, 20].map(|start| writer.start(MACHINE, &BACKUP, start, &at(0)).unwrap());
        let earlier = Sessions::open(&layout, false).unwrap();
        writer.check(&used, &MACHINE, &at(LAPSE_NS)).unwrap();
        writer.close(&closed, &MACHINE).unwrap();

        let sessions = Sessions::open(&layout, true).unwrap();
        sessions.adopt(&earlier);
        assert_eq!(sessions.watermark(&MACHINE, &at(2 * LAPSE_NS)), Some(10));
        assert!(sessions.check(&used, &MACHINE, &at(2 * LAPSE_NS)).is_ok());
        assert!(sessions.check(&closed, &MACHINE, &at(0)).is_err());
    }

    #[test]
    fn a_session_that_can_not_be_read_has_lapsed_and_is_left_alone() {
        let (_dir, layout) = place();
        let unreadable = layout.session(&SessionId::from_bytes([5; 16]));
        std::fs::create_dir(unreadable.path()).unwrap();
        let sessions = Sessions::open(&layout, true).unwrap();
        assert_eq!(sessions.watermark(&MACHINE, &at(0)), None);
        assert!(unreadable.exists());
    }

    #[test]
    fn a_session_is_its_machines_own() {
        let (_dir, layout) = place();
        let sessions = Sessions::open(&layout, true).unwrap();
        let id = sessions.start(MACHINE, &BACKUP, 10, &at(0)).unwrap();
        let other = MachineId::from_bytes([2; 16]);
        assert!(sessions.check(&id, &other, &at(0)).is_err());
        sessions.close(&id, &other).unwrap();
        assert!(sessions.check(&id, &MACHINE, &at(0)).is_ok());
    }

    #[test]
    fn a_machine_takes_no_place_from_another_and_has_its_own_back_when_its_reads_lapse() {
        let (_dir, layout) = place();
        let sessions = Sessions::open(&layout, false).unwrap();
        let kit = MachineId::from_bytes([0; 16]);
        let start =
            |machine, now_ns| sessions.start(machine, &SessionPurpose::Read, 0, &at(now_ns));
        let first = start(kit, 0).unwrap();
        for _ in 1..MAX_SESSIONS {
            start(kit, 0).unwrap();
        }
        assert!(start(kit, READ_LAPSE_NS).is_err());
        start(MACHINE, READ_LAPSE_NS).unwrap();
        sessions.check(&first, &kit, &at(READ_LAPSE_NS)).unwrap();
        start(kit, READ_LAPSE_NS + 1).unwrap();
        assert!(sessions.count_of(&kit) == 2, "the one that was used and the new one");
    }

    #[test]
    fn a_session_names_no_more_parents_than_the_limit() {
        let (_dir, layout) = place();
        let sessions = Sessions::open(&layout, true).unwrap();
        let with = |parents| {
            let parents = vec![RecordHash::from_bytes([9; 32]); parents];
            sessions.start(MACHINE, &SessionPurpose::Backup { parents }, 0, &at(0))
        };
        with(MAX_PARENTS).unwrap();
        assert!(matches!(with(MAX_PARENTS + 1), Err(RepositoryError::Refused { .. })));
    }

    proptest! {
        #[test]
        fn any_changed_bit_of_a_session_is_noticed(at: usize, flip in 1u8.., parents in 0usize..3) {
            let session = Session {
                id: SessionId::from_bytes([3; 16]),
                machine: MACHINE,
                is_backup: true,
                is_open: false,
                start_arrival: 77,
                last_use_ns: -5,
                parents: vec![RecordHash::from_bytes([9; 32]); parents],
            };
            let mut bytes = session.encode();
            prop_assert_eq!(Session::decode(&bytes), Ok(session));
            let at = at % bytes.len();
            bytes[at] ^= flip;
            prop_assert!(Session::decode(&bytes).is_err());
        }
    }
}
