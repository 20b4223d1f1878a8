//! Listening on loopback, and the way of a request to its page.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, LOCATION, SET_COOKIE};
use axum::response::{Html, IntoResponse, Response};
use holdall_pages::{ICON, ICON_PATH, Page, STYLE, STYLE_PATH};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use maud::html;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{interval, sleep, timeout};
use tower_service::Service;

use crate::door::Door;
use crate::guard::{self, Hosts};
use crate::peers::Peer;
use crate::problem::Problem;
use crate::shared::Shared;
use crate::{BrowseError, BrowseOptions, dav, names, pages};

/// Threads that wait for sockets.
const WAITING_THREADS: usize = 2;
/// Threads that ask the repository.
const WORKING_THREADS: usize = 12;
/// How long a connection may say nothing.
const IDLE: Duration = Duration::from_secs(10);
/// How often it is looked whether the repository can rest.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long answers under way may take when it ends.
const ENDING: Duration = Duration::from_secs(2);
/// Shown for a moment to a browser that another site led here: from this page on it sends the cookie.
const AGAIN: (&str, &str) = ("refresh", "0; url=/");

/// The pages, for as long as this lives.
pub struct Browse {
    shared: Arc<Shared>,
    runtime: Option<Runtime>,
    accepting: Option<JoinHandle<()>>,
    ending: watch::Sender<bool>,
    local_addr: SocketAddr,
}

impl Browse {
    /// Whether there are pages.
    pub const IS_BUILT: bool = true;

    /// Listens and serves. When it returns, a browser can connect.
    ///
    /// # Errors
    /// [`BrowseError`].
    pub fn start(options: BrowseOptions) -> Result<Self, BrowseError> {
        let BrowseOptions { access, name, listen, clock } = options;
        if !listen.ip().is_loopback() {
            return Err(BrowseError::NotLoopback { address: listen });
        }
        let unbound = |source| BrowseError::Listen { address: listen, source };
        let listener = std::net::TcpListener::bind(listen).map_err(unbound)?;
        listener.set_nonblocking(true).map_err(unbound)?;
        let local_addr = listener.local_addr().map_err(unbound)?;
        let (door, hosts) = (Door::new(local_addr.port())?, Hosts::of(local_addr));
        let shared = Arc::new(Shared::new(access, name, clock, door, hosts));
        let system = |source| BrowseError::System { what: "starting threads", source };
        // The runtime panics where it cannot start those that wait.
        holdall_sys::thread::test(WAITING_THREADS + 1).map_err(system)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(WAITING_THREADS)
            .max_blocking_threads(WORKING_THREADS)
            .thread_name("holdall-browse")
            .enable_all()
            .build()
            .map_err(system)?;
        let (ending, watching) = watch::channel(false);
        let accepting = runtime.spawn(accept(Arc::clone(&shared), listener, watching));
        Ok(Self { shared, runtime: Some(runtime), accepting: Some(accepting), ending, local_addr })
    }

    /// The address to open, once. Secret: the token is in it.
    pub fn address(&self) -> String {
        format!("http://{}/?token={}", self.local_addr, self.shared.door.token())
    }

    /// Ends: restores under way are stopped in good order. Says whether there was one.
    pub fn shutdown(mut self) -> bool {
        self.end()
    }

    fn end(&mut self) -> bool {
        let (Some(runtime), Some(accepting)) = (self.runtime.take(), self.accepting.take()) else {
            return false;
        };
        self.ending.send_replace(true);
        let was_stopped = self.shared.jobs.stop_all();
        let _ = runtime.block_on(async { timeout(ENDING, accepting).await });
        self.shared.jobs.wait();
        runtime.shutdown_timeout(ENDING);
        was_stopped
    }
}

impl Drop for Browse {
    fn drop(&mut self) {
        self.end();
    }
}

/// Accepts until it ends, then waits for the connections.
async fn accept(
    shared: Arc<Shared>,
    listener: std::net::TcpListener,
    mut ending: watch::Receiver<bool>,
) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let mut connections = JoinSet::new();
    let watching = ending.clone();
    tokio::select! {
        () = accept_connections(&shared, &listener, &watching, &mut connections) => {}
        () = let_rest(&shared) => {}
        _ = ending.wait_for(|ending| *ending) => {}
    }
    while connections.join_next().await.is_some() {}
}

/// Lets the repository rest between questions. Never ends by itself.
async fn let_rest(shared: &Arc<Shared>) {
    let mut moments = interval(LOOK_EVERY);
    loop {
        moments.tick().await;
        let shared = Arc::clone(shared);
        // Giving a session back may ask a server.
        let _ = tokio::task::spawn_blocking(move || shared.rest()).await;
    }
}

/// Accepts connections. Never ends by itself.
async fn accept_connections(
    shared: &Arc<Shared>,
    listener: &TcpListener,
    ending: &watch::Receiver<bool>,
    connections: &mut JoinSet<()>,
) {
    let router = pages::router(shared);
    loop {
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((tcp, address)) => {
                let own = tcp.local_addr();
                let Ok(own) = own else { continue };
                let Some(peer) = shared.peers.admit(own, address).await else { continue };
                let (shared, router) = (Arc::clone(shared), router.clone());
                connections.spawn(serve(shared, router, (tcp, peer), ending.clone()));
            }
            // Out of descriptors, or a connection that ended while it was accepted.
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Speaks HTTP to the end of a connection. What goes wrong there concerns its client alone.
async fn serve(
    shared: Arc<Shared>,
    router: Router,
    (tcp, peer): (TcpStream, Peer),
    mut ending: watch::Receiver<bool>,
) {
    // Without it small answers come late, and nothing else changes.
    let _ = tcp.set_nodelay(true);
    let service = service_fn(|request: hyper::Request<Incoming>| {
        let (shared, router) = (Arc::clone(&shared), router.clone());
        if shared.door.is_in(request.headers()) || dav::has_token(&shared, request.headers()) {
            shared.peers.know(&peer);
        }
        async move { Ok::<_, Infallible>(answer(&shared, router, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE)
        .serve_connection(TokioIo::new(tcp), service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        _ = &mut connection => return,
        _ = ending.wait_for(|ending| *ending) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

async fn answer(
    shared: &Arc<Shared>,
    router: Router,
    request: hyper::Request<Incoming>,
) -> Response {
    let request = request.map(Body::new);
    let answered = match guard::check(&shared.hosts, &request) {
        Ok(()) => admitted(shared, router, request).await,
        Err(problem) => problem.into_response(),
    };
    let (mut head, body) = answered.into_parts();
    guard::protect(&mut head.headers);
    Response::from_parts(head, body)
}

/// Lets in who has the cookie, or exchanges the token for it.
async fn admitted(shared: &Arc<Shared>, mut router: Router, request: Request) -> Response {
    let path = request.uri().path();
    match path {
        STYLE_PATH => return file("text/css; charset=utf-8", STYLE),
        ICON_PATH => return file("image/svg+xml", ICON),
        _ => {}
    }
    if path.strip_prefix(dav::FRONT).is_some_and(|below| below.is_empty() || below.starts_with('/'))
    {
        return dav::answer(shared, request).await;
    }
    let asked = names::fields(request.uri().query().unwrap_or_default());
    if let Some(token) = names::field(&asked, "token").filter(|_| path == "/") {
        return exchanged(shared, request.method() == axum::http::Method::GET, token);
    }
    if shared.door.is_in(request.headers()) {
        return match router.call(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
    }
    if path == "/" && guard::was_led_here(request.headers()) {
        let content = html! { p { a href="/" { "Go on" } } };
        let page = Page { title: "Snapshots", server: "", account: None, content };
        return ([AGAIN], Html(page.html())).into_response();
    }
    Problem::forbidden(
        "Open the address that `holdall browse` printed. It is good once: for another browser, start it again.",
    )
    .into_response()
}

/// The cookie for the token, and an address without it.
fn exchanged(shared: &Shared, is_get: bool, token: &[u8]) -> Response {
    // Who only looks where an address leads does not use it up.
    let line = if is_get { shared.door.exchange(token) } else { None };
    let Some(line) = line.and_then(|line| HeaderValue::from_str(&line).ok()) else {
        return Problem::forbidden(
            "That token is wrong, or was used before. Start `holdall browse` again for a new one.",
        )
        .into_response();
    };
    let headers = [(SET_COOKIE, line), (LOCATION, HeaderValue::from_static("/"))];
    (StatusCode::SEE_OTHER, headers).into_response()
}

/// A file that is the same for everybody.
fn file(content_type: &'static str, content: &'static str) -> Response {
    let headers = [(CONTENT_TYPE, content_type), (CACHE_CONTROL, "private, max-age=300")];
    (headers, content).into_response()
}
