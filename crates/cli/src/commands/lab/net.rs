//! `holdall lab net`.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::ValueEnum;
use holdall_lab::net::{
    Direct, Far, Link, MAX_BUFFER_BYTES, MAX_SECONDS, MIN_BUFFER_BYTES, NetPlan, NetReport, NetRow,
    ScratchFile, ScratchFolder, Token, Wait, measure,
};
use holdall_lab::report::{Fact, Report};
use holdall_protocol::RepositoryError;
use serde::Serialize;

use super::answers;
use super::circumstances::Circumstances;
use super::rate::Slowest;
use super::table::{figure, latency, latency_heads, megabytes, tell_named};
use crate::app::App;
use crate::arguments::quantity;
use crate::exit::{Exit, Refusal};
use crate::lab::lab_report::ReportArgs;
use crate::lab::lab_server::{self, out_of_io};
use crate::terminal::output::{Output, counted};
use crate::terminal::progress::Steps;

/// The port of a listener that is named without one.
const LISTENER_PORT: u16 = 7444;
/// For how long round trips are measured at most.
const IDLE: Duration = Duration::from_secs(5);
/// How long a row may send: a listener refuses more.
const TIMES: RangeInclusive<Duration> =
    Duration::from_millis(50)..=Duration::from_secs(MAX_SECONDS);

/// Measures the path to a server, or to a `holdall lab listen`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples: holdall lab net                              the paired server, over TLS
          holdall lab net nas --token 1f3a...          `holdall lab listen` on nas
          holdall lab net nas --token 1f3a... --to-file --buffer 4K,64K,128K
          holdall lab net nas --token 1f3a... --streams 1,2 --bind 10.0.0.5,10.0.1.5

Each row sends for --time seconds. \"both ways\" are two rows that were measured at once. Retransmits are \
those of all connections of the sending computer meanwhile. What is read from a file or written to one \
is measured with each --buffer over each number of streams: each stream writes a file of its own, and \
all read the same one. A paired server is measured with what a backup uses, TLS with the machine's key; it \
reads and writes its own files as requests come, in one row for each number of streams.

Exit codes: 0 measured, 1 failed, 2 wrong usage, 4 measured, and a row below --fail-below, 12 wrong \
password, 13 wrong token, or not allowed, 14 not reachable, 130 interrupted")]
pub(crate) struct Args {
    /// HOST or HOST:PORT of a listener, or https://HOST:PORT of a server [default: the paired server]
    #[arg(value_name = "SERVER")]
    server: Option<String>,
    /// What the listener printed
    #[arg(long, value_name = "TOKEN", env = "HOLDALL_LAB_TOKEN", hide_env_values = true)]
    token: Option<Token>,
    /// Measures with so many streams at once; several numbers one after another
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,4", value_parser = clap::value_parser!(u8).range(1..=64))]
    streams: Vec<u8>,
    /// Sends for so many seconds in each row
    #[arg(long, value_name = "S", default_value = "3", value_parser = parse_time)]
    time: Duration,
    /// Connects from these addresses of this computer, in turn [default: any]
    #[arg(long, value_name = "ADDR", value_delimiter = ',')]
    bind: Vec<IpAddr>,
    /// Sends what this file has, too
    #[arg(long, value_name = "FILE")]
    from_file: Option<PathBuf>,
    /// Lets the other end write what it gets to files, too
    #[arg(long)]
    to_file: bool,
    /// Lets the other end read what it sends from a file, too
    #[arg(long)]
    from_file_there: bool,
    /// Writes what is received to files in this folder, too
    #[arg(long, value_name = "DIR")]
    to_file_here: Option<PathBuf>,
    /// Reads and writes files in pieces of this size; several sizes one after another
    #[arg(long, value_name = "SIZE", value_delimiter = ',', default_value = "64K", value_parser = parse_buffer)]
    buffer: Vec<u32>,
    /// What whoever writes a file waits for
    #[arg(long, value_enum, value_name = "WHEN", default_value = "each")]
    wait: WaitFor,
    /// Fails (exit code 4) if a row carries less in a second (such as 500k, 20M)
    #[arg(long, value_name = "RATE", value_parser = quantity::rate)]
    fail_below: Option<u64>,
    #[command(flatten)]
    report: ReportArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum WaitFor {
    /// Every write, until it is durable
    Each,
    /// One fsync at the end
    End,
    /// Nothing
    Never,
}

/// How often it is looked whether a quick measurement was interrupted.
const LOOKS_EVERY: Duration = Duration::from_millis(50);
/// Most bytes of all scratch files here together.
const SCRATCH_BYTES: u64 = 256 << 20;

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    args.report.check()?;
    let plan = args.plan()?;
    let (far, server) = args.far(app, &plan)?;
    let mut circumstances = Circumstances::now(None);
    circumstances.set_server(server);
    circumstances.tell(&app.output)?;
    let mut table = NetTable::new(app, plan.rows());
    let mut told = |row: &NetRow| table.tell(row);
    let stop = app.interrupt.flag();
    let measured =
        measure(&*far, &plan, &stop, &mut told).map_err(|error| in_words(args, error))?;
    drop(table);
    let mut slowest = Slowest::default();
    measured.rows.iter().for_each(|row| slowest.add_bytes(&row.reported()));
    let mut report = circumstances.report(slowest.rows());
    let over = match args.token {
        Some(_) => "TCP to `holdall lab listen`",
        None => "TLS to a holdall server",
    };
    report.facts.push(Fact::new("path", over));
    report.facts.extend(measured.link.iter().map(|link| Fact::new("link", link.words())));
    report.notes.extend(measured.advice.clone());
    if let Some(note) = args.one_buffer() {
        app.output.say(note)?;
        report.notes.push(note.to_owned());
    }
    summarise(app, &measured, &mut report)?;
    args.report.finish(app, &report)?;
    Ok(slowest.exit(args.fail_below))
}

impl Args {
    fn plan(&self) -> Result<NetPlan> {
        let from_file = self.from_file.as_ref().map(|file| {
            ScratchFile::existing(file).with_context(|| format!("--from-file {}", file.display()))
        });
        let mut streams: Vec<_> = self.streams.iter().map(|&streams| streams.into()).collect();
        streams.sort_unstable();
        streams.dedup();
        let to_folder = self.to_file_here.as_ref().map(|folder| {
            let most = (streams.last().copied(), self.buffer.iter().max().copied());
            scratch_in(folder, most).with_context(|| format!("--to-file-here {}", folder.display()))
        });
        Ok(NetPlan {
            duration: self.time,
            streams,
            both_ways: true,
            idle: IDLE,
            bind: self.bind.clone(),
            from_file: from_file.transpose()?,
            to_folder: to_folder.transpose()?,
            to_far_file: self.to_file,
            from_far_file: self.from_file_there,
            buffers_bytes: self.buffer.clone(),
            wait: match self.wait {
                WaitFor::Each => Wait::EachWrite,
                WaitFor::End => Wait::AtEnd,
                WaitFor::Never => Wait::Never,
            },
        })
    }

    /// Why a server does not do what was asked for, where it does not.
    fn beyond_a_server(&self) -> Option<&'static str> {
        let waits_otherwise = self.to_file && !matches!(self.wait, WaitFor::Each);
        waits_otherwise.then_some("a server makes what it writes durable with each request")
    }

    /// Why several buffers are one row, where they are.
    fn one_buffer(&self) -> Option<&'static str> {
        let has_far_file = self.to_file || self.from_file_there;
        let is_one = self.token.is_none() && has_far_file && self.buffer.len() > 1;
        is_one.then_some(
            "A server writes and reads each request as a whole, so that all of --buffer are one row for its \
             files; `holdall lab listen --dir DIR` there writes and reads with each.",
        )
    }

    /// Whom to measure, a listener where there is a token, else a server; and which one that is, in words.
    fn far(&self, app: &App, plan: &NetPlan) -> Result<(Box<dyn Far>, String)> {
        match (&self.token, self.server.as_deref()) {
            (Some(token), Some(server)) if !server.starts_with("https://") => {
                let far = Direct::new(resolve(server)?, token.clone());
                Ok((Box::new(far), format!("{server}, `holdall lab listen`")))
            }
            (None, server) if server.is_none_or(|server| server.starts_with("https://")) => {
                if let Some(why) = self.beyond_a_server() {
                    let refusal = Refusal::new(Exit::Usage, why);
                    return Err(refusal.hint("run `holdall lab listen --dir DIR` there").into());
                }
                let far = lab_server::connect(app, server, plan, app.interrupt.flag())?;
                let words = far.words();
                Ok((Box::new(far), words))
            }
            (None, _) => Err(Refusal::new(Exit::Usage, "which token?")
                .hint(
                    "give --token with what `holdall lab listen` printed there; a holdall server \
                       is named https://HOST:PORT, and needs none",
                )
                .into()),
            (Some(_), _) => Err(Refusal::new(Exit::Usage, "a token is for a listener")
                .hint("name it: `holdall lab net HOST:PORT --token TOKEN`")
                .into()),
        }
    }
}

/// A folder for scratch files that has room for the most streams with the largest buffer.
fn scratch_in(
    folder: &Path,
    (streams, buffer_bytes): (Option<usize>, Option<u32>),
) -> std::io::Result<ScratchFolder> {
    let scratch = ScratchFolder::new(folder, SCRATCH_BYTES)?;
    let file = |_| scratch.file(buffer_bytes.unwrap_or(MIN_BUFFER_BYTES));
    let _all = (0..streams.unwrap_or(1)).map(file).collect::<std::io::Result<Vec<_>>>()?;
    Ok(scratch)
}

/// The addresses of a listener, in the order in which they are to be tried.
fn resolve(server: &str) -> Result<Vec<SocketAddr>> {
    let (host, port) = host_and_port(server).ok_or_else(|| {
        Refusal::new(Exit::Usage, format!("{server} is no HOST and no HOST:PORT"))
            .hint("an IPv6 address with a port is written [fd00::1]:7444")
    })?;
    // The system knows the interface behind the % of an address, too.
    let found = (host, port).to_socket_addrs().map_err(|error| {
        Refusal::new(Exit::Unreachable, format!("{host}: {error}")).hint(name_hint(host))
    })?;
    // A name may have such addresses beside others, which do as well.
    let (unclear, usable): (Vec<_>, Vec<_>) = found.partition(lacks_interface);
    match (usable.is_empty(), unclear.first()) {
        (false, _) => Ok(usable),
        (true, Some(address)) => {
            let why = format!("{} is good on one link alone: which?", address.ip());
            let hint = format!("name the interface: [{}%eth0]:{port}", address.ip());
            Err(Refusal::new(Exit::Usage, why).hint(hint).into())
        }
        (true, None) => {
            Err(Refusal::new(Exit::Unreachable, format!("{host} has no address")).into())
        }
    }
}

/// Divides `HOST`, `HOST:PORT`, an address, or `[ADDRESS]:PORT`; `None` if it is none of these.
fn host_and_port(server: &str) -> Option<(&str, u16)> {
    let (host, port) = match server.strip_prefix('[') {
        Some(rest) => {
            let (host, behind) = rest.split_once(']')?;
            (host, if behind.is_empty() { None } else { Some(behind.strip_prefix(':')?) })
        }
        None => match server.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') => (host, Some(port)),
            _ => (server, None),
        },
    };
    let port = port.map_or(Some(LISTENER_PORT), |port| port.parse().ok())?;
    (!host.is_empty()).then_some((host, port))
}

/// Whether an address is one of those that each link has of its own, and the link is not named.
fn lacks_interface(address: &SocketAddr) -> bool {
    match address {
        SocketAddr::V6(v6) => v6.ip().is_unicast_link_local() && v6.scope_id() == 0,
        SocketAddr::V4(_) => false,
    }
}

fn name_hint(host: &str) -> &'static str {
    match host.contains('%') {
        true => "behind the % stands an interface of this computer: `ip address` shows them",
        false => "is the name right? an address does as well",
    }
}

/// Gives an error of the other end or the system the exit code that it deserves.
fn in_words(args: &Args, error: std::io::Error) -> anyhow::Error {
    use std::io::ErrorKind::{
        AddrNotAvailable, BrokenPipe, ConnectionAborted, ConnectionRefused, ConnectionReset,
        HostUnreachable, Interrupted, InvalidInput, NetworkUnreachable, PermissionDenied, TimedOut,
        UnexpectedEof,
    };
    // An error of a paired server says itself what it is.
    let error = match error.downcast::<RepositoryError>() {
        Ok(error) => return error.into(),
        Err(error) => error,
    };
    let exit = match error.kind() {
        // Of standard output: a listener's lost connection is `ConnectionReset`, however it shows.
        BrokenPipe => return error.into(),
        Interrupted => Exit::Interrupted,
        PermissionDenied => Exit::NotAllowed,
        AddrNotAvailable | InvalidInput => Exit::Usage,
        ConnectionAborted | ConnectionRefused | ConnectionReset | HostUnreachable
        | NetworkUnreachable | TimedOut | UnexpectedEof => Exit::Unreachable,
        _ => Exit::Failed,
    };
    let server = args.server.as_deref().unwrap_or("the paired server");
    let refusal = Refusal::new(exit, format!("{server}: {error}"));
    match exit {
        Exit::NotAllowed => {
            refusal.hint("give the token that the listener printed when it was started")
        }
        Exit::Unreachable => {
            refusal.hint("is `holdall lab listen` running there, and no firewall between?")
        }
        Exit::Usage => {
            refusal.hint(
            "--bind takes addresses of this computer, of the same kind (IPv4 or IPv6) as the server's: `ip \
             address` shows them",
        )
        }
        _ => refusal,
    }
    .into()
}

/// Measures the paired server for a second each way, and tells the rows; gives which server that is, and nothing
/// without one. What is not
/// measured `within` that time is not waited for.
///
/// # Errors
/// If standard output cannot be written, or what kept the server from being measured.
pub(super) fn paired_quickly(
    app: &App,
    slowest: &mut Slowest,
    within: Duration,
) -> Result<Option<(String, Option<Link>)>> {
    if app.pairings()?.default().is_none() {
        return Ok(None);
    }
    let (stop, wished) = (Arc::new(AtomicBool::new(false)), app.interrupt.flag());
    let (over, ended) = std::sync::mpsc::channel::<()>();
    let until = Instant::now() + within;
    let measured = std::thread::scope(|scope| {
        let (stop, wished) = (&stop, &wished);
        scope.spawn(move || {
            let goes_on = || Instant::now() < until && !wished.load(Ordering::Relaxed);
            while goes_on() && ended.recv_timeout(LOOKS_EVERY) == Err(RecvTimeoutError::Timeout) {}
            stop.store(true, Ordering::Relaxed);
        });
        let measured = paired(app, slowest, stop);
        drop(over);
        measured
    });
    let is_late = Instant::now() >= until && !wished.load(Ordering::Relaxed);
    measured.map(Some).map_err(|error| match is_late {
        true => error.context(format!("it took longer than {:.1} s", within.as_secs_f64())),
        false => error,
    })
}

fn paired(
    app: &App,
    slowest: &mut Slowest,
    stop: &Arc<AtomicBool>,
) -> Result<(String, Option<Link>)> {
    let plan = NetPlan::memory(Duration::from_secs(1), 4);
    let far = lab_server::connect(app, None, &plan, Arc::clone(stop))?;
    let mut table = NetTable::new(app, plan.rows());
    let mut told = |row: &NetRow| {
        slowest.add_bytes(&row.reported());
        table.tell(row)
    };
    let measured = measure(&far, &plan, stop, &mut told);
    let link = measured.map_err(out_of_io)?.link;
    Ok((far.words(), link))
}

/// The rows, below a head for their columns.
struct NetTable<'a> {
    output: &'a Output,
    steps: Steps,
    has_heads: bool,
}

/// The width of the names' column.
const NAME_COLUMNS: usize = 36;

impl<'a> NetTable<'a> {
    /// So many rows are to come.
    fn new(app: &'a App, rows: usize) -> Self {
        let steps = Steps::of(&app.output, rows);
        steps.show("");
        Self { output: &app.output, steps, has_heads: false }
    }

    /// Tells a row: rates in megabits, as links are sold, and in megabytes, as files are measured.
    fn tell(&mut self, row: &NetRow) -> std::io::Result<()> {
        self.steps.end();
        let output = self.output;
        if !std::mem::replace(&mut self.has_heads, true) {
            let heads = latency_heads();
            output
                .say(format_args!("{:<NAME_COLUMNS$} {:>9} {:>9} {heads}", "", "Mb/s", "MB/s"))?;
        }
        output.object("measurement", row)?;
        let measurement = &row.measurement;
        let bits = measurement.bytes_per_second.map(|rate| figure(rate * 8.0 / 1e6));
        let figures = format!(
            "{:>9} {:>9} {}",
            bits.unwrap_or_else(|| "-".to_owned()),
            megabytes(measurement),
            latency(measurement)
        );
        let retransmits = row.retransmits.filter(|&count| count > 0);
        let more = retransmits.map(|count| format!("{} sent again", counted(count, "segment")));
        let name = holdall_lab::report::row_name(measurement);
        tell_named(output, (&name, NAME_COLUMNS), &figures, &more.unwrap_or_default())?;
        self.steps.show("");
        Ok(())
    }
}

fn summarise(app: &App, measured: &NetReport, report: &mut Report) -> Result<()> {
    #[derive(Serialize)]
    struct Summary<'a> {
        link: &'a Option<holdall_lab::net::Link>,
        paths: &'a [holdall_lab::net::PathShare],
        advice: &'a [String],
        answers: &'a [String],
    }
    let NetReport { link, paths, advice, .. } = measured;
    let told = holdall_diagnosis::answers::of_network(&report.measurements, link.as_ref());
    app.output.object("summary", &Summary { link, paths, advice, answers: &told })?;
    app.output.say("")?;
    if let Some(link) = link {
        app.output.say(format_args!("over {}", link.words()))?;
    }
    advice.iter().try_for_each(|sentence| app.output.say(sentence))?;
    answers::tell(app, report, told)
}

/// Reads how long a row sends, such as `3` or `0.5`.
fn parse_time(text: &str) -> Result<Duration, String> {
    let time = quantity::seconds(text).ok().filter(|time| TIMES.contains(time));
    time.ok_or_else(|| format!("it is a number of seconds, from 0.05 to {MAX_SECONDS}"))
}

/// Reads `4096`, `4K` or `1M`, in powers of 1024 as for disks.
fn parse_buffer(text: &str) -> Result<u32, String> {
    let bytes = u32::try_from(quantity::block_bytes(text)?).ok();
    let bytes = bytes.filter(|bytes| (MIN_BUFFER_BYTES..=MAX_BUFFER_BYTES).contains(bytes));
    bytes.ok_or_else(|| "from 1K to 4M".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_and_times_are_bounded() {
        assert_eq!(
            ["1024", "4K", "128k", "4M"].map(parse_buffer),
            [1024, 4096, 131_072, 4 << 20].map(Ok)
        );
        for bad in ["", "K", "1", "5M", "99999999M", "-4K"] {
            assert!(parse_buffer(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_time("0.5"), Ok(Duration::from_millis(500)));
        for bad in ["", "0", "61", "-1", "NaN", "inf"] {
            assert!(parse_time(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_listener_is_named_with_or_without_its_port() {
        let named = |text: &str| resolve(text).unwrap()[0].to_string();
        assert_eq!(named("127.0.0.1"), "127.0.0.1:7444");
        assert_eq!(named("127.0.0.1:80"), "127.0.0.1:80");
        assert_eq!(named("::1"), "[::1]:7444");
        assert_eq!(named("[::1]"), "[::1]:7444");
        assert_eq!(named("[::1]:80"), "[::1]:80");
        assert_eq!(host_and_port("nas"), Some(("nas", LISTENER_PORT)));
        assert_eq!(host_and_port("nas:80"), Some(("nas", 80)));
        for bad in ["", ":80", "nas:", "nas:99999", "[::1", "[::1]80", "[]:80"] {
            assert_eq!(host_and_port(bad), None, "{bad}");
        }
    }

    #[test]
    fn an_address_of_a_link_needs_its_interface() {
        // Interface 1 is `lo` everywhere.
        assert_eq!(resolve("[fe80::1%lo]:80").unwrap()[0].to_string(), "[fe80::1%1]:80");
        assert_eq!(resolve("fe80::1%lo").unwrap()[0].to_string(), "[fe80::1%1]:7444");
        let code = |text: &str| crate::exit::exit_of(&resolve(text).unwrap_err());
        assert_eq!(code("fe80::1"), Exit::Usage);
        assert_eq!(code("[fe80::1%none0]:80"), Exit::Unreachable);
    }
}
