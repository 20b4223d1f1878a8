//! From `config.toml` to what the agent is to do.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use holdall_agent::journal::{WatchedSet, WatchedSource};
use holdall_agent::{Manner, Manners, Plan, PlannedSet, Schedule};
use holdall_engine::Source;

use crate::app::App;
use crate::arguments::sources;
use crate::config::{self, AgentSettings, Set, Settings};
use crate::exit::{Exit, Refusal};
use crate::opening::open::Where;

/// What the agent is to do.
///
/// # Errors
/// [`Refusal`] names the set whose schedule cannot be understood.
pub(super) fn of(settings: &Settings, app: &App) -> Result<Plan, Refusal> {
    let sets = settings.sets.iter().map(|(name, set)| {
        let schedule = schedule(name, set)?;
        let uses_network = directory(settings, set, app).is_none();
        Ok(PlannedSet { name: name.clone(), schedule, uses_network })
    });
    Ok(Plan { manners: manners(&settings.agent), sets: sets.collect::<Result<_, Refusal>>()? })
}

/// What a change journal has to know of the sets.
pub(super) fn watched(settings: &Settings) -> Vec<WatchedSet> {
    let set = |(name, set): (&String, &Set)| {
        let sources = sources::resolve(&set.paths, &[]).unwrap_or_default();
        let path = |path: &[u8]| PathBuf::from(OsStr::from_bytes(path));
        let source = |source: &Source| WatchedSource {
            path: path(&source.path),
            is_followed: source.read_at != source.path,
        };
        WatchedSet {
            name: name.clone(),
            sources: sources.iter().map(source).collect(),
            marks: set.exclude_if_present.iter().map(|name| name.as_bytes().to_vec()).collect(),
            one_file_system: set.one_file_system,
            settings: format!("{set:?}"),
            unsuitable: unsuitable(set, sources.is_empty()),
        }
    };
    settings.sets.iter().map(set).collect()
}

/// Why a set is walked in any case.
fn unsuitable(set: &Set, has_no_sources: bool) -> Option<&'static str> {
    match set {
        Set { command, .. } if !command.is_empty() => Some("it backs up what a command prints"),
        Set { files_from, .. } if !files_from.is_empty() => Some("its paths come from a list"),
        Set { r#as, .. } if !r#as.is_empty() => Some("it is read elsewhere than it is recorded"),
        Set { read_all: true, .. } => Some("all of its files are read each time"),
        _ => has_no_sources.then_some("its paths cannot be found"),
    }
}

fn schedule(name: &str, set: &Set) -> Result<Schedule, Refusal> {
    let Some(text) = &set.schedule else { return Ok(Schedule::default()) };
    text.parse().map_err(|error| {
        Refusal::new(Exit::Usage, format!("sets.{name}.schedule: {error}"))
            .hint("`man systemd.time` explains calendar expressions; `never` is for a set that you start yourself")
    })
}

/// The directories to which sets are backed up.
pub(super) fn directories(app: &App) -> BTreeSet<PathBuf> {
    let settings = app.settings();
    settings.sets.values().filter_map(|set| directory(settings, set, app)).collect()
}

/// The directory of a set's repository; `None` for one on a server, whether it is named or paired with.
fn directory(settings: &Settings, set: &Set, app: &App) -> Option<PathBuf> {
    let own = set.repository.as_deref().or(settings.repository.as_deref());
    let place = own.map(|name| settings.place_of(name));
    let place = place.or_else(|| app.named_repository().map(str::to_owned))?;
    match Where::parse(&place) {
        Ok(Where::Directory(directory)) => Some(directory),
        _ => None,
    }
}

fn manners(settings: &AgentSettings) -> Manners {
    let usual = Manners::default();
    Manners {
        random_delay: settings.random_delay.map_or(usual.random_delay, |delay| delay.0),
        on_battery: settings.on_battery.map(manner),
        on_metered: settings.on_metered.map_or(usual.on_metered, manner),
        networks: settings.networks.clone(),
        warn_after: settings.warn_after.map_or(usual.warn_after, |after| after.0),
    }
}

fn manner(manner: config::Manner) -> Manner {
    match manner {
        config::Manner::Skip => Manner::Skip,
        config::Manner::Slow => Manner::Slow,
        config::Manner::Run => Manner::Run,
    }
}
