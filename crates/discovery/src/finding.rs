//! Looking who announces a server.

use std::time::{Duration, Instant};

use mdns_sd::{ResolvedService, ScopedIp, ServiceDaemon, ServiceEvent};

use crate::announcement::SERVICE;
use crate::{DiscoveryError, Found, FoundServer};

/// How often it is looked whether to end.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The servers that are announced on the networks of this computer within so much time. Questions go out at once and
/// after a second, so less than two seconds may find none that is there.
///
/// # Errors
/// [`DiscoveryError::System`] if there can be no socket or thread for it; [`DiscoveryError::Interrupted`] once
/// `should_end` says so.
pub fn find_servers(
    patience: Duration,
    should_end: impl Fn() -> bool,
) -> Result<Found, DiscoveryError> {
    let failed = |error: mdns_sd::Error| DiscoveryError::System(error.to_string());
    let daemon = ServiceDaemon::new().map_err(failed)?;
    let events = daemon.browse(SERVICE).map_err(failed)?;
    let (began, mut found) = (Instant::now(), Found::default());
    let ended = loop {
        let left = patience.saturating_sub(began.elapsed());
        if should_end() {
            break Err(DiscoveryError::Interrupted);
        }
        if left.is_zero() {
            break Ok(found);
        }
        match events.recv_timeout(left.min(LOOK_EVERY)) {
            Ok(ServiceEvent::ServiceResolved(service)) => {
                found.take(service.get_fullname(), server(&service));
            }
            Ok(ServiceEvent::ServiceRemoved(_, label)) => found.take(&label, None),
            _ => {}
        }
    };
    // Nobody waits for it to be gone.
    let _ = daemon.shutdown();
    ended
}

fn server(service: &ResolvedService) -> Option<FoundServer> {
    let addresses = service.get_addresses().iter().map(ScopedIp::to_ip_addr);
    let text = |key: &str| service.get_property_val_str(key);
    FoundServer::read(addresses, service.get_port(), text)
}
