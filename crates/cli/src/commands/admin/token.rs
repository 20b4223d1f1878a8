//! `holdall admin token`.

use std::path::Path;

use anyhow::Result;
use holdall_server::admin::{IssuedToken, MakeToken};
use serde::Serialize;

use super::ask;
use crate::app::App;
use crate::exit::Exit;
use crate::terminal::output::{local_time, rfc3339};

/// Makes a token with which a machine may ask for deletions in its repository, for a day
///
/// What is asked for with it waits like any deletion, and `holdall admin cancel` takes it back.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall admin token laptop > token      (on the server)
         holdall forget --keep-monthly 12 --admin-token-file token      (on the laptop)

Whoever has the token and the machine's key may use it, for this repository alone. The token is the \
last line that is printed; the server keeps its hash only.

Exit codes: 0 done, 1 failed, 2 wrong usage")]
pub(crate) struct Args {
    /// The repository's name
    #[arg(value_name = "REPOSITORY")]
    repository: String,
}

pub(crate) fn run(args: &Args, data: &Path, app: &App) -> Result<Exit> {
    #[derive(Serialize)]
    struct JsonToken<'a> {
        repository: &'a str,
        token: &'a str,
        expires: String,
    }
    let asked = MakeToken { repository: args.repository.clone() };
    let IssuedToken { token, expires_ns } = ask(data, &asked)?;
    let (repository, token) = (&args.repository, token.to_text());
    let object = JsonToken { repository, token: &token, expires: rfc3339(expires_ns) };
    app.output.object("admin_token", &object)?;
    app.output.note(format_args!("accepted for {repository} until {}", local_time(expires_ns)));
    app.output.result(token.as_str())?;
    Ok(Exit::Done)
}
