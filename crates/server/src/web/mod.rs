//! Pages for browsers: what an administrator sees of the server, without keys, behind the same admission as machines.
//!
//! ```text
//! http::connection (no key) -> mod -> guard (Host, Origin, policy) -> router
//!                                                     |-> entry (setup, sign-in, sign-out)
//!                                                     |-> metrics, for Prometheus, and api, for programs, by token
//!                                                     |-> look, for who may only see the overview
//!                                                     |-> speed, of the way to this browser, and lab, of this computer
//!                                                     '-> overview, machine, retention, jobs, upkeep, storage, bandwidth, settings -> admin (the commands of `holdall admin`)
//! ```
//!
//! `visitor` says who asks and checks every form, `form_tokens` are what forms carry, `people` says who may sign in, `backoff` slows
//! guessing down, `passwords` stretches, `guessable` says which are tried first, `second_factor` asks for more than that. `words` says in a sentence how a machine is, `runs` draws how its backups went, `problem` says what went wrong.
//! `live` tells a page of what runs when to look again, and `watch` has people told.
//!
//! All state comes from administrator's commands: a page knows nothing that `holdall admin` does not, and there is no
//! second way to change anything.

mod api;
mod audit;
mod backoff;
mod bandwidth;
mod entry;
mod form_tokens;
mod guard;
mod guessable;
mod hours;
mod invites;
mod jobs;
mod lab;
mod live;
mod look;
mod machine;
mod metrics;
mod openapi;
mod overview;
mod own_password;
mod passwords;
mod people;
mod problem;
mod retention;
mod runs;
mod second_factor;
mod settings;
mod shared;
mod speed;
mod storage;
mod token;
mod turn;
mod upkeep;
mod visitor;
mod watch;
mod words;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::DefaultBodyLimit;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::IntoResponse;
use axum::routing::{any, get, post};
use bytes::Bytes;
use holdall_pages::{ICON, ICON_PATH, STYLE, STYLE_PATH};
use holdall_protocol::wire::Route;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use tokio::time::timeout;
use tower_service::Service;

use crate::ServerError;
pub(crate) use crate::acme::Renewal;
use crate::bounds::source::Source;
use crate::state::ServerState;
use problem::Problem;
use shared::Shared;
pub(crate) use watch::watch;

/// Threads that only pages need: one stretches passwords, so that guessing takes no more than one processor.
pub(crate) const WORKERS: usize = 1;
/// Most bytes of a form.
const FORM_MAX_BYTES: usize = 16 << 10;
/// How long an answer may take, its form read and its repositories opened.
const PATIENCE: Duration = Duration::from_secs(120);

/// The pages of one server.
pub(crate) struct Web {
    shared: Arc<Shared>,
    router: Router,
}

impl Web {
    /// Pages about `state`, for browsers that reach this computer by its own names or by `names`.
    pub(crate) fn new(state: &Arc<ServerState>, names: Vec<String>) -> Result<Self, ServerError> {
        let shared = Arc::new(Shared::new(Arc::clone(state), names)?);
        let router = Router::new()
            .route("/", get(overview::show))
            .route("/setup", get(entry::show_setup).post(entry::set_up))
            .route("/sign-in", get(entry::show_sign_in).post(entry::sign_in))
            .route("/sign-out", post(entry::sign_out))
            .route("/machines/{id}", get(machine::show))
            .route("/machines/{id}/revoke", post(machine::revoke))
            .route("/machines/{id}/retention", get(retention::show).post(retention::change))
            .route("/jobs", get(jobs::list).post(jobs::begin))
            .route("/jobs/{number}", get(jobs::show))
            .route("/jobs/{number}/cancel", post(jobs::cancel))
            .route("/sessions/{number}/end", post(jobs::end_session))
            .route("/changes", get(live::changes))
            .route(live::SCRIPT_PATH, get(|| file("text/javascript; charset=utf-8", live::SCRIPT)))
            .route("/bandwidth", get(bandwidth::show).post(bandwidth::add))
            .route("/bandwidth/{number}/remove", post(bandwidth::remove))
            .route("/upkeep", get(upkeep::show).post(upkeep::change))
            .route("/storage", get(storage::show))
            .route("/lab", get(lab::list).post(lab::begin))
            .route("/lab/compare", get(lab::compare))
            .route("/lab/{number}", get(lab::show))
            .route("/settings", get(settings::show))
            .route("/audit", get(audit::show))
            .route("/password", get(own_password::show).post(own_password::change))
            .route("/second-factor", get(second_factor::show))
            .route("/second-factor/begin", post(second_factor::begin))
            .route("/second-factor/on", post(second_factor::switch_on))
            .route("/second-factor/off", post(second_factor::switch_off))
            .route("/people", get(people::show).post(people::change))
            .route("/people/code", post(people::make_code))
            .route("/tokens", post(settings::make_token))
            .route("/tokens/revoke", post(settings::revoke_token))
            .route("/notices/test", post(settings::test_channel))
            .route("/speed", get(speed::show))
            .route("/speed/begin", post(speed::begin))
            .route("/speed/ping", post(speed::ping))
            .route("/speed/down", post(speed::down))
            .route("/speed/up", post(speed::up).layer(DefaultBodyLimit::max(speed::BODY_MOST)))
            .route(
                speed::SCRIPT_PATH,
                get(|| file("text/javascript; charset=utf-8", speed::SCRIPT)),
            )
            .route("/invites", post(invites::make))
            .route("/invites/short", post(invites::make_short))
            .route("/invites/withdraw", post(invites::withdraw))
            .route("/look/{token}", get(look::begin))
            .route("/deletions/{number}/cancel", post(machine::cancel))
            .route("/metrics", get(metrics::show))
            .route("/api/v1/openapi.json", get(api::document))
            .route(
                "/api/v1/admin/{command}",
                get(api::tell).post(api::carry_out).fallback(api::other_method),
            )
            .route("/api/{*rest}", any(api::nothing))
            .route(STYLE_PATH, get(|| file("text/css; charset=utf-8", STYLE)))
            .route(ICON_PATH, get(|| file("image/svg+xml", ICON)))
            .fallback(|| async { Problem::not_found("There is no such page.") })
            .layer(DefaultBodyLimit::max(FORM_MAX_BYTES))
            .with_state(Arc::clone(&shared));
        Ok(Self { shared, router })
    }

    /// Answers a browser's request. What is for machines, or for who looks whether the server lives, is given back.
    pub(crate) async fn answer(
        &self,
        source: Source,
        request: Request<Incoming>,
    ) -> Result<Response<Bytes>, Request<Incoming>> {
        let path = request.uri().path_and_query().map_or("", |path| path.as_str());
        if path == "/healthz" || Route::parse(request.method().as_str(), path).is_some() {
            return Err(request);
        }
        let is_program = api::is_path(path);
        let answered = match guard::check(&self.shared.hosts, &request) {
            Ok(()) => self.routed(source, request).await,
            Err(problem) if is_program => api::refused(problem),
            Err(problem) => problem.into_response(),
        };
        let (mut head, body) = answered.into_parts();
        guard::protect(&mut head.headers);
        // All of a page is in memory already.
        let bytes = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        Ok(Response::from_parts(head, bytes))
    }

    async fn routed(&self, source: Source, request: Request<Incoming>) -> Response<Body> {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(source);
        let mut router = self.router.clone();
        match timeout(PATIENCE, router.call(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(never)) => match never {},
            Err(_) => {
                Problem::new(StatusCode::SERVICE_UNAVAILABLE, "The server is busy. Try again.")
                    .into_response()
            }
        }
    }
}

/// A file that is the same for everybody.
async fn file(content_type: &'static str, content: &'static str) -> impl IntoResponse {
    ([(CONTENT_TYPE, content_type), (CACHE_CONTROL, "private, max-age=300")], content)
}
