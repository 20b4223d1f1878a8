//! The tables in redb. Rows are JSON, so that a field can be added.

use std::fs::File;
use std::io;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use holdall_format::{MachineId, PublicKey};
use holdall_sys::{PathBeneath, metadata};
use redb::{ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::State;
use super::audit::{self, AuditEntry};
use super::entries::{Deletion, RunEntry};
use super::keeping::KeepingRow;
use super::machine::{InviteRow, Machine};
use super::tokens::TokenRow;
use crate::ServerError;
use crate::data_folder::make_beside;

const MACHINES: TableDefinition<'_, &[u8; 16], &[u8]> = TableDefinition::new("machines");
const READERS: TableDefinition<'_, &[u8; 32], &str> = TableDefinition::new("readers");
const INVITES: TableDefinition<'_, &[u8; 32], &[u8]> = TableDefinition::new("invites");
const QUOTAS: TableDefinition<'_, &str, u64> = TableDefinition::new("quotas");
const KEEPING: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("keeping");
const DELETIONS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("deletions");
const TOKENS: TableDefinition<'_, &[u8; 32], &[u8]> = TableDefinition::new("tokens");
/// Former names of repositories, and the present ones.
const FORMER: TableDefinition<'_, &str, &str> = TableDefinition::new("former names");
/// When a machine was here last, in nanoseconds since 1970 UTC.
const SEEN: TableDefinition<'_, &[u8; 16], i64> = TableDefinition::new("seen");
/// What administrators had changed, by number.
const AUDIT: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("audit");
/// What a machine told of its runs, in the order in which that came.
const RUNS: TableDefinition<'_, (&[u8; 16], u64), &[u8]> = TableDefinition::new("runs");
const SETTINGS: TableDefinition<'_, &str, &str> = TableDefinition::new("settings");
/// The version of the rows.
const VERSION: &str = "1";
/// So many runs of a machine are kept, and so many of them with their points: some 700 KB at most.
pub(super) const MOST_RUNS: u64 = 200;
pub(super) const MOST_WITH_POINTS: u64 = 30;
/// redb's own cache; the rows are few and are kept in memory anyway.
const CACHE_BYTES: usize = 1 << 20;

/// One that met an input or output error is opened again for whoever needs it next, since redb does nothing
/// more with it, and as another file: what the system could not write may be in its memory alone, and is never
/// written from there again. What of the change that met the error is in the file counts from then on: whoever
/// asked for it was told that it failed, and not that it was undone.
pub(super) struct Database {
    path: PathBeneath,
    /// `None` until it is opened again.
    redb: Mutex<Option<redb::Database>>,
    /// Whether rows may differ from what was loaded.
    met_error: AtomicBool,
}

/// Changes that become durable together.
pub(super) struct Changes {
    transaction: WriteTransaction,
}

impl Database {
    /// Opens or makes the database. Only the holder of the data folder's lock may.
    pub(super) fn open(path: &PathBeneath) -> Result<Self, ServerError> {
        let about = |what| move |source| ServerError::io(what, path.path(), source);
        make_if_missing(path)?;
        let file = path.open_to_change().map_err(about("opening"))?;
        metadata::set_mode(&file, 0o600).map_err(about("restricting"))?;
        let redb = Mutex::new(Some(builder().create_file(file).map_err(redb::Error::from)?));
        let database = Self { path: path.clone(), redb, met_error: AtomicBool::new(false) };
        match database.setting_or_new("version", VERSION)? {
            found if found == VERSION => Ok(database),
            found => Err(ServerError::Damaged {
                path: path.path().to_owned(),
                reason: format!("version {found}; this program reads version {VERSION}"),
            }),
        }
    }

    /// Reads everything.
    pub(super) fn load(&self) -> Result<State, ServerError> {
        Ok(self.with(read)?)
    }

    /// Does something with the open database. It is never made here: where its file is gone, so is its disk, and a
    /// new one would not have what that one has.
    fn with<T>(
        &self,
        work: impl FnOnce(&redb::Database) -> Result<T, redb::Error>,
    ) -> Result<T, redb::Error> {
        let mut held = self.redb.lock().unwrap_or_else(PoisonError::into_inner);
        let redb = match held.take() {
            Some(redb) => redb,
            None => {
                write_anew(&self.path)?;
                builder().create_file(open_there(&self.path)?)?
            }
        };
        let done = work(&redb);
        if matches!(done, Err(redb::Error::Io(_) | redb::Error::PreviousIo)) {
            self.met_error.store(true, Ordering::Release);
        } else {
            *held = Some(redb);
        }
        done
    }

    /// Reads everything again if an error may have left what nobody knows of; nothing else asks meanwhile.
    pub(super) fn load_after_error(&self) -> Option<State> {
        if !self.met_error.swap(false, Ordering::AcqRel) {
            return None;
        }
        let loaded = self.load();
        // Where the disk is still away, what is known goes on counting.
        self.met_error.fetch_or(loaded.is_err(), Ordering::AcqRel);
        loaded.ok()
    }

    /// Does what an error does, without one.
    #[cfg(test)]
    pub(super) fn close_as_after_error(&self) {
        drop(self.redb.lock().unwrap().take());
        self.met_error.store(true, Ordering::Release);
    }

    /// When machines were here last, in nanoseconds since 1970 UTC.
    pub(super) fn seen(&self) -> Result<Vec<(MachineId, i64)>, ServerError> {
        let read = |redb: &redb::Database| {
            let table = redb.begin_read()?.open_table(SEEN)?;
            let mut seen = Vec::new();
            for row in table.iter()? {
                let (id, ns) = row?;
                seen.push((MachineId::from_bytes(*id.value()), ns.value()));
            }
            Ok(seen)
        };
        Ok(self.with(read)?)
    }

    /// The newest of what a machine told of its runs, at most so many, the newest first.
    pub(super) fn runs(&self, id: &MachineId, most: usize) -> Result<Vec<RunEntry>, ServerError> {
        let read = |redb: &redb::Database| {
            let table = redb.begin_read()?.open_table(RUNS)?;
            let rows = table.range(of_machine(id))?.rev().take(most);
            rows.map(|row| from_row(row?.1.value())).collect()
        };
        Ok(self.with(read)?)
    }

    pub(super) fn put_setting(&self, name: &str, value: &str) -> Result<(), ServerError> {
        self.change(|changes| changes.put_setting(name, value))
    }

    pub(super) fn settings(&self) -> Result<Vec<(String, String)>, ServerError> {
        let read = |redb: &redb::Database| {
            let table = redb.begin_read()?.open_table(SETTINGS)?;
            let mut settings = Vec::new();
            for row in table.iter()? {
                let (name, value) = row?;
                settings.push((name.value().to_owned(), value.value().to_owned()));
            }
            Ok(settings)
        };
        Ok(self.with(read)?)
    }

    pub(super) fn setting(&self, name: &str) -> Result<Option<String>, ServerError> {
        let read = |redb: &redb::Database| {
            let table = redb.begin_read()?.open_table(SETTINGS)?;
            Ok(table.get(name)?.map(|value| value.value().to_owned()))
        };
        Ok(self.with(read)?)
    }

    /// Adds an entry to the audit log; the oldest go where there are too many.
    pub(super) fn append_audit(&self, entry: &AuditEntry) -> Result<(), ServerError> {
        self.change(|Changes { transaction }| {
            let mut table = transaction.open_table(AUDIT)?;
            let number = table.last()?.map_or(0, |(number, _)| number.value()) + 1;
            let oldest = number.saturating_sub(audit::MOST);
            table.insert(number, to_row(entry)?.as_slice())?;
            table.retain_in(..=oldest, |_, _| false)?;
            Ok(())
        })
    }

    /// Entries of the audit log before that number, the newest first.
    pub(super) fn audit(&self, before: u64, most: usize) -> Result<Vec<AuditEntry>, ServerError> {
        let read = |redb: &redb::Database| {
            let table = redb.begin_read()?.open_table(AUDIT)?;
            let mut entries = Vec::new();
            for row in table.range(..before)?.rev().take(most) {
                let (number, row) = row?;
                let entry = from_row::<AuditEntry>(row.value())?;
                entries.push(AuditEntry { number: number.value(), ..entry });
            }
            Ok(entries)
        };
        Ok(self.with(read)?)
    }

    /// Carries out changes together; all are durable when it succeeds. Where it fails none is, or, after an error
    /// of the disk, all may be.
    pub(super) fn change(
        &self,
        make: impl FnOnce(&Changes) -> Result<(), redb::Error>,
    ) -> Result<(), ServerError> {
        let change = |redb: &redb::Database| {
            let changes = Changes { transaction: redb.begin_write()? };
            make(&changes)?;
            Ok(changes.transaction.commit()?)
        };
        Ok(self.with(change)?)
    }

    /// Makes all tables, and reads a setting that is made with them.
    fn setting_or_new(&self, name: &str, new: &str) -> Result<String, ServerError> {
        let mut found = new.to_owned();
        self.change(|Changes { transaction }| {
            transaction.open_table(MACHINES)?;
            transaction.open_table(READERS)?;
            transaction.open_table(INVITES)?;
            transaction.open_table(QUOTAS)?;
            transaction.open_table(KEEPING)?;
            transaction.open_table(DELETIONS)?;
            transaction.open_table(TOKENS)?;
            transaction.open_table(SEEN)?;
            transaction.open_table(FORMER)?;
            transaction.open_table(AUDIT)?;
            transaction.open_table(RUNS)?;
            let mut settings = transaction.open_table(SETTINGS)?;
            let present = settings.get(name)?.map(|value| value.value().to_owned());
            match present {
                Some(present) => found = present,
                None => drop(settings.insert(name, new)?),
            }
            Ok(())
        })?;
        Ok(found)
    }
}

/// The keys of a machine's runs.
fn of_machine(id: &MachineId) -> RangeInclusive<(&[u8; 16], u64)> {
    (id.as_bytes(), 0)..=(id.as_bytes(), u64::MAX)
}

fn builder() -> redb::Builder {
    let mut builder = redb::Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

fn read(redb: &redb::Database) -> Result<State, redb::Error> {
    let reading = redb.begin_read()?;
    let mut state = State::default();
    for row in reading.open_table(MACHINES)?.iter()? {
        let (id, row) = row?;
        let machine = from_row::<Machine>(row.value())?;
        state.machines.insert(MachineId::from_bytes(*id.value()), machine);
    }
    for row in reading.open_table(READERS)?.iter()? {
        let (key, name) = row?;
        let key = PublicKey::from_bytes(*key.value());
        state.readers.insert(key, name.value().to_owned());
    }
    for row in reading.open_table(INVITES)?.iter()? {
        let (hash, row) = row?;
        state.invites.insert(*hash.value(), from_row::<InviteRow>(row.value())?);
    }
    for row in reading.open_table(QUOTAS)?.iter()? {
        let (name, bytes) = row?;
        state.quotas.insert(name.value().to_owned(), bytes.value());
    }
    for row in reading.open_table(KEEPING)?.iter()? {
        let (name, row) = row?;
        state.keeping.insert(name.value().to_owned(), from_row::<KeepingRow>(row.value())?);
    }
    for row in reading.open_table(DELETIONS)?.iter()? {
        let (number, row) = row?;
        state.deletions.insert(number.value(), from_row::<Deletion>(row.value())?);
    }
    for row in reading.open_table(TOKENS)?.iter()? {
        let (hash, row) = row?;
        state.tokens.insert(*hash.value(), from_row::<TokenRow>(row.value())?);
    }
    for row in reading.open_table(FORMER)?.iter()? {
        let (old, new) = row?;
        state.former.insert(old.value().to_owned(), new.value().to_owned());
    }
    Ok(state)
}

/// Makes an empty database, whole and under its name for good, where there is none: redb makes durable
/// what is in its file, not that there is one, and one that is half made it cannot open.
fn make_if_missing(path: &PathBeneath) -> Result<(), ServerError> {
    let about = |what| move |source| ServerError::io(what, path.path(), source);
    if !path.try_exists().map_err(about("looking at"))? {
        let (beside, file) = make_beside(path).map_err(about("making"))?;
        drop(redb::Builder::new().create_file(file).map_err(redb::Error::from)?);
        beside.rename(path).map_err(about("making"))?;
    }
    // Also for who was killed after the rename.
    sync_folder_of(path).map_err(about("syncing the folder of"))
}

/// Puts a durable copy of a file in its place.
fn write_anew(path: &PathBeneath) -> io::Result<()> {
    let (beside, mut copy) = make_beside(path)?;
    io::copy(&mut path.open()?, &mut copy)?;
    copy.sync_all()?;
    beside.rename(path)?;
    sync_folder_of(path)
}

/// Opens a database that is there: an empty file would become a new one.
fn open_there(path: &PathBeneath) -> io::Result<File> {
    let file = path.open_to_change()?;
    if file.metadata()?.len() == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(file) }
}

fn sync_folder_of(path: &PathBeneath) -> io::Result<()> {
    path.parent().map_or(Ok(()), |folder| folder.sync_dir())
}

impl Changes {
    pub(super) fn put_machine(&self, id: &MachineId, row: &Machine) -> Result<(), redb::Error> {
        let mut table = self.transaction.open_table(MACHINES)?;
        table.insert(id.as_bytes(), &to_row(row)?[..])?;
        Ok(())
    }

    /// Forgets a machine, when it was here, and its runs.
    pub(super) fn drop_machine(&self, id: &MachineId) -> Result<(), redb::Error> {
        self.transaction.open_table(MACHINES)?.remove(id.as_bytes())?;
        self.transaction.open_table(SEEN)?.remove(id.as_bytes())?;
        self.transaction.open_table(RUNS)?.retain_in(of_machine(id), |_, _| false)?;
        Ok(())
    }

    pub(super) fn put_invite(&self, hash: &[u8; 32], row: &InviteRow) -> Result<(), redb::Error> {
        let mut table = self.transaction.open_table(INVITES)?;
        table.insert(hash, &to_row(row)?[..])?;
        Ok(())
    }

    pub(super) fn put_quota(&self, name: &str, bytes: Option<u64>) -> Result<(), redb::Error> {
        let mut table = self.transaction.open_table(QUOTAS)?;
        match bytes {
            Some(bytes) => drop(table.insert(name, bytes)?),
            None => drop(table.remove(name)?),
        }
        Ok(())
    }

    pub(super) fn put_keeping(&self, name: &str, row: &KeepingRow) -> Result<(), redb::Error> {
        self.transaction.open_table(KEEPING)?.insert(name, &to_row(row)?[..])?;
        Ok(())
    }

    pub(super) fn drop_keeping(&self, name: &str) -> Result<(), redb::Error> {
        self.transaction.open_table(KEEPING)?.remove(name)?;
        Ok(())
    }

    pub(super) fn put_former(&self, old: &str, new: &str) -> Result<(), redb::Error> {
        self.transaction.open_table(FORMER)?.insert(old, new)?;
        Ok(())
    }

    pub(super) fn drop_former(&self, old: &str) -> Result<(), redb::Error> {
        self.transaction.open_table(FORMER)?.remove(old)?;
        Ok(())
    }

    pub(super) fn put_setting(&self, name: &str, value: &str) -> Result<(), redb::Error> {
        self.transaction.open_table(SETTINGS)?.insert(name, value)?;
        Ok(())
    }

    pub(super) fn drop_setting(&self, name: &str) -> Result<(), redb::Error> {
        self.transaction.open_table(SETTINGS)?.remove(name)?;
        Ok(())
    }

    pub(super) fn put_deletion(&self, number: u64, row: &Deletion) -> Result<(), redb::Error> {
        self.transaction.open_table(DELETIONS)?.insert(number, &to_row(row)?[..])?;
        Ok(())
    }

    pub(super) fn drop_deletion(&self, number: u64) -> Result<(), redb::Error> {
        self.transaction.open_table(DELETIONS)?.remove(number)?;
        Ok(())
    }

    pub(super) fn put_token(&self, hash: &[u8; 32], row: &TokenRow) -> Result<(), redb::Error> {
        self.transaction.open_table(TOKENS)?.insert(hash, &to_row(row)?[..])?;
        Ok(())
    }

    pub(super) fn drop_token(&self, hash: &[u8; 32]) -> Result<(), redb::Error> {
        self.transaction.open_table(TOKENS)?.remove(hash)?;
        Ok(())
    }

    pub(super) fn put_seen(&self, id: &MachineId, ns: i64) -> Result<(), redb::Error> {
        self.transaction.open_table(SEEN)?.insert(id.as_bytes(), ns)?;
        Ok(())
    }

    /// Adds a run of a machine that is known, or puts it in the place of the last one if that is the same. Of the oldest
    /// nothing is kept then, and of older ones no points.
    pub(super) fn put_run(&self, id: &MachineId, run: &RunEntry) -> Result<(), redb::Error> {
        if self.transaction.open_table(MACHINES)?.get(id.as_bytes())?.is_none() {
            return Ok(());
        }
        let mut table = self.transaction.open_table(RUNS)?;
        let last = table.range(of_machine(id))?.next_back().transpose()?;
        let number = match last.map(|(key, row)| (key.value().1, from_row(row.value()))) {
            None => 0,
            Some((last, row)) => {
                let last_run: RunEntry = row?;
                let is_same = last_run.report.started_ns == run.report.started_ns;
                last + u64::from(!is_same)
            }
        };
        table.insert((id.as_bytes(), number), &to_row(run)?[..])?;
        if let Some(gone) = number.checked_sub(MOST_RUNS) {
            table.retain_in((id.as_bytes(), 0)..=(id.as_bytes(), gone), |_, _| false)?;
        }
        let Some(older) = number.checked_sub(MOST_WITH_POINTS) else { return Ok(()) };
        let row = table.get((id.as_bytes(), older))?;
        let row = row.map(|row| from_row::<RunEntry>(row.value())).transpose()?;
        if let Some(run) = row {
            table.insert((id.as_bytes(), older), &to_row(&run.without_points())?[..])?;
        }
        Ok(())
    }

    pub(super) fn put_reader(&self, key: &PublicKey, repository: &str) -> Result<(), redb::Error> {
        self.transaction.open_table(READERS)?.insert(key.as_bytes(), repository)?;
        Ok(())
    }

    pub(super) fn drop_reader(&self, key: &PublicKey) -> Result<(), redb::Error> {
        self.transaction.open_table(READERS)?.remove(key.as_bytes())?;
        Ok(())
    }

    pub(super) fn drop_invite(&self, hash: &[u8; 32]) -> Result<(), redb::Error> {
        self.transaction.open_table(INVITES)?.remove(hash)?;
        Ok(())
    }
}

fn to_row(row: &impl Serialize) -> Result<Vec<u8>, redb::Error> {
    serde_json::to_vec(row).map_err(|error| redb::Error::Corrupted(error.to_string()))
}

fn from_row<T: DeserializeOwned>(row: &[u8]) -> Result<T, redb::Error> {
    serde_json::from_slice(row).map_err(|error| redb::Error::Corrupted(error.to_string()))
}
