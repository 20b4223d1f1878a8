//! How far a run is from moment to moment, and what both ends' processors do meanwhile.

use std::sync::atomic::Ordering;
use std::time::Instant;

use holdall_engine::Run;
use holdall_lab::report::Moment;

use super::wire::{ServerCpu, Wire};

/// Looks at a run, one after the other.
pub(super) struct Looks<'a> {
    run: &'a Run,
    wire: Option<&'a Wire>,
    begun: Instant,
    last: Look,
    server: Option<ServerCpu>,
    server_cores: Option<f64>,
    pub(super) moments: Vec<Moment>,
}

/// What was counted at one moment.
struct Look {
    at: Instant,
    items: u64,
    bytes: u64,
    cpu_seconds: f64,
}

impl Look {
    fn take(run: &Run) -> Self {
        Self {
            at: Instant::now(),
            items: run.items.load(Ordering::Relaxed),
            bytes: run.bytes.load(Ordering::Relaxed),
            cpu_seconds: holdall_sys::cpu::process_cpu_seconds(),
        }
    }
}

impl<'a> Looks<'a> {
    /// Nothing was seen yet.
    pub(super) fn begin(run: &'a Run, wire: Option<&'a Wire>) -> Self {
        let last = Look::take(run);
        let server = wire.and_then(Wire::server_cpu);
        Self { run, wire, begun: last.at, last, server, server_cores: None, moments: Vec::new() }
    }

    /// Looks once more.
    pub(super) fn look(&mut self) {
        let now = Look::take(self.run);
        let seconds = (now.at - self.last.at).as_secs_f64().max(1e-6);
        let rate = |later: u64, earlier: u64| later.saturating_sub(earlier) as f64 / seconds;
        let server_cores = self.server_cores();
        self.moments.push(Moment {
            seconds: (now.at - self.begun).as_secs_f64(),
            bytes_per_second: rate(now.bytes, self.last.bytes),
            items_per_second: rate(now.items, self.last.items),
            cores: Some((now.cpu_seconds - self.last.cpu_seconds) / seconds),
            server_cores,
        });
        self.last = now;
    }

    /// What the server's process used between the last two times that it told; nothing before the
    /// second.
    fn server_cores(&mut self) -> Option<f64> {
        let told = self.wire.and_then(Wire::server_cpu);
        if let Some((now, before)) = told.zip(self.server)
            && now.at > before.at
        {
            let cores = (now.seconds - before.seconds) / (now.at - before.at).as_secs_f64();
            self.server_cores = Some(cores).filter(|cores| cores.is_finite() && *cores >= 0.0);
        }
        self.server = told;
        self.server_cores
    }
}
