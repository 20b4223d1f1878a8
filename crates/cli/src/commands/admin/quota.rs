//! `holdall admin quota`.

use std::path::Path;

use anyhow::Result;
use holdall_server::admin::{Quota, SetQuota};

use super::ask;
use super::repositories::show;
use crate::app::App;
use crate::arguments::quantity;
use crate::exit::Exit;

/// Shows or sets how much a repository may hold
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall admin quota laptop             shows it
         holdall admin quota laptop 500G
         holdall admin quota laptop none        as much as there is room for

A backup that would pass the quota ends with exit code 13, and nothing over it is stored. What is \
there stays and can be restored.

Exit codes: 0 done, 1 failed, such as for a repository that is not there, 2 wrong usage")]
pub(crate) struct Args {
    /// The repository's name
    #[arg(value_name = "REPOSITORY")]
    repository: String,
    /// Most bytes that it may hold from now on (such as 500k, 20M, 1G, 2T), or none
    #[arg(value_name = "BYTES|none", value_parser = parse_quota)]
    quota: Option<Quota>,
}

fn parse_quota(text: &str) -> Result<Quota, String> {
    if text == "none" { Ok(Quota::None) } else { quantity::bytes(text).map(Quota::Bytes) }
}

pub(crate) fn run(args: &Args, data: &Path, app: &App) -> Result<Exit> {
    let (repository, quota) = (args.repository.clone(), args.quota);
    show(app, &ask(data, &SetQuota { repository, quota })?)?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_a_number_of_bytes_or_none() {
        assert_eq!(parse_quota("none"), Ok(Quota::None));
        assert_eq!(parse_quota("2T"), Ok(Quota::Bytes(2_000_000_000_000)));
        assert!(parse_quota("much").is_err());
    }
}
