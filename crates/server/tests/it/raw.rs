//! A client that speaks TLS and HTTP by hand, to say what the real one never would.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use holdall_protocol::tls;
use holdall_testkit::Anybody;
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, ClientConnection, SignatureScheme, StreamOwned};

use crate::world::World;

pub(crate) type Raw = StreamOwned<ClientConnection, TcpStream>;

/// Connects as a machine with that seed.
pub(crate) fn machine(world: &World, seed: &[u8; 32]) -> Raw {
    connect(world, tls::client_config(seed, world.server().identity()).unwrap())
}

/// Connects as a browser would, which has no certificate; fails if one is asked for.
pub(crate) fn browser(world: &World, alpn: &[&[u8]]) -> (Raw, Arc<Asked>) {
    let asked = Arc::new(Asked::default());
    let mut config = ClientConfig::builder_with_provider(tls::provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody))
        .with_client_cert_resolver(asked.clone());
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    (connect(world, config), asked)
}

pub(crate) fn connect(world: &World, config: ClientConfig) -> Raw {
    let connection = ClientConnection::new(Arc::new(config), tls::server_name()).unwrap();
    let tcp = TcpStream::connect(world.address()).unwrap();
    // Else what is sent in several parts waits 40 ms for the server's word that the first one came.
    tcp.set_nodelay(true).unwrap();
    StreamOwned::new(connection, tcp)
}

/// Sends bytes and reads the answer to the connection's end; a connection that is cut ends too.
pub(crate) fn exchange(raw: &mut Raw, bytes: &[u8]) -> io::Result<String> {
    raw.write_all(bytes)?;
    raw.flush()?;
    Ok(read_to_end(raw))
}

/// The same for whatever the server may end before it was sent; `ends` says that nothing more comes.
pub(crate) fn exchange_and_end(raw: &mut Raw, bytes: &[u8], ends: bool) -> String {
    // A server that has seen enough answers or ends the connection before all of it was sent.
    let _ = raw.write_all(bytes);
    if ends {
        raw.conn.send_close_notify();
    }
    let _ = raw.flush();
    read_to_end(raw)
}

pub(crate) fn read_to_end(raw: &mut Raw) -> String {
    let (mut answer, mut piece) = (Vec::new(), [0; 4096]);
    while let Ok(bytes @ 1..) = raw.read(&mut piece) {
        answer.extend_from_slice(&piece[..bytes]);
    }
    String::from_utf8_lossy(&answer).into_owned()
}

/// Has no certificate, and notes that it was asked for one.
#[derive(Debug, Default)]
pub(crate) struct Asked(std::sync::atomic::AtomicBool);

impl Asked {
    pub(crate) fn was_asked(&self) -> bool {
        self.0.load(std::sync::atomic::Ordering::SeqCst)
    }
}

impl rustls::client::ResolvesClientCert for Asked {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.0.store(true, std::sync::atomic::Ordering::SeqCst);
        None
    }

    fn has_certs(&self) -> bool {
        true
    }
}
