//! What a request must have before anything looks at it, and what every answer says to the browser.
//!
//! A page elsewhere may have a name of its own lead to this computer (DNS rebinding), and would then count as the same
//! site. So only the names of loopback are answered, with the port that is listened on.

use std::net::SocketAddr;

use axum::http::header::{
    CONTENT_SECURITY_POLICY, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN, REFERRER_POLICY,
};
use axum::http::{Method, Request, StatusCode};

use crate::problem::Problem;

/// Everything comes from here, and there is no script at all.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; frame-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// What comes out of a backup may do nothing, whatever it is, and is not of this site.
pub(crate) const SANDBOX: &str = "default-src 'none'; sandbox; frame-ancestors 'self'";
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// What these pages say beside [`holdall_pages::HEADERS`]. Browsers tell the origin of a form to these pages alone.
const HEADERS: [(HeaderName, &str); 2] =
    [(CONTENT_SECURITY_POLICY, POLICY), (REFERRER_POLICY, "same-origin")];

/// The names by which the pages may be reached, with the port.
pub(crate) struct Hosts(Vec<String>);

impl Hosts {
    /// Those of loopback, and the address that is listened on.
    pub(crate) fn of(address: SocketAddr) -> Self {
        let port = address.port();
        let names = ["127.0.0.1", "localhost", "[::1]"].map(|name| format!("{name}:{port}"));
        Self(names.into_iter().chain([address.to_string()]).collect())
    }

    fn allow(&self, host: &str) -> bool {
        self.0.iter().any(|name| name.eq_ignore_ascii_case(host))
    }
}

/// Checks that a request is for these pages, and what changes something comes from one of them.
///
/// # Errors
/// 421 for a name of another, 403 for a page of another.
pub(crate) fn check<B>(hosts: &Hosts, request: &Request<B>) -> Result<(), Problem> {
    let headers = request.headers();
    let host = text(headers, &HOST).unwrap_or_default();
    let named = request.uri().authority().map(|authority| authority.as_str());
    let is_named_alike = named.is_none_or(|named| named.eq_ignore_ascii_case(host));
    if headers.get_all(HOST).iter().count() != 1 || !hosts.allow(host) || !is_named_alike {
        let words = "These pages do not go by that name. Open the address that was printed.";
        return Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, words));
    }
    let is_reading = [Method::GET, Method::HEAD].contains(request.method());
    if is_reading || comes_from_here(headers, host) {
        return Ok(());
    }
    Err(Problem::forbidden("That was sent by a page of another site."))
}

/// Programs that are no browsers say nothing of where a request comes from.
fn comes_from_here(headers: &HeaderMap, host: &str) -> bool {
    let is_own_site = text(headers, &FETCH_SITE).is_none_or(|site| site == "same-origin");
    let is_own = |origin: &str| origin.strip_prefix("http://").is_some_and(|of| of == host);
    is_own_site && text(headers, &ORIGIN).is_none_or(is_own)
}

/// Whether another site led the browser here. Then the browser does not send the cookie.
pub(crate) fn was_led_here(headers: &HeaderMap) -> bool {
    text(headers, &FETCH_SITE).is_some_and(|site| site != "same-origin" && site != "none")
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    // What is no text is not ours either.
    headers.get(name).map(|value| value.to_str().unwrap_or("?"))
}

/// Adds what every answer says, unless it says otherwise.
pub(crate) fn protect(headers: &mut HeaderMap) {
    let of_all = holdall_pages::HEADERS.map(|(name, value)| (HeaderName::from_static(name), value));
    for (name, value) in HEADERS.into_iter().chain(of_all) {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(method: &str, uri: &str, lines: &[(&str, &str)]) -> u16 {
        let hosts = Hosts::of("127.0.0.1:7000".parse().unwrap());
        let request = lines
            .iter()
            .fold(Request::builder().method(method).uri(uri), |request, (name, value)| {
                request.header(*name, *value)
            })
            .body(());
        check(&hosts, &request.unwrap()).map_or_else(|problem| problem.status.as_u16(), |()| 200)
    }

    #[test]
    fn only_loopback_with_the_port_is_answered() {
        for host in ["127.0.0.1:7000", "localhost:7000", "LOCALHOST:7000", "[::1]:7000"] {
            assert_eq!(status("GET", "/", &[("host", host)]), 200, "{host}");
        }
        for host in [
            "127.0.0.1",
            "127.0.0.1:7001",
            "localhost",
            "evil.test:7000",
            "localhost.evil.test:7000",
            "192.168.1.5:7000",
            "user@localhost:7000",
            "",
        ] {
            assert_eq!(status("GET", "/", &[("host", host)]), 421, "{host}");
        }
        assert_eq!(status("GET", "/", &[]), 421);
        let host = ("host", "localhost:7000");
        assert_eq!(status("GET", "/", &[host, ("host", "evil.test")]), 421);
        assert_eq!(status("GET", "http://evil.test/", &[host]), 421);
        assert_eq!(status("GET", "http://localhost:7000/", &[host]), 200);
    }

    #[test]
    fn what_changes_something_comes_from_these_pages() {
        let host = ("host", "localhost:7000");
        for (lines, expected) in [
            (vec![], 200),
            (vec![("origin", "http://localhost:7000")], 200),
            (vec![("origin", "null")], 403),
            (vec![("origin", "http://127.0.0.1:7000")], 403),
            (vec![("origin", "https://localhost:7000")], 403),
            (vec![("origin", "http://localhost:8000")], 403),
            (vec![("sec-fetch-site", "same-origin")], 200),
            (vec![("sec-fetch-site", "same-site")], 403),
            (vec![("sec-fetch-site", "cross-site")], 403),
        ] {
            let lines: Vec<_> = [host].into_iter().chain(lines).collect();
            for method in ["POST", "PROPFIND", "PUT"] {
                assert_eq!(status(method, "/", &lines), expected, "{lines:?}");
            }
            assert_eq!(status("GET", "/", &lines), 200, "{lines:?}");
        }
    }
}
