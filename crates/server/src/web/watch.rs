//! Tells people when a machine's light changes for the worse, and when it is well again.
//!
//! Every few minutes the overview is read as for its page. What each channel was told last is kept, so that nobody is told
//! twice, a restart tells nothing again, and what could not be sent is tried again the next time.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use holdall_format::OneLine;
use holdall_meter::size;
use holdall_pages::Light;
use tokio::time::sleep;

use super::overview::{self, Overview};
use crate::ServerError;
use crate::accounts::Channel;
use crate::addresses::host_name;
use crate::auth::actor::Actor;
use crate::notices::{Level, Notice, send};
use crate::state::ServerState;

/// A disk with less left than this share is looked at, in per cent.
const LITTLE_PERCENT: u64 = 5;
/// What the disk is called among what is told of; no machine's id.
const DISK: &str = "disk";

/// How something is: what it is called, how bad that is, and the words.
struct Subject {
    id: String,
    light: Light,
    title: String,
    message: String,
}

/// Tells people. Never ends by itself.
pub(crate) async fn watch(state: &Arc<ServerState>) {
    loop {
        sleep(state.limits.look_for_notices).await;
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
        let before = told.remove(name).unwrap_or_default();
        let (after, failed) = tell(channel, before, &subjects);
        if let Err(why) = failed {
            state.log(&format!("nobody could be told by {name:?}: {why}"));
        }
        state.accounts.note_told(name, after)?;
    }
    Ok(())
}

fn subjects(overview: &Overview, now_ns: i64) -> Vec<Subject> {
    let machines = overview.machines.iter().map(|known| {
        let (light, message) = known.sentence(now_ns);
        let title = OneLine(&known.machine.name).to_string();
        Subject { id: known.machine.id.clone(), light, title, message }
    });
    let stored = overview.stored_bytes;
    let disk = overview.free_bytes.map(|free| {
        let total = stored.saturating_add(free);
        let is_little = free.saturating_mul(100) < total.saturating_mul(LITTLE_PERCENT);
        Subject {
            id: DISK.to_owned(),
            light: if is_little { Light::Look } else { Light::Good },
            title: "the disk".to_owned(),
            message: format!("{} are left on the disk; {} are stored.", size(free), size(stored)),
        }
    });
    machines.chain(disk).collect()
}

/// Tells by a channel what changed, and gives what it was told by then, and why no more.
fn tell(
    channel: &Channel,
    mut told: BTreeMap<String, u8>,
    subjects: &[Subject],
) -> (BTreeMap<String, u8>, Result<(), String>) {
    told.retain(|id, _| subjects.iter().any(|subject| subject.id == *id));
    if let Channel::Ping { .. } = channel {
        return (told, send(channel, &summary(subjects)));
    }
    for subject in subjects {
        let now = badness(subject.light);
        let before = told.get(&subject.id).copied().unwrap_or(0);
        let notice = match now.cmp(&before) {
            Ordering::Equal => continue,
            // What is only a little better is not worth a word.
            Ordering::Less if now > 0 => None,
            _ => Some(notice(subject)),
        };
        if let Err(why) = notice.map_or(Ok(()), |notice| send(channel, &notice)) {
            // The others would wait for the same.
            return (told, Err(why));
        }
        told.insert(subject.id.clone(), now);
    }
    (told, Ok(()))
}

fn badness(light: Light) -> u8 {
    match light {
        Light::Off | Light::Good => 0,
        Light::Look => 1,
        Light::Bad => 2,
    }
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
    let wrong = subjects.iter().filter(|subject| badness(subject.light) > 0);
    let wrong: Vec<_> = wrong.map(|one| format!("{}: {}", one.title, one.message)).collect();
    let message = if wrong.is_empty() { "All is well.".to_owned() } else { wrong.join("\n") };
    Notice { level: level(worst), title: format!("holdall on {}", host_name()), message }
}
