//! A certificate for browsers that an administrator brings along, such as one of an authority. Who renews it replaces the
//! files: they are looked at again once a minute, when somebody connects.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use holdall_protocol::tls;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::{LogSink, ServerError};

/// So often the files are looked at, at most.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// Where a certificate for browsers lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnCertificate {
    /// A PEM file of the certificate, and behind it those that vouch for it.
    pub chain: PathBuf,
    /// A PEM file of its key.
    pub key: PathBuf,
}

/// Gives the certificate as it is now.
struct Renewed {
    files: OwnCertificate,
    log: LogSink,
    now: Mutex<Now>,
}

struct Now {
    key: Arc<CertifiedKey>,
    changed: [Option<SystemTime>; 2],
    looked: Instant,
}

/// TLS for browsers with a certificate of one's own.
///
/// # Errors
/// [`ServerError::Refused`] if a file cannot be read, is no such thing, or the key is that of another certificate.
pub(crate) fn own_web_config(
    files: OwnCertificate,
    log: LogSink,
) -> Result<ServerConfig, ServerError> {
    let changed = files.changed();
    let key = Arc::new(files.read().map_err(ServerError::refused)?);
    let now = Mutex::new(Now { key, changed, looked: Instant::now() });
    let mut config = ServerConfig::builder_with_provider(tls::provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(tls::TlsError::from)?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(Renewed { files, log, now }));
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

impl OwnCertificate {
    fn changed(&self) -> [Option<SystemTime>; 2] {
        let changed = |path: &Path| path.metadata().and_then(|metadata| metadata.modified()).ok();
        [changed(&self.chain), changed(&self.key)]
    }

    fn read(&self) -> Result<CertifiedKey, String> {
        let Self { chain, key } = self;
        let about = |path: &Path, what: &str| format!("{}: {what}", path.display());
        let certificates = CertificateDer::pem_file_iter(chain)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| about(chain, &error.to_string()))?;
        if certificates.is_empty() {
            return Err(about(chain, "there is no certificate in it, as PEM has one"));
        }
        let private = PrivateKeyDer::from_pem_file(key)
            .map_err(|error| about(key, &format!("no private key, as PEM has one: {error}")))?;
        CertifiedKey::from_der(certificates, private, &tls::provider())
            .map_err(|error| about(key, &format!("not usable with {}: {error}", chain.display())))
    }
}

impl Renewed {
    /// Looks at the files if that is due.
    fn look_again(&self) {
        let mut now = self.now();
        if now.looked.elapsed() < LOOK_EVERY {
            return;
        }
        now.looked = Instant::now();
        let changed = self.files.changed();
        if changed == now.changed {
            return;
        }
        match self.files.read() {
            Ok(key) => (now.key, now.changed) = (Arc::new(key), changed),
            // It is tried again: its two files are seldom replaced at once.
            Err(why) => (self.log)(&format!("the certificate for browsers stays as it was: {why}")),
        }
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ResolvesServerCert for Renewed {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.look_again();
        Some(Arc::clone(&self.now().key))
    }
}

impl fmt::Debug for Renewed {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Renewed").field("files", &self.files).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a certificate and its key, and gives where.
    fn written(folder: &Path, name: &str) -> OwnCertificate {
        let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
        let chain = folder.join(format!("{name}.crt"));
        let key = folder.join(format!("{name}.key"));
        std::fs::write(&chain, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        OwnCertificate { chain, key }
    }

    #[test]
    fn what_is_no_certificate_or_of_another_key_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let [first, second] = ["one", "two"].map(|name| written(folder.path(), name));
        let log: LogSink = Arc::new(|_| ());
        assert!(own_web_config(first.clone(), Arc::clone(&log)).is_ok());
        let swapped = OwnCertificate { key: second.key.clone(), ..first.clone() };
        let empty = folder.path().join("empty");
        std::fs::write(&empty, "").unwrap();
        let nothing = OwnCertificate { chain: empty.clone(), ..first.clone() };
        let missing = OwnCertificate { key: folder.path().join("missing"), ..first };
        for (files, named) in [(swapped, "two.key"), (nothing, "empty"), (missing, "missing")] {
            let refused = own_web_config(files, Arc::clone(&log)).unwrap_err().to_string();
            assert!(refused.contains(named), "{refused}");
        }
    }

    #[test]
    fn a_renewed_certificate_is_taken_up_and_half_of_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let [files, other] = ["one", "two"].map(|name| written(folder.path(), name));
        let key = Arc::new(files.read().unwrap());
        let was = key.cert.clone();
        let long_ago = Instant::now().checked_sub(2 * LOOK_EVERY).unwrap();
        let now = Now { key, changed: [None, None], looked: long_ago };
        let log: LogSink = Arc::new(|_| ());
        let renewed = Renewed { files: files.clone(), log, now: Mutex::new(now) };
        let look = || {
            renewed.now().looked = long_ago;
            renewed.look_again();
            renewed.now().key.cert.clone()
        };
        std::fs::copy(&other.chain, &files.chain).unwrap();
        assert_eq!(look(), was, "its key is still that of the other");
        std::fs::copy(&other.key, &files.key).unwrap();
        assert_ne!(look(), was);
    }
}
