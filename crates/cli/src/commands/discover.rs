//! `holdall discover`.

use std::time::Duration;

use anyhow::Result;
use holdall_discovery::{Announcement, DiscoveryError, Found, FoundServer, find_servers};
use serde::Serialize;

use crate::app::App;
use crate::exit::{Exit, Refusal};

/// How long it is looked: a question that was lost is asked again after a second.
const LOOKS_FOR: Duration = Duration::from_secs(3);
/// Why a server that runs may not be found.
const WHY_NOT: &str = "a server is found if it runs in the same network, without --no-discovery, and no firewall on either computer \
                       or in between keeps UDP port 5353 shut. One elsewhere is named instead: an invite says where it is, and \
                       so does -r https://HOST";

/// Lists the servers found on the network
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall discover

It looks for three seconds who announces a server, by multicast DNS (DNS-SD, `_holdall._tcp`). Anybody on the network can announce \
anything: what is listed is no proof. `holdall pair` proves who is there, by an invite or a short code.

Exit codes: 0 done, whether any was found or not, 1 failed, such as for a holdall that was built without it, 2 wrong usage")]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args, app: &App) -> Result<Exit> {
    #[derive(Serialize)]
    struct Listed<'a> {
        name: &'a str,
        addresses: Vec<String>,
        port: u16,
        fingerprint: &'a str,
    }
    let found = look(app)?;
    for FoundServer { name, addresses, port, fingerprint } in found.servers() {
        let addresses = addresses.iter().map(ToString::to_string).collect();
        app.output.object("server", &Listed { name, addresses, port: *port, fingerprint })?;
    }
    for server in found.servers() {
        lines_of(server).into_iter().try_for_each(|line| app.output.result_prose(line))?;
    }
    say_what_lacks(app, &found);
    Ok(Exit::Done)
}

/// Looks who announces a server.
///
/// # Errors
/// [`Refusal`] if this was built without it, the system cannot do it, or a signal came.
pub(super) fn look(app: &App) -> Result<Found> {
    if Announcement::IS_BUILT {
        app.output.note("looking for servers on the network");
    }
    let interrupted = || app.interrupt.refuse_if_happened().is_err();
    find_servers(LOOKS_FOR, interrupted).map_err(|error| {
        let exit = match error {
            DiscoveryError::Interrupted => Exit::Interrupted,
            _ => Exit::Failed,
        };
        let refusal = Refusal::new(exit, error.to_string());
        match error {
            DiscoveryError::NotBuilt => refusal
                .hint("name the server: an invite says where it is, and so does -r https://HOST"),
            _ => refusal,
        }
        .into()
    })
}

/// Says that none was found, and why that may be, or that there were too many.
pub(super) fn say_what_lacks(app: &App, found: &Found) {
    if found.servers().is_empty() {
        app.output.note("no server was found");
        app.output.note(WHY_NOT);
    }
    if found.are_more {
        app.output.urge(
            "more servers were announced than are listed: someone may be flooding the network. Name the one you mean: -r \
             https://HOST",
        );
    }
}

/// A server as people read it: the name is the server's own choice, so it has a line for itself.
pub(super) fn lines_of(server: &FoundServer) -> [String; 2] {
    let FoundServer { name, fingerprint, .. } = server;
    [name.clone(), format!("    {}, identity {fingerprint}", server.hosts().join(", "))]
}
