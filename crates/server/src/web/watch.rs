//! Tells people when there is a new reason why a machine is not well, and when it is well again.
//!
//! Every few minutes the overview is read as for its page. What each channel was told last is kept, so that nobody is told
//! twice, a restart tells nothing again, and what could not be sent is tried again the next time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use holdall_format::OneLine;
use holdall_meter::size;
use holdall_pages::Light;
use tokio::time::{sleep, timeout};

use super::overview::{self, Overview};
use crate::ServerError;
use crate::accounts::Channel;
use crate::addresses::host_name;
use crate::admin::PlaceEntry;
use crate::auth::actor::Actor;
use crate::notices::{Level, Notice, send};
use crate::state::ServerState;

/// So long it waits for what comes in the same moment.
const SETTLED: Duration = Duration::from_secs(2);
/// A disk with less left than this share is looked at, in per cent.
const LITTLE_PERCENT: u64 = 5;
/// What the disk is called among what is told of; no machine's id.
const DISK: &str = "disk";
/// And what waits to be moved to another.
const MOVING: &str = "moving";
/// And the certificate for browsers.
const CERTIFICATE: &str = "certificate";
/// And letting machines in.
const PAIRING: &str = "pairing";

/// How something is.
struct Subject {
    id: String,
    light: Light,
    /// Why it is not well, in words that stay the same as long as that is so.
    reasons: BTreeSet<String>,
    title: String,
    message: String,
}

/// Tells people. Never ends by itself.
pub(crate) async fn watch(state: &Arc<ServerState>) {
    loop {
        // A machine that told of a run is looked at soon; what comes in the same moment is told together.
        let _ = timeout(state.limits.look_for_notices, state.run_was_told.notified()).await;
        sleep(SETTLED).await;
        let inner = Arc::clone(state);
        let looked = state.work.run(move || Ok(tell_all(&inner)));
        if let Ok((Err(error), _)) = looked.await {
            state.log(&format!("nobody can be told how backups are: {error}"));
        }
    }
}

fn tell_all(state: &ServerState) -> Result<(), ServerError> {
    let channels = state.accounts.channels()?;
    if channels.is_empty() {
        return Ok(());
    }
    let overview = state.administer(&Actor::server(), |all| overview::read(&all))?;
    let subjects = subjects(&overview, state.accounts.clock().now_ns());
    let mut told = state.accounts.told()?;
    for (name, channel) in &channels {
        let mut before = told.remove(name).unwrap_or_default();
        before.retain(|id, _| subjects.iter().any(|subject| subject.id == *id));
        for subject in &subjects {
            let changed = match tell(channel, before.get(&subject.id), subject) {
                Ok(changed) => changed,
                Err(why) => {
                    // The others would wait for the same.
                    state.log(&format!("nobody could be told by {name:?}: {why}"));
                    break;
                }
            };
            if changed {
                before.insert(subject.id.clone(), subject.reasons.clone());
                state.accounts.note_told(name, before.clone())?;
            }
        }
        if let Channel::Ping { .. } = channel
            && let Err(why) = send(channel, &summary(&subjects))
        {
            state.log(&format!("{name:?} could not be pinged: {why}"));
        }
    }
    Ok(())
}

fn subjects(overview: &Overview, now_ns: i64) -> Vec<Subject> {
    let machines = overview.machines.iter().map(|known| {
        let (light, message) = known.sentence(now_ns);
        let title = OneLine(&known.machine.name).to_string();
        let reasons = known.reasons(now_ns);
        Subject { id: known.machine.id.clone(), light, reasons, title, message }
    });
    let disk = overview.disk.map(|disk| {
        let is_little =
            disk.free_bytes.saturating_mul(100) < disk.total_bytes.saturating_mul(LITTLE_PERCENT);
        let [free, total] = [disk.free_bytes, disk.total_bytes].map(size);
        Subject {
            id: DISK.to_owned(),
            light: if is_little { Light::Look } else { Light::Good },
            reasons: is_little.then(|| "full".to_owned()).into_iter().collect(),
            title: "the disk".to_owned(),
            message: format!("{free} of {total} are left on the disk."),
        }
    });
    let certificate = Subject {
        id: CERTIFICATE.to_owned(),
        light: if overview.certificate.is_some() { Light::Look } else { Light::Good },
        reasons: overview.certificate.iter().map(|_| "not renewed".to_owned()).collect(),
        title: "the certificate for browsers".to_owned(),
        message: overview.certificate.clone().unwrap_or_else(|| "It is good.".to_owned()),
    };
    let pairing = Subject {
        id: PAIRING.to_owned(),
        light: if overview.wrong_code.is_some() { Light::Look } else { Light::Good },
        reasons: overview
            .wrong_code
            .iter()
            .map(|(at_ns, _)| format!("typed wrong at {at_ns}"))
            .collect(),
        title: "pairing by a short code".to_owned(),
        message: overview.wrong_code.as_ref().map_or_else(
            || "For a day, no short code was typed wrong, or begun and not finished.".to_owned(),
            |(_, wrong)| format!("Within the last day, {wrong}."),
        ),
    };
    let moving = Subject {
        id: MOVING.to_owned(),
        light: if overview.waiting.is_empty() { Light::Good } else { Light::Look },
        reasons: overview.waiting.iter().map(|_| "packs wait".to_owned()).collect(),
        title: "moving to the storage places".to_owned(),
        message: match &overview.waiting[..] {
            [] => "Nothing waits.".to_owned(),
            waiting => waiting.join("; "),
        },
    };
    let places = overview.places.iter().map(of_place);
    machines.chain(disk).chain([moving]).chain(places).chain([certificate, pairing]).collect()
}

fn of_place(place: &PlaceEntry) -> Subject {
    let [free, total] = [place.free_bytes, place.total_bytes].map(Option::unwrap_or_default);
    let is_little = free.saturating_mul(100) < total.saturating_mul(LITTLE_PERCENT);
    let (light, reason, message) = match (place.is_there, is_little) {
        (false, _) => {
            let message = format!("Its disk is not there: mount it at {}.", place.folder);
            (Light::Bad, Some("away"), message)
        }
        (true, true) => {
            let message = format!("{} of {} are left on its disk.", size(free), size(total));
            (Light::Look, Some("full"), message)
        }
        (true, false) => (Light::Good, None, "It is there, and has room.".to_owned()),
    };
    Subject {
        id: format!("place {}", place.name),
        light,
        reasons: reason.into_iter().map(str::to_owned).collect(),
        title: format!("the storage place {}", place.name),
        message,
    }
}

/// Tells by a channel what is new of something, and whether anything changed.
fn tell(
    channel: &Channel,
    told: Option<&BTreeSet<String>>,
    subject: &Subject,
) -> Result<bool, String> {
    let nothing = BTreeSet::new();
    let told = told.unwrap_or(&nothing);
    if *told == subject.reasons {
        return Ok(false);
    }
    let is_new = !subject.reasons.is_subset(told);
    // What is switched off is not well again, and what is only a little better is not worth a word.
    let is_well = subject.reasons.is_empty() && subject.light == Light::Good;
    if (is_new || is_well) && !matches!(channel, Channel::Ping { .. }) {
        send(channel, &notice(subject))?;
    }
    Ok(true)
}

fn level(light: Light) -> Level {
    match light {
        Light::Off | Light::Good => Level::Good,
        Light::Look => Level::Look,
        Light::Bad => Level::Bad,
    }
}

fn notice(subject: &Subject) -> Notice {
    let how = match subject.light {
        Light::Off | Light::Good => "is well again",
        Light::Look => "needs a look",
        Light::Bad => "is not well",
    };
    Notice {
        level: level(subject.light),
        title: format!("holdall on {}: {} {how}", host_name(), subject.title),
        message: subject.message.clone(),
    }
}

/// All of them as one.
fn summary(subjects: &[Subject]) -> Notice {
    let worst = subjects.iter().map(|subject| subject.light).max().unwrap_or(Light::Off);
    let wrong = subjects.iter().filter(|subject| level(subject.light) > Level::Good);
    let wrong: Vec<_> = wrong.map(|one| format!("{}: {}", one.title, one.message)).collect();
    let message = if wrong.is_empty() { "All is well.".to_owned() } else { wrong.join("\n") };
    Notice { level: level(worst), title: format!("holdall on {}", host_name()), message }
}
