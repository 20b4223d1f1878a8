//! The power is cut at every moment at which a server makes its data folder, its identity and its
//! accounts, and the disk keeps as little as it may: what was acknowledged is there all the same, and
//! a server starts.
#![expect(
    clippy::disallowed_methods,
    reason = "a process is told by the environment what it is for"
)]

use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use holdall_testkit::FakeClock;
use holdall_testkit::{History, Image, Slice, Watch, failing, has_strace, memory, states};

use super::entries::Keeping;
use super::*;
use crate::auth::identity::ServerIdentity;
use crate::auth::rights::Right;
use crate::data_folder::DataFolder;

/// There are no more that differ than a sixth of these.
const STATES: usize = 10_000;
/// A change meets one in so many of those that differ.
const SLICES: u64 = 7;
/// Names of what tells the process that is watched where it runs.
const PLACE: &str = "HOLDALL_POWER_PLACE";
const SCRIPT: &str = "accounts::power::a_script_that_nothing_interrupts_is_all_there";

/// A server's own state, opened.
struct Opened {
    _folder: DataFolder,
    identity: PublicKey,
    accounts: Accounts,
}

impl Opened {
    /// The folder above is to be made too.
    fn at(disk: &Path) -> Result<Self, ServerError> {
        let folder = DataFolder::take(&disk.join("new/data"))?;
        let identity = ServerIdentity::of(&folder)?.public();
        let accounts = Accounts::open(&folder.database(), Arc::new(FakeClock::at(1_900_000_000)))?;
        Ok(Self { _folder: folder, identity, accounts })
    }

    fn pair(&self, number: u8) {
        let request = InviteRequest::default();
        let made = self.accounts.invite(&request, self.identity, vec![]).unwrap();
        let (secret, name) = (&made.invite.secret, format!("machine {number}"));
        self.accounts.pair(secret, key(number), &name, None, |_| false).unwrap();
    }

    /// What clients and administrators would find.
    fn found(&self) -> Found {
        let machines = self.accounts.machines().into_iter();
        Found {
            machines: machines.map(|one| (one.name, one.right, one.revoked)).collect(),
            quotas: ["machine-0", "machine-1"].map(|one| self.accounts.quota(one)),
            delay_ns: self.accounts.keeping("machine-0").now.delay_ns,
            deletions: self.accounts.deletions().len(),
        }
    }
}

/// What has to be the same after a power cut.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    /// Name, right, and whether it is locked out.
    machines: Vec<(String, Right, bool)>,
    quotas: [Option<u64>; 2],
    delay_ns: i64,
    deletions: usize,
}

fn key(number: u8) -> PublicKey {
    PublicKey::from_bytes([number + 1; 32])
}

/// What is done, one after another. Each is acknowledged when it returns.
const STEPS: [fn(&Opened); 9] = [
    |server| server.pair(0),
    |server| server.accounts.set_quota("machine-0", Some(1000)).unwrap(),
    |server| server.pair(1),
    |server| drop(server.accounts.set_right("machine 1", Right::Read).unwrap()),
    |server| {
        let longer = Keeping { delay_ns: 2 * Keeping::USUAL.delay_ns, ..Keeping::USUAL };
        drop(server.accounts.set_keeping(Some("machine-0"), longer).unwrap());
    },
    |server| drop(server.accounts.ask_deletion("machine-0", vec!["1".into()], None, None).unwrap()),
    |server| drop(server.accounts.revoke("machine 0").unwrap()),
    |server| {
        let deletion = server.accounts.deletion(1).unwrap();
        server.accounts.drop_deletion(&deletion).unwrap();
    },
    |server| server.accounts.set_quota("machine-1", Some(7)).unwrap(),
];

/// Does everything on a disk, starting anew now and then, and notes what was acknowledged.
fn carry_out(disk: &Path, mut note: impl FnMut(String, &Opened)) {
    let mut server = Opened::at(disk).unwrap();
    note(format!("identity {:02x?}", server.identity.as_bytes()), &server);
    for (number, step) in STEPS.iter().enumerate() {
        if number % 4 == 3 {
            drop(server);
            server = Opened::at(disk).unwrap();
        }
        step(&server);
        note(format!("done {number}"), &server);
    }
}

/// What is found after each number of steps.
fn expected() -> Vec<Found> {
    let folder = memory().unwrap();
    let mut found = Vec::new();
    carry_out(folder.path(), |_, server| found.push(server.found()));
    found
}

fn compare(disk: &Path, said: &str, expected: &[Found]) -> Result<(), String> {
    let server = Opened::at(disk).map_err(|error| format!("it does not start: {error}"))?;
    let identity = format!("{:02x?}", server.identity.as_bytes());
    let told = said.lines().find_map(|line| line.strip_prefix("identity "));
    if told.is_some_and(|told| told != identity) {
        return Err("its identity is another one".into());
    }
    let done = said.lines().filter(|line| line.starts_with("done ")).count();
    let found = server.found();
    // The step that was begun may have been done.
    if found != expected[done] && Some(&found) != expected.get(done + 1) {
        return Err(format!("after {done} steps: {found:?}"));
    }
    server.pair(77);
    Ok(())
}

#[test]
fn whenever_the_power_is_cut_a_server_knows_whom_it_let_in() {
    if !has_strace() {
        return;
    }
    let folder = memory().unwrap();
    let (disk, notes) = (folder.path().join("disk"), folder.path().join("notes"));
    std::fs::create_dir(&disk).unwrap();
    std::fs::write(&notes, "").unwrap();
    let mut history = History::new(&disk, &notes, &Image::default(), "");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", SCRIPT]).env(PLACE, folder.path());
    let watch = Watch::new(&folder.path().join("trace"));
    let output = watch.run(&command, &mut history, None).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(history.last() == Image::read(&disk).unwrap(), "the model is not the disk");

    let (expected, states) = (expected(), states(&history, 1, STATES));
    assert!(states.len() > 1000, "{} states", states.len());
    let states = Slice::one_in(SLICES).pick(states);
    let failed = failing(&states, |state, folder| {
        let disk = folder.join("disk");
        state.image.lay_down(&disk).unwrap();
        let checked = compare(&disk, &state.said, &expected);
        std::fs::remove_dir_all(&disk).unwrap();
        checked.map_err(|reason| format!("{reason}\n  {}", state.what))
    });
    let some: Vec<_> = failed.iter().step_by(failed.len().div_ceil(8).max(1)).collect();
    assert!(failed.is_empty(), "{} of {} states: {some:#?}", failed.len(), states.len());
}

/// Also what a watched process is started to do.
#[test]
fn a_script_that_nothing_interrupts_is_all_there() {
    let Some(place) = std::env::var_os(PLACE).map(PathBuf::from) else {
        let found = expected();
        assert_eq!(found.len(), STEPS.len() + 1);
        assert!(found.windows(2).all(|pair| pair[0] != pair[1]), "each step shows: {found:#?}");
        return;
    };
    let mut notes = std::fs::File::options().append(true).open(place.join("notes")).unwrap();
    carry_out(&place.join("disk"), |line, _| {
        std::io::Write::write_all(&mut notes, format!("{line}\n").as_bytes()).unwrap();
    });
}
