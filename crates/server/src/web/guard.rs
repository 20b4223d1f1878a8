//! What a request must have before any page looks at it, and what every answer says to the browser.
//!
//! A page elsewhere may have a name of its own lead to this server (DNS rebinding), and would then count as the same
//! site. So only names of this server are answered. Addresses in numbers are no names, and lead nowhere else.

use std::net::IpAddr;

use axum::http::header::{
    CONTENT_SECURITY_POLICY, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN, REFERRER_POLICY,
    X_FRAME_OPTIONS,
};
use axum::http::uri::Authority;
use axum::http::{Method, Request, StatusCode};

use super::problem::Problem;

/// What a page with a script may do: that script is a file of this server, and asks this server alone.
pub(super) const POLICY_WITH_SCRIPT: &str = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; script-src 'self'; connect-src 'self'; \
     base-uri 'none'; frame-ancestors 'none'";
/// Everything comes from this server, and there is no script at all.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; \
                      base-uri 'none'; frame-ancestors 'none'";
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// What these pages say beside [`holdall_pages::HEADERS`].
const HEADERS: [(HeaderName, &str); 3] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (X_FRAME_OPTIONS, "DENY"),
    (REFERRER_POLICY, "no-referrer"),
];

/// The names by which browsers may reach this server.
pub(super) struct Hosts(Vec<String>);

impl Hosts {
    /// This computer's name, as it is and within the local network, and those that were given.
    pub(super) fn new(own: &str, given: Vec<String>) -> Self {
        let own = [own.to_owned(), format!("{own}.local"), "localhost".to_owned()];
        Self(own.into_iter().chain(given).map(|name| plain(&name)).collect())
    }

    fn allow(&self, host: &str) -> bool {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        bare.parse::<IpAddr>().is_ok() || self.0.contains(&plain(host))
    }
}

fn plain(name: &str) -> String {
    name.trim().trim_end_matches('.').to_ascii_lowercase()
}

/// Checks that a request is for this server, and what changes something comes from one of its pages.
///
/// # Errors
/// 421 for a name of another, 403 for a page of another.
pub(super) fn check<B>(hosts: &Hosts, request: &Request<B>) -> Result<(), Problem> {
    let headers = request.headers();
    let host = text(headers, &HOST).unwrap_or_default();
    let authority = host.parse::<Authority>().ok();
    if !authority.is_some_and(|authority| hosts.allow(authority.host())) {
        let words = "This server does not go by that name. Open it by its address, or start it with \
                     --web-name NAME.";
        return Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, words));
    }
    let is_reading = [Method::GET, Method::HEAD].contains(request.method());
    if is_reading || comes_from_here(headers, host) {
        return Ok(());
    }
    Err(Problem::forbidden("That was sent by a page of another site."))
}

/// A browser that is told to keep the referrer to itself says `null` for the origin of a form, and then where from in
/// another line.
fn comes_from_here(headers: &HeaderMap, host: &str) -> bool {
    let site = text(headers, &FETCH_SITE);
    let is_own_site = site.is_none_or(|site| site == "same-origin");
    let is_own_origin = match text(headers, &ORIGIN) {
        None | Some("null") => true,
        Some(origin) => origin.strip_prefix("https://").is_some_and(|of| of == host),
    };
    is_own_site && is_own_origin
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    // What is no text is not ours either.
    headers.get(name).map(|value| value.to_str().unwrap_or("?"))
}

/// Adds what every answer says, unless it says otherwise.
pub(super) fn protect(headers: &mut HeaderMap) {
    let of_all = holdall_pages::HEADERS.map(|(name, value)| (HeaderName::from_static(name), value));
    for (name, value) in HEADERS.into_iter().chain(of_all) {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(method: &str, lines: &[(&str, &str)]) -> u16 {
        let hosts = Hosts::new("NAS", vec!["backup.example.org".into()]);
        let request = lines
            .iter()
            .fold(Request::builder().method(method), |request, (name, value)| {
                request.header(*name, *value)
            })
            .body(());
        match check(&hosts, &request.unwrap()) {
            Ok(()) => 200,
            Err(problem) => axum::response::IntoResponse::into_response(problem).status().as_u16(),
        }
    }

    #[test]
    fn only_names_of_this_server_and_addresses_are_answered() {
        for host in [
            "nas:7443",
            "nas",
            "nas.local:7443",
            "NAS.",
            "localhost:1",
            "192.168.1.5:7443",
            "[::1]:7443",
            "[fe80::1]",
            "backup.example.org",
        ] {
            assert_eq!(status("GET", &[("host", host)]), 200, "{host}");
        }
        for host in
            ["evil.test", "nas.evil.test:7443", "", "1.2.3.4.evil.test", "nas@evil.test", "a b"]
        {
            assert_eq!(status("GET", &[("host", host)]), 421, "{host}");
        }
        assert_eq!(status("GET", &[]), 421);
    }

    #[test]
    fn what_changes_something_comes_from_a_page_of_this_server() {
        let host = ("host", "nas:7443");
        for (lines, expected) in [
            (vec![], 200),
            (vec![("origin", "https://nas:7443")], 200),
            (vec![("origin", "null"), ("sec-fetch-site", "same-origin")], 200),
            (vec![("origin", "null"), ("sec-fetch-site", "cross-site")], 403),
            (vec![("origin", "https://nas:8000")], 403),
            (vec![("origin", "http://nas:7443")], 403),
            (vec![("origin", "https://evil.test")], 403),
            (vec![("sec-fetch-site", "same-site")], 403),
        ] {
            let lines: Vec<_> = [host].into_iter().chain(lines).collect();
            assert_eq!(status("POST", &lines), expected, "{lines:?}");
            assert_eq!(status("GET", &lines), 200, "{lines:?}");
        }
    }
}
