//! What was given to pair with: an invite, or a short code, which is traded for one at the server that is meant.
//!
//! What can be checked before that is: a code has one try.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use anyhow::Result;
use holdall_discovery::{Announcement, FoundServer};
use holdall_protocol::{MachineIdentity, ShortCode, invite_by_code};

use super::traded_invite::{self, Given};
use super::{NamedKit, given_invite, kit_file};
use crate::app::App;
use crate::commands::discover;
use crate::exit::{Exit, Refusal};
use crate::opening::create::check_kit_file;
use crate::opening::open::{Patience, Where, in_brackets};
use crate::secrets::password;
use crate::terminal::confirm::ask;

const NAME_IT: &str = "name the server, and type the code again: `holdall pair -r https://HOST` (the code is not spent yet)";

/// The invite that was given, or the one that the short code stands for.
///
/// # Errors
/// [`Refusal`] if there is none, no server is found for a code, or several; what the exchange fails with. Then a code is spent.
pub(super) fn invite(app: &App, argument: Option<&str>, kit: NamedKit<'_>) -> Result<Given> {
    let named = named(app)?;
    let is_asked = match argument {
        None => true,
        Some(argument) => argument == "-" && io::stdin().is_terminal(),
    };
    let chosen = match &named {
        Named::Nothing if is_asked && password::can_ask() => choose(app)?,
        _ => None,
    };
    let text = given_invite::read(app, argument)?;
    let Some(code) = ShortCode::from_text(&text) else {
        return Ok(Given { invite: text, is_traded: false });
    };
    if let Some(invite) = traded_invite::of(app, &code)? {
        return Ok(Given { invite, is_traded: true });
    }
    check_kit(kit)?;
    let (hosts, announced) = match (named, chosen) {
        (Named::Server(host), _) => (vec![host], None),
        (Named::Directory(folder), _) => return Err(no_server(&folder).into()),
        (Named::Nothing, Some(server)) => (server.hosts(), Some(server.fingerprint)),
        (Named::Nothing, None) => {
            let server = the_only_one(app)?;
            (server.hosts(), Some(server.fingerprint))
        }
    };
    let machine = MachineIdentity::from_seed(app.identity()?.signing.seed())?;
    let options = Patience::default().options(app);
    let invite = invite_by_code(&hosts, announced.as_deref(), &code, &machine, options)?;
    let kept = traded_invite::keep(app, &code, &invite);
    // Without it, pairing may still succeed.
    let is_traded = kept.map_err(|error| app.output.note(error)).is_ok();
    Ok(Given { invite: invite.to_text(), is_traded })
}

/// Checks what is known of the kit's file.
///
/// # Errors
/// As for pairing, whose invite is not used yet.
fn check_kit(kit: NamedKit<'_>) -> Result<()> {
    match kit {
        NamedKit::Write(file) => Ok(check_kit_file(Some(file))?),
        NamedKit::Read(file) => kit_file::read(file).map(drop),
        NamedKit::Either(file) if file.symlink_metadata().is_err() => {
            Ok(check_kit_file(Some(file))?)
        }
        // Whether one that is there is to be read, the invite says.
        NamedKit::Either(_) | NamedKit::None => Ok(()),
    }
}

/// What was named with `-r` for this command.
enum Named {
    Nothing,
    Server(String),
    Directory(PathBuf),
}

/// What `-r` names, where a host alone is a server: no directory has short codes.
fn named(app: &App) -> Result<Named> {
    let Some(typed) = app.typed_repository() else { return Ok(Named::Nothing) };
    match Where::parse(typed)? {
        Where::Server { host, .. } => Ok(Named::Server(host)),
        Where::Directory(folder) if typed.contains('/') || folder.exists() => {
            Ok(Named::Directory(folder))
        }
        Where::Directory(folder) => {
            let host = in_brackets(typed).unwrap_or_else(|| typed.to_owned());
            match Where::parse(&format!("https://{host}")) {
                Ok(Where::Server { host, .. }) => Ok(Named::Server(host)),
                _ => Ok(Named::Directory(folder)),
            }
        }
    }
}

/// The refusal of a directory in the place of a server.
fn no_server(folder: &Path) -> Refusal {
    let message =
        format!("-r names the directory {}, and a short code is for a server", folder.display());
    Refusal::new(Exit::Usage, message).hint(NAME_IT)
}

/// Lists the servers that are found, and asks which is meant if there are several. `None` if there is none, or who pairs has an invite,
/// which says where its server is.
fn choose(app: &App) -> Result<Option<FoundServer>> {
    if !Announcement::IS_BUILT || app.output.quiet || app.output.json {
        return Ok(None);
    }
    let found = match discover::look(app) {
        Ok(found) => found,
        Err(error) => {
            app.interrupt.refuse_if_happened()?;
            app.output.note(error);
            return Ok(None);
        }
    };
    discover::say_what_lacks(app, &found);
    let servers = found.servers();
    for (at, server) in servers.iter().enumerate() {
        let [name, place] = discover::lines_of(server);
        app.output.note(format_args!("{}. {name}", at + 1));
        app.output.note(place);
    }
    match servers[..] {
        [] => Ok(None),
        [only] => Ok(Some(only.clone())),
        _ => asked(app, &servers),
    }
}

/// Asks which of several is meant.
fn asked(app: &App, servers: &[&FoundServer]) -> Result<Option<FoundServer>> {
    let count = servers.len();
    let question = format!("which one, 1 to {count} (Enter if you have an invite)? ");
    let Some(answer) = ask(&app.output, &app.interrupt, &question)? else { return Ok(None) };
    let answer = answer.trim();
    if answer.is_empty() {
        return Ok(None);
    }
    let number = answer.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let server = number.and_then(|number| servers.get(number));
    let wrong = || Refusal::new(Exit::Usage, format!("{answer:?} is no number from 1 to {count}"));
    Ok(Some((*server.ok_or_else(wrong)?).clone()))
}

/// The only server that is found.
fn the_only_one(app: &App) -> Result<FoundServer> {
    let found = discover::look(app)?;
    discover::say_what_lacks(app, &found);
    match found.servers()[..] {
        [] => {
            let message = "no server was found on the network for the short code";
            Err(Refusal::new(Exit::Unreachable, message).hint(NAME_IT).into())
        }
        [only] => Ok(only.clone()),
        [first, second, ..] => {
            let message = format!(
                "several servers were found, among them {} and {}",
                first.name, second.name
            );
            Err(Refusal::new(Exit::Usage, message).hint(NAME_IT).into())
        }
    }
}
