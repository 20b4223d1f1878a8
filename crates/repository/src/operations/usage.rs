//! How much is stored, from what is counted anyway.

use holdall_format::{RecordHash, RecordKind};
use holdall_protocol::Usage;

use crate::store::Store;
use crate::store::quota_reservations::Shortage;

/// The room on a disk is rounded down to this, or a machine could see by it what others store.
const ROOM_STEP_BYTES: u64 = 100_000_000;

/// What a repository's keeper wants to know of it at a glance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Census {
    /// How much is stored.
    pub usage: Usage,
    /// Committed snapshots; checkpoints are left out.
    pub snapshots: u64,
    /// When the newest record came, in nanoseconds since 1970 UTC.
    pub newest_ns: Option<i64>,
}

/// A snapshot as its keeper sees it. Times are in nanoseconds since 1970 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed {
    /// Which.
    pub id: RecordHash,
    /// When it was received.
    pub received_ns: i64,
    /// Of a copy: when its machine says that the original was received.
    pub taken_ns: Option<i64>,
}

impl Store {
    /// Tells how much is stored, without reading it.
    pub fn usage(&self) -> Usage {
        let state = self.index().state();
        let in_tails = |count: fn(&crate::tails::tail::Tail) -> u64| -> u64 {
            state.tails.iter().map(|tail| count(tail)).sum()
        };
        let (records, _) = self.records().size();
        Usage {
            stored_bytes: self.stored_bytes(),
            packs: (state.packs.len() + state.tails.len()) as u64,
            blocks: state.in_packs.blocks + in_tails(|tail| tail.block_count() as u64),
            objects: state.entries() + in_tails(|tail| tail.objects().count() as u64),
            records,
            quota_bytes: self.room().quota_bytes(),
            free_bytes: self.free_bytes(),
        }
    }

    /// How many more bytes there is room for, by the quota and on the disk.
    fn free_bytes(&self) -> Option<u64> {
        let folder = self.layout().root().path();
        let on_disk = holdall_sys::disk::free_bytes_if_told(folder).ok().flatten();
        let on_disk = on_disk.map(|free| free - free % ROOM_STEP_BYTES);
        let quota = self.room().quota_bytes();
        let of_quota = quota.map(|quota| quota.saturating_sub(self.quota_used_bytes()));
        on_disk.into_iter().chain(of_quota).min()
    }

    /// Bytes of packs, tails and records.
    pub(crate) fn stored_bytes(&self) -> u64 {
        let state = self.index().state();
        let in_tails: u64 = state.tails.iter().map(|tail| tail.stored_bytes()).sum();
        let (_, in_records) = self.records().size();
        state.in_packs.file_bytes + in_tails + in_records
    }

    /// Bytes that count towards the quota: what is stored, and the wrappings.
    pub(crate) fn quota_used_bytes(&self) -> u64 {
        self.stored_bytes() + self.wrappings().stored_bytes()
    }

    /// The usage, and what the records tell without being opened.
    pub fn census(&self) -> Census {
        let (snapshots, newest_ns) = self.records().read(|records| {
            records.fold((0, None), |(snapshots, newest_ns), record| {
                let is_snapshot = record.kind == RecordKind::Snapshot;
                (snapshots + u64::from(is_snapshot), newest_ns.max(Some(record.received_ns)))
            })
        });
        Census { usage: self.usage(), snapshots, newest_ns }
    }

    /// The snapshots, oldest first, without what rules say of them.
    pub fn listed(&self) -> Vec<Listed> {
        self.records().read(|records| {
            let snapshots = records.filter(|record| record.kind == RecordKind::Snapshot);
            let listed = snapshots.map(|record| Listed {
                id: record.hash,
                received_ns: record.received_ns,
                taken_ns: record.taken_ns,
            });
            listed.collect()
        })
    }

    /// What kept something from being stored since this was asked last, if anything did: the quota or a full disk.
    pub fn take_refused_room(&self) -> Option<Shortage> {
        self.room().take_refused()
    }

    /// Says how many bytes may be stored, from the next put on.
    pub fn limit_to(&self, quota_bytes: Option<u64>) {
        self.room().limit(quota_bytes);
    }
}
