//! A made computer, changed in one thing at a time.

use holdall_sys::DeviceNumber;

use super::*;
use crate::computer::{FileId, Mounted, Pool};

fn device(name: &str, major: u32, minor: u32) -> BlockDevice {
    BlockDevice {
        name: name.into(),
        number: DeviceNumber { major, minor },
        size_bytes: 1 << 40,
        ..BlockDevice::default()
    }
}

fn partition(name: &str, of: &str, minor: u32) -> BlockDevice {
    BlockDevice { partition_of: Some(of.into()), ..device(name, 8, minor) }
}

/// `sda` with the system and swap, and `sdb` with one partition, which nothing uses.
fn computer() -> Computer {
    Computer {
        devices: vec![
            device("sda", 8, 0),
            partition("sda1", "sda", 1),
            partition("sda2", "sda", 2),
            device("sdb", 8, 16),
            partition("sdb1", "sdb", 17),
            device("dm-0", 253, 0),
            device("dm-1", 253, 1),
            device("md0", 9, 0),
            device("loop7", 7, 7),
        ],
        mounts: vec![mount(8, 1, "/dev/sda1", "/")],
        swaps: vec![DeviceNumber { major: 8, minor: 2 }],
        ..Computer::default()
    }
}

fn mount(major: u32, minor: u32, source: &str, point: &str) -> Mounted {
    let number = DeviceNumber { major, minor };
    Mounted { number, source: source.into(), point: point.into() }
}

impl Computer {
    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn device_mut(&mut self, name: &str) -> &mut BlockDevice {
        self.devices.iter_mut().find(|device| device.name == name).unwrap()
    }
}

/// What is said of `sdb`, in words.
fn said(change: impl FnOnce(&mut Computer)) -> Vec<String> {
    reasons(&computer().with(change), "sdb").iter().map(ToString::to_string).collect()
}

#[test]
fn a_disk_that_nothing_uses_is_taken() {
    assert_eq!(said(|_| {}), [""; 0]);
}

#[test]
fn the_disk_that_the_system_runs_from_is_refused_for_that_first() {
    let of_sda = reasons(&computer(), "sda");
    assert_eq!(
        of_sda,
        [
            Reason::System { device: "sda1".into(), point: "/".into() },
            Reason::Swap { device: "sda2".into() }
        ]
    );
    for point in OF_THE_SYSTEM {
        let said = said(|computer| computer.mounts.push(mount(8, 17, "/dev/sdb1", point)));
        assert_eq!(said, [format!("the system runs from it: sdb1 is mounted at {point}")]);
    }
}

#[test]
fn what_is_mounted_is_refused_by_number_and_by_name() {
    let told = ["sdb1 is mounted at /mnt/photos"];
    assert_eq!(said(|all| all.mounts.push(mount(8, 17, "photos", "/mnt/photos"))), told);
    // A btrfs has a number of its own.
    assert_eq!(said(|all| all.mounts.push(mount(0, 40, "/dev/sdb1", "/mnt/photos"))), told);
    let whole = said(|all| all.mounts.push(mount(8, 16, "/dev/sdb", "/mnt")));
    assert_eq!(whole, ["sdb is mounted at /mnt"]);
}

#[test]
fn a_member_of_a_pool_that_another_disk_is_mounted_for_is_refused() {
    let pool = Pool { kind: "btrfs".into(), devices: vec!["sdc".into(), "sdb1".into()] };
    assert_eq!(said(|all| all.pools.push(pool)), ["sdb1 belongs to a btrfs that is in use"]);
}

#[test]
fn swap_on_the_whole_disk_and_on_a_volume_on_it_is_refused() {
    let swap = |major, minor| DeviceNumber { major, minor };
    assert_eq!(said(|all| all.swaps.push(swap(8, 16))), ["sdb is in use as swap"]);
    let on_volume = said(|all| {
        all.device_mut("sdb1").holders.push("dm-0".into());
        all.swaps.push(swap(253, 0));
    });
    assert_eq!(
        on_volume,
        ["dm-0 is in use as swap", "sdb1 is a part of dm-0 (RAID, LVM or encryption)"]
    );
}

#[test]
fn a_part_of_an_array_is_refused_though_nothing_is_mounted() {
    let said = said(|all| all.device_mut("sdb").holders.push("md0".into()));
    assert_eq!(said, ["sdb is a part of md0 (RAID, LVM or encryption)"]);
}

#[test]
fn a_disk_below_several_layers_of_the_system_is_told_so() {
    let said = said(|all| {
        all.device_mut("sdb1").holders.push("md0".into());
        all.device_mut("md0").holders.push("dm-0".into());
        all.device_mut("dm-0").holders.push("dm-1".into());
        all.mounts.push(mount(253, 1, "/dev/mapper/root", "/usr"));
    });
    assert_eq!(said[0], "the system runs from it: dm-1 is mounted at /usr");
}

#[test]
fn a_disk_that_a_loop_device_shows_is_refused_with_what_is_mounted_from_there() {
    let backed = |number: u32| {
        move |all: &mut Computer| {
            all.device_mut("loop7").backed_by = Some(DeviceNumber { major: 8, minor: number });
        }
    };
    assert_eq!(said(backed(17)), ["loop7 shows what is on sdb1"]);
    let mounted = said(|all| {
        backed(16)(all);
        all.mounts.push(mount(7, 7, "/dev/loop7", "/mnt"));
    });
    assert_eq!(mounted, ["loop7 is mounted at /mnt", "loop7 shows what is on sdb"]);
}

#[test]
fn what_cannot_be_written_has_no_medium_or_is_unknown_is_refused() {
    assert_eq!(said(|all| all.device_mut("sdb").is_read_only = true), ["sdb is read-only"]);
    assert_eq!(said(|all| all.device_mut("sdb1").is_read_only = true), ["sdb1 is read-only"]);
    assert_eq!(said(|all| all.device_mut("sdb").size_bytes = 0), ["it has no medium"]);
    assert_eq!(said(|all| all.devices.clear()), ["the kernel has no such device"]);
}

#[test]
fn a_partition_is_told_of_which_disk_it_is() {
    let of = reasons(&computer(), "sdb1");
    assert_eq!(of, [Reason::Partition { of: "sdb".into() }]);
}

#[test]
fn only_disks_are_disks() {
    for disk in ["sda", "sdaa", "hda", "vdb", "xvda", "nvme0n1", "nvme10n12", "mmcblk0", "loop12"] {
        assert!(is_disk(disk), "{disk}");
    }
    for other in [
        "sda1",
        "sr0",
        "zram0",
        "dm-0",
        "md127",
        "ram0",
        "fd0",
        "nbd0",
        "mmcblk0boot0",
        "mmcblk0rpmb",
        "mtdblock0",
        "nvme0",
        "nvme0c0n1",
        "nvme0n1p1",
        "loop",
        "sd",
        "",
        "bcache0",
    ] {
        assert!(!is_disk(other), "{other}");
        let made = Computer { devices: vec![device(other, 1, 1)], ..Computer::default() };
        assert!(reasons(&made, other).contains(&Reason::NoDisk), "{other}");
    }
}

#[test]
fn another_path_to_a_disk_that_is_in_use_is_refused() {
    fn same(all: &mut Computer) {
        all.devices.push(device("sdc", 8, 32));
        for path in ["sdb", "sdc"] {
            all.device_mut(path).serial = Some("WX12".into());
        }
    }
    let mounted = |all: &mut Computer| all.mounts.push(mount(8, 32, "/dev/sdc", "/mnt"));
    assert_eq!(said(same), [""; 0], "nothing uses either");
    let told = [
        "sdc is mounted at /mnt",
        "sdc is the same disk, as its serial number or wwid says, and is in use",
    ];
    let in_use = |change: &dyn Fn(&mut Computer)| {
        said(|all| {
            same(all);
            mounted(all);
            change(all);
        })
    };
    assert_eq!(in_use(&|_| {}), told);
    assert_eq!(in_use(&|all| all.device_mut("sdb").serial = None), [""; 0]);
    let wwid = |all: &mut Computer, of_sdc: &str| {
        all.device_mut("sdb").wwid = Some("naa.5000".into());
        all.device_mut("sdc").wwid = Some(of_sdc.into());
    };
    assert_eq!(in_use(&|all| wwid(all, "naa.5001")), [""; 0], "namespaces of one controller");
    let by_wwid = in_use(&|all| {
        wwid(all, "naa.5000");
        (all.device_mut("sdb").serial, all.device_mut("sdc").size_bytes) = (None, 1);
    });
    assert_eq!(by_wwid, told);
    let held = said(|all| {
        same(all);
        all.device_mut("sdc").holders.push("dm-0".into());
    });
    assert_eq!(held[0], "sdc is a part of dm-0 (RAID, LVM or encryption)");
}

#[test]
fn disks_in_an_enclosure_that_gives_them_its_own_serial_number_are_told_apart_by_size() {
    let said = said(|all| {
        all.devices.push(device("sdc", 8, 32));
        for path in ["sdb", "sdc"] {
            all.device_mut(path).serial = Some("0123456789ABCDEF".into());
        }
        all.device_mut("sdc").size_bytes = 1 << 41;
        all.mounts.push(mount(8, 32, "/dev/sdc", "/mnt"));
    });
    assert_eq!(said, [""; 0]);
}

#[test]
fn where_loop_devices_cannot_be_asked_their_paths_tell_that_they_show_the_same() {
    let both = |all: &mut Computer| {
        all.devices.push(device("loop8", 7, 8));
        for one in ["loop7", "loop8"] {
            all.device_mut(one).backing_file = Some("/srv/image".into());
        }
    };
    let said = |change: &dyn Fn(&mut Computer)| {
        let all = computer().with(both).with(change);
        reasons(&all, "loop7").iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let image = |inode| Some(FileId { inode, ..FileId::default() });
    assert_eq!(said(&|_| {}), ["loop8 shows the same file"]);
    // A file that has taken the place of another has its path.
    let others = said(&|all| {
        all.device_mut("loop7").image = image(1);
        all.device_mut("loop8").image = image(2);
    });
    assert_eq!(others, [""; 0]);
}

#[test]
fn a_description_that_goes_in_circles_comes_to_an_end() {
    let said = said(|all| {
        all.device_mut("sdb").holders.push("dm-0".into());
        all.device_mut("dm-0").holders.push("sdb".into());
    });
    assert_eq!(said, ["sdb is a part of dm-0 (RAID, LVM or encryption)"]);
}
