//! How people are told: what an administrator says of that.

use super::administration::Administration;
use super::entries::Channels;
use crate::ServerError;
use crate::accounts::Channel;
use crate::accounts::channels::no_channel;

impl Administration<'_> {
    pub(super) fn channels(&self) -> Result<Channels, ServerError> {
        let channels = self.accounts.channels()?;
        let channels = channels.iter().map(|(name, channel)| channel.entry(name)).collect();
        Ok(Channels { channels })
    }

    pub(super) fn set_channel(
        &self,
        name: &str,
        channel: &Channel,
    ) -> Result<Channels, ServerError> {
        super::pages::refuse_without_pages()?;
        self.accounts.set_channel(name, channel.clone())?;
        self.log(&format!("people are told by {name:?} from now on"));
        Ok(Channels { channels: vec![channel.entry(name)] })
    }

    pub(super) fn remove_channel(&self, name: &str) -> Result<Channels, ServerError> {
        let removed = self.accounts.remove_channel(name)?;
        self.log(&format!("people are not told by {name:?} any more"));
        Ok(Channels { channels: vec![removed.entry(name)] })
    }

    pub(super) fn test_channel(&self, name: &str) -> Result<Channels, ServerError> {
        super::pages::refuse_without_pages()?;
        let channels = self.accounts.channels()?;
        let channel = channels.get(name).ok_or_else(|| no_channel(name))?;
        #[cfg(feature = "web")]
        crate::notices::send(channel, &crate::notices::Notice::trial()).map_err(|reason| {
            ServerError::refused(format!("{name:?} could not be used: {reason}"))
        })?;
        Ok(Channels { channels: vec![channel.entry(name)] })
    }
}
