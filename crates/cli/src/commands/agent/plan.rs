//! From `config.toml` to what the agent is to do.

use holdall_agent::{Manner, Manners, Plan, PlannedSet, Schedule};

use crate::app::App;
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
        let uses_network = uses_network(settings, set, app);
        Ok(PlannedSet { name: name.clone(), schedule, uses_network })
    });
    Ok(Plan { manners: manners(&settings.agent), sets: sets.collect::<Result<_, Refusal>>()? })
}

fn schedule(name: &str, set: &Set) -> Result<Schedule, Refusal> {
    let Some(text) = &set.schedule else { return Ok(Schedule::default()) };
    text.parse().map_err(|error| {
        Refusal::new(Exit::Usage, format!("sets.{name}.schedule: {error}"))
            .hint("`man systemd.time` explains calendar expressions; `never` is for a set that you start yourself")
    })
}

/// Whether its repository is on a server, named by the set, by the settings, or paired with.
fn uses_network(settings: &Settings, set: &Set, app: &App) -> bool {
    let own = set.repository.as_deref().or(settings.repository.as_deref());
    let place = own.map(|name| settings.place_of(name));
    let place = place.or_else(|| app.named_repository().map(str::to_owned));
    !matches!(place.map(|place| Where::parse(&place)), Some(Ok(Where::Directory(_))))
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
