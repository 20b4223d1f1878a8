//! Disks are made ready and erased, on loop devices.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

use holdall_disks::{
    Candidate, Claim, DiskError, Erased, Erasing, FileSystem, Forgotten, Label, Plan,
};

use crate::loops::{Loop, Mounted, OLD, Reader, succeed, text};

const MIB: u64 = 1 << 20;

fn claim(disk: &Loop) -> Claim {
    Candidate::at(disk.device()).unwrap().claim().unwrap()
}

fn plan(label: &str, file_system: FileSystem) -> Plan {
    Plan { label: Label::new(label, file_system).unwrap(), file_system }
}

fn format(disk: &Loop, plan: &Plan) -> holdall_disks::Formatted {
    plan.check_programs().unwrap();
    plan.format(claim(disk), &AtomicBool::new(false), &|_| {}).unwrap()
}

fn begins_with_old(disk: &Loop) -> bool {
    let mut begins = [0; OLD.len()];
    succeed(&["blockdev", "--flushbufs", text(disk.device())]);
    disk.image().unwrap().read_exact_at(&mut begins, 0).unwrap();
    begins == *OLD
}

#[test]
fn an_empty_disk_gets_each_file_system_and_is_written_to() {
    for file_system in [FileSystem::Ext4, FileSystem::Btrfs, FileSystem::Xfs] {
        let Some(disk) = Loop::new(400 * MIB) else { return };
        assert!(claim(&disk).content().unwrap().is_empty());
        let formatted = format(&disk, &plan("backup", file_system));
        assert_eq!(formatted.partition.to_str().unwrap(), format!("/dev/{}p1", disk.name()));
        let mounted = Mounted::new(&formatted.partition, &disk.path("mount"));
        fs::write(mounted.point().join("file"), vec![7; 5 << 20]).unwrap();
        drop(mounted);
        let mounted = Mounted::new(&formatted.partition, &disk.path("mount"));
        assert_eq!(fs::read(mounted.point().join("file")).unwrap(), vec![7; 5 << 20]);
        drop(mounted);

        let content = claim(&disk).content().unwrap().words();
        let expected = format!("gpt, {} \"backup\" on {}p1", file_system.name(), disk.name());
        assert_eq!(content, expected);
    }
}

#[test]
fn a_partition_begins_where_disks_like_it_and_takes_the_rest() {
    let Some(disk) = Loop::new(400 * MIB) else { return };
    format(&disk, &plan("backup", FileSystem::Ext4));
    let folder = format!("/sys/class/block/{}p1", disk.name());
    let sectors = |file: &str| {
        fs::read_to_string(format!("{folder}/{file}")).unwrap().trim().parse::<u64>().unwrap()
    };
    assert_eq!(sectors("start") * 512 % MIB, 0);
    assert!(sectors("size") * 512 > 397 * MIB);
}

#[test]
fn whatever_was_on_a_disk_is_nowhere_found_by_programs_afterwards() {
    let Some(disk) = Loop::full(400 * MIB) else { return };
    succeed(&["mkfs.btrfs", "-q", "-f", text(disk.device())]);
    let content = claim(&disk).content().unwrap();
    assert!(!content.is_empty() && content.words() == "btrfs", "{content:?}");
    // A table of several partitions, with one that has the place of the new one.
    let table =
        "printf 'label: gpt\\n,50M\\n,50M\\n' | sfdisk -q --no-reread --no-tell-kernel -w always ";
    succeed(&["sh", "-c", &format!("{table}{0} && partx -u {0}", text(disk.device()))]);
    succeed(&["mkfs.ext4", "-q", "-F", "-L", "old", &format!("{}p2", text(disk.device()))]);
    succeed(&["mkfs.btrfs", "-q", "-f", "-M", &format!("{}p1", text(disk.device()))]);
    // And something that no program here knows.
    let unknown = [MIB / 2, 400 * MIB - MIB / 64];
    for at in unknown {
        disk.image().unwrap().write_all_at(OLD, at).unwrap();
    }
    succeed(&["blockdev", "--flushbufs", text(disk.device())]);
    let formatted = format(&disk, &plan("new", FileSystem::Btrfs));
    let content = claim(&disk).content().unwrap().words();
    assert_eq!(content, format!("gpt, btrfs \"new\" on {}p1", disk.name()));
    for at in unknown {
        let mut bytes = [7; 16];
        disk.image().unwrap().read_exact_at(&mut bytes, at).unwrap();
        assert_eq!(bytes, [0; 16], "{at}");
    }
    let _mounted = Mounted::new(&formatted.partition, &disk.path("mount"));
}

#[test]
fn a_disk_whose_table_was_removed_is_not_taken_for_an_empty_one() {
    let Some(disk) = Loop::new(64 * MIB) else { return };
    assert!(claim(&disk).content().unwrap().is_empty());
    disk.image().unwrap().write_all_at(OLD, 32 * MIB).unwrap();
    succeed(&["blockdev", "--flushbufs", text(disk.device())]);
    let content = claim(&disk).content().unwrap();
    assert_eq!((content.is_empty(), &*content.words()), (false, "something that is not known"));
}

#[test]
fn a_preparation_that_is_interrupted_says_how_the_disk_is_and_the_next_one_begins_anew() {
    let plan = plan("backup", FileSystem::Ext4);
    let Some(disk) = Loop::full(64 * MIB) else { return };
    let interrupt = AtomicBool::new(false);
    let interrupted_at = |step: &str| {
        interrupt.store(false, Ordering::Relaxed);
        let told = |now: &str| interrupt.store(now.contains(step), Ordering::Relaxed);
        plan.format(claim(&disk), &interrupt, &told).unwrap_err()
    };
    let before = interrupted_at("partition table");
    assert!(matches!(before, DiskError::Interrupted), "{before}");
    assert!(begins_with_old(&disk), "nothing was written");
    let half_done = interrupted_at("file system");
    assert!(half_done.is_interrupted(), "{half_done}");
    assert!(half_done.to_string().contains("a partition table and no file system"), "{half_done}");
    assert_eq!(claim(&disk).content().unwrap().words(), "gpt");
    format(&disk, &plan);
}

#[test]
fn a_disk_that_becomes_another_before_a_step_that_writes_is_not_written_to() {
    let plan = plan("backup", FileSystem::Ext4);
    let Some(disk) = Loop::full(64 * MIB) else { return };
    let grow = || {
        let image = disk.image().unwrap();
        image.set_len(image.metadata().unwrap().len() + MIB).unwrap();
        succeed(&["losetup", "-c", text(disk.device())]);
    };
    let changed_at = |step: &str| {
        let told = |now: &str| {
            if now.contains(step) {
                grow();
            }
        };
        plan.format(claim(&disk), &AtomicBool::new(false), &told).unwrap_err()
    };
    let before = changed_at("partition table");
    assert!(matches!(before, DiskError::Changed { .. }), "{before}");
    assert!(begins_with_old(&disk), "nothing was written");
    let half_done = changed_at("file system").to_string();
    assert!(half_done.contains("is not the one that was shown"), "{half_done}");
    assert_eq!(claim(&disk).content().unwrap().words(), "gpt");

    let (interrupt, grown) = (AtomicBool::new(false), Cell::new(false));
    let told = |_| {
        if !grown.replace(true) {
            grow();
        }
    };
    let erasing = Erasing { passes: 2, interrupt: &interrupt, told: &told };
    let said = erasing.erase(&claim(&disk)).unwrap_err().to_string();
    assert!(said.contains("is not the one that was shown"), "{said}");
    assert!(said.contains("In pass 2 of 2, 0 % of the disk"), "{said}");
}

#[test]
fn a_disk_stays_locked_until_its_file_system_is_made() {
    let Some(disk) = Loop::new(64 * MIB) else { return };
    let lock = || {
        let file = fs::File::open(disk.device()).unwrap();
        holdall_sys::lock::Held::exclusive(file).unwrap()
    };
    let steps = Cell::new(0);
    let told = |_: &str| {
        assert!(lock().is_none(), "udev would have the table read again");
        steps.set(steps.get() + 1);
    };
    let plan = plan("backup", FileSystem::Ext4);
    plan.format(claim(&disk), &AtomicBool::new(false), &told).unwrap();
    assert_eq!((steps.get(), lock().is_some()), (2, true));
}

#[test]
fn a_disk_that_is_too_small_is_told_with_what_the_program_says() {
    let Some(disk) = Loop::new(32 * MIB) else { return };
    let plan = plan("backup", FileSystem::Xfs);
    let failed = plan.format(claim(&disk), &AtomicBool::new(false), &|_| {}).unwrap_err();
    let said = failed.to_string();
    assert!(said.contains("mkfs.xfs ended with 1") && said.contains("no file system"), "{said}");
}

/// Erases a disk; gives how many bytes were told of, too.
fn erase(disk: &Loop, passes: u32) -> (Erased, u64) {
    let (told, interrupt) = (Cell::new(0), AtomicBool::new(false));
    let erasing =
        Erasing { passes, interrupt: &interrupt, told: &|bytes| told.set(told.get() + bytes) };
    let erased = erasing.erase(&claim(disk)).unwrap();
    (erased, told.get())
}

#[test]
fn nothing_of_what_was_on_a_disk_is_left_after_it_was_erased() {
    // Neither a multiple of what is written at once, nor of a page.
    let bytes = 37 * MIB + 3 * 512;
    let Some(disk) = Loop::full(bytes) else { return };
    assert!(disk.has_old());
    let (erased, told) = erase(&disk, 2);
    assert!(!disk.has_old());
    assert_eq!((erased.bytes, told, erased.refused_bytes), (bytes, 2 * bytes, 0));
    assert_eq!(erased.compared_bytes, bytes, "so small a disk is read back as a whole");
    assert_eq!(erased.forgotten, Forgotten::Plainly, "a loop device forgets by making holes");
}

#[test]
fn an_erased_disk_has_no_partitions_and_can_be_prepared() {
    let Some(disk) = Loop::full(400 * MIB) else { return };
    format(&disk, &plan("old", FileSystem::Btrfs));
    erase(&disk, 1);
    let parts = fs::read_dir(format!("/sys/class/block/{}", disk.name())).unwrap();
    let names = parts.map(|part| part.unwrap().file_name().into_string().unwrap());
    assert_eq!(names.filter(|name| name.starts_with("loop") && name != "loop").count(), 0);
    let content = claim(&disk).content().unwrap();
    assert_eq!(content.found, []);
    format(&disk, &plan("new", FileSystem::Ext4));
}

#[test]
fn an_erasing_that_is_interrupted_says_how_far_it_was() {
    let Some(disk) = Loop::full(64 * MIB) else { return };
    let interrupt = AtomicBool::new(false);
    let stop_soon = |_: u64| interrupt.store(true, Ordering::Relaxed);
    let erasing = Erasing { passes: 3, interrupt: &interrupt, told: &stop_soon };
    let error = erasing.erase(&claim(&disk)).unwrap_err();
    assert!(error.is_interrupted());
    assert!(error.to_string().contains("In pass 1 of 3, 6 % of the disk"), "{error}");
    assert!(disk.has_old());
    erase(&disk, 1);
    assert!(!disk.has_old());
}

#[test]
fn a_disk_that_gives_back_something_else_is_told() {
    let Some(disk) = Loop::full(32 * MIB) else { return };
    let interrupt = AtomicBool::new(false);
    let told = |_| disk.image().unwrap().write_all_at(b"other bytes", 0).unwrap();
    let erasing = Erasing { passes: 1, interrupt: &interrupt, told: &told };
    let said = erasing.erase(&claim(&disk)).unwrap_err().to_string();
    assert!(said.contains("at byte 0: it is not what was written"), "{said}");
}

#[test]
fn places_that_a_disk_does_not_take_are_counted_and_the_rest_is_erased() {
    let Some(reader) = Reader::new(3002) else { return };
    // A disk on a file system that is full refuses what it has no room for.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let small = folder.path();
    succeed(&["mount", "-t", "tmpfs", "-o", "size=20m", "small", text(small)]);
    let image = small.join("image");
    fs::File::create(&image).unwrap().set_len(32 * MIB).unwrap();
    reader.put_in(&image);
    let claim = Candidate::at(&reader.device()).unwrap().claim().unwrap();
    let (interrupt, told) = (AtomicBool::new(false), |_| {});
    let erased = Erasing { passes: 1, interrupt: &interrupt, told: &told }.erase(&claim);
    drop((claim, reader));
    succeed(&["umount", "-l", text(small)]);
    let erased = erased.unwrap();
    assert_eq!(erased.refused_bytes, 12 * MIB, "{erased:?}");
    assert_eq!(erased.compared_bytes, 20 * MIB);
}
