//! Which part of everything is tried at once: all of it together is too much for memory.

use crate::actions::{self, Action};
use crate::state::{CLIENTS, State};

/// Who does what, and how much room there is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scene {
    /// The first client that does anything.
    pub(crate) first_client: usize,
    /// Whether sessions name parents.
    pub(crate) parents: bool,
    /// Whether the keeper saves, crashes and starts again.
    pub(crate) restarts: bool,
    /// Whether snapshots are restored.
    pub(crate) reads: bool,
    /// Whether clients die and go on in their sessions.
    pub(crate) deaths: bool,
    /// Whether blocks are compacted.
    pub(crate) compacts: bool,
    /// Copies of objects that there is room for.
    pub(crate) most_copies: usize,
    /// Packs that there is room for.
    pub(crate) most_packs: usize,
}

impl Scene {
    /// What may happen.
    pub(crate) fn actions(&self) -> Vec<Action> {
        actions::all().into_iter().filter(|action| self.allows(*action)).collect()
    }

    /// Whether there is room for all of that.
    pub(crate) fn has_room(&self, state: &State) -> bool {
        state.copies() <= self.most_copies && state.packs() <= self.most_packs
    }

    fn allows(&self, action: Action) -> bool {
        let acts = |client: usize| (self.first_client..CLIENTS).contains(&client);
        match action {
            Action::Open { client, parent: None } => acts(client),
            Action::Open { client, parent: Some(parent) } => {
                self.parents && acts(client) && acts(usize::from(parent))
            }
            Action::ClientDies { .. } => self.deaths,
            Action::Save | Action::Restart => self.restarts,
            Action::Read { .. } => self.reads,
            Action::PutAgain { .. } | Action::GiveWay { .. } => self.compacts,
            _ => true,
        }
    }
}

/// One client alone, with all that may happen to it.
pub(crate) const ALONE: Scene = Scene {
    first_client: 1,
    parents: true,
    restarts: true,
    reads: true,
    deaths: true,
    compacts: false,
    most_copies: 4,
    most_packs: 3,
};

/// Two clients that share what they put, with room for copies of copies.
pub(crate) const TWO: Scene = Scene {
    first_client: 0,
    parents: false,
    restarts: false,
    reads: false,
    deaths: false,
    compacts: false,
    most_copies: 4,
    most_packs: 2,
};

/// Two clients that may go on from each other's snapshots, forgotten or not.
pub(crate) const TWO_WITH_PARENTS: Scene = Scene { parents: true, most_copies: 3, ..TWO };

/// One client that compacts.
pub(crate) const COMPACTING: Scene =
    Scene { parents: false, deaths: false, reads: false, compacts: true, ..ALONE };
