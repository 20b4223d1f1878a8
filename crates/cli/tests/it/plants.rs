//! Bottlenecks that tests plant for real: processors and disks that are rationed, calls that take longer.
//! What this computer cannot do is a failure under `cargo xtask torture`, and else said and left out.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::house::{Machine, folder};
use holdall_testkit::is_there;

/// A control group that rations something; it goes when this goes.
pub(crate) struct Ration {
    group: PathBuf,
}

impl Ration {
    /// So many hundredths of a core.
    pub(crate) fn of_processor(name: &str, percent: u32) -> Option<Self> {
        let quota = percent * 1000;
        let unified = ("cpu.max".to_owned(), format!("{quota} 100000"));
        let older = ("cpu.cfs_quota_us".to_owned(), quota.to_string());
        Self::make(name, "cpu", unified, older)
    }

    /// So many bytes a second written to the disk under `folder`.
    pub(crate) fn of_writing(name: &str, folder: &Path, rate: u64) -> Option<Self> {
        let disk = disk_of(folder)?;
        let unified = ("io.max".to_owned(), format!("{disk} wbps={rate}"));
        let older = ("blkio.throttle.write_bps_device".to_owned(), format!("{disk} {rate}"));
        Self::make(name, "blkio", unified, older)
    }

    /// So many bytes a second read from the disk under `folder`.
    pub(crate) fn of_reading(name: &str, folder: &Path, rate: u64) -> Option<Self> {
        let disk = disk_of(folder)?;
        let unified = ("io.max".to_owned(), format!("{disk} rbps={rate}"));
        let older = ("blkio.throttle.read_bps_device".to_owned(), format!("{disk} {rate}"));
        Self::make(name, "blkio", unified, older)
    }

    /// No limit of memory: what a group may not exceed is freed by killing. [`Squeeze`] takes it.
    fn of_squeezed_memory(name: &str) -> Option<Self> {
        let unified = ("memory.max".to_owned(), "max".to_owned());
        let older = ("memory.swappiness".to_owned(), "100".to_owned());
        Self::make(name, "memory", unified, older)
    }

    fn make(
        name: &str,
        controller: &str,
        unified: (String, String),
        older: (String, String),
    ) -> Option<Self> {
        let root = Path::new("/sys/fs/cgroup");
        let is_unified = root.join("cgroup.controllers").exists();
        let ((file, value), parent) = match is_unified {
            true => (unified, root.to_owned()),
            false => (older, root.join(controller)),
        };
        let group = parent.join(format!("holdall-test-{}-{name}", std::process::id()));
        let made = fs::create_dir(&group).is_ok();
        let ration = made.then_some(Self { group });
        let set = ration.filter(|ration| fs::write(ration.group.join(file), value).is_ok());
        is_there(&format!("a control group for {controller} (root)"), set.is_some())
            .then_some(())?;
        set
    }

    /// What comes before a command that gets no more than this.
    pub(crate) fn prefix(&self) -> Vec<OsString> {
        let mut prefix: Vec<OsString> =
            ["sh", "-c", "echo $$ > \"$0\" && exec \"$@\""].map(OsString::from).to_vec();
        prefix.push(self.group.join("cgroup.procs").into());
        prefix
    }
}

impl Drop for Ration {
    fn drop(&mut self) {
        let begun = Instant::now();
        // A group may take a moment to notice that its last process is gone.
        while fs::remove_dir(&self.group).is_err() && begun.elapsed() < Duration::from_secs(5) {
            std::thread::yield_now();
        }
    }
}

/// The whole disk under a folder, `MAJOR:MINOR`; `None` if it lies on none.
fn disk_of(folder: &Path) -> Option<String> {
    let device = fs::metadata(folder).expect("it is there").dev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let known = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok();
    let whole = known.map(|known| match known.join("partition").exists() {
        true => known.parent().map_or(known.clone(), Path::to_owned),
        false => known,
    });
    let disk = whole.and_then(|disk| fs::read_to_string(disk.join("dev")).ok());
    is_there("a disk under the tests' folder", disk.is_some()).then_some(())?;
    Some(disk?.trim().to_owned())
}

/// What the largest of the tests' worlds takes in memory, and as much again.
const MEMORY_BYTES: u64 = 768 << 20;

/// A folder in memory, where no disk can be what limits; `None` where there is no room for it.
pub(crate) fn memory_folder() -> Option<TempDir> {
    let place = Path::new("/dev/shm");
    let has_room = holdall_sys::disk::free_bytes(place).is_ok_and(|free| free >= MEMORY_BYTES);
    let made = tempfile::tempdir_in(place).ok().filter(|_| has_room);
    is_there("768 MiB of memory at /dev/shm", made.is_some()).then_some(made?)
}

/// Makes the page cache forget a file that is durable.
pub(crate) fn forget_cached(file: &Path) {
    let file = fs::File::open(file).expect("it is there");
    file.sync_all().expect("it can be synced");
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("advice");
}

/// A file that the computer swaps to; it is taken back when this goes.
struct Swap {
    file: PathBuf,
    _folder: TempDir,
}

impl Swap {
    /// So many bytes; `None` where that cannot be done.
    fn on(bytes: usize) -> Option<Self> {
        let folder = folder();
        let swap = Self { file: folder.path().join("swap"), _folder: folder };
        // A file with holes is none to swap to.
        fs::write(&swap.file, vec![0; bytes]).expect("room");
        let done = |program: &str| {
            let run = Command::new(program).arg(&swap.file).output();
            run.is_ok_and(|output| output.status.success())
        };
        let is_on = done("/usr/sbin/mkswap") && done("/usr/sbin/swapon");
        is_there("mkswap and swapon (root)", is_on).then_some(swap)
    }
}

impl Drop for Swap {
    fn drop(&mut self) {
        // If it was never on, there is nothing to take back.
        let _ = Command::new("/usr/sbin/swapoff").arg(&self.file).output();
    }
}

/// Takes from a process all of its memory again and again, as a computer does whose other programs want
/// it: pages go to swap, and come back when they are used.
pub(crate) struct Squeeze {
    group: Ration,
    over: Arc<AtomicBool>,
    squeezing: Option<JoinHandle<()>>,
    _swap: Swap,
}

impl Squeeze {
    /// With such pauses; `None` where that cannot be done.
    pub(crate) fn every(pause: Duration) -> Option<Self> {
        let swap = Swap::on(512 << 20)?;
        let group = Ration::of_squeezed_memory("m")?;
        // Version 1 of control groups, and version 2.
        let all = [("memory.force_empty", "0"), ("memory.reclaim", "1G")];
        let squeeze = all.map(|(file, value)| (group.group.join(file), value));
        let squeeze = squeeze.into_iter().find(|(file, _)| file.exists());
        is_there("a control group whose memory can be taken", squeeze.is_some()).then_some(())?;
        let (file, value) = squeeze?;
        let over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&over);
        let squeezing = std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                // It is refused where not everything can be taken at once.
                let _ = fs::write(&file, value);
                std::thread::sleep(pause);
            }
        });
        Some(Self { group, over, squeezing: Some(squeezing), _swap: swap })
    }

    /// What comes before a command that is squeezed.
    pub(crate) fn prefix(&self) -> Vec<OsString> {
        self.group.prefix()
    }
}

impl Drop for Squeeze {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(squeezing) = self.squeezing.take() {
            squeezing.join().expect("it only writes");
        }
    }
}

/// Other work that keeps all cores of this computer busy.
pub(crate) struct OtherWork {
    over: Arc<AtomicBool>,
    working: Vec<JoinHandle<()>>,
}

impl OtherWork {
    pub(crate) fn on_all_cores() -> Self {
        Self::of_loops(std::thread::available_parallelism().map_or(1, usize::from))
    }

    /// So many busy loops.
    pub(crate) fn of_loops(loops: usize) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let begin = |_| {
            let ended = Arc::clone(&over);
            std::thread::spawn(move || {
                while !ended.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        };
        let working = (0..loops).map(begin);
        Self { working: working.collect(), over }
    }
}

impl Drop for OtherWork {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for work in self.working.drain(..) {
            work.join().expect("it only counts time");
        }
    }
}

/// A library that makes every fsync of a process take longer, put before the C library's.
pub(crate) struct SlowFsync {
    folder: TempDir,
}

const SLOW_FSYNC: &str = "#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>
int fsync(int fd) { usleep(DELAY_US); return syscall(SYS_fsync, fd); }
int fdatasync(int fd) { usleep(DELAY_US); return syscall(SYS_fdatasync, fd); }
";

impl SlowFsync {
    /// `None` without a C compiler.
    pub(crate) fn by(delay: Duration) -> Option<Self> {
        let slow = Self { folder: folder() };
        let source = slow.folder.path().join("slow.c");
        fs::write(&source, SLOW_FSYNC).expect("room");
        let mut command = Command::new("cc");
        command.args(["-shared", "-fPIC", "-O1"]).arg(format!("-DDELAY_US={}", delay.as_micros()));
        let built = command.arg("-o").arg(slow.library()).arg(&source).status();
        is_there("a C compiler", built.is_ok_and(|status| status.success())).then_some(slow)
    }

    /// What goes into `LD_PRELOAD`.
    pub(crate) fn library(&self) -> PathBuf {
        self.folder.path().join("slow.so")
    }
}

/// An administrator's scrubs of all that a server keeps, several at once and again and again, until
/// this goes. Each has to find everything whole, whatever is stored meanwhile.
pub(crate) struct Scrubs {
    over: Arc<AtomicBool>,
    scrubbing: Vec<JoinHandle<()>>,
}

impl Scrubs {
    /// So many at once, by the running server with that data folder.
    pub(crate) fn of(data: &Path, at_once: usize) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let begin = |_| {
            let (administrator, ended) = (Machine::new(), Arc::clone(&over));
            let data = data.to_owned();
            std::thread::spawn(move || {
                while !ended.load(Ordering::Relaxed) {
                    administrator.administer(&data, &["scrub"]).expect(0);
                }
            })
        };
        let scrubbing = (0..at_once).map(begin).collect();
        Self { over, scrubbing }
    }
}

impl Drop for Scrubs {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let ended: Vec<_> = self.scrubbing.drain(..).map(JoinHandle::join).collect();
        // A second panic beside another would end all tests.
        let all_well = ended.iter().all(Result::is_ok);
        assert!(all_well || std::thread::panicking(), "a scrub did not end well");
    }
}
