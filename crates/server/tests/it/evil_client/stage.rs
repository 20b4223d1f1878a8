//! A server with a machine that attacks and one that must not suffer from it.

use bytes::Bytes;
use holdall_format::{ObjectId, Record, RecordHash, RecordKind, SessionId};
use holdall_protocol::contract::Forge;
use holdall_protocol::{
    CommitAnswer, ListedRecord, RecordQuery, Repository, SessionPurpose, Usage,
};
use holdall_server::{Right, admin};

use crate::world::{Machine, World, session};

/// Machines' numbers, which their keys are made of.
pub(super) mod numbers {
    pub(in super::super) const MACHINE: u8 = 1;
    pub(in super::super) const READER: u8 = 2;
    pub(in super::super) const REVOKED: u8 = 4;
    pub(in super::super) const VICTIM: u8 = 9;
}

/// What is sent.
pub(super) struct Asked {
    pub(super) bytes: Vec<u8>,
    /// Whether the sender says that nothing more comes.
    pub(super) ends: bool,
}

pub(super) struct Stage {
    pub(super) world: World,
    pub(super) machine: Machine,
    pub(super) victim: Machine,
    reader: Machine,
    /// The attacker's own session, to back up and to read, and one that it closed.
    pub(super) session: SessionId,
    pub(super) reading: SessionId,
    pub(super) closed: SessionId,
    pub(super) victims_session: SessionId,
    /// The attacker's newest record, and the victim's.
    pub(super) newest: Bytes,
    pub(super) victims_newest: Bytes,
}

/// What must stay as it is: of each repository its size, records and keys.
pub(super) type Everything = Vec<(Usage, Vec<ListedRecord>, Bytes)>;

impl Stage {
    pub(super) fn new() -> Self {
        let world = World::new();
        let (machine, victim) = (world.machine(numbers::MACHINE), world.machine(numbers::VICTIM));
        let (reader, _) = (world.machine(numbers::READER), world.machine(numbers::REVOKED));
        let (session, newest) = committed(&machine);
        let (victims_session, victims_newest) = committed(&victim);
        let own = machine.connect();
        let reading = own.open_session(&SessionPurpose::Read).unwrap().session;
        let closed = own.open_session(&SessionPurpose::Read).unwrap().session;
        own.close_session(&closed).unwrap();
        let right = Some(Right::Read);
        world.admin(&admin::Rights { machine: "machine 2".into(), right }).unwrap();
        world.admin(&admin::Revoke { machine: "machine 4".into() }).unwrap();
        Self {
            world,
            machine,
            victim,
            reader,
            session,
            reading,
            closed,
            victims_session,
            newest,
            victims_newest,
        }
    }

    pub(super) fn everything(&self) -> Everything {
        let of = |machine: &Machine| {
            let repository = machine.connect();
            let query = RecordQuery { limit: 100, ..RecordQuery::default() };
            let records = repository.records(&query).unwrap();
            (
                repository.usage().unwrap().without_room(),
                records,
                repository.describe().unwrap().wrappings,
            )
        };
        [&self.machine, &self.victim, &self.reader].map(of).into()
    }

    /// Checks that the victim can still do what it does, with the session that it had.
    #[track_caller]
    pub(super) fn assert_serves_others(&self, name: &str) {
        let repository = self.victim.connect();
        let there = repository.missing(&self.victims_session, &[node(), chunk()]);
        assert_eq!(there.unwrap(), [false, false], "{name}");
        let fetched =
            repository.fetch_objects(&self.victims_session, &[chunk()], 0).unwrap().blocks;
        assert_eq!(fetched.len(), 1, "{name}");
    }

    pub(super) fn forge(&self) -> Forge {
        self.machine.forge()
    }

    /// The attacker's newest record, as the next one names it.
    pub(super) fn head(&self) -> Option<(RecordHash, u64)> {
        let record = Record::decode(&self.newest).unwrap();
        Some((record.hash(), record.head.sequence))
    }

    /// Something asked in the attacker's session.
    pub(super) fn in_session(&self, verb: &str, body: &[u8]) -> Asked {
        request("POST", &format!("{OWN}/sessions/{}/{verb}", self.session), body)
    }

    /// A put of blocks.
    pub(super) fn put(&self, blocks: &[Bytes]) -> Asked {
        self.in_session("blocks", &framed(blocks))
    }

    /// A commit.
    pub(super) fn commit(&self, record: &[u8]) -> Asked {
        self.in_session("records", record)
    }
}

/// A machine with a session, and with a snapshot of one node that refers to one chunk.
fn committed(machine: &Machine) -> (SessionId, Bytes) {
    let (forge, repository) = (machine.forge(), machine.connect());
    let first = session(&repository);
    let blocks = [forge.chunks(&[chunk()]), forge.nodes(&[(node(), &[chunk()])])];
    repository.put_blocks(&first, &blocks).unwrap();
    let record = forge.record(RecordKind::Snapshot, node(), None);
    let answer = repository.commit(&first, &record).unwrap();
    assert!(matches!(answer, CommitAnswer::Committed(_)), "{answer:?}");
    // A session ends with its snapshot.
    (session(&repository), record)
}

/// The attacker's repository.
pub(super) const OWN: &str = "/api/v1/repositories/~";

pub(super) fn node() -> ObjectId {
    ObjectId::from_bytes([1; 32])
}

pub(super) fn chunk() -> ObjectId {
    ObjectId::from_bytes([2; 32])
}

pub(super) fn nothing() -> ObjectId {
    ObjectId::from_bytes([3; 32])
}

/// A whole request, after which the connection is to end.
pub(super) fn request(method: &str, path: &str, body: &[u8]) -> Asked {
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
    );
    Asked { bytes: [head.as_bytes(), body].concat(), ends: false }
}

/// Bytes that end the connection by what they say.
pub(super) fn whole(bytes: impl Into<Vec<u8>>) -> Asked {
    Asked { bytes: bytes.into(), ends: false }
}

/// Bytes after which nothing more comes, whatever they promise.
pub(super) fn cut(bytes: impl Into<Vec<u8>>) -> Asked {
    Asked { bytes: bytes.into(), ends: true }
}

/// Byte strings one after another, each behind its length.
pub(super) fn framed(frames: &[Bytes]) -> Vec<u8> {
    let one = |frame: &Bytes| [&(frame.len() as u32).to_le_bytes(), &frame[..]].concat();
    frames.iter().flat_map(one).collect()
}

/// The same bytes with some of them replaced.
pub(super) fn with(bytes: &[u8], at: usize, by: &[u8]) -> Bytes {
    let mut bytes = bytes.to_vec();
    bytes[at..at + by.len()].copy_from_slice(by);
    bytes.into()
}
