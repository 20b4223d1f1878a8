//! A certificate for browsers of an authority that gives them to programs (ACME, RFC 8555), such as Let's Encrypt.
//!
//! The authority asks whether the name leads here by TLS-ALPN-01 (RFC 8737): it connects, and the listener shows it a
//! certificate for that question alone. So nothing else has to listen, and no request is answered. `order` asks for the
//! certificate, `challenge` answers the question, `http` carries both, `kept` is what lies in the data folder, and `validity`
//! reads until when a certificate is good. It is renewed when a third of its life is left, and shown from the next connection on.

mod challenge;
mod http;
mod kept;
mod order;
mod validity;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use holdall_protocol::tls;
use rustls::ServerConfig;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::time::sleep;

use crate::ServerError;
use crate::accounts::CertificateStatus;
use crate::auth::acme::Acme;
use crate::auth::identity::web_certificate;
use crate::data_folder::DataFolder;
use crate::state::ServerState;
use challenge::Challenges;
use holdall_format::PublicKey;
use kept::{Kept, Usable};

/// So often it is looked whether it is time to renew.
const LOOK_EVERY: Duration = Duration::from_secs(3600);
/// How soon it is tried again after the first failure, and at most after many: an authority bounds how often.
const FIRST_RETRY: Duration = Duration::from_secs(900);
const LAST_RETRY: Duration = Duration::from_secs(24 * 3600);

/// Keeps a certificate, and shows it.
pub(crate) struct Renewal {
    asked: Acme,
    kept: Kept,
    challenges: Arc<Challenges>,
    shown: Arc<Shown>,
}

/// What browsers are shown now.
struct Shown(Mutex<Arc<CertifiedKey>>);

impl Renewal {
    /// Begins with the certificate that is kept, or with the server's own until there is one.
    ///
    /// # Errors
    /// [`ServerError::Refused`] for what no authority takes, and what is wrong with the folder.
    pub(crate) fn begin(
        folder: &DataFolder,
        asked: Acme,
        identity: &PublicKey,
    ) -> Result<Self, ServerError> {
        asked.check()?;
        let kept = Kept::in_folder(folder.acme());
        let key = match kept.certificate(&asked.names) {
            Some(usable) => usable.key,
            None => Arc::new(web_certificate(folder, identity)?),
        };
        let shown = Arc::new(Shown(Mutex::new(key)));
        Ok(Self { asked, kept, challenges: Arc::default(), shown })
    }

    /// TLS for browsers.
    pub(crate) fn web_config(&self) -> Result<ServerConfig, ServerError> {
        config(Arc::clone(&self.shown) as _, b"http/1.1")
    }

    /// TLS for the authority's question.
    pub(crate) fn challenge_config(&self) -> Result<ServerConfig, ServerError> {
        config(Arc::clone(&self.challenges) as _, challenge::ALPN)
    }

    /// Gets a certificate when that is due, and tries again with more and more time between. Never ends by itself.
    pub(crate) async fn keep(&self, state: &ServerState) {
        let mut failures = 0;
        loop {
            let wait = match self.kept.certificate(&self.asked.names) {
                Some(usable) if !usable.validity.is_due(state.stores.now_ns()) => {
                    self.show(&usable, state);
                    failures = 0;
                    LOOK_EVERY
                }
                _ => match self.renew().await {
                    Ok(()) => {
                        state.log("got a certificate for browsers");
                        continue;
                    }
                    Err(why) => {
                        failures += 1;
                        self.tell(&why, state);
                        retry_after(failures)
                    }
                },
            };
            sleep(wait).await;
        }
    }

    /// Gets a certificate and keeps it.
    async fn renew(&self) -> Result<(), String> {
        let pem = order::obtain(&self.asked, &self.kept, &self.challenges).await;
        self.challenges.forget();
        self.kept.put_certificate(&self.asked.names, &pem?).map_err(|error| error.to_string())?;
        let usable = self.kept.certificate(&self.asked.names);
        usable.map(drop).ok_or_else(|| "what the authority gave is no certificate".to_owned())
    }

    fn show(&self, usable: &Usable, state: &ServerState) {
        *self.shown.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&usable.key);
        let until_ns = Some(usable.validity.until_ns);
        self.note(
            CertificateStatus { names: self.asked.names.clone(), until_ns, problem: None },
            state,
        );
    }

    /// Says that it could not be got. What there is is shown on.
    fn tell(&self, why: &str, state: &ServerState) {
        state.log(&format!("no certificate for browsers was got: {why}"));
        let kept = self.kept.certificate(&self.asked.names);
        let until_ns = kept.map(|usable| usable.validity.until_ns);
        let problem = Some(why.to_owned());
        self.note(CertificateStatus { names: self.asked.names.clone(), until_ns, problem }, state);
    }

    fn note(&self, status: CertificateStatus, state: &ServerState) {
        if let Err(error) = state.accounts.note_certificate(&status) {
            state.log(&format!("how the certificate for browsers is could not be noted: {error}"));
        }
    }
}

fn config(shown: Arc<dyn ResolvesServerCert>, alpn: &[u8]) -> Result<ServerConfig, ServerError> {
    let mut config = ServerConfig::builder_with_provider(tls::provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(tls::TlsError::from)?
        .with_no_client_auth()
        .with_cert_resolver(shown);
    config.alpn_protocols = vec![alpn.to_vec()];
    Ok(config)
}

/// How long after so many failures it is tried again.
fn retry_after(failures: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
    FIRST_RETRY.saturating_mul(doubled).min(LAST_RETRY)
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl fmt::Debug for Shown {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Shown")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_each_failure_it_is_waited_for_twice_as_long_and_never_longer_than_a_day() {
        let minutes = |failures| retry_after(failures).as_secs() / 60;
        assert_eq!([1, 2, 3, 7, 8, 40].map(minutes), [15, 30, 60, 960, 1440, 1440]);
    }
}
