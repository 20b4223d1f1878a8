//! `holdall admin metrics-token`.

use std::path::Path;

use anyhow::Result;
use holdall_server::admin::{IssuedMetricsToken, MakeMetricsToken};
use serde::Serialize;

use super::ask;
use crate::app::App;
use crate::exit::Exit;

/// Makes a token with which Prometheus reads this server's metrics
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall admin metrics-token > /etc/prometheus/holdall.token
         curl -k -H \"Authorization: Bearer $TOKEN\" https://nas:7443/metrics

It reads `/metrics` and nothing else, until another is made. It is the last line printed; the server keeps only its hash.

Exit codes: 0 done, 1 failed, such as for a holdall that was built without its pages, 2 wrong usage")]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args, data: &Path, app: &App) -> Result<Exit> {
    #[derive(Serialize)]
    struct JsonToken<'a> {
        token: &'a str,
    }
    let IssuedMetricsToken { token } = ask(data, &MakeMetricsToken {})?;
    app.output.object("metrics_token", &JsonToken { token: &token })?;
    app.output.result(token.as_str())?;
    Ok(Exit::Done)
}
