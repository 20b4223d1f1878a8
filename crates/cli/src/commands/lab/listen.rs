//! `holdall lab listen`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use holdall_crypto::{Entropy, SystemEntropy};
use holdall_lab::net::{Listener, ListenerOptions, Token};
use serde::Serialize;

use crate::app::App;
use crate::arguments::quantity;
use crate::exit::Exit;
use crate::terminal::output::plain;

/// Answers `holdall lab net` on a computer without a server
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall lab listen --dir /srv/scratch
         holdall lab net nas:7444 --token 1f3a...     (on the other computer)

It prints where it listens, and a token that is good until it ends: whoever gives it may measure, and \
nobody else. What is measured is not encrypted. Files are written in DIR alone, at most a quarter of \
what is free there, without a name, so that nothing is left of them.

Exit codes: 0 ended as it was asked to, 1 failed, 2 wrong usage")]
pub(crate) struct Args {
    /// Where to listen, at :: on IPv4 too; port 0 takes a free one
    #[arg(value_name = "ADDR:PORT", default_value = "[::]:7444")]
    listen: SocketAddr,
    /// Lets files be measured too, in this folder
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Takes at most so much room there
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = quantity::bytes, requires = "dir")]
    size: u64,
}

pub(crate) fn run(args: Args, app: &App) -> Result<Exit> {
    let (mut token, mut seed) = ([0; 16], [0; 32]);
    SystemEntropy.fill(&mut token);
    SystemEntropy.fill(&mut seed);
    let token = Token::from_bytes(token);
    let output = app.output.clone();
    let listener = Arc::new(
        Listener::bind(ListenerOptions {
            listen: args.listen,
            token: token.clone(),
            folder: args.dir,
            scratch_bytes: args.size,
            seed,
            log: Box::new(move |line| output.detail(line)),
        })
        .with_context(|| format!("cannot listen on {}", args.listen))?,
    );
    announce(app, listener.address(), &token)?;
    let stopping = Arc::clone(&listener);
    app.interrupt.tell(move || stopping.stop());
    listener.serve();
    Ok(Exit::Done)
}

fn announce(app: &App, address: SocketAddr, token: &Token) -> Result<()> {
    #[derive(Serialize)]
    struct Listening {
        address: String,
        token: String,
    }
    let listening = Listening { address: address.to_string(), token: token.to_string() };
    app.output.object("lab_listening", &listening)?;
    if !app.output.json {
        // Said even with -q: whoever starts a listener waits for it.
        plain(format_args!("listening on {address}"))?;
        plain(format_args!("token {token}"))?;
    }
    Ok(())
}
