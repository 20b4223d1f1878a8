//! What the keeper, its clients and its disk are at one moment, as small as it can be, so that
//! millions of such moments fit into memory.
//!
//! ```text
//! snapshot 0:         node -> chunk
//! snapshot 1: root -> node -> chunk
//! ```
//!
//! Client 0 makes snapshot 0 again and again, client 1 makes snapshot 1. They share the node, so each
//! may come to rely on what the other put. Times and positions are not numbers here: a copy knows
//! which sessions began before it came, and how many other copies of its object came before it.

pub(crate) const OBJECTS: usize = 3;
pub(crate) const CLIENTS: usize = 2;
/// Packs that are there at once; what was deleted makes room.
pub(crate) const PACKS: usize = 3;

/// A set of objects, one bit for each.
pub(crate) type Objects = u8;

pub(crate) const NODE: usize = 1;
pub(crate) const ROOTS: [usize; CLIENTS] = [1, 2];
pub(crate) const NAMES: [&str; OBJECTS] = ["chunk", "node", "root"];
const REFERENCES: [Objects; OBJECTS] = [0, 0b001, 0b010];
const REACHED: [Objects; OBJECTS] = [0b001, 0b011, 0b111];

/// What an object refers to.
pub(crate) fn references(object: usize) -> Objects {
    REFERENCES[object]
}

/// What an object reaches, itself included.
pub(crate) fn reached(object: usize) -> Objects {
    REACHED[object]
}

/// The objects of a set.
pub(crate) fn each(objects: Objects) -> impl Iterator<Item = usize> {
    (0..OBJECTS).filter(move |object| objects & (1 << object) != 0)
}

/// A copy of an object in a pack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Copy {
    /// 0 if there is none, else by how many other copies it is preceded, and 1.
    pub(crate) rank: u8,
    pub(crate) is_closed: bool,
    /// Whether it is closed in the saved set.
    pub(crate) is_saved: bool,
    /// Whether it says that it refers to nothing.
    pub(crate) is_forged: bool,
    /// Whether its block gave way.
    pub(crate) is_superseded: bool,
    /// A bit for each client whose session was open when it came, and has been since.
    pub(crate) since: u8,
}

impl Copy {
    pub(crate) fn is_there(&self) -> bool {
        self.rank > 0
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum PackState {
    /// No pack.
    #[default]
    Free,
    /// A tail: blocks are added to it.
    Open,
    Stored,
    /// What is needed of it was copied, its mark is about to be written.
    Moving,
    Condemned,
    /// Condemned, and the grace is over.
    Due,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Pack {
    pub(crate) state: PackState,
    /// A bit for each client that was told of something in here.
    pub(crate) relied_on: u8,
    /// Whether it was condemned since the session that reads began.
    pub(crate) is_read: bool,
    pub(crate) copies: [Copy; OBJECTS],
}

impl Pack {
    /// Whether what it holds counts as there.
    pub(crate) fn counts(&self) -> bool {
        matches!(self.state, PackState::Open | PackState::Stored | PackState::Moving)
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) enum Session {
    #[default]
    None,
    Open,
    /// Its commit was checked, its record is about to be written.
    Checked,
    /// The keeper holds nothing for it any more, and yet lets its client go on: never, if all is right.
    Lapsed,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Client {
    pub(crate) session: Session,
    /// The snapshot that its session names as a parent.
    pub(crate) parent: Option<u8>,
    /// What it takes for stored.
    pub(crate) believed: Objects,
}

impl Client {
    /// Whether the keeper holds anything for it.
    pub(crate) fn is_live(&self) -> bool {
        matches!(self.session, Session::Open | Session::Checked)
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) enum Prune {
    #[default]
    Idle,
    /// It marked, and has the commit lock still.
    Marked,
    /// It condemns one pack after another.
    Condemning,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) packs: [Pack; PACKS],
    pub(crate) clients: [Client; CLIENTS],
    /// A bit for each snapshot that is committed and not forgotten.
    pub(crate) committed: u8,
    /// A bit for each snapshot that was ever committed.
    pub(crate) known: u8,
    /// The snapshot that is being restored.
    pub(crate) reading: Option<u8>,
    pub(crate) prune: Prune,
}

impl State {
    /// The copy of an object that counts, and the pack that it is in.
    pub(crate) fn first_copy(&self, object: usize) -> Option<(usize, Copy)> {
        self.counting(object).min_by_key(|(_, copy)| copy.rank)
    }

    pub(crate) fn last_copy(&self, object: usize) -> Option<(usize, Copy)> {
        self.counting(object).max_by_key(|(_, copy)| copy.rank)
    }

    /// Copies of an object that count as there, by pack.
    pub(crate) fn counting(&self, object: usize) -> impl Iterator<Item = (usize, Copy)> {
        let packs = self.packs.iter().enumerate().filter(|(_, pack)| pack.counts());
        packs.map(move |(at, pack)| (at, pack.copies[object])).filter(|(_, copy)| copy.is_there())
    }

    pub(crate) fn is_committed(&self, snapshot: usize) -> bool {
        self.committed & (1 << snapshot) != 0
    }

    /// Whether somebody has the commit lock.
    pub(crate) fn is_locked(&self) -> bool {
        self.prune == Prune::Marked
            || self.packs.iter().any(|pack| pack.state == PackState::Moving)
            || self.clients.iter().any(|client| client.session == Session::Checked)
    }

    /// Copies that can be read, counting or not.
    pub(crate) fn copies(&self) -> usize {
        let copies = self.packs.iter().flat_map(|pack| &pack.copies);
        copies.filter(|copy| copy.is_there()).count()
    }

    /// Packs that take room.
    pub(crate) fn packs(&self) -> usize {
        self.packs.iter().filter(|pack| pack.state != PackState::Free).count()
    }

    /// The same moment, written in the one way that all moments are which do not differ in what may
    /// follow: packs in order, ranks without gaps, nothing of condemned
    /// packs but what somebody reads who began before.
    pub(crate) fn normal(mut self) -> Self {
        for pack in self.packs.iter_mut().filter(|pack| !pack.counts()) {
            pack.relied_on = 0;
            for copy in &mut pack.copies {
                let can_be_missed = pack.is_read && copy.is_there();
                *copy = Copy { rank: u8::from(can_be_missed), ..Copy::default() };
            }
        }
        for object in 0..OBJECTS {
            let mut places: [Option<(u8, usize)>; PACKS] = [None; PACKS];
            for (at, copy) in self.counting(object) {
                places[at] = Some((copy.rank, at));
            }
            places.sort_unstable();
            for ((_, at), rank) in places.into_iter().flatten().zip(1..) {
                self.packs[at].copies[object].rank = rank;
            }
        }
        self.packs.sort_unstable();
        self
    }

    /// What is wrong at this moment, if anything is.
    pub(crate) fn violation(&self) -> Option<String> {
        let lacks =
            |root: usize, has: &dyn Fn(usize) -> bool| each(reached(root)).find(|o| !has(*o));
        for snapshot in (0..CLIENTS).filter(|snapshot| self.is_committed(*snapshot)) {
            if let Some(object) =
                lacks(ROOTS[snapshot], &|object| self.first_copy(object).is_some())
            {
                return Some(format!(
                    "snapshot {snapshot} is committed and lacks {}",
                    NAMES[object]
                ));
            }
        }
        let can_read = |object: usize| {
            let mut packs = self.packs.iter();
            packs.any(|pack| pack.copies[object].is_there())
        };
        let snapshot = usize::from(self.reading?);
        let object = lacks(ROOTS[snapshot], &can_read)?;
        Some(format!("snapshot {snapshot} is being read and {} is gone", NAMES[object]))
    }

    /// A node that is closed and refers to what is not, if there is one.
    pub(crate) fn half_closed(&self) -> Option<usize> {
        let is_closed =
            |object: usize| self.first_copy(object).is_some_and(|(_, copy)| copy.is_closed);
        let mut closed = (0..OBJECTS).filter(|object| is_closed(*object));
        closed.find(|object| !each(references(*object)).all(is_closed))
    }
}
