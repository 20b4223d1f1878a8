//! What this machine had on a server that lost its identity or its accounts, for `pair --again`.

use anyhow::Result;
use holdall_format::RepositoryId;
use holdall_protocol::{FormerAccount, Invite};
use holdall_state::{Pairing, Receipts};

use crate::app::App;
use crate::exit::{Exit, Refusal};

/// What there was.
pub(crate) struct Former {
    pairing: Pairing,
    /// What proves it: none if this machine never backed anything up.
    pub(crate) account: Option<FormerAccount>,
}

impl Former {
    /// The pairing that an invite is to bring back: with a server at one of the invite's addresses or
    /// of its identity, else the newest. One that only reads was not made by an invite.
    ///
    /// # Errors
    /// [`Refusal`] if this machine was never paired, or has nothing that proves it to a server and the
    /// invite does not name its repository; if its state cannot be read.
    pub(crate) fn of(app: &App, invite: &Invite) -> Result<Self> {
        let pairings = app.pairings()?;
        let Some(pairing) = pairings.by_invite(invite).cloned() else {
            let refusal = Refusal::new(Exit::Usage, "this computer was not paired with any server");
            return Err(refusal.hint("leave --again out").into());
        };
        let machine = Receipts::in_state(&app.folders.state).machine(&pairing.repository)?;
        let repository = pairing.name.clone();
        if machine.is_none() && invite.repository != repository {
            return Err(unproven(&repository).into());
        }
        let account = machine.map(|machine| FormerAccount { machine, repository });
        Ok(Self { pairing, account })
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
            .hint("ask its administrator to bring the folder back, or leave out --again")
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
