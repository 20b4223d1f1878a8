//! Disks are made ready and erased, on loop devices.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

use holdall_disks::{
    Candidate, Claim, DiskError, Erased, Erasing, FileSystem, Forgotten, Label, Plan,
};

use crate::loops::{Loop, Mounted, OLD, succeed, text};

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
    let formatted = format(&disk, &plan("new", FileSystem::Ext4));
    let content = claim(&disk).content().unwrap().words();
    assert_eq!(content, format!("gpt, ext4 \"new\" on {}p1", disk.name()));
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
    for (at, state) in [(1, "no file system"), (2, "")] {
        let Some(disk) = Loop::new(400 * MIB) else { return };
        let (interrupt, steps) = (AtomicBool::new(false), Cell::new(0));
        let told = |_: &str| {
            steps.set(steps.get() + 1);
            interrupt.store(steps.get() == at, Ordering::Relaxed);
        };
        let ended = plan.format(claim(&disk), &interrupt, &told);
        if let Err(error) = &ended {
            assert!(error.is_interrupted() && error.to_string().contains(state), "{error}");
            assert!(!claim(&disk).content().unwrap().is_empty());
        }
        assert_eq!(ended.is_err(), at == 1);
        format(&disk, &plan);
    }
    let Some(disk) = Loop::full(64 * MIB) else { return };
    let before = plan.format(claim(&disk), &AtomicBool::new(true), &|_| {});
    assert!(matches!(before, Err(DiskError::Interrupted)), "{before:?}");
    assert!(disk.has_old(), "nothing was written");
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
fn places_that_a_disk_does_not_take_are_counted_and_the_rest_is_erased() {
    let Some(disk) = Loop::new(8 * MIB) else { return };
    // A disk on a file system that is full refuses what it has no room for.
    let small = disk.path("small");
    fs::create_dir(&small).unwrap();
    succeed(&["mount", "-t", "tmpfs", "-o", "size=20m", "small", text(&small)]);
    let image = small.join("image");
    fs::File::create(&image).unwrap().set_len(32 * MIB).unwrap();
    disk.swap_for(&image);
    let (interrupt, told) = (AtomicBool::new(false), |_| {});
    let erased = Erasing { passes: 1, interrupt: &interrupt, told: &told }.erase(&claim(&disk));
    succeed(&["losetup", "-d", text(disk.device())]);
    succeed(&["umount", "-l", text(&small)]);
    let erased = erased.unwrap();
    assert_eq!(erased.refused_bytes, 12 * MIB, "{erased:?}");
    assert_eq!(erased.compared_bytes, 20 * MIB);
}
