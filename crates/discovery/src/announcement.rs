//! A server's announcement, for as long as it runs.
//!
//! The library that answers for it keeps what others on the network answer each other, for as long as they say and without a
//! limit. A server runs for months, so someone could fill its memory so. How much is kept is looked at every few seconds
//! ([`Announcement::look`]), and beyond a limit it is forgotten, by beginning anew.

use std::time::Duration;

use mdns_sd::{DaemonEvent, IfKind, Receiver, ServiceDaemon, ServiceInfo};

use crate::found::VERSION;
use crate::{Announced, DiscoveryError};

/// What a server is announced as.
pub(crate) const SERVICE: &str = "_holdall._tcp.local.";
/// Most bytes of a name in a label, which with what follows has to fit into 63.
const LABEL_BYTES: usize = 48;
/// So much is kept of others' answers, in records and times to look at them, before all is forgotten: some MB.
const MOST_KEPT: i64 = 20_000;
/// How long the library may take to say how much that is, and to say goodbye.
const PATIENCE: Duration = Duration::from_millis(500);

/// A server's announcement. It is taken back when dropped.
pub struct Announcement {
    what: Announced,
    /// `None` once it could not begin anew.
    responder: Option<Responder>,
}

struct Responder {
    daemon: ServiceDaemon,
    events: Receiver<DaemonEvent>,
}

impl Announcement {
    /// Whether servers can be announced and found.
    pub const IS_BUILT: bool = true;

    /// Announces a server on all networks of this computer, or on the one of the address that it listens at.
    ///
    /// # Errors
    /// [`DiscoveryError::System`] if there can be no socket or thread for it. What else hinders it,
    /// [`Announcement::look`] tells.
    pub fn begin(what: Announced) -> Result<Self, DiscoveryError> {
        let responder = Some(Responder::begin(&what)?);
        Ok(Self { what, responder })
    }

    /// Looks after it, every few seconds; tells what went wrong, if something did.
    pub fn look(&mut self) -> Option<String> {
        let responder = self.responder.as_ref()?;
        if responder.kept() > MOST_KEPT {
            return Some(self.begin_anew());
        }
        let errors = responder.events.try_iter().filter_map(|event| match event {
            DaemonEvent::Error(error) => Some(error.to_string()),
            _ => None,
        });
        errors.last().map(|error| DiscoveryError::System(error).to_string())
    }

    fn begin_anew(&mut self) -> String {
        // It says goodbye, which would take back what the next one says before.
        self.responder = None;
        match Responder::begin(&self.what) {
            Ok(responder) => {
                self.responder = Some(responder);
                "very many answers of multicast DNS were forgotten: someone may be flooding the network"
                    .to_owned()
            }
            Err(error) => format!("no longer announced on the network: {error}"),
        }
    }
}

impl Responder {
    fn begin(what: &Announced) -> Result<Self, DiscoveryError> {
        let daemon = ServiceDaemon::new().map_err(failed)?;
        let events = daemon.monitor().map_err(failed)?;
        let responder = Self { daemon, events };
        let service = service(what).map_err(failed)?;
        if what.listen.is_ipv4() {
            responder.daemon.disable_interface(IfKind::IPv6).map_err(failed)?;
        }
        let own = [IfKind::LoopbackV4, IfKind::LoopbackV6].to_vec();
        responder.daemon.disable_interface(own).map_err(failed)?;
        responder.daemon.register(service).map_err(failed)?;
        Ok(responder)
    }

    /// How much it keeps of what others say.
    fn kept(&self) -> i64 {
        let told = self.daemon.get_metrics().ok();
        let metrics = told.and_then(|told| told.recv_timeout(PATIENCE).ok());
        let counts = metrics.unwrap_or_default().into_iter();
        let kept = counts.filter(|(what, _)| what.starts_with("cached-") || what == "timer");
        kept.map(|(_, count)| count).sum()
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        // It says goodbye on the way out. Who does not hear it finds out when it is not answered.
        if let Ok(ended) = self.daemon.shutdown() {
            let _ = ended.recv_timeout(PATIENCE);
        }
    }
}

fn failed(error: mdns_sd::Error) -> DiscoveryError {
    DiscoveryError::System(error.to_string())
}

fn service(what: &Announced) -> mdns_sd::Result<ServiceInfo> {
    let Announced { name, fingerprint, listen } = what;
    let front = fingerprint.split('-').next().unwrap_or_default();
    let texts = [("v", VERSION), ("id", fingerprint), ("name", name)];
    let label = format!("{} ({front})", label(name));
    // A host's name of its own: that of the computer is for a responder of the system, such as Avahi.
    let host = format!("holdall-{}.local.", fingerprint.replace('-', ""));
    let ip = listen.ip();
    match ip.is_unspecified() {
        true => ServiceInfo::new(SERVICE, &label, &host, (), listen.port(), &texts[..])
            .map(ServiceInfo::enable_addr_auto),
        false => ServiceInfo::new(SERVICE, &label, &host, ip, listen.port(), &texts[..]),
    }
}

/// The front of a name.
fn label(name: &str) -> &str {
    name.get(..name.floor_char_boundary(LABEL_BYTES)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_cut_for_its_label_alone() {
        let name = "ä".repeat(100);
        let fingerprint = "aaaa-bbbb-cccc-dddd-2222-3333-4444-7777".to_owned();
        let listen = "192.0.2.7:7443".parse().unwrap();
        let service = service(&Announced { name: name.clone(), fingerprint, listen }).unwrap();
        let label = format!("{} (aaaa).{SERVICE}", "ä".repeat(24));
        assert_eq!(service.get_fullname(), label);
        assert_eq!(service.get_property_val_str("name"), Some(&name[..]));
        assert_eq!(service.get_port(), 7443);
    }
}
