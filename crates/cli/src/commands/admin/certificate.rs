//! `holdall admin certificate`.

use std::path::Path;

use anyhow::Result;
use holdall_server::admin::ShowCertificate;
use serde::Serialize;

use super::ask;
use crate::app::App;
use crate::exit::Exit;
use crate::terminal::output::{Shown, local_time, rfc3339};

/// Shows how the certificate for browsers is that an authority gives
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall admin certificate

It is about `holdall serve --web-acme`. A certificate is renewed when a third of its life is left.

Exit codes: 0 done, 1 failed, 2 wrong usage")]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args, data: &Path, app: &App) -> Result<Exit> {
    #[derive(Serialize)]
    struct JsonCertificate<'a> {
        names: &'a [String],
        until: Option<String>,
        problem: Option<&'a str>,
    }
    let status = ask(data, &ShowCertificate {})?;
    let (until, problem) = (status.until_ns.map(rfc3339), status.problem.as_deref());
    app.output.object("certificate", &JsonCertificate { names: &status.names, until, problem })?;
    if status.names.is_empty() {
        app.output.say("no authority was asked for one; `holdall serve --web-acme` does")?;
        return Ok(Exit::Done);
    }
    let until = status
        .until_ns
        .map_or_else(|| "not got yet".to_owned(), |ns| format!("good until {}", local_time(ns)));
    let names = status.names.join(", ");
    app.output.result(format_args!("{}: {until}", Shown(names.as_bytes())))?;
    if let Some(problem) = problem {
        app.output.note(format_args!("it could not be renewed: {}", Shown(problem.as_bytes())));
    }
    Ok(Exit::Done)
}
