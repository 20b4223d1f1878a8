//! `holdall admin api-token`: what programs, Prometheus and a family's browsers are let in with.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use holdall_server::admin::{
    ApiToken, IssuedApiToken, ListApiTokens, MakeApiToken, RevokeApiToken, Scope,
};
use serde::Serialize;

use super::ask;
use crate::app::App;
use crate::exit::Exit;
use crate::opening::connection::parse_duration;
use crate::terminal::output::{Shown, local_time, plain, rfc3339};

/// Makes, lists and revokes tokens with which programs ask this server
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall admin api-token prometheus > /etc/prometheus/holdall.token
         holdall admin api-token homepage --scope read --valid-for 90d
         holdall admin api-token                     (lists them)

`look` sees the overview and `/metrics`; `read` is told everything that pages show; `operate` looks after what is \
stored, and cancels deletions; `administer` does all that `holdall admin` does, but for what makes somebody an \
administrator. A token is the last line printed, and takes the place of any of its name. The server keeps only its hash.

Exit codes: 0 done, 1 failed, such as for a holdall that was built without its pages, 2 wrong usage")]
pub(crate) struct Args {
    /// What it is called; without a name, all are listed
    name: Option<String>,
    /// What may be done with it
    #[arg(long, value_enum, default_value_t = ScopeArg::Look, requires = "name")]
    scope: ScopeArg,
    /// How long it is good, such as 90d [default: until it is revoked]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, requires = "name")]
    valid_for: Option<Duration>,
    /// Takes it away
    #[arg(long, requires = "name", conflicts_with_all = ["scope", "valid_for"])]
    revoke: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum ScopeArg {
    Look,
    Read,
    Operate,
    Administer,
}

impl From<ScopeArg> for Scope {
    fn from(arg: ScopeArg) -> Self {
        match arg {
            ScopeArg::Look => Self::Look,
            ScopeArg::Read => Self::Read,
            ScopeArg::Operate => Self::Operate,
            ScopeArg::Administer => Self::Administer,
        }
    }
}

pub(crate) fn run(args: &Args, data: &Path, app: &App) -> Result<Exit> {
    let Some(name) = &args.name else { return list(data, app) };
    if args.revoke {
        for token in ask(data, &RevokeApiToken { name: name.clone() })?.tokens {
            show(app, &token)?;
        }
        return Ok(Exit::Done);
    }
    let valid_for_s = args.valid_for.map(|valid_for| valid_for.as_secs());
    let asked = MakeApiToken { name: name.clone(), scope: args.scope.into(), valid_for_s };
    let IssuedApiToken { token, addresses } = ask(data, &asked)?;
    app.output
        .object("issued_api_token", &JsonIssued { name, token: &token, addresses: &addresses })?;
    if !app.output.json {
        plain(token.as_str())?;
    }
    Ok(Exit::Done)
}

fn list(data: &Path, app: &App) -> Result<Exit> {
    let tokens = ask(data, &ListApiTokens {})?.tokens;
    if tokens.is_empty() {
        app.output.say("no tokens; `holdall admin api-token NAME` makes one")?;
    }
    tokens.iter().try_for_each(|token| show(app, token))?;
    Ok(Exit::Done)
}

fn show(app: &App, token: &ApiToken) -> Result<()> {
    let scope = token.scope;
    let expires_ns = token.expires_ns();
    let object = JsonToken {
        name: &token.name,
        scope,
        made: rfc3339(token.made_ns),
        expires: expires_ns.map(rfc3339),
    };
    app.output.object("api_token", &object)?;
    app.output.result(format_args!(
        "{:<20} {scope:<10} {}",
        Shown(token.name.as_bytes()).to_string(),
        expires_ns.map_or_else(
            || format!("made {}", local_time(token.made_ns)),
            |ns| format!("good until {}", local_time(ns)),
        ),
    ))?;
    Ok(())
}

#[derive(Serialize)]
struct JsonIssued<'a> {
    name: &'a str,
    token: &'a str,
    addresses: &'a [String],
}

#[derive(Serialize)]
struct JsonToken<'a> {
    name: &'a str,
    scope: Scope,
    made: String,
    expires: Option<String>,
}
