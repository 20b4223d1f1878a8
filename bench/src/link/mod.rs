//! What lies between client and server: loopback, shaped links, or a delay.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context, Result};
use holdall_testkit::{DelayProxy, Links};

pub(crate) use holdall_testkit::End as Side;
pub(crate) use kind::LinkKind;

use crate::record::Ceiling;
use crate::share::CpuShare;
use crate::stage::Wire;

mod ceiling;
mod kind;

const LOOPBACK: Ipv4Addr = Ipv4Addr::LOCALHOST;

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
    /// What a server is to listen on, and a client to connect to.
    host: String,
    namespaces: Option<Links>,
}

impl Link {
    /// Brings up what `kind` needs.
    ///
    /// # Errors
    ///
    /// If namespaces cannot be made, for which root is needed.
    pub(crate) fn open(kind: LinkKind) -> Result<Self> {
        let namespaces = match kind {
            LinkKind::Loopback | LinkKind::Far { .. } => None,
            LinkKind::Shaped { count, rate } => {
                let made = Links::of_rates(&vec![rate.0; count]);
                Some(made.context("cannot make the link (Debian package iproute2)")?)
            }
        };
        let host = match &namespaces {
            None => LOOPBACK.to_string(),
            // The other links' packets come in for the first one's address too.
            Some(_) => Links::address(0, Side::Server),
        };
        Ok(Self { kind, host, namespaces })
    }

    /// What a server is to listen on, and a client to connect to.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// A proxy to `port` that is as far away as this link says, if it says so.
    ///
    /// # Errors
    ///
    /// If no port is free.
    pub(crate) fn proxy(&self, port: u16) -> Result<Option<DelayProxy>> {
        let LinkKind::Far { round_trip, rate } = self.kind else { return Ok(None) };
        let bytes_per_second = rate.map(|rate| rate.0 / 8);
        let upstream = SocketAddr::from((LOOPBACK, port));
        let proxy = DelayProxy::start(upstream, round_trip / 2, bytes_per_second);
        proxy.map(Some).context("no port for the delay")
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

    /// What went over the link until now, or through `proxy`; none where nobody counts.
    ///
    /// # Errors
    ///
    /// If the counters cannot be read.
    pub(crate) fn wire(&self, proxy: Option<&DelayProxy>) -> Result<Option<Wire>> {
        let carried = match (&self.namespaces, proxy) {
            (Some(namespaces), _) => namespaces.carried_bytes()?,
            (None, Some(proxy)) => proxy.carried_bytes(),
            (None, None) => return Ok(None),
        };
        let (sent_bytes, received_bytes) = carried;
        Ok(Some(Wire { sent_bytes, received_bytes }))
    }

    /// What iperf3 gets over the link, both ways; none for what has no rate.
    ///
    /// # Errors
    ///
    /// If iperf3 fails or is not installed.
    pub(crate) fn ceiling(&self) -> Result<Option<Ceiling>> {
        let has_rate =
            matches!(self.kind, LinkKind::Shaped { .. } | LinkKind::Far { rate: Some(_), .. });
        has_rate.then(|| ceiling::measure(self)).transpose()
    }

    /// Whether only holdall can use all of it.
    pub(crate) fn is_for_holdall_only(&self) -> bool {
        matches!(self.kind, LinkKind::Shaped { count: 2.., .. })
    }
}
