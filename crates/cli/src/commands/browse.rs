//! `holdall browse`.

use std::io::{IsTerminal, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::channel;

use anyhow::Result;
use holdall_browse::{Browse, BrowseError, BrowseOptions};
use holdall_engine::UnlockedRepository;
use holdall_sys::SystemClock;
use serde::Serialize;
use tempfile::NamedTempFile;

use crate::app::App;
use crate::exit::{Exit, Refusal};
use crate::opening::open;
use crate::report::listing;
use crate::terminal::output::plain;

/// Shows the snapshots in a browser, and as WebDAV, on this computer alone
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall browse

It is ready when it prints \"browse at http://127.0.0.1:PORT/?token=...\", and ends with Ctrl-C. The address is good once. \
The same snapshots, only to be read, are at http://127.0.0.1:PORT/dav/ for programs that speak WebDAV: any user name, with the \
token as password, as long as it runs. Nobody but programs of this computer can reach either; whoever has the token reads \
all that is backed up, and restores files as you.

Exit codes: 0 ended as it was asked to, 1 failed, such as for a holdall that was built without its pages, 2 wrong usage, \
10 no such repository, 12 wrong password, 13 not allowed, 14 server unreachable, 20 damage found")]
pub(crate) struct Args {
    /// Where to listen: an address of this computer alone, with a port; a port alone is that of 127.0.0.1, and port 0 takes
    /// a free one
    #[arg(long, value_name = "127.0.0.1:PORT", default_value = "127.0.0.1:0", value_parser = listen_address)]
    listen: SocketAddr,
    /// Only prints the address, and opens no browser
    #[arg(long)]
    no_open: bool,
}

fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text).parse::<u16>();
    let address = port.map(|port| (Ipv4Addr::LOCALHOST, port).into()).or_else(|_| text.parse());
    let address: SocketAddr =
        address.map_err(|_| "give a port, such as 7444, or 127.0.0.1:7444, or [::1]:7444")?;
    match address.ip().is_loopback() {
        true => Ok(address),
        false => Err(
            "other computers could reach that address, and the pages show all that is backed up: \
                      give one of this computer alone, such as 127.0.0.1:7444"
                .to_owned(),
        ),
    }
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    refuse_without_pages()?;
    let (access, name) = open::access_and_name(app)?;
    // What is damaged or gone is told before anybody looks at the rest.
    listing::shown(app, &access)?;
    show(app, access, name, args.listen, !args.no_open)?;
    Ok(app.ended(Exit::Done))
}

/// Refuses where there are no pages to show.
///
/// # Errors
/// That, with what to do.
pub(super) fn refuse_without_pages() -> Result<(), Refusal> {
    if Browse::IS_BUILT {
        return Ok(());
    }
    let refusal = Refusal::new(Exit::Failed, BrowseError::NotBuilt.to_string());
    Err(refusal.hint("build it with `--features web`, or take the packaged one"))
}

/// Shows what is in a repository until it is interrupted.
///
/// # Errors
/// If it cannot listen; if a restore was under way when it was interrupted.
pub(super) fn show(
    app: &App,
    access: UnlockedRepository,
    name: String,
    listen: SocketAddr,
    opens: bool,
) -> Result<()> {
    let options =
        BrowseOptions { access: Arc::new(access), name, listen, clock: Arc::new(SystemClock) };
    let browse = Browse::start(options)?;
    announce(app, &browse)?;
    let _opened = if opens { opened(&browse.address()) } else { None };
    let (tell, told) = channel::<()>();
    app.interrupt.tell(move || drop(tell));
    // Nothing is ever sent: the sender goes when it is to end.
    let _ = told.recv();
    if browse.shutdown() {
        let message = "interrupted: a restore was under way, and not all of it is there";
        return Err(Refusal::new(Exit::Interrupted, message).into());
    }
    Ok(())
}

fn announce(app: &App, browse: &Browse) -> Result<()> {
    #[derive(Serialize)]
    struct Browsing {
        address: String,
    }
    let address = browse.address();
    app.output.object("browsing", &Browsing { address: address.clone() })?;
    if !app.output.json {
        // Said even with -q: without it nobody gets in.
        plain(format_args!("browse at {address}"))?;
    }
    Ok(())
}

/// Has the desktop open the address, where there is one. The token is no argument, which all users could see: it is in a
/// file that leads there, and that goes when this ends.
fn opened(address: &str) -> Option<(NamedTempFile, Child)> {
    let has_desktop =
        ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    if !has_desktop || !std::io::stdout().is_terminal() {
        return None;
    }
    let mut file = tempfile::Builder::new().suffix(".html").tempfile().ok()?;
    write!(file, "<!doctype html><meta http-equiv=\"refresh\" content=\"0; url={address}\">")
        .ok()?;
    let mut command = Command::new("xdg-open");
    command.arg(file.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Where it is not there, the address is printed all the same.
    Some((file, command.spawn().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_computer_alone_are_taken() {
        for (text, address) in [
            ("7444", "127.0.0.1:7444"),
            (":0", "127.0.0.1:0"),
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("[::1]:7444", "[::1]:7444"),
        ] {
            assert_eq!(listen_address(text), Ok(address.parse().unwrap()), "{text}");
        }
        for text in ["0.0.0.0:7444", "[::]:7444", "192.168.1.5:7444", "localhost:1", "", "x"] {
            assert!(listen_address(text).is_err(), "{text}");
        }
    }
}
