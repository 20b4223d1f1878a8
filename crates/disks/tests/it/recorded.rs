//! Computers as they are recorded from `/sys`, `/proc` and `/run/udev`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use holdall_disks::list::{self, Listed};
use holdall_disks::{Computer, Identity, reasons};
use holdall_sys::mounts::Mounts;
use tempfile::TempDir;

const USB: &str = "sys/devices/pci0000:00/0000:00:14.0/usb2/2-3";
const ROOT_MOUNT: &str = "1 1 8:1 / / rw - ext4 /dev/sda1 rw";

struct Recorded(TempDir);

impl Recorded {
    /// `sda`, a SATA disk with the system and with swap, and `sdb`, in an enclosure.
    fn new() -> Self {
        let recorded = Self(tempfile::tempdir().unwrap());
        let sata = "sys/devices/pci0000:00/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0/block/sda";
        recorded.disk(sata, "8:0", 4_000_000);
        recorded.partition(sata, "sda1", "8:1").partition(sata, "sda2", "8:2");
        let usb = format!("{USB}/2-3:1.0/host4/target4:0:0/4:0:0:0/block/sdb");
        recorded.disk(&usb, "8:16", 3_907_029_168);
        recorded.partition(&usb, "sdb1", "8:17");
        recorded
            .file(&format!("{usb}/device/model"), "Disk  ")
            .file(&format!("{usb}/diskseq"), "17")
            .file(&format!("{USB}/idVendor"), "152d")
            .file(&format!("{USB}/speed"), "480")
            .file(&format!("{USB}/version"), " 2.10")
            .file("proc/swaps", "Filename Type Size Used Priority\n/dev/sda2 partition 1 0 -2");
        recorded
    }

    fn path(&self, path: &str) -> PathBuf {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    fn file(&self, path: &str, content: &str) -> &Self {
        fs::write(self.path(path), format!("{content}\n")).unwrap();
        self
    }

    fn disk(&self, folder: &str, number: &str, sectors: u64) -> &Self {
        self.file(&format!("{folder}/dev"), number)
            .file(&format!("{folder}/size"), &sectors.to_string())
            .file(&format!("{folder}/ro"), "0");
        let name = folder.rsplit('/').next().unwrap();
        symlink(self.path(folder), self.path(&format!("sys/class/block/{name}"))).unwrap();
        self
    }

    fn partition(&self, disk: &str, name: &str, number: &str) -> &Self {
        self.file(&format!("{disk}/{name}/partition"), "1");
        self.disk(&format!("{disk}/{name}"), number, 2048)
    }

    fn computer(&self) -> Computer {
        Computer::read(self.0.path(), &Mounts::parse(ROOT_MOUNT.as_bytes())).unwrap()
    }

    fn listed(&self) -> Vec<Listed> {
        let mounts = Mounts::parse(ROOT_MOUNT.as_bytes());
        list::read(self.0.path(), &mounts, &|_| Vec::new()).unwrap()
    }

    fn refused(&self, name: &str) -> Vec<String> {
        reasons(&self.computer(), name).iter().map(ToString::to_string).collect()
    }
}

#[test]
fn the_systems_disk_is_refused_and_the_one_in_the_enclosure_is_not() {
    let recorded = Recorded::new();
    assert_eq!(
        recorded.refused("sda"),
        ["the system runs from it: sda1 is mounted at /", "sda2 is in use as swap"]
    );
    assert_eq!(recorded.refused("sdb"), [""; 0]);
}

#[test]
fn a_disk_is_listed_with_how_it_is_connected_and_what_udev_knows() {
    let recorded = Recorded::new();
    recorded
        .file(
            "run/udev/data/b8:16",
            "S:disk/by-id/x\nE:ID_SERIAL_SHORT=AB12\nE:ID_SERIAL=Maker_AB12",
        )
        .file("run/udev/data/b8:17", "E:ID_FS_TYPE=ext4\nE:ID_FS_LABEL=photos");
    let listed = recorded.listed();
    let disk = &listed[1];
    assert_eq!(
        disk.identity.to_string(),
        "sdb, Disk, serial number AB12, 2.00 TB (2000398934016 bytes)"
    );
    assert_eq!(disk.identity.sequence, Some(17));
    assert_eq!(disk.parts[0].content.as_ref().unwrap().words(), "ext4 \"photos\"");
    assert!(disk.disk.words().contains("USB at 480 Mb/s"), "{}", disk.disk.words());
    assert!(disk.disk.note().unwrap().contains("another port or cable"));
    assert_eq!(listed[0].parts[0].mounted_at, ["/"]);
}

#[test]
fn a_volume_on_a_disk_and_a_pool_that_it_is_in_are_seen() {
    let recorded = Recorded::new();
    let usb = format!("{USB}/2-3:1.0/host4/target4:0:0/4:0:0:0/block/sdb");
    let dm = "sys/devices/virtual/block/dm-0";
    recorded.disk(dm, "253:0", 2048);
    let holders = format!("{usb}/sdb1/holders/dm-0");
    symlink(recorded.path(dm), recorded.path(&holders)).unwrap();
    assert_eq!(recorded.refused("sdb"), ["sdb1 is a part of dm-0 (RAID, LVM or encryption)"]);
    fs::remove_file(recorded.path(&holders)).unwrap();
    let pool = "sys/fs/btrfs/1f00/devices/sdb1";
    symlink(recorded.path(&format!("{usb}/sdb1")), recorded.path(pool)).unwrap();
    assert_eq!(recorded.refused("sdb"), ["sdb1 belongs to a btrfs that is in use"]);
}

#[test]
fn a_second_path_to_the_systems_disk_is_refused() {
    let recorded = Recorded::new();
    for number in ["8:0", "8:16"] {
        recorded.file(&format!("run/udev/data/b{number}"), "E:ID_SERIAL_SHORT=AB12");
    }
    assert_eq!(recorded.refused("sdb"), [""; 0], "they have different sizes");
    for disk in ["sda", "sdb"] {
        recorded.file(&format!("sys/class/block/{disk}/device/wwid"), "naa.5000c500a1b2c3d4");
    }
    let said = recorded.refused("sdb");
    assert_eq!(said[0], "the system runs from it: sda1 is mounted at /");
    assert!(said[2].starts_with("sda is the same disk"), "{said:?}");
}

#[test]
fn a_file_that_is_mounted_or_swapped_to_without_a_loop_device_is_seen() {
    let recorded = Recorded::new();
    let folder = "sys/devices/virtual/block/loop0";
    recorded
        .disk(folder, "7:0", 2048)
        .file(&format!("{folder}/loop/backing_file"), "/srv/my image");
    recorded.file("srv/my image", "");
    assert_eq!(recorded.refused("loop0"), [""; 0]);
    let table = format!("{ROOT_MOUNT}\n2 1 0:40 / /mnt rw - erofs /srv/my\\040image ro");
    let computer = Computer::read(recorded.0.path(), &Mounts::parse(table.as_bytes())).unwrap();
    let said = reasons(&computer, "loop0");
    assert_eq!(said[0].to_string(), "the file that it shows is mounted at /mnt");
    recorded.file("proc/swaps", "Filename Type Size Used Priority\n/srv/my\\040image file 1 0 -2");
    assert_eq!(recorded.refused("loop0"), ["the file that it shows is in use as swap"]);
}

#[test]
fn a_serial_number_is_found_where_udev_has_none() {
    let recorded = Recorded::new();
    let usb = format!("{USB}/2-3:1.0/host4/target4:0:0/4:0:0:0/block/sdb");
    let serial = || Identity::read(recorded.0.path(), "sdb").unwrap().serial;
    assert_eq!(serial(), None);
    fs::write(recorded.path(&format!("{usb}/device/vpd_pg80")), b"\0\x80\0\x08  WD-1234").unwrap();
    assert_eq!(serial().unwrap(), "WD-1234");
    recorded.file(&format!("{usb}/device/serial"), "\u{1b}[31mlong".repeat(99).as_str());
    assert_eq!(serial().unwrap().chars().count(), 256);
}

#[test]
fn a_computer_whose_disks_or_swap_cannot_be_read_is_no_computer_without_any() {
    let mounts = Mounts::parse(ROOT_MOUNT.as_bytes());
    let empty = tempfile::tempdir().unwrap();
    Computer::read(empty.path(), &mounts).unwrap_err();
    let recorded = Recorded::new();
    fs::remove_file(recorded.path("proc/swaps")).unwrap();
    assert_eq!(recorded.computer().swaps, []);
    fs::create_dir(recorded.path("proc/swaps")).unwrap();
    Computer::read(recorded.0.path(), &mounts).unwrap_err();
}
