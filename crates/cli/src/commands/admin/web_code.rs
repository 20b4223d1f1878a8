//! `holdall admin web-code`, and how a server says where its pages are.

use std::path::Path;

use anyhow::Result;
use holdall_server::admin::{IssuedWebCode, MakeWebCode, Scope};
use serde::Serialize;

use super::ask;
use crate::app::App;
use crate::exit::Exit;
use crate::terminal::output::{local_time, plain, rfc3339};

/// Makes a code with which somebody becomes an administrator in a browser, once
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall admin web-code
         holdall admin web-code --for bob --scope operate

The code is typed in at the address that is printed, within an hour, and makes an account with a name and a \
password. A name that is known gets the new password, and its second factor is taken away: that is for who forgot \
theirs, or lost the telephone. It is the last line printed. A new code takes the place of the one before.

Exit codes: 0 done, 1 failed, such as for a holdall that was built without its pages, 2 wrong usage")]
pub(crate) struct Args {
    /// Whom it is for [default: whoever types it in]
    #[arg(long = "for", value_name = "NAME")]
    name: Option<String>,
    /// What they may do in a browser
    #[arg(long, value_enum, default_value_t = RoleArg::Administer)]
    scope: RoleArg,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum RoleArg {
    /// See everything but tokens and who had what changed
    Read,
    /// Scrub, prune and cancel deletions besides
    Operate,
    /// Do everything
    Administer,
}

impl From<RoleArg> for Scope {
    fn from(arg: RoleArg) -> Self {
        match arg {
            RoleArg::Read => Self::Read,
            RoleArg::Operate => Self::Operate,
            RoleArg::Administer => Self::Administer,
        }
    }
}

pub(crate) fn run(args: &Args, data: &Path, app: &App) -> Result<Exit> {
    #[derive(Serialize)]
    struct JsonCode<'a> {
        code: &'a str,
        expires: String,
        addresses: &'a [String],
    }
    let asked = MakeWebCode { name: args.name.clone(), scope: args.scope.into() };
    let IssuedWebCode { code, expires_ns, addresses } = ask(data, &asked)?;
    let object = JsonCode { code: &code, expires: rfc3339(expires_ns), addresses: &addresses };
    app.output.object("web_code", &object)?;
    if !app.output.json {
        for address in &addresses {
            app.output.say(format_args!("https://{address}/setup"))?;
        }
        app.output
            .say("a name that is known gets the new password, and loses its second factor")?;
        app.output.say(format_args!("good once, until {}:", local_time(expires_ns)))?;
        plain(code.as_str())?;
    }
    Ok(Exit::Done)
}
