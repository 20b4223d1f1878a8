//! What this computer remembers in its state folder, for estimates and verdicts: the runs before, and the newest
//! measurement of the way to a repository.

use holdall_diagnosis::speed_history::{Kind, Run, SpeedHistory};
use holdall_diagnosis::{Ceilings, Forecast, OwnLimit};
use holdall_engine::UnlockedRepository;
use holdall_meter::cost::Slowness;
use holdall_state::{KeptReports, KnownRuns, Pairing, RunHistory};

use crate::app::App;
use crate::arguments::sources;
use crate::exit::KnownNames;
use crate::opening::open::Where;

/// What the server that is meant knows this computer and its repository by.
pub(crate) fn known_names(app: &App) -> KnownNames {
    let Ok(pairings) = app.pairings() else { return KnownNames::default() };
    let pairing = match app.named_repository().map(Where::parse) {
        Some(Ok(Where::Server { host, name })) => pairings.find(&host, &name),
        Some(_) => None,
        None => pairings.default(),
    };
    let machine = pairing.and_then(|pairing| pairing.machine.clone());
    let repository = pairing.map(|pairing| pairing.name.clone()).filter(|name| !name.is_empty());
    KnownNames { machine, repository }
}

/// Where backups go: a directory's path, or the id of a server's repository. `None` where nothing is named
/// or paired.
pub(crate) fn place(app: &App) -> Option<String> {
    let pairings = || app.pairings().ok();
    match app.named_repository().map(Where::parse) {
        Some(Ok(Where::Directory(folder))) => {
            let absolute = sources::absolute(&folder).ok()?;
            Some(String::from_utf8_lossy(&absolute).into_owned())
        }
        Some(Ok(Where::Server { host, name })) => {
            Some(pairings()?.find(&host, &name)?.repository.clone())
        }
        Some(Err(_)) => None,
        None => Some(pairings()?.default()?.repository.clone()),
    }
}

/// Under what a run is noted, and as people write it: where backups go; a server's repository that was named and is not
/// known here; or, where what would say it is damaged, where the last run went.
pub(crate) fn noted_place(app: &App) -> Option<(String, String)> {
    let known = place(app).zip(place_in_words(app));
    known.or_else(|| match app.named_repository().map(Where::parse) {
        Some(Ok(Where::Server { host, name })) => {
            let place = format!("https://{host}/{name}");
            Some((place.clone(), place))
        }
        None if app.pairings().is_err() || app.damaged_settings().is_some() => {
            let known = KnownRuns::in_state(&app.folders.state);
            known.runs.newest().map(|note| (note.to.clone(), note.place.clone()))
        }
        _ => None,
    })
}

/// A paired repository's address, as people write it.
pub(crate) fn address_of(pairing: &Pairing) -> String {
    let host = pairing.addresses.first().map_or("", String::as_str);
    format!("https://{host}/{}", pairing.name)
}

/// The same as people write it: as it was named, or the address of the server and the repository's name there.
pub(crate) fn place_in_words(app: &App) -> Option<String> {
    let pairings = || app.pairings().ok();
    match app.named_repository().map(Where::parse) {
        Some(Ok(Where::Directory(_))) => place(app),
        Some(Ok(Where::Server { host, name })) => pairings()?.find(&host, &name).map(address_of),
        Some(Err(_)) => None,
        None => pairings()?.default().map(address_of),
    }
}

/// The runs before; none if their file cannot be read.
pub(crate) fn speed_history(app: &App) -> SpeedHistory {
    RunHistory::in_state(&app.folders.state).read()
}

/// Adds a run, and says whether it was slower than those before it.
pub(crate) fn add(app: &App, run: Run) -> Option<Slowness> {
    RunHistory::in_state(&app.folders.state).add(run)
}

/// What the newest `lab path` to where backups go found, if one is kept.
pub(crate) fn ceilings(app: &App) -> Option<Ceilings> {
    ceilings_of_place(app, &place(app)?)
}

/// The same of the path to a place.
pub(crate) fn ceilings_of_place(app: &App, place: &str) -> Option<Ceilings> {
    let newest =
        KeptReports::in_state(&app.folders.state).newest(|report| Ceilings::lead_to(place, report));
    newest.map(Ceilings::of)
}

/// How long a run of that kind will take.
pub(crate) fn forecast(kind: Kind, app: &App, access: &UnlockedRepository) -> Forecast {
    let repository = access.config().repository.to_string();
    Forecast::of(kind, &speed_history(app), &repository, ceilings(app).as_ref())
}

/// The limit on sending that was set for a backup, if one was; it says nothing of a repository in a directory, to
/// which nothing is sent.
pub(crate) fn own_limit(
    app: &App,
    access: &UnlockedRepository,
    upload: Option<u64>,
) -> Option<OwnLimit> {
    let bytes_per_second = upload?;
    let repository = access.config().repository.to_string();
    let is_in_directory = app.pairings().is_ok_and(|all| all.of(&repository).is_none());
    (!is_in_directory).then(|| OwnLimit::new(bytes_per_second, &speed_history(app), &repository))
}

/// The addresses of a repository's server.
pub(crate) fn addresses(app: &App, repository: &str) -> Option<Vec<String>> {
    Some(app.pairings().ok()?.of(repository)?.addresses.clone())
}
