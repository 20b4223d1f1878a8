//! A site of one page, which says what was asked of it.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

/// Where the browser finds the page: every name leads to the test's proxy.
pub(super) const SITE: &str = "http://report.test/";

/// A proxy that gives one page, nothing else, and says what it was asked for.
pub(super) struct Site {
    pub(super) address: SocketAddr,
    asked: Receiver<String>,
}

impl Site {
    pub(super) fn of(page: String) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("bound");
        let (tell, asked) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let Some(line) = answer(&stream, &page) else { continue };
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        Self { address, asked }
    }

    /// What was asked for on behalf of the page; a browser has wishes of its own.
    pub(super) fn asked(&self) -> Vec<String> {
        self.asked.try_iter().filter(|line| line.contains(".test")).collect()
    }
}

/// Answers one request, and says which it was.
fn answer(mut stream: &TcpStream, page: &str) -> Option<String> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let mut line = String::new();
    while reader.read_line(&mut line).ok()? > 2 {
        line.clear();
    }
    let (status, body) = match first.starts_with(&format!("GET {SITE} ")) {
        true => ("200 OK", page),
        false => ("404 Not Found", ""),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).ok()?;
    Some(first.trim().to_owned())
}
