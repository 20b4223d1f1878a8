//! One connection: which TLS it gets, and HTTP on it until it ends.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;

use holdall_format::PublicKey;
use holdall_protocol::tls::{self, ALPN};
use holdall_protocol::wire::{Frames, HELD_FIELD};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::rustls::server::Acceptor;
use tokio_rustls::server::TlsStream;

use super::body::Answer;
use super::dispatch::answer;
use super::idle_socket::IdleSocket;
use super::put::Puts;
use crate::auth::acme;
use crate::auth::identity::TlsConfigs;
use crate::auth::rights::Role;
use crate::bounds::limits::{HEAD_MAX_BYTES, HEAD_MAX_LINES, READ_AHEAD_BYTES};
use crate::bounds::source::Source;
use crate::bounds::stranger_slots::{StrangerSlot, StrangerSlots};
use crate::state::ServerState;
use crate::web::Web;

/// What connections need, and when they are to end.
#[derive(Clone)]
pub(crate) struct Serving {
    pub(crate) state: Arc<ServerState>,
    pub(crate) tls: Arc<TlsConfigs>,
    /// What browsers are shown.
    pub(crate) web: Arc<Web>,
    /// Room for peers who are known.
    pub(crate) places: Arc<Semaphore>,
    /// Those of them that are no machines.
    pub(crate) strangers: Arc<StrangerSlots>,
    /// Becomes true when the server ends.
    pub(crate) ending: watch::Receiver<bool>,
}

/// A connection whose peer has shown who it is, and the places that it takes.
struct Known {
    tls: TlsStream<IdleSocket>,
    key: Option<PublicKey>,
    source: Source,
    share: Share,
    _place: OwnedSemaphorePermit,
}

/// What a connection takes its place from.
enum Share {
    /// Those of its machine, for as long as it wants.
    Machine { _place: OwnedSemaphorePermit },
    /// Those of all who are no machines, until another one needs it.
    Strangers(StrangerSlot),
}

impl Share {
    /// Ends when the place is needed for another connection.
    async fn is_over(&mut self) {
        match self {
            Self::Machine { .. } => std::future::pending().await,
            Self::Strangers(turn) => turn.is_over().await,
        }
    }
}

/// Serves one connection to its end. What goes wrong on the way there ends it, and nothing else.
pub(crate) async fn serve(
    serving: Serving,
    tcp: TcpStream,
    source: Source,
    mut turn: StrangerSlot,
) {
    let known = tokio::select! {
        known = meet(&serving, tcp, source) => known,
        () = turn.is_over() => None,
    };
    drop(turn);
    if let Some(known) = known {
        speak_http(serving, known).await;
    }
}

/// Shakes hands, and takes a place for whoever it is.
async fn meet(serving: &Serving, tcp: TcpStream, source: Source) -> Option<Known> {
    let handshake = serving.state.limits.handshake;
    let tls = timeout(handshake, accept(&serving.tls, tcp)).await.ok()?;
    let tls = tls.inspect_err(|error| serving.state.log_handshake(source, error)).ok()?;
    let (_, session) = tls.get_ref();
    let key = match session.alpn_protocol() {
        Some(ALPN) => tls::peer_key(session.peer_certificates()),
        _ => None,
    };
    let is_let_in = |key: &PublicKey| {
        let role = serving.state.accounts.role(key);
        matches!(role, Role::Machine { .. } | Role::Reader { .. })
    };
    let share = match key.filter(is_let_in) {
        Some(key) => Share::Machine { _place: serving.state.connection_of(&key)? },
        None => Share::Strangers(serving.strangers.admit(source)),
    };
    let place = Arc::clone(&serving.places).acquire_owned().await.ok()?;
    Some(Known { tls, key, source, share, _place: place })
}

/// Does the handshake with the configuration that the client's ALPN asks for.
async fn accept(configs: &TlsConfigs, tcp: TcpStream) -> io::Result<TlsStream<IdleSocket>> {
    tcp.set_nodelay(true)?;
    let hello = LazyConfigAcceptor::new(Acceptor::default(), IdleSocket::new(tcp)).await?;
    let client = hello.client_hello();
    let offers = |wanted| client.alpn().is_some_and(|mut all| all.any(|name| name == wanted));
    let config = match &configs.challenge {
        _ if offers(ALPN) => &configs.machine,
        Some(challenge) if offers(acme::ALPN) => challenge,
        _ => &configs.web,
    };
    hello.into_stream(Arc::clone(config)).await
}

async fn speak_http(serving: Serving, known: Known) {
    let Serving { state, web, mut ending, .. } = serving;
    let Known { tls, key, source, mut share, _place } = known;
    let (idle, stalled) = match share {
        Share::Machine { .. } => (state.limits.idle, state.limits.stalled),
        Share::Strangers(_) => (state.limits.idle_stranger, state.limits.idle_stranger),
    };
    let movement = tls.get_ref().0.movement();
    let puts = Puts::default();
    let service = service_fn(|request| {
        let (state, movement, puts) = (Arc::clone(&state), Arc::clone(&movement), &puts);
        let web = &web;
        async move {
            let working = movement.working();
            let request = match key {
                Some(_) => Err(request),
                None => web.answer(source, request).await,
            };
            let (kept, answering) = (Arc::clone(&state), state);
            let mut response = match request {
                Ok(page) => page.map(|bytes| Answer::new(Frames::plain(bytes))),
                Err(request) => answer(answering, key, source, request, puts).await,
            };
            if let Some(key) = key {
                let bandwidth = Arc::clone(&kept.bandwidth);
                let told = bandwidth.told(&key).and_then(|held| held.encode().parse().ok());
                if let Some(told) = told {
                    response.headers_mut().insert(HELD_FIELD, told);
                }
                response.body_mut().keep_rate(bandwidth, key, Arc::clone(&movement));
            }
            if let Some(slowest) = response.body().slowest(stalled) {
                let sending = movement.sending(slowest);
                response.body_mut().hold(sending);
            }
            drop(working);
            Ok::<_, Infallible>(response)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(idle)
        .max_headers(HEAD_MAX_LINES)
        .max_header_size(HEAD_MAX_BYTES)
        .max_buf_size(READ_AHEAD_BYTES)
        .serve_connection(TokioIo::new(tls), service);
    let speaking = async {
        let mut connection = pin!(connection);
        tokio::select! {
            // A connection that breaks concerns its client alone, who asks again.
            _ = &mut connection => return,
            () = movement.stalled(stalled) => return,
            _ = ending.wait_for(|ending| *ending) => connection.as_mut().graceful_shutdown(),
        }
        tokio::select! {
            _ = connection => {}
            () = movement.stalled(stalled) => {}
        }
    };
    tokio::select! {
        () = speaking => {}
        () = share.is_over() => {}
    }
    puts.end().await;
}
