//! File systems that tests mount: small ones that fill up, and shares over the network.

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use holdall_testkit::{Process, is_there};
use rustix::fs::FallocateFlags;
use tempfile::TempDir;

use crate::house::{Machine, folder, is_root};

/// What a file system on a disk reads at once, at least.
pub(crate) const SECTOR_BYTES: usize = 4096;

/// A command in a mount namespace of its own, after a script that may mount there.
pub(crate) fn namespace(machine: &Machine, script: &str, args: &[&str]) -> Command {
    let script = format!("set -e; {script}; exec \"$@\"");
    machine.command_by(&["unshare", "-m", "sh", "-c", &script, "sh"], args)
}

/// A file system that is mounted until this is dropped.
pub(crate) struct Mount {
    point: PathBuf,
}

impl Mount {
    /// An empty one in memory, of so many bytes at most; `None` for who may not mount.
    pub(crate) fn in_memory(point: &Path, bytes: u64) -> Option<Self> {
        fs::create_dir_all(point).expect("a folder");
        let options = format!("size={bytes},mode=755");
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", &options, "holdall-test"]).arg(point);
        let mounted = command.output().expect("it starts").status.success();
        is_there("the right to mount (root)", mounted).then(|| Self { point: point.to_owned() })
    }

    /// An empty ext4 in a file beside, of so many bytes; `None` for who may not mount.
    pub(crate) fn ext4(point: &Path, bytes: u64) -> Option<Self> {
        Self::ext4_made_with(point, bytes, &[])
    }

    /// The same, made with more options.
    pub(crate) fn ext4_made_with(point: &Path, bytes: u64, more: &[&str]) -> Option<Self> {
        let make = [&["/usr/sbin/mkfs.ext4", "-q", "-F", "-m", "0"], more].concat();
        Self::on_image(point, bytes, "e2fsprogs", &make)
    }

    /// The same of a btrfs, which knows when the disk gives back other bytes than it got, and gives none then.
    pub(crate) fn btrfs(point: &Path, bytes: u64) -> Option<Self> {
        Self::on_image(point, bytes, "btrfs-progs", &["/usr/sbin/mkfs.btrfs", "-q", "-m", "single"])
    }

    /// What is at a path, mounted once more on what is at `point`, by who may mount.
    pub(crate) fn bind(from: &Path, point: &Path) -> Self {
        succeeds(Command::new("mount").arg("--bind").args([from, point]));
        Self { point: point.to_owned() }
    }

    fn on_image(point: &Path, bytes: u64, package: &str, make: &[&str]) -> Option<Self> {
        fs::create_dir_all(point).expect("a folder");
        let image = point.with_extension("image");
        fs::File::create(&image).and_then(|file| file.set_len(bytes)).expect("room");
        let has = Path::new(make[0]).is_file();
        is_there(&format!("{} ({package})", make[0]), has).then_some(())?;
        succeeds(Command::new(make[0]).args(&make[1..]).arg(&image));
        let mut command = Command::new("mount");
        command.args(["-o", "loop"]).arg(&image).arg(point);
        let mounted = command.output().expect("it starts").status.success();
        is_there("the right to mount an image (root, loop devices)", mounted)
            .then(|| Self { point: point.to_owned() })
    }

    /// Turns a bit of each of these blocks of files on a btrfs, where the disk keeps them: from then on they cannot
    /// be read. Nobody may have anything open there.
    pub(crate) fn lose(&self, blocks: &[&[u8]]) {
        succeeds(Command::new("umount").arg(&self.point));
        let image = self.point.with_extension("image");
        let disk = fs::OpenOptions::new().read(true).write(true).open(&image).expect("it is ours");
        let sectors = disk.metadata().expect("it is ours").len() / SECTOR_BYTES as u64;
        let (mut sector, mut lost) = (vec![0; SECTOR_BYTES], 0);
        for at in (0..sectors).map(|number| number * SECTOR_BYTES as u64) {
            disk.read_exact_at(&mut sector, at).expect("it is ours");
            if blocks.iter().any(|block| sector.starts_with(block)) {
                disk.write_all_at(&[sector[0] ^ 1], at).expect("it is ours");
                lost += 1;
            }
        }
        assert_eq!(lost, blocks.len(), "each lies in one place");
        succeeds(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&self.point));
    }

    /// Pulls one on an image out, as a cable that comes off: what is open there fails for good.
    pub(crate) fn pull_out(&self) {
        // FS_IOC_SHUTDOWN, without writing anything any more.
        let script = "import fcntl,os,struct,sys\n\
                      fcntl.ioctl(os.open(sys.argv[1], 0), 0x8004587d, struct.pack('I', 2))";
        succeeds(Command::new("python3").args(["-c", script]).arg(&self.point));
        succeeds(Command::new("umount").arg("-l").arg(&self.point));
    }

    /// Puts it back, as another device.
    pub(crate) fn put_back(&self) {
        let image = self.point.with_extension("image");
        let device = succeeds(Command::new("losetup").args(["--find", "--show"]).arg(image));
        succeeds(Command::new("mount").arg(device.trim()).arg(&self.point));
        // It goes with the mount.
        succeeds(Command::new("losetup").args(["-d", device.trim()]));
    }

    /// An empty one that takes names for one that differ in upper and lower case, or in how Unicode writes them; it
    /// ends with its process, and shows nothing then.
    pub(crate) fn folding(point: &Path) -> Option<(Self, Process)> {
        Self::by_script(point, "folding_disk.py")
    }

    /// One that answers nothing; it is dead once its process is.
    pub(crate) fn silent(point: &Path) -> Option<(Self, Process)> {
        Self::by_script(point, "silent_disk.py")
    }

    fn by_script(point: &Path, script: &str) -> Option<(Self, Process)> {
        fs::create_dir_all(point).expect("a folder");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it").join(script);
        let has_fuse = fs::OpenOptions::new().read(true).write(true).open("/dev/fuse").is_ok();
        let may_mount = is_root("mount a file system") && is_there("/dev/fuse", has_fuse);
        may_mount.then_some(())?;
        let mut command = Command::new("/usr/bin/python3");
        let mut process = Process::spawn(command.arg(script).arg(point)).expect("it starts");
        process.wait_for_line("mounted").expect("it mounts");
        Some((Self { point: point.to_owned() }, process))
    }

    /// An empty one that refuses direct access, and does not tell how much room it has.
    pub(crate) fn without_direct(point: &Path) -> Option<Self> {
        fs::create_dir_all(point).expect("a folder");
        let mut command = Command::new("mount");
        command.args(["-t", "ramfs", "holdall-test"]).arg(point);
        let mounted = command.output().expect("it starts").status.success();
        is_there("the right to mount (root)", mounted).then(|| Self { point: point.to_owned() })
    }

    /// Where it is.
    pub(crate) fn point(&self) -> &Path {
        &self.point
    }

    /// Gives one in memory another size.
    pub(crate) fn resize(&self, bytes: u64) {
        let options = format!("remount,size={bytes}");
        succeeds(Command::new("mount").args(["-o", &options]).arg(&self.point));
    }

    /// Takes all room of a file system on a disk but so many bytes, without writing that much.
    pub(crate) fn take_but(&self, left_bytes: u64) -> PathBuf {
        let path = self.point.join("taken");
        let file = fs::File::create(&path).expect("room for a name");
        let free = || holdall_sys::disk::free_bytes(&self.point).expect("it is mounted");
        let mut taken = 0;
        for step in [1 << 20, 4 << 10] {
            // The last blocks may be those that say which ones are taken.
            while free() >= left_bytes + step
                && rustix::fs::fallocate(&file, FallocateFlags::empty(), taken, step).is_ok()
            {
                taken += step;
            }
        }
        path
    }

    /// Fills it with a file until so many bytes are left.
    pub(crate) fn fill_but(&self, left_bytes: u64) -> PathBuf {
        let filler = self.point.join("lost+found");
        let free = holdall_sys::disk::free_bytes(&self.point).expect("it is mounted");
        fs::write(&filler, vec![1; free.saturating_sub(left_bytes) as usize]).expect("room");
        filler
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // A panic may have left a process with a file open there.
        let _ = Command::new("umount").arg("-l").arg(&self.point).status();
    }
}

/// A folder for very many files, with paths of any length. Where one may mount it is an ext4 with a journal:
/// without one, ext4 makes files 20 times slower once many were deleted.
pub(crate) struct ManyFiles {
    folder: TempDir,
    mount: Option<Mount>,
}

impl ManyFiles {
    pub(crate) fn new() -> Self {
        let folder = folder();
        // It takes as much room as what is in it.
        let mount = Mount::ext4(&folder.path().join("many"), 8 << 30);
        Self { folder, mount }
    }

    /// A machine of that name, which has no password.
    pub(crate) fn machine(&self, name: &str) -> Machine {
        let place = self.mount.as_ref().map_or_else(|| self.folder.path(), Mount::point);
        let folder = place.join(name);
        fs::create_dir_all(&folder).expect("room");
        Machine::in_folder(folder).with_password(None)
    }
}

impl Drop for ManyFiles {
    fn drop(&mut self) {
        if self.mount.is_none() {
            // Its paths may be longer than the system takes at once.
            let _ = Command::new("rm").arg("-rf").arg(self.folder.path()).status();
        }
    }
}

/// A folder that other computers, so to speak, reach over sshfs: a real server, which runs for as long
/// as somebody has mounted it.
pub(crate) struct Share {
    /// Last, so that everything is unmounted before.
    folder: TempDir,
}

impl Share {
    /// `None` where sshfs cannot be used.
    pub(crate) fn new() -> Option<Self> {
        Self::with_proxy("")
    }

    /// One whose every answer takes `delay` there and as much back.
    #[cfg(feature = "verdicts")]
    pub(crate) fn far_away(delay: std::time::Duration) -> Option<Self> {
        let delayed = Self::with_proxy("/usr/bin/python3 DELAYED ")?;
        let script = format!("DELAY = {}\n{DELAYED}", delay.as_secs_f64());
        fs::write(delayed.path("delayed.py"), script).expect("room");
        Some(delayed)
    }

    /// The server is started by `proxy`, in which DELAYED stands for a script.
    fn with_proxy(proxy: &str) -> Option<Self> {
        let programs = ["/usr/bin/sshfs", "/usr/bin/ssh-keygen", "/usr/sbin/sshd"];
        let has_all = programs.iter().all(|program| Path::new(program).is_file());
        let has_fuse = fs::OpenOptions::new().read(true).write(true).open("/dev/fuse").is_ok();
        if !is_there("sshfs and openssh-server", has_all) || !is_there("/dev/fuse", has_fuse) {
            return None;
        }
        let share = Self { folder: folder() };
        fs::create_dir(share.served()).expect("a folder");
        share.make_keys();
        let script = share.path("delayed.py").display().to_string();
        share.configure(&proxy.replace("DELAYED", &script));
        Some(share)
    }

    /// The folder, as the computer sees it whose disk it is on.
    pub(crate) fn served(&self) -> PathBuf {
        self.path("served")
    }

    /// Mounts it as one more client does.
    pub(crate) fn mount(&self, name: &str, options: &[&str]) -> Mount {
        let point = self.path(name);
        fs::create_dir(&point).expect("a folder");
        let mut command = Command::new("sshfs");
        command.arg("-F").arg(self.path("ssh_config"));
        command.args(options.iter().flat_map(|option| ["-o", option]));
        // It returns once the file system is there.
        succeeds(command.arg(format!("share:{}", self.served().display())).arg(&point));
        Mount { point }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().expect("it is there").join(name)
    }

    fn make_keys(&self) {
        for name in ["host", "user"] {
            let mut command = Command::new("ssh-keygen");
            command.args(["-q", "-t", "ed25519", "-N", "", "-f"]);
            succeeds(command.arg(self.path(name)));
        }
        let public = |name: &str| fs::read_to_string(self.path(name)).expect("a key");
        fs::write(self.path("known"), format!("share {}", public("host.pub"))).expect("room");
        fs::write(self.path("allowed"), public("user.pub")).expect("room");
    }

    /// The server talks over the pipe on which ssh starts it, so it needs no port and ends with it.
    fn configure(&self, proxy: &str) {
        let at = |name: &str| self.path(name).display().to_string();
        let server = format!(
            "HostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPidFile none\n\
             PermitRootLogin yes\nPasswordAuthentication no\nSubsystem sftp internal-sftp\n",
            at("host"),
            at("allowed")
        );
        fs::write(at("sshd_config"), server).expect("room");
        let user = succeeds(Command::new("id").arg("-un"));
        let client = format!(
            "Host share\nHostName localhost\nUser {user}\nIdentityFile {}\nIdentitiesOnly yes\n\
             UserKnownHostsFile {}\nGlobalKnownHostsFile /dev/null\nHostKeyAlias share\n\
             StrictHostKeyChecking yes\nProxyCommand {proxy}/usr/sbin/sshd -i -f {}\n",
            at("user"),
            at("known"),
            at("sshd_config")
        );
        fs::write(at("ssh_config"), client).expect("room");
        fs::set_permissions(at("ssh_config"), fs::Permissions::from_mode(0o600)).expect("ours");
        if user == "root" {
            // The server's own, which its service makes at the start of the computer.
            fs::create_dir_all("/run/sshd").expect("a folder");
        }
    }
}

/// Runs a command and hands everything on between it and whoever started this, a while later.
#[cfg(feature = "verdicts")]
const DELAYED: &str = r#"
import os, queue, subprocess, sys, threading, time
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
def hand_on(source, target):
    waiting = queue.Queue()
    def take():
        while piece := os.read(source, 65536):
            waiting.put((time.monotonic() + DELAY, piece))
        waiting.put((0, b""))
    threading.Thread(target=take, daemon=True).start()
    while True:
        due, piece = waiting.get()
        if not piece:
            break
        time.sleep(max(0, due - time.monotonic()))
        while piece:
            piece = piece[os.write(target, piece):]
    os.close(target)
up = threading.Thread(target=hand_on, args=(0, child.stdin.fileno()), daemon=True)
up.start()
hand_on(child.stdout.fileno(), 1)
"#;

/// Runs a command that must succeed; returns what it said.
fn succeeds(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
