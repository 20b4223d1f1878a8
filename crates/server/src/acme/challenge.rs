//! The authority's question, and its answer: a certificate that has what it asked for, shown to nobody else.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdall_protocol::tls;
use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::auth::acme::ALPN as ACME_ALPN;

/// What the authority says that it speaks.
pub(super) const ALPN: &[u8] = ACME_ALPN;

/// Questions that are open, by name.
#[derive(Default)]
pub(super) struct Challenges(Mutex<HashMap<String, Arc<CertifiedKey>>>);

impl Challenges {
    /// Answers for a name with `digest`, which the authority expects.
    pub(super) fn answer(&self, name: &str, digest: &[u8]) -> Result<(), String> {
        let made = made(name, digest).map_err(|error| error.to_string())?;
        self.lock().insert(name.to_ascii_lowercase(), Arc::new(made));
        Ok(())
    }

    /// Answers none any more.
    pub(super) fn forget(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<CertifiedKey>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn made(name: &str, digest: &[u8]) -> Result<CertifiedKey, tls::TlsError> {
    let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
    let mut params = CertificateParams::new([name.to_owned()])?;
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
    let certificate = params.self_signed(&key)?;
    let private = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    // What the authority asked for is critical in it and known to nobody else, so that it cannot be checked like others.
    let key = tls::provider().key_provider.load_private_key(private)?;
    Ok(CertifiedKey::new(vec![certificate.der().clone()], key))
}

impl ResolvesServerCert for Challenges {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name()?.to_ascii_lowercase();
        self.lock().get(&name).cloned()
    }
}

impl fmt::Debug for Challenges {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Challenges")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_in_the_certificate_of_that_name() {
        let challenges = Challenges::default();
        challenges.answer("NAS.example.org", &[7; 32]).unwrap();
        let shown = challenges.lock().get("nas.example.org").cloned().unwrap();
        assert!(shown.cert[0].windows(32).any(|part| part == [7; 32]));
        challenges.forget();
        assert!(challenges.lock().is_empty());
    }
}
