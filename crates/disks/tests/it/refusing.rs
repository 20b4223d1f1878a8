//! No disk is written over that is in use, that was not meant, or that is another by now.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use holdall_disks::{Candidate, DiskError, Identity, Reason, list};
use holdall_testkit::is_there;

use crate::loops::{Elsewhere, Loop, Mounted, Reader, succeed, text};

const MIB: u64 = 1 << 20;

fn ext4(device: &Path) {
    succeed(&["mkfs.ext4", "-q", "-F", text(device)]);
}

/// Why a device is refused, in words.
fn refused(device: &Path) -> String {
    Candidate::at(device).and_then(Candidate::claim).unwrap_err().to_string()
}

#[test]
fn a_disk_that_is_mounted_is_refused_and_taken_once_it_is_not() {
    let Some(disk) = Loop::new(32 * MIB) else { return };
    ext4(disk.device());
    let mounted = Mounted::new(disk.device(), &disk.path("mount"));
    let said = refused(disk.device());
    let expected = format!("{} is mounted at {}", disk.name(), mounted.point().display());
    assert!(said.ends_with(&expected), "{said}");
    drop(mounted);
    let claim = Candidate::at(disk.device()).unwrap().claim().unwrap();
    assert_eq!(claim.content().unwrap().words(), "ext4");
}

#[test]
fn what_is_mounted_where_it_is_not_seen_is_refused_by_the_kernel() {
    let Some(disk) = Loop::new(32 * MIB) else { return };
    ext4(disk.device());
    let point = disk.path("mount");
    fs::create_dir(&point).unwrap();
    let elsewhere = Elsewhere::new(&format!("mount {} {}", text(disk.device()), text(&point)));
    let said = refused(disk.device());
    assert!(said.contains("as the kernel says"), "{said}");
    let listed =
        |name: &str| list::list().unwrap().into_iter().find(|one| one.identity.name == name);
    assert_eq!(listed(&disk.name()).unwrap().refused, [Reason::Kernel]);
    drop(elsewhere);
    Candidate::at(disk.device()).unwrap().claim().unwrap();
}

#[test]
fn a_disk_is_refused_for_a_partition_that_is_in_use_and_a_partition_for_not_being_a_disk() {
    let Some(disk) = Loop::new(64 * MIB) else { return };
    let table = "printf 'label: gpt\\n,16M\\n,16M\\n' | sfdisk -q --no-reread --no-tell-kernel ";
    succeed(&["sh", "-c", &format!("{table}{0} && partx -u {0}", text(disk.device()))]);
    let second = Path::new("/dev").join(format!("{}p2", disk.name()));
    ext4(&second);
    let mounted = Mounted::new(&second, &disk.path("mount"));
    let said = refused(disk.device());
    assert!(said.contains(&format!("{}p2 is mounted at", disk.name())), "{said}");
    drop(mounted);
    let said = refused(&second);
    assert!(said.ends_with(&format!("it is a partition of {}", disk.name())), "{said}");

    let point = disk.path("mount");
    let elsewhere = Elsewhere::new(&format!("mount {} {}", text(&second), text(&point)));
    let said = refused(disk.device());
    assert!(said.contains("as the kernel says"), "{said}");
    drop(elsewhere);
    let content = Candidate::at(disk.device()).unwrap().claim().unwrap().content().unwrap();
    assert_eq!(content.words(), format!("gpt, ext4 on {}p2", disk.name()));
}

#[test]
fn a_disk_in_use_as_swap_is_refused() {
    let Some(disk) = Loop::new(32 * MIB) else { return };
    succeed(&["mkswap", text(disk.device())]);
    let swapped = Command::new("swapon").arg(disk.device()).output().unwrap();
    if !is_there("swap (swapon)", swapped.status.success()) {
        return;
    }
    let said = refused(disk.device());
    succeed(&["swapoff", text(disk.device())]);
    assert!(said.ends_with(&format!("{} is in use as swap", disk.name())), "{said}");
}

#[test]
fn a_member_of_a_btrfs_that_is_mounted_for_another_disk_is_refused() {
    let (Some(one), Some(other)) = (Loop::new(160 * MIB), Loop::new(160 * MIB)) else { return };
    succeed(&["mkfs.btrfs", "-q", "-f", text(one.device()), text(other.device())]);
    succeed(&["btrfs", "-q", "device", "scan", text(one.device()), text(other.device())]);
    let _mounted = Mounted::new(one.device(), &one.path("mount"));
    for disk in [&one, &other] {
        let said = refused(disk.device());
        let expected = format!("{} belongs to a btrfs that is in use", disk.name());
        assert!(said.contains(&expected), "{said}");
    }
}

#[test]
fn a_disk_that_a_loop_device_shows_and_one_that_is_read_only_are_refused() {
    let Some(disk) = Loop::new(32 * MIB) else { return };
    let Some(above) = Reader::new(3003) else { return };
    above.put_in(disk.device());
    let said = refused(disk.device());
    assert!(said.ends_with(&format!("loop3003 shows what is on {}", disk.name())), "{said}");
    let said = refused(&above.device());
    assert!(
        said.contains(&format!("it shows what is on {}, which", text(disk.device()))),
        "{said}"
    );

    let Some(fixed) = Loop::with_options(32 * MIB, &["--read-only"]) else { return };
    let said = refused(fixed.device());
    assert!(said.ends_with(&format!("{} is read-only", fixed.name())), "{said}");
}

#[test]
fn a_loop_device_is_refused_if_another_one_shows_the_same_file_by_whatever_name() {
    let Some(disk) = Loop::new(32 * MIB) else { return };
    let Some(other) = Reader::new(3004) else { return };
    ext4(disk.device());
    let link = disk.path("other-name");
    fs::hard_link(disk.image_path(), &link).unwrap();
    other.put_in(&link);
    let mounted = Mounted::new(&other.device(), &disk.path("mount"));
    let file = mounted.point().join("file");
    fs::write(&file, b"kept").unwrap();
    let said = refused(disk.device());
    let point = mounted.point().display();
    let told = format!("loop3004 is mounted at {point}; loop3004 shows the same file");
    assert!(said.ends_with(&told), "{said}");
    let listed = list::list().unwrap();
    let listed = listed.iter().find(|one| one.identity.name == disk.name()).unwrap();
    assert!(listed.refused.contains(&Reason::SameFile { by: "loop3004".into() }), "{listed:?}");
    assert_eq!(fs::read(&file).unwrap(), b"kept");

    drop(mounted);
    let said = refused(disk.device());
    assert!(said.ends_with("is refused: loop3004 shows the same file"), "{said}");
    other.take_out();
    let claim = Candidate::at(disk.device()).unwrap().claim().unwrap();
    other.put_in(&link);
    let said = claim.check().unwrap_err().to_string();
    assert!(said.ends_with("loop3004 shows the same file"), "{said}");
}

#[test]
fn a_loop_device_on_a_file_in_use_as_swap_is_refused() {
    let Some(disk) = Loop::full(32 * MIB) else { return };
    succeed(&["chmod", "600", text(disk.image_path())]);
    succeed(&["mkswap", text(disk.image_path())]);
    let swapped = Command::new("swapon").arg(disk.image_path()).output().unwrap();
    if !is_there("swap to a file (swapon)", swapped.status.success()) {
        return;
    }
    let said = Candidate::at(disk.device()).and_then(Candidate::claim);
    succeed(&["swapoff", text(disk.image_path())]);
    let said = said.unwrap_err().to_string();
    assert!(said.ends_with("the file that it shows is in use as swap"), "{said}");
}

#[test]
fn what_another_program_has_for_itself_is_refused_and_so_is_what_it_locked() {
    let Some(disk) = Loop::new(32 * MIB) else { return };
    let claim = Candidate::at(disk.device()).unwrap().claim().unwrap();
    assert!(refused(disk.device()).contains("as the kernel says"));
    drop(claim);
    let shared = holdall_sys::lock::Held::shared(fs::File::open(disk.device()).unwrap()).unwrap();
    let locked = Candidate::at(disk.device()).unwrap().claim();
    assert!(matches!(locked, Err(DiskError::Locked { .. })), "{locked:?}");
    drop(shared);
    Candidate::at(disk.device()).unwrap().claim().unwrap();
}

#[test]
fn a_disk_that_took_the_place_of_the_one_that_was_shown_is_not_taken() {
    let Some(reader) = Reader::new(3001) else { return };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let image = folder.path().join("image");
    fs::write(&image, vec![7; 8 << 20]).unwrap();
    reader.put_in(&image);
    let shown = Candidate::at(&reader.device()).unwrap();
    // The same image is the same in everything but the kernel's count.
    reader.take_out();
    reader.put_in(&image);
    match shown.claim() {
        Err(DiskError::Changed { was, is: Some(is) }) => {
            assert_eq!((&was.name, was.size_bytes, &was.file), (&is.name, is.size_bytes, &is.file));
            assert_ne!(was.sequence, is.sequence);
        }
        other => panic!("{other:?}"),
    }
    let shown = Candidate::at(&reader.device()).unwrap();
    reader.take_out();
    assert!(matches!(shown.claim(), Err(DiskError::Changed { is: Some(_), .. })));
    assert_eq!(fs::read(&image).unwrap(), vec![7; 8 << 20], "nothing was written");
}

#[test]
fn a_link_as_udev_makes_them_stands_for_its_disk_and_what_is_no_disk_is_named() {
    let Some(disk) = Loop::new(32 * MIB) else { return };
    let link = disk.path("usb-Maker_Disk_1234-0:0");
    symlink(disk.device(), &link).unwrap();
    assert_eq!(Candidate::at(&link).unwrap().identity().name, disk.name());
    for (path, is) in [(disk.path(""), "a folder"), (disk.image_path().to_owned(), "a file")] {
        let said = Candidate::at(&path).unwrap_err().to_string();
        assert!(said.ends_with(&format!("is no disk, but {is}")), "{said}");
    }
    let said = Candidate::at(Path::new("/dev/null")).unwrap_err().to_string();
    assert_eq!(said, "/dev/null is no disk, but something else");
    let gone = Candidate::at(&disk.path("gone"));
    assert!(matches!(gone, Err(DiskError::NotThere { .. })), "{gone:?}");
    fs::remove_file(&link).unwrap();
    symlink(&link, &link).unwrap();
    Candidate::at(&link).unwrap_err();
}

#[test]
fn this_computers_own_disk_is_refused_as_the_systems_if_it_has_one() {
    let listed = list::list().unwrap();
    for own in listed.iter().filter(|disk| !disk.identity.name.starts_with("loop")) {
        let is_system = |reason: &Reason| matches!(reason, Reason::System { .. });
        if own.parts.iter().any(|part| part.mounted_at.contains(&"/".to_owned())) {
            assert!(own.refused.iter().any(is_system), "{own:?}");
            let path = Path::new("/dev").join(&own.identity.name);
            assert!(refused(&path).contains("the system runs from it"));
        }
    }
}

#[test]
fn a_loop_device_is_listed_with_what_is_on_it() {
    let Some(disk) = Loop::new(32 * MIB) else { return };
    succeed(&["mkfs.ext4", "-q", "-F", "-L", "photos", text(disk.device())]);
    let listed = list::list().unwrap();
    let own = listed.iter().find(|one| one.identity.name == disk.name()).unwrap();
    assert_eq!(own.refused, []);
    assert_eq!(own.parts[0].content.as_ref().unwrap().words(), "ext4 \"photos\"");
    let again = Identity::read(Path::new("/"), &disk.name()).unwrap();
    assert_eq!((own.identity.size_bytes, &own.identity), (32 * MIB, &again));
}
