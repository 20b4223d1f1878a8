//! Who comes in: the token that was printed, and the cookie that it is exchanged for.
//!
//! The token in an address is good once, so that a history or a log that keeps the address keeps nothing. As the password
//! of WebDAV it is good until the end: programs ask for it with every request.

use std::sync::atomic::{AtomicBool, Ordering};

use axum::http::HeaderMap;
use axum::http::header::COOKIE;

use crate::BrowseError;

/// Bytes of each secret; two digits stand for one.
const SECRET_BYTES: usize = 32;

/// The secrets of one run.
pub(crate) struct Door {
    port: u16,
    token: String,
    was_exchanged: AtomicBool,
    cookie: String,
    form: String,
}

impl Door {
    /// New secrets for pages on that port.
    pub(crate) fn new(port: u16) -> Result<Self, BrowseError> {
        let (token, cookie, form) = (secret()?, secret()?, secret()?);
        Ok(Self { port, token, was_exchanged: AtomicBool::new(false), cookie, form })
    }

    /// Secret: what is printed.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// Secret: what each form carries.
    pub(crate) fn form(&self) -> &str {
        &self.form
    }

    /// Whether `given` is the token.
    pub(crate) fn knows(&self, given: &[u8]) -> bool {
        is_same(given, &self.token)
    }

    /// Whether `given` was carried by a form of these pages.
    pub(crate) fn knows_form(&self, given: &[u8]) -> bool {
        is_same(given, &self.form)
    }

    /// Exchanges the token, once: the line that sets the cookie.
    pub(crate) fn exchange(&self, given: &[u8]) -> Option<String> {
        let is_first = self.knows(given) && !self.was_exchanged.swap(true, Ordering::SeqCst);
        let line =
            || format!("{}={}; Path=/; HttpOnly; SameSite=Strict", self.cookie_name(), self.cookie);
        is_first.then(line)
    }

    /// Whether a request has the cookie.
    pub(crate) fn is_in(&self, headers: &HeaderMap) -> bool {
        let name = self.cookie_name();
        let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
        let mut pairs =
            lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.any(|(key, value)| key == name && is_same(value.as_bytes(), &self.cookie))
    }

    /// Cookies of one host are the same on all of its ports: the name keeps two runs apart.
    fn cookie_name(&self) -> String {
        format!("holdall-browse-{}", self.port)
    }
}

fn secret() -> Result<String, BrowseError> {
    let mut bytes = [0; SECRET_BYTES];
    let flags = rustix::rand::GetRandomFlags::empty();
    let got = rustix::rand::getrandom(&mut bytes[..], flags).map_err(std::io::Error::from);
    let got = got.map_err(|source| BrowseError::System { what: "random bytes", source })?;
    if got != SECRET_BYTES {
        let source = std::io::ErrorKind::UnexpectedEof.into();
        return Err(BrowseError::System { what: "random bytes", source });
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Compares in a time that says nothing of where they differ.
fn is_same(given: &[u8], secret: &str) -> bool {
    let differing = given.iter().zip(secret.as_bytes()).fold(0, |bits, (a, b)| bits | (a ^ b));
    given.len() == secret.len() && differing == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_exchanged_once_and_its_cookie_is_of_one_port() {
        let door = Door::new(7).unwrap();
        let token = door.token().to_owned();
        assert_eq!((token.len(), door.exchange(b""), door.exchange(&[b'0'; 64])), (64, None, None));
        let line = door.exchange(token.as_bytes()).unwrap();
        assert!(line.starts_with("holdall-browse-7=") && line.contains("HttpOnly"), "{line}");
        assert!(line.contains("SameSite=Strict") && !line.contains(&token), "{line}");
        assert_eq!(door.exchange(token.as_bytes()), None);
        assert!(door.knows(token.as_bytes()) && !door.knows(&token.as_bytes()[1..]));

        let is_in = |cookie: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(COOKIE, cookie.parse().unwrap());
            door.is_in(&headers)
        };
        let pair = line.split(';').next().unwrap();
        assert!(is_in(pair) && is_in(&format!("a=b; {pair}")));
        let elsewhere = pair.replace("-7=", "-8=");
        for wrong in [&pair[..pair.len() - 1], "holdall-browse-7=", "", &elsewhere] {
            assert!(!is_in(wrong), "{wrong}");
        }
        assert!(!door.is_in(&HeaderMap::new()));
    }
}
