//! Sending a notice: by e-mail, webhook, ntfy or ping. What there is to tell, and to whom, others decide.
//!
//! Names of machines are hostile: a title is one line, and what goes into a header has nothing but visible ASCII.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::Duration;

use holdall_format::OneLine;
use lettre::message::Mailbox;
use lettre::message::header::ContentType;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::{Message, SmtpTransport, Transport};
use serde_json::json;
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use zeroize::Zeroizing;

use crate::accounts::Channel;
use crate::addresses::host_name;

/// How long sending may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// The port at which mail begins with TLS.
const SMTPS_PORT: u16 = 465;

/// Something to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) level: Level,
    pub(crate) title: String,
    pub(crate) message: String,
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Good,
    Look,
    Bad,
}

impl Level {
    fn word(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Look => "look",
            Self::Bad => "bad",
        }
    }
}

impl Notice {
    /// One that says that telling works.
    pub(crate) fn trial() -> Self {
        Self {
            level: Level::Good,
            title: format!("holdall on {}: a trial", host_name()),
            message: "Somebody wanted to see that notices arrive. They do.".to_owned(),
        }
    }

    fn line(&self) -> String {
        OneLine(&self.title).to_string()
    }

    /// The title as a header has it.
    fn header(&self) -> String {
        let is_shown = |letter: char| letter.is_ascii_graphic() || letter == ' ';
        self.line().chars().map(|letter| if is_shown(letter) { letter } else { '?' }).collect()
    }
}

/// Most notices that are on their way at once.
const UNDER_WAY_MOST: usize = 4;
/// How many are.
static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);

/// One of those, counted until it ends, however that is.
struct UnderWay;

impl UnderWay {
    fn begin() -> Result<Self, String> {
        let this = Self;
        match UNDER_WAY.fetch_add(1, Ordering::AcqRel) {
            ..UNDER_WAY_MOST => Ok(this),
            _ => Err("others are still being told".to_owned()),
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        UNDER_WAY.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Sends a notice, and waits for that no longer than [`PATIENCE`]. Whoever answers by a drop now and then is left behind.
///
/// # Errors
/// Why it did not arrive, in words without the address, which may be a secret.
pub(crate) fn send(channel: &Channel, notice: &Notice) -> Result<(), String> {
    let (channel, notice, under_way) = (channel.clone(), notice.clone(), UnderWay::begin()?);
    let (tell, told) = mpsc::channel();
    let sending = move || {
        let _under_way = under_way;
        let _ = tell.send(try_to_send(&channel, &notice));
    };
    if holdall_sys::thread::start_alone(sending).is_err() {
        return Err("no thread can be started".to_owned());
    }
    told.recv_timeout(PATIENCE).unwrap_or_else(|_| Err("it did not answer in time".to_owned()))
}

fn try_to_send(channel: &Channel, notice: &Notice) -> Result<(), String> {
    match channel {
        Channel::Webhook { url } => {
            let body = json!({
                "title": notice.line(),
                "message": notice.message,
                "level": notice.level.word(),
                "server": host_name()
            });
            let request = agent().post(&**url).header("Content-Type", "application/json");
            answered(request.send(body.to_string()))
        }
        Channel::Ntfy { url } => {
            let (priority, tag) = match notice.level {
                Level::Good => ("default", "white_check_mark"),
                Level::Look => ("high", "warning"),
                Level::Bad => ("urgent", "rotating_light"),
            };
            let request = agent().post(&**url).header("Title", notice.header());
            let request = request.header("Priority", priority).header("Tags", tag);
            answered(request.send(&notice.message))
        }
        Channel::Ping { url } => {
            let url = ping_address(url, notice.level > Level::Good);
            answered(agent().post(&*url).send(&notice.message))
        }
        Channel::Email { server, user, password, from, to } => {
            let letter = letter(notice, from, to)?;
            let credentials = user.clone().zip(password.as_ref().map(|text| text.to_string()));
            mail(server, credentials.map(|(user, word)| Credentials::new(user, word)), &letter)
        }
    }
}

/// Where a ping goes, which is before what stands behind a question mark.
fn ping_address(url: &str, has_failed: bool) -> Zeroizing<String> {
    let (address, query) = url.split_once('?').map_or((url, None), |(one, two)| (one, Some(two)));
    let mut ping = Zeroizing::new(address.trim_end_matches('/').to_owned());
    if has_failed {
        ping.push_str("/fail");
    }
    if let Some(query) = query {
        ping.push('?');
        ping.push_str(query);
    }
    ping
}

fn answered(answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Result<(), String> {
    match answer {
        Ok(answer) if answer.status().is_redirection() => {
            Err(format!("it answered {}, which leads elsewhere", answer.status().as_u16()))
        }
        Ok(_) => Ok(()),
        Err(ureq::Error::StatusCode(status)) => Err(format!("it answered {status}")),
        Err(ureq::Error::Timeout(_)) => Err("it did not answer in time".to_owned()),
        Err(ureq::Error::HostNotFound) => Err("there is no such host".to_owned()),
        Err(ureq::Error::Io(error)) => Err(error.to_string()),
        Err(ureq::Error::BadUri(_)) => Err("its address is none".to_owned()),
        Err(_) => Err("it could not be reached".to_owned()),
    }
}

/// What asks. It follows no other address, and trusts whom this computer trusts.
fn agent() -> &'static Agent {
    static AGENT: OnceLock<Agent> = OnceLock::new();
    AGENT.get_or_init(|| {
        let config = Agent::config_builder().tls_config(trust()).max_redirects(0);
        config.timeout_global(Some(PATIENCE)).build().into()
    })
}

/// Whom this computer trusts.
pub(crate) fn trust() -> TlsConfig {
    let roots = rustls_native_certs::load_native_certs().certs;
    let roots = roots.iter().map(|root| Certificate::from_der(root).to_owned()).collect();
    let tls = TlsConfig::builder()
        .unversioned_rustls_crypto_provider(Arc::clone(&holdall_protocol::tls::provider()))
        .root_certs(RootCerts::Specific(Arc::new(roots)));
    tls.build()
}

fn letter(notice: &Notice, from: &str, to: &str) -> Result<Message, String> {
    let mailbox = |text: &str| {
        text.parse::<Mailbox>().map_err(|error| format!("{text:?} is no address: {error}"))
    };
    let letter = Message::builder().from(mailbox(from)?).to(mailbox(to)?);
    let letter = letter.subject(notice.line()).header(ContentType::TEXT_PLAIN);
    letter.body(format!("{}\n", notice.message)).map_err(|error| error.to_string())
}

fn mail(server: &str, credentials: Option<Credentials>, letter: &Message) -> Result<(), String> {
    let failed = |error: lettre::transport::smtp::Error| error.to_string();
    let (host, port) = server.rsplit_once(':').ok_or("its server is no HOST:PORT")?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let port: u16 = port.parse().map_err(|_| "its server's port is none")?;
    let parameters = || TlsParameters::new(host.to_owned()).map_err(failed);
    let tls = match (port, &credentials) {
        (SMTPS_PORT, _) => Tls::Wrapper(parameters()?),
        // A password is never sent in the clear.
        (_, Some(_)) => Tls::Required(parameters()?),
        (_, None) => Tls::Opportunistic(parameters()?),
    };
    let mut transport = SmtpTransport::builder_dangerous(host).port(port).tls(tls);
    transport = transport.timeout(Some(PATIENCE));
    if let Some(credentials) = credentials {
        transport = transport.credentials(credentials);
    }
    transport.build().send(letter).map(drop).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ping_that_failed_says_so_before_what_is_asked() {
        for (url, good, failed) in [
            ("https://h/ping/1/", "https://h/ping/1", "https://h/ping/1/fail"),
            ("https://h/p?token=1", "https://h/p?token=1", "https://h/p/fail?token=1"),
        ] {
            assert_eq!((&**ping_address(url, false), &**ping_address(url, true)), (good, failed));
        }
    }

    #[test]
    fn a_hostile_name_ends_neither_a_header_nor_a_subject() {
        let notice = Notice {
            level: Level::Bad,
            title: "attic\r\nBcc: evil@example.org\u{202e}: no backup".to_owned(),
            message: "x".to_owned(),
        };
        let header = notice.header();
        assert!(!header.contains(['\r', '\n']) && header.is_ascii(), "{header}");
        let written = letter(&notice, "nas@example.org", "me@example.org").unwrap();
        let text = String::from_utf8(written.formatted()).unwrap();
        assert!(!text.lines().any(|line| line.starts_with("Bcc:")), "{text}");
        assert!(letter(&notice, "nas@example.org", "me@example.org, you@b\nX: y").is_err());
    }
}
