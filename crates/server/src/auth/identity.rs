//! Who the server is: to machines one Ed25519 key for good, to browsers a certificate of the kind
//! that they understand.

use std::sync::Arc;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use holdall_format::{PublicKey, ReceiptSigner, Signature, SignedContext};
use holdall_protocol::tls;
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use zeroize::Zeroizing;

use crate::ServerError;
use crate::data_folder::DataFolder;

const IDENTITY: &str = "identity.key";
const WEB_KEY: &str = "web.key";
const WEB_CERTIFICATE: &str = "web.crt";
/// From when on the certificate for browsers is valid, and for how long: nobody renews it.
const WEB_FROM_YEAR: i32 = 2026;
const WEB_YEARS: i32 = 30;
/// Most bytes of a stored key or certificate.
const FILE_MAX_BYTES: u64 = 16 << 10;

/// The server's identity, which clients pin and which signs receipts.
pub(crate) struct ServerIdentity {
    pair: Ed25519KeyPair,
    seed: Zeroizing<[u8; 32]>,
    public: PublicKey,
}

impl ServerIdentity {
    /// Reads the identity, or makes one for a new data folder.
    pub(crate) fn of(folder: &DataFolder) -> Result<Self, ServerError> {
        Self::read_or(folder, || {
            let mut seed = vec![0; 32];
            random(&mut seed)?;
            Ok(seed)
        })
    }

    /// Reads the identity of a data folder that a server used.
    ///
    /// # Errors
    /// [`ServerError::Refused`] if it is not there.
    pub(crate) fn stored_in(folder: &DataFolder) -> Result<Self, ServerError> {
        Self::read_or(folder, || {
            Err(ServerError::refused(format!(
                "{} is not there: bring it back from a copy, since machines know the server by it",
                folder.path().join(IDENTITY).display()
            )))
        })
    }

    /// Refuses a data folder that has an identity, or accounts.
    ///
    /// # Errors
    /// [`ServerError::Refused`].
    pub(crate) fn refuse_known(folder: &DataFolder) -> Result<(), ServerError> {
        let known = [folder.path().join(IDENTITY), folder.database().path().to_owned()];
        match known.iter().find(|path| path.symlink_metadata().is_ok()) {
            None => Ok(()),
            Some(path) => Err(ServerError::refused(format!(
                "{} is there already: move it away to have the copy in its place, or name another folder with --data",
                path.display()
            ))),
        }
    }

    /// Makes an identity that of a data folder which has none.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn from_seed(folder: &DataFolder, seed: &[u8; 32]) -> Result<Self, ServerError> {
        Self::read_or(folder, || Ok(seed.to_vec()))
    }

    /// What makes it.
    ///
    /// Secret.
    pub(crate) fn seed(&self) -> Zeroizing<[u8; 32]> {
        self.seed.clone()
    }

    fn read_or(
        folder: &DataFolder,
        fresh: impl FnOnce() -> Result<Vec<u8>, ServerError>,
    ) -> Result<Self, ServerError> {
        let bytes = folder.read_or_make(IDENTITY, FILE_MAX_BYTES, fresh)?;
        let damaged = |reason: &str| ServerError::Damaged {
            path: folder.path().join(IDENTITY),
            reason: reason.into(),
        };
        let seed: Zeroizing<[u8; 32]> = Zeroizing::new(
            Zeroizing::new(bytes).as_slice().try_into().map_err(|_| damaged("not 32 bytes"))?,
        );
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed[..])
            .map_err(|_| damaged("not an Ed25519 seed"))?;
        let public =
            pair.public_key().as_ref().try_into().map_err(|_| damaged("not an Ed25519 seed"))?;
        Ok(Self { pair, seed, public: PublicKey::from_bytes(public) })
    }

    pub(crate) fn public(&self) -> PublicKey {
        self.public
    }

    /// TLS for machines.
    pub(crate) fn machine_config(&self) -> Result<ServerConfig, ServerError> {
        Ok(tls::machine_server_config(&self.seed)?)
    }
}

impl ReceiptSigner for ServerIdentity {
    fn public(&self) -> PublicKey {
        self.public
    }

    fn sign(&self, context: SignedContext, message: &[u8]) -> Signature {
        let mut bytes = [0; holdall_format::SIGNATURE_BYTES];
        let signature = self.pair.sign(&context.message(message));
        bytes.iter_mut().zip(signature.as_ref()).for_each(|(to, from)| *to = *from);
        Signature::from_bytes(bytes)
    }
}

/// TLS for browsers. A key or certificate that cannot be used is made anew: nobody pins it.
pub(crate) fn web_config(
    folder: &DataFolder,
    identity: &PublicKey,
) -> Result<ServerConfig, ServerError> {
    stored_web_config(folder, identity).or_else(|_| {
        [WEB_KEY, WEB_CERTIFICATE].iter().try_for_each(|name| folder.remove(name))?;
        stored_web_config(folder, identity)
    })
}

/// The same key and certificate alone.
#[cfg(feature = "web")]
pub(crate) fn web_certificate(
    folder: &DataFolder,
    identity: &PublicKey,
) -> Result<rustls::sign::CertifiedKey, ServerError> {
    let (chain, key) = stored_web_certificate(folder, identity)?;
    let key = rustls::sign::CertifiedKey::from_der(chain, key, &tls::provider());
    Ok(key.map_err(tls::TlsError::from)?)
}

/// No client certificate.
fn stored_web_config(
    folder: &DataFolder,
    identity: &PublicKey,
) -> Result<ServerConfig, ServerError> {
    let (chain, key) = stored_web_certificate(folder, identity)?;
    let mut config = ServerConfig::builder_with_provider(tls::provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(tls::TlsError::from)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// ECDSA P-256, because browsers do not take Ed25519.
fn stored_web_certificate(
    folder: &DataFolder,
    identity: &PublicKey,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), ServerError> {
    let key = folder.read_or_make(WEB_KEY, FILE_MAX_BYTES, || {
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256);
        Ok(key.map_err(tls::TlsError::from)?.serialize_der())
    })?;
    let key = Zeroizing::new(key);
    let certificate = folder.read_or_make(WEB_CERTIFICATE, FILE_MAX_BYTES, || {
        let signer = rcgen::KeyPair::try_from(&key[..]).map_err(tls::TlsError::from)?;
        let names = ["holdall".to_owned(), "localhost".to_owned()];
        let mut params = rcgen::CertificateParams::new(names).map_err(tls::TlsError::from)?;
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(rcgen::DnType::CommonName, common_name(identity));
        params.not_before = rcgen::date_time_ymd(WEB_FROM_YEAR, 1, 1);
        params.not_after = rcgen::date_time_ymd(WEB_FROM_YEAR + WEB_YEARS, 1, 1);
        let certificate = params.self_signed(&signer).map_err(tls::TlsError::from)?;
        Ok(certificate.der().to_vec())
    })?;
    let chain = vec![CertificateDer::from(certificate)];
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(&key[..])).clone_key();
    Ok((chain, key))
}

/// Whose certificate it is, for people and scanners; X.509 lets it have at most 64 characters.
fn common_name(identity: &PublicKey) -> String {
    format!("holdall server {}", holdall_protocol::fingerprint(identity))
}

/// Both ways of TLS.
pub(crate) struct TlsConfigs {
    pub(crate) machine: Arc<ServerConfig>,
    pub(crate) web: Arc<ServerConfig>,
    /// For an authority that looks whether a name leads here, where one is asked for a certificate.
    pub(crate) challenge: Option<Arc<ServerConfig>>,
}

/// Fills a buffer with random bytes of the system.
pub(crate) fn random(bytes: &mut [u8]) -> Result<(), ServerError> {
    aws_lc_rs::rand::fill(bytes).map_err(|_| ServerError::refused("the system has no random bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_stays_and_its_signatures_hold() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::take(folder.path()).unwrap();
        let first = ServerIdentity::of(&data).unwrap();
        let again = ServerIdentity::of(&data).unwrap();
        assert_eq!(first.public(), again.public());
        let signature = again.sign(SignedContext::Receipt, b"bytes");
        assert_eq!(first.public().verify(SignedContext::Receipt, b"bytes", &signature), Ok(()));
    }

    #[test]
    fn the_certificate_for_browsers_is_called_after_the_server() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::take(folder.path()).unwrap();
        let identity = PublicKey::from_bytes([1; 32]);
        web_config(&data, &identity).unwrap();
        let certificate = std::fs::read(folder.path().join(WEB_CERTIFICATE)).unwrap();
        let has = |text: &str| certificate.windows(text.len()).any(|part| part == text.as_bytes());
        let name = common_name(&identity);
        assert!(name.len() <= 64 && has(&name), "{name}");
        assert!(!has("rcgen") && has("260101000000Z") && has("20560101000000Z"));
    }

    #[test]
    fn an_identity_of_another_length_is_damage() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::take(folder.path()).unwrap();
        std::fs::write(folder.path().join(IDENTITY), [0; 31]).unwrap();
        assert!(matches!(ServerIdentity::of(&data), Err(ServerError::Damaged { .. })));
    }
}
