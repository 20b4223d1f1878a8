//! Carrying a script out, in a process that is watched or killed, and noting what was acknowledged.
//!
//! A line `begin N` is written before step N is asked for, and `done N` once it was acknowledged. A
//! process that finds notes goes on behind them, as a client does after a crash.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

use bytes::Bytes;
use holdall_format::SessionId;
use holdall_protocol::{
    CommitAnswer, Compacting, OwnedRepository, Repository, RepositoryError, SessionPurpose,
};
use holdall_repository::EmbeddedRepository;
use holdall_testkit::setting;

use crate::machine::{forge, open};
use crate::oracle::Expected;
use crate::plan::{Put, Step, again, plan};
use crate::power::ROUNDS;

/// Where a script runs: the folder that the power cut hits, and the notes beside it.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) folder: PathBuf,
}

impl Place {
    pub(crate) fn disk(&self) -> PathBuf {
        self.folder.join("disk")
    }

    pub(crate) fn notes(&self) -> PathBuf {
        self.folder.join("notes")
    }
}

/// What was begun and what was acknowledged, as the notes say.
pub(crate) fn read_notes(said: &str) -> (Option<usize>, usize) {
    let number = |line: &str, word: &str| line.strip_prefix(word)?.trim().parse::<usize>().ok();
    let done = said.lines().filter_map(|line| number(line, "done ")).max();
    let begun = said.lines().filter_map(|line| number(line, "begin ")).max();
    let done = done.map_or(0, |last| last + 1);
    (begun.filter(|begun| *begun >= done), done)
}

/// Carries out what is left of a script; says how many blocks gave way.
pub(crate) fn run(place: &Place, seed: u64, rounds: u32) -> u64 {
    let said = fs::read_to_string(place.notes()).unwrap_or_default();
    let (_, done) = read_notes(&said);
    let repository = open(&place.disk());
    let mut client = Client { disk: place.disk(), repository, session: None, gave_way: 0 };
    let mut notes = OpenOptions::new().create(true).append(true).open(place.notes()).unwrap();
    for (number, step) in plan(seed, rounds).iter().enumerate().skip(done) {
        notes.write_all(format!("begin {number}\n").as_bytes()).unwrap();
        client.carry_out(step);
        notes.write_all(format!("done {number}\n").as_bytes()).unwrap();
    }
    client.gave_way
}

struct Client {
    disk: PathBuf,
    repository: EmbeddedRepository,
    session: Option<SessionId>,
    gave_way: u64,
}

impl Client {
    fn carry_out(&mut self, step: &Step) {
        match step {
            Step::Create => match self.repository.create(&forge().new_repository()) {
                // A crash came between the marker and the answer.
                Ok(()) | Err(RepositoryError::AlreadyExists { .. }) => {}
                Err(error) => panic!("{error}"),
            },
            Step::Restart => {
                self.session = None;
                // The old one gives the lease back first.
                self.repository = open(&self.disk.join("nowhere"));
                self.repository = open(&self.disk);
            }
            Step::Put(puts) => self.put(puts),
            Step::PutTogether(puts) => {
                self.session();
                std::thread::scope(|scope| {
                    for put in puts {
                        let (repository, session) = (&self.repository, self.session.unwrap());
                        let block = std::slice::from_ref(&put.block);
                        scope.spawn(move || repository.put_blocks(&session, block).unwrap());
                    }
                });
            }
            Step::Commit(commit) => {
                let session = self.session();
                self.commit(&session, &commit.bytes);
                if commit.kind == holdall_format::RecordKind::Snapshot {
                    self.session = None;
                }
            }
            Step::Forget(snapshot) => self.repository.forget(&[*snapshot]).unwrap(),
            Step::Prune => drop(self.repository.prune(false).unwrap()),
            Step::Compact => self.compact(),
            Step::Wrappings(bytes) => self.repository.put_wrappings(bytes).unwrap(),
        }
    }

    fn session(&mut self) -> SessionId {
        let repository = &self.repository;
        *self.session.get_or_insert_with(|| {
            let purpose = SessionPurpose::Backup { parents: vec![] };
            repository.open_session(&purpose).unwrap().session
        })
    }

    fn put(&mut self, puts: &[Put]) {
        let session = self.session();
        let blocks: Vec<Bytes> = puts.iter().map(|put| put.block.clone()).collect();
        self.repository.put_blocks(&session, &blocks).unwrap();
    }

    /// Only chunks share blocks, so only those have blocks that are sparse.
    fn compact(&mut self) {
        let session = self.session();
        let sparse = self.repository.sparse_blocks(0).unwrap();
        for id in sparse.iter().flat_map(|block| &block.living) {
            self.repository.put_blocks(&session, &[again(*id)]).unwrap();
        }
        let blocks: Vec<u64> = sparse.iter().map(|block| block.arrival).collect();
        self.gave_way += self.repository.supersede(&session, &blocks).unwrap().blocks;
        self.session = None;
    }

    fn commit(&self, session: &SessionId, record: &Bytes) {
        let answer = self.repository.commit(session, record).unwrap();
        assert!(matches!(answer, CommitAnswer::Committed(_)), "{answer:?}");
    }
}

/// Also what a watched process is started to do: [`crate::watching`] names its place.
#[test]
fn a_script_that_nothing_interrupts_is_all_there() {
    let seed = setting("HOLDALL_POWER_SEED", 1);
    let rounds = setting("HOLDALL_POWER_ROUNDS", u64::from(ROUNDS)) as u32;
    #[expect(
        clippy::disallowed_methods,
        reason = "a watched process is told its place by a variable"
    )]
    let place = std::env::var_os("HOLDALL_POWER_PLACE");
    match place {
        Some(folder) => drop(run(&Place { folder: folder.into() }, seed, rounds)),
        None => {
            let folder = tempfile::tempdir().unwrap();
            let place = Place { folder: folder.path().to_owned() };
            fs::create_dir(place.disk()).unwrap();
            let gave_way = run(&place, seed, rounds);
            assert!(gave_way > 0 || seed != 1, "this script compacts something");
            let said = fs::read_to_string(place.notes()).unwrap();
            Expected::after(&plan(seed, rounds), &said).check(&place.disk()).unwrap();
        }
    }
}
