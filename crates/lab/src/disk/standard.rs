//! The rows that are measured when nobody asks for one.

use std::time::Duration;

use super::row::{Access, Row, Until};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// The blocks that tables of disks have.
const BLOCKS: [u64; 4] = [SMALLEST_BLOCK, 64 * KIB, 128 * KIB, MIB];
const SMALLEST_BLOCK: u64 = 4 * KIB;
/// A disk alone with one request, and one with as many as it likes.
const DEPTHS: [u32; 2] = [1, 32];
/// Several jobs, as databases and virtual machines have them.
const JOBS: [u32; 2] = [8, 32];
/// Each of them has this part of the set's bytes, so that all together take no more than one alone.
const JOB_PART: u64 = 32;
/// The sizes whose average QuickBench's users know, in one request each.
const STEPS: [u64; 5] = [20 * MIB, 40 * MIB, 60 * MIB, 80 * MIB, 100 * MIB];

/// A row of the standard set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandardRow {
    /// What CrystalDiskMark calls it, if it has it.
    pub known_as: Option<&'static str>,
    /// What is asked.
    pub row: Row,
}

/// The standard set on `file_bytes` at once, each row for at most `limit` and around the cache, where
/// the file system can do that: first the block of those that CrystalDiskMark has, then the others; of each, reads
/// first.
pub fn standard_set(file_bytes: u64, limit: Duration) -> Vec<StandardRow> {
    let one_job = |access: Access, block_bytes, queue_depth| Row {
        access,
        block_bytes,
        queue_depth,
        jobs: 1,
        file_bytes,
        until: Until::OnceWithin(limit),
        direct: true,
        end_fsync: false,
    };
    let mut rows = Vec::new();
    for access in [Access::Read, Access::RandomRead, Access::Write, Access::RandomWrite] {
        for block_bytes in BLOCKS.into_iter().filter(|&block| block <= file_bytes) {
            for queue_depth in depths(access, block_bytes) {
                let known_as = known_as(access, block_bytes, queue_depth);
                rows.push(StandardRow { known_as, row: one_job(access, block_bytes, queue_depth) });
            }
        }
        for &jobs in several_jobs(access, file_bytes) {
            let row = Row {
                jobs,
                file_bytes: file_bytes / JOB_PART,
                ..one_job(access, SMALLEST_BLOCK, 1)
            };
            rows.push(StandardRow { known_as: None, row });
        }
    }
    rows.sort_by_key(|one| one.known_as.is_none());
    rows
}

/// The rows whose average is told as one: reads or writes of 20 to 100 MiB in one request each. A
/// request that began is not ended: one that took longer than `limit` says that the larger ones would.
pub fn large_steps(access: Access, limit: Duration) -> Vec<Row> {
    let step = |bytes| Row {
        access,
        block_bytes: bytes,
        queue_depth: 1,
        jobs: 1,
        file_bytes: bytes,
        until: Until::OnceWithin(limit),
        direct: true,
        end_fsync: false,
    };
    STEPS.map(step).into()
}

fn depths(access: Access, block_bytes: u64) -> Vec<u32> {
    let mut depths = DEPTHS.to_vec();
    if block_bytes == MIB && !access.is_random() {
        depths.insert(1, 8);
    }
    depths
}

/// How many jobs ask at random at once: several, where each has room for a block.
fn several_jobs(access: Access, file_bytes: u64) -> &'static [u32] {
    let has_room = file_bytes / JOB_PART >= SMALLEST_BLOCK;
    if access.is_random() && has_room { &JOBS } else { &[] }
}

fn known_as(access: Access, block_bytes: u64, queue_depth: u32) -> Option<&'static str> {
    match (access.is_random(), block_bytes, queue_depth) {
        (false, MIB, 8) => Some("SEQ1M Q8T1"),
        (false, MIB, 1) => Some("SEQ1M Q1T1"),
        (true, SMALLEST_BLOCK, 32) => Some("RND4K Q32T1"),
        (true, SMALLEST_BLOCK, 1) => Some("RND4K Q1T1"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_makes_sense_and_the_known_four_are_there_both_ways() {
        let rows = standard_set(8 * MIB, Duration::from_secs(1));
        rows.iter().for_each(|row| row.row.check().unwrap());
        for name in ["SEQ1M Q8T1", "SEQ1M Q1T1", "RND4K Q32T1", "RND4K Q1T1"] {
            let known = rows.iter().filter(|row| row.known_as == Some(name));
            assert_eq!(known.map(|row| row.row.access.writes()).collect::<Vec<_>>(), [false, true]);
        }
        assert!(rows.is_sorted_by_key(|row| row.known_as.is_none()), "they are a block, the first");
        assert_eq!(rows.len(), 4 * 4 * 2 + 2 + 4);
        assert_eq!(standard_set(64 * KIB, Duration::from_secs(1)).len(), 4 * 2 * 2);
        let several: Vec<_> = rows.iter().map(|row| &row.row).filter(|row| row.jobs > 1).collect();
        assert_eq!([0, 1, 2, 3].map(|at| several[at].jobs), [8, 32, 8, 32]);
        assert!(several.iter().all(|row| row.file_bytes * u64::from(row.jobs) <= 8 * MIB));
        let steps = large_steps(Access::Write, Duration::from_secs(1));
        steps.iter().for_each(|row| row.check().unwrap());
    }
}
