//! What a directory lies on, read from trees as real computers have them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use holdall_lab::storage_stack::{Bus, DeviceCounters, DeviceWork, StorageStack};
use holdall_sys::mounts::Mounts;
use tempfile::TempDir;

const NVME: &str = "sys/devices/pci0000:00/0000:00:1d.0/0000:01:00.0";
const SATA: &str = "sys/devices/pci0000:00/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0";
const USB: &str = "sys/devices/pci0000:00/0000:00:14.0/usb2/2-3";

/// Recorded parts of `/sys` and `/proc`.
struct Recorded(TempDir);

impl Recorded {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, path: &str) -> PathBuf {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    /// Writes a file with a line.
    fn file(&self, path: &str, line: &str) -> &Self {
        fs::write(self.path(path), format!("{line}\n")).unwrap();
        self
    }

    fn folder(&self, path: &str) -> &Self {
        fs::create_dir_all(self.path(path)).unwrap();
        self
    }

    /// Links one place of the tree to another.
    fn link(&self, from: &str, to: &str) -> &Self {
        symlink(self.path(to), self.path(from)).unwrap();
        self
    }

    /// What is mounted by a line of `/proc/self/mountinfo`.
    fn stack(&self, mountinfo: &str) -> StorageStack {
        let mounts = Mounts::parse(mountinfo.as_bytes());
        StorageStack::read(self.0.path(), mounts.iter().next().unwrap())
    }

    /// An NVMe drive in a slot, with the lanes and speeds of link, drive and slot.
    fn nvme(&self, current: [&str; 2], drive: [&str; 2], slot: [&str; 2]) -> &Self {
        let port = Path::new(NVME).parent().unwrap().to_str().unwrap();
        for (folder, which, [speed, lanes]) in
            [(NVME, "current", current), (NVME, "max", drive), (port, "max", slot)]
        {
            self.file(&format!("{folder}/{which}_link_speed"), speed);
            self.file(&format!("{folder}/{which}_link_width"), lanes);
        }
        let disk = &format!("{NVME}/nvme/nvme0/nvme0n1");
        self.file(&format!("{disk}/queue/rotational"), "0")
            .file(&format!("{disk}/size"), "1953525168")
            .file(&format!("{NVME}/nvme/nvme0/model"), "Fast Drive 1TB")
            .link(&format!("{disk}/device"), &format!("{NVME}/nvme/nvme0"))
            .file(&format!("{NVME}/nvme/nvme0/hwmon1/temp1_input"), "43850")
            .file(&format!("{disk}/nvme0n1p2/partition"), "2")
            .link("sys/dev/block/259:2", &format!("{disk}/nvme0n1p2"))
    }
}

const ON_NVME: &str = "1 1 259:2 / / rw,noatime - ext4 /dev/nvme0n1p2 rw,discard";

#[test]
fn an_nvme_drive_on_one_of_four_lanes_is_told_plainly_with_the_slot_to_blame() {
    let recorded = Recorded::new();
    recorded.nvme(["8.0 GT/s PCIe", "1"], ["16.0 GT/s PCIe", "4"], ["8.0 GT/s PCIe", "1"]);
    let stack = recorded.stack(ON_NVME);
    assert_eq!(
        stack.notes(),
        ["nvme0n1 runs on 1 of its 4 lanes, PCIe 3 of 4: at most 985 MB/s, where it could do \
          7877 MB/s. The slot has no more: another slot would help."]
    );
    let disk = &stack.disks[0];
    assert_eq!((disk.name.as_str(), disk.rotating), ("nvme0n1", Some(false)));
    assert_eq!(
        (disk.model.as_deref(), disk.size_bytes),
        (Some("Fast Drive 1TB"), Some(1_000_204_886_016))
    );
    assert_eq!(disk.temperature_celsius, Some(43.85));
    assert!(disk.words().contains("NVMe on 1 lane of PCIe 3 (985 MB/s) of possible 4 lanes"));
    assert_eq!(stack.file_system.options, "rw,noatime,discard");
}

#[test]
fn an_nvme_drive_that_has_all_it_could_have_needs_no_note_and_one_held_back_is_told_so() {
    let all = ["8.0 GT/s PCIe", "4"];
    let recorded = Recorded::new();
    recorded.nvme(all, all, ["16.0 GT/s PCIe", "16"]);
    assert_eq!(recorded.stack(ON_NVME).notes(), [""; 0]);
    let recorded = Recorded::new();
    recorded.nvme(["2.5 GT/s PCIe", "4"], all, all);
    let notes = recorded.stack(ON_NVME).notes();
    assert!(
        notes[0].contains("PCIe 1 of 3") && notes[0].contains("The slot has more"),
        "{notes:?}"
    );
}

#[test]
fn a_usb_3_enclosure_on_a_usb_2_cable_is_told_with_its_bridge() {
    let recorded = Recorded::new();
    let host = format!("{USB}/2-3:1.0/host4/target4:0:0/4:0:0:0");
    recorded
        .file(&format!("{USB}/idVendor"), "152d")
        .file(&format!("{USB}/idProduct"), "0578")
        .file(&format!("{USB}/manufacturer"), "JMicron")
        .file(&format!("{USB}/product"), "External Disk")
        .file(&format!("{USB}/speed"), "480")
        .file(&format!("{USB}/version"), " 2.10")
        .folder("sys/bus/usb/drivers/uas")
        .link(&format!("{USB}/2-3:1.0/driver"), "sys/bus/usb/drivers/uas")
        .file(&format!("{host}/block/sdb/queue/rotational"), "1")
        .link("sys/dev/block/8:16", &format!("{host}/block/sdb"));
    let stack = recorded.stack("1 1 8:16 / /mnt rw - exfat /dev/sdb rw");
    let words = stack.disks[0].words();
    assert!(words.contains("USB at 480 Mb/s, speaks USB 2.10, driver uas"), "{words}");
    assert!(words.contains("bridge JMicron External Disk 152d:0578, rotating"), "{words}");
    assert!(stack.notes()[0].contains("try another port or cable"), "{:?}", stack.notes());
    recorded.file(&format!("{USB}/speed"), "5000").file(&format!("{USB}/version"), " 3.20");
    assert_eq!(recorded.stack("1 1 8:16 / /mnt rw - exfat /dev/sdb rw").notes(), [""; 0]);
}

/// A SATA disk by that name and number.
fn sata(recorded: &Recorded, name: &str, number: &str, speed: &str) {
    let port = "sys/devices/pci0000:00/0000:00:17.0/ata3";
    recorded
        .file(&format!("{port}/link3/ata_link/link3/sata_spd"), speed)
        .file(&format!("{port}/link3/ata_link/link3/hw_sata_spd_limit"), "6.0 Gbps")
        .file(&format!("{SATA}/block/{name}/queue/rotational"), "1")
        .file(&format!("{SATA}/block/{name}/queue/write_cache"), "write back")
        .link(&format!("sys/dev/block/{number}"), &format!("{SATA}/block/{name}"))
        .link(&format!("sys/class/block/{name}"), &format!("{SATA}/block/{name}"));
}

#[test]
fn a_sata_disk_has_the_speed_of_its_link_and_of_its_port() {
    let recorded = Recorded::new();
    sata(&recorded, "sda", "8:0", "3.0 Gbps");
    recorded.file("proc/fs/ext4/sda/options", "rw\ndata=ordered").folder("proc/fs/jbd2/sda-8");
    let stack = recorded.stack("1 1 8:0 / / rw - ext4 /dev/sda rw");
    let bus = Bus::Sata { speed: Some("3.0 Gbps".into()), port_could: Some("6.0 Gbps".into()) };
    assert_eq!(stack.disks[0].bus, bus);
    assert_eq!(stack.notes(), ["sda runs at 3.0 Gbps, and its port could do 6.0 Gbps."]);
    let journal = |stack: StorageStack| stack.file_system.journal.unwrap();
    assert_eq!(journal(stack), "metadata, after its data (ordered)");
    fs::remove_dir(recorded.path("proc/fs/jbd2/sda-8")).unwrap();
    assert_eq!(journal(recorded.stack("1 1 8:0 / / rw - ext4 /dev/sda rw")), "none");
    let by_source = recorded.stack("1 1 0:40 / / rw - btrfs /dev/sda rw");
    assert_eq!(by_source.disks[0].name, "sda");
    assert_eq!(by_source.file_system.journal.as_deref(), Some("none, copy on write"));
}

#[test]
fn a_mirror_below_encryption_is_taken_apart_down_to_its_disks() {
    let recorded = Recorded::new();
    sata(&recorded, "sda", "8:0", "6.0 Gbps");
    sata(&recorded, "sdb", "8:16", "6.0 Gbps");
    let (md, dm) = ("sys/devices/virtual/block/md0", "sys/devices/virtual/block/dm-0");
    recorded
        .file(&format!("{md}/md/level"), "raid1")
        .file(&format!("{md}/md/degraded"), "0")
        .file(&format!("{md}/md/sync_action"), "resync")
        .file(&format!("{md}/md/sync_completed"), "5 / 10")
        .link(&format!("{md}/slaves/sda"), &format!("{SATA}/block/sda"))
        .link(&format!("{md}/slaves/sdb"), &format!("{SATA}/block/sdb"))
        .file(&format!("{dm}/dm/uuid"), "CRYPT-LUKS2-12")
        .file(&format!("{dm}/dm/name"), "home")
        .link(&format!("{dm}/slaves/md0"), md)
        .link("sys/dev/block/253:0", dm);
    let stack = recorded.stack("1 1 253:0 / /home rw - xfs /dev/mapper/home rw");
    assert_eq!(
        stack.layers,
        ["encrypted (dm-crypt) home", "mirror md0 of 2 disks, busy with resync (5 / 10)"]
    );
    assert_eq!(stack.disks.iter().map(|disk| &*disk.name).collect::<Vec<_>>(), ["sda", "sdb"]);
    recorded
        .file("proc/diskstats", "8 0 sda 1 0 8 0 2 0 16 0 0 0 0 0 0 0 0 3\n8 16 sdb 1 0 8 0 2 0 16 0\n8 32 sdc 9 0 9 0 9 0 9 0");
    let counters = DeviceCounters::read(recorded.0.path(), &stack).unwrap();
    assert_eq!(
        (counters.reads, counters.writes, counters.flushes),
        (2, 4, 3),
        "both, and no other"
    );
    let work = DeviceWork::new(&counters.since(&DeviceCounters::default()), 8192, 4096, true);
    assert_eq!((work.bytes_written, work.bytes_for_each_asked), (2 * 16 * 512, 3.0));
}

#[test]
fn an_lvm_mirror_and_an_lvm_raid_are_told_by_the_names_of_their_parts() {
    for (kind, called) in [("rimage", "LVM RAID"), ("mimage", "LVM mirror")] {
        let recorded = Recorded::new();
        let volume = |at: usize, name: &str| {
            let folder = format!("sys/devices/virtual/block/dm-{at}");
            recorded
                .file(&format!("{folder}/dm/uuid"), "LVM-x")
                .file(&format!("{folder}/dm/name"), name);
            folder
        };
        let [mirror, first, second] = [
            volume(0, "vg-home"),
            volume(1, &format!("vg-home_{kind}_0")),
            volume(2, &format!("vg-home_{kind}_1")),
        ];
        recorded
            .link(&format!("{mirror}/slaves/dm-1"), &first)
            .link(&format!("{mirror}/slaves/dm-2"), &second)
            .link("sys/dev/block/253:0", &mirror);
        let stack = recorded.stack("1 1 253:0 / / rw - xfs /dev/mapper/vg-home rw");
        let parts = [0, 1].map(|at| format!("LVM volume vg-home_{kind}_{at}"));
        assert_eq!(stack.layers[0], format!("{called} vg-home"));
        assert_eq!(stack.layers[1..], parts);
    }
}

#[test]
fn a_btrfs_is_told_with_all_of_its_devices() {
    let recorded = Recorded::new();
    sata(&recorded, "sda", "8:0", "6.0 Gbps");
    sata(&recorded, "sdb", "8:16", "6.0 Gbps");
    let mount = "1 1 0:40 / /home rw - btrfs /dev/sdb rw";
    let pools = "sys/fs/btrfs";
    recorded
        .folder(&format!("{pools}/features"))
        .link(&format!("{pools}/1f00/devices/sdb"), &format!("{SATA}/block/sdb"));
    let alone = recorded.stack(mount);
    assert_eq!((alone.layers.len(), alone.disks.len()), (0, 1));
    recorded
        .link(&format!("{pools}/1f00/devices/sda"), &format!("{SATA}/block/sda"))
        .file(&format!("{pools}/1f00/allocation/data/bytes_used"), "7")
        .folder(&format!("{pools}/1f00/allocation/data/raid1"));
    let stack = recorded.stack(mount);
    assert_eq!(stack.layers, ["btrfs of 2 devices, content as raid1"]);
    assert_eq!(stack.disks.iter().map(|disk| &*disk.name).collect::<Vec<_>>(), ["sda", "sdb"]);
    let zfs = recorded.stack("1 1 0:41 / /tank rw - zfs tank/home rw");
    assert!(zfs.notes()[0].contains("ZFS does not tell which disks"), "{:?}", zfs.notes());
}

#[test]
fn an_nvme_drive_that_may_have_several_paths_has_the_lanes_of_its_controller() {
    let recorded = Recorded::new();
    let (all, one) = (["8.0 GT/s PCIe", "4"], ["8.0 GT/s PCIe", "1"]);
    recorded.nvme(one, all, one);
    let subsystem = "sys/devices/virtual/nvme-subsystem/nvme-subsys0";
    recorded
        .file(&format!("{subsystem}/nvme0n1/queue/rotational"), "0")
        .link(&format!("{subsystem}/nvme0"), &format!("{NVME}/nvme/nvme0"))
        .link("sys/dev/block/259:9", &format!("{subsystem}/nvme0n1"));
    let stack = recorded.stack("1 1 259:9 / / rw - ext4 /dev/nvme0n1 rw");
    let words = stack.disks[0].words();
    assert!(words.contains("NVMe on 1 lane of PCIe 3") && words.contains("4 lanes"), "{words}");
    assert!(stack.notes()[0].contains("1 of its 4 lanes"), "{:?}", stack.notes());
    assert_eq!(stack.disks[0].temperature_celsius, Some(43.85));
}

#[test]
fn a_share_and_memory_have_no_disk() {
    let recorded = Recorded::new();
    let share = recorded.stack("1 1 0:50 / /mnt rw - nfs4 server:/data rw,vers=4.2");
    assert!(!share.has_disk() && share.layers.is_empty());
    assert_eq!(
        share.facts()[1],
        ("file system", "nfs4 on server:/data, mounted rw,vers=4.2".into())
    );
    assert_eq!(DeviceCounters::read(recorded.0.path(), &share), None);
    let memory = recorded.stack("1 1 0:50 / /mnt rw - tmpfs tmpfs rw");
    assert!(memory.notes()[0].contains("memory"));
}

#[test]
fn a_tree_of_links_that_goes_in_circles_ends() {
    let recorded = Recorded::new();
    let dm = "sys/devices/virtual/block/dm-0";
    recorded.file(&format!("{dm}/dm/uuid"), "LVM-x").link(&format!("{dm}/slaves/dm-0"), dm);
    recorded.link("sys/dev/block/253:0", dm);
    let stack = recorded.stack("1 1 253:0 / / rw - xfs /dev/dm-0 rw");
    assert!(stack.layers.len() < 10 && stack.layers[0] == "LVM volume");
}

#[test]
fn this_computer_tells_what_its_own_disk_is() {
    let stack = StorageStack::of(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap();
    assert!(!stack.file_system.kind.is_empty() && !stack.mount_point.is_empty());
    assert_eq!(stack.has_disk(), DeviceCounters::read(Path::new("/"), &stack).is_some());
}
