//! A browser as far as the pages are concerned: one request a connection, the cookie, and forms as they were shown.

use std::io::{Read, Write};
use std::net::TcpStream;

/// One browser.
pub(super) struct Browser {
    pub(super) address: String,
    /// The cookie, as `NAME=VALUE`.
    pub(super) cookie: Option<String>,
}

/// What was answered.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// Lines of the head, as they came.
    pub(super) head: String,
    pub(super) bytes: Vec<u8>,
    /// Whether the last of its pieces lacks.
    is_cut: bool,
}

impl Answer {
    /// The value of a line of the head.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut values = lines.filter(|(key, _)| key.eq_ignore_ascii_case(name));
        values.next().map(|(_, value)| value)
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8(self.bytes.clone()).expect("UTF-8")
    }

    /// The first value that follows `name="NAME" value="`.
    pub(super) fn field(&self, name: &str) -> String {
        let text = self.text();
        let front = format!("name=\"{name}\" value=\"");
        let (_, behind) = text.split_once(&front).unwrap_or_else(|| panic!("no {name} in {text}"));
        behind.split('"').next().expect("a value").to_owned()
    }

    /// All addresses that links lead to.
    pub(super) fn links(&self) -> Vec<String> {
        let text = self.text();
        let links = text.split("<a href=\"").skip(1);
        links.map(|link| link.split('"').next().unwrap_or_default().to_owned()).collect()
    }

    #[track_caller]
    pub(super) fn expect(self, status: u16) -> Self {
        let body = String::from_utf8_lossy(&self.bytes);
        assert_eq!(self.status, status, "{}\n{body}", self.head);
        self
    }

    /// Whether all of it came.
    pub(super) fn is_whole(&self) -> bool {
        match self.header("content-length") {
            Some(length) => length == self.bytes.len().to_string(),
            None => !self.is_cut,
        }
    }
}

impl Browser {
    pub(super) fn at(address: &str) -> Self {
        Self { address: address.to_owned(), cookie: None }
    }

    pub(super) fn get(&mut self, path: &str) -> Answer {
        self.get_with(path, "")
    }

    /// The same with other lines in the head.
    pub(super) fn get_with(&mut self, path: &str, lines: &str) -> Answer {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: {}\r\n{lines}", self.address), "")
    }

    /// What came of an archive that has to be cut.
    pub(super) fn get_cut(&mut self, path: &str) -> Answer {
        let answer =
            self.exchange(&format!("GET {path} HTTP/1.1\r\nHost: {}\r\n", self.address), "");
        assert!(answer.is_cut, "{}", answer.head);
        answer.expect(200)
    }

    /// Sends a form with these fields, as one of the pages would have it sent.
    pub(super) fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let origin = format!("Origin: http://{}\r\nSec-Fetch-Site: same-origin\r\n", self.address);
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

    /// Sends a head, to which its end and the cookie are added, and a body.
    pub(super) fn ask(&mut self, head: &str, body: &str) -> Answer {
        let answer = self.exchange(head, body);
        assert!(!answer.is_cut, "{}", answer.head);
        answer
    }

    fn exchange(&mut self, head: &str, body: &str) -> Answer {
        let mut tcp = TcpStream::connect(&self.address).expect("it listens");
        let cookie = self.cookie.as_ref().map(|cookie| format!("Cookie: {cookie}\r\n"));
        let cookie = cookie.unwrap_or_default();
        let request = format!("{head}{cookie}Connection: close\r\n\r\n{body}");
        tcp.write_all(request.as_bytes()).expect("it takes requests");
        let mut bytes = Vec::new();
        // Of an answer that is cut off, what came is kept.
        let _ = tcp.read_to_end(&mut bytes);
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("an answer");
        let head = String::from_utf8(bytes[..end].to_vec()).expect("a head is ASCII");
        let status = head.get(9..12).and_then(|status| status.parse().ok()).expect("a status");
        let mut answer = Answer { status, head, bytes: bytes[end + 4..].to_vec(), is_cut: false };
        if answer.header("transfer-encoding") == Some("chunked") {
            (answer.bytes, answer.is_cut) = joined(&answer.bytes);
        }
        if let Some(set) = answer.header("set-cookie") {
            self.cookie = set.split(';').next().map(str::to_owned);
        }
        answer
    }
}

/// The pieces of a body as one, and whether the last of them lacks.
fn joined(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut whole = Vec::new();
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = std::str::from_utf8(&rest[..end]).expect("a size");
        let size = usize::from_str_radix(size, 16).expect("a size");
        if size == 0 {
            return (whole, false);
        }
        let piece = &rest[end + 2..];
        whole.extend_from_slice(&piece[..size.min(piece.len())]);
        rest = piece.get(size + 2..).unwrap_or_default();
    }
    (whole, true)
}

fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
