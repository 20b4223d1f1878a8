//! Listing snapshots and finding the one that somebody means.
//!
//! A snapshot has the tags and the pin of its newest amendment, in order of the log. All else, its
//! id too, stays as it was committed.

use std::collections::HashMap;

use holdall_crypto::{CryptoError, Opener, RecordSecret};
use holdall_format::{
    MachineId, RecordHash, RecordHead, RecordKind, Signatures, StoredRecord, Tombstone,
    TombstoneReason, record_file,
};
use holdall_protocol::{ListedRecord, RepositoryError};
use holdall_tree::Cursor;

use crate::blocks::Nodes;
use crate::cache::record_cache::RecordCache;
use crate::error::is_damaged;
use crate::records::chains::{BreakKind, ChainBreak, Chains};
use crate::records::checked_records::{CheckedRecords, MARKED_AFTER};
use crate::records::gone::{GoneRecord, gone_among};
use crate::records::receipt_signers::ReceiptSigners;
use crate::records::record_list::{Known, PutBack, list_by_cache, list_records};
use crate::records::retention_tombstones::RetentionTombstones;
use crate::records::snapshot_path::key_of;
use crate::{DamagedRecord, EngineError, Snapshot, UnlockedRepository};

/// Digits of an id as people see it.
const SHORT_ID_DIGITS: usize = 10;
/// Most snapshots that are named where several answer to a name.
const CANDIDATES_NAMED: usize = 5;

/// A snapshot that was let go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forgotten {
    /// Its id.
    pub id: RecordHash,
    /// Why.
    pub reason: TombstoneReason,
}

/// What a repository's records tell.
#[derive(Debug, Clone, Default)]
pub struct Listed {
    /// All snapshots, oldest first. Checkpoints are left out.
    pub snapshots: Vec<Snapshot>,
    /// The records that are damaged: snapshots that are lost, or tags that are.
    pub damaged: Vec<DamagedRecord>,
    /// Records that were damaged or gone in the repository, and that this machine had and stored again.
    pub put_back: Vec<PutBack>,
    /// Records that this machine has seen, and that are gone.
    pub gone: Vec<GoneRecord>,
    /// Ids of the records that hold tags and pins.
    pub amendments: Vec<RecordHash>,
    /// Records that were let go, in order of the log.
    pub forgotten: Vec<Forgotten>,
    /// Where a machine's chain of records is broken, in order of the log.
    pub breaks: Vec<ChainBreak>,
    /// Checkpoints of runs that did not end, oldest first.
    pub(crate) checkpoints: Vec<Snapshot>,
}

impl Listed {
    /// Whether no record is known that cannot be seen.
    pub fn is_all(&self) -> bool {
        let is_left_out = |kind| matches!(kind, BreakKind::LeftOut(_));
        self.damaged.is_empty()
            && self.gone.is_empty()
            && !self.breaks.iter().any(|broken| is_left_out(broken.kind))
    }

    /// Snapshots and checkpoints, oldest first.
    pub(crate) fn all(&self) -> Vec<&Snapshot> {
        let mut all: Vec<_> = self.snapshots.iter().chain(&self.checkpoints).collect();
        all.sort_by_key(|record| record.log_position);
        all
    }
}

/// Lists the snapshots of the repository.
///
/// A record is damaged that does not open, whose receipt is none that its repository's keeper may
/// show, or that does not fit what it amends.
///
/// # Errors
/// [`EngineError::Damaged`] for a list that is not in the order of the log;
/// [`RepositoryError::OtherFormat`](holdall_protocol::RepositoryError::OtherFormat) for a record of
/// a version that is to come; if the repository cannot be asked.
pub fn snapshots(access: &UnlockedRepository) -> Result<Listed, EngineError> {
    let records = list_records(access.repository.as_ref())?;
    let mut opening = Opening::of(access);
    records.iter().try_for_each(|listed| opening.add(listed, Signatures::Check))?;
    let known = RecordCache::within(&access.cache).load();
    let (repository, id) = (access.repository.as_ref(), access.config.repository);
    opening.found.gone = gone_among(repository, id, &known, &records)?;
    Ok(opening.finish())
}

/// The same, asking only for the records that this machine has not seen, if the repository says that
/// it still has all others. A repository that hides a loss from those who know what was there is found
/// out by [`snapshots`] and by reading. Signatures that this machine has checked are not checked again.
///
/// # Errors
/// As for [`snapshots`].
pub fn snapshots_by_cache(access: &UnlockedRepository) -> Result<Listed, EngineError> {
    let Known { records, put_back, gone } = list_by_cache(access)?;
    let marks = CheckedRecords::within(&access.cache);
    let checked = marks.count_in(&records, &access.keys);
    let mut opening = Opening::of(access);
    for (number, listed) in records.iter().enumerate() {
        let was_checked = number < checked;
        let signatures = if was_checked { Signatures::CheckedBefore } else { Signatures::Check };
        opening.add(listed, signatures)?;
    }
    (opening.found.put_back, opening.found.gone) = (put_back, gone);
    let listed = opening.finish();
    let first_damaged = listed.damaged.iter().map(|damaged| damaged.position).min();
    let sound =
        records.partition_point(|listed| first_damaged.is_none_or(|at| listed.position < at));
    if sound >= checked + MARKED_AFTER {
        marks.mark(&records[..sound], &access.keys);
    }
    Ok(listed)
}

/// Records that are opened one after another, in the order of the log.
struct Opening<'a> {
    access: &'a UnlockedRepository,
    opener: Opener,
    keepers: ReceiptSigners,
    chains: Chains,
    let_go: RetentionTombstones,
    found: Listed,
    amendments: Vec<(RecordHash, Snapshot)>,
}

impl<'a> Opening<'a> {
    fn of(access: &'a UnlockedRepository) -> Self {
        let opener = Opener::new(access.keys.sealing(), access.config.repository);
        let (keepers, chains, let_go) =
            (ReceiptSigners::of(access), Chains::default(), RetentionTombstones::default());
        let (found, amendments) = (Listed::default(), Vec::new());
        Self { access, opener, keepers, chains, let_go, found, amendments }
    }

    fn add(&mut self, listed: &ListedRecord, signatures: Signatures) -> Result<(), EngineError> {
        let added = match Tombstone::is_begun_by(&listed.stored) {
            true => self.add_tombstone(listed, signatures),
            false => self.add_record(listed, signatures),
        };
        if let Err(error) = added {
            self.found.damaged.push(damaged_record(listed, error)?);
            self.chains.add_damaged();
        }
        Ok(())
    }

    fn add_tombstone(
        &mut self,
        listed: &ListedRecord,
        signatures: Signatures,
    ) -> Result<(), EngineError> {
        let (forgotten, head) = open_tombstone(self.access, &self.keepers, listed, signatures)?;
        self.found.breaks.extend(self.chains.follow(forgotten.id, listed.position, &head));
        self.let_go.add(&head, forgotten.reason, listed.position);
        self.found.forgotten.push(forgotten);
        Ok(())
    }

    fn add_record(
        &mut self,
        listed: &ListedRecord,
        signatures: Signatures,
    ) -> Result<(), EngineError> {
        let (opener, keepers) = (&mut self.opener, &mut self.keepers);
        let (snapshot, head) = open_record(self.access, opener, keepers, listed, signatures)?;
        self.found.breaks.extend(self.chains.follow(snapshot.id, listed.position, &head));
        match head.amends {
            Some(amended) => {
                self.found.amendments.push(snapshot.id);
                self.amendments.push((amended, snapshot));
            }
            None if snapshot.checkpoint => self.found.checkpoints.push(snapshot),
            None => self.found.snapshots.push(snapshot),
        }
        Ok(())
    }

    fn finish(mut self) -> Listed {
        amend(&mut self.found, self.amendments);
        // What cannot be seen may be what follows.
        if self.found.is_all() {
            let impossible = self.let_go.implausible(&self.found.snapshots);
            self.found.damaged.extend(impossible);
        }
        self.found
    }
}

/// Tells what is wrong with one record from what keeps this program from going on.
fn damaged_record(listed: &ListedRecord, error: EngineError) -> Result<DamagedRecord, EngineError> {
    let reason = match error {
        EngineError::Damaged { reason, .. }
        | EngineError::Repository(RepositoryError::Damaged { reason, .. }) => reason,
        EngineError::Crypto(CryptoError::Format(error)) if error.is_other_version() => {
            return Err(EngineError::from(error));
        }
        EngineError::Crypto(error) => error.to_string(),
        error => return Err(error),
    };
    let is_record = StoredRecord::decode_with(&listed.stored, Signatures::CheckedBefore).is_ok();
    Ok(DamagedRecord { position: listed.position, reason, may_be_tombstone: !is_record })
}

/// Gives snapshots the tags and the pin of their amendments, which are in order of the log. An
/// amendment of a snapshot that is gone changes nothing.
fn amend(found: &mut Listed, amendments: Vec<(RecordHash, Snapshot)>) {
    if amendments.is_empty() {
        return;
    }
    let records = found.snapshots.iter_mut().chain(&mut found.checkpoints);
    let mut by_id: HashMap<_, _> = records.map(|snapshot| (snapshot.id, snapshot)).collect();
    for (amended, amendment) in amendments {
        let Some(snapshot) = by_id.get_mut(&amended) else { continue };
        if snapshot.checkpoint || snapshot.root != amendment.root {
            let reason = format!("it does not fit the snapshot that it amends, {amended}");
            let position = amendment.log_position;
            found.damaged.push(DamagedRecord { position, reason, may_be_tombstone: false });
            continue;
        }
        snapshot.pinned = amendment.pinned;
        snapshot.secret.tags = amendment.secret.tags;
    }
}

/// Reads what stays of a record that was let go.
fn open_tombstone(
    access: &UnlockedRepository,
    keepers: &ReceiptSigners,
    listed: &ListedRecord,
    signatures: Signatures,
) -> Result<(Forgotten, RecordHead), EngineError> {
    let damaged = |reason: &str| EngineError::damaged("a tombstone", reason);
    let (tombstone, head) = Tombstone::decode_with(&listed.stored, signatures)
        .map_err(|error| EngineError::unreadable("a tombstone", &error))?;
    if tombstone.log_position != listed.position {
        return Err(damaged("it is that of another record"));
    }
    if head.repository != access.config.repository {
        return Err(damaged("it belongs to another repository"));
    }
    if !keepers.accept_tombstone(&tombstone, head.key) {
        return Err(damaged("it was signed by an unknown key"));
    }
    Ok((Forgotten { id: tombstone.record, reason: tombstone.reason }, head))
}

/// Opens a record, and gives its head too.
fn open_record(
    access: &UnlockedRepository,
    opener: &mut Opener,
    keepers: &mut ReceiptSigners,
    listed: &ListedRecord,
    signatures: Signatures,
) -> Result<(Snapshot, RecordHead), EngineError> {
    let damaged = |reason: String| EngineError::damaged("a record", reason);
    if listed.stored.is_empty() {
        return Err(damaged("its file cannot be read".into()));
    }
    let stored = StoredRecord::decode_with(&listed.stored, signatures)
        .map_err(|error| EngineError::unreadable("a record", &error))?;
    let (id, position) = (stored.record.hash(), stored.receipt.log_position);
    if position != listed.position {
        return Err(damaged(format!("it is the record {}", record_file(position))));
    }
    if !keepers.accept(&stored) {
        return Err(damaged(format!("snapshot {id}: its receipt was signed by an unknown key")));
    }
    let head = stored.record.head;
    if head.repository != access.config.repository {
        return Err(damaged("it belongs to another repository".into()));
    }
    let secret = RecordSecret::open(&stored.record.sealed, &head, opener)?;
    let snapshot = Snapshot {
        id,
        machine: head.machine,
        series: head.series,
        sequence: head.sequence,
        received_ns: stored.receipt.received_ns,
        received_sure: stored.receipt.clock_sure,
        log_position: position,
        root: head.root,
        checkpoint: head.kind == RecordKind::Checkpoint,
        pinned: head.pinned,
        secret,
    };
    Ok((snapshot, head))
}

/// Finds the snapshot that `wanted` names among those that [`snapshots`] listed: `latest` (the last
/// that `machine` made, of those that cover `path` where one is given; where it made none, the newest
/// that it copied; where none covers it, of those that hold something below it) or a unique prefix of
/// an id.
///
/// # Errors
/// [`EngineError::NoSnapshot`] for none or several; of several, it names the first ones.
pub fn find_snapshot<'a>(
    listed: impl IntoIterator<Item = &'a Snapshot>,
    machine: MachineId,
    wanted: &str,
    path: Option<&[u8]>,
) -> Result<&'a Snapshot, EngineError> {
    let listed: Vec<_> = listed.into_iter().collect();
    let none = |reason: String| EngineError::NoSnapshot { wanted: wanted.to_owned(), reason };
    let not_found = || none("none was found; `holdall snapshots` lists them".to_owned());
    if wanted == "latest" {
        return latest(&listed, machine, path).ok_or_else(|| none(none_of(path)));
    }
    let begins_so = |snapshot: &&Snapshot| snapshot.id.to_string().starts_with(wanted);
    let fitting: Vec<_> = listed.into_iter().filter(begins_so).collect();
    match &fitting[..] {
        [] => Err(not_found()),
        [one] if !wanted.is_empty() => Ok(one),
        several => {
            let named = candidates(several, wanted.len());
            Err(none(format!("several ids begin so: {named}; give more digits")))
        }
    }
}

/// The newest of the snapshots of a path whose tree has it, among `listed`: `newest`, which [`find_snapshot`] gave, or one
/// before it of the same machine. A run in which a source was missing was of that path, too. Where no tree has it, it is
/// `newest`.
///
/// # Errors
/// Those of the repository. A tree that is damaged is taken to have it.
pub fn newest_with<'a>(
    access: &UnlockedRepository,
    listed: impl IntoIterator<Item = &'a Snapshot>,
    newest: &'a Snapshot,
    path: &[u8],
) -> Result<&'a Snapshot, EngineError> {
    let Some(key) = key_of(path).filter(|key| !key.is_root()) else { return Ok(newest) };
    let mut left: Vec<_> = listed.into_iter().collect();
    access.reading(|session| {
        let has = |one: &Snapshot| {
            let mut cursor = Cursor::new(Nodes::open(access, session), one.root);
            cursor.seek(&key)?;
            Ok::<_, EngineError>(cursor.peek()?.is_some_and(|(found, _)| *found == key))
        };
        let mut candidate = Some(newest);
        while let Some(one) = candidate {
            match has(one) {
                Ok(true) => return Ok(one),
                Err(error) if is_damaged(&error) => return Ok(one),
                Err(error) => return Err(error),
                Ok(false) => left.retain(|other| other.root != one.root),
            }
            candidate = latest(&left, newest.machine, Some(path));
        }
        Ok(newest)
    })
}

/// The newest snapshot of a machine, of `path` where one is given. One that has only something below
/// it is meant where no other has it whole.
fn latest<'a>(
    listed: &[&'a Snapshot],
    machine: MachineId,
    path: Option<&[u8]>,
) -> Option<&'a Snapshot> {
    let newest = |fits: &dyn Fn(&Snapshot) -> bool| {
        let fitting = || listed.iter().copied().filter(|one| one.machine == machine && fits(one));
        let made = fitting().rfind(|snapshot| !snapshot.is_copy());
        made.or_else(|| fitting().max_by_key(|snapshot| snapshot.taken_ns()))
    };
    match path {
        None => newest(&|_| true),
        Some(path) => newest(&|one| one.covers(path)).or_else(|| newest(&|one| one.holds(path))),
    }
}

/// The first few of several snapshots by name: enough digits to go on with.
fn candidates(several: &[&Snapshot], wanted_digits: usize) -> String {
    let digits = SHORT_ID_DIGITS.max(wanted_digits.saturating_add(2));
    let short = |snapshot: &&Snapshot| snapshot.id.to_string().chars().take(digits).collect();
    let named: Vec<String> = several.iter().take(CANDIDATES_NAMED).map(short).collect();
    match several.len().saturating_sub(CANDIDATES_NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

impl Snapshot {
    /// Whether it is of `path`, absolute and plain, or of something above or below that.
    pub fn holds(&self, path: &[u8]) -> bool {
        self.covers(path) || self.secret.paths.iter().any(|of| within(of, path))
    }

    /// Whether it is of `path`, absolute and plain, or of something above that.
    pub fn covers(&self, path: &[u8]) -> bool {
        self.secret.paths.iter().any(|of| within(path, of))
    }
}

/// Why there is no latest snapshot, of `path` where one is given.
fn none_of(path: Option<&[u8]>) -> String {
    let of = path.map(|path| format!(" of {}", String::from_utf8_lossy(path))).unwrap_or_default();
    format!("this machine made none{of}; `holdall snapshots` lists what there is")
}

/// Whether a path is another or below it.
pub(crate) fn within(inner: &[u8], outer: &[u8]) -> bool {
    let outer = outer.strip_suffix(b"/").unwrap_or(outer);
    inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_world::World;
    use holdall_crypto::{CopiedFrom, SigningKey};
    use std::sync::Arc;

    #[test]
    fn a_receipt_that_a_stranger_signed_behind_the_keeper_s_is_damage() {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new();
        // Its records are signed by the machine, its receipts by the keeper: it is on a server.
        world.access.signing = Arc::new(SigningKey::from_seed(&[7; 32]));
        world.back_up(folder.path());
        assert_eq!(world.snapshots().len(), 1);
        let keeper = std::mem::replace(
            &mut world.access.receipts_from,
            SigningKey::from_seed(&[8; 32]).public(),
        );
        assert_eq!(world.snapshots().len(), 1, "another one kept it before");
        world.access.receipts_from = keeper;
        world.repository.forge_receipt(&SigningKey::from_seed(&[9; 32]));
        let listed = snapshots(&world.access).unwrap();
        assert_eq!(listed.snapshots.len(), 1);
        let [DamagedRecord { position: 2, reason, .. }] = &listed.damaged[..] else {
            panic!("{:?}", listed.damaged)
        };
        assert!(reason.contains("unknown key"), "{reason}");
    }

    #[test]
    fn a_record_at_another_position_than_its_receipt_says_is_damage() {
        let (world, folder) = (World::new(), tempfile::tempdir().unwrap());
        world.back_up(folder.path());
        world.repository.list_again();
        let listed = snapshots(&world.access).unwrap();
        assert_eq!(listed.snapshots.len(), 1);
        let [DamagedRecord { position: 2, reason, .. }] = &listed.damaged[..] else {
            panic!("{:?}", listed.damaged)
        };
        assert!(reason.contains(&record_file(1)), "{reason}");
    }

    #[test]
    fn a_prefix_that_several_ids_have_names_them() {
        let world = World::new();
        let snapshot = |first: u8, last: u8| {
            let mut id = [last; 32];
            id[0] = first;
            Snapshot { id: RecordHash::from_bytes(id), ..world.snapshot(&[]) }
        };
        let listed = [snapshot(0x1f, 1), snapshot(0x2a, 2), snapshot(0x2a, 3)];
        let find = |wanted: &str| find_snapshot(&listed, world.access.machine, wanted, None);
        assert_eq!(find("1").unwrap().id, listed[0].id);
        assert_eq!(find("latest").unwrap().id, listed[2].id);
        let told = find("2a").unwrap_err().to_string();
        assert!(told.contains("begin so: 2a02020202, 2a03030303; give more"), "{told}");
        let all = find("").unwrap_err().to_string();
        assert!(all.contains("1f01010101, 2a02020202, 2a03030303;"), "{all}");
        assert!(find("77").unwrap_err().to_string().contains("none was found"));
        let other = MachineId::from_bytes([9; 16]);
        find_snapshot(&listed, other, "latest", None).unwrap_err();
    }

    #[test]
    fn latest_is_a_copy_only_where_the_machine_made_nothing_that_fits() {
        let world = World::new();
        let of = |id: u8, path: &[u8], copied_ns: Option<i64>| {
            let id = RecordHash::from_bytes([id; 32]);
            let mut snapshot = Snapshot { id, ..world.snapshot(&[]) };
            snapshot.secret.paths = vec![path.to_vec()];
            let from = |received_ns| CopiedFrom { record: id, received_ns, through: None };
            snapshot.secret.copied_from = copied_ns.map(from);
            snapshot
        };
        let made = of(1, b"/a", None);
        // The other repository's clock is wrong.
        let (future, old) = (of(2, b"/a", Some(i64::MAX)), of(3, b"/b", Some(1)));
        let listed = [future.clone(), made.clone(), future.clone(), old.clone()];
        let latest = |listed: &[Snapshot], path: Option<&[u8]>| {
            find_snapshot(listed, world.access.machine, "latest", path).unwrap().id
        };
        assert_eq!(latest(&listed, None), made.id);
        assert_eq!(latest(&listed, Some(b"/a")), made.id);
        assert_eq!(latest(&listed, Some(b"/b")), old.id);
        assert_eq!(latest(&[future.clone(), old], None), future.id);
    }

    #[test]
    fn latest_of_a_path_has_all_of_it_where_one_has() {
        let world = World::new();
        let of = |id: u8, path: &[u8]| {
            let id = RecordHash::from_bytes([id; 32]);
            let mut snapshot = Snapshot { id, ..world.snapshot(&[]) };
            snapshot.secret.paths = vec![path.to_vec()];
            snapshot
        };
        let listed = [of(1, b"/home"), of(2, b"/home/ada"), of(3, b"/srv/a"), of(4, b"/srv/b")];
        let latest = |path: &[u8]| {
            let found = find_snapshot(&listed, world.access.machine, "latest", Some(path));
            found.map(|snapshot| snapshot.id).ok()
        };
        assert_eq!(latest(b"/home"), Some(listed[0].id), "the newer one has a part of it");
        assert_eq!(latest(b"/home/ada/letters"), Some(listed[1].id));
        assert_eq!(latest(b"/home/bob"), Some(listed[0].id));
        assert_eq!(latest(b"/srv"), Some(listed[3].id), "none has all of it");
        assert_eq!(latest(b"/etc"), None);
    }

    #[test]
    fn a_path_is_within_itself_and_those_above_it_only() {
        assert!(within(b"/home/ada", b"/home"));
        assert!(within(b"/home", b"/home"));
        assert!(within(b"/home", b"/"));
        assert!(!within(b"/home", b"/home/ada"));
        assert!(!within(b"/homework", b"/home"));
    }
}
