//! That what is asked of a disk is really done.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use holdall_lab::disk::{
    Access, Cache, DiskFiles, Engine, Row, Until, large_steps, measure, measure_fsync,
};
use holdall_lab::storage_stack::DirectAccess;
use holdall_lab::{LabError, Scratch, Stop};
use holdall_sys::{disk, process};

const MIB: u64 = 1 << 20;

fn row(access: Access) -> Row {
    Row {
        access,
        block_bytes: 4096,
        queue_depth: 1,
        jobs: 1,
        file_bytes: MIB,
        until: Until::Once,
        direct: false,
        end_fsync: false,
    }
}

/// On a disk, not in a temporary folder in memory.
fn on_disk() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn entries(dir: &Path) -> usize {
    fs::read_dir(dir).unwrap().count()
}

#[test]
fn each_block_is_moved_once_by_every_engine() {
    let dir = on_disk();
    let (scratch, _) = Scratch::make(dir.path()).unwrap();
    let mut files = DiskFiles::new(&scratch, Stop::default(), 1);
    for access in [Access::Read, Access::Write, Access::RandomRead, Access::RandomWrite] {
        for (queue_depth, jobs) in [(1, 1), (8, 1), (1, 3), (4, 2)] {
            for direct in [false, true] {
                let row = Row { queue_depth, jobs, direct, ..row(access) };
                let measured = measure(&row, &mut files).unwrap();
                assert_eq!(measured.bytes, MIB * u64::from(jobs), "{row:?}");
                assert_eq!(measured.operations, 256 * u64::from(jobs), "{row:?}");
                assert_eq!(measured.engine == Engine::Calls, queue_depth == 1, "{row:?}");
                assert!(measured.latency.is_some() && measured.duration > Duration::ZERO);
            }
        }
    }
    assert_eq!(entries(scratch.path()), 1, "the lock: what was read went before the first write");
}

#[test]
fn a_direct_write_reaches_the_disk() {
    let dir = on_disk();
    let (scratch, _) = Scratch::make(dir.path()).unwrap();
    let mut files = DiskFiles::new(&scratch, Stop::default(), 2);
    if disk::file_system(scratch.path()).is_ok_and(disk::is_share) {
        return;
    }
    for queue_depth in [1, 4] {
        let row = Row { direct: true, queue_depth, ..row(Access::RandomWrite) };
        let before = process::bytes_written_to_disks().unwrap();
        let measured = measure(&row, &mut files).unwrap();
        let written = process::bytes_written_to_disks().unwrap() - before;
        assert!(measured.direct_refused || written >= MIB, "{written} bytes for {row:?}");
    }
}

#[test]
fn a_buffered_read_is_cold_and_one_of_a_cached_file_would_not_be() {
    let dir = on_disk();
    let (scratch, _) = Scratch::make(dir.path()).unwrap();
    let mut files = DiskFiles::new(&scratch, Stop::default(), 3);
    let row = Row { file_bytes: 8 * MIB, block_bytes: 128 << 10, ..row(Access::Read) };
    let before = process::bytes_read_from_disks().unwrap();
    let measured = measure(&row, &mut files).unwrap();
    let read = process::bytes_read_from_disks().unwrap() - before;
    if !holdall_sys::memory::is_ram_disk(scratch.path()).unwrap() {
        assert_eq!(measured.cache, Some(Cache::Cold));
        assert!(read >= 8 * MIB, "{read}");
    }
    // Round and round: all but the first time from memory.
    let again = Row { until: Until::Time(Duration::from_millis(200)), ..row.clone() };
    let measured = measure(&again, &mut files).unwrap();
    assert!(measured.operations > 64 * 2, "{measured:?}");
    assert!(matches!(measured.cache, Some(Cache::Warm | Cache::PartlyWarm)), "{measured:?}");
}

#[test]
fn time_ends_a_row_and_so_does_the_last_block() {
    let dir = on_disk();
    let (scratch, _) = Scratch::make(dir.path()).unwrap();
    let mut files = DiskFiles::new(&scratch, Stop::default(), 4);
    let limit = Duration::from_millis(50);
    for queue_depth in [1, 4] {
        let timed = Row { until: Until::Time(limit), queue_depth, ..row(Access::RandomRead) };
        let measured = measure(&timed, &mut files).unwrap();
        assert!(measured.duration >= limit && measured.bytes != MIB, "{measured:?}");
    }
    let long = Duration::from_secs(600);
    let once = Row { until: Until::OnceWithin(long), ..row(Access::RandomRead) };
    assert_eq!(measure(&once, &mut files).unwrap().bytes, MIB);
    let no_time = Row { until: Until::OnceWithin(Duration::ZERO), ..row(Access::Write) };
    assert_eq!(measure(&no_time, &mut files).unwrap().operations, 0);
}

#[test]
fn a_row_for_which_there_is_no_room_is_refused_and_nothing_stays() {
    let dir = on_disk();
    let (scratch, _) = Scratch::make(dir.path()).unwrap();
    let mut files = DiskFiles::new(&scratch, Stop::default(), 5);
    let room = scratch.room_bytes();
    for access in [Access::Read, Access::Write] {
        let huge = Row { file_bytes: room + MIB, ..row(access) };
        let refused = measure(&huge, &mut files).unwrap_err();
        assert!(matches!(refused, LabError::NoRoom { .. }), "{refused}");
    }
    assert_eq!(entries(scratch.path()), 1, "the lock");
    measure(&row(Access::Write), &mut files).unwrap();
    assert_eq!(scratch.room_bytes(), room, "what was written is gone");
}

/// What was laid out to be read stayed claimed, and a set that reads first had no room to write.
#[test]
fn what_was_read_makes_room_for_what_is_written_and_for_more_jobs() {
    let dir = on_disk();
    let (scratch, _) = Scratch::make(dir.path()).unwrap();
    let room = scratch.room_bytes();
    // Room for one file and a half.
    scratch.claim(room - 6 * MIB).unwrap();
    let mut files = DiskFiles::new(&scratch, Stop::default(), 8);
    let whole = |access| Row { file_bytes: 4 * MIB, ..row(access) };
    let parts = |access| Row { file_bytes: MIB, jobs: 4, ..row(access) };
    for row in [whole(Access::Read), parts(Access::RandomRead), whole(Access::Write)] {
        assert_eq!(measure(&row, &mut files).unwrap().bytes, 4 * MIB, "{row:?}");
    }
    assert_eq!(measure(&parts(Access::RandomWrite), &mut files).unwrap().bytes, 4 * MIB);
    assert_eq!(scratch.room_bytes(), 6 * MIB);
    let too_much = Row { jobs: 7, ..parts(Access::Write) };
    let refused = measure(&too_much, &mut files).unwrap_err();
    assert!(matches!(refused, LabError::NoRoom { .. }), "{refused}");
    assert_eq!((scratch.room_bytes(), entries(scratch.path())), (6 * MIB, 1), "nothing stays");
}

#[test]
fn direct_access_to_memory_is_not_believed() {
    let memory = Path::new("/dev/shm");
    if !holdall_sys::memory::is_ram_disk(memory).is_ok_and(|is_ram| is_ram) {
        return;
    }
    let dir = tempfile::tempdir_in(memory).unwrap();
    let (scratch, _) = Scratch::make(dir.path()).unwrap();
    let mut files = DiskFiles::new(&scratch, Stop::default(), 9);
    let wrote = measure(&Row { direct: true, ..row(Access::Write) }, &mut files).unwrap();
    assert!(wrote.row.end_fsync, "refused or taken, it went through memory");
    let read = measure(&Row { direct: true, ..row(Access::Read) }, &mut files).unwrap();
    assert_ne!(read.cache, Some(Cache::Direct));
    let in_doubt = (!read.direct_refused).then_some(DirectAccess::InMemory);
    assert_eq!((read.direct_in_doubt, wrote.direct_in_doubt), (in_doubt, in_doubt));
    assert_eq!(read.row.direct, !read.direct_refused, "as it was asked, where it was taken");
}

#[test]
fn a_wish_to_stop_ends_a_row() {
    let dir = on_disk();
    let (scratch, _) = Scratch::make(dir.path()).unwrap();
    let wished = Arc::new(AtomicBool::new(true));
    let mut files = DiskFiles::new(&scratch, Stop::on(wished), 6);
    let endless = Row { until: Until::Time(Duration::from_secs(3600)), ..row(Access::Write) };
    assert!(matches!(measure(&endless, &mut files), Err(LabError::Interrupted)));
    assert!(matches!(measure_fsync(&files, Duration::from_secs(3600)), Err(LabError::Interrupted)));
}

#[test]
fn an_fsync_is_timed_and_a_large_step_is_one_request() {
    let dir = on_disk();
    let (scratch, _) = Scratch::make(dir.path()).unwrap();
    let mut files = DiskFiles::new(&scratch, Stop::default(), 7);
    let measured = measure_fsync(&files, Duration::from_secs(2)).unwrap();
    assert!(measured.latency_ns.unwrap().p50 > 0 && measured.operations_per_second.unwrap() > 0.0);
    let step = large_steps(Access::Write, Duration::from_secs(60)).swap_remove(0);
    assert_eq!(measure(&step, &mut files).unwrap().operations, 1);
}
