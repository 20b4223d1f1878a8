//! What lies in `DATA/acme`, its owner's alone: `account.json`, by which the authority knows the server, and `certificate.pem`,
//! the key and the certificates behind it, in one file, so that they are never of two.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;

use holdall_protocol::tls;
use holdall_sys::PathBeneath;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use zeroize::Zeroizing;

use super::validity::Validity;
use crate::data_folder::make_beside;

const ACCOUNT: &str = "account.json";
const CERTIFICATE: &str = "certificate.pem";
/// What the first line of a certificate's file begins with; behind it are its names.
const NAMES: &str = "names: ";
/// Most bytes of a file.
const MOST_BYTES: u64 = 1 << 20;

/// What is kept.
pub(super) struct Kept {
    folder: PathBeneath,
}

/// A certificate that can be shown.
pub(super) struct Usable {
    pub(super) key: Arc<CertifiedKey>,
    pub(super) validity: Validity,
}

impl Kept {
    pub(super) fn in_folder(folder: PathBeneath) -> Self {
        Self { folder }
    }

    /// How the authority knows the server, if it does.
    pub(super) fn account(&self) -> Option<Zeroizing<Vec<u8>>> {
        self.read(ACCOUNT).ok()
    }

    pub(super) fn put_account(&self, json: &[u8]) -> io::Result<()> {
        self.put(ACCOUNT, json)
    }

    /// The certificate for exactly these names; one that cannot be used is as good as none.
    pub(super) fn certificate(&self, names: &[String]) -> Option<Usable> {
        let pem = self.read(CERTIFICATE).ok()?;
        let text = std::str::from_utf8(&pem).ok()?;
        if text.lines().next()? != first_line(names) {
            return None;
        }
        let certificates =
            CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>().ok()?;
        let validity = Validity::of(certificates.first()?)?;
        let private = PrivateKeyDer::from_pem_slice(&pem).ok()?;
        let key = CertifiedKey::from_der(certificates, private, &tls::provider()).ok()?;
        Some(Usable { key: Arc::new(key), validity })
    }

    pub(super) fn put_certificate(&self, names: &[String], pem: &str) -> io::Result<()> {
        let text = Zeroizing::new(format!("{}\n{pem}", first_line(names)));
        self.put(CERTIFICATE, text.as_bytes())
    }

    fn read(&self, name: &str) -> io::Result<Zeroizing<Vec<u8>>> {
        let mut bytes = Zeroizing::new(Vec::new());
        self.folder.join(name).open()?.take(MOST_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Writes a file in the place of the one that may be there. It is durable when this returns.
    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        match self.folder.create_dir(0o700) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let path = self.folder.join(name);
        let (beside, mut file) = make_beside(&path)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        beside.rename(&path)?;
        self.folder.sync_dir()
    }
}

fn first_line(names: &[String]) -> String {
    format!("{NAMES}{}", names.join(" "))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use holdall_sys::Root;

    use super::*;

    #[test]
    fn a_certificate_counts_for_its_names_alone_and_is_its_owner_s() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Kept::in_folder(Root::at(folder.path()).join("acme"));
        let names = ["a.example.org", "b.example.org"].map(str::to_owned);
        assert!(kept.certificate(&names).is_none());
        let made = rcgen::generate_simple_self_signed(names.to_vec()).unwrap();
        let pem = made.signing_key.serialize_pem() + &made.cert.pem();
        kept.put_certificate(&names, &pem).unwrap();
        kept.put_certificate(&names, &pem).unwrap();
        assert!(kept.certificate(&names).is_some());
        assert!(kept.certificate(&names[..1]).is_none(), "another was asked for meanwhile");
        let path = folder.path().join("acme/certificate.pem");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::write(&path, "names: a.example.org b.example.org\nnothing").unwrap();
        assert!(kept.certificate(&names).is_none());
    }
}
