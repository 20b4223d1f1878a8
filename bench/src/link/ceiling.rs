//! What a link can carry at all: iperf3 over every link at once, each way.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use holdall_testkit::{DelayProxy, Links};
use serde_json::Value;

use super::{LOOPBACK, Link, Side};
use crate::command::prefixed;
use crate::record::Ceiling;

const SECONDS: &str = "5";
/// iperf3's server takes a moment to listen, and does not say when.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// What goes up and down all of `link` together.
///
/// # Errors
///
/// If iperf3 is not installed or fails.
pub(super) fn measure(link: &Link) -> Result<Ceiling> {
    let up_bytes_per_second = one_way(link, false).context("iperf3 to the server")?;
    let down_bytes_per_second = one_way(link, true).context("iperf3 from the server")?;
    Ok(Ceiling { link: link.kind.to_string(), up_bytes_per_second, down_bytes_per_second })
}

fn one_way(link: &Link, is_down: bool) -> Result<f64> {
    let Some(namespaces) = &link.namespaces else { return through_proxy(link, is_down) };
    std::thread::scope(|scope| {
        let over = |at| scope.spawn(move || over_link(namespaces, at, is_down));
        let links: Vec<_> = (0..namespaces.client_addresses().len()).map(over).collect();
        let mut sum = 0.0;
        for link in links {
            sum += link.join().map_err(|_| anyhow::anyhow!("a thread panicked"))??;
        }
        Ok(sum)
    })
}

/// Bytes per second over one of several links.
fn over_link(namespaces: &Links, at: usize, is_down: bool) -> Result<f64> {
    let (client, server) = (Links::address(at, Side::Client), Links::address(at, Side::Server));
    let mut serve = Command::new("iperf3");
    serve.args(["-s", "-1", "-B", &server]);
    let mut call = Command::new("iperf3");
    call.args(["-B", &client, "-c", &server]);
    let serve = prefixed(&namespaces.prefix(Side::Server), &serve);
    run(serve, &prefixed(&namespaces.prefix(Side::Client), &call), is_down)
}

/// Bytes per second through the proxy that makes a link far.
fn through_proxy(link: &Link, is_down: bool) -> Result<f64> {
    let host = LOOPBACK.to_string();
    let port = TcpListener::bind((LOOPBACK, 0))?.local_addr()?.port();
    let proxy = link.proxy(port)?;
    let through = proxy.as_ref().map_or(port, |proxy: &DelayProxy| proxy.address().port());
    let mut serve = Command::new("iperf3");
    serve.args(["-s", "-1", "-B", &host, "-p", &port.to_string()]);
    let mut call = Command::new("iperf3");
    call.args(["-c", &host, "-p", &through.to_string()]);
    run(serve, &call, is_down)
}

fn run(mut serve: Command, call: &Command, is_down: bool) -> Result<f64> {
    serve.stdout(Stdio::null()).stderr(Stdio::null());
    let mut serving = serve.spawn().context("cannot run iperf3")?;
    let measured = rate_of(call, is_down);
    end(&mut serving);
    measured
}

fn rate_of(call: &Command, is_down: bool) -> Result<f64> {
    let mut iperf = prefixed(&[], call);
    iperf.args(["-J", "-t", SECONDS]).args(is_down.then_some("-R"));
    let start = Instant::now();
    loop {
        let output = iperf.output()?;
        let report: Value =
            serde_json::from_slice(&output.stdout).context("iperf3 said no JSON")?;
        match report["end"]["sum_received"]["bits_per_second"].as_f64() {
            Some(bits) => return Ok(bits / 8.0),
            None if start.elapsed() < CONNECT_MAX => {
                std::thread::sleep(Duration::from_millis(100));
            }
            None => bail!("iperf3: {}", report["error"]),
        }
    }
}

fn end(serving: &mut Child) {
    // It ends by itself after one client; one that had none is to end too.
    drop(serving.kill());
    drop(serving.wait());
}
