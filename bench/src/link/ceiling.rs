//! What a link can carry at all: iperf3 over every link at once, each way.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Side;
use super::namespaces::{Namespaces, address};
use crate::command::prefixed;
use crate::record::Ceiling;

const SECONDS: &str = "5";
/// iperf3's server takes a moment to listen, and does not say when.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// What goes up and down all links of `namespaces` together.
///
/// # Errors
///
/// If iperf3 is not installed or fails.
pub(super) fn measure(namespaces: &Namespaces, link: String) -> Result<Ceiling> {
    let up_bytes_per_second = one_way(namespaces, false).context("iperf3 to the server")?;
    let down_bytes_per_second = one_way(namespaces, true).context("iperf3 from the server")?;
    Ok(Ceiling { link, up_bytes_per_second, down_bytes_per_second })
}

fn one_way(namespaces: &Namespaces, is_down: bool) -> Result<f64> {
    let addresses = namespaces.client_addresses();
    std::thread::scope(|scope| {
        let over = |at| scope.spawn(move || over_link(namespaces, at, is_down));
        let links: Vec<_> = (0..addresses.len()).map(over).collect();
        let mut sum = 0.0;
        for link in links {
            sum += link.join().map_err(|_| anyhow::anyhow!("a thread panicked"))??;
        }
        Ok(sum)
    })
}

/// Bytes per second over one link.
fn over_link(namespaces: &Namespaces, at: usize, is_down: bool) -> Result<f64> {
    let (client, server) = (address(at, Side::Client), address(at, Side::Server));
    let mut serve = Command::new("iperf3");
    serve.args(["-s", "-1", "-B", &server]);
    let mut serving = prefixed(&namespaces.prefix(Side::Server), &serve)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot run iperf3")?;
    let measured = call(namespaces, &client, &server, is_down);
    end(&mut serving);
    measured
}

fn call(namespaces: &Namespaces, client: &str, server: &str, is_down: bool) -> Result<f64> {
    let mut iperf = Command::new("iperf3");
    iperf.args(["-J", "-t", SECONDS, "-B", client, "-c", server]);
    iperf.args(is_down.then_some("-R"));
    let start = Instant::now();
    loop {
        let output = prefixed(&namespaces.prefix(Side::Client), &iperf).output()?;
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
