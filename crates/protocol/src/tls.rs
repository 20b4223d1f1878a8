//! TLS as both ends speak it: keys are pinned and looked up, certificates are only their envelope.
//!
//! A certificate says who vouches for a key and until when. Here nobody vouches: a client knows its
//! server's Ed25519 key from the invite, a server knows its machines' keys from pairing. So each end
//! shows a certificate that it signed itself, and the other takes nothing from it but the public
//! key. What proves possession is the signature over the handshake, which is checked.
//!
//! TLS 1.3 only, AES-128-GCM first: the payload is sealed already, so the cheapest good suite wins.
//! Sessions are not resumed, so that each connection proves its keys anew. A client that offers
//! [`ALPN`] is asked for its certificate; nobody else ever is.

use std::sync::Arc;

use holdall_format::PublicKey;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer,
    UnixTime,
};
use rustls::server::ParsedCertificate;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, PeerMisbehaved,
    ServerConfig, SignatureScheme,
};
use zeroize::Zeroizing;

/// The name under which clients speak; HTTP/1.1 follows.
pub const ALPN: &[u8] = b"holdall/1";

/// The name in certificates; no decision rests on it.
const NAME: &str = "holdall";
/// What precedes the 32 bytes of an Ed25519 key in a SubjectPublicKeyInfo (RFC 8410).
const SPKI_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0];
/// What precedes the 32 bytes of an Ed25519 seed in PKCS#8 version 1 (RFC 8410).
const PKCS8_PREFIX: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// Why keys could not be made ready for TLS. Secret: no variant holds key material.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The TLS library refused a key or a setting.
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// No certificate could be made for a key.
    #[error("TLS certificate: {0}")]
    Certificate(#[from] rcgen::Error),
}

/// The cryptography of every connection: the default, with AES-128-GCM first.
pub fn provider() -> Arc<CryptoProvider> {
    let mut provider = rustls::crypto::aws_lc_rs::default_provider();
    provider.cipher_suites.retain(|suite| suite.tls13().is_some());
    provider
        .cipher_suites
        .sort_by_key(|suite| suite.suite() != rustls::CipherSuite::TLS13_AES_128_GCM_SHA256);
    Arc::new(provider)
}

/// The client's side of a connection: accepts the pinned key alone, and signs in with `seed`'s key.
///
/// # Errors
/// [`TlsError`] if the library refuses the key.
pub fn client_config(seed: &[u8; 32], pinned: PublicKey) -> Result<ClientConfig, TlsError> {
    verifying(seed, |provider| Arc::new(KnownServer { pinned: Some(pinned), provider }))
}

/// The same, accepting any Ed25519 key that the server proves to hold: to learn it, and for nothing
/// else. What [`peer_key`] says afterwards is pinned by the next connection.
///
/// # Errors
/// [`TlsError`] if the library refuses the key.
pub(crate) fn client_config_for_any(seed: &[u8; 32]) -> Result<ClientConfig, TlsError> {
    verifying(seed, |provider| Arc::new(KnownServer { pinned: None, provider }))
}

fn verifying(
    seed: &[u8; 32],
    verifier: impl FnOnce(Arc<CryptoProvider>) -> Arc<dyn ServerCertVerifier>,
) -> Result<ClientConfig, TlsError> {
    let provider = provider();
    let signer = certified_key(&provider, seed)?;
    let verifier = verifier(Arc::clone(&provider));
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_client_cert_resolver(Arc::new(SingleCertAndKey::from(signer)));
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.resumption = rustls::client::Resumption::disabled();
    config.enable_sni = false;
    Ok(config)
}

/// The server's side of a connection under [`ALPN`]: shows the identity of `seed`, and requires an
/// Ed25519 key of the client. Whose key it is, [`peer_key`] tells; what it may do, the caller knows.
///
/// # Errors
/// [`TlsError`] if the library refuses the key.
pub fn machine_server_config(seed: &[u8; 32]) -> Result<ServerConfig, TlsError> {
    let provider = provider();
    let signer = certified_key(&provider, seed)?;
    let verifier = Arc::new(AnyMachine { provider: Arc::clone(&provider) });
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(signer)));
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.send_tls13_tickets = 0;
    Ok(config)
}

/// The name that clients expect; the pinned key is what counts.
pub fn server_name() -> ServerName<'static> {
    ServerName::IpAddress(rustls::pki_types::IpAddr::V4([0, 0, 0, 0].into()))
}

/// The key that the other end proved to hold, if its certificate has an Ed25519 key.
pub fn peer_key(certificates: Option<&[CertificateDer<'_>]>) -> Option<PublicKey> {
    ed25519_key(certificates?.first()?).ok()
}

/// Whether a connection failed because the server's key is not the pinned one.
pub fn is_wrong_server(error: &std::io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    matches!(
        inner,
        Some(rustls::Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
    )
}

/// The same failure; one of a server that speaks no version of the protocol which this program knows says so.
pub(crate) fn in_words(error: std::io::Error) -> std::io::Error {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(
            rustls::Error::NoApplicationProtocol
            | rustls::Error::AlertReceived(rustls::AlertDescription::NoApplicationProtocol),
        ) => std::io::Error::other(
            "it speaks another version of the protocol than this program (holdall/1): update the older of both",
        ),
        _ => error,
    }
}

/// Wraps an Ed25519 seed and a certificate signed by itself.
fn certified_key(
    provider: &CryptoProvider,
    seed: &[u8; 32],
) -> Result<Arc<CertifiedKey>, TlsError> {
    let pkcs8 = Zeroizing::new([&PKCS8_PREFIX[..], seed].concat());
    let signer = rcgen::KeyPair::try_from(&pkcs8[..])?;
    let certificate = rcgen::CertificateParams::new([NAME.to_owned()])?.self_signed(&signer)?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(&pkcs8[..])).clone_key();
    let key = provider.key_provider.load_private_key(key)?;
    Ok(Arc::new(CertifiedKey::new(vec![certificate.der().clone()], key)))
}

/// Takes the Ed25519 key out of a certificate.
///
/// Untrusted: the certificate is parsed by `rustls-webpki`; anything but an Ed25519 key is refused.
fn ed25519_key(certificate: &CertificateDer<'_>) -> Result<PublicKey, rustls::Error> {
    let parsed = ParsedCertificate::try_from(certificate)?;
    let info: SubjectPublicKeyInfoDer<'_> = parsed.subject_public_key_info();
    info.strip_prefix(&SPKI_PREFIX[..])
        .and_then(|key| key.try_into().ok())
        .map(PublicKey::from_bytes)
        .ok_or(rustls::Error::InvalidCertificate(CertificateError::BadEncoding))
}

/// Accepts the pinned key, or any Ed25519 key where none is pinned, whatever certificate it comes in.
#[derive(Debug)]
struct KnownServer {
    pinned: Option<PublicKey>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for KnownServer {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match ed25519_key(end_entity) {
            Ok(key) if self.pinned.is_none_or(|pinned| key == pinned) => {
                Ok(ServerCertVerified::assertion())
            }
            _ => Err(rustls::Error::InvalidCertificate(
                CertificateError::ApplicationVerificationFailure,
            )),
        }
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_handshake(&self.provider, message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
}

/// Requires an Ed25519 key and accepts any: an unknown one may still pair.
#[derive(Debug)]
struct AnyMachine {
    provider: Arc<CryptoProvider>,
}

impl ClientCertVerifier for AnyMachine {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        ed25519_key(end_entity).map(|_| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_handshake(&self.provider, message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
}

fn verify_handshake(
    provider: &CryptoProvider,
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signed: &DigitallySignedStruct,
) -> Result<HandshakeSignatureValid, rustls::Error> {
    if signed.scheme != SignatureScheme::ED25519 {
        return Err(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into());
    }
    let algorithms = &provider.signature_verification_algorithms;
    verify_tls13_signature(message, certificate, signed, algorithms)
}
