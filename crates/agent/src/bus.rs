//! What UPower and NetworkManager know of this computer, over D-Bus, and notifications on the desktop.
//!
//! A thread of its own listens on the system's bus and asks both services again whenever one of them says that something
//! changed. A service that is not there, or does not answer in time, leaves its conditions unknown. Where there is no bus,
//! or it goes away, all of them are, until one is there: the thread looks for it every minute.
//!
//! Sleep is no matter of this module: the clocks of the kernel tell of it, also where no logind runs.

use std::collections::HashMap;
use std::future::Future;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::select_all;
use zbus::connection::{Builder, Connection};
use zbus::message::Type;
use zbus::wire::{OwnedVariant, Variant};
use zbus::{MatchRule, MessageStream};

use crate::conditions::Conditions;
use crate::schedule::Notice;

/// How long it takes until a bus is looked for again.
const AGAIN: Duration = Duration::from_mins(1);
/// A service that takes longer does not answer.
const PATIENCE: Duration = Duration::from_secs(5);

const PROPERTIES: &str = "org.freedesktop.DBus.Properties";
const BUS: &str = "org.freedesktop.DBus";

/// <https://upower.freedesktop.org/docs/UPower.html>
const UPOWER: &str = "org.freedesktop.UPower";
const UPOWER_PATH: &str = "/org/freedesktop/UPower";
/// All batteries taken together.
const BATTERY_PATH: &str = "/org/freedesktop/UPower/devices/DisplayDevice";
const DEVICE: &str = "org.freedesktop.UPower.Device";

/// <https://networkmanager.dev/docs/api/latest/gdbus-org.freedesktop.NetworkManager.html>
const NETWORK: &str = "org.freedesktop.NetworkManager";
const NETWORK_PATH: &str = "/org/freedesktop/NetworkManager";
const ACTIVE: &str = "org.freedesktop.NetworkManager.Connection.Active";
/// Where there is no object.
const NO_PATH: &str = "/";

/// <https://specifications.freedesktop.org/notification-spec/latest/>
const NOTIFICATIONS: &str = "org.freedesktop.Notifications";
const NOTIFICATIONS_PATH: &str = "/org/freedesktop/Notifications";

/// What the computer is like, ready to be polled for: it is readable when that may have changed.
pub struct Surroundings {
    latest: Arc<Mutex<Conditions>>,
    changed: UnixStream,
}

impl Surroundings {
    /// Begins to watch. Until the services have answered, everything is unknown.
    ///
    /// # Errors
    /// What the system says.
    pub fn watch() -> io::Result<Self> {
        let (changed, tell) = UnixStream::pair()?;
        changed.set_nonblocking(true)?;
        tell.set_nonblocking(true)?;
        let latest = Arc::<Mutex<Conditions>>::default();
        let watcher = Watcher { latest: Arc::clone(&latest), tell };
        holdall_sys::thread::start_alone(move || watcher.watch())?;
        Ok(Self { latest, changed })
    }

    /// What the computer is like now.
    #[must_use]
    pub fn now(&self) -> Conditions {
        // Before it is looked at: what changes afterwards is told anew.
        while (&self.changed).read(&mut [0; 64]).is_ok_and(|bytes| bytes > 0) {}
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl AsFd for Surroundings {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.changed.as_fd()
    }
}

struct Watcher {
    latest: Arc<Mutex<Conditions>>,
    tell: UnixStream,
}

impl Watcher {
    /// Listens for ever, on one bus after the other. If it ended, the agent would find its end of the connection at an end,
    /// and never sleep.
    fn watch(&self) {
        loop {
            // Without a bus, nothing is known.
            let _ = zbus::block_on(self.listen());
            self.found(Conditions::default());
            thread::sleep(AGAIN);
        }
    }

    async fn listen(&self) -> zbus::Result<()> {
        let system = || Builder::system().method_timeout(PATIENCE).build();
        // Signals that wait to be read would keep an answer on the same connection back.
        let (asking, listening) = (system().await?, system().await?);
        let mut streams = Vec::new();
        for rule in rules()? {
            streams.push(MessageStream::for_match_rule(rule, &listening, None).await?);
        }
        let mut changes = select_all(streams);
        loop {
            self.found(conditions(&asking).await);
            if changes.next().await.is_none() {
                return Ok(());
            }
        }
    }

    fn found(&self, conditions: Conditions) {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if *latest != conditions {
            *latest = conditions;
            // If it is full, the agent will look anyway.
            let _ = (&self.tell).write(&[1]);
        }
    }
}

/// What is listened to: that properties change, and that a service comes or goes.
fn rules() -> zbus::Result<Vec<MatchRule<'static>>> {
    let changes = [(UPOWER, UPOWER_PATH), (UPOWER, BATTERY_PATH), (NETWORK, NETWORK_PATH)];
    let changes = changes.into_iter().map(|(service, path)| {
        let signal = MatchRule::builder().msg_type(Type::Signal).sender(service).path(path);
        signal.interface(PROPERTIES).member("PropertiesChanged").build()
    });
    let owners = [UPOWER, NETWORK].into_iter().map(|service| {
        let signal = MatchRule::builder().msg_type(Type::Signal).sender(BUS).interface(BUS);
        signal.member("NameOwnerChanged").arg(0, service).build()
    });
    changes.chain(owners).collect()
}

async fn conditions(bus: &Connection) -> Conditions {
    Conditions {
        on_battery: property(bus, UPOWER, UPOWER_PATH, UPOWER, "OnBattery").await,
        battery_percent: battery_percent(bus).await,
        metered: metered(bus).await,
        connection: connection(bus).await,
    }
}

async fn battery_percent(bus: &Connection) -> Option<u8> {
    let is_present: bool = property(bus, UPOWER, BATTERY_PATH, DEVICE, "IsPresent").await?;
    let percent: f64 = property(bus, UPOWER, BATTERY_PATH, DEVICE, "Percentage").await?;
    // Both ends are within the type, and a fraction of a percent does not matter.
    is_present.then_some(percent.clamp(0.0, 100.0) as u8)
}

async fn metered(bus: &Connection) -> Option<bool> {
    match property::<u32>(bus, NETWORK, NETWORK_PATH, NETWORK, "Metered").await? {
        // Known and guessed.
        1 | 3 => Some(true),
        2 | 4 => Some(false),
        _ => None,
    }
}

async fn connection(bus: &Connection) -> Option<String> {
    let path = property_of(bus, NETWORK, NETWORK_PATH, NETWORK, "PrimaryConnection").await?;
    let Variant::ObjectPath(path) = &*path else { return None };
    match path.as_str() {
        NO_PATH => Some(String::new()),
        path => property(bus, NETWORK, path, ACTIVE, "Id").await,
    }
}

async fn property<T: TryFrom<OwnedVariant>>(
    bus: &Connection,
    service: &str,
    path: &str,
    interface: &str,
    name: &str,
) -> Option<T> {
    property_of(bus, service, path, interface, name).await?.try_into().ok()
}

async fn property_of(
    bus: &Connection,
    service: &str,
    path: &str,
    interface: &str,
    name: &str,
) -> Option<OwnedVariant> {
    let wanted = (interface, name);
    let get = bus.call_method(Some(service), path, Some(PROPERTIES), "Get", &wanted);
    let body = get.await.ok()?.body();
    body.deserialize().ok()
}

/// Shows something on the desktop of this user, if there is one. It waits for the desktop, up to a few seconds.
///
/// # Errors
/// Why it is not shown, as where there is no desktop.
pub fn show(notice: &Notice) -> Result<(), impl std::fmt::Display + use<>> {
    zbus::block_on(shown(notice))
}

fn shown(notice: &Notice) -> impl Future<Output = zbus::Result<()>> {
    let (title, text) = (notice.title(), escaped(&notice.to_string()));
    async move {
        let session = Builder::session().method_timeout(PATIENCE).build().await?;
        let (replaces, icon, actions) = (0_u32, "", Vec::<String>::new());
        let hints = HashMap::from([("urgency", Variant::from(2_u8))]);
        let no_timeout = 0_i32;
        let body = ("holdall", replaces, icon, &title, &text, actions, hints, no_timeout);
        session
            .call_method(
                Some(NOTIFICATIONS),
                NOTIFICATIONS_PATH,
                Some(NOTIFICATIONS),
                "Notify",
                &body,
            )
            .await?;
        Ok(())
    }
}

/// A text in which nothing is markup.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
