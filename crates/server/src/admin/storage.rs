//! Where the repositories lie, how full that is, and when it will be full.

use holdall_lab::storage_stack::StorageStack;
use holdall_sys::disk::{DiskRoom, room_if_told};

use super::administration::Administration;
use super::entries::{Storage, StorageFact};
use crate::ServerError;
use crate::accounts::{Room, bytes_per_day};

const DAY_NS: f64 = 24.0 * 3600.0 * 1e9;
/// What lies further ahead than ten years is not told.
const AHEAD_DAYS: f64 = 3650.0;

/// Options of a mount that somebody who keeps backups there has to know of, by how they begin.
const TELLING: [(&str, &str); 7] = [
    ("nobarrier", NO_BARRIERS),
    ("barrier=0", NO_BARRIERS),
    ("ro", "It is mounted to be read alone: nothing can be backed up there."),
    (
        "sync",
        "It is mounted with \"sync\": each write waits for the disk, which makes backups slow and no safer.",
    ),
    (
        "data=journal",
        "It keeps data in its journal (\"data=journal\"): everything is written twice.",
    ),
    (
        "compress",
        "It compresses what it keeps, which costs time and saves nothing here: backups are compressed and encrypted.",
    ),
    (
        "soft",
        "It is a share that gives up (\"soft\"): a write may fail because the other computer was slow. \"hard\" waits.",
    ),
];
const NO_BARRIERS: &str = "It is mounted without barriers: when the power fails, it may lose what machines were told is safe.";

/// How full the disk is, and where that leads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trend {
    pub(crate) disk: DiskRoom,
    pub(crate) bytes_per_day: Option<f64>,
    /// When it will be full, if it goes on so and that is within ten years.
    pub(crate) full_ns: Option<i64>,
}

impl Administration<'_> {
    /// Tells all of it.
    pub(super) fn storage(&self) -> Result<Storage, ServerError> {
        let folder = self.stores.folder_of_all();
        let stack = StorageStack::of(&folder)
            .map_err(|source| ServerError::io("looking at what lies below", &folder, source))?;
        let fact = |(name, value): (&str, String)| StorageFact { name: name.to_owned(), value };
        let repositories = self.repositories()?;
        let trend = self.trend()?;
        Ok(Storage {
            folder: folder.display().to_string(),
            facts: stack.facts().into_iter().map(fact).collect(),
            notes: notes(&stack),
            total_bytes: trend.map(|trend| trend.disk.total_bytes),
            free_bytes: trend.map(|trend| trend.disk.free_bytes),
            bytes_per_day: trend.and_then(|trend| trend.bytes_per_day),
            full_ns: trend.and_then(|trend| trend.full_ns),
            stored_bytes: repositories.iter().map(|one| one.stored_bytes).sum(),
            quota_bytes: repositories.iter().filter_map(|one| one.quota_bytes).sum(),
            repositories,
        })
    }

    /// Nothing where the file system does not tell how much room it has.
    pub(crate) fn trend(&self) -> Result<Option<Trend>, ServerError> {
        let Some(disk) = self.room() else { return Ok(None) };
        let now = self.noted_now(disk);
        let bytes_per_day = bytes_per_day(&self.accounts.noted_room()?, now);
        let days =
            bytes_per_day.filter(|more| *more > 0.0).map(|more| disk.free_bytes as f64 / more);
        let ahead = days.filter(|days| *days <= AHEAD_DAYS);
        let full_ns = ahead.map(|days| now.time_ns.saturating_add((days * DAY_NS) as i64));
        Ok(Some(Trend { disk, bytes_per_day, full_ns }))
    }

    /// Notes how full it is. What hinders that is in the log.
    pub(super) fn note_room(&self) {
        let Some(disk) = self.room() else { return };
        if let Err(error) = self.accounts.note_room(self.noted_now(disk)) {
            self.log(&format!("how full the disk is could not be noted: {error}"));
        }
    }

    fn room(&self) -> Option<DiskRoom> {
        room_if_told(&self.stores.folder_of_all()).ok().flatten()
    }

    fn noted_now(&self, disk: DiskRoom) -> Room {
        let DiskRoom { free_bytes, total_bytes } = disk;
        let used_bytes = total_bytes.saturating_sub(free_bytes);
        Room { time_ns: self.stores.now_ns(), used_bytes, total_bytes }
    }
}

/// What is to be known of it, a sentence each.
fn notes(stack: &StorageStack) -> Vec<String> {
    let options: Vec<_> = stack.file_system.options.split(',').collect();
    let is_set = |telling: &str| {
        options.iter().any(|option| match telling {
            "compress" => option.starts_with(telling),
            _ => *option == telling,
        })
    };
    let telling = TELLING.iter().filter(|(option, _)| is_set(option));
    telling.map(|(_, sentence)| (*sentence).to_owned()).chain(stack.notes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_options_that_matter_are_told_and_each_as_a_whole() {
        let mut stack = StorageStack::of(std::path::Path::new("/proc")).unwrap();
        let mut told = |options: &str| {
            stack.file_system.options = options.to_owned();
            notes(&stack)
        };
        assert!(told("rw,noatime,async,errors=remount-ro,data=ordered").is_empty());
        let all = told("ro,compress=zstd:3,barrier=0,soft,sync");
        assert_eq!(all.len(), 5, "{all:?}");
        assert!(all[0].contains("without barriers"), "{all:?}");
    }
}
