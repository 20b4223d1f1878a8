//! `holdall serve`.

use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::Result;
use holdall_discovery::{Announced, Announcement};
use holdall_server::{Acme, LETS_ENCRYPT, Limits, LogSink, OwnCertificate, Server, ServerOptions};
use holdall_sys::{Clock, SystemClock};
use serde::Serialize;

use crate::app::App;
use crate::config;
use crate::exit::Exit;
use crate::terminal::interrupt::Interrupt;
use crate::terminal::output::{Output, plain, rfc3339_seconds};

/// How often it is looked whether the data folder is on another disk.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Runs a server, which keeps repositories for machines and cannot read them
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall serve --data /srv/holdall
         holdall invite --data /srv/holdall     (meanwhile, lets a machine in)

It is ready when it prints \"listening on https://ADDR:PORT\"; the fingerprint of its identity \
follows. It ends within 5 seconds of SIGTERM or Ctrl-C. A disk of its data that is pulled out and put \
back, as another device, needs no restart.

Its log, on standard error, has a line for each snapshot, reading and refusal; with -v for each session, with -vv for each request. \
Lines begin with the time, unless they go to systemd's journal.

Exit codes: 0 ended as it was asked to, 1 failed, 2 wrong usage")]
pub(crate) struct Args {
    /// The data folder [default: /var/lib/holdall for root, else ~/.local/share/holdall]
    #[arg(long, value_name = "DIR", env = "HOLDALL_DATA")]
    data: Option<PathBuf>,
    /// Where to listen; a port alone is that of all addresses, IPv6 and IPv4; port 0 takes a free one
    #[arg(long, value_name = "[ADDR]:PORT", default_value = ":7443", value_parser = listen_address)]
    listen: SocketAddr,
    /// A name, besides this computer's own, by which browsers may reach the pages; may be repeated
    #[arg(long, value_name = "HOST", env = "HOLDALL_WEB_NAMES", value_delimiter = ',')]
    web_name: Vec<String>,
    /// A PEM file of a certificate for browsers, with those that vouch for it [default: the server makes one]
    #[arg(long, value_name = "FILE", env = "HOLDALL_WEB_CERTIFICATE", requires = "web_key")]
    web_certificate: Option<PathBuf>,
    /// A PEM file of its key. Both are read again when they are renewed
    #[arg(long, value_name = "FILE", env = "HOLDALL_WEB_KEY", requires = "web_certificate")]
    web_key: Option<PathBuf>,
    /// Has an authority give a certificate for this name, at which it reaches port 443 of this server; may be repeated
    #[arg(
        long,
        value_name = "NAME",
        env = "HOLDALL_WEB_ACME",
        value_delimiter = ',',
        requires = "web_acme_contact",
        conflicts_with = "web_certificate"
    )]
    web_acme: Vec<String>,
    /// Whom the authority may write to, such as mailto:me@example.org. Naming it agrees to its terms
    #[arg(long, value_name = "MAILTO", env = "HOLDALL_WEB_ACME_CONTACT", requires = "web_acme")]
    web_acme_contact: Option<String>,
    /// The authority's address (ACME) [default: that of Let's Encrypt]
    #[arg(long, value_name = "URL", env = "HOLDALL_WEB_ACME_DIRECTORY", requires = "web_acme")]
    web_acme_directory: Option<String>,
    /// Does not announce the server on the network, for `holdall discover`
    #[arg(long)]
    no_discovery: bool,
    /// Ends when standard input does, so that it never outlives who started it
    #[arg(long, hide = true)]
    until_input_ends: bool,
}

impl Args {
    fn web_certificate(&self) -> Option<OwnCertificate> {
        let (chain, key) = self.web_certificate.clone().zip(self.web_key.clone())?;
        Some(OwnCertificate { chain, key })
    }
}

impl Args {
    fn web_acme(&self) -> Option<Acme> {
        let directory = self.web_acme_directory.as_deref().unwrap_or(LETS_ENCRYPT).to_owned();
        let contact = self.web_acme_contact.clone()?;
        Some(Acme { names: self.web_acme.clone(), contact, directory })
    }
}

fn listen_address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.strip_prefix(':').unwrap_or(text).parse::<u16>() {
        return Ok((Ipv6Addr::UNSPECIFIED, port).into());
    }
    let wanted = "give a port, such as :7443, or an address in numbers, too, such as 192.168.1.5:7443 or [::1]:7443";
    text.parse().map_err(|_| wanted.to_owned())
}

pub(crate) fn run(args: Args, app: &App) -> Result<Exit> {
    holdall_sys::heap::share(super::backup::cores());
    let (certificate, acme) = (args.web_certificate(), args.web_acme());
    let data_dir = data_folder(args.data)?;
    // Every connection and every open pack takes a descriptor; a lower limit still works.
    let _ = holdall_sys::limits::raise_open_files();
    let log = log_to(app.output.clone());
    let start = |listen| {
        Server::start(ServerOptions {
            data_dir: data_dir.clone(),
            listen,
            clock: Arc::new(SystemClock),
            limits: Limits::default(),
            log: Arc::clone(&log),
            web_names: args.web_name.clone(),
            web_certificate: certificate.clone(),
            web_acme: acme.clone(),
            detail: app.output.verbose,
        })
    };
    let mut server = start(args.listen)?;
    announce(&app.output, &server)?;
    let mut announcement = match args.no_discovery {
        true => None,
        false => announce_on_network(&server, &log),
    };
    if args.until_input_ends {
        end_with_input(app.interrupt.clone())?;
    }
    let (tell, told) = channel::<()>();
    app.interrupt.tell(move || drop(tell));
    // Nothing is ever sent: the sender goes when it is to end.
    while told.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
        if let Some(problem) = announcement.as_mut().and_then(Announcement::look) {
            log(&problem);
        }
        if server.data_has_moved() {
            log("the data folder is on another disk now: starting again there");
            let listen = server.local_addr();
            server.shutdown();
            server = start(listen)?;
        }
    }
    // The network is told that the server goes, while it still answers.
    announcement.take();
    server.shutdown();
    Ok(Exit::Done)
}

/// Has those find the server who look for one, if it listens where others reach it. It serves without that, too.
fn announce_on_network(server: &Server, log: &LogSink) -> Option<Announcement> {
    let (name, fingerprint, listen) = (server.name(), server.fingerprint(), server.local_addr());
    let announced = Announced { name, fingerprint, listen };
    if !Announcement::IS_BUILT || !announced.is_reachable() {
        return None;
    }
    match Announcement::begin(announced) {
        Ok(announcement) => {
            log("announced on the network, for `holdall discover`");
            Some(announcement)
        }
        Err(error) => {
            log(&format!("not announced on the network: {error}"));
            None
        }
    }
}

/// The data folder that was named, or the usual one.
///
/// # Errors
/// If there is no usual one.
pub(crate) fn data_folder(named: Option<PathBuf>) -> Result<PathBuf> {
    Ok(named.map_or_else(config::default_data, |named| config::below_home(&named))?)
}

fn announce(output: &Output, server: &Server) -> Result<()> {
    #[derive(Serialize)]
    struct Listening {
        address: String,
        identity: String,
    }
    let address = format!("https://{}", server.local_addr());
    let listening = Listening { address, identity: server.fingerprint() };
    output.object("listening", &listening)?;
    if !output.json {
        // Said even with -q: whoever starts a server waits for it.
        plain(format_args!("listening on {}", listening.address))?;
        plain(format_args!("identity {}", listening.identity))?;
        if Server::HAS_PAGES {
            // Never the code itself: what is printed here ends in a log.
            plain(
                "pages for browsers; `holdall admin web-code` makes a code for the first sign-in",
            )?;
        }
    }
    Ok(())
}

fn log_to(output: Output) -> LogSink {
    #[derive(Serialize)]
    struct Line<'a> {
        time: &'a str,
        message: &'a str,
    }
    let is_in_journal = is_in_journal();
    Arc::new(move |message| {
        let time = &rfc3339_seconds(SystemClock.now_ns());
        match is_in_journal {
            true => output.note(message),
            false => output.note(format_args!("{time} {message}")),
        }
        // Nobody is left to be told that nobody listens.
        let _ = output.object("log", &Line { time, message });
    })
}

/// Whether standard error is the journal's, which knows when a line came: systemd names it by device and inode.
fn is_in_journal() -> bool {
    let named = std::env::var("JOURNAL_STREAM").unwrap_or_default();
    let Ok(own) = rustix::fs::fstat(std::io::stderr()) else { return false };
    named == format!("{}:{}", own.st_dev, own.st_ino)
}

fn end_with_input(interrupt: Interrupt) -> std::io::Result<()> {
    let wait = move || {
        // However it ends, it has ended.
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        interrupt.happen();
    };
    holdall_sys::thread::start_alone(wait).map(drop)
}
