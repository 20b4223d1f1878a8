//! What an administrator says of a certificate that an authority is to give.

#[cfg(feature = "web")]
use crate::ServerError;

/// The authority that is asked where none is named.
pub const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";
/// What an authority says that it speaks when it looks whether a name leads here.
pub(crate) const ALPN: &[u8] = b"acme-tls/1";
/// Most names of one certificate.
#[cfg(feature = "web")]
const NAMES_MOST: usize = 20;

/// A certificate for browsers that an authority gives by ACME.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acme {
    /// The names by which browsers reach the server, and the authority too, at port 443.
    pub names: Vec<String>,
    /// Whom the authority may write to, as `mailto:me@example.org`.
    pub contact: String,
    /// The authority's address; [`LETS_ENCRYPT`].
    pub directory: String,
}

impl Acme {
    #[cfg(feature = "web")]
    pub(crate) fn check(&self) -> Result<(), ServerError> {
        let refused = |reason: String| Err(ServerError::refused(reason));
        let is_name = |name: &String| {
            let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
            (1..=253).contains(&name.len())
                && name.bytes().all(is_of_name)
                && !name.starts_with('.')
        };
        if let Some(bad) = self.names.iter().find(|name| !is_name(name)) {
            return refused(format!(
                "{bad:?} is no name that an authority gives a certificate for"
            ));
        }
        if self.names.is_empty() || self.names.len() > NAMES_MOST {
            return refused(format!("a certificate has 1 to {NAMES_MOST} names"));
        }
        if !self.contact.strip_prefix("mailto:").is_some_and(|rest| rest.contains('@')) {
            return refused(format!(
                "{:?} is no contact; write it as mailto:me@example.org",
                self.contact
            ));
        }
        match self.directory.starts_with("https://") {
            true => Ok(()),
            false => refused(format!(
                "{:?} is no authority's address, which begins with https://",
                self.directory
            )),
        }
    }
}

#[cfg(all(test, feature = "web"))]
mod tests {
    use super::*;

    #[test]
    fn what_no_authority_takes_is_refused_by_name() {
        let good = Acme {
            names: vec!["nas.example.org".into()],
            contact: "mailto:me@example.org".into(),
            directory: LETS_ENCRYPT.into(),
        };
        good.check().unwrap();
        for (bad, named) in [
            (Acme { names: vec!["*.example.org".into()], ..good.clone() }, "*.example.org"),
            (Acme { names: Vec::new(), ..good.clone() }, "1 to 20"),
            (Acme { contact: "me@example.org".into(), ..good.clone() }, "mailto:"),
            (Acme { directory: "http://a".into(), ..good }, "https://"),
        ] {
            let refused = bad.check().unwrap_err().to_string();
            assert!(refused.contains(named), "{refused}");
        }
    }
}
