//! A server that lies: it stands in front of a real one with that one's identity key, asks it what it
//! is asked, and may answer something else.
//!
//! It speaks HTTP/1.1 by hand, so that it can break that, too, and asks the real server in the name of
//! whoever asks it, since the test has the keys of its machines.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use holdall_format::PublicKey;
use holdall_protocol::{MachineIdentity, tls};
use rustls::{ClientConnection, ServerConfig, ServerConnection, StreamOwned};

const BODY_MAX_BYTES: usize = 64 << 20;
/// More than any client takes of one answer.
const ENDLESS_BYTES: usize = 256 << 20;

/// A request.
#[derive(Debug, Clone)]
pub(super) struct Ask {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) body: Vec<u8>,
}

impl Ask {
    /// What is asked, by the last word of the path: `records` with a body is a commit.
    pub(super) fn verb(&self) -> &str {
        let path = self.path.split('?').next().unwrap_or_default();
        match (self.method.as_str(), path.rsplit('/').next().unwrap_or_default()) {
            ("POST", "records") => "commit",
            ("GET", "records") => "list",
            ("GET", "usage") => "usage",
            ("GET", _) => "describe",
            ("PUT", "wrappings") => "wrappings",
            ("PUT", _) => "create",
            (_, verb) => verb,
        }
    }
}

/// An answer as a server would give it.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// What the client gets.
pub(super) enum Reply {
    /// An answer that is HTTP, whatever it says.
    Answer(Answer),
    /// Any bytes, after which the connection ends.
    Raw(Vec<u8>),
    /// A body that has no end.
    Endless,
    /// An answer that comes in small pieces.
    Trickled(Answer),
}

/// Asks the real server, or does not, and says what the client gets.
pub(super) type Lie = Arc<dyn Fn(&Ask, &mut dyn FnMut() -> Answer) -> Reply + Send + Sync>;

/// What the proxy is at the moment.
#[derive(Clone)]
struct Face {
    lie: Lie,
    /// What is spoken; nothing but the reply's bytes, in the clear, where there is none.
    tls: Option<Arc<ServerConfig>>,
}

struct Shared {
    upstream: SocketAddr,
    identity: PublicKey,
    /// Where machines keep their keys.
    machines: Vec<PathBuf>,
    face: Mutex<Face>,
    ended: AtomicBool,
}

/// The proxy; it ends when it is dropped.
pub(super) struct EvilServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    honest: Arc<ServerConfig>,
    acceptor: Option<JoinHandle<()>>,
}

/// A server that does what it is asked.
pub(super) fn honest() -> Lie {
    Arc::new(|_, ask| Reply::Answer(ask()))
}

impl EvilServer {
    /// Stands in front of the server of that identity; `machines` are files of machines' identities.
    pub(super) fn start(upstream: SocketAddr, seed: &[u8; 32], machines: Vec<PathBuf>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("bound");
        let honest_tls = Arc::new(tls::machine_server_config(seed).expect("a key"));
        let face = Mutex::new(Face { lie: honest(), tls: Some(Arc::clone(&honest_tls)) });
        let identity = MachineIdentity::from_seed(seed).expect("a key").public();
        let ended = AtomicBool::new(false);
        let shared = Arc::new(Shared { upstream, identity, machines, face, ended });
        let inner = Arc::clone(&shared);
        let acceptor = Some(std::thread::spawn(move || accept_all(&listener, &inner)));
        Self { address, shared, honest: honest_tls, acceptor }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lies from now on.
    pub(super) fn lie(&self, lie: Lie) {
        *self.shared.face.lock().unwrap() = Face { lie, tls: Some(Arc::clone(&self.honest)) };
    }

    /// Shows itself in another way from now on, or speaks no TLS.
    pub(super) fn show(&self, tls: Option<ServerConfig>, lie: Lie) {
        *self.shared.face.lock().unwrap() = Face { lie, tls: tls.map(Arc::new) };
    }

    /// Asks the real server in the name of the machine whose identity is in that file.
    pub(super) fn ask(&self, machine: &PathBuf, method: &str, path: &str) -> Answer {
        let ask = Ask { method: method.into(), path: path.into(), body: Vec::new() };
        let mut upstream = connect(&self.shared, &seed_in(machine).expect("it was paired"));
        forward(&mut upstream, &ask).expect("it answers")
    }
}

impl Drop for EvilServer {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

fn accept_all(listener: &TcpListener, shared: &Arc<Shared>) {
    while let Ok((client, _)) = listener.accept() {
        if shared.ended.load(Ordering::SeqCst) {
            return;
        }
        let shared = Arc::clone(shared);
        // A client that goes away ends its connection's thread with an error.
        std::thread::spawn(move || drop(serve(client, &shared)));
    }
}

fn serve(mut client: TcpStream, shared: &Shared) -> io::Result<()> {
    let face = shared.face.lock().unwrap().clone();
    let Some(config) = face.tls else {
        let nothing = Ask { method: String::new(), path: String::new(), body: Vec::new() };
        let reply = (face.lie)(&nothing, &mut || Answer { status: 200, body: Vec::new() });
        return if let Reply::Raw(bytes) = reply { client.write_all(&bytes) } else { Ok(()) };
    };
    let connection = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut client = StreamOwned::new(connection, client);
    while client.conn.is_handshaking() {
        client.conn.complete_io(&mut client.sock)?;
    }
    let key = tls::peer_key(client.conn.peer_certificates());
    let seeds = shared.machines.iter().filter_map(seed_in);
    let mut seeds =
        seeds.filter(|seed| MachineIdentity::from_seed(seed).unwrap().public() == key.unwrap());
    let mut upstream = connect(shared, &seeds.next().expect("a machine of the test"));
    while let Some(ask) = read_request(&mut client)? {
        let lie = shared.face.lock().unwrap().lie.clone();
        let reply = lie(&ask, &mut || forward(&mut upstream, &ask).expect("it answers"));
        send(&mut client, reply)?;
    }
    Ok(())
}

/// The seed in a machine's `identity.json`.
fn seed_in(file: &PathBuf) -> Option<[u8; 32]> {
    let identity: serde_json::Value = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
    let hex = identity["seed"].as_str()?.as_bytes().chunks(2);
    let bytes: Option<Vec<u8>> =
        hex.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect();
    bytes?.try_into().ok()
}

type Upstream = StreamOwned<ClientConnection, TcpStream>;

fn connect(shared: &Shared, seed: &[u8; 32]) -> Upstream {
    let config = tls::client_config(seed, shared.identity).expect("a key");
    let connection = ClientConnection::new(Arc::new(config), tls::server_name()).expect("a name");
    StreamOwned::new(connection, TcpStream::connect(shared.upstream).expect("it runs"))
}

fn send(client: &mut impl Write, reply: Reply) -> io::Result<()> {
    let ended = || Err(io::ErrorKind::ConnectionAborted.into());
    match reply {
        Reply::Answer(answer) => {
            client.write_all(&[head_of(&answer).as_bytes(), &answer.body].concat())?;
            client.flush()
        }
        Reply::Trickled(answer) => {
            let bytes = [head_of(&answer).as_bytes(), &answer.body].concat();
            for piece in bytes.chunks(bytes.len().div_ceil(500).max(1)) {
                client.write_all(piece)?;
                client.flush()?;
            }
            Ok(())
        }
        Reply::Raw(bytes) => {
            client.write_all(&bytes)?;
            client.flush()?;
            ended()
        }
        Reply::Endless => {
            client.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")?;
            let piece = [&b"10000\r\n"[..], &[0; 0x10000], b"\r\n"].concat();
            for _ in 0..ENDLESS_BYTES / 0x10000 {
                client.write_all(&piece)?;
            }
            ended()
        }
    }
}

fn head_of(answer: &Answer) -> String {
    let (status, length) = (answer.status, answer.body.len());
    let more = if status == 301 { "location: https://127.0.0.1:1/\r\n" } else { "" };
    format!("HTTP/1.1 {status} X\r\n{more}content-length: {length}\r\n\r\n")
}

fn forward(upstream: &mut Upstream, ask: &Ask) -> io::Result<Answer> {
    let (method, path, length) = (&ask.method, &ask.path, ask.body.len());
    let head = format!("{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n");
    upstream.write_all(&[head.as_bytes(), &ask.body].concat())?;
    upstream.flush()?;
    let head = read_head(upstream)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let status = head.get(9..12).and_then(|status| status.parse().ok()).unwrap_or_default();
    let body = match header(&head, "transfer-encoding") {
        Some(_) => read_chunks(upstream)?,
        None => read_body(upstream, &head)?,
    };
    Ok(Answer { status, body })
}

fn read_request(client: &mut impl Read) -> io::Result<Option<Ask>> {
    let Some(head) = read_head(client)? else { return Ok(None) };
    let mut words = head.split(' ');
    let mut word = || words.next().unwrap_or_default().to_owned();
    let (method, path) = (word(), word());
    Ok(Some(Ask { method, path, body: read_body(client, &head)? }))
}

/// A head with its blank line, or nothing at the end of the connection.
fn read_head(from: &mut impl Read) -> io::Result<Option<String>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        match from.read(&mut byte) {
            Ok(0) => return Ok(None),
            Ok(_) => head.push(byte[0]),
            Err(_) if head.is_empty() => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(Some(String::from_utf8_lossy(&head).into_owned()))
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let lines = head.lines().filter_map(|line| line.split_once(':'));
    let mut named = lines.filter(|(found, _)| found.eq_ignore_ascii_case(name));
    named.next().map(|(_, value)| value.trim())
}

fn read_body(from: &mut impl Read, head: &str) -> io::Result<Vec<u8>> {
    let length = header(head, "content-length").and_then(|length| length.parse().ok());
    let length: usize = length.unwrap_or_default();
    assert!(length <= BODY_MAX_BYTES, "a body of {length} bytes");
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    Ok(body)
}

fn read_chunks(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            let mut byte = [0];
            from.read_exact(&mut byte)?;
            line.push(byte[0]);
        }
        let line = String::from_utf8_lossy(&line);
        let length = usize::from_str_radix(line.trim(), 16).map_err(io::Error::other)?;
        let mut chunk = vec![0; length + 2];
        from.read_exact(&mut chunk)?;
        if length == 0 {
            return Ok(body);
        }
        body.extend_from_slice(&chunk[..length]);
    }
}
