//! What all pages share: the repository, the list of its snapshots, one viewer, and who may ask at the same time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::response::{Html, IntoResponse, Response};
use holdall_engine::{EngineError, Listed, OnDemand, Run, Snapshot, UnlockedRepository, Viewer};
use holdall_pages::Page;
use holdall_sys::Clock;
use maud::{Markup, html};
use tokio::sync::Semaphore;
use tokio::time::interval;

use crate::door::Door;
use crate::guard::Hosts;
use crate::jobs::{Jobs, lock};
use crate::peers::Peers;
use crate::place::{Place, address_of};
use crate::problem::Problem;
use crate::silence::Silence;
use crate::stream::{self, Sink};
use crate::wrong::Wrong;

/// Questions that are answered at the same time.
const QUESTIONS: usize = 8;
/// Files and archives that are sent at the same time.
const STREAMS: usize = 16;
/// How long the list of snapshots is taken for the newest.
const LISTED_FOR: Duration = Duration::from_secs(3);
/// How long a server may leave a page without an answer.
const TOLD_AFTER: Duration = Duration::from_secs(10);
/// How often it is looked whether it answers.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long an archive of which nothing is taken keeps a directory's repository from others.
const STALLED_AFTER: Duration = Duration::from_secs(30);
/// How long the repository is kept from others after the last question.
const RESTS_AFTER: Duration = Duration::from_secs(3);

/// The snapshots of a repository.
pub(crate) struct Listing {
    pub(crate) listed: Listed,
    by_id: HashMap<String, usize>,
    /// Snapshots by their folders in WebDAV; filled at the first request.
    by_folder: OnceLock<HashMap<String, usize>>,
}

impl Listing {
    fn of(listed: Listed) -> Self {
        let ids = listed.snapshots.iter().enumerate();
        let by_id = ids.map(|(at, one)| (one.id.to_string(), at)).collect();
        Self { by_id, by_folder: OnceLock::new(), listed }
    }

    /// The snapshot that `folder_of` gives that name.
    pub(crate) fn in_folder(
        &self,
        name: &str,
        folder_of: impl Fn(&Snapshot) -> String,
    ) -> Option<&Snapshot> {
        let all = || self.snapshots().iter().enumerate().map(|(at, one)| (folder_of(one), at));
        let by_folder = self.by_folder.get_or_init(|| all().collect());
        by_folder.get(name).and_then(|at| self.snapshots().get(*at))
    }

    /// Oldest first.
    pub(crate) fn snapshots(&self) -> &[Snapshot] {
        &self.listed.snapshots
    }

    /// The snapshot of that id.
    ///
    /// # Errors
    /// 404 if there is none.
    pub(crate) fn snapshot(&self, id: &str) -> Result<&Snapshot, Problem> {
        let found = self.by_id.get(id).and_then(|at| self.listed.snapshots.get(*at));
        found.ok_or_else(|| Problem::not_found("There is no such snapshot, or not any more."))
    }
}

/// What all pages share.
pub(crate) struct Shared {
    pub(crate) access: Arc<UnlockedRepository>,
    /// The repository as people write it.
    pub(crate) name: String,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) door: Door,
    pub(crate) hosts: Hosts,
    pub(crate) jobs: Jobs,
    pub(crate) wrong: Wrong,
    pub(crate) peers: Peers,
    silence: Silence,
    listing: Mutex<Option<(Instant, Arc<Listing>)>>,
    viewer: OnDemand<Viewer>,
    questions: Arc<Semaphore>,
    streams: Arc<Semaphore>,
}

/// Stops the work of a request whose client is gone.
struct StopOnDrop(Arc<Run>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl Shared {
    pub(crate) fn new(
        access: Arc<UnlockedRepository>,
        name: String,
        clock: Arc<dyn Clock>,
        door: Door,
        hosts: Hosts,
    ) -> Self {
        let viewer = OnDemand::new(Arc::clone(&access), Viewer::open);
        Self {
            access,
            name,
            clock,
            door,
            hosts,
            jobs: Jobs::default(),
            wrong: Wrong::default(),
            peers: Peers::new(),
            silence: Silence::default(),
            listing: Mutex::default(),
            viewer,
            questions: Arc::new(Semaphore::new(QUESTIONS)),
            streams: Arc::new(Semaphore::new(STREAMS)),
        }
    }

    /// Answers a request on a plain thread. If the client goes, or the server does not answer for some seconds, the work
    /// stops.
    pub(crate) async fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self, &Run) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        tokio::select! {
            answer = self.answer(work) => answer,
            () = self.silence() => Err(Problem::silent(&self.name)),
        }
    }

    /// Waits until the server has not answered for some seconds.
    async fn silence(&self) {
        let mut moments = interval(LOOK_EVERY);
        while !self.is_silent() {
            moments.tick().await;
        }
    }

    /// Whether the server was asked, and has not answered for some seconds.
    pub(crate) fn is_silent(&self) -> bool {
        self.silence.lasts(&self.access) >= TOLD_AFTER
    }

    async fn answer<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self, &Run) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let permit = Arc::clone(&self.questions).acquire_owned().await;
        let permit = permit.map_err(|_| Problem::busy())?;
        let (shared, run) = (Arc::clone(self), Arc::new(Run::new()));
        let watched = StopOnDrop(Arc::clone(&run));
        let asked = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work(&shared, &run)
        });
        let answer = asked.await;
        drop(watched);
        answer.map_err(|_| Problem::busy())?
    }

    /// Sends a file, whose pieces are read one by one, on a thread of its own.
    pub(crate) async fn send(
        self: &Arc<Self>,
        place: Place,
        work: impl FnOnce(&Sink) -> Result<(), String> + Send + 'static,
    ) -> Result<Body, Problem> {
        self.stream(place, None, move |sink| work(&sink)).await
    }

    /// Sends an archive, for all of which the repository is held.
    pub(crate) async fn send_holding(
        self: &Arc<Self>,
        place: Place,
        work: impl FnOnce(Sink) -> Result<(), String> + Send + 'static,
    ) -> Result<Body, Problem> {
        let patience = self.access.is_in_directory().then_some(STALLED_AFTER);
        self.stream(place, patience, work).await
    }

    async fn stream(
        self: &Arc<Self>,
        place: Place,
        patience: Option<Duration>,
        work: impl FnOnce(Sink) -> Result<(), String> + Send + 'static,
    ) -> Result<Body, Problem> {
        let room = Arc::clone(&self.streams).acquire_owned().await.map_err(|_| Problem::busy())?;
        let shared = Arc::clone(self);
        let tell = move |why| {
            let address = address_of("at", &place.id, &place.path);
            shared.wrong.note(shared.clock.now_ns(), address, place.path, why);
        };
        stream::body(room, patience, work, tell)
    }

    /// The snapshots as they are now, or were a moment ago.
    ///
    /// # Errors
    /// If they cannot be listed.
    pub(crate) fn listing(&self) -> Result<Arc<Listing>, EngineError> {
        let mut listing = lock(&self.listing);
        match &*listing {
            Some((at, known)) if at.elapsed() < LISTED_FOR => Ok(Arc::clone(known)),
            _ => {
                let now = Listing::of(holdall_engine::snapshots_by_cache(&self.access)?);
                let now = Arc::new(now);
                *listing = Some((Instant::now(), Arc::clone(&now)));
                Ok(now)
            }
        }
    }

    /// Looks into snapshots.
    ///
    /// # Errors
    /// If the repository cannot be asked, as while another process writes to its directory.
    pub(crate) fn viewer(&self) -> Result<Arc<Viewer>, EngineError> {
        self.viewer.get()
    }

    /// Lets other programs write to the repository while no request is open.
    pub(crate) fn rest(&self) {
        self.viewer.rest_after(RESTS_AFTER);
    }

    /// A page.
    pub(crate) fn page(&self, title: &str, content: &Markup) -> Response {
        let content = html! {
            nav {
                a href="/" { "Snapshots" } " \u{b7} " a href="/search" { "Search" } " \u{b7} "
                a href="/restores" { "Restores" }
                @if !self.wrong.is_empty() { " \u{b7} " a href="/wrong" { "What went wrong" } }
            }
            (self.wrong.news())
            (content)
        };
        let page = Page { title, server: &self.name, account: None, content };
        Html(page.html()).into_response()
    }
}
