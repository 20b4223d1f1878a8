//! `holdall admin people`: who signs in to the server's pages, and who looks on there.

use std::path::Path;

use anyhow::Result;
use holdall_server::admin::{EndSessions, ListPeople, PersonEntry, RemovePerson, Scope};
use serde::Serialize;

use super::ask;
use crate::app::App;
use crate::exit::Exit;
use crate::terminal::output::{Shown, local_time, rfc3339};

/// Lists who signs in to the server's pages, signs people out, and removes them
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall admin people
         holdall admin people ann --sign-out      (as after a telephone was lost)
         holdall admin people ann --remove

`holdall admin web-code` lets somebody in. `look` is who looks on by a link, whose token `holdall admin api-token NAME \
--revoke` takes away.

Exit codes: 0 done, 1 failed, such as for a holdall that was built without its pages, 2 wrong usage")]
pub(crate) struct Args {
    /// What somebody is called; without a name, all are listed
    #[arg(requires = "what")]
    name: Option<String>,
    #[command(flatten)]
    what: What,
}

#[derive(Debug, clap::Args)]
#[group(id = "what", multiple = false)]
struct What {
    /// Takes them away; their sessions end
    #[arg(long, requires = "name")]
    remove: bool,
    /// Ends all their sessions
    #[arg(long, requires = "name")]
    sign_out: bool,
}

pub(crate) fn run(args: &Args, data: &Path, app: &App) -> Result<Exit> {
    let people = match args.name.clone() {
        None => ask(data, &ListPeople {})?.people,
        Some(name) if args.what.remove => ask(data, &RemovePerson { name })?.people,
        Some(name) => ask(data, &EndSessions { name })?.people,
    };
    if people.is_empty() {
        app.output.say("nobody; `holdall admin web-code` lets somebody in")?;
    }
    people.iter().try_for_each(|person| show(app, person))?;
    Ok(Exit::Done)
}

fn show(app: &App, person: &PersonEntry) -> Result<()> {
    let PersonEntry { name, scope, second_factor, made_ns, signed_in_ns, sessions } = person;
    let object = JsonPerson {
        name,
        scope: *scope,
        second_factor: *second_factor,
        made: rfc3339(*made_ns),
        signed_in: signed_in_ns.map(rfc3339),
        sessions: *sessions,
    };
    app.output.object("person", &object)?;
    let factor = if *second_factor { "second factor" } else { "password alone" };
    let how = if *scope == Scope::Look { "by a link" } else { factor };
    let signed_in = signed_in_ns.map_or_else(|| "never".to_owned(), local_time);
    app.output.result(format_args!(
        "{:<20} {scope:<10} {how:<14} {sessions:>3} open, signed in {signed_in}",
        Shown(name.as_bytes()).to_string(),
    ))?;
    Ok(())
}

#[derive(Serialize)]
struct JsonPerson<'a> {
    name: &'a str,
    scope: Scope,
    second_factor: bool,
    made: String,
    signed_in: Option<String>,
    sessions: usize,
}
