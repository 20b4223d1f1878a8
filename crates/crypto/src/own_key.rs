//! Keys of somebody's own: an age key or an SSH key, public to wrap the key ring for it, and private
//! to unwrap it with.
//!
//! Taken are what age calls X25519 (`age1...`, `AGE-SECRET-KEY-1...`) and SSH keys of the kind
//! ssh-ed25519. RSA keys are not, though age knows them: the library that would open them takes a
//! time that depends on the key (RUSTSEC-2023-0071), and a keeper that hands out wrappings of its
//! own making could see that time. But for what a passphrase hides, they are refused before age reads them:
//! it ends in a panic where a number in one is zero bytes alone.

use std::str::FromStr;

use age::secrecy::SecretString;
use age::{Identity, Recipient, ssh, x25519};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use zeroize::Zeroizing;

use crate::CryptoError;

const NO_RSA: &str = "RSA keys are not supported; use an ssh-ed25519 key or an age key";
const UNREADABLE: &str = "not an SSH private key that can be read";
/// What a line with a public RSA key begins with, and a file with a private one in the format of old.
const RSA_FRONTS: [&str; 2] = ["ssh-rsa ", "-----BEGIN RSA PRIVATE KEY-----"];
/// The kind of an RSA key in OpenSSH's format, for which age takes whatever begins so.
const RSA_IN_OPENSSH: &[u8] = b"ssh-rsa";

/// Somebody's public key.
#[derive(Clone)]
pub struct OwnPublicKey {
    key: Public,
    label: String,
}

#[derive(Clone)]
enum Public {
    Age(x25519::Recipient),
    Ssh(ssh::Recipient),
}

impl OwnPublicKey {
    /// Reads `age1...`, or a line as it stands in `id_ed25519.pub`.
    ///
    /// Untrusted: any text.
    ///
    /// # Errors
    /// What is wrong with the text, in words for people.
    pub fn from_text(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.lines().count() > 1 {
            return Err("more than one line; add one public key after the other".to_owned());
        }
        if is_rsa(text) {
            return Err(NO_RSA.to_owned());
        }
        if text.starts_with("age1") {
            let key = x25519::Recipient::from_str(text)
                .map_err(|reason| format!("not an age public key: {reason}"))?;
            return Ok(Self { key: Public::Age(key), label: text.to_owned() });
        }
        match text.parse() {
            Ok(key @ ssh::Recipient::SshEd25519(..)) => {
                Ok(Self { key: Public::Ssh(key), label: ssh_label(text) })
            }
            Err(ssh::ParseRecipientKeyError::Unsupported(kind)) => {
                Err(format!("SSH keys of the kind {kind} are not supported; use ssh-ed25519"))
            }
            _ => Err("neither an age public key (age1...) nor a line with an SSH public key \
                           (ssh-ed25519 ...)"
                .to_owned()),
        }
    }

    /// What people may call it: the key itself, or the comment of an SSH key.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// The key alone, without a comment, as [`OwnPublicKey::from_text`] reads it.
    pub(crate) fn to_text(&self) -> String {
        match &self.key {
            Public::Age(key) => key.to_string(),
            Public::Ssh(key) => key.to_string(),
        }
    }

    pub(crate) fn recipient(&self) -> &dyn Recipient {
        match &self.key {
            Public::Age(key) => key,
            Public::Ssh(key) => key,
        }
    }
}

/// The comment of a line with a public key, or else its kind and the end of the key.
fn ssh_label(line: &str) -> String {
    let mut words = line.splitn(3, ' ');
    let (kind, key) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let comment = words.next().unwrap_or_default().trim();
    if !comment.is_empty() {
        return comment.to_owned();
    }
    let end: Vec<char> = key.chars().rev().take(8).collect();
    format!("{kind} ...{}", end.into_iter().rev().collect::<String>())
}

/// Somebody's private key.
///
/// Secret: not printed.
#[derive(Clone)]
pub struct OwnPrivateKey(Private);

#[derive(Clone)]
enum Private {
    Age(Vec<x25519::Identity>),
    Ssh(ssh::Identity),
}

impl OwnPrivateKey {
    /// Reads an age identity file (one key a line; empty lines and those with `#` are passed over)
    /// or an SSH private key as it stands in `id_ed25519`.
    ///
    /// Untrusted: any text; nothing is allocated beyond its length.
    ///
    /// # Errors
    /// What is wrong with the text, in words for people; never the text.
    pub fn from_text(text: &str) -> Result<Self, String> {
        if text.trim_start().starts_with("-----BEGIN") {
            return ssh_private(text.trim_start());
        }
        let lines = text.lines().map(str::trim);
        let keys = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let keys: Result<Vec<_>, _> = keys.map(x25519::Identity::from_str).collect();
        match keys {
            Ok(keys) if !keys.is_empty() => Ok(Self(Private::Age(keys))),
            _ => Err("neither an age identity file (AGE-SECRET-KEY-1...) nor an SSH private key"
                .to_owned()),
        }
    }

    /// Whether it must be unlocked before it opens anything.
    pub fn is_locked(&self) -> bool {
        matches!(self.0, Private::Ssh(ssh::Identity::Encrypted(_)))
    }

    /// Unlocks it with its passphrase.
    ///
    /// # Errors
    /// [`CryptoError::WrongKey`] for another passphrase.
    pub fn unlock(self, passphrase: &str) -> Result<Self, CryptoError> {
        match self.0 {
            Private::Ssh(ssh::Identity::Encrypted(key)) => {
                let unlocked = key.decrypt(SecretString::from(passphrase));
                let unlocked = unlocked.map_err(|_| CryptoError::WrongKey)?;
                Ok(Self(Private::Ssh(unlocked.into())))
            }
            other => Ok(Self(other)),
        }
    }

    pub(crate) fn identities(&self) -> Vec<Box<dyn Identity>> {
        match &self.0 {
            Private::Age(keys) => {
                keys.iter().map(|key| Box::new(key.clone()) as Box<dyn Identity>).collect()
            }
            Private::Ssh(key) => vec![Box::new(key.clone())],
        }
    }
}

/// Whether a key begins as those of RSA do that say so in clear.
fn is_rsa(text: &str) -> bool {
    RSA_FRONTS.iter().any(|front| text.starts_with(front))
}

/// Whether a key says that it is one of RSA, anywhere in what of it is not locked: in its comment, too.
fn names_rsa(decoded: &[u8]) -> bool {
    decoded.windows(RSA_IN_OPENSSH.len()).any(|bytes| bytes == RSA_IN_OPENSSH)
}

/// The bytes of base64 between the first line and the one that ends a key; `None` if any of that is something
/// else, of which age reads as much as is base64.
fn decoded(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    let lines = text.lines().skip(1).take_while(|line| !line.starts_with('-'));
    let letters = Zeroizing::new(lines.collect::<String>());
    BASE64_STANDARD.decode(&*letters).ok().map(Zeroizing::new)
}

fn ssh_private(text: &str) -> Result<OwnPrivateKey, String> {
    if is_rsa(text) {
        return Err(NO_RSA.to_owned());
    }
    let decoded = decoded(text).ok_or_else(|| UNREADABLE.to_owned())?;
    if names_rsa(&decoded) {
        return Err(NO_RSA.to_owned());
    }
    // age looks for a line end behind the last line.
    let text = Zeroizing::new(format!("{text}\n"));
    let key =
        ssh::Identity::from_buffer(text.as_bytes(), None).map_err(|_| UNREADABLE.to_owned())?;
    match ssh::Recipient::try_from(key.clone()) {
        Ok(ssh::Recipient::SshEd25519(..)) => Ok(OwnPrivateKey(Private::Ssh(key))),
        _ => Err("an SSH private key of a kind that is not supported; use ssh-ed25519, \
                       locked by nothing but a passphrase"
            .to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_ssh_key_is_called_by_its_comment() {
        let line =
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB9E8T9k8bUfjZTfJ4l6qO3cpdgr8dSQqTqOyVkHk0aN";
        assert_eq!(ssh_label(&format!("{line} ada@desk at home")), "ada@desk at home");
        assert_eq!(ssh_label(line), "ssh-ed25519 ...yVkHk0aN");
    }

    #[test]
    fn one_public_key_is_taken_at_a_time() {
        let line =
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOTyrI6yu2/3mgqc3hfBlETD1ZiPDnixdaf915Bgs7Qc ada";
        assert!(OwnPublicKey::from_text(&format!("{line}\n")).is_ok());
        let refused = OwnPublicKey::from_text(&format!("{line}\n{line}\n")).err().unwrap();
        assert!(refused.contains("more than one"), "{refused}");
    }

    /// A number of zeros in an RSA key, at which age ends in a panic, and what is no base64 behind it.
    #[test]
    fn an_rsa_key_that_something_follows_is_not_read() {
        let text = |part: &[u8]| [&u32::try_from(part.len()).unwrap().to_be_bytes(), part].concat();
        let public = [text(RSA_IN_OPENSSH), text(&[1]), text(&[1])].concat();
        let private = [&[0; 8][..], &text(RSA_IN_OPENSSH), &text(&[0]), &[0; 64]].concat();
        let front = [b"openssh-key-v1\0".to_vec(), text(b"none"), text(b"none"), text(b"")];
        let key = [front.concat(), vec![0, 0, 0, 1], text(&public), text(&private)].concat();
        let letters = BASE64_STANDARD.encode(key);
        let letters = letters.trim_end_matches('=');
        let whole = &letters[..letters.len() / 4 * 4];
        for (end, told) in [("\n", NO_RSA), ("\"}\n", UNREADABLE)] {
            let text = format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{whole}{end}-----END");
            assert_eq!(OwnPrivateKey::from_text(&text).err().unwrap(), told);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_key_or_refused(text: String, front in "(age1|ssh-ed25519 |ssh-rsa |-----BEGIN OPENSSH PRIVATE KEY-----\n|AGE-SECRET-KEY-1)?") {
            let text = format!("{front}{text}");
            prop_assert!(OwnPublicKey::from_text(&text).is_err());
            prop_assert!(OwnPrivateKey::from_text(&text).is_err());
        }
    }
}
