//! The worlds that rows do their work in, and what is in their sources.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use holdall_testkit::{DelayProxy, Random, SmallFiles, small_files};
use serde_json::Value;
use tempfile::TempDir;

use crate::house::{Machine, Outcome, Server, run_by, text};
use crate::linked::Linked;
use crate::mounts::{Mount, Share};
use crate::plants::{Ration, SlowFsync, memory_folder};

/// A rate that no computer reaches between two of its own namespaces.
const MORE_THAN_ANY: u64 = 100_000_000_000;

/// How many large files make a run long enough for a verdict: a plant slows it down, and the control goes
/// at this computer's own pace.
pub(super) fn enough(planted: bool, files: u64) -> u64 {
    if planted { files } else { files.max(120) }
}

/// The same for tiny files.
pub(super) fn enough_tiny(planted: bool, files: usize) -> usize {
    if planted { files } else { files.max(40_000) }
}

/// Files of 2 MB each that do not compress.
pub(super) fn large_files(dir: &Path, count: u64) {
    fs::create_dir_all(dir).expect("a folder");
    for number in 0..count {
        let content = Random::new(number + 1).bytes(2_000_000);
        fs::write(dir.join(format!("large-{number}")), content).expect("room");
    }
}

/// Files of 2 MB each that a compressor works on for long and makes a quarter smaller: six bits of
/// chance in each byte.
pub(super) fn hardly_compressible_files(dir: &Path, count: u64) {
    fs::create_dir_all(dir).expect("a folder");
    for number in 0..count {
        let mut content = Random::new(number + 1).bytes(2_000_000);
        content.iter_mut().for_each(|byte| *byte = b' ' + (*byte & 0x3f));
        fs::write(dir.join(format!("hard-{number}")), content).expect("room");
    }
}

/// Files of 2 MB each that a compressor is tried on, and always in vain: chance, with 30 zeros among 2000
/// bytes, which are seen by who looks for chance, and save less than is worth it.
pub(super) fn vainly_compressible_files(dir: &Path, count: u64) {
    fs::create_dir_all(dir).expect("a folder");
    for number in 0..count {
        let mut content = Random::new(number + 1).bytes(2_000_000);
        content.chunks_mut(2000).for_each(|part| part[..30].fill(0));
        fs::write(dir.join(format!("vain-{number}")), content).expect("room");
    }
}

/// Files of 9 MB each of which hardly anything is left when they are compressed.
pub(super) fn texts(dir: &Path, count: u64) {
    fs::create_dir_all(dir).expect("a folder");
    for number in 0..count {
        let line = format!("line {number} of a text that is compressed well\n");
        fs::write(dir.join(format!("text-{number}")), line.repeat(200_000)).expect("room");
    }
}

/// Files of 5 MB each that are compressed as prose is: words of nine letters, 65,536 of them, by chance.
pub(super) fn prose(dir: &Path, count: u64) {
    fs::create_dir_all(dir).expect("a folder");
    let mut letters = Random::new(0).bytes(9 << 16);
    letters.iter_mut().for_each(|letter| *letter = b'a' + *letter % 26);
    let words: Vec<_> = letters.chunks(9).collect();
    for number in 0..count {
        let chosen = Random::new(number + 1).bytes(1_000_000);
        let chosen = chosen.chunks(2).map(|two| usize::from(u16::from_le_bytes([two[0], two[1]])));
        let content = chosen.map(|word| words[word]).collect::<Vec<_>>().join(&b' ');
        fs::write(dir.join(format!("prose-{number}")), content).expect("room");
    }
}

/// Files of 1500 bytes by the median.
pub(super) fn tiny_files(dir: &Path, files: usize) {
    fs::create_dir_all(dir).expect("a folder");
    let wanted = SmallFiles { files, dirs: 10, median_bytes: 1500, seed: 3 };
    small_files(dir, &wanted).expect("room");
}

/// The summary of a command, which must end well.
#[track_caller]
pub(super) fn summary_of(command: &mut Command) -> Value {
    Outcome::of(command).expect(0).summary()
}

/// What comes before a command that is rationed, if it is.
pub(super) fn prefix_of(ration: Option<&Ration>) -> Vec<OsString> {
    ration.map_or_else(Vec::new, Ration::prefix)
}

/// `command` run by `prefix`, if that is anything.
pub(super) fn run_by_or_not(prefix: &[OsString], command: Command) -> Command {
    if prefix.is_empty() { command } else { run_by(prefix, &command) }
}

/// A machine that is paired with a server.
pub(super) struct World {
    /// Runs as long as this is there.
    server: Server,
    pub(super) machine: Machine,
    _way: Option<DelayProxy>,
    _memory: Option<TempDir>,
}

impl World {
    /// One in which nothing is planted.
    pub(super) fn new() -> Self {
        Self::serving(&[], None)
    }

    /// One whose server runs behind what `prefix` says, and with an fsync that takes long, if
    /// given.
    pub(super) fn serving(prefix: &[OsString], slow: Option<&SlowFsync>) -> Self {
        let world = Self::unpaired(Machine::new(), prefix, slow);
        world.machine.pair_with(&world.server);
        world
    }

    /// One that has everything in memory, where no disk can be what limits; `None` without room.
    pub(super) fn in_memory() -> Option<Self> {
        let memory = memory_folder()?;
        let machine = Machine::in_folder(memory.path().to_owned());
        let world = Self::unpaired(machine, &[], None);
        world.machine.pair_with(&world.server);
        Some(Self { _memory: Some(memory), ..world })
    }

    /// One with so long a way to the server and as long a way back, which carries no more than
    /// that.
    pub(super) fn over(delay: Duration, bytes_per_second: Option<u64>) -> Self {
        let world = Self::unpaired(Machine::new(), &[], None);
        let upstream = world.server.address().parse().expect("an address");
        let way = DelayProxy::start(upstream, delay, bytes_per_second).expect("a free port");
        let address = way.address().to_string();
        world.machine.pair(&world.server.invite_with(&["--address", &address]));
        Self { _way: Some(way), ..world }
    }

    fn unpaired(machine: Machine, prefix: &[OsString], slow: Option<&SlowFsync>) -> Self {
        let data = machine.path("server");
        let mut command = run_by_or_not(prefix, Server::command(&data));
        if let Some(slow) = slow {
            command.env("LD_PRELOAD", slow.library());
        }
        let server = Server::start_by(&mut command, &data);
        Self { server, machine, _way: None, _memory: None }
    }

    /// One more machine that is paired with the server.
    pub(super) fn other_machine(&self) -> Machine {
        let other = Machine::new();
        other.pair_with(&self.server);
        other
    }

    pub(super) fn backup(&self, source: &Path) -> Command {
        self.machine.command(["backup", text(source), "--json"])
    }

    pub(super) fn restore(&self) -> Command {
        let target = self.machine.path("target");
        self.machine.command(["restore", "latest", "--target", text(&target), "--json"])
    }

    pub(super) fn large_source(&self, count: u64) -> PathBuf {
        let source = self.machine.path("source");
        large_files(&source, count);
        source
    }
}

/// A machine and a server with links of these rates in bits a second between them, or without the plant
/// of as many that are as fast as this computer; `None` where that cannot be done.
pub(super) fn linked(planted: bool, bits_per_second: &[u64]) -> Option<Linked> {
    let rates = bits_per_second.iter().map(|&rate| if planted { rate } else { MORE_THAN_ANY });
    Linked::of_rates(&rates.collect::<Vec<_>>())
}

/// The summary of a command at the machine's end of links.
#[track_caller]
pub(super) fn summary_over(linked: &Linked, args: &[&str]) -> Value {
    linked.run(&[args, &["--json"]].concat()).summary()
}

/// A folder on a share that is far away, or without the plant one in memory: a share that is near
/// costs time for each file, too, and may truly be what limits.
pub(super) enum Folder {
    Far { mount: Mount, _share: Share },
    Near(TempDir),
}

impl Folder {
    /// Filled where it lies, before anybody mounts it; every answer of the share takes `delay`
    /// there and as much back. `None` where that cannot be done.
    pub(super) fn new(planted: bool, delay: Duration, fill: impl FnOnce(&Path)) -> Option<Self> {
        if !planted {
            let near = memory_folder()?;
            fill(near.path());
            return Some(Self::Near(near));
        }
        let share = Share::far_away(delay)?;
        fill(&share.served());
        Some(Self::Far { mount: share.mount("far", &[]), _share: share })
    }

    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Far { mount, .. } => mount.point(),
            Self::Near(folder) => folder.path(),
        }
    }
}
