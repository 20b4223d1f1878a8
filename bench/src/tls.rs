//! A certificate for the servers that cannot make their own.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::command::text;
use crate::stage::Stage;

/// A certificate for the stage's server, signed by itself.
pub(crate) struct Certificate {
    pub(crate) path: PathBuf,
    pub(crate) key: PathBuf,
}

impl Certificate {
    /// Makes one in the stage's folder.
    ///
    /// # Errors
    ///
    /// If openssl fails.
    pub(crate) fn make(stage: &Stage<'_>) -> Result<Self> {
        let (path, key) = (stage.file("cert.pem"), stage.file("key.pem"));
        let mut openssl = Command::new("openssl");
        openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]);
        openssl.args(["-nodes", "-days", "30", "-subj", "/CN=bench", "-addext"]);
        openssl.arg(format!("subjectAltName=IP:127.0.0.1,IP:{}", stage.host()));
        text(openssl.arg("-keyout").arg(&key).arg("-out").arg(&path))?;
        Ok(Self { path, key })
    }

    /// SHA-256 of the certificate, in small hex digits.
    ///
    /// # Errors
    ///
    /// If openssl fails.
    pub(crate) fn fingerprint(&self) -> Result<String> {
        let mut openssl = Command::new("openssl");
        openssl.args(["x509", "-noout", "-fingerprint", "-sha256", "-in"]).arg(&self.path);
        let said = text(&mut openssl)?;
        let (_, digits) = said.trim().split_once('=').context("openssl shows no fingerprint")?;
        Ok(digits.replace(':', "").to_lowercase())
    }
}
