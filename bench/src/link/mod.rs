//! What lies between client and server: loopback, shaped links, or a delay.

use std::ffi::OsString;
use std::time::Duration;

use anyhow::Result;

pub(crate) use delay::DelayProxy;
pub(crate) use kind::LinkKind;

use crate::record::Ceiling;
use crate::share::CpuShare;
use crate::stage::Wire;
use namespaces::Namespaces;

mod ceiling;
mod delay;
mod kind;
mod namespaces;

const LOOPBACK: &str = "127.0.0.1";

/// Whose end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

/// Where all runs of a session happen.
pub(crate) struct Site {
    pub(crate) link: Link,
    /// None: as much of the processors as there is.
    pub(crate) share: Option<CpuShare>,
}

impl Site {
    /// What comes before a command that is to run at `side`.
    pub(crate) fn prefix(&self, side: Side) -> Vec<OsString> {
        // The group first: within a network namespace /sys shows no groups.
        let share = self.share.as_ref().map(|share| share.prefix(side));
        let namespace = self.link.namespaces.as_ref().map(|namespaces| namespaces.prefix(side));
        share.into_iter().chain(namespace).flatten().collect()
    }

    /// For tables: the link, and the share of a core if there is one.
    pub(crate) fn name(&self) -> String {
        let link = self.link.kind.to_string();
        self.share.as_ref().map_or(link.clone(), |share| format!("{link}, {}", share.words()))
    }
}

/// A link that is up; what was made for it goes with it.
pub(crate) struct Link {
    kind: LinkKind,
    namespaces: Option<Namespaces>,
}

impl Link {
    /// Brings up what `kind` needs.
    ///
    /// # Errors
    ///
    /// If namespaces cannot be made, for which root is needed.
    pub(crate) fn open(kind: LinkKind) -> Result<Self> {
        let namespaces = match kind {
            LinkKind::Loopback | LinkKind::Delay(_) => None,
            LinkKind::Shaped { count, rate } => Some(Namespaces::make(count, rate)?),
        };
        Ok(Self { kind, namespaces })
    }

    /// What a server is to listen on.
    pub(crate) fn listen_host(&self) -> &str {
        match &self.namespaces {
            None => LOOPBACK,
            // The other links' packets come in for the first one's address too.
            Some(namespaces) => namespaces.server_address(),
        }
    }

    /// What a client is to connect to.
    pub(crate) fn host(&self) -> &str {
        self.listen_host()
    }

    /// A proxy to `port` that adds this link's delay, if it has one.
    ///
    /// # Errors
    ///
    /// If no port is free.
    pub(crate) fn delay_proxy(&self, port: u16) -> Result<Option<DelayProxy>> {
        match self.kind {
            LinkKind::Delay(round_trip) => DelayProxy::start(port, round_trip).map(Some),
            _ => Ok(None),
        }
    }

    /// What holdall is told, to use every link.
    pub(crate) fn holdall_options(&self) -> Vec<String> {
        match (&self.kind, &self.namespaces) {
            (LinkKind::Shaped { count: 2.., .. }, Some(namespaces)) => {
                let addresses = namespaces.client_addresses();
                let streams = ["--streams".to_owned(), addresses.len().to_string()];
                let binds = addresses.into_iter().flat_map(|at| ["--bind".to_owned(), at]);
                streams.into_iter().chain(binds).collect()
            }
            _ => Vec::new(),
        }
    }

    /// What went over the link until now; none where nobody counts.
    ///
    /// # Errors
    ///
    /// If the counters cannot be read.
    pub(crate) fn wire(&self) -> Result<Option<Wire>> {
        self.namespaces.as_ref().map(Namespaces::wire).transpose()
    }

    /// What iperf3 gets over the link, both ways; none for what is not shaped.
    ///
    /// # Errors
    ///
    /// If iperf3 fails or is not installed.
    pub(crate) fn ceiling(&self) -> Result<Option<Ceiling>> {
        let Some(namespaces) = &self.namespaces else { return Ok(None) };
        ceiling::measure(namespaces, self.kind.to_string()).map(Some)
    }

    /// Whether only holdall can use all of it.
    pub(crate) fn is_for_holdall_only(&self) -> bool {
        matches!(self.kind, LinkKind::Shaped { count: 2.., .. })
    }
}

/// Half of a round trip.
fn one_way(round_trip: Duration) -> Duration {
    round_trip / 2
}
