//! Whether a person means the disk: only root asks for it, and its name has to be typed.

use std::path::{Path, PathBuf};

use anyhow::Result;
use holdall_disks::{Claim, Identity};
use holdall_sys::users;

use crate::app::App;
use crate::exit::{Exit, Refusal};
use crate::terminal::confirm::ask;

/// Which disk, and that it is meant.
#[derive(Debug, clap::Args)]
pub(crate) struct Meant {
    /// The disk: a whole one, such as /dev/sdb or a link in /dev/disk/by-id
    #[arg(value_name = "DEVICE")]
    pub(crate) device: PathBuf,
    /// Says that all on this disk may be lost, in the place of the question at the terminal
    #[arg(long, value_name = "DEVICE")]
    confirm: Option<String>,
}

/// Refuses everybody but root, whose disks they are.
pub(crate) fn only_root(verb: &str) -> Result<(), Refusal> {
    if users::effective_uid() == 0 {
        return Ok(());
    }
    let refusal = Refusal::new(Exit::NotAllowed, "only root may write to a disk");
    Err(refusal.hint(format!("`sudo holdall disk {verb} ...`")))
}

impl Meant {
    /// Refuses unless the name of just this disk is typed, and checks once more that it is this disk.
    pub(crate) fn check(&self, claim: &Claim, app: &App) -> Result<()> {
        let name = &claim.identity().name;
        let question = format!("All of it will be lost. Type {name} to go on: ");
        let typed = match &self.confirm {
            Some(confirmed) => Some(confirmed.trim().to_owned()),
            None => ask(&app.output, &app.interrupt, &question)?,
        };
        match typed {
            Some(typed) if self.is_name(&typed, claim.identity()) => Ok(claim.check()?),
            Some(_) => {
                let message = format!("that is not its name, which is {name}");
                let hint = "nothing was written: see whether it is the disk that you mean";
                Err(Refusal::new(Exit::Usage, message).hint(hint).into())
            }
            None => {
                let message = "nothing was written: --confirm is missing";
                let hint = format!("if all on this disk may be lost: --confirm {name}");
                Err(Refusal::new(Exit::Usage, message).hint(hint).into())
            }
        }
    }

    /// Whether a text names the disk: as the kernel does, with or without `/dev/`, or as it was named first.
    fn is_name(&self, typed: &str, identity: &Identity) -> bool {
        let name = typed.strip_prefix("/dev/").unwrap_or(typed);
        name == identity.name || (!typed.is_empty() && Path::new(typed) == self.device)
    }
}
