//! `holdall invite`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use clap::builder::{NonEmptyStringValueParser, TypedValueParser};
use holdall_server::{Invitation, InviteRequest, admin, is_host_and_port};
use holdall_sys::SystemClock;
use serde::Serialize;
use zeroize::Zeroizing;

use super::serve::data_folder;
use crate::app::App;
use crate::arguments::machine_name;
use crate::exit::Exit;
use crate::opening::connection::parse_duration;
use crate::opening::open::{DEFAULT_PORT, in_brackets};
use crate::terminal::output::{local_time, plain, rfc3339};

/// Makes an invite, with which one machine can pair with this server
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall invite --name laptop
         holdall invite --for laptop      (for the computer that replaces it)
         holdall invite --name web01 --valid-for 7d
         holdall invite --short           (nine digits to type, in the same network)

The invite is the last line printed. It lets one machine in, once, within ten minutes or what --valid-for says; this \
works while the server runs, and needs the right to write the server's data folder. It makes no server.

A short code (--short) is made by a server that runs, five times an hour at most, and takes the place of the one before. Typed wrong, \
it is spent, so that nobody finds it by trying.

Exit codes: 0 done, 1 failed, 2 wrong usage")]
pub(crate) struct Args {
    /// The server's data folder [default: as for `holdall serve`]
    #[arg(long, value_name = "DIR", env = "HOLDALL_DATA")]
    data: Option<PathBuf>,
    /// The machine's name for people [default: what it calls itself]
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new().try_map(|name| machine_name::parse(&name)))]
    name: Option<String>,
    /// Gives this machine's repository to a new identity, and revokes the old one
    #[arg(long = "for", value_name = "MACHINE")]
    for_machine: Option<String>,
    /// The repository's name [default: the machine's]
    #[arg(long, value_name = "NAME")]
    repository: Option<String>,
    /// Where machines reach this server, at the port that it listens at if none is said; may be given several times
    /// [default: what it finds out]
    #[arg(long = "address", value_name = "HOST[:PORT]", value_parser = host_and_port)]
    addresses: Vec<String>,
    /// How long the invite is good, at most 30 days; who finds it meanwhile is let in [default: 10m]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    valid_for: Option<Duration>,
    /// Nine digits to type in the place of the invite, on a machine that finds this server: good for ten minutes and one try
    #[arg(long, conflicts_with = "valid_for")]
    short: bool,
}

/// `HOST:PORT` or `HOST` as it was typed, an IPv6 address in brackets.
fn host_and_port(text: &str) -> Result<String, String> {
    let address = in_brackets(text).unwrap_or_else(|| text.to_owned());
    if is_host_and_port(text) {
        Ok(text.to_owned())
    } else if is_host_and_port(&address) {
        Err(format!("put an IPv6 address in brackets: {address}"))
    } else if is_host_and_port(&format!("{address}:{DEFAULT_PORT}")) {
        Ok(address)
    } else {
        Err("it is no HOST:PORT, such as nas:7443".to_owned())
    }
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    #[derive(Serialize)]
    struct Made {
        invite: Zeroizing<String>,
        expires: String,
        addresses: Vec<String>,
    }
    let data = data_folder(args.data.clone())?;
    let request = InviteRequest {
        name: args.name.clone(),
        for_machine: args.for_machine.clone(),
        repository: args.repository.clone(),
        addresses: args.addresses.clone(),
        valid_for_s: args.valid_for.map(|valid_for| valid_for.as_secs()),
    };
    if args.short {
        return short_code(&data, request, app);
    }
    let made = make(&data, &request)?;
    let invite = Made {
        invite: made.invite.to_text(),
        expires: rfc3339(made.expires_ns),
        addresses: made.invite.addresses.clone(),
    };
    app.output.object("invite", &invite)?;
    if !app.output.json {
        app.output.say(format_args!("for a server at {}", invite.addresses.join(", ")))?;
        app.output.say(format_args!(
            "good once, until {}, for `holdall pair` on the machine:",
            local_time(made.expires_ns)
        ))?;
        plain(&*invite.invite)?;
    }
    Ok(Exit::Done)
}

/// Makes a short code, and shows it.
fn short_code(data: &Path, request: InviteRequest, app: &App) -> Result<Exit> {
    #[derive(Serialize)]
    struct Made<'a> {
        code: &'a str,
        expires: String,
        addresses: &'a [String],
    }
    let made = admin::ask(data, &admin::MakeShortCode { request }, Arc::new(SystemClock))?;
    let (code, addresses, expires) = (&made.code, &made.addresses, rfc3339(made.expires_ns));
    app.output.object("short_code", &Made { code, expires, addresses })?;
    if !app.output.json {
        app.output.say(format_args!("for a server at {}", addresses.join(", ")))?;
        app.output.say(format_args!(
            "good for one try, until {}; type it on the machine, where `holdall pair` asks for it:",
            local_time(made.expires_ns)
        ))?;
        plain(&**code)?;
    }
    Ok(Exit::Done)
}

/// Makes an invite beside the server of that data folder, whether it runs or not.
///
/// # Errors
/// If names are not valid or taken, or the folder is not a server's.
pub(crate) fn make(data: &Path, request: &InviteRequest) -> Result<Invitation> {
    let asked = admin::Invite { request: request.clone() };
    Ok(admin::ask(data, &asked, Arc::new(SystemClock))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_address_is_taken_with_and_without_brackets_unless_its_end_may_be_a_port() {
        for (typed, meant) in [
            ("nas:1", "nas:1"),
            ("[::1]:9", "[::1]:9"),
            ("[::1]", "[::1]"),
            ("::1", "[::1]"),
            ("2001:db8::5", "[2001:db8::5]"),
            ("nas", "nas"),
        ] {
            assert_eq!(host_and_port(typed).as_deref(), Ok(meant), "{typed}");
        }
        assert!(host_and_port("::1:7443").unwrap_err().ends_with("[::1]:7443"));
        assert!(host_and_port("nas:").is_err() && host_and_port("[nas]").is_err());
    }
}
