//! What this machine had on a server that lost its identity or its accounts, for `pair --again`.

use anyhow::Result;
use holdall_format::RepositoryId;
use holdall_protocol::{FormerAccount, Invite};
use holdall_state::{Pairing, Receipts};

use crate::app::App;
use crate::exit::{Exit, Refusal};
use crate::opening::open::Where;

/// What there was.
pub(crate) struct Former {
    pairing: Pairing,
    /// What proves it: none if this machine never backed anything up.
    pub(crate) account: Option<FormerAccount>,
}

impl Former {
    /// The pairing that an invite is to bring back: with a server at one of the invite's addresses or
    /// of its identity, else the newest. Of several at that server it is the one that `-r` names, else one from before the
    /// server lost its identity to which this machine backed something up: a newer one may be of a pairing without
    /// --again. One that only reads was not made by an invite.
    ///
    /// # Errors
    /// [`Refusal`] if this machine was never paired, or has nothing that proves it to a server and the
    /// invite does not name its repository; if its state cannot be read.
    pub(crate) fn of(app: &App, invite: &Invite) -> Result<Self> {
        let pairings = app.pairings()?;
        let receipts = Receipts::in_state(&app.folders.state);
        let has_receipt =
            |pairing: &&Pairing| matches!(receipts.machine(&pairing.repository), Ok(Some(_)));
        let there = || pairings.at_inviting(invite);
        let named = app.typed_repository().map(Where::parse).transpose()?;
        let is_named = |pairing: &&Pairing| match &named {
            Some(Where::Server { name, .. }) => pairing.name == *name,
            _ => false,
        };
        let identity = invite.identity.to_string();
        let is_lost = |pairing: &&Pairing| pairing.identity != identity && has_receipt(pairing);
        let found = there().find(is_named).or_else(|| there().find(is_lost));
        let found = found.or_else(|| there().find(has_receipt)).or_else(|| there().next());
        let Some(pairing) = found.or_else(|| pairings.newest_by_invite()).cloned() else {
            let refusal = Refusal::new(Exit::Usage, "this computer was not paired with any server");
            return Err(refusal.hint("leave --again out").into());
        };
        let machine = receipts.machine(&pairing.repository)?;
        let repository = pairing.name.clone();
        if machine.is_none() && invite.repository != repository {
            return Err(unproven(&repository).into());
        }
        let account = machine.map(|machine| FormerAccount { machine, repository });
        Ok(Self { pairing, account })
    }

    /// Whether it was the default repository, or another one of that server is, which takes its place no longer.
    ///
    /// # Errors
    /// If the state cannot be read.
    pub(crate) fn was_default(&self, app: &App) -> Result<bool> {
        let is_there = |default: &Pairing| {
            default.repository == self.pairing.repository
                || default.addresses.iter().any(|address| self.pairing.is_at(address))
        };
        Ok(app.pairings()?.default().is_some_and(is_there))
    }

    /// Checks that the server has that repository and not another one.
    ///
    /// # Errors
    /// [`Refusal`] if not.
    pub(crate) fn check(&self, repository: RepositoryId, name: &str) -> Result<(), Refusal> {
        if self.pairing.repository == repository.to_string() {
            return Ok(());
        }
        let message = format!(
            "the server's repository {name} is another one than this computer had: {repository}, \
             not {}",
            self.pairing.repository
        );
        Err(Refusal::new(Exit::Damage, message)
            .hint("ask the administrator for the folder of the old one; nothing was changed here"))
    }

    /// The failure of a server that does not have the repository at all.
    pub(crate) fn is_gone(&self, name: &str) -> Refusal {
        let message = format!("the server has no repository {name}: it was not set up from it");
        Refusal::new(Exit::NoRepository, message)
            .hint("ask its administrator to bring the folder back, or say --new instead of --again to begin another one")
    }
}

/// Without a snapshot of its own a machine has nothing that a server believes.
fn unproven(name: &str) -> Refusal {
    let message =
        format!("this computer never backed up to {name}, so the server cannot recognise it");
    Refusal::new(Exit::NotAllowed, message).hint(format!(
        "ask the administrator for an invite that names the repository, `holdall invite --repository \
         {name}`; this one was not used"
    ))
}
