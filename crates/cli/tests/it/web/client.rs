//! A browser as far as the server is concerned: TLS, one request a connection, cookies, and forms as they were shown.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use holdall_protocol::tls;
use holdall_testkit::Anybody;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

/// One browser.
pub(super) struct Browser {
    address: String,
    /// The cookie, as `NAME=VALUE`.
    pub(super) cookie: Option<String>,
}

/// What was answered.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// Lines of the head, as they came.
    pub(super) head: String,
    pub(super) body: String,
}

impl Answer {
    /// The value of a line of the head.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut values = lines.filter(|(key, _)| key.eq_ignore_ascii_case(name));
        values.next().map(|(_, value)| value)
    }

    /// The token of the first form.
    pub(super) fn token(&self) -> String {
        let (_, behind) = self.body.split_once("name=\"token\" value=\"").expect("a form");
        behind.split('"').next().expect("a token").to_owned()
    }

    #[track_caller]
    pub(super) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}\n{}", self.head, self.body);
        self
    }
}

impl Browser {
    pub(super) fn at(address: &str) -> Self {
        Self { address: address.to_owned(), cookie: None }
    }

    pub(super) fn get(&mut self, path: &str) -> Answer {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: {}\r\n", self.address), "")
    }

    /// Sends a form with these fields, as a page of this server would have it sent.
    pub(super) fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let origin = format!("Origin: https://{}\r\nSec-Fetch-Site: same-origin\r\n", self.address);
        self.post_with(path, fields, &origin)
    }

    /// The same with other lines in the head.
    pub(super) fn post_with(&mut self, path: &str, fields: &[(&str, &str)], lines: &str) -> Answer {
        let pairs = fields.iter().map(|(name, value)| format!("{name}={}", percent(value)));
        let body = pairs.collect::<Vec<_>>().join("&");
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\n{lines}Content-Length: {}\r\n\
             Content-Type: application/x-www-form-urlencoded\r\n",
            self.address,
            body.len()
        );
        self.ask(&head, &body)
    }

    /// Sends a head, and gives the status and the length of the body, which may be anything.
    pub(super) fn ask_bytes(&mut self, head: &str) -> (u16, usize) {
        let bytes = self.exchange(head, "");
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("an answer");
        let head = String::from_utf8_lossy(&bytes[..end]);
        let status = head.get(9..12).and_then(|status| status.parse().ok()).expect("a status");
        (status, bytes.len() - end - 4)
    }

    fn exchange(&self, head: &str, body: &str) -> Vec<u8> {
        let mut tls = connect(&self.address);
        let cookie = self.cookie.as_ref().map(|cookie| format!("Cookie: {cookie}\r\n"));
        let cookie = cookie.unwrap_or_default();
        let request = format!("{head}{cookie}Connection: close\r\n\r\n{body}");
        tls.write_all(request.as_bytes()).expect("it takes requests");
        let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
        while let Ok(count @ 1..) = tls.read(&mut piece) {
            bytes.extend_from_slice(&piece[..count]);
        }
        bytes
    }

    /// Sends a head, to which its end and the cookie are added, and a body.
    pub(super) fn ask(&mut self, head: &str, body: &str) -> Answer {
        let bytes = self.exchange(head, body);
        let text = String::from_utf8(bytes).expect("UTF-8");
        let (head, body) = text.split_once("\r\n\r\n").expect("an answer");
        let status = head.get(9..12).and_then(|status| status.parse().ok()).expect("a status");
        let answer = Answer { status, head: head.to_owned(), body: body.to_owned() };
        if let Some(set) = answer.header("set-cookie") {
            let pair = set.split(';').next().expect("a cookie").to_owned();
            self.cookie = (!pair.ends_with('=')).then_some(pair);
        }
        answer
    }
}

fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Connects as a person who clicks the warning away.
pub(super) fn connect(address: &str) -> StreamOwned<ClientConnection, TcpStream> {
    let config = ClientConfig::builder_with_provider(tls::provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody))
        .with_no_client_auth();
    let connection = ClientConnection::new(Arc::new(config), tls::server_name()).expect("a client");
    let tcp = TcpStream::connect(address).expect("it listens");
    tcp.set_nodelay(true).expect("a socket");
    StreamOwned::new(connection, tcp)
}
