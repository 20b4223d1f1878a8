//! A proxy between a real browser and the server's pages: the browser speaks plain HTTP to a name of its own, so that no
//! certificate is in the way, and the server is asked as by somebody who is signed in.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use super::client::connect;

/// Under what the browser finds the pages.
pub(super) const SITE: &str = "http://pages.localhost";
/// Tells in the page itself whether it is wider than the window.
macro_rules! probe {
    () => {
        "<script>addEventListener('load',()=>{const e=document.documentElement;\
         e.dataset.wide=e.scrollWidth>innerWidth?'yes':'no'})</script>"
    };
}
pub(super) const PROBE: &str = probe!();
/// Presses the button that takes back the first deletion that waits.
pub(super) const PRESS: &str = "<script>addEventListener('load',()=>{const f=\
                                document.querySelector('form[action^=\"/deletions/\"]');\
                                if(f)f.querySelector('button').click()})</script>";
/// The same in a page that is too wide for a telephone.
pub(super) const TOO_WIDE: &str = concat!("<svg width=\"2000\" height=\"1\"></svg>", probe!());

/// What is passed on of a request's head.
const KEPT: [&str; 4] = ["content-length", "content-type", "origin", "sec-fetch-site"];

/// A relay that runs until the test ends.
pub(super) struct Relay {
    pub(super) address: SocketAddr,
}

/// What a relay adds to each request, and does with each answer.
struct Rules {
    server: String,
    cookie: String,
    /// What comes at the end of each page.
    added: &'static str,
    /// Whether the policy stays.
    keeps_policy: bool,
}

impl Relay {
    /// A relay that leaves everything as it is.
    pub(super) fn to(server: &str, cookie: &str) -> Self {
        Self::adding("", true, server, cookie)
    }

    /// One that adds something at the end of each page, under the page's policy or without one.
    pub(super) fn adding(
        added: &'static str,
        keeps_policy: bool,
        server: &str,
        cookie: &str,
    ) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("bound");
        let (server, cookie) = (server.to_owned(), cookie.to_owned());
        let rules = Arc::new(Rules { server, cookie, added, keeps_policy });
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let rules = Arc::clone(&rules);
                // A browser that goes away concerns nobody.
                std::thread::spawn(move || drop(relay(&stream, &rules)));
            }
        });
        Self { address }
    }
}

fn relay(mut stream: &TcpStream, rules: &Rules) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let (mut first, mut kept, mut length) = (String::new(), String::new(), 0);
    reader.read_line(&mut first)?;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? <= 2 {
            break;
        }
        let (name, value) = line.trim_end().split_once(": ").unwrap_or_default();
        if name.eq_ignore_ascii_case("content-length") {
            length = value.parse().unwrap_or(0);
        }
        // The others are the relay's own, or would have the answer packed.
        if KEPT.iter().any(|kept| name.eq_ignore_ascii_case(kept)) {
            kept += &line;
        }
    }
    let mut words = first.split(' ');
    let method = words.next().unwrap_or_default();
    let Some(path) = words.next().and_then(|url| url.strip_prefix(SITE)) else {
        let nothing = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        return stream.write_all(nothing.as_bytes());
    };
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let mut tls = connect(&rules.server);
    write!(
        tls,
        "{method} {path} HTTP/1.1\r\nHost: {}\r\nCookie: {}\r\n{kept}Connection: close\r\n\r\n",
        rules.server, rules.cookie
    )?;
    tls.write_all(&body)?;
    let mut answer = Vec::new();
    // The end of TLS is none of HTTP.
    let _ = tls.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    stream.write_all(changed(&answer, rules).as_bytes())
}

fn changed(answer: &str, rules: &Rules) -> String {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
    let is_kept = |line: &&str| {
        let line = line.to_ascii_lowercase();
        let is_policy = line.starts_with("content-security-policy");
        !line.starts_with("content-length") && (rules.keeps_policy || !is_policy)
    };
    let head: Vec<_> = head.split("\r\n").filter(is_kept).collect();
    let body = body.replace("</body>", &format!("{}</body>", rules.added));
    format!("{}\r\n\r\n{body}", head.join("\r\n"))
}
