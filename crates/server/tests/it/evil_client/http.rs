//! Requests that are bent, cut, too long or no requests at all.

use super::stage::{OWN, cut, request, whole};
use super::{Asked, Row, Stage, by_machine, hold};

const END: &str = "Host: x\r\nConnection: close\r\n\r\n";

pub(super) const ROWS: &[Row] = &[
    row("a path that climbs", |_| get("/api/v1/repositories/../../identity.key"), "404"),
    row(
        "a path that climbs in disguise",
        |_| get("/api/v1/repositories/%2e%2e%2fidentity.key"),
        "404",
    ),
    row("a path with a zero in disguise", |_| get("/api/v1/repositories/machine-1%00"), "404"),
    row("a path of a file", |_| get("//identity.key"), "404"),
    row("a path with a zero", |_| get("/api/v1/repositories/\0"), "400"),
    row("an absolute address", |_| get("http://127.0.0.1/api/v1/repositories/~/nothing"), "404"),
    row("a path longer than any", |_| get(&format!("/{}", "a".repeat(10_000))), "404"),
    row(
        "a path of a hundred thousand bytes",
        |_| get(&format!("/{}", "a".repeat(100_000))),
        "431?",
    ),
    row("a query where none is", |_| get(&format!("{OWN}?force=1")), "404"),
    row("a name that no repository may have", |_| get("/api/v1/repositories/~~"), "404"),
    row("deleting a repository", |_| request("DELETE", OWN, b""), "404"),
    row(
        "deleting a session",
        |stage| request("DELETE", &format!("{OWN}/sessions/{}", stage.session), b""),
        "404",
    ),
    row("deleting records", |_| request("DELETE", &format!("{OWN}/records"), b""), "404"),
    row("forgetting", |_| request("POST", &format!("{OWN}/forget"), b"{}"), "404"),
    row("pruning", |_| request("POST", &format!("{OWN}/prune"), b"{}"), "404"),
    row(
        "an administrator's command",
        |_| request("POST", "/api/v1/admin", br#"{"command":"machines"}"#),
        "404",
    ),
    row(
        "an administrator's command for a quota",
        |_| request("PUT", "/api/v1/admin/quota", b"{}"),
        "404",
    ),
    row("a tunnel", |_| request("CONNECT", "127.0.0.1:22", b""), "404"),
    row("a trace", |_| request("TRACE", OWN, b""), "404"),
    row("a method in small letters", |_| request("get", OWN, b""), "404"),
    row("a method of a thousand letters", |_| request(&"A".repeat(1000), OWN, b""), "404"),
    row("an overwriting method", |_| request("PATCH", OWN, b"{}"), "404"),
    row(
        "a head longer than any",
        |_| cut(format!("GET {OWN} HTTP/1.1\r\nX: {}\r\n{END}", "y".repeat(20_000))),
        "431",
    ),
    row(
        "more lines than a head may have",
        |_| cut(format!("GET {OWN} HTTP/1.1\r\n{}{END}", "X: y\r\n".repeat(100))),
        "431",
    ),
    row("a zero in a head", |_| cut(format!("GET {OWN} HTTP/1.1\r\nX: \0\r\n{END}")), "400"),
    row(
        "a line that goes on in the next",
        |_| cut(format!("GET {OWN} HTTP/1.1\r\nX: y\r\n z\r\n{END}")),
        "400",
    ),
    row(
        "a space before a colon",
        |_| cut(format!("GET {OWN} HTTP/1.1\r\nContent-Length : 5\r\n{END}hello")),
        "400",
    ),
    row("two lengths", |_| sessions("Content-Length: 1\r\nContent-Length: 2\r\n", "{}"), "400"),
    row(
        "a length and chunks",
        |_| sessions("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
        "400?",
    ),
    row(
        "chunks and a length",
        |_| sessions("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", "0\r\n\r\n"),
        "400?",
    ),
    row("a length below nothing", |_| sessions("Content-Length: -1\r\n", ""), "400"),
    row("a length with a sign", |_| sessions("Content-Length: +2\r\n", "{}"), "400"),
    row(
        "a length beyond all numbers",
        |_| sessions("Content-Length: 99999999999999999999999\r\n", ""),
        "400",
    ),
    row("a length in another number system", |_| sessions("Content-Length: 0x10\r\n", ""), "400"),
    row("an encoding that is not chunks", |_| sessions("Transfer-Encoding: gzip\r\n", ""), "400"),
    row(
        "chunks hidden behind another encoding",
        |_| sessions("Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\n"),
        "400",
    ),
    row(
        "a chunk beyond all numbers",
        |_| sessions("Transfer-Encoding: chunked\r\n", &format!("{}\r\n", "F".repeat(40))),
        "400",
    ),
    row(
        "chunks where a length is needed",
        |_| {
            whole(format!(
                "POST {OWN}/sessions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n{END}2\r\n{{}}\r\n0\r\n\r\n"
            ))
        },
        "400",
    ),
    row("chunks that never end", |_| sessions("Transfer-Encoding: chunked\r\n", "1\r\n"), "400"),
    row(
        "a body of exabytes",
        |stage| {
            let path = format!("{OWN}/sessions/{}/blocks", stage.session);
            cut(format!("POST {path} HTTP/1.1\r\nContent-Length: 9000000000000000000\r\n{END}"))
        },
        "413",
    ),
    row(
        "a body of exabytes that waits to be asked for",
        |stage| {
            let path = format!("{OWN}/sessions/{}/blocks", stage.session);
            cut(format!(
                "POST {path} HTTP/1.1\r\nContent-Length: 9000000000000000000\r\nExpect: 100-continue\r\n{END}"
            ))
        },
        "413",
    ),
    row(
        "a body that ends early",
        |stage| {
            let path = format!("{OWN}/sessions/{}/blocks", stage.session);
            cut(format!("POST {path} HTTP/1.1\r\nContent-Length: 1000\r\n{END}half"))
        },
        "400",
    ),
    row("a head that ends early", |_| cut(format!("GET {OWN} HTTP/1.1\r\nHost:")), ""),
    row("zeros", |_| cut(vec![0; 50_000]), "400?"),
    row("another HTTP", |_| cut("GET / HTTP/9.9\r\n\r\n"), "400"),
    row("an HTTP to come", |_| cut("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"), ""),
    row("an HTTP of old", |_| cut("GET /api/v1/repositories/~/x\r\n"), "400"),
    row(
        "an upgrade to something else",
        |_| {
            whole(format!(
                "GET {OWN}/x HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade, close\r\nHost: x\r\n\r\n"
            ))
        },
        "404",
    ),
    row(
        "a second request hidden in a body",
        |_| {
            let hidden = format!("DELETE {OWN} HTTP/1.1\r\nHost: x\r\n\r\n");
            let length = hidden.len();
            whole(format!(
                "POST {OWN}/sessions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{hidden}"
            ))
        },
        "400",
    ),
    row(
        "two hundred requests at once",
        |_| {
            let one = format!("GET {OWN}/nothing HTTP/1.1\r\nHost: x\r\n\r\n");
            cut(one.repeat(200))
        },
        "404",
    ),
];

#[test]
fn requests_that_are_bent_cut_or_none() {
    hold(ROWS);
}

const fn row(name: &'static str, asks: fn(&Stage) -> Asked, status: &'static str) -> Row {
    by_machine(name, asks, status, "")
}

fn get(path: &str) -> Asked {
    whole(format!("GET {path} HTTP/1.1\r\n{END}"))
}

/// A session asked for with those lines about the body, and that body.
fn sessions(lines: &str, body: &str) -> Asked {
    cut(format!("POST {OWN}/sessions HTTP/1.1\r\n{lines}{END}{body}"))
}
