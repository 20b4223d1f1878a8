//! `holdall admin token`.

use std::path::Path;

use anyhow::Result;
use holdall_server::admin::{IssuedToken, MakeToken};
use serde::Serialize;

use super::ask;
use crate::app::App;
use crate::exit::Exit;
use crate::terminal::output::{local_time, rfc3339};

/// Makes a token that lets a machine request deletions in its repository for a day
///
/// A deletion that it requests waits like any other, and `holdall admin cancel` cancels it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall admin token laptop > token      (on the server)
         holdall forget --keep-monthly 12 --admin-token-file token      (on the laptop)

The token works only together with the machine's key, and for this repository alone. It is the last line \
printed; the server keeps only its hash.

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
