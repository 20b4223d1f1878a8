//! How the server tells people that a backup failed or did not come: e-mail, a webhook, ntfy, or a ping.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::Accounts;
use crate::ServerError;

const SETTING: &str = "notices.channels";
const TOLD: &str = "notices.told";
/// Most channels, and most characters of a name and of an address.
const MOST: usize = 20;
const NAME_MOST: usize = 64;
const TEXT_MOST: usize = 1000;

/// A way to tell somebody.
///
/// Secret: an address may be all that is needed to write there. No `Debug`.
#[derive(Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub enum Channel {
    /// A POST of JSON: `title`, `message`, `level`, `server`.
    Webhook {
        /// Where to.
        #[cfg_attr(feature = "web", schema(value_type = String))]
        url: Zeroizing<String>,
    },
    /// A topic of an ntfy server.
    Ntfy {
        /// The topic's address.
        #[cfg_attr(feature = "web", schema(value_type = String))]
        url: Zeroizing<String>,
    },
    /// A ping every few minutes as long as all is well, and one to `/fail` behind the address if not, as healthchecks has it.
    /// It tells too that the server itself is gone.
    Ping {
        /// Where to.
        #[cfg_attr(feature = "web", schema(value_type = String))]
        url: Zeroizing<String>,
    },
    /// A letter.
    Email {
        /// The mail server, `HOST:PORT`; 465 begins with TLS, others change to it where they can.
        server: String,
        /// Who signs in there, if somebody must.
        user: Option<String>,
        /// With which password.
        #[cfg_attr(feature = "web", schema(value_type = Option<String>))]
        password: Option<Zeroizing<String>>,
        /// Whose letter it is.
        from: String,
        /// To whom.
        to: String,
    },
}

/// A channel as an administrator sees it, without its secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "web", derive(utoipa::ToSchema))]
pub struct ChannelEntry {
    /// What it is called.
    pub name: String,
    /// `webhook`, `ntfy`, `ping` or `email`.
    pub kind: String,
    /// The host, or to whom letters go.
    pub to: String,
}

/// What was told by each channel.
pub(crate) type Told = BTreeMap<String, Reasons>;
/// Why something was not well, by what it is.
pub(crate) type Reasons = BTreeMap<String, BTreeSet<String>>;

impl Channel {
    /// The same without its secrets.
    pub(crate) fn entry(&self, name: &str) -> ChannelEntry {
        let (kind, to) = match self {
            Self::Webhook { url } => ("webhook", host(url)),
            Self::Ntfy { url } => ("ntfy", host(url)),
            Self::Ping { url } => ("ping", host(url)),
            Self::Email { to, .. } => ("email", to.clone()),
        };
        ChannelEntry { name: name.to_owned(), kind: kind.to_owned(), to }
    }

    fn check(&self) -> Result<(), ServerError> {
        let is_text = |text: &str| {
            (1..=TEXT_MOST).contains(&text.len()) && !text.chars().any(char::is_control)
        };
        let is_good = match self {
            Self::Webhook { url } | Self::Ntfy { url } | Self::Ping { url } => {
                let behind = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
                is_text(url)
                    && behind.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
            }
            Self::Email { server, user, password, from, to } => {
                let has_port = server.rsplit_once(':').is_some_and(|(host, port)| {
                    !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0)
                });
                let all = [server, from, to].into_iter().chain(user);
                let all = all.map(|text| &**text).chain(password.as_ref().map(|text| &***text));
                has_port && all.into_iter().all(is_text) && from.contains('@') && to.contains('@')
            }
        };
        match is_good {
            true => Ok(()),
            false => Err(ServerError::refused(
                "a channel needs an address that begins with https:// or http://, or a mail server as HOST:PORT with the \
                 addresses of who writes and who reads",
            )),
        }
    }
}

fn host(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit('@').next().unwrap_or_default().to_owned()
}

impl Accounts {
    /// All channels, by name.
    pub(crate) fn channels(&self) -> Result<BTreeMap<String, Channel>, ServerError> {
        self.read_json(SETTING)
    }

    /// Adds one, in the place of any of the same name.
    pub(crate) fn set_channel(&self, name: &str, channel: Channel) -> Result<(), ServerError> {
        if name.is_empty() || name.chars().count() > NAME_MOST || name.chars().any(char::is_control)
        {
            let reason = format!("a channel's name has 1 to {NAME_MOST} characters");
            return Err(ServerError::refused(reason));
        }
        channel.check()?;
        self.change_channels(|channels| {
            channels.insert(name.to_owned(), channel);
            match channels.len() > MOST {
                true => Err(ServerError::refused(format!("there are {MOST} channels; remove one"))),
                false => Ok(()),
            }
        })?;
        self.forget_told(name)
    }

    /// Takes one away, and gives it.
    pub(crate) fn remove_channel(&self, name: &str) -> Result<Channel, ServerError> {
        let removed =
            self.change_channels(|channels| channels.remove(name).ok_or_else(|| no_channel(name)))?;
        self.forget_told(name)?;
        Ok(removed)
    }

    /// What was told so far.
    pub(crate) fn told(&self) -> Result<Told, ServerError> {
        self.read_json(TOLD)
    }

    /// Notes what was told by a channel.
    #[cfg(feature = "web")]
    pub(crate) fn note_told(&self, channel: &str, of_channel: Reasons) -> Result<(), ServerError> {
        let mut told = self.told()?;
        if told.get(channel) == Some(&of_channel) {
            return Ok(());
        }
        told.insert(channel.to_owned(), of_channel);
        self.put_json(TOLD, &told)
    }

    fn forget_told(&self, channel: &str) -> Result<(), ServerError> {
        let mut told = self.told()?;
        match told.remove(channel) {
            Some(_) => self.put_json(TOLD, &told),
            None => Ok(()),
        }
    }

    fn change_channels<T>(
        &self,
        change: impl FnOnce(&mut BTreeMap<String, Channel>) -> Result<T, ServerError>,
    ) -> Result<T, ServerError> {
        let _state = self.state();
        let mut channels = self.channels()?;
        let changed = change(&mut channels)?;
        self.put_json(SETTING, &channels)?;
        Ok(changed)
    }

    /// A setting that is JSON, or its default.
    pub(super) fn read_json<T: Default + for<'de> Deserialize<'de>>(
        &self,
        name: &str,
    ) -> Result<T, ServerError> {
        match self.database.setting(name)? {
            None => Ok(T::default()),
            Some(text) => serde_json::from_str(&text).map_err(|error| failed(&error)),
        }
    }

    pub(super) fn put_json(&self, name: &str, value: &impl Serialize) -> Result<(), ServerError> {
        let text = Zeroizing::new(serde_json::to_string(value).map_err(|error| failed(&error))?);
        self.database.put_setting(name, &text)
    }
}

/// What is said where no channel is called so.
pub(crate) fn no_channel(name: &str) -> ServerError {
    ServerError::refused(format!("there is no channel {name:?}; `holdall admin notify` lists them"))
}

fn failed(error: &serde_json::Error) -> ServerError {
    ServerError::Admin { reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn webhook(url: &str) -> Channel {
        Channel::Webhook { url: Zeroizing::new(url.to_owned()) }
    }

    fn email(server: &str, to: &str) -> Channel {
        let from = "nas@example.org".to_owned();
        Channel::Email { server: server.into(), user: None, password: None, from, to: to.into() }
    }

    #[test]
    fn what_is_shown_of_a_channel_has_no_secret() {
        for (url, shown) in [
            ("https://user:word@hooks.example.org/T0/secret?key=1", "hooks.example.org"),
            ("http://127.0.0.1:8080/secret", "127.0.0.1:8080"),
        ] {
            let entry = webhook(url).entry("one");
            assert_eq!((&*entry.kind, &*entry.to), ("webhook", shown));
        }
        assert_eq!(email("mail:25", "me@example.org").entry("one").to, "me@example.org");
    }

    #[test]
    fn what_is_no_channel_is_refused() {
        for good in [webhook("https://a"), email("mail.example.org:587", "me@example.org")] {
            assert!(good.check().is_ok());
        }
        for bad in ["", "ftp://a", "https://", "https:///x", "https://a\nb"] {
            assert!(webhook(bad).check().is_err(), "{bad:?}");
        }
        for (server, to) in
            [("mail", "me@b"), ("mail:0", "me@b"), ("mail:25", "me"), ("mail:25", "a@b\nBcc: c@d")]
        {
            assert!(email(server, to).check().is_err(), "{server} {to:?}");
        }
    }
}
