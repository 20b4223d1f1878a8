//! What may happen next, and what it makes of a moment.

use crate::rules::Rules;
use crate::state::{
    Client, Copy, NODE, OBJECTS, Objects, PACKS, Pack, PackState, Prune, ROOTS, Session, State,
    each, reached, references,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// A client opens a session; it may name a parent, and takes what that reaches for stored.
    Open {
        client: usize,
        parent: Option<u8>,
    },
    /// A client asks whether an object is there, and if so takes what it reaches for stored.
    Ask {
        client: usize,
        object: usize,
    },
    Put {
        client: usize,
        object: usize,
    },
    /// A client puts the node again, with no references.
    Forge {
        client: usize,
    },
    /// What is needed is put again, though it is there.
    PutAgain {
        object: usize,
    },
    /// All other copies that are there count before those in a pack.
    GiveWay {
        pack: usize,
    },
    /// The keeper checks a commit and refuses it with what is missing, or is about to write its record.
    Check {
        client: usize,
    },
    /// The record is written.
    Record {
        client: usize,
    },
    /// A client dies and goes on in its session without what it knew.
    ClientDies {
        client: usize,
    },
    /// A client sleeps until its session lapsed.
    Lapse {
        client: usize,
    },
    Forget {
        snapshot: usize,
    },
    /// The tail becomes a pack.
    CloseTail,
    /// What is closed is saved.
    Save,
    /// The keeper crashes and starts again.
    Restart,
    Mark,
    Delete {
        pack: usize,
    },
    /// The prune gives the commit lock back and goes on to condemn.
    Unlock,
    /// What is needed of a pack is copied.
    Move {
        pack: usize,
    },
    /// The mark of a pack is written.
    Condemn {
        pack: usize,
    },
    EndPrune,
    /// The grace of what is condemned is over.
    Wait,
    Read {
        snapshot: usize,
    },
    EndRead,
}

/// All that could ever happen.
pub(crate) fn all() -> Vec<Action> {
    use Action::*;
    let mut all = vec![CloseTail, Save, Restart, Mark, Unlock, EndPrune, Wait, EndRead];
    all.extend((0..OBJECTS).map(|object| PutAgain { object }));
    for (client, root) in ROOTS.into_iter().enumerate() {
        all.extend([None, Some(0), Some(1)].map(|parent| Open { client, parent }));
        for object in each(reached(root)) {
            all.extend([Ask { client, object }, Put { client, object }]);
        }
        all.extend([Forge { client }, Check { client }, Record { client }]);
        all.extend([ClientDies { client }, Lapse { client }]);
        all.extend([Forget { snapshot: client }, Read { snapshot: client }]);
    }
    for pack in 0..PACKS {
        all.extend([Delete { pack }, Move { pack }, Condemn { pack }, GiveWay { pack }]);
    }
    all
}

/// What comes of an action, or nothing where it cannot happen.
pub(crate) fn apply(state: &State, action: Action, rules: &Rules) -> Option<State> {
    let mut keeper = Keeper { state: *state, rules };
    keeper.act(action)?;
    Some(keeper.state.normal())
}

/// What a descent found.
#[derive(Default)]
struct Reached {
    found: Objects,
    missing: Objects,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Closed {
    Stops,
    Passes,
}

struct Keeper<'a> {
    state: State,
    rules: &'a Rules,
}

/// Goes on only where something holds.
fn only_if(holds: bool) -> Option<()> {
    holds.then_some(())
}

impl Keeper<'_> {
    fn act(&mut self, action: Action) -> Option<()> {
        match action {
            Action::Open { client, parent } => self.open(client, parent),
            Action::Ask { client, object } => self.ask(client, object),
            Action::Put { client, object } => self.put(client, object),
            Action::Forge { client } => self.forge(client),
            Action::PutAgain { object } => self.put_again(object),
            Action::GiveWay { pack } => self.give_way(pack),
            Action::Check { client } => self.check(client),
            Action::Record { client } => self.record(client),
            Action::ClientDies { client } => self.client_dies(client),
            Action::Lapse { client } => self.lapse(client),
            Action::Forget { snapshot } => self.forget(snapshot),
            Action::CloseTail => self.close_tail(),
            Action::Save => self.save(),
            Action::Restart => self.restart(),
            Action::Mark => self.mark(),
            Action::Delete { pack } => self.delete(pack),
            Action::Unlock => self.go_on(Prune::Marked, Prune::Condemning),
            Action::Move { pack } => self.move_needed(pack),
            Action::Condemn { pack } => self.condemn(pack),
            Action::EndPrune => self.end_prune(),
            Action::Wait => self.wait(),
            Action::Read { snapshot } => self.read(snapshot),
            Action::EndRead => self.end_read(),
        }
    }

    fn open(&mut self, client: usize, parent: Option<u8>) -> Option<()> {
        // Where nobody checks commits, a parent that was forgotten is refused.
        let may_be_gone = self.rules.commit_checks;
        let named = if may_be_gone { self.state.known } else { self.state.committed };
        let there = &mut self.state.clients[client];
        only_if(there.session == Session::None)?;
        only_if(parent.is_none_or(|parent| named & (1 << parent) != 0))?;
        let wanted = reached(ROOTS[client]);
        let believed = parent.map_or(0, |parent| reached(ROOTS[usize::from(parent)]) & wanted);
        *there = Client { session: Session::Open, parent, believed };
        Some(())
    }

    /// Whether a client may use its session.
    fn may_use(&self, client: usize) -> Option<()> {
        let session = self.state.clients[client].session;
        only_if(matches!(session, Session::Open | Session::Lapsed))
    }

    fn ask(&mut self, client: usize, object: usize) -> Option<()> {
        self.may_use(client)?;
        only_if(self.state.clients[client].believed & (1 << object) == 0)?;
        let (pack, first) = self.state.first_copy(object)?;
        // Where nobody checks commits, who asks waits until a pack that is moved has its mark.
        let is_moving = self.state.packs[pack].state == PackState::Moving;
        only_if(self.rules.commit_checks || !is_moving)?;
        let came_lately =
            self.state.counting(object).any(|(_, copy)| copy.since & (1 << client) != 0);
        only_if(first.is_closed || came_lately)?;
        if first.is_closed && self.state.clients[client].is_live() {
            self.state.packs[pack].relied_on |= 1 << client;
        }
        // Where nobody checks commits, a client asks for what is below, too.
        let believes_all = self.rules.commit_checks;
        let believed = if believes_all { reached(object) } else { 1 << object };
        self.state.clients[client].believed |= believed;
        Some(())
    }

    fn put(&mut self, client: usize, object: usize) -> Option<()> {
        self.may_use(client)?;
        only_if(self.state.clients[client].believed & (1 << object) == 0)?;
        self.store(object, false)?;
        self.state.clients[client].believed |= 1 << object;
        Some(())
    }

    fn forge(&mut self, client: usize) -> Option<()> {
        self.may_use(client)?;
        let (_, first) = self.state.first_copy(NODE)?;
        only_if(first.is_closed && !self.rules.first_copy_counts)?;
        self.store(NODE, true)
    }

    fn put_again(&mut self, object: usize) -> Option<()> {
        only_if(self.state.first_copy(object)?.1.is_closed)?;
        self.store(object, false)
    }

    fn give_way(&mut self, pack: usize) -> Option<()> {
        only_if(!self.state.is_locked() || !self.rules.prune_locks)?;
        let Pack { copies, .. } = self.state.packs[pack];
        only_if(self.state.packs[pack].counts() && copies.iter().any(Copy::is_there))?;
        for object in (0..OBJECTS).filter(|object| copies[*object].is_there()) {
            let behind = self.state.last_copy(object).map_or(0, |(_, last)| last.rank + 1);
            let copy = &mut self.state.packs[pack].copies[object];
            // For the right rules that is no more than an order of copies, whether or not there are others.
            copy.is_superseded = !self.rules.keeps_superseded;
            copy.rank = behind;
        }
        self.doubt_saves();
        self.close_what_is_needed()
    }

    /// Adds a block to the tail.
    fn store(&mut self, object: usize, is_forged: bool) -> Option<()> {
        let tail = self.tail_without(1 << object)?;
        let rank = self.state.last_copy(object).map_or(1, |(_, last)| last.rank + 1);
        let live = self.state.clients.iter().enumerate().filter(|(_, client)| client.is_live());
        let since = live.fold(0, |since, (client, _)| since | 1 << client);
        let copy = Copy { rank, is_forged, since, ..Copy::default() };
        self.state.packs[tail].copies[object] = copy;
        Some(())
    }

    /// A tail to which these objects can be added.
    fn tail_without(&mut self, objects: Objects) -> Option<usize> {
        let packs = &mut self.state.packs;
        if let Some(at) = packs.iter().position(|pack| pack.state == PackState::Open) {
            if each(objects).all(|object| !packs[at].copies[object].is_there()) {
                return Some(at);
            }
            packs.iter().position(|pack| pack.state == PackState::Free)?;
            packs[at].state = PackState::Stored;
        }
        let at = packs.iter().position(|pack| pack.state == PackState::Free)?;
        packs[at] = Pack { state: PackState::Open, ..Pack::default() };
        Some(at)
    }

    fn check(&mut self, client: usize) -> Option<()> {
        self.may_use(client)?;
        let root = ROOTS[client];
        only_if(self.state.clients[client].believed == reached(root))?;
        only_if(!self.state.is_locked() || !self.rules.prune_locks)?;
        let missing = self.descend(root, Closed::Stops).missing;
        let there = &mut self.state.clients[client];
        if missing != 0 && self.rules.commit_checks {
            there.believed &= !missing;
        } else {
            there.session = Session::Checked;
        }
        Some(())
    }

    fn record(&mut self, client: usize) -> Option<()> {
        only_if(self.state.clients[client].session == Session::Checked)?;
        let found = self.descend(ROOTS[client], Closed::Stops).found;
        self.close(found);
        self.state.committed |= 1 << client;
        self.state.known |= 1 << client;
        self.end_session(client);
        self.state.clients[client] = Client::default();
        Some(())
    }

    /// The keeper holds nothing for a client any more.
    fn end_session(&mut self, client: usize) {
        for pack in &mut self.state.packs {
            pack.relied_on &= !(1 << client);
            pack.copies.iter_mut().for_each(|copy| copy.since &= !(1 << client));
        }
        self.state.clients[client].parent = None;
    }

    fn client_dies(&mut self, client: usize) -> Option<()> {
        let there = &mut self.state.clients[client];
        only_if(there.session == Session::Open && there.believed != 0)?;
        there.believed = 0;
        Some(())
    }

    fn lapse(&mut self, client: usize) -> Option<()> {
        only_if(self.state.clients[client].session == Session::Open)?;
        self.end_session(client);
        let there = &mut self.state.clients[client];
        match self.rules.refuses_lapsed {
            // Whatever it does next is refused, so that it begins anew.
            true => *there = Client::default(),
            false => there.session = Session::Lapsed,
        }
        Some(())
    }

    fn forget(&mut self, snapshot: usize) -> Option<()> {
        only_if(self.state.is_committed(snapshot))?;
        only_if(!self.state.is_locked() || !self.rules.prune_locks)?;
        self.state.committed &= !(1 << snapshot);
        Some(())
    }

    fn close_tail(&mut self) -> Option<()> {
        let is_complete = self.rules.index_is_complete;
        let tail = self.state.packs.iter_mut().find(|pack| pack.state == PackState::Open)?;
        tail.state = PackState::Stored;
        for copy in tail.copies.iter_mut().filter(|copy| !is_complete && !copy.is_saved) {
            *copy = Copy::default();
        }
        Some(())
    }

    fn save(&mut self) -> Option<()> {
        let copies = self.state.packs.iter_mut().flat_map(|pack| &mut pack.copies);
        copies.for_each(|copy| copy.is_saved = copy.is_closed);
        Some(())
    }

    /// What was only in memory is lost: what is closed since the last save, what was told to whom,
    /// and how far commits and prunes were.
    fn restart(&mut self) -> Option<()> {
        for pack in &mut self.state.packs {
            pack.relied_on = 0;
            if pack.state == PackState::Moving {
                pack.state = PackState::Stored;
            }
            pack.copies.iter_mut().for_each(|copy| copy.is_closed = copy.is_saved);
        }
        for client in &mut self.state.clients {
            if client.session == Session::Checked {
                client.session = Session::Open;
            }
        }
        self.state.prune = Prune::Idle;
        for (snapshot, root) in ROOTS.into_iter().enumerate() {
            if self.state.is_committed(snapshot) {
                let found = self.descend(root, Closed::Stops).found;
                self.close(found);
            }
        }
        Some(())
    }

    fn mark(&mut self) -> Option<()> {
        only_if(self.state.prune == Prune::Idle)?;
        only_if(!self.state.is_locked() || !self.rules.prune_locks)?;
        self.close_what_is_needed()?;
        self.state.prune = Prune::Marked;
        Some(())
    }

    /// Has exactly that be closed which snapshots and parents reach.
    fn close_what_is_needed(&mut self) -> Option<()> {
        let mut needed = 0;
        for (snapshot, root) in ROOTS.into_iter().enumerate() {
            if self.state.is_committed(snapshot) {
                let reached = self.descend(root, Closed::Passes);
                only_if(reached.missing == 0)?;
                needed |= reached.found;
            }
        }
        needed |= self.reached_by_parents();
        let copies = self.state.packs.iter_mut().flat_map(|pack| &mut pack.copies);
        copies.for_each(|copy| copy.is_closed = false);
        self.close(needed);
        Some(())
    }

    fn reached_by_parents(&self) -> Objects {
        let live = self.state.clients.iter().filter(|client| client.is_live());
        let parents = live.filter_map(|client| client.parent);
        let of_parents = parents.map(|parent| {
            let reached = self.descend(ROOTS[usize::from(parent)], Closed::Passes);
            let counts = reached.missing == 0 || !self.rules.parents_are_whole;
            if counts && self.rules.marks_parents { reached.found } else { 0 }
        });
        of_parents.fold(0, |all, found| all | found)
    }

    fn delete(&mut self, pack: usize) -> Option<()> {
        only_if(self.state.prune == Prune::Marked)?;
        let Pack { state, is_read, .. } = self.state.packs[pack];
        let is_condemned = matches!(state, PackState::Condemned | PackState::Due);
        let has_waited = state == PackState::Due && !is_read;
        only_if(is_condemned && (has_waited || !self.rules.delete_waits))?;
        self.state.packs[pack] = Pack::default();
        self.doubt_saves();
        Some(())
    }

    fn go_on(&mut self, from: Prune, to: Prune) -> Option<()> {
        only_if(self.state.prune == from)?;
        self.state.prune = to;
        Some(())
    }

    fn move_needed(&mut self, pack: usize) -> Option<()> {
        let Pack { state, relied_on, copies, .. } = self.state.packs[pack];
        only_if(self.state.prune == Prune::Condemning && state == PackState::Stored)?;
        only_if(!self.state.is_locked() || !self.rules.prune_locks)?;
        only_if(relied_on == 0 || !self.rules.keeps_relied_on)?;
        let needed = (0..OBJECTS).filter(|object| self.is_needed(pack, *object));
        let needed = needed.fold(0, |all, object| all | 1 << object);
        if needed != 0 {
            let tail = self.tail_without(needed)?;
            each(needed).for_each(|object| self.copy_to(tail, object, copies[object]));
        }
        self.state.packs[pack].state = PackState::Moving;
        Some(())
    }

    fn is_needed(&self, pack: usize, object: usize) -> bool {
        let copy = self.state.packs[pack].copies[object];
        let is_closed = if self.rules.looks_again { copy.is_closed } else { copy.is_saved };
        let came_lately = self.rules.keeps_recent && copy.since != 0;
        let others = self.state.packs.iter().enumerate().filter(|(at, _)| *at != pack);
        let has_other = others
            .filter(|(_, other)| other.counts())
            .any(|(_, other)| other.copies[object].is_there());
        copy.is_there()
            && (is_closed || came_lately)
            && (self.rules.keeps_one_of_many || !has_other)
            && !copy.is_superseded
    }

    /// Stores a copy again as if it had come right behind the one that it is of.
    fn copy_to(&mut self, tail: usize, object: usize, copy: Copy) {
        for pack in self.state.packs.iter_mut().filter(|pack| pack.counts()) {
            let other = &mut pack.copies[object];
            other.rank += u8::from(other.rank > copy.rank);
        }
        self.state.packs[tail].copies[object] =
            Copy { rank: copy.rank + 1, is_saved: false, ..copy };
    }

    fn condemn(&mut self, pack: usize) -> Option<()> {
        let is_read = self.state.reading.is_some();
        let there = &mut self.state.packs[pack];
        only_if(there.state == PackState::Moving)?;
        there.state = PackState::Condemned;
        there.is_read = is_read;
        self.doubt_saves();
        Some(())
    }

    /// A saved set that does not know what was condemned or deleted is as good as none.
    fn doubt_saves(&mut self) {
        if self.rules.doubts_old_saves {
            let copies = self.state.packs.iter_mut().flat_map(|pack| &mut pack.copies);
            copies.for_each(|copy| copy.is_saved = false);
        }
    }

    fn end_prune(&mut self) -> Option<()> {
        only_if(self.state.packs.iter().all(|pack| pack.state != PackState::Moving))?;
        self.go_on(Prune::Condemning, Prune::Idle)
    }

    fn wait(&mut self) -> Option<()> {
        let packs = self.state.packs.iter_mut();
        packs.filter(|pack| pack.state == PackState::Condemned).for_each(|pack| {
            pack.state = PackState::Due;
        });
        Some(())
    }

    fn read(&mut self, snapshot: usize) -> Option<()> {
        only_if(self.state.is_committed(snapshot) && self.state.reading.is_none())?;
        self.state.reading = u8::try_from(snapshot).ok();
        Some(())
    }

    fn end_read(&mut self) -> Option<()> {
        self.state.reading.take()?;
        self.state.packs.iter_mut().for_each(|pack| pack.is_read = false);
        Some(())
    }

    /// Closes the first copy of each of these objects.
    fn close(&mut self, objects: Objects) {
        for object in each(objects) {
            if let Some((pack, _)) = self.state.first_copy(object) {
                self.state.packs[pack].copies[object].is_closed = true;
            }
        }
    }

    fn descend(&self, root: usize, closed: Closed) -> Reached {
        let mut reached = Reached::default();
        let mut pending: Objects = 1 << root;
        while let Some(object) = each(pending).last() {
            pending &= !(1 << object);
            let Some((_, first)) = self.state.first_copy(object) else {
                reached.missing |= 1 << object;
                continue;
            };
            let is_known =
                first.is_closed || !(self.rules.descends_through_stored || object == root);
            if closed == Closed::Stops && is_known {
                continue;
            }
            reached.found |= 1 << object;
            pending |= self.references_of(object);
        }
        reached
    }

    /// What an object is taken to refer to.
    fn references_of(&self, object: usize) -> Objects {
        let first = self.state.first_copy(object);
        let last = self.state.last_copy(object);
        let counting = if self.rules.first_copy_counts { first } else { last };
        let is_forged = counting.is_some_and(|(_, copy)| copy.is_forged);
        if is_forged { 0 } else { references(object) }
    }
}
