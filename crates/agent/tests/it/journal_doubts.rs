//! What the kernel does not tell, or tells of another place: the journal names it all the same, or has everything walked.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use holdall_agent::journal::{Queue, Reason, Walk};

use crate::journal::{Runs, begun, told, unmount};

/// Maps a file as shared and closes it.
const MAP: &str = "import ctypes, mmap, os, sys, threading, time
file = os.open(sys.argv[1], os.O_RDWR)
map = mmap.mmap(file, 1)
os.close(file)
map[0] = 65
c = ctypes.CDLL(None)
";
/// Makes the map one that can only be read.
const PROTECT: &str = "place = ctypes.addressof(ctypes.c_char.from_buffer(map))
assert c.mprotect(ctypes.c_void_p(place), 4096, mmap.PROT_READ) == 0
print(flush=True)
sys.stdin.read()
";
/// Ends the first thread alone; 60 is `exit` where processors are as most are.
const END_FIRST_THREAD: &str = "threading.Thread(target=sys.stdin.read).start()
print(flush=True)
c.syscall(60, 0)
";

/// A process that has run the script up to where it waits.
struct Mapped(Child);

impl Mapped {
    fn start(script: &[&str], file: &Path) -> Self {
        let mut command = Command::new("python3");
        command.arg("-c").arg(script.concat()).arg(file);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        Self(child)
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn mount(args: &[&OsStr]) {
    assert!(Command::new("mount").args(args).status().unwrap().success(), "{args:?}");
}

#[test]
fn a_file_whose_map_can_only_be_read_now_is_named() {
    let Some((place, mut runs)) = begun("ext4", Queue::Unbounded) else { return };
    let source = place.source();
    let _mapped = Mapped::start(&[MAP, PROTECT], &source.join("a/file"));
    runs.run();
    for _ in 0..2 {
        assert_eq!(told(runs.run(), &source), ["a"]);
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_file_that_is_mapped_by_a_process_whose_first_thread_has_ended_is_named() {
    let Some((place, mut runs)) = begun("ext4", Queue::Unbounded) else { return };
    let mapped = Mapped::start(&[MAP, END_FIRST_THREAD], &place.source().join("a/file"));
    let state = format!("/proc/{}/stat", mapped.0.id());
    while !fs::read_to_string(&state).unwrap().contains(") Z ") {
        std::thread::yield_now();
    }
    runs.run();
    for _ in 0..2 {
        assert_eq!(told(runs.run(), &place.source()), ["a"]);
    }
}

#[test]
fn the_image_of_a_mounted_disk_is_named_whatever_it_is_called() {
    let Some((place, mut runs)) = begun("ext4", Queue::Unbounded) else { return };
    let (source, point) = (place.source(), place.folder.path().join("point"));
    let image = source.join("a/b").join(OsStr::from_bytes(b"image\xff\n"));
    fs::File::create(&image).unwrap().set_len(16 << 20).unwrap();
    let made = Command::new("/usr/sbin/mkfs.ext4").args(["-q", "-F"]).arg(&image).status();
    assert!(made.unwrap().success());
    fs::create_dir(&point).unwrap();
    mount(&["-o".as_ref(), "loop".as_ref(), image.as_os_str(), point.as_os_str()]);
    runs.run();
    let walks = [runs.run(), runs.run()];
    unmount(&point, &[]);
    for walk in walks {
        assert_eq!(told(walk, &source), ["a/b"]);
    }
}

/// A loop device, without a file system.
struct Loop(String);

impl Loop {
    fn over(image: &Path) -> Self {
        let made = Command::new("losetup").args(["-f", "--show"]).arg(image).output().unwrap();
        assert!(made.status.success(), "{made:?}");
        Self(String::from_utf8(made.stdout).unwrap().trim().to_owned())
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        assert!(Command::new("losetup").args(["-d", &self.0]).status().unwrap().success());
    }
}

#[test]
fn an_image_whose_path_is_another_file_s_or_none_has_everything_walked() {
    let Some((place, mut runs)) = begun("ext4", Queue::Unbounded) else { return };
    let (image, point) = (place.source().join("a/image"), place.folder.path().join("point"));
    fs::File::create(&image).unwrap().set_len(1 << 20).unwrap();
    fs::create_dir(&point).unwrap();
    mount(&["--bind".as_ref(), place.source().join("a").as_os_str(), point.as_os_str()]);
    let device = Loop::over(&point.join("image"));
    runs.run();
    assert!(matches!(runs.run(), Walk::Changes { .. }));
    // Nothing has that path any more, and then another file.
    unmount(&point, &["-l"]);
    for there in [None, Some("another")] {
        there.iter().for_each(|other| fs::write(point.join("image"), other).unwrap());
        runs.run();
        assert_eq!(runs.run(), Walk::Full(Reason::OpenFiles));
    }
    drop(device);
    runs.run();
    let walk = runs.run();
    assert!(matches!(walk, Walk::Changes { .. }), "{walk:?}");
}

#[test]
fn what_lies_behind_a_hidden_mount_is_watched() {
    let Some((place, _)) = begun("tmpfs", Queue::Unbounded) else { return };
    let (part, above) = (place.outside().join("part"), place.outside().join("above"));
    let within = above.join("within");
    fs::create_dir_all(&part).unwrap();
    fs::create_dir_all(&within).unwrap();
    mount(&["--bind".as_ref(), part.as_os_str(), within.as_os_str()]);
    mount(&["-t".as_ref(), "tmpfs".as_ref(), "holdall-test".as_ref(), above.as_os_str()]);
    let source = within.join("source");
    fs::create_dir_all(&source).unwrap();
    let mut runs = Runs::new(&source, Queue::Unbounded);
    runs.run();
    fs::write(source.join("file"), "x").unwrap();
    let walk = runs.run();
    drop(runs);
    unmount(&above, &[]);
    unmount(&within, &[]);
    assert_eq!(told(walk, &source), [""]);
}

#[test]
fn a_folder_that_is_mounted_elsewhere_is_walked_as_one_above_it_may_be_renamed() {
    let Some((place, _)) = begun("ext4", Queue::Unbounded) else { return };
    let point = place.folder.path().join("point");
    fs::create_dir(&point).unwrap();
    mount(&["--bind".as_ref(), place.source().as_os_str(), point.as_os_str()]);
    let mut runs = Runs::new(&point, Queue::Unbounded);
    runs.run();
    let walk = runs.run();
    drop(runs);
    unmount(&point, &[]);
    assert!(matches!(walk, Walk::Full(Reason::Unwatched { .. })), "{walk:?}");
}

#[test]
fn a_file_that_is_written_by_another_name_has_everything_walked() {
    let Some((place, mut runs)) = begun("tmpfs", Queue::Unbounded) else { return };
    let other = place.outside().join("name");
    fs::hard_link(place.source().join("a/file"), &other).unwrap();
    assert_eq!(runs.run(), Walk::Full(Reason::SeveralNames));
    assert!(matches!(runs.run(), Walk::Changes { .. }));
    // The other name may be one of rules, such as `.holdallignore`.
    fs::write(&other, "*.o").unwrap();
    assert_eq!(runs.run(), Walk::Full(Reason::SeveralNames));
}
