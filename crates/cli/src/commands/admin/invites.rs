//! `holdall admin invites`.

use std::path::Path;

use anyhow::Result;
use holdall_server::admin::{InviteEntry, ListInvites, WithdrawInvite};
use serde::Serialize;

use super::ask;
use crate::app::App;
use crate::exit::Exit;
use crate::terminal::output::{Shown, local_time, rfc3339};

/// Lists the invites that are open, and takes one back
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall admin invites
         holdall admin invites 3f9c2d71 --withdraw

`holdall invite` makes one. The server keeps only its hash, of which the beginning is what it is called here.

Exit codes: 0 done, 1 failed, 2 wrong usage")]
pub(crate) struct Args {
    /// What it is called; without, all are listed
    #[arg(requires = "withdraw")]
    invite: Option<String>,
    /// Takes it back: nobody is let in by it
    #[arg(long, requires = "invite")]
    withdraw: bool,
}

pub(crate) fn run(args: &Args, data: &Path, app: &App) -> Result<Exit> {
    let invites = match args.invite.clone() {
        None => ask(data, &ListInvites {})?.invites,
        Some(id) => ask(data, &WithdrawInvite { id })?.invites,
    };
    if invites.is_empty() {
        app.output.say("no invites are open; `holdall invite` makes one")?;
    }
    invites.iter().try_for_each(|invite| show(app, invite))?;
    Ok(Exit::Done)
}

fn show(app: &App, invite: &InviteEntry) -> Result<()> {
    let InviteEntry { id, name, for_machine, repository, right, made_ns, expires_ns } = invite;
    let object = JsonInvite {
        id,
        name: name.as_deref(),
        for_machine: for_machine.as_deref(),
        repository: repository.as_deref(),
        right: right.to_string(),
        made: rfc3339(*made_ns),
        expires: rfc3339(*expires_ns),
    };
    app.output.object("open_invite", &object)?;
    let whom = match (for_machine, name) {
        (Some(machine), _) => format!("a new computer in the place of {machine}"),
        (None, Some(name)) => name.clone(),
        (None, None) => "any machine".to_owned(),
    };
    let (whom, until) = (Shown(whom.as_bytes()), local_time(*expires_ns));
    app.output.result(format_args!("{id} for {whom}, right: {right}, until {until}"))?;
    Ok(())
}

#[derive(Serialize)]
struct JsonInvite<'a> {
    id: &'a str,
    name: Option<&'a str>,
    for_machine: Option<&'a str>,
    repository: Option<&'a str>,
    right: String,
    made: String,
    expires: String,
}
